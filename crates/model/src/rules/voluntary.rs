//! Preemption points in long loops, and lock breaking: the low-latency patch of 2002.

use super::{Rules, none};

pub(super) const RULES: Rules = Rules {
    name: "voluntary",
    about: "kernel code asks at preemption points whether somebody is to run, and drops its locks there",
    preemption_points_schedule: true,
    // The low-latency patch's other half: a point in a loop that holds a lock has to drop it.
    breaks_locks: true,
    ..none::RULES
};
