//! The hardware, the kernel's settings, and what the kernel's own steps cost on it.

use super::super::words::{IDLE_STATE, KERNEL, MACHINE, costs as keys_of_costs};
use super::super::{Costs, IdleState, Machine, RtBudget, Settings};
use super::at::{At, Fields};
use super::error::Problem;
use super::lengths::Lengths;
use super::limits;
use super::node::Value;
use super::time::{some_ns, span_ns, tick_hz};

pub(super) fn machine(at: Option<&At<'_>>) -> Result<Machine, Problem> {
    let mut machine = Machine::default();
    let Some(at) = at else { return Ok(machine) };
    let fields = at.fields("a machine", MACHINE)?;
    if let Some(at) = fields.get("cpus") {
        machine.cpus = at.small(limits::CPUS.0..=limits::CPUS.1, "a number of CPUs")?;
    }
    if let Some(at) = fields.get("tick") {
        machine.tick_hz = tick_hz(&at)?;
    }
    if let Some(at) = fields.get("idle_states") {
        for at in at.list(limits::IDLE_STATES, "idle states")? {
            let state = idle_state(&at)?;
            if machine.idle_states.iter().any(|other| other.name == state.name) {
                return Err(at.problem(format!("found `{}` twice", state.name)));
            }
            machine.idle_states.push(state);
        }
    }
    Ok(machine)
}

fn idle_state(at: &At<'_>) -> Result<IdleState, Problem> {
    let fields = at.fields("an idle state", IDLE_STATE)?;
    Ok(IdleState {
        name: fields.need("name")?.name(limits::NAME)?,
        exit_ns: span_ns(&fields.need("exit")?)?,
        residency_ns: span_ns(&fields.need("residency")?)?,
    })
}

pub(super) fn settings(at: Option<&At<'_>>) -> Result<Settings, Problem> {
    let mut settings = Settings::default();
    let Some(at) = at else { return Ok(settings) };
    let fields = at.fields("a kernel", KERNEL)?;
    if let Some(at) = fields.get("bh_lock") {
        settings.bh_lock = at.truth()?;
    }
    settings.rt = rt_budget(&fields)?;
    Ok(settings)
}

fn rt_budget(fields: &Fields<'_>) -> Result<Option<RtBudget>, Problem> {
    let runtime = fields.get("rt_runtime");
    let runtime = runtime.filter(|at| !matches!(at.value, Value::Text(text) if text == "off"));
    let Some(runtime) = runtime else {
        return match ["rt_period", "fair_server"].iter().find_map(|key| fields.get(key)) {
            Some(at) => Err(at.problem("found it without `rt_runtime`, expected that, too")),
            None => Ok(None),
        };
    };
    let period_ns = fields.get("rt_period").map_or(Ok(RT_PERIOD_NS), |at| some_ns(&at))?;
    let runtime_ns = some_ns(&runtime)?;
    if runtime_ns >= period_ns {
        return Err(runtime.found_instead_of("off, or less than rt_period"));
    }
    let fair_server = fields.get("fair_server").map_or(Ok(false), |at| at.truth())?;
    Ok(Some(RtBudget { runtime_ns, period_ns, fair_server }))
}

/// The kernel's `sched_rt_period_us`, in nanoseconds.
const RT_PERIOD_NS: u64 = 1_000_000_000;

pub(super) fn costs(at: Option<&At<'_>>, lengths: &Lengths<'_>) -> Result<Costs, Problem> {
    let mut costs = Costs::default();
    let Some(at) = at else { return Ok(costs) };
    let own = keys_of_costs(&mut costs);
    let fields = at.fields("the costs", &own.each_ref().map(|(key, _)| *key))?;
    for (key, cost) in own {
        if let Some(at) = fields.get(key) {
            *cost = lengths.read(&at)?;
        }
    }
    Ok(costs)
}
