//! `wakescope check`

use wakescope_core::behaviour::{Agreement, judge};
use wakescope_core::host::{KernelVersion, cpu_ranges};
use wakescope_core::limitations::host_findings;
use wakescope_core::run::TimeDomain;
use wakescope_probe::behaviour::{Options, observe};
use wakescope_probe::host::{self, Files};
use wakescope_report::check::Check;
use wakescope_sys::sched::affinity;

use crate::{Failure, Outcome, output};

/// Show the preemption model with its evidence, and what this machine can measure
///
/// With --probe, the exit code is 1 if the behaviour contradicts the evidence, and 3 if it is
/// inconclusive.
#[derive(clap::Args)]
pub(crate) struct CheckArgs {
    /// Print JSON: the `host` of a run, with `limitations` and `instruments`
    #[arg(long)]
    json: bool,

    /// Also infer the preemption model from behaviour: time wakeups during long system calls on one
    /// CPU, for some seconds
    #[arg(long)]
    probe: bool,

    /// The CPU to probe [default: the last CPU that this process may use]
    #[arg(long, value_name = "CPU", requires = "probe")]
    cpu: Option<u32>,
}

/// Runs `wakescope check`.
pub(crate) fn run(args: &CheckArgs) -> Result<Outcome, Failure> {
    let (host, instruments) = host::examine(&Files::of_this_machine(), &[]);
    let limitations = host_findings(&host, TimeDomain::Real, &host.cpus_allowed);
    let mut check = Check { host, limitations, instruments, behaviour: None };
    if args.probe {
        // Of the system call: it does not take /proc.
        let allowed = affinity().map_err(|e| {
            Failure::new(format!("cannot find out which CPUs this process may use: {e}"))
        })?;
        let cpu = cpu_to_probe(args.cpu, &allowed)?;
        output::tell(&format!(
            "wakescope: timing wakeups during long system calls on CPU {cpu}, for some seconds"
        ));
        let observations = observe(cpu, &Options::default());
        let version = KernelVersion::of(&check.host.release);
        let judgement = judge(&observations, TimeDomain::Real).of_version(version);
        check.behaviour = Some((observations, judgement));
    }
    if args.json {
        let value = check.json().map_err(|e| Failure::new(format!("cannot write JSON: {e}")))?;
        output::print(&format!("{value:#}\n"))?;
    } else {
        output::print(&check.text(output::style()))?;
    }
    Ok(match check.agreement() {
        None | Some(Agreement::Agree) => Outcome::Done,
        Some(Agreement::Contradict) => Outcome::Failed,
        Some(Agreement::Undecided) => Outcome::Inconclusive,
    })
}

fn cpu_to_probe(asked: Option<u32>, allowed: &[u32]) -> Result<u32, Failure> {
    let cpu = asked.or(allowed.last().copied()).unwrap_or(0);
    if allowed.contains(&cpu) {
        return Ok(cpu);
    }
    Err(Failure::new(format!("cannot probe CPU {cpu}: this process may not use it"))
        .because(format!("it may use {}", listed(allowed)))
        .try_this("omit --cpu, or name one of those"))
}

fn listed(cpus: &[u32]) -> String {
    let plural = if cpus.len() == 1 { "" } else { "s" };
    format!("CPU{plural} {}", cpu_ranges(cpus))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_is_probed_that_may_be_used() {
        assert_eq!(cpu_to_probe(None, &[1, 4]).unwrap(), 4);
        assert_eq!(cpu_to_probe(Some(1), &[1, 4]).unwrap(), 1);
        let refused = cpu_to_probe(Some(0), &[1, 4]).unwrap_err().to_string();
        assert!(refused.contains("CPU 0") && refused.contains("it may use CPUs 1,4"), "{refused}");
    }
}
