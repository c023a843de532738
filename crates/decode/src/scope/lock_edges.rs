//! The edges of locks in the stream, beside those of tasks and sections.

use std::collections::BTreeMap;

use wakescope_core::budget::Budget;
use wakescope_core::scope::Kind;
use wakescope_core::scope::locks::{Doubts, Hold, Locks};

use super::ScopeError;
use super::edges::{Counted, Moment, Written, high, low};
use super::kernel::Kernel;
use super::locks::{Books, Call, Lock, Step};

/// What else is known where the stream ends.
pub(super) struct Known {
    /// How many locks have numbers.
    pub(super) locks: u64,
    /// How many calls were not followed.
    pub(super) calls_lost: u64,
    /// Until when the guest measured, ns.
    pub(super) until_ns: u64,
    /// Whether the kernel counts code that turns preemption off.
    pub(super) counts_sections: bool,
}

/// What the words of edges mean.
struct Meanings<'a> {
    kernel: &'a Kernel,
    /// Functions for locks, by where they begin.
    functions: BTreeMap<u64, u8>,
    locks: Vec<Lock<'a>>,
    pids: Vec<u32>,
}

impl Meanings<'_> {
    fn address(&self, half: u32) -> u64 {
        self.kernel.end >> 32 << 32 | u64::from(half)
    }

    fn function(&self, half: u32) -> Option<u32> {
        u32::try_from(self.kernel.place_of_function(self.address(half))?).ok()
    }

    /// A place and what called it. What a call returns to may be behind the end of the function that made it.
    fn place(&self, word: u64) -> (Option<u32>, Option<u32>) {
        let caller = high(word).checked_sub(1).and_then(|caller| self.function(caller));
        (self.function(low(word)), caller)
    }

    fn pid(&self, number: u32) -> Result<u32, ScopeError> {
        numbered(&self.pids, number)
    }

    fn call<'b>(&'b self, words: [u64; 2]) -> Result<(Call, Lock<'b>), ScopeError> {
        let function = self.functions.get(&self.address(low(words[1])));
        let function = *function.ok_or(ScopeError::Foreign)?;
        let (_, caller) = self.place(words[1]);
        Ok((Call { function, caller }, numbered(&self.locks, high(words[0]))?))
    }
}

/// What has this number, which counts from 1.
fn numbered<T: Copy>(all: &[T], number: u32) -> Result<T, ScopeError> {
    let place = number.checked_sub(1).and_then(|place| usize::try_from(place).ok());
    place.and_then(|place| all.get(place)).copied().ok_or(ScopeError::Foreign)
}

impl Written<'_> {
    /// Who held which lock, put together of these edges.
    pub(super) fn locks(
        &self,
        known: &Known,
        ns_at: impl Fn(u64, Moment) -> u64,
        kernel: &Kernel,
        budget: &Budget,
    ) -> Result<(Locks, Vec<Hold>), ScopeError> {
        if self.locks.len() as u64 != known.locks {
            return Err(ScopeError::Cut);
        }
        let lock =
            |&(address, own): &(u64, u64)| Lock { address, name: kernel.variable(address, own) };
        let meanings = Meanings {
            kernel,
            functions: kernel.lock_functions().collect(),
            locks: self.locks.iter().map(lock).collect(),
            pids: self.tasks.iter().map(|task| task.pid).collect(),
        };
        let [_, irqs_off, preempt, _, task] = self.start.unwrap_or_default();
        let pid = if task == 0 { 0 } else { meanings.pid(low(task))? };
        let is_off = |word| kernel.division.read(word).is_off();
        let mut off = [irqs_off != 0, is_off(low(preempt))];
        let mut books = Books::new(known.until_ns, known.counts_sections, pid, budget);
        for (kind, _) in Kind::ALL.into_iter().zip(off).filter(|(_, off)| *off) {
            books.step(0, Step::Off(kind, (None, None)))?;
        }
        // Sections end where the CPU halts, and go on behind it, as the plugin has them.
        let mut before_halt: Option<[bool; 2]> = None;
        let mut at_ns = 0;
        for Counted { count, words } in self.edges() {
            at_ns = ns_at(count, Moment::AfterIdle).max(at_ns);
            let value = high(words[0]);
            let now = match words[0] & 0xff {
                4..=6 => [true, before_halt.take().map_or(off[1], |[_, preempt_off]| preempt_off)],
                12 => {
                    before_halt = Some(off);
                    [false; 2]
                }
                16 => before_halt.take().unwrap_or(off),
                1 => [true, off[1]],
                2 => [false, off[1]],
                3 => [off[0], is_off(value)],
                _ => off,
            };
            for (place, kind) in Kind::ALL.into_iter().enumerate() {
                match (off[place], now[place]) {
                    (false, true) => {
                        books.step(at_ns, Step::Off(kind, meanings.place(words[1])))?
                    }
                    (true, false) => books.step(at_ns, Step::On(kind, meanings.place(words[1])))?,
                    _ => {}
                }
            }
            off = now;
            if let Some(step) = step(words, &meanings)? {
                books.step(at_ns, step)?;
            }
        }
        let names: Vec<&str> = kernel.names().collect();
        let (locks, held) = books.end(&names);
        let (_, not_seen) = kernel.locks();
        let doubts = Doubts { calls_lost: known.calls_lost, ..locks.doubts };
        Ok((Locks { not_seen, doubts, ..locks }, held))
    }
}

/// What an edge tells of tasks and locks.
fn step<'a>(words: [u64; 2], meanings: &'a Meanings) -> Result<Option<Step<'a>>, ScopeError> {
    let of_lock = |step: fn(Call, Lock<'a>) -> Step<'a>| {
        let (call, lock) = meanings.call(words)?;
        Ok(Some(step(call, lock)))
    };
    match words[0] & 0xff {
        11 => Ok(Some(Step::Switch(meanings.pid(high(words[0]))?))),
        18 => of_lock(Step::Asked),
        19 => of_lock(Step::Taken),
        20 => of_lock(Step::Refused),
        21 => of_lock(Step::Released),
        _ => Ok(None),
    }
}
