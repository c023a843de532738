//! docs/reference/lab.schema.json says what the record of a lab holds.

use crate::common::runs::frame;
use crate::common::schema::{
    assert_described, assert_keys_may_be_added, assert_what_fits_is_read, unused_keys,
};
use crate::common::{Checker, read};
use serde_json::{Value, json};
use wakescope_core::explain::{
    Cause, Culprit, Evidence, Frame, Function, Gap, NamedTask, Phase, Share, Unsound, Within,
};
use wakescope_core::finding::{Finding, Severity};
use wakescope_core::lab::{
    ALPHA, Arm, Cell, CellBound, CellLimit, CellScope, CellSections, Comparison, Effect, Lab,
    LabKernel, SCHEMA, Settings, Status, Verdict,
};
use wakescope_core::plan::ProbePolicy;
use wakescope_core::preemption::Model;
use wakescope_core::scope::{Kind, Place};
use wakescope_report::lab::Extent;
use wakescope_report::run_set::RunSet;
use wakescope_report::style::Style;
use wakescope_stats::cells::{compare, limits, parse_limit};
use wakescope_stats::paired::pairs_needed;
use wakescope_testing::fuzz;

fn schema() -> Value {
    serde_json::from_str(&read("docs/reference/lab.schema.json")).unwrap()
}

/// Fails unless `lab` can be read again, fits the schema, and has no key that is not documented.
#[track_caller]
fn assert_documented(lab: &Lab) {
    let json = lab.to_json();
    if let Err(why) = Lab::from_json(json.as_bytes()) {
        panic!("the reader refuses the record: {why}\n{json}");
    }
    let fault = Checker::closed(schema()).fault(&serde_json::from_str(&json).unwrap());
    assert_eq!(fault, None, "{json}");
}

#[test]
fn a_lab_with_everything_fits_the_schema() {
    let lab = full();
    assert_documented(&lab);
    assert_eq!(Lab::from_json(lab.to_json().as_bytes()).unwrap(), lab);
    let unused = unused_keys(&schema(), &serde_json::to_value(&lab).unwrap());
    assert!(unused.is_empty(), "the schema documents keys that no lab has: {unused:?}");
}

#[test]
fn a_lab_with_nothing_fits_the_schema() {
    let nothing = Lab {
        kernels: vec![],
        cells: vec![Cell {
            culprit: None,
            bound: None,
            kernel: "k".into(),
            asked: "none".into(),
            load: "idle".into(),
            ..Cell::default()
        }],
        comparisons: vec![],
        limits: vec![],
        published: vec![],
        plan: String::new(),
        ..full()
    };
    assert_documented(&nothing);
}

#[test]
fn what_is_computed_fits_the_schema() {
    let mut lab = full();
    lab.cells = (0..24)
        .map(|i| Cell {
            asked: if i % 2 == 0 { "none".into() } else { "full".into() },
            seed: i / 2,
            max_ns: None,
            p99_ns: Some(1_000),
            p50_ns: Some(1_000),
            p999_ns: (i < 20).then_some(1_000 + i),
            ..lab.cells[0].clone()
        })
        .collect();
    let arm = |asked: &str| Arm { kernel: "6.1-cloud".into(), asked: asked.into() };
    let pairs = [(arm("none"), arm("full")), (arm("none"), arm("lazy"))];
    lab.comparisons = compare(&lab.cells, &pairs, 0.1, ALPHA);
    lab.limits =
        limits(&lab.cells, &[parse_limit("p99.9=1ms").unwrap(), parse_limit("1ms").unwrap()]);
    assert_eq!((lab.comparisons.len(), lab.limits.len()), (2, 4));
    assert_documented(&lab);
}

#[test]
fn every_name_of_an_enumeration_fits_the_schema() {
    for status in [Status::Ok, Status::Ignored, Status::Failed, Status::NotRun] {
        let mut lab = full();
        lab.cells[0].status = status;
        assert_documented(&lab);
    }
    use Model::{Full, Lazy, None, Rt, Unknown, Voluntary};
    for model in [None, Voluntary, Full, Lazy, Rt, Unknown] {
        let mut lab = full();
        lab.cells[0].model = Some(model);
        assert_documented(&lab);
    }
    for verdict in [Verdict::Better, Verdict::Worse, Verdict::NoDifference, Verdict::Inconclusive] {
        let mut lab = full();
        lab.comparisons[0].verdict = verdict;
        assert_documented(&lab);
    }
    for cause in Cause::ALL {
        let mut lab = full();
        lab.cells[0].culprit = Some(Share { cause, ..culprit() });
        assert_documented(&lab);
    }
    for policy in [ProbePolicy::Other, ProbePolicy::Fifo, ProbePolicy::Rr, ProbePolicy::Deadline] {
        let mut lab = full();
        lab.settings.policy = policy;
        assert_documented(&lab);
    }
}

#[test]
fn damaged_records_do_not_fit_the_schema() {
    let checker = Checker::new(schema());
    let whole = serde_json::to_value(full()).unwrap();
    assert_eq!(checker.fault(&whole), None);
    for (pointer, damage) in [
        ("/schema", json!("wakescope.lab/2")),
        ("/settings", Value::Null),
        ("/settings/guest_sha256", json!("abc")),
        ("/settings/priority", json!(100)),
        ("/kernels/0/arch", json!("x86_64")),
        ("/cells/0/asked", json!("RT")),
        ("/cells/0/status", json!("fine")),
        ("/cells/0/max_ns", json!(-1)),
        ("/cells/0/max_ns", json!(1.5)),
        ("/cells/0/cached", Value::Null),
        ("/cells/0/throughput", json!(-0.5)),
        ("/comparisons/0/verdict", json!("no_difference")),
        ("/comparisons/0/max/p_value", json!(0)),
        ("/comparisons/0/max/ratio", json!(0)),
        ("/limits/0/within", json!("yes")),
        ("/published/0", json!(1)),
    ] {
        let mut lab = whole.clone();
        *lab.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = damage.clone();
        assert!(checker.fault(&lab).is_some(), "{pointer} = {damage} fits");
    }
}

#[test]
fn a_record_that_fits_the_schema_can_be_read() {
    let whole = serde_json::to_value(full()).unwrap();
    assert_what_fits_is_read(schema(), &whole, |json| Lab::from_json(json.as_bytes()).is_ok());
}

#[test]
fn keys_may_be_added_but_not_written_unannounced() {
    assert_keys_may_be_added(&schema(), &serde_json::to_value(full()).unwrap(), &[]);
}

#[test]
fn every_key_of_the_schema_is_described_with_its_unit() {
    assert_described(&schema(), "virtual ns");
}

#[test]
fn the_page_names_what_the_record_holds() {
    let page = read("docs/reference/lab.md");
    for key in schema()["properties"].as_object().unwrap().keys() {
        assert!(page.contains(&format!("`{key}`")), "docs/reference/lab.md says nothing of {key}");
    }
}

#[test]
fn the_page_says_how_many_figures_seeds_can_decide() {
    let page = read("docs/reference/lab.md");
    let rows = page.split("| seeds | figures |").nth(1).unwrap().lines().skip(2);
    let rows: Vec<(u32, usize)> = rows
        .map_while(|line| {
            let (seeds, figures) = line.trim_matches(['|', ' ']).split_once(" | ")?;
            Some((seeds.parse().unwrap(), figures.parse().unwrap()))
        })
        .collect();
    assert!(rows.len() > 3, "{rows:?}");
    for (seeds, figures) in rows {
        assert_eq!(pairs_needed(figures, ALPHA), seeds, "{figures} figures");
        assert!(pairs_needed(figures + 1, ALPHA) > seeds, "{seeds} seeds decide more");
    }
}

fn wakescope() -> NamedTask {
    NamedTask {
        comm: "wakescope".into(),
        pid: Some(112),
        policy: wakescope_core::explain::Policy::Fifo,
        priority: Some(90),
    }
}

fn culprit() -> Share {
    let function = |name: &str| Function { name: name.into(), module: Some("ext4".into()) };
    Share {
        cause: Cause::IrqOff,
        ns: 95_000,
        culprit: Culprit::Function(function("shmem_undo_range")),
        phase: Some(Phase::Switch),
        from_cpu: Some(1),
        within: Within {
            caller: Some(function("unlink")),
            syscall: Some("unlink".into()),
            softirq: Some("RCU".into()),
            interrupt: Some("local_timer".into()),
            task: Some(wakescope()),
        },
        waiting_for_lock: true,
        evidence: Evidence::Stack,
        gap: Some(Gap::Slow),
        frames: vec![frame("shmem_undo_range", 0x1b2, Some("ext4"))],
        given_up_at: vec![frame("__cond_resched", 0x1a, None)],
        user_stack: vec![Frame {
            module: Some("libc.so.6".into()),
            ..Frame::in_function("unlink", 11)
        }],
    }
}

/// Refused, or shown in every way in which a lab is shown.
#[test]
fn fuzz_records_of_labs() {
    fuzz("lab", &[full().to_json().into_bytes()], |bytes| {
        let Ok(lab) = Lab::from_json(bytes) else { return };
        wakescope_report::lab::text(&lab, Extent::All, Style::default());
        wakescope_report::lab::markdown(&lab);
        wakescope_report::html::lab_page(&lab, &RunSet::default());
    });
}

/// A lab in which every field is set.
fn scope() -> CellScope {
    let place = || Place { function: Some("lock".into()), caller: Some("free".into()) };
    let sections = CellSections {
        kind: Kind::IrqsOff,
        began: place(),
        ended: place(),
        count: 3,
        longest_ns: 9_000,
        total_ns: 11_000,
    };
    CellScope { failed: "there is no C compiler".into(), sections: vec![sections] }
}

fn full() -> Lab {
    let sha256 = "0123456789abcdef".repeat(4);
    let arm = |asked: &str| Arm { kernel: "6.1-cloud".into(), asked: asked.into() };
    let by_task = Share { culprit: Culprit::Task(wakescope()), ..culprit() };
    let effect = || Effect {
        seeds: 10,
        ratio: 0.1,
        low: 0.09,
        high: 0.12,
        interval_low: Some(0.095),
        interval_high: Some(0.11),
        better: 10,
        worse: 0,
        p_value: 0.002,
        p_adjusted: 0.004,
        verdict: Verdict::Better,
    };
    let cell = Cell {
        culprit: Some(culprit()),
        bound: Some(CellBound {
            bound_ns: Some(42_000),
            unsound: vec![Unsound::Exceeded { cause: Some(Cause::Steal) }],
        }),
        kernel: "6.1-cloud".into(),
        asked: "full".into(),
        model: Some(Model::Full),
        load: "find".into(),
        seed: u64::MAX,
        status: Status::Ok,
        reason: "because".into(),
        evidence: vec!["Kernel panic - not syncing".into()],
        min_ns: Some(4_000),
        p50_ns: Some(5_000),
        p99_ns: Some(6_000),
        p999_ns: Some(9_000),
        max_ns: Some(11_000),
        count: 4_000,
        throughput: Some(8_123.4),
        unit: "files".into(),
        findings: vec![Finding {
            code: "load-stopped".into(),
            severity: Severity::Warning,
            message: "find stopped".into(),
            hint: "look at its errors".into(),
        }],
        scope: Some(scope()),
        histogram_sha256: Some(sha256.clone()),
        run: Some("cells/ab/cdef".into()),
        cached: true,
        other: Default::default(),
    };
    Lab {
        schema: SCHEMA.into(),
        plan: "linux-journal".into(),
        repeat: "wakescope lab run --plan linux-journal".into(),
        settings: Settings {
            stimulus: wakescope_core::plan::Stimulus::Futex,
            between: wakescope_core::plan::Between::Processes,
            interval_ns: 500_000,
            samples: 4_000,
            warmup_ns: 50_000_000,
            policy: ProbePolicy::Fifo,
            priority: Some(90),
            cpu_mips: 1_000,
            cpus: 1,
            emulator: "QEMU 10.0.13 (Debian 1:10.0.13+ds-0+deb13u1)".into(),
            guest_sha256: sha256.clone(),
            explained: true,
        },
        kernels: vec![LabKernel {
            name: "6.1-cloud".into(),
            release: "6.1.0-56-cloud-amd64".into(),
            version: "#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2 (2026-11-01)".into(),
            arch: "amd64".into(),
            sha256: sha256.clone(),
            package: Some("linux-image-6.1.0-56-cloud-amd64 6.1.192-2".into()),
        }],
        cells: vec![cell.clone(), Cell { culprit: Some(by_task), ..cell }],
        comparisons: vec![Comparison {
            a: arm("none"),
            b: arm("full"),
            load: "find".into(),
            margin: 0.1,
            seeds: 10,
            max: Some(effect()),
            p999: Some(effect()),
            throughput_ratio: Some(0.99),
            verdict: Verdict::Better,
            reasons: vec!["A sentence.".into()],
        }],
        limits: vec![CellLimit {
            limit: "p99.9 ≤ 100 µs".into(),
            limit_ns: 100_000,
            arm: arm("full"),
            load: "find".into(),
            seed: Some(3),
            observed_ns: Some(9_000),
            within: Some(true),
            reason: "because".into(),
        }],
        published: vec!["Linux Journal, 2002: find 78.51 → 0.48 ms".into()],
        other: Default::default(),
    }
}
