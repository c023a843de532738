mod drawn;
mod encode;
mod random;

use wakescope_core::explain::{self, Event, Frame, Wakeup as Decoded, What, WokenBy};
use wakescope_decode::Decoder;

use super::*;
use crate::shared::{
    CpuSwitch, Event as RawEvent, FRAMES, Irq as RawIrq, Ran, Softirq, Taken, Task as RawTask,
    USER_FRAMES,
};
use crate::symbols::Symbols;

/// Functions of a kernel that is made up.
const LIST: &str = "\
ffffffff81000000 T asm_sysvec_apic_timer_interrupt
ffffffff81000100 T do_work
ffffffff81000200 T do_syscall_64
ffffffff81000300 T __schedule
ffffffff81000400 T schedule
ffffffff81000500 t bpf_prog_run
ffffffff81000600 t __traceiter_hrtimer_expire_entry
ffffffff81000700 t hrtimer_wakeup
ffffffff81000800 t watchdog_nmi
ffffffff81000900 t end
";

/// Places in these functions.
mod at {
    pub(super) const ENTRY: u64 = 0xffff_ffff_8100_0010;
    pub(super) const WORK: u64 = 0xffff_ffff_8100_0123;
    pub(super) const SYSCALL: u64 = 0xffff_ffff_8100_0234;
    pub(super) const INNER_SCHEDULE: u64 = 0xffff_ffff_8100_0345;
    pub(super) const BPF: u64 = 0xffff_ffff_8100_0567;
    pub(super) const TRACE: u64 = 0xffff_ffff_8100_0678;
    pub(super) const WAKER: u64 = 0xffff_ffff_8100_0700;
    pub(super) const NMI: u64 = 0xffff_ffff_8100_0800;
}

/// Decodes as on a kernel that adds one to the depth of preemption where it traces.
fn decoded(seen: &KernelWakeup) -> Decoded {
    let symbols = Symbols::from_list(LIST.as_bytes()).unwrap();
    Decoder {
        kernel_frame: &|address| symbols.frame(address),
        user_frame: &|_, _| None,
        least_depth: 2,
        preemptible: Some(false),
        idle_states: &["POLL".to_string(), "C1".to_string()],
    }
    .wakeup(seen)
}

/// The frames as `function+0x10`; `?` for one of which nothing is known.
fn text_of(frames: &[Frame]) -> Vec<String> {
    let text = |frame: &Frame| match &frame.function {
        Some(function) => format!("{function}+{:#x}", frame.offset),
        None => {
            assert_eq!(*frame, Frame::default());
            "?".into()
        }
    };
    frames.iter().map(text).collect()
}

/// A wakeup that was due at 1,000 and answered at 2,000.
fn raw() -> Wakeup {
    Wakeup {
        due: 1_000,
        irq_entry: 1_100,
        irq_exit: 1_200,
        sched_entry: 1_300,
        switch_in: 1_400,
        response: 2_000,
        looked: 1,
        ..Default::default()
    }
}

/// What a record says that holds `wakeup` and `events`, which there is room for.
fn read(wakeup: Wakeup, events: &[RawEvent]) -> KernelWakeup {
    read_part(wakeup, events).wakeup
}

fn read_part(wakeup: Wakeup, events: &[RawEvent]) -> Part {
    let form = if events.len() > EVENTS { encode::Form::Long } else { encode::Form::Short };
    let stated = u32::try_from(events.len()).unwrap();
    let record = encode::Record {
        form,
        wakeup: &wakeup,
        events,
        stated,
        lost: 0,
        switches_from: 0,
        in_interrupts: 55,
        taken: Taken { all: 50, softirqs: 20, nmis: 4 },
        registers: 0,
        ran: &[],
        all_ran: [0; 2],
    };
    part_of(&record.bytes(), |_| Vec::new()).unwrap()
}

#[test]
fn who_ran_is_known_where_events_were_lost() {
    let ran = |pid, prio, ns| Ran { task: RawTask { pid, prio, ..RawTask::default() }, ns };
    let all = [ran(7, 120, 40), ran(0, 0, 0), ran(8, 120, 900), ran(9, 120, 0), ran(6, 20, 50)];
    let decoded = |form, lost| {
        let record = encode::Record {
            form,
            wakeup: &raw(),
            events: &[],
            stated: 0,
            lost,
            switches_from: 0,
            in_interrupts: u64::MAX,
            taken: Taken::default(),
            registers: 0,
            ran: &all,
            all_ran: [1_000, 57],
        };
        decoded(&part_of(&record.bytes(), |_| Vec::new()).unwrap().wakeup).ran
    };
    let long = decoded(encode::Form::Long, 300);
    let known: Vec<_> = long.tasks.iter().map(|ran| (ran.task.pid, ran.ns)).collect();
    assert_eq!(known, [(8, 900), (6, 50), (7, 40)]);
    assert_eq!((long.others_ns, long.urgent_others_ns), (60, 7));
    // Else events tell, or there is no room.
    assert!(decoded(encode::Form::Long, 0).is_empty());
    assert!(decoded(encode::Form::Copied, 300).is_empty());
}

#[test]
fn places_without_an_event_are_left_out() {
    let blank = RawEvent { at_ns: 1, kind: kind::NO_EVENT, ..RawEvent::default() };
    let sched = RawEvent { at_ns: 1_500, kind: kind::SCHED_ENTRY, ..RawEvent::default() };
    let read = read(raw(), &[blank, blank, sched]);
    assert_eq!((read.lost, read.events.len(), read.events[0].at), (0, 1, MonoNs(1_500)));
}

/// What a record says of a part that ends at 9,000, with events of these times.
fn part(times: &[u64]) -> Part {
    let event = |&at_ns: &u64| RawEvent { at_ns, kind: kind::SCHED_ENTRY, ..RawEvent::default() };
    let events: Vec<RawEvent> = times.iter().map(event).collect();
    let moved = Wakeup { moved_at: 3_000, moved_steal: 77, moved_softirq: 4, parts: 2, ..raw() };
    read_part(Wakeup { state: WOKEN, response: 9_000, ..moved }, &events)
}

#[test]
fn a_wakeup_that_still_waits_is_a_part() {
    let part = part(&[2_000, 4_000]);
    assert_eq!((part.goes_on, part.before, part.moved_at), (true, 2, Some(MonoNs(3_000))));
    assert_eq!((part.moved_steal_ns, part.moved_softirq), (77, Some(3)));
    assert_eq!((part.interrupts_ns, part.wakeup.known_switches), (Some(55), None));
    let taken = explain::Taken { interrupts_ns: 26, softirqs_ns: 20, nmis_ns: 4 };
    assert_eq!(part.wakeup.taken, taken);
    let last = read_part(raw(), &[]);
    assert_eq!(
        (last.goes_on, last.before, last.moved_at, last.moved_softirq),
        (false, 0, None, None)
    );
}

#[test]
fn events_that_may_be_torn_are_none_of_a_part() {
    let left = |times: &[u64]| part(times).wakeup.events.iter().map(|e| e.at.0).collect::<Vec<_>>();
    assert_eq!(left(&[2_000, 4_000, 7_999]), [2_000, 4_000, 7_999]);
    // Not written yet when it was moved: of then, or what was there before.
    assert_eq!(left(&[2_000, 4_000, 8_000, 8_999]), [2_000, 4_000]);
    assert_eq!(left(&[2_000, 4_000, 300, 200]), [2_000, 4_000]);
    // Written over the oldest since.
    assert_eq!(left(&[9_100, 9_200, 4_000, 5_000]), [4_000, 5_000]);
    assert_eq!(left(&[9_100, 9_200]), [0; 0]);
    assert_eq!(left(&[]), [0; 0]);
    // A full one that begins after the wait did lacks something.
    let full = |first: u64| part(&(0..EVENTS as u64).map(|i| first + i).collect::<Vec<_>>());
    assert_eq!((full(2_900).wakeup.lost, full(3_001).wakeup.lost), (0, 1));
}

#[test]
fn an_entry_of_the_scheduler_that_an_interrupt_held_up_comes_before_it() {
    let event = |at_ns, kind| RawEvent { at_ns, kind, steal_ns: at_ns, ..RawEvent::default() };
    let (sched, entry, exit) = (kind::SCHED_ENTRY, kind::IRQ_ENTRY, kind::IRQ_EXIT);
    let (timer, switch, softirq) = (kind::TIMER_ENTRY, kind::SWITCH, kind::SOFTIRQ_EXIT);
    for (events, want) in [
        (vec![(5, entry), (7, exit), (4, sched), (9, switch)], vec![4, 5, 7, 9]),
        (vec![(3, entry), (4, exit), (6, entry), (7, exit), (5, sched)], vec![3, 4, 5, 6, 7]),
        (
            vec![(5, entry), (6, timer), (7, exit), (8, entry), (9, exit), (4, sched)],
            vec![4, 5, 6, 7, 8, 9],
        ),
        (vec![(4, sched), (5, entry), (7, exit)], vec![4, 5, 7]),
        // What is no whole interrupt is no such thing.
        (vec![(5, entry), (4, sched)], vec![5, 4]),
        (vec![(7, exit), (4, sched)], vec![7, 4]),
        (vec![(5, switch), (4, sched)], vec![5, 4]),
        (vec![(5, entry), (6, switch), (7, exit), (4, sched)], vec![5, 6, 7, 4]),
        (vec![(5, softirq), (4, sched)], vec![5, 4]),
        (vec![(5, sched), (4, sched)], vec![5, 4]),
    ] {
        let raw_events: Vec<_> = events.iter().map(|&(at, kind)| event(at, kind)).collect();
        let read = read(raw(), &raw_events);
        let at: Vec<u64> = read.events.iter().map(|event| event.at.0).collect();
        assert_eq!(at, want, "{events:?}");
        let is_told = |event: &&KernelEvent| event.steal_ns != 0;
        let told: Vec<u64> = read.events.iter().filter(is_told).map(|e| e.steal_ns).collect();
        let moved = usize::from(at != events.iter().map(|e| e.0).collect::<Vec<_>>());
        assert_eq!(told.len() + moved, events.len(), "{events:?}: readings of stolen time");
    }
}

#[test]
fn what_interrupts_took_is_told_only_where_nothing_else_was_lost() {
    let raw = raw();
    let read = |stated, lost, switches_from, in_interrupts| {
        let record = encode::Record {
            form: encode::Form::Short,
            wakeup: &raw,
            events: &[],
            stated,
            lost,
            switches_from,
            in_interrupts,
            taken: Taken::default(),
            registers: 0,
            ran: &[],
            all_ran: [0; 2],
        };
        let known = part_of(&record.bytes(), |_| Vec::new()).unwrap().wakeup.known_switches;
        known.map(|known| (known.from.0, known.interrupts_ns))
    };
    assert_eq!(read(0, 3, 0, 5_000), Some((raw.due, 5_000)));
    assert_eq!(read(0, 3, raw.due + 7, 5_000), Some((raw.due + 7, 5_000)));
    assert_eq!(read(0, 3, 0, u64::MAX), None);
    assert_eq!(read(0, 0, 0, 5_000), None);
    // It has fewer events than it says, and nobody knows which.
    assert_eq!(read(1_000, 3, 0, 5_000), None);
}

#[test]
fn payloads_are_those_of_their_kinds() {
    let name = *b"eth0\0\0\0\0\0\0\0\0\0\0\0\0";
    let plain = |kind| RawEvent { at_ns: 1_500, steal_ns: 7, kind, ..RawEvent::default() };
    let irq = |kind, vector, line| plain(kind).with(RawIrq { vector, line, name });
    let softirq = |kind, pending| plain(kind).with(Softirq { number: 3, pending });
    let exit = |pending| Payload::SoftirqExit { number: 3, pending };
    let prev = shared::Switched { pid: 5, prio: -1, policy: 6 };
    let next = shared::Switched { pid: 9, prio: 120, policy: 3 };
    let switch = CpuSwitch { prev, next, comm: name, throttled: 1, pad: 0 };
    let timer = shared::Timer { function: at::WAKER, count: 2, pad: 0 };
    let nmi = shared::Nmi { handler: at::NMI, duration_ns: 150 };
    for (raw_event, want) in [
        (irq(kind::IRQ_ENTRY, 0, 7), Payload::IrqEntry { irq: Irq::Line(7), name }),
        (irq(kind::IRQ_EXIT, 0, 7), Payload::IrqExit(Irq::Line(7))),
        (irq(kind::IRQ_EXIT, 1, 7), Payload::IrqExit(Irq::Vector(Vector::LocalTimer))),
        (irq(kind::IRQ_EXIT, 99, 7), Payload::IrqExit(Irq::Vector(Vector::Other))),
        (
            plain(kind::TIMER_ENTRY).with(timer),
            Payload::TimerEntry { function: at::WAKER, count: 2 },
        ),
        (plain(kind::TIMER_EXIT), Payload::TimerExit),
        (softirq(kind::SOFTIRQ_ENTRY, 0), Payload::SoftirqEntry(3)),
        (softirq(kind::SOFTIRQ_EXIT, 0), exit(false)),
        (softirq(kind::SOFTIRQ_EXIT, 1), exit(true)),
        (plain(kind::NMI).with(nmi), Payload::Nmi { handler: at::NMI, duration_ns: 150 }),
        (
            plain(kind::SWITCH).with(switch),
            Payload::Switch(Switch {
                prev: SwitchedFrom { pid: 5, prio: -1, policy: 6 },
                next: KernelTask { pid: 9, prio: 120, policy: 3, comm: name },
                throttled: true,
            }),
        ),
        (plain(kind::SCHED_ENTRY), Payload::SchedEntry),
        (plain(kind::CONTENTION_BEGIN), Payload::ContentionBegin),
        (plain(kind::CONTENTION_END), Payload::ContentionEnd),
        (
            plain(kind::TRACER).with(shared::OwnTime { duration_ns: 8_000 }),
            Payload::Tracer { duration_ns: 8_000 },
        ),
        (
            plain(kind::DEBOOST).with(shared::Switched { pid: 5, prio: 39, policy: 0 }),
            Payload::Deboost(SwitchedFrom { pid: 5, prio: 39, policy: 0 }),
        ),
        (plain(14), Payload::Unknown),
    ] {
        let want = KernelEvent { at: MonoNs(1_500), steal_ns: 7, payload: want };
        assert_eq!(read(raw(), &[raw_event]).events, [want]);
    }
}

#[test]
fn a_task_has_its_own_priority_and_the_one_it_was_lent() {
    let task = RawTask { pid: 7, prio: 29, normal_prio: 89, policy: 1, ..RawTask::default() };
    let KernelWakeup { task, normal_prio, .. } = read(Wakeup { task, ..raw() }, &[]);
    assert_eq!((task.prio, normal_prio), (29, Some(89)));
}

#[test]
fn what_was_not_seen_is_none() {
    let whole = read(raw(), &[]).marks;
    let seen = |at| Some(MonoNs(at));
    let marks = Marks {
        due: MonoNs(1_000),
        irq_entry: seen(1_100),
        irq_exit: seen(1_200),
        sched_entry: seen(1_300),
        switch_in: seen(1_400),
        response: MonoNs(2_000),
    };
    assert_eq!(whole, marks);
    let bare = Wakeup { irq_entry: 0, irq_exit: 0, sched_entry: 0, switch_in: 0, ..raw() };
    let bare = read(Wakeup { looked: 0, ..bare }, &[]);
    assert_eq!(bare.marks, Marks { due: marks.due, response: marks.response, ..Marks::default() });
    assert_eq!((bare.interrupted, bare.given_up, bare.irqs_off), (None, None, None));
    assert_eq!((bare.softirq, bare.idle_state), (None, None));
    // Numbers begin with 1 where 0 stands for none.
    let some = read(Wakeup { softirq: 1, idle: 2, irqs_off: 800, irqs_on: 900, ..raw() }, &[]);
    assert_eq!((some.softirq, some.idle_state), (Some(0), Some(1)));
    assert_eq!(some.irqs_off, Some((MonoNs(800), MonoNs(900))));
}

#[test]
fn a_stimulus_has_its_waker() {
    let waker = RawTask { pid: 5, ..RawTask::default() };
    let writer = task_of(&waker);
    for (number, want) in [
        (0, WakeupSource::Unknown),
        (1, WakeupSource::Timer),
        (2, WakeupSource::Task(writer)),
        (3, WakeupSource::Interrupt(writer)),
        (AWAKE, WakeupSource::Awake),
        (77, WakeupSource::Unknown),
    ] {
        assert_eq!(read(Wakeup { stimulus: number, waker, ..raw() }, &[]).stimulus, want);
    }
}

/// What is switched from first has its name from there.
#[test]
fn who_runs_on_another_cpu_is_known() {
    let [here, there, later] = [0, 6, 7].map(|pid| RawTask { pid, ..RawTask::default() });
    let ran = |looked, interrupted, runs| {
        read(Wakeup { looked, interrupted, runs, ..raw() }, &[]).ran_there.map(|task| task.pid)
    };
    // Where the wakeup was to wait, and where it was moved to, also from where somebody looked.
    assert_eq!(
        (ran(0, here, here), ran(0, there, here), ran(1, there, here)),
        (None, Some(6), None)
    );
    assert_eq!((ran(0, there, later), ran(1, there, later)), (Some(7), Some(7)));
    let idle = RawTask { comm: *b"swapper/1\0\0\0\0\0\0\0", ..here };
    assert_eq!((ran(0, here, idle), ran(1, there, idle)), (Some(0), Some(0)));
}

#[test]
fn a_ring_that_is_full_of_later_events_has_lost_some() {
    let full = |first, room: usize| {
        let event = |at| RawEvent { at_ns: at, kind: kind::SCHED_ENTRY, ..RawEvent::default() };
        let events: Vec<RawEvent> = (0..room as u64).map(|i| event(first + i)).collect();
        let KernelWakeup { lost, known_switches, .. } = read(raw(), &events);
        (lost, known_switches)
    };
    let from = |at| Some(KnownSwitches { from: MonoNs(at), interrupts_ns: 0 });
    for room in [EVENTS, RING] {
        assert_eq!([full(1_000, room), full(1_001, room)], [(0, None), (1, from(1_001))]);
    }
    // One that is not full has all that there was.
    assert_eq!(full(1_001, RING - 1), (0, None));
}

#[test]
fn a_stack_that_could_not_be_taken_is_empty() {
    for (bytes, frames) in [(-14, 0), (0, 0), (7, 0), (16, 2), (i32::MAX, FRAMES)] {
        let stack = [at::WORK; FRAMES];
        let wakeup = Wakeup { stack, stack_bytes: bytes, ..raw() };
        let wakeup = Wakeup { away_pid: 7, away: stack, away_bytes: bytes, ..wakeup };
        let user = [0x55d0; USER_FRAMES];
        let wakeup = Wakeup { user, user_bytes: bytes, away_user_bytes: bytes, ..wakeup };
        let KernelWakeup { interrupted, given_up, .. } = read(wakeup, &[]);
        let (interrupted, given_up) = (interrupted.unwrap(), given_up.unwrap());
        let kernels = [interrupted.stack.len(), given_up.stack.len()];
        assert_eq!(kernels, [frames; 2], "{bytes}");
        let programs = [interrupted.user_stack.len(), given_up.user_stack.len()];
        assert_eq!(programs, [frames.min(USER_FRAMES); 2], "{bytes}");
    }
}

#[test]
fn page_faults_are_those_since_the_switch() {
    let faults = |switch_in, before, after| {
        let wakeup = Wakeup { switch_in, faults_before: before, faults_after: after, ..raw() };
        read(wakeup, &[]).page_faults
    };
    assert_eq!([faults(1_400, 7, 9), faults(1_400, 7, 7), faults(1_400, 7, 0)], [2, 0, 0]);
    // One that was still awake had all of its life's by then.
    assert_eq!(faults(0, 0, 14), 0);
}

#[test]
fn hostile_records_do_no_harm() {
    // A ring buffer is shared memory: whatever is in it is a record.
    for byte in [0_u8, 1, 0x7f, 0x80, 0xff] {
        for room in [0, EVENTS, RING, 2 * RING] {
            let bytes = vec![byte; size_of::<Head>() + room * size_of::<RawEvent>() + 7];
            let late = part_of(&bytes, |_| vec![at::WORK; 2 * FRAMES]).unwrap().wakeup;
            assert!(late.events.len() <= room.min(RING));
            let wakeup = decoded(&late);
            assert!(wakeup.events.len() <= 3 * RING, "{byte}");
        }
        assert!(part_of(&vec![byte; size_of::<Head>() - 1], |_| Vec::new()).is_none());
    }
}

#[test]
fn what_was_walked_is_the_stack_of_what_was_interrupted() {
    let stack_in = |(bytes, at): (usize, usize), registers: u64, walked: &[u64]| {
        let mut bytes = vec![0; bytes];
        let looked = std::mem::offset_of!(Wakeup, looked);
        bytes[looked] = 1;
        bytes[at..at + 8].copy_from_slice(&registers.to_le_bytes());
        let seen = part_of(&bytes, |copy| {
            assert_eq!(copy.registers, registers);
            walked.to_vec()
        });
        seen.unwrap().wakeup.interrupted.unwrap().stack
    };
    let copy = size_of::<StackCopy>();
    for record in [(COPIED_BYTES, RECORD_BYTES), (LONG_BYTES + copy, LONG_BYTES)] {
        let stack = |registers, walked: &[u64]| stack_in(record, registers, walked);
        let walked = [at::WORK, at::SYSCALL];
        assert_eq!(stack(0x1000, &walked), walked, "{record:?}");
        assert_eq!(stack(0x1000, &[]), [0_u64; 0]);
        // Without registers there is no copy, and nobody is to walk it.
        assert_eq!(stack(0, &[at::WORK]), [0_u64; 0]);
    }
    // Nor is there one in a record that has no room for it.
    assert_eq!(stack_in((RECORD_BYTES, RECORD_BYTES - 8), 0x1000, &[at::WORK]), [0_u64; 0]);
}

#[test]
fn events_end_where_the_copy_begins() {
    for (bytes, room) in [
        (RECORD_BYTES, EVENTS),
        (COPIED_BYTES, EVENTS),
        (LONG_BYTES + size_of::<StackCopy>(), RING),
    ] {
        let mut bytes = vec![0; bytes];
        let at = std::mem::offset_of!(Head, events);
        bytes[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        // Events of some kind.
        bytes[size_of::<Head>()..].fill(1);
        let late = part_of(&bytes, |_| Vec::new()).unwrap().wakeup;
        assert_eq!(late.events.len(), room);
        assert_eq!(late.lost, u32::MAX - u32::try_from(room).unwrap());
    }
}
