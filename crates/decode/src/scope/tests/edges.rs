//! Edges in the stream.

use std::sync::OnceLock;

use proptest::collection::vec;
use proptest::prelude::*;
use wakescope_core::explain::{Policy, Task};
use wakescope_core::scope::edges::{AskKind, EdgeKind, Edges, PreemptCount, State, TaskId, WayIn};
use wakescope_testing::fuzz;

use super::{CALLER, Decoded, ENTRIES, Form, LOCK, UNLOCK, WELL, decode, memory, record, stream};
use crate::scope::{Kernel, ScopeError};

/// An edge after so many more instructions, of a kind, with a number.
type Drawn = (u64, u64, u64);

/// Edges from `count` on, a record for each of `batches`.
fn records(count: u64, batches: &[&[Drawn]]) -> Vec<u64> {
    let mut count = count;
    let mut all = Vec::new();
    for batch in batches {
        let mut words = vec![count];
        for (number, &(since, kind, value)) in batch.iter().enumerate() {
            // The first of a record counts from itself.
            let since = if number == 0 { 0 } else { since };
            count += since;
            let place = (LOCK & 0xffff_ffff) | (CALLER & 0xffff_ffff) << 32;
            words.extend([kind | since << 8 | value << 32, place]);
        }
        all.extend(record(10, &words));
        count += 1_000;
    }
    all
}

fn task(pid: u64, name: &[u8; 16]) -> Vec<u64> {
    let name = |at: usize| u64::from_le_bytes(name[at..at + 8].try_into().unwrap());
    // SCHED_FIFO, with the kernel's priority 4.
    record(11, &[pid, 4 | 1 << 32, name(0), name(8)])
}

/// The end of a stream with so many edges and tasks.
fn end(edges: u64, lost: u64, tasks: u64) -> Vec<u64> {
    let mut end = WELL;
    end[14..17].copy_from_slice(&[edges, lost, tasks]);
    record(5, &end)
}

fn kernel() -> &'static Kernel {
    static KERNEL: OnceLock<Kernel> = OnceLock::new();
    KERNEL.get_or_init(|| Kernel::read(&memory(Form::Before)).unwrap())
}

fn read(words: &[u64]) -> Result<Option<Edges>, ScopeError> {
    decode(&stream(words), kernel()).map(|Decoded { edges, .. }| edges)
}

pub(super) fn whole() -> Vec<u64> {
    let batches: [&[Drawn]; 2] = [
        &[(0, 1, 0), (40, 2, 0), (5, 3, 0x8000_0101), (1, 8, 3)],
        &[
            (0, 9, 2),
            (7, 10, 0),
            (9, 11, 2),
            (1, 7, 1),
            (0, 13, 0),
            (1, 14, 0),
            (1, 14, 1),
            (1, 14, 2),
            (1, 14, 3),
        ],
    ];
    [
        task(7, b"find\0..........."),
        record(9, &[150, 1, 0x8000_0000, 0, 1]),
        task(9, b"probe of 16 byte"),
        records(150, &batches),
        end(13, 0, 2),
    ]
    .concat()
}

#[test]
fn edges_are_read_with_their_times_and_names() {
    let edges = read(&whole()).unwrap().unwrap();
    let start = State { irqs_off: true, task: Some(TaskId(0)), ..State::default() };
    assert_eq!(
        (edges.start, edges.process_ns, edges.window_ns.clone()),
        (start, 50, 150..10_001_050)
    );
    assert_eq!((edges.measured_until_ns, edges.knows_asks), (1_050, true));
    let scope = decode(&stream(&whole()), kernel()).unwrap().scope;
    assert_eq!([edges.measured_ns(), scope.window_ns], [900; 2], "as sections and as a course");
    let named = |pid, comm: &str| Task { pid, comm: comm.into(), policy: Policy::Fifo, prio: 4 };
    assert_eq!(edges.tasks, [named(7, "find"), named(9, "probe of 16 byte")]);
    let told: Vec<(u64, EdgeKind)> =
        edges.edges.iter().map(|edge| (edge.at_ns, edge.what)).collect();
    // From 200 instructions on, the clock is 3 ns behind. Later it was idle for 500 ns.
    let want = [
        (150, EdgeKind::IrqsOff),
        (190, EdgeKind::IrqsOn),
        (195, EdgeKind::PreemptCount(PreemptCount(0x8000_0101))),
        (196, EdgeKind::Softirq(3)),
        (1_693, EdgeKind::Wake(TaskId(1))),
        (1_700, EdgeKind::Schedule),
        (1_709, EdgeKind::Switch(TaskId(1))),
        (1_710, EdgeKind::Leave { to_user: true }),
        (1_710, EdgeKind::UserClock),
        (1_711, EdgeKind::Ask(AskKind::Either)),
        (1_712, EdgeKind::Ask(AskKind::CondResched)),
        (1_713, EdgeKind::Ask(AskKind::MightResched)),
        (1_714, EdgeKind::Ask(AskKind::NeedResched)),
    ];
    assert_eq!(told, want);
    let first = &edges.edges[0];
    assert_eq!(
        [first.function, first.caller].map(|id| edges.function(id)),
        [Some("lock"), Some("lock")]
    );
    assert_eq!(edges.function(edges.edges[8].function), None, "of a program");
    // What an interrupt came into is the very place, and not what was called.
    let entered = [150, 4, (ENTRIES & 0xffff_ffff) | UNLOCK << 32];
    let words = [record(9, &[150, 0, 0, 0, 0]), record(10, &entered), end(1, 0, 0)].concat();
    let edges = read(&words).unwrap().unwrap();
    let entry = edges.edges[0];
    assert_eq!(entry.what, EdgeKind::Enter { way: WayIn::Interrupt, from_user: false });
    assert_eq!(edges.function(entry.function), Some("irq_entries_start"));
    assert_eq!(edges.function(entry.caller), Some("unlock"));
}

#[test]
fn an_interrupt_that_ends_idle_time_comes_after_it() {
    // The clock is 3 ns behind, and no instruction is executed while the CPU is halted for 500 ns.
    let batch: &[Drawn] = &[(0, 12, 0), (0, 4, 0), (5, 15, 16), (12, 15, 0)];
    let words = [record(9, &[250, 0, 0, 0, 0]), records(300, &[batch]), end(4, 0, 0)].concat();
    let edges = read(&words).unwrap().unwrap().edges;
    let told: Vec<(u64, EdgeKind)> = edges.iter().map(|edge| (edge.at_ns, edge.what)).collect();
    let enter = EdgeKind::Enter { way: WayIn::Interrupt, from_user: false };
    let want = [
        (297, EdgeKind::Halt),
        (797, enter),
        (802, EdgeKind::TimerSet(Some(16))),
        (814, EdgeKind::TimerSet(None)),
    ];
    assert_eq!(told, want);
}

/// All interrupts of arm64 enter by the same way, and so do all exceptions.
#[test]
fn interrupts_and_exceptions_of_arm64_are_called_by_what_they_are() {
    let edges: [Drawn; 8] = [
        (0, 4, 0),
        // The CPU's own timer; then what a handler of its own asks of another one.
        (5, 17, 27),
        (5, 17, 40),
        (9, 7, 1),
        // A page fault of a program, and another exception.
        (1, 5, 0x24 << 1 | 1),
        (1, 5, 0x3c << 1),
        (1, 4, 0),
        (1, 17, 33),
    ];
    let words = [record(9, &[150, 0, 0, 0, 0]), records(150, &[&edges]), end(8, 0, 0)].concat();
    let edges = read(&words).unwrap().unwrap();
    let names: Vec<_> = edges.edges.iter().map(|edge| edges.function(edge.function)).collect();
    let lock = Some("lock");
    let want = [Some("arch_timer"), lock, Some("page_fault"), lock, Some("device")];
    assert_eq!(names, want);
    assert_eq!(edges.timer_entry(), edges.edges[0].function);
    let from_user = |place: usize| match edges.edges[place].what {
        EdgeKind::Enter { from_user, .. } => from_user,
        other => panic!("{other:?}"),
    };
    assert!(from_user(2) && !from_user(3));
}

#[test]
fn edges_that_are_not_certain_are_refused() {
    let refused = |words: &[u64]| read(words).unwrap_err();
    let start = || record(9, &[150, 0, 0, 0, 0]);
    let edge: &[Drawn] = &[(0, 1, 0)];
    let one = || records(150, &[edge]);
    // More or fewer than the plugin counted, and without a beginning.
    for (edges, tasks) in [(2, 0), (0, 0), (1, 1)] {
        let words = [start(), one(), end(edges, 0, tasks)].concat();
        assert_eq!(refused(&words), ScopeError::Cut, "{edges} {tasks}");
    }
    assert_eq!(refused(&[one(), end(1, 0, 0)].concat()), ScopeError::Foreign);
    assert_eq!(refused(&[start(), start()].concat()), ScopeError::Foreign);
    // More than the plugin may write.
    let words = [start(), one(), end(1, 5, 0)].concat();
    assert_eq!(refused(&words), ScopeError::EdgesLost(5));
    // Backwards; of an unknown kind; of a task or softirq that is not there; half an edge.
    let words = [start(), one(), records(140, &[edge]), end(2, 0, 0)].concat();
    assert!(matches!(refused(&words), ScopeError::Missed { count: 1, .. }));
    for (kind, value) in [(18, 0), (0, 0), (9, 0), (9, 1), (11, 1), (8, 256), (14, 4)] {
        let words = [start(), records(150, &[&[(0, kind, value)]]), end(1, 0, 0)].concat();
        assert_eq!(refused(&words), ScopeError::Foreign, "{kind} {value}");
    }
    assert_eq!(refused(&record(10, &[150, 1])), ScopeError::Foreign);
    assert_eq!(refused(&record(10, &[])), ScopeError::Foreign);
    assert_eq!(refused(&record(11, &[1, 2, 3])), ScopeError::Foreign);
    let whole = stream(&whole());
    for length in (40..whole.len()).step_by(8) {
        assert_eq!(decode(&whole[..length], kernel()).unwrap_err(), ScopeError::Cut, "{length}");
    }
}

#[test]
fn fuzz_edges_of_the_emulator() {
    let kernel = kernel();
    fuzz("scope-edges", &[stream(&whole())], |bytes| {
        let Ok(Decoded { edges: Some(edges), .. }) = decode(bytes, kernel) else { return };
        assert!(edges.edges.windows(2).all(|pair| pair[0].at_ns <= pair[1].at_ns));
        let tasks = edges.edges.iter().filter_map(|edge| match edge.what {
            EdgeKind::Wake(task) | EdgeKind::Switch(task) => Some(task),
            _ => None,
        });
        assert!(tasks.chain(edges.start.task).all(|task| edges.task(Some(task)).is_some()));
        let functions = edges.edges.iter().flat_map(|edge| [edge.function, edge.caller]);
        assert!(functions.flatten().all(|function| edges.function(Some(function)).is_some()));
    });
}

proptest! {
    #[test]
    fn edges_are_read_as_they_are_written(
        drawn in vec((0_u64..1 << 24, 1_u64..=13, 0_u64..2), 1..400),
        long in 1_usize..200,
    ) {
        let batches: Vec<&[Drawn]> = drawn.chunks(long).collect();
        // Tasks count from 1.
        let batches: Vec<Vec<Drawn>> = batches.iter().map(|batch| {
            let value = |kind, value| if [9, 11].contains(&kind) { value + 1 } else { value };
            batch.iter().map(|&(since, kind, v)| (since, kind, value(kind, v))).collect()
        }).collect();
        let batches: Vec<&[Drawn]> = batches.iter().map(Vec::as_slice).collect();
        let words = [
            task(1, b"one\0............"),
            task(2, b"two\0............"),
            record(9, &[1_000, 0, 0, 0, 2]),
            records(1_000, &batches),
            end(drawn.len() as u64, 0, 2),
        ].concat();
        let edges = read(&words).unwrap().unwrap();
        prop_assert_eq!(edges.start.task, Some(TaskId(1)));
        // 320 instructions end at 817 ns, and the first edge of each record is 1,000 behind the last one.
        let mut at_ns = 1_497;
        let mut number = 0;
        for batch in &batches {
            for (place, &(since, kind, value)) in batch.iter().enumerate() {
                at_ns += if place == 0 { 0 } else { since };
                let edge = edges.edges[number];
                number += 1;
                prop_assert_eq!(edge.at_ns, at_ns);
                let value = u32::try_from(value).unwrap();
                let (task, yes) = (TaskId(value.saturating_sub(1)), value != 0);
                let enter = |way| EdgeKind::Enter { way, from_user: yes };
                let want = match kind {
                    1 => EdgeKind::IrqsOff,
                    2 => EdgeKind::IrqsOn,
                    3 => EdgeKind::PreemptCount(PreemptCount(value)),
                    4 => enter(WayIn::Interrupt),
                    5 => enter(WayIn::Exception),
                    6 => enter(WayIn::SystemCall),
                    7 => EdgeKind::Leave { to_user: yes },
                    8 => EdgeKind::Softirq(u8::try_from(value).unwrap()),
                    9 => EdgeKind::Wake(task),
                    10 => EdgeKind::Schedule,
                    11 => EdgeKind::Switch(task),
                    12 => EdgeKind::Halt,
                    _ => EdgeKind::UserClock,
                };
                prop_assert_eq!(edge.what, want);
            }
            at_ns += 1_000;
        }
        prop_assert_eq!(number, edges.edges.len());
    }
}
