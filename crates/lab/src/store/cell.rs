//! A cell as it is kept.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use wakescope_store::check_own;
use wakescope_sys::clock::{self, Clock};

use super::ending::Ending;
use super::recipe::{Key, Recipe};
use super::sums::{META, SUMS, Sums, from_text, sums_of};
use crate::cache::read_bounded;
use crate::sum;

/// The recipe's file.
pub const RECIPE: &str = "recipe.json";
/// The ending's file.
pub(crate) const ENDING: &str = "ending.json";

/// The largest of the cell's own files, in bytes. A recipe holds a command line of 2,047 bytes at most.
const LARGEST: u64 = 1 << 20;

/// How a cell is called. It does not determine the result: the same kernel can have two names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// The kernel's name.
    pub kernel: String,
    /// The image of a kernel that the lab did not fetch, as an absolute path. Its name is a path as it was given,
    /// which leads there from one folder only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_file: Option<PathBuf>,
    /// The preemption model asked for.
    pub model: String,
    /// The load, or what else the guest does.
    pub load: String,
    /// The seed, if chance has a part in it.
    pub seed: Option<u64>,
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.kernel, self.model, self.load)?;
        self.seed.map_or(Ok(()), |seed| write!(f, " seed {seed}"))
    }
}

/// What differs between repetitions of a cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// What it was called when it was run.
    pub label: Label,
    /// SHA-256 of that and of the cell's key. Empty in cells of before 2026-11-30.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label_sha256: String,
    /// How long it took on the host.
    pub host_ns: u64,
    /// The host's name.
    pub host: String,
    /// When it ended, RFC 3339, UTC.
    pub ended: String,
    /// What kept the emulator from doing harm.
    #[serde(default)]
    pub confinement: Vec<String>,
    /// The SHA-256 of the state that its guest resumed from, if it did not boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

impl Meta {
    /// With the checksum of its label, for the cell `key`.
    pub(super) fn summed(&self, key: &Key) -> Self {
        Self { label_sha256: self.label_sum(key), ..self.clone() }
    }

    /// Whether its label is the one that the cell `key` was given.
    fn is_of(&self, key: &Key) -> bool {
        self.label_sha256.is_empty() || self.label_sha256 == self.label_sum(key)
    }

    fn label_sum(&self, key: &Key) -> String {
        // A label is text and numbers: there is nothing that could fail.
        let label = serde_json::to_string(&self.label).unwrap_or_default();
        sum::of_bytes(format!("{key}\n{label}").as_bytes())
    }
}

/// A cell that was run, with its folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCell {
    /// Its name.
    pub key: Key,
    /// What determined it.
    pub recipe: Recipe,
    /// How it ended.
    pub ending: Ending,
    /// What differs between repetitions; empty if that was lost.
    pub meta: Meta,
    /// Where its files are.
    pub folder: PathBuf,
    /// Checksums of the files whose bits must repeat.
    sums: Sums,
}

/// What is known of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// It was run.
    Stored(Box<StoredCell>),
    /// It was run, but its files are not what they were, for this reason. It is to be run again.
    Damaged(String),
    /// It was not run.
    Absent,
}

impl StoredCell {
    /// The names of the files whose bits must repeat, but for the cell's own.
    pub fn results(&self) -> impl Iterator<Item = &str> {
        self.sums.keys().map(String::as_str).filter(|name| ![RECIPE, ENDING].contains(name))
    }

    /// SHA-256 of a file whose bits must repeat.
    pub fn sum(&self, name: &str) -> Option<&str> {
        self.sums.get(name).map(String::as_str)
    }

    /// Reads a file of the cell, of at most `limit` bytes.
    pub fn read(&self, name: &str, limit: u64) -> io::Result<Vec<u8>> {
        read_bounded(&self.folder.join(name), limit)
    }

    /// Notes that it was used, for [`super::CellStore::prune`].
    pub(super) fn touch(&self) {
        note_use(&self.folder.join(SUMS));
    }
}

/// Notes in a file's time that it was used. A cache that one may only read keeps no such notes.
pub(crate) fn note_use(path: &Path) {
    let now = UNIX_EPOCH + Duration::from_nanos(clock::read(Clock::Realtime));
    let _ = File::open(path).and_then(|file| file.set_modified(now));
}

/// What is in `folder`, which should be the cell `key`.
pub(super) fn look(folder: &Path, key: &Key) -> Lookup {
    match fs::symlink_metadata(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Lookup::Absent,
        Err(e) => Lookup::Damaged(e.to_string()),
        Ok(_) => match read(folder, key) {
            Ok(cell) => Lookup::Stored(Box::new(cell)),
            Err(why) => Lookup::Damaged(why),
        },
    }
}

fn read(folder: &Path, key: &Key) -> Result<StoredCell, String> {
    // Who can change a result can change its checksum.
    let own = std::path::absolute(folder).map_err(|e| e.to_string())?;
    check_own(&own, &|_| false).map_err(|e| e.to_string())?;
    let small =
        |name: &str| read_bounded(&folder.join(name), LARGEST).map_err(|e| format!("{name}: {e}"));
    let text = String::from_utf8(small(SUMS)?).map_err(|_| format!("{SUMS} is not UTF-8"))?;
    let sums = from_text(&text).ok_or_else(|| format!("{SUMS} is not a list of checksums"))?;
    let found = sums_of(folder).map_err(|e| e.to_string())?;
    if let Some(fault) = fault_of(&sums, &found) {
        return Err(fault);
    }
    let recipe: Recipe =
        serde_json::from_slice(&small(RECIPE)?).map_err(|e| format!("{RECIPE}: {e}"))?;
    if recipe.key() != *key {
        return Err(format!("{RECIPE} belongs to another cell"));
    }
    recipe.expect_known().map_err(|e| format!("{RECIPE}: {e}"))?;
    let ending = serde_json::from_slice(&small(ENDING)?).map_err(|e| format!("{ENDING}: {e}"))?;
    // No result depends on it: a cell without it is whole. But a cell is called by the label in it.
    let meta = small(META).ok().and_then(|text| serde_json::from_slice(&text).ok());
    let meta: Meta = meta.unwrap_or_default();
    if !meta.is_of(key) {
        return Err(format!("the label in {META} does not match its checksum"));
    }
    let (key, folder) = (key.clone(), folder.into());
    Ok(StoredCell { key, recipe, ending, meta, folder, sums })
}

/// In which file the checksums that were noted differ from those found.
fn fault_of(noted: &Sums, found: &Sums) -> Option<String> {
    let missing = noted.keys().find(|name| !found.contains_key(*name));
    let changed = || found.iter().find(|(name, sum)| noted.get(*name) != Some(sum));
    match missing {
        Some(name) => Some(format!("{name} is missing")),
        None => changed().map(|(name, _)| format!("{name} does not match its checksum")),
    }
}
