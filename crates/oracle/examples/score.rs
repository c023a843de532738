//! Scores attribution against simulated kernels, and prints the table: `score [SCENARIOS [FIRST_SEED]]`.
#![allow(clippy::print_stdout)]

use std::time::Instant;

use wakescope_core::random::Random;
use wakescope_model::{Image, Rules};
use wakescope_oracle::{Score, Shown, Trial, random, trial};

fn main() {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>().expect("a number"));
    let (scenarios, first) = (numbers.next().unwrap_or(100), numbers.next().unwrap_or(1));
    let began = Instant::now();
    let mut all = Score::default();
    println!("model      scenarios    wakeups     late    right  elsewhere  wrong  unexplained");
    for rules in Rules::ALL {
        let score = of_model(rules, first..first + scenarios);
        line(rules.name, scenarios - score.broken, &score);
        all.merge(score);
    }
    line("all", scenarios * 6 - all.broken, &all);
    println!("{:.1} s; {} broke a rule; {} faults; {} not followed", began.elapsed().as_secs_f64(), all.broken, all.faults, all.not_followed);
    println!("time: {:?}", all.ns);
    for ((was, said), class) in &all.classes {
        println!("WRONG {was} as {said}: {}\n{}", class.count, class.example);
    }
    for (was, class) in &all.unknown {
        println!("UNEXPLAINED {was}: {}\n{}", class.count, class.example);
    }
}

fn of_model(rules: Rules, seeds: std::ops::Range<u64>) -> Score {
    let mut all = Score::default();
    for seed in seeds {
        let mut random = Random::new(seed ^ 0x5eed);
        let shown = Shown {
            sched_entry: random.below(2) == 0,
            contention: random.below(4) != 0,
            steal_clock: true,
        };
        let scenario = random::scenario(seed);
        let image = match Image::new(&scenario, rules) {
            Ok(image) => image,
            Err(error) => {
                println!("seed {seed}: {error}");
                continue;
            }
        };
        let how = Trial { seed, wakeups: 500, shown, least_late_ns: 10_000 };
        let how = Trial { wakeups: std::env::var("W").map_or(500, |w| w.parse().unwrap()), ..how };
        match trial(&image, &how) {
            Ok(score) => all.merge(score),
            Err(error) => {
                if all.broken < 2 {
                    println!("{}: seed {seed}: {error}", rules.name);
                }
                all.broken += 1;
            }
        }
    }
    all
}

fn line(name: &str, scenarios: u64, score: &Score) {
    let Score { wakeups, late, right, elsewhere, wrong, unexplained, .. } = score;
    println!("{name:<10} {scenarios:>9} {wakeups:>10} {late:>8} {right:>8} {elsewhere:>10} {wrong:>6} {unexplained:>12}");
}
