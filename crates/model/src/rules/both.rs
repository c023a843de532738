//! Full preemption, and lock breaking where a lock is held for long: both patches of 2002 together.

use super::{Rules, full};

pub(super) const RULES: Rules = Rules {
    name: "both",
    about: "kernel code is left wherever the preempt count is 0, and long loops drop their locks",
    breaks_locks: true,
    ..full::RULES
};
