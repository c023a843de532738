//! Windows as they are stored: a line of JSON each, whose histograms are short texts.
//!
//! A histogram is a list of counts, as in `@57 3 12 @71 1`: `@57` says that the next count is that of bucket
//! 57, and each further one is that of the bucket behind. Empty buckets are left out. Readers take the form
//! of `--json` as well, in which each bucket has its edges.

use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::io::{self, BufRead, Read};

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::budget::{Budget, Entry};
use crate::histogram::{Bucket, Histogram};
use crate::watch::boot::MOST_BOOTS;
use crate::watch::scale::{BUCKETS, edges_of};
use crate::watch::{SCHEMA, Waits, Window};

/// The longest line that is read, bytes: as many series as there can be, with buckets of each octave.
pub const LONGEST_LINE: usize = 64 << 20;

/// Waits take no more bytes in a line. Each bucket has a count of at most 20 digits, a blank, and behind an empty
/// bucket its index.
const LONGEST_WAITS: usize = BUCKETS * 24 + 512;

/// No window is as long, ns: ten years.
const TOO_LONG_NS: u64 = 10 * 365 * 24 * 3_600 * 1_000_000_000;

/// A series or a CPU, without its buckets.
const ROW: Entry = Entry { name: "series", bytes: 1_024 };

/// Why a line is no window.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// It is not JSON, or not as a window is.
    #[error("it is no window: {0}")]
    Form(String),
    /// It is of another version.
    #[error("its schema is `{0}`, and this version reads {SCHEMA}")]
    Schema(String),
    /// Its figures contradict each other.
    #[error("its {0}: {1}")]
    Fault(String, String),
    /// It takes more memory than one line may.
    #[error("{0}")]
    Large(crate::budget::Exceeded),
    /// It has more than [`LONGEST_LINE`] bytes.
    #[error("it is longer than {} MiB", LONGEST_LINE >> 20)]
    Long,
    /// It is the last one, and its end is missing: who wrote it was killed.
    #[error("it ends in the middle, as after kill -9 or a loss of power")]
    Cut,
}

/// A window as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The line, with its end. It has at most [`LONGEST_LINE`] bytes.
    pub text: String,
    /// So many series of the window have no row in it, because they had the longest rows and the line would have
    /// been too long. Their waits are among those of the others.
    pub unnamed: usize,
}

/// The line that stores a window.
///
/// Any program can give its tasks many names in a cgroup with a long path, and a reader refuses a line that is too
/// long, and the whole watch with it. The longest rows go first: then most of the others stay.
///
/// # Errors
/// If the line is too long even without rows, or cannot be JSON, which no window is known to be.
pub fn line(window: &Window) -> Result<Line, String> {
    line_within(window, LONGEST_LINE)
}

fn line_within(window: &Window, most: usize) -> Result<Line, String> {
    let text = text_of_window(window)?;
    if text.len() <= most {
        return Ok(Line { text, unnamed: 0 });
    }
    let mut shorter = window.clone();
    shorter.join_longest_rows(text.len() - most + LONGEST_WAITS)?;
    let unnamed = window.series.len() - shorter.series.len();
    let text = text_of_window(&shorter)?;
    if text.len() > most {
        return Err(format!("its line would have more than {} MiB", most >> 20));
    }
    Ok(Line { text, unnamed })
}

fn text_of_window(window: &Window) -> Result<String, String> {
    let mut value = serde_json::to_value(window).map_err(|e| e.to_string())?;
    let series = window.series.iter().map(|series| &series.waits);
    pack_rows(&mut value["series"], series);
    pack_rows(&mut value["cpus"], window.cpus.iter().map(|cpu| &cpu.waits));
    pack(&mut value["others"], &window.others);
    Ok(value.to_string() + "\n")
}

/// Reads a line, without its end.
///
/// # Errors
/// If it is no window, or is not consistent.
pub fn read(line: &[u8]) -> Result<Window, LineError> {
    let form = |e: serde_json::Error| LineError::Form(e.to_string());
    #[derive(Deserialize)]
    struct Head {
        schema: String,
    }
    let Head { schema } = serde_json::from_slice(line).map_err(form)?;
    if schema != SCHEMA {
        return Err(LineError::Schema(schema));
    }
    let window: Window = serde_json::from_slice(line).map_err(form)?;
    let budget = Budget::of(line.len() as u64);
    for waits in all_waits(&window) {
        budget.keep(1, ROW).map_err(LineError::Large)?;
        let buckets = waits.histogram.buckets().len() as u64;
        budget.keep(buckets, Entry::BUCKET).map_err(LineError::Large)?;
    }
    match window.fault() {
        Some((what, why)) => Err(LineError::Fault(what, why)),
        None => Ok(window),
    }
}

/// Gives `each` the number of each line, from 1, with its window or what is wrong with it, until the file
/// ends or `each` has had enough.
///
/// # Errors
/// If the file cannot be read.
pub fn read_lines<E>(
    mut input: impl BufRead,
    mut each: impl FnMut(u64, Result<Window, LineError>) -> Result<(), E>,
) -> io::Result<Result<(), E>> {
    let mut bytes = Vec::new();
    for number in 1.. {
        bytes.clear();
        let most = LONGEST_LINE as u64 + 1;
        if (&mut input).take(most).read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        let found = match bytes.strip_suffix(b"\n") {
            Some(line) => read(line),
            None if bytes.len() > LONGEST_LINE => Err(LineError::Long),
            None => read(&bytes).map_err(|_| LineError::Cut),
        };
        let is_long = matches!(found, Err(LineError::Long));
        if let Err(enough) = each(number, found) {
            return Ok(Err(enough));
        }
        if is_long {
            break;
        }
    }
    Ok(Ok(()))
}

impl Window {
    /// Moves the waits of the series with the longest rows to those of the others, until these rows have so many
    /// `bytes`, or no row is left.
    fn join_longest_rows(&mut self, bytes: usize) -> Result<(), String> {
        let mut lengths = Vec::new();
        for (index, series) in self.series.iter().enumerate() {
            let mut row = serde_json::to_value(series).map_err(|e| e.to_string())?;
            pack(&mut row["waits"], &series.waits);
            lengths.push((row.to_string().len(), index));
        }
        lengths.sort_unstable_by(|a, b| b.cmp(a));
        let mut left = bytes;
        let go = lengths.into_iter().take_while(|(length, _)| {
            let goes = left > 0;
            left = left.saturating_sub(*length);
            goes
        });
        let go: BTreeSet<usize> = go.map(|(_, index)| index).collect();
        let all = std::mem::take(&mut self.series).into_iter().enumerate();
        for (index, series) in all {
            match go.contains(&index) {
                true => self.others.add(&series.waits),
                false => self.series.push(series),
            }
        }
        Ok(())
    }

    /// What is wrong with it, if anything: in what, and why.
    fn fault(&self) -> Option<(String, String)> {
        if crate::date::Date::parse(&self.started).is_none() {
            return Some(("started".into(), "it is no date".into()));
        }
        if self.boots.len() > MOST_BOOTS + 1 {
            return Some(("boots".into(), format!("more than {MOST_BOOTS} are there")));
        }
        if self.window_ns >= TOO_LONG_NS || self.begin_ns.checked_add(self.window_ns).is_none() {
            return Some(("window_ns".into(), format!("no window has {} ns", self.window_ns)));
        }
        // One on each CPU can be in the midst of being counted. A CPU without switches in this window is not
        // listed.
        let in_flight = u64::from(self.own_cost.cpus).max(self.cpus.len() as u64).max(1);
        let fault = |waits: &Waits| waits.fault().or_else(|| waits.sum_fault(in_flight));
        let waits = all_waits(self).find_map(|waits| Some(("waits".into(), fault(waits)?)));
        let explanations = || Some(("explanations".into(), self.explanations.as_ref()?.fault()?));
        let episodes = || Some(("episodes".into(), self.episodes.as_ref()?.fault()?));
        let cost = || Some(("own_cost".into(), self.own_cost.fault(self.window_ns)?));
        let longest = || Some(("episodes".into(), self.fault_of_longest()?));
        waits.or_else(episodes).or_else(longest).or_else(explanations).or_else(cost)
    }

    /// A wait that is shown is one of those that are counted.
    fn fault_of_longest(&self) -> Option<String> {
        let longest = self.episodes.as_ref()?.longest.iter().map(|episode| episode.ns).max()?;
        let max = all_waits(self).filter_map(|waits| waits.max_ns).max().unwrap_or(0);
        (longest > max)
            .then(|| format!("one is {longest} ns long, but the longest wait is {max} ns"))
    }
}

/// All waits of a window.
fn all_waits(window: &Window) -> impl Iterator<Item = &Waits> {
    let series = window.series.iter().map(|series| &series.waits);
    series.chain(window.cpus.iter().map(|cpu| &cpu.waits)).chain([&window.others])
}

fn pack_rows<'a>(rows: &mut Value, all: impl Iterator<Item = &'a Waits>) {
    let rows = rows.as_array_mut().into_iter().flatten();
    rows.zip(all).for_each(|(row, waits)| pack(&mut row["waits"], waits));
}

fn pack(value: &mut Value, waits: &Waits) {
    value["histogram"] = Value::String(text_of(&waits.histogram));
}

fn text_of(histogram: &Histogram) -> String {
    let mut text = String::new();
    let (mut index, mut next) = (0, usize::MAX);
    for bucket in histogram.buckets() {
        while index < BUCKETS - 1 && edges_of(index).0 < bucket.lower {
            index += 1;
        }
        let blank = if text.is_empty() { "" } else { " " };
        let _ = match index == next {
            true => write!(text, "{blank}{}", bucket.count),
            false => write!(text, "{blank}@{index} {}", bucket.count),
        };
        next = index + 1;
    }
    text
}

fn histogram_of(text: &str) -> Result<Vec<Bucket>, &'static str> {
    let mut buckets: Vec<Bucket> = Vec::new();
    let mut next = None;
    for word in text.split_ascii_whitespace() {
        if let Some(index) = word.strip_prefix('@') {
            next = Some(index.parse().map_err(|_| "what follows @ is no number")?);
            continue;
        }
        let index = next.ok_or("it does not begin with @ and a number")?;
        if index >= BUCKETS {
            return Err("there is no such bucket");
        }
        let count = word.parse().map_err(|_| "a count is no number")?;
        let (lower, upper) = edges_of(index);
        buckets.push(Bucket { lower, upper, count });
        next = Some(index + 1);
    }
    Ok(buckets)
}

/// A histogram in either form, of the buckets of the scale and of no others: then histograms of many windows
/// take no more memory than one.
pub(super) fn histogram<'de, D: Deserializer<'de>>(from: D) -> Result<Histogram, D::Error> {
    struct Either;

    impl<'de> Visitor<'de> for Either {
        type Value = Vec<Bucket>;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("a list of buckets, or a text of their counts")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
            histogram_of(text).map_err(E::custom)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut buckets = Vec::new();
            let mut index = 0;
            while let Some(bucket) = list.next_element::<Bucket>()? {
                let is_it = |index| edges_of(index) == (bucket.lower, bucket.upper);
                while index < BUCKETS && !is_it(index) {
                    index += 1;
                }
                if index == BUCKETS {
                    return Err(A::Error::custom("a bucket is none of the scale, or out of order"));
                }
                buckets.push(bucket);
                index += 1;
            }
            Ok(buckets)
        }
    }

    let buckets = from.deserialize_any(Either)?;
    Histogram::from_buckets(buckets).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use wakescope_testing::assert_told;

    use super::*;
    use crate::date::Date;
    use crate::watch::boot::Boot;
    use crate::watch::meter::{Meter, Reading};
    use crate::watch::observed::{Grouping, Observed};
    use crate::watch::{Cpu, OwnCost, Series};
    use proptest::prelude::*;
    use wakescope_testing::fuzz;

    /// Waits in these buckets, each as long as the bucket's lower edge.
    fn waits(counts: &[(usize, u64)]) -> Waits {
        let sum_ns = counts.iter().map(|&(index, count)| edges_of(index).0.saturating_mul(count));
        let max_ns = counts.last().map_or(0, |&(index, _)| edges_of(index).0);
        let min_ns = counts.first().map_or(u64::MAX, |&(index, _)| edges_of(index).0);
        let sum_ns = sum_ns.fold(0, u64::saturating_add);
        Meter::default().read(Reading { sum_ns, max_ns, min_ns, buckets: counts.to_vec() })
    }

    fn window(counts: &[(usize, u64)]) -> Window {
        let others = waits(counts);
        Window {
            schema: SCHEMA.into(),
            started: "2026-11-21T01:00:00Z".into(),
            window_ns: 600_000_000_000,
            series: vec![
                Series {
                    cgroup_id: 7,
                    cgroup: Some("/a \"b\"".into()),
                    comm: "x\n".into(),
                    waits: waits(&[(3, 1), (4, 2)]),
                },
                Series { cgroup_id: 0, cgroup: None, comm: String::new(), waits: others.clone() },
            ],
            others,
            cpus: vec![Cpu { cpu: 1, switches: 9, waits: waits(&[(0, 5)]) }],
            series_used: 2,
            series_limit: 9,
            own_cost: OwnCost { agent_ns: 1, program_runs: 9, cpus: 2, ..OwnCost::default() },
            boots: vec![Boot { boot: Some("1".into()), ..Boot::default() }],
            ..Window::default()
        }
    }

    #[test]
    fn a_histogram_is_a_short_text() {
        let waits = waits(&[(57, 3), (58, 12), (71, 1), (BUCKETS - 1, 2)]);
        assert_eq!(text_of(&waits.histogram), "@57 3 12 @71 1 @433 2");
        assert_eq!(text_of(&Histogram::default()), "");
        let line = text_of_window(&window(&[(57, 3)])).unwrap();
        assert!(line.ends_with('\n') && line.contains("\"histogram\":\"@3 1 2\""), "{line}");
    }

    proptest! {
        #[test]
        fn what_is_stored_is_read_as_it_was(
            counts in prop::collection::btree_map(0..BUCKETS, 1_u64..1 << 40, 0..60),
        ) {
            let window = window(&counts.into_iter().collect::<Vec<_>>());
            let line = text_of_window(&window).unwrap();
            prop_assert_eq!(&read(line.trim_end().as_bytes()).unwrap(), &window);
            // As `--json` prints it.
            prop_assert_eq!(&read(&serde_json::to_vec(&window).unwrap()).unwrap(), &window);
        }
    }

    /// Names that any program can give itself, in a cgroup whose path is as long as paths can be.
    #[test]
    fn a_line_is_no_longer_than_its_reader_takes() {
        let mut window = window(&[(57, 3)]);
        let long = |id: u64| Series {
            cgroup_id: 100 + id,
            cgroup: Some(format!("/{}", "\u{1}".repeat(4_000))),
            comm: format!("{id}"),
            waits: waits(&[(5, id)]),
        };
        window.series.splice(1..1, (1..=20).map(long));
        let check = |most: usize, want: Option<(usize, u64)>| {
            let Some((unnamed, others)) = want else {
                return assert_eq!(line_within(&window, most).ok(), None);
            };
            let line = line_within(&window, most).unwrap();
            assert!(line.text.len() <= most, "{} bytes", line.text.len());
            assert_eq!(line.unnamed, unnamed);
            let stored = read(line.text.trim_end().as_bytes()).unwrap();
            assert_eq!(stored.others.count, window.others.count + others);
            let count = |window: &Window| all_waits(window).map(|waits| waits.count).sum::<u64>();
            assert_eq!(count(&stored), count(&window));
            let ids = |window: &Window| {
                window.series.iter().map(|series| series.cgroup_id).collect::<Vec<_>>()
            };
            let mut kept = ids(&window);
            kept.drain(21 - unnamed..21);
            assert_eq!(ids(&stored), kept);
        };
        let whole = text_of_window(&window).unwrap().len();
        check(whole, Some((0, 0)));
        // Of the longest rows, those with two digits, the last one goes first. A row has 24 KB.
        check(whole - 1, Some((1, 20)));
        check(whole - 24_000, Some((2, 20 + 19)));
        check(20_000, Some((20, (1..=20).sum())));
        check(100, None);
    }

    #[track_caller]
    fn refused(from: &str, to: &str, want: &str) {
        let line = text_of_window(&window(&[(57, 3)])).unwrap();
        assert!(line.contains(from), "{line}");
        let told = read(line.replacen(from, to, 1).as_bytes()).unwrap_err().to_string();
        assert!(told.contains(want), "{told}");
    }

    #[test]
    fn what_is_no_window_is_refused() {
        refused("wakescope.watch/1", "wakescope.watch/2", "`wakescope.watch/2`, and this version");
        refused("2026-11-21", "yesterday", "its started: it is no date");
        refused("@3 1 2", "3 1 2", "does not begin with @");
        refused("@3 1 2", "@434 1", "no such bucket");
        refused("@3 1 2", "@4 1 @3 2", "inside the one before");
        refused("@3 1 2", "@3 1 0", "is empty");
        refused("@3 1 2", "@3 1 -2", "a count is no number");
        refused("@3 1 2", "@3 1", "the histogram holds 1");
        let [begin, length] = ["\"begin_ns\":0", "\"window_ns\":600000000000"];
        let most = "18446744073709551615";
        refused(length, &format!("\"window_ns\":{most}"), "its window_ns: no window has 1844");
        refused(begin, &format!("\"begin_ns\":{most}"), "its window_ns: no window has 6000");
        // The figures of its first series: three waits of 144 and 152 ns.
        refused(
            "\"sum_ns\":448",
            "\"sum_ns\":143",
            "its waits: sum_ns is 143, and these waits took 144",
        );
        refused(
            "\"sum_ns\":448",
            "\"sum_ns\":34359739000",
            "its waits: sum_ns is 34359739000, and these",
        );
        refused("\"@3 1 2\"", "[[1,2,3]]", "none of the scale");
        refused("\"@3 1 2\"", "[[144,152,1],[144,152,2]]", "none of the scale, or out of order");
        refused("\"series\":[", "\"series\":[7,", "it is no window");
        let half = text_of_window(&window(&[(57, 3)])).unwrap();
        assert!(matches!(read(&half.as_bytes()[..half.len() / 2]), Err(LineError::Form(_))));
    }

    #[test]
    fn figures_that_the_waits_exclude_are_refused() {
        use crate::watch::episode::{Episode, Episodes};
        let max_ns = window(&[(57, 3)]).others.max_ns.unwrap();
        let check = |ns: u64, agent_ns: u64, want: Option<&str>| {
            let mut window = window(&[(57, 3)]);
            let longest = vec![Episode { ns, unexplained_ns: ns, ..Episode::default() }];
            window.episodes = Some(Episodes { long_waits: 1, longest, ..Episodes::default() });
            window.own_cost.agent_ns = agent_ns;
            let found =
                read(text_of_window(&window).unwrap().as_bytes()).err().map(|e| e.to_string());
            assert_told(found, want);
        };
        check(max_ns, 1, None);
        check(max_ns + 1, 1, Some("but the longest wait is"));
        check(1_000_000_000_000_000_000, 1, Some("one is 1000000000000000000 ns long"));
        // Two CPUs for ten minutes.
        check(max_ns, 1_200_000_000_000, None);
        check(max_ns, 1_000_000_000_000_000_000, Some("were taken of 2 CPUs in a window of"));
    }

    #[test]
    fn a_cut_last_line_is_told_and_the_others_count() {
        let line = text_of_window(&window(&[(57, 3)])).unwrap();
        let text = format!("{line}{line}{}", &line[..line.len() / 2]);
        let mut seen = Vec::new();
        let each = |number, found: Result<Window, LineError>| {
            seen.push((number, found.map_err(|e| e.to_string())));
            Ok::<(), ()>(())
        };
        read_lines(text.as_bytes(), each).unwrap().unwrap();
        let window = window(&[(57, 3)]);
        assert_eq!(seen[..2], [(1, Ok(window.clone())), (2, Ok(window))]);
        assert!(seen[2].1.as_ref().is_err_and(|why| why.contains("in the middle")), "{seen:?}");
        assert_eq!(seen.len(), 3);
        // Only the end of the line is missing.
        let mut count = 0;
        let each = |_, found: Result<Window, LineError>| found.map(|_| count += 1);
        read_lines(line.trim_end().as_bytes(), each).unwrap().unwrap();
        assert_eq!(count, 1);
    }

    #[test]
    fn fuzz_stored_windows() {
        let counts: Vec<(usize, u64)> = (0..BUCKETS).map(|index| (index, 1)).collect();
        let window = window(&counts);
        let seeds =
            [text_of_window(&window).unwrap().into_bytes(), serde_json::to_vec(&window).unwrap()];
        fuzz("watch", &seeds, |bytes| {
            let mut sum = crate::watch::sum::Sum::default();
            let each = |_, found: Result<Window, LineError>| {
                if let Ok(window) = found {
                    assert!(all_waits(&window).all(|waits| waits.fault().is_none()));
                    sum.add(window.clone());
                    sum.add(window);
                }
                Ok::<(), ()>(())
            };
            read_lines(bytes, each).unwrap().unwrap();
            let Some(total) = sum.window() else { return };
            let _ = line(&total);
            let begin = Date::parse(&total.started).unwrap();
            for by in [Grouping::Series, Grouping::Comm, Grouping::Cgroup, Grouping::None] {
                let watch = Observed::of(&total, begin, begin, by);
                assert!((0.0..=1.0).contains(&watch.lost_share()), "{}", watch.lost_share());
            }
        });
    }
}
