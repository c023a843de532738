//! Distributions that nobody has checked.

use wakescope_core::distribution::Distribution;
use wakescope_core::percentile::Percentile;

/// The figures of a distribution of a record's explanation, which no reader checks: one that makes no sense
/// has none.
pub(crate) struct Sound<'a>(Option<&'a Distribution>);

impl<'a> Sound<'a> {
    pub(crate) fn of(distribution: &'a Distribution) -> Self {
        Self(Some(distribution).filter(|d| d.fault().is_none()))
    }

    pub(crate) fn min_ns(&self) -> Option<u64> {
        self.0?.min_ns
    }

    pub(crate) fn max_ns(&self) -> Option<u64> {
        self.0?.max_ns
    }

    pub(crate) fn percentile(&self, percentile: Percentile) -> Option<u64> {
        self.0?.percentile(percentile)
    }
}
