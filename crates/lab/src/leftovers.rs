//! What nothing needs any more. Each build of wakescope may leave some behind:
//! - images that no kept cell was run with, and symbols of such kernels;
//! - saved machines that no kept cell was run on;
//! - root images that no kept cell was run with;
//! - modules and plugins of other sources, and what modules were built with;
//! - notes of bisections whose images are gone.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use wakescope_core::hex::is_hex;
use wakescope_decode::scope::KERNEL_HEAD;
use wakescope_sys::machine::open_without_waiting;

use crate::cache::{Cache, CacheError, age_s};
use crate::guest::root;
use crate::kernel::image::identify;
use crate::machine::state::HEAD;
use crate::module;
use crate::scope::plugin;
use crate::store::{CellStore, Lookup, ROOT, StoreError};
use crate::sum::Memo;
use crate::watch::Unwatched;

/// A lab that has just begun has no cell yet that names what it boots: what is younger may be needed after all. Images
/// of guests and root images are as old as their last use. Saved machines are not needed: a lab that finds none boots.
const YOUNG_S: u64 = 3600;

/// What an image of a guest begins with.
const MAGIC: &[u8; 6] = b"070701";

/// What a leftover is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The image of a guest, or of a kernel that was built.
    Image,
    /// The symbols of a kernel, as [`crate::scope`] reads them from a guest.
    Symbols,
    /// A machine that was saved.
    State,
    /// A module that was built.
    Module,
    /// What modules for a kernel are built with.
    Headers,
    /// A plugin of the emulator.
    Plugin,
    /// A root image for guests.
    Root,
    /// What a bisection notes of its builds.
    Note,
}

/// A file, or a folder with all that is in it, that nothing needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// What it is.
    pub kind: Kind,
    /// Where it is.
    pub path: PathBuf,
    /// The length of the file, or of all files in the folder.
    pub bytes: u64,
    /// Whether it is younger than an hour.
    pub is_young: bool,
}

impl Leftover {
    /// Removes it: as a whole, or not at all as far as other labs can see.
    ///
    /// # Errors
    /// The operating system's.
    pub fn remove(&self, cache: &Cache) -> Result<(), CacheError> {
        match self.kind {
            Kind::Image | Kind::Symbols | Kind::State | Kind::Note => {
                fs::remove_file(&self.path).map_err(CacheError::io("remove", &self.path))
            }
            Kind::Module | Kind::Plugin | Kind::Root => cache.discard(&self.path),
            Kind::Headers => {
                // Another version of wakescope may be building with them.
                let release = self.path.file_name().unwrap_or_default().to_string_lossy();
                let _unused = cache.lock(&module::building(&release), &mut Unwatched)?;
                cache.discard(&self.path)
            }
        }
    }
}

/// What
/// - is a guest image, or a kernel that was built for a bisection, that no cell of `store` was run with;
/// - is the symbols of a kernel that no cell was run with;
/// - is a saved machine that no cell was run on;
/// - is a root image that no cell was run with;
/// - is a module or a plugin of other sources than those of this build; of plugins, or another compiler's;
/// - was needed to build the module for a kernel, which is there;
/// - is a note of a bisection of which no image is there.
///
/// What killed labs left unfinished is removed first: it counts as nothing.
///
/// # Errors
/// If the cells cannot be listed.
pub fn leftovers(cache: &Cache, store: &CellStore) -> Result<Vec<Leftover>, StoreError> {
    // Where it cannot be removed, no more than it stays.
    let _ = cache.sweep();
    let needed = needed(store)?;
    let mut all = images(cache, &needed);
    all.extend(notes(cache));
    all.extend(roots(cache, &needed));
    all.extend(unneeded(files_in(&cache.maps(), Kind::Symbols, is_symbols), &needed));
    all.extend(unneeded(files_in(&cache.states(), Kind::State, is_state), &needed));
    all.extend(modules(cache));
    all.extend(headers(cache));
    all.extend(plugins(cache));
    Ok(all)
}

/// The checksums of the images that cells were run with, and of the recipes of their boots.
fn needed(store: &CellStore) -> Result<BTreeSet<String>, StoreError> {
    let mut needed = BTreeSet::new();
    for key in store.keys()? {
        if let Lookup::Stored(cell) = store.peek(&key) {
            let parts =
                ["kernel", "guest", ROOT].map(|part| cell.recipe.part(part).map(String::from));
            needed.extend(parts.into_iter().flatten());
            needed.insert(cell.recipe.boot().key().as_str().into());
        }
    }
    Ok(needed)
}

fn images(cache: &Cache, needed: &BTreeSet<String>) -> Vec<Leftover> {
    let mut memo = Memo::open(cache);
    let guests = files_in(&cache.guests(), Kind::Image, is_guest);
    let built = files_in(&cache.built(), Kind::Image, is_built_kernel);
    let all = guests.into_iter().chain(built);
    all.filter(|file| memo.sum(&file.path).is_ok_and(|sum| !needed.contains(&sum))).collect()
}

/// A note says which recipe a bisection began with, as the names of its images do.
fn notes(cache: &Cache) -> Vec<Leftover> {
    let images = files_in(&cache.built(), Kind::Image, is_built_kernel);
    let is_kept = |recipe: &str| {
        images.iter().any(|image| image.path.to_str().is_some_and(|path| path.ends_with(recipe)))
    };
    let mut all = files_in(&cache.built(), Kind::Note, |_, name| {
        name.strip_prefix("origin-").is_some_and(|recipe| is_hex(recipe, 12))
    });
    all.retain(|note| {
        let recipe = fs::read_to_string(&note.path).ok().filter(|recipe| is_hex(recipe, 12));
        recipe.is_some_and(|recipe| !is_kept(&recipe))
    });
    all
}

fn roots(cache: &Cache, needed: &BTreeSet<String>) -> Vec<Leftover> {
    let mut memo = Memo::open(cache);
    let folders = folders_in(&cache.images()).into_iter().flat_map(|(_, arch)| folders_in(&arch));
    let mut is_unneeded = |folder: &Path| {
        let file = folder.join(root::FILE);
        let is_own = begins_with(&file, MAGIC) && folder.join(root::CARD).is_file();
        is_own && memo.sum(&file).is_ok_and(|sum| !needed.contains(&sum))
    };
    let unneeded = folders.filter(|(_, folder)| is_unneeded(folder));
    unneeded.filter_map(|(_, folder)| a_folder(Kind::Root, folder)).collect()
}

/// Those that are named by a checksum that no cell needs: that of a kernel, or of the recipe of a boot.
fn unneeded(mut all: Vec<Leftover>, needed: &BTreeSet<String>) -> Vec<Leftover> {
    all.retain(|file| {
        let name = file.path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| !needed.contains(name))
    });
    all
}

/// Cells do not need them: their guests' images hold what they were run with.
fn modules(cache: &Cache) -> Vec<Leftover> {
    let mut found = Vec::new();
    for (release, folder) in folders_in(&cache.modules()) {
        let current = module::place(cache, &release);
        for (name, place) in folders_in(&folder) {
            if is_hex(&name, module::KEY_LENGTH) && place != current && holds(&place, module::FILE)
            {
                found.extend(a_folder(Kind::Module, place));
            }
        }
    }
    found
}

/// Without a compiler nobody knows which one is of this build: none is removed.
fn plugins(cache: &Cache) -> Vec<Leftover> {
    let all = folders_in(&cache.plugins());
    let mut own = all.into_iter().filter(|(name, place)| plugin::is_plugin(name, place)).peekable();
    let Some(current) = own.peek().and_then(|_| plugin::current(cache)) else { return Vec::new() };
    let others = own.filter(|(_, place)| *place != current);
    others.filter_map(|(_, place)| a_folder(Kind::Plugin, place)).collect()
}

fn headers(cache: &Cache) -> Vec<Leftover> {
    let is_built = |release: &str| module::place(cache, release).join(module::FILE).is_file();
    let is_own = |(release, place): &(String, PathBuf)| {
        holds(place, "tree")
            && module::are_headers(&place.join("tree"), release)
            && is_built(release)
    };
    let all = folders_in(&cache.headers()).into_iter().filter(is_own);
    all.filter_map(|(_, place)| a_folder(Kind::Headers, place)).collect()
}

/// The folders in `folder`, with their names. A link to one is none, and one that is reached over a link
/// holds none.
fn folders_in(folder: &Path) -> Vec<(String, PathBuf)> {
    let is_folder = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    if !is_folder(folder) {
        return Vec::new();
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries.filter_map(|e| Some((e.file_name().to_str()?.to_owned(), e.path())));
    let mut all: Vec<_> = named.filter(|(_, path)| is_folder(path)).collect();
    all.sort();
    all
}

/// Whether an entry of this name is all that is in `folder`.
fn holds(folder: &Path, name: &str) -> bool {
    let mut entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.next().is_some_and(|e| e.file_name() == name) && entries.next().is_none()
}

fn a_folder(kind: Kind, path: PathBuf) -> Option<Leftover> {
    let is_young = is_young(&fs::symlink_metadata(&path).ok()?);
    Some(Leftover { kind, bytes: bytes_below(&path), path, is_young })
}

fn is_young(meta: &fs::Metadata) -> bool {
    age_s(meta) <= YOUNG_S
}

/// The length of all files below `folder`; links are not followed.
fn bytes_below(folder: &Path) -> u64 {
    let mut bytes = 0;
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => open.push(entry.path()),
                Ok(meta) if meta.is_file() => bytes += meta.len(),
                _ => {}
            }
        }
    }
    bytes
}

/// The files in `folder` that are what the lab puts there. Of a link to a folder none is: nobody
/// knows what else is where that leads.
fn files_in(folder: &Path, kind: Kind, is_own: fn(&Path, &str) -> bool) -> Vec<Leftover> {
    if !fs::symlink_metadata(folder).is_ok_and(|found| found.is_dir()) {
        return Vec::new();
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.filter_map(|entry| a_file(kind, &entry.path()));
    let own = |file: &Leftover| {
        let name = file.path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| is_own(&file.path, name))
    };
    files.filter(own).collect()
}

/// Whether a file has the name that [`crate::matrix`] gives to guests, and their format.
fn is_guest(path: &Path, name: &str) -> bool {
    let is_named = name.strip_suffix(".cpio").is_some_and(|sum| is_hex(sum, 64));
    is_named && begins_with(path, MAGIC)
}

/// Whether a file has the name and the beginning of a kernel's symbols.
fn is_symbols(path: &Path, name: &str) -> bool {
    is_hex(name, 64) && begins_with(path, KERNEL_HEAD.as_bytes())
}

/// Whether a file has the name and the beginning of a saved machine.
fn is_state(path: &Path, name: &str) -> bool {
    is_hex(name, 64) && begins_with(path, HEAD)
}

fn begins_with(path: &Path, magic: &[u8]) -> bool {
    let mut found = vec![0; magic.len()];
    let read = open_without_waiting(path).and_then(|mut file| file.read_exact(&mut found));
    read.is_ok() && found == magic
}

/// Whether a file has the name that builds of a bisection get, and is a kernel.
fn is_built_kernel(path: &Path, name: &str) -> bool {
    name.rsplit_once('-').is_some_and(|(_, key)| is_hex(key, 12)) && identify(path).is_ok()
}

/// The file at `path`, if it is one.
fn a_file(kind: Kind, path: &Path) -> Option<Leftover> {
    let meta = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some(Leftover { kind, path: path.into(), bytes: meta.len(), is_young: is_young(&meta) })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use wakescope_sys::clock::{self, Clock};

    use super::*;
    use crate::testing::bzimage;
    use wakescope_testing::Folder;

    const OLD: u64 = YOUNG_S + 60;

    /// Writes a file that was changed so long ago.
    fn put(cache: &Cache, path: &Path, bytes: &[u8], age_s: u64) {
        cache.write(path, bytes).unwrap();
        make_old(path, age_s);
    }

    fn make_old(path: &Path, age_s: u64) {
        let now = clock::read(Clock::Realtime) / 1_000_000_000;
        let time = UNIX_EPOCH + Duration::from_secs(now - age_s);
        fs::File::open(path).unwrap().set_modified(time).unwrap();
    }

    fn names(found: &[Leftover]) -> Vec<&str> {
        found.iter().filter_map(|l| l.path.file_name()?.to_str()).collect()
    }

    /// What may be removed whatever begins at this moment.
    fn removable(cache: &Cache, store: &CellStore) -> Vec<Leftover> {
        let mut found = leftovers(cache, store).unwrap();
        found.retain(|leftover| !leftover.is_young);
        found
    }

    #[test]
    fn old_images_that_no_cell_names_are_left_over_and_nothing_else() {
        let folder = Folder::new("leftovers");
        let cache = Cache::at(folder.path());
        let store = CellStore::open(&cache.cells()).unwrap();
        let guest = format!("{}.cpio", "0a".repeat(32));
        let young = format!("{}.cpio", "0b".repeat(32));
        let text = format!("{}.cpio", "0c".repeat(32));
        let built = "v6.1-0123456789ab";
        for (name, bytes, age_s) in [
            (guest.as_str(), "0707010…", OLD),
            (&young, "0707010…", 0),
            (&text, "a diary", OLD),
            ("photos.cpio", "0707010…", OLD),
            ("holidays", "0707010…", OLD),
        ] {
            put(&cache, &cache.guests().join(name), bytes.as_bytes(), age_s);
        }
        put(&cache, &cache.built().join(built), &bzimage("6.1.0"), OLD);
        put(&cache, &cache.built().join("notes-0123456789ab"), b"a diary", OLD);
        put(&cache, &cache.built().join("bzImage"), &bzimage("6.1.0"), OLD);
        // A bisection whose image is there needs its note.
        put(&cache, &cache.built().join("origin-aaaaaaaaaaaa"), b"0123456789ab", OLD);
        put(&cache, &cache.built().join("origin-bbbbbbbbbbbb"), b"cccccccccccc", OLD);
        put(&cache, &cache.built().join("origin-dddddddddddd"), b"a diary", OLD);
        let found = removable(&cache, &store);
        assert_eq!(names(&found), [guest.as_str(), built, "origin-bbbbbbbbbbbb"]);
        assert_eq!(found[0].bytes, "0707010…".len() as u64);
        // Behind a link lies what is somebody else's.
        let elsewhere = folder.path().join("elsewhere");
        fs::rename(cache.guests(), &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, cache.guests()).unwrap();
        assert_eq!(names(&removable(&cache, &store)), [built, "origin-bbbbbbbbbbbb"]);
    }

    #[test]
    fn symbols_of_kernels_and_machines_that_no_cell_was_run_with_are_left_over() {
        let head = std::str::from_utf8(HEAD).unwrap();
        let cases = [
            (Kind::Symbols, Cache::maps as fn(&Cache) -> PathBuf, format!("{KERNEL_HEAD}\n")),
            (Kind::State, Cache::states, format!("{head}sum")),
        ];
        for (kind, folder_of, own) in cases {
            let folder = Folder::new("leftovers-named");
            let cache = Cache::at(folder.path());
            let store = CellStore::open(&cache.cells()).unwrap();
            let [old, young, text] = ["0a", "0b", "0c"].map(|byte| byte.repeat(32));
            for (name, bytes, age_s) in [
                (old.as_str(), own.as_str(), OLD),
                (&young, &own, 0),
                (&text, "a diary", OLD),
                ("photos", &own, OLD),
            ] {
                put(&cache, &folder_of(&cache).join(name), bytes.as_bytes(), age_s);
            }
            let young_ones = leftovers(&cache, &store).unwrap();
            let young_ones: Vec<_> = young_ones.into_iter().filter(|l| l.is_young).collect();
            assert_eq!(names(&young_ones), [young.as_str()]);
            let found = removable(&cache, &store);
            assert_eq!((names(&found), found[0].kind), (vec![old.as_str()], kind));
            let needed: BTreeSet<String> = [old.clone()].into();
            assert_eq!(unneeded(found.clone(), &needed), []);
            found[0].remove(&cache).unwrap();
            assert_eq!(removable(&cache, &store), []);
        }
    }

    #[test]
    fn root_images_that_no_cell_names_are_left_over() {
        let folder = Folder::new("leftovers-roots");
        let cache = Cache::at(folder.path());
        let store = CellStore::open(&cache.cells()).unwrap();
        let put_image = |names: &str, bytes: &[u8], age_s| {
            let place = cache.images().join("amd64").join(names);
            cache.write(&place.join(root::FILE), bytes).unwrap();
            cache.write(&place.join(root::CARD), b"{}").unwrap();
            make_old(&place, age_s);
            place
        };
        let old = put_image("gcc,libc6-dev", b"070701a", OLD);
        put_image("dbench", b"070701b", 0);
        put_image("photos", b"a diary", OLD);
        let found = removable(&cache, &store);
        assert_eq!(
            found,
            [Leftover { kind: Kind::Root, path: old.clone(), bytes: 9, is_young: false }]
        );
        let sum = crate::sum::of_bytes(b"070701a");
        let mut others = roots(&cache, &[sum].into());
        others.retain(|leftover| !leftover.is_young);
        assert_eq!(others, []);
        found[0].remove(&cache).unwrap();
        assert_eq!((removable(&cache, &store), old.exists()), (Vec::new(), false));
    }

    #[test]
    fn plugins_of_other_versions_are_left_over() {
        let folder = Folder::new("leftovers-plugins");
        let cache = Cache::at(folder.path());
        let store = CellStore::open(&cache.cells()).unwrap();
        let Some(current) = plugin::current(&cache) else {
            let name = "plugins_of_other_versions_are_left_over";
            return wakescope_testing::skip(name, "there is no C compiler");
        };
        let [old, young, more] =
            ["0a", "0b", "0c"].map(|byte| cache.plugins().join(byte.repeat(8)));
        for (place, age_s) in [(&current, OLD), (&old, OLD), (&young, 0), (&more, OLD)] {
            cache.write(&place.join("scope.so"), b"plugin").unwrap();
            cache.write(&place.join("scope.c"), b"source").unwrap();
            if place == &more {
                cache.write(&place.join("diary"), b"mine").unwrap();
            }
            make_old(place, age_s);
        }
        let found = removable(&cache, &store);
        assert_eq!(
            found,
            [Leftover { kind: Kind::Plugin, path: old.clone(), bytes: 12, is_young: false }]
        );
        found[0].remove(&cache).unwrap();
        assert_eq!(removable(&cache, &store), []);
        assert!(!old.exists() && current.exists() && young.exists() && more.exists());
    }

    #[test]
    fn modules_of_other_sources_and_what_they_were_built_with_are_left_over() {
        let folder = Folder::new("leftovers-modules");
        let cache = Cache::at(folder.path());
        let store = CellStore::open(&cache.cells()).unwrap();
        let other = |release: &str| cache.modules().join(release).join("0123456789abcdef");
        for (place, age_s) in [
            (module::place(&cache, "6.1.0-9-cloud-amd64"), OLD),
            (other("6.1.0-9-cloud-amd64"), OLD),
            (other("7.2-rt-amd64"), 0),
            (cache.modules().join("6.1.0-9-cloud-amd64/my-own"), OLD),
        ] {
            cache.write(&place.join(module::FILE), b"module").unwrap();
            make_old(&place, age_s);
        }
        // A folder that holds more than a module is nobody's of ours.
        let more = cache.modules().join("6.1.0-9-cloud-amd64/fedcba9876543210");
        cache.write(&more.join(module::FILE), b"module").unwrap();
        cache.write(&more.join("diary"), b"mine").unwrap();
        make_old(&more, OLD);
        // The module for 7.2 is not built yet, and to build it takes its headers.
        for (release, folder) in [
            ("6.1.0-9-cloud-amd64", "linux-headers-6.1.0-9-cloud-amd64"),
            ("7.2-rt-amd64", "linux-headers-7.2-rt-amd64"),
            ("photos", "summer"),
        ] {
            let tree = cache.headers().join(release).join("tree/usr/src").join(folder);
            cache.write(&tree.join("Makefile"), b"all:").unwrap();
            make_old(&cache.headers().join(release), OLD);
        }
        let found = removable(&cache, &store);
        let other = other("6.1.0-9-cloud-amd64");
        let headers = cache.headers().join("6.1.0-9-cloud-amd64");
        let want = [
            Leftover { kind: Kind::Module, path: other.clone(), bytes: 6, is_young: false },
            Leftover { kind: Kind::Headers, path: headers.clone(), bytes: 4, is_young: false },
        ];
        assert_eq!(found, want);
        for leftover in &found {
            leftover.remove(&cache).unwrap();
        }
        assert_eq!(removable(&cache, &store), []);
        assert!(!other.exists() && !headers.exists());
        let left = fs::read_dir(cache.headers()).unwrap().flatten();
        let mut left: Vec<_> = left.map(|entry| entry.file_name()).collect();
        left.sort();
        assert_eq!(left, ["7.2-rt-amd64", "photos"]);
    }
}
