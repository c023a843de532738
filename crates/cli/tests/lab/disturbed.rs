//! What holds a wakeup up in a guest is found.

use wakescope_core::explain::{Cause, Evidence, Frame};

use crate::common::disturbed::Disturbed;
use crate::common::lab::{Bench, KERNEL, Stock, first_lab};

#[test]
fn a_task_of_a_higher_priority_is_found() {
    let Some((stock, pool, _)) = first_lab("a_task_of_a_higher_priority_is_found") else { return };
    let fifo = Disturbed {
        machine: &[],
        kernel: KERNEL,
        preempt: "full",
        kind: "fifo",
        length_us: 300,
        // Two dozen disturbances, of which ten hold a wakeup up for so long.
        samples: 1_400,
        cause: Cause::HigherPriorityTask,
        culprit: "disturb-fifo",
    };
    let bench = Bench::new(stock, "disturbed");
    bench.take_kernels(&pool);
    fifo.assert_found(&bench, 5);
}

/// Until the kernel leaves the call nobody switches, so that only the probe's watchdog, which expires
/// meanwhile, sees what it is at. At the switch only the way out of the kernel is left to be seen,
/// and that is told once the probe sleeps.
#[test]
fn what_the_kernel_does_not_leave_for_a_wakeup_is_found_with_its_callers() {
    let name = "what_the_kernel_does_not_leave_for_a_wakeup_is_found_with_its_callers";
    let Some(stock) = Stock::get(name) else { return };
    let syscall = Disturbed {
        machine: &[],
        kernel: KERNEL,
        preempt: "none",
        kind: "syscall",
        length_us: 300,
        samples: 1_400,
        cause: Cause::NoPreemptionPoint,
        culprit: "",
    };
    let run = syscall.assert_found(&Bench::new(stock, "not-left"), 5);
    let late = run.worst.iter().filter(|episode| episode.wakeup_latency_ns >= 150_000);
    let shares: Vec<_> = late.map(|episode| &episode.blame[0]).collect();
    for share in &shares {
        assert_eq!(share.evidence, Evidence::Stack, "{share:#?}");
        let functions = share.frames.iter().map(|frame| frame.function.as_deref().unwrap());
        let callers: Vec<_> = functions.skip_while(|name| *name != "do_sys_poll").skip(1).collect();
        assert_eq!(callers.first(), Some(&"__x64_sys_poll"), "{share:#?}");
        assert_eq!(callers.last(), Some(&"entry_SYSCALL_64_after_hwframe"), "{share:#?}");
    }
    // Where somebody else goes on when the probe sleeps there is none.
    let left_at: Vec<_> = shares.iter().filter_map(|share| share.given_up_at.first()).collect();
    assert!(left_at.len() * 2 > shares.len(), "{left_at:?} of {shares:#?}");
    let is_way_out =
        |frame: &&Frame| frame.function.as_deref() == Some("exit_to_user_mode_prepare");
    assert!(left_at.iter().all(is_way_out), "{left_at:?}");
}
