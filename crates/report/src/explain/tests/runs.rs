//! Runs made by hand.

use wakescope_core::distribution::Distribution;
use wakescope_core::explain::{
    Bound, Cause, CauseRow, ComponentTable, Components, Culprit, Edge, Evidence, Explanation,
    Frame, Function, Interference, Interrupted, Longest, Measured, NamedTask, NetOfSteal, Policy,
    SectionKind, SectionPlace, Sections, Share, Step, StepEvent, StepMode, Unsound, Variables,
    Within,
};
use wakescope_core::finding::{Finding, Severity, Validity};
use wakescope_core::run::{Episode, Run};

use crate::text::tests::run_of;

pub(super) fn distribution(samples: &[u64]) -> Distribution {
    Distribution { max_at_ns: Some(0), ..Distribution::of(samples.iter().copied()) }
}

pub(super) fn components(ns: [u64; 4]) -> Components {
    Components {
        irq_latency_ns: ns[0],
        handler_duration_ns: ns[1],
        sched_latency_ns: ns[2],
        sched_duration_ns: Some(ns[3]),
    }
}

/// Wakeups of 2.6 µs with one of these components among them.
pub(super) fn table(worst: [u64; 4]) -> ComponentTable {
    let one = |usual: u64, worst: u64| {
        distribution(&[vec![usual; 19_000], vec![usual * 3; 999], vec![worst]].concat())
    };
    ComponentTable {
        irq_latency: one(180, worst[0]),
        handler_duration: one(1_400, worst[1]),
        sched_latency: one(90, worst[2]),
        sched_duration: Some(one(1_100, worst[3])),
    }
}

pub(super) fn share(
    cause: Cause,
    ns: u64,
    culprit: &str,
    within: &str,
    evidence: Evidence,
) -> Share {
    let culprit = culprit_of(cause, culprit);
    Share { cause, ns, culprit, within: in_task(within), evidence, ..Share::default() }
}

/// What usually has this cause, of that name: `migration/0[19] fifo 99` for a task.
pub(crate) fn culprit_of(cause: Cause, name: &str) -> Culprit {
    match cause {
        _ if name.is_empty() || cause == Cause::Unexplained => Culprit::None,
        Cause::Irq => Culprit::interrupt(name),
        Cause::Softirq => Culprit::softirq(name),
        Cause::Steal => Culprit::Hypervisor,
        Cause::HigherPriorityTask | Cause::EqualOrLowerTask => {
            let (task, priority) = name.split_once(" fifo ").unwrap_or((name, ""));
            let priority = priority.parse().ok();
            let policy = if priority.is_some() { Policy::Fifo } else { Policy::Other };
            Culprit::Task(NamedTask { policy, priority, ..task_of(task) })
        }
        _ => Culprit::Function(function(name)),
    }
}

pub(crate) fn function(name: &str) -> Function {
    Function { name: name.into(), module: None }
}

pub(crate) fn named_task(comm: &str, pid: u32) -> NamedTask {
    NamedTask { comm: comm.into(), pid: Some(pid), ..NamedTask::default() }
}

/// Of `rm[412]`.
fn task_of(text: &str) -> NamedTask {
    let parts = text.strip_suffix(']').and_then(|text| text.split_once('['));
    let (comm, pid) = parts.unwrap_or((text, "0"));
    named_task(comm, pid.parse().unwrap())
}

/// Of `exit_mmap in rm[412]`.
fn in_task(text: &str) -> Within {
    let parts = text.split_once(" in ");
    let caller = parts.map(|(caller, _)| function(caller));
    let task = parts.map_or(text, |(_, task)| task);
    let task = Some(task).filter(|task| !task.is_empty()).map(task_of);
    Within { caller, task, ..Within::default() }
}

/// Of `function+0x10 [file]`; without `+`, of a file.
pub(super) fn frame(text: &str) -> Frame {
    let (place, file) = text.split_once(" [").unwrap_or((text, ""));
    let (name, offset) = place.split_once("+0x").unwrap();
    let offset = u64::from_str_radix(offset, 16).unwrap();
    let module = file.strip_suffix(']').map(str::to_owned);
    Frame { module, ..Frame::in_function(name, offset) }
}

pub(super) fn frames(texts: &[&str]) -> Vec<Frame> {
    texts.iter().map(|text| frame(text)).collect()
}

pub(super) fn cause(
    cause: Cause,
    culprit: &str,
    episodes: u64,
    worst_us: u64,
    total_us: u64,
) -> CauseRow {
    let culprit = culprit_of(cause, culprit);
    let (total_ns, worst_ns) = (total_us * 1_000, worst_us * 1_000);
    CauseRow { cause, culprit, episodes, total_ns, worst_ns, ..CauseRow::default() }
}

pub(super) fn step(at_ns: u64, depth: u32, event: StepEvent) -> Step {
    Step { at_ns, depth, event }
}

pub(super) fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

pub(super) fn episode(latency_ns: u64, blame: Vec<Share>, timeline: Vec<Step>) -> Episode {
    Episode {
        cpu: Some(0),
        expiry_ns: 6_200_000_000,
        wakeup_latency_ns: latency_ns,
        blame,
        timeline,
        ..Episode::default()
    }
}

/// A run whose worst wakeup waited for a driver with interrupts off.
pub(crate) fn serial() -> Run {
    let mut run = run_of(&[&[&[2_600; 19_999][..], &[238_000]].concat()]);
    let mut section = share(
        Cause::IrqOff,
        231_400,
        "uart_drain_fifo",
        "serial_release in logger[231]",
        Evidence::Stack,
    );
    section.frames = frames(&[
        "uart_drain_fifo+0x1b2",
        "_raw_spin_unlock_irqrestore+0x15",
        "serial_release+0x40",
        "tty_release+0x1f0",
        "__fput+0xe3",
        "task_work_run+0x59",
        "exit_to_user_mode_loop+0x120",
        "do_syscall_64+0x1a5",
        "entry_SYSCALL_64_after_hwframe+0x76",
    ]);
    let blame = vec![
        section,
        share(Cause::Scheduler, 3_500, "", "", Evidence::Edge),
        share(Cause::Irq, 3_100, "local_timer", "", Evidence::Edge),
    ];
    let name = || Some("local_timer".to_owned());
    let in_kernel = Interrupted {
        mode: StepMode::Kernel,
        task: named_task("logger", 231),
        ..Interrupted::default()
    };
    let timeline = vec![
        step(0, 0, StepEvent::TimerExpiry { cpu: None, interrupted: Some(in_kernel) }),
        step(231_400, 0, StepEvent::Interrupt { name: name() }),
        step(232_000, 1, StepEvent::Timer { name: "hrtimer_wakeup".into(), count: 1 }),
        step(234_500, 0, StepEvent::InterruptExit { name: name() }),
        step(235_100, 0, StepEvent::SchedEntry),
        step(238_000, 0, StepEvent::Runs { task: named_task("wakescope", 400), page_faults: 0 }),
    ];
    let parts = [231_400, 3_100, 600, 2_900];
    let mut worst = episode(238_000, blame, timeline);
    worst.components = Some(components(parts));
    run.worst = vec![worst];
    run.components = Some(table(parts));
    run.causes = vec![
        cause(Cause::IrqOff, "uart_drain_fifo", 24, 231, 4_100),
        cause(Cause::NoPreemptionPoint, "dir_scan_entries", 12, 71, 420),
        cause(Cause::Softirq, "NET_RX", 5, 58, 140),
        cause(Cause::Unexplained, "", 2, 6, 9),
    ];
    run.explanation = Some(Explanation {
        above_ns: 50_000,
        above: "50us".into(),
        wakeups: 20_000,
        late: 41,
        explained: 41,
        late_components: Some(components([4_150_000, 127_000, 270_000, 122_000])),
        records: 20_113,
        seen_with: names(&[
            "local_timer_entry",
            "irq_handler_entry",
            "softirq_entry",
            "nmi_handler",
            "sched_entry_tp",
            "sched_switch",
            "hrtimer_expire_entry",
        ]),
        not_seen: names(&["edges of sections with interrupts or preemption off"]),
        sections: Some(Sections {
            exact: false,
            irq_off: Some(run.worst[0].blame[0].clone()),
            preempt_off: None,
            measured: None,
        }),
        ..Explanation::default()
    });
    run
}

/// A kernel without preemption, and many causes.
pub(crate) fn crowded() -> Run {
    let mut run = serial();
    let mut rows: Vec<CauseRow> = (0..30)
        .map(|i| {
            cause(
                Cause::NoPreemptionPoint,
                &format!("function_{i}"),
                30 - i,
                400 - 9 * i,
                9_000 >> i,
            )
        })
        .collect();
    rows.swap(0, 7);
    run.causes = rows;
    let mut worst = share(
        Cause::NoPreemptionPoint,
        391_000,
        "shmem_undo_range",
        "exit_mmap in rm[412]",
        Evidence::Stack,
    );
    worst.frames = (0..20).map(|i| frame(&format!("function_of_the_kernel_{i}+0x{i}0"))).collect();
    let blame = vec![
        worst,
        share(Cause::HigherPriorityTask, 14_000, "migration/0[19] fifo 99", "", Evidence::Edge),
        share(Cause::Scheduler, 4_000, "", "", Evidence::Edge),
        share(Cause::Irq, 2_000, "local_timer", "", Evidence::Edge),
        share(Cause::IrqOff, 1_000, "", "", Evidence::Bound),
    ];
    run.worst.insert(
        0,
        episode(
            412_000,
            blame,
            vec![step(0, 0, StepEvent::TimerExpiry { cpu: None, interrupted: None })],
        ),
    );
    if let Some(explanation) = &mut run.explanation {
        (explanation.above, explanation.above_ns) = ("p99.9".into(), 31_200);
        explanation.sections = Some(Sections {
            exact: true,
            irq_off: Some(share(Cause::IrqOff, 12_000, "tick_sched_timer", "", Evidence::Edge)),
            preempt_off: Some(run.worst[0].blame[0].clone()),
            measured: None,
        });
    }
    run
}

/// A kernel that shows where sections begin and end.
pub(super) fn measured() -> Run {
    let known = |text: &str| (!text.is_empty()).then(|| frame(text));
    let edge = |place: &str, caller: &str| Edge { place: known(place), caller: known(caller) };
    let begin = || edge("_raw_spin_lock_irqsave+0x20", "uart_write+0x33");
    let end = || edge("_raw_spin_unlock_irqrestore+0x15", "uart_write+0x1b2");
    let mut run = serial();
    let Some(explanation) = &mut run.explanation else { unreachable!() };
    let irq_off = explanation.sections.take().and_then(|sections| sections.irq_off).unwrap();
    let longest = |begin, end| Longest {
        begin,
        end,
        task: Some(named_task("logger", 231)),
        frames: irq_off.frames.clone(),
    };
    let place = |begin, end, count, worst_ns| SectionPlace {
        begin,
        end,
        count,
        total_ns: count * worst_ns / 2,
        worst_ns,
    };
    let preempt_off = Share { cause: Cause::PreemptOff, ns: 46_000, ..irq_off.clone() };
    let exact = |share: &Share| Some(Share { evidence: Evidence::Edge, ..share.clone() });
    let schedule = || edge("schedule+0x2e", "");
    explanation.sections = Some(Sections {
        exact: true,
        irq_off: exact(&irq_off),
        preempt_off: exact(&preempt_off),
        measured: Some(Measured {
            irq_off: Some(SectionKind {
                lengths: distribution(
                    &[vec![400; 19_000], vec![9_000; 999], vec![231_400]].concat(),
                ),
                longest: Some(longest(begin(), end())),
                places: vec![
                    place(begin(), end(), 21, 231_400),
                    place(edge("do_idle+0x9", ""), edge("irqentry_exit+0x5", ""), 9_000, 900),
                ],
            }),
            preempt_off: Some(SectionKind {
                lengths: distribution(&[800, 46_000]),
                longest: Some(longest(begin(), end())),
                places: vec![place(begin(), end(), 2, 46_000)],
            }),
            scheduling: Some(SectionKind {
                lengths: distribution(&[1_800, 2_000]),
                longest: Some(longest(Edge::default(), schedule())),
                places: vec![place(Edge::default(), schedule(), 2, 2_000)],
            }),
            handlers: Some(SectionKind::default()),
            edges: 40_004,
            unpaired: 1,
            with_nmi: 2,
            ..Measured::default()
        }),
    });
    run
}

/// The worst wakeup has no explanation, another only a part of one.
pub(super) fn lossy() -> Run {
    let mut run = serial();
    run.worst.insert(0, episode(4_310_000, vec![], vec![]));
    let partly = vec![
        share(Cause::EqualOrLowerTask, 60_000, "make[77]", "", Evidence::Edge),
        share(Cause::Unexplained, 40_000, "", "", Evidence::Bound),
    ];
    run.worst.push(episode(120_000, partly, vec![]));
    run.validity = Validity::of(vec![Finding::new(
        "steal",
        Severity::Warning,
        "the hypervisor took 38 ms from these CPUs".into(),
        "measure on the bare machine",
    )]);
    let last = run.causes.len() - 1;
    run.causes[last] = cause(Cause::Unexplained, "", 3, 4_310, 4_319);
    if let Some(explanation) = &mut run.explanation {
        explanation.lost_records = 3;
        (explanation.not_followed, explanation.late_not_followed) = (2, 1);
        explanation.unexplained_ns = 4_310_000;
        explanation.explained = 40;
        explanation.late_components = None;
        explanation.sections = None;
    }
    run
}

/// The worst wakeup is explained, but two others were not followed.
pub(crate) fn not_followed() -> Run {
    let mut run = serial();
    run.worst.push(episode(180_000, vec![], vec![]));
    run.worst.push(episode(120_000, vec![], vec![]));
    let last = run.causes.len() - 1;
    run.causes[last] = cause(Cause::Unexplained, "", 4, 180, 309);
    let all: u64 = run.causes.iter().map(|row| row.total_ns).sum();
    #[allow(clippy::cast_precision_loss)]
    run.causes.iter_mut().for_each(|row| row.share = row.total_ns as f64 / all as f64);
    if let Some(explanation) = &mut run.explanation {
        (explanation.late, explanation.explained) = (43, 41);
        (explanation.not_followed, explanation.late_not_followed) = (2, 2);
        explanation.unexplained_ns = 300_000;
    }
    run
}

/// A guest whose latest wakeup was its hypervisor's, and another one a driver's.
pub(crate) fn guest() -> Run {
    let mut run = serial();
    let driver = Episode { expiry_ns: 7_000_000_000, ..run.worst[0].clone() };
    let blame = vec![
        share(Cause::Steal, 8_100_000, "hypervisor", "", Evidence::Bound),
        share(Cause::Scheduler, 30_000, "", "", Evidence::Edge),
    ];
    let stolen = Episode { stolen_ns: Some(8_070_000), ..episode(8_130_000, blame, vec![]) };
    run.worst = vec![stolen, driver.clone()];
    run.causes.insert(0, cause(Cause::Steal, "hypervisor", 30, 8_100, 91_000));
    if let Some(explanation) = &mut run.explanation {
        (explanation.above, explanation.above_ns) = ("p99.9".into(), 240_000);
    }
    run.net_of_steal = Some(NetOfSteal {
        above_ns: 50_000,
        above: "p99.9".into(),
        late: 41,
        explained: 41,
        late_not_followed: 0,
        unexplained_ns: 0,
        causes: vec![
            cause(Cause::IrqOff, "uart_drain_fifo", 24, 231, 4_100),
            cause(Cause::Steal, "hypervisor", 2, 30, 50),
            cause(Cause::Unexplained, "", 2, 6, 9),
        ],
        worst: vec![driver],
    });
    run
}

/// The bound of `serial`, with so many interrupts.
pub(super) fn bound(interrupts: u64, unsound: &[Unsound]) -> Bound {
    let interrupt = |i: u64| Interference {
        culprit: Culprit::interrupt(&format!("eth0-rx-{i}")),
        wcet_ns: 12_100 - i * 100,
        miat_ns: (i != 1).then_some(48_000),
        ..Interference::default()
    };
    let variables = Variables {
        delivery_ns: Some(600),
        poid_ns: Some(281_400),
        paie_ns: Some(900),
        psd_ns: Some(3_500),
        dst_ns: None,
        tracer_ns: None,
        interrupts: (0..interrupts).map(interrupt).collect(),
    };
    Bound {
        variables,
        interference_free_ns: 286_400,
        bound_ns: Some(312_000),
        unsound: unsound.to_vec(),
    }
}
