//! Words of memory that are shared with the kernel.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::region::Region;

/// A mapping of 64-bit words.
struct Mapping {
    region: Region,
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
        unsafe { self.region.start::<AtomicU64>().add(index).as_ref() }
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
        let region = Region::of_file(file, length, access, libc::MAP_SHARED)?;
        Ok(Self(Arc::new(Mapping { region, count })))
    }

    /// Room for the answers of the thread at `rank`, each of which has [`Answers::WORDS`]; `None`
    /// behind the last one.
    pub fn answers(&self, rank: usize) -> Option<Answers> {
        let first = rank.checked_mul(Answers::WORDS)?;
        (first.checked_add(Answers::WORDS)? <= self.0.count).then(|| Answers {
            mapping: Arc::clone(&self.0),
            first,
            next: 0,
        })
    }

    /// Puts `value` at `index`; behind the last word, nowhere.
    pub fn store(&self, index: usize, value: u64) {
        if index < self.0.count {
            self.0.at(index).store(value, Ordering::Release);
        }
    }

    /// What is at `index`, which is 0 from now on; behind the last word, 0. Nothing that another puts
    /// there is lost: it is either what this returns, or stays.
    pub fn take(&self, index: usize) -> u64 {
        if index < self.0.count { self.0.at(index).swap(0, Ordering::AcqRel) } else { 0 }
    }

    /// Copies the words from `first` on, one after the other; behind the last word, 0.
    pub fn copy(&self, first: usize, into: &mut [u64]) {
        let there = self.0.count.saturating_sub(first).min(into.len());
        let (words, behind) = into.split_at_mut(there);
        for (index, word) in words.iter_mut().enumerate() {
            *word = self.0.at(first + index).load(Ordering::Acquire);
        }
        behind.fill(0);
    }

    /// What is at `index`; 0 behind the last word.
    pub fn load(&self, index: usize) -> u64 {
        if index < self.0.count { self.0.at(index).load(Ordering::Acquire) } else { 0 }
    }
}

/// The last answers of a thread, in words that are shared with the kernel: pairs of when a wakeup was
/// due, and when it was answered. Only the thread may put them. Before them stands when the thread is
/// to be looked after, which whoever looks on sets, and when its next wakeup is due, which a waker
/// announces.
pub struct Answers {
    mapping: Arc<Mapping>,
    first: usize,
    next: usize,
}

impl Answers {
    /// How many are kept.
    pub const KEPT: usize = 8;
    /// The words that they take.
    pub const WORDS: usize = 2 + 2 * Self::KEPT;

    /// How late a wakeup must be for an interrupt to look where the CPU is, nanoseconds; 0 for none.
    #[inline]
    pub fn patience(&self) -> u64 {
        self.mapping.at(self.first).load(Ordering::Relaxed)
    }

    /// Sets that, on any copy.
    pub fn set_patience(&self, ns: u64) {
        self.mapping.at(self.first).store(ns, Ordering::Relaxed);
    }

    /// Announces when the wakeup is due that comes next, on any copy: only a waker knows it.
    #[inline]
    pub fn announce(&self, due: u64) {
        self.mapping.at(self.first + 1).store(due, Ordering::Release);
    }

    /// Puts the next answer in place of the oldest. Whoever looks meanwhile finds the old one, the
    /// new one or none, but never the time of one with the other.
    #[inline]
    pub fn put(&mut self, due: u64, answered: u64) {
        let at = self.first + 2 + 2 * self.next;
        self.next = (self.next + 1) % Self::KEPT;
        self.mapping.at(at).store(0, Ordering::Release);
        self.mapping.at(at + 1).store(answered, Ordering::Release);
        self.mapping.at(at).store(due, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn the_last_answers_are_kept_and_neighbours_are_not_touched() {
        const WORDS: usize = Answers::WORDS;
        let file = crate::file::file_in_memory().unwrap();
        file.set_len((3 * WORDS * size_of::<u64>()) as u64).unwrap();
        let words = Words::map(file.as_fd(), 3 * WORDS).unwrap();
        let mut answers = words.answers(1).unwrap();
        for due in 1..=10 {
            answers.put(due, 100 + due);
        }
        let pair = |at: usize| (words.load(at), words.load(at + 1));
        let mut kept: Vec<_> = (WORDS + 2..2 * WORDS).step_by(2).map(pair).collect();
        kept.sort_unstable();
        assert_eq!(kept, (3..=10).map(|due| (due, 100 + due)).collect::<Vec<_>>());
        assert!((0..WORDS).chain(2 * WORDS..3 * WORDS).all(|at| words.load(at) == 0));
        assert!(words.answers(3).is_none());
        // Before them stands what whoever looks on sets, on a copy.
        assert_eq!(answers.patience(), 0);
        words.answers(1).unwrap().set_patience(700);
        assert_eq!((answers.patience(), words.load(WORDS)), (700, 700));
        assert_eq!(words.load(WORDS - 1), 0);
        words.answers(1).unwrap().announce(800);
        assert_eq!((words.load(WORDS), words.load(WORDS + 1)), (700, 800));
        words.store(2, 5);
        words.store(3 * WORDS, 5);
        assert_eq!((words.load(2), words.load(3 * WORDS)), (5, 0));
        assert_eq!((words.take(2), words.take(2), words.load(2)), (5, 0, 0));
        assert_eq!(words.take(3 * WORDS), 0);
        // A copy has what each load has, behind the last word, too.
        for first in [0, WORDS - 1, 3 * WORDS - 2, 3 * WORDS, usize::MAX] {
            let mut copy = [7; 4];
            words.copy(first, &mut copy);
            let loaded: Vec<u64> = (0..4).map(|at| words.load(first.saturating_add(at))).collect();
            assert_eq!(copy[..], loaded, "{first}");
        }
    }
}
