//! Late wakeups for which there is no room: explained while the run goes on, and kept in short.

use std::collections::BTreeMap;
use std::rc::Rc;

use wakescope_core::explain::{Known, Rest, blame, components};

use crate::decode::{Decoder, addresses};
use crate::kept::Late;
use crate::symbols::Symbols;

/// How many wait to be explained together, with 6 kB each.
const BATCH: usize = 256;

/// The most functions of modules whose modules are remembered.
const MOST_FUNCTIONS: usize = 4_096;

/// Late wakeups that had to make room for later ones.
#[derive(Default)]
pub(crate) struct Overflow {
    waiting: Vec<Late>,
    /// Read once: a run that has one batch will have more. A module that is loaded later is not
    /// known to these wakeups.
    symbols: Option<Rc<Symbols>>,
    pub(crate) rest: Rest,
    /// Functions that they tell of which are in modules, each with its module's name.
    pub(crate) modules: BTreeMap<String, String>,
}

impl Overflow {
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

    /// The kernel's functions. Where their list cannot be read, that is told at the end of the run.
    pub(crate) fn symbols(&mut self) -> Rc<Symbols> {
        let read = || Rc::new(Symbols::read().unwrap_or_default());
        self.symbols.get_or_insert_with(read).clone()
    }

    /// Explains those that wait, and keeps that in short.
    pub(crate) fn explain(&mut self, decoder: &Decoder<'_>, known: &Known) {
        for late in std::mem::take(&mut self.waiting) {
            let wakeup = decoder.wakeup(&late);
            self.rest.add(components(&wakeup.marks), blame(&wakeup, known));
            if self.modules.len() < MOST_FUNCTIONS {
                let named = addresses(&late).filter_map(|a| in_module(decoder.symbols, a));
                self.modules.extend(named);
            }
        }
    }
}

/// The function at `address` and its module, if it is in one.
pub(crate) fn in_module(symbols: &Symbols, address: u64) -> Option<(String, String)> {
    symbols.module(address).map(|(function, module)| (function.into(), module.into()))
}
