//! The programs, loaded with what they must know, and attached where they are needed.

use std::thread;
use std::time::Duration;

use aya::programs::{BtfTracePoint, ProgramError};
use aya::{Btf, Ebpf, EbpfLoader};
use wakescope_core::plan::Target;

use super::Options;
use crate::error::TraceError;
use crate::interference::Watch;
use crate::kernel::Kernel;
use crate::object;
use crate::programs::{Need, PROGRAMS, Program};
use crate::sections::Shows;
use crate::shared::{
    ALL_SECTIONS, ALL_WAITS, COMPONENTS, RECORDS_PER_CPU, SECTION_KINDS, SECTION_SLOTS,
};
use crate::target::{CGROUP, COMM, Filter, PROCESS};

/// Threads of others that are followed at once. What is kept of each is allocated beforehand, since programs must not
/// wait for memory: 19 MB by the kernel's count (6.18).
const MOST_FOLLOWED: u32 = 8_192;

/// What is not seen of a probe's wakeups without the address of what timers call: every timer is taken for one
/// that a task sleeps by, and what follows it in memory for its task, which is a probe's by chance only.
const UNSURE_TIMERS: &str = "the timers that tasks sleep on (no hrtimer_wakeup in /proc/kallsyms)";

/// How large the buffer of late wakeups is where they come on so many CPUs: a power of two, 64 MiB at
/// the most.
fn bytes_of_records(cpus: u32) -> u32 {
    const MOST_CPUS: u32 = 32;
    RECORDS_PER_CPU * cpus.clamp(1, MOST_CPUS).next_power_of_two()
}

/// For how many interrupts, softirqs and NMIs there is room on so many CPUs, each counted once for each CPU that it comes
/// on. Ten softirqs and twelve interrupts without a line may come on each, beside NMIs and lines.
fn sources_of_interference(cpus: u32) -> u32 {
    const LEAST: u32 = 4_096;
    const OF_EACH_CPU: u32 = 32;
    cpus.saturating_mul(OF_EACH_CPU).max(LEAST)
}

/// For what programs are loaded: a request, and the kernel that is to run them.
pub(super) struct Purpose<'a> {
    pub(super) options: &'a Options,
    pub(super) filter: Filter,
    pub(super) kernel: &'a Kernel,
    pub(super) types: &'a Btf,
    pub(super) shows: Shows,
    /// Where what the timers call lies that tasks sleep by; `None` where that is not known.
    pub(super) sleepers_call: Option<u64>,
}

pub(super) fn load(
    &Purpose { options, filter, kernel, types, shows, sleepers_call }: &Purpose<'_>,
    cpus: u32,
) -> Result<Ebpf, TraceError> {
    let (probes, followed, waking) = match options.is_of_probes() {
        true => (options.probes.max(1), options.probes.max(1), options.probes),
        false => (1, MOST_FOLLOWED, cpus),
    };
    let waits = !options.is_of_probes();
    let components = u32::try_from(COMPONENTS).unwrap_or(u32::MAX);
    // 0 stands for all that timers call.
    let sleepers_call = sleepers_call.unwrap_or(0);
    let announced = u32::from(options.announces());
    let preemptible = u32::from(options.model.preempts_kernel_code() == Some(true));
    let wants_bound = options.watch.as_ref().map_or(0, Watch::wants_bound);
    let sees_irqs_off = u32::from(shows.sees_irqs());
    let also_followed = u32::from(waits) * ALL_WAITS + u32::from(shows.any()) * ALL_SECTIONS;
    let comm_mask = filter.comm_mask();
    let mut loader = EbpfLoader::new();
    loader
        .btf(Some(types))
        .set_max_entries("cpus", cpus)
        .set_max_entries("records", bytes_of_records(waking))
        .set_max_entries("figures", options.places(cpus) * components)
        .set_max_entries("responses", probes)
        .set_max_entries("slots", probes)
        // A thread whose wakeups are announced has two.
        .set_max_entries("wakeups", followed << announced)
        .set_max_entries("waits_of", if waits { followed } else { 1 })
        .set_max_entries("came_back", if waits { followed } else { 1 })
        .set_global("targets", &filter.targets, true)
        .set_global("target_pid", &filter.pid, true)
        .set_global("target_comm", &filter.comm, true)
        .set_global("target_comm_mask", &comm_mask, true)
        .set_global("target_cgroup", &filter.cgroup, true)
        .set_global("announced", &announced, true)
        .set_global("hrtimer_wakeup", &sleepers_call, true)
        .set_global("preemptible", &preemptible, true)
        .set_global("wants_bound", &wants_bound, true)
        .set_global("sees_irqs_off", &sees_irqs_off, true)
        .set_global("also_followed", &also_followed, true);
    if shows.any() {
        let kinds = u32::try_from(SECTION_KINDS).unwrap_or(u32::MAX);
        let slots = u32::try_from(SECTION_SLOTS).unwrap_or(u32::MAX);
        loader
            .set_max_entries("sections", cpus)
            .set_max_entries("section_figures", cpus * kinds)
            .set_max_entries("section_places", cpus * kinds * slots);
    }
    if wants_bound != 0 {
        loader.set_max_entries("interference", sources_of_interference(cpus));
    }
    let places: Vec<(&str, [i64; 2])> =
        kernel.places.iter().map(|&(variable, place)| (variable, [place, 1])).collect();
    for (variable, place) in &places {
        loader.set_global(variable, place, true);
    }
    object::load(object::WAKEUPS, &mut loader)
}

/// The tracepoints that programs are attached to, as the kernel names them, and what cannot be seen.
pub(super) struct Attached {
    pub(super) seen_with: Vec<String>,
    pub(super) not_seen: Vec<String>,
}

/// Attaches what this kernel has a place for.
pub(super) fn attach_all(
    programs: &mut Ebpf,
    &Purpose { options, filter, kernel, types, shows, sleepers_call }: &Purpose<'_>,
) -> Result<Attached, TraceError> {
    let (mut seen_with, mut not_seen) = (Vec::new(), kernel.unseen());
    if sleepers_call.is_none() && options.is_of_probes() && !options.announces() {
        not_seen.push(UNSURE_TIMERS.to_string());
    }
    let has = |tracepoint: &str| kernel.has(tracepoint);
    for program in PROGRAMS.iter().filter(|program| is_needed(program, options, shows, has)) {
        if kernel.has(program.tracepoint) {
            attach(programs, program, form_of(program, options, filter, shows), types)?;
            if is_told(program) {
                seen_with.push(program.tracepoint.to_string());
            }
        } else if !program.need.may_be_unmet() {
            return Err(TraceError::NoTracepoint(program.tracepoint));
        } else if !program.unseen.is_empty() {
            not_seen.push(program.unseen.to_string());
        }
    }
    not_seen.extend(shows.unseen(options.sections.is_some()));
    Ok(Attached { seen_with, not_seen })
}

/// Whether a program is worth telling of: of a pair one is, and none that only completes others.
fn is_told(program: &Program) -> bool {
    match program.need {
        Need::ForBound | Need::IfTheyLeave => false,
        Need::ForSections => program.tracepoint.ends_with("_disable"),
        _ => !program.tracepoint.ends_with("_exit"),
    }
}

/// `has`: whether the kernel has a tracepoint.
fn is_needed(
    program: &Program,
    options: &Options,
    shows: Shows,
    has: impl Fn(&str) -> bool,
) -> bool {
    let others = !options.is_of_probes();
    match program.need {
        Need::Always | Need::IfThere => true,
        Need::InPlaceOf(other) => !has(other),
        Need::IfTheyMove => others || !options.pinned,
        Need::IfTheyLeave => {
            matches!(options.target, Target::Comm { .. } | Target::Cgroup { .. })
        }
        Need::ForOthers => others,
        Need::ForWakers => others || options.announces(),
        Need::ForBound => options.watch.is_some(),
        Need::ForSections => shows.needs(program.tracepoint),
    }
}

/// The function that is attached for `program`. Those that every switch and every wakeup run through have
/// shorter ones for what is asked most often.
fn form_of(program: &Program, options: &Options, filter: Filter, shows: Shows) -> &'static str {
    let forms = match filter.targets {
        PROCESS => ["on_switch_of_process", "on_waking_of_process", "on_wakeup_of_process"],
        COMM => ["on_switch_of_comm", "on_waking_of_comm", "on_wakeup_of_comm"],
        CGROUP => ["on_switch_of_cgroup", "on_waking_of_cgroup", "on_wakeup_of_cgroup"],
        _ if options.is_of_probes() => ["on_switch_for_probes", "on_waking", "on_wakeup_of_others"],
        _ => ["on_switch", "on_waking", "on_wakeup_of_others"],
    };
    match program.name {
        "on_switch" if !shows.any() => forms[0],
        "on_waking" => forms[1],
        "on_wakeup_of_others" => forms[2],
        name => name,
    }
}

/// The function that learns how often preemption is off at a wakeup.
const LEARNS: &str = "learn_at_waking";
/// Timers wake the thread that waits for it.
const WAKEUPS_TO_LEARN: u32 = 3;
const PAUSE_TO_LEARN: Duration = Duration::from_millis(1);

/// Lets programs learn how often preemption is off at any wakeup: a softirq of the task that wakes another has it off
/// once more. A server that is woken over the network alone shows them nothing else.
pub(super) fn learn_depth(programs: &mut Ebpf, types: &Btf) -> Result<(), TraceError> {
    let refused = |e: ProgramError| TraceError::of_program(LEARNS, &e);
    let program = loaded(programs, LEARNS, "sched_waking", types)?;
    let link = program.attach().map_err(refused)?;
    (0..WAKEUPS_TO_LEARN).for_each(|_| thread::sleep(PAUSE_TO_LEARN));
    program.detach(link).map_err(refused)?;
    program.unload().map_err(refused)
}

/// Attaches the function `name` where `program` belongs.
fn attach(
    programs: &mut Ebpf,
    program: &Program,
    name: &'static str,
    types: &Btf,
) -> Result<(), TraceError> {
    let attached = loaded(programs, name, program.tracepoint, types)?.attach();
    attached.map(drop).map_err(|e| TraceError::of_program(name, &e))
}

/// The function `name`, loaded for this tracepoint.
fn loaded<'a>(
    programs: &'a mut Ebpf,
    name: &'static str,
    tracepoint: &str,
    types: &Btf,
) -> Result<&'a mut BtfTracePoint, TraceError> {
    let refused = |e: ProgramError| TraceError::of_program(name, &e);
    let found = programs.program_mut(name);
    let found: &mut BtfTracePoint = found
        .ok_or(TraceError::Refused(name, "it is not among those compiled".into()))?
        .try_into()
        .map_err(refused)?;
    found.load(tracepoint, types).map_err(refused)?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::cpus::cpu_numbers;
    use crate::error::innermost;
    use crate::shared::{FIGURES_WORDS, Section, Sections, Waits, Wakeup};
    use wakescope_attribution::Machine;
    use wakescope_core::plan::Stimulus;
    use wakescope_core::preemption::Model;
    use wakescope_testing::skip;

    fn options(target: Target, pinned: bool, stimulus: Stimulus) -> Options {
        Options {
            target,
            within_cgroup: None,
            kept_name: None,
            stimulus,
            probes: 2,
            pinned,
            above_ns: None,
            tail: 0.001,
            late: 0,
            model: Model::Unknown,
            idle_states: Vec::new(),
            room: 1,
            machine: Machine::default(),
            watch: None,
            sections: None,
            by: None,
        }
    }

    #[test]
    fn the_buffer_is_as_large_as_cpus_ask_for_and_a_power_of_two() {
        let mib = |cpus| bytes_of_records(cpus) >> 20;
        let of = [(0, 2), (1, 2), (2, 4), (3, 8), (24, 64), (32, 64), (33, 64), (u32::MAX, 64)];
        assert_eq!(of.map(|(cpus, _)| mib(cpus)), of.map(|(_, mib)| mib));
    }

    /// What docs/explain.md says of it.
    #[test]
    fn maps_take_as_much_memory_as_is_said() {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/explain.md");
        let docs = std::fs::read_to_string(docs).unwrap();
        let place = SECTION_SLOTS * size_of::<Section>();
        let figures = FIGURES_WORDS * size_of::<u64>();
        let of_cpu = size_of::<Sections>() + SECTION_KINDS * (figures + place);
        let kib = of_cpu.div_ceil(1 << 10);
        // The kernel needs some 56 bytes more for each (6.18: `memlock` in /proc/PID/fdinfo).
        let of_thread = size_of::<Wakeup>() + size_of::<Waits>() + 2 * 56;
        let followed = MOST_FOLLOWED as usize * of_thread;
        let mb = followed.div_ceil(1_000_000);
        for said in [
            format!("`--sections` {kib} KiB for each CPU"),
            format!("up to 8,192 threads takes {mb} MB"),
        ] {
            assert!(docs.contains(&said), "{said}");
        }
    }

    #[test]
    fn there_is_room_for_the_interrupts_of_all_cpus() {
        let of = [(1, 4_096), (128, 4_096), (129, 4_128), (8_192, 262_144), (u32::MAX, u32::MAX)];
        assert_eq!(of.map(|(cpus, _)| sources_of_interference(cpus)), of.map(|(_, room)| room));
    }

    #[test]
    fn programs_are_attached_where_they_are_needed() {
        let needed_by = |options: Options, has: fn(&str) -> bool| {
            let shows = Shows::default();
            let needed = PROGRAMS.iter().filter(|program| is_needed(program, &options, shows, has));
            needed.map(|program| program.tracepoint).collect::<Vec<_>>()
        };
        let needed = |options| needed_by(options, |_| false);
        let (moves, waking) = ("sched_migrate_task", "sched_waking");
        let probes = needed(options(Target::Probes, true, Stimulus::Timer));
        assert!(!probes.contains(&moves) && !probes.contains(&waking), "{probes:?}");
        let loose = needed(options(Target::Probes, false, Stimulus::Timer));
        assert!(loose.contains(&moves) && !loose.contains(&waking), "{loose:?}");
        let futex = needed(options(Target::Probes, true, Stimulus::Futex));
        assert!(!futex.contains(&moves) && futex.contains(&waking), "{futex:?}");
        let timerfd = needed(options(Target::Probes, true, Stimulus::Timerfd));
        assert_eq!(timerfd, futex);
        assert_eq!(needed(options(Target::Probes, true, Stimulus::RtcGrid)), probes);
        let others = needed(options(Target::Process { pid: 1 }, true, Stimulus::Any));
        let asked_for = |program: &&Program| {
            matches!(program.need, Need::ForBound | Need::ForSections | Need::IfTheyLeave)
        };
        let asked_for = PROGRAMS.iter().filter(asked_for).count();
        assert!(asked_for > 0 && others.len() + asked_for == PROGRAMS.len());
        // What shows the same is attached once.
        let newer = needed_by(options(Target::Probes, true, Stimulus::Timer), |_| true);
        let entries =
            |all: &[&str]| ["sched_entry_tp", "rcu_utilization"].map(|name| all.contains(&name));
        assert_eq!((entries(&probes), entries(&newer)), ([true, true], [true, false]));
    }

    #[test]
    fn what_every_switch_runs_through_asks_no_more_than_it_must() {
        let forms = |target: Target, shows: Shows| {
            let filter = Filter::of(&target).unwrap();
            let options = options(target, true, Stimulus::Timer);
            let forms = PROGRAMS.iter().map(|program| form_of(program, &options, filter, shows));
            forms.filter(|name| name.contains("_for_") || name.contains("_of_")).collect::<Vec<_>>()
        };
        let (none, sections) = (
            Shows::default(),
            Shows::of(
                &Options {
                    sections: Some([].into()),
                    ..options(Target::Probes, true, Stimulus::Timer)
                },
                |_| true,
            ),
        );
        let others = ["on_wakeup_of_others", "on_first_wakeup_of_others"];
        let own = Target::Process { pid: std::process::id() };
        let process =
            ["on_switch_of_process", "on_wakeup_of_process", others[1], "on_waking_of_process"];
        assert_eq!(forms(own.clone(), none), process);
        assert_eq!(forms(own, sections), process[1..]);
        let comm = Target::Comm { comm: "nobody".into() };
        let of_comm = ["on_switch_of_comm", "on_wakeup_of_comm", others[1], "on_waking_of_comm"];
        assert_eq!(forms(comm.clone(), none), of_comm);
        assert_eq!(forms(comm, sections), of_comm[1..]);
        // Where the test runs in a thread of its own.
        let thread = Target::Thread { tid: wakescope_sys::sched::this_thread().number() };
        assert_eq!(forms(thread, none), others);
        assert_eq!(forms(Target::Probes, none), ["on_switch_for_probes", others[0], others[1]]);
        assert_eq!(forms(Target::Probes, sections), others);
    }

    /// Loads all programs that this kernel has a tracepoint for; how many these are.
    fn loaded(options: &Options, shows: Shows) -> Result<usize, String> {
        let (kernel, types) = Kernel::read().map_err(|e| e.to_string())?;
        let types = Btf::parse(&types, aya::Endianness::default()).map_err(|e| e.to_string())?;
        let filter = Filter::of(&options.target).map_err(|e| e.to_string())?;
        let (kernel, types) = (&kernel, &types);
        let purpose = Purpose { options, filter, kernel, types, shows, sleepers_call: None };
        let mut programs = match load(&purpose, cpu_numbers().unwrap()) {
            Err(why @ TraceError::NotAllowed) => return Err(why.to_string()),
            loaded => loaded.unwrap(),
        };
        let there: Vec<_> = PROGRAMS.iter().filter(|p| kernel.has(p.tracepoint)).collect();
        for program in &there {
            let forms = [program.name, form_of(program, options, filter, shows)];
            for name in BTreeSet::from(forms) {
                let found = programs.program_mut(name).expect(name);
                let found: &mut BtfTracePoint = found.try_into().unwrap();
                let loaded = found.load(program.tracepoint, types);
                loaded.unwrap_or_else(|e| panic!("{name}: {}", innermost(&e)));
            }
        }
        Ok(there.len())
    }

    /// Code that is seldom asked for is refused only where somebody asks for it: the verifier looks at
    /// what can be reached.
    #[test]
    fn this_kernel_takes_the_programs_whatever_they_are_to_do() {
        const NAME: &str = "this_kernel_takes_the_programs_whatever_they_are_to_do";
        let all = Shows::of(
            &Options {
                sections: Some([].into()),
                ..options(Target::Probes, false, Stimulus::Futex)
            },
            |_| true,
        );
        let own = Target::Process { pid: std::process::id() };
        let name = Target::Comm { comm: "nobody".into() };
        for target in [Target::Probes, own, name] {
            for (softirqs, shows) in [(false, Shows::default()), (true, all)] {
                let watch = Some(Watch { softirqs, ..Watch::default() });
                let options = Options { watch, ..options(target.clone(), false, Stimulus::Futex) };
                match loaded(&options, shows) {
                    Ok(count) => assert!(count > 20, "{count}"),
                    Err(why) => return skip(NAME, &why),
                }
            }
        }
    }
}
