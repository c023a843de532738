//! What several tests need.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that is removed at the end.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("wakescope-lab-{name}-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The smallest bzImage that says it is `release`: five sectors, and a kernel of 64 bytes.
pub(crate) fn bzimage(release: &str) -> Vec<u8> {
    let mut image = vec![0; 5 * 512 + 64];
    image[0x1f1] = 4;
    image[0x1f4] = 4;
    image[0x1fe..0x200].copy_from_slice(&[0x55, 0xaa]);
    image[0x202..0x206].copy_from_slice(b"HdrS");
    image[0x206..0x208].copy_from_slice(&0x20f_u16.to_le_bytes());
    image[0x20e..0x210].copy_from_slice(&0x300_u16.to_le_bytes());
    image[0x211] = 1;
    image[0x236] = 1;
    let banner = format!(
        "{release} (debian-kernel@lists.debian.org) #1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2 (2026-11-01)"
    );
    image[0x500..0x500 + banner.len()].copy_from_slice(banner.as_bytes());
    image
}
