//! Memory that this process shares with those that it forks.

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// What is in the page. Zero is a value of all of it.
#[repr(C)]
struct Layout {
    words: [AtomicU32; SharedPage::WORDS],
    numbers: [AtomicU64; SharedPage::NUMBERS],
}

struct Mapping(NonNull<Layout>);

// SAFETY: the memory stays mapped for as long as the value lives, and is only ever reached through
// atomic operations.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that was made, and nobody has a word of it any more.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size_of::<Layout>()) };
    }
}

/// Words and numbers, all 0 at first. A process that is forked has the same ones; so has a clone.
#[derive(Clone)]
pub struct SharedPage(Arc<Mapping>);

impl SharedPage {
    /// How many words there are.
    pub const WORDS: usize = 16;
    /// How many numbers there are.
    pub const NUMBERS: usize = 8;

    /// A new one.
    pub fn new() -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: the kernel chooses the place, and nothing is there yet.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), size_of::<Layout>(), access, kind, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let layout = NonNull::new(start.cast()).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self(Arc::new(Mapping(layout))))
    }

    fn layout(&self) -> &Layout {
        // SAFETY: a mapping begins at a page and so is aligned, is as long as the layout, was filled
        // with zeros, which is a value of it, and lives as long as what is borrowed here.
        unsafe { self.0.0.as_ref() }
    }

    /// The words, which threads can sleep on.
    #[inline]
    pub fn words(&self) -> &[AtomicU32; Self::WORDS] {
        &self.layout().words
    }

    /// The numbers.
    #[inline]
    pub fn numbers(&self) -> &[AtomicU64; Self::NUMBERS] {
        &self.layout().numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::fork;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_forked_process_has_the_same_words() {
        let page = SharedPage::new().unwrap();
        let theirs = page.clone();
        let child = fork(&mut || {
            theirs.words()[3].store(7, Ordering::Release);
            theirs.numbers()[7].store(u64::MAX, Ordering::Release);
        });
        child.unwrap().wait();
        assert_eq!(page.words()[3].load(Ordering::Acquire), 7);
        assert_eq!(page.numbers()[7].load(Ordering::Acquire), u64::MAX);
        assert_eq!(page.words()[2].load(Ordering::Acquire), 0);
    }
}
