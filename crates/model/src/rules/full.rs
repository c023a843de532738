//! Full preemption: kernel code can be left wherever no lock is held.

use super::{Rules, none};

pub(super) const RULES: Rules = Rules {
    name: "full",
    about: "kernel code is left wherever the preempt count is 0",
    // The two places where the count can become 0, or somebody may have become ready with it at 0.
    preempt_enable_schedules: true,
    interrupt_return_schedules: true,
    // There is nothing left for it to do.
    cond_resched_schedules: false,
    ..none::RULES
};
