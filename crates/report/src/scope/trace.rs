//! What a CPU was at while wakeups were late, as a trace that Perfetto and Chrome's `about:tracing` show.

use std::io::{self, Write};

use serde_json::{Value, json};
use wakescope_core::scope::signals::{Signal, Signals};
use wakescope_core::scope::{Place, Scope};

use super::locks::name as name_of_lock;
use super::place;
use crate::explain::{kernel_frame, named, place as within};
use crate::style::clean;
use crate::trace::Events;

/// What tracks are called, in the order of [`Signal::track`].
const TRACKS: [&str; 8] = [
    "held up by",
    "interrupts off",
    "preemption off",
    "interrupts",
    "softirqs",
    "need for rescheduling",
    "timer set",
    "task",
];

/// The longest name of a slice.
const LONGEST: usize = 120;

/// Writes the trace of the wakeups that `scope` explains. Times are µs from the start of the run, with ns as
/// decimals.
pub fn write(scope: &Scope, signals: &[Signals], out: &mut impl Write) -> io::Result<()> {
    let name = format!("wakescope scope {} (virtual time)", clean(&scope.label, 200));
    let mut events = Events::begin(out, &name)?;
    events.metadata("thread_name", 1, "late wakeups, their components and events")?;
    for (number, name) in (2..).zip(TRACKS) {
        events.metadata("thread_name", number, name)?;
    }
    let slices = signals.iter().flat_map(|signals| &signals.slices);
    let last = slices.map(|slice| slice.what.track()).max().unwrap_or(0);
    for track in TRACKS.len()..=last {
        let name = format!("locks {}", track - TRACKS.len() + 1);
        events.metadata("thread_name", track as u64 + 2, &name)?;
    }
    // The latest comes first in a record. In a track they stand in order of time, and do not overlap.
    let mut episodes: Vec<_> = scope.episodes.iter().collect();
    episodes.sort_by_key(|episode| episode.expiry_ns);
    for episode in episodes {
        events.episode(1, episode)?;
    }
    let mut slices: Vec<(u64, u64, &Signal)> = Vec::new();
    for Signals { expiry_ns, slices: of_one, .. } in signals {
        let own = of_one.iter();
        slices.extend(
            own.map(|slice| (expiry_ns.saturating_add(slice.at_ns), slice.ns, &slice.what)),
        );
    }
    slices.sort_by_key(|(at_ns, _, signal)| (*at_ns, signal.track()));
    for (at_ns, ns, signal) in slices {
        let (name, args) = words(signal);
        events.slice(signal.track() as u64 + 2, at_ns, ns, &clean(&name, LONGEST), args)?;
    }
    events.end()
}

/// What a slice is called, and what else is known of it.
fn words(signal: &Signal) -> (String, Value) {
    match signal {
        Signal::HeldUp(share) => {
            let stack: Vec<String> =
                share.frames.iter().map(|frame| clean(&kernel_frame(frame), LONGEST)).collect();
            let args = json!({
                "cause": share.cause.name(),
                "within": clean(&within(share), LONGEST),
                "stack": stack.join("\n"),
            });
            (named(share.blamed()), args)
        }
        Signal::IrqsOff(from) | Signal::PreemptOff(from) => (since(from), json!({})),
        Signal::Interrupt(name) | Signal::Softirq(name) => (name.clone(), json!({})),
        Signal::NeedResched => ("need for rescheduling".into(), json!({})),
        Signal::Lock { kind, lock, taken, .. } => {
            let lock = lock.as_ref().map(|lock| format!(" {lock}")).unwrap_or_default();
            (
                format!("{}{lock}", name_of_lock(*kind)),
                json!({"taken": clean(&place(taken), LONGEST)}),
            )
        }
        Signal::TimerSet => ("timer set".into(), json!({})),
        Signal::Task(task, in_user) => {
            let pid = task.pid.map(|pid| format!("[{pid}]")).unwrap_or_default();
            let mode = if *in_user { "user" } else { "kernel" };
            (format!("{}{pid}", task.comm), json!({"mode": mode}))
        }
    }
}

/// Where a section began; the entry into the kernel does not stand in it.
fn since(from: &Place) -> String {
    if *from == Place::default() { "entry into the kernel".into() } else { place(from) }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use wakescope_core::explain::{Cause, Components, Culprit, Function, NamedTask, Share};
    use wakescope_core::run::Episode;
    use wakescope_core::scope::signals::Slice;

    use super::*;

    #[test]
    fn signals_stand_side_by_side() {
        let function = Function { name: "free_bulk".into(), module: None };
        let culprit = Culprit::Function(function);
        let share = Share { cause: Cause::IrqOff, ns: 900, culprit, ..Share::default() };
        let lock = Place { function: Some("lock".into()), caller: Some("free_bulk".into()) };
        let task = NamedTask { comm: "rm\u{1b}".into(), pid: Some(7), ..NamedTask::default() };
        let slice = |at_ns, ns, what| Slice { at_ns, ns, what };
        let signals = Signals {
            expiry_ns: 5_000,
            wakeup_latency_ns: 900,
            slices: vec![
                slice(0, 900, Signal::HeldUp(Box::new(share.clone()))),
                slice(0, 600, Signal::IrqsOff(lock)),
                slice(0, 900, Signal::Task(task, false)),
                slice(600, 300, Signal::IrqsOff(Place::default())),
                slice(610, 20, Signal::NeedResched),
                slice(0, 16, Signal::TimerSet),
            ],
        };
        let episode = Episode {
            expiry_ns: 5_000,
            wakeup_latency_ns: 900,
            components: Some(Components { irq_latency_ns: 900, ..Components::default() }),
            blame: vec![share],
            ..Episode::default()
        };
        let label = "6.1-cloud full find seed 1".into();
        let scope = Scope { label, episodes: vec![episode], ..Scope::default() };
        let mut out = Vec::new();
        write(&scope, &[signals], &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(serde_json::from_str::<Value>(&text).is_ok(), "{text}");
        expect![[r#"
            {"displayTimeUnit":"ns","traceEvents":[
            {"args":{"name":"wakescope scope 6.1-cloud full find seed 1 (virtual time)"},"name":"process_name","ph":"M","pid":1,"tid":0},
            {"args":{"name":"late wakeups, their components and events"},"name":"thread_name","ph":"M","pid":1,"tid":1},
            {"args":{"name":"held up by"},"name":"thread_name","ph":"M","pid":1,"tid":2},
            {"args":{"name":"interrupts off"},"name":"thread_name","ph":"M","pid":1,"tid":3},
            {"args":{"name":"preemption off"},"name":"thread_name","ph":"M","pid":1,"tid":4},
            {"args":{"name":"interrupts"},"name":"thread_name","ph":"M","pid":1,"tid":5},
            {"args":{"name":"softirqs"},"name":"thread_name","ph":"M","pid":1,"tid":6},
            {"args":{"name":"need for rescheduling"},"name":"thread_name","ph":"M","pid":1,"tid":7},
            {"args":{"name":"timer set"},"name":"thread_name","ph":"M","pid":1,"tid":8},
            {"args":{"name":"task"},"name":"thread_name","ph":"M","pid":1,"tid":9},
            {"ts":5.000,"dur":0.900,"args":{"missed":0,"wakeup_latency_ns":900},"name":"late by 900 ns","ph":"X","pid":1,"tid":1},
            {"ts":5.000,"dur":0.900,"args":{"ns":900},"name":"irq_latency","ph":"X","pid":1,"tid":1},
            {"ts":5.000,"dur":0.900,"args":{"cause":"irq_off","stack":"","within":""},"name":"interrupts off in free_bulk","ph":"X","pid":1,"tid":2},
            {"ts":5.000,"dur":0.600,"args":{},"name":"lock, called by free_bulk","ph":"X","pid":1,"tid":3},
            {"ts":5.000,"dur":0.016,"args":{},"name":"timer set","ph":"X","pid":1,"tid":8},
            {"ts":5.000,"dur":0.900,"args":{"mode":"kernel"},"name":"rm�[7]","ph":"X","pid":1,"tid":9},
            {"ts":5.600,"dur":0.300,"args":{},"name":"entry into the kernel","ph":"X","pid":1,"tid":3},
            {"ts":5.610,"dur":0.020,"args":{},"name":"need for rescheduling","ph":"X","pid":1,"tid":7}
            ]}
        "#]].assert_eq(&text);
    }
}
