//! What a simulation knows of its late wakeups.

use super::*;
use wakescope_core::explain::{TrueCause, Truth};

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
