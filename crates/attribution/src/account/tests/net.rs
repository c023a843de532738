//! The second account of late wakeups: without stolen time.

use super::*;
use crate::calibrate;
use crate::{Part, rank};
use proptest::prelude::*;
use wakescope_core::explain::{CauseRow, Event, NetOfSteal, Share, What};

/// A wakeup of which so much was stolen, as the clock says.
fn stolen_from(expiry_ns: u64, late_ns: u64, stolen_ns: u64) -> Wakeup {
    let mut wakeup = wakeup(0, expiry_ns, late_ns);
    let reading = |at, ns| Event { at, what: What::Steal(ns) };
    let Marks { due, response, .. } = wakeup.marks;
    wakeup.events = vec![reading(due, 1_000), reading(response, 1_000 + stolen_ns)];
    wakeup.stolen_ns = stolen_ns;
    wakeup
}

/// What a tracer saw of these, some of which found no room.
fn seen_of(wakeups: &[Wakeup], has_room: impl Fn(usize) -> bool) -> Seen {
    let mut all = seen(wakeups);
    let net = wakeups.iter().map(|w| components(&w.marks).total_ns() - w.stolen_ns);
    all.net_of_steal = distribution(&net.collect::<Vec<u64>>());
    all.wakeups.clear();
    for (number, wakeup) in wakeups.iter().enumerate() {
        match has_room(number) {
            true => all.wakeups.push(wakeup.clone()),
            false => {
                let parts = components(&wakeup.marks);
                // The components of this run have no more to tell.
                let known = calibrate(&all.components, Machine::default(), true);
                all.abridged.add(parts, wakeup.stolen_ns, blame(wakeup, &known));
            }
        }
    }
    all
}

fn accounted(samples: &[u64], seen: Seen, asked: &str) -> Run {
    let mut run = measured(samples, Vec::new());
    run.plan.worst = 3;
    account(&mut run, seen, above(asked));
    run
}

fn net(run: &Run) -> &NetOfSteal {
    run.net_of_steal.as_ref().expect("a second account")
}

#[test]
fn what_the_hypervisor_delayed_is_not_late_without_it() {
    let wakeups = [
        stolen_from(1_000, 90_000, 89_000),
        stolen_from(2_000, 80_000, 80_000),
        stolen_from(3_000, 7_000, 0),
        stolen_from(4_000, 5_000, 100),
        stolen_from(5_000, 100, 0),
    ];
    let samples = wakeups.each_ref().map(|w| components(&w.marks).total_ns());
    let run = accounted(&samples, seen_of(&wakeups, |_| true), "2us");
    assert_eq!((explanation_of(&run).late, net(&run).late, net(&run).explained), (4, 2, 2));
    let worst = net(&run).worst.iter().map(|e| (e.expiry_ns, e.wakeup_latency_ns, e.stolen_ns));
    assert_eq!(worst.collect::<Vec<_>>(), [(3_000, 7_000, None), (4_000, 5_000, Some(100))]);
    assert!(net(&run).causes.iter().all(|row| row.cause != Cause::Steal), "{:?}", net(&run).causes);
    assert_eq!(net(&run).causes.iter().map(|row| row.total_ns).sum::<u64>(), 7_000 + 4_900);
    assert!(run.causes.iter().any(|row| row.cause == Cause::Steal));
}

#[test]
fn the_percentile_is_one_of_the_lateness_without_stolen_time() {
    // Of 200 four are late by 30 ns, and ten by what was stolen: with it, p99 is one of these.
    let mut wakeups: Vec<Wakeup> = (0..186).map(|n| stolen_from(n * 10, 10, 0)).collect();
    wakeups.extend((0..4).map(|n| stolen_from(5_000 + n * 10, 30, 0)));
    wakeups.extend((0..10).map(|n| stolen_from(6_000 + n * 10, 500, 490)));
    let samples: Vec<u64> = wakeups.iter().map(|w| components(&w.marks).total_ns()).collect();
    let run = accounted(&samples, seen_of(&wakeups, |_| true), "p99");
    assert_eq!((explanation_of(&run).above_ns, explanation_of(&run).late), (500, 10));
    assert_eq!((net(&run).above_ns, net(&run).late, net(&run).above.as_str()), (30, 4, "p99"));
}

#[test]
fn all_lateness_of_those_that_were_not_followed_counts() {
    let wakeups = [stolen_from(1_000, 900, 800), stolen_from(2_000, 700, 0)];
    // One was not followed, and the record of another was lost.
    let samples = [900, 850, 700, 600, 10];
    let mut all = seen_of(&wakeups, |_| true);
    all.wakeup_latency = distribution(&[900, 700, 600, 10]);
    all.net_of_steal = distribution(&[100, 700, 600, 10]);
    all.lost_records = 1;
    let run = accounted(&samples, all, "500ns");
    let NetOfSteal { late, explained, late_not_followed, unexplained_ns, .. } = *net(&run);
    assert_eq!((late, explained, late_not_followed, unexplained_ns), (3, 1, 1, 850 + 600));
    assert_eq!(net(&run).causes.iter().map(|row| row.total_ns).sum::<u64>(), 700 + 850 + 600);
}

#[test]
fn where_it_is_not_known_how_late_all_were_without_it_nothing_is_said() {
    let wakeups = [stolen_from(1_000, 900, 800)];
    let seen = Seen { net_of_steal: Distribution::default(), ..seen_of(&wakeups, |_| true) };
    assert_eq!(accounted(&[900], seen, "500ns").net_of_steal, None);
}

proptest! {
    /// The second ranking is that of wakeups which the hypervisor never delayed.
    #[test]
    fn the_second_ranking_is_that_of_the_wakeups_with_steal_cut_out(
        drawn in prop::collection::vec((10_u64..100_000, 0_u64..=4, any::<bool>()), 1..30),
        above_ns in 1_u64..50_000,
    ) {
        let wakeups: Vec<Wakeup> = (0..)
            .zip(&drawn)
            .map(|(n, &(ns, quarters, _))| stolen_from(n * 1_000_000, ns, ns * quarters / 4))
            .collect();
        let samples: Vec<u64> = drawn.iter().map(|d| d.0).collect();
        let seen = seen_of(&wakeups, |number| drawn[number].2);
        let known = calibrate(&seen.components, Machine::default(), true);
        let run = accounted(&samples, seen, &format!("{above_ns}ns"));
        let late = wakeups.iter().filter(|w| components(&w.marks).total_ns() >= above_ns);
        if late.clone().all(|wakeup| wakeup.stolen_ns == 0) {
            prop_assert_eq!(&run.net_of_steal, &None);
            return Ok(());
        }
        let without: Vec<(u64, Vec<Share>)> = late
            .map(|wakeup| {
                let mut shares = blame(wakeup, &known);
                let is_stolen = |share: &&Share| share.cause == Cause::Steal;
                let stolen: u64 = shares.iter().filter(is_stolen).map(|share| share.ns).sum();
                assert_eq!(stolen, wakeup.stolen_ns);
                shares.retain(|share| share.cause != Cause::Steal);
                (components(&wakeup.marks).total_ns() - stolen, shares)
            })
            .filter(|(ns, _)| *ns >= above_ns)
            .collect();
        let want: Vec<CauseRow> = rank(without.iter().map(|(ns, shares)| Part::of(*ns, shares)));
        let got = net(&run);
        prop_assert_eq!(&got.causes, &want);
        prop_assert_eq!((got.late, got.explained), (without.len() as u64, without.len() as u64));
        let total_ns: u64 = got.causes.iter().map(|row| row.total_ns).sum();
        prop_assert_eq!(total_ns, without.iter().map(|(ns, _)| ns).sum::<u64>());
    }
}
