//! The four components of wakeups, and what each has to do with their being late.

use wakescope_core::distribution::Distribution;
use wakescope_core::explain::{Components, Explanation};
use wakescope_core::percentile::Percentile;
use wakescope_core::run::Run;

use super::percent;
use crate::domain;
use crate::plot::blocks;
use crate::progress::span_or_dash;
use crate::sound::Sound;
use crate::table::columns;

/// How long the bar of a component is that has all of the late time, in characters.
const BAR: usize = 18;

/// A row per component; empty if the run has none, or nobody woke up.
pub(super) fn table(run: &Run, explanation: &Explanation) -> String {
    let Some(all) = run.components.as_ref().filter(|_| explanation.wakeups > 0) else {
        return String::new();
    };
    let Late { components, title } = late(run, explanation);
    let mut rows = vec![
        ("interrupt latency", &all.irq_latency, components.irq_latency_ns),
        ("handler duration", &all.handler_duration, components.handler_duration_ns),
    ];
    match &all.sched_duration {
        Some(duration) => rows.extend([
            ("scheduler latency", &all.sched_latency, components.sched_latency_ns),
            ("scheduling duration", duration, components.sched_duration_ns.unwrap_or(0)),
        ]),
        None => rows.push((
            "scheduler latency and duration",
            &all.sched_latency,
            components.sched_latency_ns.saturating_add(components.sched_duration_ns.unwrap_or(0)),
        )),
    }
    let mut cells = vec![["", "min", "p50", "p99", "max"].map(String::from).to_vec()];
    cells.extend(rows.iter().map(|&(name, values, _)| row(name, values)));
    let mut late_ns: Vec<u64> = rows.iter().map(|&(_, _, ns)| ns).collect();
    if explanation.late_components.is_some() && explanation.unexplained_ns > 0 {
        cells.push(["late, not explained", "–", "–", "–", "–"].map(String::from).to_vec());
        late_ns.push(explanation.unexplained_ns);
    }
    let is_anything_late = late_ns.iter().any(|&ns| ns > 0);
    let beside = std::iter::once(format!("  {title}")).chain(beside(&late_ns));
    let beside = beside.map(|text| if is_anything_late { text } else { String::new() });
    let lines = columns(&cells, true);
    let mut out = domain::caption(run.time_domain).to_owned();
    for (line, beside) in lines.lines().zip(beside) {
        out.push_str(format!("{line}{beside}").trim_end());
        out.push('\n');
    }
    if all.sched_duration.is_none() {
        out.push_str(
            " Scheduler entry is not traced on this kernel: the last two components are combined.\n",
        );
    }
    out
}

fn row(name: &str, values: &Distribution) -> Vec<String> {
    let values = Sound::of(values);
    let [p50, p99, ..] = Percentile::SHOWN.map(|p| values.percentile(p));
    let cells = [values.min_ns(), p50, p99, values.max_ns()].map(span_or_dash);
    std::iter::once(name.to_owned()).chain(cells).collect()
}

/// Each component's share of late time, in percent and as a bar.
fn beside(late_ns: &[u64]) -> Vec<String> {
    let whole: u128 = late_ns.iter().copied().map(u128::from).sum();
    let bar = |ns: u64| {
        let eighths = (u128::from(ns) * 8 * BAR as u128).div_ceil(whole.max(1));
        blocks(usize::try_from(eighths).unwrap_or(0))
    };
    let shares = percent::of(late_ns);
    late_ns.iter().zip(shares).map(|(&ns, share)| format!("  {share:>6}  {}", bar(ns))).collect()
}

/// The components of late wakeups together, and what a column with their shares is called.
struct Late {
    components: Components,
    title: String,
}

fn late(run: &Run, explanation: &Explanation) -> Late {
    if let Some(components) = explanation.late_components {
        return Late { components, title: "share of late time".into() };
    }
    let kept: Vec<Components> = run.worst.iter().filter_map(|e| e.components).collect();
    let components = kept.iter().fold(Components::default(), |sum, one| sum.plus(one));
    Late { components, title: format!("share in the worst {}", kept.len()) }
}
