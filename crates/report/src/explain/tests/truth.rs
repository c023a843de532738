//! What a simulation knows of its late wakeups.

use super::*;
use wakescope_core::explain::{Culprit, Phase, TrueCause, TrueShare, Truth};

fn check_truth(uncompared: u64, want: &str) {
    let mut run = serial();
    let causes = vec![
        TrueCause { cause: Cause::PreemptOff, ns: 997_000, right_ns: 997_000 },
        TrueCause { cause: Cause::Irq, ns: 3_000, right_ns: 0 },
    ];
    let truth =
        Truth { wakeups: 996, uncompared, right: 994, wrong: 2, causes, ..Truth::default() };
    run.explanation.as_mut().unwrap().truth = Some(truth);
    let shown = text(&run, PLAIN, Extent::Worst(0));
    assert!(shown.contains(want), "{shown}");
}

#[test]
fn late_wakeups_that_were_not_compared_are_counted_beside_those_that_were() {
    check_truth(
        0,
        " compared with the truth of the simulation, the largest share of 996 late wakeups: right 994, wrong
   2
 it truly was: preempt_off 99.7 %, irq 0.3 %
",
    );
    check_truth(
        4,
        " compared with the truth of the simulation, the largest share of 996 late wakeups: right 994, wrong
   2
 not compared, because too much happened while they waited: 4 of 1,000 late wakeups
 the others truly were: preempt_off 99.7 %, irq 0.3 %
",
    );
}

#[test]
fn each_wakeup_shows_what_it_truly_was() {
    let mut run = serial();
    let task = run.worst[0].blame[0].within.task.clone().unwrap();
    let share = |cause, ns, culprit| TrueShare { cause, ns, culprit, ..TrueShare::default() };
    let softirqs = (0..5).map(|at| share(Cause::Softirq, 300 - at, Culprit::softirq("RCU")));
    let delivery =
        TrueShare { phase: Some(Phase::Delivery), ..share(Cause::Irq, 410, Culprit::None) };
    let known = [share(Cause::HigherPriorityTask, 236_000, Culprit::Task(task)), delivery];
    run.worst[0].truth = known.into_iter().chain(softirqs).collect();
    let shown = text(&run, PLAIN, Extent::Worst(1));
    let want = "   it truly was: 236 µs higher_priority_task logger[231] other, 410 ns irq delivery, 300 ns softirq
     RCU, 299 ns softirq RCU, 298 ns softirq RCU, 297 ns softirq RCU, 296 ns 1 other
";
    assert!(shown.contains(want), "{shown}");
    run.worst[0].truth.clear();
    assert!(!text(&run, PLAIN, Extent::Worst(1)).contains("truly"));
}
