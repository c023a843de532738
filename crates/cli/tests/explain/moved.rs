//! Wakeups that wait for one CPU and are moved to another.

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::{Builder, JoinHandle};

use serde_json::Value;
use wakescope_core::explain::{Culprit, StepEvent};
use wakescope_core::run::Episode;
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::clock;
use wakescope_sys::sched::{Schedule, set_affinity, set_schedule, this_thread};

use crate::common::bench::{Test, skip};
use crate::common::episodes::EPISODES;
use crate::common::following::{can_follow, explained};
use crate::common::measured::allowed_cpus;

/// Two threads that keep a CPU each, and a third that is due meanwhile. It waits for the CPU that it ran
/// on, and is moved to the one that is free first. That is the other one: they take turns.
struct Crowd {
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    waits: u32,
    /// Who keeps each CPU.
    keepers: [u32; 2],
}

impl Crowd {
    const ROUND_NS: u64 = 20_000_000;
    /// A quarter of a round, for other tests run beside this one.
    const LONG: SpanNs = SpanNs(5_000_000);
    const SHORT: SpanNs = SpanNs(3_000_000);
    const DUE: SpanNs = SpanNs(1_000_000);
    const KEEPS: &str = "keeps-the-cpu";

    fn start(cpus: [u32; 2]) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let start = |name: &str, priority, cpus: &[u32], act: Box<dyn Fn(u64, MonoNs) + Send>| {
            let (ends, cpus) = (Arc::clone(&ends), cpus.to_vec());
            let every_round = move || {
                set_affinity(&cpus).unwrap();
                set_schedule(Schedule::Fifo { priority }).unwrap();
                while !ends.load(Ordering::Relaxed) {
                    // What of a round is over is left out.
                    let round = clock::now().0 / Self::ROUND_NS + 1;
                    act(round, MonoNs(round * Self::ROUND_NS));
                }
            };
            Builder::new().name(name.into()).spawn(every_round).unwrap()
        };
        let keep = |turn: usize| {
            let cpu = cpus[turn];
            let (tell, text) = channel();
            let keep = move |round: u64, begin: MonoNs| {
                let _ = tell.send(this_thread().number());
                let span = if round % 2 == turn as u64 { Self::SHORT } else { Self::LONG };
                clock::sleep_until(begin).unwrap();
                while clock::now() < begin.after(span) {}
            };
            (start(Self::KEEPS, 80, &[cpu], Box::new(keep)), text)
        };
        let (tell, text) = channel();
        let wait = move |_, begin: MonoNs| {
            let _ = tell.send(this_thread().number());
            clock::sleep_until(begin.after(Self::DUE)).unwrap();
        };
        let (kept, keepers) = [keep(0), keep(1)].into_iter().unzip::<_, _, Vec<_>, Vec<_>>();
        let mut threads = kept;
        threads.push(start("waits", 10, &cpus, Box::new(wait)));
        let keepers = [keepers[0].recv().unwrap(), keepers[1].recv().unwrap()];
        Self { waits: text.recv().unwrap(), ends, threads, keepers }
    }

    fn end(self) {
        self.ends.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

/// Whoever keeps the one CPU holds the wakeup up until it is moved to the other, which is free then. Who keeps that
/// did not.
#[test]
fn what_held_a_wakeup_up_is_what_ran_where_it_waited() {
    const NAME: &str = "what_held_a_wakeup_up_is_what_ran_where_it_waited";
    if !can_follow(NAME) {
        return;
    }
    let [first, second, ..] = allowed_cpus()[..] else {
        return skip(NAME, "it needs two CPUs");
    };
    if !std::thread::spawn(|| set_schedule(Schedule::Fifo { priority: 80 }).is_ok()).join().unwrap()
    {
        return skip(NAME, "no thread may have a real-time priority");
    }
    let test = Test::new("moved");
    let crowd = Crowd::start([first, second]);
    let pid = crowd.waits.to_string();
    let how = ["--duration", "1s", "--above", "500us", "--worst", "200", "--out", "run"];
    let (run, _) = explained(&test, &[&["--pid", &pid][..], &how].concat());
    let keepers = crowd.keepers;
    crowd.end();
    let moves = |episode: &Episode| {
        let steps = episode.timeline.iter();
        steps.filter(|step| matches!(step.event, StepEvent::Moved { .. })).count()
    };
    let moved: Vec<_> = run.worst.iter().filter(|episode| moves(episode) == 1).collect();
    assert!(moved.len() > 4, "{} of {:?}", moved.len(), run.worst);
    let held_most = |episode: &Episode, keeper: u32| {
        let is_his = |culprit: &Culprit| match culprit {
            Culprit::Task(task) => task.pid == Some(keeper),
            _ => false,
        };
        let shares = episode.blame.iter().filter(|share| is_his(&share.culprit));
        shares.map(|share| share.ns).sum::<u64>() * 2 > episode.wakeup_latency_ns
    };
    let there = |episode: &Episode| usize::from(episode.cpu == Some(second));
    let of_first_cpu = |e: &&&Episode| held_most(e, keepers[1 - there(e)]);
    let of_last_cpu = |e: &&&Episode| held_most(e, keepers[there(e)]);
    let right = moved.iter().filter(of_first_cpu).count();
    let wrong = moved.iter().filter(of_last_cpu).count();
    // Where this machine stood still, who keeps the last CPU may have come back before the task ran.
    assert!(right * 2 > moved.len() && wrong * 4 <= moved.len(), "{right}, {wrong} of {moved:#?}");
}

/// Something that a thread does again and again.
type Turn = Box<dyn Fn() + Send>;

/// Threads that take one turn after another, until they are ended.
struct Turns {
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Turns {
    fn start(&mut self, name: &str, turn: Turn) {
        let ends = Arc::clone(&self.ends);
        let go_on = move || {
            while !ends.load(Ordering::Relaxed) {
                turn();
            }
        };
        self.threads.push(Builder::new().name(name.into()).spawn(go_on).unwrap());
    }

    fn end(self) {
        self.ends.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

/// Who was switched from first where a wakeup waited that came on another CPU; idle does not count.
fn first_to_leave(stored: &str) -> Vec<Value> {
    let lines = stored.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let moved = lines.filter(|line| line["woken_by"]["cpu"] != line["cpu"]);
    let left = moved.filter_map(|line| {
        let mut events = line["events"].as_array()?.iter();
        events.find(|event| event["kind"] == "switch").map(|switch| switch["from"].clone())
    });
    left.filter(|from| from["pid"] != 0).collect()
}

/// A thread is moved to another CPU while it sleeps. Its timer comes on the old CPU, and it waits for the new one.
/// Nobody looked there, and who ran there has a name all the same.
#[test]
fn who_ran_where_a_wakeup_was_moved_to_has_a_name() {
    const NAME: &str = "who_ran_where_a_wakeup_was_moved_to_has_a_name";
    if !can_follow(NAME) {
        return;
    }
    let [first, second, ..] = allowed_cpus()[..] else {
        return skip(NAME, "it needs two CPUs");
    };
    let test = Test::new("moved-names");
    let mut turns = Turns { ends: Arc::default(), threads: Vec::new() };
    for cpu in [first, second] {
        let keep = move || {
            set_affinity(&[cpu]).unwrap();
            let begin = clock::now();
            while clock::now() < begin.after(Crowd::LONG) {}
        };
        turns.start("keeps-the-cpu", Box::new(keep));
    }
    let (tell, text) = channel();
    let sleep = move || {
        let _ = tell.send(this_thread().number());
        clock::sleep_until(clock::now().after(SpanNs(2_000_000))).unwrap();
    };
    turns.start("waits", Box::new(sleep));
    let pid = text.recv().unwrap().to_string();
    let sleeper = pid.clone();
    let move_it = move || {
        for cpu in [first, second] {
            let to = cpu.to_string();
            let _ = Command::new("taskset").args(["-p", "-c", &to, &sleeper]).output();
        }
    };
    turns.start("moves", Box::new(move_it));
    let how = ["--duration", "2s", "--above", "1us", "--worst", "1000", "--out", "run"];
    explained(&test, &[&["--pid", &pid][..], &how].concat());
    turns.end();
    let left = first_to_leave(&fs::read_to_string(test.dir.join("run").join(EPISODES)).unwrap());
    if left.len() < 20 {
        return skip(NAME, "no thread could be moved while it slept, as with taskset");
    }
    // One that is moved a second time without a word is known by its number only.
    let nameless = left.iter().filter(|from| from["comm"] == "").count();
    assert!(nameless * 10 <= left.len(), "{nameless} of {}: {left:?}", left.len());
}
