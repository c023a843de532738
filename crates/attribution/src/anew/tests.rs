use proptest::prelude::*;

use super::*;
use crate::testing::{function, who};
use crate::{Part, Seen, account, blame, components, rank, rank_by};
use wakescope_core::distribution::Distribution;
use wakescope_core::explain::{Above, Culprit, Event, Interrupt, Marks, Wakeup, What, WokenBy};
use wakescope_core::run::Thread;
use wakescope_core::units::{MonoNs, SpanNs};

const ORIGIN: u64 = 1_000_000;

/// A timer's wakeup with an interrupt in it that takes a part of its time.
fn wakeup(expiry_ns: u64, late_ns: u64, interrupt: &str) -> Wakeup {
    let due = MonoNs(ORIGIN + expiry_ns);
    let at = |part: u64| due.after(SpanNs(late_ns * part / 10));
    let marks = Marks {
        due,
        irq_entry: Some(at(5)),
        irq_exit: Some(at(6)),
        sched_entry: Some(at(8)),
        switch_in: Some(at(9)),
        response: due.after(SpanNs(late_ns)),
    };
    let interrupt = || Interrupt(interrupt.into());
    let events = vec![
        Event { at: at(1), what: What::IrqEntry(interrupt()) },
        Event { at: at(3), what: What::IrqExit(interrupt()) },
    ];
    Wakeup { woken_by: WokenBy::Timer { on: 0 }, marks, events, ..Wakeup::default() }
}

/// A run in which `whole` wakeups are stored and `in_short` are not, with its episodes.
pub(super) fn run(whole: &[Wakeup], in_short: &[Wakeup]) -> (Run, Vec<Attributed>) {
    let all: Vec<u64> =
        whole.iter().chain(in_short).map(|wakeup| components(&wakeup.marks).total_ns()).collect();
    let woken = Distribution::of(all.iter().copied());
    let net = |wakeup: &Wakeup| components(&wakeup.marks).total_ns() - wakeup.stolen_ns;
    let net: Vec<u64> = whole.iter().chain(in_short).map(net).collect();
    let mut seen = Seen {
        wakeups: whole.to_vec(),
        net_of_steal: Distribution::of(net.iter().copied()),
        wakeup_latency: woken.clone(),
        known: Some(Known::default()),
        ..Seen::default()
    };
    for wakeup in in_short {
        seen.abridged.add(
            components(&wakeup.marks),
            wakeup.stolen_ns,
            blame(wakeup, &Known::default()),
        );
    }
    let listed = |wakeup: &Wakeup| Episode {
        expiry_ns: wakeup.marks.due.0 - ORIGIN,
        wakeup_latency_ns: components(&wakeup.marks).total_ns(),
        ..Episode::default()
    };
    let mut run = Run {
        origin_ns: ORIGIN,
        threads: vec![Thread { woken, ..Thread::default() }],
        worst: whole.iter().map(listed).collect(),
        ..Run::default()
    };
    run.plan.worst = 10;
    let accounted = account(&mut run, seen, Above::Time(SpanNs(1)));
    (run, accounted.episodes)
}

fn anew(run: &Run, episodes: Vec<Attributed>) -> Run {
    let mut again = run.clone();
    let mut reattribution = Reattribution::of(run, None);
    for episode in episodes {
        reattribution.add(episode, &Known::default(), &Budget::default()).unwrap();
    }
    reattribution.finish(&mut again, 0);
    again
}

/// The ranking without the order of what is equal.
fn table(run: &Run) -> Vec<String> {
    let row = |row: &CauseRow| {
        let CauseRow { cause, episodes, total_ns, worst_ns, .. } = row;
        format!("{cause} {} {episodes} {total_ns} {worst_ns}", who(row.blamed()))
    };
    let mut rows: Vec<String> = run.causes.iter().map(row).collect();
    rows.sort();
    rows
}

pub(super) fn some() -> (Vec<Wakeup>, Vec<Wakeup>) {
    let whole = vec![wakeup(1_000, 90_000, "eth0"), wakeup(2_000, 80_000, "nvme0q1")];
    (whole, vec![wakeup(3_000, 40_000, "eth0"), wakeup(4_000, 30_000, "usb")])
}

#[test]
fn with_the_same_rules_the_record_stays_as_it_was() {
    let (whole, in_short) = some();
    let (run, episodes) = run(&whole, &in_short);
    let mut again = anew(&run, episodes);
    let explanation = again.explanation.as_mut().unwrap().anew.take().unwrap();
    assert_eq!(explanation, Anew { episodes: 2, ..Anew::default() });
    assert_eq!(again, run);
}

#[test]
fn why_time_is_unexplained_is_no_answer_and_is_told_anew() {
    let (whole, in_short) = some();
    let (today, mut episodes) = run(&whole, &in_short);
    let mut old = today.clone();
    let recorded = old.worst.iter_mut().map(|listed| &mut listed.blame);
    let shares = recorded.chain(episodes.iter_mut().map(|episode| &mut episode.blame)).flatten();
    let gaps = shares.filter_map(|share| share.gap.take()).count();
    assert!(gaps > 0);
    let mut again = anew(&old, episodes);
    assert_eq!(again.explanation.as_mut().unwrap().anew.take().unwrap().changed, 0);
    assert_eq!(again, today);
}

#[test]
fn the_ranking_without_stolen_time_stays_and_changes_with_the_other() {
    let (mut whole, in_short) = some();
    whole[0].stolen_ns = 20_000;
    let (today, episodes) = run(&whole, &in_short);
    let mut again = anew(&today, episodes.clone());
    assert_eq!(again.net_of_steal.as_ref().unwrap().worst[0].wakeup_latency_ns, 80_000);
    again.explanation.as_mut().unwrap().anew = None;
    assert_eq!(again, today);
    // Another rule gave the time of the later one to something else.
    let (mut old, episodes) = (today.clone(), episodes.into_iter().map(by_another_rule));
    let episodes: Vec<Attributed> = episodes.collect();
    let net = old.net_of_steal.as_mut().unwrap();
    let stored = episodes.iter().map(|episode| episode.part(NetOfSteal));
    let short = in_short.iter().map(|wakeup| attribute(wakeup.clone(), &Known::default()));
    let short: Vec<Attributed> = short.collect();
    net.causes = rank(stored.chain(short.iter().map(|episode| episode.part(NetOfSteal))));
    assert_ne!(net.causes, today.net_of_steal.as_ref().unwrap().causes);
    let again = anew(&old, episodes);
    let causes = |run: &Run| {
        let rows = run.net_of_steal.as_ref().unwrap().causes.iter();
        rows.map(|row| (row.cause, who(row.blamed()), row.total_ns)).collect::<Vec<_>>()
    };
    assert_eq!(causes(&again), causes(&today));
}

#[test]
fn a_wakeup_that_is_late_only_without_stolen_time_is_no_late_one() {
    let (whole, _) = some();
    let (mut run, episodes) = run(&whole, &[]);
    run.explanation.as_mut().unwrap().above_ns = 85_000;
    let again = anew(&run, episodes);
    assert_eq!(again.explanation.unwrap().anew.unwrap().episodes, 1);
}

#[test]
fn answers_of_wakeups_that_are_late_only_without_stolen_time_do_not_change_silently() {
    let mut whole = [wakeup(1_000, 90_000, "nvme0q1"), wakeup(2_000, 80_000, "eth0")];
    whole[0].stolen_ns = 20_000;
    let (mut run, episodes) = run(&whole, &[]);
    run.explanation.as_mut().unwrap().above_ns = 85_000;
    run.net_of_steal.as_mut().unwrap().above_ns = 75_000;
    let episodes = episodes.into_iter().map(by_another_rule).collect();
    let told = anew(&run, episodes).explanation.unwrap().anew.unwrap();
    assert_eq!((told.episodes, told.changed, told.changed_net_of_steal), (1, 0, 1));
    let answers = |change: &Change| (change.before.cause, change.after.cause, change.episodes);
    let changes: Vec<_> = told.changes.iter().map(answers).collect();
    assert_eq!(changes, [(Cause::Softirq, Cause::Irq, 1)]);
}

#[test]
fn late_time_is_ranked_by_subjects_as_well() {
    let (whole, in_short) = some();
    for (in_short, complete) in [(&[][..], true), (&in_short[..], false)] {
        let (mut run, episodes) = run(&whole, in_short);
        let mut reattribution = Reattribution::of(&run, Some(By::Function));
        for episode in episodes.clone() {
            reattribution.add(episode, &Known::default(), &Budget::default()).unwrap();
        }
        reattribution.finish(&mut run, 0);
        let stored = episodes.iter().map(|e| (e.wakeup_latency_ns(), e.blame.as_slice()));
        assert_eq!(run.ranking, Some(rank_by(By::Function, stored, complete)));
    }
}

/// What a rule of another version found, which blamed another interrupt.
fn by_another_rule(mut episode: Attributed) -> Attributed {
    for share in &mut episode.blame {
        if share.cause == Cause::Irq && share.culprit == Culprit::interrupt("eth0") {
            *share = Share {
                cause: Cause::Softirq,
                culprit: Culprit::softirq("NET_RX"),
                ..share.clone()
            };
        }
    }
    episode
}

#[test]
fn an_answer_that_changed_is_told_and_the_rest_of_the_ranking_stays() {
    let (whole, in_short) = some();
    let (today, episodes) = run(&whole, &in_short);
    let episodes: Vec<Attributed> = episodes.into_iter().map(by_another_rule).collect();
    // The record as that version wrote it: the rest of it was found by that rule as well.
    let mut old = today.clone();
    let mut parts: Vec<Part> =
        episodes.iter().map(|e| Part::of(e.wakeup_latency_ns(), &e.blame)).collect();
    let short: Vec<Vec<Share>> =
        in_short.iter().map(|wakeup| blame(wakeup, &Known::default())).collect();
    parts.extend(
        in_short
            .iter()
            .zip(&short)
            .map(|(wakeup, blame)| Part::of(components(&wakeup.marks).total_ns(), blame)),
    );
    old.causes = rank(parts);
    for (listed, episode) in old.worst.iter_mut().zip(&episodes) {
        listed.blame.clone_from(&episode.blame);
    }
    let again = anew(&old, episodes);
    let explanation = again.explanation.as_ref().unwrap().anew.clone().unwrap();
    assert_eq!((explanation.episodes, explanation.changed, explanation.excess_ns), (2, 1, 0));
    let [change] = &explanation.changes[..] else { panic!("{explanation:?}") };
    assert_eq!(change.before.culprit, Culprit::softirq("NET_RX"));
    assert_eq!(change.after.culprit, Culprit::interrupt("eth0"));
    assert_eq!((change.episodes, change.ns), (1, 18_000));
    assert_eq!(table(&again), table(&today));
    assert_eq!(again.worst, today.worst);
}

#[test]
fn shares_that_the_record_does_not_have_are_an_excess() {
    let (whole, in_short) = some();
    let (run, mut episodes) = run(&whole, &in_short);
    let twice = episodes[1].clone();
    let nvme_ns = 16_000;
    episodes.push(twice);
    let again = anew(&run, episodes.clone());
    let explanation = again.explanation.unwrap().anew.unwrap();
    assert!(explanation.excess_ns >= nvme_ns, "{explanation:?}");
    let stranger =
        Share { cause: Cause::IrqOff, culprit: function("f"), ns: 80_000, ..Share::default() };
    episodes.pop();
    episodes[1].blame = vec![stranger];
    let explanation = anew(&run, episodes).explanation.unwrap().anew.unwrap();
    assert_eq!((explanation.changed, explanation.excess_ns), (1, 80_000));
}

#[test]
fn an_episode_counts_once_in_the_row_of_others() {
    let share = |cause, name: &str, ns| Share {
        cause,
        culprit: Culprit::interrupt(name),
        ns,
        ..Share::default()
    };
    let of = |name: &str, others, episodes, total_ns| {
        let (cause, culprit) = (Cause::Irq, Culprit::interrupt(name));
        let culprit = if others { Culprit::default() } else { culprit };
        CauseRow { cause, culprit, others, episodes, total_ns, worst_ns: 40, ..CauseRow::default() }
    };
    let ranked = |after: &[Share]| {
        let mut exchange = Exchange::of(&[of("eth0", false, 3, 90), of("", true, 5, 100)]);
        let before = ["a", "b", "eth0"].map(|name| share(Cause::Irq, name, 10));
        exchange.add(&before, after, &Budget::default()).unwrap();
        let (rows, excess_ns) = exchange.ranked();
        assert_eq!(excess_ns, 0);
        let rows = rows.iter().map(|row| (row.cause, row.others, row.episodes, row.total_ns));
        rows.collect::<Vec<_>>()
    };
    let (irq, softirq) = (Cause::Irq, Cause::Softirq);
    // It leaves the row, and comes into it.
    let after = [share(softirq, "NET_RX", 30)];
    assert_eq!(ranked(&after), [(irq, false, 2, 80), (irq, true, 4, 80), (softirq, false, 1, 30)]);
    let after = ["a", "c", "d"].map(|name| share(irq, name, 10));
    assert_eq!(ranked(&after), [(irq, true, 5, 110), (irq, false, 2, 80)]);
}

#[test]
fn sections_of_episodes_are_found_anew_and_others_stay() {
    let section = |ns, name: &str| Share {
        cause: Cause::IrqOff,
        culprit: function(name),
        ns,
        frames: vec![Frame::in_function(name, 1)],
        ..Share::default()
    };
    let check =
        |recorded: Option<&Share>, before: &[&Share], after: &[&Share], want: Option<&str>| {
            let mut all =
                LongestSections { recorded: [recorded.cloned(), None], ..Default::default() };
            let owned = |shares: &[&Share]| shares.iter().map(|&s| s.clone()).collect::<Vec<_>>();
            let (mut before, after) = (owned(before), owned(after));
            before.iter_mut().for_each(without_stacks);
            all.see(&before, &after);
            let [longest, _] = all.longest();
            let named = longest.map(|share| share.frames[0].name().to_owned());
            assert_eq!(named.as_deref(), want);
        };
    let (f, g) = (section(90, "f"), section(50, "g"));
    check(None, &[], &[], None);
    check(Some(&f), &[&f], &[&f], Some("f"));
    check(Some(&f), &[&f], &[&g], Some("g"));
    check(Some(&f), &[&f], &[], None);
    // That of a wakeup that is not stored.
    check(Some(&f), &[&g], &[], Some("f"));
    check(Some(&f), &[], &[&g], Some("f"));
    check(Some(&g), &[], &[&f], Some("f"));
}

#[test]
fn lines_of_source_are_kept_where_an_answer_changes() {
    let line = |line| Frame {
        file: Some("mm/shmem.c".into()),
        line,
        ..Frame::in_function("shmem_undo_range", 16)
    };
    let mut run = Run::default();
    let share = |frame| Share { frames: vec![frame], ..Share::default() };
    run.worst = vec![Episode { blame: vec![share(line(7))], ..Episode::default() }];
    let lines = lines_of(&mut run);
    run.worst[0].blame = vec![
        share(Frame::in_function("shmem_undo_range", 16)),
        share(Frame::in_function("shmem_undo_range", 17)),
    ];
    put_lines(&mut run, &lines);
    let frames: Vec<&Frame> = run.worst[0].blame.iter().flat_map(|share| &share.frames).collect();
    assert_eq!(frames, [&line(7), &Frame::in_function("shmem_undo_range", 17)]);
}

#[test]
fn more_causes_than_an_input_may_have_are_refused() {
    let (whole, in_short) = some();
    let (run, episodes) = run(&whole, &in_short);
    let mut reattribution = Reattribution::of(&run, None);
    let budget = Budget::of(1_000);
    let mut name = 0;
    let ended = (0..100).try_for_each(|_| {
        let blame = (0..4_096).map(|_| {
            name += 1;
            let culprit = Culprit::interrupt(&format!("{name}"));
            Share { cause: Cause::Irq, culprit, ns: 1, ..Share::default() }
        });
        let episode = Attributed { blame: blame.collect(), ..episodes[0].clone() };
        reattribution.add(episode, &Known::default(), &budget)
    });
    let why = ended.unwrap_err().to_string();
    assert!(why.contains("more than 128 MB of memory for causes"), "{why}");
}

proptest! {
    /// Whatever is stored of a run, what is attributed anew by the same rules changes nothing.
    #[test]
    fn the_ranking_is_the_same_whatever_is_stored(
        all in prop::collection::vec((1_u64..5_000_000, 0_u8..4, any::<bool>()), 1..30),
    ) {
        let wakeup = |(i, &(late_ns, name, _)): (usize, &(u64, u8, bool))| {
            wakeup(i as u64 * 10_000_000, late_ns, ["", "eth0", "usb", "local_timer"][usize::from(name)])
        };
        let wakeups: Vec<Wakeup> = all.iter().enumerate().map(wakeup).collect();
        let of = |stored| {
            let some = wakeups.iter().zip(&all).filter(move |(_, of)| of.2 == stored);
            some.map(|(wakeup, _)| wakeup.clone()).collect::<Vec<_>>()
        };
        let (run, episodes) = run(&of(true), &of(false));
        let mut again = anew(&run, episodes);
        let explanation = again.explanation.as_mut().unwrap().anew.take().unwrap();
        prop_assert_eq!((explanation.changed, explanation.excess_ns), (0, 0));
        prop_assert_eq!(again, run);
    }
}
