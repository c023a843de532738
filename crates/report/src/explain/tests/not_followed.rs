//! Late wakeups that were not followed: whatever shows causes shows them as unexplained.

use super::runs::{cause, not_followed};
use super::*;
use crate::explain::cause_lines;
use wakescope_core::explain::Culprit;
use wakescope_core::plan::Target;

#[test]
fn late_wakeups_that_were_not_followed_are_unexplained_in_every_part() {
    let shown = text(&not_followed(), PLAIN, Extent::Worst(0));
    let until = shown.find(" longest section").unwrap();
    expect![[r#"
        |Worst wakeup 238 µs late: 231 µs interrupts off in uart_drain_fifo, called from serial_release in
        |logger[231]. In all, 6.2 % of the late time is unexplained: 2 of 43 late wakeups have no
        |explanation.
        |20,000 wakeups followed, 2 not followed (2 late), 43 at or above 50.0 µs · valid
        |
        |                          min      p50      p99      max  share of late time
        | interrupt latency     180 ns   180 ns   540 ns   231 µs  83.5 %  ███████████████▏
        | handler duration     1.40 µs  1.40 µs  4.20 µs  4.20 µs   2.6 %  ▌
        | scheduler latency      90 ns    90 ns   270 ns   600 ns   5.4 %  █
        | scheduling duration  1.10 µs  1.10 µs  3.30 µs  3.30 µs   2.5 %  ▌
        | late, not explained        –        –        –        –   6.0 %  █▏
        |
        | causes of the 43 wakeups at or above 50.0 µs  episodes    worst   share
        |  1  irq_off              uart_drain_fifo            24   231 µs  82.5 %
        |  2  no_preemption_point  dir_scan_entries           12  71.0 µs   8.5 %
        |  3  softirq              NET_RX                      5  58.0 µs   2.8 %
        |     unexplained                                      4   180 µs   6.2 %
        |
    "#]]
        .assert_eq(&shown[..until].lines().map(|line| format!("|{line}\n")).collect::<String>());
    let losses = " late wakeups not explained: 2 of 43\n late wakeups not followed: 2 of 43\n";
    assert!(shown.contains(losses), "{shown}");
}

#[test]
fn of_threads_of_others_it_is_told_that_nobody_knows() {
    let mut run = not_followed();
    run.plan.target = Target::Unknown;
    if let Some(explanation) = &mut run.explanation {
        (explanation.late, explanation.late_not_followed) = (41, 0);
        explanation.unexplained_ns = 0;
    }
    let message = |run: &Run| text(run, PLAIN, Extent::default());
    let want = " not counted here: 2 wakeups that were not followed, with unknown lateness\n";
    assert!(message(&run).contains(want), "{}", message(&run));
    if let Some(explanation) = &mut run.explanation {
        explanation.not_followed = 0;
    }
    assert!(!message(&run).contains("not followed"), "{}", message(&run));
}

#[test]
fn what_is_unexplained_has_room_among_many_causes() {
    let mut causes: Vec<_> =
        (0..30).map(|i| cause(Cause::Irq, &format!("irq{i}"), 1, 50 - i, 50 - i)).collect();
    causes.insert(0, cause(Cause::Unexplained, "", 1, 1, 1));
    for (most, others) in [(1, 29), (2, 28), (10, 20), (28, 2), (29, 0), (40, 0)] {
        let lines = cause_lines(&causes, most);
        assert_eq!(lines.len(), if others == 0 { 31 } else { most + 2 }, "{most}");
        let last = lines.last().unwrap();
        assert_eq!(last.single().unwrap().cause, Cause::Unexplained);
        assert_eq!(last.share(), "0.1 %", "{most}");
        let of_others = lines[lines.len() - 2].cause(crate::explain::cause);
        assert_eq!(of_others == format!("{others} others"), others > 0, "{of_others}");
    }
    causes.remove(0);
    let lines = cause_lines(&causes, 10);
    assert_eq!(lines.len(), 11);
    assert_eq!(lines[9].single().unwrap().culprit, Culprit::interrupt("irq9"));
}
