//! A late wakeup, as the record shows it.

use serde::{Deserialize, Serialize};

use crate::explain::{Components, Share, Step, TrueShare};
use crate::unknown::{Unknown, keep_unknown};

/// One late wakeup.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct Episode {
    /// Where.
    pub cpu: Option<u32>,
    /// When it was due, from the start of the run.
    pub expiry_ns: u64,
    /// How late it was.
    pub wakeup_latency_ns: u64,
    /// Expiries that it swallowed.
    #[serde(default)]
    pub missed: u64,
    /// What it was made of, if it was explained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub components: Option<Components>,
    /// What its time was blamed on, the largest share first, if it was explained. The shares add up to the
    /// wakeup latency.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blame: Vec<Share>,
    /// What its time truly went to, the largest share first, if a simulation knows that. The shares add up
    /// to the wakeup latency.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub truth: Vec<TrueShare>,
    /// How much of its lateness was stolen by the clock of its CPU, if it was explained; `None` if it
    /// was nothing, or there is no such clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stolen_ns: Option<u64>,
    /// What happened, in order of time, if it was explained.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Step>,
    /// Keys that this version does not know. They are kept.
    #[serde(skip)]
    pub other: Unknown,
}

keep_unknown!(Episode);

impl Episode {
    /// What is wrong with its explanation, if anything.
    pub(crate) fn fault(&self) -> Option<String> {
        let latency_ns = self.wakeup_latency_ns;
        let parts = self.components.map(|c| c.checked_total_ns());
        if parts.is_some_and(|sum| sum != Some(latency_ns)) {
            return Some(format!("its components do not add up to {latency_ns} ns"));
        }
        let differs = |shares: Vec<u64>| {
            let sum = shares.iter().try_fold(0_u64, |sum, &ns| sum.checked_add(ns));
            !shares.is_empty() && sum != Some(latency_ns)
        };
        differs(self.blame.iter().map(|share| share.ns).collect())
            .then(|| format!("its shares of blame do not add up to {latency_ns} ns"))
            .or_else(|| {
                differs(self.truth.iter().map(|share| share.ns).collect())
                    .then(|| format!("the shares of its truth do not add up to {latency_ns} ns"))
            })
            .or_else(|| {
                let stolen_ns = self.stolen_ns.filter(|&stolen_ns| stolen_ns > latency_ns)?;
                Some(format!("{stolen_ns} ns of its {latency_ns} ns were stolen"))
            })
    }
}
