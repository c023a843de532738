//! The project's kernel module, built for kernels of the archive.
//!
//! It is built by the compiler and the headers that Debian builds that kernel's modules with, in a
//! folder of packages of its own: they need a newer C library than many machines have. For kernels of
//! another architecture the compiler is a cross compiler.

use std::io::Read;
use std::path::{Path, PathBuf};

use wakescope_store::write_new;
use wakescope_sys::file::effective_user;

use crate::archive::tool::{self, Tool};
use crate::archive::{ArchiveError, Site};
use crate::cache::{Cache, CacheError};
use crate::kernel::{Arch, Kernel};
use crate::sources::{Sources, last_lines};
use crate::sum;
use crate::watch::{Step, Watch};

mod compiler;
mod headers;

use compiler::Compiler;

/// The module as the kernel has it.
pub const NAME: &str = "wakescope";

/// Its file.
pub(crate) const FILE: &str = "wakescope.ko";

/// How many digits of the sum of its sources name its folder.
pub(crate) const KEY_LENGTH: usize = 16;

/// Its sources, which are part of the program: what is built fits what talks to it.
const SOURCES: Sources<'_> = Sources(&[
    ("Kbuild", include_str!("../../../kmod/Kbuild")),
    ("compat.h", include_str!("../../../kmod/compat.h")),
    ("device.c", include_str!("../../../kmod/device.c")),
    ("inject.c", include_str!("../../../kmod/inject.c")),
    ("inject.h", include_str!("../../../kmod/inject.h")),
    ("injector.h", include_str!("../../../kmod/injector.h")),
    ("nmi.c", include_str!("../../../kmod/nmi.c")),
    ("pairs.c", include_str!("../../../kmod/pairs.c")),
    ("sections.c", include_str!("../../../kmod/sections.c")),
    ("spin.h", include_str!("../../../kmod/spin.h")),
    ("wakescope.h", include_str!("../../../kmod/wakescope.h")),
]);

/// A module with debugging information has half a megabyte.
const LARGEST: u64 = 16 << 20;

/// A user without any rights.
const NOBODY: &str = "65534";

/// Mounts what a build needs and starts it: `$0` is the folder of packages, `$1` that of the sources.
/// Nothing is written to either.
const MOUNTS: &str = r#"
mount -t tmpfs -o size=64m,mode=1777 tmpfs "$0/tmp"
mount -t tmpfs -o size=256m,mode=1777 tmpfs "$0/src"
cp "$1"/* "$0/src"
mount --rbind /proc "$0/proc"
mount --bind /dev/null "$0/dev/null"
shift
exec "$@""#;

/// Runs among the packages, with the folder of headers as `$0` and what make has to know behind it.
const BUILD: &str = r#"make -C "$0" M=/src "$@" modules >&2; cat /src/wakescope.ko"#;

/// Why there is no module for a kernel.
#[derive(Debug, thiserror::Error)]
pub enum ModuleError {
    /// It is no kernel of the archive, so there are no headers for it.
    #[error("{0} is not a Debian kernel")]
    Foreign(String),
    /// There is no compiler for it that runs here.
    #[error("modules for {0} can only be built on that architecture")]
    Arch(Arch),
    /// The archive is of no help.
    #[error(transparent)]
    Archive(ArchiveError),
    /// Its packages do not hold what they should.
    #[error("the packages of linux-headers-{release} {why}")]
    Package {
        /// Which kernel.
        release: String,
        /// What is wrong.
        why: &'static str,
    },
    /// This user may not make a place to build in: with what `unshare` says.
    #[error("no private place to build in: {0}")]
    NoPlace(String),
    /// It was not built: with the last lines of the build.
    #[error("the build for {release} failed")]
    Build {
        /// For which kernel.
        release: String,
        /// What the build said, a line each.
        complaints: Vec<String>,
    },
}

impl<E: Into<ArchiveError>> From<E> for ModuleError {
    fn from(e: E) -> Self {
        Self::Archive(e.into())
    }
}

/// A module in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// Its file.
    pub path: PathBuf,
    /// Whether it was there before.
    pub was_there: bool,
    /// Bytes that were fetched to build it.
    pub bytes: u64,
}

/// Sees to it that the cache has the module for `kernel`. Nothing is fetched if the headers are there.
pub fn build(
    kernel: &Kernel,
    cache: &Cache,
    site: &Site,
    watch: &mut dyn Watch,
) -> Result<Built, ModuleError> {
    let release = &kernel.release;
    if kernel.package.is_none() {
        return Err(ModuleError::Foreign(kernel.name.clone()));
    }
    let place = place(cache, release);
    let path = place.join(FILE);
    if path.is_file() {
        return Ok(Built { path, was_there: true, bytes: 0 });
    }
    let compiler = Compiler::of(kernel.arch, Arch::of_this_program());
    let compiler = compiler.ok_or(ModuleError::Arch(kernel.arch))?;
    // So that what it is built with stays meanwhile.
    let _building = cache.lock(&building(release), watch)?;
    let headers = headers::fetch(release, kernel.arch, compiler, cache, site, watch)?;
    let stage = cache.stage(&place)?;
    let sources = stage.path().join("src");
    Cache::create(&sources)?;
    SOURCES.write_into(&sources)?;
    watch.step(&Step::Build(release));
    let module = compile(&headers.tree, &sources, release, compiler, watch)?;
    let file = stage.path().join(FILE);
    write_new(&file, &module).map_err(CacheError::io("write", &file))?;
    std::fs::remove_dir_all(&sources).map_err(CacheError::io("remove", &sources))?;
    stage.commit()?;
    Ok(Built { path, was_there: false, bytes: headers.bytes })
}

/// The name of the lock that is held while a module for the kernel `release` is built.
pub(crate) fn building(release: &str) -> String {
    format!("module-{release}")
}

/// Whether `tree` is what a module for the kernel `release` is built with.
pub(crate) fn are_headers(tree: &Path, release: &str) -> bool {
    tree.join(&headers::folder(release)[1..]).join("Makefile").is_file()
}

/// Where the module for the kernel `release` is kept, of these sources.
pub(crate) fn place(cache: &Cache, release: &str) -> PathBuf {
    let key = sum::of_bytes(SOURCES.sums().as_bytes());
    cache.modules().join(release).join(&key[..KEY_LENGTH])
}

/// The bytes of the module that is made of `sources` by the compiler and headers in `tree`.
fn compile(
    tree: &Path,
    sources: &Path,
    release: &str,
    compiler: Compiler,
    watch: &mut dyn Watch,
) -> Result<Vec<u8>, ModuleError> {
    let unshare = tool::find("unshare").ok_or(ArchiveError::NoTool("unshare"))?;
    let build = place_to_build(&unshare, tree, sources)
        .args(["/usr/bin/env", "-i", "PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"])
        .args(["sh", "-ec", BUILD])
        .arg(headers::folder(release))
        .args(compiler.make_arguments());
    let ended = tool::run(&build, module, watch, |_| Ok(()))?;
    if !ended.success() {
        let denied = ended.complaints.lines().find(|line| line.starts_with("unshare: "));
        if let Some(line) = denied {
            return Err(ModuleError::NoPlace(line.into()));
        }
        let complaints = last_lines(&ended.complaints);
        return Err(ModuleError::Build { release: release.into(), complaints });
    }
    if !ended.output.starts_with(b"\x7fELF") {
        let complaints = vec!["it ended without a module".into()];
        return Err(ModuleError::Build { release: release.into(), complaints });
    }
    Ok(ended.output)
}

/// Starts a program whose root is `tree`, without a network. It is a user without rights, if this one
/// is root, and otherwise this one.
fn place_to_build(unshare: &Path, tree: &Path, sources: &Path) -> Tool {
    let is_root = effective_user() == 0;
    let own: &[&str] = if is_root { &[] } else { &["--user", "--map-root-user"] };
    let mut root = std::ffi::OsString::from("--root=");
    root.push(tree);
    let nobody = [format!("--setgid={NOBODY}"), format!("--setuid={NOBODY}")];
    let inside = Tool::new(unshare).args(own.iter().copied()).args(["--mount", "--net"]);
    let inside = inside.args(["sh", "-ec", MOUNTS]).arg(tree).arg(sources);
    let inside = inside.arg(unshare).arg(root).arg("--wd=/");
    inside.args(nobody.into_iter().filter(|_| is_root))
}

/// Reads a module, of a size that makes sense.
fn module(output: std::fs::File) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What breaks off is no ELF file, or one that no kernel loads.
    let _ = output.take(LARGEST).read_to_end(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Unwatched;
    use wakescope_testing::Folder;

    fn kernel(arch: Arch, package: Option<&str>) -> Kernel {
        Kernel {
            name: "6.1-cloud".into(),
            arch,
            release: format!("6.1.0-56-cloud-{arch}"),
            version: String::new(),
            image: PathBuf::new(),
            sha256: String::new(),
            config: None,
            modules: None,
            package: package.map(Into::into),
        }
    }

    #[test]
    fn a_module_of_the_cache_needs_neither_archive_nor_compiler() {
        let folder = Folder::new("module");
        let cache = Cache::at(folder.path());
        let nowhere = Site::of("http://127.0.0.1:9/debian", Some("/none".into())).unwrap();
        let debian = kernel(Arch::Arm64, Some("linux-image 6.1.192-2"));
        let built = |kernel: &Kernel| build(kernel, &cache, &nowhere, &mut Unwatched);
        assert!(matches!(built(&debian), Err(ModuleError::Archive(_))));
        assert!(matches!(built(&kernel(Arch::Arm64, None)), Err(ModuleError::Foreign(_))));
        let place = place(&cache, &debian.release);
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.join("wakescope.ko"), "module").unwrap();
        let want = Built { path: place.join("wakescope.ko"), was_there: true, bytes: 0 };
        assert_eq!(built(&debian).unwrap(), want);
    }

    #[test]
    fn all_sources_of_the_module_are_built() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kmod");
        let is_source =
            |name: &String| name.ends_with(".c") || name.ends_with(".h") || name == "Kbuild";
        let mut there: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| is_source(name) && !name.ends_with(".mod.c"))
            .collect();
        there.sort();
        assert_eq!(there, SOURCES.names().collect::<Vec<_>>());
    }
}
