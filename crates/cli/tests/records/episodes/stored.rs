//! A stored run with episodes, as `explain` writes it.

use std::fs;

use wakescope_attribution::{Seen, account, blame, components};
use wakescope_core::distribution::Distribution;
use wakescope_core::episodes::{Attributed, Entry, Head, Line};
use wakescope_core::explain::{
    Above, Event, Interrupt, Known, Marks, Policy, Task, Wakeup, What, WokenBy,
};
use wakescope_core::run::{Episode, Run, SCHEMA, State, Thread};
use wakescope_core::units::{MonoNs, SpanNs};

use crate::common::bench::Test;
use crate::common::measured::histogram_of;

const ORIGIN: u64 = 1_000_000;

/// A run and its episodes before they are written.
pub(crate) struct Stored {
    pub(crate) run: Run,
    pub(crate) episodes: Vec<Attributed>,
}

/// A timer's wakeup, in the first part of which an interrupt of the network comes.
fn wakeup(expiry_ns: u64, late_ns: u64) -> Wakeup {
    let due = MonoNs(ORIGIN + expiry_ns);
    let at = |part: u64| due.after(SpanNs(late_ns * part / 10));
    let marks = Marks {
        due,
        irq_entry: Some(at(5)),
        irq_exit: Some(at(6)),
        sched_entry: Some(at(8)),
        switch_in: Some(at(9)),
        response: due.after(SpanNs(late_ns)),
    };
    let interrupt = || Interrupt("eth0".into());
    let events = vec![
        Event { at: at(1), what: What::IrqEntry(interrupt()) },
        Event { at: at(3), what: What::IrqExit(interrupt()) },
    ];
    let task = Task { pid: 400, comm: "wakescope/0".into(), policy: Policy::Fifo, prio: 9 };
    Wakeup { task, woken_by: WokenBy::Timer { on: 0 }, marks, events, ..Wakeup::default() }
}

/// Stores a run with four late wakeups in the folder `run`, changed by `change`. Three of them are
/// stored whole, the fourth is only part of the ranking.
pub(crate) fn store(test: &Test, change: impl FnOnce(&mut Stored)) -> Stored {
    let late = [130_000, 100_000, 80_000, 40_000];
    let wakeups: Vec<Wakeup> =
        (1..).zip(late).map(|(i, late_ns)| wakeup(i * 1_000_000, late_ns)).collect();
    let woken = Distribution {
        count: 4,
        min_ns: Some(40_000),
        max_ns: Some(130_000),
        max_at_ns: Some(0),
        sum_ns: late.iter().sum(),
        histogram: histogram_of(&late),
        stated: None,
    };
    let listed = |wakeup: &Wakeup| Episode {
        cpu: Some(0),
        expiry_ns: wakeup.marks.due.0 - ORIGIN,
        wakeup_latency_ns: components(&wakeup.marks).total_ns(),
        ..Episode::default()
    };
    let expiries = woken.clone();
    let mut run = Run {
        schema: SCHEMA.into(),
        id: "r1".into(),
        started: "2026-11-21T01:00:00Z".into(),
        duration_ns: 5_000_000,
        origin_ns: ORIGIN,
        state: State::Complete,
        threads: vec![Thread { cpu: Some(0), woken: woken.clone(), expiries, ..Thread::default() }],
        worst: wakeups.iter().map(listed).collect(),
        ..Run::default()
    };
    run.plan.interval_ns = 1_000_000;
    run.plan.cpus = vec![0];
    let (whole, short) = wakeups.split_at(3);
    let known = Known::default();
    let mut seen = Seen {
        wakeups: whole.to_vec(),
        wakeup_latency: woken,
        known: Some(known),
        records: 4,
        ..Seen::default()
    };
    for wakeup in short {
        seen.abridged.add(components(&wakeup.marks), wakeup.stolen_ns, blame(wakeup, &known));
    }
    let above = Above::Time(SpanNs(20_000));
    let accounted = account(&mut run, seen, above);
    run.explanation.as_mut().unwrap().stored_episodes = Some(accounted.episodes.len() as u64);
    run.summarize();
    let mut stored = Stored { run, episodes: accounted.episodes };
    change(&mut stored);
    let head = Head::of(&stored.run, above, accounted.known);
    let mut text = Entry::Head(Box::new(head)).text();
    for episode in &stored.episodes {
        text += &Entry::Episode(Box::new(Line::of(episode.clone(), ORIGIN))).text();
    }
    let folder = test.dir.join("run");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("run.json"), stored.run.to_json()).unwrap();
    fs::write(folder.join("episodes.jsonl"), text).unwrap();
    stored
}
