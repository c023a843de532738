use super::*;
use crate::testing::{frame, function, place};
use wakescope_core::distribution::Distribution;
use wakescope_core::explain::{Edge, Longest, Task};

fn share(cause: Cause, ns: u64) -> Share {
    Share { cause, ns, ..Share::default() }
}

fn lengths(samples: &[u64]) -> Distribution {
    Distribution { max_at_ns: Some(500), ..Distribution::of(samples.iter().copied()) }
}

fn edge(place: &str, caller: &str) -> Edge {
    let known = |text: &str| (!text.is_empty()).then(|| frame(text));
    Edge { place: known(place), caller: known(caller) }
}

fn kind(samples: &[u64], begin: Edge) -> SectionKind {
    let longest = Longest {
        begin,
        end: edge("_raw_spin_unlock_irqrestore+0x15", ""),
        task: Some(Task { pid: 231, comm: "logger".into(), ..Task::default() }.named()),
        frames: ["_raw_spin_unlock_irqrestore+0x15", "uart_write+0x1b2", "tty_write+0x40"]
            .map(frame)
            .into(),
    };
    SectionKind { lengths: lengths(samples), longest: Some(longest), places: Vec::new() }
}

#[test]
fn the_longest_of_each_kind_is_kept() {
    let first = [share(Cause::IrqOff, 5), share(Cause::PreemptOff, 7)];
    let second = [share(Cause::NoPreemptionPoint, 9), share(Cause::IrqOff, 4)];
    let third = [share(Cause::Irq, 100), share(Cause::PreemptOff, 9)];
    let all = sections([&first[..], &second[..], &third[..]], None);
    let want = Sections {
        exact: false,
        irq_off: Some(first[0].clone()),
        preempt_off: Some(second[0].clone()),
        measured: None,
    };
    assert_eq!(all, want);
    assert_eq!(sections([], None), Sections::default());
}

#[test]
fn what_was_measured_stands_in_the_place_of_what_wakeups_show() {
    let blame = [share(Cause::IrqOff, 5), share(Cause::PreemptOff, 7)];
    let measured = Measured {
        irq_off: Some(kind(&[3, 40], edge("_raw_spin_lock_irqsave+0x20", "uart_write+0x33"))),
        preempt_off: Some(kind(&[6], edge("uart_flush+0x1", ""))),
        ..Measured::default()
    };
    let all = sections([&blame[..]], Some(measured.clone()));
    let (irq, preempt) = (all.irq_off.unwrap(), all.preempt_off.unwrap());
    assert!(all.exact);
    assert_eq!((irq.ns, irq.evidence, irq.culprit), (40, Evidence::Edge, function("uart_write")));
    assert_eq!(place(&irq.within, irq.waiting_for_lock), "tty_write in logger[231]");
    assert_eq!((preempt.ns, preempt.culprit), (6, function("uart_flush")));
    // Of a kernel that shows one kind only, the other remains an estimate.
    let half = sections([&blame[..]], Some(Measured { preempt_off: None, ..measured }));
    assert_eq!((half.exact, half.irq_off.unwrap().ns), (false, 40));
    assert_eq!(half.preempt_off, Some(blame[1].clone()));
}

#[test]
fn a_stretch_without_a_preemption_point_has_no_edges() {
    let measured = || Measured {
        irq_off: Some(SectionKind::default()),
        preempt_off: Some(kind(&[6], edge("uart_flush+0x1", ""))),
        ..Measured::default()
    };
    let of = |ns| {
        let blame = [share(Cause::NoPreemptionPoint, ns)];
        sections([&blame[..]], Some(measured())).preempt_off.unwrap()
    };
    assert_eq!((of(7).cause, of(7).ns), (Cause::NoPreemptionPoint, 7));
    assert_eq!((of(5).cause, of(5).ns), (Cause::PreemptOff, 6));
    // None at all is no longest one.
    let none = sections([], Some(Measured { preempt_off: None, ..measured() }));
    assert_eq!(none.irq_off, None);
}

#[test]
fn a_section_is_named_by_who_began_it() {
    let named = |place: &str, caller: &str| {
        kind(&[1], edge(place, caller)).longest.map(|longest| culprit_of(&longest)).unwrap()
    };
    assert_eq!(named("uart_flush+0x1", "tty_flush+0x2"), function("uart_flush"));
    assert_eq!(named("_raw_spin_lock+0x1", "tty_flush+0x2"), function("tty_flush"));
    // A kernel without frame pointers does not know the caller: then by the stack at its end.
    assert_eq!(named("_raw_spin_lock_irqsave+0x1", ""), function("uart_write"));
    assert_eq!(named("", ""), function("uart_write"));
}
