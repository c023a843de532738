//! Reads run records: what [`record_writer`](crate::record_writer) writes.
//!
//! Nearly all of a record are the buckets of its histograms, and most of the rest the maxima over
//! time. They are cut out of the text and parsed by hand; serde parses the remaining text, in which a
//! mark stands in the place of each.
//! Whatever is not as a record is usually written is left to serde alone. So values and error
//! messages are those of serde in either case; docs/benchmarks.md has what this saves.

use crate::distribution::Distribution;
use crate::histogram::{Bucket, Histogram};
use crate::run::Run;

mod blocks;

use blocks::{Eight, common_length, is_list, like_last, pair_of};

/// The run of a record, not yet checked; `None` if serde has to parse the whole text.
pub(crate) fn read(text: &[u8]) -> Option<Run> {
    read_parts(text, Parts::All)
}

/// The same without what no comparison uses, which takes most of the time: of histograms other than
/// those of expiries only the outer edges are read, and no maxima over time. Of their text it is only
/// checked that it consists of numbers and brackets.
pub(crate) fn read_expiries(text: &[u8]) -> Option<Run> {
    read_parts(text, Parts::Expiries)
}

fn read_parts(text: &[u8], parts: Parts) -> Option<Run> {
    let mut cutter = Cutter::of(text, parts);
    cutter.cut_all()?;
    let Cutter { remaining, histograms, maxima, .. } = cutter;
    // A key can be written in other ways: "histo\u0067ram". Its value may then pass for a mark.
    if remaining.contains(&b'\\') && remaining.windows(2).any(|pair| pair == b"\\u") {
        return None;
    }
    let mut run: Run = serde_json::from_slice(&remaining).ok()?;
    // The order of keys is free, so that this one may have been taken for another.
    if run.threads.iter().any(|thread| is_omitted(&thread.expiries.histogram)) {
        return None;
    }
    let mut histograms = Cuts::of(histograms);
    for place in run.distributions_mut() {
        let buckets = match place.histogram.buckets() {
            _ if is_omitted(&place.histogram) => vec![outline(place)?],
            [mark] => histograms.take(mark.lower)?,
            _ => continue,
        };
        place.histogram = Histogram::unchecked(buckets);
    }
    let mut maxima = Cuts::of(maxima);
    for thread in &mut run.threads {
        match thread.maxima.as_mut().map(|maxima| &mut maxima.max_ns) {
            Some(of) if parts == Parts::Expiries && !of.is_empty() => thread.maxima = None,
            Some(of) => {
                if let [Some(mark)] = of[..] {
                    *of = maxima.take(mark)?;
                }
            }
            None => {}
        }
    }
    (histograms.left == 0 && maxima.left == 0).then_some(run)
}

/// What is read of a record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parts {
    All,
    Expiries,
}

/// The mark of a histogram that was not read. Those of others begin with their number and two zeros.
const OMITTED: Bucket = Bucket { lower: 0, upper: 0, count: 1 };

fn is_omitted(histogram: &Histogram) -> bool {
    histogram.buckets() == [OMITTED]
}

/// All samples of a distribution in one bucket; `None` if there are none.
fn outline(of: &Distribution) -> Option<Bucket> {
    let (lower, upper) = (of.min_ns?, of.max_ns?.saturating_add(1));
    Some(Bucket { lower, upper, count: of.count })
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
struct Cutter<'a> {
    text: &'a [u8],
    parts: Parts,
    /// The text so far, with marks.
    remaining: Vec<u8>,
    /// Histograms that were cut out, in the order of the text.
    histograms: Vec<Vec<Bucket>>,
    /// Maxima over time that were cut out.
    maxima: Vec<Vec<Option<u64>>>,
    /// Where the text of each bucket of the last histogram begins.
    starts: Vec<usize>,
}

impl<'a> Cutter<'a> {
    fn of(text: &'a [u8], parts: Parts) -> Self {
        let (histograms, maxima, starts) = Default::default();
        Self { text, parts, remaining: Vec::with_capacity(8_192), histograms, maxima, starts }
    }

    /// Cuts out all lists that are not empty.
    fn cut_all(&mut self) -> Option<()> {
        let (mut copied, mut at) = (0, 0);
        while let Some(length) = self.text[at..].iter().position(|&byte| byte == b'[') {
            let begin = at + length;
            at = begin + 1;
            let (before, first) = (&self.text[..begin], self.byte(self.after_blanks(at)));
            let mark = match first {
                b'[' if is_value_of(b"histogram", before) && self.is_omitted(before) => {
                    at = self.end_of_list(begin, b"]]")? + 1;
                    format!("[[{},{},{}]]", OMITTED.lower, OMITTED.upper, OMITTED.count)
                }
                b'[' if is_value_of(b"histogram", before) => {
                    at = self.cut_histogram(at)?;
                    format!("[[{},0,0]]", self.histograms.len() - 1)
                }
                b'n' | b'0'..=b'9'
                    if is_value_of(b"max_ns", before) && self.parts != Parts::All =>
                {
                    at = self.end_of_list(begin, b"]}")?;
                    "[0]".into()
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

    /// Whether the histogram after this text is not to be read: expiries' are the only ones to be.
    fn is_omitted(&self, before: &[u8]) -> bool {
        self.parts == Parts::Expiries && {
            let object = before.iter().rposition(|&byte| byte == b'{').unwrap_or(0);
            !is_value_of(b"expiries", &before[..object])
        }
    }

    /// Where the text goes on after a list that begins there and ends in these brackets.
    fn end_of_list(&self, begin: usize, end: &[u8; 2]) -> Option<usize> {
        let list = &self.text[begin..];
        let length = pair_of(list, *end)? + 1;
        is_list(&list[..length]).then_some(begin + length)
    }

    /// Parses the buckets from `at` on, and returns where the text goes on after their end.
    fn cut_histogram(&mut self, mut at: usize) -> Option<usize> {
        // A thread's `woken` come before its `expiries`, which are the same but for a few.
        let (last, last_starts) = match (self.histograms.len() % 2, self.histograms.last()) {
            (1, Some(last)) if self.parts == Parts::All => {
                (&last[..], std::mem::take(&mut self.starts))
            }
            _ => Default::default(),
        };
        // Those of one run are about as long as each other.
        let room = self.histograms.last().map_or(256, Vec::len) + 16;
        let mut buckets: Vec<Bucket> = Vec::with_capacity(room);
        let mut starts = Vec::with_capacity(room);
        let (mut same, mut edge) = (0, 1);
        loop {
            at = self.after_blanks(at);
            // What has the same text need not be parsed again. The end of the last bucket's text is
            // not that of the others.
            let from = last_starts.get(same).copied().unwrap_or(self.text.len());
            let common = common_length(&self.text[from..], &self.text[at..]);
            if common > 0 {
                let ends = last_starts[same + 1..].iter().take_while(|&&end| end <= from + common);
                let alike = same..same + ends.count();
                buckets.extend_from_slice(&last[alike.clone()]);
                starts.extend(last_starts[alike.clone()].iter().map(|start| start - from + at));
                at += last_starts[alike.end] - from;
                same = alike.end;
            }
            starts.push(at);
            let lower = if let Some((bucket, end)) = self.short_bucket(at, &mut edge) {
                at = end;
                buckets.push(bucket);
                bucket.lower
            } else {
                let (bucket, end) = self.any_bucket(at)?;
                at = end;
                buckets.push(bucket);
                bucket.lower
            };
            while last.get(same).is_some_and(|b| b.lower <= lower) {
                same += 1;
            }
            at = self.after_blanks(at) + 1;
            match self.byte(at - 1) {
                b',' => {}
                b']' => break,
                _ => return None,
            }
        }
        self.histograms.push(buckets);
        self.starts = starts;
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

    /// Parses `[lower,upper,count]` of numbers with up to 7 digits, and returns where it ends. `edge` is how many digits
    /// the last edge had, as most others will: what follows need not wait until they are counted.
    #[inline]
    fn short_bucket(&self, at: usize, edge: &mut usize) -> Option<(Bucket, usize)> {
        let (lower, at) = self.short_number(b'[', at, |eight| like_last(eight, edge))?;
        let (upper, at) = self.short_number(b',', at, |eight| like_last(eight, edge))?;
        let (count, at) = self.short_number(b',', at, Eight::digits)?;
        (self.byte(at) == b']').then_some((Bucket { lower, upper, count }, at + 1))
    }

    /// Parses a number of up to 7 digits after the byte that must stand before it.
    #[inline]
    fn short_number(
        &self,
        before: u8,
        at: usize,
        digits: impl FnOnce(Eight) -> usize,
    ) -> Option<(u64, usize)> {
        let [first, text @ ..] = self.text.get(at..)?.first_chunk::<9>()?;
        let eight = Eight::of(*text);
        let digits = digits(eight);
        // JSON has no leading zeros.
        let is_plain = *first == before
            && ((digits == 1 && eight.values & 0xff < 10)
                || ((2..8).contains(&digits) && eight.values & 0xff != 0));
        is_plain.then(|| (eight.number(digits), at + 1 + digits))
    }

    /// Parses any `[lower, upper, count]`, and returns where it ends.
    #[cold]
    fn any_bucket(&self, at: usize) -> Option<(Bucket, usize)> {
        let (lower, at) = self.number_after(b'[', at)?;
        let (upper, at) = self.number_after(b',', at)?;
        let (count, at) = self.number_after(b',', at)?;
        let at = self.after_blanks(at);
        (self.byte(at) == b']').then_some((Bucket { lower, upper, count }, at + 1))
    }

    /// Parses a number after the byte that must stand before it, and returns where it ends.
    fn number_after(&self, before: u8, at: usize) -> Option<(u64, usize)> {
        let at = self.after_blanks(at);
        if self.byte(at) != before {
            return None;
        }
        self.number(self.after_blanks(at + 1))
    }

    /// Parses a number, and returns where it ends.
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
    use crate::observation::Observation;
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

    /// Whatever is read of expiries is what serde reads.
    #[track_caller]
    fn check_expiries(text: &[u8]) -> bool {
        let all = serde_json::from_slice::<Run>(text).ok().filter(|run| run.fault().is_none());
        let read = read_expiries(text).filter(|run| run.fault().is_none());
        let is_read = read.is_some();
        if let (Some(read), Some(all)) = (read, all) {
            assert_eq!(Observation::from(read), all.into(), "{}", String::from_utf8_lossy(text));
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
            for json in layouts(&run_with(&cpus, &text)) {
                let read = Observation::from_json(&json).unwrap();
                prop_assert_eq!(read, Run::from_json(&json).unwrap().into());
            }
        }

        #[test]
        fn expiries_of_any_length_are_read_as_by_serde(
            buckets in prop::collection::vec((0_u32..63, 0_u32..63, 0_u32..63, any::<u64>()), 1..30),
        ) {
            let of = |bits: u32, noise: u64| (1 << bits) | (noise & ((1 << bits) - 1));
            let bucket = |(l, u, c, noise)| [of(l, noise), of(u, noise), of(c, noise)];
            let buckets: Vec<[u64; 3]> = buckets.into_iter().map(bucket).collect();
            let mut json = serde_json::to_value(run_of(&[vec![5_000]], "x")).unwrap();
            json["threads"][0]["expiries"]["histogram"] = buckets.into();
            let json = json.to_string();
            prop_assert!(check(json.as_bytes()));
            let read = read_expiries(json.as_bytes()).unwrap();
            let want: Run = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(&read.threads[0].expiries, &want.threads[0].expiries);
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
            check_expiries(&json);
        }
    }

    /// How a record is read for a comparison, and what the reader of whole runs says of it.
    #[test]
    fn damage_matters_to_a_comparison_where_it_uses_what_is_damaged() {
        let json = run_of(&[vec![5_000, 7_000]], "x").to_json();
        let (woken, expiries) =
            (json.find("\"woken\"").unwrap(), json.find("\"expiries\"").unwrap());
        let changed = |from: usize, old: &str, new: &str| {
            let at = from + json[from..].find(old).unwrap();
            format!("{}{new}{}", &json[..at], &json[at + old.len()..])
        };
        for (text, is_observed) in [
            (json.clone(), true),
            // The buckets of wakeups: numbers and brackets, whatever they say.
            (changed(woken, "[[5000,", "[[5001,"), true),
            (changed(woken, ",1],[", ",1]["), true),
            (changed(woken, "[[5000,", "[[\"5000\","), false),
            (changed(woken, "\"count\":2", "\"count\":3"), false),
            (changed(woken, "\"max_ns\":7000", "\"max_ns\":null"), false),
            // The buckets of expiries.
            (changed(expiries, "[[5000,", "[[5001,"), false),
            (changed(expiries, ",1],[", ",1]["), false),
            (changed(expiries, "\"count\":2", "\"count\":3"), false),
            (changed(expiries, "\"expiries\"", "\"expired\""), false),
            // Everything else.
            (changed(0, "\"share\":1.0", "\"share\":1.5"), false),
            (changed(0, crate::run::SCHEMA, "wakescope.run/3"), false),
            (json[..json.len() - 1].into(), false),
        ] {
            let (read, all) =
                (Observation::from_json(text.as_bytes()), Run::from_json(text.as_bytes()));
            match (read, all) {
                (Ok(_), _) => assert!(is_observed, "{text}"),
                (Err(read), all) => {
                    assert!(!is_observed, "{text}");
                    assert_eq!(read.to_string(), all.unwrap_err().to_string());
                }
            }
        }
    }

    #[test]
    fn what_is_not_read_passes_for_nothing_else() {
        let json = run_of(&[vec![5_000, 7_000]], "x").to_json();
        let mark = "[[0,0,1]]";
        let before = json.find("\"expiries\":{").unwrap() + "\"expiries\":".len();
        let first = before + json[before..].find("[[").unwrap();
        let end = first + json[first..].find("]]").unwrap() + 2;
        let of = |text: &str| format!("{}{text}{}", &json[..first], &json[end..]);
        // An object between the key and the histogram hides which histogram it is.
        let nested = of(&json[first..end]).replacen(
            "\"expiries\":{",
            "\"expiries\":{\"stated\":{\"percentiles\":{},\"resolution_ns\":1},",
            1,
        );
        for text in [of(mark), nested] {
            assert!(read_expiries(text.as_bytes()).filter(|run| run.fault().is_none()).is_none());
            let all = Run::from_json(text.as_bytes()).map(Observation::from);
            let read = Observation::from_json(text.as_bytes());
            assert_eq!(read.map_err(|e| e.to_string()), all.map_err(|e| e.to_string()), "{text}");
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
