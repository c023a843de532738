//! What a schema documents, and what a value has of it.

use std::collections::BTreeSet;

use serde_json::Value;

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
