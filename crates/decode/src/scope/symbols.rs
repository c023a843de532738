//! The kernel's own table of symbols (kernel/kallsyms.c), found in its memory.
//!
//! Kernels lay it out in several ways (scripts/kallsyms.c). Parts of it are unlike anything else: the
//! index of the 256 tokens that names are packed with, and the markers, which say where each 256th name
//! is packed. The form of the addresses has no such mark, so each is tried: only the right one puts
//! the kernel's banner where the banner is, or, in a table of functions alone, the one function of arm64
//! that sets the pointer to the task where an instruction does so.

use wakescope_core::budget::{Budget, Entry, Exceeded};

use super::memory::Memory;
use super::{ScopeError, arm64};

/// What is kept of a symbol: some 40 bytes of name among others.
const SYMBOL: Entry = Entry { name: "symbols", bytes: 96 };

/// Tokens that names are packed with.
const TOKENS: usize = 256;

/// The longest token, with the zero behind it: a name has 511 letters at most (KSYM_NAME_LEN). 6.18 has one of 47.
const LONGEST_TOKEN: u16 = 512;

/// Names from one marker to the next.
const MARKED: usize = 256;

/// Fewer markers than that may be found by chance: 4,096 symbols, a fifth of what small kernels have.
const LEAST_MARKERS: usize = 16;

/// Bytes from one marker to the next: every name has at least one, and seldom more than 100.
const MARKER_STEP: std::ops::RangeInclusive<u32> = 256..=65_536;

/// A symbol: its address, its type as `nm` gives it, its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Symbol {
    pub(super) address: u64,
    pub(super) kind: char,
    pub(super) name: String,
}

/// The address of the first symbol of this name.
pub(super) fn address(symbols: &[Symbol], name: &str) -> Option<u64> {
    symbols.iter().find(|symbol| symbol.name == name).map(|symbol| symbol.address)
}

/// All symbols of the kernel, in order of their addresses.
pub(super) fn find(memory: &Memory, budget: &Budget) -> Result<Vec<Symbol>, ScopeError> {
    for (start, bytes) in memory.stretches() {
        let Some(table) = Table::find(bytes, budget)? else { continue };
        let names = table.names(budget)?;
        let Some(addresses) = table.addresses(start, &names, memory) else { continue };
        let mut symbols: Vec<Symbol> = names
            .into_iter()
            .zip(addresses)
            .filter_map(|(packed, address)| {
                let mut letters = packed.chars();
                Some(Symbol { address, kind: letters.next()?, name: letters.collect() })
            })
            .collect();
        symbols.sort_by_key(|symbol| symbol.address);
        return Ok(symbols);
    }
    Err(ScopeError::NoSymbols)
}

/// Where the parts of the table are, so far as they are unlike anything else: offsets in a stretch.
struct Table<'a> {
    bytes: &'a [u8],
    tokens: Vec<&'a [u8]>,
    /// Just behind the index of the tokens.
    after_tokens: usize,
    markers: Vec<u32>,
    /// Where the packed names begin, and where the markers do.
    names: usize,
    names_end: usize,
}

impl<'a> Table<'a> {
    fn find(bytes: &'a [u8], budget: &Budget) -> Result<Option<Self>, ScopeError> {
        let Some((tokens_at, index_at)) = token_table(bytes, budget)? else { return Ok(None) };
        let tokens = (0..TOKENS).map_while(|number| {
            let from = tokens_at + usize::from(u16_at(bytes, index_at + 2 * number)?);
            let token = bytes.get(from..index_at)?;
            token.split(|&byte| byte == 0).next()
        });
        let tokens: Vec<&[u8]> = tokens.collect();
        let Some((markers_at, markers)) = markers(&bytes[..tokens_at]) else { return Ok(None) };
        let last = markers.last().map_or(0, |&last| last as usize);
        let mut table = Self {
            bytes,
            tokens,
            after_tokens: index_at + 2 * TOKENS,
            markers,
            names: 0,
            names_end: markers_at,
        };
        // Behind the last marker are up to 256 names, of which nobody says how long they are.
        let Some(latest) = markers_at.checked_sub(last) else { return Ok(None) };
        let earliest = latest.saturating_sub(MARKED * 512);
        for names in (earliest..=latest & !3).rev().step_by(4) {
            budget.take(1 + TOKENS as u64, "places where names may begin")?;
            table.names = names;
            if table.packed().take(MARKED + 1).count() > MARKED && table.fits(budget)? {
                return Ok(Some(table));
            }
        }
        Ok(None)
    }

    /// The packed names, each as the numbers of its tokens, with where it begins; they end early where
    /// one does not fit the markers.
    fn packed(&self) -> impl Iterator<Item = (usize, &'a [u8])> + use<'a, '_> {
        let mut at = self.names;
        let mut number = 0_usize;
        std::iter::from_fn(move || {
            let begin = at;
            if number % MARKED == 0 {
                let marker = *self.markers.get(number / MARKED)?;
                if begin - self.names != marker as usize {
                    return None;
                }
            }
            let (length, from) = length_at(self.bytes, begin)?;
            let name = self.bytes.get(from..from + length)?;
            (from + length <= self.names_end).then_some(())?;
            (at, number) = (from + length, number + 1);
            Some((begin, name))
        })
    }

    /// Whether the names reach from their beginning to the markers, and pass all of these.
    fn fits(&self, budget: &Budget) -> Result<bool, ScopeError> {
        budget.take((self.names_end - self.names) as u64, "bytes of names")?;
        let (mut count, mut end) = (0, self.names);
        for (begin, name) in self.packed() {
            count += 1;
            end = begin + name.len() + if name.len() < 0x80 { 1 } else { 2 };
        }
        let all_markers = count > MARKED * (self.markers.len() - 1);
        Ok(all_markers && self.names_end - end < 8)
    }

    fn names(&self, budget: &Budget) -> Result<Vec<String>, ScopeError> {
        let mut names = Vec::new();
        for (_, packed) in self.packed() {
            budget.keep(1, SYMBOL)?;
            let tokens = packed.iter().filter_map(|&token| self.tokens.get(usize::from(token)));
            let name: Vec<u8> = tokens.take(512).copied().flatten().copied().take(512).collect();
            budget.take(name.len() as u64, "bytes of names")?;
            names.push(String::from_utf8_lossy(&name).into_owned());
        }
        Ok(names)
    }

    /// The address of each name. The stretch begins at `start`.
    fn addresses(&self, start: u64, names: &[String], memory: &Memory) -> Option<Vec<u64>> {
        let place = |known: &str| names.iter().position(|name| name.get(1..) == Some(known));
        let (banner, switches) = (place("linux_banner"), place(arm64::SWITCHES));
        self.forms(start, names.len()).into_iter().find_map(|form| {
            let of = |number| form.address(self.bytes, number);
            let fits = match (banner, switches) {
                (Some(banner), _) => memory.from(of(banner)?)?.starts_with(b"Linux version "),
                (None, Some(function)) => arm64::sets_task(memory, of(function)?).is_some(),
                (None, None) => false,
            };
            fits.then(|| (0..names.len()).map(of).collect()).flatten()
        })
    }

    /// All forms that addresses may have.
    fn forms(&self, start: u64, count: usize) -> Vec<Form> {
        let mut forms = Vec::new();
        // Up to 6.3: distances, the address that they count from, and the number of names before the names.
        for number_bytes in [8, 4] {
            for base in (1..=2).filter_map(|n| self.names.checked_sub(number_bytes + 4 * n + 4)) {
                for table in [4 * count, (4 * count).next_multiple_of(8)] {
                    let Some((table, address)) =
                        base.checked_sub(table).zip(u64_at(self.bytes, base))
                    else {
                        continue;
                    };
                    forms.push(Form { table, rule: Rule::MixedFrom(address) });
                    forms.push(Form { table, rule: Rule::From(address) });
                }
            }
        }
        // Since 6.4 the distances follow the index of tokens, and the address that they count from follows these.
        for table in [self.after_tokens.next_multiple_of(8), self.after_tokens] {
            for base in [table + 4 * count, (table + 4 * count).next_multiple_of(8)] {
                if let Some(address) = u64_at(self.bytes, base) {
                    forms.push(Form { table, rule: Rule::MixedFrom(address) });
                    forms.push(Form { table, rule: Rule::From(address) });
                }
            }
            // In 7.2 from the places where they are themselves.
            forms.push(Form { table, rule: Rule::FromItself(start) });
        }
        forms
    }
}

/// How addresses are stored, and where.
struct Form {
    table: usize,
    rule: Rule,
}

enum Rule {
    /// Distances above this.
    From(u64),
    /// Numbers of at least 0 are addresses themselves, as of data of each CPU; others are, negative,
    /// distances above this, less one.
    MixedFrom(u64),
    /// Distances from where they are, in a stretch that begins here.
    FromItself(u64),
}

impl Form {
    fn address(&self, bytes: &[u8], number: usize) -> Option<u64> {
        let at = self.table.checked_add(number.checked_mul(4)?)?;
        let distance = u32_at(bytes, at)?;
        let signed = i64::from(i32::from_le_bytes(distance.to_le_bytes()));
        Some(match self.rule {
            Rule::From(base) => base.wrapping_add(distance.into()),
            Rule::MixedFrom(_) if signed >= 0 => distance.into(),
            Rule::MixedFrom(base) => base.wrapping_sub(1).wrapping_add_signed(-signed),
            Rule::FromItself(start) => start.wrapping_add(at as u64).wrapping_add_signed(signed),
        })
    }
}

/// Where the texts of tokens begin, and where their index does: 256 offsets that ascend from 0, of
/// texts that each end with a zero.
fn token_table(bytes: &[u8], budget: &Budget) -> Result<Option<(usize, usize)>, Exceeded> {
    let mut run = 0;
    let mut before = None;
    let numbers = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    for (at, number) in (0..).step_by(2).zip(numbers) {
        let step = before.map(|before| number.checked_sub(before));
        run = if matches!(step, Some(Some(2..=LONGEST_TOKEN))) { run + 1 } else { 0 };
        before = Some(number);
        if run < TOKENS - 1 {
            continue;
        }
        let index = at - 2 * (TOKENS - 1);
        if u16_at(bytes, index) == Some(0) {
            budget.take(u64::from(LONGEST_TOKEN) * TOKENS as u64, "places where tokens may be")?;
            if let Some(tokens) = tokens_before(bytes, index) {
                return Ok(Some((tokens, index)));
            }
        }
    }
    Ok(None)
}

fn tokens_before(bytes: &[u8], index: usize) -> Option<usize> {
    let offsets = (1..TOKENS).map_while(|number| u16_at(bytes, index + 2 * number));
    let offsets: Vec<usize> = offsets.map(usize::from).collect();
    let last = *offsets.last()?;
    let latest = index.checked_sub(last + 2)?;
    (latest.saturating_sub(LONGEST_TOKEN.into())..=latest)
        .find(|&tokens| offsets.iter().all(|&offset| bytes.get(tokens + offset - 1) == Some(&0)))
}

/// The last run of markers in `bytes`, and where it begins.
fn markers(bytes: &[u8]) -> Option<(usize, Vec<u32>)> {
    let mut run = 0;
    for at in (4..bytes.len() & !3).step_by(4).rev() {
        let (before, here) = (u32_at(bytes, at - 4)?, u32_at(bytes, at)?);
        let is_step = here.checked_sub(before).is_some_and(|step| MARKER_STEP.contains(&step));
        run = if is_step { run + 1 } else { 0 };
        if before == 0 && run + 1 >= LEAST_MARKERS {
            let all = (0..=run).map_while(|number| u32_at(bytes, at - 4 + 4 * number));
            return Some((at - 4, all.collect()));
        }
    }
    None
}

/// The length of the name at `at`, and where its tokens begin: lengths above 127 take two bytes.
fn length_at(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    match *bytes.get(at)? {
        0 => None,
        short @ 1..=0x7f => Some((short.into(), at + 1)),
        low => {
            let high = usize::from(*bytes.get(at + 1)?);
            Some((usize::from(low & 0x7f) | high << 7, at + 2))
        }
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at.checked_add(2)?)?.try_into().ok().map(u16::from_le_bytes)
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    super::word(bytes, at)
}
