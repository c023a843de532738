//! Where the kernel's tables are, and what they say of a place in code.

use std::fs;
use std::ops::RangeInclusive;

use wakescope_decode::orc::{self, Base, CallerBp, Format, Kind, Rule};

use super::memory::{Cached, Memory, PAGE};
use crate::symbols::Addresses;

/// Symbols that tell where the tables and the code are.
pub(super) const NAMES: &[&str] =
    &[IPS, IPS_END, ENTRIES, CODE, CODE_END, INIT_CODE_END, A_FUNCTION, READS_THEM];

/// The table of where entries begin to hold, and that of the entries.
const IPS: &str = "__start_orc_unwind_ip";
const IPS_END: &str = "__stop_orc_unwind_ip";
const ENTRIES: &str = "__start_orc_unwind";
/// The kernel's code, and what it had to begin with.
const CODE: &str = "_stext";
const CODE_END: &str = "_etext";
const INIT_CODE_END: &str = "_einittext";
/// Any function that every kernel has.
const A_FUNCTION: &str = "hrtimer_wakeup";

/// The kernel's own function that looks a place up in the tables.
const READS_THEM: &str = "__orc_find";

/// More modules than that are not looked at.
const MOST_MODULES: usize = 1_024;

/// Farther behind the last place that a module's table knows, there is no code of it.
const FARTHEST: u64 = 1 << 16;

/// Two tables side by side: distances from each word to a place in code, in order, and what holds from
/// there on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) ips: u64,
    pub(super) entries: u64,
    pub(super) count: u64,
}

/// All tables.
pub(crate) struct Tables {
    format: Format,
    kernel: Table,
    code: RangeInclusive<u64>,
    /// Looked for when there is need for them, which is seldom: each with the code that it is of.
    modules: Option<Vec<(RangeInclusive<u64>, Table)>>,
}

impl Tables {
    /// `None` if they are not found, or not understood.
    pub(super) fn find<M: Memory>(memory: &mut Cached<M>, known: &Addresses) -> Option<Self> {
        let at = |name| known.get(name).copied();
        let code = at(CODE)?..=at(INIT_CODE_END).or(at(CODE_END))?;
        let listed = || {
            let (ips, end) = (at(IPS)?, at(IPS_END)?);
            let count = end.checked_sub(ips)? / 4;
            Some(Table { ips, entries: at(ENTRIES)?, count })
        };
        let kernel = match listed() {
            Some(table) => table,
            // To look takes a tenth of a second, in vain where there are none.
            None => Table::look_for(memory, &code, at(READS_THEM).and(at(CODE_END))?)?,
        };
        let function = at(A_FUNCTION).filter(|function| code.contains(function))?;
        let index = kernel.index(memory, function)?;
        let entry = kernel.entry(memory, index)?;
        let format = Format::with_start_of_function(entry)?;
        Some(Self { format, kernel, code, modules: None })
    }

    /// How to leave the function that `at` is in.
    pub(super) fn rule<M: Memory>(&mut self, memory: &mut Cached<M>, at: u64) -> Option<Rule> {
        let table = if self.code.contains(&at) {
            self.kernel
        } else {
            let modules = self.modules.get_or_insert_with(|| modules(memory));
            let module = modules.iter().find(|(code, _)| code.contains(&at));
            match module {
                Some(&(_, table)) => table,
                // Code that the kernel has made while it ran, as of programs like ours, keeps a frame
                // pointer, if anything.
                None => return Some(FRAMED),
            }
        };
        let index = table.index(memory, at)?;
        self.format.rule(table.entry(memory, index)?)
    }
}

const FRAMED: Rule =
    Rule { base: Base::Bp, sp_offset: 16, bp: CallerBp::AtOuter, bp_offset: -16, kind: Kind::Call };

impl Table {
    /// The number of the entry that holds at `at`.
    fn index<M: Memory>(self, memory: &mut Cached<M>, at: u64) -> Option<u64> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.place(memory, middle)? <= at {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low.checked_sub(1)
    }

    /// From where on the entry of this number holds.
    fn place<M: Memory>(self, memory: &mut Cached<M>, index: u64) -> Option<u64> {
        let at = self.ips.checked_add(index.checked_mul(4)?)?;
        Some(at.wrapping_add_signed(memory.i32(at)?.into()))
    }

    fn entry<M: Memory>(self, memory: &mut Cached<M>, index: u64) -> Option<[u8; 6]> {
        memory.bytes(self.entries.checked_add(index.checked_mul(orc::BYTES)?)?)
    }

    /// Looks for the tables behind the kernel's code, where no symbols tell where they are (without
    /// KALLSYMS_ALL, data have none). The first one is long, and nothing else is like it: distances to
    /// `code`, none less than the one before. The entries follow it
    /// (ORC_UNWIND_TABLE in include/asm-generic/vmlinux.lds.h).
    fn look_for<M: Memory>(
        memory: &mut Cached<M>,
        code: &RangeInclusive<u64>,
        behind: u64,
    ) -> Option<Self> {
        /// Longer than all that lies before the tables: some 23 MB in 6.18.
        const MOST_PAGES: u64 = (256 << 20) / PAGE as u64;
        let first = behind.next_multiple_of(PAGE as u64);
        let pages = (0..MOST_PAGES).map_while(|page| first.checked_add(page * PAGE as u64));
        let mut pages = pages.filter(|&at| {
            memory.page_once(at).is_some_and(|page| is_all_places(&page[..], at, code))
        });
        let within = pages.next()?;
        let mut is_place = |at: u64, after: u64| {
            let place = memory.i32(at).map(|distance| at.wrapping_add_signed(distance.into()));
            place.filter(|place| code.contains(place) && *place >= after)
        };
        let (mut end, mut last) = (within, *code.start());
        while let Some(place) = is_place(end, last) {
            (end, last) = (end + 4, place);
        }
        let mut start = within;
        let mut next = is_place(start, 0)?;
        while let Some(place) = is_place(start - 4, 0).filter(|&place| place <= next) {
            (start, next) = (start - 4, place);
        }
        Some(Self { ips: start, entries: end, count: (end - start) / 4 })
    }
}

/// Whether `page`, which lies at `at`, is nothing but distances to places in `code`, in order.
fn is_all_places(page: &[u8], at: u64, code: &RangeInclusive<u64>) -> bool {
    let mut before = *code.start();
    page.chunks_exact(4).zip((at..).step_by(4)).all(|(word, at)| {
        let distance = word.first_chunk().map_or(0, |bytes| i32::from_le_bytes(*bytes));
        let place = at.wrapping_add_signed(distance.into());
        let follows = place >= before && code.contains(&place);
        before = place;
        follows
    })
}

/// The tables of loaded modules.
fn modules<M: Memory>(memory: &mut Cached<M>) -> Vec<(RangeInclusive<u64>, Table)> {
    let Ok(folders) = fs::read_dir("/sys/module") else { return Vec::new() };
    let sections = folders.flatten().map(|folder| folder.path().join("sections"));
    let section = |name: &str, of: &std::path::Path| {
        let text = fs::read_to_string(of.join(name)).ok()?;
        u64::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()
    };
    let of_module = |sections: std::path::PathBuf| {
        let ips = section(".orc_unwind_ip", &sections)?;
        let entries = section(".orc_unwind", &sections)?;
        let module = section(".gnu.linkonce.this_module", &sections)?;
        table_of_module(memory, module, ips, entries)
    };
    sections.filter_map(of_module).take(MOST_MODULES).collect()
}

/// How long a module's tables are, it says itself: `struct module`, which is at `module`, has the
/// count of entries, and after it the addresses of both (`struct mod_arch_specific`, 5.10 to 7.2).
fn table_of_module<M: Memory>(
    memory: &mut Cached<M>,
    module: u64,
    ips: u64,
    entries: u64,
) -> Option<(RangeInclusive<u64>, Table)> {
    /// More than a module's structure has: 1,472 bytes in 6.18.
    const LARGEST: usize = 8_192;
    let places = (module..).step_by(8).take(LARGEST / 8);
    let mut at = places.take_while(|&at| at < u64::MAX - 16);
    let at = at.find(|&at| memory.u64(at) == Some(ips) && memory.u64(at + 8) == Some(entries))?;
    let count = u64::from(u32::from_le_bytes(memory.bytes(at.checked_sub(8)?)?));
    let table = Table { ips, entries, count };
    let first = table.place(memory, 0)?;
    let last = table.place(memory, count.checked_sub(1)?)?;
    Some((first..=last.checked_add(FARTHEST)?, table))
}

#[cfg(test)]
mod tests;
