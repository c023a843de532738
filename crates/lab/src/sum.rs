//! SHA-256 of files, remembered: a result that is there already must be found without reading a
//! kernel again.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use wakescope_core::hex::to_hex;
use wakescope_sys::clock::{self, Clock};
use wakescope_sys::input::open_input;

use crate::cache::{Cache, read_bounded};

/// The largest file that is read: no kernel and no emulator comes near it.
const LARGEST: u64 = 1 << 30;

/// The most sums that are remembered, and the most bytes that they take.
const MOST: usize = 4096;
const LARGEST_MEMO: u64 = 4 << 20;

/// A file that was changed less than this ago may be changed again without its times telling:
/// they advance with the kernel's tick, or on some file systems every two seconds.
const FRESH_NS: i64 = 3_000_000_000;

/// SHA-256 of `bytes`, in lowercase hexadecimal.
pub fn of_bytes(bytes: &[u8]) -> String {
    to_hex(&Sha256::digest(bytes))
}

/// SHA-256 of the file at `path`, in lowercase hexadecimal. Fails on what is not a file, and on
/// files above 1 GiB.
pub fn of_file(path: &Path) -> io::Result<String> {
    let file = open_input(path)?;
    if file.metadata()?.len() > LARGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is larger than 1 GiB"));
    }
    let mut file = file.take(LARGEST);
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 18];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(to_hex(&digest.finalize())),
            Ok(n) => digest.update(&buffer[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// A file, with the sum of what is read from it or written to it.
pub(crate) struct Summed<T> {
    file: T,
    hash: Sha256,
}

impl<T> Summed<T> {
    pub(crate) fn new(file: T) -> Self {
        Self { file, hash: Sha256::new() }
    }

    /// Adds bytes to the sum that do not pass.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
    }

    /// SHA-256 of all that passed and was added, in lowercase hexadecimal.
    pub(crate) fn sum(&self) -> String {
        to_hex(&self.hash.clone().finalize())
    }

    /// The file itself.
    pub(crate) fn into_inner(self) -> T {
        self.file
    }
}

impl<T: Read> Read for Summed<T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.hash.update(&buffer[..count]);
        Ok(count)
    }
}

impl<T: Write> Write for Summed<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.hash.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Sums of files as they were when they were read last.
#[derive(Debug)]
pub struct Memo {
    cache: Cache,
    sums: BTreeMap<String, Remembered>,
}

/// A file's sum, and by what it is seen that the file is still the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Remembered {
    size: u64,
    inode: u64,
    mtime_ns: i64,
    ctime_ns: i64,
    sha256: String,
}

impl Memo {
    /// The memo of a cache. One that is missing or damaged is empty.
    pub fn open(cache: &Cache) -> Self {
        Self { cache: cache.clone(), sums: read(&cache.sums()) }
    }

    /// SHA-256 of the file at `path`, in lowercase hexadecimal, without reading it if it is known.
    pub fn sum(&mut self, path: &Path) -> io::Result<String> {
        let path = std::path::absolute(path)?;
        let before = state(&fs::metadata(&path)?, String::new());
        let Some(name) = path.to_str() else { return of_file(&path) };
        if let Some(known) = self.sums.get(name) {
            if before == (Remembered { sha256: String::new(), ..known.clone() }) {
                return Ok(known.sha256.clone());
            }
        }
        let sha256 = of_file(&path)?;
        let now = i64::try_from(clock::read(Clock::Realtime)).unwrap_or(i64::MAX);
        let after = state(&fs::metadata(&path)?, String::new());
        if after == before && now - before.ctime_ns.max(before.mtime_ns) > FRESH_NS {
            self.remember(name, Remembered { sha256: sha256.clone(), ..before });
        }
        Ok(sha256)
    }

    fn remember(&mut self, name: &str, sum: Remembered) {
        // Another lab may have learned something meanwhile.
        self.sums.append(&mut read(&self.cache.sums()));
        self.sums.insert(name.into(), sum);
        if self.sums.len() > MOST {
            self.sums.retain(|path, _| Path::new(path).exists());
        }
        while self.sums.len() > MOST {
            self.sums.pop_first();
        }
        // It is only for speed: where it cannot be written, it is done without.
        if let Ok(text) = serde_json::to_vec(&self.sums) {
            let _ = self.cache.write(&self.cache.sums(), &text);
        }
    }
}

fn read(place: &Path) -> BTreeMap<String, Remembered> {
    let text = read_bounded(place, LARGEST_MEMO).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

fn state(meta: &Metadata, sha256: String) -> Remembered {
    let ns = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
    Remembered {
        size: meta.len(),
        inode: meta.ino(),
        mtime_ns: ns(meta.mtime(), meta.mtime_nsec()),
        ctime_ns: ns(meta.ctime(), meta.ctime_nsec()),
        sha256,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakescope_testing::Folder;

    const OF_ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn sums_are_those_of_the_standard() {
        let folder = Folder::new("sum");
        let path = folder.path().join("f");
        fs::write(&path, "abc").unwrap();
        assert_eq!(of_bytes(b"abc"), OF_ABC);
        assert_eq!(of_file(&path).unwrap(), OF_ABC);
        assert!(of_file(folder.path()).is_err());
        assert!(of_file(Path::new("/dev/zero")).is_err());
    }

    #[test]
    fn a_sum_is_taken_from_the_memo_only_for_the_same_file() {
        let folder = Folder::new("memo");
        let cache = Cache::at(folder.path());
        let path = folder.path().join("f");
        fs::write(&path, "abc").unwrap();
        let mut memo = Memo::open(&cache);
        assert_eq!(memo.sum(&path).unwrap(), OF_ABC);
        assert!(memo.sums.is_empty(), "a file that was just written is remembered");

        let lie = state(&fs::metadata(&path).unwrap(), "from the memo".into());
        memo.remember(path.to_str().unwrap(), lie);
        assert_eq!(Memo::open(&cache).sum(&path).unwrap(), "from the memo");
        let longer = fs::File::options().append(true).open(&path).unwrap();
        longer.set_len(4).unwrap();
        assert_ne!(Memo::open(&cache).sum(&path).unwrap(), "from the memo");
        longer.set_len(3).unwrap();
        assert_eq!(Memo::open(&cache).sum(&path).unwrap(), OF_ABC, "its times have changed");
    }

    #[test]
    fn what_is_old_is_remembered() {
        let folder = Folder::new("old");
        let mut memo = Memo::open(&Cache::at(folder.path()));
        let system = Path::new("/bin/sh");
        let sum = memo.sum(system).unwrap();
        assert_eq!(memo.sums.len(), 1);
        assert_eq!(memo.sum(system).unwrap(), sum);
    }

    #[test]
    fn a_damaged_memo_is_ignored() {
        for text in ["", "{", "[]", "{\"x\": 1}", "\u{0}"] {
            let folder = Folder::new("damaged");
            fs::write(folder.path().join("sums.json"), text).unwrap();
            let cache = Cache::at(folder.path());
            assert!(Memo::open(&cache).sums.is_empty(), "{text:?}");
        }
    }
}
