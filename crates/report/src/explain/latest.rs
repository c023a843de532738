//! Which late wakeups a page and its picture show, with the same numbers in both.

use wakescope_core::run::Episode;

use super::Ranked;
use crate::run_set::{Entry, RunSet};

/// The most wakeups that are shown of a run, of one of several runs, and of all of them.
const MOST: usize = 10;
const MOST_OF_SEVERAL: usize = 3;
const MOST_OF_ALL: usize = 24;

/// What is shown of one run.
pub(crate) struct Latest<'a> {
    pub(crate) entry: &'a Entry<'a>,
    /// The latest wakeups that were explained, the worst first. A wakeup's number is its rank among all
    /// the latest of its run, whether they were explained or not.
    pub(crate) explained: Vec<(usize, &'a Episode)>,
    /// Those that are later than the last of these, and have no explanation.
    pub(crate) not_explained: Vec<(usize, &'a Episode)>,
}

/// The latest wakeups of each run that has an explanation of some.
pub(crate) fn latest<'a>(run_set: &'a RunSet<'a>) -> Vec<Latest<'a>> {
    let most = if run_set.entries.len() > 1 { MOST_OF_SEVERAL } else { MOST };
    let mut left = MOST_OF_ALL;
    let mut found = Vec::new();
    for entry in &run_set.entries {
        let ranked = Ranked::of(&entry.run);
        let explained: Vec<(usize, &Episode)> = ranked.explained().take(most.min(left)).collect();
        let Some(&(last, _)) = explained.last() else { continue };
        left -= explained.len();
        let not_explained = ranked.left_out(last).collect();
        found.push(Latest { entry, explained, not_explained });
    }
    found
}
