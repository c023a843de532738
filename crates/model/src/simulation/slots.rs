//! What comes next: one time for each thing that can come.

/// Times of things that come, of which the earliest is known at once: a tournament. Of several at one
/// time the first in the list comes first, so that nothing is left to chance.
#[derive(Clone, Debug)]
pub(super) struct Slots {
    times: Vec<u64>,
    /// For each match, the number of its winner; the final is at 1, the last round's begin at `times`'
    /// length.
    winners: Vec<u16>,
}

/// A time that never comes.
pub(super) const NEVER: u64 = u64::MAX;

impl Slots {
    pub(super) fn new(count: usize) -> Self {
        let leaves = count.next_power_of_two().max(2);
        let mut winners: Vec<u16> = vec![0; leaves];
        for at in (1..leaves).rev() {
            winners[at] = if at >= leaves / 2 {
                u16::try_from((at - leaves / 2) * 2).unwrap_or(u16::MAX)
            } else {
                winners[at * 2]
            };
        }
        Self { times: vec![NEVER; leaves], winners }
    }

    pub(super) fn get(&self, slot: usize) -> u64 {
        self.times[slot]
    }

    pub(super) fn set(&mut self, slot: usize, time: u64) {
        self.times[slot] = time;
        let leaves = self.times.len();
        let mut at = (slot + leaves) / 2;
        let first = slot & !1;
        let mut winner = self.earlier(first, first + 1);
        loop {
            self.winners[at] = u16::try_from(winner).unwrap_or(u16::MAX);
            if at == 1 {
                return;
            }
            let other = usize::from(self.winners[at ^ 1]);
            winner =
                if at & 1 == 0 { self.earlier(winner, other) } else { self.earlier(other, winner) };
            at /= 2;
        }
    }

    /// The slot whose time comes first, and that time.
    pub(super) fn first(&self) -> (usize, u64) {
        let slot = usize::from(self.winners[1]);
        (slot, self.times[slot])
    }

    fn earlier(&self, one: usize, other: usize) -> usize {
        if self.times[other] < self.times[one] { other } else { one }
    }
}

#[cfg(test)]
mod tests {
    use wakescope_core::random::Random;

    use super::*;

    #[test]
    fn the_first_is_the_earliest_and_of_equal_ones_the_first() {
        for count in [1, 2, 3, 7, 64, 100] {
            let mut slots = Slots::new(count);
            let mut random = Random::new(count as u64);
            let mut times = vec![NEVER; count];
            for _ in 0..1_000 {
                let slot = random.below(count);
                let time = random.below(20) as u64;
                times[slot] = time;
                slots.set(slot, time);
                let earliest = *times.iter().min().unwrap();
                let want = times.iter().position(|&time| time == earliest).unwrap();
                assert_eq!(slots.first(), (want, earliest), "{count} slots");
                assert_eq!(slots.get(slot), time);
            }
        }
    }
}
