//! The four components of a wakeup.

use wakescope_core::explain::{Components, Marks};
use wakescope_core::units::MonoNs;

/// The four components of a wakeup. They add up to the time from `due` to `response`, always.
///
/// Where a mark is missing, or contradicts others, what it would have ended goes to the next
/// component: without an interrupt there is no interrupt latency, without the scheduler's entry the
/// scheduler latency runs to the response. An exit alone is the end of an interrupt that had begun
/// before the wakeup was due: all until then is handler.
pub fn components(marks: &Marks) -> Components {
    let marks = marks.consistent();
    let span = |from: MonoNs, to: MonoNs| to.since(from).0;
    let entry = marks.irq_entry.unwrap_or(marks.due);
    let exit = marks.irq_exit.unwrap_or(entry);
    let end = marks.sched_entry.unwrap_or(marks.response);
    Components {
        irq_latency_ns: span(marks.due, entry),
        handler_duration_ns: span(entry, exit),
        sched_latency_ns: span(exit, end),
        sched_duration_ns: marks.sched_entry.map(|entered| span(entered, marks.response)),
    }
}

/// The interrupt latency of a wakeup whose timer's interrupt came after it was due; of others there is none.
pub fn irq_latency_ns(marks: &Marks) -> Option<u64> {
    marks.consistent().irq_entry.map(|entry| entry.since(marks.due).0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn marks(due: u64, seen: [Option<u64>; 4], response: u64) -> Marks {
        let [irq_entry, irq_exit, sched_entry, switch_in] = seen.map(|at| at.map(MonoNs));
        let (due, response) = (MonoNs(due), MonoNs(response));
        Marks { due, irq_entry, irq_exit, sched_entry, switch_in, response }
    }

    /// The components of a wakeup that was due at 100 and answered at 200.
    #[track_caller]
    fn check(seen: [Option<u64>; 4], want: (u64, u64, u64, Option<u64>)) {
        let got = components(&marks(100, seen, 200));
        let got = (
            got.irq_latency_ns,
            got.handler_duration_ns,
            got.sched_latency_ns,
            got.sched_duration_ns,
        );
        assert_eq!(got, want, "{seen:?}");
        let irq_latency = irq_latency_ns(&marks(100, seen, 200));
        assert_eq!(irq_latency.unwrap_or(0), want.0, "{seen:?}");
    }

    #[test]
    fn marks_part_the_wakeup() {
        check([Some(110), Some(130), Some(160), Some(170)], (10, 20, 30, Some(40)));
        check([Some(110), Some(130), None, Some(170)], (10, 20, 70, None));
        check([None, None, Some(160), Some(170)], (0, 0, 60, Some(40)));
        check([None, Some(130), Some(160), None], (0, 30, 30, Some(40)));
        check([Some(110), None, Some(160), None], (10, 0, 50, Some(40)));
        check([None; 4], (0, 0, 100, None));
    }

    #[test]
    fn marks_that_cannot_be_are_not_seen() {
        // Before it was due, and after the response.
        check([Some(90), Some(130), Some(160), None], (0, 30, 30, Some(40)));
        check([Some(110), Some(130), Some(201), None], (10, 20, 70, None));
        // Either of the two may be the wrong one.
        check([Some(130), Some(110), Some(160), None], (0, 0, 60, Some(40)));
        // The exit contradicts two that agree with each other.
        check([Some(110), Some(180), Some(160), Some(170)], (10, 0, 50, Some(40)));
    }

    #[test]
    fn only_an_interrupt_that_came_after_the_expiry_has_a_latency() {
        let of = |seen| irq_latency_ns(&marks(100, seen, 200));
        assert_eq!(of([Some(110), Some(130), None, None]), Some(10));
        assert_eq!(of([Some(100), Some(130), None, None]), Some(0));
        assert_eq!(of([Some(90), Some(130), None, None]), None);
        assert_eq!(of([None, Some(130), None, None]), None);
    }

    proptest! {
        #[test]
        fn components_add_up_to_the_wakeup_latency(
            due in 0_u64..100,
            seen in prop::array::uniform4(prop::option::of(0_u64..200)),
            response in 0_u64..200,
        ) {
            let got = components(&marks(due, seen, response));
            prop_assert_eq!(got.total_ns(), response.saturating_sub(due));
        }

        #[test]
        fn marks_in_order_are_all_kept(mut at in prop::array::uniform6(any::<u64>())) {
            at.sort_unstable();
            let all = marks(at[0], [Some(at[1]), Some(at[2]), Some(at[3]), Some(at[4])], at[5]);
            prop_assert_eq!(all.consistent(), all);
        }
    }
}
