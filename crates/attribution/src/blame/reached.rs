//! Which rules were used, for tests that must reach all of them. It costs nothing elsewhere.

use std::cell::RefCell;
use std::collections::BTreeMap;

thread_local! {
    static REACHED: RefCell<BTreeMap<&'static str, u64>> = const { RefCell::new(BTreeMap::new()) };
}

/// Counts a use of this rule.
pub(super) fn note(rule: &'static str) {
    REACHED.with_borrow_mut(|all| *all.entry(rule).or_default() += 1);
}

/// How often each rule was used in this thread since the last call.
pub(super) fn taken() -> BTreeMap<&'static str, u64> {
    REACHED.take()
}
