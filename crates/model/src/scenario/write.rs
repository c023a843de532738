//! A scenario as the text of a file.

use std::fmt::{self, Write as _};

use wakescope_core::run::TimeDomain;
use wakescope_core::units::SpanNs;

use super::words::{self, LOCKS, PLAIN, SCHEMA, softirq_name};
use super::{
    Arrivals, Costs, Count, Does, Group, Interrupt, InterruptKind, Length, Measured, RtBudget,
    Scenario, ScenarioTask, Settings, Step, TaskPolicy,
};

impl Scenario {
    /// The text of a file that [`Scenario::read`] makes the same scenario of. Paths that were called by
    /// name stand where they are called, and lengths of runs are histograms.
    ///
    /// ```
    /// use wakescope_model::Scenario;
    /// use wakescope_model::scenario::{Does, Path, Step, Length, ScenarioTask};
    /// let scenario = Scenario {
    ///     name: "busy".into(),
    ///     tasks: vec![ScenarioTask { name: "find".into(), does: Does::Path("f".into()), ..ScenarioTask::default() }],
    ///     paths: vec![Path { name: "f".into(), steps: vec![Step::User(Length::Fixed(20_000))] }],
    ///     ..Scenario::default()
    /// };
    /// let no_runs = |_: &str, _: &str| Err(String::new());
    /// assert_eq!(Scenario::read("busy.toml", &scenario.to_toml(), &no_runs), Ok(scenario));
    /// ```
    pub fn to_toml(&self) -> String {
        let mut out = String::new();
        // A String takes all that is written.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "schema = {}", quoted(SCHEMA))?;
        writeln!(out, "name = {}", quoted(&self.name))?;
        if !self.about.is_empty() {
            writeln!(out, "about = {}", quoted(&self.about))?;
        }
        if !self.published.is_empty() {
            writeln!(out, "published = [")?;
            for line in &self.published {
                writeln!(out, "  {},", quoted(line))?;
            }
            writeln!(out, "]")?;
        }
        self.measured.iter().try_for_each(|one| write_measured(one, out))?;
        self.write_machine(out)?;
        write_settings(&self.kernel, out)?;
        write_costs(&self.costs, out)?;
        self.groups.iter().try_for_each(|group| write_group(group, out))?;
        self.tasks.iter().try_for_each(|task| write_task(task, out))?;
        self.interrupts.iter().try_for_each(|interrupt| write_interrupt(interrupt, out))?;
        if !self.paths.is_empty() {
            writeln!(out, "\n[path]")?;
        }
        for path in &self.paths {
            write!(out, "{} = ", quoted(&path.name))?;
            write_steps(&path.steps, 0, out)?;
            writeln!(out)?;
        }
        Ok(())
    }

    fn write_machine(&self, out: &mut String) -> fmt::Result {
        let machine = &self.machine;
        writeln!(out, "\n[machine]\ncpus = {}", machine.cpus)?;
        match machine.tick_hz {
            0 => writeln!(out, "tick = \"off\"")?,
            hz => writeln!(out, "tick = \"{hz}Hz\"")?,
        }
        if machine.idle_states.is_empty() {
            return Ok(());
        }
        writeln!(out, "idle_states = [")?;
        for state in &machine.idle_states {
            let (name, exit) = (quoted(&state.name), span(state.exit_ns));
            let residency = span(state.residency_ns);
            writeln!(out, "  {{ name = {name}, exit = {exit}, residency = {residency} }},")?;
        }
        writeln!(out, "]")
    }
}

fn write_measured(measured: &Measured, out: &mut String) -> fmt::Result {
    let Measured { preempt, kernel, time_domain, samples, .. } = measured;
    let Measured { max_ns, mean_ns, stdev_ns, percentiles, buckets, below, .. } = measured;
    writeln!(out, "\n[[measured]]\npreempt = {}\nkernel = {}", quoted(preempt), quoted(kernel))?;
    if *time_domain == TimeDomain::Virtual {
        writeln!(out, "time_domain = \"virtual\"")?;
    }
    writeln!(out, "samples = {samples}")?;
    for (key, ns) in [("max", max_ns), ("mean", mean_ns), ("stdev", stdev_ns)] {
        ns.iter().try_for_each(|&ns| writeln!(out, "{key} = {}", span(ns)))?;
    }
    if !percentiles.is_empty() {
        let all = percentiles.iter().map(|&(of, ns)| format!("[\"{of}\", {}]", span(ns)));
        writeln!(out, "percentiles = [{}]", all.collect::<Vec<_>>().join(", "))?;
    }
    buckets.iter().try_for_each(|buckets| writeln!(out, "buckets = {buckets}"))?;
    if below.is_empty() {
        return Ok(());
    }
    let shares = below.iter().map(|&(ns, percent)| format!("[{}, {percent:?}]", span(ns)));
    writeln!(out, "below = [{}]", shares.collect::<Vec<_>>().join(", "))
}

fn write_settings(settings: &Settings, out: &mut String) -> fmt::Result {
    let Settings { bh_lock, rt } = settings;
    writeln!(out, "\n[kernel]\nbh_lock = {bh_lock}")?;
    let Some(RtBudget { runtime_ns, period_ns, fair_server }) = *rt else { return Ok(()) };
    writeln!(out, "rt_runtime = {}\nrt_period = {}", span(runtime_ns), span(period_ns))?;
    writeln!(out, "fair_server = {fair_server}")
}

fn write_group(group: &Group, out: &mut String) -> fmt::Result {
    let Group { name, quota_ns, period_ns } = group;
    writeln!(out, "\n[[group]]\nname = {}", quoted(name))?;
    writeln!(out, "quota = {}\nperiod = {}", span(*quota_ns), span(*period_ns))
}

fn write_costs(costs: &Costs, out: &mut String) -> fmt::Result {
    let mut costs = costs.clone();
    writeln!(out, "\n[costs]")?;
    for (key, cost) in words::costs(&mut costs) {
        writeln!(out, "{key} = {}", length(cost))?;
    }
    Ok(())
}

fn write_task(task: &ScenarioTask, out: &mut String) -> fmt::Result {
    writeln!(out, "\n[[task]]\nname = {}", quoted(&task.name))?;
    let policy = match task.policy {
        TaskPolicy::Other(0) => None,
        TaskPolicy::Other(nice) => Some(format!("other:{nice}")),
        TaskPolicy::Fifo(priority) => Some(format!("fifo:{priority}")),
        TaskPolicy::RoundRobin(priority) => Some(format!("rr:{priority}")),
        TaskPolicy::Deadline(ns) => Some(format!("deadline:{}", SpanNs(ns).as_argument())),
    };
    if let Some(policy) = policy {
        writeln!(out, "policy = \"{policy}\"")?;
    }
    if let Some(cpu) = task.cpu {
        writeln!(out, "cpu = {cpu}")?;
    }
    if let Some(group) = &task.group {
        writeln!(out, "group = {}", quoted(group))?;
    }
    match &task.does {
        Does::Probe { period_ps, path } => {
            writeln!(out, "period = \"{}\"", period(*period_ps))?;
            path.iter().try_for_each(|path| writeln!(out, "path = {}", quoted(path)))
        }
        Does::Path(path) => writeln!(out, "path = {}", quoted(path)),
    }
}

fn write_interrupt(interrupt: &Interrupt, out: &mut String) -> fmt::Result {
    writeln!(out, "\n[[interrupt]]\nname = {}", quoted(&interrupt.name))?;
    let kind = match interrupt.kind {
        InterruptKind::Device => "device",
        InterruptKind::Unthreaded => "unthreaded",
        InterruptKind::Nmi => "nmi",
        InterruptKind::Steal => "steal",
        InterruptKind::Softirq(number) => &format!("softirq:{}", softirq_name(number)),
    };
    writeln!(out, "kind = \"{kind}\"")?;
    if let Some(arrivals) = &interrupt.arrivals {
        writeln!(out, "arrives = {{ {} }}", arrives(arrivals))?;
    }
    if let Some(cpu) = interrupt.cpu {
        writeln!(out, "cpu = {cpu}")?;
    }
    writeln!(out, "path = {}", quoted(&interrupt.handler))
}

fn arrives(arrivals: &Arrivals) -> String {
    match arrivals {
        Arrivals::Periodic(ns) => format!("periodic = {}", span(*ns)),
        Arrivals::Poisson(ns) => format!("poisson = {}", span(*ns)),
        &Arrivals::Bursts { every_ns, count, gap_ns } => {
            let (every, gap) = (span(every_ns), span(gap_ns));
            format!("bursts = {{ every = {every}, count = {count}, gap = {gap} }}")
        }
        Arrivals::Recorded(times) => {
            format!("recorded = [{}]", joined(times.iter().map(|ns| span(*ns))))
        }
    }
}

fn write_steps(steps: &[Step], depth: usize, out: &mut String) -> fmt::Result {
    if steps.is_empty() {
        return write!(out, "[]");
    }
    let indent = "  ".repeat(depth);
    writeln!(out, "[")?;
    for step in steps {
        write!(out, "{indent}  ")?;
        write_step(step, depth + 1, out)?;
        writeln!(out, ",")?;
    }
    write!(out, "{indent}]")
}

fn write_step(step: &Step, depth: usize, out: &mut String) -> fmt::Result {
    if let Some((word, _)) = PLAIN.iter().find(|(_, plain)| plain == step) {
        return write!(out, "\"{word}\"");
    }
    let (entry, inner) = entry(step);
    write!(out, "{{ {entry}")?;
    if let Some(steps) = inner {
        write!(out, ", do = ")?;
        write_steps(steps, depth, out)?;
    }
    write!(out, " }}")
}

/// The entry that says which step it is, and the steps within it.
fn entry(step: &Step) -> (String, Option<&Vec<Step>>) {
    let key = |verb: &str, name: &str| format!("{verb} = {}", quoted(name));
    let name = |verb: &str, name: &str| (key(verb, name), None);
    let lasts = |verb: &str, lasts: &Length| (format!("{verb} = {}", length(lasts)), None);
    let function = |kind| LOCKS.iter().find(|(of, ..)| *of == kind).copied();
    match step {
        Step::User(length) => lasts("user", length),
        Step::Compute(length) => lasts("compute", length),
        Step::PageFault(length) => lasts("page_fault", length),
        Step::Call(called, steps) => (key("call", called), Some(steps)),
        Step::Repeat(Count::Fixed(rounds), steps) => (format!("repeat = {rounds}"), Some(steps)),
        Step::Repeat(Count::Uniform(least, most), steps) => {
            (format!("repeat = [{least}, {most}]"), Some(steps))
        }
        Step::Unless(event, steps) => (key("unless", event), Some(steps)),
        Step::PerCpu(variable, steps) => (key("per_cpu", variable), Some(steps)),
        &Step::Lock(kind, ref lock) => name(function(kind).map_or("", |(_, take, _)| take), lock),
        &Step::Unlock(kind, ref lock) => name(function(kind).map_or("", |(_, _, give)| give), lock),
        Step::LockBreak(own) => {
            let (lock, every) = (quoted(&own.lock), own.every);
            let restart = if own.restart { ", restart = true" } else { "" };
            (format!("lock_break = {lock}, every = {every}{restart}"), None)
        }
        Step::Block { length, interrupt: None } => lasts("block", length),
        Step::Block { length: time, interrupt: Some(interrupt) } => {
            (format!("block = {}, interrupt = {}", length(time), quoted(interrupt)), None)
        }
        Step::Wait(event) => name("wait", event),
        Step::Wake(event) => name("wake", event),
        Step::PrepareToWait(event) => name("prepare_to_wait", event),
        Step::FinishWait(event) => name("finish_wait", event),
        &Step::RaiseSoftirq(number) => name("raise_softirq", &softirq_name(number)),
        // All others are a word.
        _ => (String::new(), None),
    }
}

fn length(length: &Length) -> String {
    match length {
        &Length::Fixed(ns) => span(ns),
        &Length::Uniform(least, most) => {
            format!("{{ uniform = [{}, {}] }}", span(least), span(most))
        }
        &Length::Exponential(mean) => format!("{{ exponential = {} }}", span(mean)),
        &Length::Pareto { least, shape, most } => {
            let (least, most) = (span(least), span(most));
            format!("{{ pareto = {{ least = {least}, shape = {shape:?}, most = {most} }} }}")
        }
        Length::Mixture(parts) => {
            let part = |(weight, of): &(f64, Length)| format!("[{weight:?}, {}]", self::length(of));
            format!("{{ mixture = [{}] }}", joined(parts.iter().map(part)))
        }
        Length::Histogram(buckets) => {
            let bucket = buckets.iter().map(|bucket| {
                format!("[{}, {}, {}]", span(bucket.lower), span(bucket.upper), bucket.count)
            });
            format!("{{ histogram = [{}] }}", joined(bucket))
        }
    }
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

fn span(ns: u64) -> String {
    quoted(&SpanNs(ns).as_argument())
}

/// As a frequency where that is a whole number.
fn period(ps: u64) -> String {
    const SECOND: u64 = 1_000_000_000_000;
    if ps != 0 && SECOND % ps == 0 {
        return format!("{}Hz", SECOND / ps);
    }
    match ps % 1_000 {
        0 => SpanNs(ps / 1_000).as_argument(),
        below => format!("{}.{below:03}ns", ps / 1_000),
    }
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(out, "\\U{:08X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
