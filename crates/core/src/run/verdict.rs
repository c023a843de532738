//! A run's verdict follows from its findings, and its judgements are on the limits of its plan.

use super::Run;
use crate::finding::Verdict;
use crate::limit::{Limit, Outcome};
use crate::units::counted;

impl Run {
    /// What its judgements say that its verdict, its plan or its samples contradict, if anything.
    pub(super) fn fault_of_limits(&self) -> Option<String> {
        // A record may be without them.
        if self.limits.is_empty() {
            return None;
        }
        // A plan may be without its limits, too, and those of a later version cannot be read.
        let texts = self.plan.fail_above.iter();
        let planned: Option<Vec<Limit>> = texts.map(|text| text.parse().ok()).collect();
        let planned = planned.filter(|limits| !limits.is_empty());
        let count = self.limits.len();
        if let Some(planned) = planned.as_ref().filter(|planned| planned.len() != count) {
            let judgements = counted(count as u64, "judgement");
            let limits = counted(planned.len() as u64, "limit");
            return Some(format!("limits has {judgements}, but plan.fail_above has {limits}"));
        }
        let expiries = self.expiries();
        let is_invalid = self.validity.verdict == Verdict::Invalid;
        self.limits.iter().enumerate().find_map(|(i, judgement)| {
            if is_invalid && judgement.outcome != Outcome::Inconclusive {
                let outcome = judgement.outcome;
                return Some(format!(
                    "limits[{i}]: outcome is {outcome:?}, but the run is invalid"
                ));
            }
            let limit = planned.as_ref().and_then(|planned| planned.get(i));
            let fault = judgement.fault(limit, &expiries)?;
            Some(format!("limits[{i}]: {fault}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use wakescope_testing::assert_told;

    use super::*;
    use crate::finding::{Finding, Severity, Validity};
    use crate::limit::MeasuredBy;
    use crate::run::State;
    use crate::run::tests::run_with;

    /// A run of 100 samples, each 5 µs, that was held to two limits, and keeps the first.
    fn judged(findings: Vec<Finding>) -> Run {
        let mut run = run_with(&[vec![5_000; 100]], "x");
        run.plan.fail_above = vec!["5us".into(), "p50=1us".into()];
        run.validity = Validity::of(findings);
        let expiries = run.expiries();
        let limits = run.plan.fail_above.iter().map(|text| text.parse::<Limit>().unwrap());
        let judge = |limit: Limit| limit.judge(&expiries, &run.validity, MeasuredBy::Probes, true);
        run.limits = limits.map(judge).collect();
        run
    }

    fn error() -> Vec<Finding> {
        vec![Finding::new("policy", Severity::Error, "it was another one".into(), "")]
    }

    #[track_caller]
    fn check(findings: Vec<Finding>, change: impl Fn(&mut Run), want: Option<&str>) {
        let mut run = judged(findings);
        change(&mut run);
        let read = Run::from_json(run.to_json().as_bytes());
        assert_told(read.err().map(|e| e.to_string()), want);
    }

    #[test]
    fn a_verdict_that_its_findings_do_not_give_is_refused() {
        let warning = || vec![Finding::new("steal", Severity::Warning, "some".into(), "")];
        for findings in [Vec::new(), warning(), error()] {
            check(findings, |_| (), None);
        }
        let set = |verdict| move |run: &mut Run| run.validity.verdict = verdict;
        let said = "validity.verdict is valid, but its findings make it invalid";
        check(error(), set(Verdict::Valid), Some(said));
        let said = "validity.verdict is valid, but its findings make it degraded";
        check(warning(), set(Verdict::Valid), Some(said));
        let said = "validity.verdict is invalid, but its findings make it valid";
        check(Vec::new(), set(Verdict::Invalid), Some(said));
        // While it is measured, too.
        let running = |run: &mut Run| {
            (run.state, run.validity.verdict) = (State::Running, Verdict::Degraded);
        };
        let said = "validity.verdict is degraded, but its findings make it valid";
        check(Vec::new(), running, Some(said));
    }

    #[test]
    fn judgements_that_the_plan_or_the_verdict_contradicts_are_refused() {
        let said = "limits[0]: outcome is Pass, but the run is invalid";
        check(error(), |run| run.limits[0].outcome = Outcome::Pass, Some(said));
        let said = "limits[1]: outcome is Fail, but the run is invalid";
        check(error(), |run| run.limits[1].outcome = Outcome::Fail, Some(said));
        let said = "limits has 2 judgements, but plan.fail_above has 1 limit";
        check(Vec::new(), |run| run.plan.fail_above.truncate(1), Some(said));
        let said = "limits has 1 judgement, but plan.fail_above has 2 limits";
        check(Vec::new(), |run| run.limits.truncate(1), Some(said));
        let said = "limits[0]: limit is `p50 ≤ 5.00 µs`, but the plan has `max ≤ 5.00 µs`";
        check(Vec::new(), |run| run.limits[0].limit = "p50 ≤ 5.00 µs".into(), Some(said));
        let said = "limits[0]: limit_ns is 1000, but the plan has 5us";
        check(Vec::new(), |run| run.limits.swap(0, 1), Some(said));
        // Without the ones or the others nothing contradicts, nor does a limit of a later version.
        check(Vec::new(), |run| run.limits.clear(), None);
        check(Vec::new(), |run| run.plan.fail_above.clear(), None);
        check(Vec::new(), |run| run.plan.fail_above[1] = "mean=1us".into(), None);
    }
}
