//! Student's t distribution, for any number of degrees of freedom from 1 on, whole or not.

use std::f64::consts::PI;

/// How likely a value above `t` is, which is not negative, with `freedom` degrees of freedom. Of tails down to
/// 10^-100 it errs by less than a part in 10^10.
pub(crate) fn above(t: f64, freedom: f64) -> f64 {
    let (a, square) = (freedom / 2.0, t * t);
    // The regularized incomplete beta function of a and 1/2, halved. Its fraction converges where the
    // argument is small; elsewhere the rest of the whole is small.
    let near_0 = freedom / (freedom + square);
    let near_1 = square / (freedom + square);
    // x^a, without loss where x is almost 1.
    let power = (-a * (square / freedom).ln_1p()).exp();
    let common = power * near_1.sqrt() / beta_with_half(a);
    if near_0 < (a + 1.0) / (a + 2.5) {
        common * fraction(near_0, a, 0.5) / a / 2.0
    } else {
        0.5 - common * fraction(near_1, 0.5, a)
    }
}

/// The value that a share `tail` lies above, above 0 and at most one half. Infinite where it is beyond
/// what a number can hold.
pub(crate) fn quantile(tail: f64, freedom: f64) -> f64 {
    let mut high = 1.0;
    while above(high, freedom) > tail {
        high *= 2.0;
        if !high.is_finite() {
            return high;
        }
    }
    let mut low = 0.0;
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            return high;
        }
        if above(middle, freedom) > tail { low = middle } else { high = middle }
    }
}

/// The beta function of `a` and 1/2: Γ(a) √π / Γ(a + 1/2).
fn beta_with_half(mut a: f64) -> f64 {
    let mut product = PI.sqrt();
    // Γ(a) / Γ(a + 1/2) by that of a + 1, until its expansion is exact (Tricomi and Erdélyi, 1951).
    while a < 100.0 {
        product *= (a + 0.5) / a;
        a += 1.0;
    }
    let x = 1.0 / a;
    let ratio = 1.0 - x * (1.0 / 8.0 - x * (1.0 / 128.0 + x * (5.0 / 1024.0 - x * 21.0 / 32768.0)));
    product / (a.sqrt() * ratio)
}

/// The continued fraction of the incomplete beta function of `a` and `b` (Abramowitz and Stegun, 26.5.8), by
/// Lentz's method. It takes about as many steps as the square root of the larger one.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    let apart_from_0 = |x: f64| if x.abs() < 1e-300 { 1e-300 } else { x };
    let (mut c, mut d, mut value) = (f64::INFINITY, 1.0, 1.0);
    for step in 1..10_000 {
        let m = f64::from(step / 2);
        let term = match step % 2 {
            0 => m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            _ => -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        };
        d = 1.0 / apart_from_0(1.0 + term * d);
        c = apart_from_0(1.0 + term / c);
        value *= c * d;
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests;
