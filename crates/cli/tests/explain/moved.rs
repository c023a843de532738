//! Wakeups that wait for one CPU and are moved to another.

use std::fs;
use std::process::Command;

use serde_json::Value;
use wakescope_core::explain::{Culprit, StepEvent};
use wakescope_core::run::Episode;
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::clock;
use wakescope_sys::sched::Schedule;

use crate::common::bench::{Test, skip};
use crate::common::episodes::EPISODES;
use crate::common::following::{can_follow, can_follow_real_time, explained};
use crate::common::measured::allowed_cpus;
use crate::common::threads::Threads;

/// What all of them do is done in rounds of so long, nanoseconds.
const ROUND_NS: u64 = 20_000_000;
/// A quarter of a round, for other tests run beside this one.
const LONG: SpanNs = SpanNs(5_000_000);
const SHORT: SpanNs = SpanNs(3_000_000);
const DUE: SpanNs = SpanNs(1_000_000);

/// The next round, and when it begins: what of a round is over is left out.
fn next_round() -> (u64, MonoNs) {
    let round = clock::now().0 / ROUND_NS + 1;
    (round, MonoNs(round * ROUND_NS))
}

/// Two threads that keep a CPU each, and a third that is due meanwhile. It waits for the CPU that it ran
/// on, and is moved to the one that is free first. That is the other one: they take turns. With the number of the
/// third, and of who keeps each CPU.
fn crowd(cpus: [u32; 2]) -> (Threads, u32, [u32; 2]) {
    let mut threads = Threads::default();
    let mut keep = |turn: usize| {
        let fifo = Schedule::Fifo { priority: 80 };
        threads.repeat("keeps-the-cpu", &[cpus[turn]], fifo, move || {
            let (round, begin) = next_round();
            let span = if round % 2 == turn as u64 { SHORT } else { LONG };
            clock::sleep_until(begin).unwrap();
            while clock::now() < begin.after(span) {}
        })
    };
    let keepers = [keep(0), keep(1)];
    let waits = threads.repeat("waits", &cpus, Schedule::Fifo { priority: 10 }, || {
        clock::sleep_until(next_round().1.after(DUE)).unwrap();
    });
    (threads, waits, keepers)
}

/// Whoever keeps the one CPU holds the wakeup up until it is moved to the other, which is free then. Who keeps that
/// did not.
#[test]
fn what_held_a_wakeup_up_is_what_ran_where_it_waited() {
    const NAME: &str = "what_held_a_wakeup_up_is_what_ran_where_it_waited";
    if !can_follow_real_time(NAME) {
        return;
    }
    let [first, second, ..] = allowed_cpus()[..] else {
        return skip(NAME, "it needs two CPUs");
    };
    let test = Test::new("moved");
    let (threads, waits, keepers) = crowd([first, second]);
    let pid = waits.to_string();
    let how = ["--duration", "1s", "--above", "500us", "--worst", "200", "--out", "run"];
    let (run, _) = explained(&test, &[&["--pid", &pid][..], &how].concat());
    threads.end();
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
    let (mut threads, ordinary) = (Threads::default(), Schedule::Other { nice: 0 });
    for cpu in [first, second] {
        threads.repeat("keeps-the-cpu", &[cpu], ordinary, || {
            let begin = clock::now();
            while clock::now() < begin.after(LONG) {}
        });
    }
    let pid = threads.repeat("waits", &[first, second], ordinary, || {
        clock::sleep_until(clock::now().after(SpanNs(2_000_000))).unwrap();
    });
    let pid = pid.to_string();
    let sleeper = pid.clone();
    threads.repeat("moves", &[first, second], ordinary, move || {
        for cpu in [first, second] {
            let to = cpu.to_string();
            let _ = Command::new("taskset").args(["-p", "-c", &to, &sleeper]).output();
        }
    });
    let how = ["--duration", "2s", "--above", "1us", "--worst", "1000", "--out", "run"];
    explained(&test, &[&["--pid", &pid][..], &how].concat());
    threads.end();
    let left = first_to_leave(&fs::read_to_string(test.dir.join("run").join(EPISODES)).unwrap());
    if left.len() < 20 {
        return skip(NAME, "no thread could be moved while it slept, as with taskset");
    }
    // One that is moved a second time without a word is known by its number only.
    let nameless = left.iter().filter(|from| from["comm"] == "").count();
    assert!(nameless * 10 <= left.len(), "{nameless} of {}: {left:?}", left.len());
}
