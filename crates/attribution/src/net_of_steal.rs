//! Lateness without the time that the hypervisor stole.
//!
//! Only what the CPU's clock of stolen time says is taken off. Steal that is concluded from events stays
//! in the ranking: it is a bound, and what it covers may have been something else.

use wakescope_core::explain::{Cause, Share};

/// Which lateness of wakeups counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lateness {
    /// From when they were due to their response.
    Whole,
    /// The same without stolen time.
    NetOfSteal,
}

impl Lateness {
    /// The lateness of a wakeup that was `whole_ns` late, of which so much was stolen.
    pub(crate) fn of(self, whole_ns: u64, stolen_ns: u64) -> u64 {
        match self {
            Self::Whole => whole_ns,
            Self::NetOfSteal => whole_ns.saturating_sub(stolen_ns),
        }
    }

    /// What does not count of the stolen time.
    pub(crate) fn left_out(self, stolen_ns: u64) -> u64 {
        match self {
            Self::Whole => 0,
            Self::NetOfSteal => stolen_ns,
        }
    }
}

/// The shares of a wakeup without the `stolen_ns` that its CPU's clock says were stolen; none is zero.
/// They add up to what remains of its lateness.
pub fn without_stolen(blame: &[Share], stolen_ns: u64) -> Vec<Share> {
    let mut shares = blame.to_vec();
    take_off(shares.iter_mut().map(|share| (share.cause, &mut share.ns)), stolen_ns);
    shares.retain(|share| share.ns > 0);
    shares.sort_by_key(|share| std::cmp::Reverse(share.ns));
    shares
}

/// Takes stolen time off `shares`: off steal first. The clock may say more than that share has, because
/// blame gives it no time in which an NMI or the tracer had the CPU: those are next. Then come what is
/// unexplained and the longest, as where blame gives stolen time away.
pub(crate) fn take_off<'s>(shares: impl Iterator<Item = (Cause, &'s mut u64)>, mut stolen_ns: u64) {
    if stolen_ns == 0 {
        return;
    }
    let mut shares: Vec<(Cause, &mut u64)> = shares.collect();
    let place = |cause| match cause {
        Cause::Steal => 0,
        Cause::Tracer | Cause::Nmi => 1,
        Cause::Unexplained => 2,
        _ => 3,
    };
    shares.sort_by_key(|(cause, ns)| (place(*cause), std::cmp::Reverse(**ns)));
    for (_, ns) in shares {
        let taken = stolen_ns.min(*ns);
        *ns -= taken;
        stolen_ns -= taken;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::share;
    use proptest::prelude::*;

    #[track_caller]
    fn check(blame: &[(Cause, u64)], stolen_ns: u64, want: &[(Cause, u64)]) {
        let blame: Vec<Share> = blame.iter().map(|&(cause, ns)| share(cause, "f", ns)).collect();
        let got = without_stolen(&blame, stolen_ns);
        assert_eq!(got.iter().map(|s| (s.cause, s.ns)).collect::<Vec<_>>(), want);
    }

    #[test]
    fn stolen_time_is_taken_off_steal_and_then_where_blame_would_put_it() {
        use Cause::{IrqOff, Nmi, Softirq, Steal, Tracer, Unexplained};
        let all = [(IrqOff, 50), (Steal, 40), (Softirq, 30), (Unexplained, 20), (Tracer, 10)];
        check(&all, 0, &all);
        // Steal that no clock tells of stays.
        check(
            &all,
            15,
            &[(IrqOff, 50), (Softirq, 30), (Steal, 25), (Unexplained, 20), (Tracer, 10)],
        );
        check(&all, 40, &[(IrqOff, 50), (Softirq, 30), (Unexplained, 20), (Tracer, 10)]);
        check(&all, 45, &[(IrqOff, 50), (Softirq, 30), (Unexplained, 20), (Tracer, 5)]);
        check(&all, 60, &[(IrqOff, 50), (Softirq, 30), (Unexplained, 10)]);
        check(&all, 100, &[(Softirq, 30), (IrqOff, 20)]);
        check(&all, 150, &[]);
        check(&[(Nmi, 9), (Tracer, 7), (IrqOff, 5)], 12, &[(IrqOff, 5), (Tracer, 4)]);
        check(&all, 151, &[]);
    }

    proptest! {
        #[test]
        fn what_remains_adds_up_to_the_rest_of_the_lateness(
            drawn in prop::collection::vec((0_usize..16, 1_u64..1_000_000), 0..12),
            part in 0_u64..=100,
        ) {
            let blame: Vec<Share> =
                drawn.iter().map(|&(cause, ns)| share(Cause::ALL[cause], "f", ns)).collect();
            let late_ns: u64 = blame.iter().map(|share| share.ns).sum();
            let stolen_ns = late_ns * part / 100;
            let rest = without_stolen(&blame, stolen_ns);
            let rest_ns: u64 = rest.iter().map(|share| share.ns).sum();
            prop_assert_eq!(rest_ns, Lateness::NetOfSteal.of(late_ns, stolen_ns));
            prop_assert!(rest.iter().all(|share| share.ns > 0));
            // Nothing but steal is taken off as long as that suffices.
            let of_steal = |shares: &[Share]| -> u64 {
                shares.iter().filter(|s| s.cause == Cause::Steal).map(|s| s.ns).sum()
            };
            prop_assert_eq!(of_steal(&rest), of_steal(&blame).saturating_sub(stolen_ns));
        }
    }
}
