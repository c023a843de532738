//! The first process of a guest in which `wakescope watch --audit` runs beside tasks whose waits are known, and
//! `wakescope explain --pid` follows some. It says on the console whether the figures are those of the kernel.
//!
//! Part of `make test-lab`: the whole command is too large for what guests of the lab run otherwise.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use wakescope_core::units::SpanNs;
use wakescope_core::watch::Window;
use wakescope_sys::guest::{mount, restart};
use wakescope_sys::process::terminate_child;
use wakescope_sys::sched::affinity;
use workers::{Work, Workers};

mod explained;
#[path = "../../tests/watch/workers.rs"]
mod workers;

/// This program, as the guest has it.
const PROGRAM: &str = "/init";
/// The cgroup of all that runs here.
const CGROUP: &str = "/load";
/// Where all cgroups are.
const CGROUPS: &str = "/sys/fs/cgroup";
/// How long tasks wait for each other.
const LOAD: SpanNs = SpanNs(500_000_000);
const WORKS: [Work; 5] = [Work::Spins, Work::Naps, Work::Spins, Work::NapsInTime, Work::Naps];

fn main() -> ExitCode {
    if std::process::id() != 1 {
        return match std::env::args().nth(1).as_deref() {
            Some("nothing") => ExitCode::SUCCESS,
            Some(case @ ("switches" | "quota")) => {
                explained::follow_orders(case);
                ExitCode::SUCCESS
            }
            _ => wakescope_cli::main(),
        };
    }
    match observed().and_then(|()| explained::compare()) {
        Ok(()) => say("all equal"),
        Err(why) => say(&format!("FAILED: {why}")),
    }
    say(&format!("cannot restart: {}", restart()));
    ExitCode::FAILURE
}

/// The console is where output goes.
#[allow(clippy::print_stdout)] // A test reads it there.
fn say(text: &str) {
    println!("watch: {text}");
}

/// Watches tasks that wait for each other, and processes that come and go, and compares.
fn observed() -> Result<(), String> {
    make_ready()?;
    let mut workers = Workers::start(&affinity().map_err(|e| e.to_string())?, &WORKS);
    let mut watch = Watch::start()?;
    let is_over = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&is_over);
    let starter = std::thread::spawn(move || {
        while !ends.load(Ordering::Relaxed) {
            Command::new(PROGRAM).arg("nothing").status().unwrap();
        }
    });
    workers.work(LOAD);
    is_over.store(true, Ordering::Relaxed);
    starter.join().map_err(|_| "no process could be started")?;
    watch.finish()?;
    say(&workers.compare(&watch.windows)?);
    let judged = judge(&watch.windows, workers.count());
    workers.end();
    judged
}

fn make_ready() -> Result<(), String> {
    for (kind, target) in
        [("devtmpfs", "/dev"), ("proc", "/proc"), ("sysfs", "/sys"), ("cgroup2", CGROUPS)]
    {
        mount(kind, target, "").map_err(|e| format!("cannot mount {kind}: {e}"))?;
    }
    let cgroup = format!("{CGROUPS}{CGROUP}");
    let moved = fs::create_dir(&cgroup).and_then(|()| fs::write(cgroup + "/cgroup.procs", "1"));
    moved.map_err(|e| format!("cannot move into {CGROUP}: {e}"))
}

/// The command, while it runs.
struct Watch {
    child: Child,
    lines: BufReader<ChildStdout>,
    windows: Vec<Window>,
}

impl Watch {
    /// Starts it, and waits for its first window: from then on it sees all.
    fn start() -> Result<Self, String> {
        let mut command = Command::new(PROGRAM);
        command.args(["watch", "--audit", "--json", "--interval", "200ms"]).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|e| format!("cannot start the command: {e}"))?;
        let mut lines = BufReader::new(child.stdout.take().ok_or("it has no output")?);
        let mut line = String::new();
        lines.read_line(&mut line).map_err(|e| e.to_string())?;
        Ok(Self { child, lines, windows: vec![window(&line)?] })
    }

    /// Ends it, and takes all its windows.
    fn finish(&mut self) -> Result<(), String> {
        let pid = i32::try_from(self.child.id()).map_err(|e| e.to_string())?;
        terminate_child(pid).map_err(|e| e.to_string())?;
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).map_err(|e| e.to_string())?;
        let status = self.child.wait().map_err(|e| e.to_string())?;
        if !status.success() {
            return Err(format!("the command ended with {status}"));
        }
        for line in rest.lines() {
            self.windows.push(window(line)?);
        }
        Ok(())
    }
}

fn window(line: &str) -> Result<Window, String> {
    serde_json::from_str(line).map_err(|e| format!("this is no window: {e}: {line}"))
}

/// Whether what windows say of themselves is as it should be.
fn judge(windows: &[Window], workers: u64) -> Result<(), String> {
    let sum = |of: &dyn Fn(&Window) -> u64| windows.iter().map(of).sum::<u64>();
    let audit = windows.last().and_then(|window| window.audit).unwrap_or_default();
    let series = windows.iter().flat_map(|window| &window.series);
    let not_measured = windows.iter().rev().find_map(|window| window.episodes.as_ref());
    say(&format!("of long waits {:?}", not_measured.map(|episodes| episodes.not_measured)));
    let in_place = series.filter(|series| series.cgroup.as_deref() == Some(CGROUP)).count();
    say(&format!(
        "{} switches, {} moved, {} caught up, {} missed, {} unstamped, {} first; {audit:?}",
        sum(&|w| w.cpus.iter().map(|cpu| cpu.switches).sum()),
        sum(&|w| w.moved.count),
        sum(&|w| w.left_out.caught_up),
        sum(&|w| w.left_out.missed),
        sum(&|w| w.left_out.unstamped),
        sum(&|w| w.left_out.first),
    ));
    for (what, count) in [
        ("discarded", sum(&|w| w.left_out.discarded)),
        ("untracked", sum(&|w| w.left_out.untracked)),
        ("contradicted", sum(&|w| w.left_out.contradicted)),
        ("differing", sum(&|w| w.audit.map_or(1, |audit| audit.differing))),
        ("too few were compared", u64::from(audit.equal < workers)),
        ("no series has its cgroup", u64::from(in_place == 0)),
    ] {
        if count > 0 {
            return Err(format!("{what}: {count}"));
        }
    }
    Ok(())
}
