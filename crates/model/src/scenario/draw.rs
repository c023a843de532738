//! Random numbers of several distributions, which are the same to the bit on every machine.
//!
//! The functions of mathematical libraries differ in their last bit between machines, with what their
//! processors can do. Here are only additions, multiplications and divisions, which IEEE 754 defines.

use std::f64::consts::LN_2;

use wakescope_core::random::Random;

/// A number from `least` on and below `end`.
pub(crate) fn between(least: u64, end: u64, random: &mut Random) -> u64 {
    let span = u128::from(end.saturating_sub(least));
    let beyond = (u128::from(random.number()) * span) >> 64;
    least + u64::try_from(beyond).unwrap_or(0)
}

/// Sums of ln(2)^i / i!, from i = 1 on: the last one is 1 to the precision of a number.
const SUMS: [f64; 16] = sums();

const fn sums() -> [f64; 16] {
    let mut sums = [0.0; 16];
    let (mut sum, mut term, mut i) = (0.0, 1.0, 0);
    while i < sums.len() {
        term = term * LN_2 / (i + 1) as f64;
        sum += term;
        sums[i] = sum;
        i += 1;
    }
    sums
}

/// An exponentially distributed number with the mean 1: Ahrens and Dieter, "Computer methods for
/// sampling from the exponential and normal distributions", 1972, algorithm SA.
pub(crate) fn exponential(random: &mut Random) -> f64 {
    let bits = random.number();
    // Each leading zero is a halving of what is left.
    let halvings = bits.leading_zeros().min(51);
    let whole = f64::from(halvings) * LN_2;
    let rest = (((bits << halvings) << 1) >> 12) as f64 / (1_u64 << 52) as f64;
    if rest <= SUMS[0] {
        return whole + rest;
    }
    let mut least = random.uniform();
    let mut i = 1;
    loop {
        least = least.min(random.uniform());
        if i + 1 == SUMS.len() || rest <= SUMS[i] {
            return whole + least * LN_2;
        }
        i += 1;
    }
}

/// e to the power of `x`, to ten digits; `x` is 0 or more.
pub(crate) fn power(x: f64) -> f64 {
    /// More than 2^63 is nobody's length.
    const MOST: u32 = 100;
    let (mut rest, mut whole) = (x, 1.0);
    let mut halvings = 0;
    while rest >= LN_2 && halvings < MOST {
        rest -= LN_2;
        whole *= 2.0;
        halvings += 1;
    }
    let (mut sum, mut term) = (1.0, 1.0);
    for i in 1..=14 {
        term *= rest / f64::from(i);
        sum += term;
    }
    whole * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_those_of_the_library() {
        for x in [0.0, 1e-9, 0.3, 0.693, 0.7, 1.0, 2.5, 10.0, 31.4] {
            let (is, want) = (power(x), f64::exp(x));
            assert!((is / want - 1.0).abs() < 1e-10, "{x}: {is}, not {want}");
        }
    }

    #[test]
    fn exponential_numbers_have_their_shares() {
        let mut random = Random::new(1);
        let drawn: Vec<f64> = (0..1_000_000).map(|_| exponential(&mut random)).collect();
        let mean = drawn.iter().sum::<f64>() / 1e6;
        assert!((mean - 1.0).abs() < 0.004, "{mean}");
        for x in [0.01, 0.1, 0.5, 0.693, 0.7, 1.0, 2.0, 4.0, 8.0] {
            let above = drawn.iter().filter(|&&drawn| drawn > x).count() as f64 / 1e6;
            let want = f64::exp(-x);
            // Five standard deviations.
            let allowed = 5.0 * (want * (1.0 - want) / 1e6).sqrt();
            assert!((above - want).abs() < allowed, "{x}: {above}, not {want}");
        }
    }
}
