//! What holds a wakeup up in a guest is found.

use wakescope_core::explain::Cause;

use crate::common::disturbed::Disturbed;
use crate::common::lab::{Bench, KERNEL, Stock};

#[test]
fn a_task_of_a_higher_priority_is_found() {
    let Some(stock) = Stock::get("a_task_of_a_higher_priority_is_found") else { return };
    let fifo = Disturbed {
        machine: &[],
        kernel: KERNEL,
        preempt: "full",
        kind: "fifo",
        length_us: 300,
        // Two dozen disturbances, of which ten hold a wakeup up for so long.
        samples: 1_400,
        cause: Cause::HigherPriorityTask,
        culprit: "disturb-fifo[",
    };
    fifo.assert_found(&Bench::new(stock, "disturbed"), 5);
}
