//! What would let go of the CPU in the midst of a section: a preemption point, a lock that is broken.

use std::collections::BTreeMap;

use super::{At, Stretch};

/// A section with interrupts or preemption off, and the functions at its ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Whether interrupts are off in it, and not preemption.
    pub irqs: bool,
    /// Where it begins, ns.
    pub from_ns: u64,
    /// Where it ends, ns.
    pub to_ns: u64,
    /// The number of the function that it is named after; `None` where nobody could break it.
    pub owner: Option<u32>,
    /// Numbers of the functions in which it begins and ends, and of what called these.
    pub functions: [Option<u32>; 4],
}

/// Where a section lets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// When, ns.
    pub at_ns: u64,
    /// Whether interrupts go on.
    pub irqs: bool,
    /// Whether the preempt count becomes zero.
    pub preempt: bool,
}

impl Cut {
    /// Whether an interrupt comes here that was kept out by what goes on in `stretch`.
    pub(super) fn takes_interrupts(&self, stretch: &Stretch) -> bool {
        stretch.at != At::Urgent && (!stretch.irqs_off || self.irqs)
    }

    /// Whether the CPU is given up here by what goes on in `stretch`.
    pub(super) fn gives_up(&self, stretch: &Stretch) -> bool {
        self.takes_interrupts(stretch) && (!stretch.preempt_off || self.preempt)
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
    /// How often `sections` let go. Each time takes memory.
    pub fn count(&self, sections: &[Section]) -> u64 {
        let of = |section| self.longest_ns(section).map_or(0, |every| times(section, every));
        sections.iter().fold(0, |sum: u64, section| sum.saturating_add(of(section)))
    }

    /// How long a section lasts at most; `None` if it is left as it is.
    fn longest_ns(&self, section: &Section) -> Option<u64> {
        let own = section.functions.iter().flatten().filter_map(|id| self.functions.get(id));
        own.copied().chain(self.limit_ns).min().map(|ns| ns.max(1))
    }
}

/// How often a section lets go, once each time that it has lasted for `every` ns.
fn times(section: &Section, every: u64) -> u64 {
    section.to_ns.saturating_sub(section.from_ns).saturating_sub(1) / every
}

/// The moments at which `sections`, in order of their beginnings, let go. A section of both kinds at once,
/// as of a lock that turns interrupts off, lets go of both.
pub fn cuts(sections: &[Section], breaks: &Breaks) -> Vec<Cut> {
    let mut cuts: Vec<Cut> = Vec::new();
    let broken: Vec<(&Section, u64)> = sections
        .iter()
        .filter_map(|section| Some((section, breaks.longest_ns(section)?)))
        .filter(|(section, every)| section.to_ns.saturating_sub(section.from_ns) > *every)
        .collect();
    for &(section, every) in &broken {
        for number in 1..=times(section, every) {
            let at_ns = section.from_ns + number * every;
            cuts.push(Cut { at_ns, irqs: section.irqs, preempt: !section.irqs });
        }
    }
    cuts.sort_unstable_by_key(|cut| cut.at_ns);
    // Whoever lets go of one lets go of what else it broke, as spin_unlock_irqrestore does.
    for kind in [true, false] {
        let mut open = broken.iter().filter(|(section, _)| section.irqs == kind).peekable();
        let mut last: Option<u64> = None;
        for cut in &mut cuts {
            while let Some((section, _)) = open.next_if(|(section, _)| section.from_ns < cut.at_ns)
            {
                last = last.max(Some(section.to_ns));
            }
            let is_in = last.is_some_and(|to_ns| cut.at_ns < to_ns);
            match kind {
                true => cut.irqs |= is_in,
                false => cut.preempt |= is_in,
            }
        }
    }
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(irqs: bool, from_ns: u64, to_ns: u64, function: u32) -> Section {
        let functions = [None, Some(function), None, None];
        Section { irqs, from_ns, to_ns, owner: Some(function), functions }
    }

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
        assert_eq!(Breaks { limit_ns: Some(13), ..Breaks::default() }.count(&sections[1..]), 3);
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
}
