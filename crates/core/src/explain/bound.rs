//! A bound on the scheduling latency, composed from the longest of each thing that can hold a
//! switch up, seen apart from each other.
//!
//! The composition is that of de Oliveira, Casini, de Oliveira and Cucinotta, "Demystifying the
//! Real-Time Linux Scheduling Latency" (ECRTS 2020). It is for the most urgent thread of a CPU, on
//! a kernel that is preemptible wherever it does not say otherwise.

use serde::{Deserialize, Serialize};

use super::cause::Cause;
use super::culprit::Culprit;

/// The search for a bound ends here, nanoseconds: interrupts take all the time there is.
const GIVE_UP_NS: u64 = 1_000_000_000;

/// Nor does it take more steps than this, of however few nanoseconds each.
const MOST_STEPS: u32 = 100_000;

/// The longest of each kind of section, nanoseconds, without the interrupts that fell into it.
/// `None` where that was not seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variables {
    /// What the interrupt of a timer takes to arrive where nothing holds it off. A timer's wakeup
    /// begins when the timer is due, and not only when its interrupt is there.
    #[serde(default)]
    pub delivery_ns: Option<u64>,
    /// Preemption or interrupts off for another reason than to schedule.
    pub poid_ns: Option<u64>,
    /// Both on, though it was already asked to reschedule, until the scheduler was called.
    pub paie_ns: Option<u64>,
    /// Preemption off in order to schedule.
    pub psd_ns: Option<u64>,
    /// From where the scheduler last turned interrupts off to its return: it no longer notices who
    /// becomes ready.
    pub dst_ns: Option<u64>,
    /// The interrupts of the CPU, NMIs among them.
    pub interrupts: Vec<Interference>,
}

/// An interrupt that takes time from whatever it falls into.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interference {
    /// Which one: an interrupt, a softirq or a handler of NMIs.
    #[serde(flatten)]
    pub culprit: Culprit,
    /// The longest that its handler took, nanoseconds.
    pub wcet_ns: u64,
    /// The shortest time from one arrival to the next, nanoseconds; `None` if it came only once.
    pub miat_ns: Option<u64>,
    /// The shortest time from one arrival to the second one after it, to the third, and so on: an
    /// interrupt that comes twice in a row now and then does not come that often all the time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spans_ns: Vec<u64>,
    /// The most that those took that came within stretches of several lengths: not each one takes
    /// as long as the longest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub work: Vec<Work>,
}

/// The most that an interrupt took of any stretch of time of one length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// The length of the stretch, nanoseconds.
    pub within_ns: u64,
    /// What was taken, nanoseconds.
    pub most_ns: u64,
}

/// What the composition rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)]
pub struct Premises {
    /// Whether beginnings and ends of all sections were seen, rather than only those that held up
    /// a late wakeup.
    pub edges_seen: bool,
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

/// A bound, and what it is worth.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    /// What it is composed from.
    pub variables: Variables,
    /// The scheduling latency where no interrupt falls into it, nanoseconds.
    pub interference_free_ns: u64,
    /// With as many interrupts as can fall into it, nanoseconds; `None` if there is no bound below
    /// a second.
    pub bound_ns: Option<u64>,
    /// Why a longer latency is possible all the same. Empty if the bound is sound as far as what was
    /// seen is the worst.
    pub unsound: Vec<Unsound>,
}

/// Why a longer latency than the bound is possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Unsound {
    /// Sections with interrupts or preemption off are observed only where they delayed a late wakeup:
    /// longer ones may exist.
    SectionsOfLateWakeups,
    /// No section with interrupts or preemption off was observed.
    NoSection,
    /// The time from a reschedule request to the scheduler is not observed.
    WayToSchedulerUnseen,
    /// The scheduler's own time with preemption off is not observed.
    SchedulerUnseen,
    /// The scheduler's last section with interrupts off is not observed.
    LastSectionUnseen,
    /// The kernel's code may run for any time even with preemption enabled.
    NotFullyPreemptible,
    /// Softirqs may delay the thread one after another.
    SoftirqsNotThreaded,
    /// Not all interrupts are observed.
    InterruptsUnseen,
    /// The thread may wait for tasks of higher priority.
    NotMostUrgent,
    /// A hypervisor may take the CPU at any time.
    Hypervisor,
    /// A wakeup exceeded the bound.
    Exceeded {
        /// The cause that took most of it of those that the bound does not include, if that is known.
        cause: Option<Cause>,
    },
    /// What this version does not know.
    #[serde(other)]
    Unknown,
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
/// at most one way to the scheduler, and one pass through it.
fn interference_free(variables: &Variables) -> u64 {
    let or_zero = |ns: Option<u64>| ns.unwrap_or(0);
    let first = or_zero(variables.poid_ns).max(or_zero(variables.dst_ns));
    let then = [variables.delivery_ns, variables.paie_ns, variables.psd_ns];
    then.into_iter().map(or_zero).fold(first, u64::saturating_add)
}

/// The least time in which the section and all interrupts that can arrive meanwhile have their
/// turn, if each interrupt keeps its distances.
fn sporadic(interference_free_ns: u64, interrupts: &[Interference]) -> Option<u64> {
    // Some time passes before anything can be said to arrive.
    let mut window_ns = interference_free_ns.max(1);
    for _ in 0..MOST_STEPS {
        let next_ns = interrupts.iter().try_fold(interference_free_ns, |sum, interrupt| {
            sum.checked_add(interrupt.interference_within(window_ns)?)
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

impl Interference {
    /// Takes over from `other` what is worse.
    pub fn worsen(&mut self, other: &Self) {
        self.wcet_ns = self.wcet_ns.max(other.wcet_ns);
        self.miat_ns = self.miat_ns.into_iter().chain(other.miat_ns).min();
        let both = self.spans_ns.len().min(other.spans_ns.len());
        let longer = if other.spans_ns.len() > both { &other.spans_ns } else { &self.spans_ns };
        let rest = longer[both..].to_vec();
        self.spans_ns.truncate(both);
        self.spans_ns
            .iter_mut()
            .zip(&other.spans_ns)
            .for_each(|(one, &span)| *one = span.min(*one));
        self.spans_ns.extend(rest);
        self.work.iter_mut().zip(&other.work).for_each(|(one, other)| {
            one.most_ns = one.most_ns.max(other.most_ns);
        });
    }

    /// The most that it takes of `window_ns`; `None` if that is more than can be counted.
    fn interference_within(&self, window_ns: u64) -> Option<u64> {
        if self.wcet_ns == 0 {
            return Some(0);
        }
        let arrivals = self.arrivals_within(window_ns);
        let by_arrivals = arrivals.and_then(|arrivals| arrivals.checked_mul(self.wcet_ns));
        let by_work = self.work.iter().filter_map(|work| work.within(window_ns));
        by_arrivals.into_iter().chain(by_work).min()
    }

    /// How often it can come within `window_ns`, of which the end is no part; `None` if there is no
    /// end to it. What is known is how long so many arrivals take at the least; more of them take as
    /// often that long.
    fn arrivals_within(&self, window_ns: u64) -> Option<u64> {
        let spans = || self.miat_ns.into_iter().chain(self.spans_ns.iter().copied());
        let Some(longest_ns) = spans().last() else { return Some(1) };
        let turns = window_ns.saturating_sub(1).checked_div(longest_ns)?;
        let rest_ns = window_ns - turns * longest_ns;
        let in_rest = 1 + spans().filter(|&span_ns| span_ns < rest_ns).count() as u64;
        (spans().count() as u64).checked_mul(turns)?.checked_add(in_rest)
    }
}

impl Work {
    /// The most that is taken of `window_ns`, of which stretches of this length make up so many.
    fn within(&self, window_ns: u64) -> Option<u64> {
        (self.within_ns > 0).then(|| window_ns.div_ceil(self.within_ns))?.checked_mul(self.most_ns)
    }
}

fn reasons(variables: &Variables, premises: &Premises) -> Vec<Unsound> {
    let Variables { poid_ns, paie_ns, psd_ns, dst_ns, .. } = variables;
    let doubts = [
        (poid_ns.is_some() && !premises.edges_seen, Unsound::SectionsOfLateWakeups),
        (poid_ns.is_none(), Unsound::NoSection),
        (paie_ns.is_none(), Unsound::WayToSchedulerUnseen),
        (psd_ns.is_none(), Unsound::SchedulerUnseen),
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

    const SOUND: Premises = Premises {
        edges_seen: true,
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
        Variables { delivery_ns: None, poid_ns, paie_ns, psd_ns, dst_ns, interrupts }
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
        let arrivals = |spans: &[u64], window| distant(1, spans).arrivals_within(window);
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
            let allowed = distant(1, &spans).arrivals_within(window);
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
