//! `wakescope explain --pid` of a process whose threads wait for each other, and for a quota: whether what it
//! says of their waits is what the kernel counted of them.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use wakescope_core::explain::{WaitKind, Waits};
use wakescope_core::run::Run;
use wakescope_core::units::SpanNs;
use wakescope_sys::clock;
use wakescope_sys::process::terminate_child;
use wakescope_sys::sched::affinity;

use crate::workers::{Work, Workers};
use crate::{CGROUPS, PROGRAM, say};

/// How long its threads wait for each other.
const LOAD: SpanNs = SpanNs(400_000_000);
/// A fifth of a CPU.
const QUOTA: &str = "10000 50000";

/// What is followed, and the kinds of waits that it must have.
const CASES: [(&str, &[Work], &[WaitKind]); 2] = [
    (
        "switches",
        &[Work::Spins, Work::Naps, Work::Spins, Work::NapsInTime, Work::Naps],
        &[WaitKind::Woken, WaitKind::Preempted],
    ),
    ("quota", &[Work::Spins, Work::Naps], &[WaitKind::Throttled]),
];

/// Follows a process of each kind, and compares.
pub(crate) fn compare() -> Result<(), String> {
    for (name, _, kinds) in CASES {
        let why = |why| format!("{name}: {why}");
        say(&compare_case(name, kinds).map_err(why)?);
    }
    Ok(())
}

/// The process that is followed, which this program is when it is started with the name of a case. It does
/// what the next line on its input asks for, and says when that is done.
pub(crate) fn follow_orders(name: &str) {
    let (_, works, _) = CASES.into_iter().find(|case| case.0 == name).expect("a case");
    let mut workers = Workers::start(&affinity().unwrap(), works);
    let mut lines = io::stdin().lines();
    #[allow(clippy::print_stdout)] // The other process reads it there.
    let mut report = |what: &str| {
        println!("{what}");
        lines.next().unwrap().unwrap()
    };
    report("ready");
    workers.work(LOAD);
    report("done");
    workers.end();
}

fn compare_case(name: &str, kinds: &[WaitKind]) -> Result<String, String> {
    let mut process = Process::start(name)?;
    let before = process.schedstat()?;
    let explain = Explain::start(name, process.child.id())?;
    process.order()?;
    let after = process.schedstat()?;
    let waits = explain.finish()?;
    process.end()?;
    if let Some(kind) = kinds.iter().find(|&&kind| waits.of(kind).is_none()) {
        return Err(format!("no wait was {kind:?}: {waits:?}"));
    }
    let mut compared = format!("{name}: ");
    let mut sums = (0, 0);
    for (thread, after) in &after {
        let kernel = after - before[thread];
        // One that never waited is not listed.
        let listed = waits.threads.iter().find(|waits| waits.task.pid == Some(*thread));
        let (sum, run_delay) =
            listed.map_or((0, Some(0)), |waits| (waits.sum_ns, waits.run_delay_ns));
        if run_delay != Some(kernel) {
            return Err(format!("of {thread} the kernel counted {kernel} ns: {waits:?}"));
        }
        sums = (sums.0 + sum, sums.1 + kernel);
    }
    let own = waits.schedstat.clone().ok_or("nothing was compared")?;
    // By one clock both sums are the same.
    if own.run_delay_ns != sums.1 || own.known_ns(waits.begins_missed_ns) != sums.1 {
        return Err(format!("the kernel counted {} ns in all: {waits:?}", sums.1));
    }
    let rows = waits.kinds.iter().map(|row| format!("{} {}", row.count, row.kind.name()));
    compared += &rows.collect::<Vec<_>>().join(", ");
    compared += &format!(
        "; {} ns, kernel {} ns, {} of them not seen to begin; by another clock {} ns, of which {} not counted",
        own.by_its_clock_ns, sums.1, waits.begins_missed_ns, sums.0, own.not_counted_ns
    );
    Ok(compared)
}

/// A process that carries out one order.
struct Process {
    child: Child,
    orders: ChildStdin,
    lines: BufReader<ChildStdout>,
}

impl Process {
    /// Starts it, and waits until all of its threads sleep.
    fn start(name: &str) -> Result<Self, String> {
        let mut command = Command::new(PROGRAM);
        command.arg(name).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|e| format!("cannot start it: {e}"))?;
        let orders = child.stdin.take().ok_or("it has no input")?;
        let lines = BufReader::new(child.stdout.take().ok_or("it has no output")?);
        let mut process = Self { child, orders, lines };
        if name == "quota" {
            process.stop_by_quota().map_err(|e| format!("no quota: {e}"))?;
        }
        process.await_line("ready")?;
        Ok(process)
    }

    fn stop_by_quota(&self) -> io::Result<()> {
        fs::write(format!("{CGROUPS}/cgroup.subtree_control"), "+cpu")?;
        let cgroup = format!("{CGROUPS}/quota");
        fs::create_dir(&cgroup)?;
        fs::write(format!("{cgroup}/cpu.max"), QUOTA)?;
        fs::write(format!("{cgroup}/cgroup.procs"), self.child.id().to_string())
    }

    /// Has it carry out its order.
    fn order(&mut self) -> Result<(), String> {
        writeln!(self.orders).map_err(|e| e.to_string())?;
        self.await_line("done")
    }

    fn await_line(&mut self, expected: &str) -> Result<(), String> {
        let mut line = String::new();
        self.lines.read_line(&mut line).map_err(|e| e.to_string())?;
        if line.trim_end() == expected { Ok(()) } else { Err(format!("it says: {line}")) }
    }

    /// What the kernel has counted of the waits of each thread, ns, when all of them sleep.
    fn schedstat(&self) -> Result<BTreeMap<u32, u64>, String> {
        let tasks = format!("/proc/{}/task", self.child.id());
        let read = |thread: u32, file: &str| {
            fs::read_to_string(format!("{tasks}/{thread}/{file}")).map_err(|e| e.to_string())
        };
        let entries = fs::read_dir(&tasks).map_err(|e| e.to_string())?.flatten();
        let threads = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let counted = |thread: u32| {
            let sleeps =
                |stat: String| stat.rsplit_once(") ").is_some_and(|(_, s)| s.starts_with('S'));
            while !sleeps(read(thread, "stat")?) {
                rest();
            }
            let text = read(thread, "schedstat")?;
            let run_delay = text.split(' ').nth(1).and_then(|field| field.parse().ok());
            Ok((thread, run_delay.ok_or(text)?))
        };
        threads.map(counted).collect()
    }

    fn end(mut self) -> Result<(), String> {
        writeln!(self.orders).map_err(|e| e.to_string())?;
        self.child.wait().map(drop).map_err(|e| e.to_string())
    }
}

/// The command, while it runs.
struct Explain {
    child: Child,
    record: String,
}

impl Explain {
    /// Starts it, and waits until it counts.
    fn start(name: &str, pid: u32) -> Result<Self, String> {
        let folder = format!("/{name}.run");
        let mut command = Command::new(PROGRAM);
        command
            .args(["explain", "--pid", &pid.to_string(), "--duration", "1min", "--out", &folder])
            .stdout(Stdio::null());
        let child = command.spawn().map_err(|e| format!("cannot start the command: {e}"))?;
        let mut explain = Self { child, record: format!("{folder}/run.json") };
        while !explain.read().is_ok_and(|run| run.duration_ns > 0) {
            if let Some(status) = explain.child.try_wait().map_err(|e| e.to_string())? {
                return Err(format!("the command ended with {status}"));
            }
            rest();
        }
        Ok(explain)
    }

    fn read(&self) -> Result<Run, String> {
        let text = fs::read(&self.record).map_err(|e| e.to_string())?;
        Run::from_json(&text).map_err(|e| e.to_string())
    }

    /// Ends it, and takes what it says of waits.
    fn finish(mut self) -> Result<Waits, String> {
        let pid = i32::try_from(self.child.id()).map_err(|e| e.to_string())?;
        terminate_child(pid).map_err(|e| e.to_string())?;
        let status = self.child.wait().map_err(|e| e.to_string())?;
        let run = self.read()?;
        if let Some(finding) =
            run.validity.findings.iter().find(|f| f.code == "contradictory-waits")
        {
            return Err(format!("{finding:?}"));
        }
        let waits = run.explanation.and_then(|explanation| explanation.waits);
        waits.ok_or(format!("the command ended with {status}, and no waits are in its record"))
    }
}

fn rest() {
    clock::sleep_until(clock::now().after(SpanNs(5_000_000))).unwrap();
}
