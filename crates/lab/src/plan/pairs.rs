//! What `A:B` compares.

use wakescope_core::lab::{Arm, Asked};

use super::words::shortened;
use super::{Plan, PlanError};

/// One side of `A:B`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side<'a> {
    /// A kernel with a model: `6.1-cloud/full`.
    Arm(&'a str, Asked),
    /// A kernel, under each model that both kernels are asked for.
    Kernel(&'a str),
    /// A model, on each kernel that is asked for both models.
    Model(Asked),
}

/// The pairs that a plan compares, each once.
///
/// Names of kernels may be paths, and hold slashes and colons. So a text is divided at that colon
/// where both sides are something in the plan; and of a side that could be read in two ways, a
/// kernel of that whole name comes first, then a kernel with a model, then a model.
pub(super) fn resolve(plan: &Plan) -> Result<Vec<(Arm, Arm)>, PlanError> {
    let mut pairs = Vec::new();
    for (at, text) in plan.compare.iter().enumerate() {
        for pair in pairs_of(plan, text).map_err(|e| e.entry(at))? {
            if !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
    }
    Ok(pairs)
}

fn pairs_of(plan: &Plan, text: &str) -> Result<Vec<(Arm, Arm)>, PlanError> {
    let (a, b) = divided(plan, text)?;
    let arm = |kernel: &str, asked: Asked| Arm { kernel: kernel.into(), asked: asked.to_string() };
    let kernels = plan.kernel_names();
    let pairs: Vec<(Arm, Arm)> = match (a, b) {
        (Side::Arm(k, m), Side::Arm(l, n)) => vec![(arm(k, m), arm(l, n))],
        (Side::Kernel(k), Side::Kernel(l)) => plan
            .preempt_of(k)
            .iter()
            .filter(|m| plan.preempt_of(l).contains(m))
            .map(|&m| (arm(k, m), arm(l, m)))
            .collect(),
        (Side::Model(m), Side::Model(n)) => kernels
            .iter()
            .filter(|k| [m, n].iter().all(|m| plan.preempt_of(k).contains(m)))
            .map(|k| (arm(k, m), arm(k, n)))
            .collect(),
        _ => {
            return Err(wrong(
                format!("the sides of `{}` are of different kinds", shortened(text)),
                "name kernel/model, a kernel, or a model, the same on both sides",
            ));
        }
    };
    match pairs.first() {
        Some((a, b)) if a == b => Err(wrong(
            format!("`{}` compares something with itself", shortened(text)),
            "name two different sides",
        )),
        Some(_) => Ok(pairs),
        None => Err(wrong(
            format!("no kernel has both models of `{}`", shortened(text)),
            match (a, b) {
                (Side::Kernel(..), _) => "name the models too, as in A/full:B/rt",
                _ => "add the missing model to `preempt`, or name kernel/model on both sides",
            },
        )),
    }
}

/// The two sides of `text`.
fn divided<'a>(plan: &'a Plan, text: &'a str) -> Result<(Side<'a>, Side<'a>), PlanError> {
    let at_each_colon = text.match_indices(':').map(|(at, _)| (&text[..at], &text[at + 1..]));
    let mut ways = at_each_colon.filter_map(|(a, b)| Some((side(plan, a)?, side(plan, b)?)));
    match (ways.next(), ways.next()) {
        (Some(way), None) => Ok(way),
        (Some(_), Some(_)) => Err(wrong(
            format!("`{}` can be divided in several ways", shortened(text)),
            "use kernel names without colons",
        )),
        (None, _) => Err(wrong(
            format!("`{}` does not name two kernels or models of this plan", shortened(text)),
            known(plan),
        )),
    }
}

fn side<'a>(plan: &'a Plan, text: &'a str) -> Option<Side<'a>> {
    let is_kernel = |name: &str| plan.kernel_names().iter().any(|kernel| kernel == name);
    if is_kernel(text) {
        return Some(Side::Kernel(text));
    }
    if let Some((kernel, model)) = text.rsplit_once('/').filter(|(kernel, _)| is_kernel(kernel)) {
        let model: Asked = model.parse().ok()?;
        return plan.preempt_of(kernel).contains(&model).then_some(Side::Arm(kernel, model));
    }
    text.parse().ok().map(Side::Model)
}

/// What can be compared.
fn known(plan: &Plan) -> String {
    let arms: Vec<String> = plan
        .kernel_names()
        .iter()
        .flat_map(|k| plan.preempt_of(k).iter().map(move |m| format!("{k}/{m}")))
        .take(6)
        .collect();
    format!(
        "write A:B, each a kernel, a model or kernel/model of the plan, as in {}",
        arms.join(", ")
    )
}

fn wrong(what: String, remedy: impl Into<String>) -> PlanError {
    PlanError::value("compare", what, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Kernels;

    fn plan() -> Plan {
        let kernels = ["6.1-cloud", "6.12-cloud", "6.1-rt", "a/b:c/bzImage", "x", "x/full", "none"];
        let mut plan = Plan {
            kernels: Kernels::Named(kernels.map(String::from).into()),
            preempt: vec![Asked::None, Asked::Full],
            ..Plan::default()
        };
        plan.preempt_of.insert("6.1-rt".into(), vec![Asked::Rt]);
        plan.preempt_of.insert("6.12-cloud".into(), vec![Asked::Full, Asked::Lazy]);
        plan
    }

    #[track_caller]
    fn check(text: &str, want: Result<&[&str], &str>) {
        let mut plan = plan();
        plan.compare = vec![text.into()];
        let name = |arm: Arm| format!("{}/{}", arm.kernel, arm.asked);
        match (plan.pairs(), want) {
            (Ok(pairs), Ok(want)) => {
                let got: Vec<String> =
                    pairs.into_iter().map(|(a, b)| format!("{} {}", name(a), name(b))).collect();
                assert_eq!(got, want, "{text}");
            }
            (Err(e), Err(want)) => {
                let message = format!("{e} → {}", e.remedy());
                assert!(message.contains(want), "{text}: {message}");
            }
            (got, _) => panic!("{text}: {got:?}"),
        }
    }

    #[test]
    fn sides_that_are_alike() {
        check("6.1-cloud/none:6.1-cloud/full", Ok(&["6.1-cloud/none 6.1-cloud/full"]));
        check("6.1-cloud/full:6.1-rt/rt", Ok(&["6.1-cloud/full 6.1-rt/rt"]));
        check("6.1-cloud:6.12-cloud", Ok(&["6.1-cloud/full 6.12-cloud/full"]));
        check("full:lazy", Ok(&["6.12-cloud/full 6.12-cloud/lazy"]));
        check(
            "none:full",
            Err("the sides of `none:full` are of different kinds"), // A kernel is called `none`.
        );
        check("full:voluntary", Err("no kernel has both models"));
        check("6.1-cloud:6.1-rt", Err("name the models too"));
        check("full:full", Err("compares something with itself"));
        check(
            "6.1-cloud/full:lazy",
            Err("name kernel/model, a kernel, or a model, the same on both sides"),
        );
    }

    #[test]
    fn names_may_hold_slashes_and_colons() {
        check(
            "a/b:c/bzImage:6.1-cloud",
            Ok(&["a/b:c/bzImage/none 6.1-cloud/none", "a/b:c/bzImage/full 6.1-cloud/full"]),
        );
        check("a/b:c/bzImage/full:x/none", Ok(&["a/b:c/bzImage/full x/none"]));
        // A kernel of the whole name comes before a kernel with a model.
        check("x/full:x", Ok(&["x/full/none x/none", "x/full/full x/full"]));
    }

    #[test]
    fn what_is_not_in_the_plan_is_refused_with_what_is() {
        check(
            "6.1-cloud/lazy:6.1-cloud/full",
            Err("does not name two kernels or models of this plan"),
        );
        check("6.2:6.1-cloud", Err("as in 6.1-cloud/none, 6.1-cloud/full"));
        for bad in ["", ":", "full", "full:", ":full", "a:b:c:d"] {
            check(bad, Err("does not name two kernels or models of this plan"));
        }
    }

    #[test]
    fn a_model_on_every_kernel_and_no_pair_twice() {
        let mut plan = plan();
        plan.kernels = Kernels::Named(vec!["a".into(), "b".into()]);
        plan.preempt_of.clear();
        plan.compare = vec!["none:full".into(), "a/none:a/full".into()];
        let kernels: Vec<String> =
            plan.pairs().unwrap().into_iter().map(|(a, _)| a.kernel).collect();
        assert_eq!(kernels, ["a", "b"]);
    }
}
