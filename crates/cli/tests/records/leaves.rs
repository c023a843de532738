//! Each number of a record, changed: it is refused if a figure that is shown then contradicts another. The
//! numbers that may be changed are listed, so that one more of them is seen.

use std::collections::BTreeMap;

use expect_test::{Expect, expect};
use serde_json::{Number, Value};
use wakescope_core::lab::{Arm, Cell, CellLimit, Comparison, Effect, Lab, Status};
use wakescope_core::limit::{Judgement, Outcome};
use wakescope_core::run::{Episode, Run};
use wakescope_core::scope::Scope;
use wakescope_core::watch::packed;

use crate::common::made_up::run;
use crate::common::made_up_scope;
use crate::common::stored_window::busy_window;

const ABSURD: u64 = 1_000_000_000_000_000_000;

/// What each number is changed to, where that is another.
fn changes(number: &Number) -> Vec<(&'static str, Number)> {
    let mut all: Vec<(&str, Number)> =
        vec![("0", 0.into()), ("1", 1.into()), ("10^18", ABSURD.into())];
    if let Some(n) = number.as_u64() {
        all.extend(n.checked_add(1).map(|n| ("+1", n.into())));
        all.extend(n.checked_sub(1).map(|n| ("-1", n.into())));
    }
    all.retain(|(_, new)| new.as_f64() != number.as_f64());
    all
}

/// The pointers of all numbers; those of histograms, of which each is checked, are left out.
fn numbers(at: &str, value: &Value, into: &mut Vec<String>) {
    match value {
        Value::Number(_) => into.push(at.into()),
        Value::Array(all) if !at.ends_with("histogram") => {
            let all = all.iter().enumerate();
            all.for_each(|(i, value)| numbers(&format!("{at}/{i}"), value, into));
        }
        Value::Object(all) => {
            all.iter().for_each(|(key, value)| numbers(&format!("{at}/{key}"), value, into));
        }
        _ => {}
    }
}

/// Lists the numbers of the record that may be changed, and to what.
#[track_caller]
fn check(record: &str, is_read: impl Fn(&str) -> Result<(), String>, want: &Expect) {
    assert_eq!(is_read(record), Ok(()));
    let record: Value = serde_json::from_str(record).unwrap();
    let mut pointers = Vec::new();
    numbers("", &record, &mut pointers);
    let mut accepted: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for pointer in pointers {
        let Some(Value::Number(number)) = record.pointer(&pointer) else { continue };
        for (name, new) in changes(number) {
            let mut changed = record.clone();
            if let Some(value) = changed.pointer_mut(&pointer) {
                *value = Value::Number(new);
            }
            if is_read(&changed.to_string()).is_ok() {
                accepted.entry(pointer.clone()).or_default().push(name);
            }
        }
    }
    let lines = accepted.iter().map(|(at, changes)| format!("{at}: {}\n", changes.join(" ")));
    want.assert_eq(&lines.collect::<String>());
}

#[test]
fn numbers_of_a_run_that_nothing_else_tells() {
    let mut run = run(50);
    run.plan.cpus = vec![0];
    run.worst = vec![Episode {
        cpu: Some(0),
        expiry_ns: 0,
        wakeup_latency_ns: 5_000_000,
        ..Episode::default()
    }];
    run.plan.fail_above = vec!["1ms".into()];
    run.limits = vec![Judgement {
        limit: "max ≤ 1.00 ms".into(),
        limit_ns: 1_000_000,
        observed_ns: Some(5_000_000),
        outcome: Outcome::Fail,
        reason: String::new(),
    }];
    run.summarize();
    let is_read = |text: &str| Run::from_json(text.as_bytes()).map(drop).map_err(|e| e.to_string());
    check(
        &run.to_json(),
        is_read,
        &expect![[r#"
            /duration_ns: +1 -1
            /host/clock/read_cost_ns: 1 10^18 +1
            /host/clock/resolution_ns: 1 10^18 +1
            /load/0/per_second: 0 1 10^18
            /load/0/work: 1 10^18 +1
            /origin_ns: 1 10^18 +1
            /plan/interval_ns: 0 +1 -1
            /plan/warmup_ns: 1 10^18 +1
            /plan/worst: 1 10^18 +1
            /seed: 1 10^18 +1
            /summary/not_excluded_every_ns: +1 -1
            /threads/0/expiries/max_at_ns: 1 +1
            /threads/0/expiries/min_ns: +1 -1
            /threads/0/expiries/sum_ns: +1 -1
            /threads/0/lost: 1 10^18 +1
            /threads/0/migrated: 1 10^18 +1
            /threads/0/page_faults: 1 10^18 +1
            /threads/0/woken/max_at_ns: 1 +1
            /threads/0/woken/max_ns: +1 -1
            /threads/0/woken/sum_ns: +1 -1
            /worst/0/expiry_ns: 1 +1
            /worst/0/wakeup_latency_ns: 0 1 -1
        "#]],
    );
}

#[test]
fn numbers_of_a_lab_that_nothing_else_tells() {
    let cell = |asked: &str, max_ns| Cell {
        kernel: "6.1".into(),
        asked: asked.into(),
        load: "find".into(),
        status: Status::Ok,
        min_ns: Some(4_000),
        p50_ns: Some(5_000),
        p99_ns: Some(6_000),
        p999_ns: Some(9_000),
        max_ns: Some(max_ns),
        count: 4_000,
        ..Cell::default()
    };
    let effect = Effect {
        seeds: 10,
        ratio: 0.5,
        low: 0.4,
        high: 0.6,
        interval_low: Some(0.45),
        interval_high: Some(0.55),
        better: 9,
        worse: 1,
        p_value: 0.002,
        p_adjusted: 0.004,
        ..Effect::default()
    };
    let arm = |asked: &str| Arm { kernel: "6.1".into(), asked: asked.into() };
    let lab = Lab {
        schema: wakescope_core::lab::SCHEMA.into(),
        cells: vec![cell("none", 22_000), cell("full", 11_000)],
        comparisons: vec![Comparison {
            a: arm("none"),
            b: arm("full"),
            load: "find".into(),
            margin: 0.1,
            seeds: 10,
            max: Some(effect),
            ..Comparison::default()
        }],
        limits: vec![CellLimit {
            limit: "max ≤ 20.0 µs".into(),
            limit_ns: 20_000,
            arm: arm("none"),
            load: "find".into(),
            seed: Some(0),
            observed_ns: Some(22_000),
            within: Some(false),
            reason: String::new(),
        }],
        ..Lab::default()
    };
    let is_read = |text: &str| Lab::from_json(text.as_bytes()).map(drop).map_err(|e| e.to_string());
    check(
        &lab.to_json(),
        is_read,
        &expect![[r#"
        /cells/0/count: 0 1 10^18 +1 -1
        /cells/0/min_ns: 0 1 +1 -1
        /cells/0/p50_ns: 0 1 +1 -1
        /cells/0/p999_ns: +1 -1
        /cells/0/p99_ns: +1 -1
        /cells/0/seed: 1 10^18 +1
        /cells/1/count: 0 1 10^18 +1 -1
        /cells/1/max_ns: 10^18 +1 -1
        /cells/1/min_ns: 0 1 +1 -1
        /cells/1/p50_ns: 0 1 +1 -1
        /cells/1/p999_ns: +1 -1
        /cells/1/p99_ns: +1 -1
        /cells/1/seed: 1 10^18 +1
        /comparisons/0/margin: 0 1 10^18
        /comparisons/0/max/better: 0 1 -1
        /comparisons/0/max/high: 1 10^18
        /comparisons/0/max/low: 0
        /comparisons/0/max/p_adjusted: 1
        /comparisons/0/max/p_value: 0
        /comparisons/0/max/worse: 0 -1
        /comparisons/0/seeds: +1
        /limits/0/limit_ns: 0 1 +1 -1
        /limits/0/seed: 1 10^18 +1
        /settings/cpu_mips: 1 +1
        /settings/cpus: 1 +1
        /settings/interval_ns: 1 10^18 +1
        /settings/samples: 1 10^18 +1
        /settings/warmup_ns: 1 10^18 +1
    "#]],
    );
}

#[test]
fn numbers_of_a_scope_that_nothing_else_tells() {
    let is_read = |text: &str| Scope::from_json(text.as_bytes()).map(drop);
    check(
        &made_up_scope::full().to_json(),
        is_read,
        &expect![[r#"
            /callers_lost: 1 10^18 +1
            /drift_ns: 1 10^18 +1
            /episodes/0/cpu: 1 +1
            /episodes/0/missed: 1 10^18 +1
            /explained/compared: 0 1 +1 -1
            /explained/first_not_section: 1 +1
            /explained/late: 10^18 +1 -1
            /explained/matched_times: 0 1 10^18 +1 -1
            /explained/section_not_first: 1 +1
            /explained/shares/0/expiry_ns: 0 +1 -1
            /explained/shares/0/section/length_ns: 10^18 +1 -1
            /explained/shares/1/expiry_ns: 0 +1 -1
            /first_blame/causes/0/longer_ns/p50: 0 1 +1 -1
            /first_blame/held_by_nothing: 0 1 10^18 +1 -1
            /first_blame/longer_ns/p50: 0 1 +1 -1
            /first_blame/others/0/expiry_ns: 1 +1
            /first_blame/others/0/said_ns: 0 1 -1
            /first_blame/others/0/seen_ns: 0 1 +1 -1
            /first_blame/others/0/wakeup_latency_ns: 10^18 +1
            /flames/0/calls/0/self_ns: 0 1 -1
            /flames/0/calls/1/self_ns: 0 1 -1
            /locks/doubts/calls_lost: 1 10^18 +1
            /locks/doubts/handed_over: 1 10^18 +1
            /locks/doubts/held_at_end: 0 10^18 +1 -1
            /locks/doubts/not_seen_released: 1 10^18 +1
            /locks/doubts/not_seen_taken: 1 10^18 +1
            /locks/doubts/outside_section: 1 10^18 +1
            /locks/doubts/taken_before: 1 10^18 +1
            /locks/in_episodes/0/locks/0/held_ns: -1
            /locks/in_episodes/0/locks/0/ns: 0 1 +1 -1
            /locks/in_episodes/0/locks/0/pid: 0 1 +1 -1
            /locks/longest/0/begin_ns: 0 1 +1 -1
            /locks/longest/0/length_ns: -1
            /locks/longest/0/pid: 0 1 +1 -1
            /locks/rows/0/locks: +1
            /locks/rows/0/sections/0/holds: 0 1 -1
            /locks/rows/0/sections/0/ns: 0 1 -1
            /longest/0/begin_ns: 0 1 +1 -1
            /longest/0/length_ns: -1
            /sections_lost: 1 10^18 +1
            /sections_unlisted: 1 +1
            /window_ns: 0 1 10^18 +1 -1
        "#]],
    );
}

#[test]
fn numbers_of_a_window_that_nothing_else_tells() {
    let window =
        busy_window("2026-11-21T01:00:00Z", 5, 20, &[("x", vec![(5_000, 9), (7_000_000, 1)])]);
    let is_read = |text: &str| packed::read(text.as_bytes()).map(drop).map_err(|e| e.to_string());
    check(
        window.trim_end(),
        is_read,
        &expect![[r#"
            /begin_ns: 0 1 10^18 +1 -1
            /cpus/0/cpu: 1 +1
            /cpus/0/switches: 0 1 10^18 +1 -1
            /cpus/0/waits/max_ns: +1 -1
            /cpus/0/waits/min_ns: +1 -1
            /cpus/0/waits/sum_ns: +1 -1
            /left_out/caught_up: 1 10^18 +1
            /left_out/contradicted: 1 10^18 +1
            /left_out/discarded: 1 10^18 +1
            /left_out/first: 1 10^18 +1
            /left_out/missed: 1 10^18 +1
            /left_out/missed_ns: 1 10^18 +1
            /left_out/uncovered_ns: 1 10^18 +1
            /left_out/unstamped: 1 10^18 +1
            /left_out/untracked: 1 10^18 +1
            /moved/before_ns: 1 10^18 +1
            /moved/count: 1 10^18 +1
            /own_cost/agent_ns: 0 1 +1 -1
            /own_cost/cpus: 0 1 +1 -1
            /own_cost/program_ns: 0 1 +1 -1
            /own_cost/program_runs: 0 1 10^18 +1 -1
            /series/0/cgroup_id: 0 1 10^18 +1 -1
            /series/0/waits/max_ns: +1 -1
            /series/0/waits/min_ns: +1 -1
            /series/0/waits/sum_ns: +1 -1
            /series_limit: 0 1 10^18 +1 -1
            /series_used: 0 10^18 +1 -1
            /window_ns: 0 1 +1 -1
        "#]],
    );
}
