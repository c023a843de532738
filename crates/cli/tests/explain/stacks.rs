//! Stacks of kernel code that held up wakeups.

use wakescope_core::explain::{Cause, Frame};

use crate::a_cpu;
use crate::common::bench::{Test, skip};
use crate::common::following::{can_follow, explained};

/// Whoever walks them, they must lead through every caller to where the kernel was entered. A
/// system call is entered there only.
#[test]
fn stacks_of_system_calls_lead_to_where_the_kernel_was_entered() {
    let name = "stacks_of_system_calls_lead_to_where_the_kernel_was_entered";
    if !can_follow(name) {
        return;
    }
    let test = Test::new("explain-stacks");
    let cpu = a_cpu();
    let what = ["--load", "disturb-syscall-300us", "--interval", "900us", "--cpus", &cpu];
    let how = ["--duration", "3s", "--above", "100us", "--worst", "1000", "--out", "run"];
    let (run, text) = explained(&test, &[&what[..], &how[..]].concat());
    let shares = run.worst.iter().flat_map(|episode| &episode.blame);
    let stacks = shares.filter(|share| share.cause == Cause::NoPreemptionPoint).map(|s| &s.frames);
    let is_in = |stack: &&Vec<Frame>, function: &str| stack.iter().any(|f| f.name() == function);
    let polls: Vec<_> = stacks.filter(|stack| is_in(stack, "do_sys_poll")).collect();
    if polls.is_empty() {
        return skip(name, "no poll(2) held a wakeup up, as under full preemption");
    }
    let entered = ["entry_SYSCALL_64_after_hwframe", "el0t_64_sync"];
    for stack in &polls {
        let outermost = stack.last().map(Frame::name).unwrap_or_default();
        assert!(entered.contains(&outermost), "{stack:?}\n{text}");
    }
}
