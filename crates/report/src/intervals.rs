//! How the times between wakeups deviate from the interval, in words and figures.

use wakescope_core::interval_deviation::DeviationFigures;
use wakescope_core::run::Run;
use wakescope_core::units::{SpanNs, counted};

/// A deviation, with its sign.
pub(crate) fn signed(ns: f64) -> String {
    let rounded = size(ns);
    match rounded.0 {
        0 => rounded.to_string(),
        _ if ns < 0.0 => format!("-{rounded}"),
        _ => format!("+{rounded}"),
    }
}

/// How large it is, whatever its sign.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // It saturates, and has none.
fn size(ns: f64) -> SpanNs {
    SpanNs(ns.abs().round() as u64)
}

/// The figures in cells: least, mean, standard deviation, largest.
pub(crate) fn cells(figures: &DeviationFigures) -> [String; 4] {
    [
        signed(figures.min_ns as f64),
        signed(figures.mean_ns),
        size(figures.standard_deviation_ns).to_string(),
        signed(figures.max_ns as f64),
    ]
}

/// Two lines on the times between wakeups of `run`; empty where they were not recorded.
pub(crate) fn block(run: &Run) -> String {
    let Some(figures) = run.interval_deviation().and_then(|all| all.figures()) else {
        return String::new();
    };
    let [min, mean, spread, max] = cells(&figures);
    let domain = match run.time_domain.before_unit() {
        "" => String::new(),
        word => format!(", in {word}time"),
    };
    format!(
        " {} between wakeups{domain}: deviation from {}\n   \
         {min} to {max}, mean {mean}, standard deviation {spread}\n",
        counted(figures.count, "interval"),
        SpanNs(run.plan.interval_ns)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tests::run_of;
    use wakescope_core::distribution::Distribution;
    use wakescope_core::interval_deviation::IntervalDeviation;

    fn distribution(values: &[u64]) -> Distribution {
        Distribution { max_at_ns: Some(0), ..Distribution::of(values.iter().copied()) }
    }

    #[test]
    fn intervals_are_told_with_their_sign_and_only_where_all_were_recorded() {
        let mut run = run_of(&[&[5, 6], &[7, 8]]);
        assert_eq!(block(&run), "");
        run.threads[0].interval_deviation = Some(IntervalDeviation {
            longer: distribution(&[0, 895_000]),
            shorter: distribution(&[895_002]),
        });
        assert_eq!(block(&run), "", "one of two CPUs says nothing of both");
        run.threads[1].interval_deviation = Some(IntervalDeviation {
            longer: distribution(&[12]),
            shorter: Distribution::default(),
        });
        assert_eq!(
            block(&run),
            " 4 intervals between wakeups: deviation from 1.00 ms\n   \
             -895 µs to +895 µs, mean +3 ns, standard deviation 633 µs\n"
        );
    }
}
