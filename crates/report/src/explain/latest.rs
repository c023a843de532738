//! Which late wakeups a page and its picture show, with the same numbers in both.

use wakescope_core::run::Episode;
use wakescope_core::units::{counted, one_or_many};

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

/// The latest wakeups of each run that has an explanation of some, and in words how many such runs have no
/// room.
pub(crate) fn latest<'a>(run_set: &'a RunSet<'a>) -> (Vec<Latest<'a>>, Option<String>) {
    let most = if run_set.entries.len() > 1 { MOST_OF_SEVERAL } else { MOST };
    let (mut left, mut left_out) = (MOST_OF_ALL, 0);
    let mut found = Vec::new();
    for entry in &run_set.entries {
        let ranked = Ranked::of(&entry.run);
        let explained: Vec<(usize, &Episode)> = ranked.explained().take(most).collect();
        let Some(&(last, _)) = explained.last() else { continue };
        if left < explained.len() {
            left_out += 1;
            continue;
        }
        left -= explained.len();
        let not_explained = ranked.left_out(last).collect();
        found.push(Latest { entry, explained, not_explained });
    }
    (found, left_out_runs(left_out))
}

/// How many explained runs are not shown: `2 more explained runs are not shown here`; `None` if all are.
pub(crate) fn left_out_runs(count: usize) -> Option<String> {
    let runs = counted(count as u64, "more explained run");
    let are = one_or_many(count as u64, "is", "are");
    (count > 0).then(|| format!("{runs} {are} not shown here"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::tests::runs::guest;
    use crate::picture::{Picture, svg};

    #[test]
    fn runs_that_have_no_room_are_counted() {
        let run = guest();
        let causes = |run_set: &RunSet| svg(Picture::Causes, run_set).unwrap();
        let episodes = |run_set: &RunSet| svg(Picture::Episodes, run_set).unwrap();
        let page = |run_set: &RunSet| crate::html::page(run_set);
        let shown: [&dyn Fn(&RunSet) -> String; 3] = [&causes, &episodes, &page];
        for (runs, left_out) in [(1, [0; 3]), (8, [0; 3]), (9, [1, 0, 1]), (30, [22, 18, 22])] {
            let entries = (0..runs).map(|i| Entry::of(&format!("run {i}"), &run));
            let run_set = RunSet::of(entries.collect());
            for (shown, left_out) in shown.iter().zip(left_out) {
                let shown = shown(&run_set);
                assert_eq!(shown.contains("not shown here"), left_out > 0, "{runs}");
                assert!(shown.contains(&left_out_runs(left_out).unwrap_or_default()), "{runs}");
            }
        }
        assert_eq!(left_out_runs(1).unwrap(), "1 more explained run is not shown here");
    }
}
