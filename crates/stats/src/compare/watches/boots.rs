//! On which machines watches were made, and under which kernels.

use std::collections::BTreeSet;

use super::super::kernels::{Detail, Kernel};
use super::super::words::{count_of, listed};
use super::super::{Difference, Value};
use super::{Watched, Watches};
use wakescope_core::watch::boot::Boot;

impl Watches<'_> {
    /// In what the watches are not alike as to where they were made.
    pub(super) fn of_boots(&self) -> Vec<Difference> {
        let within = [self.several_kernels(), self.several_machines()];
        let between = [self.machines_of_one_side(), self.schedulers()];
        within.into_iter().chain(between).flatten().collect()
    }

    /// Watches of which each is of several kernels: the figure of such a watch is that of none of them.
    fn several_kernels(&self) -> Option<Difference> {
        let several = |w: &Watched| {
            let kernels: Vec<Kernel> = w.watch.boots.iter().map(kernel).collect();
            let detail = Detail::that_distinguishes(&kernels)?;
            let mut names: Vec<String> = Vec::new();
            for kernel in kernels {
                let name = match kernel.release {
                    "" => "one that is not known".into(),
                    _ => kernel.named(detail),
                };
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            Some(listed(&names))
        };
        let text = "The windows of a watch are of several kernels";
        self.within_a_watch("kernel of windows", text, several)
    }

    /// Watches of which each is of several machines.
    fn several_machines(&self) -> Option<Difference> {
        let several = |w: &Watched| {
            let machines: BTreeSet<_> = w.watch.boots.iter().map(|boot| &boot.machine).collect();
            (machines.len() > 1).then(|| match machines.contains(&None) {
                true => {
                    format!("{}, and others not known", count_of(machines.len() - 1, "machine"))
                }
                false => count_of(machines.len(), "machine"),
            })
        };
        let text = "The windows of a watch are of several machines";
        self.within_a_watch("machine of windows", text, several)
    }

    /// Watches under different schedulers of sched_ext, each with those of all its boots.
    fn schedulers(&self) -> Option<Difference> {
        let names = |w: &Watched| {
            let known = w.watch.boots.iter().filter(|boot| boot.is_known());
            let names: BTreeSet<&str> = known.map(Boot::scheduler).collect();
            (!names.is_empty()).then(|| names.into_iter().collect::<Vec<_>>().join(", "))
        };
        let values = self.by_value(names);
        let named: Vec<String> = values.iter().map(Value::with_runs).collect();
        (values.len() > 1).then(|| Difference {
            what: "scheduler of sched_ext".into(),
            message: format!("The runs differ in scheduler of sched_ext: {}.", named.join("; ")),
            values,
            matters: false,
        })
    }

    fn within_a_watch(
        &self,
        what: &str,
        text: &str,
        several: impl Fn(&Watched) -> Option<String>,
    ) -> Option<Difference> {
        let values = self.by_value(several);
        let named: Vec<String> = values.iter().map(Value::with_runs).collect();
        (!values.is_empty()).then(|| Difference {
            what: what.into(),
            message: format!("{text}: {}.", named.join("; ")),
            values,
            matters: true,
        })
    }

    /// Machines that only one side has: a difference may be theirs. Of a series of watches, which has one
    /// side, whether they are of several.
    fn machines_of_one_side(&self) -> Option<Difference> {
        let values = self.by_value(|w| Some(machine_of(w)));
        let sets = [self.new, self.old].map(|side| side.iter().map(machine_of).collect());
        let [new, old]: &[BTreeSet<String>; 2] = &sets;
        let known = values.iter().any(|value| value.value != NOT_KNOWN);
        if !known || new == old || values.len() < 2 {
            return None;
        }
        let labels = |side: &[Watched], other: &BTreeSet<String>| {
            let only = side.iter().filter(|w| !other.contains(&machine_of(w)));
            listed(&only.map(|w| w.label.to_owned()).collect::<Vec<_>>())
        };
        let has_unknown = values.iter().any(|value| value.value == NOT_KNOWN);
        let message = if self.old.is_empty() {
            let many = count_of(values.iter().filter(|v| v.value != NOT_KNOWN).count(), "machine");
            let others = if has_unknown { " and others not known" } else { "" };
            format!("The runs are of {many}{others}: a change may be that of the machine.")
        } else if has_unknown {
            let unknown = values.iter().filter(|value| value.value == NOT_KNOWN);
            let runs: Vec<String> = unknown.flat_map(|value| value.runs.clone()).collect();
            format!(
                "The machine of some runs is not known ({}): a difference may be that of the machines.",
                listed(&runs)
            )
        } else if new.is_disjoint(old) {
            let [new, old] = [new, old].map(|side| count_of(side.len(), "machine"));
            format!(
                "The sides are of different machines ({new} against {old}): a difference may be that of \
                 the machines."
            )
        } else {
            let (new, old) = (labels(self.new, old), labels(self.old, new));
            let only: Vec<String> = [("new", new), ("old", old)]
                .into_iter()
                .filter(|(_, labels)| !labels.is_empty())
                .map(|(side, labels)| format!("{side}: {labels}"))
                .collect();
            format!(
                "Some machines are on one side only ({}): a difference may be that of the machines.",
                only.join("; ")
            )
        };
        Some(Difference { what: "machine".into(), message, values, matters: false })
    }
}

const NOT_KNOWN: &str = "not known";

/// The mark of the machine of a watch, or those of several.
fn machine_of(watch: &Watched) -> String {
    let marks = watch.watch.boots.iter().map(|boot| boot.machine.as_deref().unwrap_or(NOT_KNOWN));
    let marks: BTreeSet<&str> = marks.collect();
    match marks.len() {
        0 => NOT_KNOWN.into(),
        _ => marks.into_iter().collect::<Vec<_>>().join(", "),
    }
}

fn kernel(boot: &Boot) -> Kernel<'_> {
    let (release, version, model) = boot.kernel();
    Kernel { release, model, version }
}
