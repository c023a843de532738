//! From what a tracer saw to what a run's record says about it.

use std::collections::{BTreeMap, BTreeSet};

use self::net::net_of_steal;
use super::balance::{Balance, Books};
use super::compose::compose;
use crate::late::{Late, attribute};
use crate::net_of_steal::Lateness::{NetOfSteal as Net, Whole};
use crate::ranking::rank_all_by;
use crate::{Machine, Seen, Tally, calibrate, rank, sections, waits};
use wakescope_core::distribution::Distribution;
use wakescope_core::episodes::Attributed;
use wakescope_core::explain::{
    Above, Cause, ComponentTable, Explanation, Known, Measured, stacks_mut,
};
use wakescope_core::finding::{Finding, Severity, Validity};
use wakescope_core::histogram::bucket_of;
use wakescope_core::run::{Episode, Run, State, Thread};
use wakescope_core::units::{SpanNs, counted, grouped, one_or_many};

mod net;

/// The late wakeups that an account was given whole, and what all wakeups taught about each.
#[derive(Clone, Debug, Default)]
pub struct Accounted {
    /// See [`Seen::known`].
    pub known: Known,
    /// Each wakeup that is late, with stolen time or without, with its answer, the latest first.
    pub episodes: Vec<Attributed>,
}

/// Puts into `run` what was `seen`: the components of all wakeups, whose the lateness of the late
/// ones was, and how the worst went.
///
/// Late are wakeups among all that the probes recorded, or, where there are none, among all that the
/// tracer followed. Those of them that are not explained are unexplained.
pub fn account(run: &mut Run, mut seen: Seen, asked: Above) -> Accounted {
    if run.plan.is_of_others() {
        stand_in(run, &seen.wakeup_latency);
    }
    let all = run.woken();
    let (above_ns, above) = asked.least_of(&all);
    let machine = Machine::of(&run.host, run.time_domain);
    let known = seen
        .known
        .unwrap_or_else(|| calibrate(&seen.components, machine, !run.plan.is_of_others()));
    let attributed =
        std::mem::take(&mut seen.wakeups).into_iter().map(|wakeup| attribute(wakeup, &known));
    let (after_the_end, mut all_seen): (Vec<Attributed>, Vec<Attributed>) =
        attributed.partition(came_after_the_end(run));
    let late: Vec<&Attributed> = all_seen.iter().filter(|a| a.ns(Whole) >= above_ns).collect();
    explain_worst(run, &late);
    let abridged = &seen.abridged;
    let balance = balance(run, &all, &seen, &late, (above_ns, asked));
    let parts = late.iter().map(|account| account.part(Whole));
    run.causes = rank(parts.chain(abridged.parts(above_ns, Whole)).chain(balance.parts()));
    run.ranking = seen.by.map(|by| rank_all_by(by, &late, abridged, above_ns, &balance));
    let to_list = (run.plan.worst, run.origin_ns);
    run.net_of_steal = net_of_steal(&all, &seen, &all_seen, (above_ns, asked), to_list);
    let blames = late.iter().map(|account| &account.blame[..]).chain(abridged.longest());
    run.components = Some(from_start(seen.components, run.origin_ns));
    let contradiction =
        seen.tally.as_ref().and_then(|t| t.finding(all_seen.len() + after_the_end.len(), abridged));
    let forgotten = forgotten_events(&late);
    let lost_in_contention = seen.tally.as_ref().map_or(0, Tally::lost_in_contention);
    let waits = seen.waits.map(|all| waits::placed(all, run.origin_ns, &run.worst));
    let sections = sections(blames.clone(), seen.sections.map(|s| measured(s, run.origin_ns)));
    let bound = seen
        .interrupts
        .map(|interrupts| compose(run, blames, known.delivery_ns, interrupts, &sections));
    run.explanation = Some(Explanation {
        above_ns,
        above: above.to_string(),
        wakeups: seen.wakeup_latency.count,
        not_followed: match run.plan.is_of_others() {
            false => balance.not_followed.max(seen.no_room),
            // Nobody else knows how many there were.
            true => seen.broken.saturating_add(seen.no_room).saturating_add(lost_in_contention),
        },
        late: balance.late,
        explained: balance.explained,
        late_not_followed: balance.late_not_followed,
        unexplained_ns: balance.unexplained_ns(),
        one_in: Some(abridged.weight()).filter(|&weight| weight > 1),
        records: seen.records,
        lost_records: seen.lost_records,
        sections: Some(sections),
        stored_episodes: None,
        anew: None,
        late_components: Some(
            late.iter()
                .fold(abridged.components(above_ns), |sum, account| sum.plus(&account.components)),
        ),
        seen_with: seen.seen_with,
        not_seen: seen.not_seen,
        build_id: seen.build_id,
        module_build_ids: BTreeMap::new(),
        bound,
        waits,
        truth: None,
    });
    tell_modules(run, seen.module_build_ids);
    doubt(run, seen.lacks_edges, balance.excess, contradiction.into_iter().chain(forgotten));
    let net_above_ns = run.net_of_steal.as_ref().map(|net| net.above_ns);
    let is_late = |account: &Attributed| {
        account.ns(Whole) >= above_ns || net_above_ns.is_some_and(|ns| account.ns(Net) >= ns)
    };
    all_seen.retain(is_late);
    Accounted { known, episodes: all_seen }
}

/// Whether a wakeup found the run ended: it was answered, and its probe recorded it no more. If it is later than all
/// that were recorded, it contradicts them. (6.18, ended by Ctrl-C after 845 ms: 3.40 ms of the wakeup that was due
/// then, where the maximum was 1.32 ms.)
fn came_after_the_end(run: &Run) -> impl Fn(&Attributed) -> bool + use<> {
    let (origin_ns, end_ns) = (run.origin_ns, run.duration_ns);
    // The record of a run that goes on is behind what was seen of it.
    let has_ended = run.state != State::Running && !run.plan.is_of_others();
    let max_ns = run.expiries().max_ns.filter(|_| has_ended);
    move |account| {
        let is_latest = max_ns.is_some_and(|max_ns| account.ns(Whole) > max_ns);
        is_latest && account.expiry_ns(origin_ns) >= end_ns
    }
}

/// The balance of `all` wakeups of a run whose worst are explained, as far as they can be.
fn balance(
    run: &Run,
    all: &Distribution,
    seen: &Seen,
    late: &[&Attributed],
    (above_ns, asked): (u64, Above),
) -> Balance {
    let mut explained: BTreeMap<usize, u64> = seen.abridged.counts(above_ns, Whole);
    for account in late {
        *explained.entry(bucket_of(account.ns(Whole))).or_default() += 1;
    }
    let listed: Vec<(u64, bool)> = match run.plan.is_of_others() {
        false => {
            let listed = |episode: &Episode| (episode.wakeup_latency_ns, !episode.blame.is_empty());
            run.worst.iter().map(listed).collect()
        }
        // Their list is made of what was explained.
        true => Vec::new(),
    };
    Balance::of(&Books {
        all,
        followed: &seen.wakeup_latency,
        explained,
        above_ns,
        // Where a time is asked for, only what is at least so late leaves the kernel.
        lost: asked.time_ns().map(|_| seen.lost_records),
        listed: &listed,
    })
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
fn explain_worst(run: &mut Run, late: &[&Attributed]) {
    let origin_ns = run.origin_ns;
    if run.plan.is_of_others() {
        let latest = late.iter().take(run.plan.worst);
        run.worst = latest.map(|account| account.episode(origin_ns)).collect();
        return;
    }
    for episode in &mut run.worst {
        if let Some(account) = late.iter().find(|account| account.is(episode, origin_ns)) {
            account.explain(episode);
        }
    }
}

/// Puts into the record the ids of the builds of those modules that its frames are in.
fn tell_modules(run: &mut Run, mut build_ids: BTreeMap<String, String>) {
    let frames = stacks_mut(run).flat_map(|stack| &*stack);
    let modules: BTreeSet<&str> = frames.filter_map(|frame| frame.module.as_deref()).collect();
    build_ids.retain(|module, _| modules.contains(module.as_str()));
    if let Some(explanation) = &mut run.explanation {
        explanation.module_build_ids = build_ids;
    }
}

/// What a reader must know of the explanation. `excess` is by how much its numbers of wakeups
/// contradict those of the probes; `others` is what is already known.
fn doubt(run: &mut Run, lacks_edges: bool, excess: u64, others: impl IntoIterator<Item = Finding>) {
    let Some(explanation) = &run.explanation else { return };
    let mut found = Vec::new();
    // Of a CPU without one, the probe's own findings tell.
    let has_waits =
        explanation.waits.as_ref().is_some_and(|waits| waits.begun > 0 || waits.throughout > 0);
    if run.plan.is_of_others() && explanation.wakeups == 0 && !has_waits {
        found.push(Finding::new(
            "no-samples",
            Severity::Error,
            format!(
                "no wakeup of the followed threads was traced within {}",
                SpanNs(run.duration_ns)
            ),
            "name existing threads that sleep and wake (ps -eL -o pid,tid,stat,comm), or follow \
             them longer: --duration",
        ));
    }
    if lacks_edges {
        found.push(Finding::new(
            "no-section-edges",
            Severity::Note,
            "this kernel has no tracepoints at the ends of sections with interrupts or preemption \
             off: their lengths are lower bounds, estimated from late wakeups"
                .into(),
            "boot a kernel with CONFIG_PREEMPTIRQ_TRACEPOINTS, which CONFIG_IRQSOFF_TRACER and \
             CONFIG_PREEMPT_TRACER select",
        ));
    }
    if let Some(one_in) = explanation.one_in {
        found.push(Finding::new(
            "sampled-causes",
            Severity::Note,
            format!(
                "one in {one_in} of the late wakeups beyond the worst was sampled at random: \
                 counts and shares of causes are estimates"
            ),
            "explain fewer wakeups: --above with a longer time or a higher percentile",
        ));
    }
    found.extend(lost_records(explanation));
    found.extend(not_followed(explanation, run));
    found.extend(contradiction_of_probes(explanation, excess, run));
    found.extend(others);
    found.extend(explanation.waits.iter().flat_map(waits::findings));
    if !found.is_empty() {
        let mut all = std::mem::take(&mut run.validity.findings);
        all.append(&mut found);
        run.validity = Validity::of(all);
    }
}

fn lost_records(explanation: &Explanation) -> Option<Finding> {
    let lost = explanation.lost_records;
    let finding = || {
        Finding::new(
            "lost-records",
            Severity::Warning,
            format!(
                "{} of {} of late wakeups {} lost: the latency of these wakeups is unexplained",
                grouped(lost),
                counted(lost.saturating_add(explanation.records), "record"),
                one_or_many(lost, "was", "were"),
            ),
            "explain fewer wakeups (--above with a longer time), or use a longer --interval",
        )
    };
    (lost > 0).then(finding)
}

/// The finding if more happened during late wakeups than is kept of their CPU, so that most of their time is
/// unexplained: a thread waited for 305 ms beside two that woke each other, and 44,124 events were gone (6.18).
fn forgotten_events(late: &[&Attributed]) -> Option<Finding> {
    let mut lengths_ns = Vec::new();
    for account in late.iter().filter(|account| account.wakeup.lost > 0) {
        let unexplained = account.blame.iter().filter(|share| share.cause == Cause::Unexplained);
        let ns: u64 = unexplained.map(|share| share.ns).sum();
        if ns > account.ns(Whole) / 2 {
            lengths_ns.push(ns);
        }
    }
    let longest_ns = *lengths_ns.iter().max()?;
    let (count, all) = (lengths_ns.len() as u64, late.len() as u64);
    Some(Finding::new(
        "forgotten-events",
        if count > all / 100 { Severity::Warning } else { Severity::Note },
        format!(
            "more events came during {} of the latest {} than are kept for a CPU: the first ones are unknown, up to {}",
            grouped(count),
            counted(all, "wakeup"),
            SpanNs(longest_ns),
        ),
        "see who keeps these CPUs busy (top -H); a higher priority or a CPU of its own spares a thread such waits",
    ))
}

fn not_followed(explanation: &Explanation, run: &Run) -> Option<Finding> {
    let Explanation { not_followed, late, late_not_followed, lost_records, .. } = *explanation;
    let all = explanation.wakeups.saturating_add(not_followed);
    let is_of_others = run.plan.is_of_others();
    let is_missing = |latest: &Episode| lost_records == 0 && latest.blame.is_empty();
    let lacks_latest = late_not_followed > 0 && run.worst.first().is_some_and(is_missing);
    // A wakeup now and then comes before its thread sleeps. Many are another matter, and so are some
    // of the few that are late, and the one that the run is judged by.
    let is_grave = not_followed > all / 100 || late_not_followed > late / 100 || lacks_latest;
    let of_late = match late_not_followed {
        _ if is_of_others => {
            "components and causes exclude them, and their latency is unknown".to_owned()
        }
        0 => "components exclude them; none of them was late".to_owned(),
        _ => format!(
            "components exclude them; {} of the {} late wakeups {} among them{}, and unexplained",
            grouped(late_not_followed),
            grouped(late),
            one_or_many(late_not_followed, "is", "are"),
            if lacks_latest { ", also the latest of all" } else { "" },
        ),
    };
    let hint = match is_grave && late_not_followed > 0 {
        true => {
            "see with ftrace what ran on their CPUs at these times (events sched_switch and \
             hrtimer_expire_entry): no program of the tracer may have run in that task"
        }
        false => "",
    };
    let finding = || {
        Finding::new(
            "not-followed",
            if is_grave { Severity::Warning } else { Severity::Note },
            format!(
                "{} of {} {} not followed from stimulus to response: {of_late}",
                grouped(not_followed),
                counted(all, "wakeup"),
                one_or_many(not_followed, "was", "were"),
            ),
            hint,
        )
    };
    (not_followed > 0).then(finding)
}

/// The finding if the tracer counts more wakeups than the probes recorded. Each probe may answer one
/// last wakeup without recording it, because it stops in between.
fn contradiction_of_probes(explanation: &Explanation, excess: u64, run: &Run) -> Option<Finding> {
    let allowed = if run.plan.is_of_others() { 0 } else { run.threads.len() as u64 };
    let finding = || {
        Finding::new(
            "contradictory-counts",
            Severity::Warning,
            format!(
                "the tracer followed {} wakeups and explains {} late ones, but the probes \
                 recorded {}: {} of the tracer's wakeups do not match the probes' histogram, so \
                 counts and shares of causes are unreliable",
                grouped(explanation.wakeups),
                grouped(explanation.explained),
                grouped(run.woken().count),
                grouped(excess),
            ),
            "report this with the run's record; the probes' own figures are not affected",
        )
    };
    (excess > allowed).then(finding)
}

#[cfg(test)]
mod tests;
