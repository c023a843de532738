//! The loops that wait for an event and note when they woke: one file per kind of event.

pub mod timer;
