//! Formats of other programs: read into runs, and written from runs and watches.
//!
//! Nothing here opens a file or reads a clock: readers and writers are passed in, and memory is
//! bounded. What a format lacks is never guessed, and what is exported is read again as it was.

pub mod export;
pub mod import;
#[cfg(test)]
mod made_up;
pub mod metrics;
mod parts;
