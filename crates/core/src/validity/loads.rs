//! Findings about the loads.

use super::{LeftOut, Observed};
use crate::finding::{Finding, Severity};
use crate::run::LoadResult;
use crate::units::SpanNs;

use Severity::{Error, Note, Warning};

/// Of every load whether it ran to the end, and how steadily.
pub(super) fn findings(seen: &Observed, out: &mut Vec<Finding>) {
    out.extend(seen.loads.iter().filter_map(finding));
    out.extend(seen.loads.iter().filter_map(not_saved));
    for LeftOut { part, of, reason } in &seen.left_out {
        out.push(Finding::new(
            "load-left-out",
            Warning,
            format!("{part} was left out of the load {of}: {reason}"),
            "compare it with runs that left out the same",
        ));
    }
}

/// The gravest, of which the others are consequences.
fn finding(load: &LoadResult) -> Option<Finding> {
    let LoadResult { name, fault, .. } = load;
    if !load.alive {
        return Some(Finding::new(
            "load-died",
            Error,
            format!("the load {name} ended before the run did: {fault}"),
            "part of the run was measured without it; see why it ended, and measure again",
        ));
    }
    if load.work == 0 && load.was_starved() {
        return Some(Finding::new(
            "load-died",
            Error,
            format!("the load {name} did no work during the run"),
            "measure longer, or find what starves it",
        ));
    }
    if load.work == 0 {
        return Some(Finding::new(
            "load-unfinished",
            Warning,
            format!("the load {name} worked, but completed no whole unit of work during the run"),
            "measure longer: the work of the load in this run is not known",
        ));
    }
    let stall = load.stall.severity();
    let slowed = load.slowed_from().filter(|_| stall.is_none_or(|severity| severity == Note));
    slowed.map(|before| slow(load, before)).or_else(|| stall.map(|severity| still(load, severity)))
}

fn not_saved(load: &LoadResult) -> Option<Finding> {
    let cause = load.not_saved.as_ref()?;
    Some(Finding::new(
        "not-saved",
        Warning,
        format!("the log of the load {} could not be saved completely: {cause}", load.name),
        "free some space, name another file: WAKESCOPE_DISTURBANCES=FILE, or disturb for a shorter time",
    ))
}

fn slow(load: &LoadResult, before: f64) -> Finding {
    let percent = 100.0 * load.per_second / before;
    Finding::new(
        "load-slowed",
        Warning,
        format!(
            "the load {} did {percent:.1} % of the work per second that it did before the run",
            load.name
        ),
        "find what slows it down: probes that use much of the CPU (choose a longer interval), or a disk",
    )
}

fn still(load: &LoadResult, severity: Severity) -> Finding {
    Finding::new(
        "load-stalled",
        severity,
        format!(
            "no work of the load {} was seen for {} of {}",
            load.name,
            SpanNs(load.stall.still_ns()),
            SpanNs(load.stall.of_ns)
        ),
        match severity {
            Note => "",
            _ => {
                "find what held it up: a stop (SIGSTOP, a frozen cgroup), probes that use all CPUs, or \
                 a disk; then measure again"
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::starvation::Stall;

    const S: u64 = 1_000_000_000;

    /// A load that works all the time.
    fn busy() -> LoadResult {
        LoadResult {
            name: "find".into(),
            unit: "files".into(),
            work: 4_000_000,
            per_second: 1_000_000.0,
            before_per_second: Some(1_100_000.0),
            before_steady: Some(true),
            alive: true,
            window_ns: 4 * S,
            stall: Stall { pieces_per_second: 1_100_000.0, ..Stall::default() },
            ..LoadResult::default()
        }
    }

    #[track_caller]
    fn check(load: &LoadResult, want: Option<(&str, Severity)>) {
        let found = finding(load);
        assert_eq!(found.as_ref().map(|f| (f.code.as_str(), f.severity)), want, "{load:?}");
    }

    #[test]
    fn a_stall_weighs_as_much_as_its_part_of_the_run() {
        let stalled = |severity| Some(("load-stalled", severity));
        for (longest_ns, of_ns, pieces_per_second, want) in [
            (0, 4 * S, 0.0, None),
            (S / 2, 60 * S, 1e6, None),
            // A tenth, and a half.
            (2 * S / 5, 4 * S, 1e6, None),
            (2 * S / 5 + 1, 4 * S, 1e6, stalled(Warning)),
            (2 * S, 4 * S, 1e6, stalled(Warning)),
            (2 * S + 1, 4 * S, 1e6, stalled(Error)),
            (29 * S / 10, 4 * S, 1e6, stalled(Error)),
            (4 * S, 4 * S, 1e6, stalled(Error)),
            // A long run has them now and then.
            (2 * S, 3600 * S, 1e6, None),
            (3 * S, 3600 * S, 1e6, stalled(Note)),
            // A load that does a piece of work now and then does nothing in between.
            (S, 4 * S, 19.0, None),
            (S, 4 * S, 20.0, stalled(Warning)),
            (3 * S, 4 * S, 1.0, stalled(Note)),
            (3 * S, 4 * S, 0.0, stalled(Note)),
            // A short run.
            (0, S / 10, 0.0, None),
            (S / 10, S / 10, 50.0, None),
            (0, 0, 0.0, None),
        ] {
            let stall = Stall { longest_ns, of_ns, pieces_per_second, ..Stall::default() };
            check(&LoadResult { stall, ..busy() }, want);
        }
    }

    #[test]
    fn many_short_stops_weigh_as_much_as_one_long_one() {
        let stalled = |severity| Some(("load-stalled", severity));
        for (held_up_ns, of_ns, pieces_per_second, want) in [
            (2 * S / 5, 4 * S, 1e6, None),
            (2 * S / 5 + 1, 4 * S, 1e6, stalled(Warning)),
            (2 * S + 1, 4 * S, 1e6, stalled(Error)),
            (3 * S, 4 * S, 1.0, None),
            // In a long run, short ones are no more than that.
            (3 * S, 3600 * S, 1e6, None),
        ] {
            let stall = Stall { longest_ns: S / 10, held_up_ns, of_ns, pieces_per_second };
            let load = LoadResult { stall, ..busy() };
            check(&load, want);
            if let Some(finding) = finding(&load) {
                let (held_up, of) = (SpanNs(held_up_ns), SpanNs(of_ns));
                let message = format!("no work of the load find was seen for {held_up} of {of}");
                assert_eq!(finding.message, message);
            }
        }
    }

    #[test]
    fn a_load_that_falls_to_a_small_part_of_a_steady_speed_is_found() {
        let slowed = Some(("load-slowed", Warning));
        for (per_second, before, steady, window_ns, want) in [
            (10.1, Some(100.0), Some(true), 4 * S, None),
            (9.9, Some(100.0), Some(true), 4 * S, slowed),
            (200.0, Some(100.0), Some(true), 4 * S, None),
            // It was fast for a moment only, or nobody knows.
            (9.9, Some(100.0), Some(false), 4 * S, None),
            (9.9, Some(100.0), None, 4 * S, None),
            (9.9, None, None, 4 * S, None),
            // Few pieces of work are few by chance.
            (9.9, Some(100.0), Some(true), S / 10, None),
            (0.4, Some(4.5), Some(true), 4 * S, None),
        ] {
            let stall = Stall { pieces_per_second: before.unwrap_or(0.0), ..Stall::default() };
            let load = LoadResult {
                per_second,
                before_per_second: before,
                before_steady: steady,
                window_ns,
                stall,
                ..busy()
            };
            check(&load, want);
        }
        let load = LoadResult { per_second: 1234.5, ..busy() };
        let message = finding(&load).unwrap().message;
        assert_eq!(
            message,
            "the load find did 0.1 % of the work per second that it did before the run"
        );
    }

    #[test]
    fn the_gravest_of_a_loads_findings_is_told() {
        let stall = |longest_ns| Stall { longest_ns, of_ns: 4 * S, ..busy().stall };
        let slow = LoadResult { per_second: 9.0, stall: stall(3 * S), ..busy() };
        check(&slow, Some(("load-stalled", Error)));
        let short = LoadResult { stall: stall(S / 10), ..slow.clone() };
        check(&short, Some(("load-slowed", Warning)));
        check(&LoadResult { work: 0, ..slow.clone() }, Some(("load-died", Error)));
        check(&LoadResult { alive: false, ..slow.clone() }, Some(("load-died", Error)));
        let message = finding(&slow).unwrap().message;
        assert_eq!(message, "no work of the load find was seen for 3.00 s of 4.00 s");
    }
}
