//! The scale that the kernel's program counts on: 16 buckets an octave.
//!
//! Each bucket is a union of buckets of [`crate::histogram`]'s scale, so histograms of both merge exactly
//! on this one.

/// Bits by which an octave is divided.
const OCTAVE_BITS: u32 = 4;
/// The first octave begins at 2^7 ns, the last ends at 2^34 ns: 17 s.
const LEAST_OCTAVE: u32 = 7;
const END_OCTAVE: u32 = 34;

/// By what part a percentile may lie above its true value, between both ends of the scale: the width of a
/// bucket.
pub const RESOLUTION: f64 = 1.0 / (1 << OCTAVE_BITS) as f64;

/// Buckets of the scale: the first holds all below 128 ns, the last all from 2^34 ns on.
pub const BUCKETS: usize = (((END_OCTAVE - LEAST_OCTAVE) << OCTAVE_BITS) + 2) as usize;

/// The values of bucket `index`, ns: from the lower edge up to, not including, the upper one. The last
/// bucket also holds `u64::MAX`.
pub fn edges_of(index: usize) -> (u64, u64) {
    match index {
        0 => (0, 1 << LEAST_OCTAVE),
        _ if index >= BUCKETS - 1 => (1 << END_OCTAVE, u64::MAX),
        _ => {
            let shift = (index - 1) >> OCTAVE_BITS;
            let within = ((index - 1) & ((1 << OCTAVE_BITS) - 1)) as u64;
            let width = 1 << (shift + (LEAST_OCTAVE - OCTAVE_BITS) as usize);
            let lower = ((1 << OCTAVE_BITS) + within) * width;
            (lower, lower + width)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram;

    #[test]
    fn the_scale_has_no_gaps_and_is_narrow() {
        let mut end = 0;
        for index in 0..BUCKETS {
            let (lower, upper) = edges_of(index);
            assert_eq!(lower, end, "bucket {index}");
            if (1..BUCKETS - 1).contains(&index) {
                assert!((upper - lower) * 16 <= lower, "bucket {index} is too wide");
            }
            end = upper;
        }
        assert_eq!(end, u64::MAX);
    }

    /// What makes merging with what `measure` records exact.
    #[test]
    fn each_edge_is_one_of_the_fine_scale() {
        for index in 0..BUCKETS {
            let (lower, _) = edges_of(index);
            assert_eq!(histogram::edges_of(histogram::bucket_of(lower)).0, lower, "bucket {index}");
        }
    }
}
