//! The rules of blame, by name.

use wakescope_core::explain::Gap;

/// Makes the enum and the list of all its variants from one list.
macro_rules! rules {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// The rule that gave a stretch of time to a cause, or found that it cannot be known.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Rule {
            /// All of them, in the order in which a wakeup meets them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];
        }
    };
}

rules! {
    /// The task was still awake when it was due, and had the CPU.
    Awake,
    /// It is a probe in a guest, and was awake for far longer than it can be.
    SlowProbe,
    /// Another task kept it from going to sleep.
    KeptAwake,
    /// It ran before it was switched to for good.
    TooEarly,
    /// The CPU's own timer came and the task's was not there yet.
    NoTimerYet,
    /// An interrupt takes as long as usual to arrive.
    Delivery,
    /// Kernel code was interrupted where it enabled interrupts.
    InterruptsOff,
    /// Code on its way back from an earlier interrupt had interrupts off since that.
    WayBackBefore,
    /// Code on a short way had interrupts off for long, in a guest.
    ShortWay,
    /// The tracer measured the last section with interrupts off.
    MeasuredSection,
    /// Nothing that is known kept the interrupt out.
    LateInterrupt,
    /// The CPU slept.
    IdleExit,
    /// It slept far longer than usual, or stayed idle after it was woken.
    LateIdleExit,
    /// The handler of the wakeup's interrupt, between its marks.
    Handler,
    /// An interrupt, between its entry and its exit.
    Interrupt,
    /// The function of a timer, between its entry and its exit.
    TimerFunction,
    /// A softirq, between its entry and its exit.
    Softirq,
    /// Softirqs had ended, and the kernel left others to their thread, which it makes ready.
    SoftirqsLeft,
    /// Another CPU's call was on its way.
    RemoteCall,
    /// Another CPU's call came, and was not on its way yet when another interrupt did.
    AskedLate,
    /// The way back from an interrupt takes as long as it may.
    ReturnPath,
    /// Kernel code that was interrupted went on.
    KernelCode,
    /// A softirq had ended, and what it had interrupted went on for longer than the way back may take; or
    /// preemption was off in one of the two.
    BeneathSoftirq,
    /// The waker went on in the kernel.
    WakersCode,
    /// The waker went on.
    Waker,
    /// A task of higher priority ran.
    MoreUrgentTask,
    /// A task of the same priority was interrupted and went on.
    SamePriority,
    /// An ordinary task was interrupted, and the one that wakes is ordinary too.
    OrdinaryTask,
    /// The CPU was switched to a task that does not come first.
    OtherTask,
    /// A task ran whose priority changed meanwhile.
    ChangedRank,
    /// A task with a deadline ran, and the one that wakes has one: which is earlier is not seen.
    UnknownDeadline,
    /// A task ran while a quota may have stopped the one that wakes.
    BesideQuota,
    /// The kernel said that it held back real-time tasks, or ran nobody though one waited.
    Throttled,
    /// The kernel counted how long a quota stopped the task.
    Quota,
    /// The task had page faults.
    PageFault,
    /// The scheduler, or the way from it to the task.
    Switch,
    /// The scheduler on its way to another task.
    SwitchToAnother,
    /// The way to the task took far longer than usual, without an event.
    Stall,
    /// What was interrupted had to be left at once, and more than the way back passed.
    NotLeft,
    /// Another interrupt was on its way.
    NextArrival,
    /// An NMI, by its end and length.
    Nmi,
    /// The tracer, by its end and length.
    Tracer,
    /// The clock of stolen time.
    StealClock,
    /// The timer's interrupt took far longer than it can.
    SlowTimerInterrupt,
    /// A short function of a timer took far longer than it can.
    SlowFunction,
    /// The tracer took far longer than it can.
    SlowTracer,
    /// No tick came.
    NoTick,
    /// Interrupts were lost, but no switch: a task had the CPU, or real-time tasks were held back, but for these.
    BesideLostInterrupts,
    /// Events were lost, but not how long interrupts, softirqs and NMIs took meanwhile.
    TakenMeanwhile,
    /// Events were lost, but not how long a task ran meanwhile.
    RanMeanwhile,
    /// Events were lost, or are out of order.
    LostEvents,
    /// An event lacks its counterpart.
    Contradiction,
    /// Nothing is known of what the CPU was at.
    Unseen,
    /// Nobody ran, or somebody whom the scheduler would not choose.
    NoReason,
}

impl Rule {
    /// Why this rule leaves time unexplained; `None` if it leaves none.
    pub(crate) fn gap(self) -> Option<Gap> {
        match self {
            Self::LostEvents => Some(Gap::LostEvents),
            Self::Contradiction => Some(Gap::Contradiction),
            Self::Unseen => Some(Gap::NotSeen),
            Self::NoTimerYet | Self::KeptAwake => Some(Gap::TimerNotSet),
            Self::LateInterrupt | Self::AskedLate | Self::WayBackBefore => Some(Gap::LateInterrupt),
            Self::TooEarly | Self::Stall | Self::Switch => Some(Gap::Slow),
            Self::NotLeft => Some(Gap::NotLeft),
            Self::NoReason => Some(Gap::OtherChosen),
            _ => None,
        }
    }
}
