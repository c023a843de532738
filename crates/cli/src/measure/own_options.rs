//! Options that belong to one stimulus, and what each stimulus makes of those that all share.

use wakescope_core::audio::AudioPlan;
use wakescope_core::limit::Limit;
use wakescope_core::plan::{GAP_FROM_NS, Plan, ProbePolicy, SHORTEST_RUNTIME, Stimulus};
use wakescope_core::units::SpanNs;
use wakescope_probe::card;
use wakescope_sys::sched;

use super::args::bounded;
use super::explain_card;
use crate::Failure;

/// Options of single stimuli and policies
#[derive(clap::Args)]
pub(crate) struct OwnOptions {
    /// With SCHED_DEADLINE (--stimulus deadline or --policy deadline): CPU time to reserve of each
    /// interval [default: half of it]
    #[arg(long, value_name = "TIME", value_parser = runtime, allow_hyphen_values = true)]
    runtime: Option<SpanNs>,

    /// With --stimulus spin: length from which a gap counts [default: 1us]
    #[arg(long, value_name = "TIME", value_parser = gap_from, allow_hyphen_values = true)]
    gap_from: Option<SpanNs>,

    /// With --stimulus audio: play on this sound card, as hw:0,0, instead of a virtual one
    #[arg(long, value_name = "NAME")]
    pcm: Option<String>,

    /// With --stimulus audio: time that the sound card plays a fragment [default: 2900us]
    #[arg(long, value_name = "TIME", value_parser = fragment, allow_hyphen_values = true)]
    fragment: Option<SpanNs>,

    /// With --stimulus audio: number of fragments in the card's buffer [default: 3]
    #[arg(long, value_name = "N", value_parser = fragments, allow_hyphen_values = true)]
    fragments: Option<u64>,

    /// With --stimulus audio: share of a fragment's time that computing it takes [default: 80%]
    #[arg(long, value_name = "N%", value_parser = AudioPlan::share_of, allow_hyphen_values = true)]
    share: Option<u64>,
}

/// A fragment of 128 frames at 44.1 kHz lasts about so long.
const FRAGMENT: SpanNs = SpanNs(2_900_000);

impl OwnOptions {
    /// Completes `plan` with the options of its stimulus, or says which combination is none.
    /// `interval` is the one asked for, if any.
    pub(super) fn complete(
        &self,
        plan: &mut Plan,
        interval: Option<SpanNs>,
    ) -> Result<(), Failure> {
        self.refuse_foreign(plan.stimulus)?;
        plan.runtime_ns = self.runtime_of(plan)?;
        match plan.stimulus {
            Stimulus::Spin => self.spin(plan, interval),
            Stimulus::Audio => self.audio(plan, interval),
            _ => Ok(()),
        }
    }

    /// Refuses options of another stimulus than the one asked for.
    fn refuse_foreign(&self, stimulus: Stimulus) -> Result<(), Failure> {
        use Stimulus::{Audio, Spin};
        let own = [
            ("--gap-from", Spin, self.gap_from.is_some()),
            ("--pcm", Audio, self.pcm.is_some()),
            ("--fragment", Audio, self.fragment.is_some()),
            ("--fragments", Audio, self.fragments.is_some()),
            ("--share", Audio, self.share.is_some()),
        ];
        match own.iter().find(|&&(_, of, is_given)| is_given && of != stimulus) {
            None => Ok(()),
            Some((option, of, _)) => {
                Err(Failure::new(format!("{option} does not apply to --stimulus {stimulus}"))
                    .try_this(format!("omit {option}, or use --stimulus {of}")))
            }
        }
    }

    /// The runtime that was asked for, which is that of a policy, whatever the stimulus.
    fn runtime_of(&self, plan: &Plan) -> Result<Option<u64>, Failure> {
        let Some(runtime) = self.runtime else { return Ok(None) };
        let Plan { policy, interval_ns, .. } = *plan;
        if policy != ProbePolicy::Deadline {
            return Err(Failure::new(format!("--runtime does not apply to --policy {policy}"))
                .try_this("omit --runtime, or use --stimulus deadline"));
        }
        if runtime.0 > interval_ns {
            let (runtime, interval) = (runtime.as_argument(), SpanNs(interval_ns).as_argument());
            return Err(Failure::new(format!(
                "--runtime {runtime} is longer than the interval of {interval}"
            ))
            .because("it is CPU time of each interval")
            .try_this("use a smaller --runtime, or a longer --interval"));
        }
        Ok(Some(runtime.0))
    }

    fn audio(&self, plan: &mut Plan, interval: Option<SpanNs>) -> Result<(), Failure> {
        let no = |what: &str| Failure::new(format!("{what} does not apply to --stimulus audio"));
        if interval.is_some() {
            return Err(no("--interval")
                .because("the card has room once per fragment")
                .try_this("use --fragment"));
        }
        if plan.policy == ProbePolicy::Deadline {
            return Err(no("--policy deadline")
                .because("its budget would stop the computing of a fragment")
                .try_this("use --policy fifo, rr or other"));
        }
        let audio = AudioPlan {
            fragment_ns: self.fragment.unwrap_or(FRAGMENT).0,
            fragments: self.fragments.unwrap_or(AudioPlan::FRAGMENTS),
            share_ppm: self.share.unwrap_or(AudioPlan::SHARE_PPM),
            pcm: self.pcm.as_deref().map(card::find).transpose().map_err(|e| explain_card(&e))?,
        };
        (plan.interval_ns, plan.audio) = (audio.fragment_ns, Some(audio));
        Ok(())
    }

    fn spin(&self, plan: &mut Plan, interval: Option<SpanNs>) -> Result<(), Failure> {
        let no = |what: &str| Failure::new(format!("{what} does not apply to --stimulus spin"));
        if interval.is_some() {
            return Err(no("--interval")
                .because("the loop reads the clock as often as it can")
                .try_this("omit --interval"));
        }
        if plan.samples.is_some() {
            return Err(no("--samples")
                .because("on a quiet CPU there may never be so many gaps")
                .try_this("use --duration"));
        }
        if plan.policy == ProbePolicy::Deadline {
            return Err(no("--policy deadline")
                .because("the loop would use up its own budget, and be stopped for that")
                .try_this("omit --policy, or use fifo with --cpus"));
        }
        let from = self.gap_from.unwrap_or(SpanNs(GAP_FROM_NS));
        let limits = plan.fail_above.iter().filter_map(|text| text.parse::<Limit>().ok());
        if let Some(limit) = limits.min_by_key(|limit| limit.above).filter(|l| l.above < from) {
            return Err(Failure::new(format!(
                "--fail-above {} is below what counts as a gap, {from}",
                limit.as_argument()
            ))
            .because("shorter gaps are not recorded, so the limit would not be checked")
            .try_this("raise the limit, or lower --gap-from"));
        }
        (plan.gap_from_ns, plan.interval_ns) = (Some(from.0), 0);
        leaves_a_cpu(plan)
    }
}

/// A real-time loop that never sleeps leaves nothing of its CPU to others. One CPU at least must remain
/// for the rest of the machine, which includes the part of wakescope that ends the loop.
fn leaves_a_cpu(plan: &Plan) -> Result<(), Failure> {
    let allowed = sched::affinity().unwrap_or_default();
    if !plan.policy.has_priority() || allowed.iter().any(|cpu| !plan.cpus.contains(cpu)) {
        return Ok(());
    }
    let policy = plan.policy;
    let failure = Failure::new(format!(
        "--stimulus spin with --policy {policy} would take every CPU that this process may use"
    ))
    .because("a real-time loop that never sleeps leaves nothing to other tasks of its CPU");
    Err(match allowed.as_slice() {
        [] | [_] => failure.try_this("omit --policy"),
        [_, others @ ..] => failure
            .try_this(format!(
                "leave a CPU to the machine: --cpus {}",
                wakescope_core::host::cpu_ranges(others)
            ))
            .try_this("or omit --policy"),
    })
}

fn fragment(text: &str) -> Result<SpanNs, String> {
    bounded(text, SpanNs(100_000), SpanNs(1_000_000_000))
}

fn fragments(text: &str) -> Result<u64, String> {
    // What is no number is none of those that are possible.
    AudioPlan::fragments_of(text.parse().unwrap_or(u64::MAX))
}

fn runtime(text: &str) -> Result<SpanNs, String> {
    let runtime = bounded(text, SpanNs(1), SpanNs(3_600_000_000_000))?;
    match runtime >= SHORTEST_RUNTIME {
        true => Ok(runtime),
        false => Err(format!("the kernel takes {} or more", SHORTEST_RUNTIME.as_argument())),
    }
}

fn gap_from(text: &str) -> Result<SpanNs, String> {
    bounded(text, SpanNs(100), SpanNs(1_000_000_000))
}
