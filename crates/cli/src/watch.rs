//! `wakescope watch`

use std::path::PathBuf;

use wakescope_core::date::Date;
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_core::watch::arming::LONGEST_ABOVE;
use wakescope_core::watch::boot::Boot;
use wakescope_core::watch::{Audit, CostSource, OwnCost, SCHEMA, WaitBegin, Window};
use wakescope_lab::plan::parse_margin;
use wakescope_probe::host;
use wakescope_report::watch::{By, Sort, View};
use wakescope_sys::clock::{self, Clock};
use wakescope_sys::signal::{EndSignals, redraw_signals};
use wakescope_sys::time_namespace::is_boottime_shifted;
use wakescope_trace::watch::{Counted, Limits, Unnamed, Watcher};

use crate::size::size;
use crate::trace_failure::{cannot_audit, cannot_watch};
use crate::{Failure, Outcome, measure, output};
use explaining::Explainer;
use exporting::{ExportArgs, Exporter};
use measured_cost::CostMeasurements;
use replay::{Form, Range};
use shown::Shown;
use stored::Storage;
use streams::Streams;

mod explaining;
mod exporting;
mod measured_cost;
mod on_screen;
pub(crate) mod replay;
mod shown;
mod stepping;
mod stored;
mod streams;

pub(crate) use shown::json;

/// The least and the longest interval, the longest watch, and the most series: 230 MB of the kernel's memory.
const LEAST_INTERVAL: SpanNs = SpanNs(100_000_000);
const LONGEST_INTERVAL: SpanNs = SpanNs(3_600_000_000_000);
const MOST_SERIES: u32 = 65_536;

/// The least time from which on waits can be late.
const LEAST_LATE: SpanNs = SpanNs(10_000);

/// The least disk space for stored windows.
const LEAST_KEPT: u64 = 1_000_000;

/// A part of an interval that a comparison with the kernel's counts may take; and how long the last one may.
const AUDIT_SHARE: u64 = 10;
const LAST_AUDIT: SpanNs = SpanNs(1_000_000_000);

/// Watch how long all tasks of this machine wait for a CPU
///
/// Counts every wait of every task, from runnable to running, as the kernel itself counts it
/// (/proc/TID/schedstat), with one small BPF program at each switch and none at the wakeup; another one
/// sees tasks moved to other CPUs. Shows the waits of each interval while it runs, on a terminal in a view
/// that keys control, and those of the whole time at the end. It always shows what watching costs, and what
/// it left out. Needs root. Exit codes: 0
/// done; 1 --audit found a difference; 2 an error, or a reader that did not take all; 3 --audit could
/// compare nothing.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  wakescope watch\n  wakescope watch --once --interval 10s --by cgroup --sort p99.9\n  wakescope watch --duration 1h --json\n  wakescope watch --duration 10s --audit\n  wakescope watch --explain\n  wakescope watch --out /var/lib/wakescope/watch --keep 1GB\n  wakescope watch --listen 127.0.0.1:9464\n  wakescope watch --replay /var/lib/wakescope/watch --once --since 2026-11-21T01:00:00Z --by cgroup"
)]
pub(crate) struct WatchArgs {
    /// How long to watch, as in 10s or 5min [default: until Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = duration, allow_hyphen_values = true)]
    duration: Option<SpanNs>,

    /// How often to show what was counted since the last time
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = interval, allow_hyphen_values = true)]
    interval: SpanNs,

    /// Watch for one interval, and print its table
    #[arg(long, conflicts_with = "duration")]
    once: bool,

    /// Print a line of JSON for each interval, with all series: docs/reference/watch.schema.json
    #[arg(long, conflicts_with_all = ["by", "sort", "rows"])]
    json: bool,

    /// Rows of a table: tasks of one name in one cgroup, of one name, of one cgroup, or a CPU
    #[arg(long, value_name = "WHAT", value_enum, default_value = "series")]
    by: ByArg,

    /// Order of the rows: by the longest wait, the 99.9th percentile, or the sum of all waits
    #[arg(long, value_name = "WHAT", value_enum, default_value = "max")]
    sort: SortArg,

    /// The most rows of a table; one that is redrawn has at most 14. The live view has as many as fit
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..))]
    rows: u16,

    /// The most series (tasks of one name in one cgroup) that are counted separately; each takes 3.5 KB
    /// of the kernel's memory
    #[arg(long, value_name = "N", default_value_t = Limits::default().series, value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_SERIES)))]
    series: u32,

    /// Compare what is counted of each task with the kernel's own counts, to the nanosecond
    #[arg(long)]
    audit: bool,

    /// Follow tasks that wait repeatedly for about 1 ms or longer with the tracer of `wakescope explain` [or for
    /// about this TIME, 17s at most], for 3 s, and show what caused it
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "1ms", value_parser = late, conflicts_with_all = ["once", "replay"])]
    explain: Option<SpanNs>,

    /// The share of all CPU time that watching and --explain may take; what a minute allows can be used at
    /// once
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = budget, requires = "explain")]
    budget: f64,

    /// Store windows in this folder: a file for each hour, a line of JSON for each window
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Disk space that stored windows may use, as in 500MB or 2GB: the oldest files are removed
    #[arg(long, value_name = "SIZE", default_value = "500MB", value_parser = kept, requires = "out")]
    keep: u64,

    /// Intervals are added up to windows of this length before they are stored
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = interval, allow_hyphen_values = true, requires = "out")]
    merge: SpanNs,

    #[command(flatten)]
    export: ExportArgs,

    /// Leave out names of tasks and cgroups where windows are stored or replayed, not where they are exported
    #[arg(long)]
    redact: bool,

    /// Show the windows that are stored in this folder, on a terminal one by one; with --once only their sum
    #[arg(long, value_name = "DIR", conflicts_with_all = ["out", "duration", "interval", "series", "audit"])]
    replay: Option<PathBuf>,

    /// Of stored windows, those that began at this time or later, as in 2026-11-21T01:00:00Z
    #[arg(long, value_name = "DATE", value_parser = date, requires = "replay")]
    since: Option<Date>,

    /// Of stored windows, those that ended by this time
    #[arg(long, value_name = "DATE", value_parser = date, requires = "replay")]
    until: Option<Date>,
}

/// What a table of stored windows shows unless something else is asked for.
pub(crate) const STORED_VIEW: View = View { by: By::Series, sort: Sort::Max, rows: 20 };

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ByArg {
    /// Tasks of one name in one cgroup
    Series,
    /// Tasks of one name
    Comm,
    /// Tasks of one cgroup
    Cgroup,
    /// The CPU on which the waits ended
    Cpu,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum SortArg {
    /// The longest wait
    Max,
    /// The 99.9th percentile; too few waits come last
    #[value(name = "p99.9")]
    Percentile,
    /// The sum of all waits
    Time,
}

impl WatchArgs {
    fn view(&self) -> View {
        let by = match self.by {
            ByArg::Series => By::Series,
            ByArg::Comm => By::Comm,
            ByArg::Cgroup => By::Cgroup,
            ByArg::Cpu => By::Cpu,
        };
        let sort = match self.sort {
            SortArg::Max => Sort::Max,
            SortArg::Percentile => Sort::Percentile,
            SortArg::Time => Sort::Time,
        };
        View { by, sort, rows: self.rows.into() }
    }

    /// When to end, if begun now; `None` for never.
    fn end(&self, begin: MonoNs) -> Option<MonoNs> {
        let asked = if self.once { Some(self.interval) } else { self.duration };
        asked.map(|span| begin.after(span))
    }
}

fn interval(text: &str) -> Result<SpanNs, String> {
    match text.parse().map_err(|e: wakescope_core::units::SpanError| e.to_string())? {
        span if span < LEAST_INTERVAL => Err(format!("the shortest interval is {LEAST_INTERVAL}")),
        span if span > LONGEST_INTERVAL => {
            Err(format!("the longest interval is {LONGEST_INTERVAL}"))
        }
        span => Ok(span),
    }
}

fn duration(text: &str) -> Result<SpanNs, String> {
    match text.parse().map_err(|e: wakescope_core::units::SpanError| e.to_string())? {
        SpanNs(0) => Err("write how long to watch, as in 10s; without it, until Ctrl-C".into()),
        span => Ok(span),
    }
}

fn late(text: &str) -> Result<SpanNs, String> {
    match text.parse().map_err(|e: wakescope_core::units::SpanError| e.to_string())? {
        span if span < LEAST_LATE => Err(format!("waits are late from {LEAST_LATE} on or later")),
        span if span > LONGEST_ABOVE => Err(format!(
            "the longest is {LONGEST_ABOVE}: all waits of 17.2 s and more are in one bucket"
        )),
        span => Ok(span),
    }
}

fn budget(text: &str) -> Result<f64, String> {
    let share = parse_margin(text).ok().filter(|&share| share > 0.0 && share <= 1.0);
    share.ok_or_else(|| "write a share above 0 and up to 100%, as in 1% or 0.01".into())
}

fn kept(text: &str) -> Result<u64, String> {
    match size(text)? {
        bytes if bytes < LEAST_KEPT => Err("keep at least 1MB".into()),
        bytes => Ok(bytes),
    }
}

fn date(text: &str) -> Result<Date, String> {
    Date::parse(text).ok_or_else(|| "write a date as in 2026-11-21T01:00:00Z".into())
}

/// Runs `wakescope watch`.
pub(crate) fn run(args: &WatchArgs) -> Result<Outcome, Failure> {
    if let Some(path) = &args.replay {
        let form = match (args.json, args.once) {
            (true, true) => Form::Sum,
            (true, false) => Form::Json,
            (false, true) => Form::Table(args.view()),
            (false, false) => Form::Blocks(args.view()),
        };
        let range = Range { since: args.since, until: args.until };
        return replay::run(path, range, args.redact, form);
    }
    if args.redact && args.out.is_none() {
        return Err(Failure::new("--redact applies to windows that are stored or replayed")
            .try_this("add --out DIR or --replay DIR, or omit it"));
    }
    let signals = measure::prepare_process()?;
    // Before there is another thread: one that does not block them would take them from the live view.
    drop(redraw_signals());
    let exporter = args.export.start()?;
    let limits = Limits { series: args.series, ..Limits::default() };
    let host = host::read(&[]);
    let boot = host::boot(&host);
    let is_guest = boot.hypervisor.is_some();
    let mut watcher = Watcher::start(limits, is_guest).map_err(|e| cannot_watch(&e))?;
    if args.explain.is_some() && !watcher.is_measuring_cost() {
        return Err(Failure::new("cannot keep to the budget of --explain")
            .because(
                "the kernel does not measure here how long BPF programs run (BPF_ENABLE_STATS)",
            )
            .try_this("run as root, or omit --explain"));
    }
    if args.audit {
        watcher.prepare_audit().map_err(|e| cannot_audit(&e))?;
    }
    let streams = Streams::start()?;
    // From here on nothing fails: a watch that cannot begin leaves no folder behind.
    let open =
        |path: &PathBuf| Storage::open(path, args.keep, (args.merge, args.interval), args.redact);
    let storage = args.out.as_ref().map(open).transpose()?;
    if let Some(why) = watcher.cgroups_unnamed() {
        output::tell(&format!("cgroups have IDs only: {}", reason(why)));
    }
    if args.by == ByArg::Cgroup && host::shares_cpus_by_older_cgroups() {
        output::tell(
            "CPUs are shared out here by cgroups of version 1, which are not shown: the rows are \
             cgroups of the unified hierarchy, and all tasks may be in its root",
        );
    }
    let outlives_terminal = storage.is_some() || args.export.is_asked_for();
    let shown = match args.json {
        true => Shown::json(streams),
        false => Shown::for_people(args.view(), args.once, outlives_terminal, &signals, streams),
    };
    let explainer = args.explain.map(|above| Explainer::new(above, args.budget, host));
    let watch =
        Watch { exporter, explainer, ..Watch::begin(watcher, boot, args.interval, storage) };
    // From the same moment as the first interval: a busy machine would put one of its own between them.
    let end = args.end(watch.begin.mono);
    watch.run(end, &signals, shown)
}

/// A watch that goes on.
struct Watch {
    watcher: Watcher,
    boot: Boot,
    interval: SpanNs,
    begin: Moment,
    /// When the last window ended.
    last: Moment,
    cost_measurements: CostMeasurements,
    /// The comparisons so far.
    audit: Option<Audit>,
    storage: Option<Storage>,
    exporter: Exporter,
    /// Where late waits are followed.
    explainer: Option<Explainer>,
}

/// A moment by the clocks that a window states.
#[derive(Clone, Copy)]
struct Moment {
    mono: MonoNs,
    date: Date,
    boottime_ns: Option<u64>,
}

impl Moment {
    /// That which was `mono` not long ago. The other clocks are read when a window begins: at its end they would have run
    /// on if the machine was suspended meanwhile.
    fn at(mono: MonoNs) -> Self {
        let date = Date::from_realtime(at(mono, Clock::Realtime));
        let boottime_ns = (!is_boottime_shifted()).then(|| at(mono, Clock::Boottime));
        Self { mono, date, boottime_ns }
    }
}

impl Watch {
    fn begin(watcher: Watcher, boot: Boot, interval: SpanNs, storage: Option<Storage>) -> Self {
        let begin = Moment::at(clock::now());
        let cost_measurements = CostMeasurements::from(begin.mono);
        let (last, audit, exporter) = (begin, None, Exporter::default());
        let explainer = None;
        Self {
            watcher,
            boot,
            interval,
            begin,
            last,
            cost_measurements,
            audit,
            storage,
            exporter,
            explainer,
        }
    }

    /// Shows a window after the other until the `end`, a signal, or until nobody reads any more. However it ends, all
    /// that was counted is stored and sent.
    fn run(
        mut self,
        end: Option<MonoNs>,
        signals: &EndSignals,
        mut shown: Shown,
    ) -> Result<Outcome, Failure> {
        // Windows that are stored or exported are somewhere, whoever reads.
        let mut is_hurried = self.storage.is_some() || self.exporter.is_in_use();
        let mut next = self.begin.mono.after(self.interval);
        let is_shown = loop {
            let until = end.map_or(next, |end| end.min(next));
            let is_told = self.wait(&mut shown, signals, until);
            is_hurried |= is_told;
            let now = clock::now();
            if is_told || end.is_some_and(|end| now >= end) {
                break Ok(());
            }
            if now < next {
                continue;
            }
            let mut window = self.window(now);
            if let Some(explainer) = &mut self.explainer {
                explainer.add(&mut window, self.begin.mono, &self.watcher);
            }
            self.measure_cost(now);
            self.store(&window, &mut shown);
            match shown.show(&window) {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(failure) => break Err(failure),
            }
            next = next_after(next, now, self.interval);
        };
        if let Some(explainer) = &mut self.explainer {
            explainer.finish(self.begin.mono);
        }
        let audit = self.watcher.audit(clock::now().after(LAST_AUDIT));
        self.add(audit);
        // What is still being counted when the program is detached belongs to the last window.
        self.watcher.detach();
        let mut window = self.window_of(clock::now());
        window.audit = audit;
        if let Some(explainer) = &mut self.explainer {
            explainer.describe(&mut window);
        }
        self.store(&window, &mut shown);
        let stored = self.storage.take().map_or(Ok(()), Storage::finish);
        // A collector may take long to answer: by then the terminal is the user's again.
        let is_shown = is_shown.and_then(|()| shown.end(&window, &self.total()));
        let sent = std::mem::take(&mut self.exporter).finish(signals);
        let failures = [is_shown, stored, sent].into_iter().filter_map(Result::err);
        let failures: Vec<Failure> = failures.collect();
        failures.iter().for_each(|failure| shown.note(&failure.to_string()));
        let is_taken = shown.finish(signals, is_hurried)?;
        Ok(if is_taken && failures.is_empty() { self.outcome() } else { Outcome::Undone })
    }

    /// Waits `until` then, or until a signal or the user says to end: whether that is so.
    fn wait(&mut self, shown: &mut Shown, signals: &EndSignals, until: MonoNs) -> bool {
        loop {
            let left = until.since(clock::now());
            let Some(explainer) = self.explainer.as_mut().filter(|it| it.is_following()) else {
                return shown.wait(signals, left);
            };
            explainer.look(self.begin.mono);
            if shown.wait(signals, left.min(explaining::LOOK)) {
                return true;
            }
            if left == SpanNs(0) {
                return false;
            }
        }
    }

    fn store(&mut self, window: &Window, shown: &mut Shown) {
        let stored = self.storage.as_mut().map(|storage| storage.add(window));
        let explained = self.explainer.as_mut().map(Explainer::notes);
        let gone = self.watcher.cgroups_gone(window);
        let exported = self.exporter.add(window, at(self.last.mono, Clock::Realtime), &gone);
        let notes = stored.into_iter().flatten().chain(exported);
        let notes = notes.chain(explained.into_iter().flatten());
        notes.for_each(|note| shown.note(&note));
    }

    /// The window that ends `now`. From then on the next one counts.
    fn window(&mut self, now: MonoNs) -> Window {
        let audit = self.watcher.audit(now.after(SpanNs(self.interval.0 / AUDIT_SHARE)));
        self.add(audit);
        let mut window = self.window_of(now);
        window.audit = audit;
        window
    }

    /// Has the kernel measure what programs take in the next interval, from time to time, and while a series is
    /// followed.
    fn measure_cost(&mut self, now: MonoNs) {
        let is_due = self.cost_measurements.is_due(now);
        let follows = self.explainer.as_ref().is_some_and(Explainer::is_following);
        self.watcher.measure_cost(is_due || follows);
    }

    fn window_of(&mut self, now: MonoNs) -> Window {
        let counted = self.watcher.read();
        let switches = counted.cpus.iter().map(|cpu| cpu.switches).sum();
        let mut cost = self.watcher.cost(switches);
        let is_measured = cost.source == CostSource::Measured;
        self.cost_measurements.note(switches, now.since(self.last.mono), is_measured);
        cost.tracer_ns = self.explainer.as_mut().map_or(0, Explainer::tracer_ns);
        let begin = std::mem::replace(&mut self.last, Moment::at(now));
        self.describe(counted, cost, begin)
    }

    /// All windows together.
    fn total(&self) -> Window {
        let total = self.watcher.total();
        let mut cost = self.watcher.total_cost();
        cost.tracer_ns = self.explainer.as_ref().map_or(0, Explainer::tracer_total_ns);
        let window = self.describe(total, cost, self.begin);
        let explanations = self.explainer.as_ref().map(Explainer::total);
        Window { audit: self.audit, explanations, ..window }
    }

    /// A window from `begin` until the last one ended.
    fn describe(&self, counted: Counted, own_cost: OwnCost, begin: Moment) -> Window {
        let Counted { series, others, cpus, left_out, moved, mut episodes } = counted;
        for episode in &mut episodes.longest {
            episode.end_ns = MonoNs(episode.end_ns).since(self.begin.mono).0;
        }
        Window {
            schema: SCHEMA.into(),
            started: begin.date.to_string(),
            begin_ns: begin.mono.since(self.begin.mono).0,
            boottime_ns: begin.boottime_ns,
            window_ns: self.last.mono.since(begin.mono).0,
            from: WaitBegin::Queued,
            series,
            others,
            cpus,
            left_out,
            moved,
            series_used: self.watcher.series_used(),
            series_limit: self.watcher.series_limit(),
            own_cost,
            audit: None,
            episodes: Some(episodes),
            explanations: None,
            boots: vec![self.boot.clone()],
        }
    }

    fn add(&mut self, audit: Option<Audit>) {
        let Some(audit) = audit else { return };
        self.audit = Some(self.audit.map_or(audit, |before| audit.after(&before)));
    }

    fn outcome(&self) -> Outcome {
        match self.audit {
            Some(Audit { differing: 1.., .. }) => Outcome::Failed,
            Some(Audit { equal: 0, .. }) => Outcome::Inconclusive,
            _ => Outcome::Done,
        }
    }
}

/// Why cgroups have no names.
fn reason(why: Unnamed) -> &'static str {
    match why {
        Unnamed::Forbidden => "the capability CAP_DAC_READ_SEARCH is needed to look up their names",
        Unnamed::NotMounted => {
            "the root of the unified hierarchy (cgroup2) is not mounted where wakescope can see it"
        }
    }
}

/// What `other` showed at a `moment` not long ago, ns.
fn at(moment: MonoNs, other: Clock) -> u64 {
    // A thread that is held up between the two reads a later moment, and none before that of an earlier window.
    let since = clock::now().since(moment).0;
    clock::read(other).saturating_sub(since)
}

/// When the interval ends that `now` lies in. Those that were slept through are part of the window before.
fn next_after(next: MonoNs, now: MonoNs, interval: SpanNs) -> MonoNs {
    let missed = now.since(next).0 / interval.0;
    next.after(SpanNs(interval.0.saturating_mul(missed + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_stay_on_their_grid() {
        let next = |now| next_after(MonoNs(100), MonoNs(now), SpanNs(10)).0;
        assert_eq!([100, 103, 109, 110, 119, 137].map(next), [110, 110, 110, 120, 120, 140]);
    }
}
