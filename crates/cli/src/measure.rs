//! `wakescope measure`

use std::path::{Path, PathBuf};

use wakescope_core::date::Date;
use wakescope_core::finding::{Finding, Severity};
use wakescope_core::host::Host;
use wakescope_core::limit::{Outcome as Judged, lost_probes};
use wakescope_core::limitations::host_findings;
use wakescope_core::plan::Plan;
use wakescope_core::record_writer::RecordWriter;
use wakescope_core::run::{Run, SCHEMA, State, TimeDomain};
use wakescope_core::source::Quantity;
use wakescope_core::units::SpanNs;
use wakescope_probe::card::CardError;
use wakescope_probe::driver::{self, Storage as _};
use wakescope_probe::host;
use wakescope_probe::load::{Load, Options, Spec, default_dir, start_all, this_program};
use wakescope_probe::measurement::{Identity, Request, SampleSink, SavedSample, Unsaved};
use wakescope_probe::observer::{Observer, Unobserved};
use wakescope_probe::session::{MeasureError, outcome};
use wakescope_probe::stimulus::availability::Unavailable;
use wakescope_report::style::clean;
use wakescope_report::text;
use wakescope_sys::clock::{self, Clock};
use wakescope_sys::file::effective_user;
use wakescope_sys::process::use_all_open_files;
use wakescope_sys::signal::{EndSignals, allow_interrupts};
use wakescope_sys::{memory, sched};

use crate::failure::lacks_threads;
use crate::folder::RunFolder;
use crate::live::Live;
use crate::load::{clean_up, load_lacks_threads};
use crate::samples::SamplesOf;
use crate::trace_failure::cannot_trace;
use crate::{Failure, Outcome, line, output};

mod args;
mod length;
mod own_options;
mod series;
mod wakers;

pub(crate) use args::MeasureArgs;
pub(crate) use args::plan;
pub(crate) use length::lasting;

/// An observer that stores more of a run than its record.
pub(crate) trait StoresMore: Observer {
    /// Prepares to store what is seen in the folder of `run`, which begins.
    fn store_in(&mut self, folder: &mut RunFolder, run: &Run, redacts: bool)
    -> Result<(), Failure>;

    /// What is still to be looked up once the run is complete; `None` if nothing is.
    fn lookup(&mut self) -> Option<Lookup>;
}

/// Adds to a run what files tell beside what was measured. It may take long.
pub(crate) struct Lookup {
    /// What the run lacks without it, as in [`Explanation::not_seen`](wakescope_core::explain::Explanation::not_seen).
    pub(crate) lacking: Vec<String>,
    pub(crate) complete: Box<dyn FnOnce(&mut Run)>,
}

impl StoresMore for Unobserved {
    fn store_in(&mut self, _: &mut RunFolder, _: &Run, _: bool) -> Result<(), Failure> {
        Ok(())
    }

    fn lookup(&mut self) -> Option<Lookup> {
        None
    }
}

/// Runs `wakescope measure`.
pub(crate) fn run(args: &MeasureArgs) -> Result<Outcome, Failure> {
    if let Some(varied) = series::varied(args)? {
        return series::run(args, varied);
    }
    let plan = lasting(plan(args)?)?;
    let signals = prepare_process()?;
    let host = host::read(&plan.cpus);
    carry_out(args, plan, host, signals, &mut Unobserved, &|run| {
        text::summary(run, output::style())
    })
}

/// Measures, keeps the run, and shows it: the part that `measure` and `explain` have in common.
pub(crate) fn carry_out(
    args: &MeasureArgs,
    plan: Plan,
    host: Host,
    mut signals: EndSignals,
    observer: &mut impl StoresMore,
    shown: &dyn Fn(&Run) -> String,
) -> Result<Outcome, Failure> {
    let kept = keep(args, args.out.as_deref(), plan, host, &mut signals, observer);
    let Kept { run, record, saved } = kept.map_err(|why| why.failure)?;
    drop(signals);
    let printed = match args.json {
        true => output::print(&format!("{}\n", String::from_utf8_lossy(&record))),
        false => show(shown(&run), &run, saved.as_deref().ok()),
    };
    match (saved, printed) {
        (Ok(path), printed) => {
            printed.map_err(|e| only_unprinted(&e, "the run is saved", verb_of(&run), &path))?;
        }
        (Err(unsaved), printed) => {
            if let Err(unprinted) = printed {
                output::complain(&unprinted);
            }
            return Err(unsaved);
        }
    }
    Ok(verdict_of(outcome(&run), lost_probes(&run.validity)))
}

/// What was measured could not be printed, but lies at `path`: nobody has to measure again.
fn only_unprinted(unprinted: &Failure, saved: &str, verb: &str, path: &Path) -> Failure {
    Failure::new(unprinted.summary())
        .because(saved)
        .try_this(format!("show it: {}", output::command(verb, path)))
}

/// What the limits of a run mean for the exit code, and that some of its probes `ended_early`.
fn verdict_of(judged: Judged, ended_early: bool) -> Outcome {
    match judged {
        Judged::Pass if ended_early => Outcome::Undone,
        Judged::Pass => Outcome::Done,
        Judged::Fail => Outcome::Failed,
        Judged::Inconclusive => Outcome::Inconclusive,
    }
}

/// A run that was measured.
struct Kept {
    run: Run,
    record: Vec<u8>,
    /// Where it lies, or why it could not be written for the last time.
    saved: Result<PathBuf, Failure>,
}

/// Why there is no run.
struct NotMeasured {
    failure: Failure,
    /// Whether this machine does not have the stimulus.
    lacks_stimulus: bool,
}

impl From<Failure> for NotMeasured {
    fn from(failure: Failure) -> Self {
        Self { failure, lacks_stimulus: false }
    }
}

impl From<MeasureError> for NotMeasured {
    fn from(error: MeasureError) -> Self {
        let lacks_stimulus =
            matches!(error, MeasureError::Stimulus(..) | MeasureError::Deadline(..));
        Self { failure: explain(error), lacks_stimulus }
    }
}

/// Measures, and keeps the run in the folder `out`, or in one named after the time.
fn keep(
    args: &MeasureArgs,
    out: Option<&Path>,
    plan: Plan,
    host: Host,
    signals: &mut dyn driver::Signals,
    observer: &mut impl StoresMore,
) -> Result<Kept, NotMeasured> {
    let identity = identity(args.seed);
    let mut blank = blank_run(&identity, &plan, &host);
    args.redact_if_asked(&mut blank);
    let mut storage = Storage {
        folder: RunFolder::create(
            out,
            &identity.started,
            args.save_samples.then(|| SamplesOf::run(&blank)),
            blank.to_json().as_bytes(),
        )?,
        args,
        writer: RecordWriter::default(),
    };
    let host_findings = host_findings(&host, TimeDomain::Real, plan_cpus(&plan, &host));
    let stores = observer.store_in(&mut storage.folder, &blank, args.redact);
    let dir = args.load_dir.clone().unwrap_or_else(default_dir);
    let loads = || start_loads(args.load.iter().flat_map(|l| &l.0), dir, args.seed);
    let begun = stores.and_then(|()| loads()).map_err(NotMeasured::from).and_then(|loads| {
        let request = Request { identity, plan, host, host_findings, loads, abandons_loads: false };
        driver::measure(request, observer, signals, &mut Live::default(), &mut storage)
            .map_err(NotMeasured::from)
    });
    let run = match begun {
        Ok(run) => run,
        Err(why) => {
            storage.folder.discard();
            return Err(why);
        }
    };
    tell_last_words(&run);
    Ok(storage.finish(run, observer.lookup()))
}

/// Tells what commands said before they ended, which no record holds.
fn tell_last_words(run: &Run) {
    for load in run.load.iter().filter(|load| !load.last_words.is_empty()) {
        let (name, words) = (clean(&load.name, 80), clean(&load.last_words, 300));
        output::tell(&format!("the load {name} said last: {words}"));
    }
}

/// What must be done while this process has one thread only.
pub(crate) fn prepare_process() -> Result<EndSignals, Failure> {
    memory::use_one_arena();
    // Each probe has up to five. Where this fails, whoever lacks one says so.
    let _ = use_all_open_files();
    let signals = EndSignals::block().and_then(|signals| allow_interrupts().map(|()| signals));
    signals.map_err(|e| Failure::new(format!("cannot set up signals: {e}")))
}

/// Starts the loads; they are then set up side by side. What loads of a killed run left behind is
/// removed first, also where none is to be started.
pub(crate) fn start_loads<'a>(
    loads: impl IntoIterator<Item = &'a Spec>,
    dir: PathBuf,
    seed: u64,
) -> Result<Vec<Load>, Failure> {
    clean_up(&dir);
    let options = Options { program: this_program(), dir, seed };
    let loads: Vec<Spec> = loads.into_iter().cloned().collect();
    start_all(&loads, &options).map_err(|e| explain(MeasureError::Load(e)))
}

/// The CPUs that a run is about.
pub(crate) fn plan_cpus<'a>(plan: &'a Plan, host: &'a Host) -> &'a [u32] {
    if plan.is_of_others() { &host.cpus_allowed } else { &plan.cpus }
}

/// How often the record is written: at most this much, and the time it takes, is lost to kill -9.
pub(crate) const CHECKPOINT: SpanNs = SpanNs(800_000_000);

/// The run's folder while the run is measured.
struct Storage<'a> {
    folder: RunFolder,
    args: &'a MeasureArgs,
    writer: RecordWriter,
}

impl Storage<'_> {
    /// Writes the record of a run that is over, and once more when all is looked up. Whatever ends the lookup, the record
    /// is complete but for that.
    fn finish(mut self, mut run: Run, lookup: Option<Lookup>) -> Kept {
        if let Some(Lookup { lacking, complete }) = lookup {
            let mut before = run.clone();
            if let Some(explanation) = &mut before.explanation {
                explanation.not_seen.extend(lacking);
            }
            self.checkpoint(before);
            complete(&mut run);
        }
        let Self { folder, args, mut writer } = self;
        args.redact_if_asked(&mut run);
        let record = writer.write(&mut run);
        let saved = folder.finish(record);
        Kept { record: record.to_vec(), run, saved }
    }
}

impl SampleSink for Storage<'_> {
    fn add(&mut self, sample: SavedSample) {
        self.folder.add(sample);
    }

    fn close(&mut self) -> Unsaved {
        self.folder.close()
    }
}

impl driver::Storage for Storage<'_> {
    fn pace(&self) -> Option<SpanNs> {
        Some(CHECKPOINT)
    }

    fn checkpoint(&mut self, mut run: Run) {
        self.args.redact_if_asked(&mut run);
        // A full disk is no error yet: the last version is still whole, and the record is written once
        // more at the end, which reports one.
        let measured = SpanNs(run.duration_ns);
        let _ = self.folder.write(self.writer.write(&mut run), measured);
    }
}

/// Prints what is `shown` of `run`, and where that lies if it was saved.
pub(crate) fn show(mut shown: String, run: &Run, saved: Option<&Path>) -> Result<(), Failure> {
    if let Some(path) = saved {
        shown += &footer(run, path, can_be_explained(run));
    }
    output::print(&shown)
}

/// The verb that shows `run` again.
fn verb_of(run: &Run) -> &'static str {
    if run.explanation.is_some() { "explain" } else { "report" }
}

/// Where a run lies, how to see it again, and what there is to ask next.
fn footer(run: &Run, path: &Path, can_be_explained: bool) -> String {
    let verb = verb_of(run);
    let line = format!(" run: {}   show: {}", path.display(), output::command(verb, path));
    if run.explanation.is_some() || !can_be_explained {
        return line + "\n";
    }
    let why = "why: wakescope explain";
    // A screen has 100 columns.
    let fits = line.chars().count() + "   ".len() + why.len() <= 100;
    format!("{line}{}{why}\n", if fits { "   " } else { "\n " })
}

/// Whether it is likely that what was measured can be followed here: more is only known by trying.
fn can_be_explained(run: &Run) -> bool {
    let is_of_wakeups = run.quantity() == Quantity::WakeupLatency;
    is_of_wakeups && effective_user() == 0 && Path::new("/sys/kernel/btf/vmlinux").exists()
}

/// The record of a run that has not begun: what is found if the process is killed before it has.
pub(crate) fn blank_run(identity: &Identity, plan: &Plan, host: &Host) -> Run {
    let unfinished = Finding::new(
        "unfinished",
        Severity::Error,
        "the run has measured no wakeup: it was killed, or has not started measuring yet".into(),
        "measure again",
    );
    Run {
        schema: SCHEMA.into(),
        id: identity.id.clone(),
        started: identity.started.clone(),
        duration_ns: 0,
        origin_ns: 0,
        time_domain: identity.time_domain,
        seed: identity.seed,
        state: State::Running,
        host: host.clone(),
        plan: plan.clone(),
        validity: wakescope_core::finding::Validity::of(vec![unfinished]),
        limits: Vec::new(),
        threads: Vec::new(),
        load: Vec::new(),
        worst: Vec::new(),
        ..Default::default()
    }
}

/// The time as RFC 3339, UTC.
pub(crate) fn time_now() -> String {
    Date::from_realtime(clock::read(Clock::Realtime)).to_string()
}

pub(crate) fn identity(seed: u64) -> Identity {
    // A host makes one process number at a time, so that and the nanosecond are enough.
    let id = format!("{:x}-{:x}", clock::read(Clock::Realtime), std::process::id());
    Identity { id, started: time_now(), seed, time_domain: TimeDomain::Real }
}

/// What lies behind a sound card that cannot be used, and what to do.
fn explain_card(error: &CardError) -> Failure {
    let (cause, remedies) = error.cause_and_remedies();
    let failure = cause.into_iter().fold(Failure::new(error.to_string()), Failure::because);
    remedies.into_iter().fold(failure, Failure::try_this)
}

/// What lies behind a measurement that could not begin, and what to do.
pub(crate) fn explain(error: MeasureError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        // A trial thread takes the policy first.
        MeasureError::Cpu(_, e) | MeasureError::Schedule(_, e) if lacks_threads(&e) => {
            failure.lacking_threads(Some("measure fewer CPUs: --cpus"))
        }
        MeasureError::Schedule(_, e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
            let limit = sched::rt_priority_limit().unwrap_or(0);
            failure
                .because(format!(
                    "this user may use real-time priorities up to {limit} \
                     (RLIMIT_RTPRIO); for root, real-time group scheduling may forbid them \
                     (cpu.rt_runtime_us of the cgroup)"
                ))
                .try_this(
                    "run as root; or: setcap cap_sys_nice,cap_ipc_lock+ep on wakescope; or \
                     measure without real-time priority: --policy other",
                )
                .mentioning_filter()
        }
        MeasureError::Schedule(..) => failure.try_this("use another --policy"),
        MeasureError::Deadline(_, refusal) => {
            let (cause, remedies) = refusal.cause_and_remedies();
            let failure = cause.into_iter().fold(failure, Failure::because);
            remedies.into_iter().fold(failure, Failure::try_this)
        }
        MeasureError::Cpu(_, e) if e.kind() == std::io::ErrorKind::QuotaExceeded => failure
            .because("each timer that sends a signal takes one of these (RLIMIT_SIGPENDING)")
            .try_this("raise that limit: ulimit -i; or measure by another timer: --stimulus timer"),
        MeasureError::Cpu(_, e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
            failure.try_this("run as root, or without nice and chrt").mentioning_filter()
        }
        MeasureError::Cpu(cpu, _) => failure
            .try_this(format!("see whether CPU {cpu} is online, or choose others: --cpus"))
            .mentioning_filter(),
        MeasureError::Interval(_, turnaround) => {
            // Twice what a wakeup takes leaves the machine half of its time; 50 µs is usual.
            let enough = SpanNs((turnaround.0 * 2).max(50_000).next_multiple_of(10_000));
            failure.try_this(format!("use --interval {} or more", enough.as_argument()))
        }
        MeasureError::Stimulus(_, Unavailable::Channel(_, e)) if lacks_threads(&e) => {
            failure.lacking_threads(None)
        }
        MeasureError::Stimulus(_, e) => {
            let (cause, remedy) = e.cause_and_remedy();
            cause.into_iter().fold(failure, Failure::because).try_this(remedy)
        }
        MeasureError::IdleStates(_) => failure.try_this(
            "run as root, or leave idle states as \
             they are: --idle-states as-is",
        ),
        MeasureError::Load(e) if e.remedy().is_some() => {
            failure.try_this(e.remedy().unwrap_or_default())
        }
        MeasureError::Load(e) if load_lacks_threads(&e) => failure.lacking_threads(None),
        MeasureError::Load(_) => failure.try_this(
            "list the loads: wakescope load --list; use another directory for their \
                 files: --load-dir DIR",
        ),
        MeasureError::Line(e) => line::explain(&e),
        MeasureError::Card(e) => explain_card(&e),
        MeasureError::Observer(e) => match e.cause().downcast_ref() {
            Some(cause) => cannot_trace(cause),
            None => failure,
        },
        MeasureError::Ended => failure.try_this(
            "do not interrupt it before it shows the first \
             figures",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakescope_core::explain::Explanation;
    use wakescope_probe::observer::ObserverError;
    use wakescope_trace::TraceError;

    /// What stands below a run in a folder whose name has so many characters.
    #[track_caller]
    fn check(length: usize, is_explained: bool, can_be_explained: bool, want: &str) {
        let path = "r".repeat(length);
        let host = Host::default();
        let mut run = blank_run(&identity(1), &Plan::default(), &host);
        run.explanation = is_explained.then(Explanation::default);
        let got = footer(&run, Path::new(&path), can_be_explained);
        assert_eq!(got, want.replace("PATH", &path) + "\n");
        assert!(got.lines().all(|line| line.chars().count() <= 100), "{got}");
    }

    #[test]
    fn an_observer_that_cannot_observe_is_told_with_cause_and_remedy() {
        let text = |cause: Box<dyn std::error::Error + Send + Sync>| {
            explain(MeasureError::Observer(ObserverError::Begin(cause))).to_string()
        };
        let of_tracer = text(Box::new(TraceError::Refused("control", "no room".into())));
        let want = "cannot follow wakeups: the kernel refuses the BPF program control: no room";
        assert!(of_tracer.contains(want) && of_tracer.contains("wakescope check"), "{of_tracer}");
        let of_another = text("it is asleep".into());
        let want = "cannot begin to follow wakeups: it is asleep";
        assert!(of_another.contains(want), "{of_another}");
    }

    #[test]
    fn the_interval_that_is_suggested_is_twice_what_a_wakeup_takes() {
        for (turnaround_ns, want) in [
            (1_000, "50us"),
            (30_001, "70us"),
            (200_000, "400us"),
            (500_000, "1ms"),
            (525_000, "1050us"),
            (5_000_000, "10ms"),
        ] {
            let error = MeasureError::Interval(SpanNs(1), SpanNs(turnaround_ns));
            let text = explain(error).to_string();
            let last = text.lines().last().unwrap_or_default().trim();
            let hint = last.split_once("use ").map(|(_, hint)| hint.to_owned());
            assert_eq!(hint, Some(format!("--interval {want} or more")), "{text}");
        }
    }

    #[derive(clap::Parser)]
    struct Arguments {
        #[command(flatten)]
        args: MeasureArgs,
    }

    /// The folder in which this run begins.
    fn storage<'a>(args: &'a MeasureArgs, run: &Run, folder: &Path) -> Storage<'a> {
        let record = run.to_json();
        let folder = RunFolder::create(Some(folder), &run.started, None, record.as_bytes());
        Storage { folder: folder.unwrap(), args, writer: RecordWriter::default() }
    }

    /// Whatever ends a lookup that takes long, the run is complete.
    #[test]
    fn a_run_is_complete_before_anything_is_looked_up() {
        let Arguments { args } = clap::Parser::parse_from(["measure"]);
        let test = wakescope_testing::Folder::new("lookup");
        let folder = test.join("run");
        let mut run = blank_run(&identity(1), &Plan::default(), &Host::default());
        let storage = storage(&args, &run, &folder);
        let stored = {
            let folder = folder.clone();
            move || Run::from_json(&std::fs::read(folder.join("run.json")).unwrap()).unwrap()
        };
        assert_eq!(stored().state, State::Running);
        run.state = State::Complete;
        run.explanation = Some(Explanation::default());
        let not_seen = |run: Run| run.explanation.unwrap().not_seen;
        let complete = Box::new({
            let stored = stored.clone();
            move |run: &mut Run| {
                // As SIGKILL would leave it.
                let cut = stored();
                assert_eq!((cut.state, not_seen(cut)), (State::Complete, vec!["lines".into()]));
                run.explanation.as_mut().unwrap().not_seen.push("found".into());
            }
        });
        let kept = storage.finish(run, Some(Lookup { lacking: vec!["lines".into()], complete }));
        assert_eq!(kept.saved.unwrap(), folder);
        assert_eq!(not_seen(stored()), ["found"]);
    }

    #[test]
    fn a_run_that_was_measured_leads_to_its_explanation() {
        check(3, false, false, " run: PATH   show: wakescope report PATH");
        check(3, false, true, " run: PATH   show: wakescope report PATH   why: wakescope explain");
        check(21, false, true, " run: PATH   show: wakescope report PATH   why: wakescope explain");
        check(22, false, true, " run: PATH   show: wakescope report PATH\n why: wakescope explain");
        check(3, true, true, " run: PATH   show: wakescope explain PATH");
        let run = blank_run(&identity(1), &Plan::default(), &Host::default());
        let of_two_words = footer(&run, Path::new("my runs/a"), false);
        assert_eq!(of_two_words, " run: my runs/a   show: wakescope report 'my runs/a'\n");
    }
}
