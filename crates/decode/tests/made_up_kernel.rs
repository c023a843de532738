//! A kernel that exists only here: it shows its events, and the time of a late wakeup is explained.

use wakescope_attribution::{blame, components};
use wakescope_core::explain::{Cause, Frame, Known, Marks, Mode, Policy, WokenBy};
use wakescope_core::units::MonoNs;
use wakescope_decode::{
    Decoder, Interrupted, Irq, KernelEvent, KernelTask, KernelWakeup, Payload, Switch,
    SwitchedFrom, Vector, WakeupSource,
};

/// When the probe's timer expires, nanoseconds.
const DUE: u64 = 1_000_000;

fn at(after_us: u64) -> MonoNs {
    MonoNs(DUE + after_us * 1_000)
}

fn task(pid: u32, comm: &str, prio: i32, policy: u32) -> KernelTask {
    let comm = std::array::from_fn(|i| comm.as_bytes().get(i).copied().unwrap_or(0));
    KernelTask { pid, prio, policy, comm }
}

fn switch(from: KernelTask, next: KernelTask) -> Payload {
    let prev = SwitchedFrom { pid: from.pid, prio: from.prio, policy: from.policy };
    Payload::Switch(Switch { prev, next, throttled: false })
}

/// The program has numbers of its own for functions.
fn functions(address: u64) -> Frame {
    match address {
        1 => Frame::in_function("hrtimer_wakeup", 0),
        2 => Frame::in_function("shmem_undo_range", 16),
        _ => Frame::default(),
    }
}

/// `rm` is in the kernel, which gives up no CPU there, for 600 µs; then a more urgent task runs for 300.
fn late_wakeup() -> KernelWakeup {
    let (probe, rm) = (task(400, "probe", 9, 1), task(9, "rm", 120, 0));
    let urgent = task(5, "urgent", 4, 1);
    let timer = Irq::Vector(Vector::LocalTimer);
    let events = [
        (1, Payload::IrqEntry { irq: timer, name: [0; 16] }),
        (2, Payload::TimerEntry { function: 1, count: 1 }),
        (3, Payload::TimerExit),
        (4, Payload::IrqExit(timer)),
        (604, Payload::SchedEntry),
        (605, switch(rm, urgent)),
        (904, Payload::SchedEntry),
        (905, switch(urgent, probe)),
    ];
    let event = |(after_us, payload)| KernelEvent { at: at(after_us), steal_ns: 0, payload };
    KernelWakeup {
        task: probe,
        stimulus: WakeupSource::Timer,
        marks: Marks {
            due: at(0),
            irq_entry: Some(at(1)),
            irq_exit: Some(at(4)),
            sched_entry: Some(at(904)),
            switch_in: Some(at(905)),
            response: at(906),
        },
        woken: at(2),
        interrupted: Some(Interrupted {
            task: rm,
            mode: Mode::Kernel,
            preempt_count: 0x0001_0001,
            stack: vec![2],
            ..Interrupted::default()
        }),
        events: events.map(event).to_vec(),
        ..KernelWakeup::default()
    }
}

#[test]
fn what_a_made_up_kernel_shows_is_explained() {
    let decoder = Decoder {
        kernel_frame: &functions,
        user_frame: &|_, _| None,
        least_depth: 2,
        preemptible: Some(false),
        idle_states: &[],
    };
    let wakeup = decoder.wakeup(&late_wakeup());
    assert_eq!((wakeup.task.comm.as_str(), wakeup.task.policy), ("probe", Policy::Fifo));
    assert_eq!(wakeup.woken_by, WokenBy::Timer { on: 0 });
    assert_eq!(components(&wakeup.marks).total_ns(), 906_000);
    let shares = blame(&wakeup, &Known { probes: true, ..Known::default() });
    assert_eq!(shares.iter().map(|share| share.ns).sum::<u64>(), 906_000);
    let of = |cause| {
        let share = shares.iter().find(|share| share.cause == cause).expect("a share");
        (share.ns / 1_000, share.frames.first().and_then(|frame| frame.function.as_deref()))
    };
    assert_eq!(of(Cause::NoPreemptionPoint), (600, Some("shmem_undo_range")));
    assert_eq!(of(Cause::HigherPriorityTask), (299, None));
}
