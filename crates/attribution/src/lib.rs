//! Why a wakeup was late: what was seen while it waited, and whose every nanosecond was.
//!
//! A tracer hands over a [`Wakeup`]: its marks, the context that its interrupt broke into, and the
//! events on its CPU, in order of time. From that alone follow the four components, which add up to
//! the wakeup latency, and the shares of blame, which do so too. What was lost or makes no sense
//! becomes [`Cause::Unexplained`], never a guess.
//!
//! Nothing here does I/O or reads a clock: the wakeups of a live kernel, of a stored run and of a model
//! are all the same to it.
//!
//! [`Wakeup`]: wakescope_core::explain::Wakeup
//! [`Cause::Unexplained`]: wakescope_core::explain::Cause::Unexplained

mod abridged;
mod account;
mod anew;
mod balance;
mod blame;
mod bound;
mod components;
mod compose;
mod function;
mod group;
mod known;
mod late;
mod net_of_steal;
mod outside;
mod rank;
mod ranking;
mod rule;
mod sections;
mod seen;
mod tally;
#[cfg(test)]
mod testing;
mod timeline;
mod tuning;
mod waits;

pub use abridged::Abridged;
pub use account::{Accounted, account, stand_in};
pub use anew::Reattribution;
pub use blame::{Decision, blame, blame_with, decide, placed_blame};
pub use bound::{Premises, bound};
pub use components::{components, irq_latency_ns};
pub use known::{Machine, calibrate};
pub use net_of_steal::without_stolen;
pub use outside::{Late, Outside, SectionEnd, outside};
pub use rank::{Part, rank};
pub use ranking::{rank_by, rank_stored_by};
pub use rule::Rule;
pub use sections::{function_at, sections};
pub use seen::{Interrupts, Seen};
pub use tally::{
    Histogrammed, INTERRUPT_LATENCY, NET_OF_STEAL, SCHEDULING_DURATION, Tally, WAKEUP_LATENCY,
};
pub use timeline::timeline;
pub use tuning::Tuning;
pub use waits::{Waited, differ};
