//! Reads run records: what [`record_writer`](crate::record_writer) writes.
//!
//! Nearly all of a record are the buckets of its histograms, and most of the rest the maxima over
//! time. They are cut out of the text and parsed by hand; serde parses the remaining text, in which a
//! mark stands in the place of each.
//! Whatever is not as a record is usually written is left to serde alone. So values and error
//! messages are those of serde in either case; docs/benchmarks.md has what this saves.

use crate::histogram::{Bucket, Histogram};
use crate::run::{Run, Thread};

mod digits;

/// The run of a record, not yet checked; `None` if serde has to parse the whole text.
pub(crate) fn read(text: &[u8]) -> Option<Run> {
    let mut cutter = Cutter { text, ..Cutter::default() };
    cutter.cut_all()?;
    let Cutter { remaining, histograms, maxima, .. } = cutter;
    // A key can be written in other ways: "histo\u0067ram". Its value may then pass for a mark.
    if remaining.contains(&b'\\') && remaining.windows(2).any(|pair| pair == b"\\u") {
        return None;
    }
    let mut run: Run = serde_json::from_slice(&remaining).ok()?;
    let mut histograms = Cuts::of(histograms);
    for place in run.histograms_mut() {
        if let [mark] = place.buckets() {
            *place = Histogram::unchecked(histograms.take(mark.lower)?);
        }
    }
    let mut maxima = Cuts::of(maxima);
    for place in run.threads.iter_mut().flat_map(Thread::maxima_mut) {
        if let [Some(mark)] = place.max_ns[..] {
            place.max_ns = maxima.take(mark)?;
        }
    }
    (histograms.left == 0 && maxima.left == 0).then_some(run)
}

/// What was cut out, until it is put in the place of its mark.
struct Cuts<T> {
    all: Vec<Option<T>>,
    left: usize,
}

impl<T> Cuts<T> {
    fn of(all: Vec<T>) -> Self {
        Self { left: all.len(), all: all.into_iter().map(Some).collect() }
    }

    /// What this mark stands for, which is put back only once.
    fn take(&mut self, mark: u64) -> Option<T> {
        let cut = self.all.get_mut(usize::try_from(mark).ok()?)?.take()?;
        self.left -= 1;
        Some(cut)
    }
}

/// Cuts the long lists out of a record.
#[derive(Default)]
struct Cutter<'a> {
    text: &'a [u8],
    /// The text so far, with marks.
    remaining: Vec<u8>,
    /// Histograms that were cut out, in the order of the text.
    histograms: Vec<Vec<Bucket>>,
    /// Maxima over time that were cut out.
    maxima: Vec<Vec<Option<u64>>>,
}

impl Cutter<'_> {
    /// Cuts out all lists that are not empty.
    fn cut_all(&mut self) -> Option<()> {
        let (mut copied, mut at) = (0, 0);
        while let Some(length) = self.text[at..].iter().position(|&byte| byte == b'[') {
            let begin = at + length;
            at = begin + 1;
            let (before, first) = (&self.text[..begin], self.byte(self.after_blanks(at)));
            let mark = match first {
                b'[' if is_value_of(b"histogram", before) => {
                    at = self.cut_histogram(at)?;
                    format!("[[{},0,0]]", self.histograms.len() - 1)
                }
                b'n' | b'0'..=b'9' if is_value_of(b"max_ns", before) => {
                    at = self.cut_maxima(at)?;
                    format!("[{}]", self.maxima.len() - 1)
                }
                _ => continue,
            };
            self.remaining.extend_from_slice(&self.text[copied..begin]);
            self.remaining.extend_from_slice(mark.as_bytes());
            copied = at;
        }
        self.remaining.extend_from_slice(&self.text[copied..]);
        Some(())
    }

    /// Parses the buckets from `at` on, and returns where the text goes on after their end.
    fn cut_histogram(&mut self, mut at: usize) -> Option<usize> {
        let mut buckets = Vec::with_capacity(self.histograms.last().map_or(256, Vec::len) + 16);
        loop {
            at = self.after_blanks(at);
            let (bucket, end) = self.bucket(at)?;
            buckets.push(bucket);
            at = end + digits::buckets_like(&self.text[at..end], &self.text[end..], &mut buckets);
            at = self.after_blanks(at) + 1;
            match self.byte(at - 1) {
                b',' => {}
                b']' => break,
                _ => return None,
            }
        }
        self.histograms.push(buckets);
        Some(at)
    }

    /// Parses numbers and nulls from `at` on, and returns where the text goes on after their end.
    fn cut_maxima(&mut self, mut at: usize) -> Option<usize> {
        let mut maxima = Vec::with_capacity(self.maxima.last().map_or(256, Vec::len));
        loop {
            at = self.after_blanks(at);
            let (max, end) = match self.text[at..].strip_prefix(b"null") {
                Some(_) => (None, at + 4),
                None => self.number(at).map(|(number, end)| (Some(number), end))?,
            };
            maxima.push(max);
            at = self.after_blanks(end) + 1;
            match self.byte(at - 1) {
                b',' => {}
                b']' => break,
                _ => return None,
            }
        }
        self.maxima.push(maxima);
        Some(at)
    }

    /// Parses `[lower, upper, count]`, and returns where it ends.
    fn bucket(&self, at: usize) -> Option<(Bucket, usize)> {
        let (lower, at) = self.number_after(b'[', at)?;
        let (upper, at) = self.number_after(b',', at)?;
        let (count, at) = self.number_after(b',', at)?;
        let at = self.after_blanks(at);
        (self.byte(at) == b']').then_some((Bucket { lower, upper, count }, at + 1))
    }

    /// Parses a number after the byte that must stand before it, and returns where it ends.
    #[inline]
    fn number_after(&self, before: u8, at: usize) -> Option<(u64, usize)> {
        let at = self.after_blanks(at);
        if self.byte(at) != before {
            return None;
        }
        self.number(self.after_blanks(at + 1))
    }

    /// Parses a number, and returns where it ends.
    #[inline]
    fn number(&self, begin: usize) -> Option<(u64, usize)> {
        let (mut number, mut end) = (0_u64, begin);
        while let digit @ 0..10 = self.byte(end).wrapping_sub(b'0') {
            number = number.wrapping_mul(10).wrapping_add(digit.into());
            end += 1;
        }
        // JSON has no leading zeros, and 20 digits may be too many for 64 bits.
        let is_plain = match end - begin {
            1 => true,
            2..20 => self.byte(begin) != b'0',
            _ => false,
        };
        is_plain.then_some((number, end))
    }

    fn after_blanks(&self, mut at: usize) -> usize {
        while matches!(self.byte(at), b' ' | b'\n' | b'\t' | b'\r') {
            at += 1;
        }
        at
    }

    /// The byte there; after the end a 0, which no JSON contains.
    fn byte(&self, at: usize) -> u8 {
        self.text.get(at).copied().unwrap_or(0)
    }
}

/// Whether a value after this text is that of `key`. In JSON, these bytes are nothing else: inside a
/// string, each quote has a backslash before it.
fn is_value_of(key: &[u8], before: &[u8]) -> bool {
    let before = before.trim_ascii_end().strip_suffix(b":").map(<[u8]>::trim_ascii_end);
    let before = before.and_then(|text| text.strip_suffix(b"\""));
    let before = before.and_then(|text| text.strip_suffix(key)?.strip_suffix(b"\""));
    before.is_some_and(|before| !before.ends_with(b"\\"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maxima::Maxima;
    use crate::run::tests::run_with;
    use proptest::prelude::*;

    /// A run whose expiries are its wakeups and, of some CPUs, a few more.
    fn run_of(cpus: &[Vec<u64>], text: &str) -> Run {
        let mut run = run_with(cpus, text);
        for (thread, more) in run.threads.iter_mut().zip(cpus.iter().skip(1)) {
            let more = Histogram::of(more.iter().take(3).copied());
            thread.expiries.histogram = thread.expiries.histogram.merged(&more);
            let max_ns = cpus[0].iter().map(|&ns| (ns % 3 > 0).then_some(ns)).collect();
            thread.maxima = Some(Maxima { slot_ns: 1, max_ns });
        }
        run
    }

    /// The ways in which programs lay JSON out.
    fn layouts(run: &Run) -> [Vec<u8>; 3] {
        let json = run.to_json();
        let spaced = json.replace(',', ", ").replace("\":", "\" : ");
        let pretty = serde_json::to_vec_pretty(run).unwrap();
        [json.into_bytes(), spaced.into_bytes(), pretty]
    }

    /// Whatever is read is what serde reads.
    #[track_caller]
    fn check(text: &[u8]) -> bool {
        let read = read(text);
        let is_read = read.is_some();
        if let Some(run) = read {
            let serde = serde_json::from_slice::<Run>(text).map_err(|e| e.to_string());
            assert_eq!(serde, Ok(run), "{}", String::from_utf8_lossy(text));
        }
        is_read
    }

    proptest! {
        #[test]
        fn usual_records_are_read_as_by_serde(
            cpus in prop::collection::vec(prop::collection::vec(0_u64..1 << 40, 0..40), 0..5),
            text in "[a-z \"\\[]{0,9}",
        ) {
            let run = run_of(&cpus, &text);
            for json in layouts(&run) {
                prop_assert!(check(&json), "{}", String::from_utf8_lossy(&json));
            }
        }

        #[test]
        fn damaged_records_are_read_as_by_serde(
            cpus in prop::collection::vec(prop::collection::vec(0_u64..1 << 40, 1..20), 1..3),
            layout in 0_usize..3,
            damages in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..20, 0_usize..3), 1..4),
        ) {
            let mut json = layouts(&run_of(&cpus, "x"))[layout].clone();
            for (at, byte, how) in damages {
                let (at, byte) = (at.index(json.len()), b"[]{},:\"0129\\ \n-.eu\xff\x00"[byte]);
                match how {
                    0 => json[at] = byte,
                    1 => json.insert(at, byte),
                    _ => drop(json.remove(at)),
                }
            }
            check(&json);
        }
    }

    #[test]
    fn what_is_not_usual_is_read_as_by_serde() {
        let json = run_of(&[vec![5_000, 7_000], vec![5_000, 5_000, 90_000_000]], "x").to_json();
        let own_mark = "\"max_ns\":[5000,null]";
        assert!(json.contains(&own_mark.replace("null", "7000")), "{json}");
        for (instead, wanted) in [
            (own_mark, true),
            ("\"max_ns\" : [ null , null ]", true),
            ("\"max_ns\":[]", true),
            ("\"max_ns\":[nul]", false),
            ("\"max_ns\":[5000,]", false),
            ("\"max_ns\":[5000 null]", false),
            ("\"max_ns\":[007]", false),
            ("\"max_ns\":[7.0]", false),
            ("\"max\\u005fns\":[0]", false),
            ("\"max_ns\":[1],\"other\":{\"max_ns\":[2]}", false),
        ] {
            let text = json.replace("\"max_ns\":[5000,7000]", instead);
            assert_eq!(check(text.as_bytes()), wanted, "{instead}");
        }
        let first = json.find("\"histogram\":[[").unwrap();
        let end = first + json[first..].find("]]").unwrap() + 2;
        let (before, histogram, after) = (&json[..first], &json[first..end], &json[end..]);
        for (instead, wanted) in [
            (histogram.into(), true),
            ("\"histogram\":[]".into(), true),
            ("\"histogram\":[[5000,5008,9223372036854775807]]".into(), true),
            ("\"histogram\" :\n[ [ 5000 ,5008, 1 ] ]".into(), true),
            ("\"histogram\":[[5000,5008,18446744073709551616]]".into(), false),
            ("\"histogram\":[[05000,5008,1]]".into(), false),
            ("\"histogram\":[[5000,5008,-1]]".into(), false),
            ("\"histogram\":[[5000,5008,1.0]]".into(), false),
            ("\"histogram\":[[5000,5008]]".into(), false),
            ("\"histogram\":[[5000,5008,1,1]]".into(), false),
            ("\"histogram\":[[5000,5008,1],]".into(), false),
            ("\"histogram\":[[5000,5008,1],[5000,5008,1]".into(), false),
            // Given twice, under an unknown key, and inside other text.
            (format!("{histogram},{histogram}"), false),
            (format!("{histogram},\"other\":{{{histogram}}}"), false),
            (format!("{histogram},\"x\\\"histogram\":[[1,2,3]]"), true),
            (format!("\"other\":\"{}\",{histogram}", histogram.replace('"', "\\\"")), true),
            // A literal that looks like the mark of another.
            ("\"histo\\u0067ram\":[[1,0,0]]".into(), false),
            (format!("\"histo\\u0067ram\":[[0,0,0]],\"other\":{{{histogram}}}"), false),
        ] {
            let text = format!("{before}{instead}{after}");
            assert_eq!(check(text.as_bytes()), wanted, "{instead}");
        }
    }
}
