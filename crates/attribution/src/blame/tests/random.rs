//! Wakeups made by chance.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::scenes::Scene;
use super::*;
use crate::blame::{Decision, decide, pieces};
use crate::tuning::Tuning;
use crate::{Rule, Seen, account, components};
use wakescope_core::distribution::Distribution;
use wakescope_core::explain::{Above, Gap};
use wakescope_core::random::Random;
use wakescope_core::run::{Episode, Run, Thread};
use wakescope_core::units::SpanNs;

fn tasks() -> impl Strategy<Value = Task> {
    let twin = Task { pid: 77, comm: "twin".into(), ..probe() };
    // With a priority that was lent to it.
    let lent = Task { prio: spin().prio, ..rm() };
    let deadline = |pid| task(pid, "deadline", Policy::Deadline, -1);
    let deadlines = [deadline(78), deadline(79)];
    select(
        [vec![probe(), twin, rm(), lent, spin(), idle(), Task::default()], deadlines.into()]
            .concat(),
    )
}

/// A length of time near or between the thresholds of the rules: from 3 µs for the way back from an
/// interrupt to 25 ms without a tick.
fn lengths() -> impl Strategy<Value = u64> {
    let near = |ns: u64| ns / 2..ns * 2;
    prop_oneof![
        4 => 0_u64..300,
        2 => near(Tuning::default().return_path_ns),
        1 => 6_000_u64..200_000,
        2 => near(Tuning::default().slow_way_ns),
        2 => near(Tuning::default().long_function_ns),
        1 => near(10_000_000),
        1 => near(25_000_000),
    ]
}

fn whats() -> impl Strategy<Value = What> {
    let names = || select(vec!["local_timer", "eth0", "reschedule"]);
    prop_oneof![
        names().prop_map(entry),
        names().prop_map(exit),
        (
            select(vec!["f", "hrtimer_wakeup", "tick_nohz_handler", "sched_cfs_period_timer"]),
            0_u32..3
        )
            .prop_map(|(name, count)| What::TimerEntry(name.into(), count)),
        Just(What::TimerExit),
        (0_u8..3).prop_map(What::SoftirqEntry),
        (0_u8..3).prop_map(What::SoftirqExit),
        (0_u8..2).prop_map(What::SoftirqExit),
        Just(What::SoftirqsPending),
        lengths().prop_map(|ns| What::Nmi("n".into(), ns)),
        (tasks(), tasks()).prop_map(|(from, to)| What::Switch { from, to }),
        lengths().prop_map(What::Tracer),
        (0_u32..2, 0_u32..2).prop_map(|(from, to)| What::Moved { from, to }),
        Just(What::SchedEntry),
        lengths().prop_map(What::Steal),
        Just(What::ContentionBegin),
        Just(What::ContentionEnd),
        tasks().prop_map(What::Deboost),
    ]
}

fn stimuli() -> impl Strategy<Value = WokenBy> {
    prop_oneof![
        1 => Just(WokenBy::Unknown),
        1 => Just(WokenBy::Awake),
        4 => Just(WokenBy::Timer { on: 0 }),
        1 => (0_u32..2).prop_map(|on| WokenBy::Timer { on }),
        1 => tasks().prop_map(|task| WokenBy::Waker { task, on: 1, in_interrupt: false }),
        2 => (tasks(), 0_u32..2, any::<bool>()).prop_map(|(task, on, in_interrupt)| WokenBy::Waker {
            task,
            on,
            in_interrupt
        }),
    ]
}

fn contexts() -> impl Strategy<Value = Context> {
    prop_oneof![4 => any_contexts(), 1 => softirqs_in_sections()]
}

/// A softirq that broke into code with preemption off.
fn softirqs_in_sections() -> impl Strategy<Value = Context> {
    (0_u8..2).prop_map(|softirq| Context {
        mode: Mode::Kernel,
        preempt_depth: Some(1),
        preemptible: Some(true),
        softirq: Some(softirq),
        stack: frames(&["g", "handle_softirqs", "__local_bh_enable_ip", "f"]),
        ..in_kernel()
    })
}

fn any_contexts() -> impl Strategy<Value = Context> {
    let modes = prop_oneof![
        3 => Just(Mode::Kernel),
        3 => select(vec![Mode::Unknown, Mode::User, Mode::Idle("C1".into())]),
    ];
    let depth = prop::option::of(0_u32..2);
    let softirq = prop::option::of(0_u8..3);
    let text = any::<[Option<bool>; 2]>();
    // Any code, the way back to a program, and that from an interrupt, of which one rule needs many.
    let stacks = prop_oneof![
        1 => Just(&["f"][..]),
        1 => Just(&["exit_to_user_mode_loop", "do_syscall_64"][..]),
        4 => Just(&["irqentry_exit", "asm_sysvec_apic_timer_interrupt"][..]),
    ];
    (tasks(), modes, depth, softirq, text, (any::<bool>(), stacks)).prop_map(
        |(task, mode, preempt_depth, softirq, text, (seen, stack))| Context {
            task,
            mode,
            preempt_depth,
            softirq,
            preemptible: text[0],
            enabled_interrupts: text[1],
            stack: if seen { frames(stack) } else { Vec::new() },
            stack_is_later: preempt_depth == Some(1),
            user_stack: Vec::new(),
        },
    )
}

/// When wakeups are due: events can lie before.
const DRAWN_DUE: u64 = 200_000_000;

/// Wakeups whose marks and events come in the order in which they must, or in any.
fn wakeups(ordered: bool) -> impl Strategy<Value = Wakeup> {
    // Few events leave room for long times without one.
    let events = prop_oneof![
        prop::collection::vec((lengths(), whats()), 0..4),
        prop::collection::vec((lengths(), whats()), 0..24),
    ];
    // How many events come before each mark, from `due` on; and how long before it the last is.
    let mark = || prop::option::of((0_usize..5, lengths()));
    let marks = (prop::array::uniform4(mark()), 0_usize..4, (0_usize..8, lengths()));
    let edges = prop::option::of((0_u64..30_000_000, lengths()));
    let given_up = prop::option::of((0_u32..4, any::<bool>()));
    let quota = prop::option::of(prop_oneof![2 => Just(0_u64), 1 => lengths()]);
    let others = prop::array::uniform2(prop_oneof![Just(0_u64), lengths()]);
    let taken = prop::array::uniform3(prop_oneof![Just(0_u64), lengths()]);
    let ran = prop::collection::vec((tasks(), lengths()), 0..3);
    // As values these would be too large for the stack of a test.
    let sums = (ran, others, taken).boxed();
    let sums = move || sums.clone();
    let losses = prop_oneof![
        12 => Just((0, None, (Vec::new(), [0; 2], [0; 3]))),
        1 => sums().prop_map(|sums| (3, None, sums)),
        2 => (lengths(), lengths(), sums()).prop_map(|(from, interrupts_ns, sums)| {
            (300, Some(KnownSwitches { from: MonoNs(DRAWN_DUE + from), interrupts_ns }), sums)
        }),
    ]
    .boxed();
    let scene = prop::option::weighted(0.3, select(&Scene::ALL[..]));
    let rest = ((any::<bool>(), losses), 0_u64..2, tasks(), (edges, quota), given_up, any::<u64>());
    (marks, stimuli(), prop::option::of(contexts()), events, (rest, scene)).prop_map(
        move |((seen, before, last), woken_by, interrupted, events, (rest, scene))| {
            let ((throttled, losses), page_faults, task, (edges, quota_ns), given_up, seed) = rest;
            let (lost, known_switches, sums) = losses;
            let (tasks, [others_ns, urgent_others_ns], taken) = sums;
            let [interrupts_ns, softirqs_ns, nmis_ns] = taken;
            let tasks = tasks.into_iter().map(|(task, ns)| Ran { task, ns }).collect();
            let ran = RunTimes { tasks, others_ns, urgent_others_ns };
            let (marks, events) = placed(&seen, before, last, events, (!ordered).then_some(seed));
            let given_up = given_up.map(|(pid, seen)| GivenUp {
                pid,
                stack: if seen { frames(&["g"]) } else { Vec::new() },
                user_stack: frames(&["main"]),
            });
            // Until the timer's interrupt, or at any time.
            let irqs_off = edges.map(|(ago, length)| match marks.irq_entry {
                Some(entry) if length < 300 => {
                    (MonoNs(DRAWN_DUE - ago), MonoNs(entry.0 - length.min(entry.0)))
                }
                _ => {
                    let off = DRAWN_DUE + 10_000_000 - ago;
                    (MonoNs(off), MonoNs(off + length))
                }
            });
            let is_move = |event: &&Event| matches!(event.what, What::Moved { .. });
            let moved = events.iter().find(is_move).map(|event| event.at);
            let mut wakeup = Wakeup {
                task,
                woken_by,
                marks,
                interrupted,
                events,
                lost,
                known_switches,
                ran,
                taken: Taken { interrupts_ns, softirqs_ns, nmis_ns },
                throttled,
                throttled_from: moved.filter(|_| seed % 2 == 0),
                page_faults,
                given_up,
                irqs_off,
                quota_ns,
                ..Wakeup::default()
            };
            if let Some(scene) = scene.filter(|_| ordered) {
                scene.play(&mut wakeup);
            }
            wakeup
        },
    )
}

/// Places marks between events, each some time after what comes before it. With a `seed`, times are
/// exchanged among them.
fn placed(
    seen: &[Option<(usize, u64)>; 4],
    before: usize,
    last: (usize, u64),
    events: Vec<(u64, What)>,
    seed: Option<u64>,
) -> (Marks, Vec<Event>) {
    let lengths = events.iter().map(|event| event.0);
    let mut at = DRAWN_DUE - lengths.clone().take(before).sum::<u64>();
    let mut events = events.into_iter();
    let mut timed: Vec<Event> = Vec::new();
    let mut next = |count: usize, at: &mut u64| {
        for (length, what) in events.by_ref().take(count) {
            *at += length;
            timed.push(Event { at: MonoNs(*at), what });
        }
    };
    next(before, &mut at);
    at = at.max(DRAWN_DUE);
    let mut marks: [Option<u64>; 4] = [None; 4];
    for (mark, place) in marks.iter_mut().zip(seen) {
        let Some((count, length)) = place else { continue };
        next(*count, &mut at);
        at += length;
        *mark = Some(at);
    }
    next(last.0, &mut at);
    at += last.1;
    let response = at;
    next(usize::MAX, &mut at);
    if let Some(seed) = seed {
        let mut random = Random::new(seed);
        let mut times: Vec<u64> = timed.iter().map(|event| event.at.0).collect();
        times.extend(marks.iter().flatten());
        let count = times.len();
        random.draw(&mut times, count);
        let mut times = times.into_iter();
        timed.iter_mut().for_each(|event| event.at = MonoNs(times.next().unwrap_or(0)));
        marks.iter_mut().flatten().for_each(|mark| *mark = times.next().unwrap_or(0));
    }
    let [irq_entry, irq_exit, sched_entry, switch_in] = marks.map(|at| at.map(MonoNs));
    let (due, response) = (MonoNs(DRAWN_DUE), MonoNs(response));
    (Marks { due, irq_entry, irq_exit, sched_entry, switch_in, response }, timed)
}

/// What a run teaches.
fn knowns() -> impl Strategy<Value = Known> {
    let some = || prop::option::of(0_u64..30_000);
    let of_scheduler = (some(), prop::option::of(0_u64..3_000));
    (0_u64..3_000, of_scheduler, some(), any::<[bool; 5]>()).prop_map(
        |(
            delivery_ns,
            (scheduling_ns, least),
            waking_ns,
            [guest, ticks, probes, shows_softirqs_left, shows_throttling],
        )| Known {
            delivery_ns,
            scheduling_ns,
            least_sched_latency_ns: least,
            waking_ns,
            guest,
            ticks,
            probes,
            shows_softirqs_left,
            shows_throttling,
        },
    )
}

fn adds_up(wakeup: &Wakeup, known: &Known) -> bool {
    add_up(wakeup, &blame(wakeup, known))
}

fn add_up(wakeup: &Wakeup, shares: &[Share]) -> bool {
    let latency = wakeup.marks.response.since(wakeup.marks.due).0;
    let sum: u64 = shares.iter().map(|share| share.ns).sum();
    sum == latency
        && components(&wakeup.marks).total_ns() == latency
        && shares.iter().all(|share| share.ns > 0)
        && shares.windows(2).all(|pair| pair[0].ns >= pair[1].ns)
}

/// Draws wakeups from a seed, which a failure prints, until each rule has been used several times.
#[test]
fn every_rule_is_reached_and_shares_add_up() {
    const SEED: u8 = 7;
    const MOST: usize = 40_000;
    const EACH: u64 = 3;
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[SEED; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = (wakeups(true), knowns());
    let mut used: BTreeMap<Rule, u64> = BTreeMap::new();
    let mut gaps: BTreeSet<Gap> = BTreeSet::new();
    for number in 0..MOST {
        let (wakeup, known) = strategy.new_tree(&mut runner).unwrap().current();
        let pieces = pieces(&Tuning::default(), &wakeup, &known);
        pieces.rules().for_each(|rule| *used.entry(rule).or_default() += 1);
        let shares: Vec<Share> = pieces.decisions().into_iter().map(|one| one.share).collect();
        assert!(add_up(&wakeup, &shares), "seed {SEED}, number {number}: {wakeup:?} {known:?}");
        for share in &shares {
            let is_unexplained = share.cause == Cause::Unexplained;
            assert_eq!(
                share.gap.is_some(),
                is_unexplained,
                "seed {SEED}, number {number}: {share:?}"
            );
            let lacks_events = is_unexplained && wakeup.lost > 0;
            assert!(
                !lacks_events || share.gap == Some(Gap::LostEvents),
                "number {number}: {share:?}"
            );
            gaps.extend(share.gap);
        }
        if number % 100 == 0 && Rule::ALL.iter().all(|rule| used.get(rule) >= Some(&EACH)) {
            break;
        }
    }
    let is_seldom = |rule: &&Rule| used.get(rule).is_none_or(|&count| count < EACH);
    let seldom: Vec<&Rule> = Rule::ALL.iter().filter(is_seldom).collect();
    assert!(seldom.is_empty(), "seed {SEED}: {seldom:?} of {used:#?}");
    assert_eq!(Vec::from_iter(gaps), Gap::ALL, "seed {SEED}");
}

proptest! {
    #[test]
    fn shares_add_up_whatever_was_seen(wakeup in wakeups(false), known in knowns()) {
        prop_assert!(adds_up(&wakeup, &known), "{:?}", blame(&wakeup, &known));
    }

    #[test]
    fn shares_lie_side_by_side_in_the_wakeup(wakeup in wakeups(false), known in knowns()) {
        let decisions = decide(&Tuning::default(), &wakeup, &known);
        for Decision { share, stretches, .. } in &decisions {
            prop_assert_eq!(stretches.iter().map(|(from, to)| to - from).sum::<u64>(), share.ns);
        }
        let all = decisions.into_iter().flat_map(|decision| decision.stretches);
        let mut all: Vec<(u64, u64)> = all.collect();
        all.sort_unstable();
        prop_assert!(all.windows(2).all(|pair| pair[0].1 == pair[1].0), "{:?}", all);
    }

    #[test]
    fn shares_add_up_where_times_are_in_order(wakeup in wakeups(true), known in knowns()) {
        prop_assert!(adds_up(&wakeup, &known), "{:?}", blame(&wakeup, &known));
    }

    #[test]
    fn causes_of_a_run_have_the_time_of_all_its_late_wakeups(
        drawn in prop::collection::vec((wakeups(true), any::<bool>()), 1..12),
        above_ns in lengths(),
        guest in any::<bool>(),
    ) {
        let late_ns = |wakeup: &Wakeup| components(&wakeup.marks).total_ns();
        let all = |wakeups: &mut dyn Iterator<Item = &Wakeup>| {
            let samples: Vec<u64> = wakeups.map(late_ns).collect();
            Distribution::of(samples)
        };
        let woken = all(&mut drawn.iter().map(|(wakeup, _)| wakeup));
        let followed: Vec<Wakeup> =
            drawn.iter().filter(|(_, followed)| *followed).map(|(w, _)| w.clone()).collect();
        let mut run = Run {
            threads: vec![Thread { woken: woken.clone(), expiries: woken, ..Thread::default() }],
            ..Run::default()
        };
        run.host.hypervisor = guest.then(|| "kvm".into());
        // The probes list all of them.
        run.worst = drawn.iter().map(|(wakeup, _)| Episode {
            cpu: Some(wakeup.cpu),
            expiry_ns: DRAWN_DUE,
            wakeup_latency_ns: late_ns(wakeup),
            ..Episode::default()
        }).collect();
        let seen = Seen {
            wakeup_latency: all(&mut followed.iter()),
            records: followed.len() as u64,
            wakeups: followed,
            ..Seen::default()
        };
        account(&mut run, seen, Above::Time(SpanNs(above_ns.max(1))));
        let late: Vec<u64> =
            drawn.iter().map(|(w, _)| late_ns(w)).filter(|&ns| ns >= above_ns.max(1)).collect();
        let explanation = run.explanation.as_ref().unwrap();
        prop_assert_eq!(explanation.late, late.len() as u64);
        let caused: u64 = run.causes.iter().map(|row| row.total_ns).sum();
        let whole: u64 = late.iter().sum();
        prop_assert!(caused.abs_diff(whole) <= whole / 256, "{caused} of {whole}: {explanation:?}");
        let shares: f64 = run.causes.iter().map(|row| row.share).sum();
        prop_assert!(whole == 0 || (shares - 1.0).abs() < 1e-9);
        prop_assert!(run.validity.findings.iter().all(|f| f.code != "contradictory-counts"));
    }

    #[test]
    fn it_makes_no_difference_how_long_ago_the_clock_began(
        wakeup in wakeups(false),
        known in knowns(),
    ) {
        let mut late = wakeup.clone();
        let later = |at: &mut MonoNs| at.0 += u64::MAX - 2_000_000_000;
        let Marks { due, irq_entry, irq_exit, sched_entry, switch_in, response } = &mut late.marks;
        let seen = [irq_entry, irq_exit, sched_entry, switch_in].into_iter().flatten();
        seen.chain([due, response]).for_each(later);
        late.events.iter_mut().for_each(|event| later(&mut event.at));
        late.irqs_off.iter_mut().for_each(|(off, on)| [off, on].into_iter().for_each(later));
        late.known_switches.iter_mut().for_each(|known| later(&mut known.from));
        prop_assert_eq!(blame(&late, &known), blame(&wakeup, &known));
    }

    #[test]
    fn timelines_are_short_and_in_order(wakeup in wakeups(false)) {
        let steps = crate::timeline(&wakeup);
        let latency = wakeup.marks.response.since(wakeup.marks.due).0;
        prop_assert!(steps.len() <= 40);
        prop_assert!(steps.iter().all(|step| step.at_ns <= latency), "{steps:?}");
        prop_assert!(steps.windows(2).all(|pair| pair[0].at_ns <= pair[1].at_ns), "{steps:?}");
    }

    #[test]
    fn pieces_have_neither_gaps_nor_overlaps(wakeup in wakeups(true), known in knowns()) {
        let case = super::super::Case::of(&Tuning::default(), &wakeup, &known);
        let mut pieces = super::super::sweep::pieces(&case);
        super::super::cover::cover_with_nmis_and_tracer(&mut pieces, &case);
        super::super::cover::cover_with_stolen_time(&mut pieces, &case);
        super::super::cover::cover_with_quota(&mut pieces, &case);
        super::super::cover::cover_with_runners(&mut pieces, &case);
        super::super::cover::cover_with_arrivals(&mut pieces, &case);
        super::super::standstill::cover_with_standstills(&mut pieces, &case);
        let borders = pieces.borders();
        if let (Some(first), Some(last)) = (borders.first(), borders.last()) {
            prop_assert_eq!((first.0, last.1), (wakeup.marks.due.0, wakeup.marks.response.0));
        }
        prop_assert!(borders.windows(2).all(|pair| pair[0].1 == pair[1].0), "{borders:?}");
        prop_assert!(borders.iter().all(|&(from, to)| from <= to), "{borders:?}");
    }

    #[test]
    fn after_a_loss_nothing_is_certain_but_what_marks_bound(
        mut wakeup in wakeups(true),
        known in knowns(),
    ) {
        wakeup.lost = 1;
        let marks = wakeup.marks.consistent();
        let by_interrupt = matches!(wakeup.woken_by, WokenBy::Timer { .. } | WokenBy::Unknown)
            || marks.irq_exit.is_some();
        for share in blame(&wakeup, &known) {
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
        known in knowns(),
        gone in any::<prop::sample::Index>(),
    ) {
        let mut less = wakeup.clone();
        if less.events.is_empty() {
            return Ok(());
        }
        less.events.remove(gone.index(wakeup.events.len()));
        // It may be a switch.
        (less.lost, less.known_switches) = (1, None);
        // Programs know who ran without events, and what interrupts took.
        (less.ran, less.taken) = (RunTimes::default(), Taken::default());
        // Named by an event that was lost, a task or softirq must not appear.
        let shares = blame(&less, &known);
        let from_events = [Cause::Softirq, Cause::HigherPriorityTask, Cause::EqualOrLowerTask];
        prop_assert!(shares.iter().all(|share| !from_events.contains(&share.cause)), "{shares:?}");
    }
}
