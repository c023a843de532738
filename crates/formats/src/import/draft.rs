//! A run in the making: what a file tells, and by that what it does not.

use std::io::{self, Write};

use wakescope_core::date::Date;
use wakescope_core::distribution::Distribution;
use wakescope_core::finding::{Finding, Severity, Validity};
use wakescope_core::host::Host;
use wakescope_core::maxima::Maxima;
use wakescope_core::percentile::Percentile;
use wakescope_core::plan::{Plan, ProbePolicy, Stimulus, Target};
use wakescope_core::run::{Episode, Overflow, Run, SCHEMA, State, Thread, TimeDomain};
use wakescope_core::source::{Omission, Quantity, Source};
use wakescope_core::units::{SpanNs, counted, one_or_many};

use super::own::Own;
use super::statement::{Figure, Statement};
use super::{About, ImportError, Unit, unit};
use crate::parts::Extremes;
use wakescope_core::harmless::clean;

/// The start of a run that does not tell when it was: the record must have one.
const NO_START: &str = "1970-01-01T00:00:00Z";

/// What a file tells of a run. What is `None` it does not.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) source: Source,
    pub(super) threads: Vec<Thread>,
    pub(super) findings: Vec<Finding>,
    /// Seconds since 1970.
    pub(super) started: Option<Date>,
    pub(super) duration_ns: Option<u64>,
    pub(super) interval_ns: Option<u64>,
    /// From which length on the program counts a gap in its busy loop.
    pub(super) gap_from_ns: Option<u64>,
    pub(super) policy: Option<ProbePolicy>,
    pub(super) priority: Option<u8>,
    pub(super) kernel: Option<Kernel>,
    /// Whose wakeups these are.
    pub(super) target: Target,
    /// Which time the values are in.
    pub(super) time_domain: TimeDomain,
    /// Keys of the record, beside the usual ones, that the file tells nothing of.
    pub(super) unknown: Vec<&'static str>,
    /// Whether the unit of the values is only assumed.
    unit_assumed: bool,
    /// The longest interval of a thread, where that is not [`Self::interval_ns`]; or, by the times of
    /// samples, what lies between two of them on average.
    pub(super) spacing_ns: Option<u64>,
    /// What the program cut samples off to before it computed figures; 0 and 1 are nothing.
    pub(super) step_ns: u64,
    /// Whether the stated extremes are edges of rows, and so known to no more than a row.
    pub(super) extremes_are_edges: bool,
    /// Whether the ends of rows are rounded values.
    pub(super) rows_are_rounded: bool,
    /// How the stated extremes take part in the mean and the deviation that are stated from here on.
    pub(super) extremes: Extremes,
    /// Figures that the file states beside the samples.
    statements: Vec<Statement>,
}

/// What `uname` said.
#[derive(Clone, Debug, Default)]
pub(super) struct Kernel {
    pub(super) release: String,
    pub(super) version: String,
    pub(super) arch: String,
}

impl Draft {
    pub(super) fn new(
        tool: &str,
        format: &str,
        about: &About,
        quantity: Quantity,
        omission: Omission,
    ) -> Self {
        let source = Source {
            tool: tool.into(),
            format: format.into(),
            file: clean(&about.file, 200),
            quantity,
            omission,
            ..Default::default()
        };
        Self { source, ..Default::default() }
    }

    /// Takes what wakescope wrote at the head of a file of its own.
    pub(super) fn own(&mut self, own: &Own) {
        self.time_domain = own.domain;
        self.source.quantity = own.quantity;
    }

    /// Adds a thread with these samples; without any it is a finding.
    pub(super) fn thread(&mut self, cpu: Option<u32>, d: Distribution) {
        if d.count == 0 {
            let name = match cpu {
                Some(cpu) => format!("CPU {cpu}"),
                None => format!("thread {}", self.threads.len()),
            };
            self.find("no-samples", Severity::Error, format!("{name} has no sample"), "");
        }
        let thread = Thread { cpu, woken: d.clone(), expiries: d, ..Default::default() };
        self.threads.push(thread);
    }

    /// Says where the histogram of the last thread ended, and how many of its samples lie beyond.
    pub(super) fn limit(&mut self, from_ns: u64, count: u64) {
        if let Some(thread) = self.threads.last_mut() {
            thread.overflow = Some(Overflow { from_ns, count });
        }
    }

    /// Notes a figure that the file states of the last thread: from `least` to `most`, in ns or
    /// samples. It is checked when the draft is finished.
    pub(super) fn states(&mut self, figure: Figure, least: f64, most: f64) {
        let thread = self.threads.len().checked_sub(1);
        self.state(thread, figure, least, most);
    }

    /// Notes a figure that the file states of all threads together.
    pub(super) fn states_of_all(&mut self, figure: Figure, least: f64, most: f64) {
        self.state(None, figure, least, most);
    }

    fn state(&mut self, thread: Option<usize>, figure: Figure, least: f64, most: f64) {
        let extremes = self.extremes;
        self.statements.push(Statement { thread, figure, least, most, extremes });
    }

    /// Notes a percentile in ns that the file states of the last thread. The record keeps it.
    pub(super) fn states_percentile(&mut self, percentile: Percentile, ns: u64) {
        #[allow(clippy::cast_precision_loss)] // It is compared with room for that.
        self.states(Figure::Percentile(percentile), ns as f64, ns as f64);
        if let Some(thread) = self.threads.last_mut() {
            for d in [&mut thread.woken, &mut thread.expiries] {
                d.stated.get_or_insert_default().percentiles.insert(percentile, ns);
            }
        }
    }

    /// Says when the largest samples of the last thread were.
    pub(super) fn course(&mut self, max_at_ns: Option<u64>, maxima: Maxima) {
        if let Some(thread) = self.threads.last_mut() {
            thread.woken.max_at_ns = max_at_ns;
            thread.expiries.max_at_ns = max_at_ns;
            thread.maxima = Some(maxima);
        }
    }

    /// Says that a histogram ended before its samples did.
    pub(super) fn overflow(&mut self, thread: &str, count: u64, end_ns: u64, exactly: bool) {
        let up_to = if exactly { "" } else { "up to " };
        let message = format!(
            "{up_to}{} of {thread} {} beyond the histogram, which ends at {}; \
             only bounds are known",
            counted(count, "sample"),
            one_or_many(count, "lies", "lie"),
            SpanNs(end_ns)
        );
        let hint = "percentiles among them are upper bounds; measure with a longer histogram";
        self.find("overflow", Severity::Warning, message, hint);
    }

    /// Says that there is no histogram at all.
    pub(super) fn summary_only(&mut self, remedy: &str) {
        let message = "the file has only the number of samples, their mean and their extremes: percentiles are upper bounds";
        self.find("summary-only", Severity::Warning, message.into(), remedy);
    }

    /// Says that there is no histogram, but some percentiles.
    pub(super) fn summary_and_percentiles(&mut self, remedy: &str) {
        let message = "the file has only the number of samples, their mean, their extremes and some percentiles: other percentiles are upper bounds";
        self.find("summary-only", Severity::Warning, message.into(), remedy);
    }

    /// Says that values are whole units.
    pub(super) fn coarse(&mut self, resolution_ns: u64) {
        self.source.resolution_ns = Some(resolution_ns);
        if resolution_ns > 1 {
            let message = format!(
                "values are rounded to steps of {}: a true value may lie anywhere up to the next step",
                SpanNs(resolution_ns)
            );
            self.find("coarse", Severity::Note, message, "");
        }
    }

    pub(super) fn find(
        &mut self,
        code: &'static str,
        severity: Severity,
        message: String,
        hint: &str,
    ) {
        self.findings.push(Finding::new(code, severity, message, hint));
    }

    /// The unit in ns of a file that does not state one: the user's, or else `usual`, which is then
    /// a finding. `why` says what the file leaves open.
    pub(super) fn assumed_unit(&mut self, about: &About, usual: Unit, why: &str) -> u64 {
        if let Some(unit) = about.unit {
            return unit.ns();
        }
        self.unit_assumed = true;
        self.find(
            "unit-assumed",
            Severity::Warning,
            format!("the file does not state the unit, so {usual} is assumed: {why}"),
            "say which unit it is: --unit us, or --unit ns",
        );
        self.approximate(format!("unit: {usual} is assumed; the file does not state it"));
        usual.ns()
    }

    /// Notes what is not exact.
    pub(super) fn approximate(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.source.approximate.contains(&what) {
            self.source.approximate.push(what);
        }
    }

    /// The run.
    pub(super) fn finish(mut self) -> Result<Run, ImportError> {
        if self.threads.is_empty() {
            return Err(ImportError::new("there is no thread or CPU in it"));
        }
        self.check()?;
        let resolution_ns = self.source.resolution_ns.unwrap_or(1);
        for thread in &mut self.threads {
            for d in [&mut thread.woken, &mut thread.expiries] {
                let stated = d.stated.get_or_insert_default();
                stated.resolution_ns = resolution_ns;
                stated.extremes_are_edges = self.extremes_are_edges;
                stated.rows_are_rounded = self.rows_are_rounded;
            }
        }
        self.source.unknown = self.not_told();
        let stimulus = self.stimulus();
        let (unknown, omission) = (self.in_words(), self.source.omission);
        let message = format!("measured by {}: {omission}{unknown}", self.source.tool);
        self.find("imported", Severity::Note, message, "");
        let kernel = self.kernel.unwrap_or_default();
        let mut cpus: Vec<u32> = self.threads.iter().filter_map(|t| t.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        let mut run = Run {
            schema: SCHEMA.into(),
            started: self.started.map_or_else(|| NO_START.into(), |date| date.to_string()),
            duration_ns: self.duration_ns.unwrap_or_default(),
            time_domain: self.time_domain,
            state: State::Complete,
            source: Some(self.source),
            host: Host {
                release: kernel.release,
                version: kernel.version,
                arch: kernel.arch,
                ..Default::default()
            },
            plan: Plan {
                stimulus,
                gap_from_ns: self.gap_from_ns,
                target: self.target,
                interval_ns: self.interval_ns.unwrap_or_default(),
                policy: self.policy.unwrap_or(ProbePolicy::Other),
                priority: self.priority,
                cpus,
                ..Default::default()
            },
            worst: worst(&self.threads),
            threads: self.threads,
            validity: Validity::of(self.findings),
            ..Default::default()
        };
        run.summarize();
        run.id = id(&mut run);
        // Readers check the same; what is made here must pass.
        match run.fault() {
            None => Ok(run),
            Some(what) => Err(ImportError::new(format!("it contradicts itself: {what}"))),
        }
    }

    /// Checks what is stated, and what was assumed, against the samples.
    fn check(&self) -> Result<(), ImportError> {
        let all = || Distribution::of_all(&self.threads, |thread| &thread.expiries);
        for statement in &self.statements {
            let thread = statement.thread.and_then(|at| self.threads.get(at).zip(Some(at)));
            let why = match thread {
                Some((t, _)) => statement.contradiction(&t.expiries, self.step_ns.max(1)),
                None => statement.contradiction(&all(), self.step_ns.max(1)),
            };
            let name = match thread {
                _ if self.threads.len() == 1 => String::new(),
                Some((Thread { cpu: Some(cpu), .. }, _)) => format!("CPU {cpu}: "),
                Some((_, at)) => format!("thread {at}: "),
                None => "all threads: ".into(),
            };
            if let Some(why) = why {
                return Err(ImportError::new(format!("it contradicts itself: {name}{why}")));
            }
        }
        match self.spacing_ns.or(self.interval_ns).filter(|&ns| self.unit_assumed && ns > 0) {
            None => Ok(()),
            Some(interval_ns) => {
                let largest = self.threads.iter().filter_map(|t| least_mean_ns(&t.woken)).max();
                unit::refuse_impossible(largest.unwrap_or(0), interval_ns)
            }
        }
    }

    /// What its values come from. A program that measures gaps never sleeps.
    fn stimulus(&self) -> Stimulus {
        match (&self.target, self.source.quantity) {
            (Target::Probes, Quantity::Gap) => Stimulus::Spin,
            (Target::Probes, _) => Stimulus::Timer,
            _ => Stimulus::Any,
        }
    }

    /// The record's keys that nothing is known of.
    fn not_told(&self) -> Vec<String> {
        let unless = |text: bool, key: &'static str| (!text).then_some(key);
        let probes = self.target == Target::Probes;
        let busy = self.stimulus().is_busy();
        let grid = probes && !busy && self.source.omission != Omission::None;
        let nothing_is_missed = matches!(self.source.omission, Omission::Relative | Omission::None);
        let cpus = self.threads.iter().all(|t| t.cpu.is_some());
        let course = self.threads.iter().all(|t| t.maxima.is_some());
        let kernel = self.kernel.is_some();
        let keys = [
            unless(self.started.is_some(), "started"),
            unless(self.duration_ns.is_some(), "duration_ns"),
            Some("seed"),
            unless(kernel, "host"),
            kernel.then_some("host.preemption"),
            kernel.then_some("host.clock"),
            kernel.then_some("host.idle"),
            kernel.then_some("host.cmdline"),
            kernel.then_some("host.cpus_online"),
            unless(grid || busy, "plan.stimulus").filter(|_| probes),
            unless(self.interval_ns.is_some(), "plan.interval_ns").filter(|_| grid),
            unless(self.gap_from_ns.is_some(), "plan.gap_from_ns").filter(|_| busy),
            unless(self.policy.is_some(), "plan.policy").filter(|_| probes),
            unless(self.priority.is_some() || self.policy.is_some(), "plan.priority")
                .filter(|_| probes),
            unless(cpus, "plan.cpus"),
            Some("plan.load"),
            Some("plan.idle_states"),
            unless(nothing_is_missed, "threads.missed"),
            unless(course, "threads.woken.max_at_ns"),
            unless(self.source.quantity != Quantity::Unknown, "source.quantity"),
        ];
        let all = keys.into_iter().flatten().chain(self.unknown.iter().copied());
        all.map(String::from).collect()
    }

    /// The most important of them, as the end of a sentence.
    fn in_words(&self) -> String {
        const WORDS: [(&str, &str); 8] = [
            ("source.quantity", "the quantity"),
            ("started", "the start time"),
            ("duration_ns", "the duration"),
            ("host", "the machine"),
            ("plan.interval_ns", "the interval"),
            ("plan.policy", "the policy"),
            ("plan.cpus", "the CPUs"),
            ("plan.load", "the load"),
        ];
        let lacking = WORDS.iter().filter(|(key, _)| self.source.lacks(key));
        let words: Vec<&str> = lacking.map(|(_, words)| *words).collect();
        if words.is_empty() {
            return String::new();
        }
        format!("; the file does not state {}", words.join(", "))
    }
}

/// The thread that has the largest sample, where it is known when that was.
fn worst(threads: &[Thread]) -> Vec<Episode> {
    let largest = threads.iter().filter(|t| t.expiries.max_at_ns.is_some());
    let largest = largest.max_by_key(|t| t.expiries.max_ns);
    let episode = |t: &Thread| Episode {
        cpu: t.cpu,
        expiry_ns: t.expiries.max_at_ns.unwrap_or_default(),
        wakeup_latency_ns: t.expiries.max_ns.unwrap_or_default(),
        ..Default::default()
    };
    largest.map(episode).into_iter().collect()
}

/// A name that follows from what was read: the same results have the same, whatever their file is
/// called.
fn id(run: &mut Run) -> String {
    let file = run.source.as_mut().map(|source| std::mem::take(&mut source.file));
    let mut hash = Hash(0xcbf2_9ce4_8422_2325);
    // Only a failing writer, or a map with keys that are no text, could make this fail.
    let _ = serde_json::to_writer(&mut hash, run);
    if let Some((source, file)) = run.source.as_mut().zip(file) {
        source.file = file;
    }
    let tool = run.source.as_ref().map_or("", |s| s.tool.as_str()).replace(' ', "-");
    format!("{tool}-{:016x}", hash.0)
}

/// The mean, or a lower bound of it where the sum saturated.
fn least_mean_ns(d: &Distribution) -> Option<u64> {
    d.sum_ns.checked_div(d.count)
}

/// FNV-1a (Fowler, Noll, Vo), which is enough to tell results of good faith apart.
struct Hash(u64);

impl Write for Hash {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
