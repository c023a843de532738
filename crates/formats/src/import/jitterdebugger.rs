//! jitterdebugger: `results.json`, and samples as records of 28 bytes.
//!
//! Bucket k holds what is from k to below k + 1. After a late wakeup it wakes for every expiry that
//! has passed, so each counts with its own lateness. Its threads are numbered; a number is not the
//! CPU. In the raw samples of each thread one is missing, the last.

use std::io::BufRead;

use serde::Deserialize;
use wakescope_core::budget::{Budget, Entry, Exceeded};
use wakescope_core::distribution::Distribution;
use wakescope_core::maxima::{FIRST_SLOT_NS, Maxima, SLOTS};
use wakescope_core::run::Run;
use wakescope_core::source::{Omission, Quantity};

use super::blocks::read_blocks;
use super::counts::{Counts, in_ns};
use super::cyclictest::json::{states_mean, sum_of};
use super::draft::{Draft, Kernel};
use super::json::{self, Entries};
use super::lines::number;
use super::tally::Tally;
use super::{About, ImportError, MOST_CPUS, Unit, unit};

/// Rows of the histogram in `results.json`: 1 ms.
const END_NS: u64 = 1_000_000;

fn draft(format: &str, about: &About) -> Draft {
    Draft::new("jitterdebugger", format, about, Quantity::WakeupLatency, Omission::Counted)
}

#[derive(Deserialize)]
struct File {
    /// Missing in 0.1, 1 up to 0.3.1.
    #[serde(default)]
    version: u64,
    /// From version 2 on.
    #[serde(default)]
    sysinfo: Facts,
    cpu: Entries<Thread>,
}

#[derive(Default, Deserialize)]
struct Facts {
    #[serde(default)]
    release: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    machine: String,
    /// From version 3 on; before that, all is in µs.
    #[serde(default)]
    resolution_in_ns: Option<u64>,
}

#[derive(Deserialize)]
struct Thread {
    histogram: Entries<u64>,
    count: u64,
    min: u64,
    max: u64,
    avg: f64,
}

pub(super) fn read_json(from: &mut dyn BufRead, about: &About) -> Result<Run, ImportError> {
    let file: File = json::parse(&json::bytes(from)?)?;
    let unit = match (file.version, file.sysinfo.resolution_in_ns) {
        (0..=2, None) => Unit::Us,
        (3, Some(stated)) => file.sysinfo.unit().ok_or_else(|| {
            ImportError::new(format!("resolution_in_ns is {stated}, not 1 or 1000"))
        })?,
        (version, _) => {
            return Err(ImportError::new(format!(
                "it has version {version} of jitterdebugger's results, or one without what that \
                 version has; versions up to 3 are read"
            )));
        }
    };
    let unit_ns = unit::stated(about, unit, "`resolution_in_ns` states it")?;
    let mut draft = draft("JSON", about);
    draft.step_ns = unit_ns;
    let Facts { release, version, machine: arch, .. } = file.sysinfo;
    draft.kernel = (!release.is_empty()).then_some(Kernel { release, version, arch });
    draft.coarse(unit_ns);
    for (key, thread) in &file.cpu.0 {
        let id = number(key).filter(|&id| id < MOST_CPUS);
        let id =
            id.ok_or_else(|| ImportError::new("a key of `cpu` is not the number of a thread"))?;
        let of_thread = |why| ImportError::new(format!("thread {id}: {why}"));
        let d = thread.distribution(&mut draft, id, unit_ns).map_err(of_thread)?;
        draft.thread(None, d);
        if thread.count > 0 {
            states_mean(&mut draft, thread.avg, unit_ns, 0.006);
        }
    }
    draft.approximate("sum_ns: the mean is given with two decimals");
    draft.finish()
}

impl Facts {
    fn unit(&self) -> Option<Unit> {
        match self.resolution_in_ns {
            Some(1) => Some(Unit::Ns),
            Some(1_000) | None => Some(Unit::Us),
            Some(_) => None,
        }
    }
}

/// The unit that a `results.json` states; raw samples beside it are in the same. `None` if it is no
/// such file.
pub fn unit_of_results(from: &mut dyn BufRead) -> Option<Unit> {
    #[derive(Deserialize)]
    struct Head {
        sysinfo: Facts,
    }
    let head: Head = json::parse(&json::bytes(from).ok()?).ok()?;
    head.sysinfo.unit()
}

impl Thread {
    fn distribution(
        &self,
        draft: &mut Draft,
        id: u64,
        unit_ns: u64,
    ) -> Result<Distribution, String> {
        let rows = self.histogram.rows().map_err(|e| e.why)?;
        let end = END_NS / unit_ns;
        let mut counts = Counts::default();
        for &(row, count) in &rows {
            if row >= end {
                return Err(format!("its histogram has a row {row}, beyond its end"));
            }
            counts.push(in_ns(row, unit_ns)?, in_ns(row + 1, unit_ns)?, count)?;
        }
        let held = counts.count();
        let overflow = self
            .count
            .checked_sub(held)
            .ok_or_else(|| format!("its histogram holds {held} samples, of {}", self.count))?;
        if self.count == 0 {
            return Ok(Distribution::default());
        }
        let lowest = rows.first().map_or(self.min, |&(row, _)| row);
        if lowest != self.min {
            return Err(format!("its minimum {} is not its lowest row {lowest}", self.min));
        }
        let (min_ns, max_ns) = (in_ns(self.min, unit_ns)?, in_ns(self.max, unit_ns)?);
        if overflow > 0 {
            if self.max < end {
                return Err(format!(
                    "its histogram lacks {overflow} of {} samples, but none is beyond its end",
                    self.count
                ));
            }
            let lower = END_NS.max(if held == 0 { min_ns } else { 0 });
            counts.push(lower, max_ns + unit_ns, overflow)?;
            draft.overflow(&format!("thread {id}"), overflow, END_NS, true);
        } else if rows.last().map(|&(row, _)| row) != Some(self.max) {
            return Err(format!("its maximum {} is not its highest row", self.max));
        }
        counts.finish(min_ns, max_ns, sum_of(self.count, self.avg, unit_ns)?)
    }
}

const RECORD: usize = 28;

/// How many bytes are read at once: whole records.
const BLOCK: usize = RECORD << 13;

/// One sample as it is stored: thread, seconds, nanoseconds, value; little-endian.
struct Record {
    thread: u32,
    seconds: u64,
    nanoseconds: u64,
    value: u64,
}

impl Record {
    #[inline]
    fn of(bytes: &[u8; RECORD]) -> Self {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let thread = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        Self { thread, seconds: word(4), nanoseconds: word(12), value: word(20) }
    }

    /// What cannot be in a record, if anything.
    #[inline]
    fn fault(&self) -> Option<&'static str> {
        // A machine runs for less than 292 years; nothing is later than that.
        if u64::from(self.thread) >= MOST_CPUS {
            Some("there are no more than 8,192 threads")
        } else if self.nanoseconds >= 1_000_000_000 || self.seconds >= 1 << 33 {
            Some("its time is none")
        } else if self.seconds == 0 && self.nanoseconds == 0 {
            Some("it has no time")
        } else if self.value >= 1 << 42 {
            Some("its value is too large for a time")
        } else {
            None
        }
    }

    #[inline]
    fn at_ns(&self) -> u64 {
        self.seconds * 1_000_000_000 + self.nanoseconds
    }
}

/// Whether these bytes, as many as a record has, are one.
pub(super) fn is_record(bytes: &[u8]) -> bool {
    bytes.try_into().is_ok_and(|bytes| Record::of(bytes).fault().is_none())
}

/// A thread's samples so far.
#[derive(Clone, Default)]
struct Samples {
    tally: Tally,
    first_at_ns: Option<u64>,
    last_at_ns: u64,
    max_at_ns: u64,
    course: Course,
}

pub(super) fn read_raw(from: &mut dyn BufRead, about: &About) -> Result<Run, ImportError> {
    let mut draft = draft("raw samples", about);
    let unit_ns = draft.assumed_unit(
        about,
        Unit::Us,
        "jitterdebugger counts in µs unless it is given -N; a results.json beside the file would state it",
    );
    draft.coarse(unit_ns);
    let budget = &about.budget;
    let mut raw = Raw { unit_ns, budget, origin_ns: None, threads: Vec::new(), records: 0 };
    let rest = read_blocks(from, BLOCK, |block| {
        let whole = block.len() - block.len() % RECORD;
        raw.take(&block[..whole]).map(|()| whole)
    })?;
    if !rest.is_empty() {
        return Err(ImportError::new(format!(
            "the file ends in the middle of record {}: its size is not a multiple of 28 bytes",
            raw.records + 1
        )));
    }
    raw.finish(draft)
}

struct Raw<'a> {
    unit_ns: u64,
    budget: &'a Budget,
    /// When the first sample was due.
    origin_ns: Option<u64>,
    threads: Vec<Samples>,
    records: u64,
}

impl Raw<'_> {
    fn take(&mut self, block: &[u8]) -> Result<(), ImportError> {
        for bytes in block.chunks_exact(RECORD) {
            // The chunks are as long as that.
            let Ok(bytes) = bytes.try_into() else { continue };
            let record = Record::of(bytes);
            self.records += 1;
            match record.fault() {
                None => self.count(&record)?,
                Some(why) => return Err(self.fault(why)),
            }
        }
        Ok(())
    }

    #[inline]
    fn count(&mut self, record: &Record) -> Result<(), ImportError> {
        let at_ns = record.at_ns();
        // It stores when it woke.
        let due_ns = at_ns.saturating_sub(record.value * self.unit_ns);
        let origin_ns = *self.origin_ns.get_or_insert(due_ns);
        let due_ns = due_ns.saturating_sub(origin_ns);
        let index = record.thread as usize;
        if index >= self.threads.len() {
            self.budget.keep((index + 1 - self.threads.len()) as u64, Entry::THREAD)?;
            self.threads.resize(index + 1, Samples::default());
        }
        let of = &mut self.threads[index];
        if at_ns < of.last_at_ns {
            return Err(self.fault("its time is before that of the record before it"));
        }
        of.first_at_ns.get_or_insert(at_ns);
        of.last_at_ns = at_ns;
        if of.tally.add(record.value, self.budget)? {
            of.max_at_ns = due_ns;
        }
        of.course.raise(due_ns, record.value, self.budget)?;
        Ok(())
    }

    #[cold]
    fn fault(&self, why: &str) -> ImportError {
        let (record, byte) = (self.records, (self.records - 1) * RECORD as u64);
        ImportError::new(format!("record {record}, from byte {byte} on: {why}"))
            .try_this("take the samples.raw that jitterdebugger -s wrote, whole")
    }

    /// The longest time from one sample to the next, on average over a thread.
    fn spacing_ns(&self) -> Option<u64> {
        let of = |t: &Samples| {
            let span = t.last_at_ns.checked_sub(t.first_at_ns?)?;
            span.checked_div(t.tally.count.checked_sub(1)?)
        };
        self.threads.iter().filter_map(of).max()
    }

    fn finish(self, mut draft: Draft) -> Result<Run, ImportError> {
        let origin_ns = self.origin_ns.unwrap_or_default();
        let end_ns = self.threads.iter().map(|t| t.last_at_ns).max().unwrap_or_default();
        draft.duration_ns = Some(end_ns.saturating_sub(origin_ns)).filter(|&ns| ns > 0);
        draft.spacing_ns = self.spacing_ns();
        let threads = self.threads.iter().enumerate().filter(|(_, t)| t.tally.count > 0);
        for (id, samples) in threads {
            let d = samples.tally.finish(self.unit_ns);
            let d = d.map_err(|why| ImportError::new(format!("thread {id}: {why}")))?;
            draft.thread(None, d);
            draft.course(Some(samples.max_at_ns), samples.course.maxima(self.unit_ns));
        }
        draft.approximate("threads.woken.count: the program omits the last sample of each");
        draft.finish()
    }
}

/// The largest values over the course of the run, in few slots however long it is.
#[derive(Clone)]
struct Course {
    slot_ns: u64,
    /// One more than the largest value of each slot; 0 where there is none.
    slots: Vec<u64>,
}

impl Default for Course {
    fn default() -> Self {
        Self { slot_ns: FIRST_SLOT_NS, slots: Vec::new() }
    }
}

impl Course {
    #[inline]
    fn raise(&mut self, due_ns: u64, value: u64, budget: &Budget) -> Result<(), Exceeded> {
        let mut slot = due_ns / self.slot_ns;
        while slot >= SLOTS as u64 {
            self.halve();
            slot = due_ns / self.slot_ns;
        }
        let slot = usize::try_from(slot).unwrap_or(0);
        if slot >= self.slots.len() {
            budget.keep((slot + 1 - self.slots.len()) as u64, Entry::SLOT)?;
            self.slots.resize(slot + 1, 0);
        }
        self.slots[slot] = self.slots[slot].max(value + 1);
        Ok(())
    }

    #[cold]
    fn halve(&mut self) {
        self.slot_ns *= 2;
        let pairs = self.slots.chunks(2).map(|pair| pair.iter().copied().max().unwrap_or(0));
        self.slots = pairs.collect();
    }

    fn maxima(&self, unit_ns: u64) -> Maxima {
        let ns = |&slot: &u64| slot.checked_sub(1).map(|value| value.saturating_mul(unit_ns));
        Maxima { slot_ns: self.slot_ns, max_ns: self.slots.iter().map(ns).collect() }
    }
}
