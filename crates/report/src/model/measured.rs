//! Published figures beside the simulated ones.

use serde::Serialize;
use wakescope_core::run::{Run, TimeDomain};
use wakescope_core::units::grouped;
use wakescope_model::scenario::Measured;
use wakescope_stats::compare::factor;

use super::WIDTH;
use crate::findings::wrapped;
use crate::realfeel::Statistics;
use crate::run_set::domain_name;
use crate::share;
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
            add(&name, "%", Some(share), count as f64 * 100.0 / all.count as f64);
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
    let of_models = |name: &str| -> Vec<[String; 3]> {
        let cells_of = |all: &[&Compared]| {
            let named = all.iter().map(|one| one.figures.iter().find(|f| f.name == name));
            cells(&named.collect::<Vec<_>>())
        };
        models.iter().map(|(_, all)| cells_of(all)).collect()
    };
    let figures: Vec<(String, Vec<[String; 3]>)> = names
        .into_iter()
        .map(|(name, unit)| match unit {
            "" => (name.to_owned(), of_models(name)),
            _ => (format!("{name}, {unit}"), of_models(name)),
        })
        .collect();
    let factors = figures.iter().flat_map(|(_, cells)| cells).map(|[.., factor]| factor);
    let widest = factors.map(|factor| factor.chars().count()).fold(6, usize::max);
    // The values stand below each other.
    let beside = |value: String, factor: &str| match value.as_str() {
        UNKNOWN => value,
        _ => format!("{value} {factor:>widest$}"),
    };
    for (title, cells) in figures {
        let mut published = vec![title, "published".to_owned()];
        let mut simulated = vec![String::new(), "simulated".to_owned()];
        for [above, below, factor] in cells {
            published.push(beside(above, ""));
            simulated.push(beside(below, &factor));
        }
        rows.extend([published, simulated]);
    }
    format!("{}\n  {}\n", columns(&rows, true), wrapped(&footnote(models), WIDTH - 2, "  "))
}

/// What the figures rest on.
fn footnote(models: &[(&str, Vec<&Compared>)]) -> String {
    let all = || models.iter().flat_map(|(_, all)| all);
    let [published, simulated] = [
        range(all().map(|one| one.published_samples)),
        range(all().map(|one| one.simulated_samples)),
    ];
    let mut domains: Vec<&str> = Vec::new();
    for domain in all().map(|one| domain_name(one.time_domain)) {
        if !domains.contains(&domain) {
            domains.push(domain);
        }
    }
    let each = if all().nth(1).is_some() { " in each simulation" } else { "" };
    format!(
        "published: {published} samples in {} time; simulated: {simulated} wakeups{each}, in simulated time. \
         ×: simulated divided by published; of shares, the samples that are not below. Rare wakeups are \
         missing where fewer were simulated",
        domains.join(" or ")
    )
}

/// `3,000`, or `3,000 to 5,000`.
fn range(counts: impl Iterator<Item = u64> + Clone) -> String {
    let [least, most] = [counts.clone().min(), counts.max()].map(Option::unwrap_or_default);
    match least == most {
        true => grouped(most),
        false => format!("{} to {}", grouped(least), grouped(most)),
    }
}

/// A line above the figures.
fn head<'a>(title: &str, cells: impl Iterator<Item = &'a str>) -> Vec<String> {
    let cells = cells.map(|cell| clean(cell, 20));
    [String::new(), title.to_owned()].into_iter().chain(cells).collect()
}

/// In place of a figure that is not known.
const UNKNOWN: &str = "–";

/// What was published, the median of what was simulated, and the factor between them. Of seeds with too
/// few wakeups for a figure, it is not known.
pub(super) fn cells(seeds: &[Option<&Figure>]) -> [String; 3] {
    let unknown = || UNKNOWN.to_owned();
    let Some(any) = seeds.iter().find_map(|seed| *seed) else {
        return [unknown(), unknown(), unknown()];
    };
    let of = |figure: fn(&Figure) -> Option<f64>| {
        super::middle(seeds.iter().map(|seed| seed.and_then(figure)))
    };
    let text = |value: f64| match (any.unit, any.name.as_str()) {
        ("%", _) => share::cut(value, 5),
        ("ms", "max") if value >= 1.0 => format!("{value:.1}"),
        ("ms", "max") => format!("{value:.3}"),
        ("ms", _) => format!("{value:.4}"),
        _ => format!("{value:.0}"),
    };
    let times = |ratio| format!("×{}", factor(ratio));
    [
        text(any.published),
        of(|seed| Some(seed.simulated)).map_or_else(unknown, text),
        of(|seed| seed.factor).map_or_else(unknown, times),
    ]
}
