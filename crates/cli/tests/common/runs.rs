//! A run with everything in it, and one with nothing.

use wakescope_attribution::Premises;
use wakescope_core::audio::{Audio, AudioPlan};
use wakescope_core::distribution::Distribution;
use wakescope_core::explain::{
    self, Anew, Answer, By, Cause, CauseRow, Change, ComponentTable, Components, Culprit, Edge,
    Explanation, Frame, Function, Interference, Interrupted, Longest, Measured, NamedTask,
    NetOfSteal, OpenWait, Phase, Quota, Ranking, RankingRow, Schedstat, SectionKind, SectionPlace,
    Sections, Share, SourceLine, Step, StepEvent, StepMode, Subject, ThreadWaitRow, ThreadWaits,
    TrueCause, TrueShare, Truth, Unsound, Variables, WaitKind, WaitRow, Waits, Within, Work,
    WorstWait,
};
use wakescope_core::finding::{Finding, Severity, Validity};
use wakescope_core::host::{Clock, FairServerShare, Host, Idle, IdleState, KernelFiles, RtLimits};
use wakescope_core::interval_deviation::IntervalDeviation;
use wakescope_core::limit::{Judgement, Outcome};
use wakescope_core::line::{AnsweredBy, Attachment, EdgeWaits, Line};
use wakescope_core::maxima::Maxima;
use wakescope_core::plan::{
    Between, IdleStates, LinePlan, Placement, Plan, ProbePolicy, ScenarioPlan, Stimulus, Target,
    Waker,
};
use wakescope_core::preemption::{Evidence, Model, Preemption, Unread};
use wakescope_core::run::{
    Episode, KernelStamps, LoadResult, Overflow, Run, SCHEMA, Spin, State, Thread, TimeDomain,
};
use wakescope_core::sound_card::SoundCard;
use wakescope_core::source::{Omission, Quantity, Source};
use wakescope_core::stated::Stated;

/// A run with as little in it as can be.
pub(crate) fn empty_run() -> Run {
    Run {
        schema: SCHEMA.into(),
        id: "empty".into(),
        started: "2026-11-21T01:00:00Z".into(),
        duration_ns: 0,
        origin_ns: 0,
        time_domain: TimeDomain::Real,
        seed: 0,
        state: State::Running,
        host: Host::default(),
        plan: Plan::default(),
        validity: Validity::of(vec![]),
        limits: vec![],
        threads: vec![Thread::default()],
        load: vec![],
        worst: vec![],
        ..Default::default()
    }
}

/// A run in which every field is set, those included that explained runs add.
pub(crate) fn full_run() -> Run {
    let mut expiries = distribution(&[8_123, 8_123, 40_211, 5_040_211]);
    expiries.stated = Some(Stated {
        percentiles: [("p50".parse().unwrap(), 8_127)].into(),
        resolution_ns: 1_000,
        extremes_are_edges: true,
        rows_are_rounded: true,
    });
    let woken = distribution(&[8_123, 8_123, 5_040_211]);
    let by_logger =
        Share { culprit: Culprit::Task(logger()), ..share(Cause::EqualOrLowerTask, 40_211) };
    let episode = Episode {
        cpu: Some(1),
        expiry_ns: 5_000_000,
        wakeup_latency_ns: 5_040_211,
        missed: 1,
        components: Some(components([5_000_000, 40_000, 0, 211])),
        blame: vec![share(Cause::IrqOff, 5_000_000), by_logger],
        truth: vec![TrueShare {
            cause: Cause::Irq,
            ns: 5_040_211,
            culprit: Culprit::None,
            phase: Some(Phase::Delivery),
        }],
        stolen_ns: Some(5_000),
        timeline: steps(),
        other: Default::default(),
    };
    let mut run = Run {
        id: "2026-11-21T01-00-00-7f".into(),
        duration_ns: 10_000_000,
        origin_ns: 17,
        seed: u64::MAX,
        state: State::Complete,
        source: Some(Source {
            tool: "cyclictest".into(),
            version: Some("2.40".into()),
            format: "text histogram".into(),
            file: "ct.txt".into(),
            quantity: Quantity::WakeupLatency,
            omission: Omission::Skipped,
            resolution_ns: Some(1_000),
            unknown: vec!["plan.interval_ns".into()],
            approximate: vec!["sum_ns: the mean is given in whole µs".into()],
        }),
        host: full_host(),
        plan: full_plan(),
        card: Some(SoundCard { name: "Dummy PCM".into(), ..SoundCard::default() }),
        line: Some(Line {
            attachment: Attachment::Usb,
            baud: Some(115_200),
            transmission_ns: 173_611,
            latency_timer_ms: Some(16),
            receive_trigger_bytes: Some(8),
            answered_by: AnsweredBy::Responder,
            unanswered: 1,
            stray: 2,
            left_out: 3,
            own_wakeup: Some(EdgeWaits { count: 1, min_ns: 2_000, max_ns: 2_000, sum_ns: 2_000 }),
        }),
        validity: Validity::of(vec![Finding::new(
            "steal",
            Severity::Warning,
            "the hypervisor took 38 ms".into(),
            "measure on the bare machine, or compare kernels with `wakescope lab`",
        )]),
        limits: vec![Judgement {
            limit: "p99.9 ≤ 100 µs".into(),
            limit_ns: 100_000,
            observed_ns: Some(50_000),
            outcome: Outcome::Pass,
            reason: "because".into(),
        }],
        threads: vec![Thread {
            cpu: Some(1),
            missed: 1,
            lost: 2,
            migrated: 3,
            not_asleep: 4,
            skipped: 5,
            due_uncertainty_ns: 800,
            page_faults: 4,
            spin: Some(Spin { loops: 400_000_000, observed_ns: 10_000_000_000 }),
            kernel_stamps: Some(KernelStamps { wakeups: 9_980, ..KernelStamps::default() }),
            woken,
            expiries,
            interval_deviation: Some(IntervalDeviation {
                longer: distribution(&[1, 2, 3_000]),
                shorter: distribution(&[7, 900]),
            }),
            maxima: Some(Maxima { slot_ns: 1 << 20, max_ns: vec![Some(5_040_211), None] }),
            audio: Some(audio()),
            overflow: Some(Overflow { from_ns: 8_000, count: 1 }),
        }],
        load: vec![LoadResult {
            name: "find".into(),
            work: 81_234,
            incomplete: true,
            unit: "files".into(),
            per_second: 8_123.4,
            before_per_second: Some(9_000.5),
            before_steady: Some(true),
            alive: true,
            fault: "none".into(),
            last_words: String::new(),
            not_saved: None,
            window_ns: 0,
            stall: Default::default(),
        }],
        worst: vec![episode.clone()],
        explanation: Some(full_explanation()),
        components: Some(ComponentTable {
            irq_latency: distribution(&[1, 2, 3_000]),
            handler_duration: distribution(&[1, 2, 3]),
            sched_latency: distribution(&[0, 0, 0]),
            sched_duration: Some(distribution(&[211, 211, 300])),
        }),
        causes: causes(),
        net_of_steal: Some(NetOfSteal {
            above_ns: 40_000,
            above: "p99.9".into(),
            late: 3,
            explained: 2,
            late_not_followed: 1,
            unexplained_ns: 50_000,
            causes: causes(),
            worst: vec![episode],
        }),
        ranking: Some(ranking()),
        ..empty_run()
    };
    run.summarize();
    run.summary.percentiles_at_most = [("p99".into(), 5_040_211)].into();
    run
}

fn components(ns: [u64; 4]) -> Components {
    Components {
        irq_latency_ns: ns[0],
        handler_duration_ns: ns[1],
        sched_latency_ns: ns[2],
        sched_duration_ns: Some(ns[3]),
    }
}

/// A place of the kernel, `function+0x10`, with lines of source.
pub(crate) fn frame(function: &str, offset: u64, module: Option<&str>) -> Frame {
    Frame {
        module: module.map(str::to_owned),
        file: Some("drivers/tty/serial/uart.c".into()),
        line: 912,
        inlined: vec![SourceLine {
            function: "readl".into(),
            file: "include/asm-generic/io.h".into(),
            line: 214,
        }],
        ..Frame::in_function(function, offset)
    }
}

fn function(name: &str) -> Function {
    Function { name: name.into(), module: Some("serial".into()) }
}

fn logger() -> NamedTask {
    let (comm, pid) = ("logger".into(), Some(231));
    NamedTask { comm, pid, policy: explain::Policy::Fifo, priority: Some(95) }
}

fn share(cause: Cause, ns: u64) -> Share {
    Share {
        cause,
        ns,
        culprit: Culprit::Function(function("uart_drain_fifo")),
        phase: Some(Phase::Delivery),
        from_cpu: Some(1),
        within: Within {
            caller: Some(function("serial_release")),
            syscall: Some("close".into()),
            softirq: Some("TIMER".into()),
            interrupt: Some("local_timer".into()),
            task: Some(logger()),
        },
        waiting_for_lock: true,
        evidence: explain::Evidence::Stack,
        gap: Some(explain::Gap::LostEvents),
        frames: vec![frame("uart_drain_fifo", 0x1b2, Some("serial"))],
        given_up_at: vec![frame("__cond_resched", 0x1a, None), Frame::default()],
        user_stack: vec![Frame {
            module: Some("logger".into()),
            offset: 0x1c20,
            ..Frame::default()
        }],
    }
}

/// A step of each kind.
fn steps() -> Vec<Step> {
    let interrupted = || {
        let (idle_state, softirq) = (Some("C6".into()), Some("RCU".into()));
        Some(Interrupted { mode: StepMode::Kernel, task: logger(), idle_state, softirq })
    };
    let name = || Some("local_timer".to_owned());
    let (by, cpu, in_interrupt) = (Some(logger()), Some(2), true);
    let all = [
        StepEvent::TimerExpiry { cpu, interrupted: interrupted() },
        StepEvent::TimerExpiry { cpu: None, interrupted: None },
        StepEvent::NotAsleep { task: logger(), interrupted: interrupted() },
        StepEvent::MadeReady { by, cpu, in_interrupt, interrupted: interrupted() },
        StepEvent::MadeReady { by: None, cpu: None, in_interrupt: false, interrupted: None },
        StepEvent::Missing { count: 3 },
        StepEvent::Interrupt { name: name() },
        StepEvent::Interrupt { name: None },
        StepEvent::Timer { name: "hrtimer_wakeup".into(), count: 1 },
        StepEvent::InterruptExit { name: name() },
        StepEvent::InterruptExit { name: None },
        StepEvent::Softirq { name: "RCU".into() },
        StepEvent::SoftirqExit { name: "RCU".into() },
        StepEvent::Nmi { name: "watchdog".into(), ns: 1_500 },
        StepEvent::Tracer { ns: 40_000 },
        StepEvent::LockWait,
        StepEvent::LockAcquired,
        StepEvent::LeftOut { count: 967 },
        StepEvent::SchedEntry,
        StepEvent::Switch { from: Some(logger()), to: logger() },
        StepEvent::Switch { from: None, to: logger() },
        StepEvent::Runs { task: logger(), page_faults: 2 },
    ];
    all.map(|event| Step { at_ns: 0, depth: 1, event }).into()
}

/// A row of each kind of culprit.
fn causes() -> Vec<CauseRow> {
    let task = NamedTask { pid: None, ..logger() };
    let unknown = NamedTask { policy: explain::Policy::Unknown(9), priority: None, ..task.clone() };
    let culprits = [
        Culprit::Function(function("shmem_undo_range")),
        Culprit::Task(task),
        Culprit::Task(unknown),
        Culprit::interrupt("eth0"),
        Culprit::timer("hrtimer_wakeup"),
        Culprit::softirq("NET_RX"),
        Culprit::nmi("watchdog"),
        Culprit::idle("C6"),
        Culprit::Hypervisor,
        Culprit::Tracer,
        Culprit::None,
    ];
    let share = 1.0 / culprits.len() as f64;
    let row = |culprit| CauseRow {
        cause: Cause::NoPreemptionPoint,
        culprit,
        phase: Some(Phase::ReturnFromInterrupt),
        from_cpu: Some(1),
        others: true,
        episodes: 12,
        total_ns: 8_000,
        worst_ns: 900,
        share,
    };
    culprits.map(row).into()
}

/// A row of each kind of subject.
fn ranking() -> Ranking {
    let subjects = [
        Subject::Function(function("shmem_undo_range")),
        Subject::Module { name: Some("ext4".into()) },
        Subject::Module { name: None },
        Subject::Task(logger()),
        Subject::Cause { cause: Cause::Steal },
        Subject::Others,
    ];
    let share = 1.0 / subjects.len() as f64;
    let row = |subject| RankingRow { subject, episodes: 12, total_ns: 8_000, worst_ns: 900, share };
    Ranking { by: By::Pid, wakeups: 3, complete: false, rows: subjects.map(row).into() }
}

fn full_explanation() -> Explanation {
    Explanation {
        above_ns: 50_000,
        above: "50us".into(),
        wakeups: 3,
        not_followed: 1,
        late: 2,
        explained: 1,
        late_not_followed: 1,
        unexplained_ns: 5_000_000,
        one_in: Some(2),
        late_components: Some(components([5_000_000, 40_000, 0, 211])),
        stored_episodes: Some(1),
        anew: Some(full_anew()),
        records: 20_113,
        lost_records: 7,
        seen_with: vec!["sched_switch".into()],
        not_seen: vec!["edges of irq-off sections".into()],
        build_id: Some("01ab".into()),
        module_build_ids: [("serial".into(), "02cd".into())].into(),
        sections: Some(Sections {
            exact: false,
            irq_off: Some(share(Cause::IrqOff, 5_000_000)),
            preempt_off: None,
            measured: Some(measured()),
        }),
        bound: Some(full_bound()),
        waits: Some(full_waits()),
        truth: Some(Truth {
            wakeups: 1,
            right: 1,
            causes: vec![TrueCause { cause: Cause::IrqOff, ns: 5_000, right_ns: 4_000 }],
            ..Truth::default()
        }),
    }
}

fn full_waits() -> Waits {
    let task = || NamedTask { comm: "worker".into(), pid: Some(1_240), ..NamedTask::default() };
    let row = |kind| WaitRow {
        kind,
        count: 63,
        sum_ns: 6_300_000_000,
        throttled_ns: 6_290_000_000,
        steal_ns: 1_000,
        worst: Some(WorstWait {
            ns: 92_000_000,
            at_ns: 1_000_000_000,
            cpu: 1,
            task: task(),
            cause: Cause::HigherPriorityTask,
            culprit: Culprit::Task(task()),
            throttled_ns: 0,
            steal_ns: 1_000,
        }),
    };
    let kinds = WaitKind::ALL.map(|kind| ThreadWaitRow {
        kind,
        count: 63,
        sum_ns: 6_300_000_000,
        worst_ns: 92_000_000,
    });
    Waits {
        kinds: WaitKind::ALL.map(row).into(),
        threads: vec![ThreadWaits {
            task: task(),
            sum_ns: 25_200_000_000,
            run_delay_ns: Some(25_200_000_000),
            kinds: kinds.into(),
        }],
        more_threads: 2,
        more_threads_ns: 700,
        begun: 255,
        open: 1,
        open_ns: 40_000_000,
        throughout: 1,
        longest_open: Some(OpenWait { ns: 7_000_000_000, at_ns: 0, task: task() }),
        ends_missed: 3,
        begins_missed: 1,
        begins_missed_ns: 90_000,
        not_followed_ns: 1_200_000,
        broken: 2,
        no_room: 1,
        schedstat: Some(Schedstat {
            threads: 3,
            differing: 1,
            sum_ns: 25_200_000_700,
            run_delay_ns: 25_200_000_000,
            not_counted_ns: 700,
            by_its_clock_ns: 25_200_000_000,
            asleep_ns: 3_000,
        }),
        quota: Some(Quota {
            cgroup: "/system.slice/worker.service".into(),
            quota_ns: 10_000_000,
            period_ns: 100_000_000,
        }),
    }
}

fn full_anew() -> Anew {
    let before = Answer {
        cause: Cause::RemoteWakeup,
        culprit: Culprit::None,
        phase: Some(Phase::Switch),
        from_cpu: Some(3),
    };
    let after = Answer { culprit: Culprit::Task(logger()), ..Answer::default() };
    let change = Change { before, after, episodes: 1, ns: 40_211 };
    Anew {
        episodes: 1,
        changed: 1,
        changed_net_of_steal: 1,
        damaged_lines: 2,
        excess_ns: 0,
        changes: vec![change],
    }
}

fn full_bound() -> explain::Bound {
    let mut bound = wakescope_attribution::bound(
        &Variables {
            delivery_ns: Some(600),
            poid_ns: Some(20_000),
            paie_ns: None,
            psd_ns: None,
            dst_ns: None,
            tracer_ns: Some(4_000),
            interrupts: vec![Interference {
                culprit: Culprit::interrupt("local_timer"),
                wcet_ns: 3_000,
                miat_ns: Some(10_000),
                spans_ns: vec![30_000],
                work: vec![Work { within_ns: 16_384, most_ns: 4_000 }],
            }],
        },
        &Premises::default(),
    );
    bound.unsound.push(Unsound::Exceeded { cause: Some(Cause::Steal) });
    bound
}

fn measured() -> Measured {
    let edge = || Edge {
        place: Some(frame("uart_write", 0x33, None)),
        caller: Some(frame("tty_write", 0x40, None)),
    };
    let kind = SectionKind {
        lengths: distribution(&[300, 5_000_000]),
        longest: Some(Longest {
            begin: edge(),
            end: edge(),
            task: Some(logger()),
            frames: vec![frame("uart_write", 0x1b2, None)],
        }),
        places: vec![SectionPlace {
            begin: edge(),
            end: edge(),
            count: 2,
            total_ns: 5_000_300,
            worst_ns: 5_000_000,
        }],
    };
    Measured {
        irq_off: Some(kind.clone()),
        preempt_off: Some(kind.clone()),
        scheduling: Some(kind.clone()),
        handlers: Some(kind),
        either_ns: Some(6_000_000),
        either_scheduling_ns: Some(4_000),
        edges: 16,
        unpaired: 1,
        with_nmi: 2,
        no_room: 3,
    }
}

fn full_host() -> Host {
    Host {
        release: "6.12.95".into(),
        version: "#1 SMP PREEMPT_DYNAMIC".into(),
        arch: "x86_64".into(),
        preemption: Preemption {
            model: Model::Voluntary,
            because: "the build default".into(),
            evidence: vec![Evidence { source: "/proc/config.gz".into(), says: "voluntary".into() }],
            conflicts: vec!["preempt=full is ignored".into()],
            unread: vec![Unread { source: "/dev/kmsg".into(), why: "permission denied".into() }],
        },
        cpu_model: Some("Example 9000".into()),
        cpus_online: vec![0, 1, 2],
        cpus_allowed: vec![0, 1],
        cpus_isolated: vec![1],
        cpus_nohz_full: vec![1],
        clock: Clock { source: "tsc".into(), resolution_ns: 1, read_cost_ns: 21 },
        cmdline: "root=/dev/vda".into(),
        idle: Idle {
            driver: Some("intel_idle".into()),
            governor: Some("menu".into()),
            states: vec![IdleState {
                name: "C6".into(),
                exit_latency_ns: 133_000,
                disabled: false,
            }],
        },
        governors: vec!["performance".into()],
        sched_ext: Some("simple".into()),
        rt: RtLimits {
            runtime_ns: Some(950_000_000),
            period_ns: Some(1_000_000_000),
            fair_server: Some(true),
            fair_server_share: Some(FairServerShare::DEFAULT),
            group_scheduling: Some(false),
            group_runtime_ns: Some(0),
            priority_limit: Some(99),
            nice_capability: Some(true),
        },
        hypervisor: Some("KVM".into()),
        microcode: Some("0x2b".into()),
        unreadable: vec![KernelFiles::ProcSys],
    }
}

fn full_plan() -> Plan {
    Plan {
        stimulus: Stimulus::Timer,
        target: Target::Probes,
        interval_ns: 1_000_000,
        duration_ns: Some(10_000_000_000),
        samples: Some(10_000),
        policy: ProbePolicy::Fifo,
        priority: Some(90),
        runtime_ns: Some(1_024),
        policy_required: true,
        waker: Some(Waker {
            placement: Placement::CrossCpu,
            cpus: vec![1],
            between: Between::Processes,
            ..Waker::of_probe(Some(90))
        }),
        line: Some(LinePlan {
            device: "/dev/ttyUSB0".into(),
            baud: 115_200,
            answers_on: Some("/dev/ttyUSB1".into()),
        }),
        audio: Some(AudioPlan {
            pcm: Some("hw:0,0".parse().unwrap()),
            ..AudioPlan::usual(2_900_000)
        }),
        gap_from_ns: Some(1_000),
        cpus: vec![1],
        load: vec!["find".into(), "exec:make".into()],
        load_marks: vec![String::new(), "0123456789abcdef".into()],
        scenario: Some(ScenarioPlan {
            name: "prune".into(),
            checksum: "0123456789abcdef".into(),
            rules: "both".into(),
        }),
        warmup_ns: 500_000_000,
        idle_states: IdleStates::Shallow,
        worst: 10,
        fail_above: vec!["p99.9=100us".into()],
        save_samples: true,
    }
}

fn audio() -> Audio {
    let maxima = Maxima { slot_ns: 1 << 20, max_ns: vec![Some(2_900_000), None] };
    Audio {
        overruns: 1,
        silent: 2,
        cycles: distribution(&[2_900_000, 9_900_000]),
        cycles_within_1ms: 1,
        cycles_within_2ms: 1,
        compute: distribution(&[2_320_000, 2_320_000, 2_500_000]),
        compute_within_100us: 2,
        compute_within_200us: 3,
        cycle_maxima: maxima.clone(),
        compute_maxima: maxima,
    }
}

/// A target of each kind.
pub(crate) fn targets() -> [Target; 8] {
    [
        Target::Probes,
        Target::Process { pid: 4_711 },
        Target::Thread { tid: 4_712 },
        Target::Comm { comm: "jackd".into() },
        Target::Cgroup { path: "/sys/fs/cgroup/audio".into() },
        Target::Tasks { count: 12, latest: "sleep:27484".into() },
        Target::Program { name: "schbench".into() },
        Target::Unknown,
    ]
}

fn distribution(values: &[u64]) -> Distribution {
    Distribution { max_at_ns: Some(5_000_000), ..Distribution::of(values.iter().copied()) }
}
