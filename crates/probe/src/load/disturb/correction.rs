//! How much of something it takes when that changes while it goes on.

use wakescope_core::units::SpanNs;

use super::calibrate::{middle, scaled};

/// So many are looked at before the amount changes. The median counts, so that three of them may
/// have been made longer by something else, as a stall of the machine.
const LOOKED_AT: usize = 7;

/// What is off by less than one part in so many stays as it is: medians of so few are not alike by
/// more than that.
const NEAR: u64 = 50;

/// How many times as much or as little it may become at once, and in the end. A tracer that came
/// later made 300 µs of timers 660 to 770 µs (a guest of KVM, 6.18).
const STEP: usize = 2;
const RANGE: usize = 4;

/// Keeps what takes some time at that time.
#[derive(Debug)]
pub(super) struct Correction {
    length: SpanNs,
    /// The least and the most that the amount may become.
    bounds: [usize; 2],
    /// What the last ones of the present amount took.
    took: Vec<SpanNs>,
}

impl Correction {
    /// Of what takes `length`, `amount` of it by what is known so far, and never more than `most`.
    pub(super) fn new(length: SpanNs, amount: usize, most: usize) -> Self {
        let bounds = [(amount / RANGE).max(1), amount.saturating_mul(RANGE).min(most).max(1)];
        Self { length, bounds, took: Vec::with_capacity(LOOKED_AT) }
    }

    /// Another one, of `amount`, took so long. How much the next ones are to be of.
    pub(super) fn next(&mut self, amount: usize, took: SpanNs) -> usize {
        self.took.push(took);
        if self.took.len() < LOOKED_AT {
            return amount;
        }
        let usual = middle(&mut self.took);
        self.took.clear();
        if usual.0.abs_diff(self.length.0) <= self.length.0 / NEAR {
            return amount;
        }
        let [least, most] = self.bounds;
        let next = scaled(amount, self.length, usual);
        next.clamp(amount / STEP, amount.saturating_mul(STEP)).clamp(least, most.max(least))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `amount` comes to in so many disturbances, of which each takes what `cost` says by its
    /// number and amount.
    fn after(
        correction: &mut Correction,
        mut amount: usize,
        disturbances: usize,
        cost: impl Fn(usize, u64) -> u64,
    ) -> usize {
        for number in 0..disturbances {
            let took = SpanNs(cost(number, u64::try_from(amount).unwrap()));
            amount = correction.next(amount, took);
        }
        amount
    }

    const LENGTH: SpanNs = SpanNs(300_000);

    #[test]
    fn what_takes_longer_becomes_less_of() {
        // Nanoseconds that each takes, and how much of it makes the length.
        for (each, want) in [(400, 746), (615, 485), (767, 389), (1_500, 199), (3_000, 99)] {
            let mut correction = Correction::new(LENGTH, 391, 10_000);
            let got = after(&mut correction, 391, 5 * LOOKED_AT, |_, n| 1_700 + each * n);
            assert!(got.abs_diff(want) * 33 <= want, "{each} ns: {got}, {want}");
        }
    }

    #[test]
    fn it_comes_back_to_what_it_was() {
        let mut correction = Correction::new(LENGTH, 391, 10_000);
        let less = after(&mut correction, 391, 28, |_, n| 1_500 * n);
        assert_eq!(less, 200);
        let again = after(&mut correction, less, 28, |_, n| 767 * n);
        assert!(again.abs_diff(391) <= 8, "{again}");
    }

    #[test]
    fn what_is_right_stays() {
        // 2 % is what they differ by anyway.
        for took in [294_100, 299_600, 305_900] {
            let mut correction = Correction::new(LENGTH, 391, 10_000);
            assert_eq!(after(&mut correction, 391, 100, |_, _| took), 391, "{took}");
        }
    }

    #[test]
    fn a_few_that_something_else_made_longer_or_shorter_do_not_count() {
        for odd in [0, 20_000, 700_000, 40_000_000, u64::MAX] {
            let mut correction = Correction::new(LENGTH, 391, 10_000);
            // Three of each seven.
            let cost = |number: usize, _| if number % 7 < 3 { odd } else { 299_600 };
            assert_eq!(after(&mut correction, 391, 100, cost), 391, "{odd}");
        }
    }

    #[test]
    fn it_stays_within_bounds() {
        let ends = |amount, most, took| {
            let mut correction = Correction::new(LENGTH, amount, most);
            let first = after(&mut correction, amount, LOOKED_AT, |_, _| took);
            (first, after(&mut correction, first, 100, |_, _| took))
        };
        assert_eq!(ends(400, 10_000, 0), (800, 1_600));
        assert_eq!(ends(400, 10_000, u64::MAX), (200, 100));
        assert_eq!(ends(400, 500, 0), (500, 500));
        assert_eq!(ends(1, 10_000, u64::MAX), (1, 1));
        assert_eq!(ends(1, 1, 0), (1, 1));
    }
}
