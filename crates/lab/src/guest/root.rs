//! Root images: programs of Debian's packages for guests, which have only wakescope otherwise.
//!
//! An image is a second archive behind that of the guest, which the kernel unpacks into the same root. It is
//! kept in the cache by the names of the packages: `images/amd64/gcc,libc6-dev/{root.cpio,image.json}`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::cpio::Archive as Cpio;
use crate::archive::{Archive, ArchiveError, Package, Purpose, Site};
use crate::cache::{Cache, CacheError, read_bounded};
use crate::kernel::Arch;
use crate::store::note_use;
use crate::sum::Memo;
use crate::watch::Watch;

/// The schema of image.json. Changes when images are made in another way of the same packages.
const SCHEMA: &str = "wakescope.image/1";

/// The file of an image that guests get.
pub(crate) const FILE: &str = "root.cpio";

/// What is noted about it.
pub(crate) const CARD: &str = "image.json";

/// The largest image.json that is read.
const LARGEST_CARD: u64 = 1 << 20;

/// The largest image, bytes: while the kernel unpacks it, it is in the guest's memory of 1.25 GiB twice.
const LARGEST_IMAGE: usize = 400 << 20;

/// The most packages that can be named, and the most bytes of their names: they become the name of a folder.
const MOST_NAMES: usize = 32;
const LONGEST_NAMES: usize = 200;

/// Folders that Debian's systems have as links to those of the same name below /usr.
const MERGED: [&str; 4] = ["bin", "lib", "lib64", "sbin"];

/// No program needs them.
const USELESS: [&str; 9] =
    ["bash-completion", "bug", "doc", "doc-base", "info", "lintian", "locale", "man", "zsh"];

/// The Debian packages that an image is made of, beside those that they depend on.
///
/// ```
/// use wakescope_lab::guest::root::Names;
/// let names: Names = "libc6-dev,gcc".parse().unwrap();
/// assert_eq!(names.to_string(), "gcc,libc6-dev");
/// assert!("../etc".parse::<Names>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names(BTreeSet<String>);

impl Names {
    /// Whether this package is named.
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.iter().map(String::as_str).collect::<Vec<_>>().join(","))
    }
}

impl FromStr for Names {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut names = BTreeSet::new();
        for name in text.split(',') {
            // Debian's policy for names of packages (5.6.1).
            let allowed =
                |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"+-.".contains(&b);
            let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
            if !begins || name.len() < 2 || !name.bytes().all(allowed) {
                let shown: String = name.chars().take(40).collect();
                return Err(format!("`{shown}` is not the name of a Debian package"));
            }
            names.insert(name.to_owned());
        }
        if names.len() > MOST_NAMES || text.len() > LONGEST_NAMES {
            return Err(format!(
                "name at most {MOST_NAMES} packages in {LONGEST_NAMES} characters"
            ));
        }
        Ok(Self(names))
    }
}

/// What image.json holds.
#[derive(Debug, Serialize, Deserialize)]
struct Card {
    schema: String,
    packages: Vec<Package>,
}

/// An image in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootImage {
    /// The file.
    pub path: PathBuf,
    /// Its SHA-256, in hexadecimal.
    pub sha256: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// All packages that it was made of.
    pub packages: Vec<Package>,
}

/// An image that is in the cache now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The image.
    pub image: RootImage,
    /// Whether it was there before.
    pub was_there: bool,
    /// Bytes that were fetched for it.
    pub bytes: u64,
}

/// The image of these packages, if the cache has it; it is used then.
pub fn find(cache: &Cache, arch: Arch, names: &Names, memo: &mut Memo) -> Option<RootImage> {
    let folder = place(cache, arch, names);
    let card = read_bounded(&folder.join(CARD), LARGEST_CARD).ok()?;
    let card: Card = serde_json::from_slice(&card).ok()?;
    let path = folder.join(FILE);
    let bytes = fs::metadata(&path).ok()?.len();
    let sha256 = memo.sum(&path).ok()?;
    let Card { schema, packages } = card;
    if schema != SCHEMA {
        return None;
    }
    // No cell names it yet, perhaps, and it may have been made long ago.
    note_use(&folder);
    Some(RootImage { path, sha256, bytes, packages })
}

/// Sees to it that the cache has an image of these packages. One that is there is taken as it is, unless
/// `refresh` looks for newer packages.
pub fn fetch(
    cache: &Cache,
    site: &Site,
    arch: Arch,
    names: &Names,
    refresh: bool,
    watch: &mut dyn Watch,
) -> Result<Fetched, ArchiveError> {
    let mut memo = Memo::open(cache);
    let mut there = || find(cache, arch, names, &mut memo);
    if let Some(image) = there().filter(|_| !refresh) {
        return Ok(Fetched { image, was_there: true, bytes: 0 });
    }
    let _lock = cache.lock(&format!("apt-{}", Archive::name(Purpose::Programs, arch)), watch)?;
    // Another lab may have made it while this one waited.
    if let Some(image) = there().filter(|_| !refresh) {
        return Ok(Fetched { image, was_there: true, bytes: 0 });
    }
    let archive = Archive::open(cache, site, Purpose::Programs, arch)?;
    archive.update(watch)?;
    let named: Vec<&str> = names.0.iter().map(String::as_str).collect();
    let mut packages = archive.closure(&named, watch)?;
    packages.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some(image) = there().filter(|image| image.packages == packages) {
        return Ok(Fetched { image, was_there: true, bytes: 0 });
    }
    let stage = cache.stage(&place(cache, arch, names))?;
    let (debs, tree) = (stage.path().join("debs"), stage.path().join("tree"));
    archive.fetch(&names.to_string(), &packages, &debs, &tree, is_needed, watch)?;
    let too_large = || ArchiveError::Package {
        what: names.to_string(),
        why: "no guest has room for it".into(),
    };
    let image = pack(&tree)?.ok_or_else(too_large)?;
    cache.write(&stage.path().join(FILE), &image)?;
    for folder in [debs, tree] {
        fs::remove_dir_all(&folder).map_err(CacheError::io("remove", &folder))?;
    }
    let bytes = packages.iter().map(|package| package.size).sum();
    let card = Card { schema: SCHEMA.into(), packages };
    let text = serde_json::to_vec_pretty(&card).unwrap_or_default();
    cache.write(&stage.path().join(CARD), &text)?;
    let folder = stage.commit()?;
    let incomplete =
        || ArchiveError::Package { what: names.to_string(), why: "its image is gone".into() };
    let image = find(cache, arch, names, &mut memo);
    let image = image.filter(|image| image.path.starts_with(&folder)).ok_or_else(incomplete)?;
    Ok(Fetched { image, was_there: false, bytes })
}

/// The files of all images in the cache.
pub(crate) fn files(cache: &Cache) -> Vec<PathBuf> {
    let folders = |folder: PathBuf| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path())
    };
    let images = folders(cache.images()).flat_map(folders).map(|folder| folder.join(FILE));
    images.filter(|file| file.is_file()).collect()
}

fn place(cache: &Cache, arch: Arch, names: &Names) -> PathBuf {
    cache.images().join(arch.to_string()).join(names.to_string())
}

/// Whether a file of a package is one that programs may need.
fn is_needed(path: &Path) -> bool {
    let mut parts = path.iter().filter_map(|part| part.to_str());
    match (parts.next(), parts.next(), parts.next()) {
        (Some("usr"), Some("share"), Some(folder)) => !USELESS.contains(&folder),
        (Some("usr" | "etc"), ..) => true,
        (Some(folder), ..) => MERGED.contains(&folder),
        _ => false,
    }
}

/// An archive of the files in `tree`, the same bytes for the same files; `None` if it would be too large.
fn pack(tree: &Path) -> Result<Option<Vec<u8>>, CacheError> {
    let mut files = Files::default();
    files.add(tree, "")?;
    let mut archive = Cpio::default();
    for folder in &files.folders {
        archive.dir(folder);
    }
    for folder in MERGED {
        if files.folders.contains(&format!("usr/{folder}")) {
            archive.link(folder, &format!("usr/{folder}"));
        }
    }
    // In the order of their first names, whatever numbers the disk gave them.
    let mut by_name: Vec<&File> = files.by_inode.values().collect();
    by_name.sort_by(|a, b| a.names.cmp(&b.names));
    for File { names, path, mode } in by_name {
        let content = fs::read(path).map_err(CacheError::io("read", path))?;
        if archive.len() + content.len() > LARGEST_IMAGE {
            return Ok(None);
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        archive.file_of_names(&names, *mode, &content);
    }
    Ok(Some(archive.finish()))
}

/// A file, under all its names in the guest.
struct File {
    names: BTreeSet<String>,
    path: PathBuf,
    mode: u32,
}

/// What is in a tree.
#[derive(Default)]
struct Files {
    folders: BTreeSet<String>,
    by_inode: BTreeMap<u64, File>,
}

impl Files {
    /// Adds what is in `folder`, which is called `name` in the guest; empty for its root.
    fn add(&mut self, folder: &Path, name: &str) -> Result<(), CacheError> {
        let failed = CacheError::io("read", folder);
        let entries = fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        for entry in entries.map_err(failed)? {
            let path = entry.path();
            // The unpacker makes no other names than packages have, and these are ASCII.
            let Some(own) = path.file_name().and_then(|own| own.to_str()) else { continue };
            let own = match name {
                "" if MERGED.contains(&own) => format!("usr/{own}"),
                "" => own.to_owned(),
                name => format!("{name}/{own}"),
            };
            let meta = path.symlink_metadata().map_err(CacheError::io("read", &path))?;
            if meta.is_dir() {
                let above = Path::new(&own).ancestors().filter_map(Path::to_str);
                self.folders.extend(above.filter(|name| !name.is_empty()).map(String::from));
                self.add(&path, &own)?;
            } else if meta.is_file() {
                let mode = if meta.permissions().mode() & 0o100 == 0 { 0o644 } else { 0o755 };
                let file = File { names: BTreeSet::new(), path, mode };
                self.by_inode.entry(meta.ino()).or_insert(file).names.insert(own);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
