//! What tests of several crates share. No crate uses it but for its tests.

mod blocks;
mod damage;
mod folder;
mod fuzz;
mod program;
mod rerun;
mod told;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub use blocks::in_blocks;
pub use folder::Folder;
pub use fuzz::{fuzz, fuzz_fewer};
pub use program::{copy_program, write_program};
pub use rerun::{change, failing_with};
pub use told::assert_told;

/// Says that a test, or a named part of one, did not run here, and why.
///
/// `scripts/test` collects these lines by their form, `skipped: TEST: WHY`, and repeats them at its
/// end. They are written to standard error itself: what `eprintln!` prints is captured by the test
/// harness, which shows it only for tests that fail.
pub fn skip(test: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {why}");
}

/// A file system in memory, of a size of its own; unmounted when dropped.
pub struct Disk(PathBuf);

impl Disk {
    /// Mounts one on the folder `at`, with options of tmpfs (`size=256k`). Only its owner may write to
    /// it, unless they say otherwise. `None`, and `test` is skipped, where this is not permitted.
    pub fn mount(at: &Path, options: &str, test: &str) -> Option<Self> {
        let mut mount = Command::new("mount");
        let options = format!("mode=755,{options}");
        mount.args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(at).stderr(Stdio::null());
        if mount.status().is_ok_and(|status| status.success()) {
            return Some(Self(at.into()));
        }
        skip(test, "mounting a tmpfs is not permitted");
        None
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
