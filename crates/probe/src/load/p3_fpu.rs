//! The load `p3-fpu`: multiplies matrices of floating-point numbers. After P3_FPU of the stress-kernel
//! package, which did that with the vector unit of the Pentium III; here the compiler chooses the
//! instructions.

use std::hint::black_box;

use super::crew::{allowed_cpus, work_together};
use super::kinds::Job;
use super::random::Random;

/// Rows and columns. Three such matrices of `f32` fit into the first cache, so that arithmetic is all
/// there is to do.
const SIZE: usize = 48;

type Matrix = [[f32; SIZE]; SIZE];

/// Multiplies on every allowed CPU until the desk says stop.
pub(super) fn run(job: &Job<'_>) -> Result<(), String> {
    let &Job { seed, desk, .. } = job;
    let cpus = allowed_cpus()?;
    let members = (0..cpus.len() as u64).collect();
    work_together("load-p3-fpu", members, desk, |rank, crew| {
        let mut random = Random::new(seed.wrapping_add(rank));
        let (a, b) = (matrix(&mut random), matrix(&mut random));
        let mut product = [[0.0; SIZE]; SIZE];
        crew.ready();
        while !crew.stopping() {
            multiply(black_box(&a), black_box(&b), &mut product);
            black_box(&product);
            crew.done(1);
        }
        Ok(())
    })
    .map(drop)
}

/// Numbers from -1 to 1. None is so small that it would be slow (subnormal).
fn matrix(random: &mut Random) -> Matrix {
    let mut number = || (random.below(2_000_001) as f32 - 1e6) / 1e6;
    std::array::from_fn(|_| std::array::from_fn(|_| number()))
}

/// `product` = `a` × `b`. Row by row, so that the inner loop runs over neighbours and becomes vector
/// instructions.
fn multiply(a: &Matrix, b: &Matrix, product: &mut Matrix) {
    for (row, out) in a.iter().zip(product) {
        let mut sums = [0.0; SIZE];
        for (factor, other) in row.iter().zip(b) {
            for (sum, number) in sums.iter_mut().zip(other) {
                *sum += factor * number;
            }
        }
        *out = sums;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_those_of_the_definition() {
        let mut random = Random::new(1);
        let (a, b) = (matrix(&mut random), matrix(&mut random));
        let mut product = [[7.0; SIZE]; SIZE];
        multiply(&a, &b, &mut product);
        for (i, row) in product.iter().enumerate() {
            for (j, got) in row.iter().enumerate() {
                let want: f64 = (0..SIZE).map(|k| f64::from(a[i][k]) * f64::from(b[k][j])).sum();
                assert!((f64::from(*got) - want).abs() < 1e-4, "{i}, {j}: {got}, {want}");
            }
        }
        assert_eq!(matrix(&mut Random::new(5)), matrix(&mut Random::new(5)));
    }
}
