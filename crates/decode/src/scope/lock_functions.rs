//! The kernel's functions that take and release locks, by their names.

use wakescope_core::scope::locks::{LockKind, NotSeen};

/// What a function does with the lock that is its first argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Has taken it when it returns.
    Take,
    /// Has taken it if it returns anything but 0.
    TakeIfNotZero,
    /// Has taken it if it returns 0.
    TakeIfZero,
    Release,
    /// A writer becomes a reader.
    Downgrade,
}

impl Act {
    pub(super) fn takes(self) -> bool {
        matches!(self, Self::Take | Self::TakeIfNotZero | Self::TakeIfZero)
    }

    /// How what it returns says whether it has the lock, as the plugin numbers it.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::TakeIfNotZero => 1,
            Self::TakeIfZero => 2,
            _ => 0,
        }
    }
}

/// A function.
#[derive(Clone, Copy, Debug)]
pub(super) struct LockFunction {
    pub(super) name: &'static str,
    pub(super) kind: LockKind,
    pub(super) act: Act,
    /// Kernels that have locks of this kind have it.
    expected: bool,
}

const fn always(name: &'static str, kind: LockKind, act: Act) -> LockFunction {
    LockFunction { name, kind, act, expected: true }
}

const fn some(name: &'static str, kind: LockKind, act: Act) -> LockFunction {
    LockFunction { name, kind, act, expected: false }
}

use Act::{Downgrade, Release, Take, TakeIfNotZero, TakeIfZero};
use LockKind::{
    Mutex, Read, RtMutex, RtRead, RtSpin, RtWrite, RwsemRead, RwsemWrite, Semaphore, Spin, Write,
};

/// All of them (kernel/locking, include/linux/spinlock_api_smp.h). Functions that do it by calling one of these are
/// left out, as `mutex_lock_io` and `ww_mutex_unlock`. A number of one of these is at most 255.
pub(super) const FUNCTIONS: [LockFunction; 67] = [
    always("_raw_spin_lock", Spin, Take),
    always("_raw_spin_lock_bh", Spin, Take),
    always("_raw_spin_lock_irq", Spin, Take),
    always("_raw_spin_lock_irqsave", Spin, Take),
    always("_raw_spin_trylock", Spin, TakeIfNotZero),
    always("_raw_spin_trylock_bh", Spin, TakeIfNotZero),
    always("_raw_spin_unlock", Spin, Release),
    always("_raw_spin_unlock_bh", Spin, Release),
    always("_raw_spin_unlock_irq", Spin, Release),
    always("_raw_spin_unlock_irqrestore", Spin, Release),
    always("_raw_read_lock", Read, Take),
    always("_raw_read_lock_bh", Read, Take),
    always("_raw_read_lock_irq", Read, Take),
    always("_raw_read_lock_irqsave", Read, Take),
    always("_raw_read_trylock", Read, TakeIfNotZero),
    always("_raw_read_unlock", Read, Release),
    always("_raw_read_unlock_bh", Read, Release),
    always("_raw_read_unlock_irq", Read, Release),
    always("_raw_read_unlock_irqrestore", Read, Release),
    always("_raw_write_lock", Write, Take),
    always("_raw_write_lock_bh", Write, Take),
    always("_raw_write_lock_irq", Write, Take),
    always("_raw_write_lock_irqsave", Write, Take),
    always("_raw_write_trylock", Write, TakeIfNotZero),
    always("_raw_write_unlock", Write, Release),
    always("_raw_write_unlock_bh", Write, Release),
    always("_raw_write_unlock_irq", Write, Release),
    always("_raw_write_unlock_irqrestore", Write, Release),
    always("mutex_lock", Mutex, Take),
    always("mutex_lock_interruptible", Mutex, TakeIfZero),
    always("mutex_lock_killable", Mutex, TakeIfZero),
    always("mutex_trylock", Mutex, TakeIfNotZero),
    some("ww_mutex_lock", Mutex, TakeIfZero),
    some("ww_mutex_lock_interruptible", Mutex, TakeIfZero),
    some("ww_mutex_trylock", Mutex, TakeIfNotZero),
    always("mutex_unlock", Mutex, Release),
    always("down_read", RwsemRead, Take),
    some("down_read_interruptible", RwsemRead, TakeIfZero),
    always("down_read_killable", RwsemRead, TakeIfZero),
    always("down_read_trylock", RwsemRead, TakeIfNotZero),
    always("up_read", RwsemRead, Release),
    always("down_write", RwsemWrite, Take),
    always("down_write_killable", RwsemWrite, TakeIfZero),
    always("down_write_trylock", RwsemWrite, TakeIfNotZero),
    always("up_write", RwsemWrite, Release),
    always("downgrade_write", RwsemWrite, Downgrade),
    always("rt_spin_lock", RtSpin, Take),
    always("rt_spin_trylock", RtSpin, TakeIfNotZero),
    always("rt_spin_trylock_bh", RtSpin, TakeIfNotZero),
    always("rt_spin_unlock", RtSpin, Release),
    always("rt_read_lock", RtRead, Take),
    always("rt_read_trylock", RtRead, TakeIfNotZero),
    always("rt_read_unlock", RtRead, Release),
    always("rt_write_lock", RtWrite, Take),
    always("rt_write_trylock", RtWrite, TakeIfNotZero),
    always("rt_write_unlock", RtWrite, Release),
    always("rt_mutex_lock", RtMutex, Take),
    some("rt_mutex_lock_interruptible", RtMutex, TakeIfZero),
    some("rt_mutex_lock_killable", RtMutex, TakeIfZero),
    some("rt_mutex_trylock", RtMutex, TakeIfNotZero),
    always("rt_mutex_unlock", RtMutex, Release),
    always("down", Semaphore, Take),
    some("down_interruptible", Semaphore, TakeIfZero),
    some("down_killable", Semaphore, TakeIfZero),
    some("down_trylock", Semaphore, TakeIfZero),
    some("down_timeout", Semaphore, TakeIfZero),
    always("up", Semaphore, Release),
];

/// The number of the function of this name.
pub(super) fn number_of(name: &str) -> Option<u8> {
    FUNCTIONS.iter().position(|function| function.name == name)?.try_into().ok()
}

/// Which of these `present` functions are followed, and what is not seen without the others. `knows_tasks`: sleeping
/// locks belong to tasks.
pub(super) fn followed(present: &[u8], knows_tasks: bool) -> (Vec<u8>, Vec<NotSeen>) {
    let has = |name: &str| number_of(name).is_some_and(|number| present.contains(&number));
    let is_rt = has("rt_spin_lock") || has("rt_spin_unlock");
    let (mut followed, mut not_seen) = (Vec::new(), Vec::new());
    for kind in LockKind::ALL {
        let exists = match kind {
            Read | Write => !is_rt,
            RtSpin | RtRead | RtWrite => is_rt,
            // Few use these, and kernels may be built without.
            RtMutex => has("rt_mutex_lock") || has("rt_mutex_unlock"),
            _ => true,
        };
        if !exists {
            continue;
        }
        let of_kind = || FUNCTIONS.iter().zip(0_u8..).filter(|(function, _)| function.kind == kind);
        let lacks = |act: fn(Act) -> bool| {
            let lacking = of_kind().filter(move |(function, number)| {
                function.expected && act(function.act) && !present.contains(number)
            });
            lacking.map(|(function, _)| function.name.to_owned()).collect::<Vec<_>>()
        };
        let ends = lacks(|act| !act.takes());
        let takes = lacks(Act::takes);
        let none_taken = !of_kind().any(|(f, number)| f.act.takes() && present.contains(&number));
        if !kind.spins() && !knows_tasks {
            not_seen.push(NotSeen { kind, whole: true, functions: Vec::new() });
            continue;
        }
        if !ends.is_empty() || none_taken {
            let functions = [takes, ends].concat();
            not_seen.push(NotSeen { kind, whole: true, functions });
            continue;
        }
        if !takes.is_empty() {
            not_seen.push(NotSeen { kind, whole: false, functions: takes });
        }
        followed.extend(of_kind().map(|(_, number)| number).filter(|n| present.contains(n)));
    }
    (followed, not_seen)
}
