//! What wakescope does as the first process of a lab's guest: it makes the machine ready, measures,
//! sends out what it found, and restarts, which ends the emulator.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Write;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use wakescope_core::behaviour::judge;
use wakescope_core::host::KernelVersion;
use wakescope_core::limitations::host_findings;
use wakescope_core::plan::{Plan, Stimulus};
use wakescope_core::run::{Run, TimeDomain};
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_lab::guest::{DISTURBANCES, EPISODES, FACTS, Facts, KERNEL_LOG, MODULES, RUN, VERB};
use wakescope_lab::module::NAME as OWN_MODULE;
use wakescope_lab::parcel::{Item, pack};
use wakescope_probe::behaviour::{Options, observe};
use wakescope_probe::driver::{self, Screen, Storage};
use wakescope_probe::host::{self, Files};
use wakescope_probe::load::{Load, Need, Spec, default_dir, parse_list, path_of_disturbances};
use wakescope_probe::measurement::{Identity, Progress, Request, SampleSink, SavedSample, Unsaved};
use wakescope_probe::observer::{Observer, Unobserved};
use wakescope_report::check::Check;
use wakescope_sys::clock::{self, Clock};
use wakescope_sys::guest::{drain, kernel_log, load_module, mount, restart, set_raw};
use wakescope_sys::network::bring_loopback_up;
use wakescope_sys::sched::{self, Schedule};

use crate::explain::{Follower, Question};
use crate::measure;
use crate::{Failure, Outcome, output};

mod cable;
mod nfs;
mod order;

use order::{Explain, Measure, Order, Task};

/// What a guest of the lab does, as its first process
#[derive(clap::Args)]
pub(crate) struct GuestArgs {
    /// The serial line, below /dev, that results are sent through
    #[arg(long)]
    results: String,

    /// What the machine's clock counts: instructions, as in the lab, or time. Only who started the
    /// emulator knows
    #[arg(long, value_enum, default_value = "virtual")]
    time: TimeArg,

    /// Modules to load first, in this order
    #[arg(long, value_name = "FILE,…", value_delimiter = ',')]
    module: Vec<String>,

    /// What to do: a limit and a task. The machine says it if it is not said here
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    order: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum TimeArg {
    Virtual,
    Real,
}

impl TimeArg {
    fn domain(self) -> TimeDomain {
        match self {
            Self::Virtual => TimeDomain::Virtual,
            Self::Real => TimeDomain::Real,
        }
    }
}

/// The arguments that are meant for wakescope. To the first process of a machine the kernel also
/// gives those of its own that it does not know: they stand before the verb.
pub(crate) fn arguments(all: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut all: Vec<_> = all.collect();
    if std::process::id() == 1 {
        if let Some(verb) = all.iter().position(|argument| argument == OsStr::new(VERB)) {
            all.drain(1..verb);
        }
    }
    all
}

/// Does what the arguments say, and restarts the machine. Returns only where that is not possible.
pub(crate) fn run(args: &GuestArgs) -> Result<Outcome, Failure> {
    // What follows mounts and restarts: on any other machine, root would be sorry.
    if std::process::id() != 1 {
        return Err(Failure::new(format!("{VERB} runs only as the first process of a guest"))
            .try_this("boot one: wakescope lab run"));
    }
    let began = clock::now();
    let exit = Exit { line: PathBuf::from(&args.results), taken: Arc::default() };
    let done = make_ready(&args.module).and_then(|()| {
        let domain = args.time.domain();
        settle();
        let order = Order::receive(&args.order)?;
        exit.give_up_after(order.limit, domain)?;
        match &order.task {
            Task::Check => check(domain),
            Task::Measure(measure) => run_measurement(measure, domain),
            Task::Explain(explain) => run_explanation(explain, domain),
        }
    });
    exit.leave(began, false, done)
}

/// The way out of the guest, for whoever takes it first.
#[derive(Clone)]
struct Exit {
    line: PathBuf,
    taken: Arc<AtomicBool>,
}

impl Exit {
    /// Leaves with a failure when the time is up. Time in which nothing happens costs nothing in a
    /// guest, but a load that hangs would keep one busy for ever.
    fn give_up_after(&self, limit: SpanNs, domain: TimeDomain) -> Result<(), Failure> {
        let (exit, began) = (self.clone(), clock::now());
        let wait = move || {
            // Above whatever else hangs.
            let _ = sched::set_schedule(Schedule::Fifo { priority: 99 });
            std::thread::sleep(std::time::Duration::from_nanos(limit.0));
            let kind = if domain == TimeDomain::Virtual { " of virtual time" } else { "" };
            let failure = format!("the guest did not finish within {limit}{kind}");
            exit.leave(began, true, Err(Failure::new(failure)))
        };
        let started = std::thread::Builder::new().spawn(wait);
        started.map(drop).map_err(|e| Failure::new(format!("cannot start a thread: {e}")))
    }

    fn leave(
        &self,
        began: MonoNs,
        time_up: bool,
        done: Result<Vec<Item>, Failure>,
    ) -> Result<Outcome, Failure> {
        if self.taken.swap(true, Ordering::SeqCst) {
            // Another thread is on its way out. It restarts the machine.
            loop {
                std::thread::park();
            }
        }
        let (mut items, error) = match done {
            Ok(items) => (items, None),
            // It becomes a reason, which is a line.
            Err(failure) => (Vec::new(), Some(failure.to_string().replace("\n  ", "; "))),
        };
        let (began_ns, ended_ns) = (began.0, clock::now().0);
        let facts = json!(Facts { error, time_up, began_ns, ended_ns });
        items.push(Item::new(FACTS, facts.to_string()));
        items.push(Item::new(KERNEL_LOG, kernel_log().unwrap_or_default()));
        self.send(&pack(&items)).map_err(|e| {
            Failure::new(format!("cannot send results to {}: {e}", self.line.display()))
        })?;
        Err(Failure::new(format!("cannot restart the guest: {}", restart())))
    }

    fn send(&self, parcel: &[u8]) -> std::io::Result<()> {
        let mut line = File::options().write(true).open(Path::new("/dev").join(&self.line))?;
        set_raw(&line)?;
        line.write_all(parcel)?;
        drain(&line)
    }
}

/// Mounts what a measurement and the loads need, and loads modules.
fn make_ready(modules: &[String]) -> Result<(), Failure> {
    for (kind, target, options) in [
        ("devtmpfs", "/dev", ""),
        ("proc", "/proc", ""),
        ("sysfs", "/sys", ""),
        ("tmpfs", "/tmp", "size=90%"),
    ] {
        mount(kind, target, options)
            .map_err(|e| Failure::new(format!("cannot mount {kind} at {target}: {e}")))?;
    }
    // Only there to tell the preemption model from; kernels are built without it.
    let _ = mount("debugfs", "/sys/kernel/debug", "");
    for name in modules {
        let file = File::open(Path::new(MODULES).join(name));
        // In a guest nobody else is held up.
        let parameters = if *name == format!("{OWN_MODULE}.ko") { "inject=1" } else { "" };
        file.and_then(|file| load_module(&file, parameters))
            .map_err(|e| Failure::new(format!("cannot load the module {name}: {e}")))?;
    }
    Ok(())
}

/// Waits until the kernel is done with what it began while it booted: from 6.18 on, tests of its
/// ciphers go on for about a second after the first process was started. They are nobody's load.
///
/// Time is spent at the lowest priority; as long as some of it is missing, others are at work.
fn settle() {
    const PAUSE: std::time::Duration = std::time::Duration::from_millis(20);
    const WINDOW: SpanNs = SpanNs(4_000_000);
    /// The timer's tick and what hangs on it take some of each window.
    const OTHERS_MOST: SpanNs = SpanNs(200_000);
    const LOOKS_MOST: u32 = 500;
    let _ = sched::set_schedule(Schedule::Idle);
    let mut quiet = 0;
    for _ in 0..LOOKS_MOST {
        std::thread::sleep(PAUSE);
        let is_quiet = !clock_will_change() && time_of_others(WINDOW) < OTHERS_MOST;
        quiet = if is_quiet { quiet + 1 } else { 0 };
        if quiet == 3 {
            break;
        }
    }
    let _ = sched::set_schedule(Schedule::Other { nice: 0 });
}

/// Whether the kernel has not yet gone over to the clock that it will stay with. On x86 it takes a
/// second to trust one.
fn clock_will_change() -> bool {
    let current = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    fs::read_to_string(current).is_ok_and(|source| source.trim_end().ends_with("-early"))
}

/// Spins for a while; how much of that time other tasks had.
fn time_of_others(window: SpanNs) -> SpanNs {
    let (began, used) = (clock::now(), clock::read(Clock::ThreadCpu));
    let mut passed = SpanNs(0);
    while passed < window {
        passed = clock::now().since(began);
    }
    SpanNs(passed.0.saturating_sub(clock::read(Clock::ThreadCpu).saturating_sub(used)))
}

/// Nothing disturbs a guest in virtual time, so a few wakeups per call are enough to judge by
/// ([`WAKEUPS_NEEDED_VIRTUALLY`](wakescope_core::behaviour::WAKEUPS_NEEDED_VIRTUALLY)): of these,
/// a fifth at the least falls early enough in a call (10 of 48, 6.1 with the voluntary model). So half of them
/// are often enough.
const CHECK_WAKEUPS: usize = 48;

fn check(domain: TimeDomain) -> Result<Vec<Item>, Failure> {
    let (host, instruments) = host::examine(&Files::of_this_machine(), &[]);
    let options = match domain {
        TimeDomain::Virtual => {
            Options { wakeups: CHECK_WAKEUPS, undisturbed: true, ..Options::default() }
        }
        _ => Options::default(),
    };
    let observations = observe(0, &options);
    let version = KernelVersion::of(&host.release);
    let judgement = judge(&observations, domain).of_version(version);
    let limitations = host_findings(&host, domain, &host.cpus_allowed);
    let check =
        Check { host, limitations, instruments, behaviour: Some((observations, judgement)) };
    let value = check.json().map_err(|e| Failure::new(format!("cannot write JSON: {e}")))?;
    Ok(vec![Item::new(wakescope_lab::guest::CHECK, value.to_string())])
}

fn run_measurement(order: &Measure, domain: TimeDomain) -> Result<Vec<Item>, Failure> {
    let (run, _) = measure_quietly(order, None, domain)?;
    Ok([Item::new(RUN, run.to_json())].into_iter().chain(disturbances()).collect())
}

fn run_explanation(order: &Explain, domain: TimeDomain) -> Result<Vec<Item>, Failure> {
    let Explain { measure, above, bound, sections } = order;
    let (above, bound, sections) = (*above, *bound, *sections);
    let question = Question { above, bound, sections, by: None, time_domain: domain };
    let (run, episodes) = measure_quietly(measure, Some(question), domain)?;
    let episodes = episodes.map(|episodes| Item::new(EPISODES, episodes));
    let files = [Item::new(RUN, run.to_json())].into_iter();
    Ok(files.chain(episodes).chain(disturbances()).collect())
}

/// The log of when loads disturbed, if one has written it. Who wants that of a guest says so on the kernel's
/// command line, which becomes the environment of its first process.
fn disturbances() -> Option<Item> {
    let log = fs::read(path_of_disturbances()?).ok()?;
    Some(Item::new(DISTURBANCES, log))
}

/// Measures as `wakescope measure` does, but writes nothing down meanwhile: each record would cost
/// time, and there is no disk that it could be lost from. What is late is explained if it
/// is asked, and the episodes are returned with the run.
///
/// In real time it says on the console when it has begun: who disturbs the guest from outside waits
/// for that. In virtual time nobody can, and a line costs time.
fn measure_quietly(
    order: &Measure,
    question: Option<Question>,
    domain: TimeDomain,
) -> Result<(Run, Option<Vec<u8>>), Failure> {
    let Measure { seed, ref plan } = *order;
    let loads = loads_of(plan)?;
    bring_up_what_wakes(plan.stimulus);
    // It answers until the machine restarts.
    let _responder = plan.line.as_ref().map(|line| cable::answer(line, plan)).transpose()?;
    let mut signals = measure::prepare_process()?;
    provide_all(&loads)?;
    let host = host::read(&plan.cpus);
    let identity = Identity {
        // Of which cell it is, the host knows.
        id: String::new(),
        started: measure::time_now(),
        seed,
        time_domain: domain,
    };
    let host_findings = host_findings(&host, domain, measure::plan_cpus(plan, &host));
    let mut nobody = Unobserved;
    let mut follower =
        question.map(|question| Follower::start(question, plan, &host)).transpose()?;
    follower.iter_mut().for_each(Follower::store_in_memory);
    let observer: &mut dyn Observer = match &mut follower {
        Some(follower) => follower,
        None => &mut nobody,
    };
    let loads = start_loads(&loads, seed)?;
    let plan = Plan::clone(plan);
    // One that has to write its log is asked to end.
    let abandons_loads = path_of_disturbances().is_none();
    let request = Request { identity, plan, host, host_findings, loads, abandons_loads };
    let mut screen = Console { domain };
    let run = driver::measure(request, observer, &mut signals, &mut screen, &mut Nowhere)
        .map_err(measure::explain)?;
    Ok((run, follower.and_then(Follower::stored)))
}

/// Starts the loads, those that are to work over NFS in a directory there, if there is one.
fn start_loads(loads: &[Spec], seed: u64) -> Result<Vec<Load>, Failure> {
    let mut all = Vec::new();
    for spec in loads {
        let is_over_nfs = spec.need() == Some(Need::NfsServer) && nfs::is_mounted();
        let dir = if is_over_nfs { nfs::MOUNTED.into() } else { default_dir() };
        all.extend(measure::start_loads([spec], dir, seed)?);
    }
    Ok(all)
}

/// Provides what the loads need. One of a group that lacks something says so itself, and is left out.
fn provide_all(loads: &[Spec]) -> Result<(), Failure> {
    for spec in loads {
        let provided = spec.need().map_or(Ok(()), provide);
        if spec.group().is_none() {
            provided?;
        }
    }
    Ok(())
}

/// Provides what a load needs. A guest that runs no such load has it not: all that is done shifts
/// what is measured.
fn provide(need: Need) -> Result<(), Failure> {
    const TERMINALS: &str = "/dev/pts";
    let (what, done) = match need {
        Need::Loopback => (
            "bring the loopback interface up",
            UdpSocket::bind("0.0.0.0:0").and_then(|any| bring_loopback_up(&any)),
        ),
        Need::PseudoTerminals => (
            "mount devpts",
            fs::create_dir_all(TERMINALS)
                .and_then(|()| mount("devpts", TERMINALS, "ptmxmode=0666")),
        ),
        Need::KernelLog => (
            "allow programs to write to the kernel's log",
            // Without the end of the line the kernel refuses it.
            fs::write("/proc/sys/kernel/printk_devkmsg", "on\n"),
        ),
        Need::NfsServer => (
            "start an NFS server",
            provide(Need::Loopback).map_err(std::io::Error::other).and_then(|()| nfs::serve()),
        ),
        // The module was loaded before; as one of a group, the load itself says that it is not there.
        Need::Injector | Need::Program | Need::Port | Need::Machine => return Ok(()),
    };
    done.map_err(|e| Failure::new(format!("cannot {what}: {e}")))
}

/// Brings up the loopback device for stimuli that need it. Where that fails, their refusal says why.
fn bring_up_what_wakes(stimulus: Stimulus) {
    if matches!(stimulus, Stimulus::Udp | Stimulus::Tcp) {
        if let Ok(socket) = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)) {
            let _ = bring_loopback_up(&socket);
        }
    }
}

/// The loads that a plan names.
fn loads_of(plan: &Plan) -> Result<Vec<Spec>, Failure> {
    let read = |name: &String| parse_list(name).map_err(|e| Failure::new(e.to_string()));
    plan.load.iter().map(read).collect::<Result<Vec<_>, _>>().map(|lists| lists.concat())
}

/// Says when the measurement begins, in real time.
struct Console {
    domain: TimeDomain,
}

impl Screen for Console {
    fn wait(&mut self, _: SpanNs) {}

    fn begin(&mut self, _: &Plan) {
        if self.domain == TimeDomain::Real {
            output::tell("measuring");
        }
    }

    fn pace(&self) -> Option<SpanNs> {
        None
    }

    fn show(&mut self, _: &Progress) {}

    fn clear(&mut self) {}
}

/// Keeps nothing while the run is measured.
struct Nowhere;

impl SampleSink for Nowhere {
    fn add(&mut self, _: SavedSample) {}

    fn close(&mut self) -> Unsaved {
        Unsaved::default()
    }
}

impl Storage for Nowhere {
    fn pace(&self) -> Option<SpanNs> {
        None
    }

    fn checkpoint(&mut self, _: Run) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        guest: GuestArgs,
    }

    #[test]
    fn an_order_may_follow_on_the_command_line() {
        let order = |words: &[&str]| {
            let first = ["lab-guest", "--results", "ttyS1", "--module", "brd"];
            Alone::try_parse_from([&first[..], words].concat()).unwrap().guest.order
        };
        assert_eq!(order(&["--limit", "1s", "check"]), ["--limit", "1s", "check"]);
        assert!(order(&[]).is_empty());
    }

    #[test]
    fn loads_of_a_plan_are_known_or_refused() {
        let plan = |load: &str| Plan { load: vec![load.into()], ..Plan::default() };
        assert_eq!(loads_of(&plan("find")).unwrap().len(), 1);
        assert!(loads_of(&plan("no load")).is_err());
    }
}
