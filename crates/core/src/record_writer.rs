//! Writes run records as JSON, again and again, at little cost.
//!
//! While wakeups are measured, the record is rewritten about every second, and nearly all of it are
//! histograms whose edges do not change. They are written by hand, each bucket's edges once,
//! with the same bytes as result; docs/benchmarks.md has what it costs.

use crate::histogram::{Bucket, Histogram, SCALE_BUCKETS, bucket_of, edges_of};
use crate::run::Run;

/// A writer that remembers the text of edges that it has written before.
#[derive(Debug, Default)]
pub struct RecordWriter {
    text: Vec<u8>,
    /// Where the text of each bucket of the histogram written last begins.
    starts: Vec<usize>,
    /// Per bucket of the scale `[lower,upper,` and, in the last byte, its length; 0 if not made yet.
    edges: Vec<[u8; EDGES]>,
}

/// Room for two numbers below 10^14 (28 hours in ns) with brackets and commas, and the length.
const EDGES: usize = 32;

impl RecordWriter {
    /// `run` as JSON, on one line.
    pub fn write(&mut self, run: &mut Run) -> &[u8] {
        const PLACE: &str = "\"histogram\":[]";
        // Taken out, and put back below, so that they need not be copied.
        let histograms: Vec<Histogram> = histograms_of(run).map(std::mem::take).collect();
        // Maps have string keys and numbers are finite: there is nothing that could fail.
        let bare = serde_json::to_string(run).unwrap_or_default();
        let mut rest = bare.as_str();
        self.text.clear();
        self.starts.clear();
        if self.edges.is_empty() {
            // Fresh zeroes: only the pages of buckets in use become resident.
            self.edges = vec![[0; EDGES]; SCALE_BUCKETS];
        }
        let mut last: &[Bucket] = &[];
        for histogram in &histograms {
            // Inside a JSON string the quotes would be escaped, and no key of a record that comes
            // before `threads` holds a histogram: the first places are those of the threads.
            let Some((before, after)) = rest.split_once(PLACE) else { break };
            self.text.extend_from_slice(before.as_bytes());
            self.text.extend_from_slice(&PLACE.as_bytes()[..PLACE.len() - 1]);
            self.histogram(histogram.buckets(), last);
            last = histogram.buckets();
            rest = after;
        }
        self.text.extend_from_slice(rest.as_bytes());
        for (place, histogram) in histograms_of(run).zip(histograms) {
            *place = histogram;
        }
        &self.text
    }

    /// Appends `buckets` and the closing bracket. Where they are those of `last`, the histogram
    /// written before, their text is copied from there: `expiries` is `woken` but for a few.
    fn histogram(&mut self, buckets: &[Bucket], last: &[Bucket]) {
        self.text.reserve(Line::ROOM + 32 * buckets.len());
        let last_starts = std::mem::take(&mut self.starts);
        let mut starts = Vec::with_capacity(buckets.len());
        let mut same = 0;
        let mut copy = 0..0;
        for bucket in buckets {
            starts.push(self.text.len() + copy.len());
            while last.get(same).is_some_and(|l| l.lower < bucket.lower) {
                same += 1;
            }
            // The end of the last bucket's text is not that of the others.
            match last_starts.get(same..).unwrap_or_default() {
                [from, to, ..] if last[same] == *bucket => {
                    if copy.end != *from {
                        self.text.extend_from_within(copy);
                        copy = *from..*from;
                    }
                    copy.end = *to;
                }
                _ => {
                    self.text.extend_from_within(std::mem::take(&mut copy));
                    self.bucket(bucket);
                }
            }
        }
        self.text.extend_from_within(copy);
        // After the last bucket there is no comma.
        if !buckets.is_empty() {
            self.text.pop();
        }
        self.text.push(b']');
        self.starts = starts;
    }

    /// Appends `[lower,upper,count],`.
    fn bucket(&mut self, bucket: &Bucket) {
        let index = bucket_of(bucket.lower);
        // A histogram from elsewhere has edges of its own.
        let on_scale = edges_of(index) == (bucket.lower, bucket.upper);
        let mut line = match &mut self.edges[index] {
            known if on_scale && known[EDGES - 1] > 0 => Line::of_known(known),
            unknown => {
                let line = Line::of_edges(bucket);
                if on_scale {
                    line.store(unknown);
                }
                line
            }
        };
        line.number(bucket.count);
        line.put(b']');
        line.put(b',');
        line.append_to(&mut self.text);
    }
}

impl Run {
    /// The record as JSON, on one line. Who writes it again and again keeps a [`RecordWriter`].
    pub fn to_json(&self) -> String {
        String::from_utf8_lossy(RecordWriter::default().write(&mut self.clone())).into_owned()
    }
}

/// The histograms of the threads, in the order in which a record holds them.
fn histograms_of(run: &mut Run) -> impl Iterator<Item = &mut Histogram> {
    run.histograms_of_threads_mut()
}

/// A bucket's text, or the beginning of it.
#[derive(Clone, Copy, Debug)]
struct Line {
    text: [u8; Self::ROOM],
    end: u8,
}

impl Line {
    /// Room for three numbers of 20 digits at most, brackets and commas: 65 bytes.
    const ROOM: usize = 71;
    const EMPTY: Self = Self { text: [0; Self::ROOM], end: 0 };

    /// `[lower,upper,`
    fn of_edges(bucket: &Bucket) -> Self {
        let mut line = Self::EMPTY;
        line.put(b'[');
        line.number(bucket.lower);
        line.put(b',');
        line.number(bucket.upper);
        line.put(b',');
        line
    }

    /// Edges that have been stored.
    fn of_known(edges: &[u8; EDGES]) -> Self {
        let mut line = Self { end: edges[EDGES - 1], ..Self::EMPTY };
        line.text[..EDGES].copy_from_slice(edges);
        line
    }

    /// Stores edges, if they are not too long.
    fn store(&self, edges: &mut [u8; EDGES]) {
        if usize::from(self.end) < EDGES {
            edges.copy_from_slice(&self.text[..EDGES]);
            edges[EDGES - 1] = self.end;
        }
    }

    fn put(&mut self, byte: u8) {
        self.text[usize::from(self.end)] = byte;
        self.end += 1;
    }

    /// Appends `number` in decimal.
    fn number(&mut self, mut number: u64) {
        let digits = number.checked_ilog10().unwrap_or(0) as usize + 1;
        let start = usize::from(self.end);
        for place in self.text[start..start + digits].iter_mut().rev() {
            // A decimal digit.
            #[allow(clippy::cast_possible_truncation)]
            (*place = b'0' + (number % 10) as u8);
            number /= 10;
        }
        // Below ROOM, or the slice would have been out of bounds.
        #[allow(clippy::cast_possible_truncation)]
        (self.end += digits as u8);
    }

    fn append_to(&self, out: &mut Vec<u8>) {
        let end = out.len() + usize::from(self.end);
        // A copy of fixed size is a few instructions, one of the right size a function call.
        out.extend_from_slice(&self.text);
        out.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tests::run_with;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_record_is_what_serde_makes(
            records in prop::collection::vec(
                prop::collection::vec(prop::collection::vec(any::<u64>(), 0..20), 0..4),
                1..4,
            ),
            text in "\\PC{0,8}(\"histogram\":\\[\\]|\\\\)?\\PC{0,8}",
        ) {
            let mut writer = RecordWriter::default();
            for cpus in records {
                let mut run = run_with(&cpus, &text);
                // Expiries are wakeups and, of some CPUs, a few more.
                for (thread, more) in run.threads.iter_mut().zip(cpus.iter().skip(1)) {
                    let more = Histogram::of(more.iter().copied());
                    thread.expiries.histogram = thread.expiries.histogram.merged(&more);
                }
                let written = writer.write(&mut run).to_vec();
                prop_assert_eq!(written, serde_json::to_vec(&run).unwrap());
            }
        }
    }
}
