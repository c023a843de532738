//! Records that somebody made to do harm, or that are damaged.

use proptest::prelude::*;
use wakescope_core::explain::{
    Cause, CauseRow, Culprit, Evidence, Frame, Function, Gap, NamedTask, OpenWait, Phase, Quota,
    Schedstat, Sections, Share, SourceLine, Step, StepEvent, ThreadWaits, TrueCause, Truth,
    WaitKind, WaitRow, Waits, Within, WorstWait,
};
use wakescope_core::histogram::Histogram;

use super::runs::{cause, components, episode, step};
use super::*;

/// Every line is short enough, and nothing in it moves a cursor.
fn check_is_safe(shown: &str, widest_allowed: usize) -> Result<(), TestCaseError> {
    let is_safe = |c: char| c == '\n' || !(c.is_control() || c == '\u{202e}');
    prop_assert!(shown.chars().all(is_safe), "{:?}", shown);
    let widest = shown.lines().max_by_key(|line| line.chars().count()).unwrap_or_default();
    prop_assert!(widest.chars().count() <= widest_allowed, "{}", widest);
    Ok(())
}

const EVIL: &str = "\x1b[2J\x1b]0;title\x07\r\n\u{202e}gnirts ";

#[test]
fn a_record_made_to_do_harm_is_shown_as_text() {
    let name = EVIL.repeat(20);
    let mut run = serial();
    let hostile = |cause: Cause, ns: u64| Share {
        cause,
        ns,
        culprit: culprit(cause, &name),
        phase: Some(Phase::Switch),
        from_cpu: Some(u32::MAX),
        within: within(&name),
        waiting_for_lock: true,
        evidence: Evidence::Stack,
        gap: Some(Gap::LateInterrupt),
        frames: vec![frame(&name); 20],
        given_up_at: vec![frame(&name); 20],
        user_stack: vec![frame(&name); 20],
    };
    let all =
        [Cause::Steal, Cause::IrqOff, Cause::Irq, Cause::HigherPriorityTask, Cause::Unexplained];
    run.causes = (0..10_000)
        .map(|i| CauseRow { share: f64::NAN, ..cause(all[i % 5], "", u64::MAX, 9, 1_000) })
        .map(|row| CauseRow { culprit: culprit(row.cause, &name), ..row })
        .map(|row| CauseRow { total_ns: u64::MAX, worst_ns: u64::MAX, ..row })
        .collect();
    let blame =
        (0..1_000_usize).map(|i| hostile(all[i % 5], [0, 1, u64::MAX, 0, 7][i % 7 % 5])).collect();
    let timeline = (0..10_000).map(|i| step(u64::MAX - i, u32::MAX, happening(i, &name))).collect();
    run.worst = vec![episode(u64::MAX, blame, timeline); 3];
    run.worst.push(episode(5, vec![hostile(Cause::Irq, 0)], vec![]));
    let explanation = run.explanation.as_mut().unwrap();
    *explanation = Explanation {
        above_ns: u64::MAX,
        above: format!("p{name}"),
        wakeups: u64::MAX,
        not_followed: u64::MAX,
        late: u64::MAX,
        explained: 0,
        late_not_followed: u64::MAX,
        unexplained_ns: u64::MAX,
        one_in: Some(u64::MAX),
        late_components: Some(components([u64::MAX; 4])),
        stored_episodes: Some(u64::MAX),
        anew: None,
        records: u64::MAX,
        lost_records: u64::MAX,
        seen_with: vec![name.clone(); 1_000],
        not_seen: vec![name.clone(); 1_000],
        sections: Some(Sections {
            exact: true,
            irq_off: Some(hostile(Cause::IrqOff, u64::MAX)),
            preempt_off: Some(hostile(Cause::NoPreemptionPoint, 0)),
            measured: None,
        }),
        build_id: Some(name.clone()),
        module_build_ids: [(name.clone(), name.clone())].into(),
        bound: None,
        waits: Some(waits(&name)),
        truth: Some(Truth {
            wakeups: u64::MAX,
            right: u64::MAX,
            wrong: u64::MAX,
            causes: vec![
                TrueCause { cause: Cause::IrqOff, ns: u64::MAX, right_ns: u64::MAX };
                1_000
            ],
            ..Truth::default()
        }),
    };
    // A histogram from a record may have edges that make no sense.
    let bad: Histogram = serde_json::from_str("[[5, 0, 1000], [3, 1, 9]]").unwrap();
    run.components.as_mut().unwrap().irq_latency.histogram = bad;
    for extent in [Extent::default(), Extent::All] {
        let shown = text(&run, PLAIN, extent);
        // Counts of 20 digits, which no machine can reach, have no room on 100 columns.
        check_is_safe(&shown, 128).unwrap();
        assert!(shown.lines().count() < 2_000, "{} lines", shown.lines().count());
    }
}

/// Waits of threads, of two kinds, with all figures as large as can be.
pub(crate) fn waits(name: &str) -> Waits {
    let row = |kind, cause| WaitRow {
        kind,
        count: u64::MAX,
        sum_ns: u64::MAX,
        throttled_ns: u64::MAX,
        steal_ns: u64::MAX,
        worst: Some(WorstWait {
            // Shorter than the open wait, which the verdict therefore begins with.
            ns: u64::MAX - 1,
            at_ns: u64::MAX,
            cpu: u32::MAX,
            task: task(name),
            cause,
            culprit: culprit(cause, name),
            throttled_ns: u64::MAX,
            steal_ns: u64::MAX,
        }),
    };
    let thread = ThreadWaits {
        task: task(name),
        sum_ns: u64::MAX,
        run_delay_ns: Some(u64::MAX),
        kinds: Vec::new(),
    };
    let most = u64::MAX;
    Waits {
        kinds: vec![
            row(WaitKind::Preempted, Cause::HigherPriorityTask),
            row(WaitKind::Throttled, Cause::Irq),
        ],
        threads: vec![thread; 1_000],
        more_threads: most - 1_000,
        more_threads_ns: most,
        begun: most,
        open: most,
        open_ns: most,
        throughout: most,
        longest_open: Some(OpenWait { ns: most, at_ns: most, task: task(name) }),
        ends_missed: most,
        begins_missed: most,
        begins_missed_ns: most,
        not_followed_ns: most,
        broken: most,
        no_room: most,
        schedstat: Some(Schedstat {
            threads: most,
            differing: most,
            sum_ns: most,
            run_delay_ns: most,
            not_counted_ns: most,
            by_its_clock_ns: most,
            asleep_ns: most,
        }),
        quota: Some(Quota { cgroup: name.into(), quota_ns: most, period_ns: most }),
    }
}

fn culprit(cause: Cause, name: &str) -> Culprit {
    match cause {
        Cause::HigherPriorityTask => Culprit::Task(task(name)),
        Cause::IrqOff => Culprit::Function(function(name)),
        Cause::Irq => Culprit::timer(name),
        _ => Culprit::idle(name),
    }
}

fn task(name: &str) -> NamedTask {
    let (pid, priority) = (Some(u32::MAX), Some(i32::MIN));
    NamedTask { comm: name.into(), pid, priority, ..NamedTask::default() }
}

fn function(name: &str) -> Function {
    Function { name: name.into(), module: Some(name.into()) }
}

fn within(name: &str) -> Within {
    Within {
        caller: Some(function(name)),
        syscall: Some(name.into()),
        softirq: Some(name.into()),
        interrupt: Some(name.into()),
        task: Some(task(name)),
    }
}

fn frame(name: &str) -> Frame {
    Frame {
        function: Some(name.into()),
        offset: u64::MAX,
        module: Some(name.into()),
        file: Some(name.into()),
        line: u32::MAX,
        inlined: vec![line(name); 5],
    }
}

/// A step with this name in it, of one kind or another.
fn happening(number: u64, name: &str) -> StepEvent {
    match number % 4 {
        0 => StepEvent::Softirq { name: name.into() },
        1 => StepEvent::Interrupt { name: Some(name.into()) },
        2 => StepEvent::Timer { name: name.into(), count: u32::MAX },
        _ => StepEvent::Switch { from: None, to: task(name) },
    }
}

fn line(name: &str) -> SourceLine {
    SourceLine { function: name.into(), file: name.into(), line: u32::MAX }
}

fn any_cause() -> impl Strategy<Value = Cause> {
    prop::sample::select(vec![
        Cause::Steal,
        Cause::Irq,
        Cause::IrqOff,
        Cause::NoPreemptionPoint,
        Cause::IdleExit,
        Cause::RemoteWakeup,
        Cause::Unexplained,
    ])
}

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "\\PC{0,80}", "[a-z_ ]{1,60}", Just(EVIL.into())]
}

fn any_frame() -> impl Strategy<Value = Frame> {
    let known = || prop::option::of(any_name());
    let lines = prop::collection::vec(any_name().prop_map(|name| line(&name)), 0..4);
    let place = (known(), any::<u64>(), known());
    (place, known(), any::<u32>(), lines).prop_map(
        |((function, offset, module), file, line, inlined)| Frame {
            function,
            offset,
            module,
            file,
            line,
            inlined,
        },
    )
}

fn any_within() -> impl Strategy<Value = Within> {
    let known = || prop::option::of(any_name());
    (known(), known(), known(), known(), known()).prop_map(
        |(caller, syscall, softirq, interrupt, of)| Within {
            caller: caller.map(|name| function(&name)),
            syscall,
            softirq,
            interrupt,
            task: of.map(|name| task(&name)),
        },
    )
}

fn any_share() -> impl Strategy<Value = Share> {
    let ns = prop_oneof![Just(0), 1_u64..1_000_000, any::<u64>()];
    let stack = || prop::collection::vec(any_frame(), 0..6);
    let stacks = (stack(), stack(), stack());
    let gap = prop::option::of(prop::sample::select(&Gap::ALL[..]));
    (any_cause(), ns, any_name(), any_within(), any::<bool>(), gap, stacks).prop_map(
        |(cause, ns, name, within, waiting_for_lock, gap, (frames, given_up_at, user_stack))| {
            Share {
                cause,
                ns,
                culprit: culprit(cause, &name),
                within,
                waiting_for_lock,
                evidence: Evidence::Stack,
                gap,
                frames,
                given_up_at,
                user_stack,
                ..Share::default()
            }
        },
    )
}

proptest! {
    #[test]
    fn lines_are_never_too_wide(
        episodes in prop::collection::vec((any::<u64>(), prop::collection::vec(any_share(), 0..14)), 0..4),
        steps in prop::collection::vec((any::<u64>(), any::<u32>(), any_name()), 0..50),
        domain in prop::sample::select(vec![TimeDomain::Real, TimeDomain::Virtual, TimeDomain::Simulated]),
    ) {
        let mut run = serial();
        run.time_domain = domain;
        let steps: Vec<Step> = steps.iter().map(|(at, depth, name)| step(*at, *depth, happening(*at, name))).collect();
        run.worst = episodes.into_iter().map(|(ns, blame)| episode(ns, blame, steps.clone())).collect();
        check_is_safe(&text(&run, PLAIN, Extent::All), WIDTH)?;
    }
}
