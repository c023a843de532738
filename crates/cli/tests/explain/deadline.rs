//! Deadline tasks are followed as others are.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use wakescope_core::explain::{Cause, StepEvent, WaitKind};
use wakescope_core::plan::Stimulus;
use wakescope_core::run::State;
use wakescope_core::units::SpanNs;
use wakescope_sys::clock;
use wakescope_sys::sched::{Schedule, set_schedule, this_thread};

use crate::common::bench::{Test, eventually};
use crate::common::deadline::admitted;
use crate::common::following::{can_follow, explained, sum_ns};
use crate::{assert_parts_add_up, assert_shares_add_up};

#[test]
fn a_deadline_task_is_followed_from_when_its_timer_is_due() {
    if !can_follow("a_deadline_task_is_followed_from_when_its_timer_is_due") {
        return;
    }
    let test = Test::new("deadline");
    let how = ["explain", "--stimulus", "deadline", "--interval", "2ms", "--runtime", "300us"];
    let many = ["--duration", "1s", "--above", "p90", "--worst", "400"];
    let (run, text) = admitted(&test, &[&how[..], &many].concat());
    assert_eq!((run.state, run.plan.stimulus), (State::Complete, Stimulus::Deadline));
    assert_parts_add_up(&run);
    assert_shares_add_up(&run);
    let explanation = run.explanation.as_ref().unwrap();
    assert!(explanation.not_followed <= explanation.wakeups / 10, "{explanation:?}");
    let timers = run.worst.iter().filter(|w| {
        let first = w.timeline.first().map(|step| &step.event);
        matches!(first, Some(StepEvent::TimerExpiry { .. }))
    });
    let explained = run.worst.iter().filter(|w| !w.blame.is_empty()).count();
    assert!(timers.count() * 2 > explained && explained > 0, "{text}");
}

/// It sleeps with its time used up, and is woken long before it gets more: nobody else keeps it waiting.
#[test]
fn a_deadline_task_that_is_woken_while_it_is_throttled_waits_for_its_next_period() {
    const NAME: &str =
        "a_deadline_task_that_is_woken_while_it_is_throttled_waits_for_its_next_period";
    if !can_follow(NAME) {
        return;
    }
    let test = Test::new("deadline-throttled");
    let ends = Arc::new(AtomicBool::new(false));
    let (tell, number) = channel();
    let until = Arc::clone(&ends);
    let thread = std::thread::spawn(move || {
        let (runtime, period) = (SpanNs(200_000), SpanNs(20_000_000));
        let schedule = Schedule::Deadline { runtime, period };
        eventually("the kernel admits a deadline task", || set_schedule(schedule).is_ok());
        tell.send(this_thread().number()).unwrap();
        while !until.load(Ordering::Relaxed) {
            let used_up = clock::now().after(SpanNs(2 * runtime.0));
            while clock::now() < used_up {}
            clock::sleep_until(clock::now().after(SpanNs(1_000_000))).unwrap();
        }
    });
    let number = number.recv().unwrap().to_string();
    let how = ["--pid", &number, "--duration", "2s", "--above", "2ms", "--worst", "100"];
    let (run, text) = explained(&test, &[&how[..], &["--out", "run"]].concat());
    ends.store(true, Ordering::Relaxed);
    thread.join().unwrap();
    // Beside others more may happen than is kept.
    let explained_ns = sum_ns(&run.worst, |share| share.cause != Cause::Unexplained);
    let throttled_ns = sum_ns(&run.worst, |share| share.cause == Cause::Throttled);
    assert!(throttled_ns > explained_ns / 2, "{throttled_ns} of {explained_ns} ns: {text}");
    let waits = run.explanation.as_ref().unwrap().waits.as_ref().unwrap();
    let throttled = waits.of(WaitKind::Throttled).unwrap();
    assert_eq!(throttled.throttled_ns, throttled.sum_ns, "{waits:?}");
}
