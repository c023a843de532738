//! Scores attribution against simulated kernels, and prints the table: `score [MIX] [SCENARIOS [FIRST_SEED]]`,
//! with the name of a [`Mix`].
#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::fmt::{Debug, Display};

use wakescope_attribution::Rule;
use wakescope_model::Rules;
use wakescope_oracle::Score;
use wakescope_oracle::random::{Mix, score_of};
use wakescope_oracle::score::{Class, Given, Said};

/// Wakeups of each scenario.
const WAKEUPS: u64 = 500;

fn main() {
    let mut words = std::env::args().skip(1).peekable();
    let named = |word: &String| Mix::ALL.into_iter().find(|mix| mix.name() == word);
    let mix = words.peek().and_then(named);
    if mix.is_some() {
        words.next();
    }
    let mix = mix.unwrap_or(Mix::Any);
    let mut numbers = words.map(|text| text.parse::<u64>().expect("a mix or a number"));
    let (scenarios, first) = (numbers.next().unwrap_or(100), numbers.next().unwrap_or(1));
    println!(
        "| model | scenarios | wakeups | late | right | other function | unexplained | wrong bound | wrong |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut all = Score::default();
    for rules in Rules::ALL {
        let mut of_model = Score::default();
        for seed in first..first + scenarios {
            of_model.merge(score_of(mix, seed, rules, WAKEUPS));
        }
        line(rules.name, scenarios, &of_model);
        all.merge(of_model);
    }
    line("all", scenarios * Rules::ALL.len() as u64, &all);
    said("cause", &all.said);
    rules(&all.rules);
    given(&all.given);
    println!("\nTime of late wakeups, ns: {:?}", all.ns);
    println!(
        "{} scenarios broke a rule, {} truths do not add up, {} wakeups were not followed, {} have no \
         counterpart.",
        all.broken, all.faults, all.not_followed, all.unmatched
    );
    classes("wrong (was, said)", &all.classes);
    classes("wrong bound (was, said)", &all.bounds);
    classes("unexplained", &all.unknown);
}

fn line(name: &str, scenarios: u64, score: &Score) {
    let Score { wakeups, late, right, elsewhere, wrong, wrong_bound, unexplained, .. } = score;
    println!(
        "| {name} | {} | {wakeups} | {late} | {right} | {elsewhere} | {unexplained} | {wrong_bound} | {wrong} |",
        scenarios - score.broken
    );
}

/// How right the answers of each cause or kind were; of a cause, also what was left unexplained though it was
/// that.
fn said<K: Display>(title: &str, all: &BTreeMap<K, Said>) {
    println!(
        "\n| {title} | right | other function | wrong bound | wrong | unexplained | the same, events lost |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (cause, said) in all {
        let Said { right, elsewhere, wrong_bound, wrong, unexplained, unexplained_by_loss } = said;
        println!(
            "| {cause} | {right} | {elsewhere} | {wrong_bound} | {wrong} | {unexplained} | {unexplained_by_loss} |"
        );
    }
}

/// How often each rule decided, how right that was, and of those that find that nothing is known, how often
/// events could have told.
fn rules(all: &BTreeMap<Rule, Said>) {
    println!(
        "\n| rule | decided | right | other function | wrong bound | wrong | unexplained though knowable | \
         unexplained, events lost |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (rule, said) in all {
        let Said { right, elsewhere, wrong_bound, wrong, unexplained, unexplained_by_loss } = said;
        println!(
            "| {rule:?} | {} | {right} | {elsewhere} | {wrong_bound} | {wrong} | {unexplained} | {unexplained_by_loss} |",
            said.decided()
        );
    }
    let never = Rule::ALL.iter().filter(|rule| !all.contains_key(rule));
    let never: Vec<String> = never.map(|rule| format!("{rule:?}")).collect();
    println!("\nNever decisive: {}.", never.join(", "));
}

/// What each rule gave, also where another one decided.
fn given(all: &BTreeMap<Rule, Given>) {
    println!("\n| rule | shares | ms in all | true, % of the time |");
    println!("|---|---|---|---|");
    for (rule, Given { shares, ns, right_ns }) in all {
        let (ms, percent) = (*ns as f64 / 1e6, 100.0 * *right_ns as f64 / *ns as f64);
        println!("| {rule:?} | {shares} | {ms:.3} | {percent:.1} |");
    }
    let never = Rule::ALL.iter().filter(|rule| !all.contains_key(rule));
    let never: Vec<String> = never.map(|rule| format!("{rule:?}")).collect();
    println!("\nNever used: {}.", never.join(", "));
}

fn classes<K: Debug>(title: &str, classes: &BTreeMap<K, Class>) {
    for (key, class) in classes {
        println!("\n{title}: {key:?}: {}\nfirst: {}", class.count, class.example);
    }
}
