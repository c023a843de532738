//! Interrupts that come while a wakeup is on its way from where nothing holds it up any more to its program.

use std::borrow::Cow;

use super::own::{OwnWakeup, shortest_exit_ns, usual_handler_ns};
use super::{Course, Cut};

/// An interrupt, with the softirqs at its end and what came into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// When it came, ns.
    pub from_ns: u64,
    /// How long it took, ns.
    pub length_ns: u64,
}

/// The same interrupts, in order, without what is the probe's own: another wakeup has an interrupt of its own.
pub(super) fn of_others(mut all: Vec<Interrupt>, own: &[OwnWakeup]) -> Vec<Interrupt> {
    let (usual, exit) = (usual_handler_ns(own), shortest_exit_ns(own));
    let mut own = own.iter().peekable();
    for interrupt in &mut all {
        let to_ns = interrupt.from_ns.saturating_add(interrupt.length_ns);
        while own.next_if(|own| own.handled_ns < interrupt.from_ns).is_some() {}
        while let Some(own) = own.next_if(|own| own.handled_ns <= to_ns) {
            let less = own.handler_ns().min(usual) + exit;
            interrupt.length_ns = interrupt.length_ns.saturating_sub(less);
        }
    }
    all.retain(|interrupt| interrupt.length_ns > 0);
    all
}

/// The same interrupts with `cuts`, in order: where what they do lets go, softirqs at their ends for one, the CPU goes
/// back to what they came into. Where that is a section, the rest of the interrupt comes before.
pub(super) fn let_go<'a>(
    all: &'a [Interrupt],
    course: &Course,
    cuts: &[Cut],
) -> Cow<'a, [Interrupt]> {
    if cuts.is_empty() {
        return Cow::Borrowed(all);
    }
    let lets_go = |cut: &&Cut| {
        let stretch = course.at(cut.at_ns);
        stretch.is_some_and(|stretch| cut.gives_up(stretch) || cut.goes_back(stretch))
    };
    let mut cuts = cuts.iter().filter(lets_go).peekable();
    let shorter = |interrupt: &Interrupt| {
        let Interrupt { from_ns, length_ns } = *interrupt;
        while cuts.next_if(|cut| cut.at_ns <= from_ns).is_some() {}
        let length_ns = match cuts.peek().filter(|cut| cut.at_ns - from_ns < length_ns) {
            Some(Cut { at_ns, preempt: false, back_ns: Some(back_ns), .. }) => {
                length_ns.saturating_sub(back_ns - at_ns)
            }
            Some(cut) => cut.at_ns - from_ns,
            None => length_ns,
        };
        Interrupt { from_ns, length_ns }
    };
    all.iter().map(shorter).collect()
}

/// Those of `interrupts`, in order, that come on a way of `way_ns` that begins at `from_ns`.
pub(super) fn on_way(interrupts: &[Interrupt], from_ns: u64, way_ns: u64) -> &[Interrupt] {
    let first = interrupts.partition_point(|interrupt| interrupt.from_ns < from_ns);
    let mut way_ns = way_ns;
    let comes = |interrupt: &&Interrupt| {
        let comes = interrupt.from_ns - from_ns < way_ns;
        // Each makes it longer, so that more may come.
        way_ns = way_ns.saturating_add(interrupt.length_ns);
        comes
    };
    let count = interrupts[first..].iter().take_while(comes).count();
    &interrupts[first..first + count]
}

/// How long such a way takes with them, ns.
pub(super) fn interrupted(interrupts: &[Interrupt], from_ns: u64, way_ns: u64) -> u64 {
    let lengths = on_way(interrupts, from_ns, way_ns).iter().map(|interrupt| interrupt.length_ns);
    lengths.fold(way_ns, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::super::{At, Point, Stretch};
    use super::*;

    fn interrupt(from_ns: u64, length_ns: u64) -> Interrupt {
        Interrupt { from_ns, length_ns }
    }

    #[test]
    fn an_interrupt_ends_where_its_softirqs_let_go_or_with_the_rest_of_them() {
        let stretch = |from_ns, preempt_off| Stretch {
            from_ns,
            irqs_off: false,
            preempt_off,
            at: At::Kernel,
            task: 1,
            point: Point::None,
            counts: true,
            is_own: false,
        };
        let course = Course { stretches: vec![stretch(0, false), stretch(10, true)], end_ns: 400 };
        let cut = |at_ns, preempt, back_ns| Cut { at_ns, irqs: false, preempt, back_ns };
        let all = [interrupt(20, 100), interrupt(200, 50)];
        let lengths = |cuts: &[Cut]| {
            let shorter = let_go(&all, &course, cuts);
            [shorter[0].length_ns, shorter[1].length_ns]
        };
        assert_eq!(lengths(&[]), [100, 50]);
        assert_eq!(lengths(&[cut(50, true, None), cut(60, true, None)]), [30, 50]);
        assert_eq!(lengths(&[cut(50, false, None)]), [100, 50], "preemption stays off");
        // What comes behind the softirqs is left; their end alone shortens nothing.
        let back = |at_ns| cut(at_ns, false, Some(110));
        assert_eq!(lengths(&[back(50), back(60), back(110)]), [100 - 60, 50]);
        assert_eq!(lengths(&[back(110)]), [100, 50]);
        // All that it came into lets go as well.
        assert_eq!(lengths(&[cut(50, true, Some(110))]), [30, 50]);
    }

    #[test]
    fn a_way_is_longer_by_what_comes_on_it() {
        let all = [interrupt(100, 30), interrupt(150, 5), interrupt(400, 1)];
        for (from_ns, way_ns, want) in [
            // Before it; it comes with the end; it comes at once.
            (80, 20, 20),
            (80, 21, 51),
            (100, 10, 40),
            (101, 10, 10),
            // The first makes the way so long that the second comes on it as well.
            (90, 31, 66),
            (90, 30, 60),
            (500, 10, 10),
        ] {
            assert_eq!(interrupted(&all, from_ns, way_ns), want, "{from_ns} {way_ns}");
        }
        assert_eq!(interrupted(&[], 0, 10), 10);
    }

    #[test]
    fn what_is_the_probes_own_of_an_interrupt_others_do_not_meet() {
        let own = |entered_ns, handled_ns| OwnWakeup {
            entered_ns,
            handled_ns,
            left_ns: handled_ns + 5,
            ran_ns: Some((handled_ns + 5, handled_ns + 10)),
            interrupted_ns: 0,
        };
        // Each takes 20 ns and 5 to the scheduler, but one met a tick of 40 ns.
        let wakeups = [own(100, 120), own(200, 260), own(300, 320)];
        let all = [(50, 9), (100, 25), (200, 65), (300, 25), (330, 7)];
        let all = all.map(|(from_ns, length_ns)| interrupt(from_ns, length_ns)).to_vec();
        assert_eq!(
            of_others(all.clone(), &wakeups),
            [interrupt(50, 9), interrupt(200, 40), interrupt(330, 7)]
        );
        assert_eq!(of_others(all.clone(), &[]), all);
    }
}
