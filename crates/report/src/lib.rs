//! Run records in, text and other formats out.
//!
//! Nothing here does I/O or reads a clock: what goes in are records, what comes out are strings.

pub mod check;
mod domain;
pub mod explain;
mod findings;
pub mod html;
pub mod lab;
pub mod lab_progress;
pub mod load;
pub mod markdown;
pub mod overlay;
pub mod picture;
pub mod plot;
pub mod progress;
pub mod realfeel;
pub mod style;
pub mod table;
pub mod text;
