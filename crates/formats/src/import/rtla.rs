//! `rtla timerlat hist` and `rtla osnoise hist`, as text.
//!
//! timerlat has three quantities side by side: until the interrupt, until the thread, and until user
//! space. They are kept apart as runs of their own. Neither the width of a row nor the number of
//! rows is stated, and empty rows are left out: a row ends at the latest where all rows are
//! multiples of the same width.

use std::collections::BTreeMap;
use std::io::BufRead;

use wakescope_core::budget::{Budget, Entry};
use wakescope_core::distribution::Distribution;
use wakescope_core::finding::Severity;
use wakescope_core::source::{Omission, Quantity};

use super::counts::{Counts, common_divisor, in_ns, sum_of_mean};
use super::draft::Draft;
use super::lines::{Line, Lines, Word, number};
use super::statement::Figure;
use super::{About, ImportError, Imported, MOST_CPUS, Unit, unit};
use crate::parts::Extremes;

/// Which of the two.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tracer {
    Timerlat,
    Osnoise,
}

/// What a column holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Irq,
    Thread,
    User,
    Noise,
}

impl Kind {
    /// The name in the column's head, and that of the run.
    const ALL: [(&'static str, &'static str, Self); 4] = [
        ("IRQ", "irq", Self::Irq),
        ("Thr", "thread", Self::Thread),
        ("Usr", "user", Self::User),
        ("CPU", "", Self::Noise),
    ];

    fn quantity(self) -> Quantity {
        match self {
            Self::Irq => Quantity::IrqLatency,
            Self::Thread => Quantity::ThreadLatency,
            Self::User => Quantity::UserLatency,
            Self::Noise => Quantity::Gap,
        }
    }
}

struct Column {
    kind: Kind,
    cpu: u32,
    rows: Vec<(u64, u64)>,
    over: Option<u64>,
    count: Option<u64>,
    /// `None` inside: without samples there is none.
    min: Option<Option<u64>>,
    /// In thousandths.
    mean: Option<Option<u64>>,
    max: Option<Option<u64>>,
}

#[derive(Default)]
struct Seen {
    unit: Option<Unit>,
    duration_ns: Option<u64>,
    columns: Option<Vec<Column>>,
    last_row: Option<u64>,
    /// The greatest width that all rows are multiples of.
    width: u64,
    /// What is said of lost events.
    missed: Option<String>,
    /// In the sums over all CPUs, which follow.
    overall: bool,
    /// What they are, by name: a value for each kind of column.
    sums: BTreeMap<String, Vec<Option<u64>>>,
    /// What values are of, in order of the columns' heads, each once.
    kinds: Vec<Kind>,
    /// Whether minimum, maximum and mean are of the rows' lower ends, not of samples.
    of_rows: bool,
}

pub(super) fn read(
    from: &mut dyn BufRead,
    about: &About,
    tracer: Tracer,
) -> Result<Vec<Imported>, ImportError> {
    // The kernel counts for osnoise, by row: rtla never sees the samples.
    let mut seen = Seen { of_rows: tracer == Tracer::Osnoise, ..Seen::default() };
    let mut lines = Lines::new(from);
    while let Some(line) = lines.next()? {
        seen.take(line, tracer, &about.budget)?;
    }
    let end = lines.count();
    let cut = |what: &str| ImportError {
        line: Some(end),
        ..ImportError::new(format!(
            "the file ends before {what}: it is truncated, or was printed without it"
        ))
        .try_this("run rtla without --no-header, --no-summary and --no-index")
    };
    let columns = seen.columns.take().ok_or_else(|| cut("the head `Index`"))?;
    let unit = seen.unit.ok_or_else(|| cut("the unit of time"))?;
    let unit_ns = unit::stated(about, unit, "`# Time unit is` states it")?;
    let mut by_kind: BTreeMap<Kind, Vec<Column>> = BTreeMap::new();
    for column in columns {
        by_kind.entry(column.kind).or_default().push(column);
    }
    if by_kind.is_empty() {
        return Err(ImportError::new("there is no sample in it"));
    }
    let of_kind = |(kind, columns): (Kind, Vec<Column>)| {
        let mut draft = seen.draft(about, tracer, kind, unit_ns);
        draft.step_ns = unit_ns;
        for column in columns {
            let (cpu, d) = (column.cpu, column.distribution(&mut draft, &seen, unit_ns));
            let mean = column.known_mean(&seen);
            let d = d.map_err(|why| match why {
                Fault::Missing(what) => cut(what),
                Fault::Wrong(why) => ImportError::new(format!("CPU {cpu}: {why}")),
            })?;
            draft.thread(Some(cpu), d);
            if let Some((least, most)) = mean.map(|mean| around(mean, unit_ns)) {
                draft.states(Figure::Mean, least, most);
            }
        }
        seen.state_sums(&mut draft, kind, unit_ns);
        let (_, name, _) = Kind::ALL[kind as usize];
        Ok(Imported { name: name.into(), run: draft.finish()? })
    };
    by_kind.into_iter().map(of_kind).collect()
}

/// Why a column is no distribution.
enum Fault {
    Missing(&'static str),
    Wrong(String),
}

impl From<String> for Fault {
    fn from(why: String) -> Self {
        Self::Wrong(why)
    }
}

impl Seen {
    fn take(&mut self, line: Line<'_>, tracer: Tracer, budget: &Budget) -> Result<(), ImportError> {
        let text = line.text.trim();
        if text.contains("events missed") {
            self.missed = Some(text.into());
        } else if text.starts_with("# RTLA ") {
            if self.columns.is_some() {
                return Err(line.fault("a second histogram begins; give each a file of its own"));
            }
        } else if let Some(unit) = text.strip_prefix("# Time unit is ") {
            self.unit = Some(match unit {
                "microseconds (us)" => Unit::Us,
                "nanoseconds (ns)" => Unit::Ns,
                _ => return Err(line.fault("not a known unit")),
            });
        } else if let Some(words) = line.after("# Duration:") {
            self.duration_ns = duration_ns(&words);
        } else if line.text.starts_with("Index") {
            self.head(line, tracer)?;
        } else if text.starts_with("ALL:") {
            self.overall = true;
        } else if self.overall && text.contains(':') {
            self.sum(line)?;
        } else if text.is_empty() || text.starts_with('#') || self.overall || self.columns.is_none()
        {
            // Before the head is nothing to read.
        } else if self.is_whole() && !is_row(text) {
            // What rtla says of the trace it stopped at, and what a document says, follow the summary.
        } else if text.starts_with(|c: char| c.is_ascii_digit()) {
            self.row(line, budget)?;
        } else {
            self.summary(line)?;
        }
        Ok(())
    }

    /// Whether the last line of the summary was there.
    fn is_whole(&self) -> bool {
        let columns = self.columns.as_deref().unwrap_or_default();
        !columns.is_empty() && columns.iter().all(|c| c.max.is_some())
    }

    fn head(&mut self, line: Line<'_>, tracer: Tracer) -> Result<(), ImportError> {
        if self.columns.is_some() {
            return Err(line.fault("a second head of columns"));
        }
        let column = |word: Word<'_>| {
            let parts = word.text.split_once('-');
            let kind = parts.and_then(|(kind, _)| Kind::ALL.iter().find(|k| k.0 == kind));
            let cpu = parts.and_then(|(_, cpu)| number(cpu)).filter(|&cpu| cpu < MOST_CPUS);
            let belongs = |kind: Kind| (kind == Kind::Noise) == (tracer == Tracer::Osnoise);
            match (kind.filter(|k| belongs(k.2)), cpu.and_then(|cpu| u32::try_from(cpu).ok())) {
                (Some(&(_, _, kind)), Some(cpu)) => Ok(Column {
                    kind,
                    cpu,
                    rows: Vec::new(),
                    over: None,
                    count: None,
                    min: None,
                    mean: None,
                    max: None,
                }),
                _ => Err(word.fault("no head of a column")),
            }
        };
        let columns: Vec<Column> = line.words().skip(1).map(column).collect::<Result<_, _>>()?;
        let mut seen = std::collections::BTreeSet::new();
        if !columns.iter().all(|c| seen.insert((c.kind, c.cpu))) {
            return Err(line.fault("a column comes twice"));
        }
        self.kinds = columns.iter().map(|c| c.kind).collect();
        self.kinds.sort_unstable();
        self.kinds.dedup();
        self.columns = Some(columns);
        Ok(())
    }

    /// A line of the sums over all CPUs. Lines of other shapes are none.
    fn sum(&mut self, line: Line<'_>) -> Result<(), ImportError> {
        let Some((name, _)) = line.text.split_once(':') else { return Ok(()) };
        let words = line.after(&format!("{name}:")).unwrap_or_default();
        if !["over", "count", "min", "avg", "max"].contains(&name.trim())
            || words.len() != self.kinds.len()
        {
            return Ok(());
        }
        let value = |word: &Word<'_>| match word.text {
            "-" => Ok(None),
            _ => word.thousandths().map(Some),
        };
        let values = words.iter().map(value).collect::<Result<Vec<_>, _>>()?;
        self.sums.insert(name.trim().into(), values);
        Ok(())
    }

    /// Notes what the sums over all CPUs say of one kind.
    #[allow(clippy::cast_precision_loss)] // It is compared with room for that.
    fn state_sums(&self, draft: &mut Draft, kind: Kind, unit_ns: u64) {
        let Some(place) = self.kinds.iter().position(|&k| k == kind) else { return };
        let of = |name: &str| self.sums.get(name).and_then(|values| *values.get(place)?);
        if let Some(count) = of("count") {
            draft.states_of_all(Figure::Count, (count / 1_000) as f64, (count / 1_000) as f64);
        }
        for (name, figure) in [("min", Figure::Min), ("max", Figure::Max)] {
            if let Some(value) = of(name) {
                let ns = (value / 1_000) as f64 * unit_ns as f64;
                draft.states_of_all(figure, ns, ns);
            }
        }
        if let Some((least, most)) = of("avg").map(|mean| around(mean, unit_ns)) {
            draft.states_of_all(Figure::Mean, least, most);
        }
    }

    fn row(&mut self, line: Line<'_>, budget: &Budget) -> Result<(), ImportError> {
        let columns = self.columns.as_mut().filter(|c| c.iter().all(|c| c.over.is_none()));
        let Some(columns) = columns else {
            return Err(line.fault("a row after the end of the histogram"));
        };
        let words: Vec<Word<'_>> = line.words().collect();
        let [first, counts @ ..] = words.as_slice() else { return Ok(()) };
        let row = first.number()?;
        if self.last_row.is_some_and(|last| row <= last) {
            return Err(first.fault("not above the row before it"));
        }
        if counts.len() != columns.len() {
            return Err(line.fault(&format!("not a row and {} counts", columns.len())));
        }
        self.last_row = Some(row);
        self.width = common_divisor(self.width, row);
        for (column, word) in columns.iter_mut().zip(counts) {
            let count = word.number()?;
            if count > 0 {
                budget.keep(1, Entry::BUCKET)?;
                column.rows.push((row, count));
            }
        }
        Ok(())
    }

    fn summary(&mut self, line: Line<'_>) -> Result<(), ImportError> {
        let Some(columns) = &mut self.columns else { return Ok(()) };
        let Some((name, _)) = line.text.split_once(':') else {
            return Err(line.fault("this is not a line of rtla's histogram"));
        };
        let words = line.after(&format!("{name}:")).unwrap_or_default();
        // Without samples there are zeroes that belong to no column.
        if words.len() != columns.len() && !columns.is_empty() {
            return Err(line.fault(&format!("not {} values", columns.len())));
        }
        for (column, word) in columns.iter_mut().zip(&words) {
            let dash = word.text == "-";
            let value = if dash { None } else { Some(*word) };
            let whole = || value.map(Word::number).transpose();
            match name {
                "over" if column.over.is_none() => column.over = whole()?,
                "count" if column.count.is_none() => column.count = whole()?,
                "min" if column.min.is_none() => column.min = Some(whole()?),
                "max" if column.max.is_none() => column.max = Some(whole()?),
                "avg" if column.mean.is_none() => {
                    column.mean = Some(value.map(Word::thousandths).transpose()?);
                }
                "over" | "count" | "min" | "max" | "avg" => {
                    return Err(line.fault("this line appears twice"));
                }
                _ => return Err(line.fault("this is not a line of rtla's histogram")),
            }
        }
        Ok(())
    }

    fn draft(&self, about: &About, tracer: Tracer, kind: Kind, unit_ns: u64) -> Draft {
        let (tool, omission) = match tracer {
            // The next expiry is that after the thread is done: kernel/trace/trace_osnoise.c.
            Tracer::Timerlat => ("rtla timerlat", Omission::Skipped),
            Tracer::Osnoise => ("rtla osnoise", Omission::None),
        };
        let mut draft = Draft::new(tool, "text histogram", about, kind.quantity(), omission);
        draft.duration_ns = self.duration_ns.filter(|&ns| ns > 0);
        draft.coarse(unit_ns);
        if self.of_rows {
            draft.extremes = Extremes::Rows;
        }
        draft.approximate(match self.of_rows {
            true => "sum_ns: each sample counts as the lower end of its row",
            false => "sum_ns: from the mean as it is given",
        });
        if self.of_rows && self.width > 1 {
            draft.approximate("min_ns: the lower end of its row; max_ns: the upper end of its row");
        }
        if draft.duration_ns.is_some() {
            draft.approximate("duration_ns: given in whole seconds");
        }
        if self.width > 1 {
            draft.approximate(format!(
                "histogram: the width of rows is not stated; it is at most {} ns",
                self.width.saturating_mul(unit_ns)
            ));
        }
        if let Some(missed) = &self.missed {
            let message = format!("rtla says: {}", wakescope_core::harmless::clean(missed, 200));
            let hint = "measure fewer CPUs, or with a larger --trace-buffer-size";
            draft.find("lost-samples", Severity::Warning, message, hint);
        }
        draft
    }
}

impl Column {
    /// The mean, where the file has one: of osnoise, rtla printed 0 for any, at least up to 6.1.
    fn known_mean(&self, seen: &Seen) -> Option<u64> {
        self.mean.flatten().filter(|&mean| mean > 0 || !seen.of_rows)
    }

    fn distribution(
        &self,
        draft: &mut Draft,
        seen: &Seen,
        unit_ns: u64,
    ) -> Result<Distribution, Fault> {
        let over = self.over.ok_or(Fault::Missing("the line `over:`"))?;
        let count = self.count.ok_or(Fault::Missing("the line `count:`"))?;
        let min = self.min.ok_or(Fault::Missing("the line `min:`"))?;
        let mean = self.mean.ok_or(Fault::Missing("the line `avg:`"))?;
        let max = self.max.ok_or(Fault::Missing("the line `max:`"))?;
        let held = self.rows.iter().try_fold(over, |sum, &(_, count)| sum.checked_add(count));
        if held != Some(count) {
            return Err(Fault::Wrong(format!(
                "rows and `over:` add up to {}, but `count:` is {count}",
                held.unwrap_or(u64::MAX)
            )));
        }
        let (Some(min), Some(mean), Some(max)) = (min, mean, max) else {
            let none = || Fault::Wrong("there are samples, but no minimum, mean or maximum".into());
            return if count == 0 { Ok(Distribution::default()) } else { Err(none()) };
        };
        if count == 0 {
            return Ok(Distribution::default());
        }
        let (min_ns, max_ns) = (in_ns(min, unit_ns)?, in_ns(max, unit_ns)?);
        // Only row 0 is there: it holds all there is.
        let width = if seen.width == 0 { max.saturating_add(1) } else { seen.width };
        let end = max.checked_add(if seen.of_rows { width } else { 1 });
        let end_ns = in_ns(end.ok_or("the maximum is too large for a time".to_owned())?, unit_ns)?;
        let mut counts = Counts::default();
        for &(row, count) in &self.rows {
            let upper = row.checked_add(width).ok_or("a row is too large for a time".to_owned())?;
            let (lower, mut upper) = (in_ns(row, unit_ns)?, in_ns(upper, unit_ns)?);
            if over == 0 {
                upper = upper.min(end_ns.max(lower + 1));
            }
            counts.push(lower, upper, count)?;
        }
        if over > 0 {
            let after = seen.last_row.map_or(0, |row| row.saturating_add(1));
            let mut histogram_ends = in_ns(after, unit_ns)?;
            let mut lower = histogram_ends;
            let mut many = over;
            if counts.count() == 0 {
                lower = min_ns;
            } else if counts.buckets().last().is_some_and(|last| last.upper > lower) {
                // The row that ends nobody knows where and what is beyond the last are one.
                if let Some(last) = counts.pop() {
                    lower = last.lower;
                    histogram_ends = lower;
                    many += last.count;
                }
            }
            draft.overflow(&format!("CPU {}", self.cpu), over, histogram_ends, true);
            counts.push(lower, end_ns.max(lower + 1), many)?;
        }
        // The row is named by its lower end, and who reads a maximum is to know the latest that it can be.
        let of_a_row = seen.of_rows && width > 1 && over == 0;
        let row = counts
            .buckets()
            .last()
            .filter(|last| of_a_row && last.lower <= max_ns && max_ns < last.upper);
        draft.extremes_are_edges |= row.is_some();
        let max_ns = row.map_or(max_ns, |row| row.upper - 1);
        let sum_ns = match self.known_mean(seen) {
            Some(_) => sum_of_mean(count, mean, unit_ns),
            None => counts.least_sum(),
        };
        Ok(counts.finish(min_ns, max_ns, sum_ns)?)
    }
}

/// What a mean in thousandths can stand for, in ns: without decimals it was cut off.
#[allow(clippy::cast_precision_loss)] // It is compared with room for that.
fn around(mean: u64, unit_ns: u64) -> (f64, f64) {
    let (mean, unit) = (mean as f64 / 1_000.0, unit_ns as f64);
    let above = if mean.fract() == 0.0 { 1.0 } else { 0.01 };
    ((mean - 0.01) * unit, (mean + above) * unit)
}

/// `0 00:01:00`: days, and hours, minutes, seconds.
fn duration_ns(words: &[Word<'_>]) -> Option<u64> {
    let [days, time] = words else { return None };
    let parts: Vec<u64> = time.text.split(':').map(number).collect::<Option<_>>()?;
    let [hours, minutes, seconds] = parts.as_slice() else { return None };
    let hours = number(days.text)?.checked_mul(24)?.checked_add(*hours)?;
    let minutes = hours.checked_mul(60)?.checked_add(*minutes)?;
    minutes.checked_mul(60)?.checked_add(*seconds)?.checked_mul(1_000_000_000)
}

/// Whether a line is of figures: a row, or one of the summary.
fn is_row(text: &str) -> bool {
    let head = text.split_ascii_whitespace().next().unwrap_or_default();
    ["over:", "count:", "min:", "avg:", "max:"].contains(&head)
        || (text.split_ascii_whitespace().count() > 1
            && text.split_ascii_whitespace().all(|word| number(word).is_some()))
}
