//! Sides that are of several kernels: no difference between sides is that between two kernels then.

use super::guard::by_value;
use super::{Difference, Labelled, Value};
use wakescope_core::host::Host;
use wakescope_core::preemption::Model;

/// For each side whose runs are of several kernels, these kernels.
pub(super) fn differences(new: &[Labelled], old: &[Labelled]) -> Vec<Difference> {
    [("new", new), ("old", old)]
        .into_iter()
        .filter_map(|(side, runs)| of_side(side, runs))
        .collect()
}

fn of_side(side: &str, runs: &[Labelled]) -> Option<Difference> {
    let hosts = || runs.iter().map(|l| &l.run.host).filter(|host| !host.release.is_empty());
    let kernels = hosts().map(Kernel::of).collect::<Vec<_>>();
    let detail = Detail::that_distinguishes(&kernels)?;
    let values = by_value(runs, |run| {
        let known = !run.host.release.is_empty();
        known.then(|| Kernel::of(&run.host).named(detail))
    });
    let text: Vec<String> = values.iter().map(Value::with_runs).collect();
    let message = format!("The {side} runs are of several kernels: {}.", text.join("; "));
    Some(Difference { what: "kernel".into(), message, values, matters: false })
}

/// What distinguishes kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kernel<'a> {
    pub(super) release: &'a str,
    pub(super) model: Model,
    pub(super) version: &'a str,
}

/// How much is said of each kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Detail {
    Release,
    Model,
    Version,
}

impl Detail {
    /// The least with which no two of these kernels have the same name; `None` if they are all one.
    pub(super) fn that_distinguishes(kernels: &[Kernel]) -> Option<Self> {
        let (first, rest) = kernels.split_first()?;
        if rest.iter().all(|kernel| kernel == first) {
            return None;
        }
        let alike = |named: Self| {
            kernels.iter().enumerate().any(|(at, one)| {
                let mut others = kernels[at + 1..].iter().filter(|other| *other != one);
                others.any(|other| other.named(named) == one.named(named))
            })
        };
        [Self::Release, Self::Model]
            .into_iter()
            .find(|&detail| !alike(detail))
            .or(Some(Self::Version))
    }
}

impl<'a> Kernel<'a> {
    fn of(host: &'a Host) -> Self {
        Self { release: &host.release, model: host.preemption.model, version: &host.version }
    }

    /// `6.12.95-amd64`, `6.12.95-amd64 (preemption full)`
    pub(super) fn named(&self, detail: Detail) -> String {
        let Self { release, model, version } = self;
        match detail {
            Detail::Release => (*release).into(),
            Detail::Model => format!("{release} (preemption {model})"),
            Detail::Version => format!("{release} (preemption {model}, {version})"),
        }
    }
}
