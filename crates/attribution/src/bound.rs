//! A bound on the scheduling latency, composed from the longest of each thing that can hold a
//! switch up, seen apart from each other.
//!
//! The composition is that of de Oliveira, Casini, de Oliveira and Cucinotta, "Demystifying the
//! Real-Time Linux Scheduling Latency" (ECRTS 2020). It is for the most urgent thread of a CPU, on
//! a kernel that is preemptible wherever it does not say otherwise.

use wakescope_core::explain::{Bound, Interference, Unsound, Variables, Work};

/// The search for a bound ends here, nanoseconds: interrupts take all the time there is.
const GIVE_UP_NS: u64 = 1_000_000_000;

/// Nor does it take more steps than this, of however few nanoseconds each.
const MOST_STEPS: u32 = 100_000;

/// What the composition rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)]
pub struct Premises {
    /// Whether beginnings and ends of all sections were seen, rather than only those that held up
    /// a late wakeup.
    pub edges_seen: bool,
    /// Whether all of the scheduler's time is seen, and not the switch alone.
    pub scheduler_seen: bool,
    /// Whether the kernel is preemptible wherever it does not say otherwise.
    pub full_preemption: bool,
    /// Whether softirqs and interrupt handlers run in threads, as tasks.
    pub threaded_interrupts: bool,
    /// Whether all interrupts are seen, with NMIs.
    pub interrupts_seen: bool,
    /// Whether it is about the most urgent thread of its CPU.
    pub most_urgent: bool,
    /// Whether the CPU is the kernel's own, with no hypervisor to take it away.
    pub own_cpu: bool,
}

/// Composes a bound. What was not seen counts as nothing, and the bound is unsound then.
pub fn bound(variables: &Variables, premises: &Premises) -> Bound {
    let interference_free_ns = interference_free(variables);
    Bound {
        variables: variables.clone(),
        interference_free_ns,
        bound_ns: sporadic(interference_free_ns, &variables.interrupts),
        unsound: reasons(variables, premises),
    }
}

/// A thread becomes ready in a section, or in the tail of the scheduler, never in both. Then comes
/// at most one way to the scheduler, and one pass through it. What the tracer takes comes on top.
fn interference_free(variables: &Variables) -> u64 {
    let or_zero = |ns: Option<u64>| ns.unwrap_or(0);
    let first = or_zero(variables.poid_ns).max(or_zero(variables.dst_ns));
    let then = [variables.delivery_ns, variables.paie_ns, variables.psd_ns, variables.tracer_ns];
    then.into_iter().map(or_zero).fold(first, u64::saturating_add)
}

/// The least time in which the section and all interrupts that can arrive meanwhile have their
/// turn, if each interrupt keeps its distances.
fn sporadic(interference_free_ns: u64, interrupts: &[Interference]) -> Option<u64> {
    // Some time passes before anything can be said to arrive.
    let mut window_ns = interference_free_ns.max(1);
    for _ in 0..MOST_STEPS {
        let next_ns = interrupts.iter().try_fold(interference_free_ns, |sum, interrupt| {
            sum.checked_add(interference_within(interrupt, window_ns)?)
        })?;
        if next_ns <= window_ns {
            return Some(next_ns);
        }
        if next_ns > GIVE_UP_NS {
            return None;
        }
        window_ns = next_ns;
    }
    None
}

/// The most that `interrupt` takes of `window_ns`; `None` if that is more than can be counted.
fn interference_within(interrupt: &Interference, window_ns: u64) -> Option<u64> {
    if interrupt.wcet_ns == 0 {
        return Some(0);
    }
    let arrivals = arrivals_within(interrupt, window_ns);
    let by_arrivals = arrivals.and_then(|arrivals| arrivals.checked_mul(interrupt.wcet_ns));
    let by_work = interrupt.work.iter().filter_map(|work| work_within(work, window_ns));
    by_arrivals.into_iter().chain(by_work).min()
}

/// How often `interrupt` can come within `window_ns`, of which the end is no part; `None` if there is no
/// end to it. What is known is how long so many arrivals take at the least; more of them take as
/// often that long.
fn arrivals_within(interrupt: &Interference, window_ns: u64) -> Option<u64> {
    let spans = || interrupt.miat_ns.into_iter().chain(interrupt.spans_ns.iter().copied());
    let Some(longest_ns) = spans().last() else { return Some(1) };
    let turns = window_ns.saturating_sub(1).checked_div(longest_ns)?;
    let rest_ns = window_ns - turns * longest_ns;
    let in_rest = 1 + spans().filter(|&span_ns| span_ns < rest_ns).count() as u64;
    (spans().count() as u64).checked_mul(turns)?.checked_add(in_rest)
}

/// The most that is taken of `window_ns`, of which stretches of the length of `work` make up so many.
fn work_within(work: &Work, window_ns: u64) -> Option<u64> {
    (work.within_ns > 0).then(|| window_ns.div_ceil(work.within_ns))?.checked_mul(work.most_ns)
}

fn reasons(variables: &Variables, premises: &Premises) -> Vec<Unsound> {
    let Variables { poid_ns, paie_ns, psd_ns, dst_ns, .. } = variables;
    let doubts = [
        (poid_ns.is_some() && !premises.edges_seen, Unsound::SectionsOfLateWakeups),
        (poid_ns.is_none(), Unsound::NoSection),
        (paie_ns.is_none(), Unsound::WayToSchedulerUnseen),
        (psd_ns.is_none() || !premises.scheduler_seen, Unsound::SchedulerUnseen),
        (dst_ns.is_none(), Unsound::LastSectionUnseen),
        (!premises.full_preemption, Unsound::NotFullyPreemptible),
        (!premises.threaded_interrupts, Unsound::SoftirqsNotThreaded),
        (!premises.interrupts_seen, Unsound::InterruptsUnseen),
        (!premises.most_urgent, Unsound::NotMostUrgent),
        (!premises.own_cpu, Unsound::Hypervisor),
    ];
    doubts.into_iter().filter(|doubt| doubt.0).map(|doubt| doubt.1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use wakescope_core::explain::Culprit;

    const SOUND: Premises = Premises {
        edges_seen: true,
        scheduler_seen: true,
        full_preemption: true,
        threaded_interrupts: true,
        interrupts_seen: true,
        most_urgent: true,
        own_cpu: true,
    };

    fn variables(ns: [u64; 4], interrupts: &[(u64, Option<u64>)]) -> Variables {
        let [poid_ns, paie_ns, psd_ns, dst_ns] = ns.map(Some);
        let interrupt = |&(wcet_ns, miat_ns)| Interference {
            culprit: Culprit::interrupt("irq"),
            wcet_ns,
            miat_ns,
            ..Interference::default()
        };
        let interrupts = interrupts.iter().map(interrupt).collect();
        Variables { poid_ns, paie_ns, psd_ns, dst_ns, interrupts, ..Variables::default() }
    }

    #[track_caller]
    fn check(ns: [u64; 4], interrupts: &[(u64, Option<u64>)], want: (u64, Option<u64>)) {
        let got = bound(&variables(ns, interrupts), &SOUND);
        assert_eq!((got.interference_free_ns, got.bound_ns), want);
        assert!(got.unsound.is_empty(), "{:?}", got.unsound);
    }

    #[test]
    fn bounds_are_composed() {
        // 20 µs and an interrupt of 3 µs each 10 µs: 20, 26, 29, and 29 again.
        check([20_000, 0, 0, 0], &[(3_000, Some(10_000))], (20_000, Some(29_000)));
        check([56_194, 5_167, 48_092, 45_883], &[], (109_453, Some(109_453)));
        check([45_883, 5_167, 48_092, 56_194], &[], (109_453, Some(109_453)));
        // One that came once comes once.
        check([20, 0, 0, 0], &[(3, None), (5, Some(1_000))], (20, Some(28)));
        check([0, 0, 0, 0], &[], (0, Some(0)));
        check([0, 0, 0, 0], &[(3, Some(10))], (0, Some(3)));
    }

    #[test]
    fn interrupts_that_leave_no_time_have_no_bound() {
        check([20, 0, 0, 0], &[(11, Some(10))], (20, None));
        check([1, 0, 0, 0], &[(1, Some(1))], (1, None));
        check([20, 0, 0, 0], &[(1, Some(0))], (20, None));
        check([20, 0, 0, 0], &[(0, Some(0))], (20, Some(20)));
        check([20, 0, 0, 0], &[(u64::MAX, Some(1))], (20, None));
        check([u64::MAX, 1, 1, 1], &[], (u64::MAX, Some(u64::MAX)));
    }

    fn distant(wcet_ns: u64, spans_ns: &[u64]) -> Interference {
        let miat_ns = spans_ns.first().copied();
        let spans_ns = spans_ns.iter().skip(1).copied().collect();
        Interference {
            culprit: Culprit::interrupt("irq"),
            wcet_ns,
            miat_ns,
            spans_ns,
            work: Vec::new(),
        }
    }

    #[test]
    fn arrivals_keep_all_their_distances() {
        let arrivals = |spans: &[u64], window| arrivals_within(&distant(1, spans), window);
        // Twice in a row, and then not for long.
        for (window, want) in
            [(0, 1), (1, 1), (2, 1), (3, 2), (100, 2), (101, 3), (102, 3), (103, 4), (201, 5)]
        {
            assert_eq!(arrivals(&[2, 100], window), Some(want), "{window}");
        }
        for (window, want) in [(1, 1), (10, 1), (11, 2), (20, 2), (21, 3), (1_000, 100)] {
            assert_eq!(arrivals(&[10], window), Some(want), "{window}");
        }
        assert_eq!(arrivals(&[], 1_000), Some(1));
        assert_eq!(arrivals(&[0], 1_000), None);
        // 3 µs, of which two come within 1 µs, but three never within 100 µs.
        let mut seen = variables([20_000, 0, 0, 0], &[]);
        seen.interrupts = vec![distant(3_000, &[1_000, 100_000])];
        assert_eq!(bound(&seen, &SOUND).bound_ns, Some(26_000));
        seen.delivery_ns = Some(2_000);
        assert_eq!(bound(&seen, &SOUND).bound_ns, Some(28_000));
    }

    #[test]
    fn the_least_of_what_is_known_to_be_most_counts() {
        // At their longest they would leave no time, but hardly any is so long.
        let mut seen = variables([20_000, 0, 0, 0], &[(3_000, Some(2_000))]);
        assert_eq!(bound(&seen, &SOUND).bound_ns, None);
        let work = |within_ns, most_ns| Work { within_ns, most_ns };
        seen.interrupts[0].work = vec![work(16_000, 5_000), work(64_000, 9_000), work(0, 0)];
        assert_eq!(bound(&seen, &SOUND).bound_ns, Some(29_000));
        seen.interrupts[0].work = vec![work(16_000, 4_000), work(64_000, 9_000)];
        assert_eq!(bound(&seen, &SOUND).bound_ns, Some(28_000));
        let other = Interference { work: vec![work(16_000, 6_000)], ..Interference::default() };
        seen.interrupts[0].worsen(&other);
        assert_eq!(seen.interrupts[0].work, [work(16_000, 6_000), work(64_000, 9_000)]);
    }

    #[test]
    fn the_worst_of_two_is_kept() {
        let check = |one: &[u64], other: &[u64], want: &[u64]| {
            let mut both = distant(5, one);
            both.worsen(&distant(7, other));
            assert_eq!(both, distant(7, want));
        };
        check(&[3, 9], &[4, 8, 20], &[3, 8, 20]);
        check(&[4, 8, 20], &[3], &[3, 8, 20]);
        check(&[], &[3, 9], &[3, 9]);
        check(&[3], &[], &[3]);
    }

    #[test]
    fn what_makes_a_bound_unsound_is_told() {
        let nothing = bound(&Variables::default(), &Premises::default());
        assert_eq!((nothing.interference_free_ns, nothing.bound_ns), (0, Some(0)));
        assert_eq!(nothing.unsound.len(), 9, "{:?}", nothing.unsound);
        let seen = variables([1, 1, 1, 1], &[]);
        let reasons = |premises: Premises| bound(&seen, &premises).unsound;
        let not_preemptible = reasons(Premises { full_preemption: false, ..SOUND });
        assert_eq!(not_preemptible, [Unsound::NotFullyPreemptible]);
        let stock = reasons(Premises { edges_seen: false, ..SOUND });
        assert_eq!(stock, [Unsound::SectionsOfLateWakeups]);
        let older = reasons(Premises { scheduler_seen: false, ..SOUND });
        assert_eq!(older, [Unsound::SchedulerUnseen]);
    }

    proptest! {
        #[test]
        fn no_stretch_of_arrivals_holds_more_than_their_distances_allow(
            gaps in prop::collection::vec(1_u64..50, 1..30),
            window in 0_u64..400,
        ) {
            let times: Vec<u64> = std::iter::once(0)
                .chain(gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }))
                .collect();
            let least = |n: usize| times.windows(n + 1).map(|w| w[n] - w[0]).min();
            let spans: Vec<u64> = (1..=8).map_while(least).collect();
            let most = times
                .iter()
                .map(|&from| times.iter().filter(|&&at| at >= from && at - from < window).count())
                .max();
            let allowed = arrivals_within(&distant(1, &spans), window);
            prop_assert!(allowed >= most.map(|most| most as u64));
        }

        #[test]
        fn a_bound_holds_all_that_can_arrive_within_it(
            ns in prop::array::uniform4(0_u64..100_000),
            interrupts in prop::collection::vec(
                (0_u64..5_000, prop::option::of(1_u64..100_000)), 0..5),
        ) {
            let variables = variables(ns, &interrupts);
            let got = bound(&variables, &SOUND);
            if let Some(bound_ns) = got.bound_ns {
                let arrivals = |t: Option<u64>| t.map_or(1, |t| bound_ns.max(1).div_ceil(t));
                let taken: u64 = interrupts.iter().map(|&(c, t)| arrivals(t) * c).sum();
                prop_assert!(bound_ns >= got.interference_free_ns + taken);
            }
        }
    }
}
