//! Time that a thread did not have.

use wakescope_core::units::MonoNs;
use wakescope_sys::clock;

use super::disturber::Burst;

/// Reads the clock until it is `until`, and tells the longest time between two readings of which
/// the second was after `from`.
pub(super) fn longest(from: MonoNs, until: MonoNs) -> Burst {
    longest_noting(from, until, from, || {})
}

/// As [`longest`], and takes note once it is `near`.
pub(super) fn longest_noting(
    from: MonoNs,
    until: MonoNs,
    near: MonoNs,
    note: impl FnOnce(),
) -> Burst {
    let mut note = Some(note);
    let mut last = clock::now();
    let mut longest = Burst { begin: last, end: last, turns: None };
    while last < until {
        if last >= near {
            if let Some(note) = note.take() {
                note();
            }
        }
        let now = clock::now();
        if now > from && now.since(last) > longest.end.since(longest.begin) {
            longest = Burst { begin: last, end: now, turns: None };
        }
        last = now;
    }
    longest
}
