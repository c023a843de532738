//! Following the wakeups of threads that are not ours.

use wakescope_core::finding::{Finding, Severity, Validity};
use wakescope_core::plan::{Plan, Stimulus};
use wakescope_core::run::{State, TimeDomain};
use wakescope_core::suffers::host_findings;
use wakescope_core::units::SpanNs;
use wakescope_probe::host;
use wakescope_probe::session::Observer;
use wakescope_sys::clock;
use wakescope_trace::Target;

use super::{ExplainArgs, Follower, PACE, shown};
use crate::folder::RunFolder;
use crate::measure::{self, Onlooker};
use crate::{Failure, Outcome, output};

/// How long it may take to tell the programs when to begin: from then on no wakeup may be missed.
const LEAD: SpanNs = SpanNs(50_000_000);

/// Follows `target` for as long as was asked for, or until a signal, or until it has gone.
pub(super) fn run(args: &ExplainArgs, target: Target) -> Result<Outcome, Failure> {
    let measured = measure::plan(&args.measure)?;
    let Some(duration_ns) = measured.duration_ns else {
        return Err(Failure::new("--samples means nothing to wakeups of others")
            .try_this("say how long to follow them: --duration"));
    };
    if !measured.load.is_empty() {
        return Err(Failure::new("--load means nothing to wakeups of others")
            .try_this("run it beside: wakescope load"));
    }
    let signals = measure::prepare_process()?;
    let host = host::read(&measured.cpus);
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
    let folder = RunFolder::create(
        args.measure.out.as_deref(),
        &identity.started,
        false,
        run.to_json().as_bytes(),
    )?;
    let process = if let Target::Process(pid) = target { Some(pid) } else { None };
    let mut follower = match Follower::start(args.question(), target, false, &host, &[]) {
        Ok(follower) => follower,
        Err(failure) => {
            folder.discard();
            return Err(failure);
        }
    };
    let origin = clock::now().after(LEAD);
    follower.begin(origin).map_err(Failure::new)?;
    let end = origin.after(SpanNs(duration_ns));
    let mut ended_by = None;
    while ended_by.is_none() && clock::now() < end {
        if process.is_some_and(|pid| !is_alive(pid)) {
            ended_by = Some("the process that was followed has ended".to_string());
            break;
        }
        let left = end.since(clock::now());
        let signal = signals.wait(PACE.min(left).max(SpanNs(2_000_000)));
        ended_by = signal.map(|signal| format!("{} came", signal.name()));
        follower.look();
    }
    run.origin_ns = origin.0;
    run.duration_ns = clock::now().since(origin).0;
    run.state = if ended_by.is_some() { State::Interrupted } else { State::Complete };
    let mut findings = host_findings(&host, TimeDomain::Real, &host.cpus_allowed);
    findings.extend(ended_by.map(|why| {
        Finding::new("interrupted", Severity::Note, format!("the run was ended early: {why}"), "")
    }));
    run.validity = Validity::of(findings);
    follower.complete(&mut run);
    let record = run.to_json();
    let saved = folder.finish(record.as_bytes());
    match args.measure.json {
        true => output::print(&(record + "\n"))?,
        false => measure::show(shown(args, &run), &run, saved.as_deref().ok())?,
    }
    saved?;
    Ok(Outcome::Done)
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

fn is_alive(pid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}
