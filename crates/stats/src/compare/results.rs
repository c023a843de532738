//! What a comparison finds: the figures of each quantity and of watches, and what they say together.

use super::effect::{self, decide, decide_regression};
use super::measured::{self, Measured, P999, count_of_maxima, share_of};
use super::{
    Effect, FIGURES, OfQuantity, OfWatches, Options, Verdict, Watches, reasons, single, watches,
};
use crate::paired::holm;
use wakescope_core::limit::Outcome;
use wakescope_core::source::Quantity;

/// What is compared, and becomes a part of the record.
pub(super) struct Results {
    pub(super) quantities: Vec<OfQuantity>,
    pub(super) watches: Option<OfWatches>,
}

impl Results {
    /// Of new and old runs. Nothing is decided yet.
    pub(super) fn of(
        quantities: &[Quantity],
        sides: &[Vec<Measured>; 2],
        watches: Option<&Watches>,
        options: &Options,
    ) -> Self {
        let figures = match watches {
            None => FIGURES * quantities.len(),
            Some(watches) => watches.most_deciding(options.alpha),
        };
        let compared = |&quantity: &Quantity| {
            let [new, old] = sides
                .each_ref()
                .map(|side| side.iter().filter(|m| m.quantity == quantity).collect::<Vec<_>>());
            match watches {
                None => of_quantity(quantity, &new, &old, 0.0, figures, options),
                Some(_) => watches::all_waits(quantity, &new, &old, figures, options),
            }
        };
        Self {
            quantities: quantities.iter().map(compared).collect(),
            watches: watches.map(|watches| watches.figures(options)),
        }
    }

    /// All figures that decide.
    pub(super) fn deciding(&self) -> impl Iterator<Item = Option<&Effect>> + Clone {
        let figures = self.quantities.iter().flat_map(OfQuantity::deciding);
        let figures = figures.map(|(_, figure)| figure.map(|figure| &figure.effect));
        figures.chain(self.watches.iter().flat_map(OfWatches::deciding).map(Some))
    }

    fn deciding_mut(&mut self) -> impl Iterator<Item = &mut Effect> {
        let figures = self.quantities.iter_mut().flat_map(OfQuantity::deciding_mut);
        let figures = figures.map(|figure| &mut figure.effect);
        figures.chain(self.watches.iter_mut().flat_map(OfWatches::deciding_mut))
    }

    /// Finds the verdict on each figure, corrected for the number of all that decide, and says what they
    /// say together.
    pub(super) fn decide(&mut self, options: &Options) -> Verdict {
        let raw: Vec<f64> = self.deciding_mut().map(|effect| effect.p_value).collect();
        for (effect, p_adjusted) in self.deciding_mut().zip(holm(&raw)) {
            effect.p_adjusted = p_adjusted;
            decide(effect, raw.len(), options);
        }
        let regressions: Vec<f64> = self.deciding_mut().map(|effect| effect.p_regression).collect();
        for (effect, p_value) in self.deciding_mut().zip(holm(&regressions)) {
            decide_regression(effect, p_value, options);
        }
        for quantity in &mut self.quantities {
            quantity.verdict =
                together(quantity.deciding().map(|(_, f)| f.map(|f| f.effect.verdict)));
            let reasons = reasons::of(quantity, raw.len(), options);
            quantity.reasons.extend(reasons);
        }
        match self.watches {
            None => together(self.quantities.iter().map(|q| Some(q.verdict))),
            Some(_) => together(self.deciding().map(|effect| effect.map(|e| e.verdict))),
        }
    }

    /// Why the verdict is no clearer.
    pub(super) fn reasons(&self, alpha: f64) -> Vec<String> {
        let mut reasons = reasons::of_all(&self.quantities);
        let runs = self.quantities.first().map_or([0, 0], |quantity| quantity.runs);
        reasons.extend(self.watches.iter().flat_map(|watches| watches.reasons(runs, alpha)));
        reasons
    }

    /// Takes back all verdicts; whether there were any.
    pub(super) fn take_back(&mut self) -> bool {
        let mut lowered = false;
        for effect in self.deciding_mut() {
            lowered |= effect.verdict != Verdict::Inconclusive;
            effect.verdict = Verdict::Inconclusive;
            if let Some(regression) = &mut effect.regression {
                lowered |= *regression != Outcome::Inconclusive;
                *regression = Outcome::Inconclusive;
            }
        }
        for quantity in &mut self.quantities {
            quantity.verdict = Verdict::Inconclusive;
        }
        lowered
    }
}

type Range<'a> = &'a dyn Fn(&Measured) -> Option<(u64, u64)>;

pub(super) fn of_quantity(
    quantity: Quantity,
    new: &[&Measured],
    old: &[&Measured],
    resolution: f64,
    figures: usize,
    options: &Options,
) -> OfQuantity {
    let count = count_of_maxima([new, old]);
    let [p50, p99, p999] = [measured::P50, measured::P99, P999].map(|percentile| {
        let share = share_of(percentile, [new, old]);
        move |m: &Measured| m.range_at_share(share?)
    });
    let max = |m: &Measured| m.maximum_range(count);
    let [(p50, _), (p99, _), (p999, bounded_p999), (max, bounded_max)] = effect::figures(
        new,
        old,
        [(&p50 as Range, false), (&p99, true), (&p999, true), (&max, true)]
            .map(|(range, is_of_tail)| effect::Of { range, is_of_tail }),
        resolution,
        &effect::asked(figures, resolution, options),
    );
    let (throughput, idle_loads) = effect::throughput(new, old, options);
    OfQuantity {
        quantity,
        verdict: Verdict::Inconclusive,
        runs: [new.len(), old.len()],
        count,
        p50,
        p99,
        p999,
        max,
        throughput,
        idle_loads,
        within: single::within(new, old),
        reasons: Vec::new(),
        bounded: [bounded_p999, bounded_max],
    }
}

/// What verdicts say together; `None` is one that is not known.
fn together(verdicts: impl IntoIterator<Item = Option<Verdict>> + Clone) -> Verdict {
    let any = |wanted| verdicts.clone().into_iter().any(|verdict| verdict == Some(wanted));
    let none_differs =
        verdicts.clone().into_iter().all(|verdict| verdict == Some(Verdict::NoDifference));
    match (any(Verdict::Worse), any(Verdict::Better)) {
        (true, false) => Verdict::Worse,
        (false, true) => Verdict::Better,
        (false, false) if none_differs => Verdict::NoDifference,
        _ => Verdict::Inconclusive,
    }
}
