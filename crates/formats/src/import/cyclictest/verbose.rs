//! Samples as text (`-v`): `thread: cycle: value` per line, as fast as they can be read.
//!
//! With `-q`, the lines of threads come behind them. They are of all cycles, while the samples of
//! the last moment are not printed.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::io::BufRead;

use wakescope_core::budget::{Budget, Entry};
use wakescope_core::finding::Severity;
use wakescope_core::run::Run;
use wakescope_core::units::counted;

use super::super::blocks::read_blocks;
use super::super::draft::Draft;
use super::super::frame::{Unframed, unframed};
use super::super::lines::{self, Line};
use super::super::tally::Tally;
use super::super::{About, ImportError, MOST_CPUS};
use super::text::{Summary, plan_of, states_floored_mean, summary};
use super::{UnitSeen, draft, is_of_spikes, of_thread};
use wakescope_core::harmless::clean;

/// What is read at once; also the longest line.
const BLOCK: usize = 1 << 18;

struct Samples<'a> {
    budget: &'a Budget,
    threads: Vec<Thread>,
    /// The CPUs that threads were bound to (`-a`), by the threads' numbers.
    bound: BTreeMap<u64, u32>,
    /// The threads' lines at the end.
    summaries: BTreeMap<u64, Summary>,
    intervals: Intervals,
    /// The name in brackets that lines begin with.
    name: Option<String>,
    unit: UnitSeen,
    /// Lines so far.
    line: u64,
}

#[derive(Clone, Default)]
struct Thread {
    tally: Tally,
    /// The cycle that comes next.
    cycle: u64,
}

/// The intervals that `Thread 0 Interval: 1000` and the lines behind it state. cyclictest adds the
/// distance of threads (`-d`) before it prints, so each line has the interval of the next thread.
#[derive(Default)]
struct Intervals {
    first: Option<u64>,
    second: Option<u64>,
    longest: u64,
}

impl Intervals {
    fn take(&mut self, us: u64) {
        match self.first {
            None => self.first = Some(us),
            Some(_) => _ = self.second.get_or_insert(us),
        }
        self.longest = self.longest.max(us);
    }

    /// By how much a thread's interval is longer than that of the one before; one line alone does not
    /// tell.
    fn distance_us(&self) -> Option<u64> {
        self.second?.checked_sub(self.first?)
    }

    /// That of the first thread.
    fn first_us(&self) -> Option<u64> {
        self.first?.checked_sub(self.distance_us()?)
    }

    /// The longest of all threads, or what it cannot exceed.
    fn longest_us(&self) -> Option<u64> {
        self.first?;
        Some(self.longest.saturating_sub(self.distance_us().unwrap_or(0)))
    }
}

pub(in super::super) fn read(from: &mut dyn BufRead, about: &About) -> Result<Run, ImportError> {
    let mut samples = Samples::new(&about.budget);
    let rest = read_blocks(from, BLOCK, |block| match samples.take(block)? {
        0 if block.len() == BLOCK => {
            Err(ImportError::at(samples.line + 1, 0, "the line is longer than 256 KiB"))
        }
        used => Ok(used),
    })?;
    if !rest.is_empty() && !lines::is_prompt(&rest) {
        let why = "the file ends in the middle of a line";
        return Err(ImportError::at(samples.line + 1, rest.len(), why)
            .try_this("take the whole file; if this is all, add a newline at its end"));
    }
    let mut draft = draft("samples", about);
    let unit_ns = samples.unit.unit_ns(&mut draft, about)?;
    draft.coarse(unit_ns);
    let ns = |us: Option<u64>| us.and_then(|us| us.checked_mul(1_000));
    draft.interval_ns = ns(samples.intervals.first_us());
    draft.spacing_ns = ns(samples.intervals.longest_us());
    if samples.intervals.distance_us().is_some_and(|us| us > 0) {
        draft.approximate("plan.interval_ns: of the first thread; the others have longer ones");
    }
    plan_of(&samples.summaries, &mut draft);
    samples.finish(draft, unit_ns)
}

impl<'a> Samples<'a> {
    fn new(budget: &'a Budget) -> Self {
        Self {
            budget,
            threads: Vec::new(),
            bound: BTreeMap::new(),
            summaries: BTreeMap::new(),
            intervals: Intervals::default(),
            name: None,
            unit: UnitSeen::default(),
            line: 0,
        }
    }

    /// Takes all whole lines of a block; how many bytes they have.
    fn take(&mut self, block: &[u8]) -> Result<usize, ImportError> {
        let mut used = 0;
        while used < block.len() {
            if let Some((length, thread, cycle, value)) = sample(&block[used..]) {
                self.line += 1;
                self.count(thread, cycle, value)?;
                used += length;
                continue;
            }
            let Some(length) = block[used..].iter().position(|&b| b == b'\n') else { break };
            self.line += 1;
            self.other(&block[used..used + length])?;
            used += length + 1;
        }
        Ok(used)
    }

    #[inline]
    fn count(&mut self, thread: u64, cycle: u64, value: u64) -> Result<(), ImportError> {
        let index = usize::try_from(thread).unwrap_or(usize::MAX);
        if index >= self.threads.len() {
            self.grow(thread)?;
        }
        let of = &mut self.threads[index];
        // Of a sample of 0 it writes the cycle of one before it.
        if cycle != of.cycle && !(value == 0 && cycle < of.cycle) {
            return Err(self.gap(index, cycle));
        }
        of.cycle += 1;
        of.tally.add(value, self.budget)?;
        Ok(())
    }

    #[cold]
    fn grow(&mut self, thread: u64) -> Result<(), ImportError> {
        if thread >= MOST_CPUS {
            let why =
                format!("{thread} is not the number of a thread: there are no more than 8,192");
            return Err(ImportError::at(self.line, 0, why));
        }
        self.budget.keep(thread + 1 - self.threads.len() as u64, Entry::THREAD)?;
        // The first samples of threads need not come in order.
        self.threads.resize(usize::try_from(thread).unwrap_or(0) + 1, Thread::default());
        Ok(())
    }

    #[cold]
    fn gap(&self, thread: usize, cycle: u64) -> ImportError {
        let why = format!(
            "thread {thread} is at cycle {cycle}, after {}: some are missing or duplicated",
            wakescope_core::units::counted(self.threads[thread].cycle, "sample")
        );
        ImportError::at(self.line, 0, why)
            .try_this("take the whole output, of cyclictest without -o")
    }

    /// A line that is no sample.
    #[cold]
    fn other(&mut self, line: &[u8]) -> Result<(), ImportError> {
        let number = self.line;
        let fault = |why: &str| {
            let text = clean(&String::from_utf8_lossy(line), 60);
            ImportError::at(number, 0, format!("{why}: `{text}`"))
        };
        let text = std::str::from_utf8(line).map_err(|_| fault("neither ASCII nor UTF-8"))?;
        let text = text.trim_end_matches('\r');
        let text = if number == 1 { text.trim_start_matches('\u{feff}') } else { text };
        let plain = lines::without_escapes(text);
        let Some(Unframed { text, name }) = unframed(&plain) else { return Ok(()) };
        if let Some(name) = name {
            self.check_name(name)?;
        }
        // Samples of a log begin with its frames.
        if let Some((_, thread, cycle, value)) = sample(format!("{text}\n").as_bytes()) {
            return self.count(thread, cycle, value);
        }
        self.unit.take(text);
        if text == "# Histogram" {
            return Err(ImportError::at(number, 0, "a histogram of the same samples begins")
                .try_this("read that: wakescope import FILE --from cyclictest"));
        }
        let remarks = ["#", "Max CPUs = ", "Online CPUs = ", "WARN", "INFO"];
        let is_affinity = text.starts_with("Using ") && text.ends_with(" cpus.");
        let is_remark = is_affinity || is_of_spikes(text);
        if text.trim().is_empty() || is_remark || remarks.iter().any(|r| text.starts_with(r)) {
            return Ok(());
        }
        if let Some((thread, cpu)) = binding(text) {
            self.bound.insert(thread, cpu);
            return Ok(());
        }
        if text.starts_with("T:") {
            self.unit.take_columns(text);
            let line = Line { number, text, offset: 0 };
            let (thread, of) = summary(line)?;
            if self.summaries.insert(thread, of).is_some() {
                return Err(line.fault("a second result begins; give each a file of its own"));
            }
            return Ok(());
        }
        let interval = text.strip_prefix("Thread ").and_then(|t| t.split_once(" Interval: "));
        let interval = interval.and_then(|(_, us)| lines::number(us.trim()));
        let Some(us) = interval else {
            return Err(fault("this is not a line of cyclictest -v")
                .try_this("remove lines that other programs wrote, if it is one of these"));
        };
        self.intervals.take(us);
        Ok(())
    }

    /// Lines with different names before them are of different programs.
    fn check_name(&mut self, name: &str) -> Result<(), ImportError> {
        let known = self.name.get_or_insert_with(|| name.to_owned());
        if known == name {
            return Ok(());
        }
        Err(lines::mixed(self.line, known, name))
    }

    fn finish(mut self, mut draft: Draft, unit_ns: u64) -> Result<Run, ImportError> {
        if self.threads.is_empty() {
            return Err(ImportError::new("there is no sample in it"));
        }
        if let Some(&last) = self.summaries.keys().next_back() {
            if last >= self.threads.len() as u64 {
                self.grow(last)?;
            }
        }
        for i in 0..self.threads.len() {
            let cpu = self.bound.get(&(i as u64)).copied();
            let Some(summary) = self.summaries.get(&(i as u64)) else {
                let d = self.threads[i].tally.finish(unit_ns).map_err(|why| of_thread(i, why))?;
                draft.thread(cpu, d);
                continue;
            };
            let tally = &mut self.threads[i].tally;
            complete(tally, summary, self.budget).map_err(|why| of_thread(i, why))?;
            let lost = summary.cycles - tally.count;
            let d = tally.finish(unit_ns).map_err(|why| of_thread(i, why))?;
            draft.thread(cpu, d);
            if lost == 0 {
                states_floored_mean(&mut draft, summary.mean, unit_ns);
            } else {
                let message = format!(
                    "cyclictest did not print {} of thread {i}; the extremes are of all",
                    counted(lost, "sample")
                );
                draft.find("lost-samples", Severity::Warning, message, "use a histogram: -h 1000");
            }
        }
        draft.finish()
    }
}

/// Adds to a thread's samples what its line tells of those that were not printed: the largest and
/// the smallest.
fn complete(tally: &mut Tally, line: &Summary, budget: &Budget) -> Result<(), ImportError> {
    let contradicts = |what: &str, stated: u64| {
        ImportError::new(format!("its line contradicts its samples: {what} {stated}"))
    };
    if line.cycles < tally.count {
        return Err(contradicts("it has cycles:", line.cycles));
    }
    if line.cycles == 0 {
        return Ok(());
    }
    let extremes = [
        ("the maximum is", line.max, Ordering::Greater),
        ("the minimum is", line.min, Ordering::Less),
    ];
    for (what, value, beyond) in extremes {
        // The sample that was added for the maximum may be the minimum, too.
        let held = if beyond == Ordering::Greater { tally.max } else { tally.min };
        let place = if tally.count == 0 { beyond } else { value.cmp(&held) };
        if place == beyond.reverse() || (place == beyond && tally.count == line.cycles) {
            return Err(contradicts(what, value));
        }
        if place == beyond {
            tally.add(value, budget)?;
        }
    }
    Ok(())
}

/// The thread and the CPU of `Thread 0 using cpu 1.`, which each thread that has an affinity writes.
fn binding(text: &str) -> Option<(u64, u32)> {
    let (thread, cpu) =
        text.strip_prefix("Thread ")?.strip_suffix('.')?.split_once(" using cpu ")?;
    let thread = lines::number(thread).filter(|&t| t < MOST_CPUS)?;
    Some((thread, u32::try_from(lines::number(cpu)?).ok()?))
}

/// The sample in a line at the start of `bytes`: the line's length with its end, thread, cycle,
/// value. `None` if it is no sample, or not whole.
#[inline]
fn sample(bytes: &[u8]) -> Option<(usize, u64, u64, u64)> {
    let (at, thread) = field(bytes, 0)?;
    if bytes.get(at) != Some(&b':') {
        return None;
    }
    let (at, cycle) = field(bytes, at + 1)?;
    if bytes.get(at) != Some(&b':') {
        return None;
    }
    let (mut at, value) = field(bytes, at + 1)?;
    if bytes.get(at) == Some(&b' ') {
        // With --smi, there is the number of interrupts too.
        (at, _) = field(bytes, at)?;
    }
    if bytes.get(at) == Some(&b'\r') {
        at += 1;
    }
    (bytes.get(at) == Some(&b'\n')).then_some((at + 1, thread, cycle, value))
}

/// Blanks and then a whole number of up to 18 digits; where it ends.
#[inline]
fn field(bytes: &[u8], from: usize) -> Option<(usize, u64)> {
    let mut at = from;
    while bytes.get(at) == Some(&b' ') {
        at += 1;
    }
    let start = at;
    let mut value = 0_u64;
    while let Some(digit) = bytes.get(at).map(|b| b.wrapping_sub(b'0')).filter(|&d| d < 10) {
        if at - start == 18 {
            return None;
        }
        value = value * 10 + u64::from(digit);
        at += 1;
    }
    (at > start).then_some((at, value))
}
