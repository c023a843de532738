//! Brings kernels from the archive into the cache.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wakescope_core::units::counted;
use wakescope_sys::file::FileLock;

use super::catalogue::{Catalogue, NoSuchKernel, Offer};
use super::image::{Image, ImageError, identify};
use super::name::{Name, Part};
use super::store::{Card, SCHEMA, Stored, find};
use super::{Arch, Kernel};
use crate::archive::{Archive, ArchiveError, Package, Purpose, Site};
use crate::cache::{Cache, CacheError, MODULES, age_s, read_bounded};
use crate::sum::{self, Memo};
use crate::watch::{Step, Watch};

/// How long package lists are good for, in seconds.
const GOOD_FOR_S: u64 = 24 * 3600;

/// The same, where the lists are not all there.
const PARTLY_GOOD_FOR_S: u64 = 3600;

/// The largest catalogue that is read.
const LARGEST_CATALOGUE: u64 = 16 << 20;

/// Modules of devices that no emulated machine has. They are most of a generic kernel.
const USELESS: [&str; 19] = [
    "sound/firewire",
    "sound/hda",
    "sound/isa",
    "sound/pci",
    "sound/pcmcia",
    "sound/soc",
    "sound/usb",
    "drivers/gpu",
    "drivers/media",
    "drivers/net/wireless",
    "drivers/net/ethernet",
    "drivers/infiniband",
    "drivers/iio",
    "drivers/staging",
    "drivers/hid",
    "drivers/hwmon",
    "drivers/isdn",
    "drivers/bluetooth",
    "drivers/comedi",
];

/// Why a kernel could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// Nobody has it.
    #[error(transparent)]
    NoSuchKernel(NoSuchKernel),
    /// The archive is of no help.
    #[error(transparent)]
    Archive(ArchiveError),
    /// Its packages do not hold what they should.
    #[error("the packages of {release} {why}")]
    Package {
        /// Which kernel.
        release: String,
        /// What is wrong.
        why: String,
    },
}

impl<E: Into<ArchiveError>> From<E> for FetchError {
    fn from(e: E) -> Self {
        Self::Archive(e.into())
    }
}

/// What the archive had when it was looked at last.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Remembered {
    /// Which archive that was.
    site: String,
    /// Whether all lists came in.
    complete: bool,
    packages: Vec<Package>,
}

impl Remembered {
    fn good_for(&self) -> u64 {
        if self.complete { GOOD_FOR_S } else { PARTLY_GOOD_FOR_S }
    }
}

/// An age of at least an hour, seconds, in words.
fn in_words(age_s: u64) -> String {
    match age_s / 3600 {
        hours @ 0..24 => counted(hours, "hour"),
        hours => counted(hours / 24, "day"),
    }
}

/// A kernel that is in the cache now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The kernel, under the name it was asked for by.
    pub kernel: Kernel,
    /// Whether it was there before.
    pub was_there: bool,
    /// Bytes that were fetched for it.
    pub bytes: u64,
}

/// Where kernels come from: the archive, and what is known of it.
#[derive(Debug)]
pub struct Source<'a> {
    cache: &'a Cache,
    site: Site,
    arch: Arch,
}

impl<'a> Source<'a> {
    /// Kernels for `arch` from `site`.
    pub fn new(cache: &'a Cache, site: Site, arch: Arch) -> Self {
        Self { cache, site, arch }
    }

    /// What can be had, as the lists say that are at most a day old. If there is no way to newer
    /// ones, older ones do, with a note.
    pub fn catalogue(
        &self,
        refresh: bool,
        watch: &mut dyn Watch,
    ) -> Result<Catalogue, ArchiveError> {
        let known = self.remembered();
        if let Some((known, _)) = known.as_ref().filter(|(k, age)| !refresh && *age < k.good_for())
        {
            return Ok(Catalogue::of(&known.packages, self.arch));
        }
        match (self.look(watch), known) {
            (Ok(packages), _) => Ok(Catalogue::of(&packages, self.arch)),
            (Err(ArchiveError::Stopped), _) => Err(ArchiveError::Stopped),
            (Err(e), Some((known, age))) if !refresh => {
                let age = in_words(age);
                watch.step(&Step::Note(&format!("{e}; using the list of {age} ago")));
                Ok(Catalogue::of(&known.packages, self.arch))
            }
            (Err(e), _) => Err(e),
        }
    }

    /// Reads the archive's lists anew, and remembers what is in them.
    fn look(&self, watch: &mut dyn Watch) -> Result<Vec<Package>, ArchiveError> {
        let _lock = self.lock(watch)?;
        let archive = self.archive()?;
        let wrong = archive.update(watch)?;
        for line in &wrong {
            watch.step(&Step::Note(&format!("kernels may be missing from the list: {line}")));
        }
        let packages = archive.packages(|name| Part::of_package(name).is_some(), watch)?;
        let site = format!("{:?}", self.site);
        let known = Remembered { site, complete: wrong.is_empty(), packages };
        let text = serde_json::to_vec(&known).unwrap_or_default();
        self.cache.write(&self.place(), &text)?;
        Ok(known.packages)
    }

    /// What the archive had when it was looked at last, and how long ago that was, in seconds.
    fn remembered(&self) -> Option<(Remembered, u64)> {
        let place = self.place();
        let age = age_s(&fs::metadata(&place).ok()?);
        let text = read_bounded(&place, LARGEST_CATALOGUE).ok()?;
        let known: Remembered = serde_json::from_slice(&text).ok()?;
        (known.site == format!("{:?}", self.site)).then_some((known, age))
    }

    fn place(&self) -> PathBuf {
        let name = Archive::name(Purpose::Kernels, self.arch);
        self.cache.apt().join(name).join("catalogue.json")
    }

    fn lock(&self, watch: &mut dyn Watch) -> Result<FileLock, CacheError> {
        self.cache.lock(&format!("apt-{}", Archive::name(Purpose::Kernels, self.arch)), watch)
    }

    fn archive(&self) -> Result<Archive, ArchiveError> {
        Archive::open(self.cache, &self.site, Purpose::Kernels, self.arch)
    }

    /// Sees to it that the kernel `name` is in the cache. A short name means the newest that the
    /// archive has; where the archive cannot be asked, the newest of the cache does, with a note.
    pub fn fetch(
        &self,
        name: &str,
        refresh: bool,
        watch: &mut dyn Watch,
    ) -> Result<Fetched, FetchError> {
        // An exact name means one kernel for ever: nobody needs to be asked.
        let there = match self.usable(name, watch) {
            Some(usable) if usable.exact == name => return Ok(usable.fetched()),
            there => there,
        };
        match (self.fetch_newest(name, refresh, watch), there) {
            (Err(e @ FetchError::Archive(ArchiveError::Stopped)), _) => Err(e),
            // The archive drops old kernels, and cannot always be reached.
            (Err(e @ (FetchError::Archive(_) | FetchError::NoSuchKernel(_))), Some(there)) => {
                let text = format!("{e}; using {} from the cache", there.exact);
                watch.step(&Step::Note(&text));
                Ok(there.fetched())
            }
            (fetched, _) => fetched,
        }
    }

    /// Brings the newest kernel that the archive has under this name, unless it is in the cache.
    fn fetch_newest(
        &self,
        name: &str,
        refresh: bool,
        watch: &mut dyn Watch,
    ) -> Result<Fetched, FetchError> {
        let find =
            |catalogue: &Catalogue| catalogue.find(name).cloned().map_err(FetchError::NoSuchKernel);
        let offer = find(&self.catalogue(refresh, watch)?)?;
        match self.bring(&offer, name, watch) {
            // The archive may have moved on since the lists came in.
            Err(FetchError::Archive(ArchiveError::Failed { .. })) if !refresh => {
                self.bring(&find(&self.catalogue(true, watch)?)?, name, watch)
            }
            other => other,
        }
    }

    /// The newest kernel of the cache that answers to `name`. A damaged one is named: in its place the
    /// archive may give a newer one, with other figures, or nothing.
    fn usable(&self, name: &str, watch: &mut dyn Watch) -> Option<Usable> {
        let stored = find(self.cache, self.arch, name)?;
        match stored.kernel(name, &mut Memo::open(self.cache)) {
            Ok(kernel) => Some(Usable { exact: stored.name.exact(), kernel }),
            Err(damaged) => {
                watch.step(&Step::Note(&format!("{damaged}; the archive is asked for it")));
                None
            }
        }
    }

    fn bring(
        &self,
        offer: &Offer,
        name: &str,
        watch: &mut dyn Watch,
    ) -> Result<Fetched, FetchError> {
        let mut memo = Memo::open(self.cache);
        let exact = offer.name.exact();
        let there = |memo: &mut Memo| {
            let stored = find(self.cache, self.arch, &exact)?;
            stored.kernel(name, memo).ok()
        };
        if let Some(kernel) = there(&mut memo) {
            return Ok(Fetched { kernel, was_there: true, bytes: 0 });
        }
        if !offer.complete {
            let text = format!("the archive has only the image of {exact}, no modules");
            watch.step(&Step::Note(&text));
        }
        let _lock = self.lock(watch)?;
        // Another lab may have fetched it while this one waited.
        if let Some(kernel) = there(&mut memo) {
            return Ok(Fetched { kernel, was_there: true, bytes: 0 });
        }
        let stage = self.cache.stage(&self.cache.kernels(self.arch).join(&exact))?;
        let (debs, tree) = (stage.path().join("debs"), stage.path().join("tree"));
        let release = offer.name.release();
        self.archive()?.fetch(&release, &offer.packages, &debs, &tree, is_needed, watch)?;
        let card = arrange(&tree, stage.path(), offer)?;
        for folder in [debs, tree] {
            fs::remove_dir_all(&folder).map_err(CacheError::io("remove", &folder))?;
        }
        let text = serde_json::to_vec_pretty(&card).unwrap_or_default();
        self.cache.write(&stage.path().join("kernel.json"), &text)?;
        let folder = stage.commit()?;
        let stored = Stored { name: offer.name.clone(), folder, card };
        let release = stored.card.release.clone();
        let kernel = stored
            .kernel(name, &mut memo)
            .map_err(|e| FetchError::Package { release, why: e.to_string() })?;
        Ok(Fetched { kernel, was_there: false, bytes: offer.size() })
    }
}

/// Whether a file of a kernel's packages can be one that [`arrange`] takes.
fn is_needed(path: &Path) -> bool {
    ["boot", "lib/modules", "usr/lib/modules"].iter().any(|folder| path.starts_with(folder))
}

/// A kernel that the cache has, whole.
struct Usable {
    /// Its exact name.
    exact: String,
    /// The same kernel, under the name it was asked for by.
    kernel: Kernel,
}

impl Usable {
    fn fetched(self) -> Fetched {
        Fetched { kernel: self.kernel, was_there: true, bytes: 0 }
    }
}

/// Moves what is needed of an unpacked kernel from `tree` into `place`.
fn arrange(tree: &Path, place: &Path, offer: &Offer) -> Result<Card, FetchError> {
    let name = &offer.name;
    let release = name.release();
    let found = Found::below(tree, &release);
    let lacking = |why: &str| FetchError::Package { release: release.clone(), why: why.into() };
    let image = found.image.ok_or_else(|| lacking("contain no kernel image"))?;
    let is = checked(&image, name)
        .map_err(|e| lacking(&format!("contain a kernel image that cannot be booted: {e}")))?;
    take(&image, &place.join("image"))?;
    match &found.config {
        Some(config) => take(config, &place.join("config"))?,
        None if offer.complete => return Err(lacking("contain no configuration")),
        None => {}
    }
    if let Some(modules) = found.modules {
        for useless in USELESS {
            let _ = fs::remove_dir_all(modules.join("kernel").join(useless));
        }
        for extra in ["vmlinuz", "config", "System.map", "build", "source"] {
            let _ = fs::remove_file(modules.join(extra));
        }
        take(&modules, &place.join(MODULES))?;
    }
    let image = place.join("image");
    let sha256 = sum::of_file(&image).map_err(CacheError::io("read", &image))?;
    Ok(Card {
        schema: SCHEMA.into(),
        release: is.release,
        version: is.version,
        sha256,
        package: offer.packages[0].name.clone(),
        package_version: offer.version.clone(),
        fetched_bytes: offer.size(),
        has_config: Some(found.config.is_some()),
    })
}

fn checked(image: &Path, name: &Name) -> Result<Image, ImageError> {
    let is = identify(image)?;
    if is.release == name.release() && is.arch == name.arch {
        Ok(is)
    } else {
        Err(ImageError::Foreign("not the kernel that its package names"))
    }
}

fn take(from: &Path, to: &Path) -> Result<(), CacheError> {
    fs::rename(from, to).map_err(CacheError::io("create", to))
}

/// Where the parts of an unpacked kernel lie. Up to 6.19 they are in /boot and /lib, from 7.0 on
/// below /usr/lib/modules.
#[derive(Debug, Default)]
struct Found {
    image: Option<PathBuf>,
    config: Option<PathBuf>,
    modules: Option<PathBuf>,
}

impl Found {
    fn below(tree: &Path, release: &str) -> Self {
        let modules = ["usr/lib/modules", "lib/modules"].map(|dir| tree.join(dir).join(release));
        let file = |in_boot: &str, in_modules: &str| {
            let boot = tree.join("boot").join(format!("{in_boot}-{release}"));
            let candidates = modules.iter().map(|dir| dir.join(in_modules)).chain([boot]);
            // A link could lead out of the tree.
            candidates.into_iter().find(|p| p.symlink_metadata().is_ok_and(|m| m.is_file()))
        };
        let image = file("vmlinuz", "vmlinuz");
        let config = file("config", "config");
        let has_modules =
            |dir: &PathBuf| dir.join("kernel").symlink_metadata().is_ok_and(|m| m.is_dir());
        let modules = modules.into_iter().find(has_modules);
        Self { image, config, modules }
    }
}

#[cfg(test)]
mod tests;
