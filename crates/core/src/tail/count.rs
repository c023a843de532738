//! What counting alone proves: exact limits on rates, at 95 %.

/// What a one-sided limit leaves out.
const ALPHA: f64 = 0.05;

/// Steps of a bisection: each halves the interval, and a double has 53 bits.
const STEPS: u32 = 100;

/// From so many events on, an approximation is as good as the sum of all terms.
const MANY: u64 = 200;

/// At 95 %, the share of samples that exceed something is at most this, if `excesses` of `count`
/// did (Clopper and Pearson, Biometrika 26, 1934). `count` need not be whole: it may be what
/// dependent samples are worth.
///
/// Without an excess that is 1 - 0.05^(1/count), about 3/count: the rule of three.
pub fn share_upper(excesses: u64, count: f64) -> f64 {
    let k = excesses as f64;
    if count.is_nan() || count <= k {
        return 1.0;
    }
    if excesses == 0 {
        return -(ALPHA.ln() / count).exp_m1();
    }
    if excesses > MANY {
        // Rare: then the binomial is a Poisson.
        return (poisson_upper(excesses) / count).min(1.0);
    }
    let at_most = |p: f64| {
        let mut log_term = count * (-p).ln_1p();
        let mut sum = log_term.exp();
        for i in 0..excesses {
            let i = i as f64;
            log_term += ((count - i) / (i + 1.0)).ln() + p.ln() - (-p).ln_1p();
            sum += log_term.exp();
        }
        sum
    };
    bisect(0.0, 1.0, |p| at_most(p) > ALPHA)
}

/// At 95 %, the mean number of events in a time is at most this, if `events` were seen in it.
/// Without one it is 3.00.
pub fn poisson_upper(events: u64) -> f64 {
    upper_at(events, ALPHA)
}

/// The 95 % interval of the mean number of events in a time, if `events` were seen in it (Garwood,
/// Biometrika 28, 1936).
pub fn poisson_interval(events: u64) -> (f64, f64) {
    let low = if events == 0 { 0.0 } else { upper_at(events - 1, 1.0 - ALPHA / 2.0) };
    (low, upper_at(events, ALPHA / 2.0))
}

/// How long one must measure, with `excesses` in all, to claim at 95 % that there is less than one
/// in each `every_ns`.
pub fn time_needed_ns(every_ns: u64, excesses: u64) -> u64 {
    super::whole_ns(every_ns as f64 * poisson_upper(excesses))
}

/// The mean with which at most `events` have the probability `alpha`.
fn upper_at(events: u64, alpha: f64) -> f64 {
    let k = events as f64;
    if events > MANY {
        // Wilson and Hilferty's cube root (1931) of a chi-square with 2k + 2 degrees of freedom.
        let ninth = 1.0 / (9.0 * (k + 1.0));
        return (k + 1.0) * (1.0 - ninth + normal_quantile(1.0 - alpha) * ninth.sqrt()).powi(3);
    }
    let at_most = |mean: f64| {
        let mut log_term = -mean;
        let mut sum = log_term.exp();
        for i in 1..=events {
            log_term += (mean / i as f64).ln();
            sum += log_term.exp();
        }
        sum
    };
    bisect(0.0, 10.0 * (k + 3.0), |mean| at_most(mean) > alpha)
}

/// Where `is_below` turns from true to false.
pub(super) fn bisect(mut low: f64, mut high: f64, is_below: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        if is_below(middle) { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// The quantile of the normal distribution, by its tail's expansion (Abramowitz and Stegun 26.2.23;
/// the error is below 0.00045).
fn normal_quantile(p: f64) -> f64 {
    let tail = p.min(1.0 - p);
    let t = (-2.0 * tail.ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    (t - above / below).copysign(p - 0.5)
}
