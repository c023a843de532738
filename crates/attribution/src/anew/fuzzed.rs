//! Damaged episodes: refused by their lines, or attributed without a panic.

use wakescope_core::budget::Budget;
use wakescope_core::episodes::{Entry, Head, Line, SCHEMA, read};
use wakescope_core::explain::{
    Context, Event, Frame, GivenUp, Mode, Policy, Share, Task, Wakeup, What, WokenBy,
};
use wakescope_core::units::MonoNs;
use wakescope_testing::fuzz_fewer;

use super::tests::{run, some};
use super::*;
use crate::{Seen, account};

/// A file with all that an episode can have.
fn seed() -> (Run, Vec<u8>) {
    let (mut whole, in_short) = some();
    let task = |pid, prio| Task { pid, comm: "rm".into(), policy: Policy::Fifo, prio };
    let stack =
        || vec![Frame::in_function("shmem_undo_range", 434), Frame::in_function("evict", 1)];
    let first = &mut whole[0];
    let due = first.marks.due;
    let more = [
        What::Steal(5),
        What::TimerEntry("hrtimer_wakeup".into(), 2),
        What::TimerExit,
        What::SoftirqEntry(3),
        What::SoftirqExit(3),
        What::SoftirqsPending,
        What::Nmi("perf".into(), 700),
        What::Tracer(90),
        What::ContentionBegin,
        What::ContentionEnd,
        What::Deboost(task(7, 4)),
        What::Moved { from: 0, to: 1 },
        What::SchedEntry,
        What::Switch { from: task(7, 120), to: task(10, 9) },
        What::Steal(9_000),
    ];
    let events = (1..).zip(more).map(|(i, what)| Event { at: MonoNs(due.0 + 7_000 * i), what });
    *first = Wakeup {
        task: task(10, 9),
        interrupted: Some(Context {
            task: task(7, 120),
            mode: Mode::Kernel,
            preempt_depth: Some(1),
            preemptible: Some(true),
            stack: stack(),
            ..Context::default()
        }),
        events: events.collect(),
        given_up: Some(GivenUp { pid: 7, stack: stack(), user_stack: Vec::new() }),
        page_faults: 2,
        irqs_off: Some((MonoNs(due.0 - 400), MonoNs(due.0 - 200))),
        ..first.clone()
    };
    whole[1].woken_by = WokenBy::Waker { task: task(8, 120), on: 1, in_interrupt: true };
    let (run, episodes) = run(&whole, &in_short);
    let head = Head { schema: SCHEMA.into(), origin_ns: run.origin_ns, ..Head::default() };
    let mut text = Entry::Head(Box::new(head)).text();
    for episode in episodes {
        text += &Entry::Episode(Box::new(Line::of(episode, run.origin_ns))).text();
    }
    (run, text.into_bytes())
}

#[test]
fn fuzz_episodes() {
    let (run, whole) = seed();
    fuzz_fewer("episodes", 4, &[whole], |bytes| {
        let budget = Budget::of(bytes.len() as u64);
        let mut reattribution = Reattribution::of(&run, None);
        let mut seen = Seen { wakeup_latency: run.woken(), ..Seen::default() };
        let ended = read(bytes, |_, line| {
            let Ok((head, episode)) = line else { return Ok(()) };
            seen.wakeups.push(episode.wakeup.clone());
            seen.known = Some(head.known);
            reattribution.add(episode, &head.known, &budget)
        });
        if ended.unwrap().is_err() {
            return;
        }
        let mut again = run.clone();
        reattribution.finish(&mut again, 0);
        let mut killed = run.clone();
        killed.worst.clear();
        for episode in account(&mut killed, seen, Default::default()).episodes {
            let shares = episode.blame.iter().map(|share: &Share| share.ns);
            assert_eq!(shares.sum::<u64>(), episode.wakeup_latency_ns());
        }
    });
}
