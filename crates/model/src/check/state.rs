//! A state of the machine, as the checker tells states apart.

use std::hash::{Hash, Hasher};

use crate::image::{CpuId, Image};
use crate::kernel::Kernel;

/// The kernel, and what is on its way between CPUs. There is nothing else: an interrupt is taken when
/// it arrives, and what takes time is one step (the reasons are in [`super`]).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) kernel: Kernel,
    /// CPUs that a reschedule interrupt is on its way to: a bit for each.
    pub(super) sent: u64,
}

impl State {
    pub(super) fn first(image: &Image) -> Self {
        Self { kernel: Kernel::new(image), sent: 0 }
    }

    pub(super) fn is_sent(&self, cpu: CpuId) -> bool {
        self.sent & (1 << cpu.0) != 0
    }

    /// 128 bits that stand for the state.
    pub(super) fn fingerprint(&self) -> u128 {
        let mut hasher = Wide::default();
        self.hash(&mut hasher);
        hasher.wide()
    }
}

/// Two hashes of 64 bits side by side: each multiplies to 128 bits and folds them, with constants of
/// its own. A fixed function, so that each run finds the same states.
struct Wide {
    low: u64,
    high: u64,
}

impl Default for Wide {
    /// The fraction of pi: numbers without a pattern.
    fn default() -> Self {
        Self { low: 0x243f_6a88_85a3_08d3, high: 0x1319_8a2e_0370_7344 }
    }
}

impl Wide {
    fn add(&mut self, word: u64) {
        self.low = fold(self.low ^ word, 0x9e37_79b9_7f4a_7c15);
        self.high = fold(self.high.rotate_left(29) ^ word, 0xd6e8_feb8_6659_fd93);
    }

    fn wide(&self) -> u128 {
        let low = fold(self.low ^ self.high, 0xa076_1d64_78bd_642f);
        let high = fold(self.high ^ low, 0xe703_7ed1_a0b4_28db);
        u128::from(low) << 64 | u128::from(high)
    }
}

/// Both halves of the product, in one. The sum keeps a factor of 0 from ending it all.
fn fold(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    let [upper, lower] = [product >> 64, product & u128::from(u64::MAX)]
        .map(|half| u64::try_from(half).unwrap_or(0));
    (upper ^ lower).wrapping_add(other)
}

impl Hasher for Wide {
    fn finish(&self) -> u64 {
        self.low ^ self.high
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word));
        }
        self.add(bytes.len() as u64);
    }

    fn write_u8(&mut self, value: u8) {
        self.add(value.into());
    }

    fn write_u16(&mut self, value: u16) {
        self.add(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.add(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.add(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.add(value as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_differ_and_each_bit_of_a_word_reaches_about_half_of_them() {
        let of = |words: &[u64]| {
            let mut hasher = Wide::default();
            words.iter().for_each(|&word| hasher.write_u64(word));
            hasher.wide()
        };
        for bit in 0..64 {
            for length in [1, 2, 40] {
                let mut words = vec![7; length];
                let before = of(&words);
                words[0] ^= 1 << bit;
                let changed = (before ^ of(&words)).count_ones();
                // 64 of 128 are expected, with a standard deviation of 5.7.
                assert!((32..=96).contains(&changed), "bit {bit} of {length}: {changed}");
            }
        }
        assert_ne!(of(&[0]), of(&[0, 0]));
    }
}
