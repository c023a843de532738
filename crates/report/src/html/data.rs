//! The exact counts behind the curves, for the page's script: what is drawn is rounded, what is told
//! is not.

use std::fmt::Write;

use wakescope_core::distribution::Distribution;
use wakescope_core::histogram::{Bucket, bucket_of, edges_of};

use crate::picture::{self, maxima};
use crate::quantity;
use crate::run_set::{Entry, Line, RunSet};
use crate::style::clean;

/// JSON that can stand in a page: nothing in it ends a script.
pub(super) fn json(run_set: &RunSet) -> String {
    let runs: Vec<String> = run_set.entries.iter().map(of_run).collect();
    let word = run_set.domain().before_unit();
    let words = quantity::words_of(run_set);
    let limits: Vec<String> = run_set.lines.iter().map(limit).collect();
    format!(
        "{{\"word\":{},\"one\":{},\"many\":{},\"value\":{},\"more\":{},\"limits\":[{}],\"runs\":[{}]}}",
        quoted(word),
        quoted(words.one),
        quoted(words.many),
        quoted(words.value),
        quoted(words.more),
        limits.join(","),
        runs.join(",\n")
    )
}

fn limit(line: &Line) -> String {
    let share = line.share.map_or_else(|| "null".into(), |share| share.to_string());
    let label = quoted(&clean(&line.label, 60));
    format!("{{\"at\":{},\"share\":{share},\"label\":{label}}}", line.at_ns)
}

fn of_run(entry: &Entry) -> String {
    let all = entry.run.expiries();
    let mut out = format!("{{\"name\":{},\"count\":{}", quoted(&entry.name()), all.count);
    if let Some(max) = all.max_ns {
        let _ = write!(out, ",\"max\":{max}");
    }
    out.push_str(&buckets(&all));
    let bands = picture::bands(&all);
    let bands = ranges(bands.iter().map(|band| (band.lower, band.upper, band.count)));
    let _ = write!(out, ",\"bands\":\"{bands}\"");
    if let Some(maxima) = maxima(&entry.run) {
        // 0 stands for a slot in which nothing was due.
        let values = maxima.max_ns.iter().map(|max| max.map_or(0, |ns| ns.saturating_add(1)));
        let values = packed(&values.collect::<Vec<_>>());
        let _ = write!(out, ",\"slot\":{},\"maxima\":\"{values}\"", maxima.slot_ns);
    }
    out.push('}');
    out
}

/// Buckets of our own scale as pairs: how many buckets after the last one, and the count. Others as
/// [`ranges`].
fn buckets(d: &Distribution) -> String {
    let buckets = d.histogram.buckets();
    let is_ours = |b: &Bucket| edges_of(bucket_of(b.lower)) == (b.lower, b.upper);
    if !buckets.iter().all(is_ours) {
        let edges = ranges(buckets.iter().map(|b| (b.lower, b.upper, b.count)));
        return format!(",\"edges\":\"{edges}\"");
    }
    let mut last = 0;
    let pair = |bucket: &Bucket| {
        let index = bucket_of(bucket.lower);
        let after = index - std::mem::replace(&mut last, index);
        [after as u64, bucket.count]
    };
    let numbers: Vec<u64> = buckets.iter().flat_map(pair).collect();
    format!(",\"scale\":\"{}\"", packed(&numbers))
}

/// Lower edges, upper edges and counts, which ascend, as triples: from the last one's end to the lower
/// edge, the width, and the count.
fn ranges(all: impl Iterator<Item = (u64, u64, u64)>) -> String {
    let mut end = 0;
    let triple = |(lower, upper, count): (u64, u64, u64)| {
        [lower - std::mem::replace(&mut end, upper), upper - lower, count]
    };
    packed(&all.flat_map(triple).collect::<Vec<_>>())
}

/// Numbers without anything between them: five bits to a character, the lowest first; the sixth says
/// that there is more of the number. Most of them are small, and there can be hundreds of thousands.
fn packed(numbers: &[u64]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(numbers.len() + 16);
    for &number in numbers {
        let mut rest = number;
        loop {
            #[allow(clippy::cast_possible_truncation)] // Five bits.
            let low = (rest & 31) as usize;
            rest >>= 5;
            let more = if rest > 0 { 32 } else { 0 };
            out.push(char::from(DIGITS[low | more]));
            if rest == 0 {
                break;
            }
        }
    }
    out
}

/// A string of JSON in which nothing looks like markup.
fn quoted(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap_or_else(|_| "\"\"".into());
    let mut out = String::with_capacity(quoted.len());
    for c in quoted.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakescope_core::histogram::Histogram;

    #[test]
    fn small_numbers_are_short() {
        assert_eq!(packed(&[0, 1, 31, 32, 1_000]), "ABfgBof");
        assert_eq!(packed(&[u64::MAX]).len(), 13);
    }

    #[test]
    fn bands_are_those_of_the_picture() {
        // One that is wider than a band, two of one band, and one that is wider again.
        let rows =
            [(5_000, 6_000, 7), (33_000, 34_000, 1), (34_000, 35_000, 2), (40_000, 60_000, 3)];
        let rows = rows.map(|(lower, upper, count)| Bucket { lower, upper, count });
        let mut run = crate::text::tests::run_of(&[&[]]);
        let own = &mut run.threads[0].expiries;
        own.histogram = Histogram::from_buckets(rows.into()).unwrap();
        (own.count, own.min_ns, own.max_ns) = (13, Some(5_000), Some(59_999));
        let json = json(&RunSet::of(vec![Entry::of("a", &run)]));
        let want = packed(&[5_000, 1_000, 7, 26_768, 4_096, 3, 3_136, 20_000, 3]);
        assert!(json.contains(&format!(",\"bands\":\"{want}\"")), "{want} in {json}");
    }

    #[test]
    fn no_text_ends_the_script() {
        let hostile = "</script><!--<script>&\u{2028}\"\\";
        let json = quoted(hostile);
        assert!(!json.contains(['<', '>', '&', '\u{2028}']), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), hostile);
    }
}
