use std::sync::LazyLock;

use super::super::{Order, Outcome};
use super::*;
use wakescope_core::date::Date;
use wakescope_core::preemption::Model;
use wakescope_core::random::Random;
use wakescope_core::watch::boot::{Boot, host_of};
use wakescope_core::watch::meter::{Meter, Reading};
use wakescope_core::watch::scale::{BUCKETS, edges_of};
use wakescope_core::watch::sum::Sum;
use wakescope_core::watch::{Audit, Cpu, OwnCost, SCHEMA, Series, Waits, Window};

mod beyond_the_scale;

/// A machine that is made up: how its load goes on, and its tasks, with how much longer each waits.
struct Machine<'a> {
    random: &'a mut Random,
    load: f64,
    tasks: Vec<(&'a str, f64)>,
}

impl<'a> Machine<'a> {
    /// One of a fleet whose machines differ by some 20 %, and the waits of each task by as much again.
    fn new(random: &'a mut Random, tasks: &[(&'a str, f64)]) -> Self {
        let own = (0.2 * normal(random)).exp();
        let mut task = |slower: f64| slower * own * (0.2 * normal(random)).exp();
        let tasks = tasks.iter().map(|&(comm, slower)| (comm, task(slower))).collect();
        let load = normal(random);
        Self { random, load, tasks }
    }

    /// The next window. Its load is much as that of the one before.
    fn window(&mut self, started: i64) -> Window {
        self.load = 0.9 * self.load + (1.0_f64 - 0.81).sqrt() * normal(self.random);
        let busy = (0.3 * self.load).exp();
        let mut all = Waits::default();
        let series = self.tasks.iter().map(|&(comm, slower)| {
            // A log-normal distribution, some 4,000 waits, with a little chance of its own.
            let own = slower * busy * (0.05 * normal(self.random)).exp();
            let waits = waits((-30..=34).map(|tenths| {
                let z = f64::from(tenths) / 10.0;
                let count = (160.0 * busy * (-z * z / 2.0).exp()).round();
                (20_000.0 * own * (1.2 * z).exp(), whole(count))
            }));
            all = all.merged(&waits);
            Series { cgroup_id: 7, cgroup: Some("/s".into()), comm: comm.into(), waits }
        });
        let series = series.collect();
        let switches = whole(4e5 * busy);
        window(started, series, Cpu { cpu: 0, switches, waits: all })
    }

    /// The windows of a watch that began then.
    fn windows(&mut self, started: i64) -> Vec<Window> {
        (0..8).map(|i| self.window(started + 600 * i)).collect()
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Between 0 and 2^53.
fn whole(number: f64) -> u64 {
    number as u64
}

fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| random.uniform()).sum::<f64>() - 6.0
}

/// Where buckets begin, ns.
static EDGES: LazyLock<Vec<u64>> =
    LazyLock::new(|| (0..BUCKETS).map(|index| edges_of(index).0).collect());

/// Waits of these lengths, each so many, on the scale of the kernel's program.
fn waits(of: impl Iterator<Item = (f64, u64)>) -> Waits {
    let (mut counts, mut sum_ns) = (vec![0_u64; BUCKETS], 0);
    let (mut min_ns, mut max_ns) = (u64::MAX, 0);
    for (ns, count) in of.filter(|&(_, count)| count > 0) {
        let ns = whole(ns);
        counts[EDGES.partition_point(|&edge| edge <= ns) - 1] += count;
        sum_ns += ns * count;
        min_ns = min_ns.min(ns);
        max_ns = max_ns.max(ns);
    }
    let buckets = counts.into_iter().enumerate().filter(|(_, count)| *count > 0).collect();
    Meter::default().read(Reading { sum_ns, max_ns, min_ns, buckets })
}

fn window(started: i64, series: Vec<Series>, cpu: Cpu) -> Window {
    Window {
        schema: SCHEMA.into(),
        started: Date::from_seconds(started).unwrap().to_string(),
        window_ns: 600_000_000_000,
        series,
        cpus: vec![cpu],
        series_used: 5,
        series_limit: 9,
        own_cost: OwnCost { agent_ns: 1, program_runs: 9, cpus: 2, ..OwnCost::default() },
        ..Window::default()
    }
}

fn observed(windows: Vec<Window>) -> Observed {
    let date = |window: &Window| Date::parse(&window.started).unwrap();
    let first = date(&windows[0]);
    let end = date(&windows[windows.len() - 1]).seconds() + 600;
    let mut sum = Sum::default();
    windows.into_iter().for_each(|window| sum.add(window));
    let end = Date::from_seconds(end).unwrap();
    Observed::of(&sum.window().unwrap(), first, end, Grouping::Series)
}

const NOON: i64 = 1_795_000_000;
const TASKS: [(&str, f64); 6] =
    [("nginx", 1.0), ("postgres", 0.7), ("cron", 2.0), ("java", 1.5), ("sshd", 1.0), ("etcd", 0.5)];

/// As many watches, each of a machine of its own, all at the same time.
fn fleet(count: usize, random: &mut Random, tasks: &[(&str, f64)]) -> Vec<Observed> {
    (0..count).map(|_| observed(Machine::new(random, tasks).windows(NOON))).collect()
}

fn held(new: &[Observed], old: &[Observed], options: &Options) -> Result<Compare, Box<Refusal>> {
    let names = |side: &str| -> Vec<String> { (0..500).map(|i| format!("{side}{i}")).collect() };
    let (new_names, old_names) = (names("n"), names("o"));
    fn watched<'a>(names: &'a [String], watches: &'a [Observed]) -> Vec<Watched<'a>> {
        names.iter().zip(watches).map(|(label, watch)| Watched { label, watch }).collect()
    }
    let (new, old) = (watched(&new_names, new), watched(&old_names, old));
    compare_watches(&new, &old, Grouping::Series, options)
}

fn got(new: &[Observed], old: &[Observed]) -> Compare {
    held(new, old, &Options::default()).unwrap()
}

/// The most of so many comparisons in which alike sides may be called different: 5 % of them, and three
/// standard deviations more.
fn most_of(comparisons: u64) -> f64 {
    let n = comparisons as f64;
    0.05 * n + 3.0 * (0.05 * 0.95 * n).sqrt()
}

fn is_called_different(compare: &Compare) -> bool {
    matches!(compare.verdict, Verdict::Better | Verdict::Worse)
        || compare.watches.iter().flat_map(|w| &w.groups).any(|group| {
            let verdict = group.tested.as_ref().map(|effect| effect.verdict);
            matches!(verdict, Some(Verdict::Better | Verdict::Worse))
        })
}

#[test]
fn alike_fleets_are_called_different_as_rarely_as_allowed() {
    let seeds = 0..150;
    let different = seeds.clone().filter(|&seed| {
        let mut random = Random::new(seed);
        let [new, old] = [(); 2].map(|()| fleet(6, &mut random, &TASKS));
        let options = Options { margin: 0.0, ..Options::default() };
        let got = held(&new, &old, &options).unwrap();
        assert_eq!(got.watches.as_ref().unwrap().deciding().count(), 6, "seed {seed}");
        is_called_different(&got)
    });
    let different: Vec<u64> = different.collect();
    assert!(different.len() as f64 <= most_of(seeds.end), "seeds {different:?}");
}

/// The reason why a watch is one run: windows of one machine differ from those of another, or of another day,
/// and there are as many of them as one likes.
#[test]
fn windows_that_are_taken_as_runs_would_differ_more_often_than_not() {
    let seeds = 0..40;
    let different = seeds.clone().filter(|&seed| {
        let mut random = Random::new(seed);
        let [new, old] = [(); 2].map(|()| {
            let windows = Machine::new(&mut random, &TASKS).windows(NOON);
            windows.into_iter().map(|window| observed(vec![window])).collect::<Vec<_>>()
        });
        let options = Options { margin: 0.0, force: true, ..Options::default() };
        is_called_different(&held(&new, &old, &options).unwrap())
    });
    let different: Vec<u64> = different.collect();
    assert!(different.len() > 20, "seeds {different:?}");
}

#[test]
fn a_series_that_became_slower_is_found_and_only_it() {
    for seed in 0..10 {
        let mut random = Random::new(seed);
        let old = fleet(8, &mut random, &TASKS);
        let mut slower = TASKS;
        slower[4].1 *= 3.0;
        let new = fleet(8, &mut random, &slower);
        let got = got(&new, &old);
        assert_eq!((got.verdict, got.outcome), (Verdict::Worse, Outcome::Fail), "seed {seed}");
        let watches = got.watches.unwrap();
        let worse: Vec<String> =
            watches.with(Verdict::Worse).map(|(group, _)| group.name()).collect();
        assert_eq!(worse, ["sshd in /s"], "seed {seed}");
        assert_eq!(watches.with(Verdict::Better).count(), 0, "seed {seed}");
        let sshd = watches.with(Verdict::Worse).next().unwrap().0;
        let waited = sshd.waited_ns.unwrap();
        assert!((1.5..6.0).contains(&waited.ratio), "seed {seed}: {waited:?}");
    }
}

/// Waits of one series, all of about this length, so that machines hardly differ.
fn steady(count: usize, us: &[u64], started: i64, switches: u64) -> Vec<Observed> {
    let of = |i: usize| {
        let series: Vec<Series> = us
            .iter()
            .enumerate()
            .map(|(place, &us)| {
                let own = us as f64 * 1_000.0 + i as f64 * 0.001 * us as f64;
                let waits = waits([(own, 2_970), (4.0 * own, 30)].into_iter());
                Series { cgroup_id: 7, cgroup: Some("/s".into()), comm: format!("t{place}"), waits }
            })
            .collect();
        let all = series.iter().fold(Waits::default(), |sum, one| sum.merged(&one.waits));
        let switches = switches + i as u64;
        let window = window(started + i as i64, series, Cpu { cpu: 0, switches, waits: all });
        observed(vec![window])
    };
    (0..count).map(of).collect()
}

#[test]
fn one_series_that_waits_longer_and_one_that_waits_shorter_are_no_verdict() {
    let got = got(&steady(6, &[300, 100], NOON + 60, 1_000), &steady(6, &[100, 300], NOON, 1_000));
    assert_eq!(got.quantities[0].verdict, Verdict::NoDifference);
    assert_eq!((got.verdict, got.outcome), (Verdict::Inconclusive, Outcome::Inconclusive));
    assert_eq!(got.reasons, ["t0 in /s waits longer, and t1 in /s shorter."]);
}

/// Five watches of a series whose waits are `us` long, `times` as many as usual in `longer` times as long.
fn watched_for(longer: u64, times: u64, us: u64, started: i64) -> Vec<Observed> {
    let of = |i: i64| {
        let own = us as f64 * (1_000.0 + i as f64);
        let waits = waits([(own, 2_970 * times), (4.0 * own, 30 * times)].into_iter());
        let cpu = Cpu { cpu: 0, switches: 9_000 * longer, waits: waits.clone() };
        let series = Series { cgroup_id: 7, cgroup: Some("/s".into()), comm: "t".into(), waits };
        let window = window(started + i, vec![series], cpu);
        observed(vec![Window { window_ns: window.window_ns * longer, ..window }])
    };
    (0..5).map(of).collect()
}

#[test]
fn a_watch_is_as_long_as_the_time_that_it_covers() {
    for (longer, times, verdict) in
        [(1, 3, Verdict::Worse), (3, 3, Verdict::Inconclusive), (3, 1, Verdict::Inconclusive)]
    {
        let got = got(&watched_for(longer, times, 250, NOON + 60), &watched_for(1, 1, 100, NOON));
        let tested = got.watches.as_ref().unwrap().groups[0].tested.as_ref().unwrap();
        for effect in [tested, &got.quantities[0].p999.as_ref().unwrap().effect] {
            assert_eq!(effect.verdict, verdict, "{longer} {times}: {effect:?}");
            let ratio = effect.only_bounded.as_ref().and_then(|it| it.length_ratio);
            let want = (longer > 1).then_some(300.0);
            assert_eq!(ratio.map(|ratio| (ratio * 100.0).round()), want, "{longer} {times}");
        }
        let note = "New watches cover 3.00 × as much time as old ones. Bursts of long waits may make p99, p99.9, \
                    max and 1 more as many times as large";
        let is_told = got.notes.iter().any(|it| it.starts_with(note));
        assert_eq!(is_told, longer > 1, "{:?}", got.notes);
    }
}

const MANY: [u64; 30] = [100; 30];

#[test]
fn so_many_groups_are_tested_as_the_runs_can_decide() {
    // The smallest p is 2/6, 2/20, 2/70, 2/252, 2/924, 2/3,432; the two figures of all waits count.
    for (runs, tested) in [(1, 0), (3, 0), (4, 0), (5, 4), (6, 21), (7, 30)] {
        let got = got(&steady(runs, &MANY, NOON + 60, 1_000), &steady(runs, &MANY, NOON, 1_000));
        let watches = got.watches.unwrap();
        assert_eq!((watches.deciding().count(), watches.groups.len()), (tested, 30), "{runs} runs");
        let said = got.notes.iter().any(|note| note.contains("Both sides have 30 series."));
        assert_eq!(said, tested < 30, "{runs} runs: {:?}", got.notes);
    }
}

#[test]
fn one_watch_a_side_gives_no_verdict() {
    let got = got(&steady(1, &[300], NOON, 1_000), &steady(1, &[100], NOON, 1_000));
    assert_eq!((got.verdict, got.outcome), (Verdict::Inconclusive, Outcome::Inconclusive));
    assert!(got.quantities[0].within.is_empty(), "{:?}", got.quantities[0].within);
    assert!(got.reasons.iter().any(|r| r.starts_with("A watch counts as one run")), "{got:?}");
}

#[test]
fn too_few_watches_are_told_by_the_level_that_is_asked_for() {
    // The smallest p is 2/20 of three a side, and 2/70 of four.
    for (runs, alpha, told) in [(3, 0.05, true), (3, 0.2, false), (4, 0.05, false), (4, 0.01, true)]
    {
        let [new, old] = [NOON + 60, NOON].map(|start| steady(runs, &[100], start, 1_000));
        let got = held(&new, &old, &Options { alpha, ..Options::default() }).unwrap();
        let is_told = got.reasons.iter().any(|r| r.starts_with("A watch counts as one run"));
        assert_eq!(is_told, told, "{runs} a side, {alpha}: {:?}", got.reasons);
    }
}

#[test]
fn last_week_against_this_week_is_a_risk_to_be_accepted() {
    let (old, new) = (steady(6, &[100], NOON, 1_000), steady(6, &[300], NOON + 604_800, 1_000));
    let compared = got(&new, &old);
    assert_eq!((compared.order, compared.verdict), (Order::Blocks, Verdict::Inconclusive));
    assert!(compared.reasons[0].contains("Watch machines of both sides"), "{:?}", compared.reasons);
    let options = Options { accept_blocks: true, ..Options::default() };
    assert_eq!(held(&new, &old, &options).unwrap().verdict, Verdict::Worse);
}

/// Each lasts 10 minutes.
#[test]
fn watches_that_overlap_a_little_are_as_good_as_blocks() {
    let old = steady(6, &[100], NOON, 1_000);
    let of = |later| got(&steady(6, &[300], NOON + later, 1_000), &old);
    assert_eq!((of(200).order, of(200).verdict), (Order::Mixed, Verdict::Worse));
    let compared = of(400);
    assert_eq!((compared.order, compared.verdict), (Order::Blocks, Verdict::Inconclusive));
    let told = "The sides have little of their time in common. A drift";
    assert!(compared.reasons[0].starts_with(told), "{:?}", compared.reasons);
}

#[test]
fn more_load_is_no_worse_kernel() {
    let (old, new) = (steady(6, &[100], NOON, 1_000), steady(6, &[300], NOON, 2_000));
    let compared = got(&new, &old);
    assert_eq!(compared.verdict, Verdict::Inconclusive);
    let told = "The load differs: 2.00 × as many switches per second.";
    assert!(compared.reasons[0].starts_with(told), "{:?}", compared.reasons);
    assert!(compared.reasons[0].contains("the verdict would be: worse."), "{:?}", compared.reasons);
    let forced = held(&new, &old, &Options { force: true, ..Options::default() }).unwrap();
    assert_eq!(forced.verdict, Verdict::Worse);
    assert!(forced.notes.iter().any(|note| note.starts_with(told)), "{:?}", forced.notes);
}

/// A bucket is 6.25 % wide: a ratio just above the margin may be one below it.
#[test]
fn what_may_be_within_the_margin_by_the_width_of_buckets_is_not_worse() {
    let old = steady(8, &[100], NOON, 1_000);
    for (us, verdict) in [(115, Verdict::Inconclusive), (130, Verdict::Worse)] {
        let got = got(&steady(8, &[us], NOON, 1_000), &old);
        let effect = &got.quantities[0].p999.as_ref().unwrap().effect;
        assert!(effect.ratio > 1.1 && effect.p_adjusted < 0.05, "{effect:?}");
        assert_eq!((effect.verdict, got.verdict), (verdict, verdict), "{us}: {effect:?}");
        assert!(effect.low.unwrap() < effect.ratio / 1.06, "{effect:?}");
    }
    let same = steady(8, &[100], NOON + 60, 1_000);
    let margin = |margin| held(&same, &old, &Options { margin, ..Options::default() });
    assert_eq!(margin(0.05).unwrap().verdict, Verdict::Inconclusive);
    assert_eq!(margin(0.07).unwrap().verdict, Verdict::NoDifference);
}

#[test]
fn watches_that_lost_waits_are_refused_and_other_doubts_are_pointed_out() {
    let old = steady(5, &[100], NOON, 1_000);
    let mut new = steady(5, &[100], NOON + 60, 1_000);
    new[1].left_out.missed = 2;
    new[2].unnamed = 300;
    new[3].covered_ns /= 4;
    new[4].cpus = 8;
    let compared = got(&new, &old);
    for want in [
        "Up to 0.07 % of the waits are lost, or counted in part: n1.",
        "Up to 10 % of the waits are in no group, because their cgroup or task is not known by name: n2.",
        "Up to 75 % of the time from the first window to the last was not watched: n3.",
    ] {
        assert!(compared.notes.iter().any(|n| n.starts_with(want)), "{want}: {:?}", compared.notes);
    }
    let cpus: Vec<&str> = compared.differences.iter().map(|d| d.message.as_str()).collect();
    assert_eq!(
        cpus,
        ["The runs differ in number of CPUs: 2 CPUs (n0, n1, n2 and 6 more); 8 CPUs (n4)."]
    );

    new[1].left_out.missed = 4;
    new[2].differing = 7;
    let Err(refusal) = held(&new, &old, &Options::default()) else { panic!("not refused") };
    let Refusal::Differences(differences) = *refusal else { panic!("{refusal:?}") };
    let messages: Vec<&str> = differences.iter().map(|d| d.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "Watches lost waits, or counted them in part: 0.13 % of the waits (n1).",
            "The audit of watches found tasks whose waits the kernel counted differently: 7 tasks (n2).",
        ]
    );
}

#[test]
fn groups_of_one_side_are_counted_and_some_named() {
    let mut new = steady(5, &[100; 50], NOON, 1_000);
    let old = steady(5, &[100; 2], NOON, 1_000);
    new.iter_mut()
        .for_each(|watch| watch.groups.retain(|group, _| group.comm.as_deref() != Some("t0")));
    let got = got(&new, &old);
    let watches = got.watches.unwrap();
    assert_eq!((watches.only_new.count, watches.only_new.named.len()), (48, MOST_NAMED));
    assert_eq!((watches.only_old.count, watches.groups.len()), (1, 1));
    let want = [
        "Only new watches have 48 series: t10 in /s, t11 in /s, t12 in /s and 45 more.",
        "Only old watches have 1 series: t0 in /s.",
    ];
    for want in want {
        assert!(got.notes.iter().any(|note| note == want), "{:?}", got.notes);
    }
}

#[test]
fn an_audit_that_differs_is_kept() {
    let mut one = window(NOON, Vec::new(), Cpu { cpu: 0, switches: 1, waits: Waits::default() });
    one.audit = Some(Audit { differing: 3, ..Audit::default() });
    assert_eq!(observed(vec![one]).differing, 3);
}

/// A boot of a machine under a kernel.
fn boot(machine: Option<&str>, release: &str) -> Boot {
    let machine = machine.map(str::to_owned);
    Boot { machine, boot: Some("b".into()), release: release.into(), ..Boot::default() }
}

/// What a comparison says, and whether it matters, of five watches a side, each of the boots that `boots`
/// has for its side and place.
fn told_of(boots: impl Fn(&str, usize) -> Vec<Boot>) -> Vec<(String, bool)> {
    let side = |name: &str| {
        let mut watches = steady(5, &[100; 2], NOON, 1_000);
        for (at, watch) in watches.iter_mut().enumerate() {
            watch.boots = boots(name, at);
            watch.run.host = host_of(&watch.boots);
        }
        watches
    };
    let mut old = side("old");
    old.iter_mut().for_each(|watch| watch.run.expiries.sum_ns += 1);
    let found = match held(&side("new"), &old, &Options::default()) {
        Ok(compared) => compared.differences,
        Err(refusal) => match *refusal {
            Refusal::Differences(found) => found,
            other => panic!("{other:?}"),
        },
    };
    found.into_iter().map(|d| (d.message, d.matters)).collect()
}

#[test]
fn machines_and_kernels_that_differ_are_told() {
    #[track_caller]
    fn check(boots: impl Fn(&str, usize) -> Vec<Boot>, want: &[(&str, bool)]) {
        let told = told_of(boots);
        let told: Vec<_> = told.iter().map(|(message, matters)| (&**message, *matters)).collect();
        assert_eq!(told, want);
    }
    let fleet = |at: usize| Some(["a", "b", "c", "d", "e"][at]);
    let is = |side: &str, at: usize| (side, at) == ("new", 2);
    // Each machine once under each kernel is what one compares.
    check(|side, at| vec![boot(fleet(at), side)], &[]);
    // Watches of earlier versions do not say it.
    check(|_, _| Vec::new(), &[]);
    check(|_, at| vec![boot(fleet(at).filter(|_| at > 0), "6.12")], &[]);
    check(
        |side, _| vec![boot(Some(side), side)],
        &[(
            "The sides are of different machines (1 machine against 1 machine): a difference may be that \
             of the machines.",
            false,
        )],
    );
    check(
        |side, at| vec![boot(if is(side, at) { Some("z") } else { fleet(at) }, "6.12")],
        &[(
            "Some machines are on one side only (new: n2; old: o2): a difference may be that of the \
             machines.",
            false,
        )],
    );
    check(
        |side, at| vec![boot(fleet(at).filter(|_| side == "new"), "6.12")],
        &[(
            "The machine of some runs is not known (o0, o1, o2 and 2 more): a difference may be that of \
             the machines.",
            false,
        )],
    );
    check(
        |side, at| vec![boot(fleet(at), if is(side, at) { "6.18" } else { "6.12" })],
        &[("The new runs are of several kernels: 6.12 (n0, n1, n3 and 1 more); 6.18 (n2).", false)],
    );
    let also = |side: &str, at, other: Boot| {
        let one = boot(fleet(at), "6.12");
        if is(side, at) { vec![one, other] } else { vec![one] }
    };
    check(
        |side, at| also(side, at, boot(fleet(at), "6.18")),
        &[("The windows of a watch are of several kernels: 6.12, 6.18 (n2).", true)],
    );
    let under = |name: &str| Boot { sched_ext: Some(name.into()), ..boot(Some("a"), "6.12") };
    check(|_, _| vec![under("simple")], &[]);
    check(
        |side, at| vec![if is(side, at) { under("simple") } else { boot(Some("a"), "6.12") }],
        &[(
            "The runs differ in scheduler of sched_ext: none (n0, n1, n3 and 6 more); simple (n2).",
            false,
        )],
    );
    check(
        |side, at| also(side, at, Boot { machine: fleet(at).map(Into::into), ..under("") }),
        &[(
            "The runs differ in scheduler of sched_ext: none (n0, n1, n3 and 6 more); none, one without a name \
             (n2).",
            false,
        )],
    );
    check(
        |side, at| also(side, at, boot(Some("z"), "6.12")),
        &[("The windows of a watch are of several machines: 2 machines (n2).", true)],
    );
}

#[test]
fn kernels_are_named_by_no_more_than_what_distinguishes_them() {
    let of = |change: fn(&mut Boot)| {
        let told = told_of(|_, at| {
            let mut boot = boot(Some("a"), "6.12");
            if at == 0 {
                change(&mut boot);
            }
            vec![boot]
        });
        told[0].0.clone()
    };
    let model = of(|boot| boot.preemption = Model::Full);
    let want = "The new runs are of several kernels: 6.12 (preemption full) (n0); 6.12 (preemption \
                unknown) (n1, n2, n3 and 1 more).";
    assert_eq!(model, want);
    let version = of(|boot| boot.version = "#2".into());
    assert!(version.contains("6.12 (preemption unknown, #2) (n0); "), "{version}");
}
