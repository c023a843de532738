//! The programs, loaded with what they must know, and attached.

use std::os::fd::AsFd;

use aya::programs::tp_btf::BtfTracePointLinkId;
use aya::programs::{BtfTracePoint, ProgramError, RawTracePoint};
use aya::{Btf, Ebpf, EbpfLoader};
use wakescope_core::watch::episode::NotMeasured;
use wakescope_sys::bpf;

use super::layout::{
    LACKS_IRQ_TIME, LACKS_QUEUE, LACKS_SCHED_INFO, LACKS_SLEEP_IN_QUEUES, LACKS_STEAL_TIME,
    LACKS_THROTTLED_TIME,
};
use super::{Limits, runnable, turns};
use crate::error::TraceError;
use crate::object;

/// The program that counts a wait when it ends.
pub(super) const SWITCH: &str = "watch_switch";

/// The program that notes from which queue a task is moved while it waits, or that it sleeps there.
pub(super) const MOVE: &str = "watch_move";

/// The programs to attach, in this order, and where: a switch is to know of each move before it.
pub(super) const ATTACHED: [(&str, &str); 2] =
    [(MOVE, "sched_migrate_task"), (SWITCH, "sched_switch")];

/// The program that tells what the kernel lacks.
const LACKS: &str = "watch_lacks";

/// The most places for tasks: numbers of tasks are below this (`PID_MAX_LIMIT`).
const MOST_PLACES: u32 = 1 << 22;

/// The programs, loaded.
pub(super) struct Loaded {
    pub(super) programs: Ebpf,
    /// Whether tasks may sleep in queues on this kernel.
    pub(super) has_sleepers: bool,
    /// What the kernel cannot measure of long waits.
    pub(super) not_measured: NotMeasured,
}

/// Loads the programs, whose maps are as large as `limits` and the numbers of `cpus` ask for.
pub(super) fn load(limits: Limits, cpus: u32, types: &Btf) -> Result<Loaded, TraceError> {
    let rows = limits.series.saturating_add(1);
    let places = limits.tasks.clamp(1, MOST_PLACES).next_power_of_two();
    let turns = turns::per_cpu(cpus);
    let (place_mask, turn_mask) = (places - 1, turns - 1);
    let mut loader = EbpfLoader::new();
    loader
        .btf(Some(types))
        .set_max_entries("rows", rows)
        .set_max_entries("row_extremes", rows.saturating_mul(cpus))
        .set_max_entries("cpu_rows", cpus)
        .set_max_entries("turns", turns.saturating_mul(cpus))
        .set_max_entries("series_rows", limits.series)
        .set_max_entries("free_rows", limits.series)
        .set_max_entries("places", places)
        .set_max_entries("owners", places)
        .set_max_entries("displaced", places.div_ceil(2))
        .set_max_entries("stays", places)
        .set_max_entries("runnable_before", runnable::MOST)
        .set_global("place_mask", &place_mask, true)
        .set_global("turn_mask", &turn_mask, true)
        .set_global("cpu_count", &cpus, true);
    let mut programs = object::load(object::WATCH, &mut loader)?;
    let lacks = lacks(&mut programs)?;
    if let Some(lacking) = lacking(lacks) {
        return Err(lacking);
    }
    let not_measured = NotMeasured {
        interrupts: lacks & LACKS_IRQ_TIME != 0,
        steal: lacks & LACKS_STEAL_TIME != 0,
        quota: lacks & LACKS_THROTTLED_TIME != 0,
    };
    for (name, event) in ATTACHED {
        let refused = |e: ProgramError| TraceError::of_program(name, &e);
        program(&mut programs, name)?.load(event, types).map_err(refused)?;
    }
    Ok(Loaded { programs, has_sleepers: lacks & LACKS_SLEEP_IN_QUEUES == 0, not_measured })
}

/// The error of a kernel that lacks these.
fn lacking(bits: u32) -> Option<TraceError> {
    match bits & (LACKS_SCHED_INFO | LACKS_QUEUE) {
        0 => None,
        _ if bits & LACKS_SCHED_INFO != 0 => Some(TraceError::NoField(
            "account of waits (sched_info)",
            "CONFIG_SCHED_INFO, which CONFIG_SCHEDSTATS and CONFIG_TASK_DELAY_ACCT set",
        )),
        _ => Some(TraceError::NoField(
            "way from a task to its run queue (cfs_rq.rq)",
            "CONFIG_FAIR_GROUP_SCHED",
        )),
    }
}

/// What the kernel lacks, as the kernel itself says it: the loader resolves fields for it.
fn lacks(programs: &mut Ebpf) -> Result<u32, TraceError> {
    let refused = |e: ProgramError| TraceError::of_program(LACKS, &e);
    let program = programs.program_mut(LACKS);
    let program: &mut RawTracePoint = program
        .ok_or(TraceError::Refused(LACKS, "it is not among those compiled".into()))?
        .try_into()
        .map_err(refused)?;
    program.load().map_err(refused)?;
    let fd = program.fd().map_err(refused)?.as_fd();
    bpf::run_once(fd, &[0]).map_err(|e| TraceError::Refused(LACKS, e.to_string()))
}

/// Attaches the program of this name, which runs from then on.
pub(super) fn attach(
    programs: &mut Ebpf,
    name: &'static str,
) -> Result<BtfTracePointLinkId, TraceError> {
    let refused = |e: ProgramError| TraceError::of_program(name, &e);
    program(programs, name)?.attach().map_err(refused)
}

/// The program of this name.
pub(super) fn program<'a>(
    programs: &'a mut Ebpf,
    name: &'static str,
) -> Result<&'a mut BtfTracePoint, TraceError> {
    let refused = |e: ProgramError| TraceError::of_program(name, &e);
    let program = programs.program_mut(name);
    program
        .ok_or(TraceError::Refused(name, "it is not among those compiled".into()))?
        .try_into()
        .map_err(refused)
}
