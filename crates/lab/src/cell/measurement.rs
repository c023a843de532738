//! What a guest is to measure, and the words that tell it.

use wakescope_core::explain::Above;
use wakescope_core::plan::{GAP_FROM_NS, LinePlan, Plan as RunPlan, Stimulus, WORST, Waker};
use wakescope_core::units::SpanNs;

use crate::machine::SPARE_PORTS;
use crate::plan::{LoadSet, Plan};

/// What a guest is to measure. Times are virtual.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Under which loads.
    pub load: LoadSet,
    /// Of the phase of the grid and of what the loads do.
    pub seed: u64,
    /// The plan of the run, which the guest gets as it is.
    pub run: RunPlan,
    /// What is to be explained of late wakeups, if they are.
    pub explain: Option<Explain>,
}

/// What is to be explained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Explain {
    /// Which wakeups are late, if it is not to be the usual ones.
    pub above: Option<Above>,
    /// Whether sections are measured, too.
    pub sections: bool,
    /// Whether a bound is composed.
    pub bound: bool,
}

impl Measurement {
    /// What `plan` measures under `load` with `seed` on a machine of so many CPUs.
    pub fn of(plan: &Plan, load: &LoadSet, seed: u64, cpus: u32) -> Self {
        let is_busy = plan.stimulus.is_busy();
        let is_audio = plan.stimulus == Stimulus::Audio;
        let run = RunPlan {
            stimulus: plan.stimulus,
            waker: plan
                .stimulus
                .needs_waker()
                .then(|| Waker { between: plan.between, ..Waker::of_probe(plan.priority) }),
            // Without wakeups, the loop runs for as long as so many would take.
            interval_ns: if is_busy { 0 } else { plan.interval.0 },
            samples: (!is_busy).then_some(plan.samples),
            duration_ns: is_busy.then(|| plan.samples.saturating_mul(plan.interval.0)),
            audio: is_audio.then(|| plan.own.audio(plan.interval)),
            line: (plan.stimulus == Stimulus::Line).then(spare_line),
            runtime_ns: plan.own.runtime.map(|runtime| runtime.0),
            gap_from_ns: is_busy.then_some(GAP_FROM_NS),
            policy: plan.policy,
            priority: plan.priority,
            policy_required: true,
            cpus: (0..cpus).collect(),
            load: load.names().iter().map(ToString::to_string).collect(),
            warmup_ns: plan.warmup.0,
            worst: plan.worst.unwrap_or(WORST).into(),
            ..RunPlan::default()
        };
        let Plan { above, sections, bound, .. } = *plan;
        let explain = plan.explain.then_some(Explain { above, sections, bound });
        Self { load: load.clone(), seed, run, explain }
    }

    /// How long it takes if nothing is late.
    pub(super) fn planned(&self) -> SpanNs {
        let RunPlan { duration_ns, samples, interval_ns, warmup_ns, .. } = self.run;
        let of_samples = samples.unwrap_or(0).saturating_mul(interval_ns);
        let measured_ns = duration_ns.unwrap_or(of_samples);
        SpanNs(measured_ns.saturating_add(2 * warmup_ns))
    }

    /// The guest's arguments. The plan stands last, as JSON in one word: the kernel splits its command
    /// line at blanks, and keeps quotes within a word.
    pub(super) fn arguments(&self) -> String {
        let mut all = match self.explain {
            Some(_) => format!("explain --seed {}", self.seed),
            None => format!("measure --seed {}", self.seed),
        };
        if let Some(Explain { above, sections, bound }) = self.explain {
            all +=
                &above.map(|above| format!(" --above {}", above.as_argument())).unwrap_or_default();
            all += if sections { " --sections" } else { "" };
            all += if bound { " --bound" } else { "" };
        }
        // Maps have string keys and numbers are finite: there is nothing that could fail.
        let plan = serde_json::to_string(&self.run).unwrap_or_default();
        format!("{all} {plan}")
    }
}

/// The line of guests: their spare ports, each of which receives what it sends.
fn spare_line() -> LinePlan {
    let [device, answers_on] = SPARE_PORTS.map(|name| format!("/dev/{name}"));
    LinePlan { device, baud: LINE_BAUD, answers_on: Some(answers_on) }
}

/// An emulated port sends at once, whatever its speed.
const LINE_BAUD: u32 = 115_200;

#[cfg(test)]
mod tests {
    use super::*;

    /// The words that the kernel makes of the end of its command line, which may hold no other blanks.
    fn words(measurement: &Measurement) -> Vec<String> {
        measurement.arguments().split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_guest_gets_the_plan_of_its_run_as_it_is() {
        let mut plan = Plan::default();
        let load: LoadSet = "find+disturb-fifo-300us".parse().unwrap();
        let measurement = Measurement::of(&plan, &load, 7, 2);
        let all = words(&measurement);
        assert_eq!(all[..3], ["measure", "--seed", "7"]);
        assert_eq!(serde_json::from_str::<RunPlan>(&all[3]).unwrap(), measurement.run);
        assert_eq!((all.len(), measurement.run.cpus.as_slice()), (4, &[0, 1][..]));
        assert_eq!(measurement.run.load, ["find", "disturb-fifo-300us"]);
        assert_eq!(measurement.planned(), SpanNs(2_100_000_000));
        plan.stimulus = Stimulus::Futex;
        plan.priority = Some(50);
        (plan.explain, plan.above, plan.sections) = (true, Some("50us".parse().unwrap()), true);
        let measurement = Measurement::of(&plan, &load, 7, 1);
        let all = words(&measurement);
        assert_eq!(all[..6], ["explain", "--seed", "7", "--above", "50us", "--sections"]);
        let run: RunPlan = serde_json::from_str(&all[6]).unwrap();
        assert_eq!((run.stimulus, run.waker), (Stimulus::Futex, Some(Waker::of_probe(Some(50)))));
        // Kernels take 2,048 characters (x86, arm64), of which the rest takes some 300.
        assert!(measurement.arguments().len() < 1_000, "{all:?}");
    }
}
