//! Findings of all samples together: whether they are enough, and whether they are wakeups.

use super::{Observed, ThreadObserved};
use crate::finding::{Finding, Severity};
use crate::limit::Limit;
use crate::plan::Plan;
use crate::units::{SpanNs, counted, grouped, one_or_many};

use Severity::{Note, Warning};

const SECOND_NS: u64 = 1_000_000_000;

pub(super) fn samples(plan: &Plan, seen: &Observed, out: &mut Vec<Finding>) {
    let missed: u64 = seen.threads.iter().map(|t| t.missed).sum();
    let expiries = missed + seen.threads.iter().map(|t| t.woken).sum::<u64>();
    if missed * 10 > expiries {
        out.push(Finding::new(
            "overload",
            Warning,
            format!(
                "{} of {} had no wakeup of {} own: {} is short for what runs here",
                grouped(missed),
                counted(expiries, "period"),
                one_or_many(missed, "its", "their"),
                SpanNs(plan.interval_ns)
            ),
            "use a longer --interval, unless these stalls are of interest",
        ));
    }
    for limit in plan.fail_above.iter().filter_map(|text| text.parse::<Limit>().ok()) {
        let Some(percentile) = limit.percentile else { continue };
        if !percentile.is_carried_by(expiries) {
            let need = percentile.samples_needed();
            let cpus = (plan.cpus.len() as u64).max(1);
            let needed_ns = need.div_ceil(cpus).saturating_mul(plan.interval_ns);
            // Up to a whole second: fewer samples would not do.
            let span = SpanNs(needed_ns.div_ceil(SECOND_NS).saturating_mul(SECOND_NS));
            out.push(Finding::new(
                "few-samples",
                Warning,
                format!(
                    "{} {} too few for {percentile}, which needs {}",
                    counted(expiries, "sample"),
                    one_or_many(expiries, "is", "are"),
                    grouped(need)
                ),
                &match plan.interval_ns {
                    0 => "measure longer".to_owned(),
                    _ => format!("measure for at least --duration {}", span.as_argument()),
                },
            ));
        }
    }
}

/// Of wakeups by another thread: those that were none.
pub(super) fn wakers(plan: &Plan, seen: &Observed, out: &mut Vec<Finding>) {
    let sum = |of: fn(&ThreadObserved) -> u64| seen.threads.iter().map(of).sum::<u64>();
    let (woken, not_asleep) = (sum(|t| t.woken), sum(|t| t.not_asleep));
    let skipped = sum(|t| t.skipped);
    if not_asleep > 0 && plan.audio.is_some() {
        out.push(Finding::new(
            "not-asleep",
            Note,
            format!(
                "at {} of {} there was room in the buffer already: the probe was behind, so they \
                 are no wakeups",
                grouped(not_asleep),
                counted(woken + not_asleep, "wait"),
            ),
            "see the cycles of the fragments, which have all of them",
        ));
    } else if not_asleep > 0 {
        let calls = woken + not_asleep;
        out.push(Finding::new(
            "not-asleep",
            // A waker that now and then finds the probe awake is not to be avoided.
            if not_asleep > calls / 100 { Warning } else { Note },
            format!(
                "{} of {} found the probe still awake: no wakeup, and no sample",
                grouped(not_asleep),
                counted(calls, "wakeup call"),
            ),
            "use a longer --interval",
        ));
    }
    if skipped > 0 {
        let points = woken + not_asleep + skipped;
        out.push(Finding::new(
            "late-waker",
            if skipped > points / 10 { Warning } else { Note },
            format!(
                "{} of {} {} left out, because the waker was late itself: the same delay may \
                 have hit wakeups, and is not in the figures",
                grouped(skipped),
                counted(points, "wakeup call"),
                one_or_many(skipped, "was", "were"),
            ),
            "use a longer --interval, or measure --stimulus timer as well, whose latency includes \
             such delays",
        ));
    }
}
