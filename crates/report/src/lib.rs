//! Run records in; text, pictures and pages out.
//!
//! Nothing here does I/O or reads a clock: what goes in are records, what comes out are strings, or
//! bytes into a writer that the caller has opened.

pub mod ascii;
mod audio;
mod bands;
pub mod check;
pub mod compare;
mod domain;
pub mod explain;
mod findings;
mod headline;
pub mod html;
mod intervals;
pub mod lab;
pub mod lab_progress;
mod line;
mod list;
pub mod load;
pub mod markdown;
mod matrix;
pub mod model;
mod observed;
pub mod picture;
pub mod plot;
pub mod predict;
pub mod progress;
mod quantity;
pub mod realfeel;
pub mod run_set;
pub mod scope;
pub mod series;
mod share;
mod sound;
mod stamps;
pub mod style;
pub mod table;
pub mod tail;
pub mod text;
pub mod trace;
pub mod trend;
pub mod watch;
