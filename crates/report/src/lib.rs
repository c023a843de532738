//! Run records in, text and other formats out.
//!
//! Nothing here does I/O or reads a clock: what goes in are records, what comes out are strings.

pub mod check;
pub mod style;
