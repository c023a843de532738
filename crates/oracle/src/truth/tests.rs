use wakescope_model::simulation::{Sample, Until, Watch};
use wakescope_model::trace::Transition;
use wakescope_model::{Rules, Scenario, Simulation};

use super::*;

/// A probe that waits for a task of higher priority, and a device that interrupts that task all the time.
const STARVED: &str = r#"
schema = "wakescope.scenario/1"
name = "starved"
about = "a probe below a busy task"
machine = { cpus = 1 }
task = [
  { name = "probe", policy = "fifo:1", period = "1ms" },
  { name = "busy", policy = "fifo:2", path = "busy" },
]
interrupt = [
  { name = "nic", kind = "unthreaded", path = "nic", arrives = { periodic = "20us" } },
]

[path]
nic = [{ compute = "1us" }]
busy = [{ repeat = 1_000, do = [{ user = "1us" }, { user = "2us" }] }, { block = "10ms" }]
"#;

impl Watch for Witness<'_> {
    const FOLLOWS: bool = true;

    fn sample(&mut self, sample: Sample) {
        self.responded(sample);
    }

    fn armed(&mut self, task: TaskId, cpu: CpuId, expiry_ns: u64) {
        self.armed(task, cpu, expiry_ns);
    }

    fn ran(&mut self, cpu: CpuId, from_ns: u64, to_ns: u64, at: Running) {
        self.ran(cpu, from_ns, to_ns, at);
    }

    fn place(&mut self, cpu: CpuId, at_ns: u64, at: Running) {
        self.place(cpu, at_ns, at);
    }

    fn happened(&mut self, cpu: CpuId, at_ns: u64, what: Transition) {
        self.happened(cpu, at_ns, what);
    }
}

/// The late wakeups of 200 ms, of which about 14 wait for 3 ms.
fn witnessed(room: Room, look: impl FnOnce(Witness<'_>)) {
    let scenario = Scenario::read("starved.toml", STARVED, &|_, _| Err("no runs".into())).unwrap();
    let image = Image::new(&scenario, Rules::ALL[2]).unwrap();
    let witness =
        Witness { room, keep_ns: 1_000_000, ..Witness::new(&image, true, Followed::Probes) };
    let mut simulation = Simulation::new(&image, 1, witness);
    simulation.run_until(Until { samples: u64::MAX, ns: 200_000_000 }).unwrap();
    look(simulation.into_watch());
}

fn kept(witness: &Witness<'_>) -> usize {
    let open = witness.waiting.iter().flatten().map(Waiting::kept);
    let truths = witness.truths.iter().map(|truth| truth.stretches.len() + truth.places.len());
    open.chain(truths).sum()
}

#[test]
fn stretches_of_the_same_are_one_and_places_are_kept_once() {
    witnessed(Room::default(), |witness| {
        assert!(witness.truths.len() >= 10 && witness.faults == 0, "{}", witness.truths.len());
        for truth in &witness.truths {
            // An interrupt has its way in, its handler, its way out, and the task after it.
            let interrupts = usize::try_from(truth.latency_ns() / 20_000).unwrap();
            assert!(truth.stretches.len() < 5 * interrupts, "{}", truth.stretches.len());
            assert!(truth.places.len() < 10, "{:?}", truth.places);
        }
    });
}

#[test]
fn no_more_is_kept_than_there_is_room_for_and_nothing_of_what_has_none() {
    let all = Room::default().left;
    witnessed(Room::default(), |witness| {
        assert_eq!(witness.room.left + kept(&witness), all);
        let most = witness.truths.iter().map(|truth| truth.stretches.len()).max().unwrap();
        let count = witness.truths.len();
        for (left, most_of_one, want) in [(3 * most, all, 1..count), (all, most / 2, 0..1)] {
            witnessed(Room { left, most_of_one }, |witness| {
                assert!(want.contains(&witness.truths.len()), "{}", witness.truths.len());
                assert_eq!((witness.room.left + kept(&witness), witness.faults), (left, 0));
            });
        }
    });
    witnessed(Room::default(), |mut witness| {
        witness.retain(|_| false);
        assert_eq!(witness.room.left + kept(&witness), all);
        assert_eq!(witness.truths, []);
    });
}

/// The second task, in its own code.
fn at(stack: StackId) -> Running {
    Running {
        task: Some(TaskId(1)),
        prio: 97,
        kind: FrameKind::Task,
        stage: Stage::Code,
        stack,
        is_user: false,
        in_page_fault: false,
        count: 0,
        irqs_off: false,
        softirq: None,
        need_resched: NeedResched::No,
        spins_for: None,
    }
}

/// A tracer takes the stack of the code that an interrupt broke into. Code that lets a waiting interrupt in is broken
/// into where it does so, even if the wakeup is due only while the interrupt is handled, and the code goes on elsewhere.
#[test]
fn an_interrupt_was_seen_where_the_code_let_it_in() {
    let scenario = Scenario::read("starved.toml", STARVED, &|_, _| Err("no runs".into())).unwrap();
    let image = Image::new(&scenario, Rules::ALL[2]).unwrap();
    let (cpu, probe, [lets_in, goes_on]) = (CpuId(0), TaskId(0), [StackId(1), StackId(2)]);
    for (taken, want) in [(1_000, vec![lets_in, goes_on]), (1_001, vec![goes_on])] {
        let mut witness = Witness::new(&image, true, Followed::Probes);
        witness.armed(probe, cpu, 1_500);
        witness.place(cpu, 1_000, at(lets_in));
        witness.happened(cpu, 1_000, Transition::IrqsOn);
        witness.place(cpu, taken, at(goes_on));
        witness.happened(cpu, taken, Transition::Taken(SourceId(0)));
        witness.happened(cpu, 1_600, Transition::TimerBegin(probe));
        witness.ran(cpu, 1_500, 2_000, at(goes_on));
        let (expiry_ns, response_ns) = (1_500, 2_000);
        witness.responded(Sample { task: probe, expiry_ns, response_ns, missed: 0, cpu });
        assert_eq!(witness.truths[0].places, want);
    }
}

/// Its handler breaks into that place; what the task wakes later does not.
#[test]
fn where_the_code_let_an_interrupt_in_is_over_once_the_task_goes_on() {
    let scenario = Scenario::read("starved.toml", STARVED, &|_, _| Err("no runs".into())).unwrap();
    let image = Image::new(&scenario, Rules::ALL[2]).unwrap();
    let (cpu, woken, [lets_in, goes_on]) = (CpuId(0), TaskId(0), [StackId(1), StackId(2)]);
    let handler = Running { kind: FrameKind::Interrupt(SourceId(0)), ..at(goes_on) };
    for (by, over, want) in [
        (handler, 1_000, vec![lets_in, goes_on]),
        (at(goes_on), 1_000, vec![goes_on]),
        (at(goes_on), 1_500, vec![goes_on]),
        // The handler of a later interrupt, which nothing let in.
        (handler, 1_500, vec![goes_on]),
    ] {
        let mut witness = Witness::new(&image, true, Followed::Threads);
        witness.place(cpu, 1_000, at(lets_in));
        witness.happened(cpu, 1_000, Transition::IrqsOn);
        witness.place(cpu, 1_000, at(goes_on));
        witness.happened(cpu, 1_000, Transition::Taken(SourceId(0)));
        witness.ran(cpu, 1_000, over, handler);
        if over > 1_000 {
            witness.ran(cpu, over, 1_600, at(goes_on));
        }
        witness.wakes(cpu, 1_600, woken, by);
        witness.happened(cpu, 1_600, Transition::Woken { task: woken, on: cpu });
        witness.ran(cpu, 1_600, 2_000, at(goes_on));
        let switch = Transition::Switch { from: Some(TaskId(1)), preempted: true, to: Some(woken) };
        witness.happened(cpu, 2_000, switch);
        assert_eq!(witness.truths[0].places, want, "{by:?}");
    }
}

/// A CPU is called where a budget is refilled, and takes long to leave idle. A task that is woken there meanwhile
/// waits for that call.
#[test]
fn a_task_waits_for_the_call_that_its_cpu_had_before() {
    let scenario = STARVED.replace("cpus = 1", "cpus = 2");
    let scenario =
        Scenario::read("starved.toml", &scenario, &|_, _| Err("no runs".into())).unwrap();
    let image = Image::new(&scenario, Rules::ALL[2]).unwrap();
    let ([here, there], woken) = ([CpuId(0), CpuId(1)], TaskId(0));
    let (kind, stage) = (FrameKind::Interrupt(RESCHEDULE), Stage::LeavingIdle);
    let leaves_idle = Running { task: None, kind, stage, ..at(StackId(0)) };
    let [idle, called] = [Cause::IdleExit, Cause::RemoteWakeup].map(|cause| (cause, Who::Any));
    for (is_called, want) in [(true, vec![idle, called]), (false, vec![idle])] {
        let mut witness = Witness::new(&image, true, Followed::Threads);
        witness.happened(there, 900, Transition::NeedResched { lazy: false });
        if is_called {
            witness.happened(there, 1_000, Transition::Raised(RESCHEDULE));
        }
        witness.wakes(here, 1_600, woken, at(StackId(1)));
        witness.happened(here, 1_600, Transition::Woken { task: woken, on: there });
        witness.ran(there, 1_000, 2_000, leaves_idle);
        let switch = Transition::Switch { from: None, preempted: false, to: Some(woken) };
        witness.happened(there, 2_000, switch);
        assert_eq!(witness.truths[0].stretches[0].answers, want, "{is_called}");
    }
}
