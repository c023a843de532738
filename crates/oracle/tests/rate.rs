//! How seldom attribution is wrong about simulated kernels.

use wakescope_model::Rules;
use wakescope_oracle::Score;
use wakescope_oracle::random::{Mix, score_of};
use wakescope_oracle::score::Said;

/// At most one in so many late wakeups has a confident wrong answer: what was reached is far below it.
const LATE_FOR_ONE_WRONG: u64 = 10_000;

/// Confident wrong answers are held to the rate that was reached, and the oracle to its own arithmetic.
#[test]
fn confident_wrong_answers_are_rare() {
    check(90, Mix::Any);
}

#[test]
fn confident_wrong_answers_are_rare_with_bound_probes() {
    check(90, Mix::Bound);
}

/// Quotas stop tasks, and so does the fair server.
#[test]
fn confident_wrong_answers_are_rare_where_tasks_are_stopped() {
    check(85, Mix::Budgets);
}

#[test]
fn confident_wrong_answers_are_rare_in_guests() {
    check(85, Mix::Guests);
}

/// They run in rounds, and leave others to their thread.
#[test]
fn confident_wrong_answers_are_rare_where_softirqs_raise_softirqs() {
    check(90, Mix::Softirqs);
}

/// Timers, tasks, interrupts and softirqs wake them.
#[test]
fn confident_wrong_answers_are_rare_where_threads_of_others_are_followed() {
    check(90, Mix::Threads);
}

/// Scores some of these scenarios, of which so many percent are to be right.
#[track_caller]
fn check(least_right_percent: u64, mix: Mix) {
    let mut all = Score::default();
    for rules in Rules::ALL {
        for seed in 1..=12 {
            all.merge(score_of(mix, seed, rules, 300));
        }
    }
    let own = (all.faults, all.broken, all.unmatched);
    assert_eq!(own, (0, 0, 0), "the oracle contradicts itself");
    let decided: u64 = all.rules.values().map(Said::decided).sum();
    assert_eq!(decided, all.late, "a rule decides about each: {:?}", all.rules);
    let wrong: u64 = all.rules.values().map(|said| said.wrong).sum();
    assert_eq!(wrong, all.wrong, "{:?}", all.rules);
    assert!(all.late > 1_000, "too few to tell: {}", all.late);
    assert!(
        all.right * 100 > all.late * least_right_percent,
        "{} of {} are right",
        all.right,
        all.late
    );
    let examples: Vec<&str> = all.classes.values().map(|class| &class.example[..]).collect();
    let most = all.late / LATE_FOR_ONE_WRONG;
    assert!(all.wrong <= most, "{} of {} are wrong:\n{}", all.wrong, all.late, examples.join("\n"));
}

/// Scenarios in which confident wrong answers were found. The rules that mend them are named with each.
#[test]
fn scenarios_that_were_answered_wrongly_have_no_wrong_answer() {
    for (mix, seed) in [
        // A task was moved while a softirq held it up.
        (Mix::Any, 10_504),
        // A softirq's end has the time of the scheduler's entry.
        (Mix::Budgets, 10_583),
        // The hypervisor stopped an NMI; an NMI came in another CPU's interrupt.
        (Mix::Bound, 10_819),
        (Mix::Bound, 50_329),
        (Mix::Any, 10_661),
        // A waker is in a softirq; the CPU was switched to a waker at that nanosecond.
        (Mix::Threads, 10_643),
        (Mix::Threads, 50_250),
        (Mix::Threads, 10_421),
        // What let the interrupt in was seen, and had ended when the wakeup was due.
        (Mix::Threads, 90_064),
        // Tasks lend priorities to ordinary and to real-time ones.
        (Mix::Threads, 10_030),
        (Mix::Threads, 10_389),
        (Mix::Threads, 10_521),
        // Switches that were recorded for another wakeup, before this one came to the CPU.
        (Mix::Threads, 10_748),
        // The scheduler has just switched, or fetches the task.
        (Mix::Bound, 11_000),
        (Mix::Threads, 10_043),
        // A CPU is called for tasks that it no longer holds back, or was called for another one.
        (Mix::Budgets, 10_426),
        (Mix::Any, 10_173),
        // A probe is moved before it answers.
        (Mix::Budgets, 10_303),
    ] {
        for rules in Rules::ALL {
            let score = score_of(mix, seed, rules, 500);
            let name = mix.name();
            assert_eq!(score.wrong, 0, "{name} {seed} {}: {:?}", rules.name, score.classes);
        }
    }
}

#[test]
fn a_seed_repeats_every_answer() {
    let score = |seed| score_of(Mix::Any, seed, Rules::ALL[2], 200);
    assert_eq!(score(7), score(7));
    assert_ne!(score(7), score(8));
}

/// With all probes bound, a late wakeup has waited for one CPU only.
#[test]
fn probes_can_be_bound_and_nothing_else_changes() {
    let mut moved = 0;
    for seed in 1..=40 {
        let any = Mix::Any.scenario(seed);
        let bound = Mix::Bound.scenario(seed);
        let probes = any.tasks.iter().filter(|task| task.name.starts_with("probe")).count();
        let cpus: Vec<_> = bound.tasks[..probes].iter().map(|task| task.cpu).collect();
        let each: Vec<_> = (0..).take(probes).map(Some).collect();
        assert_eq!(cpus, each, "seed {seed}");
        moved += any.tasks[..probes].iter().filter(|task| task.cpu.is_none()).count();
        assert_eq!(any.tasks[probes..], bound.tasks[probes..], "seed {seed}");
        assert_eq!((any.paths, any.interrupts), (bound.paths, bound.interrupts), "seed {seed}");
    }
    assert!(moved > 0, "no probe of any CPU");
}
