//! The evidence of why wakeups were late: what a tracer saw of each, and what a record says of it.
//!
//! These are types, with names of the kernel's in them and no sentences: words are made of them where
//! they are shown. What is concluded from what was seen is the business of the crate `attribution`.

mod above;
mod anew;
mod bound;
mod cause;
mod culprit;
mod event;
mod frame;
mod gap;
mod known;
mod measured;
mod net;
mod ranking;
mod record;
pub(crate) mod rows;
mod stacks;
mod step;
mod task;
mod truth;
mod waits;

pub use above::Above;
pub use anew::{Anew, Answer, Change};
pub use bound::{Bound, Interference, Unsound, Variables, Work};
pub use cause::{Cause, Evidence};
pub use culprit::{Blamed, Culprit, Name, Phase, Within};
pub use event::{
    Context, Event, GivenUp, Interrupt, KnownSwitches, Marks, Mode, Ran, RunTimes, Taken, Wakeup,
    What, WokenBy,
};
pub use frame::{Frame, Function, SourceLine};
pub use gap::Gap;
pub use known::Known;
pub use measured::{Edge, Longest, Measured, SectionKind, SectionPlace};
pub use net::NetOfSteal;
pub use ranking::{By, Ranking, RankingRow, Subject};
pub use record::{CauseRow, ComponentTable, Components, Explanation, Sections, Share};
pub use stacks::{stacks_mut, user_stacks_mut};
pub use step::{Interrupted, Step, StepEvent, StepMode};
pub use task::{NamedTask, Policy, Task};
pub use truth::{TrueCause, TrueShare, Truth};
pub use waits::{
    OpenWait, Quota, Schedstat, ThreadWaitRow, ThreadWaits, WaitKind, WaitRow, Waits, WorstWait,
};
