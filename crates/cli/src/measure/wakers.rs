//! What the options about wakers ask for, and what that means on this machine.

use std::str::FromStr;

use wakescope_core::host::{CPUS_MAX, cpu_ranges};
use wakescope_core::plan::{Between, Placement, ProbePolicy, Stimulus, Waker};

use crate::Failure;

/// Where a waker runs, as `--place` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The waker is on the CPU of its probe.
    SameCpu,
    /// The waker is on the next CPU.
    CrossCpu,
    /// The waker is on the first of these, the probe on the second.
    Pair(u32, u32),
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let cpu = |text: &str| text.parse().ok().filter(|&cpu| cpu < CPUS_MAX);
        match text {
            "same-cpu" => Ok(Self::SameCpu),
            "cross-cpu" => Ok(Self::CrossCpu),
            _ => text
                .split_once(':')
                .and_then(|(waker, probe)| Some(Self::Pair(cpu(waker)?, cpu(probe)?)))
                .ok_or_else(|| {
                    "write same-cpu, cross-cpu, matrix, or the CPUs of waker and probe, as in 0:1"
                        .into()
                }),
        }
    }
}

/// Which wakers are asked for. `None` is what was not said.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) stimulus: Stimulus,
    pub(crate) between: Option<Between>,
    pub(crate) place: Option<Place>,
}

/// Probes and their wakers.
pub(crate) struct Places {
    /// The measured CPUs.
    pub(crate) cpus: Vec<u32>,
    /// Who wakes the probes there.
    pub(crate) waker: Option<Waker>,
}

impl Asked {
    /// The places of probes on `cpus`, which were `named` or are all of the `allowed` ones.
    pub(crate) fn places(
        self,
        policy: ProbePolicy,
        priority: Option<u8>,
        cpus: Vec<u32>,
        is_named: bool,
        allowed: &[u32],
    ) -> Result<Places, Failure> {
        if !self.stimulus.needs_waker() {
            self.check_no_waker()?;
            return Ok(Places { cpus, waker: None });
        }
        self.check_policy(policy)?;
        let waker =
            Waker { between: self.between.unwrap_or_default(), ..Waker::of_probe(priority) };
        let across = |cpus, wakers| {
            let placement = Placement::CrossCpu;
            Places { cpus, waker: Some(Waker { placement, cpus: wakers, ..waker.clone() }) }
        };
        Ok(match self.place.unwrap_or(Place::SameCpu) {
            Place::SameCpu => Places { cpus, waker: Some(waker) },
            Place::CrossCpu => {
                let wakers: Option<Vec<u32>> =
                    cpus.iter().map(|&cpu| next_after(cpu, allowed)).collect();
                across(cpus, wakers.ok_or_else(|| one_cpu("cross-cpu", allowed))?)
            }
            Place::Pair(of_waker, of_probe) => {
                check_pair(of_waker, of_probe, is_named, allowed)?;
                match of_waker == of_probe {
                    true => Places { cpus: vec![of_probe], waker: Some(waker) },
                    false => across(vec![of_probe], vec![of_waker]),
                }
            }
        })
    }

    fn check_no_waker(self) -> Result<(), Failure> {
        let option = match self {
            Self { place: Some(_), .. } => "--place",
            Self { between: Some(_), .. } => "--between",
            _ => return Ok(()),
        };
        Err(Failure::new(format!("{option} does not apply to --stimulus {}", self.stimulus))
            .because("no other thread wakes its probes")
            .try_this(format!("omit {option}, or use a stimulus with a waker, such as futex")))
    }

    fn check_policy(self, policy: ProbePolicy) -> Result<(), Failure> {
        if policy != ProbePolicy::Deadline {
            return Ok(());
        }
        let stimulus = self.stimulus;
        let what = format!("--policy deadline does not apply to --stimulus {stimulus}");
        Err(Failure::new(what)
            .because(
                "a SCHED_DEADLINE probe is throttled by its own period, which a waker does not \
                 keep",
            )
            .try_this("use --policy fifo, rr or other"))
    }
}

/// The CPU that follows, the first after the last; `None` if there is no other.
fn next_after(cpu: u32, allowed: &[u32]) -> Option<u32> {
    let after = allowed.iter().find(|&&other| other > cpu).or(allowed.first()).copied();
    after.filter(|&other| other != cpu)
}

/// The refusal of a place for which one CPU is not enough.
pub(super) fn one_cpu(place: &str, cpus: &[u32]) -> Failure {
    Failure::new(format!("--place {place} needs two CPUs"))
        .because(format!("there is only CPU {}", cpu_ranges(cpus)))
        .try_this("use --place same-cpu; or allow more CPUs: see --cpus, cpusets and taskset")
}

fn check_pair(
    of_waker: u32,
    of_probe: u32,
    is_named: bool,
    allowed: &[u32],
) -> Result<(), Failure> {
    if is_named {
        let what = format!(
            "--place {of_waker}:{of_probe} names the CPU to measure, and so does \
                            --cpus"
        );
        return Err(Failure::new(what).try_this("omit --cpus"));
    }
    match [of_waker, of_probe].into_iter().find(|cpu| !allowed.contains(cpu)) {
        None => Ok(()),
        Some(cpu) => Err(Failure::new(format!("this process may not use CPU {cpu}"))
            .because(format!("it may use {}", cpu_ranges(allowed)))
            .try_this("name two of these: --place WAKER:PROBE")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FUTEX: Asked = Asked { stimulus: Stimulus::Futex, between: None, place: None };

    /// Where probes and wakers are on a machine with these CPUs; the refusal otherwise.
    fn placed(place: &str, allowed: &[u32]) -> Result<(Vec<u32>, Vec<u32>), String> {
        let asked = Asked { place: Some(place.parse()?), ..FUTEX };
        let places = asked.places(ProbePolicy::Fifo, Some(90), allowed.to_vec(), false, allowed);
        let Places { cpus, waker } = places.map_err(|refusal| refusal.to_string())?;
        let waker = waker.unwrap();
        let want = if waker.cpus.is_empty() { Placement::SameCpu } else { Placement::CrossCpu };
        assert_eq!((waker.placement, waker.priority), (want, Some(89)));
        let wakers = (0..).zip(&cpus).map(|(rank, &cpu)| waker.cpu(rank, cpu)).collect();
        Ok((cpus, wakers))
    }

    #[test]
    fn wakers_are_where_they_are_asked_for() {
        for (place, allowed, cpus, wakers) in [
            ("same-cpu", &[0, 2, 3][..], &[0, 2, 3][..], &[0, 2, 3][..]),
            ("cross-cpu", &[0, 2, 3], &[0, 2, 3], &[2, 3, 0]),
            ("2:0", &[0, 2, 3], &[0], &[2]),
            ("2:2", &[0, 2, 3], &[2], &[2]),
        ] {
            assert_eq!(placed(place, allowed), Ok((cpus.to_vec(), wakers.to_vec())), "{place}");
        }
    }

    #[test]
    fn places_that_there_are_not_are_refused_with_a_remedy() {
        for (place, allowed, want) in [
            ("cross-cpu", &[4][..], "--place cross-cpu needs two CPUs"),
            ("cross-cpu", &[4], "--place same-cpu"),
            ("0:1", &[0, 2], "this process may not use CPU 1"),
            ("1:0", &[0, 2], "it may use 0,2"),
            ("elsewhere", &[0], "write same-cpu, cross-cpu"),
            ("0:", &[0], "write same-cpu, cross-cpu"),
            ("0:99999999", &[0], "write same-cpu, cross-cpu"),
        ] {
            let refusal = placed(place, allowed).unwrap_err();
            assert!(refusal.contains(want), "{place}: {refusal}");
        }
        let named = Asked { place: Some(Place::Pair(0, 1)), ..FUTEX };
        let refused = |asked: Asked, policy| {
            asked.places(policy, None, vec![0], true, &[0, 1]).map(drop).unwrap_err().to_string()
        };
        assert!(refused(named, ProbePolicy::Fifo).contains("omit --cpus"));
        assert!(refused(FUTEX, ProbePolicy::Deadline).contains("--policy deadline does not apply"));
        let timer = Asked { stimulus: Stimulus::Timer, ..named };
        assert!(
            refused(timer, ProbePolicy::Fifo)
                .contains("--place does not apply to --stimulus timer")
        );
        let between = Some(Between::Processes);
        let timer = Asked { stimulus: Stimulus::Timer, between, place: None };
        assert!(refused(timer, ProbePolicy::Fifo).contains("--between does not apply"));
    }
}
