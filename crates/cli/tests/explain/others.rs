//! Wakeups of threads that are not the command's own.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use wakescope_core::distribution::Distribution;
use wakescope_core::explain::StepEvent;
use wakescope_core::finding::Verdict;
use wakescope_core::plan::{Stimulus, Target};
use wakescope_core::run::{Episode, Run, State};
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::clock;
use wakescope_sys::sched::this_thread;

use crate::common::bench::{Test, kill, skip};
use crate::common::episodes::EPISODES;
use crate::common::following::{await_programs, can_follow, explain, explained, start_explain};
use crate::common::measured::{assert_found, await_samples_in, record};

/// A thread of this test that sleeps again and again until a point in time.
struct Sleeper {
    id: u32,
    ends: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Slept>>,
}

/// One sleep, as the sleeper saw it.
struct Slept {
    due: MonoNs,
    woke: MonoNs,
    /// Whether it went to sleep at all: under load, its time may be over before it has.
    gave_up_cpu: bool,
}

impl Slept {
    fn late_ns(&self) -> u64 {
        self.woke.since(self.due).0
    }
}

impl Sleeper {
    fn start(name: &str) -> Self {
        const PERIOD: SpanNs = SpanNs(2_000_000);
        let ends = Arc::new(AtomicBool::new(false));
        let (tell, text) = channel();
        let until = Arc::clone(&ends);
        let sleep = move || {
            tell.send(this_thread().number()).unwrap();
            let mut all = Vec::new();
            loop {
                let before = times_asleep();
                let due = clock::now().after(PERIOD);
                clock::sleep_until(due).unwrap();
                let woke = clock::now();
                all.push(Slept { due, woke, gave_up_cpu: times_asleep() > before });
                if until.load(Ordering::Relaxed) {
                    return all;
                }
            }
        };
        let thread = std::thread::Builder::new().name(name.into()).spawn(sleep).unwrap();
        Self { id: text.recv().unwrap(), ends, thread }
    }

    fn end(self) -> Vec<Slept> {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// How often this thread has given up its CPU of its own will.
fn times_asleep() -> u64 {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap();
    let times = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    times.unwrap().trim().parse().unwrap()
}

/// Fails unless the wakeups of `run` are those of these sleeps.
#[track_caller]
fn assert_followed(run: &Run, slept: &[Slept]) {
    let explained = run.explanation.as_ref().expect("an explanation");
    let from = MonoNs(run.origin_ns);
    let to = from.after(SpanNs(run.duration_ns));
    let begun = slept.iter().filter(|slept| slept.due >= from);
    let most = begun.clone().count() as u64;
    let least = begun.filter(|slept| slept.woke < to && slept.gave_up_cpu).count() as u64;
    let all = explained.wakeups + explained.not_followed;
    // Threads of a process also sleep for each other, as for its memory map. That is not often, but
    // where it happens it is a wakeup more, or the only one of a sleep that was over at once.
    let slack = most / 20 + 2;
    assert!(least > 0 && explained.wakeups > 0, "{explained:?}: {least} to {most}");
    assert!(
        all + slack >= least && explained.wakeups <= most + slack,
        "{explained:?}: {least} to {most}"
    );
}

/// Fails if a timer of `run` woke later than these sleeps ended.
#[track_caller]
fn assert_not_later(run: &Run, slept: &[Slept]) {
    // Now and then a thread waits for a lock of its process instead, and nobody counts how long.
    let of_timer = |episode: &&Episode| {
        let first = episode.timeline.first().map(|step| &step.event);
        matches!(first, Some(StepEvent::TimerExpiry { .. }))
    };
    let latest_ns = run.worst.iter().filter(of_timer).map(|e| e.wakeup_latency_ns).max();
    // The sleeper reads the clock after it was switched to, and its timer is never early.
    let worst_ns = slept.iter().map(Slept::late_ns).max();
    assert!(latest_ns.is_some() && latest_ns <= worst_ns, "{latest_ns:?} ns, and {worst_ns:?}");
}

#[track_caller]
fn assert_of_others(run: &Run, target: &Target) {
    assert_eq!((run.plan.stimulus, &run.plan.target), (Stimulus::Any, target));
    let explanation = run.explanation.as_ref().unwrap();
    let woken = run.woken();
    assert_eq!(woken.count, explanation.wakeups);
    let table = run.components.as_ref().unwrap();
    let always = [&table.handler_duration, &table.sched_latency];
    assert!(always.iter().all(|part| part.count == explanation.wakeups), "{table:?}");
    assert!(table.irq_latency.count <= explanation.wakeups, "{table:?}");
    let parts = always.into_iter().chain([&table.irq_latency]).chain(&table.sched_duration);
    assert_eq!(parts.map(|part| part.sum_ns).sum::<u64>(), woken.sum_ns);
    for episode in &run.worst {
        let late_ns = episode.wakeup_latency_ns;
        assert_eq!(episode.blame.iter().map(|share| share.ns).sum::<u64>(), late_ns);
        assert_eq!(episode.components.map(|c| c.total_ns()), Some(late_ns));
    }
}

#[test]
fn a_thread_that_sleeps_is_woken_by_its_timer() {
    if !can_follow("a_thread_that_sleeps_is_woken_by_its_timer") {
        return;
    }
    let test = Test::new("sleeper");
    let sleeper = Sleeper::start("sleeper");
    let args = [
        "--pid",
        &sleeper.id.to_string(),
        "--duration",
        "1s",
        "--above",
        "1ns",
        "--worst",
        "1000",
        "--out",
        "run",
    ];
    let (run, text) = explained(&test, &args);
    let id = sleeper.id;
    let slept = sleeper.end();
    assert_eq!((run.state, run.duration_ns >= 1_000_000_000), (State::Complete, true));
    assert_of_others(&run, &Target::Thread { tid: id });
    assert_followed(&run, &slept);
    assert_not_later(&run, &slept);
    let table = run.components.as_ref().unwrap();
    // Now and then a timer expires in an interrupt that goes on: that waits for none of its own.
    let wakeups = table.handler_duration.count;
    assert!(positive(&table.irq_latency) > wakeups / 2, "{table:?}");
    assert!(positive(&table.handler_duration) > wakeups / 2, "{table:?}");
    assert!(text.contains(&format!("\n wakeups of thread {id}\n")), "{text}");
    assert!(text.contains("timer expiry"), "{text}");
}

fn positive(part: &Distribution) -> u64 {
    part.count - part.histogram.count_up_to(1)
}

#[test]
fn threads_are_followed_by_their_name() {
    if !can_follow("threads_are_followed_by_their_name") {
        return;
    }
    let test = Test::new("comm");
    // As long as names may be, and nobody else's.
    let name = format!("{:0>15}", std::process::id());
    let two = [Sleeper::start(&name), Sleeper::start(&name)];
    let another = Sleeper::start("not-followed");
    let (run, text) = explained(&test, &["--comm", &name, "--duration", "1s", "--out", "run"]);
    let slept: Vec<Slept> = two.into_iter().flat_map(Sleeper::end).collect();
    another.end();
    assert_of_others(&run, &Target::Comm { comm: name.clone() });
    assert_followed(&run, &slept);
    assert_not_later(&run, &slept);
    assert!(text.contains(&format!("\n wakeups of threads named {name}\n")), "{text}");
}

#[test]
fn what_was_seen_of_others_survives_kill_9() {
    if !can_follow("what_was_seen_of_others_survives_kill_9") {
        return;
    }
    let test = Test::new("checkpoint");
    let sleeper = Sleeper::start("sleeper");
    let running = start_explain(
        &test,
        &["--pid", &sleeper.id.to_string(), "--duration", "1h", "--out", "run"],
    );
    await_samples_in(&test.dir.join("run"));
    kill("KILL", &[running.pid()]);
    running.output();
    sleeper.end();
    let run = record(&test.dir.join("run"));
    assert_eq!(run.state, State::Running);
    assert_found(&run, "unfinished");
    assert!(run.summary.count > 0 && run.duration_ns > 0, "{:?}", run.summary);
    let again = explain(&test, &["run"]);
    // What is late by then depends on the machine; without any late wakeup there is nothing to explain.
    let stored = fs::read_to_string(test.dir.join("run").join(EPISODES)).unwrap_or_default();
    if stored.lines().count() > 1 {
        assert_eq!(again.code, Some(0), "{again:?}");
        return;
    }
    assert_eq!((again.code, again.stdout.as_str()), (Some(2), ""), "{again:?}");
    assert!(again.stderr.contains("this run was killed, or is still going on"), "{again:?}");
}

#[test]
fn that_nobody_was_there_to_follow_is_told() {
    if !can_follow("that_nobody_was_there_to_follow_is_told") {
        return;
    }
    let test = Test::new("nobody");
    let name = format!("none{}", std::process::id());
    let (run, text) = explained(&test, &["--comm", &name, "--duration", "10ms", "--out", "run"]);
    let found = assert_found(&run, "no-samples");
    let line = "no wakeup of the followed threads was traced within ";
    assert!(found.message.starts_with(line), "{found:?}");
    assert_eq!(run.validity.verdict, Verdict::Invalid);
    let begin = "No wakeup was seen.\n0 wakeups followed · invalid: see below\n\n traced with: ";
    assert!(text.starts_with(begin), "{text}");
}

/// A process that waits for lines and gives them back.
struct Echo {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Echo {
    fn start(test: &Test) -> Self {
        let mut cat = test.program(Path::new("cat"));
        let mut child = cat.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let to = child.stdin.take().unwrap();
        let from = BufReader::new(child.stdout.take().unwrap());
        let mut echo = Self { child, to, from };
        // From here on it does nothing but wait for the next line.
        echo.call();
        echo
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a line and waits for it; how long that took.
    fn call(&mut self) -> SpanNs {
        // Whoever has just written may still be on its way to sleep.
        std::thread::sleep(std::time::Duration::from_millis(1));
        let begin = clock::now();
        self.to.write_all(b"hello\n").unwrap();
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        assert_eq!(line, "hello\n");
        clock::now().since(begin)
    }

    /// Calls it as long as `goes_on`: how often that was, and how long it took at most.
    fn calls_while(&mut self, mut goes_on: impl FnMut() -> bool) -> (u64, u64) {
        let (mut count, mut longest_ns) = (0, 0);
        while goes_on() {
            longest_ns = longest_ns.max(self.call().0);
            count += 1;
        }
        (count, longest_ns)
    }

    /// Lets it end, by telling it that there is no more; how long that took.
    fn end(self) -> SpanNs {
        let Self { mut child, to, from } = self;
        let begin = clock::now();
        drop((to, from));
        assert!(child.wait().unwrap().success());
        clock::now().since(begin)
    }
}

/// Follows the process by `whom` while it is called: the run, how often it was called, and how long
/// a call took at most.
#[track_caller]
fn follow_calls(test: &Test, echo: &mut Echo, whom: &[&str]) -> (Run, u64, u64) {
    let args = [whom, &["--duration", "1s", "--out", "run"]].concat();
    let mut running = start_explain(test, &args);
    let (count, longest_ns) = echo.calls_while(|| !running.has_ended());
    let ended = running.output();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    (record(&test.dir.join("run")), count, longest_ns)
}

#[track_caller]
fn assert_calls(run: &Run, count: u64, longest_ns: u64) {
    let explanation = run.explanation.as_ref().unwrap();
    // Each call wakes it once, unless it was not asleep yet.
    assert!(
        explanation.wakeups > 0 && explanation.wakeups <= count,
        "{explanation:?}: {count} calls"
    );
    assert!(run.woken().max_ns.unwrap() <= longest_ns, "{:?}: {longest_ns}", run.woken().max_ns);
    // Nothing interrupted anybody to wake it: whoever wrote did. That nobody waited for an interrupt says nothing of
    // how long one takes to arrive.
    let table = run.components.as_ref().unwrap();
    assert_eq!((table.irq_latency.count, table.handler_duration.sum_ns), (0, 0), "{table:?}");
}

#[test]
fn a_process_that_reads_a_pipe_is_woken_by_who_writes() {
    if !can_follow("a_process_that_reads_a_pipe_is_woken_by_who_writes") {
        return;
    }
    let test = Test::new("pipe");
    let mut echo = Echo::start(&test);
    let pid = echo.pid();
    let whom = ["--pid", &pid.to_string(), "--above", "1ns"];
    let (run, count, longest_ns) = follow_calls(&test, &mut echo, &whom);
    echo.end();
    assert_of_others(&run, &Target::Process { pid });
    assert_calls(&run, count, longest_ns);
    let wakers = run.worst.iter().flat_map(|episode| episode.timeline.first());
    let wakers: Vec<&StepEvent> = wakers.map(|step| &step.event).collect();
    let is_by_task = |event: &&StepEvent| {
        matches!(event, StepEvent::MadeReady { by: Some(_), in_interrupt: false, .. })
    };
    assert!(!wakers.is_empty() && wakers.iter().all(is_by_task), "{wakers:?}");
}

/// A cgroup of the unified hierarchy, with nobody in it.
struct Cgroup(PathBuf);

impl Cgroup {
    fn make(name: &str) -> Result<Self, String> {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let root = fields.filter(|fields| fields.get(2) == Some(&"cgroup2")).map(|f| f[1]).next();
        let root = root.ok_or("the unified hierarchy of cgroups is not mounted")?;
        let folder = Path::new(root).join(name);
        fs::create_dir(&folder).map_err(|e| format!("no cgroup can be made in {root}: {e}"))?;
        Ok(Self(folder))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn threads_are_followed_by_their_cgroup() {
    let name = "threads_are_followed_by_their_cgroup";
    if !can_follow(name) {
        return;
    }
    let test = Test::new("cgroup");
    let cgroup = match Cgroup::make(&format!("wakescope-test-{}", std::process::id())) {
        Ok(cgroup) => cgroup,
        Err(why) => return skip(name, &why),
    };
    let (mut inside, outside) = (Echo::start(&test), Sleeper::start("outside"));
    fs::write(cgroup.0.join("cgroup.procs"), inside.pid().to_string()).unwrap();
    let folder = cgroup.0.display().to_string();
    let (run, count, longest_ns) = follow_calls(&test, &mut inside, &["--cgroup", &folder]);
    outside.end();
    inside.end();
    assert_of_others(&run, &Target::Cgroup { path: folder.clone() });
    assert_calls(&run, count, longest_ns);
}

#[test]
fn a_process_that_ends_ends_the_run() {
    if !can_follow("a_process_that_ends_ends_the_run") {
        return;
    }
    let test = Test::new("gone");
    let mut echo = Echo::start(&test);
    let pid = echo.pid().to_string();
    let running = start_explain(&test, &["--pid", &pid, "--duration", "1h", "--out", "run"]);
    await_programs(&running);
    let mut left = 300;
    let (count, longest_ns) = echo.calls_while(|| {
        left -= 1;
        left >= 0
    });
    let end = echo.end();
    let ended = running.output();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let run = record(&test.dir.join("run"));
    assert_eq!(run.state, State::Interrupted);
    let found = assert_found(&run, "interrupted");
    assert!(found.message.contains("the followed process has ended"), "{found:?}");
    assert_of_others(&run, &Target::Process { pid: pid.parse().unwrap() });
    // The last time it is woken to hear that there is no more.
    assert_calls(&run, count + 1, longest_ns.max(end.0));
}

/// Its parent is this test, which waits for it only afterwards.
#[test]
fn a_process_that_nobody_has_waited_for_yet_has_ended() {
    if !can_follow("a_process_that_nobody_has_waited_for_yet_has_ended") {
        return;
    }
    let test = Test::new("zombie");
    let Echo { mut child, to, from } = Echo::start(&test);
    let pid = child.id().to_string();
    let running = start_explain(&test, &["--pid", &pid, "--duration", "1h", "--out", "run"]);
    await_programs(&running);
    drop((to, from));
    let ended = running.output();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let found = record(&test.dir.join("run"));
    let found = assert_found(&found, "interrupted");
    assert!(found.message.contains("the followed process has ended"), "{found:?}");
    assert!(child.wait().unwrap().success());
}

#[test]
fn threads_that_come_and_go_are_followed_as_long_as_they_live() {
    if !can_follow("threads_that_come_and_go_are_followed_as_long_as_they_live") {
        return;
    }
    let test = Test::new("short");
    let name = format!("gone{}", std::process::id());
    let running = start_explain(&test, &["--comm", &name, "--duration", "1h", "--out", "run"]);
    await_programs(&running);
    // Each sleeps at least once.
    let slept: Vec<Slept> = (0..100).flat_map(|_| Sleeper::start(&name).end()).collect();
    kill("INT", &[running.pid()]);
    let explanation = running.output();
    assert_eq!((explanation.code, explanation.stderr.as_str()), (Some(0), ""), "{explanation:?}");
    let run = record(&test.dir.join("run"));
    assert_of_others(&run, &Target::Comm { comm: name.clone() });
    // To begin and to end, a thread may have to wait for others, too.
    let explanation = run.explanation.as_ref().unwrap();
    let due = slept.iter().filter(|slept| slept.due.0 >= run.origin_ns);
    let asleep = due.filter(|slept| slept.gave_up_cpu).count() as u64;
    assert!(asleep > 10 && explanation.wakeups > asleep / 2, "{explanation:?}: {asleep} sleeps");
}
