//! Figures held against those of other programs: the constants are printed by reference.py.

// SciPy 1.17.1, statsmodels 0.15.0

use super::count::{poisson_interval, poisson_upper, share_upper, time_needed_ns};
use super::pareto::{Excesses, Grid, Pareto};
use super::{series, whole_ns};
use crate::histogram::{Bucket, Histogram};
use crate::random::Random;

#[track_caller]
fn close(got: f64, want: f64, share: f64) {
    assert!((got - want).abs() <= share * want.abs().max(1e-300), "{got}, not {want}");
}

fn uniforms(seed: u64, count: u32) -> Vec<f64> {
    let mut random = Random::new(seed);
    (0..count).map(|_| random.uniform()).collect()
}

#[test]
fn tails_are_fitted_as_scipy_does() {
    for (seed, count, true_shape, shape, scale) in [
        (1, 500, 0.2, 0.18919, 21052.7),
        (2, 500, 0.0, -0.01012, 19371.8),
        (3, 1000, -0.2, -0.21242, 20099.3),
        (4, 200, 0.4, 0.45529, 21086.9),
        (5, 2000, 0.1, 0.09228, 20156.0),
    ] {
        let truth = Pareto { scale: 20_000.0, shape: true_shape };
        let values: Vec<u64> =
            uniforms(seed, count).into_iter().map(|u| whole_ns(truth.excess(u).floor())).collect();
        // Each sample known to the nanosecond, and each in a bucket 0.2 % wide at 10 ms, where the
        // whole tail lies in a few dozen.
        let mut sorted = values.clone();
        sorted.sort_unstable();
        let fine: Vec<Bucket> = sorted
            .chunk_by(|a, b| a == b)
            .map(|same| Bucket { lower: same[0], upper: same[0] + 1, count: same.len() as u64 })
            .collect();
        let coarse = Histogram::of(values.iter().map(|v| v + 9_961_472));
        for (buckets, grid, shape_error, scale_error) in [
            (fine.as_slice(), Grid::Width(1), 0.01, 0.01),
            (coarse.buckets(), Grid::Scale, 0.04, 0.04),
        ] {
            let mut buckets = buckets.to_vec();
            if grid == Grid::Width(1) {
                // Excesses begin at 0, whether or not one has just that.
                buckets[0].lower = 0;
            }
            let fit = Excesses::new(&buckets, grid).unwrap().fit();
            assert_eq!(fit.count, u64::from(count));
            assert!((fit.pareto.shape - shape).abs() < shape_error, "{seed}: {fit:?}");
            close(fit.pareto.scale, scale, scale_error);
        }
    }
}

#[test]
fn shares_are_bounded_as_by_the_beta_distribution() {
    for (excesses, count, limit) in [
        (0, 100.0, 2.951305e-02),
        (0, 1000000.0, 2.995728e-06),
        (1, 100.0, 4.655981e-02),
        (2, 20001.0, 3.147401e-04),
        (50, 1000.0, 6.286340e-02),
    ] {
        close(share_upper(excesses, count), limit, 1e-6);
    }
    close(share_upper(300, 100_000.0), 3.300445e-03, 1e-3);
    close(share_upper(3, 3.0), 1.0, 0.0);
    close(share_upper(0, f64::NAN), 1.0, 0.0);
}

#[test]
fn rates_are_bounded_as_by_the_chi_square_distribution() {
    for (events, upper, (low, high)) in [
        (0, 2.995732, (0.000000, 3.688879)),
        (1, 4.743865, (0.025318, 5.571643)),
        (2, 6.295794, (0.242209, 7.224688)),
        (12, 19.442569, (6.200575, 20.961585)),
        (200, 224.874351, (173.240883, 229.721982)),
        (201, 225.932324, (174.171645, 230.791050)),
        (5000, 5117.886079, (4862.359189, 5140.548949)),
    ] {
        let error = if events > 199 { 1e-4 } else { 1e-6 };
        close(poisson_upper(events), upper, error);
        let interval = poisson_interval(events);
        close(interval.0, low, error.max(1e-5));
        close(interval.1, high, error);
    }
    let hour = 3_600_000_000_000;
    close(time_needed_ns(hour, 0) as f64, 2.995732 * hour as f64, 1e-6);
    close(time_needed_ns(hour, 2) as f64, 6.295794 * hour as f64, 1e-6);
    assert_eq!(time_needed_ns(u64::MAX, 0), u64::MAX);
}

#[test]
fn series_are_tested_as_statsmodels_does() {
    for (seed, count, level, p_value) in
        [(6, 100, 0.169362, 0.722903), (7, 40, 0.105199, 0.940530), (8, 128, 0.184537, 0.032789)]
    {
        let values: Vec<f64> = uniforms(seed, count).iter().map(|u| (-u.ln()).ln()).collect();
        close(series::level(&values), level, 1e-5);
        close(series::independence(&values), p_value, 1e-4);
    }
    assert!(series::level(&[1.0; 50]) < 1e-9 && series::independence(&[1.0; 50]) > 0.999);
}

#[test]
fn uneven_times_are_found_as_scipy_does() {
    for (seed, count, p_value) in [(9, 50, 0.4784), (10, 200, 0.0123)] {
        let mut times: Vec<f64> = uniforms(seed, count).iter().map(|u| u.powf(0.8)).collect();
        // SciPy's is exact, ours Stephens' approximation.
        close(series::evenness(&mut times), p_value, 0.05);
    }
}
