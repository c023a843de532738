//! What a kernel showed of late wakeups, in its own numbers and addresses, and what that means.
//!
//! A [`KernelWakeup`] goes in, a [`wakescope_core::explain::Wakeup`] with names comes out. Whoever can
//! fill in the first one can have it explained: a tracer of the running kernel, or a program that
//! simulates one. Nothing here reads a file or a clock; names of addresses are asked of the caller.

mod code;
mod decoder;
mod events;
mod kernel;
mod names;
pub mod orc;
mod parts;
pub mod scope;
mod x86;

pub use code::{CODE_BYTES, is_arm64_call};
pub use decoder::Decoder;
pub use kernel::{
    GivenUpAt, Interrupted, Irq, KernelEvent, KernelRunTimes, KernelTask, KernelWakeup, Link,
    Payload, Switch, SwitchedFrom, UserStack, Vector, WakeupSource,
};
pub use names::{interrupt_name, is_tracing};
pub use parts::{Part, joined};
