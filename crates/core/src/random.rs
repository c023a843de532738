//! Random numbers that a seed repeats.

/// Numbers that look random: Sebastiano Vigna's `splitmix64`.
///
/// ```
/// use wakescope_core::random::Random;
/// // The published first output for seed 0.
/// assert_eq!(Random::new(0).number(), 0xe220_a839_7b1d_cdaf);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Random(u64);

impl Random {
    /// The sequence of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`, or 0 if that is 0: the upper half of the product with it. What this
    /// favours some numbers by is `limit` / 2^64 at most.
    pub fn below(&mut self, limit: usize) -> usize {
        let scaled = (u128::from(self.number()) * limit as u128) >> 64;
        usize::try_from(scaled).unwrap_or(0)
    }

    /// A number above 0 and below 1.
    pub fn uniform(&mut self) -> f64 {
        ((self.number() >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
    }

    /// Moves `count` items drawn at random to the front, each as likely as the next.
    pub fn draw<T>(&mut self, items: &mut [T], count: usize) {
        self.draw_each(items, count, |_| ());
    }

    /// The same, and calls `drawn` with each item, in the order in which they are drawn.
    pub fn draw_each<T>(&mut self, items: &mut [T], count: usize, mut drawn: impl FnMut(&T)) {
        for i in 0..count.min(items.len()) {
            let other = i + self.below(items.len() - i);
            items.swap(i, other);
            drawn(&items[i]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_is_spread_evenly() {
        let mut random = Random::new(1);
        let mut counts = [0_u32; 6];
        for _ in 0..30_000 {
            let mut items = [0, 1, 2, 3, 4, 5];
            random.draw(&mut items, 2);
            counts[items[0]] += 1;
            counts[items[1]] += 1;
        }
        // 10,000 each; the standard deviation is 82.
        assert!(counts.iter().all(|c| c.abs_diff(10_000) < 400), "{counts:?}");
        assert_eq!(random.below(0), 0);
        random.draw(&mut [1], 9);
    }
}
