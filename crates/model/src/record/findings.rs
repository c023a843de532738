//! What a reader has to know of a simulated run.

use wakescope_core::finding::{Finding, Severity};
use wakescope_core::recorder::Snapshot;
use wakescope_core::units::{SpanNs, counted, grouped, one_or_many};

use super::{Ending, Experiment, MOST_STEPS};
use crate::image::TaskId;
use crate::simulation::{Simulation, Watch};

/// All findings on a simulation that ended so.
pub(super) fn findings<W: Watch>(
    experiment: &Experiment<'_>,
    simulation: &Simulation<'_, W>,
    seen: &[(TaskId, Snapshot)],
    ending: Ending,
) -> Vec<Finding> {
    let mut out = vec![simulated_time()];
    let woken: u64 = seen.iter().map(|(_, seen)| seen.woken.count).sum();
    for (probe, seen) in seen {
        let name = &experiment.image.tasks[probe.index()].name;
        if seen.woken.count == 0 {
            let message = format!("the probe {name} gave no sample");
            let hint = "give the probe a higher priority than the tasks that keep its CPU busy";
            out.push(Finding::new("no-samples", Severity::Error, message, hint));
        }
    }
    out.extend(overload(seen));
    // First of its code, of which a table may show one.
    if ending == Ending::Interrupted {
        let message = format!(
            "ended early: {} of {} wanted",
            counted(woken, "wakeup"),
            grouped(experiment.samples)
        );
        out.push(Finding::new("interrupted", Severity::Note, message, ""));
    }
    let now = simulation.now_ns();
    if ending.is_bound() {
        out.push(starved(experiment, simulation, woken, ending));
    } else if let Some(due) = experiment.unanswered(simulation, now) {
        // The user ended it while somebody waited.
        let message = format!(
            "a probe had been due for {} simulated time when the run ended: its wakeup is not among \
             the samples",
            SpanNs(now - due)
        );
        out.push(Finding::new("interrupted", Severity::Note, message, ""));
    }
    out
}

fn simulated_time() -> Finding {
    Finding::new(
        "simulated-time",
        Severity::Note,
        "a model was run, and no machine was measured: the figures follow from the scenario, the \
         preemption rules and the seed"
            .into(),
        "for figures of a machine, measure it",
    )
}

fn overload(seen: &[(TaskId, Snapshot)]) -> Option<Finding> {
    let missed: u64 = seen.iter().map(|(_, seen)| seen.missed).sum();
    let expiries: u64 = seen.iter().map(|(_, seen)| seen.expiries.count).sum();
    let message = || {
        format!(
            "{} of {} had no wakeup of {} own: the period is short for what the scenario runs",
            grouped(missed),
            counted(expiries, "period"),
            one_or_many(missed, "its", "their")
        )
    };
    (missed * 10 > expiries).then(|| {
        let hint = "use a longer period, unless these stalls are of interest";
        Finding::new("overload", Severity::Warning, message(), hint)
    })
}

/// The probes hardly ever ran. A wakeup that never came is later than all that did.
fn starved<W: Watch>(
    experiment: &Experiment<'_>,
    simulation: &Simulation<'_, W>,
    woken: u64,
    ending: Ending,
) -> Finding {
    let now = simulation.now_ns();
    let waits = match experiment.unanswered(simulation, now) {
        Some(due) => format!(", and one has been due for {}", SpanNs(now - due)),
        None => String::new(),
    };
    let steps = match ending {
        Ending::TooManySteps => format!(", and none in the last {} steps", grouped(MOST_STEPS)),
        _ => String::new(),
    };
    let message = format!(
        "the probes gave {} of {} within {} simulated time{steps}{waits}: no figure holds for those that \
         did not come",
        counted(woken, "wakeup"),
        grouped(experiment.samples),
        SpanNs(now)
    );
    let hint = "give the probes a higher priority than the tasks that keep their CPUs busy, or a shorter \
                period";
    Finding::new("overload", Severity::Error, message, hint)
}
