//! What is told to whoever waits for long work, and how they end it.

/// What long work is at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// Another process has what is needed: `the package lists`.
    Waiting(&'a str),
    /// The archive's package lists come in.
    Lists {
        /// Bytes so far; how many there will be is not known.
        bytes: u64,
    },
    /// Packages come in.
    Download {
        /// What is being fetched: a package, or what several of them make up.
        what: &'a str,
        /// Bytes so far.
        bytes: u64,
        /// Bytes that there will be.
        of: u64,
    },
    /// A package is taken apart.
    Unpack(&'a str),
    /// A module is built for the kernel of this release.
    Build(&'a str),
    /// Something that the user should know, in a sentence.
    Note(&'a str),
}

/// Somebody who waits for long work.
pub trait Watch {
    /// Hears what the work is at, about ten times per second.
    fn step(&mut self, step: &Step<'_>);

    /// Whether the work is to end now, leaving nothing half done.
    fn stopped(&mut self) -> bool;
}

/// Nobody is told anything, and nobody ends the work.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn step(&mut self, _: &Step<'_>) {}

    fn stopped(&mut self) -> bool {
        false
    }
}
