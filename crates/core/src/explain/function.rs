//! Which function of a kernel stack is to be named.

use super::event::Context;
use super::words::{softirq_actions, softirq_name};

/// Functions that do their work for whoever calls them, so that the caller is to be named.
///
/// Where interrupts or preemption are enabled again the interrupt comes at once: the innermost
/// function is then the one that unlocks, whatever was done under the lock. Likewise nobody is
/// helped by hearing that it was `memset` that took so long. A star stands for anything.
const HELPERS: &[&str] = &[
    // Unlocking, locking, and counting of preemption.
    "_raw_spin_*",
    "__raw_*",
    "_raw_read_*",
    "_raw_write_*",
    "rt_spin_*",
    "rt_read_*",
    "rt_write_*",
    "rt_mutex_*",
    "*_irqrestore",
    "__local_bh_enable_ip",
    "__local_bh_disable_ip",
    "preempt_*",
    "__preempt_*",
    "queued_spin_*",
    "native_queued_spin_*",
    "__pv_queued_spin_*",
    "pv_*",
    "trace_hardirqs_*",
    "trace_preempt_*",
    "arch_local_irq_*",
    "lock_release",
    "lock_acquire",
    "__rcu_read_*",
    "rcu_read_unlock*",
    // What calls and returns go through against speculation.
    "__x86_indirect_thunk_*",
    "__x86_return_thunk",
    "srso_*",
    "retbleed_*",
    // The way to the scheduler.
    "__cond_resched*",
    "finish_task_switch*",
    "__schedule",
    "schedule",
    "schedule_*",
    "__might_*",
    "might_resched",
    "dynamic_cond_resched",
    "_cond_resched",
    // This tracer's own programs, and whatever calls them.
    "bpf_trace_run*",
    "bpf_prog_*",
    "__bpf_*",
    "__traceiter_*",
    // Moving and clearing of memory.
    "memcpy*",
    "__memcpy*",
    "memset*",
    "__memset*",
    "memmove*",
    "__memmove*",
    "memcmp*",
    "copy_*",
    "_copy_*",
    "__copy_*",
    "clear_page*",
    "clear_user*",
    "clear_huge_page",
    "clear_*_page*",
    "rep_*",
    "__clear_user*",
    "__pi_*",
    // The entry of interrupts and exceptions.
    "asm_*",
    "sysvec_*",
    "irqentry_*",
    "irq_enter*",
    "irq_exit*",
    "__irq_exit*",
    "common_interrupt*",
    "el1h_*",
    "el1_*",
    "el0_interrupt",
    "call_on_irq_stack",
];

/// Functions through which everything in the kernel is called, so that they say nothing.
const PLUMBING: &[&str] = &[
    "entry_*",
    "do_syscall_*",
    "x64_sys_call",
    "ia32_sys_call",
    "__do_sys_*",
    "__se_sys_*",
    "__x64_sys_*",
    "__ia32_sys_*",
    "__arm64_sys_*",
    "__riscv_sys_*",
    "ksys_*",
    "invoke_syscall*",
    "el0*",
    "do_el0_*",
    "ret_from_*",
    "kthread",
    "worker_thread",
    "process_one_work",
    "process_scheduled_works",
    "smpboot_thread_fn",
    "do_exit",
    "do_group_exit",
    "make_task_dead",
    "mmput",
    "__mmput",
    "task_work_run",
    "resume_user_mode_work",
    "exit_to_user_mode_*",
    "syscall_exit_*",
    "____fput",
    "__fput*",
    "vfs_*",
    "do_fast_syscall_*",
    "__do_fast_syscall_*",
    "secondary_startup_*",
    "start_secondary",
    "cpu_startup_entry",
    "do_idle",
    "rest_init",
    "start_kernel",
    "arch_call_rest_init",
    "x86_64_start_*",
    "common_startup_*",
];

/// Functions that run softirqs; what lies outside them is the task that was interrupted.
const SOFTIRQ_RUNNERS: &[&str] = &["__do_softirq*", "handle_softirqs*", "do_softirq*"];

/// What a system call's own function is called before the call's name.
const SYSCALLS: &[&str] = &["__x64_sys_", "__ia32_sys_", "__arm64_sys_", "__riscv_sys_", "ksys_"];

/// Who is to be named of `stack`, innermost first: the first function that is no helper. If all
/// are, the innermost; nobody if there is no stack.
pub(in super::super) fn culprit(stack: &[String]) -> String {
    position(stack).map(|i| function(&stack[i]).to_owned()).unwrap_or_default()
}

/// The function at `frame`, unless it is a helper, or nobody.
pub(in super::super) fn own_name(frame: &str) -> Option<&str> {
    let name = function(frame);
    (!name.is_empty() && !is_one_of(HELPERS, name)).then_some(name)
}

/// What the culprit was in: `exit_mmap in rm[412]`, with the outermost function that says something,
/// or the system call. Only the task where none does.
pub(super) fn within(context: &Context, stack: &[String]) -> String {
    let place = match context.softirq {
        Some(number) => {
            let caller = in_softirq(stack).and_then(caller).map(|name| format!("{name} in "));
            let caller = caller.unwrap_or_default();
            return format!("{caller}softirq {}{}", softirq_name(number), of_task(" of ", context));
        }
        None => caller(stack)
            .or_else(|| stack.iter().rev().find_map(|frame| system_call(function(frame))))
            .unwrap_or_default(),
    };
    if place.is_empty() {
        of_task("", context)
    } else {
        place.to_owned() + &of_task(" in ", context)
    }
}

/// The task, after `joint`; nothing if it is not known.
fn of_task(joint: &str, context: &Context) -> String {
    if context.task.is_known() { joint.to_owned() + &context.task.name() } else { String::new() }
}

/// The part of a stack that is in this softirq, without what that broke into; empty if the stack is
/// not in it.
pub(super) fn of_softirq(stack: &[String], number: u8) -> &[String] {
    let does_its_work = |frame: &String| softirq_actions(number).contains(&function(frame));
    stack.iter().rposition(does_its_work).map_or(&[], |at| &stack[..=at])
}

/// The part of a stack that a softirq broke into: what its interrupt did, or what turned softirqs on
/// again. Empty if the stack does not lead there, as out of a thread that sees to softirqs.
pub(super) fn under_softirq(stack: &[String]) -> &[String] {
    /// What runs softirqs: the second one up to 6.8.
    const RUNS: [&str; 2] = ["handle_softirqs", "__do_softirq"];
    // What calls that, but for threads: entries of interrupts, and who turns softirqs on.
    let is_way_in = |frame: &String| {
        let name = function(frame);
        name.starts_with("asm_") || ["el1h_64_irq", "__local_bh_enable_ip"].contains(&name)
    };
    let Some(runs) = stack.iter().rposition(|frame| RUNS.contains(&function(frame))) else {
        return &[];
    };
    let outer = &stack[runs..];
    outer.iter().position(is_way_in).map_or(&[], |way_in| &outer[way_in + 1..])
}

/// The name of a frame's function: `exit_mmap` of `exit_mmap.part.0+0x10 [mod]`.
fn function(frame: &str) -> &str {
    let frame = frame.trim();
    let end = frame.find(|c: char| c == '+' || c.is_whitespace()).unwrap_or(frame.len());
    let name = &frame[..end];
    match name.find('.') {
        // What the compiler adds to the parts that it makes of a function.
        Some(dot) if dot > 0 => &name[..dot],
        _ => name,
    }
}

fn position(stack: &[String]) -> Option<usize> {
    let named = stack.iter().position(|frame| !is_one_of(HELPERS, function(frame)));
    named.or(if stack.is_empty() { None } else { Some(0) })
}

/// The outermost function that says something, if that is not the culprit itself.
pub(in super::super) fn caller(stack: &[String]) -> Option<&str> {
    let outside = &stack[position(stack)? + 1..];
    let says =
        |name: &&str| !name.is_empty() && !is_one_of(PLUMBING, name) && !is_one_of(HELPERS, name);
    outside.iter().rev().map(|frame| function(frame)).find(says)
}

/// The part of `stack` within the softirq.
fn in_softirq(stack: &[String]) -> Option<&[String]> {
    let runner = stack.iter().position(|frame| is_one_of(SOFTIRQ_RUNNERS, function(frame)));
    runner.map(|i| &stack[..i])
}

fn system_call(name: &str) -> Option<&str> {
    SYSCALLS.iter().find_map(|prefix| name.strip_prefix(prefix)).filter(|call| !call.is_empty())
}

/// Whether `frame` is the end of a section with preemption off: where a lock is released,
/// interrupts come back on first, and preemption right after.
pub(super) fn unlocks(frame: &str) -> bool {
    const UNLOCKS: &[&str] =
        &["_raw_spin_unlock*", "_raw_read_unlock*", "_raw_write_unlock*", "__raw_spin_unlock*"];
    is_one_of(UNLOCKS, function(frame))
}

/// Whether a stack ends with an interrupt that came while a program ran: below it there is nothing of
/// the kernel's.
pub(super) fn is_of_user_mode(stack: &[String]) -> bool {
    const INTERRUPTS: &[&str] = &["asm_sysvec_*", "asm_common_interrupt", "el0t_64_irq"];
    stack.last().is_some_and(|frame| is_one_of(INTERRUPTS, function(frame)))
}

/// Whether the innermost function is on the kernel's way back to a program or out of a switch: what it
/// does with interrupts off is to look at some flags, and to let go of the run queue.
pub(super) fn is_short_way(stack: &[String]) -> bool {
    const SHORT_WAYS: &[&str] = &[
        "exit_to_user_mode_*",
        "irqentry_exit_to_user_mode",
        "syscall_exit_to_user_mode*",
        "finish_task_switch",
    ];
    stack.first().is_some_and(|frame| is_one_of(SHORT_WAYS, function(frame)))
}

fn is_one_of(patterns: &[&str], name: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, name))
}

/// Whether `name` fits a pattern with at most one star.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((begin, end)) => name.strip_prefix(begin).is_some_and(|rest| rest.ends_with(end)),
    }
}
