//! Where files of modules with debug information lie: distributions and builders have their ways.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use wakescope_sys::input::open_input;

use super::wanted::Wanted;

/// Where debug packages put all they have.
const DEBUG: &str = "/usr/lib/debug";

/// How many files and folders of a tree are looked at: four times as many as a kernel's tree of
/// modules has, of any distribution.
const MOST_ENTRIES: usize = 40_000;

/// How deep folders lie in one another.
const DEEPEST: usize = 24;

/// How many files of a module are tried in one place.
const MOST_FILES: usize = 4;

/// Larger than the list of modules of any build, in bytes.
const LARGEST_LIST: u64 = 4 << 20;

/// A place where files of modules may be.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A folder where they lie by their build ids: `xx/yyyy.debug`.
    ByBuild(PathBuf),
    /// A folder in which, or somewhere below, they lie by their names: `ext4.ko.debug`, `ext4.ko`.
    Tree(PathBuf),
    /// The folder of a build, whose list of modules says where they are.
    Build(PathBuf),
    /// A folder in which they lie, without those below it.
    Folder(PathBuf),
}

impl Place {
    /// Those for modules of the kernel `release` whose image, if there is one, is `vmlinux`: first what
    /// belongs to that, then what is installed.
    pub(super) fn all(release: &str, vmlinux: Option<&Path>) -> Vec<Self> {
        // It comes from a record, and is to be one folder's name.
        let mut parts = Path::new(release).components();
        let is_name = matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None));
        let release = Some(release).filter(|_| is_name);
        let mut places = Vec::new();
        for image in vmlinux.map(paths_of).unwrap_or_default() {
            // Of a package that was unpacked somewhere.
            let debug = image.ancestors().skip(1).find(|dir| dir.ends_with("debug"));
            places.extend(debug.into_iter().flat_map(|dir| Self::of_debug(dir, release)));
            let Some(dir) = image.parent() else { continue };
            places.extend([Self::Build(dir.into()), Self::Folder(dir.into())]);
            // That of the release itself, and what was installed to a folder, which has `boot` in it.
            places
                .extend(release.filter(|name| dir.ends_with(name)).map(|_| Self::Tree(dir.into())));
            let above = [Some(dir), dir.parent().filter(|_| dir.ends_with("boot"))];
            places.extend(above.into_iter().flatten().flat_map(|dir| Self::trees(dir, release)));
        }
        places.extend(Self::of_debug(Path::new(DEBUG), release));
        places.extend(Self::trees(Path::new("/"), release));
        let installed = release.map(|release| Path::new("/lib/modules").join(release));
        places.extend(installed.map(|dir| Self::Build(dir.join("build"))));
        let mut seen = Vec::new();
        places.retain(|place| is_there(place, &mut seen));
        places
    }

    fn of_debug(dir: &Path, release: Option<&str>) -> impl Iterator<Item = Self> {
        std::iter::once(Self::ByBuild(dir.join(".build-id"))).chain(Self::trees(dir, release))
    }

    fn trees(dir: &Path, release: Option<&str>) -> impl Iterator<Item = Self> {
        let below =
            |release| ["lib/modules", "usr/lib/modules"].map(|at| dir.join(at).join(release));
        let trees = release.map(below);
        trees.into_iter().flatten().map(Self::Tree)
    }

    fn dir(&self) -> &Path {
        let (Self::ByBuild(dir) | Self::Tree(dir) | Self::Build(dir) | Self::Folder(dir)) = self;
        dir
    }

    /// Files that may be those of modules that are `wanted`, by the modules' names.
    pub(super) fn files(&self, wanted: &[Wanted]) -> BTreeMap<String, Vec<PathBuf>> {
        let names: BTreeSet<&str> = wanted.iter().map(|module| module.name.as_str()).collect();
        let mut files = Files { names, found: BTreeMap::new() };
        match self {
            Self::ByBuild(dir) => {
                for Wanted { name, build_id, .. } in wanted {
                    let path = by_build(dir, build_id).filter(|path| path.exists());
                    path.into_iter().for_each(|path| files.add(name, path));
                }
            }
            Self::Tree(dir) => files.add_tree(dir, DEEPEST),
            Self::Folder(dir) => files.add_tree(dir, 0),
            Self::Build(dir) => files.add_listed(dir),
        }
        files.found
    }
}

/// Whether that folder exists and has not been `seen` yet: there are many ways to one.
fn is_there(place: &Place, seen: &mut Vec<(std::mem::Discriminant<Place>, PathBuf)>) -> bool {
    let Ok(dir) = place.dir().canonicalize() else { return false };
    let this = (std::mem::discriminant(place), dir);
    let is_new = !seen.contains(&this);
    seen.extend(is_new.then_some(this));
    is_new
}

/// The image as it was named and as it is: packages have links to it.
fn paths_of(image: &Path) -> Vec<PathBuf> {
    let named = std::path::absolute(image).ok();
    let own = image.canonicalize().ok().filter(|own| named.as_ref() != Some(own));
    named.into_iter().chain(own).collect()
}

/// Where the file of a build lies; `None` if its id is none.
fn by_build(dir: &Path, build_id: &str) -> Option<PathBuf> {
    let is_id = build_id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let (first, rest) = build_id.split_at_checked(2).filter(|_| is_id)?;
    (!rest.is_empty()).then(|| dir.join(first).join(format!("{rest}.debug")))
}

/// The module that a file is of, by its name: in those of files `-` may stand for `_`.
fn module_of(file: &str) -> Option<String> {
    let file = file.strip_suffix(".debug").unwrap_or(file);
    file.strip_suffix(".ko").map(|name| name.replace('-', "_"))
}

/// The list of the modules of a build in `dir`.
fn list_of(dir: &Path) -> Option<String> {
    let path = dir.join("modules.order");
    let mut list = String::new();
    open_input(&path).ok()?.take(LARGEST_LIST).read_to_string(&mut list).ok()?;
    Some(list)
}

/// Files that were found of modules.
struct Files<'n> {
    names: BTreeSet<&'n str>,
    found: BTreeMap<String, Vec<PathBuf>>,
}

impl Files<'_> {
    fn add(&mut self, module: &str, path: PathBuf) {
        let paths = self.found.entry(module.to_owned()).or_default();
        if paths.len() < MOST_FILES {
            paths.push(path);
        }
    }

    /// Adds the file at `path` if it is one of a module that is wanted.
    fn add_named(&mut self, path: PathBuf) {
        let module = path.file_name().and_then(|name| module_of(name.to_str()?));
        if let Some(module) = module.filter(|module| self.names.contains(module.as_str())) {
            self.add(&module, path);
        }
    }

    /// Those in `dir`, and in folders below it as deep as that, in order of their names.
    fn add_tree(&mut self, dir: &Path, deepest: usize) {
        let mut left = MOST_ENTRIES;
        let mut folders = vec![(dir.to_owned(), 0)];
        while let Some((folder, depth)) = folders.pop() {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(left);
            let mut entries: Vec<_> = entries.collect();
            left -= entries.len();
            entries.sort_by_key(fs::DirEntry::file_name);
            for entry in entries {
                // Links to folders, as to a build, are not followed.
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() && depth < deepest => {
                        folders.push((entry.path(), depth + 1));
                    }
                    Ok(kind) if !kind.is_dir() => self.add_named(entry.path()),
                    _ => {}
                }
            }
        }
    }

    /// Those of a build in `dir`. Its list names `.ko` files or their objects, from there on or as they
    /// will be installed.
    fn add_listed(&mut self, dir: &Path) {
        for line in list_of(dir).unwrap_or_default().lines() {
            let path = Path::new(line).with_extension("ko");
            let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
            let module = path.file_name().and_then(|name| module_of(name.to_str()?));
            if !is_inside || module.is_none_or(|module| !self.names.contains(module.as_str())) {
                continue;
            }
            let from_build = path.strip_prefix("kernel").unwrap_or(&path);
            let all = [dir.join(from_build), dir.join(&path)];
            if let Some(path) = all.into_iter().find(|path| path.exists()) {
                self.add_named(path);
            }
        }
    }
}

#[cfg(test)]
mod tests;
