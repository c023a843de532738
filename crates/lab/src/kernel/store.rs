//! Kernels that are in the cache, each in a folder of its name:
//! `kernels/amd64/6.1.0-56-cloud/{kernel.json,image,config,modules/}`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wakescope_core::preemption::{Preemption, Reading, Sources, judge};

use super::name::{Flavour, Name};
use super::order::compare;
use super::{Arch, Kernel};
use crate::cache::{Cache, MODULES, read_bounded};
use crate::sum::Memo;

/// The schema of kernel.json.
pub(super) const SCHEMA: &str = "wakescope.kernel/1";

/// The largest kernel.json and configuration that are read.
const LARGEST_CARD: u64 = 64 << 10;
const LARGEST_CONFIG: u64 = 4 << 20;

/// What kernel.json holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Card {
    /// [`SCHEMA`].
    pub schema: String,
    /// `uname -r`.
    pub release: String,
    /// `uname -v`.
    pub version: String,
    /// SHA-256 of the image.
    pub sha256: String,
    /// The package that held the image.
    pub package: String,
    /// Its version.
    pub package_version: String,
    /// Bytes that were fetched.
    #[serde(default)]
    pub fetched_bytes: u64,
    /// Whether its packages held a configuration; unknown of kernels that were fetched before 2026-12.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub has_config: Option<bool>,
}

/// A kernel in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// What it is called.
    pub name: Name,
    /// Its folder.
    pub folder: PathBuf,
    /// What is noted about it.
    pub card: Card,
}

/// Why a kernel of the cache cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It is not there.
    #[error("the kernel `{0}` has not been fetched")]
    Missing(String),
    /// Its image is not the one that was fetched, or cannot be read.
    #[error("the kernel in {} is damaged: {why}", .folder.display())]
    Damaged {
        /// Its folder.
        folder: PathBuf,
        /// What is wrong.
        why: String,
    },
}

/// All kernels of the cache for `arch`, older ones before newer ones. What is none is left out.
pub fn stored(cache: &Cache, arch: Arch) -> Vec<Stored> {
    let entries = cache.kernels(arch).read_dir().into_iter().flatten().flatten();
    let mut found: Vec<Stored> = entries.filter_map(|entry| read(&entry.path(), arch)).collect();
    found.sort_by(|a, b| {
        compare(&a.card.package_version, &b.card.package_version)
            .then_with(|| compare(&a.name.version, &b.name.version))
            .then_with(|| a.name.flavour.cmp(&b.name.flavour))
    });
    found
}

fn read(folder: &Path, arch: Arch) -> Option<Stored> {
    let name = Name::of_release(&format!("{}-{arch}", folder.file_name()?.to_str()?))?;
    let card = read_bounded(&folder.join("kernel.json"), LARGEST_CARD).ok()?;
    let card: Card = serde_json::from_slice(&card).ok()?;
    let known = card.schema == SCHEMA && card.release == name.release();
    known.then(|| Stored { name, folder: folder.into(), card })
}

/// The newest kernel of the cache that answers to `text`.
pub fn find(cache: &Cache, arch: Arch, text: &str) -> Option<Stored> {
    stored(cache, arch).into_iter().rev().find(|stored| stored.name.answers_to(text))
}

impl Stored {
    /// The kernel, under the name that `name` is, after a look whether its image is still the one
    /// that was fetched.
    pub fn kernel(&self, name: &str, memo: &mut Memo) -> Result<Kernel, StoreError> {
        let damaged = |why: String| StoreError::Damaged { folder: self.folder.clone(), why };
        let image = self.folder.join("image");
        let sha256 = memo.sum(&image).map_err(|e| damaged(format!("its image: {e}")))?;
        if sha256 != self.card.sha256 {
            return Err(damaged("its image has changed".into()));
        }
        let there = |file: &str| Some(self.folder.join(file)).filter(|path| path.exists());
        let config = there("config");
        // Without it, a guest has another image, and its figures are others.
        if self.card.has_config == Some(true) && config.is_none() {
            return Err(damaged("its configuration is missing".into()));
        }
        Ok(Kernel {
            name: name.into(),
            arch: self.name.arch,
            release: self.card.release.clone(),
            version: self.card.version.clone(),
            image,
            sha256,
            config,
            modules: there(MODULES),
            package: Some(format!("{} {}", self.card.package, self.card.package_version)),
        })
    }

    /// What its configuration says about preemption.
    pub fn preemption(&self) -> Preemption {
        judge(&Sources {
            release: self.card.release.clone(),
            version: self.card.version.clone(),
            arch: self.name.arch.machine().into(),
            config: Reading { source: "config".into(), text: self.config() },
            ..Sources::default()
        })
    }

    /// Whether `preempt=` on its command line chooses the model, as its configuration says.
    pub fn is_dynamic(&self) -> bool {
        let dynamic = |text: String| text.lines().any(|l| l.trim() == "CONFIG_PREEMPT_DYNAMIC=y");
        self.name.flavour != Flavour::Rt && self.config().is_ok_and(dynamic)
    }

    fn config(&self) -> Result<String, String> {
        let bytes = read_bounded(&self.folder.join("config"), LARGEST_CONFIG);
        bytes.map(|b| String::from_utf8_lossy(&b).into_owned()).map_err(|e| e.to_string())
    }
}

impl Kernel {
    /// The newest kernel of the cache that answers to `name`: `6.1-cloud`, `6.1.0-56-cloud`.
    pub fn from_cache(
        cache: &Cache,
        arch: Arch,
        name: &str,
        memo: &mut Memo,
    ) -> Result<Self, StoreError> {
        match find(cache, arch, name) {
            Some(stored) => stored.kernel(name, memo),
            None => Err(StoreError::Missing(name.chars().take(80).collect())),
        }
    }
}
