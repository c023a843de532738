//! Functions of programs, by where their code lies in a file.

use std::collections::BTreeMap;

use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSegment, ObjectSymbol, SymbolKind};

/// How far a function of unknown length is taken to reach.
const UNKNOWN: u64 = 4 << 10;

/// The functions that `offsets` in the program `bytes` are in: see
/// [`SymbolReader`](crate::SymbolReader). None of a file that is no ELF file of 64 bits, or without
/// symbols.
pub fn functions_of_program(bytes: &[u8], offsets: &[u64]) -> BTreeMap<u64, (String, u64)> {
    let Ok(elf) = ElfFile64::<Endianness>::parse(bytes) else { return BTreeMap::new() };
    let address = |offset: u64| {
        elf.segments().find_map(|segment| {
            let (start, size) = segment.file_range();
            let into = offset.checked_sub(start).filter(|&into| into < size)?;
            segment.address().checked_add(into)
        })
    };
    let wanted: BTreeMap<u64, u64> =
        offsets.iter().filter_map(|&offset| Some((address(offset)?, offset))).collect();
    let mut found = BTreeMap::new();
    // What a program gives to others is listed on its own, and is there when the rest is stripped.
    for symbol in elf.symbols().chain(elf.dynamic_symbols()) {
        if symbol.kind() != SymbolKind::Text || symbol.is_undefined() {
            continue;
        }
        let (start, size) = (symbol.address(), symbol.size());
        let end = start.saturating_add(if size == 0 { UNKNOWN } else { size });
        // A call that is the last of its function returns to what is just behind it.
        for (address, offset) in wanted.range(start..=end) {
            let into = address - start;
            let is_nearer = found.get(offset).is_none_or(|&(_, other): &(_, u64)| into < other);
            // Only if nothing else begins there.
            if let (true, Ok(name)) = (is_nearer, symbol.name()) {
                found.insert(*offset, (name.to_owned(), into));
            }
        }
    }
    found
}
