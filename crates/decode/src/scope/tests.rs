//! A kernel made up of what is looked for in it, in the forms of several kernels; and streams of it.

use wakescope_core::scope::flame::Call;
use wakescope_core::scope::{Kind, Scope};
use wakescope_testing::{fuzz, in_blocks};

use super::{Decoded, FORMAT, Kernel, Looked, Plan, ScopeError};

mod arm64;
mod asks;
mod blocks;
mod edges;
mod locks;

const BASE: u64 = 0xffff_ffff_8100_0000;
const PAGE: usize = 4096;

/// How kernels tell addresses.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    /// 6.1: before the names; data of each CPU as they are.
    Before,
    /// 6.12: behind the tokens; data of each CPU as they are.
    Behind,
    /// 6.18: behind the tokens, all of them distances.
    AllDistances,
    /// 7.2: from where they are.
    FromThemselves,
}

const FORMS: [Form; 4] = [Form::Before, Form::Behind, Form::AllDistances, Form::FromThemselves];

const CODE: u64 = BASE + 0x1000;
const ENTRIES: u64 = BASE + 0x2000;
const BANNER: u64 = BASE + 0x100;
const UNWIND: u64 = BASE + 0x4_8000;
const BTF: u64 = BASE + 0x4_9000;
const ASKS: u64 = BASE + 0x4_a000;
const SCHEDULE: u64 = CODE + 0x300;
const WAKE: u64 = CODE + 0x310;
const RECEIVE: u64 = CODE + 0x320;

/// Symbols with their types and addresses: those that are needed, among many.
fn symbols(form: Form) -> Vec<(u64, String)> {
    let percpu = matches!(form, Form::Before | Form::Behind);
    let preempt_count = if percpu { 0x1fb40 } else { BASE + 0x9_0000 };
    let named = [
        (BASE, "T_stext"),
        (BANNER, "Dlinux_banner"),
        (preempt_count, "A__preempt_count"),
        (CODE, "Thrtimer_wakeup"),
        (CODE + 0x100, "t__pfx_lock"),
        (CODE + 0x110, "Tlock"),
        (CODE + 0x110, "Talias_of_lock"),
        (CODE + 0x200, "Tunlock"),
        (SCHEDULE, "t__schedule"),
        (WAKE, "ttry_to_wake_up"),
        (RECEIVE, "tnet_rx_action"),
        (preempt_count + 8, "Acurrent_task"),
        (BTF, "R__start_BTF"),
        (BTF + btf().len() as u64, "R__stop_BTF"),
        (ENTRIES, "tirq_entries_start"),
        (ENTRIES + 0x800, "tspurious_entries_start"),
        (ENTRIES + 0x900, "tasm_exc_page_fault"),
        (ENTRIES + 0x920, "tasm_sysvec_timer"),
        (ENTRIES + 0x940, "Tentry_SYSCALL_64"),
        (ENTRIES + 0x1000, "T_etext"),
        (ASKS, "d__start_static_call_sites"),
        (ASKS + asks::TABLE, "d__stop_static_call_sites"),
        (asks::COND, "D__SCK__cond_resched"),
        (asks::MIGHT, "D__SCK__might_resched"),
        (UNWIND, "R__start_orc_unwind_ip"),
        (UNWIND + 8, "R__stop_orc_unwind_ip"),
        (UNWIND + 8, "R__start_orc_unwind"),
    ];
    let many = (0..6_000_u64).map(|n| (BASE + 0x10_0000 + 16 * n, format!("tfunction_{n}")));
    named.map(|(at, name)| (at, name.to_owned())).into_iter().chain(many).collect()
}

/// The kernel's types: a task with its pid at 8, its name at 16, its priority at 40 and its policy at 44.
fn btf() -> Vec<u8> {
    let strings = b"\0task_struct\0pid\0comm\0prio\0policy\0";
    let types = [1, 4 << 24 | 4, 64, 13, 1, 64, 17, 1, 128, 22, 1, 320, 27, 1, 352];
    types_of(&types, strings)
}

fn types_of(types: &[u32], strings: &[u8]) -> Vec<u8> {
    let length = |length: usize| u32::try_from(length).unwrap();
    let (types_length, strings_length) = (length(4 * types.len()), length(strings.len()));
    let header = [24, 0, types_length, types_length, strings_length];
    let words = header.iter().chain(types).flat_map(|word| word.to_le_bytes());
    [0x9f, 0xeb, 1, 0].into_iter().chain(words).chain(strings.iter().copied()).collect()
}

/// All in one block, with its checksum.
fn in_block(contents: &[u8]) -> Vec<u8> {
    in_blocks(contents, contents.len().max(1))
}

/// What is made of a stream with these contents.
fn decode(contents: &[u8], kernel: &Kernel) -> Result<Decoded, ScopeError> {
    super::decode(&in_block(contents), kernel)
}

/// Offsets of 256 tokens, which ascend from 0, again and again: each time all places before them are looked at.
#[test]
fn tokens_are_looked_for_with_an_end() {
    let offsets: Vec<u8> = (0..256_u16).flat_map(|number| (2 * number).to_le_bytes()).collect();
    let ScopeError::TooMuch(why) = Kernel::read(&written(&offsets.repeat(512))).unwrap_err() else {
        panic!("it is read without an end");
    };
    assert!(why.to_string().contains("places where tokens may be"), "{why}");
}

/// The kernel's memory, as the plugin writes it.
fn memory(form: Form) -> Vec<u8> {
    written(&image(form))
}

/// The kernel's image, from its first address on.
fn image(form: Form) -> Vec<u8> {
    let symbols = symbols(form);
    let mut image = vec![0_u8; 0x5_0000];
    let mut put = |address: u64, bytes: &[u8]| {
        let at = usize::try_from(address - BASE).unwrap();
        image[at..at + bytes.len()].copy_from_slice(bytes);
    };
    put(BANNER, b"Linux version 6.1.0 (made up)");
    // From the first byte of hrtimer_wakeup on, and from the last one of lock.
    for (number, place) in [(0, CODE), (1, CODE + 0x1ff)] {
        let from = UNWIND + 4 * number;
        put(from, &place.wrapping_sub(from).to_le_bytes()[..4]);
        put(UNWIND + 8 + 6 * number, &[8, 0, 0, 0, 5, 2]);
    }
    put(BTF, &btf());
    let table = table(form, &symbols, BASE + 0x1_0004);
    put(BASE + 0x1_0004, &table);
    asks::put(&mut image);
    image
}

fn written(image: &[u8]) -> Vec<u8> {
    written_by(62, image)
}

/// The same of a machine with this number.
fn written_by(machine: u64, image: &[u8]) -> Vec<u8> {
    in_block(&pages(machine, image))
}

/// The contents of that.
fn pages(machine: u64, image: &[u8]) -> Vec<u8> {
    let mut bytes = [*b"kememory", FORMAT.to_le_bytes(), machine.to_le_bytes()].concat();
    for (number, page) in image.chunks(PAGE).enumerate() {
        bytes.extend((BASE + (number * PAGE) as u64).to_le_bytes());
        bytes.extend(page);
    }
    bytes.extend(0_u64.to_le_bytes());
    bytes
}

/// The kernel's table of symbols, to lie at `at`.
fn table(form: Form, symbols: &[(u64, String)], at: u64) -> Vec<u8> {
    let align = |bytes: &mut Vec<u8>, to: u64| {
        while (at + bytes.len() as u64) % to != 0 {
            bytes.push(0);
        }
    };
    let wide = if form == Form::FromThemselves { 4 } else { 8 };
    let mut bytes = Vec::new();
    let distances = |bytes: &mut Vec<u8>| {
        for (address, _) in symbols {
            let here = at + bytes.len() as u64;
            let distance = match form {
                Form::Before | Form::Behind if *address < 1 << 31 => *address,
                Form::Before | Form::Behind => (BASE - 1).wrapping_sub(*address),
                Form::AllDistances => address - BASE,
                Form::FromThemselves => address.wrapping_sub(here),
            };
            bytes.extend(&distance.to_le_bytes()[..4]);
        }
    };
    if form == Form::Before {
        align(&mut bytes, 8);
        distances(&mut bytes);
        align(&mut bytes, 8);
        bytes.extend(BASE.to_le_bytes());
    }
    align(&mut bytes, wide);
    bytes.extend(u32::try_from(symbols.len()).unwrap().to_le_bytes());
    align(&mut bytes, wide);
    let names = bytes.len();
    let mut markers = Vec::new();
    for (number, (_, name)) in symbols.iter().enumerate() {
        if number % 256 == 0 {
            markers.push(u32::try_from(bytes.len() - names).unwrap());
        }
        bytes.push(u8::try_from(name.len()).unwrap());
        bytes.extend(name.bytes());
    }
    align(&mut bytes, wide);
    markers.iter().for_each(|marker| bytes.extend(marker.to_le_bytes()));
    // Since 6.2, between them: the order of the names by their checksums.
    bytes.extend((0..3 * symbols.len()).map(|n| u8::try_from(n * 7919 % 251).unwrap()));
    align(&mut bytes, wide);
    // Each byte stands for itself, but for some that stand for two letters, and one for as many as in 6.18.
    let token = |byte: u8| match byte {
        1 => vec![b'x'; 47],
        _ if byte.is_ascii_graphic() => vec![byte],
        _ => b"xy".to_vec(),
    };
    let tokens: Vec<Vec<u8>> = (0..=255).map(token).collect();
    let mut offsets = Vec::new();
    let begin = bytes.len();
    for token in &tokens {
        offsets.push(u16::try_from(bytes.len() - begin).unwrap());
        bytes.extend(token);
        bytes.push(0);
    }
    align(&mut bytes, wide);
    offsets.iter().for_each(|offset| bytes.extend(offset.to_le_bytes()));
    if form != Form::Before {
        align(&mut bytes, wide);
        distances(&mut bytes);
        align(&mut bytes, wide);
        bytes.extend(BASE.to_le_bytes());
    }
    bytes
}

#[test]
fn kernels_are_read_in_all_forms_that_their_symbols_have() {
    for form in FORMS {
        let kernel = Kernel::read(&memory(form)).unwrap_or_else(|e| panic!("{form:?}: {e}"));
        let percpu = matches!(form, Form::Before | Form::Behind);
        let want = if percpu { 0x1fb40 } else { BASE + 0x9_0000 };
        assert_eq!(kernel.preempt_count, want, "{form:?}");
        assert!(kernel.has_callers(), "{form:?}");
        assert_eq!(kernel.followed.len(), 7, "{form:?}");
        for (address, function) in [
            (CODE + 0x110, Some("lock")),
            (CODE + 0x1ff, Some("lock")),
            (CODE + 0x200, Some("unlock")),
            (BASE + 0x10_0010, Some("function_1")),
            (BASE - 1, None),
            (0xffff_ffff_c000_1000, None),
        ] {
            assert_eq!(kernel.function(address), function, "{form:?} {address:x}");
        }
        assert_eq!(Kernel::unpack(&kernel.pack()).as_ref(), Some(&kernel), "{form:?}");
    }
}

#[test]
fn what_is_no_kernel_is_refused() {
    let whole = pages(62, &image(Form::Behind));
    let refused = |contents: &[u8]| Kernel::read(&in_block(contents)).unwrap_err();
    assert_eq!(refused(b""), ScopeError::Foreign);
    assert_eq!(refused(&whole[..whole.len() - 8]), ScopeError::Cut);
    assert_eq!(refused(&pages(62, &[0; PAGE])), ScopeError::NoSymbols);
    // Behind the page with the address 0.
    assert_eq!(refused(&[&whole[..], &[0; 8]].concat()), ScopeError::Cut);
    let mut other = whole.clone();
    other[16] = 8;
    assert_eq!(refused(&other), ScopeError::Machine);
    // A banner that is not where its symbol is: the form is another one.
    let mut other = whole;
    let banner = other.windows(13).position(|bytes| bytes == b"Linux version").unwrap();
    other[banner] = b'X';
    assert_eq!(refused(&other), ScopeError::NoSymbols);
    let packed = Kernel::read(&memory(Form::Before)).unwrap().pack();
    for text in ["", "end\n", &packed[..packed.len() / 2], &packed.replace("\nf ", "\nx ")] {
        assert_eq!(Kernel::unpack(text), None);
    }
}

#[test]
fn a_plan_holds_what_the_plugin_reads() {
    let kernel = Kernel::read(&memory(Form::Before)).unwrap();
    let plan = Plan {
        kernel: &kernel,
        shift: 3,
        from_ns: 10,
        to_ns: 20,
        above_ns: 30,
        looks: &[(40, 50), (60, 70)],
        functions: true,
        edges: true,
        locks: true,
    };
    let bytes = plan.bytes();
    let words: Vec<u64> =
        bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
    assert_eq!(&bytes[..8], b"copeplan");
    assert_eq!(words[1..9], [FORMAT, 0x1fb40, 3, 10, 20, 30, 7, 2]);
    assert_eq!(words[9..13], [CODE, 2, 1, 1]);
    // The pointer to the task, and where its parts are in it.
    assert_eq!(words[13..18], [0x1fb48, 8, 16, 40, 44]);
    // Functions, where their code ends, places that ask, and locks.
    let starts = 6_000 + 13;
    assert_eq!(words[18..22], [starts, 0xffff_ffff_c000_0000, 4, 1]);
    let followed: Vec<&[u64]> = words[22..50].chunks(4).collect();
    let one = |start, what, value| [start, start + 1, what, value];
    assert_eq!(followed[0], [ENTRIES, ENTRIES + 0x900, 0, 0]);
    assert_eq!(followed[1], one(ENTRIES + 0x900, 1, 0));
    assert_eq!(followed[2], one(ENTRIES + 0x920, 0, 0));
    assert_eq!(followed[3], one(ENTRIES + 0x940, 2, 0));
    assert_eq!(followed[4..], [one(SCHEDULE, 5, 0), one(WAKE, 4, 0), one(RECEIVE, 3, 3)]);
    // Distance, offset, base.
    assert_eq!(words[50..52], [8 << 32 | 1 << 48, 0x1ff | 8 << 32 | 1 << 48]);
    assert_eq!(words[52..58], [40, 50, 60, 70, BASE, CODE]);
    // Places that ask, and how, at the end: only for edges.
    let asks = &words[words.len() - 8..];
    assert_eq!(asks, [CODE + 0x130, 1, CODE + 0x150, 1, CODE + 0x1c0, 3, CODE + 0x220, 2]);
    assert_eq!(words.len() as u64, 56 + starts + 8);
    let without = Plan { edges: false, ..plan }.bytes();
    assert_eq!(without.len(), bytes.len() - 64);
    assert_eq!(&without[160..168], [0; 8]);
}

fn record(kind: u64, words: &[u64]) -> Vec<u64> {
    [&[kind | (words.len() as u64) << 8], words].concat()
}

const LOCK: u64 = CODE + 0x120;
const UNLOCK: u64 = CODE + 0x210;
/// What a call of the last instruction of `lock` returns to.
const CALLER: u64 = CODE + 0x200;

/// A window of 100 to 1,000 ns after the first process, which began after 50 ns.
fn stream(end: &[u64]) -> Vec<u8> {
    let head = [u64::from_le_bytes(*b"akescope"), FORMAT, 0, 100, 1_000];
    // Where sections began and ended; count, total, shortest, longest, when; followed, their total; number.
    let site = |ends: [u64; 5], sums: [u64; 8], buckets: &[u64]| {
        record(4, &[&ends[..], &sums, buckets].concat())
    };
    let records = [
        record(1, &[100, 100]),
        record(3, &[0, 150, 190, LOCK, CALLER, UNLOCK, 0]),
        // The clock is 3 ns behind what was executed.
        record(1, &[200, 197]),
        record(2, &[300]),
        record(3, &[1, 310, 400, LOCK, 0, 0xffff_ffff_c000_0010, 0]),
        // Idle for 500 ns.
        record(1, &[320, 817]),
        site(
            [0, LOCK, CALLER, UNLOCK, 0],
            [2, 50, 10, 40, 150, 1, 40, 7],
            &[10 << 32 | 1, 36 << 32 | 1],
        ),
        site([0, LOCK + 1, CALLER, UNLOCK, 0], [1, 41, 41, 41, 160, 1, 41, 3], &[36 << 32 | 1]),
        site(
            [1, LOCK, 0, 0xffff_ffff_c000_0010, 0],
            [1, 90, 90, 90, 310, 0, 0, 5],
            &[54 << 32 | 1],
        ),
        // Their callers, where they begin; site, call, instructions.
        record(12, &[0, CODE + 0x110]),
        record(12, &[1, CODE + 0x200]),
        record(12, &[2, 0]),
        record(8, &[7, 1, 30]),
        record(8, &[7, 2, 8]),
        record(8, &[3, 1, 40]),
        record(8, &[3, 3, 1]),
        record(7, &[100]),
        record(6, &[0, 150, 190, LOCK, CALLER, UNLOCK, 0]),
        record(6, &[1, 310, 400, LOCK, 0, 0xffff_ffff_c000_0010, 0]),
        record(7, &[817]),
        end.to_vec(),
    ];
    head.into_iter().chain(records.concat()).flat_map(u64::to_le_bytes).collect()
}

/// Executed, a process ran, since then, its time, sections, outside, lost, not listed, times lost,
/// disagreements, odd writes, corrected, unread, and of what is looked at lost; edges, those lost, tasks, masks, depths;
/// locks, and calls lost.
const WELL: [u64; 21] = [900, 1, 50, 50, 4, 7, 0, 2, 0, 0, 0, 9, 2, 6, 0, 0, 0, 0, 3, 0, 0];

#[test]
fn sections_are_read_with_their_times_and_names() {
    let kernel = Kernel::read(&memory(Form::Before)).unwrap();
    let decoded = decode(&stream(&record(5, &WELL)), &kernel).unwrap();
    let Decoded { scope, looked, edges, held } = decoded;
    assert_eq!((scope.locks.as_ref(), held.len()), (None, 0));
    assert_eq!(edges, None);
    let counts = (scope.window_ns, scope.sections, scope.sections_lost, scope.callers_lost);
    assert_eq!((counts, scope.sections_unlisted), ((900, 4, 0, 2), 2));
    assert_eq!(Scope::from_json(scope.to_json().as_bytes()).as_ref(), Ok(&scope));
    // Only readings of the clock within the window count, and none across idle time.
    assert_eq!((scope.drift_ns, scope.has_callers), (0, true));
    assert!(!scope.preempt_count_partial);
    let mut partial = WELL;
    partial[18] = 0;
    assert!(decode(&stream(&record(5, &partial)), &kernel).unwrap().scope.preempt_count_partial);
    let [long, short] = &scope.rows[..] else { panic!("{:#?}", scope.rows) };
    assert_eq!(
        (long.kind, long.lengths.max_ns, long.ended.function.as_deref()),
        (Kind::PreemptOff, Some(90), None)
    );
    assert_eq!(long.lengths.max_at_ns, Some(807));
    assert_eq!(short.began.function.as_deref(), Some("lock"));
    assert_eq!(short.began.caller.as_deref(), Some("lock"));
    assert_eq!(
        (short.ended.function.as_deref(), short.ended.caller.as_deref()),
        (Some("unlock"), None)
    );
    let lengths = &short.lengths;
    assert_eq!(
        (lengths.count, lengths.sum_ns, lengths.min_ns, lengths.max_ns),
        (3, 91, Some(10), Some(41))
    );
    assert_eq!((lengths.fault(), lengths.max_at_ns), (None, Some(160)));
    // Both sites are of the same functions. Of two instructions there is no block, so no name.
    let spent = short.spent.as_ref().unwrap();
    let functions: Vec<_> =
        spent.functions.iter().map(|time| (time.function.as_deref(), time.ns)).collect();
    assert_eq!((spent.sections, spent.total_ns), (2, 81));
    assert_eq!(functions, [(Some("lock"), 70), (Some("unlock"), 8), (None, 3)]);
    assert_eq!(long.spent, None);
    let [flame] = &scope.flames[..] else { panic!("{:?}", scope.flames) };
    assert_eq!((flame.kind, flame.sections, flame.total_ns), (Kind::IrqsOff, 2, 81));
    let call = |function: Option<&str>, caller, self_ns, total_ns| Call {
        function: function.map(Into::into),
        caller,
        self_ns,
        total_ns,
    };
    let calls = [
        call(Some("lock"), None, 70, 79),
        call(Some("unlock"), Some(0), 8, 9),
        call(None, Some(1), 1, 1),
    ];
    assert_eq!(flame.calls, calls);
    let longest: Vec<_> = scope.longest.iter().map(|s| (s.begin_ns, s.length_ns)).collect();
    // The second one began before the clock was read again, after idle time.
    assert_eq!(longest, [(807, 90), (150, 40)]);
    let [second, first] = &scope.longest[..] else { panic!("{:?}", scope.longest) };
    let want = Looked {
        process_ns: 50,
        sections: vec![first.clone(), second.clone()],
        readings: vec![100, 817],
        lost: 6,
    };
    assert_eq!(looked, want);
}

#[test]
fn a_stream_that_is_not_certain_is_refused() {
    let kernel = Kernel::read(&memory(Form::Before)).unwrap();
    let refused = |bytes: &[u8]| decode(bytes, &kernel).unwrap_err();
    let whole = stream(&record(5, &WELL));
    assert_eq!(refused(&[]), ScopeError::Foreign);
    for length in (8..whole.len()).step_by(8) {
        assert_eq!(refused(&whole[..length]), ScopeError::Cut, "{length}");
    }
    // Behind its end.
    assert_eq!(refused(&[&whole[..], &[0; 8]].concat()), ScopeError::Foreign);
    let with = |place: usize, value: u64| {
        let mut end = WELL;
        end[place] = value;
        refused(&stream(&record(5, &end)))
    };
    assert_eq!(with(1, 0), ScopeError::NoProcess);
    for (place, count) in [(8, 3), (9, 1), (10, 7), (17, 4)] {
        assert!(matches!(with(place, count), ScopeError::Missed { count: c, .. } if c == count));
    }
    assert_eq!(refused(&stream(&record(6, &[]))), ScopeError::Foreign);
    assert_eq!(refused(&stream(&record(5, &[1]))), ScopeError::Foreign);
    // A row whose buckets do not hold what it counts.
    let row = [0, LOCK, 0, UNLOCK, 0, 2, 50, 10, 40, 150, 0, 0, 9, 10 << 32 | 1];
    assert_eq!(refused(&stream(&record(4, &row))), ScopeError::Foreign);
    // Time in functions that is longer than the sections, and of sections that there are not.
    let end = record(5, &WELL);
    for (site, call, count) in [(3, 1, 3), (5, 1, 1), (4, 1, 0), (3, 0, 1), (3, 4, 1)] {
        let words = [record(8, &[site, call, count]), end.clone()].concat();
        assert_eq!(refused(&stream(&words)), ScopeError::Foreign, "{site} {call}");
    }
    // Called by one that comes later.
    assert_eq!(refused(&stream(&record(12, &[4, LOCK]))), ScopeError::Foreign);
}

#[test]
fn drift_in_the_window_is_stated() {
    let kernel = Kernel::read(&memory(Form::Before)).unwrap();
    let mut well = WELL;
    // The first process began earlier, so that the window begins at 100 ns.
    well[3] = 0;
    let scope = decode(&stream(&record(5, &well)), &kernel).unwrap().scope;
    assert_eq!(scope.drift_ns, 3);
}

#[test]
fn fuzz_streams_of_the_emulator() {
    let kernel = Kernel::read(&memory(Form::Before)).unwrap();
    fuzz("scope", &[stream(&record(5, &WELL))], |contents| {
        if let Ok(Decoded { scope, .. }) = decode(contents, &kernel) {
            assert!(scope.rows.iter().all(|row| row.lengths.histogram.fault().is_none()));
        }
    });
}

#[test]
fn fuzz_memory_of_kernels() {
    let seeds = [Form::Before, Form::FromThemselves].map(|form| pages(62, &image(form)));
    wakescope_testing::fuzz_fewer("scope-memory", 20, &seeds, |contents| {
        if let Ok(kernel) = Kernel::read(&in_block(contents)) {
            let packed = kernel.pack();
            assert_eq!(Kernel::unpack(&packed).map(|kernel| kernel.pack()), Some(packed));
        }
    });
}
