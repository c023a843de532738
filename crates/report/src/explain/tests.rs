use expect_test::{Expect, expect};
use wakescope_core::explain::{
    Bound, Cause, Culprit, Evidence, Frame, Gap, Share, SourceLine, Step, StepEvent, Unsound,
};
use wakescope_core::run::Summary;

use super::*;
use crate::text::tests::run_of;
use runs::{bound, crowded, frame, frames, lossy, measured, serial, table};

pub(crate) mod hostile;
mod net;
mod not_followed;
mod ranking;
pub(crate) mod runs;
mod truth;

const PLAIN: Style = Style { colour: false };

/// `expect!` takes off the blanks that all lines begin with; a frame keeps them.
#[track_caller]
fn check(run: &Run, extent: Extent, want: &Expect) {
    let shown = text(run, PLAIN, extent);
    want.assert_eq(&shown.lines().map(|line| format!("|{line}\n")).collect::<String>());
}

#[test]
fn a_section_with_interrupts_off() {
    check(
        &serial(),
        Extent::default(),
        &expect![[r#"
            |Worst wakeup 238 µs late: 231 µs interrupts off in uart_drain_fifo, called from serial_release in
            |logger[231].
            |20,000 wakeups followed, 41 at or above 50.0 µs · valid
            |
            |                          min      p50      p99      max  share of late time
            | interrupt latency     180 ns   180 ns   540 ns   231 µs  88.9 %  ████████████████
            | handler duration     1.40 µs  1.40 µs  4.20 µs  4.20 µs   2.7 %  ▌
            | scheduler latency      90 ns    90 ns   270 ns   600 ns   5.8 %  █▏
            | scheduling duration  1.10 µs  1.10 µs  3.30 µs  3.30 µs   2.6 %  ▌
            |
            | causes of the 41 wakeups at or above 50.0 µs  episodes    worst   share
            |  1  irq_off              uart_drain_fifo            24   231 µs  87.8 %
            |  2  no_preemption_point  dir_scan_entries           12  71.0 µs   9.0 %
            |  3  softirq              NET_RX                      5  58.0 µs   3.0 %
            |     unexplained                                      2  6.00 µs   0.2 %
            |
            | longest section with interrupts off: at least 231 µs in uart_drain_fifo, called from serial_release
            |   in logger[231]
            | traced with: local_timer_entry, irq_handler_entry, softirq_entry, nmi_handler, sched_entry_tp,
            |   sched_switch, hrtimer_expire_entry
            | not traced: edges of sections with interrupts or preemption off
            | lost records: 0 of 20,113
            |
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

#[test]
fn stacks_with_lines_and_of_programs() {
    let mut run = serial();
    let share = &mut run.worst[0].blame[0];
    share.frames.truncate(4);
    let line = |function: &str, file: &str, line| SourceLine {
        function: function.into(),
        file: file.into(),
        line,
    };
    let deep = "drivers/staging/a/vendor/with/many/folders/serial_core.c";
    let lines = [
        vec![line("uart_drain_fifo", "drivers/tty/serial/uart.c", 912)],
        vec![
            line("arch_local_irq_restore", "arch/x86/include/asm/irqflags.h", 119),
            line("__raw_spin_unlock_irqrestore", "include/linux/spinlock_api_smp.h", 150),
            line("_raw_spin_unlock_irqrestore", "kernel/locking/spinlock.c", 194),
        ],
        vec![],
        vec![line("\x1b", deep, 0)],
    ];
    share.frames.iter_mut().zip(lines).for_each(|(frame, lines)| frame.set_lines(lines));
    share.given_up_at =
        frames(&["schedule+0x56", "tty_wait+0x10", "tty_release+0x1f0", "__fput+0xe3"]);
    share.frames.push(frame("__fput+0xe3"));
    share.given_up_at[0].set_lines(vec![line("schedule", "kernel/sched/core.c", 6770)]);
    share.user_stack = frames(&["close+0xb [libc.so.6]", "flush+0x40 [logger]"]);
    let (module, offset) = (Some("logger".into()), 0x1c20);
    share.user_stack.push(Frame { module, offset, ..Frame::default() });
    let text = text(&run, Style::default(), Extent::default());
    let from = text.find("taken inside\n").unwrap() + "taken inside\n".len();
    let until = text.find("    3.50 µs").unwrap();
    let shown = text[from..until].lines().map(|line| format!("|{line}\n")).collect::<String>();
    expect![[r#"
        |         uart_drain_fifo+0x1b2 (drivers/tty/serial/uart.c:912) ← _raw_spin_unlock_irqrestore+0x15
        |         (arch_local_irq_restore at arch/x86/include/asm/irqflags.h:119,
        |         inlined into kernel/locking/spinlock.c:194) ← serial_release+0x40 ←
        |         tty_release+0x1f0 (…ndor/with/many/folders/serial_core.c) ← __fput+0xe3
        |         gives up the CPU in schedule+0x56 (kernel/sched/core.c:6770) ← tty_wait+0x10 ←
        |         tty_release+0x1f0 ← … 1 more
        |         user stack: close+0xb [libc.so.6] ← flush+0x40 [logger] ← logger+0x1c20
    "#]].assert_eq(&shown);
}

#[test]
fn many_causes_without_a_preemption_point() {
    check(
        &crowded(),
        Extent::Worst(1),
        &expect![[r#"
            |Worst wakeup 412 µs late: 391 µs no preemption point in shmem_undo_range, called from exit_mmap in
            |rm[412].
            |20,000 wakeups followed, 41 at or above 31.2 µs (p99.9) · valid
            |
            |                          min      p50      p99      max  share of late time
            | interrupt latency     180 ns   180 ns   540 ns   231 µs  88.9 %  ████████████████
            | handler duration     1.40 µs  1.40 µs  4.20 µs  4.20 µs   2.7 %  ▌
            | scheduler latency      90 ns    90 ns   270 ns   600 ns   5.8 %  █▏
            | scheduling duration  1.10 µs  1.10 µs  3.30 µs  3.30 µs   2.6 %  ▌
            |
            | causes of the 41 wakeups at or above 31.2 µs (p99.9)  episodes   worst   share
            |  1  no_preemption_point  function_0                         30  400 µs  50.0 %
            |  2  no_preemption_point  function_1                         29  391 µs  25.0 %
            |  3  no_preemption_point  function_2                         28  382 µs  12.5 %
            |  4  no_preemption_point  function_3                         27  373 µs   6.2 %
            |  5  no_preemption_point  function_4                         26  364 µs   3.1 %
            |  6  no_preemption_point  function_5                         25  355 µs   1.6 %
            |  7  no_preemption_point  function_6                         24  346 µs   0.8 %
            |  8  no_preemption_point  function_7                         23  337 µs   0.4 %
            |  9  no_preemption_point  function_8                         22  328 µs   0.2 %
            | 10  no_preemption_point  function_9                         21  319 µs   0.1 %
            |     20 others                                                   310 µs   0.1 %
            |     unexplained                                                            0 %
            |
            | longest section with interrupts off: 12.0 µs in tick_sched_timer
            | longest stretch without a preemption point: 391 µs in shmem_undo_range, called from exit_mmap in
            |   rm[412]
            |    function_of_the_kernel_0+0x0 ← function_of_the_kernel_1+0x10 ← function_of_the_kernel_2+0x20 ←
            |    function_of_the_kernel_3+0x30 ← function_of_the_kernel_4+0x40 ← function_of_the_kernel_5+0x50 ←
            |    function_of_the_kernel_6+0x60 ← function_of_the_kernel_7+0x70 ← function_of_the_kernel_8+0x80 ←
            |    function_of_the_kernel_9+0x90 ← function_of_the_kernel_10+0x100 ←
            |    function_of_the_kernel_11+0x110 ← … 8 more
            | traced with: local_timer_entry, irq_handler_entry, softirq_entry, nmi_handler, sched_entry_tp,
            |   sched_switch, hrtimer_expire_entry
            | not traced: edges of sections with interrupts or preemption off
            | lost records: 0 of 20,113
            |
            | #1  CPU 0  412 µs  ├irq +1 3.0┤no_preemption_point 391 shmem_undo_range─────┤higher_priority +1 18┤
            |     0.0 µs  timer expiry
            |     391 µs  94.9 %  no_preemption_point in shmem_undo_range, called from exit_mmap in rm[412] ·
            |                     stack taken inside
            |         function_of_the_kernel_0+0x0 ← function_of_the_kernel_1+0x10 ←
            |         function_of_the_kernel_2+0x20 ← function_of_the_kernel_3+0x30 ←
            |         function_of_the_kernel_4+0x40 ← function_of_the_kernel_5+0x50 ←
            |         function_of_the_kernel_6+0x60 ← function_of_the_kernel_7+0x70 ←
            |         function_of_the_kernel_8+0x80 ← function_of_the_kernel_9+0x90 ←
            |         function_of_the_kernel_10+0x100 ← function_of_the_kernel_11+0x110 ← … 8 more
            |    14.0 µs   3.4 %  higher_priority_task migration/0[19] fifo 99 · both edges seen
            |    4.00 µs   1.0 %  scheduler · both edges seen
            |    2.00 µs   0.5 %  irq local_timer · both edges seen
            |    1.00 µs   0.2 %  irq_off · upper bound: remainder between two events
            |
            | kernel 6.12.95 · tsc
            | preemption voluntary: no preempt= on its command line
            | timer 1.00 ms · fifo 90 · CPU 0
        "#]],
    );
}

/// What is told of sections.
#[track_caller]
fn check_sections(run: &Run, want: &Expect) {
    let shown = text(run, PLAIN, Extent::default());
    let is_section = |line: &str| line.starts_with(" sections") || line.starts_with(" longest");
    let from = shown.lines().skip_while(|line| !is_section(line));
    let lines = from.take_while(|line| !line.starts_with(" traced with"));
    want.assert_eq(&lines.map(|line| format!("|{line}\n")).collect::<String>());
}

#[test]
fn sections_with_both_ends_are_no_estimate() {
    check_sections(
        &measured(),
        &expect![[r#"
            | sections, from edge to edge   count     p50      p99      max
            | interrupts off               20,000  400 ns  9.01 µs   231 µs
            | preemption off                    2       –        –  46.0 µs
            | preemption off to schedule        2       –        –  2.00 µs
            | interrupts                        0       –        –        –
            | sections not counted: 1 with an unpaired edge, 2 with an NMI
            | longest section with interrupts off: 231 µs in uart_drain_fifo, called from serial_release in
            |   logger[231]; from _raw_spin_lock_irqsave+0x20 (uart_write+0x33) to _raw_spin_unlock_irqrestore+0x15
            |   (uart_write+0x1b2)
            |    uart_drain_fifo+0x1b2 ← _raw_spin_unlock_irqrestore+0x15 ← serial_release+0x40 ←
            |    tty_release+0x1f0 ← __fput+0xe3 ← task_work_run+0x59 ← exit_to_user_mode_loop+0x120 ←
            |    do_syscall_64+0x1a5 ← entry_SYSCALL_64_after_hwframe+0x76
            | longest section with preemption off: 46.0 µs in uart_drain_fifo, called from serial_release in
            |   logger[231]; from _raw_spin_lock_irqsave+0x20 (uart_write+0x33) to _raw_spin_unlock_irqrestore+0x15
            |   (uart_write+0x1b2)
            |    uart_drain_fifo+0x1b2 ← _raw_spin_unlock_irqrestore+0x15 ← serial_release+0x40 ←
            |    tty_release+0x1f0 ← __fput+0xe3 ← task_work_run+0x59 ← exit_to_user_mode_loop+0x120 ←
            |    do_syscall_64+0x1a5 ← entry_SYSCALL_64_after_hwframe+0x76
            | locations of the longest sections     count    worst
            | irq_off      uart_write                  21   231 µs
            | irq_off      do_idle → irqentry_exit  9,000   900 ns
            | preempt_off  uart_write                   2  46.0 µs
        "#]],
    );
    // Of a kernel that shows those of interrupts only.
    let mut half = measured();
    let sections = half.explanation.as_mut().and_then(|message| message.sections.as_mut()).unwrap();
    let measured = sections.measured.as_mut().unwrap();
    (measured.preempt_off, measured.scheduling) = (None, None);
    (measured.unpaired, measured.with_nmi) = (0, 0);
    sections.exact = false;
    sections.preempt_off.as_mut().unwrap().evidence = Evidence::Stack;
    check_sections(
        &half,
        &expect![[r#"
            | sections, from edge to edge   count     p50      p99     max
            | interrupts off               20,000  400 ns  9.01 µs  231 µs
            | interrupts                        0       –        –       –
            | longest section with interrupts off: 231 µs in uart_drain_fifo, called from serial_release in
            |   logger[231]; from _raw_spin_lock_irqsave+0x20 (uart_write+0x33) to _raw_spin_unlock_irqrestore+0x15
            |   (uart_write+0x1b2)
            |    uart_drain_fifo+0x1b2 ← _raw_spin_unlock_irqrestore+0x15 ← serial_release+0x40 ←
            |    tty_release+0x1f0 ← __fput+0xe3 ← task_work_run+0x59 ← exit_to_user_mode_loop+0x120 ←
            |    do_syscall_64+0x1a5 ← entry_SYSCALL_64_after_hwframe+0x76
            | longest section with preemption off: at least 46.0 µs in uart_drain_fifo, called from
            |   serial_release in logger[231]
            | locations of the longest sections     count   worst
            | irq_off      uart_write                  21  231 µs
            | irq_off      do_idle → irqentry_exit  9,000  900 ns
        "#]],
    );
    // Part of it may have been the hypervisor's.
    let sections = half.explanation.as_mut().and_then(|message| message.sections.as_mut()).unwrap();
    sections.preempt_off.as_mut().unwrap().evidence = Evidence::Bound;
    let shown = text(&half, PLAIN, Extent::default());
    assert!(shown.contains("longest section with preemption off: perhaps 46.0 µs in "), "{shown}");
}

/// What is told of a bound.
#[track_caller]
fn check_bound(change: impl FnOnce(&mut Bound), want: &Expect) {
    let mut run = serial();
    let mut bound = bound(2, &[]);
    change(&mut bound);
    if let Some(explanation) = &mut run.explanation {
        explanation.bound = Some(bound);
    }
    let shown = text(&run, PLAIN, Extent::default());
    let from = shown.lines().skip_while(|line| !line.starts_with(" bound"));
    let lines = from.take_while(|line| !line.starts_with(" traced with"));
    want.assert_eq(&lines.map(|line| format!("|{line}\n")).collect::<String>());
}

#[test]
fn a_bound_stands_beside_what_was_observed() {
    check_bound(
        |_| {},
        &expect![[r#"
            | bound: 312 µs (interference-free 286 µs, with interrupts at the highest observed rate); observed
            |   238 µs
            | components: timer delivery 600 ns, section 281 µs, path to the scheduler 900 ns, scheduler 3.50 µs;
            |   eth0-rx-0 12.1 µs every 48.0 µs, eth0-rx-1 12.0 µs once
        "#]],
    );
    check_bound(
        |bound| {
            bound.bound_ns = None;
            bound.variables = Default::default();
        },
        &expect![[r#"
            | bound: none below a second (interference-free 286 µs; at the highest observed rate, interrupts
            |   leave no time); observed 238 µs
        "#]],
    );
}

#[test]
fn a_bound_that_does_not_hold_says_why() {
    let change = |bound: &mut Bound| {
        bound.variables = runs::bound(9, &[]).variables;
        bound.variables.interrupts[0].culprit = Culprit::interrupt(&"\u{1b}[31m".repeat(50));
        let exceeded = Unsound::Exceeded { cause: Some(Cause::Steal) };
        bound.unsound = vec![Unsound::NotFullyPreemptible, exceeded];
    };
    check_bound(
        change,
        &expect![[r#"
            | bound (unsound): 312 µs (interference-free 286 µs, with interrupts at the highest observed rate);
            |   observed 238 µs
            | components: timer delivery 600 ns, section 281 µs, path to the scheduler 900 ns, scheduler 3.50 µs;
            |   �[31m�[31m�[31m�[31m�[31m�[31m�[31m�[31m… 12.1 µs every 48.0 µs, eth0-rx-1 12.0 µs once, eth0-rx-2
            |   11.9 µs every 48.0 µs, eth0-rx-3 11.8 µs every 48.0 µs, eth0-rx-4 11.7 µs every 48.0 µs, eth0-rx-5
            |   11.6 µs every 48.0 µs, 3 more
            | unsound: the kernel is not fully preemptible: its code may run for any time even with preemption
            |   enabled
            | unsound: a wakeup exceeded the bound, because of a cause that the bound does not include: stolen by
            |   the hypervisor
        "#]],
    );
}

#[test]
fn what_was_lost_is_unexplained() {
    check(
        &lossy(),
        Extent::All,
        &expect![[r#"
            |Worst wakeup 4.31 ms late, not explained; 3 of the tracer's records were lost, 1 of 41 late wakeups
            |was not followed. The worst explained wakeup: 238 µs late, 231 µs interrupts off in uart_drain_fifo,
            |called from serial_release in logger[231]. In all, 48.1 % of the late time is unexplained: 1 of 41
            |late wakeups has no explanation.
            |20,000 wakeups followed, 2 not followed (1 late), 41 at or above 50.0 µs · degraded: see below
            |
            |                          min      p50      p99      max  share in the worst 1
            | interrupt latency     180 ns   180 ns   540 ns   231 µs  97.2 %  █████████████████▋
            | handler duration     1.40 µs  1.40 µs  4.20 µs  4.20 µs   1.3 %  ▎
            | scheduler latency      90 ns    90 ns   270 ns   600 ns   0.3 %  ▏
            | scheduling duration  1.10 µs  1.10 µs  3.30 µs  3.30 µs   1.2 %  ▎
            |
            | causes of the 41 wakeups at or above 50.0 µs  episodes    worst   share
            |  1  irq_off              uart_drain_fifo            24   231 µs  45.7 %
            |  2  no_preemption_point  dir_scan_entries           12  71.0 µs   4.7 %
            |  3  softirq              NET_RX                      5  58.0 µs   1.5 %
            |     unexplained                                      3  4.31 ms  48.1 %
            |
            | traced with: local_timer_entry, irq_handler_entry, softirq_entry, nmi_handler, sched_entry_tp,
            |   sched_switch, hrtimer_expire_entry
            | not traced: edges of sections with interrupts or preemption off
            | lost records: 3 of 20,116
            | late wakeups not explained: 1 of 41
            | late wakeups not followed: 1 of 41
            |
            | not explained: #1 4.31 ms
            | #2  CPU 0  238 µs  ├irq_off 231 uart_drain_fifo─────────────────────────────────┤irq 3.1┤sched 3.5┤
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
            | #3  CPU 0  120 µs  ├equal_or_lower 60 make[77] other──────┤unexplained 60─────────────────────────┤
            |    60.0 µs  50.0 %  equal_or_lower_task make[77] other · both edges seen
            |    60.0 µs  50.0 %  unexplained
            |
            | ! steal  the hypervisor took 38 ms from these CPUs
            |          → measure on the bare machine
            |
            | kernel 6.12.95 · tsc
            | preemption voluntary: no preempt= on its command line
            | timer 1.00 ms · fifo 90 · CPU 0
        "#]],
    );
}

#[test]
fn virtual_time_is_called_virtual() {
    let mut run = serial();
    run.time_domain = TimeDomain::Virtual;
    check(
        &run,
        Extent::default(),
        &expect![[r#"
            |Worst wakeup 238 virtual µs late: 231 virtual µs interrupts off in uart_drain_fifo, called from
            |serial_release in logger[231].
            |20,000 wakeups followed, 41 at or above 50.0 virtual µs · valid
            |
            | times are virtual: they count instructions
            |                          min      p50      p99      max  share of late time
            | interrupt latency     180 ns   180 ns   540 ns   231 µs  88.9 %  ████████████████
            | handler duration     1.40 µs  1.40 µs  4.20 µs  4.20 µs   2.7 %  ▌
            | scheduler latency      90 ns    90 ns   270 ns   600 ns   5.8 %  █▏
            | scheduling duration  1.10 µs  1.10 µs  3.30 µs  3.30 µs   2.6 %  ▌
            |
            | causes of the 41 wakeups at or above 50.0 virtual µs  episodes    worst   share
            |  1  irq_off              uart_drain_fifo                    24   231 µs  87.8 %
            |  2  no_preemption_point  dir_scan_entries                   12  71.0 µs   9.0 %
            |  3  softirq              NET_RX                              5  58.0 µs   3.0 %
            |     unexplained                                              2  6.00 µs   0.2 %
            |
            | longest section with interrupts off: at least 231 virtual µs in uart_drain_fifo, called from
            |   serial_release in logger[231]
            | traced with: local_timer_entry, irq_handler_entry, softirq_entry, nmi_handler, sched_entry_tp,
            |   sched_switch, hrtimer_expire_entry
            | not traced: edges of sections with interrupts or preemption off
            | lost records: 0 of 20,113
            |
            | #1  CPU 0  238 virtual µs  ├irq_off 231 uart_drain_fifo─────────────────────────┤irq 3.1┤sched 3.5┤
            |     0.0 virtual µs  timer expiry; logger[231] running in the kernel
            |   231.4             local_timer taken
            |   232.0               hrtimer_wakeup
            |   234.5             handler returns
            |   235.1             scheduler entered
            |   238.0             wakescope[400] runs
            |     231 virtual µs  97.2 %  irq_off in uart_drain_fifo, called from serial_release in logger[231] ·
            |                             stack taken inside
            |         uart_drain_fifo+0x1b2 ← _raw_spin_unlock_irqrestore+0x15 ← serial_release+0x40 ←
            |         tty_release+0x1f0 ← __fput+0xe3 ← task_work_run+0x59 ← exit_to_user_mode_loop+0x120 ←
            |         do_syscall_64+0x1a5 ← entry_SYSCALL_64_after_hwframe+0x76
            |    3.50 virtual µs   1.5 %  scheduler · both edges seen
            |    3.10 virtual µs   1.3 %  irq local_timer · both edges seen
            |
            | Virtual time counts instructions: the order of kernels and the differences between them are
            | meaningful, absolute times are not. Caches, idle states and firmware are not modelled.
            | The tracer that explains wakeups takes virtual time: it is in all figures of an explained cell.
            | Compare such cells only with each other.
            | kernel 6.12.95 · tsc
            | preemption voluntary: no preempt= on its command line
            | timer 1.00 virtual ms · fifo 90 · CPU 0
        "#]],
    );
}

#[test]
fn without_the_scheduler_s_entry_two_components_are_one() {
    let mut run = serial();
    let all = run.components.as_mut().unwrap();
    all.sched_duration = None;
    let explanation = run.explanation.as_mut().unwrap();
    explanation.late_components.as_mut().unwrap().sched_duration_ns = None;
    explanation.seen_with.retain(|hook| hook != "sched_entry_tp");
    explanation.not_seen.push("when the scheduler is entered (no sched_entry tracepoint)".into());
    check(
        &run,
        Extent::Worst(0),
        &expect![[r#"
            |Worst wakeup 238 µs late: 231 µs interrupts off in uart_drain_fifo, called from serial_release in
            |logger[231].
            |20,000 wakeups followed, 41 at or above 50.0 µs · valid
            |
            |                                     min      p50      p99      max  share of late time
            | interrupt latency                180 ns   180 ns   540 ns   231 µs  91.3 %  ████████████████▌
            | handler duration                1.40 µs  1.40 µs  4.20 µs  4.20 µs   2.8 %  ▋
            | scheduler latency and duration    90 ns    90 ns   270 ns   600 ns   5.9 %  █▏
            | Scheduler entry is not traced on this kernel: the last two components are combined.
            |
            | causes of the 41 wakeups at or above 50.0 µs  episodes    worst   share
            |  1  irq_off              uart_drain_fifo            24   231 µs  87.8 %
            |  2  no_preemption_point  dir_scan_entries           12  71.0 µs   9.0 %
            |  3  softirq              NET_RX                      5  58.0 µs   3.0 %
            |     unexplained                                      2  6.00 µs   0.2 %
            |
            | longest section with interrupts off: at least 231 µs in uart_drain_fifo, called from serial_release
            |   in logger[231]
            | traced with: local_timer_entry, irq_handler_entry, softirq_entry, nmi_handler, sched_switch,
            |   hrtimer_expire_entry
            | not traced: edges of sections with interrupts or preemption off, when the scheduler is entered (no
            |   sched_entry tracepoint)
            | lost records: 0 of 20,113
            |
            | kernel 6.12.95 · tsc
            | preemption voluntary: no preempt= on its command line
            | timer 1.00 ms · fifo 90 · CPU 0
        "#]],
    );
}

/// Of threads of others no wakeup is listed that was not late.
#[test]
fn nothing_was_late_of_others() {
    let mut run = run_of(&[&[2_600; 20_000]]);
    run.worst.clear();
    let explanation =
        Explanation { above_ns: 50_000, above: "50us".into(), ..Explanation::default() };
    run.explanation = Some(explanation);
    let said = |run: &Run| verdict::text(run, &Ranked::of(run));
    let nothing = "no wakeup was as late as 50.0 µs, so there is nothing to explain.";
    assert_eq!(said(&run), format!("Worst wakeup 2.60 µs late: {nothing}"));
    run.explanation.as_mut().unwrap().late = 1;
    assert!(said(&run).contains("the record holds no episodes (--worst 0)"), "{}", said(&run));
    // `model run` has no such option.
    run.time_domain = TimeDomain::Simulated;
    assert!(said(&run).ends_with("the record holds no episodes."), "{}", said(&run));
    run.summary.max_ns = Some(0);
    run.explanation.as_mut().unwrap().above_ns = 0;
    assert_eq!(said(&run), "Worst wakeup 0 simulated ns late: there is nothing to explain.");
}

#[test]
fn nothing_was_late() {
    let mut run = run_of(&[&[2_600; 20_000]]);
    run.components = Some(table([180, 1_400, 90, 1_100]));
    run.explanation = Some(Explanation {
        above_ns: 50_000,
        above: "50us".into(),
        wakeups: 20_000,
        ..Explanation::default()
    });
    check(
        &run,
        Extent::default(),
        &expect![[r#"
            |Worst wakeup 2.60 µs late: no wakeup was as late as 50.0 µs, so there is nothing to explain.
            |20,000 wakeups followed, 0 at or above 50.0 µs · valid
            |
            |                          min      p50      p99      max
            | interrupt latency     180 ns   180 ns   540 ns   540 ns
            | handler duration     1.40 µs  1.40 µs  4.20 µs  4.20 µs
            | scheduler latency      90 ns    90 ns   270 ns   270 ns
            | scheduling duration  1.10 µs  1.10 µs  3.30 µs  3.30 µs
            |
            | lost records: 0 of 0
            |
            | kernel 6.12.95 · tsc
            | preemption voluntary: no preempt= on its command line
            | timer 1.00 ms · fifo 90 · CPU 0
        "#]],
    );
}

#[test]
fn a_run_without_an_explanation_says_so() {
    let mut run = run_of(&[&[2_600; 20_000]]);
    check(
        &run,
        Extent::default(),
        &expect![[r#"
        |Worst wakeup 2.60 µs late. Cause unknown: this run was measured, not explained.
        |
        | kernel 6.12.95 · tsc
        | preemption voluntary: no preempt= on its command line
        | timer 1.00 ms · fifo 90 · CPU 0
    "#]],
    );
    run.worst.clear();
    assert!(text(&run, PLAIN, Extent::All).starts_with("Worst wakeup 2.60 µs late. Cause unknown"));
    run.summary = Summary::default();
    assert!(text(&run, PLAIN, Extent::All).starts_with("No wakeup was seen.\n"));
    // Who asked for no list has been told of all wakeups nevertheless.
    let mut run = serial();
    run.worst.clear();
    let sentence = verdict::text(&run, &Ranked::of(&run));
    let late = "Worst wakeup 238 µs late. Cause unknown: the record holds no episodes";
    assert!(sentence.starts_with(late), "{sentence}");
}

#[test]
fn where_nobody_woke_up_there_are_no_figures() {
    let mut run = serial();
    run.worst.clear();
    run.causes.clear();
    run.summary = Summary::default();
    let explanation = run.explanation.take().unwrap();
    run.explanation = Some(Explanation {
        above_ns: 0,
        above: "p99.9".into(),
        seen_with: explanation.seen_with,
        not_seen: explanation.not_seen,
        ..Explanation::default()
    });
    check(
        &run,
        Extent::default(),
        &expect![[r#"
        |No wakeup was seen.
        |0 wakeups followed · valid
        |
        | traced with: local_timer_entry, irq_handler_entry, softirq_entry, nmi_handler, sched_entry_tp,
        |   sched_switch, hrtimer_expire_entry
        | not traced: edges of sections with interrupts or preemption off
        | lost records: 0 of 0
        |
        | kernel 6.12.95 · tsc
        | preemption voluntary: no preempt= on its command line
        | timer 1.00 ms · fifo 90 · CPU 0
    "#]],
    );
}

#[test]
fn what_is_one_is_told_as_one() {
    let mut run = serial();
    let worst = &mut run.worst[0];
    let event = || StepEvent::Softirq { name: "RCU".into() };
    let step = |at_ns: u64| Step { at_ns, depth: 1, event: event() };
    worst.timeline.splice(1..1, (1..30).map(|at| step(at * 1_000)));
    worst.timeline.truncate(33);
    let irq = |line: u64| Share {
        cause: Cause::Irq,
        culprit: Culprit::interrupt(&format!("irq {line}")),
        ns: 10 + line,
        evidence: Evidence::Edge,
        ..Share::default()
    };
    worst.blame.extend((0..8).map(irq));
    let shown = text(&run, PLAIN, Extent::default());
    assert!(shown.contains("\n          … 1 step omitted\n"), "{shown}");
    assert!(shown.contains("\n    1 other, 10 ns\n"), "{shown}");
    // What the record has left out already is part of what is not there to see.
    run.worst[0].timeline[24].event = StepEvent::LeftOut { count: 967 };
    let shown = text(&run, PLAIN, Extent::default());
    assert!(shown.contains("… 967 steps omitted"), "{shown}");
    let explanation = run.explanation.as_mut().unwrap();
    (explanation.wakeups, explanation.late) = (1, 1);
    let shown = text(&run, PLAIN, Extent::default());
    assert!(shown.contains("\n1 wakeup followed, 1 at or above 50.0 µs"), "{shown}");
}

/// Every text of a run in which there is one of everything.
#[test]
fn nothing_is_one_and_many() {
    use wakescope_core::run::LoadResult;

    use crate::run_set::{Entry, RunSet};
    let mut run = serial();
    run.threads = run_of(&[&[238_000]]).threads;
    run.worst.truncate(1);
    run.causes.iter_mut().for_each(|row| row.episodes = 1);
    let (name, unit) = ("find".into(), "files".into());
    run.load = vec![LoadResult { name, unit, work: 1, alive: true, ..Default::default() }];
    run.summarize();
    let explanation = run.explanation.as_mut().unwrap();
    (
        explanation.wakeups,
        explanation.late,
        explanation.explained,
        explanation.not_followed,
        explanation.lost_records,
    ) = (1, 1, 1, 1, 1);
    let run_set = RunSet::of(vec![Entry::of("a", &run)]);
    let texts = [
        text(&run, PLAIN, Extent::All),
        crate::text::report(&run, PLAIN),
        crate::markdown::report(&run_set),
        crate::html::page(&run_set),
        crate::picture::svg(crate::picture::Picture::Causes, &run_set).unwrap(),
        crate::picture::svg(crate::picture::Picture::Components, &run_set).unwrap(),
    ];
    for text in texts {
        for (at, _) in text.match_indices("1 ") {
            let before = text[..at].chars().next_back();
            let rest = &text[at + 2..];
            let word = rest.split(|c: char| !c.is_ascii_lowercase()).next().unwrap();
            let is_alone = before.is_none_or(|c| !c.is_alphanumeric() && !",.".contains(c));
            let is_plural = word.ends_with('s') && !["is", "was", "ms", "ns", "s"].contains(&word);
            assert!(!is_alone || !is_plural, "\"1 {word}\" in {text}");
        }
    }
}

#[test]
fn the_extent_is_how_many_episodes_are_shown() {
    let run = lossy();
    for (extent, shown) in
        [(Extent::Worst(0), 0), (Extent::Worst(1), 1), (Extent::Worst(9), 2), (Extent::All, 2)]
    {
        let text = text(&run, PLAIN, extent);
        assert_eq!(text.matches('├').count(), shown, "{extent:?}");
    }
}

#[test]
fn the_verdict_names_what_is_missing() {
    let check = |change: fn(&mut Run), want: &str| {
        let mut run = serial();
        change(&mut run);
        let shown = text(&run, PLAIN, Extent::default()).replace('\n', " ");
        assert!(shown.starts_with(want), "{shown}");
    };
    let nothing_kept: fn(&mut Run) = |run| run.worst[0].blame.clear();
    check(
        nothing_kept,
        "Worst wakeup 238 µs late, not explained; the tracer has no record of it. ",
    );
    check(
        |run| {
            run.worst[0].blame.clear();
            run.explanation.as_mut().unwrap().explained = 40;
        },
        "Worst wakeup 238 µs late, not explained; 40 of 41 late wakeups are explained. ",
    );
    check(
        |run| {
            run.worst[0].blame.clear();
            let explanation = run.explanation.as_mut().unwrap();
            (explanation.lost_records, explanation.not_followed) = (1, 1);
        },
        "Worst wakeup 238 µs late, not explained; 1 of the tracer's records was lost, 1 wakeup was not \
         followed. ",
    );
    // Shares that leave most of a wakeup have not explained it.
    check(
        |run| {
            run.worst[0].blame.remove(0);
        },
        "Worst wakeup 238 µs late: 231 µs of it unexplained. ",
    );
    check(
        |run| {
            let first = &mut run.worst[0].blame[0];
            *first = Share { ns: first.ns, gap: Some(Gap::LostEvents), ..Share::default() };
        },
        "Worst wakeup 238 µs late: 231 µs of it unexplained (events were lost or are out of order). ",
    );
    // In a guest, which may have stood still.
    check(
        |run| run.worst[0].blame[0].evidence = Evidence::Bound,
        "Worst wakeup 238 µs late: at most 231 µs interrupts off in ",
    );
    // The order of a record is not relied on.
    check(
        |run| run.worst[0].blame.reverse(),
        "Worst wakeup 238 µs late: 231 µs interrupts off in ",
    );
}

#[test]
fn colour_only_repeats_what_the_words_say() {
    let run = lossy();
    let coloured = text(&run, Style { colour: true }, Extent::All);
    assert!(coloured.contains("\x1b[33mlost records: 3 of"), "{coloured}");
    let mut plain = coloured;
    for code in ["\x1b[1m", "\x1b[2m", "\x1b[32m", "\x1b[33m", "\x1b[0m"] {
        plain = plain.replace(code, "");
    }
    assert_eq!(plain, text(&run, PLAIN, Extent::All));
}

#[test]
fn the_summary_of_a_measurement_is_not_changed_by_an_explanation() {
    let explained = serial();
    let mut measured = explained.clone();
    (measured.explanation, measured.components) = (None, None);
    measured.causes.clear();
    for worst in &mut measured.worst {
        (worst.components, worst.blame, worst.timeline) = (None, vec![], vec![]);
    }
    assert_eq!(crate::text::summary(&explained, PLAIN), crate::text::summary(&measured, PLAIN));
}

/// The page for users.
const PAGE: &str = include_str!("../../../../docs/explain.md");

#[test]
fn the_page_for_users_shows_what_is_printed() {
    let shown = text(&serial(), PLAIN, Extent::default());
    let example = PAGE.split("```\n").find(|block| block.starts_with("Worst wakeup"));
    let example = example.expect("docs/explain.md has no example any more");
    assert!(shown.starts_with(example), "docs/explain.md shows another text than\n{shown}");
}

#[test]
fn the_page_for_users_tells_of_every_cause() {
    for cause in episode::ORDER {
        let row = format!("| `{}` |", cause.name());
        assert!(PAGE.contains(&row), "docs/explain.md has no row for {cause}");
    }
}
