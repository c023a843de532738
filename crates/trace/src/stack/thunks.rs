//! Thunks, which calls of function pointers and returns go through against speculation.
//!
//! The kernel's tables do not lead out of them: on 6.1 and 6.12 they say nothing of some instructions
//! and the wrong thing of others, where the function that is called lies on the stack like a caller.

use std::ops::Range;

use super::memory::{Cached, Memory};
use crate::image::calls;
use crate::symbols::Addresses;

/// The first and the last thunk of a register, and that of returns.
pub(super) const NAMES: [&str; 3] = [FIRST, LAST, OF_RETURNS];

const FIRST: &str = "__x86_indirect_thunk_rax";
const LAST: &str = "__x86_indirect_thunk_r15";
const OF_RETURNS: &str = "__x86_return_thunk";

/// Bytes of a thunk of a register (`RETPOLINE_THUNK_SIZE`; 6.18's /proc/kallsyms).
const SIZE: u64 = 32;

/// A thunk adds one word at most: where its own inner call returns to, or the function that it is about
/// to enter. Behind that is where its caller goes on.
const WORDS: u64 = 2;

/// Where the thunks are.
#[derive(Debug, Default)]
pub(super) struct Thunks {
    of_registers: Range<u64>,
    of_returns: Option<u64>,
}

impl Thunks {
    /// None where the kernel does not show them.
    pub(super) fn find(known: &Addresses) -> Self {
        let at = |name| known.get(name).copied();
        let of_registers = at(FIRST).zip(at(LAST).and_then(|last| last.checked_add(SIZE)));
        let of_registers = of_registers.map(|(first, end)| first..end).unwrap_or_default();
        Self { of_registers, of_returns: at(OF_RETURNS) }
    }

    pub(super) fn contain(&self, at: u64) -> bool {
        self.of_registers.contains(&at) || self.of_returns == Some(at)
    }

    /// Where on the stack it lies where the caller of a thunk goes on, if the stack pointer is `sp`
    /// within the thunk. `word` reads the stack.
    pub(super) fn caller<M: Memory>(
        &self,
        memory: &mut Cached<M>,
        sp: u64,
        word: impl Fn(u64) -> Option<u64>,
    ) -> Option<u64> {
        let mut places = (0..WORDS).filter_map(|number| sp.checked_add(8 * number));
        places.find(|&at| {
            word(at).is_some_and(|ip| !self.contain(ip) && is_behind_a_call(memory, ip))
        })
    }
}

/// Whether a call is right before `ip`. No function begins there: code before one is no call, or one
/// that never returns, which does not go through a thunk.
fn is_behind_a_call<M: Memory>(memory: &mut Cached<M>, ip: u64) -> bool {
    let code = ip.checked_sub(LONGEST_CALL as u64);
    let code = code.and_then(|at| memory.bytes::<LONGEST_CALL>(at));
    code.is_some_and(|code| calls::ends_in_x86(&code))
}

/// Bytes of the longest call that `calls` knows.
const LONGEST_CALL: usize = 6;
