//! What of a kernel the plugin has to know, and the names of its functions.

use std::fmt::Write as _;

use wakescope_core::btf;
use wakescope_core::budget::Budget;
use wakescope_core::scope::edges::AskKind;
use wakescope_core::scope::locks::NotSeen;
use wakescope_core::softirq::SOFTIRQS;

use super::memory::Memory;
use super::preempt_count::Division;
use super::symbols::{self, Symbol, address};
use super::unwind::{self, Base, Unwind};
use super::{ScopeError, arm64, asks, frames, lock_functions};

/// Between 6.2 and 6.14 the preempt count is in a struct (`pcpu_hot`), behind a pointer.
const IN_PCPU_HOT: u64 = 8;

/// Where modules begin, which are not part of the image.
pub(super) const MODULES: u64 = 0xffff_ffff_c000_0000;

/// How far from its symbol an address may be: further away it is in no function.
const FARTHEST: u64 = 1 << 20;

/// First line of what is kept of a kernel. Changes when what follows does.
pub const HEAD: &str = "wakescope.scope-kernel/8";

/// What a kernel is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Machine {
    X86,
    Arm64,
}

impl Machine {
    /// As programs for it have it (ELF).
    fn number(self) -> u64 {
        match self {
            Self::X86 => 62,
            Self::Arm64 => 183,
        }
    }

    pub(super) fn of_number(number: u64) -> Option<Self> {
        [Self::X86, Self::Arm64].into_iter().find(|machine| machine.number() == number)
    }
}

/// A kernel, as it lies in memory.
#[derive(Debug, PartialEq)]
pub struct Kernel {
    machine: Machine,
    /// Where its code ends, but for that of modules. All of it has the same high half of addresses.
    pub(super) end: u64,
    /// Of x86-64, the address of the preempt count, as instructions with a GS prefix have it; of arm64, where in
    /// a task it lies.
    pub(super) preempt_count: u64,
    pub(super) division: Division,
    pub(super) followed: Vec<Followed>,
    /// How to find the task that runs; `None` of a kernel without type information (BTF).
    pub(super) tasks: Option<Tasks>,
    pub(super) unwinds: Vec<Unwind>,
    /// Where it asks whether somebody else is to run, in order.
    pub(super) asks: Vec<(u64, AskKind)>,
    /// Where functions begin, in order, with their names.
    functions: Vec<(u64, String)>,
    /// Where variables begin, in order, with their names; empty of a kernel without such symbols.
    variables: Vec<(u64, String)>,
    /// Between which of these addresses the variables lie that each CPU has of its own.
    own: (u64, u64),
}

/// Addresses at which code begins that is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Followed {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) what: What,
    /// Of softirqs their number, of functions for locks their place among all of these.
    pub(super) value: u8,
}

/// What begins there: ways into the kernel, which turn interrupts off, and functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Interrupt,
    /// An exception, which can stop code between any two instructions.
    Exception,
    SystemCall,
    Softirq,
    /// A function that makes a task ready, which is its first argument.
    Wake,
    Schedule,
    /// The function that asks whether somebody else is to run.
    Ask,
    /// The function that handles an interrupt whose number is its second argument.
    Handler,
    /// A function that takes a lock, or tries to.
    Take,
    /// A function that releases a lock, or a part of it.
    Release,
}

impl What {
    /// In the order of the plugin's numbers, which is that of the declaration.
    const ALL: [Self; 10] = [
        Self::Interrupt,
        Self::Exception,
        Self::SystemCall,
        Self::Softirq,
        Self::Wake,
        Self::Schedule,
        Self::Ask,
        Self::Handler,
        Self::Take,
        Self::Release,
    ];

    fn is_of_lock(self) -> bool {
        matches!(self, Self::Take | Self::Release)
    }

    /// As the plugin numbers them.
    pub(super) fn number(self) -> u64 {
        self as u64
    }
}

/// How to find the task that runs, and where parts of a task lie in it. On x86-64 the pointer to it lies at
/// `current`, as instructions with a GS prefix have it; on arm64 the instruction that sets the pointer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tasks {
    pub(super) current: u64,
    pub(super) pid: u64,
    pub(super) comm: u64,
    pub(super) prio: u64,
    pub(super) policy: u64,
}

/// Functions whose first argument is a task that they make ready.
const WAKES: [&str; 2] = ["try_to_wake_up", "wake_up_new_task"];

impl Kernel {
    /// One of which nothing else is known.
    fn empty(machine: Machine, end: u64, preempt_count: u64, division: Division) -> Self {
        Self {
            machine,
            end,
            preempt_count,
            division,
            followed: Vec::new(),
            tasks: None,
            unwinds: Vec::new(),
            asks: Vec::new(),
            functions: Vec::new(),
            variables: Vec::new(),
            own: (0, 0),
        }
    }

    /// Reads the kernel's memory as the plugin wrote it.
    ///
    /// # Errors
    /// If it is cut short or damaged, or without the symbols that are needed.
    pub fn read(bytes: &[u8]) -> Result<Self, ScopeError> {
        let budget = Budget::of(bytes.len() as u64);
        let memory = Memory::read(bytes)?;
        let symbols = symbols::find(&memory, &budget)?;
        match memory.machine {
            Machine::X86 => Self::x86(&memory, &symbols, &budget),
            Machine::Arm64 => Self::arm64(&memory, &symbols, &budget),
        }
    }

    fn x86(memory: &Memory, symbols: &[Symbol], budget: &Budget) -> Result<Self, ScopeError> {
        let unwinds = unwind::find(memory, symbols, budget)?;
        let at = |name: &str| address(symbols, name);
        let in_struct = || at("pcpu_hot").map(|address| address.wrapping_add(IN_PCPU_HOT));
        let preempt_count =
            at("__preempt_count").or_else(in_struct).ok_or(ScopeError::Lacks("__preempt_count"))?;
        let tasks = tasks(memory, symbols);
        let mut followed = ways_in(symbols)?;
        followed.extend(functions_followed(symbols, Machine::X86).filter(|function| {
            // Who is woken cannot be read without knowing where it stands.
            tasks.is_some() || function.what != What::Wake
        }));
        let functions = functions(symbols, &[]);
        let asks = asks::find(memory, symbols);
        let division = Division::of(at(Division::MARK).is_some());
        let variables = variables(symbols);
        let own = own(symbols);
        let empty = Self::empty(Machine::X86, MODULES, preempt_count, division);
        Ok(Self { followed, tasks, unwinds, asks, functions, variables, own, ..empty })
    }

    fn arm64(memory: &Memory, symbols: &[Symbol], budget: &Budget) -> Result<Self, ScopeError> {
        let end = arm64::end_of_code(symbols)?;
        let (tasks, preempt_count, division) = arm64::tasks(memory, symbols, budget)?;
        let ways_in = arm64::ways_in(symbols)?;
        let mut functions = functions(symbols, &ways_in);
        functions.retain(|(start, _)| *start < end);
        let jumps = arm64::patched_jumps(memory, symbols);
        let code = arm64::functions(symbols, &functions, end);
        let unwinds = frames::find(memory, &code, &jumps, budget)?;
        let mut followed: Vec<Followed> = ways_in.into_iter().map(|(way, _)| way).collect();
        followed.extend(functions_followed(symbols, Machine::Arm64));
        // Where a CPU has what is its own is not followed there.
        let variables = variables(symbols);
        let empty = Self::empty(Machine::Arm64, end, preempt_count, division);
        Ok(Self { followed, tasks: Some(tasks), unwinds, functions, variables, ..empty })
    }

    /// What is kept of it, so that the kernel need not be booted once more to be asked for it.
    pub fn pack(&self) -> String {
        let (machine, end, count) = (self.machine.number(), self.end, self.preempt_count);
        let parts = self.division.parts();
        let mut text = format!("{HEAD}\n{machine} {end:x} {count:x} {parts}\n");
        for Followed { start, end, what, value } in &self.followed {
            let _ = writeln!(text, "e {start:x} {end:x} {} {value}", what.number());
        }
        if let Some(Tasks { current, pid, comm, prio, policy }) = self.tasks {
            let _ = writeln!(text, "t {current:x} {pid} {comm} {prio} {policy}");
        }
        for (start, name) in &self.functions {
            let _ = writeln!(text, "f {start:x} {name}");
        }
        for (start, name) in &self.variables {
            let _ = writeln!(text, "v {start:x} {name}");
        }
        let (own, own_end) = self.own;
        let _ = writeln!(text, "o {own:x} {own_end:x}");
        for (place, kind) in &self.asks {
            let _ = writeln!(text, "a {place:x} {}", number_of(*kind));
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
        let words: Vec<&str> = lines.next()?.split(' ').collect();
        let [machine, end, preempt_count, parts] = words[..] else { return None };
        let machine = Machine::of_number(machine.parse().ok()?)?;
        let division = Division::of_parts(parts)?;
        let mut kernel = Self::empty(machine, hex(end)?, hex(preempt_count)?, division);
        for line in lines {
            let words: Vec<&str> = line.splitn(6, ' ').collect();
            match words[..] {
                ["e", start, end, what, value] => {
                    let (start, end) = (hex(start)?, hex(end)?);
                    let what = *What::ALL.get(what.parse::<usize>().ok()?)?;
                    let value: u8 = value.parse().ok()?;
                    let most = lock_functions::FUNCTIONS.len();
                    (!what.is_of_lock() || usize::from(value) < most).then_some(())?;
                    kernel.followed.push(Followed { start, end, what, value });
                }
                ["t", current, pid, comm, prio, policy] => {
                    let number = |text: &str| text.parse().ok();
                    let (current, pid, comm) = (hex(current)?, number(pid)?, number(comm)?);
                    let (prio, policy) = (number(prio)?, number(policy)?);
                    kernel.tasks = Some(Tasks { current, pid, comm, prio, policy });
                }
                ["a", place, kind] => {
                    let kind = ask_kind(kind.parse().ok()?)?;
                    kernel.asks.push((hex(place)?, kind));
                }
                ["v", start, name] => kernel.variables.push((hex(start)?, name.into())),
                ["o", start, end] => kernel.own = (hex(start)?, hex(end)?),
                ["f", start, name] => kernel.functions.push((hex(start)?, name.into())),
                ["u", from, offset, base] => {
                    let base = Base::of_number(base)?;
                    let (from, offset) = (hex(from)?, offset.parse().ok()?);
                    kernel.unwinds.push(Unwind { from, offset, base });
                }
                _ => return None,
            }
        }
        let is_sorted = kernel.functions.is_sorted_by_key(|(start, _)| *start)
            && kernel.variables.is_sorted_by_key(|(start, _)| *start)
            && kernel.asks.is_sorted_by_key(|(place, _)| *place);
        (is_sorted && kernel.asks.len() <= asks::MOST).then_some(kernel)
    }

    /// Whether calls can be followed back.
    pub fn has_callers(&self) -> bool {
        !self.unwinds.is_empty()
    }

    /// Whether it is known where the kernel asks by `cond_resched` and `might_sleep`: most kernels list that.
    pub(super) fn has_asks(&self) -> bool {
        self.asks.iter().any(|(_, kind)| *kind != AskKind::NeedResched)
    }

    /// Whether it can be said which task runs.
    pub(crate) fn has_tasks(&self) -> bool {
        self.tasks.is_some()
    }

    /// The function that `address` is in; `None` outside of the image.
    pub(super) fn function(&self, address: u64) -> Option<&str> {
        let place = self.place_of_function(address)?;
        self.functions.get(place).map(|(_, name)| name.as_str())
    }

    /// The variable that `address` is in, where the CPU has what is its own this far from their symbols; `None` of
    /// what was allocated.
    pub(super) fn variable(&self, address: u64, own: u64) -> Option<&str> {
        let (start, end) = self.own;
        let in_own = address.wrapping_sub(own);
        let is_own = own != 0 && (start..end).contains(&in_own);
        let address = if is_own { in_own } else { address };
        let before = self.variables.partition_point(|(start, _)| *start <= address);
        let (at, name) = self.variables.get(before.checked_sub(1)?)?;
        // The last one has no end, and what is the CPU's own has symbols among all others.
        let next = self.variables.get(before).map(|(next, _)| *next)?;
        let is_in = (start..end).contains(at) == is_own && next - at < FARTHEST;
        (is_in && !name.is_empty()).then_some(name.as_str())
    }

    /// What is not seen of locks in this kernel.
    pub fn locks_not_seen(&self) -> Vec<NotSeen> {
        self.locks().1
    }

    /// Functions for locks that are followed, by their place among all of these, and what is not seen.
    pub(super) fn locks(&self) -> (Vec<u8>, Vec<NotSeen>) {
        let of_locks = self.followed.iter().filter(|code| code.what.is_of_lock());
        let present: Vec<u8> = of_locks.map(|code| code.value).collect();
        lock_functions::followed(&present, self.has_tasks())
    }

    /// Where the functions for locks begin that are followed, with their places among all of these.
    pub(super) fn lock_functions(&self) -> impl Iterator<Item = (u64, u8)> {
        let (followed, _) = self.locks();
        let of_locks = self.followed.iter().filter(|code| code.what.is_of_lock());
        let of_locks = of_locks.map(|code| (code.start, code.value));
        of_locks.filter(move |(_, value)| followed.contains(value))
    }

    /// Where that function stands among all of them.
    pub(super) fn place_of_function(&self, address: u64) -> Option<usize> {
        let before = self.functions.partition_point(|(start, _)| *start <= address);
        let place = before.checked_sub(1)?;
        let (start, _) = self.functions.get(place)?;
        (address < self.end && address - start < FARTHEST).then_some(place)
    }

    /// Where functions begin, in order.
    pub(super) fn starts(&self) -> impl Iterator<Item = u64> {
        self.functions.iter().map(|(start, _)| *start)
    }

    /// The names of all functions, but for those of modules. Of several names for one, the first.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.functions.iter().map(|(_, name)| name.as_str())
    }
}

/// In the order in which the plugin numbers them.
const ASK_KINDS: [AskKind; 4] =
    [AskKind::Either, AskKind::CondResched, AskKind::MightResched, AskKind::NeedResched];

/// As the plugin numbers it.
pub(super) fn number_of(kind: AskKind) -> u64 {
    ASK_KINDS.into_iter().zip(0..).find(|(known, _)| *known == kind).map_or(0, |(_, number)| number)
}

/// What the plugin numbers so.
pub(super) fn ask_kind(number: u64) -> Option<AskKind> {
    ASK_KINDS.get(usize::try_from(number).ok()?).copied()
}

/// How to find the task that runs, as the kernel's own type information says it.
fn tasks(memory: &Memory, symbols: &[Symbol]) -> Option<Tasks> {
    let at = |name: &str| address(symbols, name);
    // In the struct of 6.2 to 6.14 it stands first.
    let current = at("current_task").or_else(|| at("pcpu_hot"))?;
    let (start, end) = (at("__start_BTF")?, at("__stop_BTF")?);
    let length = usize::try_from(end.checked_sub(start)?).ok()?;
    let members = btf::members(memory.from(start)?.get(..length)?, "task_struct").ok()?;
    let member = |name: &str| members.get(name).map(|&offset| u64::from(offset));
    let (pid, comm) = (member("pid")?, member("comm")?);
    Some(Tasks { current, pid, comm, prio: member("prio")?, policy: member("policy")? })
}

/// Where functions begin, in order, with their names. Ways into the kernel that the kernel has no symbols for have
/// names of their own.
fn functions(symbols: &[Symbol], ways_in: &[(Followed, &str)]) -> Vec<(u64, String)> {
    let is_code = |symbol: &&Symbol| matches!(symbol.kind, 't' | 'T' | 'w' | 'W');
    let symbols = symbols.iter().filter(is_code);
    // Padding before functions is none.
    let symbols = symbols.filter(|symbol| !symbol.name.starts_with("__pfx_"));
    let symbols = symbols.map(|symbol| (symbol.address, symbol.name.as_str()));
    let ways_in = ways_in.iter().map(|(way, name)| (way.start, *name));
    let mut all: Vec<(u64, &str)> = ways_in.chain(symbols).collect();
    all.sort_by_key(|(start, _)| *start);
    // Of several names for one place, the first is taken.
    all.dedup_by_key(|(start, _)| *start);
    all.into_iter().map(|(start, name)| (start, name.to_owned())).collect()
}

/// Where variables begin, in order, with their names. Without a name: where they end.
fn variables(symbols: &[Symbol]) -> Vec<(u64, String)> {
    let is_variable = |symbol: &&Symbol| "dDbBrRvVaA".contains(symbol.kind);
    let is_end =
        |name: &str| name.starts_with("__stop_") || name.ends_with("_end") || name == "_end";
    let symbols = symbols.iter().filter(is_variable);
    let mut all: Vec<(u64, &str)> = symbols
        .map(|symbol| (symbol.address, symbol.name.as_str()))
        .map(|(at, name)| (at, if is_end(name) { "" } else { name }))
        .collect();
    // Of several names for one place, the first is taken, and an end only if nothing begins there.
    all.sort_by_key(|(start, name)| (*start, name.is_empty()));
    all.dedup_by_key(|(start, _)| *start);
    all.into_iter().map(|(start, name)| (start, name.to_owned())).collect()
}

/// Between which addresses the variables lie that each CPU has of its own.
fn own(symbols: &[Symbol]) -> (u64, u64) {
    let at = |name: &str| address(symbols, name);
    at("__per_cpu_start").zip(at("__per_cpu_end")).unwrap_or_default()
}

/// Functions that are followed, so far as the kernel has them.
fn functions_followed(symbols: &[Symbol], machine: Machine) -> impl Iterator<Item = Followed> {
    let names_interrupts = machine == Machine::Arm64;
    let what = move |name: &str| {
        let softirq = SOFTIRQS.iter().zip(0..).find(|(known, _)| known.functions.contains(&name));
        match softirq {
            Some((_, number)) => Some((What::Softirq, number)),
            None if WAKES.contains(&name) => Some((What::Wake, 0)),
            None if name == "__schedule" => Some((What::Schedule, 0)),
            None if name == "__cond_resched" => Some((What::Ask, 0)),
            None if lock_functions::number_of(name).is_some() => {
                let number = lock_functions::number_of(name)?;
                let takes = lock_functions::FUNCTIONS[usize::from(number)].act.takes();
                Some((if takes { What::Take } else { What::Release }, number))
            }
            // On x86-64 the way in says which interrupt it is, and all of devices have one name.
            None if name == "generic_handle_domain_irq" && names_interrupts => {
                Some((What::Handler, 0))
            }
            None => None,
        }
    };
    symbols.iter().filter(|symbol| matches!(symbol.kind, 't' | 'T')).filter_map(move |symbol| {
        let (what, value) = what(&symbol.name)?;
        let start = symbol.address;
        Some(Followed { start, end: start.saturating_add(1), what, value })
    })
}

/// All ways into the kernel (arch/x86/entry, arch/x86/include/asm/idtentry.h), but for those of FRED: by these,
/// system calls, exceptions and interrupts come to one address, and the emulated CPU has no FRED (QEMU 10.0.13: "TCG
/// doesn't support requested feature").
fn ways_in(symbols: &[Symbol]) -> Result<Vec<Followed>, ScopeError> {
    const STUBS: &str = "irq_entries_start";
    const LAST_STUBS: &str = "spurious_entries_start";
    const SYSTEM_CALL: &str = "entry_SYSCALL_64";
    let at = |name: &'static str| address(symbols, name).ok_or(ScopeError::Lacks(name));
    // A stub for each vector, without names of their own, up to whatever follows.
    let (start, last) = (at(STUBS)?, at(LAST_STUBS)?);
    let behind = symbols.iter().map(|symbol| symbol.address).find(|&address| address > last);
    let end = behind.filter(|end| end - last < 1 << 14 && start < last);
    let end = end.ok_or(ScopeError::Lacks(LAST_STUBS))?;
    let mut all = vec![Followed { start, end, what: What::Interrupt, value: 0 }];
    at(SYSTEM_CALL)?;
    for symbol in symbols {
        let name = symbol.name.as_str();
        let is_exception = name.starts_with("asm_exc_") || name == "asm_int80_emulation";
        let is_call = [
            SYSTEM_CALL,
            "entry_SYSCALL_compat",
            "entry_SYSENTER_compat",
            "entry_SYSCALL32_ignore",
        ]
        .contains(&name);
        let what = match name {
            _ if is_exception => What::Exception,
            _ if is_call => What::SystemCall,
            _ if name.starts_with("asm_sysvec_") => What::Interrupt,
            _ => continue,
        };
        let start = symbol.address;
        all.push(Followed { start, end: start.saturating_add(1), what, value: 0 });
    }
    Ok(all)
}
