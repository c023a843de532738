//! Keys that belong to one stimulus or policy.

use wakescope_core::audio::AudioPlan;
use wakescope_core::plan::{ProbePolicy, SHORTEST_RUNTIME, Stimulus};
use wakescope_core::sound_card::PcmName;
use wakescope_core::units::SpanNs;

use super::{Plan, PlanError};

/// What a plan has of keys that mean nothing with other stimuli or policies; `None` for the usual
/// value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnKeys {
    /// CPU time per interval that a probe reserves under the policy deadline.
    pub runtime: Option<SpanNs>,
    /// How many fragments the buffer of a virtual sound card holds.
    pub fragments: Option<u64>,
    /// The share of a fragment's time that computing it takes, in parts per million.
    pub share_ppm: Option<u64>,
    /// The sound card of the guest to play on, in place of a virtual one.
    pub pcm: Option<PcmName>,
}

impl OwnKeys {
    /// The virtual sound card whose fragments last so long.
    pub fn audio(self, fragment: SpanNs) -> AudioPlan {
        let usual = AudioPlan::usual(fragment.0);
        AudioPlan {
            fragments: self.fragments.unwrap_or(usual.fragments),
            share_ppm: self.share_ppm.unwrap_or(usual.share_ppm),
            pcm: self.pcm,
            ..usual
        }
    }

    /// Whether `plan` has a use for each of them, and they can be.
    pub(super) fn check(self, plan: &Plan) -> Result<(), PlanError> {
        let Plan { stimulus, policy, interval, .. } = *plan;
        let of_audio = [
            ("fragments", self.fragments.is_some()),
            ("share", self.share_ppm.is_some()),
            ("pcm", self.pcm.is_some()),
        ];
        if let Some((key, _)) = of_audio.into_iter().find(|&(_, is_given)| is_given) {
            if stimulus != Stimulus::Audio {
                let what = format!("it does not apply to the stimulus {stimulus}");
                return Err(PlanError::value(key, what, "omit it, or use the stimulus audio"));
            }
        }
        if self.pcm.is_some() && plan.explain {
            let what = "wakeups by a sound card of the guest cannot be explained".to_owned();
            return Err(PlanError::value("explain", what, "omit it, or omit pcm"));
        }
        let Some(runtime) = self.runtime else { return Ok(()) };
        if policy != ProbePolicy::Deadline {
            let what = format!("it does not apply to the policy {policy}");
            return Err(PlanError::value("runtime", what, "omit it, or use the policy deadline"));
        }
        if (SHORTEST_RUNTIME..=interval).contains(&runtime) {
            return Ok(());
        }
        let what = format!("{} of each {}", runtime.as_argument(), interval.as_argument());
        let remedy = format!(
            "write a time from {} to the interval of {}",
            SHORTEST_RUNTIME.as_argument(),
            interval.as_argument()
        );
        Err(PlanError::value("runtime", what, remedy))
    }
}
