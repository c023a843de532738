//! No preemption in the kernel, as in 2.4 and with `preempt=none`.

use super::Rules;

pub(super) const RULES: Rules = Rules {
    name: "none",
    about: "kernel code runs until it blocks or returns to user mode",
    preempt_enable_schedules: false,
    interrupt_return_schedules: false,
    // Today's kernels do so with `preempt=none`, too. The paths of 2.4.17 have none of these.
    cond_resched_schedules: true,
    preemption_points_schedule: false,
    breaks_locks: false,
    fair_class_is_lazy: false,
    spin_locks_sleep: false,
    interrupts_are_threads: false,
    softirqs_are_threads: false,
    preempted_stay_ready: true,
};
