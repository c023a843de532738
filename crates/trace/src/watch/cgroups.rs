//! Names of cgroups, by their numbers.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use wakescope_sys::cgroup::open_by_id;

use crate::quota::unified_hierarchy;

/// Names that are remembered: beyond that, all are forgotten.
const MOST: usize = 16_384;

/// Why no cgroup's name can be looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unnamed {
    /// That takes `CAP_DAC_READ_SEARCH`.
    Forbidden,
    /// The unified hierarchy is not mounted, from its root, where this process can see it.
    NotMounted,
}

/// What is known of a cgroup by its ID.
enum Found {
    /// Its path, from the root of its hierarchy.
    Path(String),
    /// It was removed.
    Gone,
    /// It may be there, and cannot be seen from here.
    Hidden,
}

/// Names of cgroups of the unified hierarchy.
#[derive(Default)]
pub(super) struct Cgroups {
    mount: Option<Option<(PathBuf, File)>>,
    known: HashMap<u64, Found>,
}

impl Cgroups {
    /// The path of the cgroup with this ID, from the root of its hierarchy; `None` if it is gone, or cannot
    /// be seen from here.
    pub(super) fn path(&mut self, id: u64) -> Option<String> {
        match self.find(id) {
            Found::Path(path) => Some(path.clone()),
            Found::Gone | Found::Hidden => None,
        }
    }

    /// Whether it was gone when it was looked up.
    pub(super) fn is_gone(&mut self, id: u64) -> bool {
        matches!(self.find(id), Found::Gone)
    }

    /// Why no cgroup has a name here; `None` where they have.
    pub(super) fn unnamed(&mut self) -> Option<Unnamed> {
        let Some((_, folder)) = self.mount.get_or_insert_with(mounted) else {
            return Some(Unnamed::NotMounted);
        };
        let own_id = folder.metadata().map(|about| about.ino());
        let opened = own_id.and_then(|id| open_by_id(folder.as_fd(), id));
        let is_forbidden = opened.is_err_and(|e| e.kind() == io::ErrorKind::PermissionDenied);
        is_forbidden.then_some(Unnamed::Forbidden)
    }

    fn find(&mut self, id: u64) -> &Found {
        if self.known.len() >= MOST {
            self.known.clear();
        }
        let mount = self.mount.get_or_insert_with(mounted);
        self.known.entry(id).or_insert_with(|| {
            mount.as_ref().map_or(Found::Hidden, |(place, folder)| look_up(id, place, folder))
        })
    }
}

/// Looks a cgroup up in the hierarchy whose root is mounted at a `place`, and open as `folder`.
fn look_up(id: u64, place: &Path, folder: &File) -> Found {
    let cgroup = match open_by_id(folder.as_fd(), id) {
        Ok(cgroup) => cgroup,
        Err(e) => match e.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::StaleNetworkFileHandle => return Found::Gone,
            _ => return Found::Hidden,
        },
    };
    let path = fs::read_link(format!("/proc/self/fd/{}", cgroup.as_raw_fd())).ok();
    let path = path.as_ref().and_then(|path| path.strip_prefix(place).ok());
    match path.map(|below| format!("/{}", below.to_string_lossy())) {
        // A folder that was removed keeps its name, with this behind it.
        Some(path) if path.ends_with(" (deleted)") => Found::Gone,
        Some(path) => Found::Path(path),
        None => Found::Hidden,
    }
}

/// Where the unified hierarchy is mounted.
fn mounted() -> Option<(PathBuf, File)> {
    let place = unified_hierarchy()?;
    let folder = File::open(&place).ok()?;
    Some((place, folder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakescope_testing::skip;

    #[test]
    fn what_cannot_be_seen_is_not_gone() {
        let mut cgroups = Cgroups { mount: Some(None), ..Cgroups::default() };
        assert_eq!(cgroups.unnamed(), Some(Unnamed::NotMounted));
        assert_eq!((cgroups.path(7), cgroups.is_gone(7)), (None, false));
    }

    #[test]
    fn a_cgroup_that_was_removed_is_gone() {
        let name = "a_cgroup_that_was_removed_is_gone";
        let mut cgroups = Cgroups::default();
        if let Some(why) = cgroups.unnamed() {
            return skip(name, &format!("no cgroup has a name here: {why:?}"));
        }
        let (place, folder) = mounted().unwrap();
        let id = folder.metadata().unwrap().ino();
        assert_eq!((cgroups.path(id).as_deref(), cgroups.is_gone(id)), (Some("/"), false));
        let made = place.join(format!("wakescope-test-{}", std::process::id()));
        if fs::create_dir(&made).is_err() {
            return skip(name, "no cgroup can be made here");
        }
        let id = fs::metadata(&made).unwrap().ino();
        fs::remove_dir(&made).unwrap();
        assert_eq!((cgroups.path(id), cgroups.is_gone(id)), (None, true));
    }
}
