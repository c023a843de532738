//! Operations that need no schedule of their own.
//!
//! An operation is local where nothing else that can happen before the CPU's next operation reads what
//! it writes, writes what it reads, or decides by it: no other CPU, no interrupt of this CPU, and no
//! rule that the checker looks at. Executing it at once then gives the same states as executing it at
//! any later time, so only one order is tried (a persistent set of one). This is what each kind of
//! operation here touches:
//!
//! - time that passes in the kernel, and loops of a known count: the frame's own place and counters,
//!   which only that frame reads. One thing outside asks for the place: the return from an interrupt
//!   looks whether it comes back to user mode. So an operation from which the frame comes to user
//!   mode is not local.
//! - the way into a handler, and its end: interrupts are off meanwhile, and what takes the CPU in spite
//!   of that (an NMI, the hypervisor) looks only at which kind of frame it interrupts.
//! - the preempt count above 0, and interrupts that are off already: all who read these ask for 0, or
//!   for off. A handler's own are never seen, as it runs with interrupts off.
//! - sections of RCU: their depth is read by the task's own call of the scheduler.
//!
//! Loops without an end would never give another CPU its turn: jumps backwards are not local but for
//! counted loops, so that each cycle has a state in which all can go on.

use crate::image::{CpuId, Image, Op};
use crate::kernel::{Frame, FrameKind, Kernel, Stage};
use crate::scenario::Count;

/// Whether what a CPU does next is local.
pub(super) fn is_local(image: &Image, kernel: &Kernel, cpu: CpuId) -> bool {
    let Some(top) = kernel.top(cpu) else { return false };
    match (top.kind, top.stage) {
        (FrameKind::Interrupt(_), Stage::LeavingIdle | Stage::Entry) => true,
        (FrameKind::Interrupt(_), Stage::Exit) | (FrameKind::Scheduler { .. }, _) => false,
        _ => is_local_op(image, top, kernel.cpus()[cpu.index()].count),
    }
}

fn is_local_op(image: &Image, top: &Frame, count: u32) -> bool {
    let Some(op) = top.op(image) else { return false };
    let in_handler = matches!(top.kind, FrameKind::Interrupt(_));
    let next = top.pc + 1;
    let comes_to_user_mode = |targets: &[u32]| {
        let ops = &image.codes[top.code.index()].ops;
        targets.iter().any(|&at| matches!(ops.get(at as usize), Some(Op::User(_))))
    };
    let is_alone = match op {
        Op::Compute(_) | Op::PageFault(_) | Op::RcuReadLock | Op::RcuReadUnlock => true,
        Op::End => in_handler,
        Op::PreemptDisable => count & 0xff > 0 || in_handler,
        Op::PreemptEnable | Op::PreemptEnableNoResched => count & 0xff > 1 || in_handler,
        Op::IrqSave => top.irq_depth > 0 || in_handler,
        Op::IrqRestore => top.irq_depth > 1 || in_handler,
        Op::Loop { count, end, .. } => {
            let is_known = matches!(image.counts[count.index()], Count::Fixed(_));
            return is_known && !comes_to_user_mode(&[next, end]);
        }
        Op::EndLoop { begin, .. } => return !comes_to_user_mode(&[next, begin]),
        // It only counts, where this is not the iteration that looks.
        Op::BreakPoint { depth, every, end } => {
            let looks = top.since_look[usize::from(depth)] + 1 >= every;
            return !looks && !comes_to_user_mode(&[end]);
        }
        _ => false,
    };
    is_alone && !comes_to_user_mode(&[next])
}
