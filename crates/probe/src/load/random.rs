//! Content and choices of loads that a seed repeats.

use wakescope_core::random;

/// Numbers that look random.
#[derive(Clone, Debug)]
pub(super) struct Random(random::Random);

impl Random {
    /// The sequence of `seed`.
    pub(super) fn new(seed: u64) -> Self {
        Self(random::Random::new(seed))
    }

    /// The next number.
    pub(super) fn number(&mut self) -> u64 {
        self.0.number()
    }

    /// A number below `limit`, which is not 0. Near enough to uniform for limits far below 2^64.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.number() % limit
    }

    /// Fills `bytes`.
    pub(super) fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.number().to_le_bytes()[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_seeds_differ() {
        let content = |seed| {
            let mut bytes = [0; 1003];
            Random::new(seed).fill(&mut bytes);
            bytes
        };
        assert_eq!(content(1), content(1));
        assert_ne!(content(1), content(2));
    }
}
