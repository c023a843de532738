use super::super::memory::made_up::MadeUp;
use super::*;

const CODE_AT: u64 = 0xffff_ffff_8100_0000;
const BEHIND: u64 = 0xffff_ffff_8180_0010;
const TABLE_AT: u64 = 0xffff_ffff_8190_07f4;

/// What the first instruction of a function has, since 6.4.
const START: [u8; 6] = [8, 0, 0, 0, 0x05, 2];
const FRAME: [u8; 6] = [16, 0, 0xf0, 0xff, 0x14, 2];

/// A kernel of 4,000 functions, of which every other has a frame once it has begun.
fn kernel() -> MadeUp {
    let mut memory = MadeUp::default();
    let count = 4_000_u64;
    for index in 0..count {
        let at = TABLE_AT + 4 * index;
        let place = CODE_AT + 0x80 * index;
        memory.put_distance(at, place);
        let entry = if index % 2 == 0 { START } else { FRAME };
        memory.put(TABLE_AT + 4 * count + orc::BYTES * index, &entry);
    }
    memory
}

fn known(more: &[(&str, u64)]) -> Addresses {
    let code = [
        (CODE, CODE_AT),
        (CODE_END, BEHIND),
        (INIT_CODE_END, BEHIND),
        (A_FUNCTION, CODE_AT + 0x80 * 10),
        (READS_THEM, CODE_AT + 0x80 * 20),
    ];
    code.iter().chain(more).map(|&(name, at)| (name.to_string(), at)).collect()
}

fn listed() -> Vec<(&'static str, u64)> {
    let end = TABLE_AT + 4 * 4_000;
    vec![(IPS, TABLE_AT), (IPS_END, end), (ENTRIES, end)]
}

#[test]
fn tables_are_found_by_their_symbols_or_by_what_they_look_like() {
    for more in [listed(), Vec::new()] {
        let mut memory = Cached::new(kernel());
        let mut tables = Tables::find(&mut memory, &known(&more)).unwrap();
        let end = TABLE_AT + 4 * 4_000;
        assert_eq!(tables.kernel, Table { ips: TABLE_AT, entries: end, count: 4_000 });
        let mut rule = |place| tables.rule(&mut memory, place);
        let start = Format::ThreeBits.rule(START);
        assert_eq!(rule(CODE_AT), start);
        assert_eq!(rule(CODE_AT + 0x80), Format::ThreeBits.rule(FRAME));
        assert_eq!(rule(CODE_AT + 0x17f), start.and(Format::ThreeBits.rule(START)));
        assert_eq!(rule(CODE_AT - 1), Some(FRAMED), "code that was made later");
    }
}

#[test]
fn what_only_looks_like_a_table_at_first_is_none() {
    let mut memory = kernel();
    // Distances to code lie before it, but for the last of a page.
    for index in 0..2_047_u64 {
        let at = BEHIND.next_multiple_of(PAGE as u64) + 4 * index;
        let place = CODE_AT + 0x80 * index;
        let place = if index == 1_023 { CODE_AT } else { place };
        memory.put_distance(at, place);
    }
    let mut memory = Cached::new(memory);
    assert_eq!(Tables::find(&mut memory, &known(&[])).unwrap().kernel.ips, TABLE_AT);
}

#[test]
fn without_tables_or_with_others_nothing_is_walked_by() {
    // Nothing that can be read.
    let mut nothing = Cached::new(MadeUp::default());
    assert!(Tables::find(&mut nothing, &known(&listed())).is_none());
    // A function's start is not where one is.
    let mut memory = Cached::new(kernel());
    let other = [(A_FUNCTION, CODE_AT + 0x80 * 11)];
    let elsewhere: Addresses =
        known(&listed()).into_iter().chain(other.map(|(n, at)| (n.into(), at))).collect();
    assert!(Tables::find(&mut memory, &elsewhere).is_none());
    // The kernel has nothing that would read them.
    let mut walks_by_frames = known(&[]);
    walks_by_frames.remove(READS_THEM);
    assert!(Tables::find(&mut memory, &walks_by_frames).is_none());
    // No addresses are shown.
    assert!(Tables::find(&mut memory, &Addresses::new()).is_none());
    // Symbols that cannot be tell nothing, as if there were none.
    let backwards = [(IPS, TABLE_AT), (IPS_END, TABLE_AT - 4), (ENTRIES, TABLE_AT)];
    let found = Tables::find(&mut memory, &known(&backwards)).map(|tables| tables.kernel.count);
    assert_eq!(found, Some(4_000));
}

#[test]
fn a_module_says_how_long_its_tables_are() {
    let (module, ips, entries) =
        (0xffff_ffff_c000_8000, 0xffff_ffff_c000_9004, 0xffff_ffff_c000_a002);
    let code = 0xffff_ffff_c000_0000_u64;
    let mut memory = MadeUp::default();
    // Its structure, with the count before the addresses of both tables, and another address first.
    memory.put(module, &[0; 1_024]);
    memory.put(module + 0x40, &u64::to_le_bytes(ips));
    memory.put(module + 0x200, &3_u32.to_le_bytes());
    memory.put(module + 0x208, &u64::to_le_bytes(ips));
    memory.put(module + 0x210, &u64::to_le_bytes(entries));
    for index in 0..3_u64 {
        let at: u64 = ips + 4 * index;
        memory.put_distance(at, code + 0x40 * index);
        memory.put(entries + 6 * index, &START);
    }
    let mut memory = Cached::new(memory);
    let (of, table) = table_of_module(&mut memory, module, ips, entries).unwrap();
    assert_eq!(table, Table { ips, entries, count: 3 });
    assert_eq!(of, code..=code + 0x80 + FARTHEST);
    assert_eq!(table_of_module(&mut memory, module, ips, entries + 2), None);
    assert_eq!(table_of_module(&mut memory, 0, ips, entries), None);
    // More entries than memory has addresses for.
    let (module, high) = (module - 0x2000, u64::MAX - 0xfff);
    let mut memory = MadeUp::default();
    memory.put(module, &u32::MAX.to_le_bytes());
    memory.put(module + 8, &u64::to_le_bytes(high));
    memory.put(module + 16, &u64::to_le_bytes(entries));
    memory.put(high, &1_u32.to_le_bytes());
    assert_eq!(table_of_module(&mut Cached::new(memory), module, high, entries), None);
}
