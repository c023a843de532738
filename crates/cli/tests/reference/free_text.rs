//! What a record says is typed, so that other programs need not read sentences. Text stands only where
//! it is listed here, with the reason.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::common::schema;
use crate::common::schema::each_property;

/// Keys that hold text, by where the schema defines them, and why each of them may.
const TEXT: &[(&str, &[&str])] = &[
    (
        "a name or identifier of the machine, by the kernel or the firmware",
        &[
            "host/release",
            "host/version",
            "host/arch",
            "host/cpu_model",
            "host/clock/source",
            "host/cmdline",
            "host/idle/driver",
            "host/idle/governor",
            "host/idle/states/name",
            "host/governors",
            "host/sched_ext",
            "host/hypervisor",
            "host/microcode",
            "card/name",
            "culprit/name",
            "subject/name",
            "event/name",
            "within/softirq",
            "within/interrupt",
            "within/syscall",
            "interrupted/idle_state",
            "interrupted/softirq",
            "explanation/bound/variables/interrupts/name",
        ],
    ),
    ("comm, which any program gives itself", &["culprit/comm", "subject/comm", "task/comm"]),
    (
        "a symbol, a module or a file of a program or of the sources",
        &[
            "culprit/module",
            "subject/module",
            "function/name",
            "function/module",
            "frame/function",
            "frame/module",
            "frame/file",
            "source_line/function",
            "source_line/file",
        ],
    ),
    (
        "what the user wrote, as it was written",
        &[
            "id",
            "plan/target/comm",
            "plan/target/path",
            "plan/line/device",
            "plan/line/answers_on",
            "plan/load",
            "plan/scenario/name",
            "plan/fail_above",
            "load/name",
            "explanation/above",
            "net_of_steal/above",
            "judgement/limit",
        ],
    ),
    (
        "a name of another program, its file or its figures",
        &[
            "source/tool",
            "source/version",
            "source/format",
            "source/file",
            "source/unknown",
            "source/approximate",
            "plan/target/name",
            "plan/target/latest",
        ],
    ),
    ("a cgroup's path, as the system names it", &["explanation/waits/quota/cgroup"]),
    ("a unit of work", &["load/unit"]),
    (
        "a message of a finding or judgement, beside its code or outcome",
        &["validity/findings/message", "validity/findings/hint", "judgement/reason"],
    ),
    (
        "a note on what was read, for people",
        &[
            "preemption/evidence/source",
            "preemption/evidence/says",
            "preemption/because",
            "preemption/conflicts",
            "preemption/unread/source",
            "preemption/unread/why",
            "load/fault",
        ],
    ),
    (
        "a note on what the tracer used and what it lacked, for people",
        &["explanation/seen_with", "explanation/not_seen"],
    ),
];

/// Whether a value of this property may be any text, or a list of texts.
fn is_text(schema: &Value, property: &Value) -> bool {
    if let Some(target) = property["$ref"].as_str() {
        return is_text(schema, schema.pointer(&target[1..]).unwrap());
    }
    if ["enum", "const", "pattern"].iter().any(|key| property.get(key).is_some()) {
        return false;
    }
    let is = |kind: &str| match &property["type"] {
        Value::Array(kinds) => kinds.iter().any(|own| own == kind),
        own => own == kind,
    };
    let inner = ["items", "additionalProperties"].iter().filter_map(|key| property.get(key));
    let branches = property["anyOf"].as_array().into_iter().flatten();
    is("string") || inner.chain(branches).any(|inner| is_text(schema, inner))
}

/// `host/idle/states/name` of a place in the schema.
fn short(place: &str) -> String {
    let parts =
        place.split('/').filter(|part| !["#", "$defs", "properties", "items"].contains(part));
    parts.collect::<Vec<_>>().join("/")
}

#[test]
fn text_stands_only_where_there_is_a_reason_for_it() {
    let schema = schema();
    let mut found = BTreeSet::new();
    each_property(&schema, "#", &mut |place, property| {
        if is_text(&schema, property) {
            found.insert(short(place));
        }
    });
    let listed: BTreeSet<String> =
        TEXT.iter().flat_map(|(_, keys)| keys.iter().map(|key| (*key).to_owned())).collect();
    let unlisted: Vec<_> = found.difference(&listed).collect();
    assert!(unlisted.is_empty(), "free text without a reason: {unlisted:?}; give them a type");
    let gone: Vec<_> = listed.difference(&found).collect();
    assert!(gone.is_empty(), "listed, but no free text of the schema: {gone:?}");
}

/// Of episodes, all that is not in the record as well.
const TEXT_OF_EPISODES: &[(&str, &[&str])] = &[
    ("a name of the kernel", &["head/release", "head/arch", "event/name", "idle/idle"]),
    ("what the user wrote, as it was written", &["head/run", "head/load"]),
    ("comm, which any program gives itself", &["kernel_task/comm"]),
    ("a symbol, a module or a file of a program", &["frame/function", "frame/module"]),
];

#[test]
fn text_of_episodes_stands_only_where_there_is_a_reason_for_it() {
    let schema: Value =
        serde_json::from_str(&crate::common::read("docs/reference/episode.schema.json")).unwrap();
    let mut found = BTreeSet::new();
    each_property(&schema, "#", &mut |place, property| {
        if is_text(&schema, property) {
            found.insert(short(place));
        }
    });
    let of = |lists: &[(&str, &[&str])]| {
        lists.iter().flat_map(|(_, keys)| keys.iter().map(|key| (*key).to_owned())).collect()
    };
    let (own, shared): (BTreeSet<String>, BTreeSet<String>) = (of(TEXT_OF_EPISODES), of(TEXT));
    let unlisted: Vec<_> = found.iter().filter(|key| !own.contains(*key)).collect();
    let unlisted: Vec<_> = unlisted.into_iter().filter(|key| !shared.contains(*key)).collect();
    assert!(unlisted.is_empty(), "free text without a reason: {unlisted:?}; give them a type");
    let gone: Vec<_> = own.difference(&found).collect();
    assert!(gone.is_empty(), "listed, but no free text of the schema: {gone:?}");
}

#[test]
fn free_text_is_found_wherever_it_hides() {
    let schema = serde_json::json!({
        "properties": {
            "plain": {"type": "string"},
            "listed": {"type": "array", "items": {"type": ["string", "null"]}},
            "named": {"$ref": "#/$defs/text"},
            "either": {"anyOf": [{"$ref": "#/$defs/text"}, {"type": "null"}]},
            "mapped": {"type": "object", "additionalProperties": {"type": "string"}},
            "chosen": {"enum": ["a", "b"]},
            "formed": {"type": "string", "pattern": "^[0-9]+$"},
            "counted": {"type": "integer"}
        },
        "$defs": {"text": {"type": "string"}}
    });
    let mut found = Vec::new();
    each_property(&schema, "#", &mut |place, property| {
        if is_text(&schema, property) {
            found.push(short(place));
        }
    });
    assert_eq!(found, ["either", "listed", "mapped", "named", "plain"]);
}
