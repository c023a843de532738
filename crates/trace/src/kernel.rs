//! What the running kernel has of what programs need, by its type information.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};

use wakescope_core::btf::{Damaged, Kind, Names, variables};

use crate::symbols;

/// Where the kernel shows its type information.
pub(crate) const BTF: &str = "/sys/kernel/btf/vmlinux";

/// Where it shows which timer the first CPU has, and what it calls Hyper-V's.
const TIMER: &str = "/sys/devices/system/clockevents/clockevent0/current_device";
const HYPERV_TIMER: &str = "Hyper-V clockevent";

/// More than any kernel has: 6.18's are 6 MB.
const LARGEST: u64 = 256 << 20;

/// A variable that each CPU has one of: what the kernel calls it, the variable of the programs that
/// says where it is, and what is not seen where the kernel lacks it.
struct PerCpu {
    name: &'static str,
    place: &'static str,
}

/// `pcpu_hot` has what is `__preempt_count`, `hardirq_stack_ptr`, `hardirq_stack_inuse` and `__softirq_pending`
/// otherwise, on x86 from 6.2 to 6.14. Before, and on arm64, softirqs that are pending are in `irq_stat`.
const PER_CPU: [PerCpu; 9] = [
    PerCpu { name: "__preempt_count", place: "preempt_count_place" },
    PerCpu { name: "pcpu_hot", place: "pcpu_hot_place" },
    PerCpu { name: "__irq_regs", place: "irq_regs_place" },
    PerCpu { name: "hardirq_stack_ptr", place: "irq_stack_place" },
    PerCpu { name: "hardirq_stack_inuse", place: "irq_stack_used_place" },
    PerCpu { name: "steal_time", place: "steal_time_place" },
    PerCpu { name: "__softirq_pending", place: "softirq_pending_place" },
    PerCpu { name: "irq_stat", place: "irq_stat_place" },
    PerCpu { name: "ksoftirqd", place: "ksoftirqd_place" },
];

/// Programs know the address of this one, and reach the others from there.
const KNOWN: &str = "runqueues";

/// What a kernel has.
#[derive(Debug, Default)]
pub(crate) struct Kernel {
    tracepoints: BTreeSet<String>,
    /// Variables of programs, with how far from its run queue a CPU has what they stand for.
    pub(crate) places: Vec<(&'static str, i64)>,
    /// Whether these come from /proc/kallsyms, which may hide them.
    from_symbols: bool,
    /// See `Known::shows_throttling`: a fair server lets tasks run before real-time ones, and says so in them, and
    /// nothing else holds these back.
    pub(crate) shows_throttling: bool,
    /// Whether the CPUs' timers are Hyper-V's, whose interrupts have no tracepoint.
    has_unseen_timer: bool,
}

impl Kernel {
    /// What the running kernel has, and its type information.
    pub(crate) fn read() -> io::Result<(Self, Vec<u8>)> {
        let mut data = Vec::new();
        File::open(BTF)?.take(LARGEST).read_to_end(&mut data)?;
        let mut kernel = Self::of(&data).map_err(|e| io::Error::other(format!("{BTF} is {e}")))?;
        if kernel.places.is_empty() {
            // Debian's 5.10 has no variables in its type information.
            let names: Vec<&str> = PER_CPU.iter().map(|v| v.name).chain([KNOWN]).collect();
            kernel.places = places(&symbols::variables(&names));
            kernel.from_symbols = true;
        }
        let timer = fs::read_to_string(TIMER).unwrap_or_default();
        kernel.has_unseen_timer = timer.trim() == HYPERV_TIMER;
        Ok((kernel, data))
    }

    fn of(data: &[u8]) -> Result<Self, Damaged> {
        let mut tracepoints = BTreeSet::new();
        let (mut has_fair_server, mut throttles) = (false, false);
        let mut names = Names::of(data)?;
        while let Some(thing) = names.next() {
            let thing = thing?;
            match (thing.kind, thing.name) {
                (Kind::Struct, "task_struct") => {
                    has_fair_server = names.members().contains_key("dl_server");
                }
                (Kind::Struct, "rt_rq") => {
                    throttles = names.members().contains_key("rt_throttled");
                }
                _ => {}
            }
            if thing.kind == Kind::Typedef {
                let tracepoint = thing.name.strip_prefix("btf_trace_");
                tracepoints.extend(tracepoint.map(str::to_string));
            }
        }
        let offsets = variables(data, ".data..percpu")?;
        let offsets = offsets.iter().map(|(name, &at)| (name.to_string(), u64::from(at)));
        let places = places(&offsets.collect());
        let shows_throttling = has_fair_server && !throttles;
        Ok(Self { tracepoints, places, shows_throttling, ..Self::default() })
    }

    /// Whether it has the tracepoint of that name.
    pub(crate) fn has(&self, tracepoint: &str) -> bool {
        self.tracepoints.contains(tracepoint)
    }

    fn has_place(&self, place: &str) -> bool {
        self.places.iter().any(|&(known, _)| known == place)
    }

    /// Whether it shows which softirqs it leaves to their thread.
    pub(crate) fn shows_softirqs_left(&self) -> bool {
        let pending = ["softirq_pending_place", "pcpu_hot_place", "irq_stat_place"];
        pending.iter().any(|place| self.has_place(place)) && self.has_place("ksoftirqd_place")
    }

    /// What goes unseen for want of variables.
    pub(crate) fn unseen(&self) -> Vec<String> {
        let has = |place| self.has_place(place);
        let why = if self.from_symbols { " (not in /proc/kallsyms)" } else { "" };
        let mut unseen = Vec::new();
        // arm64 has the count elsewhere.
        let counts =
            has("preempt_count_place") || has("pcpu_hot_place") || cfg!(target_arch = "aarch64");
        if !counts {
            unseen.push(format!("the preempt count{why}"));
        }
        if !has("irq_regs_place") {
            unseen.push(format!("the interrupted mode, user or kernel{why}"));
        }
        // x86's have a tracepoint each, arm64's one for all.
        if !self.has("reschedule_entry") && !self.has("ipi_entry") {
            unseen.push("the purpose of interrupts from other CPUs".to_string());
        }
        if !self.shows_softirqs_left() {
            unseen.push(format!("softirqs that are left to a thread{why}"));
        }
        if !has("steal_time_place") {
            unseen.push(format!("steal time{why}"));
        }
        if self.has_unseen_timer {
            unseen.push("Hyper-V's timer interrupts, but for functions of timers in them".into());
        }
        unseen
    }
}

/// How far from its run queue a CPU has what is wanted, by where these variables lie.
fn places(variables: &BTreeMap<String, u64>) -> Vec<(&'static str, i64)> {
    let place = |variable: &PerCpu| {
        let (of, known) = (*variables.get(variable.name)?, *variables.get(KNOWN)?);
        Some((variable.place, of.wrapping_sub(known) as i64))
    };
    PER_CPU.iter().filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_had_of_a_kernel_that_says_nothing() {
        // A header of 24 bytes, and no types.
        let data = [&[0x9f, 0xeb, 1, 0][..], &[24, 0, 0, 0], &[0; 16]].concat();
        let kernel = Kernel::of(&data).unwrap();
        assert!(!kernel.has("sched_switch") && kernel.places.is_empty());
        assert!(kernel.unseen().contains(&"steal time".to_string()));
        let calls = "the purpose of interrupts from other CPUs".to_string();
        assert!(kernel.unseen().contains(&calls));
        for tracepoint in ["reschedule_entry", "ipi_entry"] {
            let tracepoints = [tracepoint.to_string()].into();
            let kernel = Kernel { tracepoints, ..Kernel::default() };
            assert!(!kernel.unseen().contains(&calls), "{tracepoint}");
        }
        // Where it is not the kernel that says nothing, but what lists its symbols, that is told.
        let hidden = Kernel { from_symbols: true, has_unseen_timer: true, ..kernel }.unseen();
        assert!(hidden.iter().any(|text| text.starts_with("Hyper-V's timer interrupts")));
        assert!(hidden.contains(&"steal time (not in /proc/kallsyms)".to_string()));
        // Reports cut what is longer.
        assert!(hidden.iter().all(|text| text.len() <= 80), "{hidden:?}");
    }

    /// Type information that has these structs, each with one member.
    fn with_structs(structs: &[(&str, &str)]) -> Vec<u8> {
        const STRUCT: u32 = 4;
        let (mut types, mut text) = (Vec::new(), vec![0]);
        let length_of = |bytes: &Vec<u8>| u32::try_from(bytes.len()).unwrap();
        let word = |word: u32, to: &mut Vec<u8>| to.extend(word.to_le_bytes());
        for (name, member) in structs {
            let mut place = |name: &str| {
                let place = length_of(&text);
                text.extend(name.bytes().chain([0]));
                place
            };
            let (name, member) = (place(name), place(member));
            for value in [name, STRUCT << 24 | 1, 8, member, 0, 0] {
                word(value, &mut types);
            }
        }
        let mut data = vec![0x9f, 0xeb, 1, 0];
        let lengths = [length_of(&types), length_of(&text)];
        for value in [24, 0, lengths[0], lengths[0], lengths[1]] {
            word(value, &mut data);
        }
        [data, types, text].concat()
    }

    /// 6.12 has both where real-time groups may have quotas (RT_GROUP_SCHED).
    #[test]
    fn a_switch_shows_throttling_where_only_a_fair_server_holds_back() {
        let (server, throttle) = (("task_struct", "dl_server"), ("rt_rq", "rt_throttled"));
        for (structs, want) in [
            (&[server, ("rt_rq", "active")][..], true),
            (&[server, throttle], false),
            (&[throttle, server], false),
            (&[("task_struct", "prio"), throttle], false),
            (&[], false),
        ] {
            let kernel = Kernel::of(&with_structs(structs)).unwrap();
            assert_eq!(kernel.shows_throttling, want, "{structs:?}");
        }
    }

    #[test]
    fn places_are_told_from_the_run_queue() {
        let at = |name: &str, at: u64| (name.to_string(), at);
        let all = [at("runqueues", 0x1f000), at("__irq_regs", 0x18d80), at("steal_time", 0x20000)];
        let text = places(&all.clone().into());
        assert_eq!(text, [("irq_regs_place", -0x6280), ("steal_time_place", 0x1000)]);
        // On arm64 they are addresses.
        let high = all.map(|(name, at)| (name, at + 0xffff_ff00_0000_0000));
        assert_eq!(places(&high.into()), text);
        assert_eq!(places(&[at("__irq_regs", 0x18d80)].into()), []);
    }
}
