//! The first process of a guest in which tracers are compared with programs that do nothing at the same
//! tracepoints. Time counts instructions there, and nothing else runs. Prints a line on the console for
//! each measurement: the pattern, the tracer, and virtual ns for one operation of the pattern.
//!
//! Part of `make bench` (benches/tracer.py).

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use aya::programs::BtfTracePoint;
use aya::{Btf, Ebpf};
use wakescope_attribution::Machine;
use wakescope_core::plan::{Stimulus, Target};
use wakescope_core::preemption::Model;
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::clock;
use wakescope_sys::guest::{mount, restart};
use wakescope_sys::pipe::pipe;
use wakescope_sys::sched::{Schedule, set_schedule, set_timer_slack, this_thread};
use wakescope_sys::shared::Answers;
use wakescope_trace::watch::{Limits, Watcher};
use wakescope_trace::{Options, Tracer};

/// An empty program, as the compiler wrote it.
static NOTHING: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/nothing.bpf.o"));

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// How often all is measured, one after the other. What counts is instructions, which chance has no part in.
const ROUNDS: usize = 1;

/// The name of the process that is followed, which is that of the file that it was started from.
const COMM: &str = "exe";
/// Its cgroup, in which nobody else is.
const CGROUP: &str = "/sys/fs/cgroup/followed";

/// Nothing is so late: no wakeup leaves the kernel.
const NEVER: SpanNs = SpanNs(10_000_000_000);

/// One for each pattern.
const PROBES: u32 = 3;

/// How often the probe wakes up that is there in all measurements but that of the probe itself.
const SELDOM: SpanNs = SpanNs(100_000_000);
/// And how often in that one.
const OFTEN: SpanNs = SpanNs(500_000);

fn main() -> ExitCode {
    if std::process::id() != 1 {
        // The process that is followed: it sleeps until it is killed.
        loop {
            thread::park();
        }
    }
    match measure_all() {
        Ok(()) => say("done"),
        Err(why) => say(&format!("FAILED: {why}")),
    }
    say(&format!("cannot restart: {}", restart()));
    ExitCode::FAILURE
}

/// The console is where output goes.
#[allow(clippy::print_stdout)] // A benchmark reads it there.
fn say(text: &str) {
    println!("tracer: {text}");
}

fn measure_all() -> Result<(), Failure> {
    for (kind, target) in
        [("devtmpfs", "/dev"), ("proc", "/proc"), ("sysfs", "/sys"), ("cgroup2", "/sys/fs/cgroup")]
    {
        mount(kind, target, "").map_err(|e| format!("cannot mount {kind}: {e}"))?;
    }
    let mut sleeper = Command::new("/proc/self/exe").spawn()?;
    fs::create_dir(CGROUP)?;
    fs::write(format!("{CGROUP}/cgroup.procs"), sleeper.id().to_string())?;
    let waiter = Waiter::start()?;
    let all = [
        FollowedTasks::Probe,
        FollowedTasks::Process(sleeper.id()),
        FollowedTasks::Comm,
        FollowedTasks::Cgroup,
        FollowedTasks::All,
        FollowedTasks::Waiter(waiter.thread),
    ];
    // What is done for the first time takes longer.
    for (rank, pattern) in PATTERNS.iter().enumerate() {
        pattern.run(rank, None)?;
    }
    for round in 0..ROUNDS {
        patterns(round, "nobody", &PATTERNS, None, None)?;
        for followed in &all {
            // A probe is there only for the tracer that follows it.
            let measured =
                if *followed == FollowedTasks::Probe { &PATTERNS[..] } else { &PATTERNS[..2] };
            let name = followed.to_string();
            let waits = matches!(followed, FollowedTasks::Waiter(_)).then_some(&waiter);
            let places = match Looking::start(followed)? {
                Looking::Tracing(mut tracer) => {
                    tracer.look_at_threads();
                    tracer.begin(clock::now())?;
                    let follows = (*followed == FollowedTasks::Probe).then_some(&mut *tracer);
                    patterns(round, &name, measured, follows, waits)?;
                    places_of(tracer.finish().0.seen_with)
                }
                Looking::Watching(watcher) => {
                    patterns(round, &name, measured, None, waits)?;
                    drop(watcher);
                    ["sched_switch".to_owned()].into()
                }
            };
            say(&format!("places {name} {}", Vec::from_iter(places.clone()).join(" ")));
            let _empty = programs_that_do_nothing(&places)?;
            patterns(round, &format!("{name}-nothing"), measured, None, waits)?;
        }
    }
    sleeper.kill()?;
    Ok(())
}

/// Measures these patterns while somebody looks on, and reports it; with `waiter`, while that waits for the CPU.
fn patterns(
    round: usize,
    who: &str,
    patterns: &[Pattern],
    mut tracer: Option<&mut Tracer>,
    waiter: Option<&Waiter>,
) -> Result<(), Failure> {
    for (rank, pattern) in patterns.iter().enumerate() {
        let _waiting = waiter.map(Waiter::wait);
        let ns = pattern.run(rank, tracer.as_deref_mut())?;
        say(&format!("{pattern} {round} {who} {ns:.3}"));
    }
    Ok(())
}

/// The tracepoints that a tracer has programs at. It tells of one of each pair.
fn places_of(seen_with: Vec<String>) -> BTreeSet<String> {
    let exit = |name: &String| Some(format!("{}_exit", name.strip_suffix("_entry")?));
    let exits: Vec<String> = seen_with.iter().filter_map(exit).collect();
    seen_with.into_iter().chain(exits).collect()
}

/// The tasks whose wakeups are followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FollowedTasks {
    /// A probe's, as `explain` does.
    Probe,
    /// Those of a process that sleeps all the time, as `explain --pid` does.
    Process(u32),
    /// The same by its name, as `explain --comm` does.
    Comm,
    /// And by its cgroup, as `explain --cgroup` does.
    Cgroup,
    /// All tasks', as `watch` does.
    All,
    /// Those of a thread that waits for the CPU as long as a pattern runs, as `explain --pid` does: at each switch,
    /// the programs add up who runs meanwhile.
    Waiter(u32),
}

impl std::fmt::Display for FollowedTasks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Probe => "probe",
            Self::Process(_) => "process",
            Self::Comm => "comm",
            Self::Cgroup => "cgroup",
            Self::All => "watch",
            Self::Waiter(_) => "waiting",
        })
    }
}

/// The tracer, or the watch, that is attached while a pattern runs.
enum Looking {
    Tracing(Box<Tracer>),
    Watching(Box<Watcher>),
}

impl Looking {
    fn start(followed: &FollowedTasks) -> Result<Self, Failure> {
        let target = match *followed {
            FollowedTasks::Probe => Target::Probes,
            FollowedTasks::Process(pid) | FollowedTasks::Waiter(pid) => Target::Process { pid },
            FollowedTasks::Comm => Target::Comm { comm: COMM.into() },
            FollowedTasks::Cgroup => Target::Cgroup { path: CGROUP.into() },
            FollowedTasks::All => {
                let limits = Limits { series: 1_024, tasks: 1_024 };
                let mut watcher = Watcher::start(limits, false)?;
                // As from the second interval on: to measure each run takes as much again.
                watcher.measure_cost(false);
                return Ok(Self::Watching(Box::new(watcher)));
            }
        };
        Ok(Self::Tracing(Box::new(Tracer::start(Options {
            target,
            within_cgroup: None,
            kept_name: None,
            stimulus: Stimulus::Timer,
            probes: PROBES,
            pinned: true,
            above_ns: Some(NEVER.0),
            tail: 0.001,
            late: 0,
            model: Model::Unknown,
            idle_states: Vec::new(),
            room: 64,
            machine: Machine::default(),
            watch: None,
            sections: None,
            by: None,
        })?)))
    }
}

/// Attaches an empty program to each of `places` that this kernel has, until the result is dropped.
fn programs_that_do_nothing(places: &BTreeSet<String>) -> Result<Vec<Ebpf>, Failure> {
    let types = Btf::from_sys_fs()?;
    // Where a parser may read words of it.
    let object = NOTHING.to_vec();
    let mut attached = Vec::new();
    for place in places {
        let mut loaded = Ebpf::load(&object)?;
        let program: &mut BtfTracePoint =
            loaded.program_mut("nothing").ok_or("it is not compiled")?.try_into()?;
        program.load(place, &types).map_err(|e| format!("{place}: {e}"))?;
        program.attach()?;
        attached.push(loaded);
    }
    Ok(attached)
}

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pattern {
    /// Two threads wake each other through two pipes: two switches for each operation.
    Pipe,
    /// Many threads send many others messages, as hackbench does: an operation is a message.
    Messages,
    /// A probe sleeps and wakes up: the latency of its wakeup.
    Probe,
}

/// That of the probe comes last.
const PATTERNS: [Pattern; PROBES as usize] = [Pattern::Pipe, Pattern::Messages, Pattern::Probe];

impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Pipe => "pipe",
            Self::Messages => "messages",
            Self::Probe => "latency",
        })
    }
}

impl Pattern {
    /// Virtual ns of an operation, while `tracer` follows the probe, if there is one: its `rank`th.
    fn run(self, rank: usize, tracer: Option<&mut Tracer>) -> Result<f64, Failure> {
        let interval = if self == Self::Probe { OFTEN } else { SELDOM };
        let probe = Probe::start(interval, rank, tracer)?;
        let ns = match self {
            Self::Pipe => ping_pong(5_000),
            Self::Messages => messages(25),
            Self::Probe => {
                clock::sleep_until(clock::now().after(SpanNs(500 * OFTEN.0)))?;
                Ok(0.0)
            }
        }?;
        let latency = probe.end()?;
        Ok(if self == Self::Probe { latency } else { ns })
    }
}

#[allow(clippy::cast_precision_loss)] // Some seconds at most.
fn per_operation(began: MonoNs, operations: u32) -> f64 {
    (clock::now().0 - began.0) as f64 / f64::from(operations)
}

/// Within a real-time policy, threads of one priority take turns in one order only: whoever wakes another
/// goes on until it sleeps. Fair tasks preempt each other depending on what they ran before.
fn in_turn() -> io::Result<()> {
    set_schedule(Schedule::Fifo { priority: 50 })
}

fn ping_pong(turns: u32) -> Result<f64, Failure> {
    let other = thread::spawn(move || play(turns));
    other.join().map_err(|_| "a thread failed")?
}

fn play(turns: u32) -> Result<f64, Failure> {
    in_turn()?;
    let (mut there, mut out) = pipe()?;
    let (mut back, mut reply) = pipe()?;
    let other = thread::spawn(move || {
        let mut byte = [0];
        while there.read_exact(&mut byte).is_ok() && reply.write_all(&byte).is_ok() {}
    });
    let mut turn = |out: &mut File| -> io::Result<()> {
        out.write_all(&[1])?;
        back.read_exact(&mut [0])
    };
    // Until both know their way.
    (0..1_000).try_for_each(|_| turn(&mut out))?;
    let began = clock::now();
    (0..turns).try_for_each(|_| turn(&mut out))?;
    let ns = per_operation(began, turns);
    drop(out);
    other.join().map_err(|_| "a thread failed")?;
    Ok(ns)
}

/// A group of hackbench's: each sender sends `loops` messages to each receiver.
fn messages(loops: u32) -> Result<f64, Failure> {
    const EACH: u32 = 20;
    const SIZE: usize = 100;
    let pairs = (0..EACH).map(|_| UnixStream::pair()).collect::<io::Result<Vec<_>>>()?;
    let (outs, ins): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
    let began = clock::now();
    let receivers: Vec<_> = ins
        .into_iter()
        .map(|mut from| {
            thread::spawn(move || {
                in_turn()?;
                (0..EACH * loops).try_for_each(|_| from.read_exact(&mut [0; SIZE]))
            })
        })
        .collect();
    let senders: Vec<JoinHandle<io::Result<()>>> = (0..EACH)
        .map(|_| {
            let outs = outs.iter().map(UnixStream::try_clone).collect::<io::Result<Vec<_>>>();
            thread::spawn(move || {
                let mut outs = outs?;
                in_turn()?;
                for _ in 0..loops {
                    outs.iter_mut().try_for_each(|out| out.write_all(&[1; SIZE]))?;
                }
                Ok(())
            })
        })
        .collect();
    for thread in senders.into_iter().chain(receivers) {
        thread.join().map_err(|_| "a thread failed")??;
    }
    Ok(per_operation(began, EACH * EACH * loops))
}

/// A thread without a real-time policy. While it wants the CPU it waits for the threads of the patterns, which
/// have one.
struct Waiter {
    /// Its number.
    thread: u32,
    wants_the_cpu: Arc<AtomicBool>,
    handle: thread::Thread,
}

impl Waiter {
    fn start() -> io::Result<Self> {
        let wants_the_cpu = Arc::new(AtomicBool::new(false));
        let wants = Arc::clone(&wants_the_cpu);
        let (mut told, mut tells) = pipe()?;
        let running = thread::spawn(move || -> io::Result<()> {
            tells.write_all(&this_thread().number().to_ne_bytes())?;
            loop {
                thread::park();
                while wants.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            }
        });
        let mut number = [0; 4];
        told.read_exact(&mut number)?;
        let (thread, handle) = (u32::from_ne_bytes(number), running.thread().clone());
        Ok(Self { thread, wants_the_cpu, handle })
    }

    /// The thread wants the CPU until the result is dropped. Attaching programs would take long meanwhile, because
    /// virtual time does not skip a busy CPU.
    fn wait(&self) -> Waiting<'_> {
        self.wants_the_cpu.store(true, Ordering::Relaxed);
        self.handle.unpark();
        Waiting(self)
    }
}

struct Waiting<'w>(&'w Waiter);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.wants_the_cpu.store(false, Ordering::Relaxed);
    }
}

/// A thread that sleeps and wakes up as a probe does.
struct Probe {
    thread: JoinHandle<io::Result<f64>>,
    is_over: Arc<AtomicBool>,
}

impl Probe {
    fn start(interval: SpanNs, rank: usize, tracer: Option<&mut Tracer>) -> Result<Self, Failure> {
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let answers = tracer.as_ref().and_then(|tracer| tracer.answers(rank));
        let (mut told, mut tells) = pipe()?;
        let (mut starts, mut start) = pipe()?;
        let thread = thread::spawn(move || {
            set_schedule(Schedule::Fifo { priority: 90 })?;
            set_timer_slack(SpanNs(1))?;
            tells.write_all(&this_thread().number().to_ne_bytes())?;
            starts.read_exact(&mut [0])?;
            wake_up(interval, answers, &ends)
        });
        let mut number = [0; 4];
        told.read_exact(&mut number)?;
        if let Some(tracer) = tracer {
            tracer.follow(u32::from_ne_bytes(number))?;
        }
        start.write_all(&[0])?;
        Ok(Self { thread, is_over })
    }

    /// The mean latency of its wakeups, ns.
    fn end(self) -> Result<f64, Failure> {
        self.is_over.store(true, Ordering::Relaxed);
        Ok(self.thread.join().map_err(|_| "the probe failed")??)
    }
}

#[allow(clippy::cast_precision_loss)]
fn wake_up(interval: SpanNs, mut answers: Option<Answers>, ends: &AtomicBool) -> io::Result<f64> {
    let (mut due, mut sum, mut count) = (clock::now(), 0, 0_u32);
    while !ends.load(Ordering::Relaxed) {
        due = due.after(interval);
        clock::sleep_until(due)?;
        let woken = clock::now();
        if let Some(answers) = &mut answers {
            answers.put(due.0, woken.0);
        }
        sum += woken.0 - due.0;
        count += 1;
    }
    Ok(sum as f64 / f64::from(count.max(1)))
}
