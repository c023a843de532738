//! Preemption models: when the scheduler may run.
//!
//! A model is one file: one [`Rules`] with the reason for each of its rules.

mod both;
mod full;
mod lazy;
mod none;
mod rt;
mod voluntary;

/// A preemption model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// As on the command line and in records.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub about: &'static str,
    /// Whether `preempt_enable` calls the scheduler where the count is 0 and `need_resched` is set.
    pub preempt_enable_schedules: bool,
    /// Whether the return from an interrupt to kernel code does so.
    pub interrupt_return_schedules: bool,
    /// Whether `cond_resched` does.
    pub cond_resched_schedules: bool,
    /// Whether the voluntary model's preemption points do.
    pub preemption_points_schedule: bool,
    /// Whether long loops drop their lock where `need_resched` is set, each so many iterations.
    pub breaks_locks: bool,
    /// Whether the fair class only sets the lazy flag, at a wakeup and at the end of a slice: the next tick makes it
    /// urgent.
    pub fair_class_is_lazy: bool,
    /// Whether spin locks sleep, with priority inheritance.
    pub spin_locks_sleep: bool,
    /// Whether handlers of devices run in threads.
    pub interrupts_are_threads: bool,
    /// Whether softirqs run in threads only.
    pub softirqs_are_threads: bool,
    /// Whether a task that is preempted stays on its run queue even where it is prepared to sleep: what
    /// `PREEMPT_ACTIVE` (0x4000000) was for in 2002. All models do; the checker shows why.
    pub preempted_stay_ready: bool,
}

impl Rules {
    /// All models.
    pub const ALL: [Self; 6] =
        [none::RULES, voluntary::RULES, full::RULES, both::RULES, lazy::RULES, rt::RULES];

    /// The model of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rules| rules.name == name)
    }
}
