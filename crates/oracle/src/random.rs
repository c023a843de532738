//! Random scenarios.

use wakescope_core::random::Random;
use wakescope_model::scenario::{
    Arrivals, Costs, Count, Does, Group, IdleState, Interrupt, InterruptKind, Length, LockBreak,
    LockKind, Machine, Path, RtBudget, Scenario, ScenarioTask, Step, TaskPolicy,
};
use wakescope_model::{Image, Rules};

use crate::score::Score;
use crate::tracepoints::{Followed, SWITCHES, Shown};
use crate::trial::{Trial, trial};

/// What is different from one random scenario to another, and how it is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    /// Any scenario, whose probes are followed.
    Any,
    /// The same with each probe bound to a CPU of its own.
    Bound,
    /// The same with budgets that are used up often.
    Budgets,
    /// The same in guests that are often stopped, and have no clock of stolen time.
    Guests,
    /// The same where softirqs raise others, and themselves.
    Softirqs,
    /// Any scenario, of which all tasks are followed, as threads of others.
    Threads,
}

impl Mix {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Any, Self::Bound, Self::Budgets, Self::Guests, Self::Softirqs, Self::Threads];

    /// As it is asked for.
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Bound => "bound",
            Self::Budgets => "budgets",
            Self::Guests => "guests",
            Self::Softirqs => "softirqs",
            Self::Threads => "threads",
        }
    }

    /// The scenario of a seed.
    pub fn scenario(self, seed: u64) -> Scenario {
        let any = scenario(seed);
        match self {
            Self::Any | Self::Threads => any,
            Self::Bound => with_bound_probes(any),
            Self::Budgets => with_budgets(any, seed),
            Self::Guests => with_stops(any, seed),
            Self::Softirqs => with_raising(any, seed),
        }
    }

    fn followed(self) -> Followed {
        match self {
            Self::Threads => Followed::Threads,
            _ => Followed::Probes,
        }
    }
}

/// The scenario of a seed. It breaks no rule of the kernel, as far as that can be seen from its steps.
pub fn scenario(seed: u64) -> Scenario {
    let mut random = Random::new(seed);
    let events = random.below(3);
    Maker { random, functions: 0, events, in_softirq: false }.scenario(seed)
}

/// The same scenario with each probe bound to a CPU of its own.
fn with_bound_probes(mut scenario: Scenario) -> Scenario {
    let probes = scenario.tasks.iter_mut().filter(|task| matches!(task.does, Does::Probe { .. }));
    for (number, probe) in (0..).zip(probes) {
        probe.cpu = Some(number);
    }
    scenario
}

/// The same scenario with budgets that are used up often: one of real-time tasks where the seed is even,
/// else a quota of ordinary probes and half of the loads.
fn with_budgets(mut scenario: Scenario, seed: u64) -> Scenario {
    let mut random = Random::new(seed);
    let period_ns = 2_000_000 + random.below(20_000_000) as u64;
    let runtime_ns = period_ns * (20 + random.below(60) as u64) / 100;
    if seed % 2 == 0 {
        let fair_server = random.below(2) == 0;
        scenario.kernel.rt = Some(RtBudget { runtime_ns, period_ns, fair_server });
        return scenario;
    }
    let quota_ns = runtime_ns.max(1_000_000);
    let name = || "batch".to_owned();
    scenario.groups = vec![Group { name: name(), quota_ns, period_ns }];
    for task in &mut scenario.tasks {
        let is_probe = matches!(task.does, Does::Probe { .. });
        if is_probe {
            task.policy = TaskPolicy::Other(0);
        }
        task.group = (is_probe || random.below(2) == 0).then(name);
    }
    scenario
}

/// The same scenario in a guest that its hypervisor stops now and then, for up to some 50 ms.
fn with_stops(mut scenario: Scenario, seed: u64) -> Scenario {
    let mut random = Random::new(seed);
    let name = "hypervisor";
    scenario.interrupts.retain(|interrupt| interrupt.name != name);
    scenario.paths.retain(|path| path.name != name);
    let mut maker =
        Maker { random: Random::new(!seed), functions: 0, events: 0, in_softirq: false };
    for cpu in 0..scenario.machine.cpus {
        let ns = maker.magnitude(20_000, 40_000_000);
        let every = ns * 3 + 1_000_000 * (1 + random.below(20) as u64);
        let handler = format!("{name}/{cpu}");
        let steps = vec![Step::Compute(maker.length(ns))];
        scenario.paths.push(Path { name: handler.clone(), steps });
        scenario.interrupts.push(Interrupt {
            name: handler.clone(),
            kind: InterruptKind::Steal,
            arrivals: Some(Arrivals::Poisson(every)),
            cpu: Some(cpu),
            handler,
        });
    }
    scenario
}

/// The same scenario where each softirq raises one of them, in half of the times that it runs: so no row of them goes on
/// for long. A device raises the first one.
fn with_raising(mut scenario: Scenario, seed: u64) -> Scenario {
    let mut random = Random::new(seed);
    for number in SOFTIRQS {
        let name = softirq(number);
        for path in scenario.paths.iter_mut().filter(|path| path.name == name) {
            let raise = Step::RaiseSoftirq(SOFTIRQS[random.below(SOFTIRQS.len())]);
            path.steps.push(Step::Repeat(Count::Uniform(0, 1), vec![raise]));
        }
    }
    let name = "raises";
    let first = SOFTIRQS[random.below(SOFTIRQS.len())];
    scenario.paths.push(Path { name: name.into(), steps: vec![Step::RaiseSoftirq(first)] });
    scenario.interrupts.push(Interrupt {
        name: name.into(),
        kind: InterruptKind::Unthreaded,
        arrivals: Some(Arrivals::Poisson(200_000 + random.below(2_000_000) as u64)),
        cpu: None,
        handler: name.into(),
    });
    scenario
}

/// The score of a seed's scenario of this mix under these rules, over so many wakeups of probes. The seed
/// decides what happens, and what the kernel shows. A scenario that breaks a rule of the kernel is left out,
/// and counted.
///
/// # Panics
///
/// If the scenario cannot be compiled: its generator is wrong then.
pub fn score_of(mix: Mix, seed: u64, rules: Rules, wakeups: u64) -> Score {
    let mut random = Random::new(!seed);
    let usual = Shown {
        sched_entry: random.below(2) == 0,
        contention: random.below(4) != 0,
        steal_clock: mix != Mix::Guests,
        ..Shown::default()
    };
    // A real tracer loses events only beside storms of interrupts. Here it does in some kernels; some others
    // are debug kernels.
    let shown = match random.below(8) {
        0 => Shown { events: SWITCHES + 4 + random.below(24), ..usual },
        1 => Shown { irq_edges: true, ..usual },
        _ => usual,
    };
    let image = Image::new(&mix.scenario(seed), rules).expect("random scenarios can be compiled");
    let how =
        Trial { seed, wakeups, shown, followed: mix.followed(), least_late_ns: LEAST_LATE_NS };
    trial(&image, &how).unwrap_or(Score { broken: 1, ..Score::default() })
}

/// No wakeup is late below this, nanoseconds: an undisturbed one takes about 3,000.
const LEAST_LATE_NS: u64 = 10_000;

struct Maker {
    random: Random,
    functions: u32,
    /// How many events there are that loads wait for.
    events: usize,
    /// Its steps are a softirq's, which raises none: it might never end. See [`with_raising`].
    in_softirq: bool,
}

/// What steps may do where they stand.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// It is a task's, with preemption and interrupts on: it may sleep.
    may_sleep: bool,
    /// It is a handler's.
    in_handler: bool,
    /// Interrupts are off.
    irqs_off: bool,
    /// Only locks that spin in every model may be taken.
    raw_only: bool,
    /// Softirqs are off. RT takes a lock for that, whose place is before [`FIRST_OF_SOFTIRQS`].
    bh_off: bool,
    /// Locks below this number are held, or may be.
    locks_from: usize,
    /// How deep it is.
    depth: u32,
    /// How deep in loops.
    loops: u32,
}

/// Locks in the order in which they may be taken, with the kind that all users use.
const LOCKS: [(&str, LockKind); 6] = [
    ("mutex", LockKind::Mutex),
    ("dcache_lock", LockKind::Spin),
    ("tree_lock", LockKind::Spin),
    ("socket_lock", LockKind::SpinBh),
    ("queue_lock", LockKind::SpinIrq),
    ("base_lock", LockKind::RawIrq),
];
/// What a probe does before it responds, if it does anything.
const PROBE_PATH: &str = "response";

/// The softirqs that scenarios have.
const SOFTIRQS: [u8; 3] = [1, 3, 9];

/// The name of a softirq, and of what it does.
fn softirq(number: u8) -> String {
    format!("softirq{number}")
}

/// The name of an event.
fn event(number: usize) -> String {
    format!("event{number}")
}

/// The first that handlers of softirqs may take, and that of interrupts.
const FIRST_OF_SOFTIRQS: usize = 3;
const FIRST_OF_HANDLERS: usize = 4;

/// Whether softirqs may be disabled with the locks that are held: in one order with these.
fn may_disable_softirqs(place: Place) -> bool {
    place.bh_off || place.locks_from <= FIRST_OF_SOFTIRQS
}

impl Maker {
    /// A number below this limit.
    fn number<T: TryFrom<usize> + Default>(&mut self, limit: usize) -> T {
        T::try_from(self.random.below(limit)).unwrap_or_default()
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.random.below(100) < percent
    }

    /// A length of about so many nanoseconds.
    fn length(&mut self, ns: u64) -> Length {
        match self.random.below(4) {
            0 => Length::Fixed(ns),
            1 => Length::Uniform(ns / 2, ns * 3 / 2),
            2 => Length::Exponential(ns),
            _ => Length::Pareto { least: ns / 4 + 1, shape: 1.2, most: ns * 20 },
        }
    }

    /// One of these, each as likely as the next but for the order of magnitude.
    fn magnitude(&mut self, least: u64, most: u64) -> u64 {
        let span = (most as f64 / least as f64).ln();
        let drawn = least as f64 * (span * self.random.uniform()).exp();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        {
            drawn as u64
        }
    }

    fn scenario(&mut self, seed: u64) -> Scenario {
        let cpus = if self.chance(50) { 1 } else { 2 + self.number::<u32>(3) };
        let mut scenario = Scenario {
            name: format!("random-{seed}"),
            machine: self.machine(cpus),
            costs: self.costs(),
            ..Scenario::default()
        };
        self.probes(&mut scenario);
        self.loads(&mut scenario);
        self.interrupts(&mut scenario);
        self.budgets(&mut scenario);
        scenario
    }

    fn machine(&mut self, cpus: u32) -> Machine {
        let mut idle_states = Vec::new();
        if self.chance(60) {
            let state = |name: &str, exit_ns, residency_ns| IdleState {
                name: name.into(),
                exit_ns,
                residency_ns,
            };
            idle_states.push(state("C1", 1_000 + self.number::<u64>(1_000), 0));
            idle_states.push(state("C6", self.magnitude(20_000, 150_000), 200_000));
        }
        let tick_hz = [0, 100, 250, 1_000][self.random.below(4)];
        Machine { cpus, tick_hz, idle_states }
    }

    /// Real-time throttling, and a group with a quota. Periods are shorter than on machines, so that a short
    /// run has some.
    fn budgets(&mut self, scenario: &mut Scenario) {
        scenario.kernel.bh_lock = self.chance(50);
        if self.chance(20) {
            let period_ns = self.magnitude(2_000_000, 50_000_000);
            let runtime_ns = period_ns * (30 + self.number::<u64>(66)) / 100;
            let fair_server = self.chance(50);
            scenario.kernel.rt = Some(RtBudget { runtime_ns, period_ns, fair_server });
        }
        if self.chance(20) {
            let period_ns = self.magnitude(2_000_000, 50_000_000);
            let quota_ns = (period_ns * (10 + self.number::<u64>(90)) / 100).max(1_000_000);
            let name = || "batch".to_owned();
            scenario.groups.push(Group { name: name(), quota_ns, period_ns });
            for task in &mut scenario.tasks {
                task.group = self.chance(50).then(name);
            }
        }
    }

    fn costs(&mut self) -> Costs {
        if self.chance(50) {
            return Costs::default();
        }
        Costs {
            interrupt_entry: self.length(600),
            interrupt_exit: self.length(200),
            timer_function: self.length(400),
            tick: self.length(1_000),
            schedule: self.length(500),
            switch: self.length(700),
            return_to_user: self.length(300),
            ipi: self.length(400),
        }
    }

    fn policy(&mut self) -> TaskPolicy {
        match self.random.below(10) {
            0 => TaskPolicy::RoundRobin(1 + self.number::<u8>(98)),
            1 | 2 => TaskPolicy::Fifo(1 + self.number::<u8>(98)),
            3 => TaskPolicy::Other(self.number::<i8>(40) - 20),
            _ => TaskPolicy::Other(0),
        }
    }

    fn probes(&mut self, scenario: &mut Scenario) {
        let cpus = scenario.machine.cpus;
        for number in 0..1 + self.number::<u32>(cpus as usize) {
            let policy = match self.random.below(10) {
                0 => TaskPolicy::Other(0),
                1 => TaskPolicy::RoundRobin(50),
                _ => TaskPolicy::Fifo([80, 95, 40][self.random.below(3)]),
            };
            scenario.tasks.push(ScenarioTask {
                name: format!("probe/{number}"),
                policy,
                // One of any CPU may be woken on another than its timer expires on.
                cpu: (cpus == 1 || self.chance(75)).then_some(number),
                group: None,
                does: Does::Probe {
                    period_ps: self.magnitude(100_000_000, 1_000_000_000),
                    path: self.chance(15).then(|| PROBE_PATH.into()),
                },
            });
        }
        let ns = self.magnitude(500, 100_000);
        let fault = Step::PageFault(self.length(ns));
        let steps = vec![Step::Repeat(Count::Uniform(0, 1), vec![fault])];
        scenario.paths.push(Path { name: PROBE_PATH.into(), steps });
    }

    fn loads(&mut self, scenario: &mut Scenario) {
        let cpus = scenario.machine.cpus as usize;
        for number in 0..1 + self.random.below(3 * cpus) {
            let name = format!("load{number}");
            let policy = self.policy();
            let steps = self.load(policy);
            scenario.paths.push(Path { name: name.clone(), steps });
            let cpu = (cpus == 1 || self.chance(70)).then(|| self.number::<u32>(cpus));
            scenario.tasks.push(ScenarioTask {
                name: name.clone(),
                policy,
                cpu,
                group: None,
                does: Does::Path(name),
            });
        }
    }

    /// A program: its own code, system calls, and sleeps.
    fn load(&mut self, policy: TaskPolicy) -> Vec<Step> {
        let mut steps = Vec::new();
        for _ in 0..1 + self.random.below(3) {
            let ns = self.magnitude(2_000, 300_000);
            steps.push(Step::User(self.length(ns)));
            if self.chance(15) {
                steps.push(Step::PageFault(self.length(3_000)));
            }
            if self.events > 0 && self.chance(20) {
                steps.push(Step::Wait(self.event()));
            }
            if self.chance(80) {
                let call = self.system_call();
                steps.push(call);
            }
        }
        // A real-time task that never sleeps leaves nothing to the others.
        let is_realtime = !matches!(policy, TaskPolicy::Other(_));
        if is_realtime || self.chance(50) {
            let ns = self.magnitude(50_000, 5_000_000);
            steps.push(Step::Block { length: self.length(ns), interrupt: None });
        }
        steps.push(Step::Work);
        steps
    }

    /// One of the events.
    fn event(&mut self) -> String {
        event(self.random.below(self.events))
    }

    fn function(&mut self, steps: Vec<Step>) -> Step {
        self.functions += 1;
        Step::Call(format!("function_{}", self.functions), steps)
    }

    fn system_call(&mut self) -> Step {
        let place = Place {
            may_sleep: true,
            in_handler: false,
            irqs_off: false,
            raw_only: false,
            bh_off: false,
            locks_from: 0,
            depth: 0,
            loops: 0,
        };
        let steps = self.steps(place);
        self.function(steps)
    }

    fn steps(&mut self, place: Place) -> Vec<Step> {
        let mut steps = Vec::new();
        for _ in 0..1 + self.random.below(3) {
            steps.extend(self.step(place));
        }
        steps
    }

    fn compute(&mut self, place: Place) -> Step {
        let most = match (place.in_handler, place.irqs_off, place.loops) {
            (true, _, 0) => 20_000,
            (_, true, 0) => 80_000,
            (_, _, 0) => 300_000,
            _ => 3_000,
        };
        let ns = self.magnitude(300, most);
        Step::Compute(self.length(ns))
    }

    fn step(&mut self, place: Place) -> Vec<Step> {
        let inner = Place { depth: place.depth + 1, ..place };
        if place.depth >= 4 {
            return vec![self.compute(place)];
        }
        let atomic = Place { may_sleep: false, raw_only: true, ..inner };
        match self.random.below(16) {
            0 | 1 => {
                let steps = self.steps(inner);
                vec![self.function(steps)]
            }
            2 => self.locked(inner),
            3 => self.locked(inner),
            4 if !place.in_handler => {
                let mut steps = vec![Step::PreemptDisable];
                steps.extend(self.steps(atomic));
                steps.push(Step::PreemptEnable);
                steps
            }
            5 => {
                let off = Place { irqs_off: true, locks_from: FIRST_OF_HANDLERS, ..atomic };
                let off = Place { locks_from: off.locks_from.max(place.locks_from), ..off };
                let mut steps = vec![Step::IrqSave];
                steps.extend(self.steps(off));
                steps.push(Step::IrqRestore);
                steps
            }
            6 if !place.in_handler && !place.irqs_off && may_disable_softirqs(place) => {
                let mut steps = vec![Step::BhDisable];
                let locks_from = place.locks_from.max(FIRST_OF_SOFTIRQS);
                let off = Place { may_sleep: false, bh_off: true, locks_from, ..inner };
                steps.extend(self.steps(off));
                steps.push(Step::BhEnable);
                steps
            }
            7 if !place.in_handler => {
                let mut steps = vec![Step::RcuReadLock];
                let locks_from = place.locks_from.max(1);
                steps.extend(self.steps(Place { locks_from, ..atomic }));
                steps.push(Step::RcuReadUnlock);
                steps
            }
            8 | 9 if place.loops < 2 => {
                let count = 2 + self.number::<u32>(10);
                let steps = self.steps(Place { loops: place.loops + 1, ..inner });
                vec![Step::Repeat(Count::Uniform(1, count), steps)]
            }
            10 if place.may_sleep => vec![Step::CondResched],
            11 if place.may_sleep => vec![Step::PreemptionPoint],
            12 if place.may_sleep => {
                let ns = self.magnitude(5_000, 1_000_000);
                vec![Step::Block { length: self.length(ns), interrupt: None }]
            }
            14 if self.events > 0 => vec![Step::Wake(self.event())],
            13 if !self.in_softirq => vec![Step::RaiseSoftirq(SOFTIRQS[self.random.below(3)])],
            _ => vec![self.compute(place)],
        }
    }

    /// Steps with a lock held that may be taken here.
    fn locked(&mut self, place: Place) -> Vec<Step> {
        let may_sleep = place.may_sleep && !place.in_handler;
        let first = if may_sleep { place.locks_from } else { place.locks_from.max(1) };
        let left = LOCKS.len().saturating_sub(first);
        if left == 0 {
            return vec![self.compute(place)];
        }
        let number = first + self.random.below(left);
        let number = if place.raw_only { LOCKS.len() - 1 } else { number };
        let (name, kind) = LOCKS[number];
        let in_irqs_off = place.irqs_off && matches!(kind, LockKind::SpinBh);
        if in_irqs_off {
            return vec![self.compute(place)];
        }
        let irqs_off = matches!(kind, LockKind::SpinIrq | LockKind::RawIrq);
        let inside = Place {
            may_sleep: place.may_sleep && kind == LockKind::Mutex,
            raw_only: place.raw_only || kind == LockKind::RawIrq,
            irqs_off: place.irqs_off || irqs_off,
            bh_off: place.bh_off || kind == LockKind::SpinBh,
            locks_from: number + 1,
            ..place
        };
        let mut steps = vec![Step::Lock(kind, name.into())];
        if kind == LockKind::Spin && place.loops < 2 && self.chance(30) {
            let work = self.compute(Place { loops: 1, ..inside });
            let lock_break =
                LockBreak { lock: name.into(), every: 1 + self.number::<u32>(20), restart: false };
            let count = Count::Uniform(1, 30);
            steps.push(Step::Repeat(count, vec![work, Step::LockBreak(lock_break)]));
        } else {
            steps.extend(self.steps(inside));
        }
        steps.push(Step::Unlock(kind, name.into()));
        steps
    }

    fn interrupts(&mut self, scenario: &mut Scenario) {
        for number in SOFTIRQS {
            let name = softirq(number);
            let place = Place {
                may_sleep: false,
                in_handler: true,
                irqs_off: false,
                raw_only: true,
                bh_off: true,
                locks_from: FIRST_OF_SOFTIRQS,
                depth: 2,
                loops: 0,
            };
            self.in_softirq = true;
            let steps = self.steps(place);
            self.in_softirq = false;
            let steps = vec![self.function(steps)];
            scenario.paths.push(Path { name: name.clone(), steps });
            scenario.interrupts.push(Interrupt {
                name: name.clone(),
                kind: InterruptKind::Softirq(number),
                arrivals: None,
                cpu: None,
                handler: name,
            });
        }
        // Whoever waits is woken at last: by an interrupt, or on RT by its thread.
        for number in 0..self.events {
            let way = [self.length(300), self.length(300)];
            let [before, after] = way.map(Step::Compute);
            let steps = vec![before, Step::Wake(event(number)), after];
            self.arrives(scenario, &format!("sd{number}"), InterruptKind::Device, steps, 100_000);
        }
        for number in 0..self.random.below(3) {
            let handler = format!("eth{number}");
            let kind =
                if self.chance(70) { InterruptKind::Device } else { InterruptKind::Unthreaded };
            let place = Place {
                may_sleep: false,
                in_handler: true,
                irqs_off: true,
                raw_only: kind != InterruptKind::Device,
                bh_off: true,
                locks_from: FIRST_OF_HANDLERS,
                depth: 2,
                loops: 0,
            };
            let steps = self.steps(place);
            let mut steps = vec![self.function(steps)];
            if self.chance(60) {
                steps.push(Step::RaiseSoftirq(SOFTIRQS[self.random.below(3)]));
            }
            self.arrives(scenario, &handler, kind, steps, 50_000);
        }
        if self.chance(25) {
            let ns = self.magnitude(1_000, 30_000);
            let steps = vec![Step::Compute(self.length(ns))];
            self.arrives(scenario, "perf_event_nmi_handler", InterruptKind::Nmi, steps, 200_000);
        }
        if self.chance(25) {
            let ns = self.magnitude(5_000, 500_000);
            let steps = vec![Step::Compute(self.length(ns))];
            self.arrives(scenario, "hypervisor", InterruptKind::Steal, steps, 1_000_000);
        }
    }

    fn arrives(
        &mut self,
        scenario: &mut Scenario,
        name: &str,
        kind: InterruptKind,
        steps: Vec<Step>,
        least_ns: u64,
    ) {
        let every = self.magnitude(least_ns, 10_000_000);
        let arrivals = match self.random.below(3) {
            0 => Arrivals::Periodic(every),
            1 => Arrivals::Poisson(every),
            _ => Arrivals::Bursts { every_ns: every * 5, count: 5, gap_ns: every / 10 },
        };
        scenario.paths.push(Path { name: name.into(), steps });
        let cpus = scenario.machine.cpus as usize;
        let cpu = self.chance(60).then(|| self.number::<u32>(cpus));
        scenario.interrupts.push(Interrupt {
            name: name.into(),
            kind,
            arrivals: Some(arrivals),
            cpu,
            handler: name.into(),
        });
    }
}
