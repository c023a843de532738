//! Several runs of one command, in one table.

use std::fmt::Write;

use serde::Serialize;
use wakescope_core::finding::Verdict;
use wakescope_core::limit::{Judgement, Outcome};
use wakescope_core::percentile::Percentile;
use wakescope_core::run::{Run, TimeDomain};
use wakescope_core::stated::Quantile;
use wakescope_core::units::{counted, grouped};

use crate::observed;
use crate::progress::span_or_dash;
use crate::quantity;
use crate::style::{Style, clean};
use crate::table::columns;

/// The schema of a series as JSON.
const SCHEMA: &str = "wakescope.series/1";

/// What is shown of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// Whether it can be trusted.
    pub verdict: Verdict,
    /// Wakeups, or expiries of a grid.
    pub count: u64,
    /// The earliest, in ns.
    pub min_ns: Option<u64>,
    /// The median, in ns; `None` if there are too few for one.
    pub median_ns: Option<u64>,
    /// The 99th percentile, in ns; `None` if there are too few for one.
    pub p99_ns: Option<u64>,
    /// The latest, in ns.
    pub max_ns: Option<u64>,
    /// How the run stands to each limit, in the order of `--fail-above`.
    pub limits: Vec<Judgement>,
    /// The percentiles as they are shown.
    #[serde(skip)]
    shown: [String; 2],
}

impl Figures {
    /// Those of `run`, all CPUs together.
    pub fn of(run: &Run) -> Self {
        let all = run.expiries();
        let [median, p99, ..] = Percentile::SHOWN;
        let known = |percentile| match all.quantile(percentile)? {
            Quantile::Known(ns) | Quantile::AtMost(ns) => Some(ns),
        };
        Self {
            verdict: run.validity.verdict,
            count: all.count,
            min_ns: run.summary.min_ns,
            median_ns: known(median),
            p99_ns: known(p99),
            max_ns: all.max_ns,
            limits: run.limits.clone(),
            shown: [median, p99].map(|percentile| quantity::quantile(&all, percentile)),
        }
    }
}

/// A run of a series, or why there is none.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What distinguishes it from the others.
    pub name: String,
    /// Its folder; `None` if it was not measured.
    pub path: Option<String>,
    /// Its figures.
    #[serde(flatten)]
    pub figures: Option<Figures>,
    /// Why it was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_measured: Option<String>,
}

/// The series as one object of the schema `wakescope.series/1`. `varied` is what the runs differ in,
/// `not_begun` how many were not begun, since the user ended the series.
///
/// # Errors
/// None that are known: the object holds nothing that JSON cannot.
pub fn json(varied: &str, not_begun: usize, runs: &[Row]) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Series<'a> {
        schema: &'static str,
        varied: &'a str,
        not_begun: usize,
        runs: &'a [Row],
    }
    serde_json::to_string(&Series { schema: SCHEMA, varied, not_begun, runs })
}

/// A line for each run: how many wakeups, how late. `what` titles the names. The largest of each
/// column is in the last line, if more than one run was measured.
pub fn table(what: &str, rows: &[Row], style: Style) -> String {
    let head = [what, "count", "min", "median", "p99", "max", "verdict"].map(String::from).to_vec();
    let measured = rows.iter().filter_map(|row| Some((row, row.figures.as_ref()?)));
    let line = |(row, figures): (&Row, &Figures)| {
        let Figures { verdict, count, min_ns, max_ns, shown: [median, p99], .. } = figures;
        let name = clean(&row.name, 40);
        let (min, max) = (span_or_dash(*min_ns), span_or_dash(*max_ns));
        vec![name, grouped(*count), min, median.clone(), p99.clone(), max, verdict.to_string()]
    };
    let mut lines = vec![head];
    lines.extend(measured.clone().map(line));
    if lines.len() > 2 {
        let largest = |of: fn(&Figures) -> Option<u64>| {
            span_or_dash(measured.clone().filter_map(|(_, figures)| of(figures)).max())
        };
        let of_min = largest(|figures| figures.min_ns);
        let (median, p99) = (largest(|f| f.median_ns), largest(|f| f.p99_ns));
        lines.push(vec![
            "largest".into(),
            String::new(),
            of_min,
            median,
            p99,
            largest(|f| f.max_ns),
        ]);
    }
    columns(&lines, true) + &missing(rows, style)
}

/// Median and maximum of each pair of CPUs, `N:M` by name: wakers in rows, probes in columns.
pub fn matrix(rows: &[Row], style: Style) -> String {
    let cpus = |row: &Row| -> Option<(u32, u32)> {
        let (waker, probe) = row.name.split_once(':')?;
        Some((waker.parse().ok()?, probe.parse().ok()?))
    };
    let mut probes: Vec<u32> = rows.iter().filter_map(|row| Some(cpus(row)?.1)).collect();
    probes.sort_unstable();
    probes.dedup();
    let mut head = vec!["waker".to_owned()];
    head.extend(probes.iter().map(|probe| format!("probe on CPU {probe}")));
    let mut lines = vec![head];
    for &waker in &probes {
        let mut line = vec![format!("on CPU {waker}")];
        line.extend(probes.iter().map(|&probe| {
            let row = rows.iter().find(|row| cpus(row) == Some((waker, probe)));
            let figures = row.and_then(|row| row.figures.as_ref());
            figures.map_or_else(
                || "–".into(),
                |f| format!("{}, max {}", f.shown[0], span_or_dash(f.max_ns)),
            )
        }));
        lines.push(line);
    }
    format!(" median and maximum\n{}{}", columns(&lines, true), missing(rows, style))
}

/// How the runs stand to each limit: a line for each outcome, which counts the runs and names one. Of
/// those above it that is the furthest.
pub fn limits(rows: &[Row], style: Style) -> String {
    let measured =
        || rows.iter().filter_map(|row| Some((row.name.as_str(), row.figures.as_ref()?)));
    let most = measured().map(|(_, figures)| figures.limits.len()).max().unwrap_or(0);
    let mut out = String::new();
    for at in 0..most {
        let judged: Vec<(&str, &Judgement)> = measured()
            .filter_map(|(name, figures)| Some((name, figures.limits.get(at)?)))
            .collect();
        for outcome in [Outcome::Fail, Outcome::Inconclusive, Outcome::Pass] {
            let alike: Vec<_> = judged.iter().filter(|(_, j)| j.outcome == outcome).collect();
            let Some((name, worst)) = alike.iter().max_by_key(|(_, j)| j.observed_ns) else {
                continue;
            };
            let count = format!("{} of {}", alike.len(), counted(judged.len() as u64, "run"));
            let (limit, observed) = observed::of(worst, TimeDomain::Real);
            let name = clean(name, 40);
            let line = match outcome {
                Outcome::Fail => style
                    .bad(&format!("above the limit {limit}: {count}, up to {observed} ({name})")),
                Outcome::Inconclusive => style.warn(&format!(
                    "inconclusive on the limit {limit}: {count}: {} ({name})",
                    clean(&worst.reason, 200)
                )),
                Outcome::Pass => {
                    let text =
                        format!("within the limit {limit}: {count}, up to {observed} ({name})");
                    style.good(&text)
                }
            };
            let _ = writeln!(out, " {line}");
        }
    }
    out
}

/// A line for each run that there is not, with the reason.
fn missing(rows: &[Row], style: Style) -> String {
    let mut out = String::new();
    for row in rows {
        if let Some(why) = &row.not_measured {
            let line = format!("{}: not measured: {}", clean(&row.name, 40), clean(why, 300));
            let _ = writeln!(out, " {}", style.warn(&line));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use wakescope_core::distribution::Distribution;
    use wakescope_core::finding::Validity;
    use wakescope_core::limit::{Limit, MeasuredBy};
    use wakescope_core::run::Thread;

    fn run(latencies: std::ops::Range<u64>) -> Run {
        let samples: Vec<u64> = latencies.map(|us| us * 1_000).collect();
        let d = Distribution::of(samples.iter().copied());
        let thread = Thread { cpu: Some(0), woken: d.clone(), expiries: d, ..Default::default() };
        let mut run = Run { threads: vec![thread], ..Default::default() };
        run.summarize();
        run
    }

    fn row(name: &str, run: Result<Run, &str>) -> Row {
        let figures = run.as_ref().ok().map(Figures::of);
        let path = figures.as_ref().map(|_| format!("runs/a/{name}"));
        let not_measured = run.err().map(Into::into);
        Row { name: name.into(), path, figures, not_measured }
    }

    #[track_caller]
    fn check(got: &str, want: &Expect) {
        // The indentation that all lines have in common is not compared: the title has none.
        want.assert_eq(&format!("shown:\n{got}"));
    }

    #[test]
    fn a_series_is_a_table_and_names_what_is_missing() {
        let rows = [
            row("futex", Ok(run(2..1_002))),
            row("tcp", Ok(run(12..22))),
            row("mqueue", Err("cannot use --stimulus mqueue: Function\nnot implemented")),
        ];
        check(
            &table("stimulus", &rows, Style::default()),
            &expect![[r#"
                shown:
                 stimulus  count      min   median     p99      max  verdict
                 futex     1,000  2.00 µs   501 µs  991 µs  1.00 ms    valid
                 tcp          10  12.0 µs  16.0 µs       –  21.0 µs    valid
                 largest          12.0 µs   501 µs  991 µs  1.00 ms
                 mqueue: not measured: cannot use --stimulus mqueue: Function�not implemented
            "#]],
        );
        check(
            &table("stimulus", &rows[2..], Style::default()),
            &expect![[r#"
                shown:
                 stimulus  count  min  median  p99  max  verdict
                 mqueue: not measured: cannot use --stimulus mqueue: Function�not implemented
            "#]],
        );
    }

    #[test]
    fn the_runs_above_a_limit_are_counted_and_the_furthest_is_named() {
        let limits: Vec<Limit> =
            ["max=500us", "p50=600us", "p99=1s"].map(|text| text.parse().unwrap()).into();
        let judged = |latencies: std::ops::Range<u64>, is_complete| {
            let mut run = run(latencies);
            let (expiries, validity) = (run.expiries(), Validity::default());
            let judge =
                |limit: &Limit| limit.judge(&expiries, &validity, MeasuredBy::Probes, is_complete);
            run.limits = limits.iter().map(judge).collect();
            Ok(run)
        };
        let rows = [
            row("0:0", judged(2..602, true)),
            row("0:1", judged(2..1_002, true)),
            row("1:0", judged(2..12, true)),
            row("1:1", Err("interrupted")),
        ];
        check(
            &super::limits(&rows, Style::default()),
            &expect![[r#"
                shown:
                 above the limit max ≤ 500 µs: 2 of 3 runs, up to 1.00 ms (0:1)
                 within the limit max ≤ 500 µs: 1 of 3 runs, up to 11.0 µs (1:0)
                 within the limit p50 ≤ 600 µs: 3 of 3 runs, up to 501 µs (0:1)
                 inconclusive on the limit p99 ≤ 1.00 s: 1 of 3 runs: 10 samples are too few for p99, which needs 200 (1:0)
                 within the limit p99 ≤ 1.00 s: 2 of 3 runs, up to 991 µs (0:1)
            "#]],
        );
        assert_eq!(super::limits(&rows[3..], Style::default()), "");
        assert_eq!(super::limits(&[row("0:0", Ok(run(2..12)))], Style::default()), "");
    }

    #[test]
    fn pairs_of_cpus_are_a_matrix() {
        let rows = [
            row("0:0", Ok(run(2..102))),
            row("0:2", Ok(run(12..112))),
            row("2:0", Ok(run(13..113))),
            row("2:2", Err("interrupted")),
        ];
        check(
            &matrix(&rows, Style::default()),
            &expect![[r#"
                shown:
                 median and maximum
                 waker          probe on CPU 0       probe on CPU 2
                 on CPU 0  51.0 µs, max 101 µs  61.1 µs, max 111 µs
                 on CPU 2  62.0 µs, max 112 µs                    –
                 2:2: not measured: interrupted
            "#]],
        );
    }
}
