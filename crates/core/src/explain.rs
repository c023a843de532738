//! Why a wakeup was late: what was seen while it waited, and whose every nanosecond was.
//!
//! A tracer hands over a [`Wakeup`]: its marks, the context that its interrupt broke into, and the
//! events on its CPU, in order of time. From that alone follow the four components, which add up to
//! the wakeup latency, and the shares of blame, which do so too. What was lost or makes no sense
//! becomes [`Cause::Unexplained`], never a guess.

mod account;
mod balance;
mod blame;
mod bound;
mod components;
mod compose;
mod event;
mod function;
mod known;
mod measured;
mod rank;
mod record;
mod rest;
mod sections;
mod seen;
mod stacks;
mod tally;
mod timeline;
mod words;

pub use account::{account, stand_in};
pub use blame::blame;
pub use bound::{Bound, Interference, Premises, Variables, Work, bound};
pub use components::components;
pub use event::{
    Context, Event, GivenUp, Interrupt, Marks, Mode, Policy, Stimulus, Task, Wakeup, What,
};
pub use known::{Known, Machine};
pub use measured::{Edge, Longest, Measured, SectionKind, SectionPlace};
pub use rank::{Part, rank};
pub use record::{
    Cause, CauseRow, ComponentTable, Components, Evidence, Explanation, Sections, Share,
    SourceLine, Step,
};
pub use rest::Rest;
pub use sections::sections;
pub use seen::{Above, Interrupts, Seen};
pub use stacks::{StackMut, stacks_mut};
pub use tally::{Histogrammed, SCHEDULING_DURATION, Tally, WAKEUP_LATENCY};
pub use timeline::timeline;
pub use words::softirq_name;
