//! Histograms: counts between explicit edges, on a log-linear scale where we choose the edges.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::percentile::Percentile;

/// Bits of each value that the scale keeps: 512 buckets per octave.
const KEPT_BITS: u32 = 9;

/// Buckets that cover every `u64`.
pub(crate) const SCALE_BUCKETS: usize = ((64 - KEPT_BITS as usize) + 1) << KEPT_BITS;

/// Where `value` lies on the scale.
///
/// Below 1,024 every value has a bucket of its own; above, a bucket is at most 1/512 (0.195 %)
/// as wide as its lower edge.
#[inline]
pub fn bucket_of(value: u64) -> usize {
    let octave = 63 - (value | 1).leading_zeros();
    let shift = octave.saturating_sub(KEPT_BITS);
    // At most 10 bits are left after the shift, so nothing is cut off on any target.
    #[allow(clippy::cast_possible_truncation)]
    let within = (value >> shift) as usize;
    ((shift as usize) << KEPT_BITS) + within
}

/// The values of bucket `index`: from the lower edge up to, not including, the upper one.
/// The last bucket of all also holds `u64::MAX`.
pub fn edges_of(index: usize) -> (u64, u64) {
    let octave_width = 1_usize << KEPT_BITS;
    let shift = (index >> KEPT_BITS).saturating_sub(1);
    let within = index - (shift << KEPT_BITS);
    debug_assert!(within < 2 * octave_width);
    let lower = (within as u64) << shift;
    (lower, lower.saturating_add(1 << shift))
}

/// Some samples between two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The least value that belongs here.
    pub lower: u64,
    /// The least value that no longer does.
    pub upper: u64,
    /// How many samples do; never 0.
    pub count: u64,
}

impl Serialize for Bucket {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        (self.lower, self.upper, self.count).serialize(out)
    }
}

impl<'de> Deserialize<'de> for Bucket {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let (lower, upper, count) = Deserialize::deserialize(from)?;
        Ok(Self { lower, upper, count })
    }
}

/// Counts of samples between edges that are stated, in ascending order, none empty.
///
/// ```
/// use wakescope_core::histogram::Histogram;
/// let h = Histogram::of([7, 7, 9]);
/// assert_eq!(h.count(), 3);
/// assert_eq!(h.merged(&Histogram::of([8])).count(), 4);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Histogram {
    buckets: Vec<Bucket>,
}

impl Histogram {
    /// A histogram of counts per bucket of the scale.
    pub fn from_scale(counts: impl IntoIterator<Item = (usize, u64)> + Clone) -> Self {
        let used = counts.clone().into_iter().filter(|&(_, count)| count > 0).count();
        let mut buckets = Vec::with_capacity(used);
        buckets.extend(counts.into_iter().filter(|&(_, count)| count > 0).map(|(index, count)| {
            let (lower, upper) = edges_of(index);
            Bucket { lower, upper, count }
        }));
        Self { buckets }
    }

    /// A histogram of buckets that a file states: readers call [`Self::fault`].
    pub(crate) fn unchecked(buckets: Vec<Bucket>) -> Self {
        Self { buckets }
    }

    /// A histogram of buckets with edges of their own; what is wrong with them otherwise.
    pub fn from_buckets(buckets: Vec<Bucket>) -> Result<Self, String> {
        let made = Self { buckets };
        match made.fault() {
            Some(fault) => Err(fault),
            None => Ok(made),
        }
    }

    /// A histogram of `values`, on the scale.
    pub fn of(values: impl IntoIterator<Item = u64>) -> Self {
        let mut counts = std::collections::BTreeMap::new();
        for value in values {
            *counts.entry(bucket_of(value)).or_insert(0) += 1;
        }
        Self::from_scale(counts)
    }

    /// Gives back memory that it does not need: it is to be kept, beside many others.
    pub fn shrink_to_fit(&mut self) {
        self.buckets.shrink_to_fit();
    }

    /// The buckets, ascending.
    pub fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    /// How many samples there are. Saturates, which no run can reach.
    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, b| sum.saturating_add(b.count))
    }

    /// Both histograms as one. Buckets that overlap without being equal become one bucket that
    /// spans both, so the result may be coarser but never claims what the parts did not.
    #[must_use]
    pub fn merged(&self, other: &Self) -> Self {
        if self.buckets.is_empty() || other.buckets.is_empty() {
            return if self.buckets.is_empty() { other.clone() } else { self.clone() };
        }
        let (mut left, mut right) =
            (self.buckets.iter().peekable(), other.buckets.iter().peekable());
        let mut buckets: Vec<Bucket> = Vec::with_capacity(left.len().max(right.len()));
        loop {
            let next = match (left.peek(), right.peek()) {
                (Some(l), Some(r)) if (l.lower, l.upper) <= (r.lower, r.upper) => left.next(),
                (_, Some(_)) => right.next(),
                (_, None) => left.next(),
            };
            let Some(bucket) = next else { break };
            add(&mut buckets, *bucket);
        }
        Self { buckets }
    }

    /// Adds another one, as [`Self::merged`] does: without a new list where this one has all its buckets, as
    /// the sum of many of one scale soon has.
    pub fn add(&mut self, other: &Self) {
        let mut places = self.buckets.iter();
        let is_there = |one: &Bucket| {
            places
                .find(|own| own.lower >= one.lower)
                .is_some_and(|own| (own.lower, own.upper) == (one.lower, one.upper))
        };
        if !other.buckets.iter().all(is_there) {
            *self = self.merged(other);
            return;
        }
        let mut own = self.buckets.iter_mut();
        for one in &other.buckets {
            if let Some(own) = own.find(|own| own.lower == one.lower) {
                own.count = own.count.saturating_add(one.count);
            }
        }
    }

    /// A histogram of buckets in any order, of which those that overlap become one, as in
    /// [`Self::merged`].
    #[must_use]
    pub fn from_unordered(mut unordered: Vec<Bucket>) -> Self {
        unordered.sort_by_key(|b| (b.lower, b.upper));
        let mut buckets: Vec<Bucket> = Vec::new();
        unordered.into_iter().for_each(|bucket| add(&mut buckets, bucket));
        Self { buckets }
    }

    /// The largest value that the sample at `percentile` can have had: at most one bucket width
    /// (0.2 %) above its true value, never below. `None` if the samples do not carry it.
    pub fn percentile(&self, percentile: Percentile) -> Option<u64> {
        self.bucket_of_percentile(percentile).map(|bucket| bucket.upper - 1)
    }

    /// The bucket of the sample at `percentile`. `None` if the samples do not carry it.
    pub fn bucket_of_percentile(&self, percentile: Percentile) -> Option<Bucket> {
        self.bucket_at(percentile, self.count())
    }

    fn bucket_at(&self, percentile: Percentile, count: u64) -> Option<Bucket> {
        if !percentile.is_carried_by(count) {
            return None;
        }
        let rank = percentile.rank(count);
        let mut seen = 0_u64;
        self.buckets.iter().copied().find(|bucket| {
            seen = seen.saturating_add(bucket.count);
            seen >= rank
        })
    }

    /// How many samples are certainly below `value`: those in buckets that end at or before it.
    /// Exact when `value` is an edge.
    pub fn count_below(&self, value: u64) -> u64 {
        self.buckets.iter().take_while(|b| b.upper <= value).fold(0, |sum, b| sum + b.count)
    }

    /// How many samples may be below `value`: those in buckets that begin before it. Exact when
    /// `value` is an edge.
    pub fn count_up_to(&self, value: u64) -> u64 {
        self.buckets.iter().take_while(|b| b.lower < value).fold(0, |sum, b| sum + b.count)
    }

    /// What is wrong with this histogram, if anything: readers call it on what they are given.
    pub fn fault(&self) -> Option<String> {
        self.checked_count().err()
    }

    /// How many samples there are; or else what is wrong with the histogram.
    pub(crate) fn checked_count(&self) -> Result<u64, String> {
        let mut end = 0;
        let mut total = 0_u64;
        for (i, b) in self.buckets.iter().enumerate() {
            if b.lower >= b.upper {
                let (lower, upper) = (b.lower, b.upper);
                return Err(format!("bucket {i} ends at {upper} before it begins at {lower}"));
            }
            if b.count == 0 {
                return Err(format!("bucket {i} is empty"));
            }
            if b.lower < end {
                return Err(format!("bucket {i} begins at {}, inside the one before it", b.lower));
            }
            let sum = total.checked_add(b.count);
            total = sum.ok_or("the counts add up to more than 2^64")?;
            end = b.upper;
        }
        Ok(total)
    }
}

/// Adds a bucket that does not begin before the last one.
fn add(buckets: &mut Vec<Bucket>, bucket: Bucket) {
    match buckets.last_mut() {
        Some(last) if bucket.lower < last.upper => {
            last.upper = last.upper.max(bucket.upper);
            last.count = last.count.saturating_add(bucket.count);
        }
        _ => buckets.push(bucket),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Values of every magnitude from 0 to 2^63.
    fn any_value() -> impl Strategy<Value = u64> {
        prop_oneof![
            1 => Just(0),
            1 => Just(1 << 63),
            2 => 0_u64..4096,
            8 => (0_u32..63, any::<u64>()).prop_map(|(bits, noise)| (1 << bits) | (noise % (1 << bits))),
        ]
    }

    #[test]
    fn the_scale_has_no_gaps() {
        let mut end = 0;
        for index in 0..SCALE_BUCKETS {
            let (lower, upper) = edges_of(index);
            assert_eq!(lower, end, "bucket {index}");
            assert_eq!(bucket_of(lower), index);
            assert_eq!(bucket_of(upper - 1), index);
            assert!(upper - lower <= (lower / 512).max(1), "bucket {index} is too wide");
            end = upper;
        }
        assert_eq!(bucket_of(u64::MAX), SCALE_BUCKETS - 1);
    }

    #[track_caller]
    fn check(samples: &[u64], percentile: &str, want: Option<u64>) {
        let got = Histogram::of(samples.iter().copied()).percentile(percentile.parse().unwrap());
        assert_eq!(got, want, "{percentile} of {samples:?}");
    }

    #[test]
    fn percentiles_by_hand() {
        check(&[], "p50", None);
        check(&[7], "p50", None);
        check(&[1, 2, 3, 400], "p50", Some(2));
        check(&[1, 2, 3, 400], "p99", None); // Four samples do not carry it.
        check(&[5; 200], "p99", Some(5));
    }

    #[test]
    fn faults_are_found() {
        let bucket = |lower, upper, count| Bucket { lower, upper, count };
        for (buckets, want) in [
            (vec![bucket(0, 1, 1), bucket(1, 2, 9)], None),
            (vec![bucket(2, 2, 1)], Some("ends at")),
            (vec![bucket(2, 3, 0)], Some("empty")),
            (vec![bucket(0, 5, 1), bucket(4, 6, 1)], Some("inside")),
            (vec![bucket(0, 1, u64::MAX), bucket(1, 2, 1)], Some("2^64")),
        ] {
            let fault = Histogram { buckets: buckets.clone() }.fault();
            assert_eq!(fault.is_some(), want.is_some(), "{buckets:?}: {fault:?}");
            assert!(fault.unwrap_or_default().contains(want.unwrap_or("")), "{buckets:?}");
        }
    }

    proptest! {
        /// Of one scale, of several, and of a scale that has more than the other.
        #[test]
        fn what_is_added_is_what_is_merged(
            one in prop::collection::vec(any_value(), 0..60),
            other in prop::collection::vec(any_value(), 0..60),
            edges in prop::collection::vec((0_u64..200, 1_u64..40), 0..8),
        ) {
            let coarse = edges.iter().map(|&(lower, width)| Bucket { lower, upper: lower + width, count: 3 });
            let coarse = Histogram::from_unordered(coarse.collect());
            let (one, other) = (Histogram::of(one), Histogram::of(other));
            let both = one.merged(&other);
            for (to, from) in [(&one, &other), (&both, &other), (&coarse, &one), (&both, &coarse)] {
                let mut sum = to.clone();
                sum.add(from);
                prop_assert_eq!(sum, to.merged(from));
            }
        }
    }

    proptest! {
        #[test]
        fn a_bucket_holds_its_value_and_is_narrow(value in any_value()) {
            let (lower, upper) = edges_of(bucket_of(value));
            prop_assert!(lower <= value && value < upper);
            prop_assert!(u128::from(upper - lower) * 500 <= u128::from(lower).max(500));
        }

        #[test]
        fn counts_add_up(values in prop::collection::vec(any_value(), 0..200)) {
            let h = Histogram::of(values.iter().copied());
            prop_assert_eq!(h.count(), values.len() as u64);
            prop_assert_eq!(h.fault(), None);
        }

        #[test]
        fn merging_is_commutative_and_associative(
            a in prop::collection::vec(any_value(), 0..50),
            b in prop::collection::vec((any_value(), 1_u64..9, 1_u64..5), 0..20),
            c in prop::collection::vec(any_value(), 0..50),
        ) {
            let (a, c) = (Histogram::of(a), Histogram::of(c));
            // `b` has edges of its own, as an imported histogram would.
            let b = b.into_iter().fold(Histogram::default(), |sum, (lower, width, count)| {
                let one = Bucket { lower, upper: lower.saturating_add(width), count };
                sum.merged(&Histogram { buckets: vec![one] })
            });
            prop_assert_eq!(a.merged(&b), b.merged(&a));
            prop_assert_eq!(a.merged(&b).merged(&c), a.merged(&b.merged(&c)));
            prop_assert_eq!(a.merged(&b).count(), a.count() + b.count());
            let all = [&c, &a, &b].into_iter().flat_map(|h| h.buckets.iter().copied()).collect();
            prop_assert_eq!(Histogram::from_unordered(all), a.merged(&b).merged(&c));
        }

        #[test]
        fn percentiles_bracket_the_exact_one(
            mut values in prop::collection::vec(any_value(), 4..400),
            which in 0_usize..3,
        ) {
            let p: Percentile = ["p50", "p90", "p99"][which].parse().unwrap();
            let got = Histogram::of(values.iter().copied()).percentile(p);
            values.sort_unstable();
            let count = values.len() as u64;
            prop_assert_eq!(got.is_some(), p.is_carried_by(count));
            if let Some(got) = got {
                let exact = values[usize::try_from(p.rank(count)).unwrap() - 1];
                prop_assert!(got >= exact, "{got} understates {exact}");
                prop_assert!(u128::from(got - exact) * 500 <= u128::from(exact), "{got} overstates {exact}");
            }
        }
    }
}
