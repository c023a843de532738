//! Late wakeups for which there is no room: explained while the run goes on, and kept in short.

use std::rc::Rc;

use wakescope_core::explain::{Known, Rest, blame, components};

use crate::decode::{Decoder, addresses};
use crate::homes::Homes;
use crate::kept::Late;
use crate::symbols::Symbols;

/// How many wait to be explained together, with 6 kB each.
const BATCH: usize = 256;

/// The most functions that are remembered with whose they are, some 100 bytes each.
const MOST_FUNCTIONS: usize = 16_384;

/// Late wakeups that had to make room for later ones.
#[derive(Default)]
pub(crate) struct Overflow {
    waiting: Vec<Late>,
    /// Read once: a run that has one batch will have more. A module that is loaded later is not
    /// known to these wakeups.
    symbols: Option<Rc<Symbols>>,
    pub(crate) rest: Rest,
    /// Where the functions are that they tell of.
    pub(crate) homes: Homes,
}

impl Overflow {
    pub(crate) fn extend(&mut self, late: impl IntoIterator<Item = Late>) {
        self.waiting.extend(late);
    }

    /// Whether it is time to explain those that wait.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= BATCH
    }

    /// The kernel's functions. Where their list cannot be read, that is told at the end of the run.
    pub(crate) fn symbols(&mut self) -> Rc<Symbols> {
        let read = || Rc::new(Symbols::read().unwrap_or_default());
        // Without any that wait there is nothing to be named.
        if self.waiting.is_empty() {
            Rc::default()
        } else {
            self.symbols.get_or_insert_with(read).clone()
        }
    }

    /// Explains those that wait, and keeps that in short.
    pub(crate) fn explain(&mut self, decoder: &Decoder<'_>, known: &Known) {
        for late in std::mem::take(&mut self.waiting) {
            let wakeup = decoder.wakeup(&late);
            self.rest.add(components(&wakeup.marks), blame(&wakeup, known));
            self.homes.add(decoder.symbols, addresses(&late), MOST_FUNCTIONS);
        }
    }
}
