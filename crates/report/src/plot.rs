//! A histogram drawn in text, both scales logarithmic, as in the papers of 2002.

use wakescope_core::histogram::Histogram;
use wakescope_core::units::{SpanNs, grouped};

/// The most lines that a histogram takes.
const LINES: usize = 24;
/// The length of the longest bar, in characters.
const BAR: usize = 56;
/// What a line has beside its bar: the lower edge, and the count.
const AROUND_BAR: usize = 23;

/// Draws `histogram`, a line per band of equal ratio; empty where there are no samples.
pub fn log_log(histogram: &Histogram) -> String {
    drawn(histogram, LINES, BAR)
}

/// The same in no more than `lines` lines of `columns` characters, if these are not fewer than a handful.
pub fn log_log_within(histogram: &Histogram, lines: usize, columns: usize) -> String {
    drawn(histogram, lines, columns.saturating_sub(AROUND_BAR).clamp(1, BAR))
}

fn drawn(histogram: &Histogram, lines: usize, longest: usize) -> String {
    let buckets = histogram.buckets();
    let (Some(first), Some(last)) = (buckets.first(), buckets.last()) else { return String::new() };
    let bands = Bands::over(first.lower.max(1), last.lower.max(1), lines);
    let mut counts = vec![0_u64; bands.count];
    for bucket in buckets {
        counts[bands.of(bucket.lower.max(1))] += bucket.count;
    }
    let most = counts.iter().copied().max().unwrap_or(1);
    let mut out = String::new();
    for (band, &count) in counts.iter().enumerate() {
        let from = format!("{}", SpanNs(bands.lower_edge(band)));
        let (bar, count) = (bar(count, most, longest), grouped_or_blank(count));
        let line = format!(" {from:>8} ▕{bar:<longest$} {count:>11}");
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Bands of equal ratio: from 4 to the octave to one for 32 octaves, whichever is the finest that fits.
struct Bands {
    per_octave: f64,
    first: i64,
    count: usize,
}

impl Bands {
    fn over(least: u64, largest: u64, lines: usize) -> Self {
        let mut bands = Self { per_octave: 4.0, first: 0, count: 0 };
        loop {
            bands.first = rank(least, bands.per_octave);
            let last = rank(largest, bands.per_octave);
            bands.count = usize::try_from(last - bands.first).unwrap_or(0) + 1;
            if bands.count <= lines || bands.per_octave < 0.05 {
                return bands;
            }
            bands.per_octave /= 2.0;
        }
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
fn bar(count: u64, most: u64, longest: usize) -> String {
    if count == 0 {
        return String::new();
    }
    let share = ((count as f64).log10() + 0.3) / ((most as f64).log10() + 0.3);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // From 0 to 8 × the longest.
    let eighths = ((share * longest as f64 * 8.0).round() as usize).max(1);
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
            let histogram = Histogram::of([least, largest]);
            let lines = log_log(&histogram).lines().count();
            assert!((1..=LINES).contains(&lines), "{least}..{largest}: {lines} lines");
            for (lines, columns) in [(3, 40), (10, 80), (100, 30)] {
                let drawn = log_log_within(&histogram, lines, columns);
                assert!((1..=lines).contains(&drawn.lines().count()), "{drawn}");
                assert!(drawn.lines().all(|line| line.chars().count() <= columns), "{drawn}");
            }
        }
    }
}
