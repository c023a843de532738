use std::collections::BTreeSet;

use serde_json::Value;

use super::*;
use crate::audio::{Audio, AudioPlan};
use crate::distribution::Distribution;
use crate::explain::{
    Anew, Answer, Bound, By, Cause, CauseRow, Change, ComponentTable, Components, Culprit, Edge,
    Evidence, Frame, Function, Interference, Interrupted, Longest, Measured, NamedTask, NetOfSteal,
    OpenWait, Quota, Ranking, RankingRow, SectionKind, SectionPlace, Share, SourceLine, Step,
    StepEvent, StepMode, Subject, ThreadWaitRow, ThreadWaits, TrueCause, TrueShare, Truth, Unsound,
    Variables, WaitKind, WaitRow, Waits, Within, WorstWait,
};
use crate::finding::{Severity, Verdict};
use crate::histogram::Histogram;
use crate::host::{Clock, Idle, IdleState, KernelFiles, RtLimits};
use crate::limit::Outcome;
use crate::line::Line;
use crate::plan::{IdleStates, LinePlan, ProbePolicy, ScenarioPlan, Stimulus, Target};
use crate::preemption::{Model, Preemption, Unread};
use crate::run::{KernelStamps, Overflow, SCHEMA, Spin, State, Summary, TimeDomain};
use crate::sound_card::SoundCard;
use crate::source::{Omission, Quantity};
use crate::starvation::Stall;
use crate::unknown::Unknown;

/// In every text of a record.
pub(super) const MARKER: &str = "MARKER";

/// In texts that stay only if they have the form of the kernel's names.
const TEXT: &str = "MARKER of a user";

/// Texts that stay, and why.
const STAYS: &[(&str, &str)] = &[
    ("id", "made of the time, or a checksum of what was imported"),
    ("started", "a date tells with which changes a kernel was tested"),
    ("source.tool", "other programs that measure are known to all"),
    ("source.version", "as above"),
    ("source.format", "as above"),
    ("source.unknown[]", "keys of this record"),
    ("source.approximate[]", "the same sentences for all files of a format"),
    ("host.release", "the kernel is what is judged"),
    ("host.version", "as above"),
    ("host.arch", "as above"),
    ("host.preemption.because", "as above"),
    ("host.preemption.evidence[].source", "files that every machine has"),
    ("host.preemption.evidence[].says", "words about the model"),
    ("host.preemption.conflicts[]", "as above"),
    ("host.preemption.unread[].source", "files that every machine has"),
    ("host.preemption.unread[].why", "errors of the kernel"),
    ("host.cpu_model", "sold to anybody, and decides figures"),
    ("host.clock.source", "named by the kernel"),
    ("host.idle.driver", "as above"),
    ("host.idle.governor", "as above"),
    ("host.idle.states[].name", "as above"),
    ("host.governors[]", "as above"),
    ("host.sched_ext", "decides figures, as the kernel's release does"),
    ("host.hypervisor", "sold to anybody, and decides figures"),
    ("host.microcode", "as above"),
    ("plan.fail_above[]", "times and percentiles"),
    ("validity.findings[].message", "sentences of this program, but for those that hold names"),
    ("validity.findings[].hint", "as above"),
    ("limits[].limit", "times and percentiles"),
    ("limits[].reason", "sentences of this program"),
    ("explanation.above", "a time or percentile"),
    ("explanation.seen_with[]", "tracepoints of the kernel"),
    ("explanation.not_seen[]", "as above"),
    ("explanation.build_id", "the kernel is what is judged"),
    ("explanation.module_build_ids", "modules of the kernel"),
    ("explanation.module_build_ids.MARKER", "as above"),
    ("explanation.bound.variables.interrupts[].name", "drivers name them after devices"),
    ("net_of_steal.above", "a time or percentile"),
    ("summary.percentiles", "names of percentiles"),
    ("summary.percentiles_at_most", "as above"),
];

/// A text in a record.
fn marker() -> String {
    MARKER.into()
}

fn other() -> Unknown {
    Unknown::of(MARKER, &Value::from(MARKER).to_string())
}

fn distribution() -> Distribution {
    Distribution {
        count: 1,
        min_ns: Some(5_000),
        max_ns: Some(5_000),
        max_at_ns: Some(0),
        sum_ns: 5_000,
        histogram: Histogram::of([5_000]),
        stated: None,
    }
}

/// A whole run. Nothing is left to a default, so that a new field is not compiled until it is here.
fn full() -> Run {
    Run {
        schema: SCHEMA.into(),
        id: marker(),
        started: marker(),
        duration_ns: 1,
        origin_ns: 1,
        time_domain: TimeDomain::Real,
        seed: 1,
        state: State::Complete,
        source: Some(source()),
        host: host(),
        plan: plan(),
        validity: Validity { verdict: Verdict::Valid, findings: findings() },
        limits: vec![Judgement {
            limit: marker(),
            limit_ns: 1,
            observed_ns: None,
            outcome: Outcome::Pass,
            reason: marker(),
        }],
        threads: vec![thread()],
        load: vec![load()],
        line: Some(Line::default()),
        card: Some(SoundCard { name: marker(), ..SoundCard::default() }),
        worst: vec![episode()],
        explanation: Some(explanation()),
        components: Some(ComponentTable::default()),
        causes: vec![cause_row()],
        net_of_steal: Some(NetOfSteal {
            above_ns: 1,
            above: marker(),
            late: 1,
            explained: 1,
            late_not_followed: 0,
            unexplained_ns: 0,
            causes: vec![cause_row()],
            worst: vec![episode()],
        }),
        ranking: Some(ranking()),
        summary: Summary {
            count: 1,
            missed: 0,
            min_ns: Some(5_000),
            max_ns: Some(5_000),
            percentiles: [(marker(), None)].into(),
            percentiles_at_most: [(marker(), 1)].into(),
            interval_deviation: None,
            not_excluded_every_ns: None,
        },
        other: other(),
    }
}

fn ranking() -> Ranking {
    let subjects = [
        Subject::Function(Function { name: TEXT.into(), module: Some(TEXT.into()) }),
        Subject::Module { name: Some(TEXT.into()) },
        Subject::Task(task()),
    ];
    let share = 1.0 / subjects.len() as f64;
    let row = |subject| RankingRow { subject, episodes: 1, total_ns: 1, worst_ns: 1, share };
    Ranking { by: By::Pid, wakeups: 1, complete: false, rows: subjects.map(row).into() }
}

fn cause_row() -> CauseRow {
    CauseRow {
        cause: Cause::Irq,
        culprit: culprit(),
        phase: None,
        from_cpu: None,
        others: false,
        episodes: 1,
        total_ns: 1,
        worst_ns: 1,
        share: 1.0,
    }
}

fn thread() -> Thread {
    Thread {
        cpu: Some(0),
        missed: 0,
        lost: 0,
        migrated: 0,
        not_asleep: 0,
        skipped: 0,
        due_uncertainty_ns: 0,
        page_faults: 0,
        spin: Some(Spin { loops: 4, observed_ns: 5 }),
        kernel_stamps: Some(KernelStamps { wakeups: 6, ..KernelStamps::default() }),
        woken: distribution(),
        expiries: distribution(),
        interval_deviation: None,
        maxima: None,
        audio: Some(Audio { compute: distribution(), ..Audio::default() }),
        overflow: Some(Overflow { from_ns: 1, count: 1 }),
    }
}

fn load() -> LoadResult {
    LoadResult {
        name: marker(),
        work: 1,
        incomplete: true,
        unit: marker(),
        per_second: 1.0,
        before_per_second: None,
        before_steady: None,
        alive: false,
        fault: marker(),
        last_words: marker(),
        not_saved: Some(marker()),
        window_ns: 0,
        stall: Stall::default(),
    }
}

fn episode() -> Episode {
    Episode {
        cpu: Some(0),
        expiry_ns: 0,
        wakeup_latency_ns: 0,
        missed: 0,
        components: Some(Components::default()),
        blame: vec![share()],
        truth: vec![TrueShare { culprit: share().culprit, ..TrueShare::default() }],
        stolen_ns: Some(0),
        timeline: timeline(),
        other: other(),
    }
}

fn source() -> Source {
    Source {
        tool: marker(),
        version: Some(marker()),
        format: marker(),
        file: marker(),
        quantity: Quantity::Gap,
        omission: Omission::None,
        resolution_ns: None,
        unknown: vec![marker()],
        approximate: vec![marker()],
    }
}

fn host() -> Host {
    Host {
        release: marker(),
        version: marker(),
        arch: marker(),
        preemption: Preemption {
            model: Model::Full,
            because: marker(),
            evidence: vec![crate::preemption::Evidence { source: marker(), says: marker() }],
            conflicts: vec![marker()],
            unread: vec![Unread { source: marker(), why: marker() }],
        },
        cpu_model: Some(marker()),
        cpus_online: vec![0],
        cpus_allowed: vec![0],
        cpus_isolated: vec![0],
        cpus_nohz_full: vec![0],
        clock: Clock { source: marker(), resolution_ns: 1, read_cost_ns: 1 },
        cmdline: format!("{MARKER} {MARKER}.site=[masked] root={MARKER} quiet -- {MARKER}"),
        idle: Idle {
            driver: Some(marker()),
            governor: Some(marker()),
            states: vec![IdleState { name: marker(), exit_latency_ns: 1, disabled: false }],
        },
        governors: vec![marker()],
        sched_ext: Some(marker()),
        rt: RtLimits {
            runtime_ns: None,
            period_ns: None,
            fair_server: None,
            fair_server_share: None,
            group_scheduling: None,
            group_runtime_ns: None,
            priority_limit: None,
            nice_capability: None,
        },
        hypervisor: Some(marker()),
        microcode: Some(marker()),
        unreadable: vec![KernelFiles::Sys],
    }
}

fn plan() -> Plan {
    Plan {
        target: Target::Comm { comm: marker() },
        stimulus: Stimulus::Any,
        interval_ns: 1,
        duration_ns: None,
        samples: None,
        policy: ProbePolicy::Fifo,
        priority: None,
        runtime_ns: Some(1_024),
        policy_required: false,
        waker: None,
        line: Some(LinePlan { device: marker(), baud: 115_200, answers_on: Some(marker()) }),
        audio: Some(AudioPlan { fragment_ns: 1, fragments: 2, share_ppm: 3, pcm: None }),
        gap_from_ns: Some(1_000),
        scenario: Some(ScenarioPlan {
            name: marker(),
            checksum: "0".repeat(16),
            rules: "full".into(),
        }),
        cpus: vec![0],
        load: vec![marker(), format!("exec:{MARKER}"), format!("disturb-{MARKER}_1")],
        load_marks: vec![marker()],
        warmup_ns: 0,
        idle_states: IdleStates::AsIs,
        worst: 1,
        fail_above: vec![marker()],
        save_samples: false,
    }
}

/// One of each code, and one that nobody knows.
fn findings() -> Vec<Finding> {
    let codes = CODES.iter().map(|(code, _)| (*code).to_owned()).chain([marker()]);
    let finding =
        |code| Finding { code, severity: Severity::Note, message: marker(), hint: marker() };
    codes.map(finding).collect()
}

fn task() -> NamedTask {
    NamedTask { comm: marker(), pid: Some(7), ..NamedTask::default() }
}

fn culprit() -> Culprit {
    Culprit::Task(task())
}

fn interrupted() -> Option<Interrupted> {
    let name = Some(TEXT.into());
    Some(Interrupted {
        mode: StepMode::User,
        task: task(),
        idle_state: name.clone(),
        softirq: name,
    })
}

/// One of each kind, so that a new one is not forgotten.
fn timeline() -> Vec<Step> {
    let name = || TEXT.to_owned();
    let events = vec![
        StepEvent::TimerExpiry { cpu: None, interrupted: interrupted() },
        StepEvent::NotAsleep { task: task(), interrupted: interrupted() },
        StepEvent::MadeReady {
            by: Some(task()),
            cpu: None,
            in_interrupt: false,
            interrupted: interrupted(),
        },
        StepEvent::Interrupt { name: Some(name()) },
        StepEvent::InterruptExit { name: Some(name()) },
        StepEvent::Timer { name: name(), count: 1 },
        StepEvent::Softirq { name: name() },
        StepEvent::SoftirqExit { name: name() },
        StepEvent::Nmi { name: name(), ns: 1 },
        StepEvent::Switch { from: Some(task()), to: task() },
        StepEvent::Runs { task: task(), page_faults: 0 },
    ];
    events.into_iter().map(|event| Step { at_ns: 0, depth: 0, event }).collect()
}

fn frame() -> Frame {
    Frame {
        function: Some(TEXT.into()),
        offset: 16,
        module: Some(TEXT.into()),
        file: Some(marker()),
        line: 1,
        inlined: vec![SourceLine { function: marker(), file: marker(), line: 1 }],
    }
}

fn share() -> Share {
    let function = || Function { name: TEXT.into(), module: Some(TEXT.into()) };
    Share {
        cause: Cause::Irq,
        ns: 0,
        culprit: Culprit::Function(function()),
        phase: None,
        from_cpu: None,
        within: Within {
            caller: Some(function()),
            syscall: Some(TEXT.into()),
            softirq: Some(TEXT.into()),
            interrupt: Some(TEXT.into()),
            task: Some(task()),
        },
        waiting_for_lock: false,
        evidence: Evidence::Edge,
        gap: None,
        frames: vec![frame()],
        given_up_at: vec![frame()],
        user_stack: vec![Frame { function: Some(marker()), module: Some(marker()), ..frame() }],
    }
}

fn explanation() -> Explanation {
    let edge = || Edge { place: Some(frame()), caller: Some(frame()) };
    let kind = || {
        let place = SectionPlace { begin: edge(), end: edge(), count: 1, total_ns: 1, worst_ns: 1 };
        let longest =
            Longest { begin: edge(), end: edge(), task: Some(task()), frames: vec![frame()] };
        Some(SectionKind { lengths: distribution(), longest: Some(longest), places: vec![place] })
    };
    let named = || Culprit::Task(task());
    let answer = || Answer { culprit: named(), ..Answer::default() };
    let interrupt = Interference {
        culprit: Culprit::interrupt(MARKER),
        wcet_ns: 1,
        miat_ns: None,
        spans_ns: Vec::new(),
        work: Vec::new(),
    };
    Explanation {
        above_ns: 1,
        above: marker(),
        wakeups: 1,
        not_followed: 0,
        late: 1,
        explained: 1,
        late_not_followed: 0,
        unexplained_ns: 0,
        one_in: None,
        late_components: None,
        stored_episodes: Some(1),
        anew: Some(Anew {
            changes: vec![Change { before: answer(), after: answer(), episodes: 1, ns: 1 }],
            ..Anew::default()
        }),
        records: 1,
        lost_records: 0,
        seen_with: vec![marker()],
        not_seen: vec![marker()],
        build_id: Some(marker()),
        module_build_ids: [(marker(), marker())].into(),
        sections: Some(Sections {
            exact: true,
            irq_off: Some(share()),
            preempt_off: Some(share()),
            measured: Some(Measured {
                irq_off: kind(),
                preempt_off: kind(),
                scheduling: kind(),
                handlers: kind(),
                either_ns: None,
                either_scheduling_ns: None,
                edges: 1,
                unpaired: 0,
                with_nmi: 0,
                no_room: 0,
            }),
        }),
        bound: Some(Bound {
            variables: Variables {
                delivery_ns: None,
                poid_ns: None,
                paie_ns: None,
                psd_ns: None,
                dst_ns: None,
                tracer_ns: Some(1),
                interrupts: vec![interrupt],
            },
            interference_free_ns: 1,
            bound_ns: None,
            unsound: vec![Unsound::NoSection],
        }),
        waits: Some(waits()),
        truth: Some(Truth {
            wakeups: 1,
            right: 1,
            causes: vec![TrueCause { cause: Cause::IrqOff, ns: 5_000, right_ns: 4_000 }],
            ..Truth::default()
        }),
    }
}

fn waits() -> Waits {
    let worst = WorstWait {
        ns: 1,
        at_ns: 1,
        cpu: 0,
        task: task(),
        cause: Cause::HigherPriorityTask,
        culprit: culprit(),
        throttled_ns: 0,
        steal_ns: 0,
    };
    let kind = WaitKind::Preempted;
    let (count, sum_ns, worst_ns) = (1, 1, 1);
    let row = WaitRow { kind, count, sum_ns, throttled_ns: 0, steal_ns: 0, worst: Some(worst) };
    let kinds = vec![ThreadWaitRow { kind, count, sum_ns, worst_ns }];
    Waits {
        kinds: vec![row],
        threads: vec![ThreadWaits { task: task(), sum_ns, run_delay_ns: Some(1), kinds }],
        more_threads: 0,
        more_threads_ns: 0,
        begun: 1,
        open: 0,
        open_ns: 0,
        throughout: 0,
        longest_open: Some(OpenWait { ns: 1, at_ns: 1, task: task() }),
        ends_missed: 0,
        begins_missed: 0,
        begins_missed_ns: 0,
        not_followed_ns: 0,
        broken: 0,
        no_room: 0,
        schedstat: None,
        quota: Some(Quota { cgroup: marker(), quota_ns: 1, period_ns: 1 }),
    }
}

/// The places of all texts with the marker: names of keys, and `[]` for each entry of a list. A key
/// with the marker is at the place of its object.
pub(super) fn places(value: &Value, place: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if text.contains(MARKER) => {
            found.insert(place.to_owned());
        }
        Value::Array(all) => all.iter().for_each(|v| places(v, &format!("{place}[]"), found)),
        Value::Object(all) => {
            for (key, value) in all {
                if key.contains(MARKER) {
                    found.insert(place.to_owned());
                }
                let below = if place.is_empty() { key.clone() } else { format!("{place}.{key}") };
                places(value, &below, found);
            }
        }
        _ => {}
    }
}

fn places_in(run: &Run) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    places(&serde_json::to_value(run).unwrap(), "", &mut found);
    found
}

/// Every text of the record is in one of two lists: of those that stay, or of those that go.
#[test]
fn no_text_stays_but_for_a_reason() {
    let mut run = full();
    let before = places_in(&run);
    redact(&mut run);
    let after = places_in(&run);
    let stays: BTreeSet<String> = STAYS.iter().map(|(place, _)| (*place).to_owned()).collect();
    assert_eq!(after, stays);
    // That the record was full: there is nothing else that could have stayed.
    for place in ["plan.target.comm", "causes[].culprit.comm", "worst[].timeline[].event.to.comm"] {
        assert!(before.contains(place) && !after.contains(place), "{place}: {before:?}");
    }
    let once = run.clone();
    redact(&mut run);
    assert_eq!(run, once, "twice is once");
}

#[test]
fn a_record_without_names_is_a_record() {
    let mut run = full();
    redact(&mut run);
    let mut read = Run::from_json(run.to_json().as_bytes()).unwrap();
    assert_eq!(read, run);
    redact(&mut read);
    assert_eq!(read, run);
    assert_eq!(run.host.cmdline, "[masked] [masked] [masked] quiet -- [masked]");
    assert_eq!(run.plan.load, [REDACTED, "exec:[redacted]", REDACTED]);
    let Culprit::Task(task) = &run.causes[0].culprit else { panic!("{:?}", run.causes) };
    assert_eq!(task.comm, REDACTED);
}

#[test]
fn sentences_with_names_are_replaced_by_what_they_mean() {
    let mut run = full();
    redact(&mut run);
    for finding in &run.validity.findings {
        let stays = !WITH_NAMES.contains(&finding.code.as_str()) && finding.code != UNKNOWN_CODE;
        assert_eq!(finding.message == MARKER, stays, "{finding:?}");
        assert_eq!(finding.hint == MARKER, stays, "{finding:?}");
        assert!(!finding.message.is_empty(), "{finding:?}");
    }
}
