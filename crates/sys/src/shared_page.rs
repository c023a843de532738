//! Memory that this process shares with those that it forks.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::region::Region;

/// What is in the page. Zero is a value of all of it.
#[repr(C)]
struct Layout {
    words: [AtomicU32; SharedPage::WORDS],
    numbers: [AtomicU64; SharedPage::NUMBERS],
}

struct Mapping(Region);

// SAFETY: the memory stays mapped for as long as the value lives, and is only ever reached through
// atomic operations.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

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
        Region::of_zeros(size_of::<Layout>(), true).map(|region| Self(Arc::new(Mapping(region))))
    }

    fn layout(&self) -> &Layout {
        // SAFETY: a mapping begins at a page and so is aligned, is as long as the layout, was filled
        // with zeros, which is a value of it, and lives as long as what is borrowed here.
        unsafe { self.0.0.start().as_ref() }
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
