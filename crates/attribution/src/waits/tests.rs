use wakescope_core::explain::{NamedTask, OpenWait, Policy, Step, WaitRow};

use super::*;

fn task(comm: &str, pid: u32, prio: i32) -> Task {
    let policy = if prio < 100 { Policy::Fifo } else { Policy::Other };
    Task { pid, comm: comm.into(), policy, prio }
}

/// An ordinary thread has waited while nobody in particular ran, but tasks of either rank for so long.
fn waited(ordinary_ns: u64, urgent_ns: u64) -> Waited {
    let task = task("waits", 7, 120);
    Waited { ns: 100, throttled_ns: Some(0), task, ordinary_ns, urgent_ns, ..Waited::default() }
}

#[track_caller]
fn check(throttled_ns: Option<u64>, steal_ns: u64, other: Task, want: Cause, who: &str) {
    let other_ns = 100_u64.saturating_sub(throttled_ns.unwrap_or(0)).saturating_sub(steal_ns);
    check_known(other_ns, throttled_ns, steal_ns, other, want, who);
}

#[track_caller]
fn check_known(
    other_ns: u64,
    throttled_ns: Option<u64>,
    steal_ns: u64,
    other: Task,
    want: Cause,
    who: &str,
) {
    let task = task("waits", 7, 120);
    let waited = Waited { throttled_ns, steal_ns, task, other, other_ns, ..waited(0, 0) };
    let (cause, culprit) = waited.cause();
    let comm = match culprit {
        Culprit::Task(NamedTask { comm, .. }) => comm,
        Culprit::Hypervisor => "hypervisor".into(),
        Culprit::None => String::new(),
        culprit => panic!("{culprit:?}"),
    };
    assert_eq!((cause, comm.as_str()), (want, who));
}

#[test]
fn a_wait_is_blamed_on_what_took_most_of_it() {
    let urgent = || task("urgent", 8, 40);
    check(Some(0), 0, urgent(), Cause::HigherPriorityTask, "urgent");
    check(Some(0), 0, task("fair", 9, 120), Cause::EqualOrLowerTask, "fair");
    // A lower one, as where the fair server steps in.
    check(Some(0), 0, task("nice", 9, 139), Cause::EqualOrLowerTask, "nice");
    check(Some(90), 0, urgent(), Cause::Throttled, "");
    check(Some(40), 30, urgent(), Cause::Throttled, "");
    check(Some(30), 40, urgent(), Cause::Steal, "hypervisor");
    check(Some(20), 20, urgent(), Cause::HigherPriorityTask, "urgent");
    // Idle is what a CPU does that nobody waits for: why this one was waited for is not known.
    check(Some(0), 0, task("swapper/0", 0, 120), Cause::Unexplained, "");
    check(Some(10), 0, task("swapper/0", 0, 120), Cause::Unexplained, "");
    // How much of it was throttled is not known.
    check(None, 0, urgent(), Cause::Unexplained, "");
    check(Some(u64::MAX), u64::MAX, urgent(), Cause::Throttled, "");
}

/// Since when a thread has a priority that it was lent is not known.
#[test]
fn a_lent_priority_makes_a_rank_unknown_that_depends_on_it() {
    use Cause::{EqualOrLowerTask, HigherPriorityTask, Unexplained};
    for (other_prio, want) in [(5, HigherPriorityTask), (49, Unexplained), (120, EqualOrLowerTask)]
    {
        let lent = Waited {
            task: task("waits", 7, 19),
            normal_prio: Some(89),
            other: task("other", 8, other_prio),
            other_ns: 100,
            ..waited(0, 0)
        };
        assert_eq!(lent.cause().0, want, "{other_prio}");
    }
}

/// A task that had the CPU for a moment, before or after another one had it for long, is not named.
#[test]
fn a_wait_is_not_blamed_on_a_task_that_had_the_cpu_for_less_than_half_of_it() {
    let urgent = || task("urgent", 8, 40);
    check_known(50, Some(0), 0, urgent(), Cause::HigherPriorityTask, "urgent");
    check_known(49, Some(0), 0, urgent(), Cause::Unexplained, "");
    check_known(0, Some(0), 0, urgent(), Cause::Unexplained, "");
    // Of what is left, it had half; but the quota had more.
    check_known(31, Some(40), 0, urgent(), Cause::Unexplained, "");
    check_known(31, Some(0), 40, urgent(), Cause::Unexplained, "");
    check_known(40, Some(20), 20, urgent(), Cause::HigherPriorityTask, "urgent");
}

#[test]
fn an_ordinary_thread_may_have_waited_for_several_tasks() {
    for (ordinary_ns, urgent_ns, want) in [
        (50, 0, Cause::EqualOrLowerTask),
        (50, 50, Cause::EqualOrLowerTask),
        (49, 50, Cause::HigherPriorityTask),
        (49, 49, Cause::Unexplained),
    ] {
        let waited = waited(ordinary_ns, urgent_ns);
        assert_eq!(waited.cause(), (want, Culprit::None), "{ordinary_ns} {urgent_ns}");
        // The quota had more, or the hypervisor.
        let throttled = Waited { throttled_ns: Some(60), ..waited.clone() };
        assert_eq!(throttled.cause().0, Cause::Throttled);
        let stolen = Waited { steal_ns: 60, ..waited.clone() };
        assert_eq!(stolen.cause().0, Cause::Steal);
        // Which of these a real-time thread has to wait for is not known.
        let real_time = Waited { task: task("urgent", 7, 40), ..waited };
        assert_eq!(real_time.cause(), (Cause::Unexplained, Culprit::None));
    }
}

fn waits() -> Waits {
    let row = |kind| WaitRow {
        kind,
        count: 50,
        sum_ns: 1_000_000,
        throttled_ns: 0,
        steal_ns: 0,
        worst: Some(WorstWait {
            ns: 70_000,
            at_ns: 5_000_000,
            cpu: 1,
            task: task("waits", 7, 49).named(),
            ..WorstWait::default()
        }),
    };
    let compared = Schedstat {
        threads: 3,
        differing: 0,
        sum_ns: 2_000_000,
        run_delay_ns: 2_000_000,
        not_counted_ns: 0,
        by_its_clock_ns: 2_000_000,
        asleep_ns: 0,
    };
    Waits {
        kinds: vec![row(WaitKind::Woken), row(WaitKind::Preempted)],
        begun: 101,
        open: 1,
        schedstat: Some(compared),
        ..Waits::default()
    }
}

#[track_caller]
fn finds(spoil: impl Fn(&mut Waits), want: &[(&str, Severity, &str)]) {
    let mut waits = waits();
    spoil(&mut waits);
    let found = findings(&waits);
    let found: Vec<_> =
        found.iter().map(|f| (f.code.as_str(), f.severity, f.message.as_str())).collect();
    assert_eq!(found, want);
}

#[test]
fn sums_that_contradict_are_a_finding() {
    use Severity::{Note, Warning};
    finds(|_| {}, &[]);
    let books = "101 waits began, but 102 ended or are still open: sums and causes of waits are \
                 unreliable";
    finds(
        |w| w.broken = 1,
        &[
            ("contradictory-waits", Warning, books),
            ("missed-switches", Note, "the tracer missed the begin or end of 1 of 101 waits"),
        ],
    );
    let differs = "the waits of 1 of 3 threads differ from their /proc/TID/schedstat: 2.00 ms here, \
                   2.00 ms there: sums and causes of waits are unreliable";
    let differ = |w: &mut Waits| w.schedstat.as_mut().unwrap().differing = 1;
    finds(differ, &[("contradictory-waits", Warning, differs)]);
    let ended = "the tracer missed the begin or end of 3 of 101 waits";
    finds(|w| w.ends_missed = 3, &[("missed-switches", Note, ended)]);
    let begun = |severity, text| [("missed-switches", severity, text)];
    finds(
        |w| (w.begins_missed, w.begins_missed_ns) = (1, 20_000),
        &begun(
            Note,
            "the tracer missed the begin or end of 1 of 102 waits; 20.0 µs that \
             /proc/TID/schedstat shows is in no kind's sum",
        ),
    );
    finds(
        |w| (w.begins_missed, w.begins_missed_ns) = (2, 20_001),
        &begun(
            Warning,
            "the tracer missed the begin or end of 2 of 103 waits; 20.0 µs that \
             /proc/TID/schedstat shows is in no kind's sum",
        ),
    );
    let room = "2 waits of threads beyond the first 8,192 were not followed";
    finds(|w| w.no_room = 2, &[("waits-not-followed", Warning, room)]);
}

/// A thread that got no CPU for two seconds was missing from all figures, and `compare` said that the run was within
/// a limit of one second.
#[test]
fn a_wait_that_outlasts_all_others_and_is_not_over_is_a_finding() {
    let open = |ns| Some(OpenWait { ns, at_ns: 0, task: task("starved", 77, 120).named() });
    let far = "at the end, a followed thread had waited for a CPU for 2.00 s, longer than any wait that \
               ended: how long it waits in all is unknown";
    let just = far.replace("2.00 s", "70.0 µs");
    let found = |text| [("open-waits", Severity::Warning, text)];
    finds(|w| w.longest_open = open(1_999_000_000), &found(far));
    finds(|w| w.longest_open = open(70_001), &found(&just));
    finds(|w| w.longest_open = open(70_000), &[]);
    // No wait has ended.
    let starved = |w: &mut Waits| {
        let longest_open = open(1_999_000_000);
        *w = Waits { throughout: 1, longest_open, ..Waits::default() };
    };
    finds(starved, &found(far));
}

#[test]
fn only_a_difference_that_is_worth_a_wait_counts() {
    for (here, there, want) in [
        (0, 0, false),
        (5_000_000, 5_100_000, false),
        (5_000_000, 5_100_001, true),
        (5_100_001, 5_000_000, true),
        // Of long sums a thousandth.
        (1_000_000_000_000, 1_000_900_000_000, false),
        (1_000_000_000_000, 1_002_000_000_000, true),
        (u64::MAX, 0, true),
    ] {
        assert_eq!(differ(here, there), want, "{here} {there}");
    }
}

#[test]
fn the_wakeup_of_the_longest_wait_says_what_caused_it() {
    let (origin, at, ns) = (1_000_000, 4_000_000, 70_000);
    let share = |cause, ns| Share { cause, ns, ..Share::default() };
    let blame = vec![share(Cause::Scheduler, 1_000), share(Cause::IrqOff, 74_000)];
    let episode = |expiry_ns, cpu| Episode {
        cpu: Some(cpu),
        expiry_ns,
        wakeup_latency_ns: 75_000,
        blame: blame.clone(),
        ..Episode::default()
    };
    let of_thread = |pid, expiry_ns| {
        let task = NamedTask { pid: Some(pid), ..NamedTask::default() };
        let event = StepEvent::Runs { task, page_faults: 0 };
        let timeline = vec![Step { event, ..Step::default() }];
        Episode { timeline, ..episode(expiry_ns, 1) }
    };
    // It ended when the wait did, and began before.
    let expiry = at + ns - 75_000;
    for (found, cause) in [
        (vec![episode(expiry, 1)], Cause::IrqOff),
        (vec![episode(expiry + 4_000, 1)], Cause::IrqOff),
        // On another CPU, at another time, without an explanation.
        (vec![episode(expiry, 0)], Cause::Unexplained),
        (vec![episode(expiry + 6_000, 1)], Cause::Unexplained),
        // The CPU stood still for 15 µs between the two programs that see the switch. The wait began
        // within the wakeup, and of the same thread nobody else's can.
        (vec![of_thread(7, at - 20_000), of_thread(7, at + 14_000)], Cause::IrqOff),
        (vec![of_thread(8, at - 20_000)], Cause::Unexplained),
        (vec![of_thread(7, at + 1)], Cause::Unexplained),
        (vec![of_thread(7, at - 75_000)], Cause::Unexplained),
        (vec![Episode { blame: Vec::new(), ..episode(expiry, 1) }], Cause::Unexplained),
    ] {
        let mut waits = waits();
        waits.kinds.push(WaitRow { kind: WaitKind::Migrated, ..waits.kinds[0].clone() });
        let placed = placed(waits, origin, &found);
        let worst = |row: usize| placed.kinds[row].worst.as_ref().unwrap();
        assert_eq!((worst(0).at_ns, worst(0).cause), (at, cause));
        assert_eq!((worst(1).at_ns, worst(1).cause), (at, Cause::Unexplained));
        // One that was moved meanwhile may be no wakeup: only that of the same thread tells.
        let is_of_it = found[0].timeline.len() == 1 && cause == Cause::IrqOff;
        let of_moved = if is_of_it { Cause::IrqOff } else { Cause::Unexplained };
        assert_eq!((worst(2).at_ns, worst(2).cause), (at, of_moved));
    }
    // Where nobody knows what the wakeup waited for, who ran most of the wait is known all the same.
    let unknown = vec![share(Cause::Unexplained, 74_000), share(Cause::IrqOff, 1_000)];
    let found = Episode { blame: unknown, ..episode(expiry, 1) };
    let mut waits = waits();
    waits.kinds[0].worst.as_mut().unwrap().cause = Cause::EqualOrLowerTask;
    let placed = placed(waits, origin, &[found]);
    assert_eq!(placed.kinds[0].worst.as_ref().unwrap().cause, Cause::EqualOrLowerTask);
}
