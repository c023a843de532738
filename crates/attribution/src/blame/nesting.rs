//! Interrupts, their timers' functions, and softirqs, one within another.

use crate::rule::Rule;
use wakescope_core::explain::{Cause, Culprit, Interrupt, What};
use wakescope_core::softirq::softirq_name;

/// One of them, not yet ended.
#[derive(Clone, Debug)]
pub(super) struct Nested {
    /// Its number, in order of their beginnings.
    pub(super) id: u32,
    /// The event that began it.
    pub(super) what: What,
}

impl Nested {
    /// What its time is blamed on, and by which rule.
    pub(super) fn blame(&self) -> (Rule, Cause, Culprit) {
        match &self.what {
            What::SoftirqEntry(number) => {
                (Rule::Softirq, Cause::Softirq, Culprit::softirq(&softirq_name(*number)))
            }
            What::TimerEntry(name, _) => (Rule::TimerFunction, Cause::Irq, Culprit::timer(name)),
            What::IrqEntry(Interrupt(name)) => {
                (Rule::Interrupt, Cause::Irq, Culprit::interrupt(name))
            }
            _ => (Rule::Unseen, Cause::Unexplained, Culprit::None),
        }
    }

    fn is_softirq(&self) -> bool {
        matches!(self.what, What::SoftirqEntry(_))
    }

    fn is_interrupt(&self) -> bool {
        matches!(self.what, What::IrqEntry(_))
    }

    /// Whether `end` is its end.
    fn ends_with(&self, end: &What) -> bool {
        match (&self.what, end) {
            (What::IrqEntry(a), What::IrqExit(b)) => a == b,
            (What::SoftirqEntry(a), What::SoftirqExit(b)) => a == b,
            (What::TimerEntry(..), What::TimerExit) => true,
            _ => false,
        }
    }
}

/// What an end has ended.
pub(super) struct Closed {
    /// Whether it had begun.
    pub(super) found: bool,
    /// Those without an end of their own, which cannot go on now, or of which nothing is certain.
    pub(super) unended: Vec<u32>,
}

/// The innermost is the last.
#[derive(Debug, Default)]
pub(super) struct Nesting {
    inside: Vec<Nested>,
    begun: u32,
}

impl Nesting {
    /// Something begins.
    pub(super) fn open(&mut self, what: What) {
        self.begun += 1;
        self.inside.push(Nested { id: self.begun, what });
    }

    /// Something ends, and all that is within it.
    pub(super) fn close(&mut self, end: &What) -> Closed {
        let ids = |inside: &[Nested]| inside.iter().map(|nested| nested.id).collect();
        match self.inside.iter().rposition(|nested| nested.ends_with(end)) {
            Some(i) => {
                let unended = ids(&self.inside[i + 1..]);
                self.inside.truncate(i);
                Closed { found: true, unended }
            }
            None => Closed { found: false, unended: ids(&self.inside) },
        }
    }

    /// Forgets the innermost interrupt of this name: it is the one that a mark tells of.
    pub(super) fn adopt_interrupt(&mut self, name: &str) {
        let is_it = |nested: &Nested| matches!(&nested.what, What::IrqEntry(i) if i.0 == name);
        if let Some(i) = self.inside.iter().rposition(is_it) {
            self.inside.remove(i);
        }
    }

    /// Forgets all but softirqs, and tells which those are.
    pub(super) fn drop_interrupts(&mut self) -> Vec<u32> {
        let (softirqs, rest) = self.inside.drain(..).partition(Nested::is_softirq);
        self.inside = softirqs;
        let rest: Vec<Nested> = rest;
        rest.iter().map(|nested| nested.id).collect()
    }

    /// Forgets softirqs and all that is within them, and tells what that was.
    pub(super) fn drop_softirqs(&mut self) -> Vec<u32> {
        let first = self.inside.iter().position(Nested::is_softirq).unwrap_or(self.inside.len());
        self.inside.drain(first..).map(|nested| nested.id).collect()
    }

    /// Takes all out.
    pub(super) fn take(&mut self) -> Vec<Nested> {
        std::mem::take(&mut self.inside)
    }

    /// Puts back what was taken out.
    pub(super) fn restore(&mut self, inside: Vec<Nested>) {
        self.inside = inside;
    }

    pub(super) fn innermost(&self) -> Option<&Nested> {
        self.inside.last()
    }

    /// The innermost, if that is an interrupt or within one.
    pub(super) fn innermost_interrupt(&self) -> Option<&Nested> {
        self.inside.last().filter(|nested| !nested.is_softirq())
    }

    pub(super) fn is_in_interrupt(&self) -> bool {
        self.inside.iter().any(Nested::is_interrupt)
    }

    pub(super) fn is_in_softirq(&self, number: u8) -> bool {
        self.inside.iter().any(|nested| nested.what == What::SoftirqEntry(number))
    }

    /// The interrupt that `id` is in.
    pub(super) fn interrupt_around(&self, id: u32) -> Option<&str> {
        self.inside.iter().rev().filter(|nested| nested.id < id).find_map(|nested| {
            match &nested.what {
                What::IrqEntry(Interrupt(name)) => Some(name.as_str()),
                _ => None,
            }
        })
    }
}
