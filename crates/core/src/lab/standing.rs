//! What a lab comes down to, for an exit code.

use super::{Lab, Status, Verdict};

/// What a lab comes down to. Of several that hold, the first of this list counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// A comparison came out worse, or a limit is broken.
    Failed,
    /// A cell failed, or none measured anything.
    CouldNot,
    /// A comparison or a limit is undecided, or the lab ended before its last cell.
    Inconclusive,
    /// All was done, nothing is worse, every limit is kept.
    Done,
}

impl Lab {
    /// What it comes down to.
    pub fn standing(&self) -> Standing {
        let any_cell = |status| self.cells.iter().any(|cell| cell.status == status);
        let any_verdict = |verdict| self.comparisons.iter().any(|c| c.verdict == verdict);
        let any_limit = |within| self.limits.iter().any(|limit| limit.within == within);
        if any_verdict(Verdict::Worse) || any_limit(Some(false)) {
            Standing::Failed
        } else if any_cell(Status::Failed) {
            Standing::CouldNot
        } else if any_verdict(Verdict::Inconclusive) || any_limit(None) || any_cell(Status::NotRun)
        {
            Standing::Inconclusive
        } else if any_cell(Status::Ok) {
            Standing::Done
        } else {
            Standing::CouldNot
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::{Cell, CellLimit, Comparison};

    #[track_caller]
    fn check(cells: &[Status], verdicts: &[Verdict], limits: &[Option<bool>], want: Standing) {
        let cells = cells.iter().map(|&status| Cell { status, ..Cell::default() });
        let lab = Lab {
            cells: cells.collect(),
            comparisons: verdicts
                .iter()
                .map(|&verdict| Comparison { verdict, ..Default::default() })
                .collect(),
            limits: limits
                .iter()
                .map(|&within| CellLimit { within, ..Default::default() })
                .collect(),
            ..Lab::default()
        };
        assert_eq!(lab.standing(), want, "{verdicts:?} {limits:?}");
    }

    #[test]
    fn what_a_lab_comes_down_to() {
        use Status::{Failed, Ignored, NotRun, Ok};
        use Verdict::{Better, Inconclusive, NoDifference, Worse};
        check(&[Ok], &[], &[], Standing::Done);
        check(&[Ok, Ignored], &[Better, NoDifference], &[Some(true)], Standing::Done);
        check(&[Ok], &[Better, Worse], &[], Standing::Failed);
        check(&[Ok, Failed], &[Worse, Inconclusive], &[], Standing::Failed);
        check(&[Ok, Failed], &[Inconclusive], &[Some(false), None], Standing::Failed);
        check(&[Ok, Failed], &[Inconclusive], &[None], Standing::CouldNot);
        check(&[Ok], &[Better, Inconclusive], &[], Standing::Inconclusive);
        check(&[Ok], &[Better], &[Some(true), None], Standing::Inconclusive);
        check(&[Ok, NotRun], &[Better], &[], Standing::Inconclusive);
        check(&[Ignored, Ignored], &[], &[], Standing::CouldNot);
        check(&[], &[], &[], Standing::CouldNot);
    }
}
