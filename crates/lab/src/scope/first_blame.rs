//! What explain blamed first for the latest wakeups, against what the emulator saw of them.

use std::collections::BTreeMap;

use wakescope_attribution::SectionEnd;
use wakescope_core::explain::{Answer, Cause, Culprit, Share};
use wakescope_core::preemption::Model;
use wakescope_core::run::Episode;
use wakescope_core::scope::explained::Spread;
use wakescope_core::scope::first_blame::{BlamedOnCause, FirstBlame, OtherBlame};

/// What was seen of a late wakeup that explain can say as well.
#[derive(Clone, Debug, Default)]
pub(super) struct SeenBlame {
    /// Shares, the largest first.
    pub(super) blame: Vec<Share>,
    /// What of them is time with interrupts off behind the wakeup's own interrupt.
    pub(super) irqs_off_when_ready: Vec<Share>,
    /// Where sections that held it up ended.
    pub(super) ends: Vec<SectionEnd>,
}

/// What explain `said` of wakeups first, against what was `seen` of each, in a kernel of this `model`; `None` if it
/// explained none, as in a cell without `--explain`: what it explained has a share, if only an unexplained one.
pub(super) fn first_blame(
    said: &[&Episode],
    seen: &[SeenBlame],
    model: Model,
) -> Option<FirstBlame> {
    let mut all = FirstBlame::default();
    let mut causes: BTreeMap<Cause, (BlamedOnCause, Vec<i64>)> = BTreeMap::new();
    let explained = |(said_of, _): &(&&Episode, &SeenBlame)| !said_of.blame.is_empty();
    for (said_of, seen_of) in said.iter().zip(seen).filter(explained) {
        let first = |blame: &[Share]| blame.iter().find(|share| holds_up(share)).cloned();
        let seen_of = in_terms_of_explain(seen_of, model);
        let latency_ns = said_of.wakeup_latency_ns;
        let both = [first(&said_of.blame), first(&seen_of)];
        let holds = |share: &Option<Share>| {
            share.as_ref().is_some_and(|s| !is_negligible(s.ns, latency_ns))
        };
        if !both.iter().any(holds) {
            all.held_by_nothing += 1;
            continue;
        }
        // If only one of the two says so, they differ: then its largest share stands for it.
        let [said, seen] = both;
        let said = said.or_else(|| said_of.blame.first().cloned()).unwrap_or_default();
        let seen = seen.or_else(|| seen_of.first().cloned()).unwrap_or_default();
        let is_same = said.cause == seen.cause;
        let is_named = is_same && names(&said, &seen);
        let (of_cause, longer_ns) = causes.entry(said.cause).or_default();
        of_cause.wakeups += 1;
        of_cause.same_cause += u64::from(is_same);
        of_cause.same_culprit += u64::from(is_named);
        if is_same {
            // Each may have several, as one for each task that a softirq ran in.
            let [one, other] =
                [&said_of.blame, &seen_of].map(|blame| of_cause_ns(blame, said.cause));
            longer_ns.push(one - other);
        }
        if !is_named {
            all.others.push(OtherBlame {
                expiry_ns: said_of.expiry_ns,
                wakeup_latency_ns: said_of.wakeup_latency_ns,
                said: answer(&said),
                said_ns: said.ns,
                seen: answer(&seen),
                seen_ns: seen.ns,
            });
        }
    }
    let mut longer_ns = Vec::new();
    for (cause, (of_cause, mut longer_of_cause)) in causes {
        all.wakeups += of_cause.wakeups;
        all.same_cause += of_cause.same_cause;
        all.same_culprit += of_cause.same_culprit;
        let spread = Spread::of(longer_of_cause.clone());
        all.causes.push(BlamedOnCause { cause, longer_ns: spread, ..of_cause });
        longer_ns.append(&mut longer_of_cause);
    }
    all.causes.sort_by_key(|of_cause| std::cmp::Reverse(of_cause.wakeups));
    all.longer_ns = Spread::of(longer_ns);
    (all.wakeups + all.held_by_nothing > 0).then_some(all)
}

/// Whether a share is of what held the wakeup up. Handler, scheduler and tracer are in each wakeup, and what of the
/// first two is the tracer's does not show from outside.
fn holds_up(share: &Share) -> bool {
    !matches!(share.cause, Cause::Irq | Cause::Scheduler | Cause::Tracer)
}

/// All that is blamed on a cause, ns.
fn of_cause_ns(blame: &[Share], cause: Cause) -> i64 {
    let ns: u64 = blame.iter().filter(|share| share.cause == cause).map(|share| share.ns).sum();
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// Less than one in a hundred of a wakeup's lateness held nobody up. The wait for the interrupt differs by some ns
/// from wakeup to wakeup, and so does the way to the scheduler.
fn is_negligible(ns: u64, latency_ns: u64) -> bool {
    ns.saturating_mul(100) < latency_ns
}

/// What was seen, the largest share first, with the functions at the ends of sections among their frames.
///
/// Under `none` and `voluntary` a task that is ready waits for the next point of preemption. Explain does not tell
/// there whether other code has preemption or interrupts off on the way to it: all delay the task by the same, so
/// they are one share. Interrupts that are off before the wakeup's own interrupt hold that off, and stay apart.
fn in_terms_of_explain(seen: &SeenBlame, model: Model) -> Vec<Share> {
    let is_one = matches!(model, Model::None | Model::Voluntary);
    let is_part = |share: &Share| {
        is_one && matches!(share.cause, Cause::PreemptOff | Cause::NoPreemptionPoint)
    };
    let (mut parts, mut shares): (Vec<Share>, Vec<Share>) =
        seen.blame.iter().cloned().partition(is_part);
    if is_one {
        take(&mut shares, &seen.irqs_off_when_ready);
        parts.extend(seen.irqs_off_when_ready.iter().cloned());
    }
    for share in shares.iter_mut().chain(&mut parts) {
        let is_its = |end: &&SectionEnd| end.cause == share.cause && end.culprit == share.culprit;
        let ends = seen.ends.iter().filter(is_its);
        share.frames.extend(ends.flat_map(|end| end.frames.clone()));
    }
    // The longest part gives its name.
    parts.sort_by_key(|part| std::cmp::Reverse(part.ns));
    if let Some(first) = parts.first() {
        let ns = parts.iter().map(|part| part.ns).sum();
        let frames = parts.iter().flat_map(|part| part.frames.clone()).collect();
        shares.push(Share { cause: Cause::NoPreemptionPoint, ns, frames, ..first.clone() });
    }
    shares.sort_by_key(|share| (share.cause == Cause::Unexplained, std::cmp::Reverse(share.ns)));
    shares
}

/// Takes the times of these `parts` from the shares that they are a part of.
fn take(shares: &mut Vec<Share>, parts: &[Share]) {
    let without_ns = |share: &Share| Share { ns: 0, ..share.clone() };
    for part in parts {
        if let Some(whole) = shares.iter_mut().find(|share| without_ns(share) == without_ns(part)) {
            whole.ns = whole.ns.saturating_sub(part.ns);
        }
    }
    shares.retain(|share| share.ns > 0);
}

/// Whether both blame the same, or explain a function that was seen at an end of a section.
fn names(said: &Share, seen: &Share) -> bool {
    let is_frame = |name: &str| seen.frames.iter().any(|frame| frame.name() == name);
    let is_same = said.culprit.without_pid() == seen.culprit.without_pid();
    is_same || matches!(&said.culprit, Culprit::Function(function) if is_frame(&function.name))
}

fn answer(share: &Share) -> Answer {
    let Share { cause, culprit, phase, from_cpu, .. } = share.clone();
    Answer { cause, culprit, phase, from_cpu }
}

#[cfg(test)]
mod tests {
    use wakescope_core::explain::{Frame, Function, Name, Task, Within};
    use wakescope_core::scope::{SCHEMA, Scope};

    use super::*;

    fn share(cause: Cause, name: &str, ns: u64) -> Share {
        let culprit = Culprit::Interrupt(Name { name: name.into() });
        Share { cause, culprit, ns, ..Share::default() }
    }

    fn episode(blame: &[Share]) -> Episode {
        Episode { wakeup_latency_ns: 9_000, blame: blame.to_vec(), ..Episode::default() }
    }

    /// Without ends of sections.
    fn seen_of(episode: &Episode) -> SeenBlame {
        SeenBlame { blame: episode.blame.clone(), ..SeenBlame::default() }
    }

    /// In a kernel with full preemption. A record holds it in a way that can be read.
    fn compared(said: &[&Episode], seen: &[Episode]) -> Option<FirstBlame> {
        let got = first_blame(said, &seen.iter().map(seen_of).collect::<Vec<_>>(), Model::Full);
        let scope = Scope { schema: SCHEMA.into(), first_blame: got.clone(), ..Scope::default() };
        assert_eq!(Scope::from_json(scope.to_json().as_bytes()), Ok(scope));
        got
    }

    fn in_function(cause: Cause, name: &str, ns: u64) -> Share {
        let function = Function { name: name.into(), module: None };
        Share { cause, culprit: Culprit::Function(function), ns, ..Share::default() }
    }

    #[test]
    fn wakeups_that_nothing_held_up_are_counted_apart() {
        let of = |ns| episode(&[share(Cause::IrqOff, "a", ns)]);
        let seen = |ns| [episode(&[share(Cause::NoPreemptionPoint, "b", ns)])];
        let apart = FirstBlame { held_by_nothing: 1, ..FirstBlame::default() };
        assert_eq!(compared(&[&of(89)], &seen(23)), Some(apart.clone()));
        // If only one of the two says so, they differ.
        for (said_ns, seen_ns) in [(90, 23), (5, 90)] {
            let got = compared(&[&of(said_ns)], &seen(seen_ns)).unwrap();
            assert_eq!((got.wakeups, got.same_cause, got.held_by_nothing), (1, 0, 0));
        }
        // The same where one has no such share at all.
        let quick = episode(&[share(Cause::Scheduler, "", 9_000)]);
        let held = episode(&[share(Cause::IrqOff, "a", 90)]);
        assert_eq!(compared(&[&quick], std::slice::from_ref(&quick)), Some(apart));
        for (said, seen) in [(&quick, &held), (&held, &quick)] {
            let got = compared(&[said], std::slice::from_ref(seen)).unwrap();
            assert_eq!((got.wakeups, got.same_cause, got.held_by_nothing), (1, 0, 0));
            assert_eq!(got.others[0].said.cause, said.blame[0].cause);
            assert_eq!(got.others[0].seen.cause, seen.blame[0].cause);
        }
    }

    #[test]
    fn wakeups_that_were_not_explained_are_not_compared() {
        let held = episode(&[share(Cause::IrqOff, "a", 8_000)]);
        let not_explained = episode(&[]);
        assert_eq!(compared(&[&not_explained], std::slice::from_ref(&held)), None);
        let both = compared(&[&not_explained, &held], &[held.clone(), held.clone()]).unwrap();
        assert_eq!((both.wakeups, both.same_culprit, both.others.len()), (1, 1, 0));
    }

    #[test]
    fn a_function_at_the_end_of_the_section_is_its_culprit_too() {
        let said = episode(&[in_function(Cause::IrqOff, "free_list", 100)]);
        let seen = episode(&[in_function(Cause::IrqOff, "free_bulk", 110)]);
        let end = |culprit: &Share| SectionEnd {
            cause: Cause::IrqOff,
            culprit: culprit.culprit.clone(),
            frames: vec![Frame::in_function("free_list", 0)],
        };
        for (end, want) in
            [(end(&seen.blame[0]), 1), (end(&in_function(Cause::IrqOff, "other", 0)), 0)]
        {
            let seen = SeenBlame { ends: vec![end], ..seen_of(&seen) };
            let got = first_blame(&[&said], &[seen], Model::Full).unwrap();
            assert_eq!((got.same_cause, got.same_culprit), (1, want));
        }
    }

    #[test]
    fn where_nothing_is_preempted_sections_are_part_of_what_has_no_preemption_point() {
        let said = episode(&[in_function(Cause::NoPreemptionPoint, "truncate", 100)]);
        let seen = episode(&[
            in_function(Cause::PreemptOff, "free_list", 60),
            in_function(Cause::IrqOff, "other", 50),
            Share {
                frames: vec![Frame::in_function("truncate", 0)],
                ..in_function(Cause::NoPreemptionPoint, "truncate", 30)
            },
        ]);
        let of = |model| first_blame(&[&said], &[seen_of(&seen)], model).unwrap();
        for model in [Model::None, Model::Voluntary] {
            let got = of(model);
            assert_eq!((got.same_cause, got.same_culprit), (1, 1), "{got:#?}");
            assert_eq!(got.longer_ns, Spread::of(vec![10]));
        }
        let got = of(Model::Full);
        assert_eq!((got.same_cause, got.others[0].seen.cause), (0, Cause::PreemptOff));
    }

    #[test]
    fn interrupts_that_are_off_behind_its_own_interrupt_delay_no_more_than_other_code() {
        // As under `launch` on 6.1 without preemption: 1,516 ns seemed to be too much of explain.
        let said = episode(&[in_function(Cause::NoPreemptionPoint, "unmap", 7_000)]);
        let irqs_off = |ns| in_function(Cause::IrqOff, "flush", ns);
        let blame = [in_function(Cause::NoPreemptionPoint, "unmap", 5_400), irqs_off(1_700)];
        let seen = |behind_ns| SeenBlame {
            irqs_off_when_ready: vec![irqs_off(behind_ns)],
            ..seen_of(&episode(&blame))
        };
        let of = |behind_ns, model| first_blame(&[&said], &[seen(behind_ns)], model).unwrap();
        for model in [Model::None, Model::Voluntary] {
            let got = of(1_516, model);
            assert_eq!((got.same_cause, got.longer_ns), (1, Spread::of(vec![84])), "{got:#?}");
            // 184 ns held its interrupt off, and are another's.
            let left = in_terms_of_explain(&seen(1_516), model);
            let lengths: Vec<u64> = left.iter().map(|share| share.ns).collect();
            assert_eq!(lengths, [6_916, 184]);
            assert_eq!(of(1_700, model).longer_ns, Spread::of(vec![-100]));
        }
        // With preemption, a task goes on as soon as interrupts are on.
        assert_eq!(of(1_516, Model::Full).longer_ns, Spread::of(vec![1_600]));
    }

    #[test]
    fn softirqs_are_compared_whichever_task_they_run_in() {
        // As under `launch` on 7.2: 11 us of RCU in a task, and then 20 us in the probe.
        let of = |ns, comm: &str| {
            let culprit = Culprit::softirq("RCU");
            let task = Some(Task { comm: comm.into(), ..Task::default() }.named());
            let within = Within { task, ..Within::default() };
            Share { cause: Cause::Softirq, culprit, within, ns, ..Share::default() }
        };
        let said = episode(&[of(20_376, "probe"), of(10_811, "rm")]);
        let own = Share { within: Within::default(), ..of(21_178, "") };
        let bare = Share { ns: 345, culprit: Culprit::None, ..own.clone() };
        let seen = episode(&[own, of(12_367, "rm"), bare]);
        let got = compared(&[&said], &[seen]).unwrap();
        assert_eq!((got.same_cause, got.same_culprit), (1, 1));
        assert_eq!(got.longer_ns, Spread::of(vec![31_187 - 33_890]));
    }

    #[test]
    fn what_is_in_each_wakeup_is_not_compared() {
        let said = episode(&[
            share(Cause::Tracer, "", 4_000),
            share(Cause::IrqOff, "a", 3_000),
            share(Cause::Irq, "timer", 2_000),
        ]);
        let seen = episode(&[share(Cause::Irq, "timer", 5_990), share(Cause::IrqOff, "a", 3_010)]);
        let quick = episode(&[share(Cause::Scheduler, "", 9_000)]);
        let got = compared(&[&said, &quick], &[seen, quick.clone()]).unwrap();
        assert_eq!((got.wakeups, got.same_cause, got.same_culprit), (1, 1, 1));
        assert_eq!((got.held_by_nothing, got.longer_ns), (1, Spread::of(vec![-10])));
        assert_eq!(compared(&[], &[]), None);
    }

    #[test]
    fn what_differs_is_counted_by_the_cause_that_explain_blamed() {
        let irqs = |name, ns| episode(&[share(Cause::IrqOff, name, ns)]);
        let preempt = |name, ns| episode(&[share(Cause::PreemptOff, name, ns)]);
        let said = [irqs("a", 100), irqs("a", 110), irqs("b", 120), preempt("c", 130)];
        let seen = [irqs("a", 90), preempt("a", 110), irqs("c", 125), preempt("c", 100)];
        let got = compared(&said.each_ref(), &seen).unwrap();
        let counts = |of: &BlamedOnCause| (of.cause, of.wakeups, of.same_cause, of.same_culprit);
        let causes: Vec<_> = got.causes.iter().map(counts).collect();
        assert_eq!(causes, [(Cause::IrqOff, 3, 2, 1), (Cause::PreemptOff, 1, 1, 1)]);
        assert_eq!(got.causes[0].longer_ns, Spread::of(vec![10, -5]));
        assert_eq!(got.causes[1].longer_ns, Spread::of(vec![30]));
        assert_eq!((got.wakeups, got.same_cause, got.same_culprit), (4, 3, 2));
        assert_eq!(got.longer_ns, Spread::of(vec![-5, 10, 30]));
        assert_eq!(got.others.len(), 2);
    }
}
