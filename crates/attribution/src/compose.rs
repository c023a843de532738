//! What a bound is composed from, as far as a run shows it.

use super::seen::Interrupts;
use crate::{Premises, bound};
use wakescope_core::explain::{
    Bound, Cause, ComponentTable, Phase, Sections, Share, Unsound, Variables,
};
use wakescope_core::plan::ProbePolicy;
use wakescope_core::preemption::Model;
use wakescope_core::run::{Run, TimeDomain};

/// The bound that follows from the shares of late wakeups, from what a timer's interrupt takes to
/// arrive in all of them, from the interrupts that came meanwhile, and from `sections` that were
/// measured.
pub(crate) fn compose<'a>(
    run: &Run,
    blames: impl Iterator<Item = &'a [Share]> + Clone,
    delivery_ns: u64,
    interrupts: Interrupts,
    sections: &Sections,
) -> Bound {
    let premises = premises(run, &interrupts, sections);
    let measured = sections.measured.as_ref().filter(|_| sections.exact);
    let longest = |of: fn(&Share) -> bool| {
        let together = |blame: &[Share]| blame.iter().filter(|share| of(share)).map(|s| s.ns).sum();
        blames.clone().map(together).max().filter(|&ns: &u64| ns > 0)
    };
    let scheduling_ns = measured.and_then(|all| all.either_scheduling_ns);
    let variables = Variables {
        delivery_ns: Some(delivery_ns).filter(|&ns| ns > 0),
        // Of one wakeup they are one section: what holds off the interrupt holds off the switch,
        // until it is over.
        // Where the kernel may run on with both on, no edge tells of it.
        poid_ns: measured.and_then(|all| all.either_ns).max(longest(is_section)),
        paie_ns: longest(is_way_to_scheduler),
        // Without the scheduler's entry that is the switch alone, which still is a part of each late wakeup.
        psd_ns: scheduling_ns.max(longest(is_switch)),
        // It is the last part of that.
        dst_ns: scheduling_ns,
        tracer_ns: longest(is_tracer),
        interrupts: interrupts.each,
    };
    let mut bound = bound(&variables, &premises);
    bound.unsound.extend(disproof(run, &bound, blames));
    bound
}

fn has_entry(table: &ComponentTable) -> bool {
    table.sched_duration.is_some()
}

pub(crate) fn is_section(share: &Share) -> bool {
    matches!(share.cause, Cause::IrqOff | Cause::PreemptOff | Cause::NoPreemptionPoint)
}

/// The time from the interrupt's end to the scheduler.
pub(crate) fn is_way_to_scheduler(share: &Share) -> bool {
    share.cause == Cause::Scheduler && share.phase == Some(Phase::ReturnFromInterrupt)
}

pub(crate) fn is_switch(share: &Share) -> bool {
    share.cause == Cause::Scheduler && !is_way_to_scheduler(share)
}

pub(crate) fn is_tracer(share: &Share) -> bool {
    share.cause == Cause::Tracer
}

/// Whether the composition has what a share is of.
fn is_composed(share: &Share) -> bool {
    let interferes = matches!(share.cause, Cause::Irq | Cause::Softirq | Cause::Nmi);
    interferes || is_section(share) || share.cause == Cause::Scheduler || is_tracer(share)
}

fn premises(run: &Run, interrupts: &Interrupts, sections: &Sections) -> Premises {
    let model = run.host.preemption.model;
    let most_urgent = !run.plan.is_of_others() && run.plan.policy != ProbePolicy::Other;
    let measured = sections.measured.as_ref();
    let scheduling_ns =
        measured.filter(|_| sections.exact).and_then(|all| all.either_scheduling_ns);
    Premises {
        edges_seen: measured.is_some_and(|all| all.is_complete() && !all.has_lost()),
        scheduler_seen: scheduling_ns.is_some() || run.components.as_ref().is_some_and(has_entry),
        // A lazy kernel makes ordinary tasks wait for the tick, not real-time ones.
        full_preemption: matches!(model, Model::Full | Model::Rt)
            || (model == Model::Lazy && most_urgent),
        threaded_interrupts: model == Model::Rt,
        interrupts_seen: interrupts.complete,
        most_urgent,
        own_cpu: run.host.hypervisor.is_none() || run.time_domain == TimeDomain::Virtual,
    }
}

/// A wakeup that was later than its bound, with what it is then that the composition lacks.
fn disproof<'a>(
    run: &Run,
    bound: &Bound,
    blames: impl Iterator<Item = &'a [Share]>,
) -> Option<Unsound> {
    let bound_ns = bound.bound_ns?;
    run.woken().max_ns.filter(|&worst_ns| worst_ns > bound_ns)?;
    let late = |blame: &&[Share]| blame.iter().map(|share| share.ns).sum::<u64>() > bound_ns;
    let lacking = blames.filter(late).flatten().filter(|share| !is_composed(share));
    let of_all = lacking.max_by_key(|share| share.ns);
    Some(Unsound::Exceeded { cause: of_all.map(|share| share.cause) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakescope_core::distribution::Distribution;
    use wakescope_core::explain::{Culprit, Interference, Measured, SectionKind};
    use wakescope_core::run::Thread;

    fn share(cause: Cause, ns: u64, name: &str) -> Share {
        crate::testing::share(cause, name, ns)
    }

    fn scheduler(ns: u64, phase: Phase) -> Share {
        Share { cause: Cause::Scheduler, ns, phase: Some(phase), ..Share::default() }
    }

    fn run(model: Model, worst_ns: u64) -> Run {
        let woken = Distribution { max_ns: Some(worst_ns), count: 1, ..Default::default() };
        let threads = vec![Thread { woken, ..Thread::default() }];
        let mut run = Run { threads, ..Run::default() };
        run.host.preemption.model = model;
        let sched_duration = Some(Distribution::default());
        run.components = Some(ComponentTable { sched_duration, ..Default::default() });
        run
    }

    fn timer() -> Interrupts {
        let culprit = Culprit::interrupt("local_timer");
        let timer = Interference {
            culprit,
            wcet_ns: 5_000,
            miat_ns: Some(1_000_000),
            ..Default::default()
        };
        Interrupts { each: vec![timer], complete: true }
    }

    fn blames() -> [Vec<Share>; 2] {
        [
            vec![
                share(Cause::IrqOff, 30_000, "a"),
                share(Cause::PreemptOff, 20_000, "a"),
                share(Cause::Irq, 4_000, "local_timer"),
                scheduler(2_000, Phase::Switch),
            ],
            vec![
                share(Cause::IrqOff, 40_000, "b"),
                share(Cause::Steal, 35_000, ""),
                scheduler(3_000, Phase::Switch),
                scheduler(1_000, Phase::ReturnFromInterrupt),
            ],
        ]
    }

    fn composed(run: &Run) -> Bound {
        let blames = blames();
        compose(run, blames.iter().map(Vec::as_slice), 600, timer(), &Sections::default())
    }

    #[test]
    fn the_longest_of_each_kind_is_composed() {
        let bound = composed(&run(Model::Rt, 50_000));
        let Variables { delivery_ns, poid_ns, paie_ns, psd_ns, dst_ns, .. } = bound.variables;
        let all = [delivery_ns, poid_ns, paie_ns, psd_ns, dst_ns];
        assert_eq!(all, [Some(600), Some(50_000), Some(1_000), Some(3_000), None]);
        assert_eq!(bound.interference_free_ns, 54_600);
        assert_eq!(bound.bound_ns, Some(59_600));
        assert_eq!(bound.unsound, [Unsound::SectionsOfLateWakeups, Unsound::LastSectionUnseen]);
    }

    #[test]
    fn sections_whose_edges_were_seen_are_the_longest() {
        let measured = Measured {
            irq_off: Some(SectionKind::default()),
            preempt_off: Some(SectionKind::default()),
            either_ns: Some(70_000),
            either_scheduling_ns: Some(6_000),
            ..Measured::default()
        };
        let sections =
            |measured| Sections { exact: true, measured: Some(measured), ..Sections::default() };
        let composed = |measured| {
            let blames = blames();
            let blames = blames.iter().map(Vec::as_slice);
            compose(&run(Model::Rt, 50_000), blames, 600, timer(), &sections(measured))
        };
        let bound = composed(measured.clone());
        let Variables { poid_ns, psd_ns, dst_ns, .. } = bound.variables;
        assert_eq!([poid_ns, psd_ns, dst_ns], [Some(70_000), Some(6_000), Some(6_000)]);
        assert_eq!(bound.unsound, []);
        // Of one that was lost nobody knows how long it was.
        let lossy = composed(Measured { unpaired: 1, ..measured });
        assert_eq!(lossy.unsound[0], Unsound::SectionsOfLateWakeups);
    }

    #[test]
    fn what_a_kernel_does_not_show_is_not_made_up() {
        let mut run = run(Model::Voluntary, 50_000);
        run.components = None;
        run.host.hypervisor = Some("kvm".into());
        let bound = composed(&run);
        // Of its pass through the scheduler, the switch is all that was seen.
        assert_eq!(bound.variables.psd_ns, Some(3_000));
        for reason in [
            Unsound::SchedulerUnseen,
            Unsound::NotFullyPreemptible,
            Unsound::SoftirqsNotThreaded,
            Unsound::Hypervisor,
        ] {
            assert!(bound.unsound.contains(&reason), "{reason:?}: {bound:?}");
        }
    }

    #[test]
    fn a_later_wakeup_disproves_a_bound() {
        let text = |worst_ns| composed(&run(Model::Full, worst_ns)).unsound;
        let disproof = Unsound::Exceeded { cause: Some(Cause::Steal) };
        assert!(text(79_000).contains(&disproof), "{:?}", text(79_000));
        assert!(!text(59_600).contains(&disproof));
    }

    #[test]
    fn what_the_tracer_takes_of_a_late_wakeup_is_part_of_the_bound() {
        let blames = blames().map(|mut blame| {
            blame.retain(|share| share.cause != Cause::Steal);
            blame.extend([3_000, 2_000].map(|ns| share(Cause::Tracer, ns, "")));
            blame
        });
        let blames = || blames.iter().map(Vec::as_slice);
        let latest_ns = blames().map(|blame| blame.iter().map(|share| share.ns).sum()).max();
        let run = run(Model::Full, latest_ns.unwrap());
        let bound = compose(&run, blames(), 600, timer(), &Sections::default());
        assert_eq!(bound.variables.tracer_ns, Some(5_000));
        assert_eq!(bound.interference_free_ns, 600 + 50_000 + 1_000 + 3_000 + 5_000);
        let is_exceeded = |reason: &Unsound| matches!(reason, Unsound::Exceeded { .. });
        assert!(!bound.unsound.iter().any(is_exceeded), "{bound:?}");
        // Without it, the same wakeup would be no longer than its parts, too.
        let later = Distribution { max_ns: Some(64_601), count: 1, ..Default::default() };
        let threads = vec![Thread { woken: later, ..Thread::default() }];
        let later = Run { threads, ..run };
        let bound = compose(&later, blames(), 600, timer(), &Sections::default());
        // None of its explained wakeups was that late.
        assert_eq!(bound.bound_ns, Some(64_600));
        assert!(bound.unsound.contains(&Unsound::Exceeded { cause: None }), "{bound:?}");
    }

    /// Nothing that a bound is composed of is left out where it was seen in part only. (6.1, full, `find`: 53.2 us in a
    /// bound of 48.8 us, which had no switch, for the scheduler's entry had not been seen.)
    #[test]
    fn a_wakeup_is_no_longer_than_the_longest_of_its_parts() {
        let blame = [
            share(Cause::PreemptOff, 30_000, "a"),
            share(Cause::Irq, 5_000, "local_timer"),
            scheduler(1_000, Phase::ReturnFromInterrupt),
            scheduler(11_000, Phase::Switch),
        ];
        let all_ns = blame.iter().map(|share| share.ns).sum();
        for has_entry in [true, false] {
            let mut run = run(Model::Full, all_ns);
            run.components.as_mut().unwrap().sched_duration.take_if(|_| !has_entry);
            let blames = std::iter::once(&blame[..]);
            let bound = compose(&run, blames, 0, timer(), &Sections::default());
            assert_eq!(bound.bound_ns, Some(all_ns));
            assert_eq!(bound.unsound.contains(&Unsound::SchedulerUnseen), !has_entry, "{bound:?}");
            let is_exceeded = |reason: &Unsound| matches!(reason, Unsound::Exceeded { .. });
            assert!(!bound.unsound.iter().any(is_exceeded), "{bound:?}");
        }
    }

    #[test]
    fn lazy_preemption_is_full_for_real_time_tasks_only() {
        let mut run = run(Model::Lazy, 0);
        assert!(premises(&run, &timer(), &Sections::default()).full_preemption);
        run.plan.policy = ProbePolicy::Other;
        let ordinary = premises(&run, &timer(), &Sections::default());
        assert!(!ordinary.full_preemption && !ordinary.most_urgent);
    }
}
