//! Functions of programs, by where their code lies in a file.
//!
//! Any user can make the file. So the work grows with its size and the number of offsets, and not with
//! the product of both.

use std::collections::BTreeMap;

use object::read::elf::{ElfFile64, SectionHeader};
use object::{Endianness, Object, ObjectSegment, ObjectSymbol, SectionIndex, SymbolKind};

/// How far a function of unknown length is taken to reach.
const UNKNOWN: u64 = 4 << 10;

/// The most symbols that are read of a file. If it has more, none is used: the nearest to an address may be
/// among those that are not read.
const MOST_SYMBOLS: usize = 1 << 19;
/// The most segments that are read of a file.
const MOST_SEGMENTS: usize = 1 << 10;

/// The most bytes of a name that are read; more than any report shows.
const LONGEST_NAME: usize = 1 << 10;

/// A function that one of the addresses may be in.
struct Candidate<'d> {
    start: u64,
    end: u64,
    /// The names of its table, and where its own begins.
    names: &'d [u8],
    name: u32,
}

/// The functions that `offsets` in the program `bytes` are in: see
/// [`SymbolReader`](crate::SymbolReader). None of a file that is no ELF file of 64 bits, or without
/// symbols, or with more than 524 288 of them.
pub fn functions_of_program(bytes: &[u8], offsets: &[u64]) -> BTreeMap<u64, (String, u64)> {
    let Ok(elf) = ElfFile64::<Endianness>::parse(bytes) else { return BTreeMap::new() };
    let address = |offset: u64| {
        elf.segments().take(MOST_SEGMENTS).find_map(|segment| {
            let (start, size) = segment.file_range();
            let into = offset.checked_sub(start).filter(|&into| into < size)?;
            segment.address().checked_add(into)
        })
    };
    let wanted: BTreeMap<u64, u64> =
        offsets.iter().filter_map(|&offset| Some((address(offset)?, offset))).collect();
    let Some(mut candidates) = candidates(&elf, &wanted) else { return BTreeMap::new() };
    // Of several that begin at one address, the first of the table comes last, and so counts.
    candidates.reverse();
    candidates.sort_by_key(|candidate| candidate.start);
    let mut coming = candidates.iter().peekable();
    // Those that begin before the address. One that ends before it covers no later one either.
    let mut open: Vec<&Candidate> = Vec::new();
    let mut found = BTreeMap::new();
    for (&address, &offset) in &wanted {
        open.extend(std::iter::from_fn(|| coming.next_if(|next| next.start <= address)));
        while open.last().is_some_and(|nearest| nearest.end < address) {
            open.pop();
        }
        let Some(nearest) = open.last() else { continue };
        if let Some(name) = nearest.name() {
            found.insert(offset, (name, address - nearest.start));
        }
    }
    found
}

/// All functions with one of the addresses in them; `None` if the file has too many symbols.
fn candidates<'d>(
    elf: &ElfFile64<'d, Endianness>,
    wanted: &BTreeMap<u64, u64>,
) -> Option<Vec<Candidate<'d>>> {
    let names = |section: SectionIndex| {
        let section = elf.elf_section_table().section(section).ok();
        section.and_then(|section| section.data(elf.endian(), elf.data()).ok()).unwrap_or_default()
    };
    // Symbols that a program exports have a table of their own, which is there when the other one is
    // stripped.
    let tables = [
        (elf.symbols(), elf.elf_symbol_table()),
        (elf.dynamic_symbols(), elf.elf_dynamic_symbol_table()),
    ];
    if tables.iter().map(|(_, table)| table.len()).sum::<usize>() > MOST_SYMBOLS {
        return None;
    }
    let mut candidates = Vec::new();
    for (symbols, table) in tables {
        let names = names(table.string_section());
        for symbol in symbols {
            if symbol.kind() != SymbolKind::Text || symbol.is_undefined() {
                continue;
            }
            let (start, size) = (symbol.address(), symbol.size());
            // A call that is the last of its function returns to what is just behind it.
            let end = start.saturating_add(if size == 0 { UNKNOWN } else { size });
            if wanted.range(start..=end).next().is_some() {
                let name = symbol.elf_symbol().st_name.get(elf.endian());
                candidates.push(Candidate { start, end, names, name });
            }
        }
    }
    Some(candidates)
}

impl Candidate<'_> {
    /// Its name, as far as it is read; `None` if it has none.
    fn name(&self) -> Option<String> {
        let name = self.names.get(usize::try_from(self.name).ok()?..)?;
        let name = &name[..name.len().min(LONGEST_NAME)];
        let name = name.split(|&byte| byte == 0).next().filter(|name| !name.is_empty())?;
        Some(String::from_utf8_lossy(name).into_owned())
    }
}
