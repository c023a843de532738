//! What would let go of the CPU in the midst of a section: a preemption point, a lock that is broken.

use std::collections::BTreeMap;

use super::{At, Section, Stretch};

/// Where a section lets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// When, ns.
    pub at_ns: u64,
    /// Whether interrupts go on.
    pub irqs: bool,
    /// Whether the preempt count becomes zero.
    pub preempt: bool,
    /// If this came into another section: when that one goes on as recorded, ns. The cut lets that one go on earlier,
    /// and nobody else.
    pub back_ns: Option<u64>,
}

impl Cut {
    /// Where what came into a section goes back to it, ns.
    pub(super) fn back(at_ns: u64) -> Self {
        Self { at_ns, irqs: false, preempt: false, back_ns: Some(at_ns) }
    }

    /// Whether an interrupt comes here that was kept out by what goes on in `stretch`.
    pub(super) fn takes_interrupts(&self, stretch: &Stretch) -> bool {
        stretch.at != At::Urgent && (!stretch.irqs_off || self.irqs)
    }

    /// Whether the CPU is given up here by what goes on in `stretch`.
    pub(super) fn gives_up(&self, stretch: &Stretch) -> bool {
        self.takes_interrupts(stretch) && (!stretch.preempt_off || self.preempt)
    }

    /// Whether what goes on in `stretch` goes back here to the section that it came into, before its end.
    pub(super) fn goes_back(&self, stretch: &Stretch) -> bool {
        self.takes_interrupts(stretch) && self.back_ns.is_some_and(|back_ns| self.at_ns < back_ns)
    }
}

/// What lets go, and after how long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Breaks {
    /// The functions, by number, each with the longest time that it keeps the CPU, ns.
    pub functions: BTreeMap<u32, u64>,
    /// The longest time of all sections, ns.
    pub limit_ns: Option<u64>,
}

impl Breaks {
    /// How often `sections` let go at most. Each time takes memory.
    pub fn count(&self, sections: &[Section]) -> u64 {
        let times = |section: &Section| {
            let every_ns = self.function_ns(section).into_iter().chain(self.limit_ns(section));
            every_ns.min().map_or(0, |every_ns| section.ns().saturating_sub(1) / every_ns)
        };
        sections.iter().fold(0, |sum: u64, section| sum.saturating_add(times(section)))
    }

    /// How long a section runs itself before a function of it lets go, ns.
    fn function_ns(&self, section: &Section) -> Option<u64> {
        let own = section.functions.iter().flatten().filter_map(|id| self.functions.get(id));
        own.copied().min().map(|ns| ns.max(1))
    }

    /// How long a section lasts at most, ns; with all that comes into it, so what comes into it has no limit of its own.
    fn limit_ns(&self, section: &Section) -> Option<u64> {
        self.limit_ns.filter(|_| !section.is_within).map(|ns| ns.max(1))
    }

    /// When a section lets go, ns, in order.
    fn moments<'a>(&self, section: &'a Section) -> impl Iterator<Item = u64> + 'a {
        let (function_ns, limit_ns) = (self.function_ns(section), self.limit_ns(section));
        let next = move |at_ns: u64| {
            let by_function = function_ns.map(|own_ns| section.after(at_ns, own_ns));
            let by_limit = limit_ns.map(|all_ns| at_ns.saturating_add(all_ns));
            let next_ns = by_function.into_iter().chain(by_limit).min();
            next_ns.filter(|next_ns| *next_ns < section.to_ns)
        };
        std::iter::successors(next(section.from_ns), move |at_ns| next(*at_ns))
    }

    /// Whether a section that is broken lets go at a moment at which something else does.
    fn lets_go_with(&self, section: &Section, at_ns: u64) -> bool {
        at_ns < section.to_ns
            && (self.limit_ns(section).is_some() || !section.is_interrupted_at(at_ns))
    }
}

/// The moments at which `sections`, in order of their beginnings, let go. A section of both kinds at once,
/// as of a lock that turns interrupts off, lets go of both.
pub fn cuts(sections: &[Section], breaks: &Breaks) -> Vec<Cut> {
    let broken: Vec<&Section> =
        sections.iter().filter(|section| breaks.moments(section).next().is_some()).collect();
    let mut cuts: Vec<Cut> = Vec::new();
    for section in &broken {
        let irqs = section.irqs && !section.is_within;
        let preempt = !section.irqs && !section.is_within;
        let back_ns = section.is_within.then_some(section.to_ns);
        let moments = breaks.moments(section);
        cuts.extend(moments.map(|at_ns| Cut { at_ns, irqs, preempt, back_ns }));
    }
    cuts.sort_by_key(|cut| cut.at_ns);
    // Whoever lets go of one lets go of what else it broke, as spin_unlock_irqrestore does.
    for kind in [true, false] {
        let outer = broken.iter().filter(|section| section.irqs == kind && !section.is_within);
        let (mut outer, mut last) = (outer.peekable(), None);
        for cut in &mut cuts {
            while let Some(section) = outer.next_if(|section| section.from_ns < cut.at_ns) {
                last = Some(section);
            }
            let is_in = last.is_some_and(|section| breaks.lets_go_with(section, cut.at_ns));
            match kind {
                true => cut.irqs |= is_in,
                false => cut.preempt |= is_in,
            }
        }
    }
    // Where what came in goes back, nothing lets go, but a replay has to know how long it would take from there.
    let within = broken.iter().filter(|section| section.is_within);
    let backs = within.map(|section| Cut::back(section.to_ns));
    let mut all: Vec<Cut> = backs.chain(cuts).collect();
    all.sort_by_key(|cut| cut.at_ns);
    all
}

#[cfg(test)]
mod tests {
    use super::super::section::tests::{nested, of as section};
    use super::*;

    #[track_caller]
    fn check(
        sections: &[Section],
        functions: &[(u32, u64)],
        limit_ns: Option<u64>,
        want: &[(u64, bool, bool)],
    ) {
        let breaks = Breaks { functions: functions.iter().copied().collect(), limit_ns };
        let cuts = cuts(sections, &breaks);
        let got: Vec<_> = cuts.iter().map(|cut| (cut.at_ns, cut.irqs, cut.preempt)).collect();
        assert_eq!(got, want);
    }

    #[test]
    fn a_function_lets_go_so_often() {
        let one = [section(true, 100, 400, 7)];
        check(&one, &[(7, 100)], None, &[(200, true, false), (300, true, false)]);
        check(&one, &[(8, 100)], None, &[]);
        check(&one, &[(7, 300)], None, &[]);
        check(&one, &[(8, 10)], Some(200), &[(300, true, false)]);
        check(&one, &[(7, 150)], Some(200), &[(250, true, false)]);
    }

    #[test]
    fn a_long_section_lets_go_to_its_end() {
        let sections = [section(true, 0, 3_000_000, 7), section(false, 0, 40, 8)];
        let breaks = Breaks { functions: [(7, 1)].into(), limit_ns: None };
        let cuts = cuts(&sections, &breaks);
        assert_eq!(cuts.last().map(|cut| cut.at_ns), Some(2_999_999));
        assert_eq!(breaks.count(&sections), cuts.len() as u64);
        let limited = Breaks { limit_ns: Some(13), ..Breaks::default() };
        assert_eq!(limited.count(&sections[1..]), 3);
        let softirq = Section { is_within: true, ..sections[1].clone() };
        assert_eq!(limited.count(&[softirq]), 0, "it has no limit of its own");
    }

    #[test]
    fn a_lock_that_turns_interrupts_off_lets_go_of_both() {
        let both = [section(true, 100, 400, 7), section(false, 110, 390, 7)];
        check(&both, &[(7, 200)], None, &[(300, true, true), (310, true, true)]);
        // Who holds the outer section is not broken.
        let other = [section(false, 50, 900, 1), section(true, 100, 400, 7)];
        check(&other, &[(7, 200)], None, &[(300, true, false)]);
        check(&other, &[(1, 500), (7, 200)], None, &[(300, true, true), (550, false, true)]);
    }

    #[test]
    fn what_comes_into_a_section_lets_go_by_itself() {
        // A softirq of 200 ns in a section whose own 100 ns are broken up; and in one of interrupts too.
        let both = nested(section(false, 100, 400, 1), section(false, 150, 350, 2));
        check(&both, &[(1, 60)], None, &[(360, false, true)]);
        check(&both, &[(2, 150)], None, &[(300, false, false), (350, false, false)]);
        // It does not let go of the section that it came into, though that is broken up as well.
        let want = [(300, false, false), (350, false, false), (360, false, true)];
        check(&both, &[(1, 60), (2, 150)], None, &want);
        let back = cuts(&both, &Breaks { functions: [(2, 150)].into(), limit_ns: None });
        assert_eq!(back.iter().map(|cut| cut.back_ns).collect::<Vec<_>>(), [Some(350); 2]);
        // A limit is of all that lasts, whatever came in; and after it the function has its time again.
        check(&both, &[], Some(120), &[(220, false, true), (340, false, true)]);
        check(&both, &[(1, 60)], Some(255), &[(355, false, true)]);
        check(&both, &[(1, 55)], Some(200), &[(300, false, true)]);
        check(
            &both,
            &[(1, 45)],
            Some(200),
            &[(145, false, true), (345, false, true), (395, false, true)],
        );
        let locked = [both[0].clone(), both[1].clone(), section(true, 200, 300, 3)];
        check(&locked, &[(1, 60), (3, 50)], None, &[(250, true, false), (360, false, true)]);
        check(&locked, &[(3, 50)], Some(290), &[(250, true, true), (390, false, true)]);
    }
}
