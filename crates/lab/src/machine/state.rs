//! A machine as it was at the moment when its guest was ready for its order: memory, CPU and devices. A guest
//! that resumes from there does the same as one that booted.
//!
//! The emulator keeps it as a snapshot in a disk image of its own format, qcow2 (docs/interop/qcow2.rst in QEMU).

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use wakescope_sys::file::file_in_memory;

use crate::sum::{self, Summed};

/// What the emulator calls it.
pub const NAME: &str = "ready";

/// The largest state that is kept, bytes. A guest that has just booted has some 60 MB in memory.
pub const LARGEST: u64 = 512 << 20;

/// What a stored state begins with. Its SHA-256 in hexadecimal and a newline follow; then, of which that is the
/// sum, the length of what came out of the console, eight bytes, the lower ones first; that; and the image.
pub(crate) const HEAD: &[u8] = b"wakescope state 1\n";

/// An image in memory, and what had come out of the console by then.
#[derive(Debug)]
pub struct State {
    image: File,
    console: Vec<u8>,
}

impl State {
    /// A disk of 64 KiB without a snapshot.
    pub fn empty() -> io::Result<Self> {
        const CLUSTER: u64 = 1 << 16;
        let mut head = Vec::new();
        let mut add = |bytes: &[u8]| head.extend_from_slice(bytes);
        add(b"QFI\xfb");
        add(&3_u32.to_be_bytes());
        // No other file below it: its name's place and length.
        add(&[0; 12]);
        // Clusters are of two to the power of this.
        add(&16_u32.to_be_bytes());
        add(&CLUSTER.to_be_bytes());
        // Not encrypted.
        add(&[0; 4]);
        // The table of contents: entries, and its place in the file. All of the disk is zero.
        add(&1_u32.to_be_bytes());
        add(&(3 * CLUSTER).to_be_bytes());
        // The table of use counts: its place, and its clusters.
        add(&CLUSTER.to_be_bytes());
        add(&1_u32.to_be_bytes());
        // No snapshots: how many, and where; no features.
        add(&[0; 12]);
        add(&[0; 24]);
        // Use counts have two to the power of this bits; how long this head is.
        add(&4_u32.to_be_bytes());
        add(&104_u32.to_be_bytes());
        let image = file_in_memory()?;
        image.set_len(4 * CLUSTER)?;
        image.write_all_at(&head, 0)?;
        image.write_all_at(&(2 * CLUSTER).to_be_bytes(), CLUSTER)?;
        // Each of the four clusters is used once.
        image.write_all_at(&[0, 1, 0, 1, 0, 1, 0, 1], 2 * CLUSTER)?;
        Ok(Self { image, console: Vec::new() })
    }

    /// The same machine, out of whose console this had come.
    #[must_use]
    pub fn after(self, console: &[u8]) -> Self {
        Self { console: console.to_vec(), ..self }
    }

    /// What had come out of its console.
    pub fn console(&self) -> &[u8] {
        &self.console
    }

    /// The state that was stored with [`State::stored`], and its SHA-256; `None` if it is another or damaged.
    pub fn read(stored: &mut impl Read) -> io::Result<Option<(Self, String)>> {
        let mut head = [0; HEAD.len() + 65];
        stored.read_exact(&mut head)?;
        let mut image = Summed::new(file_in_memory()?);
        let mut length = [0; 8];
        stored.read_exact(&mut length)?;
        image.add(&length);
        let mut console = Vec::new();
        stored.take(u64::from_le_bytes(length).min(LARGEST)).read_to_end(&mut console)?;
        image.add(&console);
        io::copy(&mut stored.take(LARGEST), &mut image)?;
        let (sum, image) = (image.sum(), image.into_inner());
        let known = head.strip_prefix(HEAD).and_then(|rest| rest.strip_suffix(b"\n"));
        Ok((known == Some(sum.as_bytes())).then(|| (Self { image, console }, sum)))
    }

    /// Its bytes with their sum, to be stored.
    pub fn stored(&self) -> io::Result<Vec<u8>> {
        let mut image = &self.image;
        image.rewind()?;
        let length = (self.console.len() as u64).to_le_bytes();
        let mut bytes = [HEAD, &[0; 65], &length, &self.console].concat();
        image.read_to_end(&mut bytes)?;
        let sum = sum::of_bytes(&bytes[HEAD.len() + 65..]);
        bytes[HEAD.len()..][..64].copy_from_slice(sum.as_bytes());
        bytes[HEAD.len() + 64] = b'\n';
        Ok(bytes)
    }

    /// The image, for an emulator that writes to it (also who only reads a snapshot changes some of its bytes),
    /// and once more to be read only.
    pub(super) fn files(&self) -> io::Result<(File, File)> {
        let read_only = File::open(format!("/proc/self/fd/{}", self.image.as_raw_fd()))?;
        Ok((self.image.try_clone()?, read_only))
    }

    /// Another one with the same bytes.
    pub fn copy(&self) -> io::Result<Self> {
        let mut image = &self.image;
        image.rewind()?;
        let mut copy = file_in_memory()?;
        io::copy(&mut image, &mut copy)?;
        Ok(Self { image: copy, console: self.console.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_state_is_read_and_a_damaged_one_is_not() {
        let state = State::empty().unwrap().after(b"booting\n");
        state.image.write_all_at(b"some memory", 1 << 18).unwrap();
        let stored = state.copy().unwrap().stored().unwrap();
        let (read, sum) = State::read(&mut &stored[..]).unwrap().unwrap();
        assert_eq!((read.stored().unwrap(), sum.len()), (stored.clone(), 64));
        assert_eq!(read.console(), b"booting\n");
        for at in [0, HEAD.len(), HEAD.len() + 70, stored.len() - 1] {
            let mut damaged = stored.clone();
            damaged[at] ^= 1;
            assert!(State::read(&mut &damaged[..]).unwrap().is_none(), "{at}");
        }
        assert!(State::read(&mut &stored[..stored.len() - 1]).unwrap().is_none());
        assert!(State::read(&mut &stored[..20]).is_err());
    }
}
