//! The headers of a kernel and the compiler that they ask for, unpacked into a folder of the cache.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use wakescope_store::write_new;

use super::compiler::{Compiler, CrossPackages};
use super::{ModuleError, are_headers};
use crate::archive::{Archive, ArchiveError, Package, Purpose, Site};
use crate::cache::{Cache, CacheError};
use crate::kernel::Arch;
use crate::watch::Watch;

/// What a build runs, beside the compiler, which the headers depend on. Debian has these on every
/// system, so no package depends on them.
pub(super) const TOOLS: [&str; 9] =
    ["make", "dash", "bash", "coreutils", "sed", "grep", "mawk", "findutils", "diffutils"];

/// Folders that packages put files into that a build needs.
const NEEDED: [&str; 9] = [
    "lib",
    "lib64",
    "usr/bin",
    "usr/lib",
    "usr/lib64",
    "usr/libexec",
    "usr/src",
    "usr/include",
    // Where a cross compiler looks for its assembler and its linker.
    "usr/aarch64-linux-gnu/bin",
];

/// The largest files that it does not need: what links programs as a whole, and what checks them
/// while they run.
const USELESS: [&str; 6] = ["lto", "libasan", "libtsan", "libhwasan", "liblsan", "libubsan"];

/// What other programs expect at the root of a system, and where it is.
const ROOT_LINKS: [(&str, &str); 3] =
    [("bin", "usr/bin"), ("lib", "usr/lib"), ("lib64", "usr/lib64")];

/// Headers that are in the cache.
pub(super) struct Headers {
    /// What is `/` to a build.
    pub(super) tree: PathBuf,
    /// Bytes that were fetched.
    pub(super) bytes: u64,
}

/// Where the headers of the kernel `release` are among the packages.
pub(super) fn folder(release: &str) -> String {
    format!("/usr/src/linux-headers-{release}")
}

/// Whether the package of this name holds headers of a kernel.
pub(super) fn is_headers(package: &str) -> bool {
    package.starts_with("linux-headers-")
}

/// Sees to it that the cache has what a module for the kernel `release` is built with. The caller keeps others
/// from doing the same meanwhile.
pub(super) fn fetch(
    release: &str,
    arch: Arch,
    compiler: Compiler,
    cache: &Cache,
    site: &Site,
    watch: &mut dyn Watch,
) -> Result<Headers, ModuleError> {
    let place = cache.headers().join(release);
    let tree = place.join("tree");
    if tree.is_dir() {
        cache.check_used(&place)?;
        return Ok(Headers { tree, bytes: 0 });
    }
    let stage = cache.stage(&place)?;
    let root = Root { release, cache, site, stage: stage.path() };
    let own = format!("linux-headers-{release}");
    let bytes = match compiler {
        Compiler::Native => {
            let names: Vec<&str> = [own.as_str()].into_iter().chain(TOOLS).collect();
            root.add(arch, &mut |archive, watch| Ok(archive.closure(&names, watch)?), watch)?
        }
        Compiler::Cross { host, triplet } => {
            let mut programs = Vec::new();
            let mut choose = |archive: &Archive, watch: &mut dyn Watch| {
                let closure = archive.closure(&[own.as_str()], watch)?;
                let wrong = |why| ModuleError::Package { release: release.into(), why };
                let chosen = CrossPackages::choose(closure, triplet).map_err(wrong)?;
                programs = chosen.programs;
                Ok(chosen.headers)
            };
            let headers = root.add(arch, &mut choose, watch)?;
            let names: Vec<&str> = programs.iter().map(String::as_str).collect();
            let choose =
                &mut |archive: &Archive, watch: &mut dyn Watch| Ok(archive.closure(&names, watch)?);
            headers + root.add(host, choose, watch)?
        }
    };
    arrange(&stage.path().join("tree"), release)?;
    stage.commit()?;
    Ok(Headers { tree, bytes })
}

/// Chooses packages of an archive.
type Choose<'a> = dyn FnMut(&Archive, &mut dyn Watch) -> Result<Vec<Package>, ModuleError> + 'a;

/// A root of packages that is being made.
struct Root<'a> {
    release: &'a str,
    cache: &'a Cache,
    site: &'a Site,
    /// The folder that it is made in.
    stage: &'a Path,
}

impl Root<'_> {
    /// Adds the packages that are chosen from the archive of `arch`. Returns how many bytes were fetched.
    fn add(
        &self,
        arch: Arch,
        choose: &mut Choose<'_>,
        watch: &mut dyn Watch,
    ) -> Result<u64, ModuleError> {
        let name = Archive::name(Purpose::Kernels, arch);
        let _lock = self.cache.lock(&format!("apt-{name}"), watch)?;
        let archive = Archive::open(self.cache, self.site, Purpose::Kernels, arch)?;
        match self.unpack(&archive, choose, watch) {
            // There are no lists yet, or the archive has moved on since they came in.
            Err(ModuleError::Archive(ArchiveError::Failed { .. })) => {
                archive.update(watch)?;
                self.unpack(&archive, choose, watch)
            }
            other => other,
        }
    }

    fn unpack(
        &self,
        archive: &Archive,
        choose: &mut Choose<'_>,
        watch: &mut dyn Watch,
    ) -> Result<u64, ModuleError> {
        let packages = choose(archive, watch)?;
        let (debs, tree) = (self.stage.join("debs"), self.stage.join("tree"));
        // What an attempt that failed has left.
        if debs.is_dir() {
            fs::remove_dir_all(&debs).map_err(CacheError::io("remove", &debs))?;
        }
        let what = format!("linux-headers-{}", self.release);
        archive.fetch(&what, &packages, &debs, &tree, is_needed, watch)?;
        fs::remove_dir_all(&debs).map_err(CacheError::io("remove", &debs))?;
        Ok(packages.iter().map(|p| p.size).sum())
    }
}

fn is_needed(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // `lto1`, `x86_64-linux-gnu-lto-dump-16`; but not the compiler's plugin, which the linker loads.
    let is_useless =
        USELESS.iter().any(|useless| name.starts_with(useless)) || name.contains("-lto-");
    NEEDED.iter().any(|folder| path.starts_with(folder)) && !is_useless
}

/// Makes a root of the unpacked packages in `tree`: links to folders, which are never made of a
/// package, names that a system's set-up chooses, and places to mount on.
fn arrange(tree: &Path, release: &str) -> Result<(), ModuleError> {
    let lacking = |why| ModuleError::Package { release: release.into(), why };
    if !are_headers(tree, release) {
        return Err(lacking("contain no headers"));
    }
    for (name, target) in ROOT_LINKS {
        link(target, &tree.join(name))?;
    }
    let tools = below(&tree.join("usr/lib"), "linux-kbuild-");
    let tools = tools.first().ok_or_else(|| lacking("contain no programs to build with"))?;
    for folder in below(&tree.join("usr/src"), "linux-headers-") {
        for name in ["scripts", "tools"] {
            let target = format!("../../lib/{tools}/{name}");
            link(&target, &tree.join("usr/src").join(&folder).join(name))?;
        }
    }
    link("mawk", &tree.join("usr/bin/awk"))?;
    link("dash", &tree.join("usr/bin/sh"))?;
    for folder in ["src", "tmp", "proc", "dev"] {
        Cache::create(&tree.join(folder))?;
    }
    let null = tree.join("dev/null");
    write_new(&null, b"").map_err(CacheError::io("write", &null))?;
    Ok(())
}

/// The names in `folder` that begin with `prefix`.
fn below(folder: &Path, prefix: &str) -> Vec<String> {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.starts_with(prefix)).collect()
}

/// Makes a link unless a package has brought what it is for.
fn link(target: &str, place: &Path) -> Result<(), CacheError> {
    if place.symlink_metadata().is_ok() {
        return Ok(());
    }
    symlink(target, place).map_err(CacheError::io("create", place))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::watch::Unwatched;
    use wakescope_testing::Folder;

    #[test]
    fn of_the_packages_only_what_builds_is_kept() {
        for (path, want) in [
            ("usr/bin/make", true),
            ("usr/libexec/gcc/x86_64-linux-gnu/16/cc1", true),
            ("usr/libexec/gcc/x86_64-linux-gnu/16/liblto_plugin.so", true),
            ("usr/src/linux-headers-7.2.13+deb14-common/Makefile", true),
            ("usr/libexec/gcc/x86_64-linux-gnu/16/lto1", false),
            ("usr/bin/x86_64-linux-gnu-lto-dump-16", false),
            ("usr/lib/x86_64-linux-gnu/libasan.so.8.0.0", false),
            ("usr/libexec/gcc-cross/aarch64-linux-gnu/14/cc1", true),
            ("usr/aarch64-linux-gnu/bin/as", true),
            ("usr/aarch64-linux-gnu/lib/libc.so.6", false),
            ("usr/share/doc/make/copyright", false),
            ("etc/passwd", false),
            ("lib", true),
        ] {
            assert_eq!(is_needed(Path::new(path)), want, "{path}");
        }
    }

    #[test]
    fn unpacked_packages_become_a_root_with_links_inside_it() {
        let (folder, release) = (Folder::new("headers"), "6.1.0-56-cloud-amd64");
        let tree = folder.path();
        let e = arrange(tree, release).unwrap_err().to_string();
        assert!(e.ends_with("linux-headers-6.1.0-56-cloud-amd64 contain no headers"), "{e}");
        let headers = tree.join("usr/src/linux-headers-6.1.0-56-cloud-amd64");
        fs::create_dir_all(&headers).unwrap();
        fs::write(headers.join("Makefile"), "").unwrap();
        let e = arrange(tree, release).unwrap_err().to_string();
        assert!(e.ends_with("contain no programs to build with"), "{e}");
        for folder in ["usr/bin", "usr/lib/linux-kbuild-6.1/scripts", "lib/modules"] {
            fs::create_dir_all(tree.join(folder)).unwrap();
        }
        fs::write(tree.join("usr/lib/linux-kbuild-6.1/scripts/modpost"), "program").unwrap();
        arrange(tree, release).unwrap();
        assert_eq!(fs::read_to_string(headers.join("scripts/modpost")).unwrap(), "program");
        assert_eq!(fs::read_link(tree.join("bin")).unwrap(), Path::new("usr/bin"));
        assert!(tree.join("lib/modules").is_dir(), "what a package has brought stays");
        let inside = fs::canonicalize(tree).unwrap();
        for link in [headers.join("scripts"), tree.join("bin")] {
            assert!(fs::canonicalize(link).unwrap().starts_with(&inside));
        }
    }

    #[test]
    fn headers_that_others_may_write_are_not_built_with() {
        let (folder, release) = (Folder::new("open-headers"), "6.1.0-56-cloud-amd64");
        let cache = Cache::at(folder.path());
        let make = folder.write(format!("headers/{release}/tree/usr/bin/make"), "program");
        let nowhere = Site::of("http://127.0.0.1:9/debian", Some("/none".into())).unwrap();
        let found = || {
            let (arch, native) = (Arch::Amd64, Compiler::Native);
            fetch(release, arch, native, &cache, &nowhere, &mut Unwatched).map(|h| h.bytes)
        };
        fs::set_permissions(&make, Permissions::from_mode(0o755)).unwrap();
        assert!(matches!(found(), Ok(0)));
        fs::set_permissions(&make, Permissions::from_mode(0o757)).unwrap();
        let untrusted = found();
        let Err(ModuleError::Archive(ArchiveError::Cache(CacheError::Untrusted { path, .. }))) =
            untrusted
        else {
            panic!("{untrusted:?}");
        };
        assert_eq!(path, make);
    }
}
