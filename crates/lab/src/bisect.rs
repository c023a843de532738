//! Finds the first of an ordered list that is bad.

use std::fmt;

/// What an examination says of a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is as it should be.
    Good,
    /// It is not.
    Bad,
    /// It cannot be told, for this reason: it does not build, or does not boot.
    Skip(String),
}

/// What came of an examination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Examined {
    /// What it says.
    pub verdict: Verdict,
    /// What it is based on: values, folders of runs; a line each.
    pub evidence: Vec<String>,
}

/// Examines candidates, which are known by their places in the list.
pub trait Examine {
    /// Why an examination could not be made at all, or the user ended it.
    type Error;

    /// Examines one. The same candidate is not asked for twice.
    fn examine(&mut self, candidate: usize) -> Result<Examined, Self::Error>;
}

/// An examination that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The candidate's place in the list.
    pub candidate: usize,
    /// What came of it.
    pub examined: Examined,
}

/// What a bisection found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bisection {
    /// The last that is known to be good; `None` if the first is bad already. No other was examined then.
    pub last_good: Option<usize>,
    /// The first that is known to be bad; `None` if the last is as good as the first. None between them was
    /// examined then, and one of them can be bad. If it does not follow [`Self::last_good`], all between them had
    /// to be skipped, and the first bad one can be any of those.
    pub first_bad: Option<usize>,
    /// Every examination, in the order in which they were made.
    pub steps: Vec<Step>,
}

impl Bisection {
    /// The candidates of which one is the first bad one; empty if both ends are alike.
    pub fn suspects(&self) -> std::ops::Range<usize> {
        match (self.last_good, self.first_bad) {
            (Some(good), Some(bad)) => good + 1..bad + 1,
            _ => 0..0,
        }
    }

    /// The first bad one, if skipped candidates do not leave it open.
    pub fn found(&self) -> Option<usize> {
        let suspects = self.suspects();
        (suspects.len() == 1).then_some(suspects.start)
    }
}

/// Why nothing is known of the candidates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BisectError<E> {
    /// There are less than two candidates.
    TooFew(usize),
    /// The first or the last cannot be told.
    EndSkipped {
        /// What was examined.
        step: Step,
        /// Why it was of no use.
        reason: String,
    },
    /// An examination could not be made.
    Examine(E),
}

impl<E: fmt::Display> fmt::Display for BisectError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFew(0) => write!(f, "there is nothing to bisect: no kernel is named"),
            Self::TooFew(_) => {
                write!(f, "a bisection needs at least two kernels, a good one and a bad one")
            }
            Self::EndSkipped { step, reason } => {
                let which = if step.candidate == 0 { "first" } else { "last" };
                write!(f, "cannot measure the {which} candidate: {reason}")
            }
            Self::Examine(e) => e.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for BisectError<E> {}

/// Finds the first bad one of `count` candidates, of which the first should be good and the last
/// bad. All before the first bad one are taken to be good, and all after it bad.
///
/// Besides the two ends it takes log₂ `count` examinations at most, rounded up, and one more for
/// each that has to be skipped.
pub fn bisect<X: Examine>(
    count: usize,
    examiner: &mut X,
) -> Result<Bisection, BisectError<X::Error>> {
    if count < 2 {
        return Err(BisectError::TooFew(count));
    }
    let mut log = Log { examiner, steps: Vec::new() };
    let (mut last_good, mut first_bad) = (0, count - 1);
    if log.examine_end(last_good)? == Verdict::Bad {
        return Ok(Bisection { last_good: None, first_bad: Some(last_good), steps: log.steps });
    }
    if log.examine_end(first_bad)? == Verdict::Good {
        return Ok(Bisection { last_good: Some(first_bad), first_bad: None, steps: log.steps });
    }
    // Those between the two that may still be examined, in order. Of these the middle one is
    // taken, so that a skipped one leads to its neighbour, and no verdict leaves more than half.
    let mut untold: Vec<usize> = (last_good + 1..first_bad).collect();
    while let Some(&candidate) = untold.get(untold.len() / 2) {
        match log.examine(candidate)?.examined.verdict {
            Verdict::Good => last_good = candidate,
            Verdict::Bad => first_bad = candidate,
            Verdict::Skip(_) => {}
        }
        untold.retain(|&c| c != candidate && (last_good..first_bad).contains(&c));
    }
    Ok(Bisection { last_good: Some(last_good), first_bad: Some(first_bad), steps: log.steps })
}

/// Examines, and keeps what was found.
struct Log<'a, X> {
    examiner: &'a mut X,
    steps: Vec<Step>,
}

impl<X: Examine> Log<'_, X> {
    fn examine(&mut self, candidate: usize) -> Result<Step, BisectError<X::Error>> {
        let examined = self.examiner.examine(candidate).map_err(BisectError::Examine)?;
        let step = Step { candidate, examined };
        self.steps.push(step.clone());
        Ok(step)
    }

    /// Examines the first or the last, which cannot be skipped.
    fn examine_end(&mut self, candidate: usize) -> Result<Verdict, BisectError<X::Error>> {
        let step = self.examine(candidate)?;
        match step.examined.verdict.clone() {
            Verdict::Skip(reason) => Err(BisectError::EndSkipped { step, reason }),
            verdict => Ok(verdict),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// A list in which all from `first_bad` on are bad, and some cannot be told.
    struct List {
        first_bad: usize,
        skips: BTreeSet<usize>,
        asked: BTreeSet<usize>,
        fails_at: Option<usize>,
    }

    impl List {
        fn new(first_bad: usize, skips: impl IntoIterator<Item = usize>) -> Self {
            let skips = skips.into_iter().collect();
            Self { first_bad, skips, asked: BTreeSet::new(), fails_at: None }
        }
    }

    impl Examine for List {
        type Error = String;

        fn examine(&mut self, candidate: usize) -> Result<Examined, String> {
            assert!(self.asked.insert(candidate), "{candidate} was asked for twice");
            if self.fails_at == Some(candidate) {
                return Err("interrupted".into());
            }
            let verdict = match candidate {
                c if self.skips.contains(&c) => Verdict::Skip("it does not boot".into()),
                c if c >= self.first_bad => Verdict::Bad,
                _ => Verdict::Good,
            };
            Ok(Examined { verdict, evidence: vec![format!("looked at {candidate}")] })
        }
    }

    fn steps(found: &Bisection) -> Vec<usize> {
        found.steps.iter().map(|step| step.candidate).collect()
    }

    #[test]
    fn the_first_bad_one_is_found_by_halves() {
        let found = bisect(9, &mut List::new(3, [])).unwrap();
        assert_eq!((found.found(), found.suspects()), (Some(3), 3..4));
        assert_eq!(steps(&found), [0, 8, 4, 2, 3]);
        assert_eq!(found.steps[2].examined.evidence, ["looked at 4"]);
        assert_eq!(bisect(2, &mut List::new(1, [])).unwrap().found(), Some(1));
    }

    #[test]
    fn neighbours_are_tried_for_one_that_is_skipped() {
        let found = bisect(9, &mut List::new(3, [4])).unwrap();
        assert_eq!(found.found(), Some(3));
        assert_eq!(steps(&found), [0, 8, 4, 5, 2, 3]);
    }

    #[test]
    fn skipped_ones_leave_a_range() {
        let found = bisect(9, &mut List::new(4, [3, 4, 5])).unwrap();
        assert_eq!((found.found(), found.suspects()), (None, 3..7));
        let all = bisect(5, &mut List::new(2, [1, 2, 3])).unwrap();
        assert_eq!((all.found(), all.suspects()), (None, 1..5));
    }

    #[track_caller]
    fn check_error(count: usize, mut list: List, steps: usize, want: &str) {
        let error = bisect(count, &mut list).unwrap_err();
        assert_eq!(error.to_string(), want);
        assert_eq!(list.asked.len(), steps, "no more is examined than need be");
    }

    #[test]
    fn what_cannot_be_bisected_is_said() {
        check_error(0, List::new(0, []), 0, "there is nothing to bisect: no kernel is named");
        check_error(
            1,
            List::new(0, []),
            0,
            "a bisection needs at least two kernels, a good one and a bad one",
        );
        check_error(
            9,
            List::new(3, [0]),
            1,
            "cannot measure the first candidate: it does not boot",
        );
        check_error(9, List::new(3, [8]), 2, "cannot measure the last candidate: it does not boot");
        let mut interrupted = List::new(3, []);
        interrupted.fails_at = Some(4);
        check_error(9, interrupted, 3, "interrupted");
    }

    #[test]
    fn ends_that_are_alike_are_a_result_with_the_steps_to_it() {
        for (first_bad, ends, want) in
            [(0, (None, Some(0)), &[0][..]), (9, (Some(8), None), &[0, 8])]
        {
            let found = bisect(9, &mut List::new(first_bad, [])).unwrap();
            assert_eq!((found.last_good, found.first_bad), ends);
            assert_eq!((found.found(), found.suspects().count()), (None, 0));
            assert_eq!(steps(&found), want, "no more is examined than need be");
        }
    }

    proptest! {
        #[test]
        fn the_answer_is_right_and_quick(
            (count, first_bad) in (2_usize..300).prop_flat_map(|n| (Just(n), 1..n)),
            skips in prop::collection::btree_set(1_usize..300, 0..80),
        ) {
            let skips: BTreeSet<usize> = skips.into_iter().filter(|&s| s < count - 1).collect();
            let found = bisect(count, &mut List::new(first_bad, skips.clone())).unwrap();
            prop_assert!(found.suspects().contains(&first_bad));
            // It is as narrow as can be: both ends were examined, and all between were skipped.
            let (last_good, bad) = (found.last_good.unwrap(), found.first_bad.unwrap());
            prop_assert!(last_good < first_bad && first_bad <= bad);
            prop_assert!((last_good + 1..bad).all(|c| skips.contains(&c)));
            prop_assert!(!skips.contains(&last_good) && !skips.contains(&bad));
            let skipped = found.steps.iter().filter(|s| skips.contains(&s.candidate)).count();
            let halvings = count.next_power_of_two().ilog2() as usize;
            prop_assert!(found.steps.len() <= halvings + skipped + 2);
        }
    }
}
