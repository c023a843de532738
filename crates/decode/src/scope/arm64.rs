//! What is looked for in a kernel for arm64.

use wakescope_core::btf;
use wakescope_core::budget::{Budget, Exceeded};

use super::ScopeError;
use super::frames::Function;
use super::kernel::{Followed, Tasks, What};
use super::memory::Memory;
use super::preempt_count::Division;
use super::symbols::{Symbol, address, u32_at};
use super::unwind::Base;

/// Bytes of a table of ways in, and of one way (`VBAR_EL1`).
const TABLE: u64 = 0x800;
const SLOT: u64 = 0x80;

/// The symbols of such tables: that of all processors, and those for processors that must not be led by branches
/// of programs.
const TABLES: [&str; 2] = ["vectors", "__bp_harden_el1_vectors"];

/// The ways in, in their order, as the kernel names what each goes on to (arch/arm64/kernel/entry.S).
const SLOTS: [(&str, What); 16] = [
    ("el1t_64_sync", What::Exception),
    ("el1t_64_irq", What::Interrupt),
    ("el1t_64_fiq", What::Interrupt),
    ("el1t_64_error", What::Exception),
    ("el1h_64_sync", What::Exception),
    ("el1h_64_irq", What::Interrupt),
    ("el1h_64_fiq", What::Interrupt),
    ("el1h_64_error", What::Exception),
    ("el0t_64_sync", What::Exception),
    ("el0t_64_irq", What::Interrupt),
    ("el0t_64_fiq", What::Interrupt),
    ("el0t_64_error", What::Exception),
    ("el0t_32_sync", What::Exception),
    ("el0t_32_irq", What::Interrupt),
    ("el0t_32_fiq", What::Interrupt),
    ("el0t_32_error", What::Exception),
];

/// How far into the function that switches tasks its one instruction may be, bytes.
const NEAR: usize = 256;

/// msr sp_el0, x0 to x30.
const SETS_TASK: u32 = 0xd518_4100;

/// Where the kernel's code ends.
pub(super) fn end_of_code(symbols: &[Symbol]) -> Result<u64, ScopeError> {
    address(symbols, "_etext").ok_or(ScopeError::Lacks("_etext"))
}

/// All ways into the kernel, with the names that each has.
pub(super) fn ways_in(symbols: &[Symbol]) -> Result<Vec<(Followed, &'static str)>, ScopeError> {
    address(symbols, TABLES[0]).ok_or(ScopeError::Lacks(TABLES[0]))?;
    let mut all = Vec::new();
    for start in TABLES.iter().filter_map(|name| address(symbols, name)) {
        let behind = symbols.iter().map(|symbol| symbol.address).find(|&address| address > start);
        let length = behind.map_or(TABLE, |behind| behind.saturating_sub(start));
        for table in 0..(length / TABLE).clamp(1, 4) {
            for (number, (name, what)) in SLOTS.into_iter().enumerate() {
                let start = start + table * TABLE + number as u64 * SLOT;
                all.push((Followed { start, end: start.saturating_add(1), what, value: 0 }, name));
            }
        }
    }
    Ok(all)
}

/// The function that switches tasks.
pub(super) const SWITCHES: &str = "cpu_switch_to";

/// The one instruction of that function which sets the pointer to the task.
pub(super) fn sets_task(memory: &Memory, function: u64) -> Option<u64> {
    let code = memory.from(function)?;
    let words = code[..code.len().min(NEAR)].chunks_exact(4);
    let mut words = words.map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    let place = words.position(|word| word & !0x1f == SETS_TASK)?;
    Some(function + 4 * place as u64)
}

/// The kernel's own type information, as its symbols say, or, without symbols of data, by how it begins: the whole
/// header but for lengths.
fn types<'a>(
    memory: &'a Memory,
    symbols: &[Symbol],
    budget: &Budget,
) -> Result<Option<&'a [u8]>, Exceeded> {
    const HEAD: [u8; 12] = [0x9f, 0xeb, 1, 0, 24, 0, 0, 0, 0, 0, 0, 0];
    if let Some((start, end)) = address(symbols, "__start_BTF").zip(address(symbols, "__stop_BTF"))
    {
        return Ok(memory.between(start, end));
    }
    let places = memory.stretches().flat_map(|(_, bytes)| {
        let aligned = (0..bytes.len()).step_by(8);
        aligned.filter(|&place| bytes[place..].starts_with(&HEAD)).map(|place| &bytes[place..])
    });
    for types in places {
        // The header says how long the types and the names are. Each may be as long as all of the memory.
        let length = |at| u32_at(types, at).map_or(0, u64::from);
        budget.take(length(12) + length(20), "bytes of type information")?;
        if btf::members(types, "task_struct").is_ok_and(|members| !members.is_empty()) {
            return Ok(Some(types));
        }
    }
    Ok(None)
}

/// How to find the task that runs, where its preempt count lies in it, and how that is divided.
pub(super) fn tasks(
    memory: &Memory,
    symbols: &[Symbol],
    budget: &Budget,
) -> Result<(Tasks, u64, Division), ScopeError> {
    let function = address(symbols, SWITCHES).ok_or(ScopeError::Lacks(SWITCHES))?;
    let current = sets_task(memory, function);
    let current = current.ok_or(ScopeError::Lacks("an instruction by which tasks are switched"))?;
    let types = types(memory, symbols, budget)?;
    let found = || {
        let types = types?;
        let members = btf::members(types, "task_struct").ok()?;
        let member = |name: &str| members.get(name).map(|&offset| u64::from(offset));
        let (pid, comm) = (member("pid")?, member("comm")?);
        let tasks = Tasks { current, pid, comm, prio: member("prio")?, policy: member("policy")? };
        // The count is in a union without a name, the only one.
        let of_thread = btf::unnamed_members(types, "thread_info").ok()?;
        let [count] = of_thread[..] else { return None };
        let of_each_cpu = btf::variables(types, ".data..percpu").ok()?;
        let has_mark = of_each_cpu.contains_key(Division::MARK);
        let division = Division::of(has_mark || address(symbols, Division::MARK).is_some());
        Some((tasks, member("thread_info")? + u64::from(count), division))
    };
    found().ok_or(ScopeError::Lacks("type information (CONFIG_DEBUG_INFO_BTF)"))
}

/// The functions of the kernel, with what holds where each begins.
pub(super) fn functions(symbols: &[Symbol], starts: &[(u64, String)], end: u64) -> Vec<Function> {
    // Code that is entered from programs and from anywhere in the kernel, not by calls.
    let entry = address(symbols, "__entry_text_start").zip(address(symbols, "__entry_text_end"));
    let entry = entry.map_or(0..0, |(start, end)| start..end);
    let ends = starts.iter().skip(1).map(|(start, _)| *start).chain([end]);
    let functions = starts.iter().zip(ends).filter(|((start, _), _)| *start < end);
    let functions = functions.map(|((start, name), next)| {
        // Parts of functions are jumped into, with whatever frame there is.
        let is_called = !name.contains(".cold") && !entry.contains(start);
        let entry = if is_called { Base::Link } else { Base::Unknown };
        Function { start: *start, end: next.min(end), entry }
    });
    functions.collect()
}

/// The places at which the kernel patches jumps into its code (include/linux/jump_label.h), and where these lead, in
/// order.
pub(super) fn patched_jumps(memory: &Memory, symbols: &[Symbol]) -> Vec<(u64, u64)> {
    /// Bytes of an entry: two distances of four bytes, and what it depends on.
    const ENTRY: usize = 16;
    let table = || {
        let (start, end) =
            (address(symbols, "__start___jump_table")?, address(symbols, "__stop___jump_table")?);
        Some((start, memory.between(start, end)?))
    };
    let (start, table) = table().unwrap_or_default();
    let entries = table.chunks_exact(ENTRY).zip((start..).step_by(ENTRY));
    let distance = |entry: &[u8], at: usize| {
        i64::from(i32::from_le_bytes([entry[at], entry[at + 1], entry[at + 2], entry[at + 3]]))
    };
    let jump = |(entry, here): (&[u8], u64)| {
        let from = here.wrapping_add_signed(distance(entry, 0));
        (from, here.wrapping_add(4).wrapping_add_signed(distance(entry, 4)))
    };
    let mut jumps: Vec<(u64, u64)> = entries.map(jump).collect();
    jumps.sort_unstable();
    jumps
}
