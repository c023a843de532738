use super::*;
use wakescope_core::explain::Frame;

/// Functions of a kernel that is made up.
const LIST: &str = "\
ffffffff81000000 T bpf_trace_run2
ffffffff81000100 T trace_hardirqs_on
ffffffff81000200 T do_work
ffffffff81000300 T do_syscall_64
";

/// Which is in no list.
const PROGRAM: u64 = 0xffff_ffff_a000_3de1;
const TRACE: u64 = 0xffff_ffff_8100_0010;
const HARDIRQS: u64 = 0xffff_ffff_8100_0110;
const WORK: u64 = 0xffff_ffff_8100_0210;
const SYSCALL: u64 = 0xffff_ffff_8100_0310;

const BOTH: Shows = Shows { irq: true, preempt: true };

fn lengths(samples: &[u64]) -> Distribution {
    Distribution { max_at_ns: Some(500), ..Distribution::of(samples.iter().copied()) }
}

fn section(begin: u64, end: u64, count: u64, worst: u64) -> shared::Section {
    let total = count * worst / 2;
    shared::Section { begin, end, count, total, worst, ..Default::default() }
}

fn longest(section: shared::Section, comm: &str) -> shared::Longest {
    let mut longest = shared::Longest { section, stack_bytes: 40, ..Default::default() };
    longest.task.pid = 231;
    longest.task.comm[..comm.len()].copy_from_slice(comm.as_bytes());
    longest.stack[..5].copy_from_slice(&[PROGRAM, TRACE, HARDIRQS, WORK, SYSCALL]);
    longest
}

fn measured(counted: &Counted) -> Measured {
    let symbols = Symbols::from_list(LIST.as_bytes()).unwrap();
    counted.measured(&symbols)
}

#[test]
fn what_each_cpu_counted_is_added_up() {
    let mut counted = Counted::none(BOTH);
    let on_first = section(WORK, SYSCALL, 2, 40);
    let on_second = section(WORK, SYSCALL, 3, 70);
    let other = section(0, WORK, 1, 90);
    let kind = &mut counted.kinds[IRQ_OFF];
    kind.add(&lengths(&[1, 40]), &longest(on_first, "first"), [on_first].into_iter());
    let slots = [on_second, shared::Section::default(), other];
    kind.add(&lengths(&[2, 3, 70, 90]), &longest(other, "second"), slots.into_iter());
    for (edges, worst) in [(12, [90, 5]), (8, [80, 6])] {
        let state = shared::Sections {
            edges,
            unpaired: 1,
            nmis: 2,
            crowded: 3,
            either_worst: worst,
            ..Default::default()
        };
        counted.add_state(&state);
    }
    let all = measured(&counted);
    assert_eq!((all.edges, all.unpaired, all.with_nmi, all.no_room), (20, 2, 4, 6));
    assert_eq!((all.either_ns, all.either_scheduling_ns), (Some(90), Some(6)));
    let irq_off = all.irq_off.unwrap();
    assert_eq!((irq_off.lengths.count, irq_off.lengths.max_ns), (6, Some(90)));
    let text = |place: &SectionPlace| {
        (place.begin.place.clone(), place.end.place.clone(), place.count, place.worst_ns)
    };
    let places: Vec<_> = irq_off.places.iter().map(text).collect();
    let (work, syscall) =
        (Frame::in_function("do_work", 16), Frame::in_function("do_syscall_64", 16));
    let (at_work, at_syscall) = (Some(work.clone()), Some(syscall.clone()));
    assert_eq!(places, [(None, at_work.clone(), 1, 90), (at_work, at_syscall, 5, 70)]);
    assert_eq!(irq_off.places[1].total_ns, 40 + 105);
    let longest = irq_off.longest.unwrap();
    let task = longest.task.unwrap();
    assert_eq!((task.comm.as_str(), task.pid), ("second", Some(231)));
    assert_eq!(longest.frames, [work, syscall]);
    assert_eq!(all.preempt_off, Some(SectionKind::default()));
}

#[test]
fn places_with_the_longest_sections_are_told() {
    let mut counted = Counted::none(BOTH);
    let slots: Vec<_> = (1..=20).map(|n| section(WORK + n, SYSCALL, 1, n)).collect();
    let last = longest(slots[19], "x");
    counted.kinds[HANDLER].add(&lengths(&[20]), &last, slots.into_iter());
    let places = measured(&counted).handlers.unwrap().places;
    let worst: Vec<_> = places.iter().map(|place| place.worst_ns).collect();
    assert_eq!(worst, [20, 19, 18, 17, 16, 15, 14, 13]);
}

#[test]
fn a_kind_that_the_kernel_does_not_show_is_none() {
    let irq_only = measured(&Counted::none(Shows { preempt: false, ..BOTH }));
    assert!(irq_only.irq_off.is_some() && irq_only.handlers.is_some());
    assert!(irq_only.preempt_off.is_none() && irq_only.scheduling.is_none());
    assert!(!irq_only.is_complete());
}

#[test]
fn hostile_counts_do_no_harm() {
    let mut counted = Counted::none(BOTH);
    let wild = shared::Section {
        begin: u64::MAX,
        count: u64::MAX,
        total: u64::MAX,
        worst: u64::MAX,
        ..Default::default()
    };
    let longest = shared::Longest { section: wild, stack_bytes: i32::MIN, ..Default::default() };
    for kind in &mut counted.kinds {
        for _ in 0..2 {
            kind.add(&lengths(&[u64::MAX >> 24]), &longest, [wild, wild].into_iter());
        }
    }
    let state = shared::Sections { edges: u64::MAX, unpaired: u64::MAX, ..Default::default() };
    counted.add_state(&state);
    counted.add_state(&state);
    let all = measured(&counted);
    assert_eq!((all.edges, all.kinds().count()), (u64::MAX, 4));
    assert_eq!(all.irq_off.unwrap().longest.unwrap().frames, []);
}

#[test]
fn only_programs_that_see_something_are_attached() {
    let half = Shows { irq: true, preempt: false };
    let needed = ["irq_enable", "preempt_disable"].map(|name| half.needs(name));
    assert_eq!(needed, [true, false]);
    assert!(!Shows::default().needs("irq_enable"));
    assert_eq!(BOTH.unseen(true), None);
    assert_eq!(half.unseen(false).as_deref(), Some("edges of sections with preemption off"));
    let none = Shows::default().unseen(false);
    assert_eq!(none.as_deref(), Some("edges of sections with interrupts or preemption off"));
    let asked = Shows::default().unseen(true).unwrap();
    assert!(asked.ends_with("off (no PREEMPTIRQ_TRACEPOINTS)"));
}
