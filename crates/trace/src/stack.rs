//! Walks stacks of the kernel that programs have copied, by the kernel's own tables.
//!
//! The kernel would walk them itself, but while the wakeup waits: 39 us for some 20 frames where
//! caches are cold (a guest of KVM, 6.18). Copied, it takes less than a frame of that, and the rest is
//! done here when it delays nobody. It is the bytes of a stack that leave the kernel so; no more of
//! them is kept than addresses of code.

mod memory;
mod tables;
mod thunks;

use std::collections::HashMap;

use aya::Ebpf;
use wakescope_decode::orc::{Base, CallerBp, Kind, Rule};

use crate::shared::{FRAMES, PIECE, PIECES, StackCopy};
use crate::symbols::Addresses;
use memory::{Cached, Memory, Running};
use tables::Tables;
use thunks::Thunks;

/// Symbols that tell where the tables, the code and the thunks are.
pub(crate) fn names() -> Vec<&'static str> {
    [tables::NAMES, &thunks::NAMES].concat()
}

/// How many places in code are remembered with how to leave them, 32 bytes each.
const MOST_KNOWN: usize = 4_096;

/// The kernel's half of memory, where all of its code is: what else seems to be returned to was put there
/// for something else.
const KERNEL: u64 = 1 << 63;

/// Registers as the kernel puts them on the stack (`struct pt_regs` of x86-64): how far from its
/// beginning they are.
mod saved {
    pub(super) const R13: u64 = 16;
    pub(super) const BP: u64 = 32;
    pub(super) const R10: u64 = 56;
    pub(super) const DX: u64 = 96;
    pub(super) const DI: u64 = 112;
    pub(super) const IP: u64 = 128;
    /// What the processor itself saves begins with `IP`, and these follow at these distances from it.
    pub(super) const CS_FROM_IP: u64 = 8;
    pub(super) const SP_FROM_IP: u64 = 24;
}

/// Walks copies of stacks.
pub(crate) struct Walker<M = Running> {
    tables: Tables,
    thunks: Thunks,
    memory: Cached<M>,
    known: HashMap<u64, Option<Rule>>,
}

/// A function on the stack, and what is known of its registers.
#[derive(Clone, Copy, Debug)]
struct Frame {
    ip: u64,
    sp: u64,
    bp: u64,
    /// Whether `ip` is where it goes on, and not where a call returns to, which may be behind its end.
    interrupted: bool,
    /// Where all of its registers were saved, if they were.
    registers: Option<u64>,
}

impl Walker {
    /// `None` where the kernel has no such tables (on arm64 and wherever it keeps frame pointers, its
    /// own walk is a short one), or shows no sign of where they are.
    pub(crate) fn of_running_kernel(programs: &mut Ebpf, known: &Addresses) -> Option<Self> {
        if !cfg!(target_arch = "x86_64") {
            return None;
        }
        let mut memory = Cached::new(Running::new(programs)?);
        let tables = Tables::find(&mut memory, known)?;
        Some(Self { tables, thunks: Thunks::find(known), memory, known: HashMap::new() })
    }
}

impl<M: Memory> Walker<M> {
    /// Where the functions of a stack go on, the innermost first; nothing of what a user's program
    /// was at.
    pub(crate) fn walk(&mut self, copy: &StackCopy) -> Vec<u64> {
        let mut frames = Vec::new();
        let mut at = (copy.registers != 0).then(|| interrupted(copy, copy.registers)).flatten();
        while let Some(frame) = at.filter(|_| frames.len() < FRAMES) {
            frames.push(frame.ip);
            at = self.caller(copy, frame);
        }
        frames
    }

    /// Who called, or was interrupted for, the function of `frame`; `None` if that cannot be told.
    fn caller(&mut self, copy: &StackCopy, frame: Frame) -> Option<Frame> {
        if frame.interrupted && self.thunks.contain(frame.ip) {
            let at = self.thunks.caller(&mut self.memory, frame.sp, |at| word(copy, at))?;
            return called_from(copy, at.checked_add(8)?, frame.bp);
        }
        let within = if frame.interrupted { frame.ip } else { frame.ip.wrapping_sub(1) };
        let rule = self.rule(within)?;
        let register = |at: u64| word(copy, frame.registers?.checked_add(at)?);
        let outer = match rule.base {
            Base::Sp => far(frame.sp, rule.sp_offset),
            Base::Bp => far(frame.bp, rule.sp_offset),
            Base::AtSp => far(word(copy, frame.sp)?, rule.sp_offset),
            Base::AtBp => word(copy, far(frame.bp, rule.sp_offset))?,
            Base::R10 => register(saved::R10)?,
            Base::R13 => register(saved::R13)?,
            Base::Di => register(saved::DI)?,
            Base::Dx => register(saved::DX)?,
        };
        let bp = match rule.bp {
            CallerBp::Same => frame.bp,
            CallerBp::AtOuter => word(copy, far(outer, rule.bp_offset))?,
            CallerBp::AtBp => word(copy, far(frame.bp, rule.bp_offset))?,
        };
        match rule.kind {
            Kind::Call => called_from(copy, outer, bp),
            Kind::Registers => interrupted(copy, outer),
            Kind::Return => returned_to(copy, outer, bp),
        }
    }

    fn rule(&mut self, at: u64) -> Option<Rule> {
        if let Some(&known) = self.known.get(&at) {
            return known;
        }
        let rule = self.tables.rule(&mut self.memory, at);
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
        self.known.insert(at, rule);
        rule
    }
}

/// Where a call returns to, with the stack pointer `sp` then.
fn called_from(copy: &StackCopy, sp: u64, bp: u64) -> Option<Frame> {
    let ip = word(copy, sp.wrapping_sub(8)).filter(|&ip| ip >= KERNEL)?;
    Some(Frame { ip, sp, bp, interrupted: false, registers: None })
}

/// What was at work where the registers were saved at `registers`, if that was the kernel.
fn interrupted(copy: &StackCopy, registers: u64) -> Option<Frame> {
    let frame = returned_to(copy, registers.checked_add(saved::IP)?, 0)?;
    let bp = word(copy, registers + saved::BP)?;
    Some(Frame { bp, registers: Some(registers), ..frame })
}

/// The same of what the processor saved by itself.
fn returned_to(copy: &StackCopy, at: u64, bp: u64) -> Option<Frame> {
    /// The bits of a code segment that say who it is for.
    const PRIVILEGE: u64 = 3;
    let ip = word(copy, at)?;
    let is_kernel = word(copy, at.checked_add(saved::CS_FROM_IP)?)? & PRIVILEGE == 0;
    let sp = word(copy, at.checked_add(saved::SP_FROM_IP)?)?;
    is_kernel.then_some(Frame { ip, sp, bp, interrupted: true, registers: None })
}

fn far(from: u64, distance: i16) -> u64 {
    from.wrapping_add_signed(distance.into())
}

/// The word of the stack at `at`, if that was copied.
fn word(copy: &StackCopy, at: u64) -> Option<u64> {
    // A word lies in one piece: both are aligned.
    if at % 8 != 0 {
        return None;
    }
    let base = at & !(PIECE as u64 - 1);
    let piece = (0..PIECES).find(|&piece| base != 0 && copy.at[piece] == base)?;
    let from = usize::try_from(at - base).ok()?;
    let bytes = copy.bytes[piece][from..].first_chunk()?;
    Some(u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests;
