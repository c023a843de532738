//! How a stored cell is run once more: from its recipe, and from what is still there.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wakescope_core::units::SpanNs;
use wakescope_report::style::clean;

use super::Work;
use crate::cache::Cache;
use crate::farm::{Job, Repeated};
use crate::guest::root;
use crate::kernel::Arch;
use crate::kernel::image::identify;
use crate::kernel::store::stored;
use crate::machine::boot::Image;
use crate::qemu::Qemu;
use crate::store::{Label, ORDER, ROOT, StoredCell};
use crate::sum::Memo;

/// What a cell cannot be run again without.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// Its kernel, which the lab had fetched or built.
    #[error("its kernel was removed")]
    Kernel,
    /// Its kernel, which was given as this file.
    #[error("its kernel {0} was removed, or is another one now")]
    KernelFile(String),
    /// The image of its guest.
    #[error("its guest image was removed")]
    Guest,
    /// The image of programs that its guest had.
    #[error("its root image was removed")]
    Root,
    /// Nothing says which architecture its kernel is for.
    #[error("{0}")]
    Architecture(String),
    /// Nothing: with so many CPUs, a guest's result need not repeat.
    #[error("its machine has {0} CPUs, whose bits need not repeat")]
    Cpus(String),
    /// The emulator, which is called this.
    #[error("{0}, by which it was run, is not here")]
    Emulator(String),
}

impl From<Missing> for Repeated {
    fn from(missing: Missing) -> Self {
        match &missing {
            Missing::Cpus(_) => Self::NotPromised(missing.to_string()),
            _ => Self::CannotRun(missing.to_string()),
        }
    }
}

/// What there is to run cells with, by what it holds.
#[derive(Debug)]
pub struct Again {
    kernels: BTreeMap<String, PathBuf>,
    guests: BTreeMap<String, PathBuf>,
    roots: BTreeMap<String, PathBuf>,
    emulators: Vec<Arc<Qemu>>,
    limit: SpanNs,
}

impl Again {
    /// Looks for kernels and guests in `cache`. `limit` is the most time of the host that a guest
    /// may take.
    pub fn new(cache: &Cache, emulators: Vec<Arc<Qemu>>, limit: SpanNs) -> Self {
        let mut memo = Memo::open(cache);
        let mut by_sum = |paths: Vec<PathBuf>| {
            let known = paths.into_iter().filter_map(|path| Some((memo.sum(&path).ok()?, path)));
            known.collect::<BTreeMap<_, _>>()
        };
        let fetched = Arch::ALL.into_iter().flat_map(|arch| stored(cache, arch));
        let mut images: Vec<_> = fetched.map(|kernel| kernel.folder.join("image")).collect();
        images.extend(files_of(&cache.built()));
        Self {
            kernels: by_sum(images),
            guests: by_sum(files_of(&cache.guests())),
            roots: by_sum(root::files(cache)),
            emulators,
            limit,
        }
    }

    /// The job of `cell`, or why it cannot be run again.
    pub fn job(&self, cell: &StoredCell) -> Result<Job<Work>, Missing> {
        if let Some(cpus) = cell.recipe.several_cpus() {
            return Err(Missing::Cpus(cpus.into()));
        }
        let part = |name| cell.recipe.part(name).unwrap_or_default();
        let image =
            |path: &PathBuf, sha256: &str| Image { path: path.clone(), sha256: sha256.into() };
        let kernel = image(&self.kernel(part("kernel"), &cell.meta.label)?, part("kernel"));
        let guest = image(self.guests.get(part("guest")).ok_or(Missing::Guest)?, part("guest"));
        let root = match cell.recipe.part(ROOT) {
            Some(sum) => Some(image(self.roots.get(sum).ok_or(Missing::Root)?, sum)),
            None => None,
        };
        let arch = identify(&kernel.path).map_err(|e| Missing::Architecture(e.to_string()))?.arch;
        let qemu = self.emulators.iter().find(|qemu| {
            qemu.arch == arch && format!("{} {}", qemu.banner, qemu.sha256) == part("emulator")
        });
        let qemu = qemu.ok_or_else(|| Missing::Emulator(part("emulator").into()))?;
        let machine = cell.recipe.parts().filter(|(name, _)| *name == "argument");
        Ok(Job {
            recipe: cell.recipe.clone(),
            label: cell.meta.label.clone(),
            work: Work {
                qemu: Arc::clone(qemu),
                machine: machine.map(|(_, value)| value.to_owned()).collect(),
                kernel,
                guest,
                root,
                cmdline: part("command_line").into(),
                order: cell.recipe.part(ORDER).map(String::from),
                // A repetition proves the more, the less it takes from the first run.
                boot: None,
                limit: self.limit,
            },
        })
    }

    /// The kernel of this sum: the file that was given, the one that it was called after, which is all that cells
    /// of earlier versions know, or one of the cache's.
    fn kernel(&self, sha256: &str, label: &Label) -> Result<PathBuf, Missing> {
        let given = label.kernel_file.as_deref();
        let is_it = |path: &&Path| {
            path.is_file() && crate::sum::of_file(path).is_ok_and(|sum| sum == sha256)
        };
        let own = given.into_iter().chain([Path::new(&label.kernel)]).find(is_it);
        own.map(Path::to_owned).or_else(|| self.kernels.get(sha256).cloned()).ok_or_else(|| {
            match given {
                Some(path) => Missing::KernelFile(clean(&path.display().to_string(), 300)),
                None => Missing::Kernel,
            }
        })
    }
}

fn files_of(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect()
}
