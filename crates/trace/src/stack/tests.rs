use super::memory::made_up::MadeUp;
use wakescope_decode::orc;

use super::*;

use proptest::prelude::*;

/// Where made-up code is, and the tables of it.
const CODE: u64 = 0xffff_ffff_8100_0000;
const IPS: u64 = 0xffff_ffff_8200_0000;
const ENTRIES: u64 = 0xffff_ffff_8200_0100;

/// Functions, each of 0x100 bytes, with what holds in it: in the format since 6.4.
const FUNCTIONS: [[u8; 6]; 7] = [
    // 0: has put away 8 bytes beside the address that it returns to.
    [16, 0, 0, 0, 0x05, 2],
    // 1: keeps a frame pointer, and its caller's below the address that it returns to.
    [16, 0, 0xf0, 0xff, 0x14, 2],
    // 2: an interrupt's entry, with all registers on the stack.
    [0, 0, 0, 0, 0x05, 0x0b],
    // 3: on the stack of interrupts, at the end of which the other stack is told.
    [8, 0, 0, 0, 0x09, 2],
    // 4: an interrupt's entry, with what the processor saves.
    [0, 0, 0, 0, 0x05, 0x0c],
    // 5: where a stack ends.
    [0, 0, 0, 0, 0, 1],
    // 6: found by a register.
    [0, 0, 0, 0, 0x06, 2],
];

/// Thunks, of which the tables say what they say of the last function.
const THUNKS: u64 = CODE + 0x1000;
const RETURN_THUNK: u64 = CODE + 0x1300;

/// Where calls in functions 1 and 5 return to, and the inner call of a thunk.
const CALLS: [u64; 3] = [CODE + 0x141, CODE + 0x505, THUNKS + 5];

fn function(number: usize) -> u64 {
    CODE + 0x100 * number as u64
}

fn walker() -> Walker<MadeUp> {
    let mut memory = MadeUp::default();
    for (number, entry) in FUNCTIONS.iter().enumerate() {
        let at = IPS + 4 * number as u64;
        memory.put_distance(at, function(number));
        memory.put(ENTRIES + orc::BYTES * number as u64, entry);
    }
    // What any function starts with tells the format: one more, behind the others.
    let (number, at) = (FUNCTIONS.len(), IPS + 4 * FUNCTIONS.len() as u64);
    memory.put_distance(at, function(number));
    memory.put(ENTRIES + orc::BYTES * number as u64, &[8, 0, 0, 0, 0x05, 2]);
    let known = [
        ("_stext", CODE),
        ("_etext", function(0x20)),
        ("hrtimer_wakeup", function(7)),
        ("__start_orc_unwind_ip", IPS),
        ("__stop_orc_unwind_ip", at + 4),
        ("__start_orc_unwind", ENTRIES),
        ("__x86_indirect_thunk_rax", THUNKS),
        ("__x86_indirect_thunk_r15", THUNKS + 0x1e0),
        ("__x86_return_thunk", RETURN_THUNK),
    ];
    let known = known.map(|(name, at)| (name.to_string(), at)).into();
    for call in CALLS {
        memory.put(call - 5, &[0xe8, 1, 2, 3, 4]);
    }
    let mut memory = Cached::new(memory);
    let tables = Tables::find(&mut memory, &known).unwrap();
    Walker { tables, thunks: Thunks::find(&known), memory, known: HashMap::new() }
}

/// Where made-up stacks begin, of interrupts and of a task.
const OF_INTERRUPTS: u64 = 0xffff_c900_0000_0e00;
const OF_TASK: u64 = 0xffff_c900_0010_0400;

const OF_KERNEL: u64 = 0x10;
const USER: u64 = 0x33;

/// A copy of two stacks, with `words` on them.
fn copy(registers: u64, words: &[(u64, u64)]) -> StackCopy {
    let piece = |from: u64, number: usize| from + (PIECE * number) as u64;
    let at = std::array::from_fn(|i| match i {
        0..2 => piece(OF_INTERRUPTS, i),
        2..4 => piece(OF_TASK, i - 2),
        _ => 0,
    });
    let mut copy = StackCopy { registers, at, bytes: [[0; PIECE]; PIECES] };
    for &(place, value) in words {
        let base = place & !(PIECE as u64 - 1);
        let piece = at.iter().position(|&at| at == base).expect("the copy has it");
        let from = usize::try_from(place - base).unwrap();
        copy.bytes[piece][from..from + 8].copy_from_slice(&value.to_le_bytes());
    }
    copy
}

/// Registers at `at`, as an interrupt finds them.
fn registers(at: u64, ip: u64, sp: u64, bp: u64) -> Vec<(u64, u64)> {
    let ip_at = at + saved::IP;
    let of_processor = [(ip_at, ip), (ip_at + 8, OF_KERNEL), (ip_at + 24, sp)];
    [&[(at + saved::BP, bp)][..], &of_processor].concat()
}

#[test]
fn callers_are_found_by_stack_pointer_and_by_frame() {
    let sp = OF_TASK + 0xb0;
    let frame = sp + 0x30;
    let words = [
        registers(OF_TASK, function(0) + 0x20, sp, frame),
        // Called by the function with a frame pointer, and that by one at whose end the stack ends.
        vec![(sp + 8, function(1) + 0x41), (frame, 0x77), (frame + 8, function(5) + 5)],
    ];
    let frames = walker().walk(&copy(OF_TASK, &words.concat()));
    assert_eq!(frames, [function(0) + 0x20, function(1) + 0x41, function(5) + 5]);
}

#[test]
fn a_call_that_never_returns_is_in_the_function_that_calls() {
    // The address that it would return to is where the next function begins.
    let sp = OF_TASK + 0xb0;
    let words = [
        registers(OF_TASK, function(0) + 0x20, sp, 0),
        // In function 0, and not in 1, which has a frame.
        vec![(sp + 8, function(1)), (sp + 16 + 8, function(5) + 5)],
    ];
    let frames = walker().walk(&copy(OF_TASK, &words.concat()));
    assert_eq!(frames, [function(0) + 0x20, function(1), function(5) + 5]);
}

#[test]
fn the_caller_of_a_thunk_is_found_wherever_in_it_the_interrupt_came() {
    let sp = OF_TASK + 0xb0;
    let frame = sp + 0x30;
    let (inner_call, called) = (THUNKS + 5, function(0));
    let caller = function(1) + 0x41;
    for (ip, on_stack) in [
        // Before the thunk's own call; behind it; where it is about to enter what is called.
        (THUNKS, vec![caller]),
        (THUNKS + 0xc, vec![inner_call, caller]),
        (THUNKS + 0x10, vec![called, caller]),
        (THUNKS + 0x1e0 + 0x1f, vec![called, caller]),
        // A return, and that of a thunk.
        (RETURN_THUNK, vec![caller]),
        (RETURN_THUNK, vec![called, caller]),
    ] {
        let places = (sp..).step_by(8).zip(on_stack.iter().copied());
        let words = [
            registers(OF_TASK, ip, sp, frame),
            places.collect(),
            vec![(frame, 0x77), (frame + 8, function(5) + 5)],
        ];
        let frames = walker().walk(&copy(OF_TASK, &words.concat()));
        assert_eq!(frames, [ip, caller, function(5) + 5], "{ip:x} {on_stack:x?}");
    }
}

#[test]
fn a_thunk_without_a_call_behind_it_ends_a_stack() {
    let sp = OF_TASK + 0xb0;
    for on_stack in [[0, 0], [0x40_1000, 7], [function(0), function(1) + 0x42]] {
        let places = (sp..).step_by(8).zip(on_stack);
        let words = [registers(OF_TASK, THUNKS + 0xc, sp, 0), places.collect()];
        assert_eq!(walker().walk(&copy(OF_TASK, &words.concat())), [THUNKS + 0xc]);
    }
}

#[test]
fn an_interrupt_on_its_own_stack_leads_to_the_task_that_it_came_to() {
    let (sp, end) = (OF_INTERRUPTS + 0xb0, OF_INTERRUPTS + 0x1f8);
    let task_sp = OF_TASK + 0x20;
    let words = [
        // A timer's interrupt came in a softirq.
        registers(OF_INTERRUPTS, function(0) + 1, end - 16, 0x5),
        vec![(end - 8, function(3) + 9), (end, task_sp)],
        // The stack that it was begun from: it returns into an interrupt's entry.
        vec![(task_sp, function(2) + 3)],
        registers(task_sp + 8, function(6) + 7, OF_TASK + 0x180, 0),
        // This one goes by a register, which is known of what was interrupted.
        vec![(task_sp + 8 + saved::R10, OF_TASK + 0x190), (OF_TASK + 0x188, function(4) + 2)],
        // And the last was entered with no more than the processor saves: a program was interrupted.
        vec![(OF_TASK + 0x190, 0x40_1000), (OF_TASK + 0x198, USER)],
    ];
    let frames = walker().walk(&copy(OF_INTERRUPTS, &words.concat()));
    let places = [(0, 1), (3, 9), (2, 3), (6, 7), (4, 2)];
    assert_eq!(frames, places.map(|(number, at)| function(number) + at));
    assert_ne!(sp, end);
}

#[test]
fn a_walk_ends_where_the_copy_does_or_nothing_is_known() {
    let at = |ip, sp, more: &[(u64, u64)]| {
        let words = [&registers(OF_TASK, ip, sp, 0)[..], more].concat();
        walker().walk(&copy(OF_TASK, &words))
    };
    let first = function(0) + 0x20;
    // The caller's word was not copied, or lies askew.
    assert_eq!(at(first, OF_TASK + 0x300, &[]), [first]);
    assert_eq!(at(first, OF_TASK + 0xb1, &[]), [first]);
    // What lies there is no address of the kernel's code.
    for no_code in [0, 1, 0x40_1000, 0x7fff_ffff_ffff] {
        assert_eq!(at(first, OF_TASK + 0xb0, &[(OF_TASK + 0xb8, no_code)]), [first]);
    }
    // No code is there, and no frame pointer either.
    assert_eq!(at(0, OF_TASK + 0xb0, &[]), [0]);
    // A register that is not known: no interrupt came there.
    let into_six = [(OF_TASK + 0xb8, function(6) + 7)];
    assert_eq!(at(first, OF_TASK + 0xb0, &into_six), [first, function(6) + 7]);
}

#[test]
fn programs_and_missing_copies_have_no_kernels_stack() {
    let user = [(OF_TASK + saved::IP, 0x40_1000), (OF_TASK + saved::IP + 8, USER)];
    assert_eq!(walker().walk(&copy(OF_TASK, &user)), [0; 0]);
    assert_eq!(walker().walk(&copy(0, &[])), [0; 0]);
    assert_eq!(walker().walk(&copy(u64::MAX - 7, &[])), [0; 0]);
}

#[test]
fn a_stack_that_leads_in_circles_ends() {
    // The task's stack is said to begin where it is left.
    let sp = OF_TASK + 0xb0;
    let words = [registers(OF_TASK, function(3), sp, 0), vec![(sp, sp), (sp, function(3) + 1)]];
    assert!(walker().walk(&copy(OF_TASK, &words.concat())).len() <= FRAMES);
    // An interrupt that came to itself.
    let words = registers(OF_TASK, function(2), OF_TASK, 0);
    assert_eq!(walker().walk(&copy(OF_TASK, &words)).len(), FRAMES);
}

proptest! {
    /// What lies on a stack is the kernel's, but nobody says that it is in order.
    #[test]
    fn whatever_is_on_a_stack_is_walked_without_harm(
        kinds in prop::collection::vec((0..9_usize, 0..0x100_u64, 0..64_u64), 128),
        start in 0..100_u64,
    ) {
        let word = |&(number, within, place): &(usize, u64, u64)| match number {
            0..7 => function(number) + within,
            7 => OF_TASK + 8 * place,
            _ => within / 0x80,
        };
        let words: Vec<_> =
            kinds.iter().enumerate().map(|(i, kind)| (i, word(kind))).collect();
        let places = (0..64).map(|i| OF_INTERRUPTS + 8 * i).chain((0..64).map(|i| OF_TASK + 8 * i));
        let words: Vec<_> = places.zip(words).map(|(place, (_, word))| (place, word)).collect();
        let frames = walker().walk(&copy(OF_TASK + 8 * start, &words));
        prop_assert!(frames.len() <= FRAMES);
    }
}
