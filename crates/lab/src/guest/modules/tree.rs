//! The folder of a kernel's modules: which file holds which module, and what is built in.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::unpack::Packing;
use super::{ModulesError, is_name, kernel_name};
use crate::cache::read_bounded;

/// A kernel with everything has a tenth of that.
const FILES_MOST: usize = 100_000;

/// Folders in folders; the kernel's own sources have ten.
const DEPTH_MOST: usize = 20;

/// What is built in takes a kilobyte per forty modules.
const BUILT_IN_MOST: u64 = 4 << 20;

/// What is in a folder of modules.
pub(super) struct Tree {
    folder: PathBuf,
    files: BTreeMap<String, PathBuf>,
    built_in: BTreeSet<String>,
}

impl Tree {
    /// Reads the names of all modules in `folder`.
    pub(super) fn read(folder: &Path) -> Result<Self, ModulesError> {
        let mut files = BTreeMap::new();
        let mut entries = 0;
        let mut folders = vec![(folder.to_path_buf(), 0)];
        while let Some((dir, depth)) = folders.pop() {
            let failed = |e| ModulesError::Read(dir.clone(), e);
            for entry in fs::read_dir(&dir).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                entries += 1;
                if entries > FILES_MOST || depth > DEPTH_MOST {
                    return Err(failed(io::Error::other("it has no end")));
                }
                // Links are not followed: `build` and `source` lead to the kernel's sources.
                let kind = entry.file_type().map_err(failed)?;
                if kind.is_dir() {
                    folders.push((entry.path(), depth + 1));
                } else if let Some(name) = module_of(&entry.path()).filter(|_| kind.is_file()) {
                    add(&mut files, folder, name, entry.path());
                }
            }
        }
        Ok(Self { folder: folder.into(), files, built_in: built_in(folder)? })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file of a module.
    pub(super) fn file(&self, name: &str) -> Option<&Path> {
        self.files.get(name).map(PathBuf::as_path)
    }

    /// Whether there is nothing to load.
    pub(super) fn is_built_in(&self, name: &str) -> bool {
        self.built_in.contains(name)
    }
}

/// Of two modules of one name the one outside `kernel/` is taken, as depmod does it: somebody put it
/// there to replace the other. Apart from that the order of folders, which is chance, decides nothing.
fn add(files: &mut BTreeMap<String, PathBuf>, folder: &Path, name: String, path: PathBuf) {
    let rank = |path: &Path| (path.starts_with(folder.join("kernel")), path.to_path_buf());
    let is_better = files.get(&name).is_none_or(|there| rank(&path) < rank(there));
    if is_better {
        files.insert(name, path);
    }
}

/// The name of the module in a file of this name.
fn module_of(path: &Path) -> Option<String> {
    let file = path.file_name()?.to_str()?;
    let name = Packing::ALL.iter().find_map(|packing| file.strip_suffix(packing.suffix()))?;
    is_name(name).then(|| kernel_name(name))
}

/// The names in `modules.builtin`: a path per line. Without the file nothing is known to be.
fn built_in(folder: &Path) -> Result<BTreeSet<String>, ModulesError> {
    let path = folder.join("modules.builtin");
    match read_bounded(&path, BUILT_IN_MOST) {
        Ok(text) => {
            let text = String::from_utf8_lossy(&text);
            Ok(text.lines().filter_map(|line| module_of(Path::new(line))).collect())
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(e) => Err(ModulesError::Read(path, e)),
    }
}
