use super::*;

/// Runs whose largest 20 of each 4,000 samples are ten times this late.
fn of_length(us: [u64; 5], times: usize) -> Vec<Run> {
    let run = |us: u64| {
        let ns = us * 1_000;
        let ordinary = (0..3_980).map(|i| ns / 2 + i % 3);
        let each = ordinary.chain([ns * 10; 20]).collect::<Vec<u64>>();
        of_samples(each.repeat(times).into_iter())
    };
    us.map(run).into()
}

#[test]
fn longer_runs_are_worse_only_beyond_their_length() {
    let differs = [100, 101, 102, 103, 104];
    for (times_new, times_old, worse_by, want, words) in [
        (1, 1, 3, Verdict::Worse, "3.00 ×"),
        (5, 1, 3, Verdict::Inconclusive, "0.60 to 3.00 ×"),
        (5, 1, 8, Verdict::Worse, "at least 1.60 ×"),
        (1, 5, 3, Verdict::Worse, "at least 3.00 ×"),
    ] {
        let old = of_length(differs, times_old);
        let new = of_length(differs.map(|us| us * worse_by), times_new);
        let got = held(&new, &old, &Options::default()).unwrap();
        let of = &got.quantities[0];
        for (name, figure) in of.deciding() {
            let effect = &figure.unwrap().effect;
            assert_eq!(
                (effect.verdict, &*effect.ratio_in_words()),
                (want, words),
                "{name} of {times_new} against {times_old}: {effect:?}"
            );
            // Times are those that runs have.
            let new_ns = 1_020_000.0 * worse_by as f64;
            let is_near = |ns: f64| (ns / new_ns - 1.0).abs() < 0.004;
            assert!(is_near(figure.unwrap().new_ns), "{name}: {figure:?}");
            let mut bounds = effect.only_bounded.iter().flat_map(|it| it.new_ns);
            assert!(bounds.all(is_near), "{name}: {effect:?}");
        }
        assert_eq!(got.verdict, want);
        let p50 = &of.p50.as_ref().unwrap().effect;
        assert_eq!(p50.only_bounded, None, "bursts do not move the median");
        let note = "ew runs have 5.00 × as many samples as old ones. Bursts of large samples";
        assert_eq!(got.notes.iter().any(|n| n.contains(note)), times_new == 5, "{:?}", got.notes);
        // The other way round, new runs are better as far as they were worse.
        let back = held(&old, &new, &Options::default()).unwrap();
        let mirrored = match want {
            Verdict::Worse => Verdict::Better,
            other => other,
        };
        assert_eq!(back.verdict, mirrored);
    }
}

/// Two of the old runs are shorter, and too short for a maximum: its runs are of one length.
#[test]
fn each_figure_says_which_lengths_it_allows_for() {
    let with = |us: u64, count: u64| of_samples((0..count).map(|i| us * 1_000 + i % 3_000));
    let new: Vec<Run> = (0..5).map(|i| with(140 + i, 10_000)).collect();
    let old = [10_000, 10_000, 10_000, 2_500, 2_500];
    let old: Vec<Run> = (100..).zip(old).map(|(us, count)| with(us, count)).collect();
    for (new, old, side, ratio) in [(&new, &old, "New", 1.741), (&old, &new, "Old", 1.0 / 1.741)] {
        let got = held(new, old, &Options::default()).unwrap();
        let of = &got.quantities[0];
        let ratios = [&of.p50, &of.p99, &of.p999, &of.max].map(|figure| {
            let bounded = figure.as_ref().unwrap().effect.only_bounded.as_ref();
            bounded.and_then(|it| it.length_ratio).map(|ratio| (ratio * 1e3).round())
        });
        let tail = Some((ratio * 1e3_f64).round());
        assert_eq!(ratios, [None, tail, tail, None]);
        let begin = format!("{side} runs have 1.74 × as many samples as ");
        let notes: Vec<&String> = got.notes.iter().filter(|it| it.starts_with(&begin)).collect();
        let [note] = notes[..] else { panic!("{:?}", got.notes) };
        assert!(note.contains("may make p99, p99.9 as many times as large"), "{note}");
    }
}

#[test]
fn a_tenth_more_samples_make_no_difference() {
    let with = |us: u64, count: u64| of_samples((0..count).map(|i| us * 1_000 + i % 3_000));
    let side = |us: u64, count: u64| (0..5).map(|i| with(us + i, count)).collect::<Vec<Run>>();
    for (count, is_open) in [(4_399, false), (4_401, true)] {
        let got = held(&side(300, count), &side(100, 4_000), &Options::default()).unwrap();
        let p999 = &got.quantities[0].p999.as_ref().unwrap().effect;
        assert_eq!(p999.only_bounded.is_some(), is_open, "{count}: {p999:?}");
        assert_eq!(got.verdict, Verdict::Worse);
    }
}
