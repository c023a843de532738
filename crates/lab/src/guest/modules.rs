//! Which modules a guest loads, and in which order.
//!
//! What a module needs it says itself (`depends=`): a kernel package has no list of that, since
//! depmod makes it on the machine where the package is installed. A guest can neither search nor
//! decompress, so all that is done here, and the image holds plain modules.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

mod info;
mod tree;
mod unpack;

use tree::Tree;

/// More modules than that no guest needs.
const MODULES_MOST: usize = 256;

/// Names are shorter in the kernel (`MODULE_NAME_LEN`).
const NAME_MOST: usize = 64;

/// A module to load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// As the kernel has it: `null_blk`.
    pub name: String,
    /// The module, not compressed.
    pub bytes: Vec<u8>,
}

impl Module {
    /// The project's own module, which depends on no other, from the file at `path`.
    pub fn own(path: &Path) -> Result<Self, ModulesError> {
        Ok(Self { name: crate::module::NAME.into(), bytes: unpack::read(path)? })
    }

    /// Of its file in the guest: `null_blk.ko`.
    pub fn file_name(&self) -> String {
        format!("{}.ko", self.name)
    }
}

/// Why it is not known what to load.
#[derive(Debug, thiserror::Error)]
pub enum ModulesError {
    /// There is no such module. With it, the one that needs it, if any, and where it was looked for.
    #[error("there is no module `{name}` in {}{}", .folder.display(), needing(.needed_by.as_deref()))]
    Missing {
        /// The module.
        name: String,
        /// Who depends on it.
        needed_by: Option<String>,
        /// The folder of modules.
        folder: PathBuf,
    },
    /// Each needs the next, and the last the first.
    #[error("circular dependency of modules: {}", .0.join(" → "))]
    Cycle(Vec<String>),
    /// There are more than any guest needs.
    #[error("the modules and their dependencies exceed the limit of {MODULES_MOST}")]
    TooMany,
    /// A file or folder cannot be read.
    #[error("cannot read {}: {1}", .0.display())]
    Read(PathBuf, io::Error),
    /// A file is no module: with what is wrong.
    #[error("{} is not a module: {1}", .0.display())]
    NoModule(PathBuf, &'static str),
    /// It is compressed, and what decompresses it is not there.
    #[error("{} is compressed, and `{1}` is not installed", .0.display())]
    NoTool(PathBuf, &'static str),
    /// It cannot be decompressed.
    #[error("cannot decompress {}: {1}", .0.display())]
    Packed(PathBuf, String),
}

fn needing(by: Option<&str>) -> String {
    by.map(|by| format!(", which `{by}` needs")).unwrap_or_default()
}

impl ModulesError {
    /// What the user can do.
    pub fn remedy(&self) -> String {
        match self {
            Self::Missing { needed_by: None, .. } => {
                "use the names that lsmod shows; omit what is built into the kernel".into()
            }
            Self::Missing { .. } => "install all modules of the kernel there: make \
                 modules_install INSTALL_MOD_PATH=DIR"
                .into(),
            Self::Cycle(_) | Self::NoModule(..) | Self::Packed(..) => "reinstall the kernel's \
                 modules"
                .into(),
            Self::TooMany => "name fewer modules".into(),
            Self::Read(..) => "check its permissions".into(),
            Self::NoTool(_, tool) => {
                let package = if *tool == "xz" { "xz-utils" } else { tool };
                format!("install it, on Debian and Ubuntu: apt install {package}")
            }
        }
    }
}

/// The modules of these `names` with all that they need, in the order in which they are to be
/// loaded. `folder` is what `/lib/modules/<release>` would be. What is built into the kernel is
/// left out.
///
/// In names `-` and `_` are the same, as for the kernel.
pub(crate) fn resolve(folder: &Path, names: &[String]) -> Result<Vec<Module>, ModulesError> {
    let mut plan = Plan { tree: Tree::read(folder)?, loaded: Vec::new(), places: BTreeMap::new() };
    for name in names {
        plan.add(&kernel_name(name), &mut Vec::new())?;
    }
    Ok(plan.loaded)
}

/// What is to be loaded, in the making.
struct Plan {
    tree: Tree,
    loaded: Vec<Module>,
    /// Where in `loaded`; `None` as long as those are being added that it needs.
    places: BTreeMap<String, Option<usize>>,
}

impl Plan {
    /// Adds a module behind all that it needs. `path` are those that led to it.
    fn add(&mut self, name: &str, path: &mut Vec<String>) -> Result<(), ModulesError> {
        match self.places.get(name) {
            Some(Some(_)) => return Ok(()),
            Some(None) => {
                let start = path.iter().position(|on| on == name).unwrap_or(0);
                let round = path[start..].iter().cloned().chain([name.into()]);
                return Err(ModulesError::Cycle(round.collect()));
            }
            None if self.tree.is_built_in(name) => return Ok(()),
            None if self.places.len() == MODULES_MOST => return Err(ModulesError::TooMany),
            None => {}
        }
        let file = self.tree.file(name).ok_or_else(|| ModulesError::Missing {
            name: name.into(),
            needed_by: path.last().cloned(),
            folder: self.tree.folder().into(),
        })?;
        let bytes = unpack::read(file)?;
        let needs = info::depends(&bytes);
        let needs = needs.map_err(|why| ModulesError::NoModule(file.into(), why))?;
        self.places.insert(name.into(), None);
        path.push(name.into());
        for need in needs {
            self.add(&need, path)?;
        }
        path.pop();
        self.places.insert(name.into(), Some(self.loaded.len()));
        self.loaded.push(Module { name: name.into(), bytes });
        Ok(())
    }
}

/// A module's name as the kernel has it.
fn kernel_name(name: &str) -> String {
    name.replace('-', "_")
}

/// Whether it may be a module's name. It becomes a file's in the guest, and a word of its kernel's
/// command line.
fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    !name.is_empty() && name.len() <= NAME_MOST && name.chars().all(allowed)
}

#[cfg(test)]
mod tests;
