//! What goes on around a measurement, read before and after it: never while it lasts, because
//! reading /proc can itself delay wakeups (netdata issue 4680 saw twenty-fold spikes).

use std::fs;

use wakescope_core::units::SpanNs;
use wakescope_sys::clock::{self, Clock};

/// The state of the machine at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Surroundings {
    /// Steal time per CPU, in clock ticks.
    steal: Vec<(u32, u64)>,
    clocks: Clocks,
    pub(crate) clocksource: String,
    quota: Quota,
}

#[derive(Clone, Copy, Debug, Default)]
struct Clocks {
    monotonic: u64,
    raw: u64,
    boottime: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Quota {
    stops: u64,
    stopped_ns: u64,
}

/// What changed between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) steal: SpanNs,
    pub(crate) slept: SpanNs,
    pub(crate) clock_drift_ppm: u64,
    pub(crate) quota_stops: u64,
    pub(crate) quota_stopped: SpanNs,
}

/// `USER_HZ`, the unit of /proc/stat: 100 on every architecture (alpha and ia64 are gone).
const TICK_NS: u64 = 10_000_000;

impl Surroundings {
    pub(crate) fn now() -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        Self {
            steal: steal_of(&text("/proc/stat")),
            clocksource: text(source).trim().into(),
            quota: quota_of(&text(&cpu_stat_path(&text("/proc/self/cgroup")))),
            clocks: Clocks {
                raw: clock::read(Clock::MonotonicRaw),
                boottime: clock::read(Clock::Boottime),
                monotonic: clock::read(Clock::Monotonic),
            },
        }
    }

    /// What changed on `cpus` since `before`.
    pub(crate) fn since(&self, before: &Self, cpus: &[u32]) -> Change {
        let ticks = |of: &[(u32, u64)]| -> u64 {
            of.iter().filter(|(cpu, _)| cpus.contains(cpu)).map(|(_, ticks)| ticks).sum()
        };
        let span =
            |clock: fn(&Clocks) -> u64| clock(&self.clocks).saturating_sub(clock(&before.clocks));
        let (monotonic, raw, boottime) =
            (span(|c| c.monotonic), span(|c| c.raw), span(|c| c.boottime));
        // Between two of the readings the thread may be held up; below this nothing can be said.
        let noise_ns = 10_000_000;
        let off_ns = monotonic.abs_diff(raw).saturating_sub(noise_ns);
        Change {
            steal: SpanNs(ticks(&self.steal).saturating_sub(ticks(&before.steal)) * TICK_NS),
            slept: SpanNs(boottime.saturating_sub(monotonic).saturating_sub(noise_ns)),
            clock_drift_ppm: off_ns.saturating_mul(1_000_000).checked_div(raw).unwrap_or(0),
            quota_stops: self.quota.stops.saturating_sub(before.quota.stops),
            quota_stopped: SpanNs(self.quota.stopped_ns.saturating_sub(before.quota.stopped_ns)),
        }
    }
}

/// The eighth figure of each `cpuN` line (proc_stat(5)).
fn steal_of(stat: &str) -> Vec<(u32, u64)> {
    stat.lines()
        .filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let cpu = words.next()?.strip_prefix("cpu")?.parse().ok()?;
            Some((cpu, words.nth(7)?.parse().ok()?))
        })
        .collect()
}

/// The cpu.stat file of this process's cgroup, from /proc/self/cgroup: of the cpu controller where
/// cgroups are of version 1, of the one hierarchy otherwise.
fn cpu_stat_path(cgroup: &str) -> String {
    let groups = || {
        cgroup.lines().filter_map(|line| line.splitn(3, ':').collect::<Vec<_>>().try_into().ok())
    };
    let v1 =
        groups().find(|[_, controllers, _]: &[&str; 3]| controllers.split(',').any(|c| c == "cpu"));
    match v1 {
        Some([_, _, path]) => format!("/sys/fs/cgroup/cpu{path}/cpu.stat"),
        None => {
            let path =
                groups().find(|[id, _, _]: &[&str; 3]| *id == "0").map_or("", |[_, _, path]| path);
            format!("/sys/fs/cgroup{path}/cpu.stat")
        }
    }
}

/// `nr_throttled`, and `throttled_usec` (version 2) or `throttled_time` in ns (version 1).
fn quota_of(stat: &str) -> Quota {
    let value = |key: &str| -> Option<u64> {
        stat.lines().find_map(|line| line.strip_prefix(key)?.trim().parse().ok())
    };
    Quota {
        stops: value("nr_throttled ").unwrap_or(0),
        stopped_ns: value("throttled_usec ")
            .map(|us| us.saturating_mul(1_000))
            .or_else(|| value("throttled_time "))
            .unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_summed_over_the_measured_cpus() {
        let stat = |a, b| {
            format!(
                "cpu  1 2 3 4 5 6 7 99 0 0\ncpu0 1 2 3 4 5 6 7 {a} 0 0\ncpu1 1 2 3 4 5 6 7 {b} 0 0\nintr 5\n"
            )
        };
        let at = |a, b| Surroundings { steal: steal_of(&stat(a, b)), ..Default::default() };
        assert_eq!(at(15, 27).since(&at(10, 20), &[0]).steal, SpanNs(50_000_000));
        assert_eq!(at(15, 27).since(&at(10, 20), &[0, 1]).steal, SpanNs(120_000_000));
        assert_eq!(steal_of("cpu0 1 2\ncpu\ncpux 1 2 3 4 5 6 7 8\n"), []);
    }

    #[test]
    fn sleep_and_drift_are_told_from_noise() {
        let at = |monotonic, raw, boottime| Surroundings {
            clocks: Clocks { monotonic, raw, boottime },
            ..Default::default()
        };
        const S: u64 = 1_000_000_000;
        let start = at(0, 0, 0);
        assert_eq!(
            at(10 * S, 10 * S + 9_000_000, 10 * S + 9_000_000).since(&start, &[]),
            Change::default()
        );
        assert_eq!(at(10 * S, 10 * S, 15 * S).since(&start, &[]).slept, SpanNs(4_990_000_000));
        assert_eq!(at(11 * S, 10 * S, 11 * S).since(&start, &[]).clock_drift_ppm, 99_000);
    }

    #[test]
    fn quotas_of_both_cgroup_versions() {
        for (cgroup, want) in [
            ("0::/user.slice/a:b\n", "/sys/fs/cgroup/user.slice/a:b/cpu.stat"),
            ("3:cpuset:/x\n1:cpu,cpuacct:/c\n0::/\n", "/sys/fs/cgroup/cpu/c/cpu.stat"),
            ("", "/sys/fs/cgroup/cpu.stat"),
        ] {
            assert_eq!(cpu_stat_path(cgroup), want);
        }
        for (stat, want) in [
            ("nr_periods 5\nnr_throttled 2\nthrottled_usec 7\n", (2, 7_000)),
            ("nr_throttled 3\nthrottled_time 9\n", (3, 9)),
            ("", (0, 0)),
        ] {
            let quota = quota_of(stat);
            assert_eq!((quota.stops, quota.stopped_ns), want);
        }
    }
}
