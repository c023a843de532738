//! Which function of a stack is named.

use super::*;
use crate::function::{culprit, within};
use wakescope_core::explain::{Blamed, Culprit, Function};

fn named(stack: &[Frame]) -> String {
    let culprit = &culprit(stack);
    let (cause, phase, from_cpu, others) = (Cause::IrqOff, None, None, false);
    who(Blamed { cause, culprit, phase, from_cpu, others })
}

fn in_what(task: Task, softirq: Option<u8>, stack: &[Frame]) -> String {
    place(&within(&Context { task, softirq, ..Context::default() }, stack), false)
}

#[track_caller]
fn check(stack: &[&str], want: (&str, &str)) {
    let stack: Vec<Frame> = stack.iter().map(|text| frame(text)).collect();
    assert_eq!((named(&stack).as_str(), in_what(rm(), None, &stack).as_str()), want);
}

#[test]
fn the_caller_of_helpers_is_named_with_the_outermost_function_that_says_something() {
    check(
        &[
            "_raw_spin_unlock_irqrestore+0x15",
            "uart_drain_fifo+0x1b2 [uart]",
            "serial_release+0x40",
            "__fput+0xe3",
            "task_work_run+0x59",
            "do_syscall_64+0x1a5",
            "entry_SYSCALL_64_after_hwframe+0x76",
        ],
        ("uart_drain_fifo", "serial_release in rm[412]"),
    );
    check(
        &["shmem_undo_range.isra.0+0x1", "evict+0x2", "exit_mmap+0x3", "__mmput", "do_exit+0x9"],
        ("shmem_undo_range", "exit_mmap in rm[412]"),
    );
    check(
        &["_copy_to_iter+0x3", "get_random_bytes_user+0x8", "vfs_read+0x1", "__x64_sys_read+0x19"],
        ("get_random_bytes_user", "read in rm[412]"),
    );
    check(
        &[
            "__x86_indirect_thunk_array+0xc",
            "tcp_poll+0x1",
            "do_sys_poll+0x2",
            "__x64_sys_poll+0x9",
        ],
        ("tcp_poll", "do_sys_poll in rm[412]"),
    );
    check(
        &[
            "fred_sysvec_apic_timer_interrupt+0x1",
            "fred_extint+0x6",
            "fred_entry_from_kernel+0x3",
            "asm_fred_entrypoint_kernel+0x41",
            "shmem_undo_range+0x1",
            "evict+0x2",
            "do_syscall_64+0x1",
            "fred_entry_from_user+0x2",
            "asm_fred_entrypoint_user+0x3",
        ],
        ("shmem_undo_range", "evict in rm[412]"),
    );
    check(
        &["__fred_entry_from_kvm+0x1", "asm_fred_entry_from_kvm+0x2", "vmx_vcpu_run+0x3"],
        ("vmx_vcpu_run", "rm[412]"),
    );
    // A later interrupt may break into the tracer itself.
    check(
        &[
            "bpf_trace_run1+0x70",
            "__bpf_trace_sched_entry_tp+0x14",
            "__schedule+0x590",
            "preempt_schedule+0x3c",
            "free_unref_folios+0x374",
            "do_truncate+0xfc",
        ],
        ("free_unref_folios", "do_truncate in rm[412]"),
    );
}

#[test]
fn what_cannot_be_named_better_is_named_as_it_is() {
    check(&["memset+0x3", "_raw_spin_unlock+0x1"], ("memset", "rm[412]"));
    // Of code that has no name, nobody knows what it is; who called it does not become the culprit.
    check(&["+0x0", "evict+0x2", "exit_mmap+0x3"], ("", "exit_mmap in rm[412]"));
    check(&[], ("", "rm[412]"));
    check(&["+0x0", "+0x1"], ("", "rm[412]"));
    check(&["ksys_"], ("ksys_", "rm[412]"));
}

#[test]
fn a_task_that_is_not_known_is_not_named() {
    let stack = frames(&["f", "g"]);
    assert_eq!(in_what(Task::default(), None, &stack), "g");
    assert_eq!(in_what(Task::default(), None, &stack[..1]), "");
    assert_eq!(in_what(Task::default(), Some(1), &stack), "softirq TIMER");
}

#[test]
fn functions_of_modules_have_their_module() {
    let stack = ["nvme_irq.part.0+0x3 [nvme]", "f+0x1 [ext4]"].map(frame);
    let of = |name: &str, module: &str| Function { name: name.into(), module: Some(module.into()) };
    assert_eq!(culprit(&stack), Culprit::Function(of("nvme_irq", "nvme")));
    assert_eq!(within(&Context::default(), &stack).caller, Some(of("f", "ext4")));
}
