//! What of a kernel the plugin has to know, and the names of its functions.

use std::fmt::Write as _;

use wakescope_core::budget::Budget;

use super::ScopeError;
use super::memory::Memory;
use super::symbols::{self, Symbol};
use super::unwind::{self, Base, Unwind};

/// Between 6.2 and 6.14 the preempt count is in a struct (`pcpu_hot`), behind a pointer.
const IN_PCPU_HOT: u64 = 8;

/// Where modules begin, which are not part of the image.
const MODULES: u64 = 0xffff_ffff_c000_0000;

/// How far from its symbol an address may be: further away it is in no function.
const FARTHEST: u64 = 1 << 20;

/// First line of what is kept of a kernel. Changes when what follows does.
pub const HEAD: &str = "wakescope.scope-kernel/1";

/// A kernel for x86-64, as it lies in memory.
#[derive(Debug, PartialEq)]
pub struct Kernel {
    /// The address of the preempt count, as instructions with a GS prefix have it.
    pub(super) preempt_count: u64,
    pub(super) entries: Vec<WayIn>,
    pub(super) unwinds: Vec<Unwind>,
    /// Where functions begin, in order, with their names.
    functions: Vec<(u64, String)>,
}

/// Addresses at which code begins that turns interrupts off by being entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WayIn {
    pub(super) start: u64,
    pub(super) end: u64,
    /// An exception, which can stop code between any two instructions.
    pub(super) is_exception: bool,
}

impl Kernel {
    /// Reads the kernel's memory as the plugin wrote it.
    ///
    /// # Errors
    /// If it is cut short or damaged, or without the symbols that are needed.
    pub fn read(bytes: &[u8]) -> Result<Self, ScopeError> {
        let budget = Budget::of(bytes.len() as u64);
        let memory = Memory::read(bytes)?;
        let symbols = symbols::find(&memory, &budget)?;
        let unwinds = unwind::find(&memory, &symbols, &budget)?;
        let at = |name: &str| symbols.iter().find(|symbol| symbol.name == name).map(|s| s.address);
        let in_struct = || at("pcpu_hot").map(|address| address.wrapping_add(IN_PCPU_HOT));
        let preempt_count =
            at("__preempt_count").or_else(in_struct).ok_or(ScopeError::Lacks("__preempt_count"))?;
        let entries = ways_in(&symbols)?;
        let is_code = |symbol: &&Symbol| matches!(symbol.kind, 't' | 'T' | 'w' | 'W');
        let mut functions: Vec<(u64, String)> = Vec::new();
        for symbol in symbols.iter().filter(is_code) {
            // Of several names for one place, the first is taken; padding before functions is not.
            let is_other = functions.last().is_none_or(|(start, _)| *start != symbol.address);
            if is_other && !symbol.name.starts_with("__pfx_") {
                functions.push((symbol.address, symbol.name.clone()));
            }
        }
        Ok(Self { preempt_count, entries, unwinds, functions })
    }

    /// What is kept of it, so that the kernel need not be booted once more to be asked for it.
    pub fn pack(&self) -> String {
        let mut text = format!("{HEAD}\n{:x}\n", self.preempt_count);
        for way in &self.entries {
            let _ =
                writeln!(text, "e {:x} {:x} {}", way.start, way.end, u8::from(way.is_exception));
        }
        for (start, name) in &self.functions {
            let _ = writeln!(text, "f {start:x} {name}");
        }
        for Unwind { from, offset, base } in &self.unwinds {
            let _ = writeln!(text, "u {from:x} {offset} {}", base.number());
        }
        text + "end\n"
    }

    /// Reads what [`Self::pack`] wrote; `None` if it is anything else.
    pub fn unpack(text: &str) -> Option<Self> {
        let mut lines = text.strip_suffix("end\n")?.lines();
        (lines.next() == Some(HEAD)).then_some(())?;
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let preempt_count = hex(lines.next()?)?;
        let mut kernel =
            Self { preempt_count, entries: vec![], unwinds: vec![], functions: vec![] };
        for line in lines {
            let words: Vec<&str> = line.splitn(4, ' ').collect();
            match words[..] {
                ["e", start, end, kind] => {
                    let (start, end) = (hex(start)?, hex(end)?);
                    kernel.entries.push(WayIn { start, end, is_exception: kind == "1" });
                }
                ["f", start, name] => kernel.functions.push((hex(start)?, name.into())),
                ["u", from, offset, base] => {
                    let base = Base::of_number(base)?;
                    let (from, offset) = (hex(from)?, offset.parse().ok()?);
                    kernel.unwinds.push(Unwind { from, offset, base });
                }
                _ => return None,
            }
        }
        kernel.functions.is_sorted_by_key(|(start, _)| *start).then_some(kernel)
    }

    /// Whether calls can be followed back.
    pub fn has_callers(&self) -> bool {
        !self.unwinds.is_empty()
    }

    /// The function that `address` is in; `None` outside of the image.
    pub(super) fn function(&self, address: u64) -> Option<&str> {
        let before = self.functions.partition_point(|(start, _)| *start <= address);
        let (start, name) = self.functions.get(before.checked_sub(1)?)?;
        (address < MODULES && address - start < FARTHEST).then_some(name)
    }
}

/// All ways into the kernel (arch/x86/entry, arch/x86/include/asm/idtentry.h).
fn ways_in(symbols: &[Symbol]) -> Result<Vec<WayIn>, ScopeError> {
    const STUBS: &str = "irq_entries_start";
    const LAST_STUBS: &str = "spurious_entries_start";
    const SYSTEM_CALL: &str = "entry_SYSCALL_64";
    let at = |name: &'static str| {
        let found = symbols.iter().find(|symbol| symbol.name == name);
        found.map(|symbol| symbol.address).ok_or(ScopeError::Lacks(name))
    };
    // A stub for each vector, without names of their own, up to whatever follows.
    let (start, last) = (at(STUBS)?, at(LAST_STUBS)?);
    let behind = symbols.iter().map(|symbol| symbol.address).find(|&address| address > last);
    let end = behind.filter(|end| end - last < 1 << 14 && start < last);
    let mut all =
        vec![WayIn { start, end: end.ok_or(ScopeError::Lacks(LAST_STUBS))?, is_exception: false }];
    at(SYSTEM_CALL)?;
    for symbol in symbols {
        let name = symbol.name.as_str();
        let is_exception = name.starts_with("asm_exc_") || name == "asm_int80_emulation";
        let is_other = name.starts_with("asm_sysvec_")
            || [
                SYSTEM_CALL,
                "entry_SYSCALL_compat",
                "entry_SYSENTER_compat",
                "entry_SYSCALL32_ignore",
            ]
            .contains(&name);
        if is_exception || is_other {
            let start = symbol.address;
            all.push(WayIn { start, end: start.saturating_add(1), is_exception });
        }
    }
    Ok(all)
}
