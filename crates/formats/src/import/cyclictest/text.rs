//! Histograms as text (`-h`, `-H`, `--histfile`), and the lines of threads (`-q`).

use std::collections::BTreeMap;
use std::io::BufRead;

use wakescope_core::budget::{Budget, Entry};
use wakescope_core::distribution::Distribution;
use wakescope_core::run::Run;

use super::super::command;
use super::super::counts::{Counts, in_ns, sum_of_mean, wide};
use super::super::draft::Draft;
use super::super::lines::{Line, Lines, Word};
use super::super::own::Own;
use super::super::rt_tests;
use super::super::statement::Figure;
use super::super::{About, ImportError, MOST_CPUS, MOST_ROWS, Unit};
use super::{NO_MINIMUM, UnitSeen, draft, extremes, is_of_spikes, of_thread, policy_of, priority};

/// All that the text states.
#[derive(Default)]
struct Seen {
    /// Whether there was a head of a histogram.
    histogram: bool,
    /// How many columns its rows have.
    columns: Option<usize>,
    /// The last row.
    last_row: Option<u64>,
    /// Per column, rows and counts, but for empty ones.
    rows: Vec<Vec<(u64, u64)>>,
    total: Option<Vec<u64>>,
    min: Option<Vec<u64>>,
    mean: Option<Vec<u64>>,
    max: Option<Vec<u64>>,
    overflows: Option<Vec<u64>>,
    /// Whether words that are no part of the result came behind it.
    ended: bool,
    /// The last state of each thread.
    threads: BTreeMap<u64, Summary>,
    policy: Option<String>,
    /// How many rows there are, also without samples.
    row_count: u64,
    /// What wakescope stated of its own file: its rows are rounded up, its mean is not.
    own: Option<Own>,
    unit: UnitSeen,
}

/// What the threads' lines tell of the plan.
pub(super) fn plan_of(threads: &BTreeMap<u64, Summary>, draft: &mut Draft) {
    let Some(first) = threads.values().next() else { return };
    draft.policy = draft.policy.or(policy_of(first.priority));
    draft.priority = priority(first.priority);
    draft.interval_ns = first.interval_us.checked_mul(1_000);
    let longest = threads.values().map(|t| t.interval_us).max();
    draft.spacing_ns = longest.and_then(|us| us.checked_mul(1_000));
    if threads.values().any(|t| t.interval_us != first.interval_us) {
        draft.approximate("plan.interval_ns: of the first thread; the others have longer ones");
    }
}

/// A line of a thread: `T: 0 (27451) P:80 I:1000 C:    300 Min:     19 Act:   28 Avg:   34 Max:     312`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Summary {
    /// The number of its task, in parentheses; 0 before it has begun.
    task: Option<u64>,
    priority: u64,
    interval_us: u64,
    pub(super) cycles: u64,
    pub(super) min: u64,
    pub(super) mean: u64,
    pub(super) max: u64,
}

impl Summary {
    /// Whether `new` can be a later state of this thread.
    fn goes_on(&self, new: &Self) -> bool {
        let grows = match self.cycles {
            0 => return true,
            cycles if cycles == new.cycles => self.has_one_sample_more(new),
            cycles => cycles < new.cycles,
        };
        // Another task is that of another run of cyclictest.
        self.task == new.task && self.min >= new.min && self.max <= new.max && grows
    }

    /// Whether a sample can be in the figures of `new` that is not counted yet: cyclictest changes its minimum,
    /// maximum and sum before it counts a sample, and `--refresh_on_max` prints just then.
    fn has_one_sample_more(&self, new: &Self) -> bool {
        // Means are cut off.
        let most = new.max.checked_div(self.cycles).unwrap_or(0).saturating_add(1);
        let rises = new.mean.checked_sub(self.mean).is_some_and(|more| more <= most);
        rises && (self.min == new.min || self.max == new.max)
    }
}

pub(in super::super) fn read(from: &mut dyn BufRead, about: &About) -> Result<Run, ImportError> {
    let mut seen = Seen::default();
    let mut lines = Lines::new(from);
    while let Some(line) = lines.next()? {
        seen.take(line, &about.budget)?;
    }
    let end = lines.count();
    let format = if seen.histogram { "text histogram" } else { "summary lines" };
    let mut draft = draft(format, about);
    let unit_ns = seen.unit.unit_ns(&mut draft, about)?;
    draft.step_ns = unit_ns;
    if let Some(own) = &seen.own {
        draft.own(own);
    }
    draft.coarse(unit_ns);
    seen.plan(&mut draft);
    if seen.histogram {
        seen.histogram(&mut draft, unit_ns, end)?;
    } else {
        seen.summaries(&mut draft, unit_ns)?;
    }
    draft.finish()
}

impl Seen {
    fn take(&mut self, line: Line<'_>, budget: &Budget) -> Result<(), ImportError> {
        let trailers = [
            ("# Total:", &mut self.total),
            ("# Min Latencies:", &mut self.min),
            ("# Avg Latencies:", &mut self.mean),
            ("# Max Latencies:", &mut self.max),
            ("# Histogram Overflows:", &mut self.overflows),
        ];
        for (head, into) in trailers {
            let Some(words) = line.after(head) else { continue };
            if into.is_some() {
                return Err(line.fault("this line appears twice; does the file hold one result?"));
            }
            *into = Some(numbers(&words)?);
            return Ok(());
        }
        if let Some(own) = line.text.strip_prefix("# ").and_then(Own::of) {
            self.own.get_or_insert(own);
            self.unit.note(Unit::Us, "its first line states it");
        }
        self.unit.take(line.text);
        if line.text.trim_end() == "# Histogram" {
            if self.histogram {
                return Err(line.fault("a second histogram begins; give each a file of its own"));
            }
            self.histogram = true;
        } else if is_of_spikes(line.text) {
            // They are in the figures, too.
        } else if line.text.starts_with("T:") {
            self.unit.take_columns(line.text);
            self.summary(line)?;
        } else if let Some(words) = line.after("policy:") {
            self.policy = words.first().map(|w| w.text.trim_end_matches(':').into());
        } else if self.histogram && line.text.starts_with(|c: char| c.is_ascii_digit()) {
            self.row(line, budget)?;
        } else if !is_remark(line.text) {
            // A document's words before and behind a result are no part of it; those in it are.
            if self.histogram && self.overflows.is_none() {
                return Err(line.fault("this is not a line of cyclictest's histogram or summary"));
            }
            self.ended = self.histogram || !self.threads.is_empty();
        }
        Ok(())
    }

    /// A thread's line, of which live output has many: the last counts, and each goes on from the
    /// one before.
    fn summary(&mut self, line: Line<'_>) -> Result<(), ImportError> {
        let (thread, new) = summary(line)?;
        if self.ended || !self.threads.get(&thread).is_none_or(|old| old.goes_on(&new)) {
            return Err(line.fault("a second result begins; give each a file of its own"));
        }
        self.threads.insert(thread, new);
        Ok(())
    }

    fn row(&mut self, line: Line<'_>, budget: &Budget) -> Result<(), ImportError> {
        let mut words = line.words();
        let Some(first) = words.next() else { return Ok(()) };
        let row = first.number()?;
        if self.min.is_some() {
            return Err(first.fault("a row after the end of the histogram"));
        }
        if self.last_row.is_some_and(|last| row <= last) {
            return Err(first.fault("not above the row before it"));
        }
        if row >= MOST_ROWS {
            return Err(first.fault("beyond the last row that cyclictest writes, 999999"));
        }
        self.last_row = Some(row);
        self.row_count += 1;
        let counts: Vec<Word<'_>> = words.collect();
        let columns = *self.columns.get_or_insert(counts.len());
        if columns == 0 || counts.len() != columns || columns as u64 > MOST_CPUS + 1 {
            return Err(line.fault(&format!("not a row and {columns} counts")));
        }
        self.rows.resize(columns, Vec::new());
        for (column, word) in self.rows.iter_mut().zip(counts) {
            let count = word.number()?;
            if count > 0 {
                budget.keep(1, Entry::BUCKET)?;
                column.push((row, count));
            }
        }
        Ok(())
    }

    fn plan(&self, draft: &mut Draft) {
        draft.policy = self.policy.as_deref().and_then(command::policy);
        plan_of(&self.threads, draft);
    }

    /// One thread per column.
    fn histogram(mut self, draft: &mut Draft, unit_ns: u64, end: u64) -> Result<(), ImportError> {
        let missing = |what: &str| {
            let why = format!("the file ends before `{what}`: it is truncated");
            ImportError { line: Some(end), ..ImportError::new(why) }
        };
        let min = self.min.take().ok_or_else(|| missing("# Min Latencies:"))?;
        let mean = self.mean.take().ok_or_else(|| missing("# Avg Latencies:"))?;
        let mut max = self.max.take().ok_or_else(|| missing("# Max Latencies:"))?;
        let mut over = self.overflows.take().ok_or_else(|| missing("# Histogram Overflows:"))?;
        let threads = min.len();
        // Without a row, all samples lie beyond the last.
        self.rows.resize(self.columns.unwrap_or(threads), Vec::new());
        self.split_sum_off(threads)?;
        let mut total = self.total.take();
        let sums = [(&mut max, false), (&mut over, true)];
        for (values, adds) in sums.into_iter().chain(total.as_mut().map(|t| (t, true))) {
            drop_overall(values, threads, adds)?;
        }
        if [mean.len(), max.len(), over.len()] != [threads; 3] {
            return Err(ImportError::new("the lines below the histogram differ in length"));
        }
        let end = self.end();
        let limit = self.limit(end, over.iter().any(|&over| over > 0), draft);
        for (i, rows) in self.rows.iter().enumerate() {
            let stated = Stated {
                min: min[i],
                mean: mean[i],
                max: max[i],
                overflow: over[i],
                total: total.as_ref().map(|t| t[i]),
                rounded: self.own.is_some(),
            };
            let d = stated.distribution(draft, i, rows, end, unit_ns);
            draft.thread(None, d.map_err(|why| of_thread(i, why))?);
            draft.extremes = extremes(stated.min);
            if !stated.rounded {
                states_floored_mean(draft, stated.mean, unit_ns);
            }
            if let Some(summary) = self.threads.get(&(i as u64)) {
                summary.state(draft, unit_ns);
            }
            if let Some(limit) = limit {
                draft.limit(in_ns(limit, unit_ns).map_err(ImportError::new)?, over[i]);
            }
        }
        Ok(())
    }

    /// The row after the last that there is.
    fn end(&self) -> u64 {
        let seen = self.last_row.map_or(0, |row| row + 1);
        self.own.and_then(|own| own.rows).map_or(seen, |rows| rows.max(seen))
    }

    /// The row at which the histogram ended, where that is known. `end` is the one after the last.
    fn limit(&self, end: u64, over: bool, draft: &mut Draft) -> Option<u64> {
        if let Some(own) = self.own {
            return own.rows;
        }
        let all_rows = self.row_count == end && end > 0;
        if over && !all_rows {
            // From rt-tests 2.7 on, empty rows are left out.
            draft.approximate(
                "threads.overflow.from_ns: a lower bound; the file may omit the last rows",
            );
        }
        (over || all_rows).then_some(end)
    }

    /// With `-H`, the last column is the sum of the others.
    fn split_sum_off(&mut self, threads: usize) -> Result<(), ImportError> {
        if self.rows.len() == threads + 1 {
            let mut sums: BTreeMap<u64, u64> = BTreeMap::new();
            for &(row, count) in self.rows[..threads].iter().flatten() {
                let sum = sums.entry(row).or_default();
                *sum = sum.saturating_add(count);
            }
            let stated = self.rows.pop().unwrap_or_default();
            if let Some((row, _)) = stated.iter().find(|(row, sum)| sums.get(row) != Some(sum)) {
                let why = format!("the last column of row {row} is not the sum of the others");
                return Err(ImportError::new(why));
            }
            if stated.len() != sums.len() {
                return Err(ImportError::new("the last column is not the sum of the others"));
            }
        }
        if self.rows.len() != threads {
            return Err(ImportError::new(format!(
                "the histogram has {} columns, but there are minima of {threads} threads",
                self.rows.len()
            )));
        }
        Ok(())
    }

    /// One thread per line, of which only the extremes are known.
    fn summaries(self, draft: &mut Draft, unit_ns: u64) -> Result<(), ImportError> {
        if self.threads.is_empty() {
            return Err(ImportError::new(
                "there is neither a histogram nor a line of a thread in it",
            )
            .try_this("run cyclictest with one: -h 1000 -q"));
        }
        draft.summary_only("run cyclictest with a histogram: -h 1000");
        draft.approximate("sum_ns: the mean is truncated to a whole number");
        for (i, (&number, t)) in self.threads.iter().enumerate() {
            if number != i as u64 {
                let why = format!("there are lines of thread {number}, but none of thread {i}");
                return Err(ImportError::new(why).try_this("take the whole file"));
            }
            let d = t.distribution(unit_ns).map_err(|why| of_thread(i, why))?;
            draft.thread(None, d);
            draft.limit(0, t.cycles);
            draft.extremes = extremes(t.min);
            states_floored_mean(draft, t.mean, unit_ns);
        }
        Ok(())
    }
}

/// Notes a mean that was cut off to a whole number.
#[allow(clippy::cast_precision_loss)] // It is compared with room for that.
pub(super) fn states_floored_mean(draft: &mut Draft, mean: u64, unit_ns: u64) {
    let least = mean as f64 * unit_ns as f64;
    draft.states(Figure::Mean, least, least + unit_ns as f64);
}

impl Summary {
    /// Notes what a thread's line says beside a histogram. It may have been printed before the end.
    #[allow(clippy::cast_precision_loss)] // It is compared with room for that.
    fn state(&self, draft: &mut Draft, unit_ns: u64) {
        let ns = |value: u64| value as f64 * unit_ns as f64;
        if self.cycles > 0 {
            draft.states(Figure::Count, self.cycles as f64, f64::INFINITY);
            draft.states(Figure::Min, 0.0, ns(self.min));
            draft.states(Figure::Max, ns(self.max), f64::INFINITY);
        }
    }

    fn distribution(&self, unit_ns: u64) -> Result<Distribution, String> {
        if self.cycles == 0 {
            return Ok(Distribution::default());
        }
        let sum_ns = sum_of_mean(self.cycles, self.mean.saturating_mul(1_000), unit_ns);
        wide(self.cycles, in_ns(self.min, unit_ns)?, in_ns(self.max, unit_ns)?, unit_ns, sum_ns)
    }
}

/// What is stated of a thread below its histogram.
pub(super) struct Stated {
    pub(super) min: u64,
    /// The mean, cut off to a whole number.
    pub(super) mean: u64,
    pub(super) max: u64,
    pub(super) overflow: u64,
    /// Samples within the histogram; gone from version 2.7 on.
    pub(super) total: Option<u64>,
    /// Whether rows were rounded on the way here, so that the mean need not be theirs.
    pub(super) rounded: bool,
}

impl Stated {
    /// The distribution of a thread with these rows in a histogram that ends before row `end`. All
    /// that is stated twice must agree.
    pub(super) fn distribution(
        &self,
        draft: &mut Draft,
        thread: usize,
        rows: &[(u64, u64)],
        end: u64,
        unit_ns: u64,
    ) -> Result<Distribution, String> {
        let mut counts = Counts::default();
        for &(row, count) in rows {
            counts.push(in_ns(row, unit_ns)?, in_ns(row + 1, unit_ns)?, count)?;
        }
        let held = counts.count();
        if let Some(total) = self.total.filter(|&total| total != held) {
            return Err(format!("the rows add up to {held}, but `# Total:` is {total}"));
        }
        if held == 0 && self.overflow == 0 {
            let none = self.max == 0 && (self.min == 0 || self.min == NO_MINIMUM);
            let fault = || "there is no sample in its rows, but a minimum or maximum".into();
            return none.then(Distribution::default).ok_or_else(fault);
        }
        let least = rows.first().map_or(end, |&(row, _)| row);
        if self.min != least && (held > 0 || self.min < end) {
            return Err(format!(
                "the lowest row with samples is {least}, but the minimum is {}; rows are missing",
                self.min
            ));
        }
        let (min_ns, max_ns) = (in_ns(self.min, unit_ns)?, in_ns(self.max, unit_ns)?);
        let upper = max_ns + unit_ns;
        if self.overflow == 0 {
            let largest = rows.last().map_or(0, |&(row, _)| row);
            if self.max != largest {
                return Err(format!(
                    "the highest row with samples is {largest}, but the maximum is {}; \
                     rows or overflows are missing",
                    self.max
                ));
            }
            let sum_ns = counts.least_sum();
            draft.approximate("sum_ns: each sample counts as the lower edge of its row");
            return counts.finish(min_ns, max_ns, sum_ns);
        }
        if self.max < end {
            return Err(format!(
                "{} {} beyond row {}, but the maximum is {}",
                wakescope_core::units::counted(self.overflow, "sample"),
                wakescope_core::units::one_or_many(self.overflow, "lies", "lie"),
                end.saturating_sub(1),
                self.max
            ));
        }
        let end_ns = in_ns(end, unit_ns)?;
        counts.push(if held == 0 { min_ns } else { end_ns }, upper, self.overflow)?;
        draft.overflow(&format!("thread {thread}"), self.overflow, end_ns, true);
        draft.approximate("sum_ns: the mean is truncated to a whole number");
        let sum_ns = sum_of_mean(counts.count(), self.mean.saturating_mul(1_000), unit_ns);
        counts.finish(min_ns, max_ns, sum_ns)
    }
}

/// With `-H`, there may be one value more than there are threads: the sum, or the largest.
fn drop_overall(values: &mut Vec<u64>, threads: usize, adds: bool) -> Result<(), ImportError> {
    if values.len() == threads + 1 {
        let overall = values.pop();
        let of_all = match adds {
            true => values.iter().try_fold(0_u64, |sum, &v| sum.checked_add(v)),
            false => values.iter().max().copied(),
        };
        if overall != of_all {
            return Err(ImportError::new(
                "the figures for all threads contradict those of the threads",
            ));
        }
    }
    if values.len() != threads {
        return Err(ImportError::new("the lines below the histogram differ in length"));
    }
    Ok(())
}

fn numbers(words: &[Word<'_>]) -> Result<Vec<u64>, ImportError> {
    words.iter().map(|w| w.number()).collect()
}

/// Lines that hold no result.
fn is_remark(text: &str) -> bool {
    const BEGINNINGS: [&str; 8] = [
        "#",
        "WARN",
        "INFO",
        "Max CPUs = ",
        "Online CPUs = ",
        "defaulting ",
        "warning: ",
        "libnuma",
    ];
    text.trim().is_empty() || BEGINNINGS.iter().any(|b| text.starts_with(b))
}

/// The number of a thread, and what its line says.
pub(super) fn summary(line: Line<'_>) -> Result<(u64, Summary), ImportError> {
    if line.text.contains(" A:") && !line.text.contains(" P:") {
        let why = "a line of jitterdebugger's, which has no histogram";
        return Err(line.fault(why).try_this("import the results.json of `jitterdebugger -o DIR`"));
    }
    if let Some(refused) = rt_tests::of_thread_line(line.text) {
        return Err(line.fault(refused.why).try_this(refused.remedy));
    }
    let value = |key: &str| {
        let fault = || line.fault(&format!("a thread's line without a whole number after `{key}`"));
        let at = line.text.find(key).ok_or_else(fault)?;
        let word = line.text[at + key.len()..].split_ascii_whitespace().next();
        word.and_then(super::super::lines::number).ok_or_else(fault)
    };
    let thread = value("T:")?;
    if thread >= MOST_CPUS {
        return Err(line.fault("there are no more than 8,192 threads"));
    }
    let cycles = value(" C:")?;
    let task = line.text.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
    let summary = Summary {
        task: task.and_then(|(task, _)| super::super::lines::number(task.trim())),
        priority: value(" P:")?,
        interval_us: value(" I:")?,
        cycles,
        // Without a cycle, neither is one.
        min: if cycles == 0 { 0 } else { value(" Min:")? },
        mean: value(" Avg:")?,
        max: if cycles == 0 { 0 } else { value(" Max:")? },
    };
    Ok((thread, summary))
}
