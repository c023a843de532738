//! Several windows as one.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use crate::date::Date;
use crate::watch::boot;
use crate::watch::cgroup::Cgroup;
use crate::watch::episode::Episodes;
use crate::watch::{Audit, CostSource, Cpu, LeftOut, Moved, OwnCost, Series, Waits, Window};

/// The most series of a sum, as many as one watch can have at once. Waits of all others are one.
const MOST_SERIES: usize = 65_536;

/// Windows that are added up, each later than the one before. Time between them, in which nobody watched, is
/// in none. Episodes of all of them end by the clock of the first one's watch, which goes on in such time.
#[derive(Clone, Debug, Default)]
pub struct Sum {
    /// The first window, with the sums of what is no list.
    head: Option<Window>,
    /// With the ID that the cgroup had last.
    series: BTreeMap<(Cgroup, String), (u64, Waits)>,
    cpus: BTreeMap<u32, (u64, Waits)>,
}

impl Sum {
    /// Adds a window.
    pub fn add(&mut self, window: impl Borrow<Window>) {
        let window: &Window = window.borrow();
        let mut others = window.others.clone();
        for one in &window.series {
            let key = (Cgroup::of(one), one.comm.clone());
            if self.series.len() >= MOST_SERIES && !self.series.contains_key(&key) {
                others.add(&one.waits);
                continue;
            }
            let (id, sum) = self.series.entry(key).or_default();
            *id = one.cgroup_id;
            sum.add(&one.waits);
        }
        for Cpu { cpu, switches, waits } in &window.cpus {
            let sum = self.cpus.entry(*cpu).or_default();
            sum.0 = sum.0.saturating_add(*switches);
            sum.1.add(waits);
        }
        let mut window = Window { others, ..without_lists(window) };
        self.head = Some(match self.head.take() {
            None => window,
            Some(head) => {
                let later_ns = not_watched(&head, &window);
                window.episodes.iter_mut().for_each(|episodes| episodes.shift(later_ns));
                window.explanations.iter_mut().for_each(|all| all.shift(later_ns));
                joined(head, window)
            }
        });
    }

    /// How long the windows are together, ns.
    pub fn window_ns(&self) -> u64 {
        self.head.as_ref().map_or(0, |head| head.window_ns)
    }

    /// All of them as one window, which begins with the first; `None` if there were none.
    pub fn window(&self) -> Option<Window> {
        let head = self.head.clone()?;
        let series = self.series.iter().map(|((cgroup, comm), (cgroup_id, waits))| Series {
            cgroup_id: *cgroup_id,
            cgroup: cgroup.path().map(str::to_owned),
            comm: comm.clone(),
            waits: waits.clone(),
        });
        let cpus = self.cpus.iter().map(|(&cpu, (switches, waits))| Cpu {
            cpu,
            switches: *switches,
            waits: waits.clone(),
        });
        Some(Window { series: series.collect(), cpus: cpus.collect(), ..head })
    }

    /// How many series there are.
    pub fn series(&self) -> usize {
        self.series.len()
    }

    /// How many bytes their names and the paths of their cgroups have.
    pub fn text_bytes(&self) -> usize {
        let of = |cgroup: &Cgroup, comm: &str| cgroup.path().map_or(0, str::len) + comm.len();
        self.series.keys().map(|(cgroup, comm)| of(cgroup, comm)).sum()
    }
}

/// A copy without series, CPUs and others, which may be large.
fn without_lists(window: &Window) -> Window {
    let Window { schema, started, begin_ns, boottime_ns, window_ns, from, .. } = window;
    let Window { left_out, moved, .. } = window;
    let Window { series_used, series_limit, own_cost, audit, .. } = *window;
    Window {
        schema: schema.clone(),
        started: started.clone(),
        begin_ns: *begin_ns,
        boottime_ns: *boottime_ns,
        window_ns: *window_ns,
        from: *from,
        series: Vec::new(),
        others: Waits::default(),
        cpus: Vec::new(),
        left_out: *left_out,
        moved: *moved,
        series_used,
        series_limit,
        own_cost,
        audit,
        episodes: window.episodes.clone(),
        explanations: window.explanations.clone(),
        boots: window.boots.clone(),
    }
}

/// How much later `window` began than the times that it counts say, ns, if these are to count from the start
/// of the watch of `first`: that is another one, or the machine was suspended.
fn not_watched(first: &Window, window: &Window) -> u64 {
    // Dates are known to the second.
    const UNSURE_NS: u64 = 2_000_000_000;
    let seconds = |window: &Window| Date::parse(&window.started).map(Date::seconds);
    let Some((from, to)) = seconds(first).zip(seconds(window)) else { return 0 };
    let passed = u64::try_from(to.saturating_sub(from)).unwrap_or(0);
    let end = first.begin_ns.saturating_add(passed.saturating_mul(1_000_000_000));
    Some(end.saturating_sub(window.begin_ns)).filter(|&ns| ns > UNSURE_NS).unwrap_or(0)
}

impl Episodes {
    /// Has them end later by so many ns.
    fn shift(&mut self, ns: u64) {
        for episode in &mut self.longest {
            episode.end_ns = episode.end_ns.saturating_add(ns);
        }
    }
}

/// What is no list of two windows.
fn joined(first: Window, later: Window) -> Window {
    Window {
        window_ns: first.window_ns.saturating_add(later.window_ns),
        others: first.others.merged(&later.others),
        left_out: first.left_out.plus(&later.left_out),
        moved: Moved {
            count: first.moved.count.saturating_add(later.moved.count),
            before_ns: first.moved.before_ns.saturating_add(later.moved.before_ns),
        },
        series_used: first.series_used.max(later.series_used),
        series_limit: first.series_limit.max(later.series_limit),
        own_cost: first.own_cost.plus(&later.own_cost),
        audit: match (first.audit, later.audit) {
            (Some(first), Some(later)) => Some(later.after(&first)),
            (first, later) => later.or(first),
        },
        episodes: match (first.episodes, later.episodes) {
            (Some(first), Some(later)) => Some(first.plus(later)),
            (first, later) => first.or(later),
        },
        explanations: match (first.explanations, later.explanations) {
            (Some(first), Some(later)) => Some(first.plus(later)),
            (first, later) => first.or(later),
        },
        boots: boot::joined(first.boots, later.boots),
        ..first
    }
}

impl LeftOut {
    /// Both together.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            uncovered_ns: self.uncovered_ns.saturating_add(other.uncovered_ns),
            unstamped: self.unstamped.saturating_add(other.unstamped),
            discarded: self.discarded.saturating_add(other.discarded),
            untracked: self.untracked.saturating_add(other.untracked),
            first: self.first.saturating_add(other.first),
            caught_up: self.caught_up.saturating_add(other.caught_up),
            missed: self.missed.saturating_add(other.missed),
            missed_ns: self.missed_ns.saturating_add(other.missed_ns),
            contradicted: self.contradicted.saturating_add(other.contradicted),
            asleep: self.asleep.saturating_add(other.asleep),
            asleep_ns: self.asleep_ns.saturating_add(other.asleep_ns),
        }
    }
}

impl OwnCost {
    /// Both together: known only if both are, and measured only if both were.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let source = match (self.source, other.source) {
            (CostSource::Unknown, _) | (_, CostSource::Unknown) => CostSource::Unknown,
            (CostSource::Measured, CostSource::Measured) => CostSource::Measured,
            _ => CostSource::Estimated,
        };
        Self {
            agent_ns: self.agent_ns.saturating_add(other.agent_ns),
            program_ns: self.program_ns.zip(other.program_ns).map(|(a, b)| a.saturating_add(b)),
            tracer_ns: self.tracer_ns.saturating_add(other.tracer_ns),
            program_runs: self.program_runs.saturating_add(other.program_runs),
            source,
            cpus: self.cpus.max(other.cpus),
        }
    }
}

impl Audit {
    /// This comparison, after an `earlier` one. Each is of all that was counted of a task since it was seen
    /// first. So the last one says how many are equal, and none makes up for a difference.
    #[must_use]
    pub fn after(&self, earlier: &Self) -> Self {
        Self {
            differing: self.differing.max(earlier.differing),
            largest_ns: self.largest_ns.max(earlier.largest_ns),
            ..*self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::SCHEMA;
    use crate::watch::episode::Episode;

    fn window(begin_ns: u64, series: Vec<Series>) -> Window {
        Window {
            schema: SCHEMA.into(),
            started: "2026-11-21T01:00:00Z".into(),
            begin_ns,
            window_ns: 2_000,
            series,
            others: Waits::exactly(&[3]),
            cpus: vec![Cpu { cpu: 0, switches: 7, waits: Waits::exactly(&[begin_ns]) }],
            left_out: LeftOut { missed: 2, ..LeftOut::default() },
            moved: Moved { count: 1, before_ns: 5 },
            series_used: 4,
            series_limit: 9,
            own_cost: OwnCost {
                agent_ns: 10,
                program_ns: Some(20),
                tracer_ns: 0,
                program_runs: 7,
                source: CostSource::Measured,
                cpus: 2,
            },
            audit: Some(Audit { equal: 5, ..Audit::default() }),
            ..Window::default()
        }
    }

    fn series(id: u64, path: Option<&str>, comm: &str, of: &[u64]) -> Series {
        let cgroup = path.map(str::to_owned);
        Series { cgroup_id: id, cgroup, comm: comm.into(), waits: Waits::exactly(of) }
    }

    #[test]
    fn windows_add_up() {
        let mut sum = Sum::default();
        assert_eq!((sum.window(), sum.window_ns()), (None, 0));
        let first =
            window(0, vec![series(1, Some("/a"), "x", &[1, 2]), series(2, None, "x", &[9])]);
        sum.add(first.clone());
        assert_eq!(sum.window().as_ref(), Some(&first));
        let mut second = window(2_000, vec![series(1, Some("/a"), "x", &[7])]);
        second.audit = Some(Audit { equal: 8, differing: 1, ..Audit::default() });
        second.own_cost.source = CostSource::Estimated;
        sum.add(second);
        // After the next boot another cgroup has the ID, and this one has another.
        let after = vec![series(1, Some("/b"), "x", &[4]), series(8, Some("/a"), "x", &[5])];
        sum.add(Window { audit: None, ..window(0, after) });
        let all = sum.window().unwrap();
        assert_eq!(
            (all.begin_ns, all.window_ns, all.others),
            (0, 6_000, Waits::exactly(&[3, 3, 3]))
        );
        let want = [
            series(8, Some("/a"), "x", &[1, 2, 5, 7]),
            series(1, Some("/b"), "x", &[4]),
            series(2, None, "x", &[9]),
        ];
        assert_eq!(all.series, want);
        assert_eq!((all.cpus[0].switches, all.cpus[0].waits.count), (21, 3));
        assert_eq!((all.left_out.missed, all.moved.before_ns), (6, 15));
        assert_eq!(
            (all.own_cost.program_ns, all.own_cost.source),
            (Some(60), CostSource::Estimated)
        );
        assert_eq!(all.audit.map(|audit| (audit.equal, audit.differing)), Some((8, 1)));
    }

    #[test]
    fn episodes_of_several_watches_end_by_the_clock_of_the_first() {
        let ended = |started: &str, begin_s: u64, end_s: u64| {
            let longest = vec![Episode { end_ns: end_s * 1_000_000_000, ..Episode::default() }];
            let episodes = Some(Episodes { long_waits: 1, longest, ..Episodes::default() });
            let window = window(begin_s * 1_000_000_000, Vec::new());
            Window { started: format!("2026-11-21T{started}Z"), episodes, ..window }
        };
        let mut sum = Sum::default();
        sum.add(ended("01:00:00", 3_600, 3_605));
        // The same watch: its begins are known to the second, its episodes to the nanosecond.
        sum.add(ended("01:10:01", 4_200, 4_206));
        // Another watch, a suspended machine, and a clock that was set back before the first window.
        sum.add(ended("02:00:00", 0, 7));
        sum.add(ended("03:00:00", 600, 608));
        sum.add(ended("00:30:00", 1_200, 1_209));
        let episodes = sum.window().and_then(|window| window.episodes).unwrap().longest;
        let ends = episodes.iter().map(|episode| episode.end_ns / 1_000_000_000);
        assert_eq!(ends.collect::<Vec<_>>(), [3_605, 3_609, 4_206, 7_207, 10_808]);
    }

    #[test]
    fn names_without_end_take_no_memory_without_end() {
        let mut sum = Sum::default();
        let many = (0..MOST_SERIES as u64 + 10).map(|id| series(id, None, "x", &[7]));
        sum.add(window(0, many.collect()));
        sum.add(window(2_000, vec![series(3, None, "x", &[8]), series(0, None, "new", &[9])]));
        let all = sum.window().unwrap();
        assert_eq!((all.series.len(), all.others.count), (MOST_SERIES, 1 + 10 + 1 + 1));
        assert_eq!(all.series[3].waits, Waits::exactly(&[7, 8]));
    }

    #[test]
    fn a_cost_that_is_not_known_once_is_not_known_at_all() {
        let known = window(0, Vec::new()).own_cost;
        let unknown = OwnCost { program_ns: None, source: CostSource::Unknown, ..known };
        let both = known.plus(&unknown);
        assert_eq!((both.program_ns, both.source), (None, CostSource::Unknown));
    }
}
