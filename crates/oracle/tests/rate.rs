//! How seldom attribution is wrong about simulated kernels.

use wakescope_model::Rules;
use wakescope_oracle::Score;
use wakescope_oracle::random::score_of;

/// Of a thousand late wakeups, confident wrong answers: what was reached is far below it.
const MOST_WRONG_PER_MILLE: u64 = 1;

/// Confident wrong answers are held to the rate that was reached, and the oracle to its own arithmetic.
#[test]
fn confident_wrong_answers_are_rare() {
    let mut all = Score::default();
    for rules in Rules::ALL {
        for seed in 1..=12 {
            all.merge(score_of(seed, rules, 300));
        }
    }
    let own = (all.faults, all.broken, all.unmatched);
    assert_eq!(own, (0, 0, 0), "the oracle contradicts itself");
    assert!(all.late > 1_000, "too few to tell: {}", all.late);
    assert!(all.right * 10 > all.late * 9, "{} of {} are right", all.right, all.late);
    let examples: Vec<&str> = all.classes.values().map(|class| &class.example[..]).collect();
    let most = all.late * MOST_WRONG_PER_MILLE / 1_000;
    assert!(all.wrong <= most, "{} of {} are wrong:\n{}", all.wrong, all.late, examples.join("\n"));
}

#[test]
fn a_seed_repeats_every_answer() {
    let [one, other] = [(), ()].map(|()| score_of(7, Rules::ALL[2], 200));
    assert_eq!(one, other);
    assert_ne!(one, score_of(8, Rules::ALL[2], 200));
}
