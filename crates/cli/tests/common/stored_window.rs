//! Windows as `wakescope watch --out` stores them.

use serde_json::{Value, json};

/// The line of a window of 10 minutes, in which tasks of one name in one cgroup waited on one CPU.
pub(crate) fn stored_window(started: &str, begin_ns: u64, comm: &str, waits: &Value) -> String {
    let none =
        json!({"count": 0, "sum_ns": 0, "max_ns": null, "max_is_exact": false, "histogram": ""});
    let window = json!({
        "schema": "wakescope.watch/1", "started": started, "begin_ns": begin_ns,
        "window_ns": 600_000_000_000_u64, "from": "queued",
        "series": [{"cgroup_id": 7, "cgroup": "/a", "comm": comm, "waits": waits}],
        "others": none, "cpus": [{"cpu": 0, "switches": 9, "waits": waits}],
        "left_out": {"uncovered_ns": 0, "unstamped": 0, "discarded": 0, "untracked": 0,
            "first": 0, "caught_up": 0, "missed": 0, "missed_ns": 0, "contradicted": 0},
        "moved": {"count": 0, "before_ns": 0}, "series_used": 1, "series_limit": 9,
        "own_cost": {"agent_ns": 1_000_000, "program_ns": 2_000_000, "program_runs": 9,
            "source": "measured", "cpus": 2},
    });
    format!("{window}\n")
}
