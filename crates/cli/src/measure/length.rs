//! How long a run is to be, compared with its interval.

use wakescope_core::plan::Plan;
use wakescope_core::units::SpanNs;

use super::args::LONGEST;
use crate::Failure;

/// The plan of a run of probes, if it lasts for at least one interval, and for a year at most. A loop that never sleeps
/// has none.
pub(crate) fn lasting(plan: Plan) -> Result<Plan, Failure> {
    let interval = SpanNs(plan.interval_ns);
    if let Some(duration) = plan.duration_ns.map(SpanNs).filter(|&duration| duration < interval) {
        return Err(Failure::new(format!(
            "--duration {} is shorter than one interval of {}",
            duration.as_argument(),
            interval.as_argument()
        ))
        .try_this("measure for at least a few intervals"));
    }
    let is_too_long = |n: u64| n.checked_mul(interval.0).is_none_or(|ns| ns > LONGEST.0);
    if plan.samples.is_some_and(is_too_long) {
        return Err(Failure::new(format!(
            "so many --samples at an interval of {interval} take longer than {LONGEST}"
        ))
        .try_this("set fewer --samples; Ctrl-C ends a long run and keeps its results"));
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::super::{MeasureArgs, plan};
    use super::*;

    #[derive(clap::Parser)]
    struct Arguments {
        #[command(flatten)]
        args: MeasureArgs,
    }

    /// Whether a run that is asked for so is as long as it has to be: the words that say why not.
    #[track_caller]
    fn check(asked: &str, want: Option<&str>) {
        let asked: Vec<&str> = asked.split(' ').collect();
        let Arguments { args } = clap::Parser::parse_from([&["measure"], &asked[..]].concat());
        let found = lasting(plan(&args).unwrap()).map(drop).map_err(|e| e.to_string());
        match (&found, want) {
            (Ok(()), None) => {}
            (Err(why), Some(words)) if why.contains(words) => {}
            _ => panic!("{asked:?}: {found:?}"),
        }
    }

    #[test]
    fn a_run_lasts_for_an_interval_that_its_stimulus_has() {
        check("--duration 999us", Some("--duration 999us is shorter than one interval of 1ms"));
        check("--duration 1ms", None);
        check("--stimulus spin --duration 500us", None);
        check("--stimulus audio --duration 2ms", Some("one interval of 2900us"));
        check("--stimulus audio --duration 2ms --fragment 2ms", None);
        check("--stimulus rtc-grid --rtc-hz 64 --duration 10ms", Some("one interval of 15625us"));
        check("--samples 8785 --interval 1h", Some("take longer than 366 d"));
        check("--samples 8784 --interval 1h", None);
    }
}
