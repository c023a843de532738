//! Wakeups that wait for one CPU and are moved to another.

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::{Builder, JoinHandle};

use serde_json::Value;
use wakescope_core::explain::{Culprit, Evidence, StepEvent};
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
            let keep = move |round: u64, begin: MonoNs| {
                let span = if round % 2 == turn as u64 { Self::SHORT } else { Self::LONG };
                clock::sleep_until(begin).unwrap();
                while clock::now() < begin.after(span) {}
            };
            start(Self::KEEPS, 80, &[cpu], Box::new(keep))
        };
        let (tell, text) = channel();
        let wait = move |_, begin: MonoNs| {
            let _ = tell.send(this_thread().number());
            clock::sleep_until(begin.after(Self::DUE)).unwrap();
        };
        let threads = vec![keep(0), keep(1), start("waits", 10, &cpus, Box::new(wait))];
        Self { waits: text.recv().unwrap(), ends, threads }
    }

    fn end(self) {
        self.ends.store(true, Ordering::Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

/// Of the wakeup the record has what the second CPU did. That is no reason to have waited for the first
/// one, whoever ran there.
#[test]
fn what_ran_on_another_cpu_is_not_known_to_have_held_a_wakeup_up() {
    const NAME: &str = "what_ran_on_another_cpu_is_not_known_to_have_held_a_wakeup_up";
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
    crowd.end();
    let lacks = |e: &&Episode| {
        let mut events = e.timeline.iter().map(|step| &step.event);
        events.any(|event| matches!(event, StepEvent::Missing { .. }))
    };
    let moved: Vec<_> = run.worst.iter().filter(lacks).collect();
    assert!(moved.len() > 4, "{} of {:?}", moved.len(), run.worst);
    for episode in moved {
        let is_of_crowd = |culprit: &Culprit| match culprit {
            Culprit::Task(task) => task.comm == Crowd::KEEPS,
            _ => false,
        };
        let mut shares = episode.blame.iter().filter(|share| share.evidence != Evidence::Bound);
        assert!(shares.all(|share| !is_of_crowd(&share.culprit)), "{episode:#?}");
    }
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
