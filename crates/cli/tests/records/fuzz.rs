//! Damaged records: refused, or shown in every way in which a run is shown, without a panic and
//! within the limits of memory and time that hold for all files.

use std::io::Write;

use wakescope_core::date::Date;
use wakescope_core::observation::Observation;
use wakescope_core::run::Run;
use wakescope_core::watch;
use wakescope_core::watch::observed::{Grouping, Observed};
use wakescope_formats::export::cyclictest::Layout;
use wakescope_formats::export::{Values, csv, cyclictest, cyclictest_json, hdr, prometheus};
use wakescope_report::picture::{self, Picture};
use wakescope_report::run_set::{Entry, RunSet};
use wakescope_report::style::Style;
use wakescope_report::watch::{self as shown, By, History, Sort, View};
use wakescope_report::{explain, html, markdown, text, trace};
use wakescope_stats::compare::{self, Labelled, Watched, compare, compare_watches};
use wakescope_stats::trend::{self, trend};
use wakescope_testing::{fuzz, fuzz_fewer};

use crate::common::made_up::run;
use crate::common::runs::full_run;

fn seeds() -> Vec<Vec<u8>> {
    [full_run(), run(50)].map(|run| run.to_json().into_bytes()).into()
}

#[test]
fn fuzz_records_of_runs() {
    fuzz("run", &seeds(), |bytes| {
        if let Ok(run) = Run::from_json(bytes) {
            assert!(run.threads.iter().all(|thread| thread.woken.fault().is_none()));
            text::report(&run, Style::default());
            explain::text(&run, Style::default(), explain::Extent::All);
        }
    });
}

#[test]
fn fuzz_tables_of_damaged_windows() {
    let waits = |text: &str| {
        serde_json::json!({"count": 3, "sum_ns": 900, "max_ns": 300, "max_is_exact": true,
            "min_ns": 5, "min_is_exact": true, "histogram": text})
    };
    let window = serde_json::json!({
        "schema": "wakescope.watch/1", "started": "2026-11-21T01:00:00Z", "begin_ns": 5,
        "window_ns": 600_000_000_000_u64, "from": "queued",
        "series": [{"cgroup_id": 7, "cgroup": "/a/b", "comm": "x", "waits": waits("@0 1 @20 2")}],
        "others": waits("@19 1 2"), "cpus": [{"cpu": 3, "switches": 9, "waits": waits("@20 3")}],
        "left_out": {"uncovered_ns": 1, "unstamped": 2, "discarded": 3, "untracked": 4, "first": 5,
            "caught_up": 6, "missed": 7, "missed_ns": 8, "contradicted": 9},
        "moved": {"count": 1, "before_ns": 2}, "series_used": 1, "series_limit": 9,
        "own_cost": {"agent_ns": 1, "program_ns": 2, "program_runs": 3, "source": "estimated",
            "cpus": 2},
        "audit": {"equal": 1, "behind": 2, "differing": 3, "largest_ns": 4, "busy": 5, "gone": 6,
            "not_reached": 7, "waits": 8}
    });
    let seeds = [format!("{window}\n{window}\n").into_bytes()];
    fuzz("watch-table", &seeds, |bytes| {
        let mut sum = watch::sum::Sum::default();
        let each = |_, found: Result<watch::Window, _>| {
            if let Ok(window) = found {
                shown::line(&window);
                shown::stored_heading(&window);
                sum.add(window);
            }
            Ok::<(), ()>(())
        };
        watch::packed::read_lines(bytes, each).unwrap().unwrap();
        let Some(total) = sum.window() else { return };
        for by in [By::Series, By::Comm, By::Cgroup, By::Cpu] {
            let view = View { by, sort: Sort::Percentile, rows: 9 };
            shown::table(&total, view, Style::default());
            shown::block(&total, view, &History::default(), 20);
        }
        let begin = Date::parse(&total.started).unwrap();
        let watch = Observed::of(&total, begin, begin, Grouping::Series);
        let side = [Watched { label: "x", watch: &watch }; 5];
        let options = compare::Options { force: true, ..compare::Options::default() };
        if let Ok(compared) = compare_watches(&side, &side, Grouping::Series, &options) {
            wakescope_report::compare::text(&compared, Style::default());
            wakescope_report::compare::markdown(&compared);
        }
    });
}

#[test]
fn fuzz_pages_of_damaged_records() {
    fuzz_fewer("page", 4, &seeds(), |bytes| {
        let Ok(run) = Run::from_json(bytes) else { return };
        let run_set = RunSet::of(vec![Entry::of("run", &run)]);
        html::page(&run_set);
        markdown::report(&run_set);
        for picture in Picture::ALL {
            picture::svg(picture, &run_set);
        }
    });
}

#[test]
fn fuzz_exports_of_damaged_records() {
    fuzz_fewer("export", 4, &seeds(), |bytes| {
        let Ok(run) = Run::from_json(bytes) else { return };
        // What a million rows hold is the writer's affair, not the memory's.
        let out = &mut std::io::sink();
        export(&run, out).unwrap();
    });
}

fn export(run: &Run, out: &mut impl Write) -> std::io::Result<()> {
    for values in Values::ALL {
        cyclictest::write(run, values, Layout::Sparse, Some(1_000), out)?;
        cyclictest_json::write(run, values, Some(1_000), out)?;
        hdr::write_log(run, values, out)?;
        hdr::write_percentiles(run, values, out)?;
        for format in [prometheus::Format::Prometheus, prometheus::Format::OpenMetrics] {
            prometheus::write(run, &text::known_plan(run), values, format, out)?;
        }
    }
    csv::write(run, &Values::ALL, out)?;
    trace::write(run, out)
}

#[test]
fn fuzz_comparisons_with_damaged_records() {
    let whole = Observation::from(Run { id: "whole".into(), ..run(60) });
    fuzz_fewer("compare", 4, &seeds(), |bytes| {
        let Ok(run) = Run::from_json(bytes) else { return };
        let run = Observation::from(run);
        let (new, old) =
            (Labelled { label: "new", run: &run }, Labelled { label: "old", run: &whole });
        let options =
            compare::Options { force: true, mix_quantities: true, ..compare::Options::default() };
        if let Ok(compared) = compare(&[new], &[old], &options) {
            wakescope_report::compare::text(&compared, Style::default());
        }
        let again = [("old", &whole), ("new", &run)]
            .map(|(label, run)| (label, Observation { id: label.into(), ..run.clone() }));
        let again = again.each_ref().map(|(label, run)| Labelled { label, run });
        let _ = trend(&[old, new, again[0], again[1]], &trend::Options::default());
    });
}
