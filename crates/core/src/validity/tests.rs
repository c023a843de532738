use super::*;
use crate::finding::{CODES, Validity, Verdict};
use crate::line::Line;
use crate::plan::Stimulus;
use crate::run::LoadResult;

fn sound() -> Observed {
    let thread =
        ThreadObserved { pinned: true, woken: 1_000, slack_ns: 50_000, ..Default::default() };
    Observed {
        threads: vec![thread],
        clocksource: ("tsc".into(), "tsc".into()),
        rt_limit: Some(RtLimit { runtime_ns: 950_000_000, period_ns: 1_000_000_000 }),
        ..Default::default()
    }
}

#[track_caller]
fn check(change: impl FnOnce(&mut Plan, &mut Observed), want: &[(&str, Severity)]) {
    let mut plan = Plan { interval_ns: 1_000_000, cpus: vec![0], ..Default::default() };
    let mut seen = sound();
    change(&mut plan, &mut seen);
    let found = findings(&plan, &seen);
    let got: Vec<_> = found.iter().map(|f| (f.code.as_str(), f.severity)).collect();
    assert_eq!(got, want, "{found:#?}");
    assert!(found.iter().all(|f| CODES.iter().any(|c| c.0 == f.code)));
    assert!(found.iter().all(|f| !f.message.contains("  ")), "{found:#?}");
}

#[test]
fn a_sound_run_has_no_findings() {
    check(|_, _| (), &[]);
}

/// What is found of a loop that never sleeps.
#[track_caller]
fn check_spin(change: impl FnOnce(&mut Plan, &mut ThreadObserved), want: &[(&str, Severity)]) {
    let of_loop = |plan: &mut Plan, seen: &mut Observed| {
        plan.stimulus = Stimulus::Spin;
        (plan.interval_ns, plan.gap_from_ns) = (0, Some(1_000));
        (plan.policy, plan.priority) = (ProbePolicy::Other, None);
        let thread = &mut seen.threads[0];
        (thread.slack_ns, thread.cpu_share_ppm) = (1, 990_000);
        thread.cpu_ns = 9_900_000_000;
        // 50 ns a turn, and 1,000 gaps of 10 µs.
        (thread.loops, thread.observed_ns) = (1_001_000, 60_000_000);
        (thread.woken, thread.gaps_ns) = (1_000, 10_000_000);
        change(plan, thread);
    };
    check(of_loop, want);
}

#[test]
fn a_loop_that_never_sleeps_is_judged_by_what_it_is() {
    const OTHER: (&str, Severity) = ("ordinary-task", Note);
    check_spin(|_, _| (), &[OTHER]);
    // It may be that nothing interrupts it.
    check_spin(|_, t| (t.woken, t.gaps_ns) = (0, 0), &[OTHER]);
    let never_ran = |_: &mut Plan, t: &mut ThreadObserved| {
        (t.woken, t.gaps_ns, t.loops, t.observed_ns) = (0, 0, 0, 0);
    };
    check_spin(never_ran, &[OTHER, ("no-samples", Error)]);
    // A turn of 600 ns is no small part of a microsecond; and a loop of gaps only has no turns.
    check_spin(|_, t| t.observed_ns = 610_000_000, &[OTHER, ("coarse-loop", Warning)]);
    check_spin(|_, t| t.woken = 1_000_900, &[OTHER, ("coarse-loop", Warning)]);
    check_spin(|_, t| t.early = 1, &[OTHER, ("early", Error)]);
    // All of a CPU is more than real-time tasks may have.
    check_spin(|p, _| p.policy = ProbePolicy::Fifo, &[("rt-throttling", Warning)]);
}

#[test]
fn the_duration_that_is_suggested_is_enough_and_can_be_asked_for() {
    // p99.999 takes 200,000 samples: of one CPU at 333 µs 66.6 s, of two half of that.
    for (interval_ns, cpus, want) in [
        (1_000_000, vec![0], "measure for at least --duration 200s"),
        (333_000, vec![0], "measure for at least --duration 67s"),
        (333_000, vec![0, 1], "measure for at least --duration 34s"),
    ] {
        let fail_above = vec!["p99.999=1ms".into()];
        let plan = Plan { interval_ns, cpus, fail_above, ..Default::default() };
        let found = findings(&plan, &sound());
        let hint = found.iter().find(|f| f.code == "few-samples").map(|f| f.hint.clone());
        assert_eq!(hint.as_deref(), Some(want));
    }
}

/// `wakescope measure --samples 1` used 95 % of a CPU, for less than 1 ms.
#[test]
fn a_probe_is_near_the_limit_of_real_time_tasks_only_if_it_used_nearly_as_much_time() {
    let share = |runtime_ns, period_ns| Some(RtLimit { runtime_ns, period_ns });
    let default = share(950_000_000, 1_000_000_000);
    let short = share(9_000_000, 10_000_000);
    for (limit, wall_ns, cpu_ns, is_found) in [
        (default, 1_000_000, 950_000, false),
        (default, 500_000_000, 500_000_000, false),
        (default, 854_000_000, 854_000_000, false),
        (default, 860_000_000, 860_000_000, true),
        (default, 1_000_000_000, 856_000_000, true),
        // Enough time, of which it slept most.
        (default, 10_000_000_000, 5_000_000_000, false),
        (default, 10_000_000_000, 8_600_000_000, true),
        // With a period of 10 ms, 8.1 ms tell.
        (short, 8_000_000, 8_000_000, false),
        (short, 9_000_000, 8_200_000, true),
        (share(1, 0), 10_000_000_000, 10_000_000_000, false),
        (None, 10_000_000_000, 10_000_000_000, false),
    ] {
        let change = |_: &mut Plan, seen: &mut Observed| {
            seen.rt_limit = limit;
            let thread = &mut seen.threads[0];
            thread.cpu_ns = cpu_ns;
            thread.cpu_share_ppm = cpu_ns * 1_000_000 / wall_ns;
        };
        let found = ("rt-throttling", Warning);
        check(change, &[found][..usize::from(is_found)]);
    }
}

#[test]
fn each_broken_assumption_is_found() {
    check(|_, s| s.policy_refused = Some("EPERM".into()), &[("unprivileged", Warning)]);
    check(
        |p, s| {
            p.policy = ProbePolicy::Other;
            s.threads[0].slack_ns = 1;
        },
        &[("ordinary-task", Note)],
    );
    check(
        |p, _| p.policy = ProbePolicy::Other,
        &[("ordinary-task", Note), ("timer-slack", Warning)],
    );
    check(|_, s| s.memory_refused = Some("EPERM".into()), &[("memory-not-locked", Warning)]);
    check(|_, s| s.threads[0].other_schedule = Some("other".into()), &[("policy", Error)]);
    check(|_, s| s.threads[0].due_uncertainty_ns = 900, &[("rtc-phase", Note)]);
    check(|_, s| s.threads[0].due_uncertainty_ns = 10_001, &[("rtc-phase", Warning)]);
    check(|_, s| s.threads[0].migrated = 1, &[("migrated", Error)]);
    check(|_, s| s.threads[0].pinned = false, &[("not-pinned", Warning)]);
    check(
        |p, s| {
            (p.stimulus, p.policy) = (Stimulus::Deadline, ProbePolicy::Deadline);
            s.threads[0].pinned = false;
        },
        &[("not-pinned", Note)],
    );
    check(|_, s| s.threads[0].preempted = 3, &[]);
    for (preempted, severity) in [(1, Note), (2, Warning)] {
        check(
            |p, s| (p.policy, s.threads[0].preempted) = (ProbePolicy::Deadline, preempted),
            &[("out-of-runtime", severity)],
        );
    }
    check(|_, s| s.threads[0].early = 1, &[("early", Error)]);
    check(|_, s| s.threads[0].minor_faults = 1, &[("page-faults", Warning)]);
    check(|_, s| s.threads[0].cpu_lost_at_ns = Some(5), &[("cpu-lost", Warning)]);
    for code in ["waker-lost", "card-lost", "cpu-lost"] {
        let lost = Some(StimulusLost { code, at_ns: 5, why: "it has ended".into() });
        check(|_, s| s.threads[0].stimulus_lost = lost, &[(code, Warning)]);
    }
    let other = Some("other".to_owned());
    check(|_, s| s.threads[0].other_waker_schedule = other, &[("policy", Error)]);
    check(|_, s| s.threads[0].waker_moved = 1, &[("waker-moved", Error)]);
    check(|_, s| s.threads[0].woken = 0, &[("no-samples", Error)]);
    check(|_, s| s.threads[0].lost = 7, &[("lost-samples", Warning)]);
    check(|_, s| s.threads[0].not_asleep = 10, &[("not-asleep", Note)]);
    check(|_, s| s.threads[0].not_asleep = 11, &[("not-asleep", Warning)]);
    check(|_, s| s.threads[0].skipped = 111, &[("late-waker", Note)]);
    check(|_, s| s.threads[0].skipped = 120, &[("late-waker", Warning)]);
    check(
        |_, s| {
            s.line = Some(Line { unanswered: 1, ..Line::default() });
            s.line_fault = Some("closed".into());
        },
        &[("line-lost", Warning), ("line-unanswered", Warning)],
    );
    check(|_, s| s.threads[0].missed = 500, &[("overload", Warning)]);
    check(
        |_, s| (s.threads[0].cpu_ns, s.threads[0].cpu_share_ppm) = (9_000_000_000, 900_000),
        &[("rt-throttling", Warning)],
    );
    check(|p, _| p.fail_above = vec!["p99.9=1ms".into()], &[("few-samples", Warning)]);
    check(|_, s| s.clocksource.1 = "hpet".into(), &[("clocksource", Error)]);
    check(|_, s| s.slept_ns = 1, &[("time-jump", Error)]);
    check(|_, s| (s.stops, s.stopped_ns) = (2, 9_000_000_000), &[("stopped", Error)]);
    check(|_, s| s.clock_drift_ppm = 5_000, &[("time-jump", Warning)]);
    check(|_, s| s.steal_ns = 1, &[("steal", Warning)]);
    check(|_, s| s.quota_stops = 1, &[("cpu-quota", Warning)]);
    check(|_, s| s.also_measured = vec![0], &[("busy-probe", Warning)]);
    let unannounced = Some((vec![0, 1], "Too many open files (os error 24)".into()));
    check(|_, s| s.unannounced = unannounced, &[("unannounced", Note)]);
    check(|p, _| p.idle_states = IdleStates::Shallow, &[("idle-limited", Note)]);
    let left_out = LeftOut { part: "fs".into(), of: "all".into(), reason: "full".into() };
    check(|_, s| s.left_out = vec![left_out], &[("load-left-out", Warning)]);
    check(|_, s| s.ended_by = Some("SIGINT".into()), &[("interrupted", Note)]);
    check(|_, s| s.not_saved = Some("ENOSPC".into()), &[("not-saved", Warning)]);
    let dead = LoadResult { name: "find".into(), work: 5, alive: false, ..Default::default() };
    let lazy = LoadResult {
        name: "find".into(),
        work: 0,
        alive: true,
        window_ns: 5_000_000_000,
        ..Default::default()
    };
    let cut = LoadResult { window_ns: 100_000_000, ..lazy.clone() };
    check(|_, s| s.loads = vec![cut.clone()], &[("load-unfinished", Warning)]);
    let slow = LoadResult { before_per_second: Some(150.0), ..cut.clone() };
    check(|_, s| s.loads = vec![slow], &[("load-unfinished", Warning)]);
    let starved = LoadResult { before_per_second: Some(250.0), ..cut };
    check(|_, s| s.loads = vec![starved], &[("load-died", Error)]);
    check(|_, s| s.loads = vec![dead], &[("load-died", Error)]);
    check(|_, s| s.loads = vec![lazy], &[("load-died", Error)]);
}

/// The mark of a measurement is a name that any user can take.
#[test]
fn another_measurement_is_not_said_to_be_certain() {
    let found = findings(&Plan::default(), &Observed { also_measured: vec![0, 2], ..sound() });
    let finding = found.iter().find(|finding| finding.code == "busy-probe").unwrap();
    assert!(
        finding.message.starts_with("by its mark, another wakescope also measures CPU 0, 2:"),
        "{finding:?}"
    );
    let hint = &finding.hint;
    assert!(hint.contains("a program of any user can have set the mark"), "{finding:?}");
    assert!(hint.contains("@wakescope-measures-cpu-N in /proc/net/unix"), "{finding:?}");
}

#[test]
fn a_dead_load_makes_a_run_invalid() {
    let mut seen = sound();
    seen.loads = vec![LoadResult { name: "find".into(), ..Default::default() }];
    let plan = Plan { cpus: vec![0], ..Default::default() };
    assert_eq!(Validity::of(findings(&plan, &seen)).verdict, Verdict::Invalid);
}
