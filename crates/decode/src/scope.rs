//! What the emulator's plugin sees of a guest's kernel: its memory, which holds the symbols and unwind
//! tables that a plan is made of; and its sections with interrupts or preemption off, of which a
//! [`wakescope_core::scope::Scope`] is made.

mod arm64;
mod asks;
mod blocks;
mod calls;
mod edges;
mod frames;
mod kernel;
mod lock_edges;
mod lock_functions;
mod locks;
mod memory;
mod need_resched;
mod plan;
mod preempt_count;
mod stream;
mod symbols;
#[cfg(test)]
mod tests;
mod unwind;

pub use kernel::{HEAD as KERNEL_HEAD, Kernel};
pub use plan::Plan;
pub use stream::{Decoded, Looked, decode};

use wakescope_core::budget::Exceeded;

/// Changes when what the plugin reads or writes does; the plugin has the same number.
const FORMAT: u64 = 11;

/// Why what the plugin wrote is of no use.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ScopeError {
    /// It is not what the plugin writes.
    #[error("it is not what the plugin writes")]
    Foreign,
    /// The emulator ended before the plugin had written all.
    #[error("it is cut short")]
    Cut,
    /// Something has changed it since: a block of it has another checksum.
    #[error(
        "it is damaged: the {length} bytes from byte {at} on have another checksum than when they were written"
    )]
    Damaged {
        /// Where in it the contents of this block begin.
        at: usize,
        /// How long they are.
        length: usize,
    },
    /// The kernel's memory holds no table of symbols of a known form.
    #[error("the kernel has no symbols (CONFIG_KALLSYMS), or a table of them in an unknown form")]
    NoSymbols,
    /// The kernel is for another architecture than the plugin knows.
    #[error("it is of an unknown architecture")]
    Machine,
    /// The kernel has symbols, but not this.
    #[error("the kernel lacks {0}")]
    Lacks(&'static str),
    /// No process ever ran.
    #[error("the guest ran no process")]
    NoProcess,
    /// The plugin missed something, so that no section is certain.
    #[error("{what}, {count} times")]
    Missed {
        /// What it noticed.
        what: &'static str,
        /// How often.
        count: u64,
    },
    /// So many edges are missing, for there were too many.
    #[error("{0} changes of what the CPU was at are missing, for there were too many")]
    EdgesLost(u64),
    /// It holds more than it may cost.
    #[error("it holds too much: {0}")]
    TooMuch(Exceeded),
}

impl From<Exceeded> for ScopeError {
    fn from(e: Exceeded) -> Self {
        Self::TooMuch(e)
    }
}

/// The little-endian number of eight bytes at `at`, if they are there.
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(8)?)?;
    bytes.try_into().ok().map(u64::from_le_bytes)
}
