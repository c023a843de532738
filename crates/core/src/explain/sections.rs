//! The longest sections: as their edges tell, or else as far as late wakeups show them.

use super::cause::{Cause, Evidence};
use super::measured::{Measured, SectionKind};
use super::record::{Sections, Share};

impl SectionKind {
    /// The longest as a share of blame.
    fn share(&self, cause: Cause) -> Option<Share> {
        let (ns, longest) = (self.lengths.max_ns?, self.longest.as_ref()?);
        Some(Share {
            cause,
            ns,
            culprit: longest.culprit(),
            within: longest.within(),
            evidence: Evidence::Edge,
            frames: longest.frames.clone(),
            ..Share::default()
        })
    }
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
            sections.irq_off = kind.share(Cause::IrqOff);
        }
        if let Some(kind) = &measured.preempt_off {
            // A stretch without a preemption point has no edges.
            let stretch = sections.preempt_off.take();
            let stretch = stretch.filter(|share| share.cause == Cause::NoPreemptionPoint);
            let both = kind.share(Cause::PreemptOff).into_iter().chain(stretch);
            sections.preempt_off = both.max_by_key(|share| share.ns);
        }
    }
    sections.measured = measured;
    sections
}

#[cfg(test)]
mod tests;
