use std::collections::BTreeSet;

use super::super::own::OwnWakeup;
use super::super::section::tests::{nested, of};
use super::super::{At, Course, Interrupt, Latest, Point, Section, Stretch, ranking};
use super::*;
use wakescope_core::distribution::Distribution;
use wakescope_core::run::Thread;

/// From a time on, a program runs: `'u'`; or the kernel, with interrupts off: `'i'`; or with preemption off: `'p'`.
pub(in crate::replay) fn course(places: &[(u64, char)]) -> Course {
    let stretch = |&(from_ns, what): &(u64, char)| Stretch {
        from_ns,
        irqs_off: what == 'i',
        preempt_off: what == 'p',
        at: if what == 'u' { At::User } else { At::Kernel },
        task: 1,
        point: if what == 'u' { Point::Looks } else { Point::None },
        counts: true,
        is_own: false,
    };
    Course { stretches: places.iter().map(stretch).collect(), end_ns: 1_000 }
}

/// Without sections, interrupts and wakeups of its own; a way of 10 ns, and phases 1 ns apart.
pub(in crate::replay) fn replay(course: &Course) -> Replay {
    Replay {
        seen: Seen { course: course.clone(), ..Seen::default() },
        grid: Grid { interval_ns: 1_000, phases: 1_000 },
        wakeups: 1,
        ways: vec![way(10)],
        own: vec![],
    }
}

/// Of so many ns, 4 of them to the scheduler.
fn way(ns: u64) -> Way {
    Way { to_scheduler_ns: 4, to_program_ns: ns - 4 }
}

fn interrupt(from_ns: u64, length_ns: u64) -> Interrupt {
    Interrupt { from_ns, length_ns }
}

fn full() -> Rules {
    Rules::named("full").unwrap()
}

/// One that has these sections as well.
pub(in crate::replay) fn with_sections(course: &Course, sections: &[Section]) -> Replay {
    let mut replay = replay(course);
    replay.seen.sections = sections.to_vec();
    replay
}

/// One that has these interrupts as well.
fn with_interrupts(mut replay: Replay, interrupts: &[Interrupt]) -> Replay {
    replay.seen.interrupts = interrupts.to_vec();
    replay
}

/// With interrupts off.
pub(in crate::replay) fn section(from_ns: u64, to_ns: u64, owner: u32) -> Section {
    of(true, from_ns, to_ns, owner)
}

#[test]
fn no_phase_is_later_than_the_latest_of_any_phase_nor_an_own_wakeup() {
    // Nothing holds a wakeup up, but one way of three is long.
    let course = course(&[(0, 'u')]);
    for (own, longest_ns) in
        [(vec![], 30), (vec![(500, way(5)), (600, way(40))], 40), (vec![(500, way(5))], 30)]
    {
        let grid = Grid { interval_ns: 100, phases: 4 };
        let ways = [5, 30, 5].map(way).to_vec();
        let replay = Replay { grid, ways, own, ..replay(&course) };
        let sample = replay.sample(&full(), &Breaks::default()).unwrap();
        let latest = sample.drawn.iter().map(|[.., max_ns]| max_ns.unwrap()).max();
        assert_eq!((latest, sample.longest_ns), (Some(30), longest_ns));
    }
}

#[test]
fn what_all_phases_have_alike_another_cell_may_lack() {
    // Nothing holds a wakeup up, and each phase has each way once: the long one, too.
    let course = course(&[(0, 'u')]);
    let grid = Grid { interval_ns: 10, phases: 10 };
    let mut ways = vec![way(50); 100];
    ways[7] = way(1_000);
    let replay = Replay { grid, ways, ..replay(&course) };
    let sample = replay.sample(&full(), &Breaks::default()).unwrap();
    assert!(sample.phases.iter().all(|[.., max_ns]| *max_ns == Some(1_000)), "{sample:?}");
    let drawn = sample.drawn.iter().map(|[.., max_ns]| max_ns.unwrap());
    assert_eq!((drawn.clone().min(), drawn.max()), (Some(50), Some(1_000)));
}

#[test]
fn interrupts_on_the_way_make_wakeups_later_and_the_latest_is_the_latest_of_all_moments() {
    // 6 ns after a section comes an interrupt; another, in a program, where nobody waits.
    let course =
        course(&[(0, 'u'), (40, 'i'), (100, 'u'), (106, 'i'), (136, 'u'), (500, 'i'), (550, 'u')]);
    let interrupts = [interrupt(106, 30), interrupt(500, 50)];
    for (way_ns, interrupts, on_way_ns) in [
        (10, &interrupts[..], 30),
        (6, &interrupts, 0),
        (6, &[], 0),
        // The program would have read the clock before.
        (5, &interrupts, 0),
        // From the one to the other.
        (370, &interrupts, 30),
        (371, &interrupts, 80),
    ] {
        let (ways, own) = (vec![way(way_ns)], vec![(100, way(way_ns))]);
        let replay = Replay { ways, own, ..with_interrupts(replay(&course), interrupts) };
        let delays = replay.delays(&full(), &Breaks::default());
        // Each moment by itself.
        let phases: Vec<_> =
            replay.phases(&delays).iter().map(|phase| replay.in_turn(&delays, phase)).collect();
        let want = 60 + way_ns + on_way_ns;
        assert_eq!(phases.iter().flatten().max(), Some(&want), "{way_ns}");
        assert_eq!(replay.latest(&delays).map(|latest| latest.ns), Some(want), "{way_ns}");
        assert_eq!(replay.own_latencies(&delays), [way_ns + on_way_ns], "{way_ns}");
    }
}

#[test]
fn who_was_handled_before_meets_interrupts_only_from_the_scheduler_on() {
    let course = course(&[(0, 'p'), (100, 'u')]);
    let interrupts = &[interrupt(106, 30)][..];
    let replay = with_interrupts(replay(&course), interrupts);
    let delays = replay.delays(&full(), &Breaks::default());
    // Due at 70, in the section; and at 100, where its own interrupt comes first.
    let late = |due_ns: u64, way| {
        let part = delays.parts.iter().find(|part| due_ns < part.to_ns).unwrap();
        delays.latency_ns(part.at(due_ns).unwrap(), way)
    };
    assert_eq!([late(70, way(10)), late(100, way(10))], [30 + 10, 10 + 30]);
    assert_eq!([late(70, way(11)), late(100, way(11))], [30 + 11 + 30, 11 + 30]);
}

#[test]
fn what_holds_up_the_latest_wakeup_is_broken_first_and_not_the_longest_wait() {
    // 60 ns in a section of function 1; 50 ns in one of function 2, after which an interrupt of 30 ns comes.
    let course = course(&[(0, 'u'), (100, 'i'), (160, 'u'), (200, 'i'), (250, 'u')]);
    let sections = [section(100, 160, 1), section(200, 250, 2)];
    let interrupts = &[interrupt(250, 30)][..];
    let replay = with_interrupts(with_sections(&course, &sections), interrupts);
    // Each 25 ns at most; of what is left then, the latest comes before the interrupt again.
    assert_eq!(
        steps(&replay, 25),
        [(vec![2], 50 + 10 + 30, 60 + 10), (vec![1], 60 + 10, 25 + 10 + 30)]
    );
}

#[test]
fn softirqs_of_an_interrupt_on_the_way_are_broken_up_too() {
    // A short interrupt, and soon after it one that has softirqs at its end.
    let course =
        course(&[(0, 'u'), (100, 'i'), (105, 'u'), (112, 'i'), (117, 'p'), (212, 'u'), (400, 'u')]);
    let softirqs = Section { irqs: false, ..section(117, 212, 4) };
    let interrupts = &[interrupt(100, 5), interrupt(112, 100)][..];
    let replay = with_interrupts(with_sections(&course, &[softirqs]), interrupts);
    // The latest is due with the first one, and on its way when the second comes.
    assert_eq!(steps(&replay, 10), [(vec![4], 5 + 10 + 100, 5 + 10 + 15)]);
}

#[test]
fn softirqs_on_the_way_that_came_into_a_section_go_back_to_it() {
    // As above, where the second interrupt comes into a section that ends 3 ns behind it.
    let places = [(0, 'u'), (100, 'i'), (105, 'u'), (111, 'p'), (112, 'i'), (117, 'p'), (215, 'u')];
    let preempt = |from_ns, to_ns, owner| Section { irqs: false, ..section(from_ns, to_ns, owner) };
    let sections = nested(preempt(111, 215, 3), preempt(117, 212, 4));
    let interrupts = &[interrupt(100, 5), interrupt(112, 100)][..];
    let replay = with_interrupts(with_sections(&course(&places), &sections), interrupts);
    // The latest is due with the first interrupt, as above. Who is due with the section waits for the softirqs and for
    // its end: 104 and 10 ns, and hardly less if they did not go back to it.
    assert_eq!(steps(&replay, 10), [(vec![4], 5 + 10 + 100, 5 + 10 + 15)]);
}

/// The ranking of what is broken so that it keeps the CPU for `every_ns` at most: functions, and how late the latest
/// wakeup is before and after.
fn steps(replay: &Replay, every_ns: u64) -> Vec<(Vec<u32>, u64, u64)> {
    let latest = |broken: &BTreeSet<u32>| {
        let functions = broken.iter().map(|&id| (id, every_ns)).collect();
        let breaks = Breaks { functions, ..Breaks::default() };
        let delays = replay.delays(&full(), &breaks);
        let latest = replay.latest(&delays)?;
        let functions = replay.behind(&latest, &delays, every_ns, &breaks);
        Some(Latest { ns: latest.ns, functions })
    };
    let steps = ranking(3, 1, &latest).into_iter();
    steps.map(|step| (step.functions, step.before_ns, step.after_ns)).collect()
}

#[test]
fn delivery_is_what_the_earliest_wakeup_lacks_and_not_the_one_with_the_shortest_way() {
    let course = course(&[(0, 'u'), (100, 'i'), (160, 'u')]);
    // The first waits for 40 ns.
    let own = vec![(120, way(5)), (500, way(10))];
    let mut seen = Replay { ways: [5, 10].map(way).to_vec(), own, ..replay(&course) };
    for (measured_ns, want) in [(Some(13), 3), (Some(9), 0), (None, 0)] {
        assert_eq!(seen.delivery_ns(&full(), measured_ns), want, "{measured_ns:?}");
    }
    seen.delivered_after(3);
    let delays = seen.delays(&full(), &Breaks::default());
    assert_eq!(seen.own_latencies(&delays), [13, 48]);
    assert_eq!(seen.ways.iter().map(|way| way.ns()).collect::<Vec<_>>(), [8, 13]);
}

#[test]
fn nothing_is_predicted_if_the_probes_wakeups_are_not_recognised() {
    let own = |n: u64| OwnWakeup {
        entered_ns: 1_000 * n,
        handled_ns: 1_000 * n + 4,
        left_ns: 1_000 * n + 4,
        ran_ns: Some((1_000 * n + 4, 1_000 * n + 10)),
        interrupted_ns: 0,
    };
    let woken = Distribution::of([10; 10]);
    let thread = Thread { expiries: woken.clone(), woken, ..Thread::default() };
    let mut run = Run { threads: vec![thread], ..Run::default() };
    run.plan.interval_ns = 1_000;
    for (recognised, want) in [(0, Err((0, 10))), (4, Err((4, 10))), (5, Ok(5)), (10, Ok(10))] {
        let own = (0..recognised).map(own).collect();
        let seen = Seen { own, ..Seen::default() };
        let got = match Replay::of(seen, &run, &full()) {
            Ok(replay) => Ok(replay.ways.len()),
            Err(Unpredictable::Wakeups { seen, all }) => Err((seen, all)),
            Err(other) => panic!("{other}"),
        };
        assert_eq!(got, want);
    }
}

#[test]
fn no_more_wakeups_are_replayed_than_there_is_memory_for() {
    let two_s = Course { end_ns: 2_000_000_000, ..course(&[(0, 'u')]) };
    for (interval_ns, is_refused) in [
        (0, true),
        (1, true),
        (2_000_000_000 / MOST_WAKEUPS, true),
        (2_000_000_000_u64.div_ceil(MOST_WAKEUPS), false),
        (1_000_000, false),
    ] {
        let mut run = Run::default();
        run.plan.interval_ns = interval_ns;
        let seen = Seen { course: two_s.clone(), ..Seen::default() };
        let refused = Replay::of(seen, &run, &full()).map(drop).unwrap_err();
        let (interval, window) = (SpanNs(interval_ns), SpanNs(2_000_000_000));
        let want = match is_refused {
            true => Unpredictable::Interval { interval, window },
            false => Unpredictable::Wakeups { seen: 0, all: 0 },
        };
        assert_eq!(refused, want, "{interval_ns}");
    }
    let of_zero = Unpredictable::Interval { interval: SpanNs(0), window: SpanNs(2_000_000_000) };
    assert_eq!(
        of_zero.to_string(),
        "its record has a wakeup due every 0 ns for 2.00 s, and 262144 can be replayed"
    );
}

#[test]
fn expiries_that_came_while_the_probe_was_late_count_as_in_the_measurement() {
    // 6.1, full, file-move: one section of 3.66 ms swallowed 15 expiries of 2,015, which are all of p99.9.
    let course = course(&[(0, 'u'), (100, 'i'), (360, 'u')]);
    let grid = Grid { interval_ns: 100, phases: 1 };
    // Late by 10, by 260 and so by 160 and 60 as well, and by 10.
    let own = [0, 110, 400].map(|at_ns| (at_ns, way(10))).to_vec();
    let replay = Replay { grid, own, ..replay(&course) };
    let measured = replay.at_its_own(&full());
    assert_eq!((measured.p50_ns, measured.max_ns), (Some(60), Some(260)));
    let delays = replay.delays(&full(), &Breaks::default());
    assert_eq!(replay.own_latencies(&delays), [10, 10, 260]);
}

#[test]
fn who_finds_the_cpu_idle_is_later_where_its_way_out_is_longer() {
    // A program runs all the time, as far as this module knows; an exit takes 50 ns more from 300 to 400.
    let mut replay = replay(&course(&[(0, 'u'), (200, 'i'), (310, 'u')]));
    replay.own = vec![(250, way(10)), (350, way(10)), (450, way(10))];
    let exit = SlowExit { from_ns: 300, to_ns: 400, longer_ns: 50 };
    replay.seen.slow_exits = vec![exit];
    let delays = replay.delays(&full(), &Breaks::default());
    // The first waits until 310, where the exit has begun; the last comes after it.
    assert_eq!(replay.own_latencies(&delays), [10, 60, 60 + 60]);
    let latest = replay.latest(&delays).unwrap();
    assert_eq!(latest.ns, 110 + 60);
    // Without anything that holds it up, the exit alone makes the latest.
    let mut replay = self::replay(&course(&[(0, 'u')]));
    replay.seen.slow_exits = vec![exit];
    let latest = replay.latest(&replay.delays(&full(), &Breaks::default())).unwrap();
    assert_eq!(latest.ns, 60);
}
