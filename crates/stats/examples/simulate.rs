//! Measures how often `compare` and `trend` are right and wrong about a machine that is made up.
//!
//! `make simulate`; docs/compare.md has what it prints. `simulate N` does it N times where
//! nothing differs, and a quarter of that elsewhere.

use std::io::{self, Write};

use simulated::{CALM, Machine, NOISY};
use wakescope_core::observation::Observation;
use wakescope_core::random::Random;
use wakescope_core::units::grouped;
use wakescope_stats::compare::{Compare, Labelled, Options, Verdict, compare};
use wakescope_stats::trend::{self, trend};

#[path = "../tests/simulated/mod.rs"]
mod simulated;

const MACHINES: [(&str, Machine); 2] = [("calm", CALM), ("noisy", NOISY)];

fn main() -> io::Result<()> {
    let times = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1_000_usize);
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "{times} comparisons or series where nothing differs, {} elsewhere; seed 1\n",
        times / 4
    )?;
    comparisons(times, &mut out)?;
    uneven(times / 4, &mut out)?;
    lengths(times / 4, &mut out)?;
    pooled(times / 4, &mut out)?;
    series(times, &mut out)
}

fn labelled(runs: &[Observation]) -> Vec<Labelled<'_>> {
    runs.iter().map(|run| Labelled { label: "", run }).collect()
}

fn held(machine: Machine, runs: usize, factor: f64, random: &mut Random) -> Compare {
    let (new, old) = (machine.runs(runs, factor, random), machine.runs(runs, 1.0, random));
    compare(&labelled(&new), &labelled(&old), &Options::default()).unwrap_or_default()
}

fn percent(part: usize, of: usize) -> String {
    format!("{:.1} %", part as f64 * 100.0 / of.max(1) as f64)
}

fn comparisons(times: usize, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "| machine | new / old | runs | worse | better | no difference | inconclusive | interval of p99.9 holds it |"
    )?;
    writeln!(out, "|---|---:|---:|---:|---:|---:|---:|---:|")?;
    for (name, machine) in MACHINES {
        for factor in [1.0, 1.2, 1.5, 2.0] {
            let times = if factor > 1.0 { times / 4 } else { times };
            for runs in [5, 10] {
                let mut random = Random::new(1);
                let all: Vec<Compare> =
                    (0..times).map(|_| held(machine, runs, factor, &mut random)).collect();
                let count = |is: &dyn Fn(&Compare) -> bool| {
                    percent(all.iter().filter(|c| is(c)).count(), times)
                };
                let of = |verdict| count(&|c: &Compare| c.verdict == verdict);
                writeln!(
                    out,
                    "| {name} | {factor:.1} | {runs} v {runs} | {} | {} | {} | {} | {} |",
                    of(Verdict::Worse),
                    of(Verdict::Better),
                    of(Verdict::NoDifference),
                    of(Verdict::Inconclusive),
                    count(&|c| interval_holds(c, factor)),
                )?;
            }
        }
    }
    writeln!(out)
}

/// Short runs, for tables of which many are made.
const SHORT: usize = 2_000;

/// Sides of different numbers of runs, whose runs vary differently.
fn uneven(times: usize, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "| runs vary by, new and old | new / old | runs | worse | better | inconclusive | interval of p99.9 holds it |"
    )?;
    writeln!(out, "|---|---:|---:|---:|---:|---:|---:|")?;
    for (spreads, factor, counts) in [
        ([0.5, 0.05], 1.0, [3, 20]),
        ([0.05, 0.5], 1.0, [3, 20]),
        ([0.05, 0.05], 1.0, [3, 20]),
        ([0.5, 0.05], 1.0, [5, 20]),
        ([0.05, 0.05], 1.0, [5, 20]),
        ([0.5, 0.05], 1.0, [5, 5]),
        ([0.03, 0.03], 1.5, [3, 20]),
        ([0.03, 0.03], 1.5, [5, 20]),
        ([0.03, 0.03], 2.0, [3, 20]),
    ] {
        let mut random = Random::new(1);
        let all: Vec<Compare> = (0..times)
            .map(|_| {
                let mut side = |at: usize, factor: f64| {
                    let machine = Machine { samples: SHORT, between_runs: spreads[at], ..CALM };
                    machine.runs(counts[at], factor, &mut random)
                };
                let (new, old) = (side(0, factor), side(1, 1.0));
                compare(&labelled(&new), &labelled(&old), &Options::default()).unwrap_or_default()
            })
            .collect();
        let count =
            |is: &dyn Fn(&Compare) -> bool| percent(all.iter().filter(|c| is(c)).count(), times);
        let of = |verdict| count(&|c: &Compare| c.verdict == verdict);
        writeln!(
            out,
            "| {:.0} %, {:.0} % | {factor:.1} | {} v {} | {} | {} | {} | {} |",
            spreads[0] * 100.0,
            spreads[1] * 100.0,
            counts[0],
            counts[1],
            of(Verdict::Worse),
            of(Verdict::Better),
            of(Verdict::Inconclusive),
            count(&|c| interval_holds(c, factor)),
        )?;
    }
    writeln!(out)
}

/// Alike sides of the calm machine whose runs are of different lengths.
fn lengths(times: usize, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "| wakeups a run, new and old | runs | worse | better | p99.9, new / old | interval of p99.9 holds 1 |"
    )?;
    writeln!(out, "|---|---:|---:|---:|---:|---:|")?;
    for samples in [[9_999, 10_000], [4_000, 20_000], [2_000, 20_000]] {
        let mut random = Random::new(1);
        let all: Vec<Compare> = (0..times)
            .map(|_| {
                let [new, old] =
                    samples.map(|samples| Machine { samples, ..CALM }.runs(20, 1.0, &mut random));
                compare(&labelled(&new), &labelled(&old), &Options::default()).unwrap_or_default()
            })
            .collect();
        let count =
            |is: &dyn Fn(&Compare) -> bool| percent(all.iter().filter(|c| is(c)).count(), times);
        let logs = all.iter().filter_map(|c| Some(c.ratios.p999.as_ref()?.value.ln()));
        writeln!(
            out,
            "| {}; {} | 20 v 20 | {} | {} | {:.3} | {} |",
            grouped(samples[0] as u64),
            grouped(samples[1] as u64),
            count(&|c| c.verdict == Verdict::Worse),
            count(&|c| c.verdict == Verdict::Better),
            (logs.sum::<f64>() / times.max(1) as f64).exp(),
            count(&|c| interval_holds(c, 1.0)),
        )?;
    }
    writeln!(out)
}

/// Whether the interval of the ratio of p99.9 holds this one.
fn interval_holds(compared: &Compare, ratio: f64) -> bool {
    compared.ratios.p999.as_ref().is_some_and(|r| {
        r.low.is_none_or(|low| low <= ratio) && r.high.is_none_or(|high| high >= ratio)
    })
}

/// What pooling all samples of a side, and taking them for independent, makes of alike sides.
fn pooled(times: usize, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "| machine | runs | alike sides called different when samples are pooled |")?;
    writeln!(out, "|---|---:|---:|")?;
    for (name, machine) in MACHINES {
        for runs in [5, 10] {
            let mut random = Random::new(1);
            let wrong = (0..times).filter(|_| {
                let sides = [0, 1].map(|_| machine.runs(runs, 1.0, &mut random));
                differs_pooled(&sides[0], &sides[1])
            });
            writeln!(out, "| {name} | {runs} v {runs} | {} |", percent(wrong.count(), times))?;
        }
    }
    writeln!(out)
}

/// Whether the shares of samples beyond the common p99 differ with p ≤ 0.05, as independent ones.
fn differs_pooled(new: &[Observation], old: &[Observation]) -> bool {
    let pool = |runs: &[Observation]| {
        runs.iter().skip(1).fold(runs[0].expiries.clone(), |sum, run| sum.merged(&run.expiries))
    };
    let (new, old) = (pool(new), pool(old));
    let both = new.merged(&old);
    let Some(bar) = "p99".parse().ok().and_then(|p| both.percentile(p)) else { return false };
    let beyond = |d: &wakescope_core::distribution::Distribution| {
        (d.count - d.histogram.count_up_to(bar + 1)) as f64 / d.count as f64
    };
    let share = beyond(&both);
    let deviation =
        (share * (1.0 - share) * (1.0 / new.count as f64 + 1.0 / old.count as f64)).sqrt();
    (beyond(&new) - beyond(&old)).abs() > 1.96 * deviation
}

fn series(times: usize, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "| machine | runs | change in the middle | some change found | found within one run of it |"
    )?;
    writeln!(out, "|---|---:|---:|---:|---:|")?;
    for (name, machine) in MACHINES {
        for factor in [1.0, 1.5, 2.0] {
            let times = if factor > 1.0 { times / 4 } else { times };
            for runs in [12, 24] {
                let mut random = Random::new(1);
                let (mut found, mut right) = (0, 0);
                for _ in 0..times {
                    let mut all = machine.runs(runs / 2, 1.0, &mut random);
                    all.extend(machine.runs(runs / 2, factor, &mut random));
                    let Ok(got) = trend(&labelled(&all), &trend::Options::default()) else {
                        continue;
                    };
                    found += usize::from(changes(&got).next().is_some());
                    right += usize::from(changes(&got).any(|at| at.abs_diff(runs / 2) <= 1));
                }
                let change = if factor > 1.0 { format!("{factor:.1} ×") } else { "none".into() };
                let right = if factor > 1.0 { percent(right, times) } else { "–".into() };
                let found = percent(found, times);
                writeln!(out, "| {name} | {runs} | {change} | {found} | {right} |")?;
            }
        }
    }
    Ok(())
}

/// Where a series changed.
fn changes(trend: &trend::Trend) -> impl Iterator<Item = usize> {
    let steps = [&trend.series[0].p999, &trend.series[0].max];
    steps.into_iter().flatten().flatten().map(|step| step.at)
}
