use super::*;
use crate::explain::{Components, Culprit, Frame, Share, Step, StepEvent};
use crate::finding::Verdict;
use crate::histogram::Bucket;
use crate::stated::Stated;
use proptest::prelude::*;
use wakescope_testing::assert_told;

const INTERVAL_NS: u64 = 1_000_000;

fn latest_of(samples: &[u64]) -> Option<usize> {
    samples.iter().position(|sample| Some(sample) == samples.iter().max())
}

fn distribution(samples: &[u64]) -> Distribution {
    Distribution {
        count: samples.len() as u64,
        min_ns: samples.iter().min().copied(),
        max_ns: samples.iter().max().copied(),
        max_at_ns: latest_of(samples).map(|at| at as u64 * INTERVAL_NS),
        sum_ns: samples.iter().fold(0, |sum, &s| sum.saturating_add(s)),
        histogram: Histogram::of(samples.iter().copied()),
        stated: None,
    }
}

fn softirq(name: &str) -> StepEvent {
    StepEvent::Softirq { name: name.into() }
}

/// A wakeup 40 ns late, and why.
fn explained(text: &str) -> Episode {
    let share = |ns| Share {
        ns,
        culprit: Culprit::interrupt(text),
        frames: vec![Frame::in_function(text, ns)],
        ..Default::default()
    };
    Episode {
        wakeup_latency_ns: 40,
        components: Some(Components {
            irq_latency_ns: 9,
            sched_duration_ns: Some(31),
            ..Default::default()
        }),
        blame: vec![share(30), share(10)],
        timeline: vec![Step { event: softirq(text), ..Default::default() }],
        ..Default::default()
    }
}

/// A run of these samples, a millisecond apart, with `text` in places where text comes from elsewhere.
pub(crate) fn run_with(cpus: &[Vec<u64>], text: &str) -> Run {
    let threads = cpus.iter().map(|samples| {
        let d = distribution(samples);
        Thread { cpu: Some(0), woken: d.clone(), expiries: d, ..Default::default() }
    });
    let later = serde_json::json!({"count": 0, "histogram": [], "text": text});
    let mut run = Run {
        schema: SCHEMA.into(),
        id: text.into(),
        started: String::new(),
        duration_ns: cpus.iter().map(Vec::len).max().unwrap_or(0) as u64 * INTERVAL_NS,
        origin_ns: 0,
        time_domain: TimeDomain::Real,
        seed: 1,
        state: State::Complete,
        host: Host { cmdline: text.into(), ..Default::default() },
        plan: Plan { interval_ns: INTERVAL_NS, cpus: vec![0], ..Default::default() },
        validity: Validity { verdict: Verdict::Valid, findings: Vec::new() },
        threads: threads.collect(),
        worst: vec![explained(text)],
        explanation: Some(Explanation { above: text.into(), ..Default::default() }),
        components: Some(ComponentTable {
            sched_duration: Some(distribution(&[31])),
            ..Default::default()
        }),
        causes: vec![CauseRow {
            culprit: Culprit::interrupt(text),
            share: 1.0,
            ..Default::default()
        }],
        other: serde_json::from_value(serde_json::json!({"later": later})).unwrap(),
        ..Default::default()
    };
    run.summarize();
    run
}

proptest! {
    #[test]
    fn a_record_is_read_as_it_was_written(
        cpus in prop::collection::vec(prop::collection::vec(0_u64..1 << 40, 0..20), 0..4),
        text in "\\PC{0,16}",
    ) {
        let run = run_with(&cpus, &text);
        let json = run.to_json();
        prop_assert_eq!(Run::from_json(json.as_bytes()).unwrap(), run);
    }

    #[test]
    fn damaged_records_are_refused_or_consistent(
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<bool>(),
    ) {
        let mut json = run_with(&[vec![5_000, 7_000, 7_000]], "x").to_json().into_bytes();
        let at = at.index(json.len());
        if cut { json.truncate(at) } else { json[at] = byte }
        if let Ok(run) = Run::from_json(&json) {
            prop_assert!(!cut && run.threads.iter().all(|t| t.woken.fault().is_none()));
        }
    }
}

#[test]
fn records_of_an_earlier_version_are_refused_with_how_to_make_them_anew() {
    let measure = "measure again with `wakescope measure`";
    for (rest, want) in [
        ("", measure),
        (r#", "explanation": {"modules": 7}"#, "measure again with `wakescope explain`"),
        (r#", "explanation": null"#, measure),
        (r#", "source": {"tool": "x"}"#, "import the other program's file again with"),
    ] {
        let text = format!(r#"{{"schema": "wakescope.run/1", "threads": "as they were"{rest}}}"#);
        let e = Run::from_json(text.as_bytes()).unwrap_err();
        assert!(e.remedy().unwrap().starts_with(want), "{rest}: {e:?}");
        let said = e.to_string();
        assert!(said.starts_with("the record has schema `wakescope.run/1`: it was "), "{said}");
        assert!(
            said.ends_with("earlier version of wakescope, and this one reads `wakescope.run/2`")
        );
    }
}

#[track_caller]
fn check(change: impl FnOnce(&mut serde_json::Value), want: &str) {
    let mut json = serde_json::to_value(run_with(&[vec![5_000, 7_000]], "x")).unwrap();
    change(&mut json);
    let e = Run::from_json(json.to_string().as_bytes()).unwrap_err().to_string();
    assert!(e.contains(want), "{e}");
}

/// Such a record was written again with a summary of no samples.
#[test]
fn a_record_without_a_summary_gets_that_of_its_threads() {
    let mut run = run_with(&[vec![5_000; 50], vec![7_000; 50]], "x");
    let mut json = serde_json::to_value(&run).unwrap();
    json.as_object_mut().unwrap().remove("summary").unwrap();
    run.summarize();
    assert_eq!(Run::from_json(json.to_string().as_bytes()).unwrap().summary, run.summary);
}

/// Text, pages and `compare` take their figures from the threads, and other programs from the summary.
#[test]
fn a_summary_of_other_threads_is_refused_with_both_figures() {
    let full = || {
        let mut run = run_with(&[vec![5_000; 50], vec![7_000; 50]], "x");
        run.summarize();
        serde_json::to_value(run).unwrap()
    };
    let said = |at: &str, figure: serde_json::Value| {
        let mut json = full();
        *json.pointer_mut(at).unwrap() = figure;
        Run::from_json(json.to_string().as_bytes()).map_err(|e| e.to_string())
    };
    // How many samples a percentile needs may have been another number.
    assert!(said("/summary/percentiles/p50", serde_json::Value::Null).is_ok());
    for (at, figure, want) in [
        ("/summary/count", 99.into(), "summary.count is 99, but its threads have 100"),
        ("/summary/missed", 3.into(), "summary.missed is 3, but its threads have 0"),
        ("/summary/min_ns", 4_999.into(), "summary.min_ns is 4999, but its threads have 5000"),
        ("/summary/max_ns", 6_999.into(), "summary.max_ns is 6999, but its threads have 7000"),
        (
            "/summary/percentiles/p50",
            1.into(),
            "summary.percentiles.p50 is 1, but its threads have 50",
        ),
        ("/threads", serde_json::json!([]), "summary.count is 100, but its threads have 0"),
    ] {
        let e = said(at, figure).unwrap_err();
        assert!(e.contains(want), "{e}");
    }
}

#[test]
fn what_cannot_be_trusted_is_refused_with_the_reason() {
    check(
        |j| j["schema"] = "wakescope.run/3".into(),
        "schema `wakescope.run/3`, this wakescope reads `wakescope.run/2`; use the version that",
    );
    check(|j| j["threads"][0]["woken"]["count"] = 3.into(), "threads[0].woken: count is 3");
    check(
        |j| j["threads"][0]["overflow"] = serde_json::json!({"from_ns": 5, "count": 3}),
        "3 samples beyond the histogram, of 2",
    );
    check(|j| j["threads"][0]["missed"] = 1.into(), "2 expiries are not 2 wakeups and 1 missed");
    check(|j| j["threads"][0]["expiries"]["max_ns"] = 9_000.into(), "outside the last bucket");
    check(|j| j["threads"][0]["cpu"] = "zero".into(), "not a complete run record");
    let many = |j: &mut serde_json::Value| {
        for kind in ["woken", "expiries"] {
            let d = &mut j["threads"][0][kind];
            d["histogram"][0][2] = (u64::MAX - 1).into();
            d["count"] = u64::MAX.into();
        }
        let thread = j["threads"][0].clone();
        j["threads"].as_array_mut().unwrap().push(thread);
    };
    check(many, "add up to more than 2^64");
    check(
        |j| j["worst"][0]["components"]["irq_latency_ns"] = 31.into(),
        "worst[0]: its components",
    );
    check(|j| j["worst"][0]["stolen_ns"] = 1_000_000_000.into(), "1000000000 ns of its");
    check(
        |j| {
            let worst = j["worst"].clone();
            let causes = j["causes"].clone();
            j["net_of_steal"] = serde_json::json!({
                "above_ns": 1, "above": "1ns", "late": 1, "explained": 1,
                "late_not_followed": 0, "unexplained_ns": 0, "causes": causes, "worst": worst,
            });
            j["net_of_steal"]["worst"][0]["components"]["irq_latency_ns"] = 31.into();
        },
        "net_of_steal.worst[0]: its components",
    );
    check(|j| j["worst"][0]["blame"][1]["ns"] = u64::MAX.into(), "worst[0]: its shares of blame");
    check(|j| j["components"]["sched_latency"]["count"] = 3.into(), "sched_latency: count is 3");
    check(|j| j["components"]["sched_duration"]["count"] = 3.into(), "sched_duration: count");
    check(|j| j["causes"][0]["share"] = 1.5.into(), "causes[0]: a share of 1.5");
    check(
        |j| {
            let row = serde_json::json!({"subject": {"kind": "others"}, "episodes": 1,
                "total_ns": 30, "worst_ns": 30, "share": 0.5});
            j["ranking"] = serde_json::json!({"by": "pid", "wakeups": 1, "complete": true,
                "rows": [row, row]});
            j["ranking"]["rows"][1]["total_ns"] = 31.into();
        },
        "ranking.rows[0]: a share of 0.5, but 30 of 61 ns are 0.49",
    );
    assert!(matches!(Run::from_json(b"{}"), Err(RunError::Malformed(_))));
    assert!(Run::from_json("[".repeat(100_000).as_bytes()).is_err(), "deep nesting is no crash");
}

/// A mean above the maximum, or a late wakeup that no thread had, would stand in one report with it.
#[test]
fn what_stands_beside_the_histograms_fits_them_once_a_run_has_ended() {
    let full = || {
        let mut run = run_with(&[vec![5_000; 50], vec![7_000; 50]], "x");
        let thread = &mut run.threads[0];
        thread.maxima = Some(Maxima { slot_ns: 10, max_ns: vec![None, Some(5_000)] });
        for thread in &mut run.threads {
            thread.interval_deviation = Some(crate::interval_deviation::tests::of(&[300, -200]));
        }
        run.summarize();
        serde_json::to_value(run).unwrap()
    };
    let said = |state: &str, at: &str, figure: serde_json::Value| {
        let mut json = full();
        json["state"] = state.into();
        *json.pointer_mut(at).unwrap() = figure;
        Run::from_json(json.to_string().as_bytes()).map_err(|e| e.to_string())
    };
    assert_eq!(said("complete", "/seed", 3.into()).err(), None);
    let episode = serde_json::json!({"cpu": 0, "expiry_ns": 0, "wakeup_latency_ns": 7_001});
    let swallowed = serde_json::json!({"cpu": 0, "expiry_ns": 0, "wakeup_latency_ns": 7_000,
        "missed": 3});
    let cause = serde_json::json!({"cause": "irq", "episodes": 1, "total_ns": 7_001,
        "worst_ns": 7_001, "share": 1.0});
    for (at, figure, want) in [
        ("/threads/0/woken/sum_ns", 0.into(), "threads[0].woken: sum_ns is 0, but the samples"),
        ("/threads/1/expiries/sum_ns", 900_000.into(), "threads[1].expiries: sum_ns is 900000"),
        (
            "/threads/0/interval_deviation/shorter/sum_ns",
            90.into(),
            "threads[0].interval_deviation.shorter: sum_ns is 90",
        ),
        (
            "/threads/0/maxima/max_ns/1",
            5_001.into(),
            "threads[0].maxima: the largest is 5001 ns, but the maximum is 5000 ns",
        ),
        ("/worst/0", episode, "a wakeup of worst is 7001 ns late, but the maximum is 7000 ns"),
        ("/worst/0", swallowed, "a wakeup of worst swallowed 3 expiries, of 0 missed"),
        ("/causes/0", cause, "causes[0]: 7001 ns of a wakeup, but the maximum is 7000 ns"),
        ("/summary/interval_deviation/max_ns", 301.into(), "summary.interval_deviation is"),
        ("/summary/interval_deviation/mean_ns", 60.0.into(), "summary.interval_deviation is"),
    ] {
        assert_eq!(said("running", at, figure.clone()).err(), None, "{at}");
        for state in ["complete", "interrupted"] {
            let e = said(state, at, figure.clone()).expect_err(at);
            assert!(e.contains(want), "{e}");
        }
    }
}

/// A CPU can go away after its first wakeup. Then there is no pair of wakeups that could have been recorded.
#[test]
fn a_thread_without_two_wakeups_hides_no_deviation() {
    let deviation = crate::interval_deviation::tests::of(&[300, -200]);
    let check = |samples: &[u64], is_known: bool| {
        let mut run = run_with(&[samples.to_vec(), vec![7_000; 3]], "x");
        run.threads[1].interval_deviation = Some(deviation.clone());
        assert_eq!(run.interval_deviation(), is_known.then(|| deviation.clone()), "{samples:?}");
        run.threads.reverse();
        assert_eq!(run.interval_deviation(), is_known.then(|| deviation.clone()), "{samples:?}");
        run.threads.iter_mut().for_each(|thread| thread.interval_deviation = None);
        assert_eq!(run.interval_deviation(), None);
    };
    check(&[], true);
    check(&[5_000], true);
    check(&[5_000, 6_000], false);
}

/// Means of other programs are rounded, and percentiles can be bounds.
#[test]
fn figures_of_imported_records_fit_their_histograms_too() {
    let full = || {
        let mut run = run_with(&[vec![5_000; 60], [vec![3_000; 50], vec![9_000]].concat()], "x");
        run.source = Some(Source::default());
        for thread in &mut run.threads {
            for d in [&mut thread.woken, &mut thread.expiries] {
                d.stated = Some(Stated { resolution_ns: 10, ..Stated::default() });
            }
        }
        let bucket = |lower, upper, count| Bucket { lower, upper, count };
        let wide = vec![bucket(3_000, 9_000, 50), bucket(9_000, 9_010, 1)];
        run.threads[1].woken.histogram = Histogram::from_buckets(wide.clone()).unwrap();
        run.threads[1].expiries.histogram = Histogram::from_buckets(wide).unwrap();
        run.summarize();
        serde_json::to_value(run).unwrap()
    };
    let check = |at: &str, figure: serde_json::Value, want: Option<&str>| {
        let mut json = full();
        *json.pointer_mut(at).expect(at) = figure;
        let found = Run::from_json(json.to_string().as_bytes()).err().map(|e| e.to_string());
        assert_told(found, want);
    };
    check("/seed", 3.into(), None);
    check("/threads/0/woken/sum_ns", (60 * 4_991).into(), None);
    check("/threads/0/woken/sum_ns", 5.into(), Some("threads[0].woken: sum_ns is 5, but"));
    check("/threads/1/expiries/sum_ns", 900_000.into(), Some("threads[1].expiries: sum_ns is"));
    check("/summary/percentiles_at_most/p50", 8_999.into(), None);
    let want = "summary.percentiles.p50 is 8998, but its threads have 8999";
    check("/summary/percentiles_at_most/p50", 8_998.into(), Some(want));
    check("/summary/percentiles/p50", 5.into(), Some("summary.percentiles.p50 is 5, but"));
}
