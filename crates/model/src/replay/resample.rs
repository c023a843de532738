//! What other cells of a course would measure, as far as one course can tell: its wakeups, drawn anew.

use wakescope_core::random::Random;

/// Draws from a sample again and again, the same on each run.
#[derive(Clone, Debug)]
pub(super) struct Resampler {
    random: Random,
}

impl Resampler {
    /// What it draws, `seed` repeats.
    pub(super) fn new(seed: u64) -> Self {
        Self { random: Random::new(seed) }
    }

    /// As many items as there are, in blocks of neighbours that begin anywhere; the first follows the last.
    ///
    /// Late wakeups come together, for one stretch of work holds up several, and a block keeps them together. The best
    /// length for a figure's variance grows as the cube root of their number does (Hall, Horowitz and Jing, 1995).
    pub(super) fn blocks<'a, T>(&mut self, items: &'a [T]) -> impl Iterator<Item = &'a T> {
        let block = block_of(items.len());
        let starts: Vec<usize> =
            (0..items.len().div_ceil(block)).map(|_| self.random.below(items.len())).collect();
        let of_block = move |start| items.iter().cycle().skip(start).take(block);
        starts.into_iter().flat_map(of_block).take(items.len())
    }

    /// One of the items; `None` if there is none.
    pub(super) fn one<T: Copy>(&mut self, items: &[T]) -> Option<T> {
        items.get(self.random.below(items.len())).copied()
    }
}

/// The number whose cube is `count`, or the last below; 1 at least.
fn block_of(count: usize) -> usize {
    let mut block = 1_usize;
    while (block + 1).checked_pow(3).is_some_and(|cube| cube <= count) {
        block += 1;
    }
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_the_cube_root_of_what_is_drawn_from() {
        let blocks = [0, 1, 7, 8, 26, 27, 2_000].map(block_of);
        assert_eq!(blocks, [1, 1, 1, 2, 2, 3, 12]);
    }

    #[test]
    fn as_many_are_drawn_as_there_are_each_block_with_its_neighbours() {
        let items: Vec<usize> = (0..30).collect();
        let mut resampler = Resampler::new(7);
        let mut seen = [0; 30];
        for _ in 0..300 {
            let drawn: Vec<usize> = resampler.blocks(&items).copied().collect();
            assert_eq!(drawn.len(), 30);
            for block in drawn.chunks(3) {
                assert!(block.windows(2).all(|pair| pair[1] == (pair[0] + 1) % 30), "{block:?}");
            }
            drawn.iter().for_each(|item| seen[*item] += 1);
        }
        // Each about 300 times: 10 starts of 30, of three blocks with it.
        assert!(seen.iter().all(|times| (200..400).contains(times)), "{seen:?}");
        assert_eq!(resampler.blocks(&[] as &[usize]).count(), 0);
        assert_eq!(resampler.one(&[] as &[usize]), None);
        let again = |seed| Resampler::new(seed).blocks(&items).copied().collect::<Vec<_>>();
        assert_eq!(again(7), again(7));
        assert_ne!(again(7), again(8));
    }
}
