//! What the programs make of the context that a wakeup begins or ends in, in the kernel. The test makes it up.

use std::error::Error;
use std::os::fd::AsFd;
use std::sync::LazyLock;

use aya::maps::Map;
use aya::programs::RawTracePoint;
use aya::{Btf, Ebpf, EbpfLoader};
use wakescope_sys::bpf::run_once;
use wakescope_sys::sched::{affinity, set_affinity};
use wakescope_sys::shared::Words;
use wakescope_testing::skip;

use compiled::compiled;

mod compiled;

/// Words that test and programs share.
const WORDS: usize = 64;

/// What takes seconds where tests are not optimised: the types of this kernel, and the programs.
static TYPES: LazyLock<Result<Btf, String>> =
    LazyLock::new(|| Btf::from_sys_fs().map_err(|why| why.to_string()));
static OBJECT: LazyLock<Vec<u8>> = LazyLock::new(|| compiled("contexts", &[]));

/// The place of a word that the kernel's variable stands for: `struct look` of contexts.bpf.c.
const REGISTERS: usize = 0;
const IS_STACK_USED: usize = 1;

struct Context {
    programs: Ebpf,
    words: Words,
}

impl Context {
    /// The programs, for a kernel that has these variables of each CPU, in these words.
    fn load(variables: &[(&str, usize)]) -> Result<Self, Box<dyn Error>> {
        let cpu = affinity()?[0];
        set_affinity(&[cpu])?;
        let types = TYPES.as_ref().map_err(String::as_str)?;
        let places: Vec<(&str, [i64; 2])> =
            variables.iter().map(|&(name, word)| (name, [8 * word as i64, 1])).collect();
        let mut loader = EbpfLoader::new();
        loader.btf(Some(types)).set_max_entries("cpus", cpu + 2);
        for (name, place) in &places {
            loader.set_global(name, place, true);
        }
        let programs = loader.load(&OBJECT)?;
        let words = match programs.map("words") {
            Some(Map::Array(data)) => Words::map(data.fd().as_fd(), WORDS)?,
            other => panic!("{other:?}"),
        };
        Ok(Self { programs, words })
    }

    /// The same for the test of that name, which is skipped where nothing can be loaded.
    fn of(test: &str, variables: &[(&str, usize)]) -> Option<Self> {
        Self::load(variables).map_err(|why| skip(test, &why.to_string())).ok()
    }

    /// Runs the program of that name once with these words, the first ones; what it made of them.
    fn run<const N: usize>(&mut self, name: &str, words: [u64; N]) -> [u64; N] {
        words.iter().enumerate().for_each(|(at, &word)| self.words.store(at, word));
        let program: &mut RawTracePoint =
            self.programs.program_mut(name).unwrap().try_into().unwrap();
        if program.fd().is_err() {
            program.load().unwrap_or_else(|why| panic!("{name}: {why:?}"));
        }
        assert_eq!(run_once(program.fd().unwrap().as_fd(), &[0]).unwrap(), 0);
        std::array::from_fn(|at| self.words.load(at))
    }
}

/// x86 keeps no registers of what irq_work interrupts. Of 155 wakeups by it above user code, all once said that kernel
/// code was interrupted, and each had waited for an empty stack.
#[test]
fn an_interrupt_without_registers_tells_by_its_stack_what_it_interrupted() {
    const NAME: &str = "an_interrupt_without_registers_tells_by_its_stack_what_it_interrupted";
    const UNKNOWN: u64 = 0;
    const USER: u64 = 1;
    const KERNEL: u64 = 2;
    let registers = ("irq_regs_place", REGISTERS);
    let stack = ("irq_stack_used_place", IS_STACK_USED);
    let check = |variables: &[_], cases: &[(u64, u64, (u64, u64))]| {
        let Some(mut context) = Context::of(NAME, variables) else { return };
        for &(irq_depth, is_stack_used, want) in cases {
            let [.., mode, has_stack] = context.run("look", [0, is_stack_used, irq_depth, 0, 0]);
            assert_eq!(
                (mode, has_stack),
                want,
                "{variables:?}, depth {irq_depth}, used {is_stack_used}"
            );
        }
    };
    check(&[registers, stack], &[(0, 0, (KERNEL, 1)), (1, 1, (KERNEL, 1)), (1, 0, (USER, 0))]);
    check(&[registers], &[(0, 0, (KERNEL, 1)), (1, 0, (UNKNOWN, 0))]);
}

/// A thread's waking on another CPU was once the first to ask for the run queue there, and got that of the waker's CPU.
#[test]
fn another_cpus_run_queue_is_not_this_ones() {
    const NAME: &str = "another_cpus_run_queue_is_not_this_ones";
    let Some(mut context) = Context::of(NAME, &[]) else { return };
    let [here, there] = context.run("find_runqueues", [0; 2]);
    assert!(here != 0 && there == 0, "{here:#x}, {there:#x}");
}

/// The kernel reports the handler's exit before it wakes the interrupt's thread. The task that was interrupted was once
/// called the waker of that thread.
#[test]
fn what_an_interrupt_wakes_after_its_handler_is_woken_by_no_task() {
    const NAME: &str = "what_an_interrupt_wakes_after_its_handler_is_woken_by_no_task";
    const TASK: u64 = 2;
    const INTERRUPT: u64 = 3;
    let Some(mut context) = Context::of(NAME, &[("preempt_count_place", 0)]) else { return };
    // arm64 has the count in the task, where the test cannot write it.
    if cfg!(target_arch = "aarch64") {
        return skip(NAME, "no count of each CPU");
    }
    for (preempt_count, irq_depth, want) in [
        (0, 0, TASK),
        // Preemption off, and softirqs off.
        (0x0201, 0, TASK),
        (0x1_0000, 0, INTERRUPT),
        (0x1_0001, 1, INTERRUPT),
        // Where the kernel's count is not known.
        (0, 1, INTERRUPT),
    ] {
        let [.., kind, _] = context.run("wake", [preempt_count, irq_depth, 0, 0, 0]);
        assert_eq!(kind, want, "{preempt_count:#x}, depth {irq_depth}");
    }
}

/// A softirq at the end of an interrupt once was the work of the task that the interrupt had broken into.
#[test]
fn a_softirq_that_came_is_told_from_one_that_a_task_runs_itself() {
    const NAME: &str = "a_softirq_that_came_is_told_from_one_that_a_task_runs_itself";
    let Some(mut context) = Context::of(NAME, &[("preempt_count_place", 0)]) else { return };
    if cfg!(target_arch = "aarch64") {
        return skip(NAME, "no count of each CPU");
    }
    for (preempt_count, is_idle, came) in [
        // Who runs its own softirqs, before another wakeup has shown how often preemption is off without that.
        (0x103, 0, 1),
        (2, 0, 0),
        (0x103, 0, 0),
        (0x102, 0, 1),
        (0, 0, 0),
        (0x100, 0, 1),
        // x86 has its request to reschedule here, inverted.
        (0x8000_0100, 0, 1),
        // In the task's own call, where preemption stays off until softirqs are done.
        (0x101, 0, 0),
        // Idle has it off, too.
        (0x101, 1, 1),
        // Softirqs are off.
        (0x200, 0, 0),
        (0x201, 0, 0),
        // An interrupt in a softirq.
        (0x1_0100, 0, 1),
    ] {
        let [.., is_so] = context.run("wake", [preempt_count, 0, is_idle, 0, 0]);
        assert_eq!(is_so, came, "{preempt_count:#x}, idle {is_idle}");
    }
}

/// The idle state of the CPU that a task ran on last once had 3.8 ms of its wait on a CPU that was busy.
#[test]
fn an_idle_state_holds_up_only_who_waited_for_that_cpu() {
    const NAME: &str = "an_idle_state_holds_up_only_who_waited_for_that_cpu";
    let Some(mut context) = Context::of(NAME, &[]) else { return };
    for (has_waited, want) in [(0, 3), (1, 0)] {
        let [.., idle] = context.run("choose", [has_waited, 3, 0]);
        assert_eq!(idle, want, "has waited: {has_waited}");
    }
}

/// Nobody waits for a record to come. To wake a reader, the kernel once raised some ten interrupts a second (irq_work) on
/// the CPUs that were measured.
#[test]
fn a_record_wakes_nobody() {
    const NAME: &str = "a_record_wakes_nobody";
    const NO_WAKEUP: u64 = 1;
    let Some(mut context) = Context::of(NAME, &[]) else { return };
    let [is_sent, submitted_with, ..] = context.run("hand_over", [0; 4]);
    assert_eq!((is_sent, submitted_with), (1, NO_WAKEUP));
}

#[test]
fn the_time_to_hand_a_record_over_is_that_of_the_cpu_that_does_so() {
    const NAME: &str = "the_time_to_hand_a_record_over_is_that_of_the_cpu_that_does_so";
    let Some(mut context) = Context::of(NAME, &[]) else { return };
    let [is_sent, _, there, here] = context.run("hand_over", [0; 4]);
    assert_eq!((is_sent, there, here), (1, 0, 1));
}

/// A soft timer wakes after its interrupt has ended: another one, which had come since, was once taken for it.
#[test]
fn a_timer_wakes_by_the_first_interrupt_after_it_was_due() {
    const NAME: &str = "a_timer_wakes_by_the_first_interrupt_after_it_was_due";
    const DUE: u64 = 100;
    const EVENTS: usize = 8;
    // Kinds of events, and vectors of interrupts: bpf/shared.h.
    let line = |entry, exit| [[1, entry, 0], [2, exit, 0]];
    let timer = |entry, exit| [[1, entry, 1], [2, exit, 1]];
    let Some(mut context) = Context::of(NAME, &[]) else { return };
    let mut check = |irq_depth, events: &[[u64; 3]], want: u64| {
        let entries = events.iter().filter(|[kind, ..]| *kind == 1);
        let last_entry = entries.map(|[_, at, _]| *at).next_back().unwrap_or(0);
        let mut words = [0; 5 + 3 * EVENTS];
        words[..3].copy_from_slice(&[irq_depth, last_entry, DUE]);
        words[4] = events.len() as u64;
        words[5..][..3 * events.len()].copy_from_slice(events.as_flattened());
        let [_, _, _, entry, ..] = context.run("find_entry", words);
        assert_eq!(entry, want, "{irq_depth} {events:?}");
    };
    let of = |all: &[[[u64; 3]; 2]]| all.as_flattened().to_vec();
    check(0, &of(&[timer(80, 90), timer(110, 120), line(150, 160)]), 110);
    check(0, &of(&[timer(80, 90), timer(100, 120), line(150, 160)]), 100);
    check(0, &of(&[timer(80, 90)]), 0);
    check(0, &[], 0);
    // A device's interrupt went on when it was due, or the timer's own.
    check(0, &of(&[line(90, 105), timer(106, 120), line(150, 160)]), 106);
    check(0, &of(&[timer(90, 105), line(150, 160)]), DUE);
    // In the interrupt itself there is no doubt.
    check(1, &[timer(110, 120)[0], timer(110, 120)[1], timer(150, 160)[0]], 150);
}

/// Hyper-V's interrupts of timers have no events: ticks of 28 ms were once one function of a timer.
#[test]
fn timers_in_a_row_are_one_event_but_not_those_of_several_interrupts() {
    const NAME: &str = "timers_in_a_row_are_one_event_but_not_those_of_several_interrupts";
    let Some(mut context) = Context::of(NAME, &[]) else { return };
    let mut check = |at: [u64; 8], want: (u64, u64)| {
        let mut words = [0; 10];
        words[..8].copy_from_slice(&at);
        let [.., events, count] = context.run("tell_timers", words);
        assert_eq!((events, count), want, "{at:?}");
    };
    let in_a_row = [100, 200, 300, 400, 500, 600, 700, 800];
    check(in_a_row, (2, 4));
    // The third one comes with the next tick.
    let tick = |at| if at < 500 { at } else { at + 4_000_000 };
    check(in_a_row.map(tick), (4, 2));
}

/// While a soft timer's function runs, interrupts come, and with real-time preemption other tasks run. What these wake is
/// woken by no timer, or by another one.
#[test]
fn a_timer_wakes_only_what_its_own_function_wakes() {
    const NAME: &str = "a_timer_wakes_only_what_its_own_function_wakes";
    const ASK: u64 = 0;
    const BEGIN: u64 = 1;
    const END: u64 = 2;
    let Some(mut context) = Context::of(NAME, &[]) else { return };
    // What happens, in how many interrupts, in which thread, when a timer was due, and which one runs then.
    let steps = [
        [ASK, 0, 7, 0, 0],
        [BEGIN, 0, 7, 100, 100],
        // A device's interrupt, and then a hard timer's.
        [ASK, 1, 7, 0, 0],
        [BEGIN, 1, 7, 200, 200],
        [ASK, 2, 7, 0, 200],
        [END, 1, 7, 0, 0],
        [ASK, 0, 7, 0, 100],
        // A task that takes over from the softirq's thread.
        [ASK, 0, 8, 0, 0],
        [ASK, 0, 7, 0, 100],
        [END, 0, 7, 0, 0],
    ];
    let mut words: [u64; 50] = std::array::from_fn(|at| steps[at / 5][at % 5]);
    words.chunks_mut(5).for_each(|step| step[4] = u64::MAX);
    let got = context.run("run_timers", words);
    assert_eq!(got.chunks(5).collect::<Vec<_>>(), steps);
}

#[test]
fn what_goes_on_when_a_part_is_handed_over_has_its_time_in_it() {
    const NAME: &str = "what_goes_on_when_a_part_is_handed_over_has_its_time_in_it";
    let Some(mut context) = Context::of(NAME, &[]) else { return };
    // A part until 1,500, of which 40 ns were in interrupts before and 30 ns in softirqs.
    for (irq_depth, irq_entry, softirq_entry, all, softirqs) in [
        (0, 1_200, 0, 70, 30),
        (1, 1_200, 0, 370, 30),
        (0, 900, 1_100, 470, 430),
        (1, 1_300, 1_100, 470, 230),
        // What came later is none of it.
        (1, 1_600, 1_550, 70, 30),
    ] {
        let words = [1_500, irq_depth, irq_entry, softirq_entry, 70, 30, 0, 0, 0, 0];
        let [.., in_interrupts, taken, in_softirqs, _] = context.run("fill_part", words);
        assert_eq!((in_interrupts, taken, in_softirqs), (all, all, softirqs), "{words:?}");
    }
}
