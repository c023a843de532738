//! A histogram drawn in text, both scales logarithmic, as in the papers of 2002.

use wakescope_core::histogram::Histogram;
use wakescope_core::units::{SpanNs, grouped};

/// The most lines that a histogram takes.
const LINES: usize = 24;
/// The length of the longest bar, in characters.
const BAR: f64 = 56.0;

/// Draws `histogram`, a line per band of equal ratio; empty where there are no samples.
pub fn log_log(histogram: &Histogram) -> String {
    let buckets = histogram.buckets();
    let (Some(first), Some(last)) = (buckets.first(), buckets.last()) else { return String::new() };
    let bands = Bands::over(first.lower.max(1), last.lower.max(1));
    let mut counts = vec![0_u64; bands.count];
    for bucket in buckets {
        counts[bands.of(bucket.lower.max(1))] += bucket.count;
    }
    let most = counts.iter().copied().max().unwrap_or(1);
    let mut out = String::new();
    for (band, &count) in counts.iter().enumerate() {
        let from = format!("{}", SpanNs(bands.lower_edge(band)));
        let line = format!(" {from:>8} ▕{:<56} {:>11}", bar(count, most), grouped_or_blank(count));
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Bands of equal ratio: 4, 2 or 1 to the octave, whichever is the finest that fits.
struct Bands {
    per_octave: f64,
    first: i64,
    count: usize,
}

impl Bands {
    fn over(least: u64, largest: u64) -> Self {
        let between = |per_octave: f64| {
            let first = rank(least, per_octave);
            (first, usize::try_from(rank(largest, per_octave) - first).unwrap_or(0) + 1)
        };
        [4.0, 2.0, 1.0, 0.5]
            .map(|per_octave| (per_octave, between(per_octave)))
            .into_iter()
            .find(|&(per_octave, (_, count))| count <= LINES || per_octave < 1.0)
            .map_or(
                Self { per_octave: 1.0, first: 0, count: 64 },
                |(per_octave, (first, count))| Self { per_octave, first, count },
            )
    }

    fn of(&self, value: u64) -> usize {
        let rank = usize::try_from(rank(value, self.per_octave) - self.first).unwrap_or(0);
        rank.min(self.count - 1)
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Below 2^64, above 0.
    fn lower_edge(&self, band: usize) -> u64 {
        ((self.first as f64 + band as f64) / self.per_octave).exp2().round() as u64
    }
}

#[allow(clippy::cast_possible_truncation)] // A logarithm of a u64 is below 256 in any case.
fn rank(value: u64, per_octave: f64) -> i64 {
    ((value as f64).log2() * per_octave).floor() as i64
}

/// A bar for `count`: one sample is just visible, ten times as many are one step longer.
fn bar(count: u64, most: u64) -> String {
    if count == 0 {
        return String::new();
    }
    let share = ((count as f64).log10() + 0.3) / ((most as f64).log10() + 0.3);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // From 0 to 8 × BAR.
    let eighths = ((share * BAR * 8.0).round() as usize).max(1);
    blocks(eighths)
}

/// A bar of so many eighths of a character.
pub(crate) fn blocks(eighths: usize) -> String {
    const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
    let mut out = "█".repeat(eighths / 8);
    if eighths % 8 > 0 {
        out.push(EIGHTHS[eighths % 8 - 1]);
    }
    out
}

fn grouped_or_blank(count: u64) -> String {
    if count == 0 { String::new() } else { grouped(count) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn both_scales_are_logarithmic() {
        let samples = (0..10_000).map(|_| 8_500).chain((0..100).map(|_| 17_000)).chain([140_000]);
        expect![[r#"
            counts
              8.19 µs ▕████████████████████████████████████████████████████████      10,000
              9.74 µs ▕
              11.6 µs ▕
              13.8 µs ▕
              16.4 µs ▕██████████████████████████████                                   100
              19.5 µs ▕
              23.2 µs ▕
              27.6 µs ▕
              32.8 µs ▕
              39.0 µs ▕
              46.3 µs ▕
              55.1 µs ▕
              65.5 µs ▕
              77.9 µs ▕
              92.7 µs ▕
               110 µs ▕
               131 µs ▕███▉                                                               1
        "#]]
        // The first line marks the left margin.
        .assert_eq(&format!("counts\n{}", log_log(&Histogram::of(samples))));
    }

    #[test]
    fn any_range_fits_on_a_screen() {
        assert_eq!(log_log(&Histogram::default()), "");
        for (least, largest) in
            [(0, 0), (0, 1 << 63), (1, 2), (5_000, 4_000_000), (u64::MAX, u64::MAX)]
        {
            let lines = log_log(&Histogram::of([least, largest])).lines().count();
            assert!((1..=40).contains(&lines), "{least}..{largest}: {lines} lines");
        }
    }
}
