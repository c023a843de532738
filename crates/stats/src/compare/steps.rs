//! The steps in which other programs state their values.

use super::Labelled;
use wakescope_core::units::{SpanNs, grouped, one_or_many};

/// Of how many runs the values are in steps, and what that means; `None` if there are none.
pub(crate) fn steps_note<'a>(runs: impl IntoIterator<Item = &'a Labelled<'a>>) -> Option<String> {
    let (mut all, mut steps): (u64, Vec<u64>) = (0, Vec::new());
    for labelled in runs {
        all += 1;
        let step = labelled.run.source.as_ref().and_then(|source| source.resolution_ns);
        steps.extend(step.filter(|&step_ns| step_ns > 1));
    }
    let (least, most) = (*steps.iter().min()?, *steps.iter().max()?);
    let size = match least == most {
        true => SpanNs(most).to_string(),
        false => format!("{} to {}", SpanNs(least), SpanNs(most)),
    };
    let count = steps.len() as u64;
    Some(format!(
        "The values of {} {} of {} are in steps of {size}: a true value may lie anywhere up to the next \
         step. A difference counts only if it is larger than the steps explain.",
        grouped(count),
        one_or_many(count, "run", "runs"),
        grouped(all)
    ))
}
