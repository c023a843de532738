//! Windows as `wakescope watch --out` stores them.

use serde_json::{Value, json};
use wakescope_core::watch::scale::{BUCKETS, edges_of};

/// The line of a window of 10 minutes, in which tasks of one name in one cgroup waited on one CPU.
pub(crate) fn stored_window(started: &str, begin_ns: u64, comm: &str, waits: &Value) -> String {
    line(started, begin_ns, 9, &[series(comm, waits)], waits)
}

/// The line of a window of 10 minutes with so many switches, in which each of these tasks had waits of these
/// lengths in ns, each so many.
pub(crate) fn busy_window(
    started: &str,
    begin_ns: u64,
    switches: u64,
    tasks: &[(&str, Vec<(u64, u64)>)],
) -> String {
    let all: Vec<(u64, u64)> = tasks.iter().flat_map(|(_, of)| of.iter().copied()).collect();
    let tasks: Vec<Value> = tasks.iter().map(|(comm, of)| series(comm, &waits(of))).collect();
    line(started, begin_ns, switches, &tasks, &waits(&all))
}

/// Waits of these lengths in ns, each so many.
fn waits(of: &[(u64, u64)]) -> Value {
    let mut counts = vec![0; BUCKETS];
    of.iter().for_each(|&(ns, count)| counts[bucket(ns)] += count);
    let buckets = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    let histogram: Vec<String> = buckets.map(|(at, count)| format!("@{at} {count}")).collect();
    json!({
        "count": of.iter().map(|wait| wait.1).sum::<u64>(),
        "sum_ns": of.iter().map(|(ns, count)| ns * count).sum::<u64>(),
        "max_ns": of.iter().map(|wait| wait.0).max(), "max_is_exact": true,
        "min_ns": of.iter().map(|wait| wait.0).min(), "min_is_exact": true,
        "histogram": histogram.join(" "),
    })
}

/// The bucket of the scale that a wait is in.
pub(crate) fn bucket(ns: u64) -> usize {
    (0..BUCKETS).rfind(|&index| edges_of(index).0 <= ns).unwrap()
}

fn series(comm: &str, waits: &Value) -> Value {
    json!({"cgroup_id": 7, "cgroup": "/a", "comm": comm, "waits": waits})
}

fn line(started: &str, begin_ns: u64, switches: u64, series: &[Value], all: &Value) -> String {
    let none = json!({"count": 0, "sum_ns": 0, "max_ns": null, "max_is_exact": false, "min_ns": null,
        "min_is_exact": false, "histogram": ""});
    let window = json!({
        "schema": "wakescope.watch/1", "started": started, "begin_ns": begin_ns,
        "window_ns": 600_000_000_000_u64, "from": "queued", "series": series,
        "others": none, "cpus": [{"cpu": 0, "switches": switches, "waits": all}],
        "left_out": {"uncovered_ns": 0, "unstamped": 0, "discarded": 0, "untracked": 0,
            "first": 0, "caught_up": 0, "missed": 0, "missed_ns": 0, "contradicted": 0},
        "moved": {"count": 0, "before_ns": 0}, "series_used": 1, "series_limit": 9,
        "own_cost": {"agent_ns": 1_000_000, "program_ns": 2_000_000, "program_runs": 9,
            "source": "measured", "cpus": 2},
    });
    format!("{window}\n")
}
