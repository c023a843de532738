//! What a schema documents, and what a value has of it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Checker;

/// Calls `see` with every property that `schema` defines and its place.
pub(crate) fn each_property(schema: &Value, place: &str, see: &mut impl FnMut(&str, &Value)) {
    let Some(map) = schema.as_object() else { return };
    for (name, property) in map.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let place = format!("{place}/properties/{name}");
        see(&place, property);
        each_property(property, &place, see);
    }
    for (name, definition) in map.get("$defs").and_then(Value::as_object).into_iter().flatten() {
        each_property(definition, &format!("{place}/$defs/{name}"), see);
    }
    if let Some(items) = map.get("items") {
        each_property(items, &format!("{place}/items"), see);
    }
}

/// Properties of `schema` that `value` has no key for, anywhere.
pub(crate) fn unused_keys(schema: &Value, value: &Value) -> BTreeSet<String> {
    let mut unused = BTreeSet::new();
    each_property(schema, "#", &mut |place, _| {
        unused.insert(place.to_owned());
    });
    mark_used(schema, "#".into(), value, &mut unused);
    unused
}

fn mark_used(schema: &Value, place: String, value: &Value, unused: &mut BTreeSet<String>) {
    let here = schema.pointer(&place[1..]).unwrap();
    let (here, place) = match here["$ref"].as_str() {
        // Another schema's own tests see to what it documents.
        Some(target) if !target.starts_with('#') => return,
        Some(target) => (schema.pointer(&target[1..]).unwrap(), target.to_owned()),
        None => (here, place),
    };
    if let Some(map) = value.as_object() {
        for (key, inner) in map.iter().filter(|(key, _)| here["properties"].get(key).is_some()) {
            let place = format!("{place}/properties/{key}");
            unused.remove(&place);
            mark_used(schema, place, inner, unused);
        }
    }
    for (at, _) in here["anyOf"].as_array().into_iter().flatten().enumerate() {
        mark_used(schema, format!("{place}/anyOf/{at}"), value, unused);
    }
    if here.get("items").is_some() {
        for inner in value.as_array().into_iter().flatten() {
            mark_used(schema, format!("{place}/items"), inner, unused);
        }
    }
}

/// JSON pointers to every object in `value`.
pub(crate) fn object_pointers(value: &Value) -> Vec<String> {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(k, v)| (k.clone(), v)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(i, v)| (i.to_string(), v)).collect(),
        _ => return Vec::new(),
    };
    let own = value.is_object().then(String::new);
    let below = inner.into_iter().flat_map(|(key, v)| {
        object_pointers(v).into_iter().map(move |rest| format!("/{key}{rest}"))
    });
    own.into_iter().chain(below).collect()
}

/// Fails if `schema` lets a key of `whole` be missing that the reader needs; `is_read` says what it reads.
#[track_caller]
pub(crate) fn assert_what_fits_is_read(
    schema: Value,
    whole: &Value,
    is_read: impl Fn(&str) -> bool,
) {
    let checker = Checker::new(schema);
    for pointer in object_pointers(whole) {
        for key in whole.pointer(&pointer).unwrap().as_object().unwrap().keys() {
            let mut without = whole.clone();
            without.pointer_mut(&pointer).unwrap().as_object_mut().unwrap().remove(key);
            let fits = checker.fault(&without).is_none();
            let needed = "may be missing, but the reader needs it";
            assert!(is_read(&without.to_string()) || !fits, "{pointer}/{key} {needed}");
        }
    }
}

/// Fails unless `schema` lets a key be added to any object of `whole`, and no key that it does not document
/// be written. In objects whose place ends in one of `closed_sets` keys are data or name a variant, so that
/// no other can be added.
#[track_caller]
pub(crate) fn assert_keys_may_be_added(schema: &Value, whole: &Value, closed_sets: &[&str]) {
    let (open, closed) = (Checker::new(schema.clone()), Checker::closed(schema.clone()));
    let is_open = |pointer: &&String| !closed_sets.iter().any(|place| pointer.ends_with(place));
    for pointer in object_pointers(whole).iter().filter(is_open) {
        let mut with_news = whole.clone();
        with_news.pointer_mut(pointer).unwrap()["news"] = json!(1);
        assert_eq!(open.fault(&with_news), None, "{pointer}");
        assert!(closed.fault(&with_news).is_some(), "{pointer}");
    }
}

/// Fails unless `schema` describes every key in a sentence, which names the unit of a time as `unit` does.
#[track_caller]
pub(crate) fn assert_described(schema: &Value, unit: &str) {
    each_property(schema, "#", &mut |place, property| {
        let text = property["description"].as_str().unwrap_or_default();
        assert!(text.ends_with('.'), "{place} has no description that is a sentence");
        if place.ends_with("_ns") {
            assert!(text.contains(unit), "{place} does not name its unit: {text}");
        }
    });
}
