//! Records that can be published: without whose machine it is, and what else runs there.
//!
//! Every structure is taken apart field by field, so that a new field is not compiled until somebody
//! has decided about it. docs/privacy.md lists what stays.

use crate::command_line::anonymous;
use crate::explain::{Explanation, NetOfSteal, Sections};
use crate::finding::{CODES, Finding, Validity};
use crate::host::Host;
use crate::limit::Judgement;
use crate::line::Line;
use crate::plan::{LinePlan, Plan, ScenarioPlan, Target};
use crate::run::{Episode, LoadResult, Run, Thread};
use crate::sound_card::SoundCard;
use crate::source::Source;

mod episodes;
mod explained;
mod lab;
mod names;
#[cfg(test)]
mod tests;
mod watch;

pub use episodes::{redact_attributed, redact_head};
pub use lab::redact_lab;
pub use names::REDACTED;
use names::{is_unit, redact_name_of_load, remove};
pub use watch::redact_window;

/// Findings whose sentences name loads or files.
const WITH_NAMES: [&str; 6] =
    ["load-died", "load-left-out", "load-slowed", "load-stalled", "load-unfinished", "not-saved"];

/// The code of a finding that nobody here knows. Codes are words.
const UNKNOWN_CODE: &str = "redacted";

/// Removes from a run what tells whose machine it was made on, or which programs ran there: names of
/// commands, tasks and files, and parameters of the kernel that do not matter for latency. Figures,
/// verdicts, kernel functions, the kernel's release and the machine's processor stay, and so do
/// dates. It can be done twice.
pub fn redact(run: &mut Run) {
    let Run {
        // `id` is made of the time and of the number of a process that has ended.
        schema: _,
        id: _,
        started: _,
        duration_ns: _,
        origin_ns: _,
        time_domain: _,
        seed: _,
        state: _,
        source,
        host,
        plan,
        validity,
        limits,
        threads,
        load,
        line,
        card,
        worst,
        explanation,
        components: _,
        causes,
        net_of_steal,
        ranking,
        summary: _,
        other,
    } = run;
    source.iter_mut().for_each(redact_source);
    redact_host(host);
    redact_plan(plan);
    redact_validity(validity);
    limits.iter_mut().for_each(keep_limit);
    threads.iter().for_each(keep_thread);
    load.iter_mut().for_each(redact_load);
    line.iter().for_each(keep_line);
    card.iter_mut().for_each(redact_card);
    worst.iter_mut().for_each(redact_episode);
    explanation.iter_mut().for_each(redact_explanation);
    causes.iter_mut().for_each(explained::redact_row);
    net_of_steal.iter_mut().for_each(redact_net_of_steal);
    ranking.iter_mut().for_each(explained::redact_ranking);
    // Nobody here knows what these keys mean.
    other.clear();
}

fn redact_source(source: &mut Source) {
    let Source {
        tool: _,
        version: _,
        format: _,
        file,
        quantity: _,
        omission: _,
        resolution_ns: _,
        // Keys of the record, and sentences that are the same for all files of a kind.
        unknown: _,
        approximate: _,
    } = source;
    // Empty, not marked: marks would make all files one.
    file.clear();
}

fn redact_host(host: &mut Host) {
    let Host {
        // What is judged, and by what.
        release: _,
        version: _,
        arch: _,
        preemption: _,
        // What is sold to anybody.
        cpu_model: _,
        cpus_online: _,
        cpus_allowed: _,
        cpus_isolated: _,
        cpus_nohz_full: _,
        clock: _,
        cmdline,
        idle: _,
        governors: _,
        sched_ext: _,
        rt: _,
        hypervisor: _,
        microcode: _,
        unreadable: _,
    } = host;
    *cmdline = anonymous(cmdline);
}

fn redact_plan(plan: &mut Plan) {
    let Plan {
        stimulus: _,
        target,
        interval_ns: _,
        gap_from_ns: _,
        // Times, counts, and the kernel's numbers of a card.
        audio: _,
        duration_ns: _,
        samples: _,
        policy: _,
        priority: _,
        runtime_ns: _,
        policy_required: _,
        waker: _,
        line,
        cpus: _,
        load,
        load_marks,
        scenario,
        warmup_ns: _,
        idle_states: _,
        worst: _,
        // Times and percentiles.
        fail_above: _,
        save_samples: _,
    } = plan;
    redact_target(target);
    if let Some(LinePlan { device, baud: _, answers_on }) = line {
        remove(device);
        answers_on.iter_mut().for_each(remove);
    }
    if let Some(ScenarioPlan { name, checksum: _, rules: _ }) = scenario {
        remove(name);
    }
    load.iter_mut().for_each(redact_name_of_load);
    // They belong to a machine, and to commands of it.
    load_marks.clear();
}

fn redact_target(target: &mut Target) {
    match target {
        Target::Probes | Target::Unknown => {}
        Target::Process { pid: _ } | Target::Thread { tid: _ } => {}
        Target::Tasks { count: _, latest: name }
        | Target::Comm { comm: name }
        | Target::Cgroup { path: name }
        | Target::Program { name } => remove(name),
    }
}

fn redact_load(load: &mut LoadResult) {
    let LoadResult {
        name,
        work: _,
        incomplete: _,
        unit,
        per_second: _,
        before_per_second: _,
        before_steady: _,
        alive: _,
        fault,
        last_words,
        not_saved,
        window_ns: _,
        stall: _,
    } = load;
    redact_name_of_load(name);
    if !is_unit(unit) {
        remove(unit);
    }
    remove(fault);
    last_words.clear();
    *not_saved = None;
}

fn redact_validity(validity: &mut Validity) {
    let Validity { verdict: _, findings } = validity;
    findings.iter_mut().for_each(redact_finding);
}

/// Of a finding whose sentence may name something its meaning stays.
fn redact_finding(finding: &mut Finding) {
    let Finding { code, severity: _, message, hint } = finding;
    match CODES.iter().find(|(known, _)| known == code) {
        Some((known, meaning)) if WITH_NAMES.contains(known) => {
            *message = (*meaning).into();
            hint.clear();
        }
        Some(_) => {}
        None => {
            UNKNOWN_CODE.clone_into(code);
            [message, hint].into_iter().for_each(remove);
        }
    }
}

/// A limit has times and percentiles only.
fn keep_limit(limit: &mut Judgement) {
    let Judgement { limit: _, limit_ns: _, observed_ns: _, outcome: _, reason: _ } = limit;
}

/// A line has figures only, and words of this program.
fn keep_line(line: &Line) {
    let Line {
        attachment: _,
        baud: _,
        transmission_ns: _,
        latency_timer_ms: _,
        receive_trigger_bytes: _,
        answered_by: _,
        unanswered: _,
        stray: _,
        left_out: _,
        own_wakeup: _,
    } = line;
}

/// A sound card's name may be that of one's own making; all else is figures.
fn redact_card(card: &mut SoundCard) {
    let SoundCard {
        name,
        format: _,
        channels: _,
        rate_hz: _,
        fragment_frames: _,
        buffer_frames: _,
    } = card;
    remove(name);
}

/// A thread has figures only.
fn keep_thread(thread: &Thread) {
    let Thread {
        cpu: _,
        missed: _,
        lost: _,
        migrated: _,
        not_asleep: _,
        skipped: _,
        due_uncertainty_ns: _,
        page_faults: _,
        spin: _,
        kernel_stamps: _,
        // Figures only.
        audio: _,
        woken: _,
        expiries: _,
        interval_deviation: _,
        maxima: _,
        overflow: _,
    } = thread;
}

fn redact_episode(episode: &mut Episode) {
    let Episode {
        cpu: _,
        expiry_ns: _,
        wakeup_latency_ns: _,
        missed: _,
        components: _,
        blame,
        truth,
        stolen_ns: _,
        timeline,
        other,
    } = episode;
    blame.iter_mut().for_each(explained::redact_share);
    truth.iter_mut().for_each(explained::redact_true_share);
    timeline.iter_mut().for_each(explained::redact_step);
    other.clear();
}

fn redact_net_of_steal(net: &mut NetOfSteal) {
    let NetOfSteal {
        above_ns: _,
        above: _,
        late: _,
        explained: _,
        late_not_followed: _,
        unexplained_ns: _,
        causes,
        worst,
    } = net;
    causes.iter_mut().for_each(explained::redact_row);
    worst.iter_mut().for_each(redact_episode);
}

fn redact_explanation(explanation: &mut Explanation) {
    let Explanation {
        above_ns: _,
        above: _,
        wakeups: _,
        not_followed: _,
        late: _,
        explained: _,
        late_not_followed: _,
        unexplained_ns: _,
        one_in: _,
        late_components: _,
        stored_episodes: _,
        anew,
        records: _,
        lost_records: _,
        // Of the kernel: what it shows, its build, its modules and their functions.
        seen_with: _,
        not_seen: _,
        build_id: _,
        module_build_ids: _,
        sections,
        bound,
        waits,
        // Numbers and kinds of causes.
        truth: _,
    } = explanation;
    anew.iter_mut().for_each(episodes::redact_anew);
    waits.iter_mut().for_each(explained::redact_waits);
    if let Some(Sections { exact: _, irq_off, preempt_off, measured }) = sections {
        [irq_off, preempt_off].into_iter().flatten().for_each(explained::redact_share);
        measured.iter_mut().for_each(explained::redact_measured);
    }
    let interrupts = bound.iter_mut().flat_map(|bound| &mut bound.variables.interrupts);
    interrupts.for_each(|interrupt| explained::redact_culprit(&mut interrupt.culprit));
}
