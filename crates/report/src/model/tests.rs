use expect_test::{Expect, expect};
use wakescope_core::distribution::Distribution;
use wakescope_core::finding::{Finding, Validity};
use wakescope_core::run::{LoadResult, Thread};

use super::*;
use wakescope_model::scenario::Measured;

fn run(latencies: std::ops::Range<u64>) -> Run {
    let samples: Vec<u64> = latencies.map(|us| us * 1_000).collect();
    let d = Distribution::of(samples.iter().copied());
    let thread = Thread { cpu: Some(0), woken: d.clone(), expiries: d, ..Default::default() };
    let find = LoadResult {
        name: "find".into(),
        work: 400,
        per_second: 812.3,
        alive: true,
        ..Default::default()
    };
    let mut run = Run { threads: vec![thread], load: vec![find], ..Default::default() };
    run.summarize();
    run
}

fn simulated(runs: Vec<(&str, u64, Ending)>) -> Simulated {
    let scenario = Scenario {
        name: "prune".into(),
        about: "a long loop under a spin lock".into(),
        ..Scenario::default()
    };
    let mut all = Simulated::new(&scenario, "wakescope model run prune".into());
    let of = |(rules, seed, ending): (&str, u64, Ending)| Simulation {
        preempt: rules.into(),
        seed,
        ending,
    };
    all.runs = runs.into_iter().map(of).collect();
    all
}

#[track_caller]
fn check(simulated: &Simulated, want: &Expect) {
    let table = simulated.table(Style::default());
    assert!(table.lines().all(|line| line.chars().count() <= WIDTH), "{table}");
    want.assert_eq(&table);
}

fn ok(latencies: std::ops::Range<u64>) -> Ending {
    Ending::Ok(Box::new(Figures::of(&run(latencies), Some("runs/a".into()))))
}

#[test]
fn a_row_is_a_model() {
    check(
        &simulated(vec![("none", 1, ok(2..3_002)), ("full", 1, ok(2..102))]),
        &expect![[r#"
        prune
         a long loop under a spin lock

         times are simulated
         rules  samples      p50    p99.9      max  find/s
         none     3,000  1.50 ms  3.00 ms  3.00 ms     812
         full       100  51.0 µs        –   101 µs     812
    "#]],
    );
}

#[test]
fn published_figures_stand_apart() {
    let mut all = simulated(vec![("none", 1, ok(2..3_002))]);
    let long = format!("  none 4.7 ms, {}", "and so on and on ".repeat(8));
    all.published = vec!["somebody, 2002: real ms".into(), "  full  \u{1b}[1m5".into(), long];
    check(
        &all,
        &expect![[r#"
        prune
         a long loop under a spin lock

         times are simulated
         rules  samples      p50    p99.9      max  find/s
         none     3,000  1.50 ms  3.00 ms  3.00 ms     812

         published figures: measured elsewhere under other conditions, not simulated
          somebody, 2002: real ms
            full  �[1m5
          none 4.7 ms, and so on and on and so on and on and so on and on and so on and on and so on and
            on and so on and on and so on and on and so on and on 
    "#]],
    );
    let json: serde_json::Value = serde_json::from_str(&all.to_json().unwrap()).unwrap();
    assert_eq!(json["published"][0], "somebody, 2002: real ms");
}

#[test]
fn of_several_seeds_the_median_is_shown() {
    let broken = Ending::Broken { reason: "deadlock: tasks wait for each other".into() };
    let mut doubtful = run(2..202);
    let finding = Finding::new("overload", Severity::Error, "the probes gave little".into(), "");
    doubtful.validity = Validity::of(vec![finding]);
    let doubtful = Ending::Ok(Box::new(Figures::of(&doubtful, None)));
    let mut cut = run(2..9_002);
    let message = "ended early: 9,000 wakeups of 10,000 wanted".into();
    let notes = [("interrupted", message), ("simulated-time", "no machine was measured".into())]
        .map(|(code, message)| Finding::new(code, Severity::Note, message, ""));
    cut.validity = Validity::of(notes.to_vec());
    let cut = Ending::Ok(Box::new(Figures::of(&cut, None)));
    check(
        &simulated(vec![
            ("none", 1, ok(2..3_002)),
            ("none", 2, ok(2..3_302)),
            ("none", 3, cut),
            ("full", 1, broken),
            ("full", 2, doubtful),
            ("full", 3, Ending::NotRun),
        ]),
        &expect![[r#"
            prune
             a long loop under a spin lock
             medians of 3 seeds; the samples are those of all seeds together

             times are simulated
             rules  samples      p50    p99.9      max               (range)  invalid  find/s
             none    15,300  1.65 ms  3.30 ms  3.30 ms  (3.00 ms to 9.00 ms)   0 of 3     812
             full       200   101 µs        –   201 µs    (201 µs to 201 µs)   1 of 1     812

             none, seed 3: ended early: 9,000 wakeups of 10,000 wanted
             full, seed 1: broke a rule: deadlock: tasks wait for each other
             full, seed 2: invalid: the probes gave little
             ended early: 1 of 6 was not begun
        "#]],
    );
}

/// A simulation of `count` expiries of which `missed` had no wakeup, with a finding for each code.
fn doubted(count: u64, missed: u64, findings: &[(&'static str, Severity, &str)]) -> Ending {
    let mut run = run(2..2 + count);
    run.threads[0].missed = missed;
    let of = |&(code, severity, message): &(&'static str, Severity, &str)| {
        Finding::new(code, severity, message.into(), "")
    };
    run.validity = Validity::of(findings.iter().map(of).collect());
    Ending::Ok(Box::new(Figures::of(&run, None)))
}

/// Seeds from 1 on: the first is well, then some are degraded, and those above 4 are invalid, all with
/// the same code.
fn overloaded() -> Simulated {
    let seed = |seed: u64| {
        let (severity, missed) = match seed {
            1 => return ("full", seed, ok(2..202)),
            2..=4 => (Severity::Warning, 10 * seed),
            7 => (Severity::Error, 190),
            _ => (Severity::Error, 150),
        };
        let message = format!("{missed} of 200 missed");
        ("full", seed, doubted(200, missed, &[("overload", severity, message.as_str())]))
    };
    simulated((1..9).map(seed).collect())
}

#[test]
fn the_gravest_doubt_comes_first_with_its_seeds_and_marks_the_medians() {
    check(
        &overloaded(),
        &expect![[r#"
            prune
             a long loop under a spin lock
             medians of 8 seeds; the samples are those of all seeds together

             times are simulated
             rules  samples     p50  p99.9     max             (range)  invalid  find/s
             full     1,600  101 µs      –  201 µs  (201 µs to 201 µs)   4 of 8     812

             full, 4 of 8 seeds (5 to 8): invalid: 190 of 200 missed (worst: seed 7)
             full, 3 of 8 seeds (2 to 4): degraded: 40 of 200 missed (worst: seed 4)
        "#]],
    );
}

#[test]
fn doubts_are_told_once_for_each_kind_of_each_model() {
    let broken = |reason: &str| Ending::Broken { reason: reason.into() };
    let probes = ["a gave no sample", "b gave no sample", "c gave no sample", "d gave no sample"];
    let silent: Vec<_> =
        probes.iter().map(|&message| ("no-samples", Severity::Error, message)).collect();
    let same = || doubted(100, 0, &[("interrupted", Severity::Note, "ended early: 9 of 10")]);
    let all = simulated(vec![
        ("none", 1, doubted(0, 0, &silent)),
        ("none", 2, broken("deadlock, on CPU 0")),
        ("none", 3, broken("livelock, on CPU 1")),
        ("full", 1, same()),
        ("full", 2, Ending::NotRun),
        ("full", 3, same()),
    ]);
    expect![[r#"
        none, 2 of 3 seeds (2, 3): broke a rule: deadlock, on CPU 0 (first: seed 2)
        none, seed 1: invalid: a gave no sample; b gave no sample; c gave no sample; and 1 more
        full, 2 of 3 seeds (1, 3): ended early: 9 of 10
        ended early: 1 of 6 was not begun"#]]
    .assert_eq(&all.doubts().join("\n"));
}

#[test]
fn a_page_has_the_doubts_of_the_text() {
    let mut of_run = run(2..202);
    of_run.time_domain = TimeDomain::Simulated;
    let page = |all: &Simulated| {
        let entry = crate::run_set::Entry::of("none", &of_run);
        html::answer(all, &crate::run_set::RunSet::of(vec![entry]))
    };
    let held = "Every assumption that could be verified held";
    assert!(page(&simulated(vec![("none", 1, ok(2..202))])).contains(held));
    let broken = Ending::Broken { reason: "deadlock & <more>".into() };
    let all =
        simulated(vec![("none", 1, ok(2..202)), ("full", 1, broken), ("rt", 1, Ending::NotRun)]);
    let page = page(&all);
    assert!(!page.contains(held), "{page}");
    for doubt in [
        "full, seed 1: broke a rule: deadlock &amp; &lt;more&gt;",
        "ended early: 1 of 3 was not begun",
    ] {
        assert!(page.contains(doubt), "{page}");
    }
}

/// What both tables show of one figure of some seeds.
#[test]
fn both_tables_have_the_same_median() {
    let measured = Measured {
        preempt: "none".into(),
        kernel: "vanilla".into(),
        samples: 5_000_000,
        max_ns: Some(6_000_000),
        ..Measured::default()
    };
    let of = |latencies| {
        let run = run(latencies);
        Ending::Ok(Box::new(Figures::of(&run, None).beside(Some(&measured), &run)))
    };
    let all = simulated(vec![("none", 1, of(0..2_001)), ("none", 2, of(0..4_001))]);
    let table = all.table(Style::default());
    assert!(table.contains("  3.00 ms  (2.00 ms to 4.00 ms)"), "{table}");
    let words = table.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("max, ms published 6.0 simulated 3.0 ×0.50"), "{table}");
}

#[test]
fn published_figures_as_numbers_stand_beside_the_simulated_ones() {
    let measured = |preempt: &str, kernel: &str, buckets| Measured {
        preempt: preempt.into(),
        kernel: kernel.into(),
        samples: 5_000_000,
        max_ns: Some(6_000_000),
        mean_ns: Some(1_500_000),
        percentiles: vec![
            ("p50".parse().unwrap(), 2_000_000),
            ("p99.9".parse().unwrap(), 4_000_000),
        ],
        buckets,
        below: vec![(1_000_000, 50.0), (5_000_000, 100.0)],
        ..Measured::default()
    };
    let of = |run: &Run, measured: &Measured| {
        Ending::Ok(Box::new(Figures::of(run, None).beside(Some(measured), run)))
    };
    let none = measured("none", "vanilla", Some(15));
    let full = Measured { max_ns: None, ..measured("full", "preempt", None) };
    let all = simulated(vec![
        ("none", 1, of(&run(0..3_000), &none)),
        ("none", 2, of(&run(0..2_000), &none)),
        ("none", 3, of(&run(0..9_000), &none)),
        ("full", 1, of(&run(0..100), &full)),
        ("rt", 1, ok(2..3_002)),
    ]);
    let table = all.table(Style::default());
    assert!(table.lines().all(|line| line.chars().count() <= WIDTH), "{table}");
    let (_, below) = table.split_once(&format!("{BASIS}\n{:19}", "")).unwrap();
    // Each line begins with a blank.
    let below: String =
        below.lines().map(|line| line.get(1..).unwrap_or_default().to_owned() + "\n").collect();
    expect![[r#"
        rules               none               full
                          kernel            vanilla            preempt
        max, ms        published        6.0                          –
                       simulated        3.0   ×0.50                  –
        mean, ms       published     1.5000             1.5000
                       simulated     1.4984   ×1.00     0.0500 ×0.0333
        p50, ms        published     2.0000             2.0000
                       simulated     1.4991   ×0.75     0.0490 ×0.0245
        p99.9, ms      published     4.0000                          –
                       simulated     2.9983   ×0.75                  –
        below 1 ms, %  published   50.00000           50.00000
                       simulated   33.33333   ×1.33  100.00000   ×0.00
        below 5 ms, %  published  100.00000          100.00000
                       simulated  100.00000       –  100.00000       –
        buckets        published         15                          –
                       simulated         30   ×2.00                  –

         published: 5,000,000 samples in real time; simulated: 100 to 9,000 wakeups in each simulation, in
         simulated time. ×: simulated divided by published; of shares, the samples that are not below. Rare
         wakeups are missing where fewer were simulated
    "#]].assert_eq(&below);
}

#[test]
fn no_factor_is_rounded_to_nothing() {
    let figure = |published, simulated: f64| measured::Figure {
        name: "max".into(),
        unit: "ms",
        published,
        simulated,
        factor: Some(simulated / published),
    };
    let shown = |published, simulated| measured::cells(&[Some(&figure(published, simulated))]);
    assert_eq!(shown(232.6, 0.303), ["232.6", "0.303", "×0.00130"]);
    assert_eq!(shown(2.0, 3.0), ["2.0", "3.0", "×1.50"]);
}
