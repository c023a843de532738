//! What programs and this crate share: the layouts of bpf/shared.h.

use aya::Pod;

/// Frames of a stack.
pub(crate) const FRAMES: usize = 32;
/// Frames of a program's own stack.
pub(crate) const USER_FRAMES: usize = 16;
/// Events that leave the kernel with a wakeup that saw few.
pub(crate) const EVENTS: usize = 64;
/// Those that leave it with one that saw many.
pub(crate) const RING: usize = 256;
/// Bytes of the buffer of late wakeups for each CPU.
pub(crate) const RECORDS_PER_CPU: u32 = 1 << 21;
/// Buckets of a histogram: those of the scale of `wakescope_core::histogram`, up to 2^40 ns.
pub(crate) const BUCKETS: usize = 32 << 9;
/// Pieces of a stack that are copied, and bytes of each.
pub(crate) const PIECES: usize = 16;
pub(crate) const PIECE: usize = 256;
/// Bytes of code before a place.
pub(crate) const CODE: usize = 16;
/// Components, their sum, and the same without stolen time.
pub(crate) const COMPONENTS: usize = 6;
/// The wakeup latency, and the same without stolen time.
pub(crate) const WAKEUP_LATENCY: usize = 4;
pub(crate) const NET_OF_STEAL: usize = 5;
/// Numbers of interrupts from here on are those of vectors that have no line.
pub(crate) const NO_LINE: u32 = 1 << 31;
/// The stimulus of a wakeup that was due before its thread slept.
pub(crate) const AWAKE: u32 = 4;
/// The number of NMIs.
pub(crate) const AN_NMI: u32 = NO_LINE + 0x100;
/// Numbers from here on are those of softirqs.
pub(crate) const A_SOFTIRQ: u32 = NO_LINE + 0x200;
/// Arrivals of an interrupt that are looked back upon.
pub(crate) const ARRIVALS: usize = 8;
/// Lengths of windows of time.
pub(crate) const WINDOWS: usize = 8;

/// Kinds of sections.
pub(crate) const SECTION_KINDS: usize = 4;
/// Pairs of places that a CPU remembers for each kind of section.
pub(crate) const SECTION_SLOTS: usize = 512;

/// The length of the windows of this rank, nanoseconds.
pub(crate) const fn window_ns(rank: usize) -> u64 {
    1 << (14 + 2 * rank)
}

/// What an event is.
pub(crate) mod kind {
    pub(crate) const IRQ_ENTRY: u32 = 1;
    pub(crate) const IRQ_EXIT: u32 = 2;
    pub(crate) const TIMER_ENTRY: u32 = 3;
    pub(crate) const TIMER_EXIT: u32 = 4;
    pub(crate) const SOFTIRQ_ENTRY: u32 = 5;
    pub(crate) const SOFTIRQ_EXIT: u32 = 6;
    pub(crate) const NMI: u32 = 7;
    pub(crate) const SWITCH: u32 = 8;
    pub(crate) const SCHED_ENTRY: u32 = 9;
    pub(crate) const CONTENTION_BEGIN: u32 = 10;
    pub(crate) const CONTENTION_END: u32 = 11;
    pub(crate) const TRACER: u32 = 12;
}

/// See `struct event`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Event {
    pub(crate) at: u64,
    pub(crate) steal: u64,
    pub(crate) value: u64,
    pub(crate) address: u64,
    pub(crate) kind: u32,
    pub(crate) number: u32,
    pub(crate) prio: i32,
    pub(crate) policy: u32,
    pub(crate) name: [u8; 16],
}

/// See `struct task`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Task {
    pub(crate) pid: u32,
    pub(crate) prio: i32,
    pub(crate) policy: u32,
    pub(crate) pad: u32,
    pub(crate) comm: [u8; 16],
}

/// See `struct wakeup`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Wakeup {
    pub(crate) due: u64,
    pub(crate) irq_entry: u64,
    pub(crate) woken: u64,
    pub(crate) irq_exit: u64,
    pub(crate) sched_entry: u64,
    pub(crate) switch_in: u64,
    pub(crate) response: u64,
    pub(crate) faults_before: u64,
    pub(crate) faults_after: u64,
    pub(crate) steal_after: u64,
    pub(crate) stolen: u64,
    pub(crate) steal_read: u64,
    pub(crate) steal_read_at: u64,
    pub(crate) interrupted_ip: u64,
    pub(crate) link: u64,
    pub(crate) events_before: u64,
    pub(crate) irqs_off: u64,
    pub(crate) irqs_on: u64,
    pub(crate) away_switches: u64,
    pub(crate) copy: u64,
    pub(crate) waits: u64,
    pub(crate) preempted: u64,
    pub(crate) state: u32,
    pub(crate) cpu: u32,
    pub(crate) stimulus_cpu: u32,
    pub(crate) stimulus: u32,
    pub(crate) preempt_count: u32,
    pub(crate) softirq: u32,
    pub(crate) idle: u32,
    pub(crate) looked: u32,
    pub(crate) mode: u32,
    pub(crate) throttled: u32,
    pub(crate) stack_bytes: i32,
    pub(crate) away_bytes: i32,
    pub(crate) user_bytes: i32,
    pub(crate) away_user_bytes: i32,
    pub(crate) away_pid: u32,
    pub(crate) before_link: u32,
    pub(crate) copied_on: u32,
    pub(crate) pad: u32,
    pub(crate) code: [u8; CODE],
    pub(crate) task: Task,
    pub(crate) interrupted: Task,
    pub(crate) waker: Task,
    pub(crate) stack: [u64; FRAMES],
    pub(crate) away: [u64; FRAMES],
    pub(crate) user: [u64; USER_FRAMES],
    pub(crate) away_user: [u64; USER_FRAMES],
}

/// See `struct stack_copy`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct StackCopy {
    pub(crate) registers: u64,
    pub(crate) at: [u64; PIECES],
    pub(crate) bytes: [[u8; PIECE]; PIECES],
}

/// What records begin with. [`EVENTS`] or [`RING`] events follow, and then a [`StackCopy`] where there is
/// room for one.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Head {
    pub(crate) wakeup: Wakeup,
    pub(crate) events: u32,
    pub(crate) events_lost: u32,
}

/// Bytes of a `struct record`.
pub(crate) const RECORD_BYTES: usize = size_of::<Head>() + EVENTS * size_of::<Event>();

/// Bytes of a `struct copied_record`.
pub(crate) const COPIED_BYTES: usize = RECORD_BYTES + size_of::<StackCopy>();

/// Where a `struct long_record` has its copy.
pub(crate) const LONG_BYTES: usize = size_of::<Head>() + RING * size_of::<Event>();

/// How many late wakeups of each CPU the kernel's buffer holds, if they saw few events and have a copy
/// each. Before each lies a header of the kernel's.
pub const WAKEUPS_HELD: u64 = RECORDS_PER_CPU as u64 / (8 + COPIED_BYTES as u64);

/// Words of `struct figures` before its buckets.
pub(crate) const FIGURES_HEAD: usize = 5;
/// Words of `struct figures`.
pub(crate) const FIGURES_WORDS: usize = FIGURES_HEAD + BUCKETS;

/// See `struct counts`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) records: u64,
    pub(crate) lost_records: u64,
    pub(crate) broken: u64,
    pub(crate) no_room: u64,
    pub(crate) least_depth: u64,
    pub(crate) wakeups: u64,
    pub(crate) no_room_interrupts: u64,
    pub(crate) begun: u64,
    pub(crate) uncounted: u64,
    pub(crate) contended: u64,
}

/// See `struct source`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) cpu: u32,
    pub(crate) number: u32,
    pub(crate) who: u64,
}

/// See `struct window`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    pub(crate) number: u64,
    pub(crate) taken: u64,
    pub(crate) before: u64,
    pub(crate) most: u64,
}

/// See `struct interference`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Interference {
    pub(crate) count: u64,
    pub(crate) longest: u64,
    pub(crate) least: [u64; ARRIVALS],
    pub(crate) arrivals: [u64; ARRIVALS],
    pub(crate) begun: u64,
    pub(crate) before: u64,
    pub(crate) windows: [Window; WINDOWS],
    pub(crate) name: [u8; 16],
}

/// See `struct section`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Section {
    pub(crate) begin: u64,
    pub(crate) begin_parent: u64,
    pub(crate) end: u64,
    pub(crate) end_parent: u64,
    pub(crate) count: u64,
    pub(crate) total: u64,
    pub(crate) worst: u64,
    pub(crate) worst_at: u64,
}

/// See `struct longest`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Longest {
    pub(crate) section: Section,
    pub(crate) task: Task,
    pub(crate) stack_bytes: i32,
    pub(crate) pad: u32,
    pub(crate) stack: [u64; FRAMES],
}

/// See `struct edge`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Edge {
    pub(crate) at: u64,
    pub(crate) ip: u64,
    pub(crate) parent: u64,
    pub(crate) handlers: u64,
    pub(crate) flags: u32,
    pub(crate) pad: u32,
}

/// See `struct sections`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Sections {
    pub(crate) irq: Edge,
    pub(crate) preempt: Edge,
    pub(crate) either: Edge,
    pub(crate) handlers: u64,
    pub(crate) edges: u64,
    pub(crate) unpaired: u64,
    pub(crate) nmis: u64,
    pub(crate) crowded: u64,
    pub(crate) asleep: u64,
    pub(crate) either_worst: [u64; 2],
    pub(crate) last_off: u64,
    pub(crate) last_on: u64,
    pub(crate) longest: [Longest; SECTION_KINDS],
}

/// Kinds of waits.
pub(crate) const WAIT_KINDS: usize = 4;

/// See `struct waits_of_kind`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WaitsOfKind {
    pub(crate) count: u64,
    pub(crate) sum: u64,
    pub(crate) stopped: u64,
    pub(crate) steal: u64,
    pub(crate) worst: u64,
    pub(crate) worst_at: u64,
    pub(crate) worst_stopped: u64,
    pub(crate) worst_steal: u64,
    pub(crate) worst_cpu: u32,
    pub(crate) worst_unsure: u32,
    pub(crate) taker: Task,
}

/// See `struct waits`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waits {
    pub(crate) since: u64,
    pub(crate) clock_since: u64,
    pub(crate) steal_since: u64,
    pub(crate) queue: u64,
    pub(crate) throttled_since: u64,
    pub(crate) stopped_before: u64,
    pub(crate) run_delay_since: u64,
    pub(crate) run_delay_moved: u64,
    pub(crate) kind: u32,
    pub(crate) cpu: u32,
    pub(crate) moved: u32,
    pub(crate) stopped: u32,
    pub(crate) taker: Task,
    pub(crate) task: Task,
    pub(crate) run_delay_base: u64,
    pub(crate) run_delay_earlier: u64,
    pub(crate) run_delay: u64,
    pub(crate) by_clock: u64,
    pub(crate) not_in_run_delay: u64,
    pub(crate) unseen: u64,
    pub(crate) compared: u64,
    pub(crate) ended: u64,
    pub(crate) of: [WaitsOfKind; WAIT_KINDS],
}

/// See `struct wait_counts`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WaitCounts {
    pub(crate) begun: u64,
    pub(crate) ended: u64,
    pub(crate) ends_missed: u64,
    pub(crate) begins_missed: u64,
    pub(crate) broken: u64,
    pub(crate) no_room: u64,
}

/// See `struct control`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Control {
    pub(crate) start: u64,
    pub(crate) keep: u64,
    pub(crate) keep_net: u64,
    pub(crate) look: u64,
    pub(crate) watched: u64,
    pub(crate) walks: u64,
}

// SAFETY: all of these are made of integers and arrays of integers, so any bytes are one; laid out as
// in C, with gaps filled by `pad`, so that each is its bytes.
unsafe impl Pod for Head {}
// SAFETY: as above.
unsafe impl Pod for StackCopy {}
// SAFETY: as above.
unsafe impl Pod for Event {}
// SAFETY: as above.
unsafe impl Pod for Wakeup {}
// SAFETY: as above.
unsafe impl Pod for Counts {}
// SAFETY: as above.
unsafe impl Pod for Control {}
// SAFETY: as above.
unsafe impl Pod for Source {}
// SAFETY: as above.
unsafe impl Pod for Interference {}
// SAFETY: as above.
unsafe impl Pod for Section {}
// SAFETY: as above.
unsafe impl Pod for Sections {}
// SAFETY: as above.
unsafe impl Pod for Waits {}
// SAFETY: as above.
unsafe impl Pod for WaitCounts {}

/// What `bytes` begin with; `None` if they are too few.
pub(crate) fn from_bytes<T: Pod>(bytes: &[u8]) -> Option<Box<T>> {
    if bytes.len() < size_of::<T>() {
        return None;
    }
    let mut value = Box::<T>::new_uninit();
    // SAFETY: there are as many bytes to read as the value has, which is fresh memory of its own,
    // and any bytes are a value of such a type.
    unsafe {
        std::ptr::copy_nonoverlapping(
            bytes.as_ptr(),
            value.as_mut_ptr().cast::<u8>(),
            size_of::<T>(),
        );
        Some(value.assume_init())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;
    use std::mem::offset_of;
    use std::process::Command;

    use wakescope_sys::shared::Answers;

    /// Asks the compiler of the programs whether it sees the same layouts.
    #[test]
    fn layouts_are_those_of_the_programs() {
        let mut source = String::from("#include \"shared.h\"\n");
        let mut same = |c: &str, rust: usize| {
            writeln!(source, "_Static_assert({c} == {rust}, \"{c}\");").unwrap();
        };
        same("sizeof(struct event)", size_of::<Event>());
        same("__builtin_offsetof(struct event, name)", offset_of!(Event, name));
        same("sizeof(struct task)", size_of::<Task>());
        same("sizeof(struct wakeup)", size_of::<Wakeup>());
        same("__builtin_offsetof(struct wakeup, stolen)", offset_of!(Wakeup, stolen));
        same("__builtin_offsetof(struct wakeup, link)", offset_of!(Wakeup, link));
        same("__builtin_offsetof(struct wakeup, waits)", offset_of!(Wakeup, waits));
        same("__builtin_offsetof(struct wakeup, state)", offset_of!(Wakeup, state));
        same("__builtin_offsetof(struct wakeup, before_link)", offset_of!(Wakeup, before_link));
        same("__builtin_offsetof(struct wakeup, user_bytes)", offset_of!(Wakeup, user_bytes));
        same("__builtin_offsetof(struct wakeup, task)", offset_of!(Wakeup, task));
        same("__builtin_offsetof(struct wakeup, away)", offset_of!(Wakeup, away));
        same("__builtin_offsetof(struct wakeup, away_user)", offset_of!(Wakeup, away_user));
        same("sizeof(struct record)", RECORD_BYTES);
        same("__builtin_offsetof(struct record, event)", size_of::<Head>());
        same("__builtin_offsetof(struct record, events_lost)", offset_of!(Head, events_lost));
        same("sizeof(struct copied_record)", COPIED_BYTES);
        same("__builtin_offsetof(struct copied_record, copy)", RECORD_BYTES);
        same("sizeof(struct long_record)", LONG_BYTES + size_of::<StackCopy>());
        same("__builtin_offsetof(struct long_record, event)", size_of::<Head>());
        same("__builtin_offsetof(struct long_record, events_lost)", offset_of!(Head, events_lost));
        same("__builtin_offsetof(struct long_record, copy)", LONG_BYTES);
        same("sizeof(struct figures)", FIGURES_WORDS * size_of::<u64>());
        same("__builtin_offsetof(struct figures, buckets)", FIGURES_HEAD * size_of::<u64>());
        same("sizeof(((struct figures *)0)->buckets[0])", size_of::<u64>());
        same("sizeof(struct counts)", size_of::<Counts>());
        same("__builtin_offsetof(struct counts, wakeups)", offset_of!(Counts, wakeups));
        same("__builtin_offsetof(struct counts, contended)", offset_of!(Counts, contended));
        same("sizeof(struct control)", size_of::<Control>());
        same("__builtin_offsetof(struct control, look)", offset_of!(Control, look));
        same("sizeof(struct source)", size_of::<Source>());
        same("sizeof(struct interference)", size_of::<Interference>());
        same("__builtin_offsetof(struct interference, least)", offset_of!(Interference, least));
        same("__builtin_offsetof(struct interference, windows)", offset_of!(Interference, windows));
        same("1UL << WINDOW_SHIFT(WINDOWS - 1)", usize::try_from(window_ns(WINDOWS - 1)).unwrap());
        same("__builtin_offsetof(struct interference, name)", offset_of!(Interference, name));
        same("sizeof(struct section)", size_of::<Section>());
        same("__builtin_offsetof(struct section, worst)", offset_of!(Section, worst));
        same("sizeof(struct longest)", size_of::<Longest>());
        same("__builtin_offsetof(struct longest, stack)", offset_of!(Longest, stack));
        same("sizeof(struct sections)", size_of::<Sections>());
        same("__builtin_offsetof(struct sections, handlers)", offset_of!(Sections, handlers));
        same("__builtin_offsetof(struct sections, longest)", offset_of!(Sections, longest));
        same("sizeof(struct waits_of_kind)", size_of::<WaitsOfKind>());
        same("__builtin_offsetof(struct waits_of_kind, taker)", offset_of!(WaitsOfKind, taker));
        same("sizeof(struct waits)", size_of::<Waits>());
        same("__builtin_offsetof(struct waits, kind)", offset_of!(Waits, kind));
        same("__builtin_offsetof(struct waits, run_delay)", offset_of!(Waits, run_delay));
        same("__builtin_offsetof(struct waits, of)", offset_of!(Waits, of));
        same("WAIT_KINDS", WAIT_KINDS);
        same("sizeof(struct wait_counts)", size_of::<WaitCounts>());
        same("RECORDS_PER_CPU", RECORDS_PER_CPU as usize);
        same("SECTION_KINDS", SECTION_KINDS);
        same("SECTION_SLOTS", SECTION_SLOTS);
        same("AWAKE", AWAKE as usize);
        same("AN_NMI", AN_NMI as usize);
        same("A_SOFTIRQ", A_SOFTIRQ as usize);
        same("__builtin_offsetof(struct wakeup, code)", offset_of!(Wakeup, code));
        same("CODE", CODE);
        same("sizeof(struct stack_copy)", size_of::<StackCopy>());
        same("__builtin_offsetof(struct stack_copy, bytes)", offset_of!(StackCopy, bytes));
        same("PIECES", PIECES);
        same("PIECE", PIECE);
        same("__builtin_offsetof(struct wakeup, copy)", offset_of!(Wakeup, copy));
        same("__builtin_offsetof(struct wakeup, copied_on)", offset_of!(Wakeup, copied_on));
        same("sizeof(struct answers)", Answers::WORDS * size_of::<u64>());
        same("COMPONENTS", COMPONENTS);
        same("WAKEUP_LATENCY", WAKEUP_LATENCY);
        same("NET_OF_STEAL", NET_OF_STEAL);
        same("CONTENTION_END", kind::CONTENTION_END as usize);
        same("SWITCH", kind::SWITCH as usize);
        same("TRACER", kind::TRACER as usize);
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/bpf");
        let file = std::env::temp_dir().join(format!("wakescope-{}.c", std::process::id()));
        std::fs::write(&file, &source).unwrap();
        let clang = std::env::var_os("CLANG").unwrap_or("clang".into());
        let ended = Command::new(clang)
            .args(["-target", "bpf", "-fsyntax-only", "-I", dir])
            .arg(&file)
            .output();
        std::fs::remove_file(&file).unwrap();
        let ended = ended.unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }

    #[test]
    fn too_few_bytes_are_nothing() {
        assert!(from_bytes::<Counts>(&[0; 79]).is_none());
        let counts = from_bytes::<Counts>(&[1; 82]).unwrap();
        assert_eq!(counts.wakeups, u64::from_ne_bytes([1; 8]));
    }
}
