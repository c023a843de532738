//! Who uses the CPUs: tasks and interrupts.

use super::super::words::{ARRIVES, BURSTS, GROUP, INTERRUPT, TASK};
use super::super::{
    Arrivals, Does, Group, Interrupt, InterruptKind, Path, ScenarioTask, TaskPolicy,
};
use super::at::{At, Fields};
use super::error::Problem;
use super::names::{Names, nothing};
use super::steps::softirq_named;
use super::time::{period_ns, period_ps, some_ns, span_ns};
use super::{limits, path, runnable};

pub(super) fn groups(at: &At<'_>) -> Result<Vec<Group>, Problem> {
    let mut groups: Vec<Group> = Vec::new();
    for at in at.list(limits::GROUPS, "groups, each under [[group]]")? {
        let fields = at.fields("a group", GROUP)?;
        let name = fields.need("name")?;
        let (quota, period) = (fields.need("quota")?, fields.get("period"));
        let group = Group {
            name: name.name(limits::NAME)?,
            quota_ns: some_ns(&quota)?,
            period_ns: period.as_ref().map_or(Ok(QUOTA_PERIOD_NS), some_ns)?,
        };
        let (least, most) = (limits::QUOTA_NS, limits::QUOTA_PERIOD_NS);
        if group.quota_ns < least {
            return Err(quota.found_instead_of("a quota of at least 1 ms"));
        }
        if !(least..=most).contains(&group.period_ns) {
            return Err(period.unwrap_or(at).found_instead_of("a period of 1 ms to 1 s"));
        }
        if groups.iter().any(|other| other.name == group.name) {
            return Err(name.problem(format!("found a second group `{}`", group.name)));
        }
        groups.push(group);
    }
    Ok(groups)
}

/// The kernel's period where `cpu.max` has none, nanoseconds.
const QUOTA_PERIOD_NS: u64 = 100_000_000;

pub(super) fn tasks(
    at: &At<'_>,
    cpus: u32,
    groups: &[Group],
    paths: &[Path],
) -> Result<Vec<ScenarioTask>, Problem> {
    let mut tasks: Vec<ScenarioTask> = Vec::new();
    for at in at.list(limits::TASKS, "tasks, each under [[task]]")? {
        let fields = at.fields("a task", TASK)?;
        let name = fields.need("name")?;
        let task = ScenarioTask {
            name: name.name(limits::TASK_NAME)?,
            policy: fields.get("policy").map_or(Ok(TaskPolicy::default()), |at| policy(&at))?,
            cpu: cpu(&fields, cpus)?,
            group: fields.get("group").map(|at| group(&at, groups)).transpose()?,
            does: does(&fields, paths)?,
        };
        if tasks.iter().any(|other| other.name == task.name) {
            return Err(name.problem(format!("found a second task `{}`", task.name)));
        }
        tasks.push(task);
    }
    if tasks.is_empty() {
        Err(at.problem("found no task, expected at least one"))
    } else {
        Ok(tasks)
    }
}

fn group(at: &At<'_>, groups: &[Group]) -> Result<String, Problem> {
    let name = at.name(limits::NAME)?;
    let mut known = groups.iter().map(|group| group.name.as_str());
    if known.clone().any(|group| group == name) {
        return Ok(name);
    }
    Err(nothing(&name, "the name of a group", &mut known, at.problem("")))
}

fn does(fields: &Fields<'_>, paths: &[Path]) -> Result<Does, Problem> {
    match (fields.get("period"), fields.get("path")) {
        (Some(period), at) => {
            let of_probe = |at: At<'_>| {
                let path = path(&at, paths)?;
                runnable::by_probe(&path.steps).map_err(|why| at.problem(why))?;
                Ok(path.name.clone())
            };
            let path = at.map(of_probe).transpose()?;
            Ok(Does::Probe { period_ps: period_ps(&period)?, path })
        }
        (None, Some(at)) => {
            let path = path(&at, paths)?;
            runnable::by_task(&path.steps).map_err(|why| at.problem(why))?;
            Ok(Does::Path(path.name.clone()))
        }
        (None, None) => Err(fields.at.problem(
            "found neither `period` nor `path`, expected the period of a probe or a task's path",
        )),
    }
}

fn policy(at: &At<'_>) -> Result<TaskPolicy, Problem> {
    let expected = "a policy: other, other:-20 to other:19, fifo:1 to fifo:99, rr:1 to rr:99, or \
                    deadline:1ms";
    let text = at.text(expected)?;
    let (name, value) = text.split_once(':').unwrap_or((text, ""));
    let priority = value.parse().ok().filter(|priority| (1..=99).contains(priority));
    let policy = match name {
        "other" if text == "other" => Some(TaskPolicy::Other(0)),
        "other" => {
            value.parse().ok().filter(|nice| (-20..=19).contains(nice)).map(TaskPolicy::Other)
        }
        "fifo" => priority.map(TaskPolicy::Fifo),
        "rr" => priority.map(TaskPolicy::RoundRobin),
        "deadline" => {
            let span = value.parse::<wakescope_core::units::SpanNs>().ok();
            let possible = |ns: &u64| (1..=limits::LENGTH_NS).contains(ns);
            span.map(|span| span.0).filter(possible).map(TaskPolicy::Deadline)
        }
        _ => None,
    };
    policy.ok_or_else(|| at.found_instead_of(expected))
}

fn cpu(fields: &Fields<'_>, cpus: u32) -> Result<Option<u32>, Problem> {
    let last = u64::from(cpus - 1);
    fields.get("cpu").map(|at| at.small(0..=last, "a CPU of the machine")).transpose()
}

pub(super) fn interrupts(
    at: &At<'_>,
    cpus: u32,
    paths: &[Path],
    names: &Names,
) -> Result<Vec<Interrupt>, Problem> {
    let mut interrupts: Vec<Interrupt> = Vec::new();
    for at in at.list(limits::INTERRUPTS, "interrupts, each under [[interrupt]]")? {
        let fields = at.fields("an interrupt", INTERRUPT)?;
        let handler = fields.need("path")?;
        let handler_path = path(&handler, paths)?;
        runnable::by_handler(&handler_path.steps).map_err(|why| handler.problem(why))?;
        let interrupt = Interrupt {
            name: fields.need("name")?.name(limits::NAME)?,
            kind: fields.get("kind").map_or(Ok(InterruptKind::default()), |at| kind(&at))?,
            arrivals: fields.get("arrives").map(|at| arrivals(&at)).transpose()?,
            cpu: cpu(&fields, cpus)?,
            handler: handler_path.name.clone(),
        };
        if let Some(why) = contradiction(&interrupt, &interrupts, names) {
            return Err(at.problem(why));
        }
        interrupts.push(interrupt);
    }
    Ok(interrupts)
}

/// What is wrong with an interrupt beside others.
fn contradiction(own: &Interrupt, others: &[Interrupt], names: &Names) -> Option<String> {
    let name = &own.name;
    if others.iter().any(|other| other.name == *name) {
        return Some(format!("found a second interrupt `{name}`"));
    }
    if !matches!(own.kind, InterruptKind::Softirq(_)) {
        let comes = own.arrivals.is_some() || names.reports(name);
        return (!comes).then(|| {
            format!("found no `arrives`, expected one, or a block until `{name}`: it never comes")
        });
    }
    if own.arrivals.is_some() || own.cpu.is_some() {
        return Some(
            "found `arrives` or `cpu`, expected neither: a softirq runs when and where \
                     raise_softirq says"
                .into(),
        );
    }
    let same = others.iter().find(|other| other.kind == own.kind)?;
    Some(format!("found a second handler of the softirq of `{}`", same.name))
}

fn kind(at: &At<'_>) -> Result<InterruptKind, Problem> {
    let expected = "a kind: device, unthreaded, nmi, steal, or softirq:NAME, as in softirq:net_rx";
    let text = at.text(expected)?;
    let kind = match text {
        "device" => Some(InterruptKind::Device),
        "unthreaded" => Some(InterruptKind::Unthreaded),
        "nmi" => Some(InterruptKind::Nmi),
        "steal" => Some(InterruptKind::Steal),
        _ => {
            let softirq = text.strip_prefix("softirq:").and_then(softirq_named);
            softirq.map(InterruptKind::Softirq)
        }
    };
    kind.ok_or_else(|| at.found_instead_of(expected))
}

fn arrivals(at: &At<'_>) -> Result<Arrivals, Problem> {
    let of = "arrivals, as in { periodic = \"100Hz\" } or { poisson = \"1ms\" }";
    let (kind, at) = at.fields(of, ARRIVES)?.only()?;
    match kind {
        "periodic" => Ok(Arrivals::Periodic(period_ns(&at)?)),
        "poisson" => Ok(Arrivals::Poisson(period_ns(&at)?)),
        "bursts" => {
            let of = "bursts, as in { every = \"1s\", count = 20, gap = \"50us\" }";
            let fields = at.fields(of, BURSTS)?;
            let most = limits::ARRIVALS as u64;
            Ok(Arrivals::Bursts {
                every_ns: period_ns(&fields.need("every")?)?,
                count: fields.need("count")?.small(1..=most, "a number of interrupts")?,
                gap_ns: some_ns(&fields.need("gap")?)?,
            })
        }
        _ => recorded(&at),
    }
}

fn recorded(at: &At<'_>) -> Result<Arrivals, Problem> {
    let mut times = Vec::new();
    for at in at.list(limits::ARRIVALS, "times from the start")? {
        let time = span_ns(&at)?;
        if times.last().is_some_and(|last| *last > time) {
            return Err(at.found_instead_of("a time that is not before the last"));
        }
        times.push(time);
    }
    Ok(Arrivals::Recorded(times))
}
