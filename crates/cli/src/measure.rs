//! `wakescope measure`

use std::path::PathBuf;

use wakescope_core::finding::{Finding, Severity};
use wakescope_core::host::Host;
use wakescope_core::limit::{Limit, Outcome as Judged};
use wakescope_core::plan::{IdleStates, Plan, Policy, Stimulus};
use wakescope_core::record_writer::RecordWriter;
use wakescope_core::run::{Run, SCHEMA, State, TimeDomain};
use wakescope_core::suffers::host_findings;
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_probe::host;
use wakescope_probe::load::{
    Load, Options, Spec, clean_up_leftovers, default_dir, parse_list, this_program,
};
use wakescope_probe::session::{Identity, MeasureError, Session, outcome};
use wakescope_report::style::clean;
use wakescope_report::text;
use wakescope_sys::clock::{self, Clock};
use wakescope_sys::signal::{EndSignals, allow_interrupts};
use wakescope_sys::{memory, sched};

use crate::folder::RunFolder;
use crate::live::Live;
use crate::{Failure, Outcome, output};

/// How late are wakeups here, and can the number be trusted
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  wakescope measure\n  wakescope measure --duration 10min --load find,launch,file-move\n  wakescope measure --cpus 2-3 --interval 100us --fail-above 50us --fail-above p99.9=20us"
)]
pub(crate) struct MeasureArgs {
    /// What causes the wakeups
    #[arg(long, value_enum, default_value = "timer")]
    stimulus: StimulusArg,

    /// Period of the grid of wakeups
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = interval, allow_hyphen_values = true)]
    interval: SpanNs,

    /// How long to measure
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration, allow_hyphen_values = true)]
    duration: SpanNs,

    /// Measure this many wakeups on each CPU, instead of for a time
    #[arg(long, value_name = "N", value_parser = samples, conflicts_with = "duration", allow_hyphen_values = true)]
    samples: Option<u64>,

    /// CPUs to measure, as in 0,2-3 [default: all that this process may use]
    #[arg(long, value_name = "LIST", value_parser = cpu_list, allow_hyphen_values = true)]
    cpus: Option<CpuList>,

    /// Scheduling policy of the probe [default: fifo, or other where that is not allowed]
    #[arg(long, value_enum)]
    policy: Option<PolicyArg>,

    /// Real-time priority, 1 to 99 [default: 90]
    #[arg(long, value_name = "N", value_parser = priority, allow_hyphen_values = true)]
    priority: Option<u8>,

    /// Loads to measure under; `wakescope load --list` names them
    #[arg(long, value_name = "NAME,…", value_parser = loads)]
    load: Vec<Loads>,

    /// Where loads keep their files [default: $TMPDIR or /tmp]
    #[arg(long, value_name = "DIR")]
    load_dir: Option<PathBuf>,

    /// How long the load runs alone, and then the probe unrecorded, before measuring
    #[arg(long, value_name = "TIME", default_value = "250ms", value_parser = warmup, allow_hyphen_values = true)]
    warmup: SpanNs,

    /// Leave idle states as they are, or keep CPUs in the shallowest while measuring
    #[arg(long, value_enum, default_value = "as-is")]
    idle_states: IdleStatesArg,

    /// How many of the latest wakeups to keep
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u16).range(0..=1000))]
    worst: u16,

    /// Exit with 1 if the maximum, or a percentile, is above a time: 100us, p99.9=50us
    #[arg(long, value_name = "[pN=]TIME", allow_hyphen_values = true)]
    fail_above: Vec<Limit>,

    /// Folder to write the run to [default: a new one below runs/]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Print the run record to standard output instead of the report
    #[arg(long)]
    json: bool,

    /// Write every sample to samples.csv in the run's folder
    #[arg(long)]
    save_samples: bool,

    /// Of what is left to chance: the phase of the grid, the contents of the loads' files
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum StimulusArg {
    /// A timer on an absolute grid of CLOCK_MONOTONIC
    Timer,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum PolicyArg {
    Other,
    Fifo,
    Rr,
    Deadline,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum IdleStatesArg {
    AsIs,
    Shallow,
}

#[derive(Clone, Debug)]
struct CpuList(Vec<u32>);

#[derive(Clone, Debug)]
struct Loads(Vec<Spec>);

/// How often the record is written: at most this much, and the time it takes, is lost to kill -9.
const CHECKPOINT: SpanNs = SpanNs(900_000_000);
/// How often it is verified that everything is still as it should be.
const WATCH: SpanNs = SpanNs(1_000_000_000);
/// How often saved samples are taken from the probes.
const DRAIN: SpanNs = SpanNs(100_000_000);

/// Runs `wakescope measure`.
pub(crate) fn run(args: &MeasureArgs) -> Result<Outcome, Failure> {
    let plan = plan(args)?;
    let signals = prepare_process()?;
    let host = host::read(&plan.cpus);
    let identity = identity(args.seed);
    let blank = blank_run(&identity, &plan, &host);
    let mut folder = RunFolder::create(
        args.out.as_deref(),
        &identity.started,
        args.save_samples,
        blank.to_json().as_bytes(),
    )?;
    let host_findings = host_findings(&host, &plan.cpus);
    let begun = start_loads(args).and_then(|loads| {
        let mut pause = |span| signals.wait(span).is_some();
        Session::begin(identity, plan, host, host_findings, loads, &mut pause).map_err(explain)
    });
    let session = match begun {
        Ok(session) => session,
        Err(failure) => {
            folder.discard();
            return Err(failure);
        }
    };
    let mut writer = RecordWriter::default();
    let mut run = watch(session, &mut folder, &signals, &mut writer);
    let record = writer.write(&mut run);
    let saved = folder.finish(record);
    if args.json {
        output::print(&format!("{}\n", String::from_utf8_lossy(record)))?;
    } else {
        show(&run, saved.as_deref().ok())?;
    }
    saved?;
    Ok(match outcome(&run) {
        Judged::Pass => Outcome::Done,
        Judged::Fail => Outcome::Failed,
        Judged::Inconclusive => Outcome::Inconclusive,
    })
}

/// What must be done while this process has one thread only.
fn prepare_process() -> Result<EndSignals, Failure> {
    memory::use_one_arena();
    let signals = EndSignals::block().and_then(|signals| allow_interrupts().map(|()| signals));
    signals.map_err(|e| Failure::new(format!("cannot set up signals: {e}")))
}

/// Starts the loads; they are then set up side by side.
fn start_loads(args: &MeasureArgs) -> Result<Vec<Load>, Failure> {
    let specs: Vec<&Spec> = args.load.iter().flat_map(|l| &l.0).collect();
    if specs.is_empty() {
        return Ok(Vec::new());
    }
    let dir = args.load_dir.clone().unwrap_or_else(default_dir);
    let removed = clean_up_leftovers(&dir);
    if removed > 0 {
        output::tell(&format!("removed {removed} directories that earlier loads left behind"));
    }
    let options = Options { program: this_program(), dir, seed: args.seed };
    let start = |spec: &Spec| {
        Load::start(spec.clone(), &options).map_err(|e| explain(MeasureError::Load(e)))
    };
    specs.into_iter().map(start).collect()
}

/// Looks after a measurement until it is done or the user ends it.
fn watch(
    mut session: Session,
    folder: &mut RunFolder,
    signals: &EndSignals,
    writer: &mut RecordWriter,
) -> Run {
    let title = format!("measuring wakeups  {}", text::plan(session.plan()));
    let mut live = Live::new(title, clock::now());
    let saves_samples = session.plan().save_samples;
    let mut checkpoint = Due::every(CHECKPOINT);
    let mut look = Due::every(WATCH);
    let mut ended_by = None;
    while ended_by.is_none() && !session.is_finished() {
        let pace = if saves_samples { DRAIN } else { live.pace().min(CHECKPOINT) };
        let left = session.planned_end().since(clock::now());
        // Near the planned end, look often: whoever measures for 10 s does not want to wait 11.
        ended_by = signals.wait(pace.min(left).max(SpanNs(2_000_000)));
        session.drain(folder);
        let now = clock::now();
        if live.is_due(now) {
            live.show(&session.progress(), now);
        }
        if look.is_due(now) {
            session.watch();
        }
        if checkpoint.is_due(now) {
            // If there is no room now there may be later, and the last version is still whole. Only
            // what is the matter at the end counts, and that is told then.
            let _ = folder.write(writer.write(&mut session.checkpoint()));
        }
    }
    live.clear();
    session.end(ended_by.map(|signal| signal.name().to_string()), folder)
}

/// Something to do again and again.
struct Due {
    every: SpanNs,
    next: MonoNs,
}

impl Due {
    fn every(every: SpanNs) -> Self {
        Self { every, next: clock::now().after(every) }
    }

    fn is_due(&mut self, now: MonoNs) -> bool {
        let due = now >= self.next;
        if due {
            self.next = now.after(self.every);
        }
        due
    }
}

fn show(run: &Run, saved: Option<&std::path::Path>) -> Result<(), Failure> {
    let mut shown = text::summary(run, output::style());
    if let Some(path) = saved {
        let path = path.display();
        shown += &format!(" run: {path}   show: wakescope report {path}\n");
    }
    output::print(&shown)
}

/// The record of a run that has not begun: what is found if the process is killed before it has.
fn blank_run(identity: &Identity, plan: &Plan, host: &Host) -> Run {
    let unfinished = Finding::new(
        "unfinished",
        Severity::Error,
        "the run was killed before the first wakeup was measured, or has not come to it yet".into(),
        "measure again",
    );
    Run {
        schema: SCHEMA.into(),
        id: identity.id.clone(),
        started: identity.started.clone(),
        duration_ns: 0,
        origin_ns: 0,
        time_domain: TimeDomain::Real,
        seed: identity.seed,
        state: State::Running,
        host: host.clone(),
        plan: plan.clone(),
        validity: wakescope_core::finding::Validity::of(vec![unfinished]),
        limits: Vec::new(),
        threads: Vec::new(),
        load: Vec::new(),
        worst: Vec::new(),
        summary: Default::default(),
        other: Default::default(),
    }
}

fn identity(seed: u64) -> Identity {
    let now = std::time::UNIX_EPOCH + std::time::Duration::from_nanos(clock::read(Clock::Realtime));
    let started = humantime::format_rfc3339_seconds(now).to_string();
    // A host makes one process number at a time, so that and the nanosecond are enough.
    let id = format!("{:x}-{:x}", clock::read(Clock::Realtime), std::process::id());
    Identity { id, started, seed }
}

/// What the arguments mean on this machine.
fn plan(args: &MeasureArgs) -> Result<Plan, Failure> {
    let policy = args.policy.map_or(Policy::Fifo, |policy| match policy {
        PolicyArg::Other => Policy::Other,
        PolicyArg::Fifo => Policy::Fifo,
        PolicyArg::Rr => Policy::Rr,
        PolicyArg::Deadline => Policy::Deadline,
    });
    if args.priority.is_some() && !policy.has_priority() {
        return Err(Failure::new(format!("--priority means nothing to --policy {policy}"))
            .try_this("leave it out, or use --policy fifo or rr"));
    }
    if args.samples.is_none() && args.duration < args.interval {
        return Err(Failure::new(format!(
            "--duration {} is shorter than one --interval of {}",
            args.duration, args.interval
        ))
        .try_this("measure for at least a few intervals"));
    }
    if args.samples.is_some_and(|n| n.checked_mul(args.interval.0).is_none_or(|ns| ns > LONGEST.0))
    {
        return Err(Failure::new(format!(
            "that many --samples at {} take longer than {LONGEST}",
            args.interval
        ))
        .try_this("ask for fewer; Ctrl-C ends a long run and keeps what it measured"));
    }
    Ok(Plan {
        stimulus: Stimulus::Timer,
        interval_ns: args.interval.0,
        duration_ns: args.samples.is_none().then_some(args.duration.0),
        samples: args.samples,
        policy,
        priority: policy.has_priority().then_some(args.priority.unwrap_or(DEFAULT_PRIORITY)),
        policy_required: args.policy.is_some() || args.priority.is_some(),
        cpus: cpus(args.cpus.as_ref())?,
        load: args.load.iter().flat_map(|l| &l.0).map(Spec::to_string).collect(),
        warmup_ns: args.warmup.0,
        idle_states: match args.idle_states {
            IdleStatesArg::AsIs => IdleStates::AsIs,
            IdleStatesArg::Shallow => IdleStates::Shallow,
        },
        worst: args.worst.into(),
        fail_above: args.fail_above.iter().map(Limit::as_argument).collect(),
        save_samples: args.save_samples,
    })
}

/// Above what applications use, below the kernel's own threads that must come first (99).
const DEFAULT_PRIORITY: u8 = 90;

/// The CPUs to measure: those asked for, of those that this process may use.
fn cpus(asked: Option<&CpuList>) -> Result<Vec<u32>, Failure> {
    let allowed = sched::affinity()
        .map_err(|e| Failure::new(format!("cannot tell which CPUs may be used: {e}")))?;
    let Some(CpuList(asked)) = asked else { return Ok(allowed) };
    match asked.iter().find(|cpu| !allowed.contains(cpu)) {
        None => Ok(asked.clone()),
        Some(cpu) => Err(Failure::new(format!("CPU {cpu} is not among those that this process may use"))
            .because(format!("those are: {}", list(&allowed)))
            .try_this("name some of these with --cpus; a cpuset, taskset or an offline CPU takes the others away")),
    }
}

/// `0-3,8`
fn list(cpus: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let text = |&(a, b): &(u32, u32)| if a == b { a.to_string() } else { format!("{a}-{b}") };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}

/// What lies behind a measurement that could not begin, and what to do.
fn explain(error: MeasureError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        MeasureError::Schedule(_, e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
            let limit = sched::rt_priority_limit().unwrap_or(0);
            failure
                .because(format!("this user may use real-time priorities up to {limit} (RLIMIT_RTPRIO); root may be kept from it by real-time group scheduling (cpu.rt_runtime_us of the cgroup)"))
                .try_this("run as root, or: setcap cap_sys_nice,cap_ipc_lock+ep on wakescope, or measure without: --policy other")
        }
        MeasureError::Schedule(_, e) if e.kind() == std::io::ErrorKind::ResourceBusy => failure
            .because("other SCHED_DEADLINE tasks have reserved the CPU time that this would take")
            .try_this("end them, measure fewer CPUs (--cpus), or use --policy fifo"),
        MeasureError::Schedule(..) => failure.try_this(
            "a SCHED_DEADLINE period must be at least 100 µs (kernel.sched_deadline_period_min_us): try a longer --interval, or --policy fifo",
        ),
        MeasureError::Cpu(cpu, _) => failure.try_this(format!("see whether CPU {cpu} is online, or choose others: --cpus")),
        MeasureError::Interval(_, turnaround) => {
            // Twice what a wakeup takes leaves the machine half of its time; 50 µs is usual.
            let enough = SpanNs((turnaround.0 * 2).max(50_000).next_multiple_of(10_000));
            failure.try_this(format!("use --interval {} or more", enough.to_string().replace(" µs", "us").replace(".0", "").replace(' ', "")))
        }
        MeasureError::IdleStates(_) => failure.try_this("run as root, or leave them: --idle-states as-is"),
        MeasureError::Load(_) => failure
            .try_this("see what the loads do and need: wakescope load --list; --load-dir names another place for their files"),
        MeasureError::Ended => failure,
    }
}

/// A year: longer is surely a slip of the pen.
const LONGEST: SpanNs = SpanNs(366 * 86_400_000_000_000);

fn bounded(text: &str, least: SpanNs, most: SpanNs) -> Result<SpanNs, String> {
    let span: SpanNs = text.parse().map_err(|e: wakescope_core::units::SpanError| e.to_string())?;
    if span < least {
        Err(format!("at least {least} is needed"))
    } else if span > most {
        Err(format!("at most {most} is possible"))
    } else {
        Ok(span)
    }
}

fn interval(text: &str) -> Result<SpanNs, String> {
    bounded(text, SpanNs(1_000), SpanNs(3_600_000_000_000))
}

fn duration(text: &str) -> Result<SpanNs, String> {
    bounded(text, SpanNs(1_000), LONGEST)
}

fn warmup(text: &str) -> Result<SpanNs, String> {
    bounded(text, SpanNs(0), SpanNs(3_600_000_000_000))
}

fn samples(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err("at least one is needed, as in --samples 100000".into()),
        Ok(n) => Ok(n),
        Err(_) => Err("write a whole number, as in --samples 100000".into()),
    }
}

fn priority(text: &str) -> Result<u8, String> {
    match text.parse() {
        Ok(n @ 1..=99) => Ok(n),
        _ => Err("a real-time priority is a whole number from 1 to 99".into()),
    }
}

fn cpu_list(text: &str) -> Result<CpuList, String> {
    let bad = || format!("`{text}` is not a list of CPUs; write 0, 0,2 or 1-3");
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |s: &str| s.trim().parse::<u32>().map_err(|_| bad());
        let (first, last) = (number(first)?, number(last)?);
        if first > last || last >= MOST_CPUS {
            return Err(bad());
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(CpuList(cpus))
}

/// The most that Linux can be built for.
const MOST_CPUS: u32 = 8_192;

fn loads(text: &str) -> Result<Loads, String> {
    parse_list(text).map(Loads).map_err(|e| clean(&e.to_string(), 300))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists() {
        for (text, want) in [
            ("0", Some(vec![0])),
            ("3,1-2,2", Some(vec![1, 2, 3])),
            ("", None),
            ("2-1", None),
            ("-1", None),
            ("0-99999999", None),
            ("a", None),
        ] {
            assert_eq!(cpu_list(text).ok().map(|c| c.0), want, "{text:?}");
        }
        assert_eq!(list(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
    }

    #[test]
    fn lengths_of_time_have_bounds() {
        for bad in ["0us", "999ns", "2h", "1", "-1ms", "9999999999s"] {
            assert!(interval(bad).is_err(), "{bad}");
        }
        assert_eq!(interval("100us"), Ok(SpanNs(100_000)));
        assert!(priority("0").is_err() && priority("100").is_err() && priority("99").is_ok());
        assert!(samples("0").is_err() && samples("-3").is_err());
    }
}
