//! Names of cgroups, by their numbers.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use wakescope_sys::cgroup::open_by_id;

use crate::quota::unified_hierarchy;

/// Names that are remembered: beyond that, all are forgotten.
const MOST: usize = 16_384;

/// Names of cgroups of the unified hierarchy.
#[derive(Default)]
pub(super) struct Cgroups {
    mount: Option<Option<(PathBuf, File)>>,
    known: HashMap<u64, Option<String>>,
}

impl Cgroups {
    /// The path of the cgroup with this ID, from the root of its hierarchy; `None` if it is gone, or cannot
    /// be seen from here.
    pub(super) fn path(&mut self, id: u64) -> Option<String> {
        if self.known.len() >= MOST {
            self.known.clear();
        }
        let mount = self.mount.get_or_insert_with(mounted);
        let (place, folder) = mount.as_ref()?;
        let found = self.known.entry(id).or_insert_with(|| {
            let cgroup = open_by_id(folder.as_fd(), id).ok()?;
            let path = fs::read_link(format!("/proc/self/fd/{}", cgroup.as_raw_fd())).ok()?;
            let below = path.strip_prefix(place).ok()?;
            Some(format!("/{}", below.to_string_lossy()))
        });
        // A folder that was removed keeps its name, with this behind it.
        found.clone().filter(|path| !path.ends_with(" (deleted)"))
    }

    /// Whether this process may not look names up: that takes `CAP_DAC_READ_SEARCH`.
    pub(super) fn are_hidden(&mut self) -> bool {
        let mount = self.mount.get_or_insert_with(mounted);
        mount.as_ref().is_some_and(|(_, folder)| {
            let own_id = folder.metadata().map(|about| about.ino());
            let opened = own_id.and_then(|id| open_by_id(folder.as_fd(), id));
            opened.is_err_and(|e| e.kind() == io::ErrorKind::PermissionDenied)
        })
    }
}

/// Where the unified hierarchy is mounted.
fn mounted() -> Option<(PathBuf, File)> {
    let place = unified_hierarchy()?;
    let folder = File::open(&place).ok()?;
    Some((place, folder))
}
