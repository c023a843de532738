//! From what a tracer saw to what a run's record says about it.

use std::collections::{BTreeMap, BTreeSet};

use super::compose::compose;
use crate::distribution::Distribution;
use crate::explain::{
    Above, ComponentTable, Components, Explanation, Known, Machine, Measured, Part, Seen, Share,
    Wakeup, blame, components, rank, sections, stacks_mut, timeline,
};
use crate::finding::{Finding, Severity, Validity};
use crate::plan::Stimulus;
use crate::run::{Episode, Run, Thread};
use crate::units::{SpanNs, counted, grouped, one_or_many};

/// A late wakeup, accounted for.
struct Account<'a> {
    wakeup: &'a Wakeup,
    components: Components,
    blame: Vec<Share>,
}

impl Account<'_> {
    fn late_ns(&self) -> u64 {
        self.components.total_ns()
    }
}

/// Puts into `run` what was `seen`: the components of all wakeups, whose the lateness of the late
/// ones was, and how the worst went.
pub fn account(run: &mut Run, seen: Seen, above: Above) {
    let (above_ns, above) = above.least_of(&seen.wakeup_latency);
    let machine = Machine::of(&run.host, run.time_domain);
    let known = Known::of(&seen.components, machine, run.plan.stimulus == Stimulus::Timer);
    let late: Vec<Account> = seen
        .wakeups
        .iter()
        .map(|wakeup| Account {
            wakeup,
            components: components(&wakeup.marks),
            blame: blame(wakeup, &known),
        })
        .filter(|account| account.late_ns() >= above_ns)
        .collect();
    if run.plan.stimulus == Stimulus::Others {
        stand_in(run, &seen.wakeup_latency);
    }
    let all = &seen.wakeup_latency;
    let not_followed = match run.plan.stimulus {
        // The probes know how many there were.
        Stimulus::Timer => run.woken().count.saturating_sub(all.count).max(seen.no_room),
        Stimulus::Others => seen.broken.saturating_add(seen.no_room),
    };
    let certainly_late = all.count - all.histogram.count_up_to(above_ns);
    let rest = &seen.rest;
    let explained = (late.len() as u64).saturating_add(rest.count(above_ns));
    let parts = late.iter().map(|account| Part::of(account.late_ns(), &account.blame));
    run.causes = rank(parts.chain(rest.parts(above_ns)));
    explain_worst(run, &late);
    let blames = late.iter().map(|account| &account.blame[..]).chain(rest.longest());
    run.components = Some(from_start(seen.components, run.origin_ns));
    let sections = sections(blames.clone(), seen.sections.map(|s| measured(s, run.origin_ns)));
    let bound = seen
        .interrupts
        .map(|interrupts| compose(run, blames, known.delivery_ns, interrupts, &sections));
    run.explanation = Some(Explanation {
        above_ns,
        above: above.to_string(),
        wakeups: all.count,
        not_followed,
        late: certainly_late.max(explained),
        explained,
        one_in: Some(rest.weight()).filter(|&weight| weight > 1),
        records: seen.records,
        lost_records: seen.lost_records,
        sections: Some(sections),
        late_components: Some(
            late.iter()
                .fold(rest.components(above_ns), |sum, account| sum.plus(&account.components)),
        ),
        seen_with: seen.seen_with,
        not_seen: seen.not_seen,
        build_id: seen.build_id,
        modules: BTreeMap::new(),
        module_build_ids: BTreeMap::new(),
        bound,
    });
    tell_modules(run, seen.modules, seen.module_build_ids);
    doubt(run, seen.lacks_edges);
}

/// Puts the wakeups that were `seen` in place of those of probes, in a run that has none: they are
/// all that there are.
pub fn stand_in(run: &mut Run, seen: &Distribution) {
    let mut woken = seen.clone();
    woken.max_at_ns = woken.max_at_ns.map(|at| at.saturating_sub(run.origin_ns));
    let expiries = woken.clone();
    run.threads = vec![Thread { cpu: None, woken, expiries, ..Default::default() }];
    run.summarize();
}

/// Times of maxima, as all times in a record, count from the start of the run.
fn from_start(mut table: ComponentTable, origin_ns: u64) -> ComponentTable {
    let parts = [&mut table.irq_latency, &mut table.handler_duration, &mut table.sched_latency];
    for part in parts.into_iter().chain(table.sched_duration.as_mut()) {
        part.max_at_ns = part.max_at_ns.map(|at| at.saturating_sub(origin_ns));
    }
    table
}

/// The same of sections.
fn measured(mut sections: Measured, origin_ns: u64) -> Measured {
    for kind in sections.kinds_mut() {
        let lengths = &mut kind.lengths;
        lengths.max_at_ns = lengths.max_at_ns.map(|at| at.saturating_sub(origin_ns));
    }
    sections
}

/// The run's own list of the worst, with what is known of them. Where a run has no list of its own,
/// as one of others' wakeups, it is made of what was seen.
fn explain_worst(run: &mut Run, late: &[Account]) {
    let origin_ns = run.origin_ns;
    let expiry_ns = |account: &Account| account.wakeup.marks.due.0.saturating_sub(origin_ns);
    if run.plan.stimulus == Stimulus::Others {
        run.worst = late
            .iter()
            .take(run.plan.worst)
            .map(|account| Episode {
                cpu: Some(account.wakeup.cpu),
                expiry_ns: expiry_ns(account),
                wakeup_latency_ns: account.late_ns(),
                ..Default::default()
            })
            .collect();
    }
    for episode in &mut run.worst {
        let same = |account: &&Account| {
            expiry_ns(account) == episode.expiry_ns
                && account.late_ns() == episode.wakeup_latency_ns
                && episode.cpu.is_none_or(|cpu| cpu == account.wakeup.cpu)
        };
        if let Some(account) = late.iter().find(same) {
            episode.components = Some(account.components);
            episode.blame = account.blame.clone();
            episode.timeline = timeline(account.wakeup);
        }
    }
}

/// Puts into the record, of `modules` by their functions, those whose functions it tells of, and the
/// ids of their builds.
fn tell_modules(
    run: &mut Run,
    mut modules: BTreeMap<String, String>,
    mut build_ids: BTreeMap<String, String>,
) {
    let entries = stacks_mut(run).flat_map(|stack| &*stack.entries);
    let functions: BTreeSet<&str> =
        entries.filter_map(|entry| Some(entry.rsplit_once('+')?.0)).collect();
    modules.retain(|function, _| functions.contains(function.as_str()));
    build_ids.retain(|module, _| modules.values().any(|told| told == module));
    if let Some(told) = &mut run.explanation {
        told.modules = modules;
        told.module_build_ids = build_ids;
    }
}

/// What a reader must know of the explanation.
fn doubt(run: &mut Run, lacks_edges: bool) {
    let Some(explanation) = &run.explanation else { return };
    let mut found = Vec::new();
    // Of a CPU without one, the probe's own findings tell.
    if run.plan.stimulus == Stimulus::Others && explanation.wakeups == 0 {
        found.push(Finding::new(
            "no-samples",
            Severity::Error,
            format!(
                "no wakeup of {} was followed within {}",
                run.plan.target,
                SpanNs(run.duration_ns)
            ),
            "name threads that are there, and sleep and wake meanwhile (ps -eL -o pid,tid,stat,comm), \
             or follow them for longer: --duration",
        ));
    }
    if lacks_edges {
        found.push(Finding::new(
            "no-section-edges",
            Severity::Note,
            "this kernel does not show where sections with interrupts or preemption off begin and \
             end: their lengths are lower estimates, from late wakeups"
                .into(),
            "boot a kernel with CONFIG_PREEMPTIRQ_TRACEPOINTS, which CONFIG_IRQSOFF_TRACER and \
             CONFIG_PREEMPT_TRACER bring",
        ));
    }
    if explanation.lost_records > 0 {
        found.push(Finding::new(
            "lost-records",
            Severity::Warning,
            format!(
                "{} of {} could not be handed over: causes lack {}",
                grouped(explanation.lost_records),
                counted(
                    explanation.lost_records.saturating_add(explanation.records),
                    "late wakeup"
                ),
                one_or_many(explanation.lost_records, "it", "them")
            ),
            "ask for fewer (--above with a longer time), or measure at a longer --interval",
        ));
    }
    if let Some(one_in) = explanation.one_in {
        found.push(Finding::new(
            "sampled-causes",
            Severity::Note,
            format!(
                "of the late wakeups beyond the worst, one in {one_in} was taken for the causes, \
                 drawn at random: their counts and shares are estimates"
            ),
            "ask for fewer: --above with a longer time or a higher percentile",
        ));
    }
    if explanation.not_followed > 0 {
        let all = explanation.wakeups.saturating_add(explanation.not_followed);
        found.push(Finding::new(
            "not-followed",
            // A wakeup now and then comes before its thread sleeps. Many are another matter.
            if explanation.not_followed > all / 100 { Severity::Warning } else { Severity::Note },
            format!(
                "{} of {} {} not followed from stimulus to response: components and causes lack {}",
                grouped(explanation.not_followed),
                counted(all, "wakeup"),
                one_or_many(explanation.not_followed, "was", "were"),
                one_or_many(explanation.not_followed, "it", "them"),
            ),
            "",
        ));
    }
    if !found.is_empty() {
        let mut all = std::mem::take(&mut run.validity.findings);
        all.append(&mut found);
        run.validity = Validity::of(all);
    }
}

#[cfg(test)]
mod tests;
