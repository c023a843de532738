//! Several runs together.

use wakescope_core::run::Run;
use wakescope_report::overlay::{Entry, Overlay};
use wakescope_report::style::clean;

use crate::Failure;
use crate::runs::Named;

/// The most curves that are shown together: nobody tells more of them apart.
const MOST: usize = 64;

/// What runs show together, each under its label.
pub(super) fn runs(named: &[Named]) -> Overlay<'_> {
    Overlay::of(named.iter().map(|n| Entry::of(&n.label, &n.run)).collect())
}

/// Refuses what cannot be shown together.
pub(super) fn check(overlay: &Overlay<'_>) -> Result<(), Failure> {
    if let Some(fault) = overlay.fault() {
        return Err(Failure::new(format!("these times are of different kinds: {fault}"))
            .try_this("show runs of one kind together"));
    }
    if overlay.entries.len() > MOST {
        return Err(Failure::new(format!(
            "{} curves are more than can be told apart",
            overlay.entries.len()
        ))
        .try_this(format!("show at most {MOST} together")));
    }
    Ok(())
}

/// What is said of each run, below its name where there are several.
pub(super) fn one_after_the_other(named: &[Named], told: impl Fn(&Run) -> String) -> String {
    match named {
        [only] => told(&only.run),
        several => {
            let parts = several.iter().map(|n| {
                let path = clean(&n.path.display().to_string(), 200);
                format!("{path}\n\n{}", told(&n.run))
            });
            parts.collect::<Vec<_>>().join("\n\n")
        }
    }
}
