//! Late wakeups for which there is no room: explained while the run goes on, and kept in short.

use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SendError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use wakescope_attribution::{Abridged, Known, blame, components};
use wakescope_core::explain::By;

use crate::decode::Decoder;
use crate::kept::Late;
use crate::symbols::Symbols;
use crate::users::UserNames;

/// How many wait to be explained together, with 6 kB each.
const BATCH: usize = 256;

/// How many batches wait for the thread that explains them. Beyond that the reader waits, too, and
/// what then finds no room in the kernel's buffer is counted there.
const BATCHES: usize = 4;

/// Late wakeups that had to make room for later ones.
///
/// A thread of their own explains them: to read the kernel's functions and to explain the first batch
/// took 331 ms on two busy CPUs, in which nobody would take anything out of the kernel's buffer.
pub(crate) struct Overflow {
    waiting: Vec<Late>,
    /// There from the first batch on.
    explainer: Option<Explainer>,
    /// For where no thread can be had.
    in_place: InShort,
}

struct Explainer {
    batches: SyncSender<Batch>,
    thread: Option<JoinHandle<InShort>>,
}

/// What is explained together, with what is known by then.
struct Batch {
    late: Vec<Late>,
    known: Known,
    /// See [`Decoder::least_depth`].
    least_depth: u64,
}

/// What is kept of wakeups that have been explained.
pub(crate) struct InShort {
    pub(crate) abridged: Abridged,
    preemptible: Option<bool>,
    idle_states: Vec<String>,
    by: Option<By>,
}

impl Overflow {
    /// For a kernel that is or is not `preemptible`, with these `idle_states`; see [`Decoder`]. Time is
    /// to be ranked `by` that beside its causes.
    pub(crate) fn new(preemptible: Option<bool>, idle_states: &[String], by: Option<By>) -> Self {
        let in_place = InShort::new(preemptible, idle_states.to_vec(), by);
        Self { waiting: Vec::new(), explainer: None, in_place }
    }

    pub(crate) fn extend(&mut self, late: impl IntoIterator<Item = Late>) {
        self.waiting.extend(late);
    }

    /// Whether it is time to explain those that wait.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= BATCH
    }

    /// Whether there is nothing to explain.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Has those that wait explained.
    pub(crate) fn explain(&mut self, known: Known, least_depth: u64) {
        let batch = Batch { late: std::mem::take(&mut self.waiting), known, least_depth };
        let InShort { preemptible, idle_states, by, .. } = &self.in_place;
        let explainer = self.explainer.get_or_insert_with(|| {
            Explainer::start(InShort::new(*preemptible, idle_states.clone(), *by))
        });
        if let Err(SendError(batch)) = explainer.batches.send(batch) {
            let symbols = Symbols::read().unwrap_or_default();
            self.in_place.add(batch, &symbols);
        }
    }

    /// What there is of all that was explained, when it is.
    pub(crate) fn finish(self) -> InShort {
        let Some(Explainer { batches, thread }) = self.explainer else { return self.in_place };
        // Without a sender, the thread ends.
        drop(batches);
        match thread {
            Some(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            None => self.in_place,
        }
    }
}

impl Explainer {
    fn start(mut in_short: InShort) -> Self {
        let (batches, received) = sync_channel(BATCHES);
        let thread = thread::Builder::new().name("explain".into()).stack_size(512 << 10);
        let thread = thread.spawn(move || {
            in_short.add_all(&received);
            in_short
        });
        Self { batches, thread: thread.ok() }
    }
}

impl InShort {
    fn new(preemptible: Option<bool>, idle_states: Vec<String>, by: Option<By>) -> Self {
        Self { abridged: Abridged::by(by), preemptible, idle_states, by }
    }

    /// Explains all that comes. The kernel's functions are read once: a run that has one batch will
    /// have more. A module that is loaded later is not known to these wakeups; where the list
    /// cannot be read, that is told at the end of the run.
    fn add_all(&mut self, batches: &Receiver<Batch>) {
        let mut symbols = None;
        for batch in batches {
            self.add(batch, symbols.get_or_insert_with(|| Symbols::read().unwrap_or_default()));
        }
    }

    fn add(&mut self, batch: Batch, symbols: &Symbols) {
        let decoder = Decoder {
            symbols,
            users: &UserNames::default(),
            least_depth: batch.least_depth,
            preemptible: self.preemptible,
            idle_states: &self.idle_states,
        };
        for late in batch.late {
            let wakeup = decoder.wakeup(&late);
            let lateness = components(&wakeup.marks);
            self.abridged.add(lateness, wakeup.stolen_ns, blame(&wakeup, &batch.known));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::Wakeup;

    fn late(number: usize) -> Late {
        let due = 1_000_000 * (1 + number as u64);
        let wakeup = Wakeup {
            due,
            irq_entry: due + 100,
            irq_exit: due + 200,
            switch_in: due + 300,
            response: due + 1_000 + number as u64,
            ..Wakeup::default()
        };
        Late { wakeup, events: Vec::new(), lost: 0 }
    }

    #[test]
    fn all_that_was_handed_over_is_explained_in_the_end() {
        let batches = 3 * BATCHES;
        let mut overflow = Overflow::new(Some(true), &[], None);
        let mut in_place = InShort::new(Some(true), Vec::new(), None);
        for number in 0..batches * BATCH + 7 {
            overflow.extend([late(number)]);
            if overflow.is_full() {
                overflow.explain(Known::default(), 0);
                assert!(overflow.is_empty());
            }
        }
        assert!(!overflow.is_empty());
        overflow.explain(Known::default(), 0);
        let all = (0..batches * BATCH + 7).map(late).collect();
        let batch = Batch { late: all, known: Known::default(), least_depth: 0 };
        in_place.add(batch, &Symbols::default());
        assert_eq!(overflow.finish().abridged, in_place.abridged);
    }

    #[test]
    fn nothing_to_explain_is_nothing_explained() {
        let overflow = Overflow::new(None, &[], None);
        assert!(overflow.is_empty() && !overflow.is_full());
        assert_eq!(overflow.finish().abridged, Abridged::default());
    }
}
