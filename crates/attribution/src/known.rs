//! What is known of a wakeup before its events are looked at: from its machine, and from all the
//! wakeups of its run.

use wakescope_core::distribution::Distribution;
use wakescope_core::explain::{ComponentTable, Known};
use wakescope_core::host::Host;
use wakescope_core::percentile::Percentile;
use wakescope_core::run::TimeDomain;

/// What a wakeup's machine is like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// How long its deepest idle state takes to leave, nanoseconds.
    pub idle_exit_ns: u64,
    /// See [`Known::guest`].
    pub guest: bool,
    /// See [`Known::ticks`].
    pub ticks: bool,
}

impl Machine {
    /// `host`, where a run's clock counts `time`.
    pub fn of(host: &Host, time: TimeDomain) -> Self {
        Self {
            idle_exit_ns: host.idle.longest_exit_ns(),
            guest: host.may_be_stopped(time),
            ticks: host.cpus_nohz_full.is_empty(),
        }
    }
}

/// What nine in ten wakeups exceed.
const LOW: Percentile = Percentile::whole(10);

/// What half of the wakeups exceed.
const MIDDLE: Percentile = Percentile::whole(50);

/// What one in a hundred wakeups exceeds.
const HIGH: Percentile = Percentile::whole(99);

/// What all wakeups together teach about each. `probes`: see [`Known::probes`].
pub fn calibrate(table: &ComponentTable, machine: Machine, probes: bool) -> Known {
    let Machine { idle_exit_ns, guest, ticks } = machine;
    // Of ten wakeups nine wait as long at least. The minimum is that of a chance: a timer that
    // expires while another interrupt is being handled waits for none of its own.
    let nearly_all = |part: &Distribution| Some(part.histogram.bucket_of_percentile(LOW)?.lower);
    let delivery_ns = nearly_all(&table.irq_latency).or(table.irq_latency.min_ns).unwrap_or(0);
    let most = |part: &Distribution| Some(part.histogram.bucket_of_percentile(HIGH)?.lower);
    let scheduling_ns = table.sched_duration.as_ref().and_then(most);
    // Where a hypervisor stops the CPU again and again, more than one in a hundred, and in ten,
    // tell of that.
    let middle = table.irq_latency.histogram.bucket_of_percentile(MIDDLE);
    let waking_ns = middle.map(|usual| usual.lower.max(idle_exit_ns));
    let least_sched_latency_ns = table.sched_latency.min_ns;
    Known {
        delivery_ns,
        scheduling_ns,
        least_sched_latency_ns,
        waking_ns,
        guest,
        ticks,
        probes,
        shows_softirqs_left: false,
        shows_throttling: false,
    }
}
