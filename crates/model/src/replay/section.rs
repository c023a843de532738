//! Sections with interrupts or preemption off, and what comes into them.

use std::ops::Range;

use wakescope_core::scope::edges::PreemptCount;

/// A section with interrupts or preemption off, and the functions at its ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// When interrupts and softirqs ran that came into it, in order, ns: each is a section of its own.
    pub came_in: Vec<Range<u64>>,
    /// Whether it came into another one, which goes on behind it.
    pub is_within: bool,
}

impl Section {
    /// How long it lasts, with all that comes into it, ns.
    pub fn ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }

    /// How long it lasts without what comes into it, ns.
    pub fn own_ns(&self) -> u64 {
        self.own_ns_in(self.from_ns..self.to_ns)
    }

    /// How long it lasts between two times, with all that comes into it, ns.
    pub(super) fn ns_in(&self, times: &Range<u64>) -> u64 {
        common_ns(&(self.from_ns..self.to_ns), times)
    }

    /// How long it lasts between two times without what comes into it, ns.
    pub(super) fn own_ns_in(&self, times: Range<u64>) -> u64 {
        let others = self.came_in.iter().map(|other| common_ns(other, &times));
        self.ns_in(&times).saturating_sub(others.sum())
    }

    /// When `own_ns` of its own have passed since a moment of it, ns. If that is when something comes into it, the end
    /// of that.
    pub(super) fn after(&self, moment_ns: u64, own_ns: u64) -> u64 {
        let (mut at_ns, mut left_ns) = (moment_ns, own_ns);
        let next = self.came_in.partition_point(|other| other.end <= moment_ns);
        for other in &self.came_in[next..] {
            let until_ns = other.start.saturating_sub(at_ns);
            if left_ns < until_ns {
                break;
            }
            (at_ns, left_ns) = (other.end, left_ns - until_ns);
        }
        at_ns.saturating_add(left_ns)
    }

    /// Whether what runs at this moment came into it.
    pub(super) fn is_interrupted_at(&self, at_ns: u64) -> bool {
        let next = self.came_in.partition_point(|other| other.end <= at_ns);
        self.came_in.get(next).is_some_and(|other| other.contains(&at_ns))
    }
}

/// How long two times have in common, ns.
fn common_ns(one: &Range<u64>, other: &Range<u64>) -> u64 {
    one.end.min(other.end).saturating_sub(one.start.max(other.start))
}

/// What runs on a CPU. Each can come into those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Context {
    Task,
    Softirq,
    Interrupt,
    Nmi,
}

impl Context {
    pub(super) fn of(count: PreemptCount) -> Self {
        match count {
            count if count.in_nmi() => Self::Nmi,
            count if count.in_interrupt() => Self::Interrupt,
            count if count.in_softirq() => Self::Softirq,
            _ => Self::Task,
        }
    }

    /// The same as far as it can come in where interrupts are off.
    pub(super) fn with_irqs_off(self) -> Self {
        if self == Self::Nmi { self } else { Self::Task }
    }
}

/// A place at which a section begins or ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) at_ns: u64,
    pub(super) owner: Option<u32>,
    /// The function, and what called it.
    pub(super) functions: [Option<u32>; 2],
}

/// The sections that are open: one, and those that came into it, each into the one before. All are with preemption
/// off, or all with interrupts off.
#[derive(Default)]
pub(super) struct Open {
    irqs: bool,
    sections: Vec<(Context, Section)>,
}

impl Open {
    pub(super) fn of_irqs() -> Self {
        Self { irqs: true, ..Self::default() }
    }

    /// Goes on to `place`. `was_off` and `is_off`: whether interrupts, or preemption, are off before it and behind it.
    /// `context` runs behind it. Sections that end there are given to `ended`.
    pub(super) fn follow(
        &mut self,
        [was_off, is_off]: [bool; 2],
        context: Context,
        place: Place,
        ended: &mut impl FnMut(Section),
    ) {
        match (was_off, is_off) {
            (false, true) => self.begin(context, place),
            (true, false) => while self.end(place, ended) {},
            (true, true) => {
                while self.sections.len() > 1 && self.context() > Some(context) {
                    self.end(place, ended);
                }
                // Of a section whose beginning was not seen nothing is known.
                if self.context().is_some_and(|own| own < context) {
                    self.begin(context, place);
                }
            }
            (false, false) => {}
        }
    }

    fn context(&self) -> Option<Context> {
        self.sections.last().map(|(context, _)| *context)
    }

    fn begin(&mut self, context: Context, place: Place) {
        let [function, caller] = place.functions;
        let section = Section {
            irqs: self.irqs,
            from_ns: place.at_ns,
            owner: place.owner,
            functions: [function, caller, None, None],
            is_within: !self.sections.is_empty(),
            ..Section::default()
        };
        self.sections.push((context, section));
    }

    /// The innermost one ends, if one is open.
    fn end(&mut self, place: Place, ended: &mut impl FnMut(Section)) -> bool {
        let Some((_, mut section)) = self.sections.pop() else { return false };
        section.to_ns = place.at_ns;
        section.functions[2..].copy_from_slice(&place.functions);
        if let Some((_, outer)) = self.sections.last_mut() {
            outer.came_in.push(section.from_ns..section.to_ns);
        }
        ended(section);
        true
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// One of this function.
    pub(in crate::replay) fn of(irqs: bool, from_ns: u64, to_ns: u64, function: u32) -> Section {
        let functions = [Some(function), None, None, None];
        Section { irqs, from_ns, to_ns, owner: Some(function), functions, ..Section::default() }
    }

    /// Two sections, of which the second came into the first.
    pub(in crate::replay) fn nested(mut outer: Section, mut inner: Section) -> [Section; 2] {
        outer.came_in.push(inner.from_ns..inner.to_ns);
        inner.is_within = true;
        [outer, inner]
    }

    fn section(came_in: &[Range<u64>]) -> Section {
        Section { from_ns: 100, to_ns: 400, came_in: came_in.to_vec(), ..Section::default() }
    }

    #[test]
    fn the_time_of_what_comes_into_a_section_is_none_of_its_own() {
        let whole = section(&[]);
        assert_eq!((whole.ns(), whole.own_ns(), whole.after(100, 50)), (300, 300, 150));
        let two = section(&[150..250, 300..310]);
        assert_eq!((two.ns(), two.own_ns()), (300, 190));
        for (times, all_ns, own_ns) in
            [(0..900, 300, 190), (120..200, 80, 30), (160..240, 80, 0), (305..500, 95, 90)]
        {
            assert_eq!((two.ns_in(&times), two.own_ns_in(times)), (all_ns, own_ns));
        }
        // From a moment of its own, from one in what came in, and to where something comes in.
        for (moment_ns, own_ns, want_ns) in
            [(100, 49, 149), (100, 50, 250), (100, 60, 260), (200, 10, 260), (100, 101, 311)]
        {
            assert_eq!(two.after(moment_ns, own_ns), want_ns, "{own_ns} ns after {moment_ns}");
        }
        let interrupted = [149, 150, 249, 250, 305].map(|at_ns| two.is_interrupted_at(at_ns));
        assert_eq!(interrupted, [false, true, true, false, true]);
    }
}
