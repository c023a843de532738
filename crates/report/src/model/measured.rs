//! Published figures beside the simulated ones.

use serde::Serialize;
use wakescope_core::run::Run;
use wakescope_core::run::TimeDomain;
use wakescope_model::scenario::Measured;

use crate::realfeel::Statistics;
use crate::style::clean;
use crate::table::columns;

/// What was published of a kernel, and what came of its model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// What the text calls the kernel.
    pub kernel: String,
    /// Which time the published figures are in.
    pub time_domain: TimeDomain,
    /// How many samples were published.
    pub published_samples: u64,
    /// How many wakeups were simulated.
    pub simulated_samples: u64,
    /// Figure by figure, in the order of the table.
    pub figures: Vec<Figure>,
}

/// A figure that was published.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Which: `max`, `p99.9`, `below 0.1 ms`.
    pub name: String,
    /// Its unit: `ms`, `%` or none.
    pub unit: &'static str,
    /// As published.
    pub published: f64,
    /// The same of the simulation.
    pub simulated: f64,
    /// The simulated one divided by the published one; of shares, those of the samples that are not below.
    /// `None` where that would divide by nothing.
    pub factor: Option<f64>,
}

impl Compared {
    /// The wakeups of `run`, all CPUs together, beside what was published; `None` if it has no sample.
    pub fn of(run: &Run, measured: &Measured) -> Option<Self> {
        let Measured { kernel, samples, max_ns, mean_ns, stdev_ns, buckets, .. } = measured;
        let Measured { time_domain, percentiles, below, .. } = measured;
        // An expiry that a late wakeup swallowed was no sample of a blocking read.
        let all = run.woken();
        let own = Statistics::of(&all)?;
        let mut figures = Vec::new();
        let mut add = |name: &str, unit, published: Option<f64>, simulated: f64| {
            let rest = |value: f64| if unit == "%" { 100.0 - value } else { value };
            figures.extend(published.map(|published| Figure {
                name: name.into(),
                unit,
                published,
                simulated,
                factor: (rest(published) > 0.0).then(|| rest(simulated) / rest(published)),
            }));
        };
        let ms = |ns: u64| ns as f64 / 1e6;
        add("max", "ms", max_ns.map(ms), ms(own.max_ns));
        add("mean", "ms", mean_ns.map(ms), own.mean_ms);
        add("stdev", "ms", stdev_ns.map(ms), own.stdev_ms);
        for &(percentile, ns) in percentiles {
            // Too few simulated wakeups carry no such percentile.
            if let Some(own) = all.percentile(percentile) {
                add(&percentile.to_string(), "ms", Some(ms(ns)), ms(own));
            }
        }
        for &(threshold, share) in below {
            let name = format!("below {} ms", ms(threshold));
            let count = all.histogram.count_below(threshold);
            add(&name, "%", Some(share), count as f64 / all.count as f64 * 100.0);
        }
        add("buckets", "", buckets.map(|count| count as f64), own.buckets as f64);
        Some(Self {
            kernel: kernel.clone(),
            time_domain: *time_domain,
            published_samples: *samples,
            simulated_samples: all.count,
            figures,
        })
    }
}

/// All of them in one table: a column for each model, and two lines for each figure. `models`: the name of
/// each, and the comparison of each of its seeds, of which the median is shown.
pub(super) fn table(models: &[(&str, Vec<&Compared>)]) -> String {
    let rules = models.iter().map(|(rules, _)| *rules);
    let kernels = models.iter().map(|(_, all)| all[0].kernel.as_str());
    let mut rows = vec![head("rules", rules), head("kernel", kernels)];
    let mut names: Vec<(&str, &str)> = Vec::new();
    for figure in models.iter().flat_map(|(_, all)| &all[0].figures) {
        if !names.contains(&(&figure.name, figure.unit)) {
            names.push((&figure.name, figure.unit));
        }
    }
    for (name, unit) in names {
        let title = match unit {
            "" => name.to_owned(),
            _ => format!("{name}, {unit}"),
        };
        let mut published = vec![title, "published".to_owned()];
        let mut simulated = vec![String::new(), "simulated".to_owned()];
        for (_, all) in models {
            let found: Vec<&Figure> = all
                .iter()
                .flat_map(|one| &one.figures)
                .filter(|figure| figure.name == name)
                .collect();
            let [above, below] = cells(&found);
            published.push(above);
            simulated.push(below);
        }
        rows.extend([published, simulated]);
    }
    columns(&rows, true)
}

/// A line above the figures.
fn head<'a>(title: &str, cells: impl Iterator<Item = &'a str>) -> Vec<String> {
    let cells = cells.map(|cell| clean(cell, 20));
    [String::new(), title.to_owned()].into_iter().chain(cells).collect()
}

/// What was published, and the median of what was simulated, with the factor between them.
fn cells(seeds: &[&Figure]) -> [String; 2] {
    let mut seeds = seeds.to_vec();
    seeds.sort_by(|a, b| a.simulated.total_cmp(&b.simulated));
    let Some(middle) = seeds.get(seeds.len().saturating_sub(1) / 2) else {
        return ["–".into(), "–".into()];
    };
    let text = |value: f64| match (middle.unit, middle.name.as_str()) {
        // Rounded down: 99.999999 % must not become 100.
        ("%", _) => format!("{:.5}", (value * 1e5).floor() / 1e5),
        ("ms", "max") if value >= 1.0 => format!("{value:.1}"),
        ("ms", "max") => format!("{value:.3}"),
        ("ms", _) => format!("{value:.4}"),
        _ => format!("{value:.0}"),
    };
    let factor = middle.factor.map_or_else(|| "–".into(), |factor| format!("×{factor:.2}"));
    // The values stand below each other.
    [
        format!("{}{:7}", text(middle.published), ""),
        format!("{} {factor:>6}", text(middle.simulated)),
    ]
}
