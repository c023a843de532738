//! Runs of guests whose hypervisor took time.

use super::runs::{episode, guest, share};
use super::*;
use crate::html::page;
use crate::run_set::{Entry, RunSet};
use wakescope_core::limit::{Judgement, Outcome};

#[test]
fn a_guest_has_a_second_ranking() {
    let mut run = guest();
    run.limits = vec![Judgement {
        limit: "max ≤ 1.00 ms".into(),
        limit_ns: 1_000_000,
        observed_ns: Some(8_130_000),
        outcome: Outcome::Fail,
        reason: String::new(),
    }];
    check(
        &run,
        Extent::Worst(1),
        &expect![[r#"
            |Worst wakeup 8.13 ms late: 8.10 ms stolen by the hypervisor. Net of measured steal, the worst wakeup
            |was 238 µs late: 231 µs interrupts off in uart_drain_fifo, called from serial_release in
            |logger[231].
            |20,000 wakeups followed, 41 at or above 240 µs (p99.9), 41 at or above 50.0
            |µs (p99.9) net of steal · valid
            |above the limit max ≤ 1.00 ms (steal included): 8.13 ms
            |
            |                          min      p50      p99      max  share of late time
            | interrupt latency     180 ns   180 ns   540 ns   231 µs  88.9 %  ████████████████
            | handler duration     1.40 µs  1.40 µs  4.20 µs  4.20 µs   2.7 %  ▌
            | scheduler latency      90 ns    90 ns   270 ns   600 ns   5.8 %  █▏
            | scheduling duration  1.10 µs  1.10 µs  3.30 µs  3.30 µs   2.6 %  ▌
            |
            | causes of the 41 wakeups at or above 240 µs (p99.9)  episodes    worst   share
            |  1  steal                hypervisor                        30  8.10 ms  95.1 %
            |  2  irq_off              uart_drain_fifo                   24   231 µs   4.3 %
            |  3  no_preemption_point  dir_scan_entries                  12  71.0 µs   0.4 %
            |  4  softirq              NET_RX                             5  58.0 µs   0.2 %
            |     unexplained                                             2  6.00 µs  <0.1 %
            |
            | causes of the 41 wakeups at or above 50.0 µs (p99.9) net of steal  episodes    worst   share
            |  1  irq_off      uart_drain_fifo                                         24   231 µs  98.6 %
            |  2  steal        hypervisor                                               2  30.0 µs   1.2 %
            |     unexplained                                                           2  6.00 µs   0.2 %
            | steal that remains here was concluded from events; the CPU's steal clock did not report it
            |
            | longest section with interrupts off: at least 231 µs in uart_drain_fifo, called from serial_release
            |   in logger[231]
            | traced with: local_timer_entry, irq_handler_entry, softirq_entry, nmi_handler, sched_entry_tp,
            |   sched_switch, hrtimer_expire_entry
            | not traced: edges of sections with interrupts or preemption off
            | lost records: 0 of 20,113
            |
            | #1  CPU 0  8.13 ms  (60.0 µs net of steal)  ├steal 8.1 hypervisor──────────────────────┤sched 0.03┤
            |    8.10 ms  99.6 %  steal · upper bound: remainder between two events
            |    30.0 µs   0.4 %  scheduler · both edges seen
            |
            | worst wakeups net of measured steal:
            | #1  CPU 0  238 µs  ├irq_off 231 uart_drain_fifo─────────────────────────────────┤irq 3.1┤sched 3.5┤
            |     0.0 µs  timer expiry; logger[231] running in the kernel
            |   231.4     local_timer taken
            |   232.0       hrtimer_wakeup
            |   234.5     handler returns
            |   235.1     scheduler entered
            |   238.0     wakescope[400] runs
            |     231 µs  97.2 %  irq_off in uart_drain_fifo, called from serial_release in logger[231] · stack
            |                     taken inside
            |         uart_drain_fifo+0x1b2 ← _raw_spin_unlock_irqrestore+0x15 ← serial_release+0x40 ←
            |         tty_release+0x1f0 ← __fput+0xe3 ← task_work_run+0x59 ← exit_to_user_mode_loop+0x120 ←
            |         do_syscall_64+0x1a5 ← entry_SYSCALL_64_after_hwframe+0x76
            |    3.50 µs   1.5 %  scheduler · both edges seen
            |    3.10 µs   1.3 %  irq local_timer · both edges seen
            |
            | kernel 6.12.95 · tsc
            | preemption voluntary: no preempt= on its command line
            | timer 1.00 ms · fifo 90 · CPU 0
        "#]],
    );
}

/// What the verdict says beside the worst wakeup.
#[track_caller]
fn check_verdict(change: impl FnOnce(&mut Run), want: &str) {
    let mut run = guest();
    change(&mut run);
    let all = sentence(&run).unwrap();
    let (_, second) = all.split_once("by the hypervisor.").expect("a verdict on the worst");
    assert_eq!(second, want);
}

#[test]
fn the_verdict_names_the_worst_without_stolen_time() {
    let by_driver = "231 µs interrupts off in uart_drain_fifo, called from serial_release in \
                     logger[231].";
    check_verdict(
        |_| {},
        &format!(" Net of measured steal, the worst wakeup was 238 µs late: {by_driver}"),
    );
    check_verdict(
        |run| run.net_of_steal.as_mut().unwrap().late += 1,
        &format!(" Net of measured steal, the worst explained wakeup was 238 µs late: {by_driver}"),
    );
    // Where the clock did not report what the hypervisor took, another cause is named as well.
    check_verdict(
        |run| {
            let concluded = share(Cause::Steal, 900_000, "", "", Evidence::Bound);
            let worst = &mut run.net_of_steal.as_mut().unwrap().worst;
            worst.insert(0, episode(900_000, vec![concluded], vec![]));
        },
        " Net of measured steal, the worst wakeup was 900 µs late, mainly by steal that was \
         concluded from events. The worst with another main cause: 238 µs late, 231 µs interrupts \
         off in uart_drain_fifo, called from serial_release in logger[231].",
    );
    let none_listed = |late, explained| {
        move |run: &mut Run| {
            let net = run.net_of_steal.as_mut().unwrap();
            (net.late, net.explained) = (late, explained);
            net.worst.clear();
        }
    };
    check_verdict(none_listed(0, 0), " Net of measured steal, no wakeup was late.");
    check_verdict(none_listed(5, 0), " Net of measured steal, no late wakeup is explained.");
    check_verdict(none_listed(5, 5), "");
    check_verdict(|run| run.net_of_steal = None, "");
    // The worst of all can be the worst without stolen time.
    let mut run = guest();
    run.worst.remove(0);
    let said = sentence(&run).unwrap();
    assert!(said.ends_with("It is the worst wakeup net of measured steal, too."), "{said}");
}

#[test]
fn shares_of_a_record_that_lies_cannot_do_harm() {
    let mut run = guest();
    for episode in run.worst.iter_mut().chain(&mut run.net_of_steal.as_mut().unwrap().worst) {
        episode.stolen_ns = Some(u64::MAX);
    }
    assert!(!text(&run, PLAIN, Extent::All).is_empty());
}

#[test]
fn a_page_and_markdown_have_the_second_ranking_too() {
    let shown = |run: &Run| {
        let run_set = RunSet::of(vec![Entry::of("a", run)]);
        [page(&run_set), crate::markdown::report(&run_set)]
    };
    for (page, alone) in shown(&guest()).iter().zip(shown(&serial())) {
        for text in ["Causes of late wakeups net of measured steal", "concluded from events"] {
            assert!(page.contains(text) && !alone.contains(text), "{text}: {page}");
        }
    }
}

/// Of two or three wakeups no percentile tells anything, and none is 0 ns.
#[test]
fn too_few_wakeups_for_a_percentile_all_count_as_late() {
    let mut run = guest();
    let explanation = run.explanation.as_mut().unwrap();
    (explanation.wakeups, explanation.late) = (3, 3);
    (explanation.above_ns, explanation.above) = (0, "all".into());
    let net = run.net_of_steal.as_mut().unwrap();
    (net.late, net.above_ns, net.above) = (3, 0, "all".into());
    let shown = text(&run, PLAIN, Extent::Worst(0));
    for part in [
        "3 wakeups followed, all count as late (too few for a percentile) · valid",
        "causes of all 3 wakeups (too few for a percentile)  ",
        "causes of all 3 wakeups (too few for a percentile) net of steal  ",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    assert!(!shown.contains("above"), "{shown}");
}
