//! Waits of threads that are not the command's own, against what the kernel counted of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;

use wakescope_core::explain::{
    Cause, Culprit, NamedTask, Policy, Schedstat, WaitKind, WaitRow, Waits,
};
use wakescope_core::run::Run;
use wakescope_core::units::SpanNs;
use wakescope_sys::clock;
use wakescope_sys::sched::{Schedule, set_affinity, set_schedule, this_thread};

use crate::common::bench::{Test, eventually, kill, skip};
use crate::common::following::{
    await_programs, can_follow, can_follow_real_time, cpus_alone, explained, other_cpu,
    start_explain,
};
use crate::common::measured::{allowed_cpus, assert_found, assert_not_found, record};
use crate::common::moved_sleeper::{self, MovedSleeper, check_sleep_is_told};

/// A cgroup with a quota of CPU time, removed in the end.
struct Group {
    place: PathBuf,
    /// Nanoseconds in a unit of its time of throttling.
    unit_ns: u64,
    time: &'static str,
}

impl Group {
    const PERIOD_NS: u64 = 100_000_000;

    /// With a tenth of a CPU; or why there can be none.
    fn with_a_tenth(name: &str) -> Result<Self, String> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let of_kind = |kind: &str, option: &str| {
            let found = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>()).find(|m| {
                m.len() > 3
                    && m[2] == kind
                    && (option.is_empty() || m[3].split(',').any(|o| o == option))
            });
            found
                .map(|mount| PathBuf::from(mount[1]).join(format!("{name}-{}", std::process::id())))
        };
        let make = |place: PathBuf, files: &[(&str, &str)], time, unit_ns| {
            fs::create_dir(&place).map_err(|e| format!("{}: {e}", place.display()))?;
            let group = Self { place, unit_ns, time };
            for (file, text) in files {
                fs::write(group.place.join(file), text).map_err(|e| format!("{file}: {e}"))?;
            }
            Ok(group)
        };
        if let Some(place) = of_kind("cgroup", "cpu") {
            let files = [("cpu.cfs_period_us", "100000"), ("cpu.cfs_quota_us", "10000")];
            return make(place, &files, "throttled_time ", 1);
        }
        let Some(place) = of_kind("cgroup2", "") else {
            return Err("no cgroups are mounted".into());
        };
        make(place, &[("cpu.max", "10000 100000")], "throttled_usec ", 1_000)
    }

    /// Gives its threads two CPUs.
    fn lift(&self) {
        self.set_quota("200000", "100000");
    }

    /// Gives its threads so many microseconds of each period of so many.
    fn set_quota(&self, quota: &str, period: &str) {
        let write = |file, text: &str| fs::write(self.place.join(file), text).unwrap();
        if self.place.join("cpu.max").exists() {
            return write("cpu.max", &format!("{quota} {period}"));
        }
        write("cpu.cfs_period_us", period);
        write("cpu.cfs_quota_us", quota);
    }

    fn add(&self, process: &Child) {
        self.add_process(process.id());
    }

    fn add_process(&self, pid: u32) {
        fs::write(self.place.join("cgroup.procs"), pid.to_string()).unwrap();
    }

    fn stat(&self, name: &str) -> u64 {
        let text = fs::read_to_string(self.place.join("cpu.stat")).unwrap();
        text.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().parse().unwrap()
    }

    /// How long its threads on each CPU were throttled so far, together, nanoseconds, as far as that
    /// is over.
    fn throttled_ns(&self) -> u64 {
        self.stat(self.time) * self.unit_ns
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It may take a moment until the last process has left it.
        for _ in 0..500 {
            if fs::remove_dir(&self.place).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

/// The longest that throttling may be said to have taken, nanoseconds, where the kernel counted `throttled_ns`
/// for the whole group: it does not stop the group and each of its threads at the same instant.
fn at_most(throttled_ns: u64) -> u64 {
    throttled_ns + throttled_ns / 50 + 10_000_000
}

/// A process that never sleeps; it ends with this.
struct Spinner(Child);

impl Spinner {
    fn start() -> Self {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "while :; do :; done"]).stdin(Stdio::null()).stdout(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the kernel has counted of the waits of a thread, nanoseconds: without the one that goes on.
fn run_delay_ns(thread: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{thread}/schedstat")).unwrap();
    text.split(' ').nth(1).unwrap().trim().parse().unwrap()
}

#[track_caller]
fn waits(run: &Run) -> &Waits {
    run.explanation.as_ref().and_then(|explanation| explanation.waits.as_ref()).expect("waits")
}

/// Each wait is in one sum, and the sums are those of the kernel, by the clock that it has them from.
#[track_caller]
fn assert_consistent(run: &Run) {
    assert_not_found(run, "contradictory-waits");
    let all = waits(run);
    assert_eq!(all.begun, all.ended() + all.open + all.broken, "{all:?}");
    let listed: u64 = all.threads.iter().map(|thread| thread.sum_ns).sum();
    assert_eq!(listed + all.more_threads_ns, all.sum_ns(), "{all:?}");
    let compared = all.schedstat.as_ref().expect("a comparison");
    let Schedstat { differing, sum_ns, run_delay_ns, .. } = *compared;
    assert_eq!((differing, sum_ns), (0, all.sum_ns()), "{all:?}");
    let here = compared.known_ns(all.begins_missed_ns);
    assert!(here.abs_diff(run_delay_ns) <= 100_000 + run_delay_ns / 1_000, "{all:?}");
}

/// What one of these counters has grown by, of which the run saw all but what came before and after it:
/// `outside_ns`, and a wait that was going on at either end.
#[track_caller]
fn assert_within(seen_ns: u64, grown_ns: u64, outside_ns: u64, longest_ns: u64) {
    // Both count by clocks of their own, of which one may be read a tick later.
    let slack = grown_ns / 50 + 10_000_000;
    let figures = format!("{seen_ns} of {grown_ns} ns, {outside_ns} outside, {longest_ns}");
    assert!(seen_ns <= grown_ns + slack, "{figures}");
    assert!(seen_ns + outside_ns + 2 * longest_ns + slack >= grown_ns, "{figures}");
}

#[test]
fn a_program_that_its_quota_stops_is_told_so() {
    const NAME: &str = "a_program_that_its_quota_stops_is_told_so";
    if !can_follow(NAME) {
        return;
    }
    let group = match Group::with_a_tenth("wakescope-quota") {
        Ok(group) => group,
        Err(why) => return skip(NAME, &why),
    };
    let test = Test::new("quota");
    let spinner = Spinner::start();
    group.add(&spinner.0);
    eventually("the quota stops the program", || group.stat("nr_throttled ") > 0);
    let pid = spinner.0.id();
    let before =
        (clock::now(), group.stat("nr_throttled "), group.throttled_ns(), run_delay_ns(pid));
    let args = ["--pid", &pid.to_string(), "--duration", "2s", "--out", "run"];
    let (run, text) = explained(&test, &args);
    let delay_ns = run_delay_ns(pid) - before.3;
    let throttled_ns = group.throttled_ns() - before.2;
    let times = group.stat("nr_throttled ") - before.1;
    let outside_ns = clock::now().since(before.0).0 - run.duration_ns;
    assert_consistent(&run);
    let all = waits(&run);
    let row = all.of(WaitKind::Throttled).expect("waits for the quota");
    // What was stopped on one CPU while it waited on another is counted for the group only.
    assert!(row.count >= 5 && row.count <= times + 1, "{row:?}: {times}");
    let longest_ns = all.kinds.iter().filter_map(|row| row.worst.as_ref()).map(|w| w.ns).max();
    let longest_ns = longest_ns.unwrap().max(Group::PERIOD_NS);
    let missed_ns = all.begins_missed_ns;
    assert!(all.throttled_ns() <= at_most(throttled_ns), "{all:?}");
    assert_within(all.throttled_ns() + missed_ns, throttled_ns, outside_ns, longest_ns);
    assert_within(all.sum_ns() + missed_ns, delay_ns, outside_ns, longest_ns);
    let worst = row.worst.as_ref().unwrap();
    assert_eq!((worst.cause, &worst.culprit), (Cause::Throttled, &Culprit::None), "{worst:?}");
    assert_eq!(worst.task.pid, Some(pid));
    // Beside other programs it may have to wait longer for these.
    let message = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(message.contains("Stopped by its cgroup's CPU quota for "), "{text}");
    assert!(text.contains("to raise the quota: "), "{text}");
    // A cgroup above may have a quota, too: then it is not known which it was.
    if let Some(quota) = &all.quota {
        assert!(Path::new(&quota.cgroup).ends_with(group.place.file_name().unwrap()), "{quota:?}");
        assert_eq!((quota.quota_ns, quota.period_ns), (10_000_000, Group::PERIOD_NS));
    }
}

/// Nothing of such a wait happens in the run: neither does it begin there, nor does it end.
#[test]
fn a_wait_that_fills_the_run_is_told() {
    const NAME: &str = "a_wait_that_fills_the_run_is_told";
    if !can_follow(NAME) {
        return;
    }
    let group = match Group::with_a_tenth("wakescope-throughout") {
        Ok(group) => group,
        Err(why) => return skip(NAME, &why),
    };
    group.set_quota("1000", "1000000");
    let spinner = Spinner::start();
    group.add(&spinner.0);
    eventually("the quota stops the program", || group.stat("nr_throttled ") > 0);
    let pid = spinner.0.id();
    // Once in a second it may run for a moment.
    for _ in 0..20 {
        let test = Test::new("throughout");
        let args = ["--pid", &pid.to_string(), "--duration", "200ms", "--out", "run"];
        let (run, text) = explained(&test, &args);
        let all = waits(&run);
        let open = all.longest_open.as_ref();
        if all.throughout == 0 {
            continue;
        }
        assert_not_found(&run, "no-samples");
        assert_found(&run, "open-waits");
        let open = open.expect("the wait that is not over");
        assert_eq!((all.throughout, all.begun, open.at_ns), (1, 0, 0), "{all:?}");
        assert_eq!(open.task.pid, Some(pid));
        assert!(open.ns >= 200_000_000, "{open:?}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(" was waiting for a CPU, for "), "{text}");
        assert!(words.contains(" 1 thread waited from before the run to its end, "), "{text}");
        return;
    }
    panic!("it ran in each run");
}

/// It is in another cgroup when the run ends, whose quota has never stopped it.
#[test]
fn a_quota_that_stopped_nobody_is_not_named() {
    const NAME: &str = "a_quota_that_stopped_nobody_is_not_named";
    if !can_follow(NAME) {
        return;
    }
    let groups = ["wakescope-stops", "wakescope-never-stops"].map(Group::with_a_tenth);
    let [Ok(stops), Ok(never)] = groups else {
        return skip(NAME, "two cgroups with a quota cannot be made");
    };
    let test = Test::new("moved-to-another-quota");
    let spinner = Spinner::start();
    stops.add(&spinner.0);
    eventually("the quota stops the program", || stops.stat("nr_throttled ") > 0);
    let pid = spinner.0.id().to_string();
    let args = ["--pid", &pid, "--duration", "30s", "--out", "run"];
    let running = start_explain(&test, &args);
    await_programs(&running);
    let before = stops.stat("nr_throttled ");
    eventually("it is stopped while it is followed", || stops.stat("nr_throttled ") > before + 3);
    // Moved, it may take its time.
    never.lift();
    never.add(&spinner.0);
    kill("INT", &[running.pid()]);
    let ended = running.output();
    let run = record(&test.dir.join("run"));
    let all = waits(&run);
    assert!(all.of(WaitKind::Throttled).is_some_and(|row| row.count > 0), "{all:?}");
    assert_eq!(all.quota, None, "{ended:?}");
}

/// What it waits under the other name was not missed: nobody asked for it.
#[test]
fn waits_under_another_name_are_told_apart() {
    const NAME: &str = "waits_under_another_name_are_told_apart";
    let Some(cpu) = other_cpu(NAME) else { return };
    let test = Test::new("renamed");
    let ends = Arc::new(AtomicBool::new(false));
    let (own, waker_ends) = (ends.clone(), ends.clone());
    let started = Arc::new(AtomicBool::new(false));
    // Two threads that never sleep take turns, so each waits for the other.
    let renamed =
        move |started: Arc<AtomicBool>, ends: Arc<AtomicBool>, names: [&'static str; 2]| {
            std::thread::spawn(move || {
                set_affinity(&[cpu]).unwrap();
                for name in names.iter().cycle() {
                    fs::write("/proc/thread-self/comm", name).unwrap();
                    started.store(true, Ordering::Relaxed);
                    let until = clock::now().after(SpanNs(50_000_000));
                    while clock::now() < until {}
                    if ends.load(Ordering::Relaxed) {
                        return;
                    }
                }
            })
        };
    let one = renamed(started.clone(), own, ["wakescope-rn-a", "wakescope-rn-b"]);
    let other = renamed(started.clone(), waker_ends, ["wakescope-rn-c", "wakescope-rn-c"]);
    eventually("they run", || started.load(Ordering::Relaxed));
    let (run, text) =
        explained(&test, &["--comm", "wakescope-rn-a", "--duration", "2s", "--out", "run"]);
    ends.store(true, Ordering::Relaxed);
    one.join().unwrap();
    other.join().unwrap();
    assert_consistent(&run);
    let all = waits(&run);
    assert!(all.not_followed_ns > 0, "{all:?}");
    assert!(text.contains("threads were not followed: "), "{text}");
    // A hypervisor may hide single switches; half of all waits are under the other name.
    assert!(all.begins_missed_ns < all.not_followed_ns / 2, "{all:?}");
}

/// Another program of the group uses its quota up on the same CPU, again and again.
#[test]
fn a_probe_that_its_quota_stops_is_told_so() {
    const NAME: &str = "a_probe_that_its_quota_stops_is_told_so";
    if !can_follow(NAME) {
        return;
    }
    let group = match Group::with_a_tenth("wakescope-probe") {
        Ok(group) => group,
        Err(why) => return skip(NAME, &why),
    };
    let test = Test::new("quota-of-probe");
    let cpu = allowed_cpus()[0];
    let start = move || set_affinity(&[cpu]).map(|()| Spinner::start());
    let spinner = std::thread::spawn(start).join().unwrap().unwrap();
    let args = ["--cpus", &cpu.to_string(), "--policy", "other", "--duration", "3s"];
    let running = start_explain(&test, &[&args[..], &["--above", "20ms", "--out", "run"]].concat());
    await_programs(&running);
    group.add(&spinner.0);
    group.add_process(running.pid().try_into().unwrap());
    let ended = running.output();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let run = record(&test.dir.join("run"));
    let stopped = run.causes.iter().find(|row| row.cause == Cause::Throttled).expect("a quota");
    // A tenth of each 100 ms is its quota, and what it took more than that before a late tick, of
    // the next periods: there is no longest time to be stopped but what the kernel counted.
    let throttled_ns = group.throttled_ns();
    assert!(stopped.worst_ns >= 20_000_000, "{stopped:?}");
    assert!(stopped.total_ns <= at_most(throttled_ns), "{throttled_ns}: {stopped:?}");
    let others = run.causes.iter().filter(|row| row.cause == Cause::EqualOrLowerTask);
    let others_ns: u64 = others.map(|row| row.total_ns).sum();
    assert!(stopped.total_ns > others_ns, "{:?}", run.causes);
}

#[test]
fn two_that_want_one_cpu_wait_for_each_other() {
    const NAME: &str = "two_that_want_one_cpu_wait_for_each_other";
    if !can_follow(NAME) {
        return;
    }
    let test = Test::new("both");
    let _alone = cpus_alone();
    // Children inherit the one CPU.
    let cpu = allowed_cpus()[0];
    let start = move || {
        set_affinity(&[cpu]).unwrap();
        [Spinner::start(), Spinner::start()]
    };
    let [one, _other] = std::thread::spawn(start).join().unwrap();
    let pid = one.0.id();
    let before = (clock::now(), run_delay_ns(pid));
    let args = ["--pid", &pid.to_string(), "--duration", "1s", "--out", "run"];
    let (run, _) = explained(&test, &args);
    let delay_ns = run_delay_ns(pid) - before.1;
    let outside_ns = clock::now().since(before.0).0 - run.duration_ns;
    assert_consistent(&run);
    let all = waits(&run);
    let row = all.of(WaitKind::Preempted).expect("waits for the other");
    let longest_ns = all.kinds.iter().filter_map(|row| row.worst.as_ref()).map(|w| w.ns).max();
    let longest_ns = longest_ns.unwrap().max(all.open_ns);
    assert_within(all.sum_ns() + all.begins_missed_ns, delay_ns, outside_ns, longest_ns);
    assert!(row.count > 1 && row.throttled_ns == 0, "{row:?}");
    assert_eq!(all.of(WaitKind::Migrated), None);
    assert_eq!(all.threads[0].task.pid, Some(pid));
}

/// The kernel counts that a thread waits from when it was moved while it slept in a queue.
#[test]
fn sleep_that_the_kernel_counts_as_waiting_is_told_apart() {
    const NAME: &str = "sleep_that_the_kernel_counts_as_waiting_is_told_apart";
    if !can_follow(NAME) {
        return;
    }
    check_sleep_is_told(NAME, sleep_is_told);
}

/// Whether a run tells how long the thread slept, or why there cannot be a run. No sum of waits has that sleep.
fn sleep_is_told() -> Result<bool, String> {
    let test = Test::new("asleep");
    let sleeper = MovedSleeper::start()?;
    let args = ["--comm", moved_sleeper::NAME, "--duration", "1500ms", "--out", "run"];
    let (run, text) = explained(&test, &args);
    let awake = sleeper.end();
    assert_consistent(&run);
    let all = waits(&run);
    assert!(all.sum_ns() <= awake.0, "awake for {awake}: {all:?}");
    let is_told = all.schedstat.as_ref().unwrap().asleep_ns > 0;
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words.contains(" is sleep: "), is_told, "{text}");
    Ok(is_told)
}

/// A thread of this test that takes its CPU again and again, before all others.
struct Taker {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Taker {
    const TAKES: SpanNs = SpanNs(80_000_000);

    fn start(name: &str, cpu: u32) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&ends);
        let take = move || {
            set_affinity(&[cpu]).unwrap();
            set_schedule(Schedule::Fifo { priority: 50 }).unwrap();
            while !until.load(Ordering::Relaxed) {
                clock::sleep_until(clock::now().after(Self::TAKES)).unwrap();
                let end = clock::now().after(Self::TAKES);
                while clock::now() < end {}
            }
        };
        let thread = std::thread::Builder::new().name(name.into()).spawn(take).unwrap();
        Self { ends, thread }
    }

    fn end(self) {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}

#[test]
fn the_task_that_takes_the_cpu_is_the_culprit() {
    const NAME: &str = "the_task_that_takes_the_cpu_is_the_culprit";
    if !can_follow_real_time(NAME) {
        return;
    }
    let test = Test::new("taken");
    let _alone = cpus_alone();
    let cpu = allowed_cpus()[0];
    // Only what comes first takes the CPU from this one.
    let ends = Arc::new(AtomicBool::new(false));
    let id = Arc::new(AtomicU32::new(0));
    let (until, text) = (Arc::clone(&ends), Arc::clone(&id));
    let spin = move || {
        set_affinity(&[cpu]).unwrap();
        set_schedule(Schedule::Fifo { priority: 10 }).unwrap();
        text.store(this_thread().number(), Ordering::Relaxed);
        while !until.load(Ordering::Relaxed) {}
    };
    let spinner = std::thread::spawn(spin);
    eventually("the spinner spins", || id.load(Ordering::Relaxed) != 0);
    let pid = id.load(Ordering::Relaxed);
    let name = format!("takes{}", std::process::id());
    let taker = Taker::start(&name, cpu);
    let args = ["--pid", &pid.to_string(), "--duration", "2s", "--out", "run"];
    let (run, _) = explained(&test, &args);
    ends.store(true, Ordering::Relaxed);
    spinner.join().unwrap();
    taker.end();
    assert_consistent(&run);
    let all = waits(&run);
    let row = all.of(WaitKind::Preempted).expect("waits for the other");
    let WaitRow { count, worst: Some(worst), .. } = row else { panic!("{row:?}") };
    assert!(*count > 3 && worst.ns >= Taker::TAKES.0, "{row:?}");
    // A hypervisor may take longer than it.
    if worst.cause == Cause::Steal {
        return assert!(worst.steal_ns > worst.ns / 3, "{worst:?}");
    }
    // So may an ordinary task that these two starve: a kernel with a fair server (6.12) gives such
    // tasks 5 % of the CPU, here to the tests that run beside this one.
    let is_served = run.host.rt.fair_server == Some(true);
    if let (true, Cause::EqualOrLowerTask, Culprit::Task(NamedTask { policy: Policy::Other, .. })) =
        (is_served, worst.cause, &worst.culprit)
    {
        return;
    }
    assert_eq!(worst.cause, Cause::HigherPriorityTask, "{worst:?}");
    let (policy, priority) = (Policy::Fifo, Some(50));
    let Culprit::Task(NamedTask { comm, policy: own, priority: its, .. }) = &worst.culprit else {
        panic!("{worst:?}")
    };
    assert_eq!((comm, *own, *its), (&name, policy, priority));
}

/// Threads that end before the run does keep their waits, and each new one begins with none.
#[test]
fn threads_that_have_ended_keep_their_waits() {
    if !can_follow("threads_that_have_ended_keep_their_waits") {
        return;
    }
    let test = Test::new("ended");
    let name = format!("ends{}", std::process::id());
    let ends = Arc::new(AtomicBool::new(false));
    let (until, own) = (Arc::clone(&ends), name.clone());
    let start = move || {
        let mut count = 0;
        while !until.load(Ordering::Relaxed) {
            let sleep = || clock::sleep_until(clock::now().after(SpanNs(1_000_000))).unwrap();
            std::thread::Builder::new().name(own.clone()).spawn(sleep).unwrap().join().unwrap();
            count += 1;
        }
        count
    };
    let starter = std::thread::spawn(start);
    let (run, _) = explained(&test, &["--comm", &name, "--duration", "1s", "--out", "run"]);
    ends.store(true, Ordering::Relaxed);
    let started: u64 = starter.join().unwrap();
    assert_consistent(&run);
    let all = waits(&run);
    let threads = all.threads.len() as u64 + all.more_threads;
    assert!(threads > 2 && threads <= started, "{threads} of {started}");
    let row = all.of(WaitKind::Woken).expect("waits after wakeups");
    assert!(row.count >= threads / 2, "{row:?}: {threads} threads");
    assert_eq!(all.no_room, 0);
}
