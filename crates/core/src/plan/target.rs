//! Whose wakeups a run is about.

use serde::{Deserialize, Serialize};

/// Whose wakeups a run is about: those of its own probes, or those of other threads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Target {
    /// The run's own probes, one for each CPU of the plan.
    #[default]
    Probes,
    /// All threads of a process.
    Process {
        /// The process ID.
        pid: u32,
    },
    /// One thread.
    Thread {
        /// The thread ID.
        tid: u32,
    },
    /// All threads of this name.
    Comm {
        /// Their name.
        comm: String,
    },
    /// All threads in a cgroup, but not in its descendants.
    Cgroup {
        /// The cgroup's folder.
        path: String,
    },
    /// All tasks that another program's file lists.
    Tasks {
        /// How many there are.
        count: u64,
        /// The one that waited longest, as the file names it.
        latest: String,
    },
    /// The threads of a program that measures their wakeups itself.
    Program {
        /// Its name.
        name: String,
    },
    /// A kind that this version does not know.
    #[serde(other)]
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[track_caller]
    fn check(target: &Target, want: &Value) {
        assert_eq!(serde_json::to_value(target).unwrap(), *want);
        assert_eq!(serde_json::from_value::<Target>(want.clone()).unwrap(), *target);
    }

    #[test]
    fn records_of_targets_have_a_kind() {
        check(&Target::Probes, &json!({"kind": "probes"}));
        check(&Target::Process { pid: 4_711 }, &json!({"kind": "process", "pid": 4711}));
        check(&Target::Thread { tid: 4_712 }, &json!({"kind": "thread", "tid": 4712}));
        check(&Target::Comm { comm: "jackd".into() }, &json!({"kind": "comm", "comm": "jackd"}));
        check(
            &Target::Cgroup { path: "/sys/fs/cgroup/a".into() },
            &json!({"kind": "cgroup", "path": "/sys/fs/cgroup/a"}),
        );
        check(
            &Target::Tasks { count: 12, latest: "sleep:7".into() },
            &json!({"kind": "tasks", "count": 12, "latest": "sleep:7"}),
        );
        check(
            &Target::Program { name: "schbench".into() },
            &json!({"kind": "program", "name": "schbench"}),
        );
    }

    #[test]
    fn a_kind_of_a_later_version_is_unknown() {
        let target: Target = serde_json::from_str(r#"{"kind": "planet", "name": "x"}"#).unwrap();
        assert_eq!(target, Target::Unknown);
    }
}
