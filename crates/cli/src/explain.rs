//! `wakescope explain`

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use wakescope_attribution::{Machine, account, stand_in};
use wakescope_core::distribution::Distribution;
use wakescope_core::explain::{Above, By};
use wakescope_core::host::Host;
use wakescope_core::plan::{Plan, ProbePolicy, Stimulus, Target};
use wakescope_core::preemption::Model;
use wakescope_core::run::{Run, TimeDomain};
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_probe::host;
use wakescope_probe::observer::{Observer, ObserverError};
use wakescope_report::explain::{Extent, text};
use wakescope_sys::clock;
use wakescope_sys::proc_files::is_thread;
use wakescope_sys::sched::ThreadId;
use wakescope_sys::shared::Answers;
use wakescope_trace::{Options, Tracer, Users, Watch, functions_of_program};

use crate::folder::RunFolder;
use crate::measure::{self, Lookup, MeasureArgs, StoresMore};
use crate::trace_failure::cannot_trace;
use crate::{Failure, Outcome, output};
use episodes::Episodes;
use functions::ProgramLookup;
use pace::Pace;
pub(crate) use stored::each_stored;

mod episodes;
mod functions;
mod lines;
mod others;
mod pace;
mod stored;

/// What a probe is told, and means nothing where none is started.
const NOT_OF_OTHERS: [&str; 21] = [
    "stimulus",
    "line",
    "baud",
    "between",
    "place",
    "interval",
    "rtc_hz",
    "runtime",
    "gap_from",
    "pcm",
    "fragment",
    "fragments",
    "share",
    "cpus",
    "policy",
    "priority",
    "load_dir",
    "warmup",
    "idle_states",
    "fail_above",
    "save_samples",
];

/// What else means nothing where nothing is seen any more.
const NOT_OF_A_STORED_RUN: [&str; 12] = [
    "above", "pid", "comm", "cgroup", "sections", "bound", "duration", "samples", "load", "worst",
    "out", "seed",
];

/// Explain late wakeups: which component was late, and what caused it
///
/// Measures as `wakescope measure` does, and follows each wakeup through the kernel. With --pid,
/// --comm or --cgroup it follows the wakeups of other threads instead. With RUN it explains a stored
/// run again: its stored episodes are attributed by the rules of this version. Exit codes: 0 done, and every
/// limit was kept; 1 a limit was exceeded; 2 an error; 3 the run does not decide a limit.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  wakescope explain --load file-move --duration 30s\n  wakescope explain --above 100us --duration 10min\n  wakescope explain --pid 4711 --duration 10s\n  wakescope explain runs/2026-11-21T01-35-07"
)]
pub(crate) struct ExplainArgs {
    /// Explain this stored run, instead of measuring
    #[arg(conflicts_with_all = NOT_OF_A_STORED_RUN, conflicts_with_all = NOT_OF_OTHERS)]
    run: Option<PathBuf>,

    /// Wakeups count as late from this time or percentile on
    #[arg(long, value_name = "TIME|pN", default_value = "p99.9", allow_hyphen_values = true)]
    pub(crate) above: Above,

    /// Follow the threads of this process, or this one thread, instead of probes
    #[arg(long, value_name = "PID", value_parser = process_id, group = "others", conflicts_with_all = NOT_OF_OTHERS)]
    pid: Option<u32>,

    /// Follow all threads of this name
    #[arg(long, value_name = "NAME", group = "others", conflicts_with_all = NOT_OF_OTHERS)]
    comm: Option<String>,

    /// Follow all threads in the cgroup with this folder, but not in its descendants
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath, group = "others", conflicts_with_all = NOT_OF_OTHERS)]
    cgroup: Option<String>,

    /// Compute an upper bound on the wakeup latency from what was observed
    ///
    /// The bound adds up the longest sections with interrupts or preemption off, the scheduler's
    /// own time, and each interrupt at its longest duration and highest observed rate. If the bound
    /// does not hold on this kernel, the reasons are listed.
    #[arg(long)]
    bound: bool,

    /// The kernel's vmlinux with debug information, for source lines [default: searched in the
    /// usual places]
    ///
    /// Its build ID must be that of the traced kernel. Debug files of modules are searched near it.
    /// With RUN, adds source lines to the stack traces of the stored run.
    #[arg(long, value_name = "FILE")]
    vmlinux: Option<PathBuf>,

    /// Measure every section with interrupts or preemption off, from its begin to its end
    ///
    /// This needs the preemptirq tracepoints (CONFIG_PREEMPTIRQ_TRACEPOINTS). On a kernel without
    /// them a finding says so, and section lengths are lower bounds. Sections occur up to a million
    /// times a second, so tracing them slows down the whole machine.
    #[arg(long)]
    sections: bool,

    /// Show the stored explanation as it was recorded, instead of attributing the stored episodes anew
    #[arg(long, requires = "run")]
    as_recorded: bool,

    /// Also rank the late time by threads, tasks, functions or modules, whatever the cause
    ///
    /// pid: each thread that ran; task: threads of one name, policy and priority together;
    /// function: functions of the kernel; module: its modules, and its own code as one. With RUN,
    /// only the stored episodes are ranked, or the worst wakeups if none are stored, unless it was
    /// measured with the same option.
    #[arg(long, value_name = "WHAT", value_parser = by_values())]
    by: Option<By>,

    /// Number of the worst wakeups to show in full
    #[arg(long, value_name = "N", default_value = "3")]
    episodes: usize,

    #[command(flatten)]
    pub(crate) measure: MeasureArgs,
}

/// What is asked about wakeups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Question {
    /// Which are late.
    pub(crate) above: Above,
    /// Whether a bound is wanted.
    pub(crate) bound: bool,
    /// Whether every section is to be measured.
    pub(crate) sections: bool,
    /// What late time is to be ranked by beside its causes.
    pub(crate) by: Option<By>,
    /// What the clock counts.
    pub(crate) time_domain: TimeDomain,
}

/// What `--by` takes.
fn by_values() -> impl TypedValueParser<Value = By> {
    let names = By::ALL.map(By::name);
    PossibleValuesParser::new(names).try_map(|name: String| name.parse::<By>())
}

fn process_id(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(pid) if pid > 0 => Ok(pid),
        _ => {
            Err("write the ID of a process or thread, 1 or higher (see ps -eL); --comm takes names"
                .into())
        }
    }
}

/// Runs `wakescope explain`.
pub(crate) fn run(args: &ExplainArgs) -> Result<Outcome, Failure> {
    if let Some(path) = &args.run {
        return stored::show(args, path);
    }
    let plan = match target(args) {
        Some(target) => others::plan(args, target)?,
        None => measure::lasting(measure::plan(&args.measure)?)?,
    };
    refuse_line(&plan)?;
    refuse_card(&plan)?;
    let signals = measure::prepare_process()?;
    let host = host::read(&plan.cpus);
    let image = lines::choose(args.vmlinux.as_deref(), &host)?;
    let ExplainArgs { above, bound, sections, by, .. } = *args;
    let question = Question { above, bound, sections, by, time_domain: TimeDomain::Real };
    let mut follower = Follower::start(question, &plan, &host)?;
    follower.read_files(image);
    measure::carry_out(&args.measure, plan, host, signals, &mut follower, &|run| shown(args, run))
}

/// Refuses round trips: most of one is spent where no tracer of this machine sees it.
fn refuse_line(plan: &Plan) -> Result<(), Failure> {
    if plan.stimulus != Stimulus::Line {
        return Ok(());
    }
    Err(Failure::new("--stimulus line cannot be explained")
        .because("a round trip is spent on the wire and on two machines, of which this one sees only one")
        .try_this(
            "explain the other machine's part there, while this one measures: wakescope explain \
             --comm wakescope-r",
        ))
}

/// Refuses a sound card of the machine: when its interrupt should have come is known to its own clock only.
fn refuse_card(plan: &Plan) -> Result<(), Failure> {
    if plan.audio.is_none_or(|audio| audio.pcm.is_none()) {
        return Ok(());
    }
    Err(Failure::new("--stimulus audio --pcm cannot be explained")
        .because("a card does not say beforehand when it will have played a fragment, so a wakeup has no expiry")
        .try_this("omit --pcm: wakeups by a virtual sound card can be explained")
        .try_this(
            "explain the probe as another program's thread, while `wakescope measure` plays: wakescope \
             explain --comm wakescope/0",
        ))
}

fn target(args: &ExplainArgs) -> Option<Target> {
    let id = args.pid.map(|id| match is_thread(id) {
        true => Target::Thread { tid: id },
        false => Target::Process { pid: id },
    });
    let comm = || args.comm.clone().map(|comm| Target::Comm { comm });
    let cgroup = || args.cgroup.clone().map(|path| Target::Cgroup { path });
    id.or_else(comm).or_else(cgroup)
}

fn shown(args: &ExplainArgs, run: &Run) -> String {
    text(run, output::style(), Extent::Worst(args.episodes))
}

/// How many late wakeups are kept with all their events, 12 MB at the most, and twice that where a
/// hypervisor took time. Those that the record lists are, if these are more.
const ROOM: usize = 2_048;

/// Follows wakeups while others measure.
pub(crate) struct Follower {
    tracer: Option<Tracer>,
    above: Above,
    /// From when on wakeups count.
    origin: MonoNs,
    pace: Pace,
    /// How many wakeups are kept whole.
    room: usize,
    /// Where these are stored; `None` where nobody said so.
    episodes: Option<Episodes>,
    /// What was stored in memory in the end.
    stored: Option<Vec<u8>>,
    /// Where source lines are to be looked up once the run is stored; `None` where nobody asked.
    image: Option<lines::Chosen>,
    /// Where functions of programs are to be looked up then.
    programs: Option<ProgramLookup>,
}

impl Follower {
    /// Attaches to the kernel, to follow the wakeups that `plan` is about. What of `host` decides over
    /// what is possible is its preemption model. Interrupts and sections count on the plan's CPUs, on
    /// all if there are none.
    pub(crate) fn start(question: Question, plan: &Plan, host: &Host) -> Result<Self, Failure> {
        let Question { above, bound, sections, by, time_domain } = question;
        if plan.stimulus.is_busy() {
            return Err(Failure::new(format!("cannot explain --stimulus {}", plan.stimulus))
                .because("its probe never sleeps, so there are no wakeups to follow")
                .try_this(format!("use wakescope measure --stimulus {}", plan.stimulus))
                .try_this("explain wakeups: --stimulus timer"));
        }
        if bound && plan.stimulus.needs_waker() {
            let stimulus = plan.stimulus;
            return Err(Failure::new(format!("--bound does not apply to --stimulus {stimulus}"))
                .because("it bounds the latency of wakeups by a timer, not that of a waker's call")
                .try_this("omit --bound, or use --stimulus timer"));
        }
        let options = Options {
            target: plan.target.clone(),
            within_cgroup: None,
            kept_name: None,
            stimulus: plan.stimulus,
            probes: u32::try_from(plan.cpus.len()).unwrap_or(u32::MAX),
            pinned: !plan.is_of_others() && plan.policy != ProbePolicy::Deadline,
            above_ns: above.time_ns(),
            tail: above.tail(),
            late: late_in_the_end(plan, above.tail()),
            model: host.preemption.model,
            idle_states: host.idle.states.iter().map(|state| state.name.clone()).collect(),
            room: ROOM.max(plan.worst),
            machine: Machine::of(host, time_domain),
            watch: bound.then(|| watch(&plan.cpus, host)),
            sections: sections.then(|| plan.cpus.iter().copied().collect()),
            by,
        };
        let tracer = Tracer::start(options).map_err(|e| cannot_trace(&e))?;
        Ok(Self {
            tracer: Some(tracer),
            above,
            origin: clock::now(),
            pace: Pace::of(plan),
            room: ROOM.max(plan.worst),
            episodes: None,
            stored: None,
            image: None,
            programs: None,
        })
    }

    /// Keeps the episodes in memory, for [`Self::stored`].
    pub(crate) fn store_in_memory(&mut self) {
        self.episodes = Some(Episodes::in_memory(self.above));
    }

    /// The episodes that were kept in memory, when the run is complete.
    pub(crate) fn stored(self) -> Option<Vec<u8>> {
        self.stored
    }

    /// Lets files tell more: names of functions in programs, and lines of source from `image`. Guests
    /// of the lab have no such files, and need not hold the code to read them.
    fn read_files(&mut self, image: lines::Chosen) {
        if let Some(tracer) = &mut self.tracer {
            tracer.name_programs(Users::read_by(functions_of_program));
        }
        self.image = Some(image);
    }
}

/// What interferes on `cpus`, or on all if there are none.
fn watch(cpus: &[u32], host: &Host) -> Watch {
    // In an RT kernel softirqs run in threads.
    let softirqs = host.preemption.model != Model::Rt;
    Watch { cpus: cpus.iter().copied().collect(), softirqs }
}

/// How many of the wakeups that `plan` asks for are in that part of all; 0 if it does not say.
fn late_in_the_end(plan: &Plan, tail: f64) -> u64 {
    if plan.is_of_others() {
        return 0;
    }
    let of_each = |ns| plan.points_in(SpanNs(ns));
    let of_each = plan.samples.or(plan.duration_ns.map(of_each)).unwrap_or(0);
    let all = of_each.saturating_mul(u64::try_from(plan.cpus.len()).unwrap_or(u64::MAX));
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let late = (all as f64 * tail).ceil() as u64;
    late
}

impl StoresMore for Follower {
    fn store_in(
        &mut self,
        folder: &mut RunFolder,
        run: &Run,
        redacts: bool,
    ) -> Result<(), Failure> {
        let file = folder.add_episodes()?;
        self.episodes = Some(Episodes::in_file(file, run, self.above, self.room, redacts));
        if let Some(tracer) = &mut self.tracer {
            tracer.prepare_to_store();
        }
        Ok(())
    }

    fn lookup(&mut self) -> Option<Lookup> {
        let (image, programs) = (self.image.take()?, self.programs.take());
        let mut lacking = vec![lines::not_looked_up()];
        lacking.extend(programs.iter().map(|_| functions::NOT_LOOKED_UP.to_owned()));
        let complete = Box::new(|run: &mut Run| {
            if let Some(programs) = programs {
                programs.complete(run);
            }
            image.complete(run);
        });
        Some(Lookup { lacking, complete })
    }
}

impl Observer for Follower {
    fn answers(&self, rank: usize) -> Option<Answers> {
        self.tracer.as_ref()?.answers(rank)
    }

    fn follow(&mut self, thread: ThreadId) -> Result<(), ObserverError> {
        let Some(tracer) = &mut self.tracer else { return Ok(()) };
        tracer.follow(thread.number()).map_err(|e| ObserverError::Follow(thread, Box::new(e)))
    }

    fn prepare(&mut self) {
        if let Some(tracer) = &mut self.tracer {
            tracer.look_at_threads();
        }
    }

    fn begin(&mut self, origin: MonoNs) -> Result<(), ObserverError> {
        self.origin = origin;
        let Some(tracer) = &mut self.tracer else { return Ok(()) };
        tracer.begin(origin).map_err(|e| ObserverError::Begin(Box::new(e)))
    }

    fn pace(&self, now: MonoNs) -> Option<SpanNs> {
        Some(self.pace.after(now.since(self.origin)))
    }

    fn look(&mut self, now: MonoNs) {
        let Some(tracer) = &mut self.tracer else { return };
        tracer.adapt(now);
        tracer.poll();
        if let Some(episodes) = &mut self.episodes {
            episodes.look(tracer, self.origin);
        }
    }

    fn lateness(&self) -> Distribution {
        self.tracer.as_ref().map(Tracer::lateness).unwrap_or_default()
    }

    fn complete_checkpoint(&self, run: &mut Run) {
        if run.plan.is_of_others() {
            stand_in(run, &self.lateness());
        }
    }

    fn complete(&mut self, run: &mut Run) {
        if let Some(tracer) = self.tracer.take() {
            let (seen, files) = tracer.finish();
            let accounted = account(run, seen, self.above);
            let mut episodes = self.episodes.take();
            self.stored = episodes.as_mut().and_then(|episodes| episodes.store(run, &accounted));
            self.programs = ProgramLookup::of(files, episodes, accounted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_says_how_many_will_be_late() {
        let second = Some(SpanNs(1_000_000_000));
        let of = |cpus, samples, duration: Option<SpanNs>, target| {
            let duration_ns = duration.map(|span| span.0);
            let interval_ns = 1_000_000;
            let plan = Plan { cpus, samples, duration_ns, interval_ns, target, ..Plan::default() };
            late_in_the_end(&plan, 0.04)
        };
        assert_eq!(of(vec![0], Some(500), None, Target::Probes), 20);
        assert_eq!(of(vec![0, 1], Some(501), None, Target::Probes), 41);
        assert_eq!(of(vec![0], None, second, Target::Probes), 40);
        assert_eq!(of(vec![0], None, second, Target::Process { pid: 7 }), 0);
    }
}
