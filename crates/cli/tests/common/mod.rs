//! What several tests need.
#![allow(dead_code)] // Each test takes what it needs.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use wakescope_core::run::Run;

pub(crate) mod bench;
pub(crate) mod deadline;
pub(crate) mod disturbed;
pub(crate) mod episodes;
pub(crate) mod exported;
pub(crate) mod following;
pub(crate) mod formats;
pub(crate) mod lab;
pub(crate) mod made_up;
pub(crate) mod made_up_kernel;
pub(crate) mod made_up_scope;
pub(crate) mod measured;
#[path = "../../../trace/tests/moved_sleeper/mod.rs"]
pub(crate) mod moved_sleeper;
pub(crate) mod reported;
pub(crate) mod runs;
pub(crate) mod schema;
pub(crate) mod stored_window;
pub(crate) mod threads;

/// The repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// A file of the repository.
#[track_caller]
pub(crate) fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// docs/reference/run.schema.json
pub(crate) fn schema() -> Value {
    serde_json::from_str(&read("docs/reference/run.schema.json")).unwrap()
}

/// Fails unless `json` is a run record that the reader takes, that fits the schema, and in which
/// every key is documented there.
#[track_caller]
pub(crate) fn assert_valid_run(json: &str) {
    if let Err(why) = Run::from_json(json.as_bytes()) {
        panic!("the reader refuses the record: {why}\n{json}");
    }
    if let Some(why) = fault_of_run(&serde_json::from_str(json).unwrap()) {
        panic!("the record does not fit docs/reference/run.schema.json: {why}\n{json}");
    }
}

/// Where `run` does not fit the schema, or has a key that the schema does not document.
pub(crate) fn fault_of_run(run: &Value) -> Option<String> {
    // To read the schema takes ten times as long as to hold a record against it.
    thread_local!(static CHECKER: Checker = Checker::closed(schema()));
    CHECKER.with(|checker| checker.fault(run))
}

/// A schema, ready to be held against values.
pub(crate) struct Checker {
    schemas: boon::Schemas,
    index: boon::SchemaIndex,
}

impl Checker {
    /// Fails if `schema` is none.
    #[track_caller]
    pub(crate) fn new(schema: Value) -> Self {
        let mut schemas = boon::Schemas::new();
        let mut compiler = boon::Compiler::new();
        // Others refer to its definitions.
        let run = serde_json::from_str(&read("docs/reference/run.schema.json")).unwrap();
        compiler.add_resource("urn:wakescope:run:2", run).unwrap();
        compiler.add_resource("urn:test", schema).unwrap();
        let index = compiler.compile("urn:test", &mut schemas).unwrap_or_else(|e| panic!("{e:#}"));
        Self { schemas, index }
    }

    /// As [`Self::new`], but forbids every key that `schema` does not list: what this version
    /// writes is to be documented in full.
    #[track_caller]
    pub(crate) fn closed(mut schema: Value) -> Self {
        close(&mut schema);
        Self::new(schema)
    }

    /// Where `value` does not fit.
    pub(crate) fn fault(&self, value: &Value) -> Option<String> {
        self.schemas.validate(value, self.index).err().map(|e| e.to_string())
    }
}

/// Forbids every key that `schema` does not list. The published schema allows them, so that keys
/// can be added.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.values_mut().for_each(close);
            let lists_keys = map.get("properties").is_some_and(|p| p.is_object());
            let types = [Some(json!("object")), Some(json!(["object", "null"]))];
            if lists_keys && types.contains(&map.get("type").cloned()) {
                map.entry("additionalProperties").or_insert(json!(false));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}
