//! The page that documents the files: its examples can be read, and it names every key.

use super::super::super::words::{
    ARRIVES, BURSTS, GROUP, IDLE_STATE, INTERRUPT, KERNEL, KEYS, LOCKS, MACHINE, MEASURED, PLAIN,
    SOFTIRQS, TABLES, TASK, costs,
};
use super::super::super::{Costs, SHIPPED};
use super::read;

const PAGE: &str = include_str!("../../../../../../docs/model/scenarios.md");

/// The TOML of the page.
pub(super) fn examples() -> impl Iterator<Item = &'static str> {
    PAGE.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap())
}

#[test]
fn the_examples_of_the_page_are_scenarios() {
    assert!(examples().count() >= 2);
    for example in examples() {
        let scenario = read(example).unwrap_or_else(|e| panic!("{e}\n{example}"));
        assert_eq!(read(&scenario.to_toml()), Ok(scenario));
    }
}

#[test]
fn the_page_names_every_key_and_word() {
    let mut costs_of = Costs::default();
    let keys = [
        "uniform",
        "exponential",
        "pareto",
        "least",
        "shape",
        "most",
        "mixture",
        "histogram",
        "run",
        "of",
    ];
    let tables =
        [KEYS, MEASURED, MACHINE, IDLE_STATE, KERNEL, GROUP, TASK, INTERRUPT, ARRIVES, BURSTS]
            .into_iter()
            .flatten();
    let all = keys
        .into_iter()
        .chain(tables.copied())
        .chain(PLAIN.iter().map(|(word, _)| *word))
        .chain(TABLES.iter().map(|(word, _)| *word))
        .chain(TABLES.iter().flat_map(|(_, others)| others.iter().copied()))
        .chain(LOCKS.iter().flat_map(|(_, take, give)| [*take, *give]))
        .chain(costs(&mut costs_of).map(|(key, _)| key))
        .chain(SHIPPED.iter().map(|shipped| shipped.name));
    for word in all {
        assert!(PAGE.contains(&format!("`{word}`")), "the page does not document `{word}`");
    }
    let softirqs: Vec<String> = SOFTIRQS.iter().map(|name| format!("`{name}`")).collect();
    assert!(PAGE.contains(&softirqs.join(", ")), "the page does not list the softirqs in order");
}
