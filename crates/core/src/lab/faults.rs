//! Figures of a lab that contradict each other.

use std::collections::BTreeMap;

use crate::faults::first;

use super::{Cell, CellLimit, Comparison, Effect, Lab, Status, Verdict};

impl Lab {
    /// Which of its figures contradict each other, if any do.
    pub(super) fn fault(&self) -> Option<String> {
        first("cells", &self.cells, Cell::fault)
            .or_else(|| first("comparisons", &self.comparisons, Comparison::fault))
            .or_else(|| first("limits", &self.limits, CellLimit::fault))
            .or_else(|| self.fault_of_observed())
    }

    /// A limit has observed the largest figure of its cells.
    fn fault_of_observed(&self) -> Option<String> {
        let mut largest = BTreeMap::<[&str; 3], [Option<u64>; 4]>::new();
        for cell in self.cells.iter().filter(|cell| cell.status == Status::Ok) {
            let figures = [cell.max_ns, cell.p50_ns, cell.p99_ns, cell.p999_ns];
            let of_seeds = largest.entry([&cell.kernel, &cell.asked, &cell.load]).or_default();
            *of_seeds = [0, 1, 2, 3].map(|i| of_seeds[i].max(figures[i]));
        }
        first("limits", &self.limits, |limit| {
            let name = limit.limit.split(' ').next();
            let i = ["max", "p50", "p99", "p99.9"].iter().position(|it| Some(*it) == name)?;
            let has = largest.get(&[&*limit.arm.kernel, &limit.arm.asked, &limit.load]);
            let has = has.and_then(|figures| figures[i]);
            let shown = |ns: Option<u64>| ns.map_or("none".into(), |ns| ns.to_string());
            (has != limit.observed_ns).then(|| {
                let said = shown(limit.observed_ns);
                format!("observed_ns is {said}, but its cells have {}", shown(has))
            })
        })
    }
}

impl Cell {
    fn fault(&self) -> Option<String> {
        let percentiles =
            [("p50_ns", self.p50_ns), ("p99_ns", self.p99_ns), ("p999_ns", self.p999_ns)];
        let max = ("max_ns", self.max_ns);
        // The minimum is that of wakeups. Percentiles are of expiries, and those that a late wakeup
        // swallowed may be less late than any wakeup.
        let of_all = percentiles.into_iter().chain([max]);
        unordered(of_all).or_else(|| unordered([("min_ns", self.min_ns), max].into_iter()))
    }
}

/// The first figure that is below the one before it, of those that are there.
fn unordered<N: PartialOrd + std::fmt::Display>(
    figures: impl Iterator<Item = (&'static str, Option<N>)>,
) -> Option<String> {
    let figures: Vec<_> = figures.filter_map(|(key, value)| Some((key, value?))).collect();
    figures.windows(2).find_map(|pair| match pair {
        [(low_key, low), (key, value)] if low > value => {
            Some(format!("{low_key} is {low}, but {key} is {value}"))
        }
        _ => None,
    })
}

impl Comparison {
    fn fault(&self) -> Option<String> {
        let effects = [("max", &self.max), ("p999", &self.p999)];
        effects.into_iter().find_map(|(key, effect)| {
            let effect = effect.as_ref()?;
            let of_seeds = || {
                let most = self.seeds;
                (effect.seeds > most).then(|| format!("{} seeds, of {most}", effect.seeds))
            };
            Some(format!("{key}: {}", effect.fault().or_else(of_seeds)?))
        })
    }
}

impl Effect {
    fn fault(&self) -> Option<String> {
        let Self { seeds, better, worse, verdict, .. } = *self;
        if u64::from(better) + u64::from(worse) > u64::from(seeds) {
            return Some(format!("{better} better and {worse} worse seeds, of {seeds}"));
        }
        let contradicts = match verdict {
            Verdict::Better => self.ratio > 1.0,
            Verdict::Worse => self.ratio < 1.0,
            Verdict::NoDifference | Verdict::Inconclusive => false,
        };
        if contradicts {
            return Some(format!("its verdict is {verdict:?}, but its ratio {}", self.ratio));
        }
        // A median of ratios is computed by logarithms.
        let (low, high) = (self.low * (1.0 - 1e-9), self.high * (1.0 + 1e-9));
        let of = |key, value: Option<f64>| {
            unordered([("low", Some(low)), (key, value), ("high", Some(high))].into_iter())
        };
        of("ratio", Some(self.ratio))
            .or_else(|| of("interval_low", self.interval_low))
            .or_else(|| of("interval_high", self.interval_high))
            .or_else(|| {
                let ends =
                    [("interval_low", self.interval_low), ("interval_high", self.interval_high)];
                unordered(ends.into_iter())
            })
            .or_else(|| {
                let p = [("p_value", Some(self.p_value)), ("p_adjusted", Some(self.p_adjusted))];
                let ends = [("0", Some(0.0))].into_iter().chain(p).chain([("1", Some(1.0))]);
                unordered(ends)
            })
    }
}

impl CellLimit {
    fn fault(&self) -> Option<String> {
        let (within, observed_ns, limit_ns) = (self.within?, self.observed_ns?, self.limit_ns);
        (within != (observed_ns <= limit_ns)).then(|| {
            format!("within is {within}, but observed_ns is {observed_ns} and limit_ns {limit_ns}")
        })
    }
}

#[cfg(test)]
mod tests {
    use wakescope_testing::assert_told;

    use super::super::{Arm, SCHEMA};
    use super::*;

    #[test]
    fn a_cell_of_which_figures_contradict_each_other_is_refused() {
        let true_cell = Cell {
            min_ns: Some(3_584),
            p50_ns: Some(3_000),
            p99_ns: Some(4_412),
            p999_ns: None,
            max_ns: Some(9_000),
            ..Cell::default()
        };
        let read = |cell: Cell| {
            let lab = Lab { schema: SCHEMA.into(), cells: vec![cell], ..Lab::default() };
            Lab::from_json(lab.to_json().as_bytes()).err().map(|e| e.to_string())
        };
        type Change = fn(&mut Cell);
        for (change, want) in [
            ((|_| ()) as Change, None),
            (|cell| cell.max_ns = None, None),
            (|cell| cell.p99_ns = None, None),
            (|cell| cell.max_ns = Some(0), Some("p99_ns is 4412, but max_ns is 0")),
            (|cell| cell.p50_ns = Some(1 << 60), Some("p50_ns is 1152921504606846976, but p99_ns")),
            (|cell| cell.p999_ns = Some(4_411), Some("p99_ns is 4412, but p999_ns is 4411")),
            (|cell| cell.p999_ns = Some(9_001), Some("p999_ns is 9001, but max_ns is 9000")),
            (|cell| cell.min_ns = Some(9_001), Some("min_ns is 9001, but max_ns is 9000")),
        ] {
            let mut cell = true_cell.clone();
            change(&mut cell);
            assert_told(read(cell), want);
        }
    }

    #[test]
    fn an_effect_of_which_figures_contradict_each_other_is_refused() {
        let true_effect = Effect {
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
            verdict: Verdict::Better,
        };
        type Change = fn(&mut Effect);
        for (change, want) in [
            ((|_| ()) as Change, None),
            (|effect| (effect.interval_low, effect.interval_high) = (None, None), None),
            (|effect| effect.seeds = 11, Some("11 seeds, of 10")),
            (|effect| effect.worse = 2, Some("9 better and 2 worse seeds, of 10")),
            (|effect| effect.ratio = 0.3, Some("but ratio is 0.3")),
            (|effect| effect.ratio = 0.7, Some("ratio is 0.7, but high")),
            (
                |effect| effect.interval_low = Some(0.56),
                Some("interval_low is 0.56, but interval_"),
            ),
            (|effect| effect.interval_high = Some(0.7), Some("interval_high is 0.7, but high")),
            (|effect| effect.p_value = 0.01, Some("p_value is 0.01, but p_adjusted is 0.004")),
            (|effect| effect.p_adjusted = 1.5, Some("p_adjusted is 1.5, but 1 is 1")),
            (|effect| effect.verdict = Verdict::Worse, Some("its verdict is Worse, but its ratio")),
        ] {
            let mut effect = true_effect.clone();
            change(&mut effect);
            let comparison = Comparison { seeds: 10, max: Some(effect), ..Comparison::default() };
            assert_told(comparison.fault(), want);
        }
    }

    #[test]
    fn a_limit_is_within_what_was_observed() {
        for (within, observed_ns, is_fault) in [
            (Some(true), Some(20), false),
            (Some(false), Some(21), false),
            (Some(true), Some(21), true),
            (Some(false), Some(20), true),
            (None, Some(21), false),
            (Some(true), None, false),
        ] {
            let limit = CellLimit { within, observed_ns, limit_ns: 20, ..CellLimit::default() };
            assert_eq!(limit.fault().is_some(), is_fault, "{within:?} {observed_ns:?}");
        }
    }
    /// A limit was kept by 90 µs in a lab with a cell of 106 µs.
    #[test]
    fn a_limit_has_observed_the_largest_figure_of_its_cells() {
        let cell = |seed, max_ns, status| {
            let (kernel, asked) = ("k".into(), "full".into());
            Cell { kernel, asked, load: "find".into(), seed, max_ns, status, ..Cell::default() }
        };
        let failed = cell(3, Some(900), Status::Failed);
        let cells = vec![cell(1, Some(20), Status::Ok), cell(2, Some(60), Status::Ok), failed];
        for (limit, load, observed_ns, want) in [
            ("max ≤ 50 ns", "find", Some(60), None),
            ("max ≤ 50 ns", "find", Some(20), Some("observed_ns is 20, but its cells have 60")),
            ("max ≤ 50 ns", "find", None, Some("observed_ns is none, but its cells have 60")),
            ("max ≤ 50 ns", "idle", Some(60), Some("observed_ns is 60, but its cells have none")),
            ("p99.9 ≤ 50 ns", "find", None, None),
            ("a figure of a later version", "find", Some(7), None),
        ] {
            let arm = Arm { kernel: "k".into(), asked: "full".into() };
            let (limit, load) = (limit.into(), load.into());
            let limit = CellLimit { limit, arm, load, observed_ns, ..CellLimit::default() };
            let lab = Lab { cells: cells.clone(), limits: vec![limit], ..Lab::default() };
            assert_told(lab.fault(), want);
        }
    }
}
