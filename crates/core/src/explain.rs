//! Why a wakeup was late: what was seen while it waited, and whose every nanosecond was.
//!
//! A tracer hands over a [`Wakeup`]: its marks, the context that its interrupt broke into, and the
//! events on its CPU, in order of time. From that alone follow the four components, which add up to
//! the wakeup latency, and the shares of blame, which do so too. What was lost or makes no sense
//! becomes [`Cause::Unexplained`], never a guess.

mod account;
mod blame;
mod components;
mod event;
mod record;
mod seen;
mod words;

pub use account::account;
pub use blame::{Known, blame};
pub use components::components;
pub use event::{Context, Event, Interrupt, Marks, Mode, Policy, Stimulus, Task, Wakeup, What};
pub use record::{
    Cause, CauseRow, ComponentTable, Components, Evidence, Explanation, Sections, Share, Step,
};
pub use seen::{Above, Seen};
pub use words::softirq_name;
