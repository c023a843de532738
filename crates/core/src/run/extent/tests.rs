use super::*;
use crate::finding::Verdict;
use crate::histogram::Histogram;
use crate::maxima::Maxima;
use crate::plan::Stimulus;
use crate::source::Source;
use proptest::prelude::*;
use wakescope_testing::assert_told;

const MS: u64 = 1_000_000;

fn thread(cpu: Option<u32>, count: u64, max_at_ns: u64) -> Thread {
    let samples = (0..count).map(|i| 5_000 + i);
    let d = Distribution {
        max_at_ns: (count > 0).then_some(max_at_ns),
        histogram: Histogram::of(samples.clone()),
        ..Distribution::of(samples)
    };
    Thread { cpu, woken: d.clone(), expiries: d, ..Thread::default() }
}

/// A run of 60 ms with an expiry each ms on CPU 1, of which the latest was due after 30 ms.
fn run() -> Run {
    let late = Episode {
        cpu: Some(1),
        expiry_ns: 30 * MS,
        wakeup_latency_ns: 5_059,
        ..Episode::default()
    };
    let mut run = Run {
        schema: crate::run::SCHEMA.into(),
        duration_ns: 60 * MS,
        threads: vec![thread(Some(1), 60, 30 * MS)],
        worst: vec![late],
        ..Run::default()
    };
    (run.plan.interval_ns, run.plan.cpus) = (MS, vec![1]);
    run.validity.verdict = Verdict::Valid;
    run.summarize();
    run
}

type Change = fn(&mut Run);

/// Checks what is wrong with the run after the change and, where `summarizes`, with a summary that fits.
#[track_caller]
fn check(summarizes: bool, change: Change, want: Option<&str>) {
    let mut run = run();
    change(&mut run);
    if summarizes {
        run.summarize();
    }
    assert_told(run.fault(), want);
}

#[test]
fn times_and_places_of_other_runs_are_refused() {
    for (change, want) in [
        (
            (|run| run.duration_ns = 31_536_000_000_000_000) as Change,
            "duration_ns is 31536000000000000, but a thread has 60 expiries at plan.interval_ns",
        ),
        (|run| run.duration_ns = 63 * MS, "duration_ns is 63000000, but a thread has 60"),
        (|run| run.duration_ns = 57 * MS, "duration_ns is 57000000, but a thread has 60"),
        (|run| run.plan.interval_ns = 1_000_000_000_000_000_000, "duration_ns is 60000000"),
        (|run| run.plan.interval_ns = 1, "duration_ns is 60000000, but a thread has 60"),
        (|run| run.worst[0].cpu = Some(7), "a wakeup of worst was on CPU 7, which no thread"),
        (|run| run.threads[0].cpu = Some(5), "threads[0].cpu is 5, but plan.cpus is [1]"),
        (|run| run.plan.cpus = vec![0, 2], "threads[0].cpu is 1, but plan.cpus is [0, 2]"),
        (
            |run| run.threads[0].expiries.max_at_ns = Some(1_000_000_000_000_000),
            "a wakeup was due at 1000000000000000 ns, but duration_ns is 60000000",
        ),
        (|run| run.threads[0].woken.max_at_ns = Some(63 * MS), "due at 63000000 ns"),
        (|run| run.worst[0].expiry_ns = 63 * MS, "due at 63000000 ns"),
        (
            |run| {
                let max_ns = (0..65).map(|_| Some(5_059)).collect();
                run.threads[0].maxima = Some(Maxima { slot_ns: MS, max_ns });
            },
            "due at 64000000 ns",
        ),
        (
            |run| (run.state, run.threads, run.worst[0].cpu) = (State::Running, vec![], Some(7)),
            "a wakeup of worst was on CPU 7, which no thread measured",
        ),
    ] {
        check(true, change, Some(want));
    }
    for (change, want) in [
        (
            (|run| run.summary.not_excluded_every_ns = Some(124)) as Change,
            "summary.not_excluded_every_ns is 124, but its duration and its samples give 1000000 to",
        ),
        (|run| run.summary.not_excluded_every_ns = Some(60 * MS), "not_excluded_every_ns is 60"),
        (
            |run| {
                run.source =
                    Some(Source { unknown: vec!["duration_ns".into()], ..Source::default() });
                run.duration_ns = 0;
            },
            "but its duration and its samples give none",
        ),
    ] {
        check(false, change, Some(want));
    }
}

#[test]
fn true_runs_are_read() {
    for change in [
        (|_| ()) as Change,
        // A first expiry may come an interval late, and the last may be the end of the run.
        |run| run.duration_ns = 61 * MS,
        |run| run.threads[0].expiries.max_at_ns = Some(61 * MS),
        // Points at which nobody was woken are points of the grid.
        |run| (run.duration_ns, run.threads[0].not_asleep) = (90 * MS, 30),
        |run| (run.duration_ns, run.threads[0].skipped) = (90 * MS, 30),
        // A probe that was lost has fewer.
        |run| {
            run.plan.cpus.push(0);
            run.threads.push(thread(Some(0), 3, 2 * MS));
        },
        // What wakes others has no interval, nor has a loop.
        |run| {
            run.plan.stimulus = Stimulus::Spin;
            (run.duration_ns, run.plan.interval_ns) = (3_600_000 * MS, 0);
        },
        |run| {
            run.plan.target = Target::Process { pid: 7 };
            run.plan.stimulus = Stimulus::Any;
            (run.duration_ns, run.plan.interval_ns, run.plan.cpus) = (3_600_000 * MS, 0, vec![]);
            (run.threads[0].cpu, run.worst[0].cpu) = (None, Some(7));
        },
        // A waker can be held up when its last point comes.
        |run| {
            run.plan.stimulus = Stimulus::Futex;
            run.worst[0].expiry_ns = 5_000 * MS;
        },
        // A simulation ends with the answer to its last sample.
        |run| {
            run.time_domain = TimeDomain::Simulated;
            run.duration_ns = 500 * MS;
        },
        // While it runs, the end is that of the record before.
        |run| {
            run.state = State::Running;
            run.threads[0].expiries.max_at_ns = Some(90 * MS);
        },
        // It may also be a record of before the first sample.
        |run| (run.state, run.threads) = (State::Running, vec![]),
        // Probes that may run anywhere.
        |run| (run.threads[0].cpu, run.worst[0].cpu) = (None, None),
        |run| (run.threads[0].cpu, run.worst[0].cpu) = (None, Some(0)),
        |run| {
            run.source = Some(Source { unknown: vec!["duration_ns".into()], ..Source::default() });
            run.duration_ns = 0;
        },
    ] {
        check(true, change, None);
    }
}

proptest! {
    /// As `measure` makes them: probes begin up to an interval apart, each with points of its own, up to the
    /// end of the plan or to that of the last.
    #[test]
    fn runs_of_any_probes_are_read(
        interval_ns in 1_000_u64..1_000_000_000,
        probes in prop::collection::vec((1_u64..500, 0_u64..50, 0_u64..1_000), 1..5),
        planned in prop::option::of(1_u64..500),
    ) {
        let count = probes.len() as u64;
        let planned_ns = planned.map(|points| points * interval_ns);
        let mut run = Run { schema: crate::run::SCHEMA.into(), ..Run::default() };
        for (rank, &(points, asleep, at)) in (0_u64..).zip(&probes) {
            let points = planned.map_or(points, |planned| points.min(planned));
            let asleep = asleep.min(points - 1);
            let phase_ns = interval_ns * rank / count;
            let due_ns = phase_ns + at % points * interval_ns;
            let mut thread = thread(Some(u32::try_from(rank).unwrap()), points - asleep, due_ns);
            thread.not_asleep = asleep;
            run.threads.push(thread);
            run.plan.cpus.push(u32::try_from(rank).unwrap());
            run.duration_ns = run.duration_ns.max(phase_ns + points * interval_ns);
        }
        run.plan.interval_ns = interval_ns;
        run.duration_ns = planned_ns.map_or(run.duration_ns, |planned| run.duration_ns.min(planned));
        run.summarize();
        prop_assert_eq!(run.fault(), None);
    }
}
