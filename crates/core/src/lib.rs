//! The vocabulary of wakescope and every computation on it.
//!
//! Nothing here does I/O, reads a clock or is `unsafe`: what comes in are numbers and text, what
//! goes out are numbers and text. That is why the same code serves a live machine, a stored run
//! and a simulated kernel, and why it can be tested where the truth is known.

pub mod audio;
pub mod behaviour;
pub mod btf;
pub mod budget;
pub mod command_line;
pub mod date;
pub mod distribution;
pub mod episodes;
pub mod explain;
mod faults;
pub mod finding;
pub mod harmless;
pub mod hex;
pub mod histogram;
pub mod host;
pub mod instruments;
pub mod interval_deviation;
pub mod kernel_stamps;
pub mod lab;
pub mod limit;
pub mod limitations;
pub mod line;
pub mod maxima;
pub mod observation;
pub mod percentile;
pub mod plan;
pub mod predict;
pub mod preemption;
pub mod random;
mod record_reader;
pub mod record_writer;
pub mod recorder;
pub mod redact;
pub mod ring;
pub mod run;
pub mod scope;
pub mod softirq;
pub mod sound_card;
pub mod source;
pub mod starvation;
pub mod stated;
pub mod tail;
mod time_domain;
pub mod units;
pub mod unknown;
pub mod validity;
pub mod watch;
