//! Following the wakeups of threads that are not ours.

use wakescope_attribution::stand_in;
use wakescope_core::finding::{Finding, Severity, Validity};
use wakescope_core::limitations::host_findings;
use wakescope_core::plan::{Plan, Stimulus};
use wakescope_core::run::{State, TimeDomain};
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_probe::host;
use wakescope_probe::session::Observer;
use wakescope_report::progress::followed;
use wakescope_sys::clock;
use wakescope_trace::Target;

use super::{ExplainArgs, Follower, lines, shown};
use crate::folder::RunFolder;
use crate::measure::{self, Due, Onlooker};
use crate::{Failure, Outcome, output};

/// How long it may take to tell the programs when to begin: from then on no wakeup may be missed.
const LEAD: SpanNs = SpanNs(50_000_000);

/// Follows `target` for as long as was asked for, or until a signal, or until it has gone.
pub(super) fn run(args: &ExplainArgs, target: Target) -> Result<Outcome, Failure> {
    let measured = measure::plan(&args.measure)?;
    let Some(duration_ns) = measured.duration_ns else {
        return Err(Failure::new("--samples does not apply to wakeups of other threads")
            .try_this("set how long to follow them: --duration"));
    };
    if !measured.load.is_empty() {
        return Err(Failure::new("--load does not apply to wakeups of other threads")
            .try_this("run the load separately: wakescope load"));
    }
    let signals = measure::prepare_process()?;
    let host = host::read(&measured.cpus);
    let image = lines::choose(args.vmlinux.as_deref(), &host)?;
    let plan = Plan {
        stimulus: Stimulus::Others,
        target: words(&target),
        duration_ns: Some(duration_ns),
        cpus: Vec::new(),
        worst: measured.worst,
        ..Default::default()
    };
    let identity = measure::identity(args.measure.seed);
    let mut run = measure::blank_run(&identity, &plan, &host);
    args.measure.redact_if_asked(&mut run);
    let mut folder = RunFolder::create(
        args.measure.out.as_deref(),
        &identity.started,
        false,
        run.to_json().as_bytes(),
    )?;
    let process = if let Target::Process(pid) = target { Some(pid) } else { None };
    let mut follower =
        match Follower::start(args.question(TimeDomain::Real), target, false, &host, &[]) {
            Ok(follower) => follower,
            Err(failure) => {
                folder.discard();
                return Err(failure);
            }
        };
    follower.read_files(image);
    if let Err(failure) = follower.store_in(&mut folder, &run, args.measure.redact) {
        folder.discard();
        return Err(failure);
    }
    let origin = clock::now().after(LEAD);
    follower.begin(origin).map_err(Failure::new)?;
    let end = origin.after(SpanNs(duration_ns));
    run.origin_ns = origin.0;
    run.validity = Validity::of(vec![not_done()]);
    let mut progress = Progress::new(origin, SpanNs(duration_ns));
    let mut checkpoint = Due::every(measure::CHECKPOINT);
    let mut ended_by = None;
    while ended_by.is_none() && clock::now() < end {
        if process.is_some_and(|pid| !is_alive(pid)) {
            ended_by = Some("the followed process has ended".to_string());
            break;
        }
        let now = clock::now();
        let signal = signals.wait(follower.pace(now).min(end.since(now)).max(SpanNs(2_000_000)));
        ended_by = signal.map(|signal| format!("{} came", signal.name()));
        follower.look();
        let now = clock::now();
        if checkpoint.is_due(now) {
            run.duration_ns = now.since(origin).0;
            stand_in(&mut run, &follower.lateness());
            args.measure.redact_if_asked(&mut run);
            // If there is no room now there may be later; what counts is told at the end.
            let _ = folder.write(run.to_json().as_bytes());
        }
        progress.show(now, &follower);
    }
    progress.clear();
    run.duration_ns = clock::now().since(origin).0;
    run.state = if ended_by.is_some() { State::Interrupted } else { State::Complete };
    let mut findings = host_findings(&host, TimeDomain::Real, &host.cpus_allowed);
    findings.extend(ended_by.map(|why| {
        Finding::new("interrupted", Severity::Note, format!("the run was ended early: {why}"), "")
    }));
    run.validity = Validity::of(findings);
    follower.complete(&mut run);
    args.measure.redact_if_asked(&mut run);
    let record = run.to_json();
    let saved = folder.finish(record.as_bytes());
    match args.measure.json {
        true => output::print(&(record + "\n"))?,
        false => measure::show(shown(args, &run), &run, saved.as_deref().ok())?,
    }
    saved?;
    Ok(Outcome::Done)
}

/// What holds as long as a run is not done: all that is there of one that is killed.
fn not_done() -> Finding {
    Finding::new(
        "unfinished",
        Severity::Error,
        "the run was killed, or is still going on: its latencies are recorded, their causes are \
         not"
        .into(),
        "follow them again",
    )
}

/// Tells on stderr how far it is.
struct Progress {
    origin: MonoNs,
    total: SpanNs,
    due: Due,
    redraws: bool,
}

impl Progress {
    fn new(origin: MonoNs, total: SpanNs) -> Self {
        let redraws = output::can_redraw();
        let every = if redraws { SpanNs(500_000_000) } else { SpanNs(10_000_000_000) };
        Self { origin, total, due: Due::every(every), redraws }
    }

    fn show(&mut self, now: MonoNs, follower: &Follower) {
        if !self.due.is_due(now) {
            return;
        }
        let elapsed = now.since(self.origin).min(self.total);
        let line = followed(elapsed, self.total, &follower.lateness());
        if self.redraws { output::redraw(&line) } else { output::tell(&line) }
    }

    fn clear(&self) {
        if self.redraws {
            output::redraw("");
        }
    }
}

/// Whose wakeups these are: `process 4711`.
fn words(target: &Target) -> String {
    match target {
        Target::Process(pid) if is_thread(*pid) => format!("thread {pid}"),
        Target::Process(pid) => format!("process {pid}"),
        Target::Comm(name) => format!("threads named {name}"),
        Target::Cgroup(path) => format!("cgroup {}", path.display()),
        Target::Probes(_) => String::new(),
    }
}

/// Whether this is the number of a thread that is not its process's first.
fn is_thread(id: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let process = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    process.is_some_and(|process| process.trim() != id.to_string())
}

/// Whether there is anything to follow of it yet. One that nobody has waited for keeps its number, and
/// so does a first thread that ended before the others.
fn is_alive(id: u32) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{id}/status")) else { return false };
    let value = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let has_ended = value("State:").is_some_and(|state| state.starts_with(['Z', 'X']));
    let is_first = value("Tgid:") == Some(&id.to_string());
    let is_alone = !is_first || value("Threads:") == Some("1");
    !(has_ended && is_alone)
}
