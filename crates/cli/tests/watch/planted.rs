//! Causes of long waits, planted by hand: whatever is planted is gone with its value.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use wakescope_core::units::SpanNs;
use wakescope_sys::clock;
use wakescope_sys::sched::{
    Schedule, affinity, set_affinity, set_affinity_of, set_schedule, this_thread,
};
use wakescope_testing::copy_program;

use crate::common::bench::Test;

/// A thread that keeps its CPU busy under a name of its own, with a rest now and then: a wait is seen when it
/// ends.
pub(crate) struct Hog {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Hog {
    const WORK: SpanNs = SpanNs(100_000_000);
    const REST: SpanNs = SpanNs(20_000_000);

    /// On this CPU, scheduled so.
    pub(crate) fn start(name: &str, cpu: u32, schedule: Schedule) -> Self {
        Self::start_with(name, cpu, schedule, Self::WORK)
    }

    /// Scheduled like most programs, and busy for a moment only: woken often, however many share its CPU.
    pub(crate) fn start_sleeper(name: &str, cpu: u32) -> Self {
        Self::start_with(name, cpu, Schedule::Other { nice: 0 }, SpanNs(1_000_000))
    }

    fn start_with(name: &str, cpu: u32, schedule: Schedule, work: SpanNs) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&ends);
        let keep_busy = move || {
            set_affinity(&[cpu]).unwrap();
            set_schedule(schedule).unwrap();
            while !is_over.load(Ordering::Relaxed) {
                let until = clock::now().after(work);
                while clock::now() < until {
                    std::hint::spin_loop();
                }
                clock::sleep_until(until.after(Self::REST)).unwrap();
            }
        };
        let thread = Builder::new().name(name.into()).spawn(keep_busy).unwrap();
        Self { ends, thread: Some(thread) }
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// A thread that never sleeps, and a hog that keeps its CPU from it for a while and then moves it to another one. The hog
/// runs while it does so, and the other thread waits in the queue of that CPU.
pub(crate) struct MovedWaiter {
    /// The one that moves the other comes first: it ends before that one.
    threads: [(Arc<AtomicBool>, Option<JoinHandle<()>>); 2],
}

impl MovedWaiter {
    /// For how long the waiter is kept from the first CPU, and then has it, at a time.
    const HELD_UP: SpanNs = SpanNs(80_000_000);
    const REST: SpanNs = SpanNs(40_000_000);

    /// Threads of these names: `hog` on the CPU `from`, scheduled so.
    pub(crate) fn start(
        waiter: &str,
        hog: &str,
        schedule: Schedule,
        (from, to): (u32, u32),
    ) -> Self {
        let start = |name: &str, run: Box<dyn FnOnce(&AtomicBool) + Send>| {
            let ends = Arc::new(AtomicBool::new(false));
            let is_over = Arc::clone(&ends);
            let thread = Builder::new().name(name.into()).spawn(move || run(&is_over)).unwrap();
            (ends, Some(thread))
        };
        let (tell, told) = channel();
        let wait = move |ends: &AtomicBool| {
            tell.send(this_thread()).unwrap();
            while !ends.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        };
        let waits = start(waiter, Box::new(wait));
        let waiter = told.recv().unwrap();
        let keep_busy_and_move = move |ends: &AtomicBool| {
            set_affinity(&[from]).unwrap();
            set_schedule(schedule).unwrap();
            while !ends.load(Ordering::Relaxed) {
                set_affinity_of(waiter, &[from]).unwrap();
                clock::sleep_until(clock::now().after(Self::REST)).unwrap();
                let until = clock::now().after(Self::HELD_UP);
                while clock::now() < until {
                    std::hint::spin_loop();
                }
                set_affinity_of(waiter, &[to]).unwrap();
            }
        };
        Self { threads: [start(hog, Box::new(keep_busy_and_move)), waits] }
    }
}

impl Drop for MovedWaiter {
    fn drop(&mut self) {
        for (ends, thread) in &mut self.threads {
            ends.store(true, Ordering::Relaxed);
            thread.take().unwrap().join().unwrap();
        }
    }
}

/// A cgroup, removed in the end.
pub(crate) struct Group(PathBuf);

impl Group {
    /// A quota of 2 ms of each 200 ms.
    pub(crate) fn with_small_quota() -> Result<Self, String> {
        let older = [("cpu.cfs_period_us", "200000"), ("cpu.cfs_quota_us", "2000")];
        Self::make(("cpu.max", "2000 200000"), &older)
    }

    /// With these files: where the unified hierarchy has the controller, and in the older one.
    pub(crate) fn make(unified: (&str, &str), older: &[(&str, &str)]) -> Result<Self, String> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let place = |kind: &str, option: &str| {
            let lines = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
            let mut lines = lines.filter(|m| m.len() > 3 && m[2] == kind);
            let found =
                lines.find(|m| option.is_empty() || m[3].split(',').any(|o| o == option))?;
            Some(PathBuf::from(found[1]).join(format!("wakescope-watch-{}", std::process::id())))
        };
        let (place, files) = match (place("cgroup", "cpu"), place("cgroup2", "")) {
            (Some(place), _) => (place, older),
            (_, Some(place)) => (place, &[unified][..]),
            _ => return Err("no cgroups are mounted".into()),
        };
        fs::create_dir(&place).map_err(|e| format!("{}: {e}", place.display()))?;
        let group = Self(place);
        for (file, text) in files {
            fs::write(group.0.join(file), text).map_err(|e| format!("{file}: {e}"))?;
        }
        Ok(group)
    }

    /// A process in it that never sleeps, on this CPU and under this name.
    pub(crate) fn start_spinner(&self, test: &Test, name: &str, cpu: u32) -> Spinner {
        let program = test.dir.join(name);
        copy_program(Path::new("/bin/sh"), &program);
        let mut pinned = test.program(Path::new("taskset"));
        pinned.args(["-c", &cpu.to_string()]).arg(program).args(["-c", "while :; do :; done"]);
        let child = pinned.spawn().unwrap();
        self.add(&child);
        Spinner(child)
    }

    /// From now on nothing stops its tasks. One that used more than its quota within a system call can otherwise
    /// not end before that is paid off: a second of it in 100 s.
    pub(crate) fn lift_quota(&self) {
        let (unified, older) = (self.0.join("cpu.max"), self.0.join("cpu.cfs_quota_us"));
        if unified.exists() { fs::write(unified, "max") } else { fs::write(older, "-1") }.unwrap();
    }

    fn add(&self, child: &Child) {
        fs::write(self.0.join("cgroup.procs"), child.id().to_string()).unwrap();
    }

    /// A process in it that writes to a pipe, on this CPU and under this name. It stays in one system call, in which it
    /// sleeps and is woken again and again: nothing that it waits for is on its way to user space.
    pub(crate) fn start_writer(&self, test: &Test, name: &str, cpu: u32) -> Spinner {
        let program = test.dir.join(name);
        copy_program(Path::new("/bin/dd"), &program);
        let mut pinned = test.program(Path::new("taskset"));
        pinned.args(["-c", &cpu.to_string()]).arg(program).args(["if=/dev/zero", "bs=128M"]);
        let mut child = pinned.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut pipe = child.stdout.take().unwrap();
        let mut bytes = [0; 4096];
        pipe.read_exact(&mut bytes).unwrap();
        // From here on it writes the first block, which takes longer than any test.
        self.add(&child);
        std::thread::spawn(move || {
            // One that waits for the same CPU would wake the writer when that is free.
            let others = affinity().unwrap().into_iter().filter(|other| *other != cpu);
            let _ = set_affinity(&others.collect::<Vec<_>>());
            while pipe.read_exact(&mut bytes).is_ok() {
                clock::sleep_until(clock::now().after(SpanNs(1_000_000))).unwrap();
            }
        });
        Spinner(child)
    }
}

/// Moves a task from one CPU to another and back, until this ends.
pub(crate) fn start_mover(test: &Test, task: &Spinner, (from, to): (u32, u32)) -> Spinner {
    let pid = task.pid();
    let moves = format!(
        "while :; do taskset -pc {from} {pid}; sleep 0.3; taskset -pc {to} {pid}; sleep 0.1; done"
    );
    Spinner(
        test.program(Path::new("sh")).args(["-c", &moves]).stdout(Stdio::null()).spawn().unwrap(),
    )
}

/// A shell of this name that has a CPU as SCHED_FIFO, and children of it that are ordinary tasks. Whoever comes second
/// moves each of these to another CPU before it has run.
pub(crate) fn start_parent(test: &Test, name: &str, (from, to): (u32, u32)) -> (Spinner, Spinner) {
    let program = test.dir.join(name);
    copy_program(Path::new("/bin/sh"), &program);
    let spin = "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done";
    let script = format!("while :; do true & child=$!; {spin}; echo $child; {spin}; wait; done");
    let mut parent = test.program(Path::new("chrt"));
    parent.args(["-R", "-f", "7", "taskset", "-c", &from.to_string()]).arg(program);
    let mut parent = parent.args(["-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
    let moves = format!("while read child; do taskset -pc {to} $child; done");
    let mut mover = test.program(Path::new("taskset"));
    mover.args(["-c", &to.to_string(), "sh", "-c", &moves]).stdin(parent.stdout.take().unwrap());
    let mover = mover.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    (Spinner(parent), Spinner(mover))
}

/// A shell called `parent` that executes, again and again, a program of this name. Each is a SCHED_FIFO task that keeps
/// its CPU until it ends. If it `begins_ordinary`, it makes itself one in its first turn.
pub(crate) fn start_executor(
    test: &Test,
    (parent, name): (&str, &str),
    cpu: u32,
    begins_ordinary: bool,
) -> Spinner {
    for copy in [parent, name] {
        copy_program(Path::new("/bin/sh"), &test.dir.join(copy));
    }
    let real_time = ["chrt", "-f", "7"];
    let [first, second] =
        if begins_ordinary { [&[][..], &real_time] } else { [&real_time, &[][..]] };
    let program = test.dir.join(name);
    let spin =
        format!("{} -c 'i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done'", program.display());
    let script = format!("while :; do {} {spin}; sleep 0.05; done", second.join(" "));
    let mut shell = test.program(Path::new("taskset"));
    shell.args(["-c", &cpu.to_string()]).args(first).arg(test.dir.join(parent));
    Spinner(shell.args(["-c", &script]).spawn().unwrap())
}

/// A process that ends with this.
pub(crate) struct Spinner(Child);

impl Spinner {
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It may take a moment until the last process has left it.
        for _ in 0..500 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

/// One at a time: the longest waits of a CPU are those of whoever keeps it from others for longest.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The CPU on which tasks wait for each other.
pub(crate) fn cpu() -> u32 {
    *affinity().unwrap().last().unwrap()
}
