//! Where an interrupt broke in: mode, preempt count, stack and code.

use wakescope_core::explain::Mode;
use wakescope_decode::{CODE_BYTES, Interrupted, KernelTask};
use wakescope_model::Image;
use wakescope_model::kernel::frame::After;
use wakescope_model::kernel::{FrameKind, HARDIRQ_UNIT, Running};
use wakescope_model::scenario::TaskPolicy;

use crate::addresses::Addresses;

/// What tracing adds to the preempt count.
pub(super) const TRACING: u32 = 1;
/// The scheduler has preemption off, and the lock of its run queue.
const IN_SWITCH: u32 = 2;
/// Somewhere in a program.
const PROGRAM: u64 = 0x40_1000;
const NOP: u8 = 0x90;
const STI: u8 = 0xfb;

/// What an interrupt broke into.
#[derive(Clone, Copy, Debug)]
pub(super) struct Broken {
    /// The place.
    pub(super) at: Running,
    /// Whether that had enabled interrupts right before.
    pub(super) enabled: bool,
    /// Whether that was the scheduler's end.
    pub(super) in_switch: bool,
    /// The task's place, where a softirq was broken into.
    pub(super) beneath: Option<Running>,
}

impl Broken {
    pub(super) fn is_idle(&self) -> bool {
        self.at.task.is_none()
    }

    pub(super) fn mode(&self) -> Mode {
        if self.at.is_user && !self.in_switch { Mode::User } else { Mode::Kernel }
    }

    pub(super) fn preempt_count(&self) -> u32 {
        let switch = if self.in_switch { IN_SWITCH } else { 0 };
        self.at.count + HARDIRQ_UNIT + TRACING + switch
    }

    /// How it is seen, without its stack and its code.
    pub(super) fn seen(&self, image: &Image) -> Interrupted {
        if self.is_idle() && self.at.kind == FrameKind::Task {
            return Interrupted::default();
        }
        Interrupted {
            task: kernel_task(image, &self.at),
            mode: self.mode(),
            preempt_count: self.preempt_count(),
            ip: PROGRAM,
            ..Interrupted::default()
        }
    }

    /// The kernel's stack, innermost first.
    pub(super) fn stack(&self, image: &Image, addresses: &Addresses) -> Vec<u64> {
        let mut stack = Vec::new();
        if self.in_switch {
            let switch = ["finish_task_switch", "__schedule", "schedule"];
            stack.extend(switch.map(|name| addresses.function(name)));
        }
        push(&mut stack, image, addresses, &self.at, self.beneath.as_ref());
        stack
    }

    pub(super) fn code(&self) -> [u8; CODE_BYTES] {
        let mut code = [NOP; CODE_BYTES];
        if self.enabled {
            code[CODE_BYTES - 2] = STI;
        }
        code
    }
}

/// Adds the functions of a place, and those that it was called by.
fn push(
    stack: &mut Vec<u64>,
    image: &Image,
    addresses: &Addresses,
    at: &Running,
    beneath: Option<&Running>,
) {
    let function = |name| addresses.function(name);
    stack.extend_from_slice(addresses.stack(at.stack));
    if let FrameKind::Softirq { number, after, .. } = at.kind {
        stack.extend([addresses.softirq_action(number), function("handle_softirqs")]);
        match after {
            After::Interrupt => {
                stack.extend(["irq_exit_rcu", "asm_common_interrupt"].map(function));
            }
            After::BhEnable => stack.push(function("__local_bh_enable_ip")),
            After::Thread => {}
        }
        // Beneath an interrupt of a program the kernel has no stack.
        if let Some(beneath) = beneath.filter(|below| below.task == at.task && !below.is_user) {
            push(stack, image, addresses, beneath, None);
        }
        return;
    }
    stack.extend_from_slice(&base(image, addresses, at));
}

/// What every stack ends with.
fn base(image: &Image, addresses: &Addresses, at: &Running) -> Vec<u64> {
    let names: &[&str] = match at.task {
        None => &[],
        Some(task) if image.tasks[task.index()].is_kernel_thread => &["kthread"],
        Some(_) if at.is_user => &["exit_to_user_mode_loop", "asm_common_interrupt"],
        Some(_) => &["do_syscall_64", "entry_SYSCALL_64_after_hwframe"],
    };
    names.iter().map(|name| addresses.function(name)).collect()
}

/// The stack of a task that gives up the CPU, innermost first.
pub(super) fn switched_stack(image: &Image, addresses: &Addresses, at: &Running) -> Vec<u64> {
    let mut stack = vec![addresses.function("__schedule"), addresses.function("schedule")];
    stack.extend_from_slice(addresses.stack(at.stack));
    stack.extend_from_slice(&base(image, addresses, at));
    stack
}

/// The number of a task's thread: 0 is idle.
pub(crate) fn pid(task: Option<wakescope_model::image::TaskId>) -> u32 {
    task.map_or(0, |task| u32::from(task.0) + 100)
}

/// The task that runs, as the kernel describes it.
pub(super) fn kernel_task(image: &Image, at: &Running) -> KernelTask {
    let Some(task) = at.task else {
        return KernelTask { prio: 120, comm: comm("swapper"), ..KernelTask::default() };
    };
    let known = &image.tasks[task.index()];
    KernelTask {
        pid: pid(at.task),
        prio: at.prio.into(),
        policy: policy(known.policy),
        comm: comm(&known.name),
    }
}

/// The number of a policy.
pub(crate) fn policy(policy: TaskPolicy) -> u32 {
    match policy {
        TaskPolicy::Other(_) => 0,
        TaskPolicy::Fifo(_) => 1,
        TaskPolicy::RoundRobin(_) => 2,
        TaskPolicy::Deadline(_) => 6,
    }
}

/// A name of at most 15 bytes.
pub(crate) fn comm(name: &str) -> [u8; 16] {
    let mut comm = [0; 16];
    for (to, from) in comm.iter_mut().take(15).zip(name.bytes()) {
        *to = from;
    }
    comm
}
