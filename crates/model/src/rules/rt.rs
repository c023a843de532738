//! PREEMPT_RT: locks sleep, and handlers and softirqs are threads.

use super::{Rules, full};

pub(super) const RULES: Rules = Rules {
    name: "rt",
    about: "spin locks sleep with priority inheritance, handlers and softirqs run in threads",
    // Since 6.13 fair tasks are lazy here, too; they matter to no real-time task.
    spin_locks_sleep: true,
    interrupts_are_threads: true,
    softirqs_are_threads: true,
    ..full::RULES
};
