//! Where the time of long sections went, by who called whom: what a flame graph draws.

use serde::{Deserialize, Serialize};

use super::{Kind, Row};
use crate::faults::{first, more_than_whole, wrong_sum};

/// The time of all long sections of a kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flame {
    /// What was off.
    pub kind: Kind,
    /// How many sections.
    pub sections: u64,
    /// How long they were together, ns.
    pub total_ns: u64,
    /// Calls, callers before those that they call. What took less than a two-thousandth of the whole is
    /// left out, and in its caller's total.
    pub calls: Vec<Call>,
}

/// A function, called by the same callers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The function; `null` in a module, whose symbols are not known.
    pub function: Option<String>,
    /// The place in [`Flame::calls`] of the call that made this one; `null` of the outermost one that was seen
    /// in a section.
    pub caller: Option<u32>,
    /// How long its own instructions took, ns.
    pub self_ns: u64,
    /// How long it took with all that it called, ns.
    pub total_ns: u64,
}

impl Flame {
    /// What contradicts itself in it, or the time of the sections in `rows`, if anything does.
    pub(super) fn fault(&self, rows: &[Row]) -> Option<String> {
        let own = rows.iter().filter(|row| row.kind == self.kind);
        let spent = || own.clone().filter_map(|row| row.spent.as_ref());
        let rows = "those of rows";
        wrong_sum("sections", self.sections, rows, spent().map(|spent| spent.sections))
            .or_else(|| {
                let times = spent().map(|spent| spent.total_ns);
                wrong_sum("total_ns", self.total_ns, rows, times)
            })
            .or_else(|| self.fault_of_calls())
    }

    /// A call takes at least its own time and that of those that it makes.
    fn fault_of_calls(&self) -> Option<String> {
        let mut parts: Vec<u64> = self.calls.iter().map(|call| call.self_ns).collect();
        let mut outermost = 0_u64;
        for (place, call) in self.calls.iter().enumerate() {
            let caller = call.caller.map(|caller| caller as usize);
            let of_caller = match caller {
                None => &mut outermost,
                Some(caller) if caller < place => &mut parts[caller],
                Some(caller) => {
                    return Some(format!(
                        "calls[{place}]: caller is {caller}, which is no earlier one"
                    ));
                }
            };
            *of_caller = of_caller.saturating_add(call.total_ns);
        }
        let calls: Vec<(u64, u64)> =
            parts.into_iter().zip(self.calls.iter().map(|call| call.total_ns)).collect();
        let parts = "the time of its parts";
        first("calls", &calls, |&(of_parts, total_ns)| {
            more_than_whole([((parts, of_parts), ("total_ns", total_ns))])
        })
        .or_else(|| {
            let outermost = ("the time of the outermost calls", outermost);
            more_than_whole([(outermost, ("total_ns", self.total_ns))])
        })
    }
}
