//! The bands of a histogram: fewer and wider than its buckets, for pictures, tables and text.

use wakescope_core::histogram::Bucket;

/// A band of a histogram: from one edge up to, not including, another, and how many samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Band {
    pub(crate) lower: u64,
    pub(crate) upper: u64,
    pub(crate) count: u64,
    /// Whether it is one bucket that is wider than the scale's band: its samples may lie anywhere in it.
    pub(crate) is_wide: bool,
}

/// The bands of `buckets`, which ascend. `edges_at` gives the edges of the scale's band of a value.
///
/// A bucket goes as a whole into the band of its lower edge. If it reaches into the next band, the edge
/// between the two moves to its upper edge. So each sample lies between the edges of its band, also
/// where the buckets have other edges than the scale. A bucket that is wider than its band is a band by
/// itself, so nothing is spread over values that it may not have.
pub(crate) fn of(
    buckets: impl IntoIterator<Item = Bucket>,
    edges_at: impl Fn(u64) -> (u64, u64),
) -> Vec<Band> {
    let mut bands: Vec<Band> = Vec::new();
    for bucket in buckets {
        let (lower, upper) = edges_at(bucket.lower);
        let is_wide = bucket.upper - bucket.lower > upper - lower;
        match bands.last_mut() {
            // Buckets do not overlap, so this is the band of its lower edge.
            Some(last) if bucket.lower < last.upper && !is_wide => {
                last.upper = last.upper.max(bucket.upper);
                last.count = last.count.saturating_add(bucket.count);
            }
            mut last => {
                let end_of_last = last.as_mut().map_or(0, |last| {
                    last.upper = last.upper.min(bucket.lower);
                    last.upper
                });
                let (lower, upper) = match is_wide {
                    true => (bucket.lower, bucket.upper),
                    false => (lower.max(end_of_last), upper.max(bucket.upper)),
                };
                bands.push(Band { lower, upper, count: bucket.count, is_wide });
            }
        }
    }
    bands
}

/// The edges of the band of `value`, of eight equal bands to each doubling. Below 8, each value has a
/// band of its own.
pub(crate) fn eight_to_a_doubling(value: u64) -> (u64, u64) {
    let doubling = 63 - (value | 1).leading_zeros();
    let width = 1_u64 << doubling.saturating_sub(3);
    let lower = value / width * width;
    (lower, lower.saturating_add(width))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bucket(lower: u64, upper: u64, count: u64) -> Bucket {
        Bucket { lower, upper, count }
    }

    /// Buckets of any edges: equal rows, as other programs write them, perhaps with an overflow, or
    /// widths and gaps of every magnitude.
    pub(crate) fn any_buckets() -> impl Strategy<Value = Vec<Bucket>> {
        let rows = (1_u64..3_000, prop::collection::vec(0_u64..50, 1..300), 0_u64..1_000_000);
        let rows = rows.prop_map(|(width, counts, overflow)| {
            let end = counts.len() as u64 * width;
            let row = |(at, count)| bucket(at * width, (at + 1) * width, count);
            let rows = (0..).zip(counts).map(row).chain([bucket(end, end + 1 + overflow, 7)]);
            rows.filter(|b| b.count > 0).collect()
        });
        let magnitude = || (0_u32..40, any::<u64>()).prop_map(|(bits, any)| any % (1 << bits));
        let any = prop::collection::vec((magnitude(), magnitude(), 1_u64..1_000), 1..60);
        let any = any.prop_map(|steps| {
            let mut end = 0;
            let next = |(gap, width, count)| {
                let lower = end + gap;
                end = lower + width + 1;
                bucket(lower, end, count)
            };
            steps.into_iter().map(next).collect()
        });
        prop_oneof![rows, any]
    }

    /// Whether each bucket lies in one of the bands, which hold nothing else and do not overlap.
    pub(crate) fn check_holds_all(bands: &[Band], buckets: &[Bucket]) -> Result<(), TestCaseError> {
        prop_assert!(bands.windows(2).all(|w| w[0].upper <= w[1].lower), "{:?}", bands);
        let mut held = 0;
        for band in bands {
            prop_assert!(band.lower < band.upper, "{:?}", band);
            let inside = |b: &&Bucket| b.lower >= band.lower && b.upper <= band.upper;
            let inside: Vec<&Bucket> = buckets.iter().filter(inside).collect();
            held += inside.len();
            prop_assert_eq!(inside.iter().map(|b| b.count).sum::<u64>(), band.count, "{:?}", band);
            prop_assert!(!band.is_wide || inside.len() == 1, "{:?}", band);
        }
        prop_assert_eq!(held, buckets.len(), "in {:?}", bands);
        Ok(())
    }

    #[test]
    fn edges_move_to_those_of_buckets() {
        let edges = |buckets: &[Bucket]| -> Vec<(u64, u64, u64)> {
            let bands = of(buckets.iter().copied(), eight_to_a_doubling);
            bands.iter().map(|b| (b.lower, b.upper, b.count)).collect()
        };
        for (buckets, want) in [
            (vec![bucket(0, 1, 4), bucket(1, 2, 5)], vec![(0, 1, 4), (1, 2, 5)]),
            // Of one band, and of the next one.
            (
                vec![bucket(16, 17, 1), bucket(17, 18, 2), bucket(18, 19, 3)],
                vec![(16, 18, 3), (18, 20, 3)],
            ),
            // 16 to 18 is a band; the second bucket straddles its end, and the third one that of the next.
            (
                vec![bucket(16, 17, 1), bucket(17, 19, 2), bucket(19, 21, 3), bucket(21, 22, 4)],
                vec![(16, 19, 3), (19, 21, 3), (21, 22, 4)],
            ),
            // One that is wider than a band ends the band before it.
            (
                vec![bucket(64, 65, 1), bucket(66, 90, 2), bucket(90, 91, 3)],
                vec![(64, 66, 1), (66, 90, 2), (90, 96, 3)],
            ),
            (vec![bucket(0, 1_000, 9)], vec![(0, 1_000, 9)]),
        ] {
            assert_eq!(edges(&buckets), want, "{buckets:?}");
        }
    }

    #[test]
    fn rows_of_a_microsecond_stay_apart() {
        let rows = (16..200).map(|us| bucket(us * 1_000, (us + 1) * 1_000, 1));
        let bands = of(rows, eight_to_a_doubling);
        let widest = bands.iter().map(|b| (b.upper - b.lower) as f64 / b.lower as f64);
        assert!(widest.fold(0.0, f64::max) < 0.2, "{bands:?}");
        assert!(bands.len() > 25, "{bands:?}");
    }

    proptest! {
        #[test]
        fn each_bucket_is_in_one_band(buckets in any_buckets()) {
            let bands = of(buckets.iter().copied(), eight_to_a_doubling);
            check_holds_all(&bands, &buckets)?;
            for band in bands.iter().filter(|b| !b.is_wide) {
                let (lower, upper) = eight_to_a_doubling(band.lower);
                prop_assert!(band.upper - band.lower <= 2 * (upper - lower), "{:?}", band);
            }
        }
    }
}
