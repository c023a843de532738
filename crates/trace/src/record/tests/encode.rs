//! Writes records as the BPF programs do: field by field in the order of the structs in bpf/shared.h.

use crate::shared::{
    CpuSwitch, Event, Irq, Nmi, OwnTime, Payload, RANKS, RUNNERS, Ran, Softirq, Switched, Taken,
    Task, Timer, Wakeup, kind,
};

/// What the kernel's buffer holds where nothing was written.
const GARBAGE: u8 = 0xa5;

/// Pieces of a copied stack, and bytes of each.
const PIECES: u8 = 16;
const PIECE_BYTES: usize = 256;

/// The structs of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `struct record`
    Short,
    /// `struct copied_record`
    Copied,
    /// `struct long_record`
    Long,
}

impl Form {
    /// Events that it has room for.
    pub(super) fn room(self) -> usize {
        match self {
            Self::Short | Self::Copied => 64,
            Self::Long => 256,
        }
    }
}

fn words_of(taken: &Taken) -> [u64; 3] {
    [taken.all, taken.softirqs, taken.nmis]
}

/// A record and what it holds.
pub(super) struct Record<'a> {
    pub(super) form: Form,
    pub(super) wakeup: &'a Wakeup,
    /// As many as it has room for.
    pub(super) events: &'a [Event],
    /// How many events it says that it holds.
    pub(super) stated: u32,
    pub(super) lost: u32,
    /// From when on it says that no switch was lost, and what it says that interrupts took from then on.
    pub(super) switches_from: u64,
    pub(super) in_interrupts: u64,
    /// What it says that they took in all of the wait.
    pub(super) taken: Taken,
    /// Where the registers of its stack copy are; 0 for no copy.
    pub(super) registers: u64,
    /// Who ran meanwhile, if it has room for them, and how long all did.
    pub(super) ran: &'a [Ran],
    pub(super) all_ran: [u64; RANKS],
}

impl Record<'_> {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut to = Writer(Vec::new());
        to.wakeup(self.wakeup);
        to.u32(self.stated);
        to.u32(self.lost);
        to.u64(self.switches_from);
        to.u64(self.in_interrupts);
        words_of(&self.taken).into_iter().for_each(|word| to.u64(word));
        self.events.iter().for_each(|event| to.event(event));
        to.garbage((self.form.room() - self.events.len()) * EVENT_BYTES);
        if self.form != Form::Short {
            to.copy(self.registers);
        }
        if self.form == Form::Long {
            let nobody = [Ran { task: Task { pid: 9, ..Task::default() }, ns: 0 }; RUNNERS];
            for Ran { task, ns } in self.ran.iter().chain(&nobody[self.ran.len()..]) {
                to.task(task);
                to.u64(*ns);
            }
            self.all_ran.iter().for_each(|ns| to.u64(*ns));
        }
        to.0
    }
}

/// Bytes of a `struct event`.
const EVENT_BYTES: usize = 64;

impl Event {
    /// The same with this payload.
    pub(super) fn with<P: Payload>(mut self, payload: P) -> Self {
        assert!(size_of::<P>() <= size_of_val(&self.payload));
        // SAFETY: there is room for it, checked above, and it is made of integers.
        unsafe { std::ptr::from_mut(&mut self.payload).cast::<P>().write(payload) };
        self
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn u64(&mut self, value: u64) {
        self.0.extend(value.to_ne_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.0.extend(value.to_ne_bytes());
    }

    fn s32(&mut self, value: i32) {
        self.0.extend(value.to_ne_bytes());
    }

    fn garbage(&mut self, bytes: usize) {
        self.0.extend(std::iter::repeat_n(GARBAGE, bytes));
    }

    fn event(&mut self, event: &Event) {
        let begin = self.0.len();
        self.u64(event.at_ns);
        self.u64(event.steal_ns);
        self.u32(event.kind);
        self.garbage(4);
        self.payload(event);
        self.garbage(begin + EVENT_BYTES - self.0.len());
    }

    fn payload(&mut self, event: &Event) {
        match event.kind {
            kind::IRQ_ENTRY => {
                let Irq { vector, line, name } = event.payload();
                self.u32(vector);
                self.u32(line);
                self.0.extend(name);
            }
            kind::IRQ_EXIT => {
                let Irq { vector, line, name: _ } = event.payload();
                self.u32(vector);
                self.u32(line);
            }
            kind::TIMER_ENTRY => {
                let Timer { function, count, pad: _ } = event.payload();
                self.u64(function);
                self.u32(count);
            }
            kind::SOFTIRQ_ENTRY => self.u32(event.payload::<Softirq>().number),
            kind::SOFTIRQ_EXIT => {
                let Softirq { number, pending } = event.payload();
                self.u32(number);
                self.u32(pending);
            }
            kind::NMI => {
                let Nmi { handler, duration_ns } = event.payload();
                self.u64(handler);
                self.u64(duration_ns);
            }
            kind::SWITCH => {
                let CpuSwitch { prev, next, comm, throttled, pad: _ } = event.payload();
                self.thread(prev);
                self.thread(next);
                self.0.extend(comm);
                self.u32(throttled);
            }
            kind::TRACER => self.u64(event.payload::<OwnTime>().duration_ns),
            kind::DEBOOST => self.thread(event.payload()),
            _ => {}
        }
    }

    fn thread(&mut self, thread: Switched) {
        let Switched { pid, prio, policy } = thread;
        self.u32(pid);
        self.0.extend(prio.to_ne_bytes());
        self.0.extend(policy.to_ne_bytes());
    }

    fn task(&mut self, task: &Task) {
        self.u32(task.pid);
        self.s32(task.prio);
        self.u32(task.policy);
        self.s32(task.normal_prio);
        self.0.extend(task.comm);
    }

    fn wakeup(&mut self, w: &Wakeup) {
        let times = [w.due, w.irq_entry, w.woken, w.irq_exit, w.sched_entry, w.switch_in];
        let counts = [w.response, w.faults_before, w.faults_after, w.steal_after];
        let stolen = [w.stolen, w.steal_read, w.steal_read_at];
        let places = [w.interrupted_ip, w.link, w.events_before, w.irqs_off, w.irqs_on];
        let rest = [w.away_switches, w.copy, w.waits, w.preempted, w.events_elsewhere];
        let moved = [w.moved_at, w.moved_steal];
        let queue = [w.queue, w.queued_at, w.queue_sum, w.queue_since, w.quota];
        let words =
            times.into_iter().chain(counts).chain(stolen).chain(places).chain(rest).chain(moved);
        let words = words.chain(queue).chain([w.switches_before, w.interrupts_before]);
        let words = words.chain(words_of(&w.taken_before));
        words.for_each(|word| self.u64(word));
        let first = [w.state, w.cpu, w.stimulus_cpu, w.stimulus, w.preempt_count, w.softirq];
        let then = [w.idle, w.looked, w.mode, w.throttled];
        first.into_iter().chain(then).for_each(|word| self.u32(word));
        let lengths = [w.stack_bytes, w.away_bytes, w.user_bytes, w.away_user_bytes];
        lengths.into_iter().for_each(|bytes| self.s32(bytes));
        let last = [w.away_pid, w.before_link, w.copied_on];
        last.into_iter().for_each(|word| self.u32(word));
        self.garbage(4);
        self.u32(w.parts);
        self.u32(w.moved_softirq);
        self.0.extend(w.code);
        [w.task, w.interrupted, w.waker, w.runs].iter().for_each(|task| self.task(task));
        let stacks = w.stack.into_iter().chain(w.away).chain(w.user).chain(w.away_user);
        stacks.for_each(|frame| self.u64(frame));
    }

    /// A copy of a stack from `registers` on, each piece filled with its number.
    fn copy(&mut self, registers: u64) {
        self.u64(registers);
        for piece in 0..PIECES {
            self.u64(registers + u64::from(piece) * PIECE_BYTES as u64);
        }
        for piece in 0..PIECES {
            self.0.extend([piece; PIECE_BYTES]);
        }
    }
}
