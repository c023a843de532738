//! Real-time tasks that have used up the time they may have in a period: all of them wait for the
//! next one (kernel.sched_rt_runtime_us; until Linux 6.11).

use std::fs;

use wakescope_core::units::SpanNs;
use wakescope_sys::clock;

use super::super::desk::Desk;
use super::disturber::{Burst, Disturber};
use super::fifo::become_fifo;
use super::gap;

/// Below everybody's who has a real-time policy.
const PRIORITY: u8 = 1;

/// How long to run on at a time. Between, it looks whether it should stop.
const STRETCH: SpanNs = SpanNs(1_000_000);

/// After so many periods without it, it does not happen here.
const PERIODS: u64 = 4;

pub(super) struct Throttle {
    length: SpanNs,
    period: SpanNs,
}

impl Throttle {
    pub(super) fn new(length: SpanNs) -> Result<Self, String> {
        let period = setting("sched_rt_period_us")?;
        let runtime = setting("sched_rt_runtime_us")?;
        let off = match (period, runtime) {
            (Some(period), Some(runtime)) if period > runtime => SpanNs(period.0 - runtime.0),
            _ => return Err("this machine does not throttle real-time tasks".into()),
        };
        if off != length {
            return Err(format!(
                "kernel.sched_rt_runtime_us throttles real-time tasks for {off} here, not for \
                 {length}"
            ));
        }
        become_fifo(PRIORITY)?;
        Ok(Self { length, period: period.unwrap_or_default() })
    }
}

impl Disturber for Throttle {
    fn disturb(&mut self, desk: &Desk) -> Result<Option<Burst>, String> {
        let deadline = clock::now().after(SpanNs(self.period.0 * PERIODS));
        while !desk.stopping() {
            let now = clock::now();
            if now >= deadline {
                return Err("this kernel did not throttle a real-time task that exceeded its \
                     runtime"
                    .into());
            }
            let longest = gap::longest(now, now.after(STRETCH));
            if longest.end.since(longest.begin).0 * 2 > self.length.0 {
                return Ok(Some(longest));
            }
        }
        Ok(None)
    }
}

/// A setting of the scheduler, microseconds there; `None` if it is -1, for no limit.
fn setting(name: &str) -> Result<Option<SpanNs>, String> {
    let path = format!("/proc/sys/kernel/{name}");
    let text = fs::read_to_string(&path).map_err(|e| format!("cannot read {path}: {e}"))?;
    Ok(text.trim().parse().ok().map(|us: u64| SpanNs(us.saturating_mul(1_000))))
}
