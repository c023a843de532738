//! The arguments of `wakescope measure`, and what they mean on this machine.

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::TypedValueParser;
use wakescope_core::host::{CPUS_MAX, cpu_ranges};
use wakescope_core::limit::Limit;
use wakescope_core::plan::{Between, IdleStates, Plan, ProbePolicy, Rate, Stimulus, Target, WORST};
use wakescope_core::redact::redact;
use wakescope_core::run::Run;
use wakescope_core::units::SpanNs;
use wakescope_probe::load::{Spec, name_in, parse_list};
use wakescope_report::style::clean;
use wakescope_sys::sched;

use super::own_options::OwnOptions;
use crate::Failure;
use crate::line::LineArgs;
use crate::measure::series;
use crate::measure::wakers::{Asked, Place, Places, one_cpu};
use crate::offering::{load_names, offering};
use crate::stimuli::{Chosen, stimuli_or_all};

/// Measure wakeup latency, and check whether the numbers can be trusted
///
/// Exit codes: 0 done, and every limit was kept; 1 a limit was exceeded; 2 the measurement could not be made
/// as requested; 3 the run does not decide a limit. Without --fail-above there is no limit.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  wakescope measure\n  wakescope measure --duration 10min --load find,launch,file-move\n  wakescope measure --cpus 2-3 --interval 100us --fail-above 50us --fail-above p99.9=20us"
)]
pub(crate) struct MeasureArgs {
    /// Source of the wakeups
    ///
    /// `all` measures one after the other, and prints a table; for `wakescope measure` only.
    #[arg(long, value_name = "STIMULUS", default_value = Stimulus::default().name(), value_parser = stimuli_or_all())]
    stimulus: Chosen,

    #[command(flatten)]
    line: LineArgs,

    /// Waker of the probe, for stimuli with one: another thread of the probe's process, another process,
    /// or first one and then the other [default: threads]
    #[arg(long, value_name = "threads|processes|both", value_parser = between(), hide_possible_values = true)]
    pub(super) between: Option<BetweenArg>,

    /// Where the waker runs: on the probe's CPU, on the next one, or on CPU A for a probe on CPU B;
    /// matrix measures all pairs of CPUs, one after the other [default: same-cpu]
    #[arg(long, value_name = "same-cpu|cross-cpu|A:B|matrix", value_parser = place(), hide_possible_values = true)]
    pub(super) place: Option<PlaceArg>,

    /// Time from one timer expiry to the next, on each CPU [default: 1ms]
    #[arg(long, value_name = "TIME", value_parser = interval, allow_hyphen_values = true)]
    interval: Option<SpanNs>,

    /// Wakeups per second with --stimulus rtc and rtc-grid, a power of two [default: 2048]
    #[arg(long, value_name = "HZ", conflicts_with = "interval", allow_hyphen_values = true)]
    rtc_hz: Option<Rate>,

    #[command(flatten)]
    own: OwnOptions,

    /// How long to measure, as in 10s or 5min
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration, allow_hyphen_values = true)]
    duration: SpanNs,

    /// Number of wakeups to measure on each CPU, instead of --duration
    #[arg(long, value_name = "N", value_parser = samples, conflicts_with = "duration", allow_hyphen_values = true)]
    samples: Option<u64>,

    /// CPUs to measure, as in 0,2-3 [default: all that this process may use; the first of them for audio, rtc and line]
    #[arg(long, value_name = "LIST", value_parser = cpu_list, allow_hyphen_values = true)]
    cpus: Option<CpuList>,

    /// Scheduling policy of the probe [default: fifo, or other where fifo is not allowed; other for
    /// spin; deadline for deadline]
    #[arg(long, value_enum)]
    policy: Option<PolicyArg>,

    /// Real-time priority, 1 to 99 [default: 90]
    #[arg(long, value_name = "N", value_parser = priority, allow_hyphen_values = true)]
    priority: Option<u8>,

    /// Loads to run while measuring, with commas between them; `wakescope load --list` lists them
    #[arg(long, value_name = "NAME,…", value_parser = offering(load_names(), loads), hide_possible_values = true)]
    pub(super) load: Vec<Loads>,

    /// Directory for the loads' files [default: $TMPDIR or /tmp]
    #[arg(long, value_name = "DIR")]
    pub(super) load_dir: Option<PathBuf>,

    /// Warm-up: the load runs alone for this time, then the probe runs unrecorded for the same time
    #[arg(long, value_name = "TIME", default_value = "250ms", value_parser = warmup, allow_hyphen_values = true)]
    warmup: SpanNs,

    /// Leave idle states as they are, or keep CPUs in the shallowest one while measuring
    #[arg(long, value_enum, default_value = "as-is")]
    idle_states: IdleStatesArg,

    /// Number of the most delayed wakeups to list in the record
    #[arg(long, value_name = "N", default_value_t = WORST, value_parser = clap::value_parser!(u16).range(0..=20_000))]
    pub(crate) worst: u16,

    /// Exit with 1 if the maximum (100us) or a percentile (p99.9=50us) is above this time
    ///
    /// It judges the whole wakeup latency. In a guest that includes what the hypervisor took.
    #[arg(long, value_name = "[pN=]TIME", allow_hyphen_values = true)]
    fail_above: Vec<Limit>,

    /// Folder to write the run to [default: a new folder under runs/]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Print the run record to standard output instead of the report
    #[arg(long)]
    pub(crate) json: bool,

    /// Write every sample to samples.csv in the run's folder
    #[arg(long)]
    pub(super) save_samples: bool,

    /// Leave names of tasks, programs, files and cgroups out of the record, so that it can be published;
    /// see docs/privacy.md
    #[arg(long)]
    pub(crate) redact: bool,

    /// Seed for the phase of the timer grid and for the contents of the loads' files
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
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
pub(super) struct Loads(pub(super) Vec<Spec>);

/// What `--between` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BetweenArg {
    One(Between),
    Both,
}

impl FromStr for BetweenArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "threads" => Ok(Self::One(Between::Threads)),
            "processes" => Ok(Self::One(Between::Processes)),
            "both" => Ok(Self::Both),
            _ => Err("write threads, processes or both".into()),
        }
    }
}

/// What `--place` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlaceArg {
    One(Place),
    Matrix,
}

impl FromStr for PlaceArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "matrix" { Ok(Self::Matrix) } else { text.parse().map(Self::One) }
    }
}

impl MeasureArgs {
    /// The stimulus; `None` for all of them.
    pub(super) fn stimulus(&self) -> Option<Stimulus> {
        match self.stimulus {
            Chosen::One(stimulus) => Some(stimulus),
            Chosen::All => None,
        }
    }

    pub(super) fn one_between(&self) -> Option<Between> {
        match self.between {
            Some(BetweenArg::One(between)) => Some(between),
            Some(BetweenArg::Both) | None => None,
        }
    }

    pub(super) fn one_place(&self) -> Option<Place> {
        match self.place {
            Some(PlaceArg::One(place)) => Some(place),
            Some(PlaceArg::Matrix) | None => None,
        }
    }

    /// Whether a limit was set.
    pub(super) fn has_limit(&self) -> bool {
        !self.fail_above.is_empty()
    }

    /// Makes a run such as can be published, if that was asked for.
    pub(crate) fn redact_if_asked(&self, run: &mut Run) {
        if self.redact {
            redact(run);
        }
    }
}

/// What the arguments mean on this machine, if they ask for one run. How long it is to be is compared with its interval
/// by [`lasting`](super::lasting).
pub(crate) fn plan(args: &MeasureArgs) -> Result<Plan, Failure> {
    if let Some(varied) = series::varied(args)? {
        return Err(Failure::new(format!("{} measures several runs", varied.option()))
            .because("one run is explained at a time")
            .try_this("name one value, or use wakescope measure"));
    }
    let stimulus = args.stimulus().unwrap_or_default();
    plan_of(args, Asked { stimulus, between: args.one_between(), place: args.one_place() })
}

/// The same for probes that are woken as `asked`.
pub(super) fn plan_of(args: &MeasureArgs, asked: Asked) -> Result<Plan, Failure> {
    // A loop that never sleeps must not take a whole CPU from everybody unless the user says so.
    let usual = if asked.stimulus.is_busy() { ProbePolicy::Other } else { ProbePolicy::Fifo };
    let own = asked.stimulus.policy();
    let usual = own.unwrap_or(usual);
    let policy = args.policy.map_or(usual, |policy| match policy {
        PolicyArg::Other => ProbePolicy::Other,
        PolicyArg::Fifo => ProbePolicy::Fifo,
        PolicyArg::Rr => ProbePolicy::Rr,
        PolicyArg::Deadline => ProbePolicy::Deadline,
    });
    if let Some(own) = own.filter(|&own| own != policy) {
        let stimulus = asked.stimulus;
        return Err(Failure::new(format!(
            "--policy {policy} does not apply to --stimulus {stimulus}"
        ))
        .because(format!("it is a timer for probes of the policy {own}"))
        .try_this("omit --policy, or use --stimulus timer"));
    }
    if args.priority.is_some() && !policy.has_priority() {
        return Err(Failure::new(format!("--policy {policy} has no --priority"))
            .try_this("omit --priority, or use --policy fifo or rr"));
    }
    let interval = interval_of(args, asked.stimulus)?;
    let priority = policy.has_priority().then_some(args.priority.unwrap_or(DEFAULT_PRIORITY));
    let stimulus = asked.stimulus;
    if stimulus == Stimulus::Line && policy == ProbePolicy::Deadline {
        return Err(Failure::new("--policy deadline does not apply to --stimulus line")
            .because(
                "a SCHED_DEADLINE probe is throttled by its own period, which answers do not keep",
            )
            .try_this("use --policy fifo, rr or other"));
    }
    let line = args.line.plan(stimulus)?;
    let Places { mut cpus, waker } = places(args, asked, policy, priority)?;
    if matches!(stimulus, Stimulus::Audio | Stimulus::Rtc) && args.cpus.is_none() {
        // An audio program is one thread, and uses most of its CPU. A real-time clock lets one thread
        // open it at a time.
        cpus.truncate(1);
    }
    if line.is_some() {
        one_sender(&mut cpus, args.cpus.is_some())?;
    }
    let mut plan = Plan {
        target: Target::Probes,
        stimulus,
        interval_ns: interval.0,
        duration_ns: args.samples.is_none().then_some(args.duration.0),
        samples: args.samples,
        policy,
        priority,
        runtime_ns: None,
        policy_required: args.policy.is_some() || args.priority.is_some() || own.is_some(),
        waker,
        line,
        audio: None,
        gap_from_ns: None,
        cpus,
        load: Vec::new(),
        load_marks: Vec::new(),
        scenario: None,
        warmup_ns: args.warmup.0,
        idle_states: match args.idle_states {
            IdleStatesArg::AsIs => IdleStates::AsIs,
            IdleStatesArg::Shallow => IdleStates::Shallow,
        },
        worst: args.worst.into(),
        fail_above: args.fail_above.iter().map(Limit::as_argument).collect(),
        save_samples: args.save_samples,
    };
    name_in(&mut plan, args.load.iter().flat_map(|list| &list.0));
    args.own.complete(&mut plan, args.interval)?;
    Ok(plan)
}

/// The interval that was asked for, or whose rate was.
fn interval_of(args: &MeasureArgs, stimulus: Stimulus) -> Result<SpanNs, Failure> {
    match (args.interval, args.rtc_hz) {
        (interval, None) if !stimulus.keeps_rate() => Ok(interval.unwrap_or(DEFAULT_INTERVAL)),
        (_, Some(_)) if !stimulus.keeps_rate() => {
            Err(Failure::new(format!("--rtc-hz does not apply to --stimulus {stimulus}"))
                .try_this("use --interval, or --stimulus rtc or rtc-grid"))
        }
        (None, rate) => Ok(rate.unwrap_or(Rate::REALFEEL).interval()),
        (Some(interval), _) if Rate::of(interval).is_some() => Ok(interval),
        (Some(interval), _) => Err(Failure::new(format!(
            "--interval {} is not that of a real-time clock's rate",
            interval.as_argument()
        ))
        .because("its rates are powers of two from 2 to 8192 Hz")
        .try_this("use --rtc-hz, as in --rtc-hz 2048; or another --stimulus")),
    }
}

/// Where the probes are, and who wakes them.
fn places(
    args: &MeasureArgs,
    asked: Asked,
    policy: ProbePolicy,
    priority: Option<u8>,
) -> Result<Places, Failure> {
    let allowed = allowed_cpus()?;
    let cpus = cpus(args.cpus.as_ref(), &allowed)?;
    // Those of a matrix are all of its pairs.
    let is_named = args.cpus.is_some() && args.place != Some(PlaceArg::Matrix);
    asked.places(policy, priority, cpus, is_named, &allowed)
}

/// The CPUs of a matrix, two at least.
pub(super) fn cpus_of_matrix(args: &MeasureArgs) -> Result<Vec<u32>, Failure> {
    let cpus = cpus(args.cpus.as_ref(), &allowed_cpus()?)?;
    if cpus.len() < 2 { Err(one_cpu("matrix", &cpus)) } else { Ok(cpus) }
}

/// A usual period of control loops.
const DEFAULT_INTERVAL: SpanNs = SpanNs(1_000_000);

/// Above what applications use, below the kernel's own threads that must come first (99).
const DEFAULT_PRIORITY: u8 = 90;

/// The CPUs to measure: those asked for, of those that this process may use.
fn cpus(asked: Option<&CpuList>, allowed: &[u32]) -> Result<Vec<u32>, Failure> {
    let Some(CpuList(asked)) = asked else { return Ok(allowed.to_vec()) };
    match asked.iter().find(|cpu| !allowed.contains(cpu)) {
        None => Ok(asked.clone()),
        Some(cpu) => Err(Failure::new(format!("this process may not use CPU {cpu}"))
            .because(format!("it may use {}", cpu_ranges(allowed)))
            .try_this(
                "name some of these with --cpus; the others are offline, or excluded by a cpuset \
                 or taskset",
            )),
    }
}

/// A line has one sender: on the first CPU, unless another is asked for.
fn one_sender(cpus: &mut Vec<u32>, is_asked: bool) -> Result<(), Failure> {
    if is_asked && cpus.len() > 1 {
        return Err(Failure::new("--stimulus line has one sender, but --cpus names several CPUs")
            .try_this("name the CPU that sends and receives: --cpus 0"));
    }
    cpus.truncate(1);
    Ok(())
}

/// The CPUs that this process may use.
fn allowed_cpus() -> Result<Vec<u32>, Failure> {
    sched::affinity()
        .map_err(|e| Failure::new(format!("cannot find out which CPUs this process may use: {e}")))
}

/// A year: longer is surely a slip of the pen.
pub(super) const LONGEST: SpanNs = SpanNs(366 * 86_400_000_000_000);

pub(super) fn bounded(text: &str, least: SpanNs, most: SpanNs) -> Result<SpanNs, String> {
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
        if first > last || last >= CPUS_MAX {
            return Err(bad());
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Ok(CpuList(cpus))
}

fn between() -> impl TypedValueParser<Value = BetweenArg> {
    offering(["threads", "processes", "both"], |text: &str| text.parse::<BetweenArg>())
}

fn place() -> impl TypedValueParser<Value = PlaceArg> {
    offering(["same-cpu", "cross-cpu", "matrix"], |text: &str| text.parse::<PlaceArg>())
}

fn loads(text: &str) -> Result<Loads, String> {
    match parse_list(text) {
        Ok(list) if list.is_empty() => {
            Err("no load is named; omit --load to measure without a load".into())
        }
        Ok(list) => Ok(Loads(list)),
        Err(e) => Err(clean(&e.to_string(), 300)),
    }
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
