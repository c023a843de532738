//! Addresses of the simulated kernel's functions: each has a page of its own.

use std::collections::BTreeMap;

use wakescope_core::explain::Frame;
use wakescope_core::softirq::{SOFTIRQS, Softirq};
use wakescope_model::Image;
use wakescope_model::image::{SourceKind, StackId};

/// Functions of timers.
const TIMERS: [&str; 4] =
    ["hrtimer_wakeup", "tick_sched_timer", "sched_rt_period_timer", "sched_cfs_period_timer"];

/// Where the kernel's code begins.
const TEXT: u64 = 0xffff_ffff_8100_0000;
/// How far functions are apart, bytes.
const PAGE: u64 = 1 << 12;
/// Where in its function each place is, bytes.
const INSIDE: u64 = 0x40;

/// Functions of the kernel that are on stacks and that no scenario names.
const OWN: [&str; 11] = [
    "finish_task_switch",
    "__schedule",
    "schedule",
    "do_syscall_64",
    "entry_SYSCALL_64_after_hwframe",
    "exit_to_user_mode_loop",
    "asm_common_interrupt",
    "irq_exit_rcu",
    "handle_softirqs",
    "__local_bh_enable_ip",
    "kthread",
];

/// Functions and their addresses.
#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    names: Vec<String>,
    places: BTreeMap<String, usize>,
    /// For each chain of calls of the image, its addresses, innermost first.
    stacks: Vec<Vec<u64>>,
}

impl Addresses {
    pub(crate) fn of(image: &Image) -> Self {
        let nmis = image.sources.iter().filter(|source| source.kind == SourceKind::Nmi);
        let own = OWN.into_iter().chain(SOFTIRQS.iter().filter_map(action)).map(str::to_owned);
        let names: Vec<String> = image
            .functions
            .iter()
            .cloned()
            .chain(own)
            .chain(nmis.map(|source| source.name.clone()))
            .chain(TIMERS.map(str::to_owned))
            .collect();
        let places = names.iter().enumerate().map(|(at, name)| (name.clone(), at)).collect();
        let stack = |chain: &Vec<wakescope_model::image::FunctionId>| {
            chain.iter().rev().map(|function| address(function.index())).collect()
        };
        Self { stacks: image.stacks.iter().map(stack).collect(), names, places }
    }

    /// Where this function is; 0 if there is none of this name.
    pub(crate) fn function(&self, name: &str) -> u64 {
        self.places.get(name).map_or(0, |&at| address(at))
    }

    /// The function that does the work of a softirq.
    pub(crate) fn softirq_action(&self, number: u8) -> u64 {
        let name = SOFTIRQS.get(usize::from(number)).and_then(action);
        name.map_or(0, |name| self.function(name))
    }

    /// A chain of calls, innermost first.
    pub(crate) fn stack(&self, stack: StackId) -> &[u64] {
        &self.stacks[stack.index()]
    }

    /// The place that an address is.
    pub(crate) fn frame(&self, address: u64) -> Frame {
        let at = address.checked_sub(TEXT).and_then(|from| usize::try_from(from / PAGE).ok());
        let name = at.and_then(|at| self.names.get(at));
        name.map_or_else(Frame::default, |name| Frame::in_function(name.clone(), address % PAGE))
    }
}

fn action(softirq: &Softirq) -> Option<&'static str> {
    softirq.functions.last().copied()
}

fn address(function: usize) -> u64 {
    TEXT + function as u64 * PAGE + INSIDE
}
