//! Tells the user what long work is at, once it takes long, and lets Ctrl-C end it.

use wakescope_core::units::SpanNs;
use wakescope_lab::watch::{Step, Watch};
use wakescope_report::style::clean;
use wakescope_sys::signal::EndSignals;

use crate::screen::ProgressLine;
use crate::signals::block_end_signals;
use crate::{Failure, output};

/// The widest line that no terminal wraps.
const WIDTH: usize = 79;

/// Someone at a terminal, or a log.
pub(super) struct Waiting {
    signals: EndSignals,
    stopped: bool,
    progress: ProgressLine,
}

impl Waiting {
    /// From now on, signals that end a program are fetched here.
    pub(super) fn new() -> Result<Self, Failure> {
        let signals = block_end_signals()?;
        let progress = ProgressLine::of_work();
        Ok(Self { signals, stopped: false, progress })
    }

    /// Says something that stays.
    pub(super) fn tell(&mut self, text: &str) {
        self.clear();
        output::tell(&clean(text, 300));
    }

    /// Takes the line of progress away.
    pub(super) fn clear(&mut self) {
        self.progress.clear();
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Watch for Waiting {
    fn step(&mut self, step: &Step<'_>) {
        if let Step::Note(text) = step {
            return self.tell(text);
        }
        self.progress.show(|| clean(&line(step), WIDTH));
    }

    fn stopped(&mut self) -> bool {
        // Once it has been asked for, it holds for all that follows.
        self.stopped |= self.signals.wait(SpanNs(0)).is_some();
        self.stopped
    }
}

fn line(step: &Step<'_>) -> String {
    match step {
        Step::Waiting(what) => format!("waiting for another wakescope ({what})"),
        Step::Lists { bytes: 0 } => "reading the archive's package lists".into(),
        Step::Lists { bytes } => {
            format!("reading the archive's package lists: {}", megabytes(*bytes))
        }
        Step::Download { what, bytes, of } => {
            format!("fetching {what}: {} of {}", megabytes(*bytes), megabytes(*of))
        }
        Step::Unpack(what) => format!("unpacking {what}"),
        Step::Build(release) => format!("building the module for {release}"),
        Step::Note(text) => (*text).to_owned(),
    }
}

/// `27 MB`, `0.1 MB`.
pub(super) fn megabytes(bytes: u64) -> String {
    let tenths = bytes.saturating_add(50_000) / 100_000;
    match tenths {
        0..100 => format!("{}.{} MB", tenths / 10, tenths % 10),
        _ => format!("{} MB", (tenths + 5) / 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_in_megabytes() {
        for (bytes, want) in [
            (0, "0.0 MB"),
            (49_999, "0.0 MB"),
            (120_000, "0.1 MB"),
            (9_940_000, "9.9 MB"),
            (9_960_000, "10 MB"),
            (26_713_492, "27 MB"),
            (u64::MAX, "18446744073710 MB"),
        ] {
            assert_eq!(megabytes(bytes), want, "{bytes}");
        }
    }

    #[test]
    fn steps_are_told_in_a_line() {
        for (step, want) in [
            (Step::Waiting("apt-amd64"), "waiting for another wakescope (apt-amd64)"),
            (Step::Lists { bytes: 0 }, "reading the archive's package lists"),
            (Step::Lists { bytes: 2_000_000 }, "reading the archive's package lists: 2.0 MB"),
            (
                Step::Download { what: "6.1.0-56-amd64", bytes: 3_000_000, of: 27_000_000 },
                "fetching 6.1.0-56-amd64: 3.0 MB of 27 MB",
            ),
            (Step::Unpack("x"), "unpacking x"),
        ] {
            assert_eq!(line(&step), want);
        }
    }
}
