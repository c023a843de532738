//! Waits of which it was seen when interrupts went off, and on again.

use super::*;

/// What the wait for an interrupt at 10 µs comes to, of which 1 µs is usual, if interrupts were off
/// between these times, µs; before `due` they are negative.
#[track_caller]
fn check(off: i64, on: i64, want: &[(Cause, u64, Evidence)]) {
    let time = |us: i64| MonoNs(DUE.checked_add_signed(us * 1_000).unwrap());
    let wakeup =
        Wakeup { interrupted: Some(in_kernel()), irqs_off: Some((time(off), time(on))), ..timer() };
    let shares = blame(
        &wakeup,
        &Known {
            delivery_ns: 1_000,
            scheduling_ns: None,
            least_sched_latency_ns: None,
            waking_ns: None,
            guest: false,
            ticks: false,
            probes: true,
            shows_softirqs_left: false,
            shows_throttling: false,
        },
    );
    let of_wait =
        |cause: &Cause| matches!(cause, Cause::IrqOff | Cause::Unexplained) || *cause == Cause::Irq;
    let mut got: Vec<_> = shares
        .iter()
        .filter(|share| of_wait(&share.cause) && who(share.blamed()) != "local_timer")
        .map(|share| (share.cause, share.ns, share.evidence))
        .collect();
    got.sort_by_key(|share| std::cmp::Reverse(share.1));
    assert_eq!(got, want, "{shares:#?}");
}

#[test]
fn a_section_with_both_edges_is_certain() {
    let delivery = (Cause::Irq, 1_000, Evidence::Bound);
    check(-50, 9, &[(Cause::IrqOff, 9_000, Evidence::Edge), delivery]);
    check(0, 9, &[(Cause::IrqOff, 9_000, Evidence::Edge), delivery]);
}

#[test]
fn no_section_takes_what_lies_outside_of_it() {
    // It began after the timer was due: nobody knows who held that up before.
    let rest = (Cause::Unexplained, 9_000, Evidence::Bound);
    check(8, 9, &[rest, (Cause::IrqOff, 1_000, Evidence::Edge)]);
    // It was over when the timer was due.
    let delivery = (Cause::Irq, 1_000, Evidence::Bound);
    check(-9, -1, &[rest, delivery]);
    check(-9, 0, &[rest, delivery]);
    // It was over long before the interrupt came.
    let rest = (Cause::Unexplained, 6_000, Evidence::Bound);
    check(-9, 4, &[rest, (Cause::IrqOff, 4_000, Evidence::Edge)]);
}

#[test]
fn edges_that_make_no_sense_are_none() {
    let by_stack = (Cause::IrqOff, 9_000, Evidence::Stack);
    let delivery = (Cause::Irq, 1_000, Evidence::Bound);
    check(9, 3, &[by_stack, delivery]);
    check(3, 11, &[by_stack, delivery]);
}
