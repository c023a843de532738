//! The longest sections: as their edges tell, or else as far as late wakeups show them.

use wakescope_core::explain::{
    Cause, Culprit, Edge, Evidence, Frame, Function, Longest, Measured, SectionKind, Sections,
    Share, Within,
};

use crate::function::{caller, culprit, own_function};

/// The longest of `kind` as a share of blame.
fn share(kind: &SectionKind, cause: Cause) -> Option<Share> {
    let (ns, longest) = (kind.lengths.max_ns?, kind.longest.as_ref()?);
    Some(Share {
        cause,
        ns,
        culprit: culprit_of(longest),
        within: within(longest),
        evidence: Evidence::Edge,
        frames: longest.frames.clone(),
        ..Share::default()
    })
}

/// Who began the section; where only what locks is known of that, who ended it.
fn culprit_of(longest: &Longest) -> Culprit {
    let begin = own_function_at(&longest.begin);
    begin.map_or_else(|| culprit(&longest.frames), Culprit::Function)
}

/// What that was in.
fn within(longest: &Longest) -> Within {
    let caller = caller(&longest.frames).filter(|_| longest.task.is_some());
    Within { caller, task: longest.task.clone(), ..Within::default() }
}

/// The function at `edge`; the one that called it where it only locks or unlocks. `None` out of idle,
/// or if it is not known.
pub fn function_at(edge: &Edge) -> Option<Function> {
    own_function_at(edge).or_else(|| edge.place.as_ref()?.function())
}

/// The same, unless it only locks or unlocks.
fn own_function_at(edge: &Edge) -> Option<Function> {
    let own = |frame: &Option<Frame>| frame.as_ref().and_then(own_function);
    own(&edge.place).or_else(|| own(&edge.caller))
}

/// The longest sections in the shares of late wakeups, and those that were `measured`, which
/// stand in their place. Only sections that held a wakeup up are in the shares, and of those only
/// what came after the wakeup was due: the longest are at least so long.
pub fn sections<'a>(
    blames: impl IntoIterator<Item = &'a [Share]>,
    measured: Option<Measured>,
) -> Sections {
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
    if let Some(measured) = &measured {
        sections.exact = measured.is_complete();
        if let Some(kind) = &measured.irq_off {
            sections.irq_off = share(kind, Cause::IrqOff);
        }
        if let Some(kind) = &measured.preempt_off {
            // A stretch without a preemption point has no edges.
            let stretch = sections.preempt_off.take();
            let stretch = stretch.filter(|share| share.cause == Cause::NoPreemptionPoint);
            let both = share(kind, Cause::PreemptOff).into_iter().chain(stretch);
            sections.preempt_off = both.max_by_key(|share| share.ns);
        }
    }
    sections.measured = measured;
    sections
}

#[cfg(test)]
mod tests;
