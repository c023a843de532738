//! The hardware, the kernel's settings, and what the kernel's own steps cost on it.

use super::super::words::{IDLE_STATE, KERNEL, MACHINE, costs as keys_of_costs};
use super::super::{Costs, IdleState, Machine, Settings};
use super::at::At;
use super::error::Problem;
use super::lengths::Lengths;
use super::limits;
use super::time::{span_ns, tick_hz};

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
    Ok(settings)
}

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
