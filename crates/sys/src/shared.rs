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

impl Mapping {
    fn at(&self, index: usize) -> &AtomicU64 {
        debug_assert!(index < self.count);
        // SAFETY: whoever asks has seen that the index is below the count of words that are mapped;
        // a mapping begins at a page and so is aligned, and it lives as long as this value.
        unsafe { self.words.add(index).as_ref() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that was made, and nobody has a word of it any more.
        unsafe { libc::munmap(self.words.as_ptr().cast(), self.count * size_of::<u64>()) };
    }
}

/// Words of memory that are shared with the kernel. Copies are the same words.
#[derive(Clone)]
pub struct Words(Arc<Mapping>);

impl Words {
    /// Maps the first `count` words behind `file`, which must be one that can be mapped.
    pub fn map(file: BorrowedFd<'_>, count: usize) -> io::Result<Self> {
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
        Ok(Self(Arc::new(Mapping { words, count })))
    }

    /// The word at `index`; `None` behind the last one.
    pub fn word(&self, index: usize) -> Option<Word> {
        (index < self.0.count).then(|| Word { mapping: Arc::clone(&self.0), index })
    }

    /// What is at `index`; 0 behind the last word.
    pub fn load(&self, index: usize) -> u64 {
        if index < self.0.count { self.0.at(index).load(Ordering::Acquire) } else { 0 }
    }
}

/// One word of memory that is shared with the kernel. Copies are the same word.
#[derive(Clone)]
pub struct Word {
    mapping: Arc<Mapping>,
    index: usize,
}

impl Word {
    /// Puts `value` there.
    #[inline]
    pub fn store(&self, value: u64) {
        self.mapping.at(self.index).store(value, Ordering::Release);
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
        let words = Words::map(file.as_fd(), 3).unwrap();
        words.word(1).unwrap().clone().store(7);
        assert_eq!([0, 1, 2, 3].map(|index| words.load(index)), [0, 7, 0, 0]);
        assert!(words.word(3).is_none());
    }
}
