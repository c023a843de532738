//! The longest sections that late wakeups show.

use super::record::{Cause, Sections, Share};

/// The longest sections in the shares of wakeups. Only those that held a wakeup up are in them, and
/// of those only what came after the wakeup was due: the longest are at least so long.
pub fn sections<'a>(blames: impl IntoIterator<Item = &'a [Share]>) -> Sections {
    let mut sections = Sections::default();
    for share in blames.into_iter().flatten() {
        let longest = match share.cause {
            Cause::IrqOff => &mut sections.irq_off,
            Cause::PreemptOff | Cause::NoPreemptionPoint => &mut sections.preempt_off,
            _ => continue,
        };
        if longest.as_ref().is_none_or(|longest| share.ns > longest.ns) {
            *longest = Some(share.clone());
        }
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_of_each_kind_is_kept() {
        let share = |cause, ns| Share { cause, ns, ..Share::default() };
        let first = [share(Cause::IrqOff, 5), share(Cause::PreemptOff, 7)];
        let second = [share(Cause::NoPreemptionPoint, 9), share(Cause::IrqOff, 4)];
        let third = [share(Cause::Irq, 100), share(Cause::PreemptOff, 9)];
        let all = sections([&first[..], &second[..], &third[..]]);
        let want = Sections {
            exact: false,
            irq_off: Some(first[0].clone()),
            preempt_off: Some(second[0].clone()),
        };
        assert_eq!(all, want);
        assert_eq!(sections([]), Sections::default());
    }
}
