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
pub(crate) const SECOND: u32 = 1 << 31;
/// Components, their sum, and the same without stolen time.
pub(crate) const COMPONENTS: usize = 6;
/// The wakeup latency, and the same without stolen time.
pub(crate) const WAKEUP_LATENCY: usize = 4;
pub(crate) const NET_OF_STEAL: usize = 5;
/// Numbers of sources of interference from here on are those of vectors that have no line.
pub(crate) const A_VECTOR: u32 = 1 << 31;
/// The stimulus of a wakeup that was due before its thread slept.
pub(crate) const AWAKE: u32 = 4;
/// The state of a wakeup that still waits, so that its record is a part.
pub(crate) const WOKEN: u32 = 1;
/// See `UNKNOWN`.
pub(crate) const UNKNOWN: u64 = u64::MAX;
/// The number of NMIs.
pub(crate) const AN_NMI: u32 = A_VECTOR + 0x100;
/// Numbers from here on are those of softirqs.
pub(crate) const A_SOFTIRQ: u32 = A_VECTOR + 0x200;
/// Arrivals of an interrupt that are looked back upon.
pub(crate) const ARRIVALS: usize = 8;
/// Lengths of windows of time.
pub(crate) const WINDOWS: usize = 8;

/// What else than wakeups programs follow.
pub(crate) const ALL_WAITS: u32 = 1;
pub(crate) const ALL_SECTIONS: u32 = 2;

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
    pub(crate) const NO_EVENT: u32 = 0;
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
    pub(crate) const DEBOOST: u32 = 13;
}

/// See `struct event`. What its payload is, its kind tells: see [`Payload`].
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Event {
    pub(crate) at_ns: u64,
    pub(crate) steal_ns: u64,
    pub(crate) kind: u32,
    pub(crate) pad: u32,
    pub(crate) payload: [u64; PAYLOAD_WORDS],
}

/// Words of the union in `struct event`.
const PAYLOAD_WORDS: usize = 5;

impl Event {
    /// Its payload, read as that of its kind.
    pub(crate) fn payload<P: Payload>(&self) -> P {
        const { assert!(size_of::<P>() <= size_of::<[u64; PAYLOAD_WORDS]>()) };
        // SAFETY: the payload has as many bytes, checked above, and is aligned to the largest integer;
        // any bytes are a value of such a type.
        unsafe { std::ptr::from_ref(&self.payload).cast::<P>().read() }
    }
}

/// What an event of some kind has beside its time.
///
/// # Safety
///
/// Of integers and arrays of integers alone, laid out as in C without gaps, so that any bytes are one.
pub(crate) unsafe trait Payload: Copy {}

/// See `struct irq`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Irq {
    pub(crate) vector: u32,
    pub(crate) line: u32,
    pub(crate) name: [u8; 16],
}

/// See `struct timer`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Timer {
    pub(crate) function: u64,
    pub(crate) count: u32,
    pub(crate) pad: u32,
}

/// See `struct softirq`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Softirq {
    pub(crate) number: u32,
    pub(crate) pending: u32,
}

/// See `struct nmi`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Nmi {
    pub(crate) handler: u64,
    pub(crate) duration_ns: u64,
}

/// See `struct switched`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Switched {
    pub(crate) pid: u32,
    pub(crate) prio: i16,
    pub(crate) policy: u16,
}

/// See `struct cpu_switch`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct CpuSwitch {
    pub(crate) prev: Switched,
    pub(crate) next: Switched,
    pub(crate) comm: [u8; 16],
    pub(crate) throttled: u32,
    pub(crate) pad: u32,
}

/// See `struct own_time`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct OwnTime {
    pub(crate) duration_ns: u64,
}

// SAFETY: of integers and arrays of them, with gaps filled by `pad`.
unsafe impl Payload for Irq {}
// SAFETY: as above.
unsafe impl Payload for Timer {}
// SAFETY: as above.
unsafe impl Payload for Softirq {}
// SAFETY: as above.
unsafe impl Payload for Nmi {}
// SAFETY: as above.
unsafe impl Payload for CpuSwitch {}
// SAFETY: as above.
unsafe impl Payload for OwnTime {}
// SAFETY: as above.
unsafe impl Payload for Switched {}

/// See `struct task`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Task {
    pub(crate) pid: u32,
    pub(crate) prio: i32,
    pub(crate) policy: u32,
    pub(crate) normal_prio: i32,
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
    pub(crate) events_elsewhere: u64,
    pub(crate) moved_at: u64,
    pub(crate) moved_steal: u64,
    pub(crate) queue: u64,
    pub(crate) queued_at: u64,
    pub(crate) queue_sum: u64,
    pub(crate) queue_since: u64,
    pub(crate) quota: u64,
    pub(crate) switches_before: u64,
    pub(crate) interrupts_before: u64,
    pub(crate) taken_before: Taken,
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
    pub(crate) is_second: u32,
    pub(crate) parts: u32,
    pub(crate) moved_softirq: u32,
    pub(crate) code: [u8; CODE],
    pub(crate) task: Task,
    pub(crate) interrupted: Task,
    pub(crate) waker: Task,
    pub(crate) runs: Task,
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

/// See `struct taken`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) all: u64,
    pub(crate) softirqs: u64,
    pub(crate) nmis: u64,
}

/// What records begin with. [`EVENTS`] or [`RING`] events follow, and then a [`StackCopy`] where there is
/// room for one.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Head {
    pub(crate) wakeup: Wakeup,
    pub(crate) events: u32,
    pub(crate) events_lost: u32,
    pub(crate) switches_from: u64,
    pub(crate) in_interrupts: u64,
    pub(crate) taken: Taken,
}

/// Tasks of which is known how long they ran on a CPU.
pub(crate) const RUNNERS: usize = 8;

/// Ranks of tasks, by the place of what is known of all of them.
pub(crate) const ORDINARY: usize = 0;
pub(crate) const URGENT: usize = 1;
pub(crate) const RANKS: usize = 2;

/// See `struct ran`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Ran {
    pub(crate) task: Task,
    pub(crate) ns: u64,
}

/// What a `struct long_record` ends with.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RunTimes {
    pub(crate) ran: [Ran; RUNNERS],
    pub(crate) all_ran: [u64; RANKS],
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
    pub(crate) parts: u64,
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
    pub(crate) worst_prio: i32,
    pub(crate) worst_normal_prio: i32,
    pub(crate) worst_ran: u64,
    pub(crate) runner: Task,
    pub(crate) worst_all_ran: [u64; RANKS],
}

/// See `struct waits`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waits {
    pub(crate) since: u64,
    pub(crate) began: u64,
    pub(crate) clock_since: u64,
    pub(crate) steal_since: u64,
    pub(crate) queue: u64,
    pub(crate) throttled_since: u64,
    pub(crate) stopped_before: u64,
    pub(crate) run_delay_since: u64,
    pub(crate) run_delay_moved: u64,
    pub(crate) asleep_before: u64,
    pub(crate) moved_asleep: u64,
    pub(crate) kind: u32,
    pub(crate) cpu: u32,
    pub(crate) moved: u32,
    pub(crate) stopped: u32,
    pub(crate) moved_at: u64,
    pub(crate) given: u64,
    pub(crate) ran_before: [u64; RUNNERS],
    pub(crate) all_ran_before: [u64; RANKS],
    pub(crate) held_back_before: u64,
    pub(crate) task: Task,
    pub(crate) thread: u64,
    pub(crate) run_delay_base: u64,
    pub(crate) run_delay_earlier: u64,
    pub(crate) run_delay: u64,
    pub(crate) by_clock: u64,
    pub(crate) not_in_run_delay: u64,
    pub(crate) unseen: u64,
    pub(crate) asleep: u64,
    pub(crate) away: u64,
    pub(crate) compared: u64,
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
// SAFETY: it is made of integers.
unsafe impl Pod for RunTimes {}
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
pub(crate) mod tests;
