//! Lazy preemption (since 6.13): as full for real-time tasks, as none for the others until the tick.

use super::{Rules, full};

pub(super) const RULES: Rules = Rules {
    name: "lazy",
    about: "real-time tasks preempt kernel code at once, others at the tick or in user mode",
    fair_class_is_lazy: true,
    ..full::RULES
};
