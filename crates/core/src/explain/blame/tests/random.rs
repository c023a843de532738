//! Wakeups made by chance.

use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::explain::Share;

fn tasks() -> impl Strategy<Value = Task> {
    select(vec![probe(), rm(), spin(), idle(), Task::default()])
}

fn whats() -> impl Strategy<Value = What> {
    let names = || select(vec!["local_timer", "eth0", "reschedule"]);
    prop_oneof![
        names().prop_map(entry),
        names().prop_map(exit),
        Just(What::TimerEntry("f".into(), 1)),
        Just(What::TimerExit),
        (0_u8..3).prop_map(What::SoftirqEntry),
        (0_u8..3).prop_map(What::SoftirqExit),
        (0_u64..300).prop_map(|ns| What::Nmi("n".into(), ns)),
        (tasks(), tasks()).prop_map(|(from, to)| What::Switch { from, to }),
        (0_u64..300).prop_map(What::Tracer),
        Just(What::SchedEntry),
        any::<u8>().prop_map(|ns| What::Steal(ns.into())),
        Just(What::ContentionBegin),
        Just(What::ContentionEnd),
    ]
}

fn stimuli() -> impl Strategy<Value = Stimulus> {
    prop_oneof![
        Just(Stimulus::Unknown),
        Just(Stimulus::Awake),
        (0_u32..2).prop_map(|on| Stimulus::Timer { on }),
        (tasks(), 0_u32..2, any::<bool>()).prop_map(|(task, on, in_interrupt)| Stimulus::Waker {
            task,
            on,
            in_interrupt
        }),
    ]
}

fn contexts() -> impl Strategy<Value = Context> {
    let modes = select(vec![Mode::Unknown, Mode::User, Mode::Kernel, Mode::Idle("C1".into())]);
    let depth = prop::option::of(0_u32..2);
    let softirq = prop::option::of(0_u8..3);
    let told = any::<[Option<bool>; 2]>();
    (tasks(), modes, depth, softirq, told, any::<bool>()).prop_map(
        |(task, mode, preempt_depth, softirq, told, seen)| Context {
            task,
            mode,
            preempt_depth,
            softirq,
            preemptible: told[0],
            enabled_interrupts: told[1],
            stack: if seen { frames(&["f"]) } else { Vec::new() },
            stack_is_later: preempt_depth == Some(1),
            user_stack: Vec::new(),
        },
    )
}

fn wakeups(ordered: bool) -> impl Strategy<Value = Wakeup> {
    let marks = (prop::array::uniform4(prop::option::of(80_u64..420)), 90_u64..420);
    let events = prop::collection::vec((50_u64..450, whats()), 0..24);
    let edges = prop::option::of((50_u64..450, 50_u64..450));
    let given_up = prop::option::of((0_u32..4, any::<bool>()));
    let rest = (any::<bool>(), 0_u64..2, tasks(), edges, given_up);
    (marks, stimuli(), prop::option::of(contexts()), events, rest).prop_map(
        move |((mut seen, response), stimulus, interrupted, mut events, rest)| {
            if ordered {
                events.sort_by_key(|event| event.0);
                seen.sort_by_key(|at| at.unwrap_or(0));
            }
            let events =
                events.into_iter().map(|(at, what)| Event { at: MonoNs(at), what }).collect();
            let [irq_entry, irq_exit, sched_entry, switch_in] = seen.map(|at| at.map(MonoNs));
            let (due, response) = (MonoNs(100), MonoNs(response));
            let marks = Marks { due, irq_entry, irq_exit, sched_entry, switch_in, response };
            let (throttled, page_faults, task, edges, given_up) = rest;
            let given_up = given_up.map(|(pid, seen)| GivenUp {
                pid,
                stack: if seen { frames(&["g"]) } else { Vec::new() },
                user_stack: frames(&["main"]),
            });
            Wakeup {
                task,
                stimulus,
                marks,
                interrupted,
                events,
                throttled,
                page_faults,
                given_up,
                irqs_off: edges.map(|(off, on)| (MonoNs(off), MonoNs(on))),
                ..Wakeup::default()
            }
        },
    )
}

fn shares_of(wakeup: &Wakeup) -> Vec<Share> {
    blame(
        wakeup,
        &Known {
            delivery_ns: 20,
            scheduling_ns: Some(20),
            waking_ns: Some(40),
            guest: true,
            ticks: false,
            probes: true,
        },
    )
}

fn adds_up(wakeup: &Wakeup) -> bool {
    let shares = shares_of(wakeup);
    let latency = wakeup.marks.response.since(wakeup.marks.due).0;
    let sum: u64 = shares.iter().map(|share| share.ns).sum();
    sum == latency
        && shares.iter().all(|share| share.ns > 0)
        && shares.windows(2).all(|pair| pair[0].ns >= pair[1].ns)
}

proptest! {
    #[test]
    fn shares_add_up_whatever_was_seen(wakeup in wakeups(false)) {
        prop_assert!(adds_up(&wakeup), "{:?}", shares_of(&wakeup));
    }

    #[test]
    fn shares_add_up_where_times_are_in_order(wakeup in wakeups(true)) {
        prop_assert!(adds_up(&wakeup), "{:?}", shares_of(&wakeup));
    }

    #[test]
    fn it_makes_no_difference_how_long_ago_the_clock_began(wakeup in wakeups(false)) {
        let mut late = wakeup.clone();
        let later = |at: &mut MonoNs| at.0 += u64::MAX - 450;
        let Marks { due, irq_entry, irq_exit, sched_entry, switch_in, response } = &mut late.marks;
        let seen = [irq_entry, irq_exit, sched_entry, switch_in].into_iter().flatten();
        seen.chain([due, response]).for_each(later);
        late.events.iter_mut().for_each(|event| later(&mut event.at));
        late.irqs_off.iter_mut().for_each(|(off, on)| [off, on].into_iter().for_each(later));
        prop_assert_eq!(shares_of(&late), shares_of(&wakeup));
    }

    #[test]
    fn timelines_are_short_and_in_order(wakeup in wakeups(false)) {
        let steps = crate::explain::timeline(&wakeup);
        let latency = wakeup.marks.response.since(wakeup.marks.due).0;
        prop_assert!(steps.len() <= 40);
        prop_assert!(steps.iter().all(|step| step.at_ns <= latency), "{steps:?}");
        prop_assert!(steps.windows(2).all(|pair| pair[0].at_ns <= pair[1].at_ns), "{steps:?}");
    }

    #[test]
    fn pieces_have_neither_gaps_nor_overlaps(wakeup in wakeups(true)) {
        let known = Known { delivery_ns: 20, scheduling_ns: Some(20), waking_ns: Some(40), guest: true, ticks: false, probes: true };
        let case = super::super::Case::of(&wakeup, &known);
        let mut pieces = super::super::sweep::pieces(&case);
        super::super::overlay::lay_nmis_and_tracer(&mut pieces, &case);
        super::super::overlay::lay_stolen_time(&mut pieces, &case);
        super::super::overlay::lay_arrivals(&mut pieces, &case);
        let borders = pieces.borders();
        if let (Some(first), Some(last)) = (borders.first(), borders.last()) {
            prop_assert_eq!((first.0, last.1), (wakeup.marks.due.0, wakeup.marks.response.0));
        }
        prop_assert!(borders.windows(2).all(|pair| pair[0].1 == pair[1].0), "{borders:?}");
        prop_assert!(borders.iter().all(|&(from, to)| from <= to), "{borders:?}");
    }

    #[test]
    fn after_a_loss_nothing_is_certain_but_what_marks_bound(mut wakeup in wakeups(true)) {
        wakeup.lost = 1;
        let marks = wakeup.marks.consistent();
        let by_interrupt = matches!(wakeup.stimulus, Stimulus::Timer { .. } | Stimulus::Unknown)
            || marks.irq_exit.is_some();
        for share in shares_of(&wakeup) {
            let certain = share.evidence != Evidence::Bound;
            let bounded = match share.cause {
                Cause::Nmi | Cause::Tracer => true,
                Cause::IrqOff | Cause::Irq => by_interrupt,
                _ => false,
            };
            prop_assert!(!certain || bounded, "{share:?}");
        }
    }

    #[test]
    fn the_loss_of_any_one_event_is_no_matter_of_certainty(
        wakeup in wakeups(true),
        gone in any::<prop::sample::Index>(),
    ) {
        let mut less = wakeup.clone();
        if less.events.is_empty() {
            return Ok(());
        }
        less.events.remove(gone.index(wakeup.events.len()));
        less.lost = 1;
        // Named by an event that was lost, a task or softirq must not appear.
        let shares = shares_of(&less);
        let from_events = [Cause::Softirq, Cause::HigherPriorityTask, Cause::EqualOrLowerTask];
        prop_assert!(shares.iter().all(|share| !from_events.contains(&share.cause)), "{shares:?}");
    }
}
