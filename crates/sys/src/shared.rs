//! Words of memory that are shared with the kernel.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A mapping of 64-bit words.
struct Mapping {
    words: NonNull<AtomicU64>,
    count: usize,
}

// SAFETY: the memory stays mapped for as long as the value lives, and is only ever reached through
// atomic operations.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that was made, and nobody has a word of it any more.
        unsafe { libc::munmap(self.words.as_ptr().cast(), self.count * size_of::<u64>()) };
    }
}

/// One word of memory that is shared with the kernel. Copies are the same word.
#[derive(Clone)]
pub struct Word {
    mapping: Arc<Mapping>,
    index: usize,
}

impl Word {
    /// Maps the first `count` words behind `file`, which must be one that can be mapped.
    pub fn map(file: BorrowedFd<'_>, count: usize) -> io::Result<Vec<Self>> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let length = count * size_of::<u64>();
        // SAFETY: the kernel chooses the place, and nothing is there yet.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), length, access, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let words = NonNull::new(start.cast()).ok_or(io::ErrorKind::InvalidData)?;
        let mapping = Arc::new(Mapping { words, count });
        Ok((0..count).map(|index| Self { mapping: Arc::clone(&mapping), index }).collect())
    }

    fn word(&self) -> &AtomicU64 {
        debug_assert!(self.index < self.mapping.count);
        // SAFETY: the index is below the count of words that are mapped, a mapping begins at a page
        // and so is aligned, and it lives as long as this value.
        unsafe { self.mapping.words.add(self.index).as_ref() }
    }

    /// Puts `value` there.
    #[inline]
    pub fn store(&self, value: u64) {
        self.word().store(value, Ordering::Release);
    }

    /// What is there.
    pub fn load(&self) -> u64 {
        self.word().load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn a_word_is_what_was_stored_and_its_neighbours_are_not() {
        let file = crate::record_lock::nameless_file().unwrap();
        file.set_len(3 * size_of::<u64>() as u64).unwrap();
        let words = Word::map(file.as_fd(), 3).unwrap();
        words[1].clone().store(7);
        assert_eq!(words.iter().map(Word::load).collect::<Vec<_>>(), [0, 7, 0]);
    }
}
