//! Samples on their way from the measuring loop to a file.

use std::sync::atomic::{AtomicU64, Ordering};

use Ordering::{Acquire, Relaxed, Release};

/// One wakeup, as saved. Times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When it was due, from the start of the run.
    pub due_ns: u64,
    /// How late it was.
    pub late_ns: u64,
}

/// A queue of fixed size from one writer to one reader. A full queue takes no more samples and
/// counts those that it turned away: the writer is the measuring loop and never waits.
pub struct Ring {
    slots: Box<[[AtomicU64; 2]]>,
    written: AtomicU64,
    read: AtomicU64,
    lost: AtomicU64,
}

impl Ring {
    /// A queue of `slots` samples, all of its memory touched.
    pub fn new(slots: usize) -> Self {
        Self {
            slots: (0..slots).map(|_| Default::default()).collect(),
            written: AtomicU64::new(0),
            read: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        }
    }

    /// Adds a sample, or counts it as lost. Only one thread may push.
    #[inline]
    pub fn push(&self, sample: Sample) {
        let written = self.written.load(Relaxed);
        if written - self.read.load(Acquire) == self.slots.len() as u64 {
            self.lost.store(self.lost.load(Relaxed) + 1, Relaxed);
            return;
        }
        let slot = self.slot(written);
        slot[0].store(sample.due_ns, Relaxed);
        slot[1].store(sample.late_ns, Relaxed);
        self.written.store(written + 1, Release);
    }

    /// Takes the oldest sample. Only one thread may pop.
    pub fn pop(&self) -> Option<Sample> {
        let read = self.read.load(Relaxed);
        if read == self.written.load(Acquire) {
            return None;
        }
        let slot = self.slot(read);
        let sample = Sample { due_ns: slot[0].load(Relaxed), late_ns: slot[1].load(Relaxed) };
        self.read.store(read + 1, Release);
        Some(sample)
    }

    /// Samples turned away.
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    fn slot(&self, position: u64) -> &[AtomicU64; 2] {
        // The remainder is below the length, which is a usize.
        #[allow(clippy::cast_possible_truncation)]
        &self.slots[(position % self.slots.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_comes_out_in_order_and_the_rest_is_counted() {
        let ring = Ring::new(4);
        let sample = |i| Sample { due_ns: i, late_ns: 2 * i };
        for round in 0..5 {
            for i in 0..6 {
                ring.push(sample(10 * round + i));
            }
            for i in 0..4 {
                assert_eq!(ring.pop(), Some(sample(10 * round + i)));
            }
            assert_eq!(ring.pop(), None);
            assert_eq!(ring.lost(), 2 * (round + 1));
        }
    }

    #[test]
    fn two_threads_lose_nothing_unseen() {
        const N: u64 = 100_000;
        let ring = Ring::new(64);
        let mut got = 0;
        std::thread::scope(|scope| {
            let writer =
                scope.spawn(|| (1..=N).for_each(|i| ring.push(Sample { due_ns: i, late_ns: i })));
            let mut last = 0;
            loop {
                let over = writer.is_finished();
                while let Some(s) = ring.pop() {
                    assert!(s.due_ns > last && s.late_ns == s.due_ns);
                    last = s.due_ns;
                    got += 1;
                }
                if over {
                    break;
                }
            }
        });
        assert_eq!(got + ring.lost(), N);
    }
}
