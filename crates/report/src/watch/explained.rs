//! Series that a tracer followed, and what it saw.

use wakescope_core::run::TimeDomain;
use wakescope_core::units::{SpanNs, counted, grouped};
use wakescope_core::watch::Window;
use wakescope_core::watch::cgroup::Cgroup;
use wakescope_core::watch::explained::{Explained, Explanations, Suppressed};

use super::episodes::Times;
use super::rows::{Key, cgroup_name};
use crate::explain::{because, cause, cause_lines, named, shares, stack, wait_row};
use crate::style::clean;

/// The most causes of a series.
const MOST_CAUSES: usize = 4;
/// The longest name of a task.
const COMM: usize = 15;
/// Where stacks begin.
const INDENT: usize = 6;

/// What was seen of the series of a window, and what was not followed; empty without either.
pub(super) fn list(window: &Window, times: Times) -> Vec<String> {
    let Some(all) = &window.explanations else { return Vec::new() };
    let mut lines: Vec<String> =
        all.explained.iter().flat_map(|one| block(one, all, window, times)).collect();
    if all.not_listed > 0 {
        lines.push(format!(" … {} more series were followed", grouped(all.not_listed)));
    }
    lines.extend(suppressed(all));
    lines
}

/// What was seen of the series of a row.
pub(super) fn of_row(window: &Window, key: &Key, times: Times) -> Vec<String> {
    let Some(all) = &window.explanations else { return Vec::new() };
    let own = all.explained.iter().filter(|one| {
        let cgroup = Cgroup::named(one.cgroup_id, one.cgroup.as_ref());
        key.has(&Key::Series { comm: one.comm.clone(), cgroup })
    });
    own.flat_map(|one| block(one, all, window, times)).collect()
}

fn block(one: &Explained, all: &Explanations, window: &Window, times: Times) -> Vec<String> {
    let comm = clean(&one.comm, COMM);
    let whose = match Cgroup::named(one.cgroup_id, one.cgroup.as_ref()) {
        Cgroup::None => comm,
        cgroup => format!("{comm} in {}", cgroup_name(&cgroup)),
    };
    let (late, above) = (grouped(one.late), SpanNs(one.above_ns.unwrap_or(all.above_ns)));
    let wakeups = counted(one.wakeups, "wakeup");
    let cut = if one.is_cut { ", until the budget was used up" } else { "" };
    let mut lines = vec![format!(
        " {whose}, followed for {} from {}{cut}: {late} of {wakeups} {above} late or later",
        SpanNs(one.followed_ns),
        times.at(one.begin_ns, window)
    )];
    lines.extend(cause_lines(&one.causes, MOST_CAUSES).iter().map(|line| {
        let name = line.single().map_or_else(|| line.cause(cause), |row| named(row.blamed()));
        format!("   {:>7}  {name}", line.share())
    }));
    if let Some(worst) = &one.worst {
        let because = because(worst, TimeDomain::Real);
        lines.push(format!("   worst {}: {because}", SpanNs(worst.wakeup_latency_ns)));
        let first = shares(worst).into_iter().next();
        let stack = first.map(|share| stack(&share, INDENT)).unwrap_or_default();
        lines.extend(stack.lines().map(str::to_owned));
    }
    lines.extend(one.waits.iter().map(|row| format!("   {}", wait_row(row))));
    if one.lost > 0 {
        lines.push(format!("   ! {} or their records were lost", counted(one.lost, "wakeup")));
    }
    lines
}

/// What was not followed though it was late.
fn suppressed(all: &Explanations) -> Option<String> {
    let Suppressed { budget, cooling, busy, failed } = all.suppressed;
    // Of 0.07 the product is 7.000000000000001.
    let share = format!("{} %", (all.budget * 1e8).round() / 1e6);
    let parts = [
        (budget, format!("beyond the budget of {share}")),
        (cooling, "followed shortly before".into()),
        (busy, "another one was followed".into()),
        (failed, "failed".into()),
    ];
    let reasons = parts.iter().filter(|part| part.0 > 0);
    let reasons: Vec<String> = reasons.map(|(n, why)| format!("{} {why}", grouped(*n))).collect();
    (!reasons.is_empty()).then(|| {
        let times = counted(all.suppressed.count(), "time");
        format!(" ! late series were not followed {times}: {}", reasons.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_shown_as_it_was_given() {
        for (budget, want) in [(0.01, "1 %"), (0.07, "7 %"), (0.000_01, "0.001 %")] {
            let suppressed = Suppressed { budget: 1, ..Suppressed::default() };
            let all = Explanations { budget, suppressed, ..Explanations::default() };
            let said = super::suppressed(&all).unwrap();
            assert_eq!(
                said,
                format!(" ! late series were not followed 1 time: 1 beyond the budget of {want}")
            );
        }
    }
}
