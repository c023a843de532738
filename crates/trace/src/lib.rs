//! Follows wakeups through the kernel, by BPF programs on its tracepoints.
//!
//! What is counted is counted in the kernel; only wakeups that were late leave it, as
//! [`wakescope_core::explain::Wakeup`]s. What they mean is none of this crate's business.
#![allow(unsafe_code)]

mod build_id;
mod counted;
mod cpus;
mod error;
mod image;
mod interference;
mod kept;
mod kernel;
mod maps;
mod object;
mod overflow;
mod parts;
mod programs;
mod quota;
mod record;
mod sections;
mod shared;
mod stack;
mod symbols;
mod tally;
mod target;
mod threads;
mod throughout;
mod tracer;
mod users;
mod waits;
pub mod watch;
mod worth;

pub use build_id::build_id_of_kernel;
pub use error::TraceError;
pub use image::{Found, Image, MappedImage, NoImage, functions_of_program};
pub use interference::Watch;
pub use shared::WAKEUPS_HELD;
pub use target::TargetError;
pub use tracer::{Options, Tracer};
pub use users::{NamePrograms, ProgramFiles, ProgramFunctions, SymbolReader, UserPlaces, Users};
