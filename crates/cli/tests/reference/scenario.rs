//! docs/reference/scenario.schema.json says what the reader of scenario files accepts, so that editors
//! complete and check them.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use wakescope_model::Scenario;
use wakescope_model::scenario::length::Bucket;
use wakescope_model::scenario::{ReadError, SHIPPED};
use wakescope_oracle::random;

use super::common::schema::{each_property, object_pointers};
use super::common::{Checker, read};

fn schema() -> Value {
    serde_json::from_str(&read("docs/reference/scenario.schema.json")).unwrap()
}

/// The files of the page that describes them. The last one has every kind of step, length and arrival.
fn documented() -> Vec<String> {
    let page = read("docs/model/scenarios.md");
    page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap().into()).collect()
}

fn read_scenario(text: &str) -> Result<Scenario, ReadError> {
    let runs = |_: &str, _: &str| Ok(vec![Bucket { lower: 1, upper: 2, count: 1 }]);
    Scenario::read("x.toml", text, &runs)
}

/// The file of a value, all on one line but for the first keys.
fn file(value: &Value) -> String {
    let keys = value.as_object().unwrap().iter();
    keys.map(|(key, value)| format!("{} = {}\n", Value::from(key.as_str()), inline(value)))
        .collect()
}

fn inline(value: &Value) -> String {
    let list = |items: Vec<String>| items.join(", ");
    match value {
        Value::Array(items) => format!("[{}]", list(items.iter().map(inline).collect())),
        Value::Object(map) => {
            let entry = |(key, value): (&String, &Value)| {
                format!("{} = {}", Value::from(key.as_str()), inline(value))
            };
            format!("{{ {} }}", list(map.iter().map(entry).collect()))
        }
        // Texts, numbers and truths are written as in JSON.
        other => other.to_string(),
    }
}

fn parsed(text: &str) -> Value {
    toml::from_str(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// The page's last example, with the kinds of length that it lacks.
fn everything() -> Value {
    let mut value = parsed(documented().last().unwrap());
    let costs = &mut value["costs"];
    costs["ipi"] = json!({ "run": "runs/a", "of": "wakeup_latency" });
    costs["tick"] =
        json!({ "mixture": [[1, { "pareto": { "least": "1us", "shape": 2, "most": "1ms" } }]] });
    value["interrupt"][0]["arrives"] = json!({ "poisson": "1s" });
    value
}

#[test]
fn scenario_files_fit_their_schema() {
    let checker = Checker::new(schema());
    let drawn = (0..12).map(|seed| {
        let any = random::scenario(seed);
        let one = if seed % 3 == 0 { random::Mix::Budgets.scenario(seed) } else { any };
        one.to_toml()
    });
    let shipped = SHIPPED.iter().map(|shipped| shipped.text.to_owned());
    for text in documented().into_iter().chain(shipped).chain(drawn) {
        assert!(read_scenario(&text).is_ok(), "{:?}", read_scenario(&text));
        assert_eq!(checker.fault(&parsed(&text)), None, "{text}");
    }
    let everything = everything();
    assert_eq!(read_scenario(&file(&everything)).err(), None);
    assert_eq!(checker.fault(&everything), None);
}

#[test]
fn every_key_of_a_scenario_is_described() {
    each_property(&schema(), "#", &mut |place, property| {
        let text = property["description"].as_str().unwrap_or_default();
        assert!(text.ends_with('.'), "{place} has no description that is a sentence");
    });
}

/// Keys of each object in `schema`, and those of all that can stand at one place.
fn key_sets(schema: &Value, sets: &mut BTreeSet<BTreeSet<String>>) {
    let keys = |object: &Value| -> BTreeSet<String> {
        object["properties"].as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect()
    };
    match schema {
        Value::Object(map) => {
            sets.insert(keys(schema));
            let any = schema["anyOf"].as_array().into_iter().flatten();
            sets.insert(any.flat_map(keys).collect());
            map.values().for_each(|inner| key_sets(inner, sets));
        }
        Value::Array(items) => items.iter().for_each(|inner| key_sets(inner, sets)),
        _ => {}
    }
}

/// The keys that the reader expects where it has found another one.
fn expected_keys(what: &str) -> BTreeSet<String> {
    let only = what.split_once("expected only `").and_then(|(_, rest)| rest.split_once('`'));
    match only {
        Some((key, _)) => BTreeSet::from([key.to_owned()]),
        None => what.rsplit(": ").next().unwrap().split(", ").map(str::to_owned).collect(),
    }
}

/// The keys of each table are the same in the schema and in the reader, which refuses another one with its
/// place.
#[test]
fn keys_of_a_scenario_are_those_of_its_schema() {
    let (whole, checker) = (everything(), Checker::new(schema()));
    let mut of_schema = BTreeSet::new();
    key_sets(&schema(), &mut of_schema);
    let mut of_reader = BTreeSet::new();
    for pointer in object_pointers(&whole).into_iter().filter(|pointer| pointer != "/path") {
        let mut with_news = whole.clone();
        with_news.pointer_mut(&pointer).unwrap()["zzz"] = json!("1us");
        assert!(checker.fault(&with_news).is_some(), "{pointer}");
        let text = file(&with_news);
        let error = read_scenario(&text).expect_err(&pointer);
        let line = text.lines().nth(error.line - 1).unwrap();
        let found: String = line.chars().skip(error.column - 1).take(5).collect();
        assert_eq!(found, "\"zzz\"", "{error}");
        assert!(error.what.starts_with("found the key `zzz`, expected "), "{error}");
        let expected = expected_keys(&error.what);
        assert!(of_schema.contains(&expected), "{pointer}: the schema lacks {expected:?}");
        of_reader.insert(expected);
    }
    let all = |sets: &BTreeSet<BTreeSet<String>>| sets.iter().flatten().cloned().collect();
    let [schema_has, reader_has]: [BTreeSet<String>; 2] = [all(&of_schema), all(&of_reader)];
    let unknown: Vec<_> = schema_has.difference(&reader_has).collect();
    let names: Vec<&str> = unknown.iter().map(|name| name.as_str()).collect();
    assert!(names.is_empty(), "the schema has keys that no table of the example has: {names:?}");
}

/// What a schema cannot say, in the words of the reader.
const BEYOND: &[&str] = &[
    "expected the name of a path",
    "expected the name of a group",
    "expected a lock that a step takes",
    "as a lock of",
    "expected an event that a step wakes",
    "expected an interrupt of",
    "a block until",
    "found a second",
    "without time passing",
    "in the path of",
    "expected a loop around it",
    "expected neither",
    "a CPU of the machine",
    "at least as long",
    "expected them in order",
    "a time that is not before the last",
    "more than no time",
    "whole nanoseconds",
    "a period of at least 1 µs",
    "a period of 1 ms to 1 s",
    "a quota of at least 1 ms",
    "less than rt_period",
    "a whole number of nanoseconds",
    "twice",
];

#[track_caller]
fn agree(checker: &Checker, value: &Value, place: &str) {
    let read = read_scenario(&file(value));
    match (&read, checker.fault(value)) {
        (Ok(_), None) | (Err(_), Some(_)) => {}
        (Ok(_), Some(fault)) => panic!("{place} can be read, and does not fit: {fault}"),
        (Err(error), None) => {
            let is_beyond = BEYOND.iter().any(|words| error.what.contains(words));
            assert!(is_beyond, "{place} fits, and cannot be read: {error}");
        }
    }
}

/// A file that lacks one key, or has something else at one place, can be read if it fits the schema, and
/// fits if it can be read.
#[test]
fn what_fits_the_schema_of_a_scenario_can_be_read() {
    let (whole, checker) = (everything(), Checker::new(schema()));
    let mut place = 0;
    for pointer in object_pointers(&whole) {
        for key in whole.pointer(&pointer).unwrap().as_object().unwrap().keys() {
            place += 1;
            let mut changed = whole.clone();
            let object = changed.pointer_mut(&pointer).unwrap();
            object.as_object_mut().unwrap().remove(key);
            agree(&checker, &changed, &format!("{pointer} without {key}"));
            // Some of these at each place, others at the next.
            let others = [
                json!("some words"),
                json!("3us"),
                json!("20Hz"),
                json!("other:3"),
                json!(""),
                json!("µ"),
                json!(true),
                json!(0),
                json!(-1),
                json!(1.5),
                json!(7),
                json!(64),
                json!(65),
                json!(70_000),
                json!([]),
                json!({}),
                json!(["1us", "2us"]),
                json!([0, 3]),
                json!(".5sec"),
                json!("1.m"),
                json!("+3 kHz"),
                json!("fifo:+3"),
            ];
            for other in others.iter().skip(place % 9).step_by(9) {
                let mut changed = whole.clone();
                changed.pointer_mut(&pointer).unwrap()[key] = other.clone();
                agree(&checker, &changed, &format!("{pointer}/{key}: {other}"));
            }
        }
    }
}
