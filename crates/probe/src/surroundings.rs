//! What goes on around a measurement, read before and after it: never while it lasts, because
//! reading /proc can itself delay wakeups (netdata issue 4680 saw twenty-fold spikes).

use std::fs;
use std::path::{Path, PathBuf};

use wakescope_core::units::SpanNs;
use wakescope_sys::clock::{self, Clock};

use crate::host::{Files, cgroups};

/// The state of the machine at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Surroundings {
    /// Steal time per CPU, in clock ticks.
    steal: Vec<(u32, u64)>,
    clocks: Clocks,
    pub(crate) clocksource: String,
    /// Of the cgroup of this process and of those above it.
    quotas: Vec<(PathBuf, Quota)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Clocks {
    monotonic: u64,
    raw: u64,
    boottime: u64,
}

/// How often a quota has stopped a cgroup, and for how long, summed over CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Quota {
    stops: u64,
    stopped_ns: u64,
}

/// What changed between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) steal: SpanNs,
    pub(crate) slept: SpanNs,
    /// At least so much.
    pub(crate) clock_drift_ppm: u64,
    pub(crate) quota_stops: u64,
    pub(crate) quota_stopped: SpanNs,
}

/// `USER_HZ`, the unit of /proc/stat: 100 on every architecture (alpha and ia64 are gone).
const TICK_NS: u64 = 10_000_000;

/// Between two readings of clocks the thread may be held up: nothing is made of a smaller difference.
const NOISE_NS: u64 = 10_000_000;

impl Surroundings {
    pub(crate) fn now() -> Self {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        Self {
            steal: steal_of(&text("/proc/stat")),
            clocksource: text(source).trim().into(),
            quotas: quotas(&Files::of_this_machine()),
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
        let stopped: Vec<Quota> = self.quotas_since(before).collect();
        let slept = Some(boottime.saturating_sub(monotonic)).filter(|&ns| ns > NOISE_NS);
        let off_ns = monotonic.abs_diff(raw).saturating_sub(NOISE_NS);
        Change {
            steal: SpanNs(ticks(&self.steal).saturating_sub(ticks(&before.steal)) * TICK_NS),
            slept: SpanNs(slept.unwrap_or(0)),
            clock_drift_ppm: off_ns.saturating_mul(1_000_000).checked_div(raw).unwrap_or(0),
            quota_stops: stopped.iter().map(|quota| quota.stops).sum(),
            quota_stopped: SpanNs(stopped.iter().map(|quota| quota.stopped_ns).sum()),
        }
    }

    /// What quotas did since `before`. Of a cgroup that the process was not in then, nothing is known.
    fn quotas_since(&self, before: &Self) -> impl Iterator<Item = Quota> {
        self.quotas.iter().filter_map(|(group, quota)| {
            let (_, before) = before.quotas.iter().find(|(known, _)| known == group)?;
            Some(Quota {
                stops: quota.stops.saturating_sub(before.stops),
                stopped_ns: quota.stopped_ns.saturating_sub(before.stopped_ns),
            })
        })
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

fn quotas(files: &Files) -> Vec<(PathBuf, Quota)> {
    let groups = cgroups::folders(files, "cpu").into_iter();
    groups
        .map(|group| {
            let quota = quota_of(&group);
            (group, quota)
        })
        .collect()
}

/// `nr_throttled`, and `throttled_usec` (version 2) or `throttled_time` in ns (version 1).
fn quota_of(group: &Path) -> Quota {
    let value = |key| cgroups::number_of(group, "cpu.stat", key);
    Quota {
        stops: value("nr_throttled").unwrap_or(0),
        stopped_ns: value("throttled_usec")
            .map(|us| us.saturating_mul(1_000))
            .or_else(|| value("throttled_time"))
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
        assert_eq!(at(10 * S, 10 * S, 15 * S).since(&start, &[]).slept, SpanNs(5 * S));
        let slept = SpanNs(10_000_001);
        assert_eq!(at(10 * S, 10 * S, 10 * S + slept.0).since(&start, &[]).slept, slept);
        assert_eq!(at(11 * S, 10 * S, 11 * S).since(&start, &[]).clock_drift_ppm, 99_000);
    }

    #[test]
    fn quotas_of_this_cgroup_and_of_those_above_it_stop_it() {
        use cgroups::tests::{OLDER, UNIFIED, machine};
        for (groups, mounts, folder, units) in [
            ("0::/a/b\n", UNIFIED, "cg", "throttled_usec"),
            ("2:cpu,cpuacct:/a/b\n0::/\n", OLDER, "cg/cpu", "throttled_time"),
        ] {
            let (root, files) = machine(groups, mounts);
            let at = |own: (u64, u64), above: (u64, u64)| {
                for (group, (stops, time)) in [("a/b", own), ("a", above)] {
                    let text = format!("nr_periods 50\nnr_throttled {stops}\n{units} {time}\n");
                    root.write(format!("{folder}/{group}/cpu.stat"), text);
                }
                // As that of the root, which has no quota.
                root.write(format!("{folder}/cpu.stat"), "usage_usec 5\n");
                Surroundings { quotas: quotas(&files), ..Surroundings::default() }
            };
            let change = |before: &Surroundings, after: &Surroundings| {
                let change = after.since(before, &[]);
                (change.quota_stops, change.quota_stopped)
            };
            let before = at((5, 100), (7, 1_000));
            let ns = if units == "throttled_usec" { 1_000 } else { 1 };
            assert_eq!(change(&before, &at((5, 100), (7, 1_000))), (0, SpanNs(0)));
            assert_eq!(change(&before, &at((6, 130), (7, 1_000))), (1, SpanNs(30 * ns)));
            assert_eq!(change(&before, &at((5, 100), (9, 1_500))), (2, SpanNs(500 * ns)));
            assert_eq!(change(&before, &at((6, 130), (9, 1_500))), (3, SpanNs(530 * ns)));
            // A process that was moved meanwhile.
            assert_eq!(change(&Surroundings::default(), &before), (0, SpanNs(0)));
        }
    }
}
