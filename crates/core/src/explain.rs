//! Why a wakeup was late: what was seen while it waited, and whose every nanosecond was.
//!
//! A tracer hands over a [`Wakeup`]: its marks, the context that its interrupt broke into, and the
//! events on its CPU, in order of time. From that alone follow the four components, which add up to
//! the wakeup latency, and the shares of blame, which do so too. What was lost or makes no sense
//! becomes [`Cause::Unexplained`], never a guess.
//!
//! What comes out is types, with names of the kernel's in them and no sentences: words are made of
//! them where they are shown.

mod account;
mod balance;
mod blame;
mod bound;
mod cause;
mod components;
mod compose;
mod culprit;
mod event;
mod frame;
mod function;
mod known;
mod measured;
mod rank;
mod record;
mod rest;
mod sections;
mod seen;
mod softirq;
mod stacks;
mod step;
mod tally;
mod task;
#[cfg(test)]
mod testing;
mod timeline;

pub use account::{account, stand_in};
pub use blame::blame;
pub use bound::{Bound, Interference, Premises, Unsound, Variables, Work, bound};
pub use cause::{Cause, Evidence};
pub use components::components;
pub use culprit::{Blamed, Culprit, Name, Phase, Within};
pub use event::{Context, Event, GivenUp, Interrupt, Marks, Mode, Stimulus, Wakeup, What};
pub use frame::{Frame, Function, SourceLine};
pub use known::{Known, Machine};
pub use measured::{Edge, Longest, Measured, SectionKind, SectionPlace};
pub use rank::{Part, rank};
pub use record::{CauseRow, ComponentTable, Components, Explanation, Sections, Share};
pub use rest::Rest;
pub use sections::sections;
pub use seen::{Above, Interrupts, Seen};
pub use softirq::softirq_name;
pub use stacks::stacks_mut;
pub use step::{Interrupted, Step, StepEvent, StepMode};
pub use tally::{Histogrammed, SCHEDULING_DURATION, Tally, WAKEUP_LATENCY};
pub use task::{NamedTask, Policy, Task};
pub use timeline::timeline;
