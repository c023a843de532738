//! A histogram drawn in text, both scales logarithmic, as in the papers of 2002.

use wakescope_core::distribution::Distribution;
use wakescope_core::histogram::Bucket;
use wakescope_core::units::{SpanNs, grouped};

use crate::bands::{self, Band};

/// The most lines that a histogram takes.
const LINES: usize = 24;
/// The most characters of a line.
const COLUMNS: usize = 100;
/// The length of the longest bar, in characters.
const BAR: usize = 56;
/// The characters of a line beside its bar: the lower edge, and the count.
const AROUND_BAR: usize = 23;

/// Draws the histogram of `all`, a line per band of equal ratio; empty where there are no samples.
///
/// A line states its lower edge, which is the upper edge of the line before it. A bucket of another
/// program's file that is wider than that has a line of its own, which states both edges.
pub(crate) fn log_log(all: &Distribution) -> String {
    drawn(&all.ranges().collect::<Vec<_>>(), LINES, COLUMNS)
}

/// The same of any buckets, in no more than `lines` lines of `columns` characters, if these are not
/// fewer than a handful.
pub(crate) fn log_log_within(buckets: &[Bucket], lines: usize, columns: usize) -> String {
    drawn(buckets, lines, columns)
}

fn drawn(buckets: &[Bucket], most_lines: usize, columns: usize) -> String {
    let lines = lines(buckets, most_lines);
    let notes: Vec<String> = lines.iter().map(note).collect();
    let longest_note = notes.iter().map(|note| note.chars().count()).max().unwrap_or(0);
    let longest = columns.saturating_sub(AROUND_BAR + longest_note).clamp(1, BAR);
    let most = lines.iter().map(|line| line.count).max().unwrap_or(1);
    let mut out = String::new();
    for (line, note) in lines.iter().zip(notes) {
        let from = SpanNs(line.lower).to_string();
        let (bar, count) = (bar(line.count, most, longest), grouped_or_blank(line.count));
        let line = format!(" {from:>8} ▕{bar:<longest$} {count:>11}{note}");
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Where the samples of a line end that may lie anywhere in it.
fn note(line: &Band) -> String {
    match line.is_wide {
        true => format!("  anywhere up to {}", SpanNs(line.upper - 1)),
        false => String::new(),
    }
}

/// The bands of `buckets` without a gap between them: from 4 to the octave to one for 32 octaves,
/// whichever is the finest that takes no more than so many lines.
fn lines(buckets: &[Bucket], most: usize) -> Vec<Band> {
    let mut per_octave = 4.0;
    loop {
        let edges_at = |value| edges_at(value, per_octave);
        let mut lines = without_gaps(&bands::of(buckets.iter().copied(), edges_at), edges_at);
        if let (Some(line), Some(bucket)) = (lines.first_mut(), buckets.first()) {
            // There is nothing before the minimum.
            line.lower = bucket.lower;
        }
        if lines.len() <= most || per_octave < 0.05 {
            return lines;
        }
        per_octave /= 2.0;
    }
}

/// The bands, with empty ones where there is nothing between two of them.
fn without_gaps(bands: &[Band], edges_at: impl Fn(u64) -> (u64, u64)) -> Vec<Band> {
    let mut lines: Vec<Band> = Vec::new();
    for &band in bands {
        let mut at = lines.last().map_or(band.lower, |line| line.upper);
        while at < band.lower {
            let upper = edges_at(at).1.min(band.lower);
            lines.push(Band { lower: at, upper, count: 0, is_wide: false });
            at = upper;
        }
        lines.push(band);
    }
    lines
}

/// The edges of the band of `value`, of so many bands of equal ratio to the octave. 0 has no logarithm,
/// so it is a band by itself.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A cast saturates.
fn edges_at(value: u64, per_octave: f64) -> (u64, u64) {
    if value == 0 {
        return (0, 1);
    }
    let rank = ((value as f64).log2() * per_octave).floor();
    let edge = |rank: f64| (rank / per_octave).exp2().ceil() as u64;
    // Whatever is lost to rounding, the value lies between.
    (edge(rank).min(value), edge(rank + 1.0).max(value.saturating_add(1)))
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
    use crate::bands::tests::{any_buckets, check_holds_all};
    use expect_test::expect;
    use proptest::prelude::*;
    use wakescope_core::histogram::Histogram;
    use wakescope_core::stated::Stated;

    /// What another program's file states: its buckets and extremes.
    fn imported(min_ns: u64, max_ns: u64, buckets: &[(u64, u64, u64)]) -> Distribution {
        let bucket = |&(lower, upper, count)| Bucket { lower, upper, count };
        let histogram = Histogram::from_buckets(buckets.iter().map(bucket).collect()).unwrap();
        let (min_ns, max_ns) = (Some(min_ns), Some(max_ns));
        let stated = Some(Stated::default());
        let count = histogram.count();
        Distribution { count, min_ns, max_ns, histogram, stated, ..Distribution::default() }
    }

    /// rtla's rows are 5 µs wide here, and its minimum is exact; the last bucket is beyond the histogram.
    #[test]
    fn wide_buckets_have_lines_of_their_own() {
        let buckets =
            [(0, 5_000, 90), (5_000, 10_000, 60), (10_000, 15_000, 50), (40_000, 3_400_000, 45)];
        expect![[r#"
            counts
              1.00 µs ▕█████████████████████████████████████████████████████          90  anywhere up to 5.00 µs
              5.00 µs ▕████████████████████████████████████████████████▉              60  anywhere up to 10.0 µs
              10.0 µs ▕███████████████████████████████████████████████                50  anywhere up to 15.0 µs
              15.0 µs ▕
              16.4 µs ▕
              19.5 µs ▕
              23.2 µs ▕
              27.6 µs ▕
              32.8 µs ▕
              39.0 µs ▕
              40.0 µs ▕█████████████████████████████████████████████▉                 45  anywhere up to 3.35 ms
        "#]]
            .assert_eq(&format!("counts\n{}", log_log(&imported(1_000, 3_350_000, &buckets))));
    }

    /// cyclictest without `-h` prints only the number of samples, their mean and their extremes.
    #[test]
    fn a_file_without_a_histogram_has_one_line() {
        let text = log_log(&imported(8_000, 2_312_000, &[(8_000, 2_313_000, 3_000)]));
        let end = "       3,000  anywhere up to 2.31 ms\n";
        assert!(text.starts_with("  8.00 µs ▕███") && text.ends_with(end), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }

    #[test]
    fn both_scales_are_logarithmic() {
        let samples = (0..10_000).map(|_| 8_500).chain((0..100).map(|_| 17_000)).chain([140_000]);
        expect![[r#"
            counts
              8.50 µs ▕████████████████████████████████████████████████████████      10,000
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
        .assert_eq(&format!("counts\n{}", log_log(&Distribution::of(samples))));
    }

    #[test]
    fn any_range_fits_on_a_screen() {
        assert_eq!(log_log(&Distribution::default()), "");
        for (least, largest) in
            [(0, 0), (0, 1 << 63), (1, 2), (5_000, 4_000_000), (u64::MAX, u64::MAX)]
        {
            let all = Distribution::of([least, largest]);
            let lines = log_log(&all).lines().count();
            assert!((1..=LINES).contains(&lines), "{least}..{largest}: {lines} lines");
            for (lines, columns) in [(3, 40), (10, 80), (100, 30)] {
                let drawn = log_log_within(all.histogram.buckets(), lines, columns);
                assert!((1..=lines).contains(&drawn.lines().count()), "{drawn}");
                assert!(drawn.lines().all(|line| line.chars().count() <= columns), "{drawn}");
            }
        }
    }

    proptest! {
        #[test]
        fn each_sample_is_counted_on_one_line(
            buckets in any_buckets(),
            (cut_below, cut_above) in (any::<u64>(), any::<u64>()),
            most in 4_usize..40,
        ) {
            let (first, last) = (buckets[0], buckets[buckets.len() - 1]);
            let min_ns = first.lower + cut_below % (first.upper - first.lower);
            let max_ns = (last.upper - 1 - cut_above % (last.upper - last.lower)).max(min_ns);
            let edges: Vec<_> = buckets.iter().map(|b| (b.lower, b.upper, b.count)).collect();
            let all = imported(min_ns, max_ns, &edges);
            let ranges: Vec<Bucket> = all.ranges().collect();
            let lines = lines(&ranges, most);
            prop_assert!(lines.windows(2).all(|w| w[0].upper == w[1].lower), "{:?}", lines);
            check_holds_all(&lines, &ranges)?;
            let (first, last) = (lines[0], lines[lines.len() - 1]);
            prop_assert_eq!(first.lower, min_ns);
            prop_assert!(last.lower <= max_ns && max_ns < last.upper, "{:?}", last);
            prop_assert!(log_log(&all).lines().all(|line| line.chars().count() <= COLUMNS));
        }
    }
}
