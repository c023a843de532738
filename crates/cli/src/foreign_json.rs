//! JSON that is no run's record: whose it is.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Seek;
use std::path::Path;

use serde::de::{DeserializeOwned, IgnoredAny};
use wakescope_core::run::SCHEMA;
use wakescope_core::watch::SCHEMA as WATCH;
use wakescope_report::style::clean;

use crate::input::read_whole;
use crate::{Failure, output};

/// The most that is read to find out.
const LARGEST: u64 = 256 << 20;

/// How many keys are named.
const KEYS: usize = 6;

/// What is wrong with a file of JSON that was given as a run, if it is not a run's record: it is
/// another record of wakescope, or another program's. `None` where it is a run's, whole or not. It is
/// read from its begin again.
pub(crate) fn why_no_run(file: &mut File, path: &Path) -> Option<Failure> {
    #[derive(serde::Deserialize)]
    struct Head {
        schema: String,
    }
    let text = read_whole(&mut *file, LARGEST).ok().filter(|_| file.rewind().is_ok())?;
    let kind = |schema: &str| schema.split('/').next().unwrap_or_default().to_owned();
    // Some files have an object on each line, as those of a watch: the first one shows whose they are.
    let keys = first_of::<BTreeMap<String, IgnoredAny>>(&text)?;
    let schema = first_of::<Head>(&text).map(|head| head.schema);
    let schema = schema.filter(|schema| schema.starts_with("wakescope."));
    if schema.as_ref().is_some_and(|schema| kind(schema) == kind(WATCH)) {
        return Some(watch_is_no_run(path, path.parent().unwrap_or(path)));
    }
    let path = path.display();
    match schema {
        Some(schema) if kind(&schema) == kind(SCHEMA) => None,
        Some(schema) => Some(
            Failure::new(format!(
                "cannot use {path} as a run: its schema is `{}`",
                clean(&schema, 60)
            ))
            .because(format!("the schema of a run is `{SCHEMA}`"))
            .try_this("name a run folder; wakescope report shows a lab.json"),
        ),
        None => Some(
            Failure::new(format!(
                "cannot read {path}: it is JSON, but neither a run record nor the output of a \
                 supported program"
            ))
            .because(keys_of(&keys))
            .try_this(
                "name a file in one of the formats in docs/import.md, and its format: wakescope \
                 import FILE --from FORMAT",
            ),
        ),
    }
}

/// The first of the JSON values in a text; `None` if it is none of this type.
fn first_of<T: DeserializeOwned>(text: &[u8]) -> Option<T> {
    serde_json::Deserializer::from_slice(text).into_iter().next()?.ok()
}

/// That `path` is of a watch, which lies in `folder`, where a run is needed.
pub(crate) fn watch_is_no_run(path: &Path, folder: &Path) -> Failure {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    Failure::new(format!("{} belongs to a watch, and is not a run", path.display()))
        .try_this(format!("show the watch by its folder: {}", output::command("report", folder)))
}

fn keys_of(keys: &BTreeMap<String, IgnoredAny>) -> String {
    if keys.is_empty() {
        return "it is an object without keys".into();
    }
    let named: Vec<String> =
        keys.keys().take(KEYS).map(|k| format!("`{}`", clean(k, 40))).collect();
    let more = if keys.len() > KEYS { ", …" } else { "" };
    format!("its keys are {}{more}", named.join(", "))
}
