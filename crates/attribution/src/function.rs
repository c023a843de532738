//! Which function of a kernel stack is to be named.

use wakescope_core::explain::{Context, Culprit, Frame, Function, Within};
use wakescope_core::softirq::{SOFTIRQS, softirq_name};

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
    "copy_page",
    "copy_page_from_*",
    "copy_page_to_*",
    "copy_highpage",
    "copy_huge_page",
    "copy_subpage",
    "copy_user_*",
    "copy_from_*",
    "copy_to_*",
    "copy_mc_*",
    "_copy_*",
    "__copy_user*",
    "__copy_from_*",
    "__copy_to_*",
    "clear_page",
    "clear_page_erms",
    "clear_page_orig",
    "clear_page_rep*",
    "clear_user*",
    "clear_highpage*",
    "clear_huge_page",
    "clear_gigantic_page",
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
    "fred_*",
    "__fred_*",
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
/// are, the innermost; nobody if there is no stack, or if that function is not known.
pub(crate) fn culprit(stack: &[Frame]) -> Culprit {
    Culprit::function(position(stack).and_then(|i| stack[i].function()))
}

/// The same of code that had interrupts off until it was broken into at `stack`. On the way out of a switch
/// that was the scheduler, which turns them off itself, and not who goes on behind it. (Seen from outside of
/// guests of 6.1-rt, 7.2 and 7.2-rt: `get_page_from_freelist` was blamed for 17 us of `__schedule`.)
pub(crate) fn who_had_interrupts_off(stack: &[Frame]) -> Culprit {
    match stack.first().filter(|frame| leaves_switch(frame)) {
        Some(way_out) => {
            let scheduler = stack.iter().find(|frame| frame.name() == "__schedule");
            Culprit::function(scheduler.unwrap_or(way_out).function())
        }
        None => culprit(stack),
    }
}

/// Whether `frame` is the scheduler's way out of a switch, where it turns interrupts on again.
pub(crate) fn leaves_switch(frame: &Frame) -> bool {
    matches("finish_task_switch*", frame.name())
}

/// The function at `frame`, unless it is a helper, or not known.
pub(crate) fn own_function(frame: &Frame) -> Option<Function> {
    frame.function().filter(|function| !is_one_of(HELPERS, &function.name))
}

/// What the culprit was in: the outermost function that says something, or the system call; the
/// softirq; and the task.
pub(crate) fn within(context: &Context, stack: &[Frame]) -> Within {
    let task = context.task.is_known().then(|| context.task.named());
    if let Some(number) = context.softirq {
        let caller = in_softirq(stack).and_then(caller);
        return Within { caller, softirq: Some(softirq_name(number)), task, ..Within::default() };
    }
    let caller = caller(stack);
    let syscall = match caller {
        Some(_) => None,
        None => stack.iter().rev().find_map(|frame| system_call(frame.name())).map(str::to_owned),
    };
    Within { caller, syscall, task, ..Within::default() }
}

/// The part of a stack that is in this softirq, without what that broke into; empty if the stack is
/// not in it.
pub(crate) fn of_softirq(stack: &[Frame], number: u8) -> &[Frame] {
    let Some(softirq) = SOFTIRQS.get(usize::from(number)) else { return &[] };
    let does_its_work =
        |frame: &Frame| [softirq.functions, softirq.ends_with].concat().contains(&frame.name());
    stack.iter().rposition(does_its_work).map_or(&[], |at| &stack[..=at])
}

/// The part of a stack that a softirq broke into: what its interrupt did, or what turned softirqs on
/// again. Empty if the stack does not lead there, as out of a thread that sees to softirqs.
pub(crate) fn under_softirq(stack: &[Frame]) -> &[Frame] {
    /// What runs softirqs: the second one up to 6.8.
    const RUNS: [&str; 2] = ["handle_softirqs", "__do_softirq"];
    // What calls that, but for threads: entries of interrupts, and who turns softirqs on.
    let is_way_in = |frame: &Frame| {
        let name = frame.name();
        name.starts_with("asm_") || ["el1h_64_irq", "__local_bh_enable_ip"].contains(&name)
    };
    let Some(runs) = stack.iter().rposition(|frame| RUNS.contains(&frame.name())) else {
        return &[];
    };
    let outer = &stack[runs..];
    outer.iter().position(is_way_in).map_or(&[], |way_in| &outer[way_in + 1..])
}

fn position(stack: &[Frame]) -> Option<usize> {
    let named = stack.iter().position(|frame| !is_one_of(HELPERS, frame.name()));
    named.or(if stack.is_empty() { None } else { Some(0) })
}

/// The outermost function that says something, if that is not the culprit itself.
pub(crate) fn caller(stack: &[Frame]) -> Option<Function> {
    let outside = &stack[position(stack)? + 1..];
    let says =
        |name: &str| !name.is_empty() && !is_one_of(PLUMBING, name) && !is_one_of(HELPERS, name);
    outside.iter().rev().find(|frame| says(frame.name()))?.function()
}

/// The part of `stack` within the softirq.
fn in_softirq(stack: &[Frame]) -> Option<&[Frame]> {
    let runner = stack.iter().position(|frame| is_one_of(SOFTIRQ_RUNNERS, frame.name()));
    runner.map(|i| &stack[..i])
}

fn system_call(name: &str) -> Option<&str> {
    SYSCALLS.iter().find_map(|prefix| name.strip_prefix(prefix)).filter(|call| !call.is_empty())
}

/// Whether `frame` is the end of a section with preemption off: where a lock is released,
/// interrupts come back on first, and preemption right after.
pub(crate) fn unlocks(frame: &Frame) -> bool {
    const UNLOCKS: &[&str] =
        &["_raw_spin_unlock*", "_raw_read_unlock*", "_raw_write_unlock*", "__raw_spin_unlock*"];
    is_one_of(UNLOCKS, frame.name())
}

/// Whether a stack ends with an interrupt that came while a program ran: below it there is nothing of
/// the kernel's.
pub(crate) fn is_of_user_mode(stack: &[Frame]) -> bool {
    const INTERRUPTS: &[&str] = &["asm_sysvec_*", "asm_common_interrupt", "el0t_64_irq"];
    /// With FRED (x86, since 6.9) system calls and exceptions have the same entry as interrupts. What it
    /// calls tells which it was; a function that ends with such a call may have left no frame.
    const FRED: [&str; 2] = ["asm_fred_entrypoint_user", "fred_entry_from_user"];
    const FRED_INTERRUPTS: &[&str] = &["fred_extint*", "common_interrupt"];
    let mut outer = stack.iter().rev().map(Frame::name).peekable();
    match outer.next_if_eq(&FRED[0]) {
        Some(_) => {
            outer.next_if_eq(&FRED[1]);
            outer.next().is_some_and(|name| is_one_of(FRED_INTERRUPTS, name))
        }
        None => outer.next().is_some_and(|name| is_one_of(INTERRUPTS, name)),
    }
}

/// Whether the innermost function is on the kernel's way back to a program or out of a switch: what it
/// does with interrupts off is to look at some flags, and to let go of the run queue.
pub(crate) fn is_short_way(stack: &[Frame]) -> bool {
    const SHORT_WAYS: &[&str] = &[
        "exit_to_user_mode_*",
        "irqentry_exit_to_user_mode",
        "syscall_exit_to_user_mode*",
        "finish_task_switch",
    ];
    stack.first().is_some_and(|frame| is_one_of(SHORT_WAYS, frame.name()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_has_at_most_one_star() {
        for pattern in [HELPERS, PLUMBING, SOFTIRQ_RUNNERS].concat() {
            assert!(pattern.matches('*').count() <= 1, "{pattern}");
        }
    }

    #[test]
    fn what_moves_memory_is_a_helper_and_what_copies_a_process_is_none() {
        let moves = "copy_page copy_page_to_iter copy_page_from_iter_atomic copy_user_generic_string \
                     copy_user_highpage copy_user_large_folio copy_from_user copy_from_kernel_nofault \
                     copy_to_user_nofault copy_mc_to_kernel copy_mc_enhanced_fast_string copy_highpage \
                     _copy_to_iter _copy_from_user __copy_user_nocache __copy_from_user_inatomic \
                     clear_page_erms clear_user_highpage clear_highpage_kasan_tagged clear_huge_page \
                     clear_gigantic_page";
        let none = "copy_process copy_page_range copy_pte_range copy_present_ptes copy_mm copy_files \
                    copy_strings copy_string_kernel copy_vma copy_hugetlb_page_range copy_namespaces \
                    copy_verifier_state __copy_skb_header clear_page_dirty_for_io";
        for (names, want) in [(moves, true), (none, false)] {
            for name in names.split_whitespace() {
                assert_eq!(is_one_of(HELPERS, name), want, "{name}");
            }
        }
    }
}
