//! A file that is read, whose budget grows with what has been read of it.

use std::io::{self, BufRead, Read};

use wakescope_core::budget::Budget;

/// A reader that notes in a budget how much was read.
pub(super) struct Metered<'a> {
    from: &'a mut dyn BufRead,
    budget: &'a Budget,
}

impl<'a> Metered<'a> {
    pub(super) fn new(from: &'a mut dyn BufRead, budget: &'a Budget) -> Self {
        Self { from, budget }
    }
}

impl Read for Metered<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(into)?;
        self.budget.read(count as u64);
        Ok(count)
    }
}

impl BufRead for Metered<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.from.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.budget.read(count as u64);
        self.from.consume(count);
    }
}
