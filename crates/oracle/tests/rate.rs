//! How seldom attribution is wrong about simulated kernels.

use wakescope_model::Rules;
use wakescope_oracle::Score;
use wakescope_oracle::random::{Mix, score_of};
use wakescope_oracle::score::Said;

/// Of a thousand late wakeups, confident wrong answers: what was reached is far below it.
const MOST_WRONG_PER_MILLE: u64 = 1;

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
    let most = all.late * MOST_WRONG_PER_MILLE / 1_000;
    assert!(all.wrong <= most, "{} of {} are wrong:\n{}", all.wrong, all.late, examples.join("\n"));
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
