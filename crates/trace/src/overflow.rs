//! Late wakeups for which there is no room: explained while the run goes on, and kept in short.

use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SendError, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use wakescope_attribution::{Abridged, blame, components};
use wakescope_core::explain::{By, Known, Wakeup};
use wakescope_decode::{Decoder, KernelWakeup};

use crate::symbols::Symbols;

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
    waiting: Vec<KernelWakeup>,
    /// There from the first batch on.
    explainer: Option<Explainer>,
    /// For where no thread can be had.
    in_place: InShort,
}

struct Explainer {
    work: SyncSender<Work>,
    decoded: Receiver<Vec<Wakeup>>,
    thread: Option<JoinHandle<InShort>>,
}

/// What the thread is to do.
enum Work {
    /// Explain these, and keep the answers in short.
    Explain(Batch),
    /// Decode these, and hand them back.
    Decode(Vec<KernelWakeup>, u64),
}

/// What is explained together, with what is known by then.
struct Batch {
    late: Vec<KernelWakeup>,
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

    pub(crate) fn extend(&mut self, late: impl IntoIterator<Item = KernelWakeup>) {
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
        let sent = self.explainer().work.send(Work::Explain(batch));
        if let Err(SendError(Work::Explain(batch))) = sent {
            let symbols = Symbols::read().unwrap_or_default();
            self.in_place.add(batch, &symbols);
        }
    }

    fn explainer(&mut self) -> &mut Explainer {
        let InShort { preemptible, idle_states, by, .. } = &self.in_place;
        self.explainer.get_or_insert_with(|| {
            Explainer::start(InShort::new(*preemptible, idle_states.clone(), *by))
        })
    }

    /// Has the thread read the kernel's functions now, before anything is measured.
    pub(crate) fn prepare(&mut self) {
        let _ = self.explainer().work.try_send(Work::Decode(Vec::new(), 0));
    }

    /// Has `late` decoded, for [`Self::decoded`]; whether the thread has time for that.
    pub(crate) fn decode(&mut self, late: Vec<KernelWakeup>, least_depth: u64) -> bool {
        self.explainer().work.try_send(Work::Decode(late, least_depth)).is_ok()
    }

    /// What has been decoded since the last call.
    pub(crate) fn decoded(&self) -> Vec<Wakeup> {
        self.explainer.iter().flat_map(|explainer| explainer.decoded.try_iter()).flatten().collect()
    }

    /// What there is of all that was explained, when it is.
    pub(crate) fn finish(self) -> InShort {
        let Some(Explainer { work, decoded: _, thread }) = self.explainer else {
            return self.in_place;
        };
        // Without a sender, the thread ends.
        drop(work);
        match thread {
            Some(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            None => self.in_place,
        }
    }
}

impl Explainer {
    fn start(mut in_short: InShort) -> Self {
        let (work, received) = sync_channel(BATCHES);
        let (hand_back, decoded) = channel();
        let thread = thread::Builder::new().name("explain".into()).stack_size(512 << 10);
        let thread = thread.spawn(move || {
            in_short.add_all(&received, &hand_back);
            in_short
        });
        Self { work, decoded, thread: thread.ok() }
    }
}

impl InShort {
    fn new(preemptible: Option<bool>, idle_states: Vec<String>, by: Option<By>) -> Self {
        Self { abridged: Abridged::by(by), preemptible, idle_states, by }
    }

    /// Explains all that comes. The kernel's functions are read once: a run that has one batch will
    /// have more. A module that is loaded later is not known to these wakeups; where the list
    /// cannot be read, that is told at the end of the run.
    fn add_all(&mut self, work: &Receiver<Work>, hand_back: &Sender<Vec<Wakeup>>) {
        let mut symbols = None;
        for work in work {
            let symbols = symbols.get_or_insert_with(|| Symbols::read().unwrap_or_default());
            match work {
                Work::Explain(batch) => self.add(batch, symbols),
                Work::Decode(late, least_depth) => {
                    // Who does not take them any more needs none.
                    let _ = hand_back.send(self.decoded(&late, least_depth, symbols));
                }
            }
        }
    }

    fn add(&mut self, batch: Batch, symbols: &Symbols) {
        for wakeup in self.decoded(&batch.late, batch.least_depth, symbols) {
            let lateness = components(&wakeup.marks);
            self.abridged.add(lateness, wakeup.stolen_ns, blame(&wakeup, &batch.known));
        }
    }

    fn decoded(&self, late: &[KernelWakeup], least_depth: u64, symbols: &Symbols) -> Vec<Wakeup> {
        let decoder = Decoder {
            kernel_frame: &|address| symbols.frame(address),
            user_frame: &|_, _| None,
            least_depth,
            preemptible: self.preemptible,
            idle_states: &self.idle_states,
        };
        late.iter().map(|late| decoder.wakeup(late)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakescope_core::explain::Marks;
    use wakescope_core::units::MonoNs;

    fn late(number: usize) -> KernelWakeup {
        let due = 1_000_000 * (1 + number as u64);
        let marks = Marks {
            due: MonoNs(due),
            irq_entry: Some(MonoNs(due + 100)),
            irq_exit: Some(MonoNs(due + 200)),
            sched_entry: None,
            switch_in: Some(MonoNs(due + 300)),
            response: MonoNs(due + 1_000 + number as u64),
        };
        KernelWakeup { marks, ..KernelWakeup::default() }
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
