//! On which machine, and under which kernel, a window was counted.

use serde::{Deserialize, Serialize};

use crate::host::{Clock, Host, scheduler};
use crate::preemption::{Model, Preemption};

/// The most boots of a sum of windows. If there are more, one that is not known stands for the others.
pub(crate) const MOST_BOOTS: usize = 64;

/// A boot of a machine, with what distinguishes it from others. The default stands for one of which nothing
/// is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boot {
    /// A mark that only this machine has, made of its machine-id, which it does not reveal; `None` if it has
    /// none, or if the mark was left out (`--redact`).
    pub machine: Option<String>,
    /// A mark that only this boot has; `None` if it is not known.
    pub boot: Option<String>,
    /// `uname -r`.
    pub release: String,
    /// `uname -v`.
    pub version: String,
    /// `uname -m`.
    pub arch: String,
    /// The preemption model when the watch began.
    pub preemption: Model,
    /// The processor's own name.
    pub cpu_model: Option<String>,
    /// The hypervisor's name where the machine is a guest.
    pub hypervisor: Option<String>,
    /// The clocksource when the watch began.
    pub clock: Option<String>,
    /// The scheduler of sched_ext that decided which ordinary tasks run when the watch began, by the name that it
    /// gave itself; `None` without one, and in windows of earlier versions.
    #[serde(default)]
    pub sched_ext: Option<String>,
}

impl Boot {
    /// That of this machine, with the marks of it and of its boot.
    pub fn of(host: &Host, machine: Option<String>, boot: Option<String>) -> Self {
        Self {
            machine,
            boot,
            release: host.release.clone(),
            version: host.version.clone(),
            arch: host.arch.clone(),
            preemption: host.preemption.model,
            cpu_model: host.cpu_model.clone(),
            hypervisor: host.hypervisor.clone(),
            clock: Some(host.clock.source.clone()).filter(|source| !source.is_empty()),
            sched_ext: host.sched_ext.clone(),
        }
    }

    /// Whether anything is known of it.
    pub fn is_known(&self) -> bool {
        *self != Self::default()
    }

    /// Its scheduler of sched_ext, in words.
    pub fn scheduler(&self) -> &str {
        scheduler(self.sched_ext.as_deref())
    }

    /// Its kernel: release, version and preemption model.
    pub fn kernel(&self) -> (&str, &str, Model) {
        (&self.release, &self.version, self.preemption)
    }
}

/// The boots of both, each once. Where one of two windows does not say under which it was counted, that is a
/// boot of its own.
pub(super) fn joined(first: Vec<Boot>, later: Vec<Boot>) -> Vec<Boot> {
    if first.is_empty() && later.is_empty() {
        return first;
    }
    let or_unknown =
        |boots: Vec<Boot>| if boots.is_empty() { vec![Boot::default()] } else { boots };
    let mut all = or_unknown(first);
    for boot in or_unknown(later) {
        let boot = if all.len() < MOST_BOOTS { boot } else { Boot::default() };
        if !all.contains(&boot) {
            all.push(boot);
        }
    }
    all
}

/// What all boots have in common, as runs state it.
pub fn host_of(boots: &[Boot]) -> Host {
    fn common<'b, T: PartialEq + Default>(boots: &'b [Boot], of: impl Fn(&'b Boot) -> T) -> T {
        let mut values = boots.iter().map(of);
        let first = values.next().unwrap_or_default();
        if values.all(|value| value == first) { first } else { T::default() }
    }
    Host {
        release: common(boots, |boot| boot.release.clone()),
        version: common(boots, |boot| boot.version.clone()),
        arch: common(boots, |boot| boot.arch.clone()),
        preemption: Preemption {
            model: common(boots, |boot| boot.preemption),
            ..Preemption::default()
        },
        cpu_model: common(boots, |boot| boot.cpu_model.clone()),
        hypervisor: common(boots, |boot| boot.hypervisor.clone()),
        clock: Clock {
            source: common(boots, |boot| boot.clock.clone().unwrap_or_default()),
            ..Clock::default()
        },
        ..Host::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boot(mark: &str, release: &str) -> Boot {
        let machine = Some("m".into());
        Boot { machine, boot: Some(mark.into()), release: release.into(), ..Boot::default() }
    }

    #[test]
    fn each_boot_is_listed_once_and_one_that_is_not_known_is_no_other() {
        let (one, two) = (boot("1", "6.12"), boot("2", "6.18"));
        let both = vec![one.clone(), two.clone()];
        assert_eq!(joined(both.clone(), vec![one.clone()]), both);
        assert_eq!(joined(vec![one.clone()], vec![two]), both);
        assert_eq!(joined(Vec::new(), vec![one.clone()]), [Boot::default(), one.clone()]);
        assert_eq!(joined(vec![one.clone()], Vec::new()), [one, Boot::default()]);
        assert_eq!(joined(Vec::new(), Vec::new()), []);
    }

    #[test]
    fn boots_without_end_take_no_memory_without_end() {
        let many = |from: usize| (from..from + 50).map(|i| boot(&i.to_string(), "6.12")).collect();
        let all = joined(joined(many(0), many(50)), many(100));
        assert_eq!((all.len(), all.last()), (MOST_BOOTS + 1, Some(&Boot::default())));
    }

    #[test]
    fn what_boots_do_not_have_in_common_is_not_stated_of_all() {
        let alike = host_of(&[boot("1", "6.12"), boot("2", "6.12")]);
        assert_eq!(alike.release, "6.12");
        assert_eq!(host_of(&[boot("1", "6.12"), boot("2", "6.18")]).release, "");
        assert_eq!(host_of(&[]), Host::default());
    }
}
