//! Storing what was seen of late wakeups, so that it can be attributed anew.

use std::io;

use wakescope_attribution::{Accounted, blame, components};
use wakescope_core::episodes::{Attributed, Entry, Head, Line};
use wakescope_core::explain::{Above, Known};
use wakescope_core::finding::{Finding, Severity, Validity};
use wakescope_core::redact::{redact_attributed, redact_head};
use wakescope_core::run::Run;
use wakescope_core::units::MonoNs;
use wakescope_store::{EPISODES, GrowingFile};
use wakescope_sys::clock;
use wakescope_trace::Tracer;

use crate::measure::CHECKPOINT;

/// So many are stored at each checkpoint, the latest first: decoding and writing these takes a few ms
/// of CPU time a second.
const MOST_PER_CHECKPOINT: usize = 32;

/// The file of a run that goes on may be so long; then it begins anew with the latest.
const MOST_BYTES_MEANWHILE: u64 = 32 << 20;

/// A stored wakeup takes 2 to 8 kB, and at most so many bytes are stored for each that is kept whole.
const BYTES_FOR_EACH: usize = 8 << 10;

/// A guest sends its results through a serial line, each byte of which costs the emulator an exit.
const MOST_BYTES_OF_GUEST: usize = 256 << 10;

/// Where the episodes of a run go.
pub(super) struct Episodes {
    place: Place,
    head: Head,
    redacts: bool,
    /// The most bytes that are stored in the end.
    most_bytes: usize,
}

enum Place {
    /// A file in the run's folder.
    File { file: GrowingFile, next: MonoNs },
    /// The memory of a guest, which sends them with its run.
    Memory,
}

impl Episodes {
    /// Stores the episodes of `run`, which begins, in `file`. At most `kept` of them are kept whole.
    pub(super) fn in_file(
        file: GrowingFile,
        run: &Run,
        above: Above,
        kept: usize,
        redacts: bool,
    ) -> Self {
        let head = Head::of(run, above, Known::default());
        let next = clock::now().after(CHECKPOINT);
        let most_bytes = BYTES_FOR_EACH.saturating_mul(kept);
        Self { place: Place::File { file, next }, head, redacts, most_bytes }
    }

    /// Keeps them in memory until the run is done.
    pub(super) fn in_memory(above: Above) -> Self {
        let head = Head::of(&Run::default(), above, Known::default());
        let most_bytes = MOST_BYTES_OF_GUEST;
        Self { place: Place::Memory, head, redacts: false, most_bytes }
    }

    /// Stores the latest wakeups of a run that goes on and began at `origin`, a few at each checkpoint.
    /// To be called whenever records were taken.
    pub(super) fn look(&mut self, tracer: &mut Tracer, origin: MonoNs) {
        let Place::File { file, next } = &mut self.place else { return };
        let now = clock::now();
        if now >= *next {
            *next = now.after(CHECKPOINT);
            if file.length() > MOST_BYTES_MEANWHILE.max(self.most_bytes as u64)
                && file.replace(b"").is_ok()
            {
                tracer.decode_all_again();
            }
            tracer.decode_latest(MOST_PER_CHECKPOINT);
        }
        let Some((wakeups, known)) = tracer.decoded() else { return };
        self.head.origin_ns = origin.0;
        self.head.known = known;
        let attributed = wakeups.into_iter().map(|wakeup| {
            let (components, blame) = (components(&wakeup.marks), blame(&wakeup, &known));
            Attributed { wakeup, components, blame }
        });
        let mut piece = text_of_head(&self.head);
        for episode in attributed {
            piece += &text(episode, origin.0, self.redacts);
        }
        // A full disk is no error yet: the file is written whole at the end, which reports one.
        let _ = file.append(piece.as_bytes());
    }

    /// Stores all that was accounted for in `run`, the latest first, as far as there is room, and notes
    /// in the run how many these are, or why there are none. Returns what is to be kept in memory.
    pub(super) fn store(&mut self, run: &mut Run, accounted: &Accounted) -> Option<Vec<u8>> {
        match self.replace(run, accounted) {
            Ok(bytes) => bytes,
            Err(e) => {
                // Episodes with the answers of a moment in the middle of the run would contradict the record.
                if let Place::File { file, .. } = &self.place {
                    file.remove();
                }
                let mut findings = std::mem::take(&mut run.validity.findings);
                findings.push(not_stored(&e));
                run.validity = Validity::of(findings);
                None
            }
        }
    }

    /// The same, where an error leaves what was stored before.
    pub(super) fn replace(
        &mut self,
        run: &mut Run,
        accounted: &Accounted,
    ) -> io::Result<Option<Vec<u8>>> {
        let Accounted { known, episodes } = accounted;
        let mut head = Head::of(run, self.head.above, *known);
        if self.redacts {
            redact_head(&mut head);
        }
        let mut whole = text_of_head(&head);
        let mut count = 0;
        for episode in episodes {
            let line = text(episode.clone(), run.origin_ns, self.redacts);
            if whole.len() + line.len() > self.most_bytes {
                break;
            }
            whole += &line;
            count += 1;
        }
        let in_memory = match &mut self.place {
            Place::Memory => Some(whole.into_bytes()),
            Place::File { file, .. } => file.replace(whole.as_bytes()).map(|()| None)?,
        };
        if let Some(explanation) = &mut run.explanation {
            explanation.stored_episodes = Some(count);
        }
        Ok(in_memory)
    }
}

fn not_stored(e: &io::Error) -> Finding {
    Finding::new(
        "episodes-not-stored",
        Severity::Warning,
        format!("{EPISODES} could not be written ({e}): this run cannot be attributed anew"),
        "make room, or name a folder on a file system with room: --out DIR",
    )
}

fn text_of_head(head: &Head) -> String {
    Entry::Head(Box::new(head.clone())).text()
}

fn text(mut episode: Attributed, origin_ns: u64, redacts: bool) -> String {
    if redacts {
        redact_attributed(&mut episode);
    }
    Entry::Episode(Box::new(Line::of(episode, origin_ns))).text()
}
