//! A kernel of one's own: files that somebody built.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::image::{ImageError, identify};
use super::{Arch, Kernel};
use crate::cache::read_bounded;
use crate::sum::Memo;

/// The largest configuration that is read.
const LARGEST_CONFIG: u64 = 4 << 20;

/// Why files make no kernel.
#[derive(Debug, thiserror::Error)]
pub enum OwnError {
    /// The image.
    #[error("cannot boot {}: {source}", .path.display())]
    Image {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ImageError,
    },
    /// It runs on another architecture than the one asked for.
    #[error("cannot boot {}: it is for {is}, not for {wanted}", .path.display())]
    Arch {
        /// The file.
        path: PathBuf,
        /// What it runs on.
        is: Arch,
        /// What was asked for.
        wanted: Arch,
    },
    /// A file beside it could not be read.
    #[error("cannot read {}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file beside it is not what it is given for.
    #[error("{} is not a {what}", .path.display())]
    NotA {
        /// The file.
        path: PathBuf,
        /// What it should be: `kernel configuration`.
        what: &'static str,
    },
}

/// Files that belong to one kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// bzImage or Image.
    pub image: PathBuf,
    /// What `/lib/modules/<release>` would be, or the folder that `make modules_install` was told
    /// to install to.
    pub modules: Option<PathBuf>,
    /// The `.config` that it was built with. Without one, `config-<release>` beside the image is
    /// taken, if that is there, as in /boot.
    pub config: Option<PathBuf>,
}

impl Kernel {
    /// A kernel of one's own. It is called what its path is. `arch` is what it must run on;
    /// `None` for whatever it does.
    pub fn from_files(
        files: &Files,
        arch: Option<Arch>,
        memo: &mut Memo,
    ) -> Result<Self, OwnError> {
        let path = &files.image;
        let image =
            identify(path).map_err(|source| OwnError::Image { path: path.clone(), source })?;
        if let Some(wanted) = arch.filter(|&wanted| wanted != image.arch) {
            return Err(OwnError::Arch { path: path.clone(), is: image.arch, wanted });
        }
        let sha256 = memo.sum(path).map_err(not_read(path))?;
        let beside = path.with_file_name(format!("config-{}", image.release));
        let config = files.config.clone().or_else(|| beside.is_file().then_some(beside));
        if let Some(config) = &config {
            expect_config(config)?;
        }
        let modules = files.modules.as_deref().map(|dir| modules_in(dir, &image.release));
        Ok(Self {
            name: path.display().to_string(),
            arch: image.arch,
            release: image.release,
            version: image.version,
            image: path.clone(),
            sha256,
            config,
            modules: modules.transpose()?,
            package: None,
        })
    }

    /// The image, as an absolute path, of a kernel that came from no package. `None` also for a path that no JSON
    /// can hold.
    pub(crate) fn own_image(&self) -> Option<PathBuf> {
        let own = Some(&self.image).filter(|_| self.package.is_none())?;
        let path = std::path::absolute(own).ok()?;
        path.to_str().is_some().then_some(path)
    }
}

fn not_read(path: &Path) -> impl FnOnce(io::Error) -> OwnError + use<'_> {
    move |source| OwnError::Io { path: path.into(), source }
}

fn expect_config(path: &Path) -> Result<(), OwnError> {
    let bytes = read_bounded(path, LARGEST_CONFIG).map_err(not_read(path))?;
    let what = "kernel configuration";
    if is_config(&bytes) { Ok(()) } else { Err(OwnError::NotA { path: path.into(), what }) }
}

fn is_config(bytes: &[u8]) -> bool {
    bytes.split(|&b| b == b'\n').any(|line| line.starts_with(b"CONFIG_"))
}

/// The folder of modules for `release`, where `dir` is that, or what they were installed to.
fn modules_in(dir: &Path, release: &str) -> Result<PathBuf, OwnError> {
    fs::read_dir(dir).map_err(not_read(dir))?;
    let installed = [dir.join("lib/modules").join(release), dir.join(release)];
    let candidates = installed.into_iter().chain([dir.to_owned()]);
    let is_modules =
        |dir: &PathBuf| dir.join("kernel").is_dir() || dir.join("modules.order").is_file();
    let not = || OwnError::NotA { path: dir.into(), what: "folder of this kernel's modules" };
    candidates.into_iter().find(is_modules).ok_or_else(not)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Cache;
    use crate::testing::bzimage;
    use wakescope_testing::Folder;

    fn kernel(folder: &Folder, change: impl FnOnce(&mut Files)) -> Result<Kernel, OwnError> {
        let path = |name: &str| folder.path().join(name);
        fs::write(path("bzImage"), bzimage("7.3.0-rc1")).unwrap();
        fs::write(path(".config"), "# x\nCONFIG_PREEMPT=y\n").unwrap();
        fs::write(path("text"), "text").unwrap();
        fs::create_dir_all(path("root/lib/modules/7.3.0-rc1/kernel")).unwrap();
        let mut files = Files {
            image: path("bzImage"),
            modules: Some(path("root")),
            config: Some(path(".config")),
        };
        change(&mut files);
        Kernel::from_files(&files, Some(Arch::Amd64), &mut Memo::open(&Cache::at(folder.path())))
    }

    #[test]
    fn files_make_a_kernel() {
        let folder = Folder::new("own");
        let got = kernel(&folder, |_| {}).unwrap();
        assert_eq!(got.name, folder.path().join("bzImage").display().to_string());
        assert_eq!((got.release.as_str(), got.arch), ("7.3.0-rc1", Arch::Amd64));
        assert_eq!(got.sha256, crate::sum::of_bytes(&bzimage("7.3.0-rc1")));
        let modules = folder.path().join("root/lib/modules/7.3.0-rc1");
        assert_eq!(got.modules.as_ref(), Some(&modules));
        let direct = kernel(&folder, |files| files.modules = Some(modules.clone())).unwrap();
        assert_eq!(direct.modules, Some(modules));
        assert!(kernel(&folder, |f| (f.modules, f.config) = (None, None)).is_ok());
    }

    #[test]
    fn a_configuration_beside_the_image_is_its_own() {
        let folder = Folder::new("own-beside");
        let config_of = |named: bool| {
            kernel(&folder, |f| f.config = f.config.take().filter(|_| named)).unwrap().config
        };
        fs::write(folder.path().join("config-7.2.0"), "CONFIG_PREEMPT=y\n").unwrap();
        assert_eq!(config_of(false), None);
        let own = folder.path().join("config-7.3.0-rc1");
        fs::write(&own, "CONFIG_PREEMPT=y\n").unwrap();
        assert_eq!(config_of(false), Some(own.clone()));
        assert_eq!(config_of(true), Some(folder.path().join(".config")));
        fs::write(&own, "all that is not set\n").unwrap();
        let refused = kernel(&folder, |f| f.config = None).unwrap_err().to_string();
        assert!(refused.contains("config-7.3.0-rc1 is not a kernel configuration"), "{refused}");
    }

    #[test]
    fn files_that_are_something_else_are_refused() {
        let folder = Folder::new("not-own");
        let there = folder.path().to_owned();
        let path = |name: &str| Some(there.join(name));
        type Change<'a> = &'a dyn Fn(&mut Files);
        let cases: [(Change<'_>, &str); 6] = [
            (&|f| f.image = there.join("text"), "it is not a kernel image"),
            (&|f| f.image = there.join("none"), "No such file"),
            (&|f| f.config = path("text"), "is not a kernel configuration"),
            (&|f| f.config = Some("/dev/zero".into()), "cannot read /dev/zero"),
            (&|f| f.modules = path("root/lib"), "is not a folder of this kernel's modules"),
            (&|f| f.modules = path("none"), "No such file"),
        ];
        for (change, want) in cases {
            let got = kernel(&folder, change).unwrap_err().to_string();
            assert!(got.contains(want), "{got:?} is not {want:?}");
        }
        let files = Files { image: there.join("bzImage"), ..Files::default() };
        let mut memo = Memo::open(&Cache::at(&there));
        let e = Kernel::from_files(&files, Some(Arch::Arm64), &mut memo).unwrap_err();
        assert!(e.to_string().ends_with("it is for amd64, not for arm64"), "{e}");
    }
}
