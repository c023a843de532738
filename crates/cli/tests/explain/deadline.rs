//! Deadline tasks are followed as others are.

use wakescope_core::explain::StepEvent;
use wakescope_core::plan::Stimulus;
use wakescope_core::run::State;

use crate::common::bench::Test;
use crate::common::deadline::admitted;
use crate::common::following::can_follow;
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
