//! Who called whom in sections, and how long each took.

use std::collections::BTreeMap;

use wakescope_core::scope::Kind;
use wakescope_core::scope::flame::{Call, Flame};

use super::ScopeError;
use super::kernel::Kernel;

/// Calls are kept that take at least one in so many of the whole.
const ONE_IN: u64 = 2_000;

/// The calls that the plugin writes, by their numbers, which count from 1.
#[derive(Default)]
pub(super) struct Calls {
    /// The caller, 0 of an outermost one, and where the function begins.
    calls: Vec<(u64, u64)>,
    /// Instructions of their own, by kind and call.
    spent: BTreeMap<(Kind, usize), u64>,
}

impl Calls {
    /// The next call: by one before it.
    pub(super) fn add(&mut self, caller: u64, function: u64) -> Result<(), ScopeError> {
        if caller > self.calls.len() as u64 {
            return Err(ScopeError::Foreign);
        }
        self.calls.push((caller, function));
        Ok(())
    }

    /// So many more instructions of a call. Where its function begins.
    pub(super) fn spend(&mut self, kind: Kind, call: u64, count: u64) -> Result<u64, ScopeError> {
        let place = call.checked_sub(1).and_then(|place| usize::try_from(place).ok());
        let place = place.filter(|&place| place < self.calls.len()).ok_or(ScopeError::Foreign)?;
        let spent = self.spent.entry((kind, place)).or_default();
        *spent = spent.saturating_add(count);
        Ok(self.calls[place].1)
    }

    /// All calls of sections of this kind, of which there were so many, and so long. An instruction takes two
    /// to the power of `shift`, ns.
    pub(super) fn flame(
        &self,
        kind: Kind,
        sections: u64,
        total_ns: u64,
        shift: u64,
        kernel: &Kernel,
    ) -> Flame {
        let mut own = vec![0_u64; self.calls.len()];
        for ((_, place), count) in self.spent.range((kind, 0)..=(kind, usize::MAX)) {
            own[*place] = count.saturating_mul(1 << shift);
        }
        // Callers come before what they call.
        let mut whole = own.clone();
        for place in (0..self.calls.len()).rev() {
            let (caller, _) = self.calls[place];
            if let Some(caller) = caller.checked_sub(1).and_then(|at| usize::try_from(at).ok()) {
                whole[caller] = whole[caller].saturating_add(whole[place]);
            }
        }
        let least_ns = (total_ns / ONE_IN).max(1);
        let mut places: BTreeMap<u64, u32> = BTreeMap::new();
        let mut calls = Vec::new();
        for (place, &(caller, function)) in self.calls.iter().enumerate() {
            if whole[place] < least_ns {
                continue;
            }
            let Ok(next) = u32::try_from(calls.len()) else { break };
            places.insert(place as u64 + 1, next);
            calls.push(Call {
                function: kernel.function(function).map(str::to_owned),
                caller: places.get(&caller).copied(),
                self_ns: own[place],
                total_ns: whole[place],
            });
        }
        Flame { kind, sections, total_ns, calls }
    }
}
