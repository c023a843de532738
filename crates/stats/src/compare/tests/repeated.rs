//! One run that is given twice.

use super::*;

#[test]
fn a_run_that_is_given_twice_is_refused_even_by_force() {
    let forced = Options { force: true, ..Options::default() };
    let of = |new: &[Run], old: &[Run]| held(new, old, &forced).err().map(|refusal| *refusal);
    let (mut new, old) = (runs(&LOW), runs(&HIGH));
    assert_eq!(of(&new, &old), None);
    // A copy that was cut short is the same run.
    new[3] = Run { id: old[1].id.clone(), ..run(77) };
    assert_eq!(of(&new, &old), Some(Refusal::Repeated("n3".into(), "o1".into())));
    new[3].id = new[0].id.clone();
    assert_eq!(of(&new, &old), Some(Refusal::Repeated("n0".into(), "n3".into())));
    // Runs of other programs have no id of their own: equal figures may be chance.
    let source = Some(Source { omission: Omission::Counted, ..Source::default() });
    let imported = |us: &[u64]| -> Vec<Run> {
        runs(us).into_iter().map(|run| Run { source: source.clone(), ..run }).collect()
    };
    let (mut new, old) = (imported(&LOW), imported(&HIGH));
    new[2] = old[2].clone();
    let refused = held(&new, &old, &Options::default()).err().map(|refusal| *refusal);
    let Some(Refusal::Differences(found)) = refused else { panic!("{refused:?}") };
    assert_eq!(found[0].message, "n2 and o2 are the same run and would count as two.");
    assert_eq!(of(&new, &old), None);
}

/// A file has the histogram in µs, and either the start or a sum without it.
#[test]
fn a_run_in_two_formats_is_one_run() {
    let of_format = |samples: &[u64], format: &str, started: &str| {
        let mut run = of_samples(samples.iter().map(|us| us * 1_000));
        let id = format!("{format}-{}", run.id);
        let source =
            Source { tool: "cyclictest".into(), format: format.into(), ..Source::default() };
        run.threads[0].expiries.sum_ns += u64::from(format == "text");
        Run { id, started: started.into(), source: Some(source), ..run }
    };
    let mut random = Random::new(11);
    let mut drawn = |wide: usize| -> Vec<u64> {
        (0..4_000).map(|_| (0..4).map(|_| random.below(wide) as u64).sum::<u64>() + 20).collect()
    };
    let (one, other, quiet) = (drawn(9), drawn(9), drawn(1));
    let (began, later) = ("2026-11-21T01:00:00Z", "2026-11-21T02:00:00Z");
    let is_refused = |first: Run, second: Run| {
        let runs = [first, second].map(Observation::from);
        let names: Vec<String> = ["a", "b"].map(String::from).into();
        repetition(&labelled(&names, &runs)).is_some()
    };
    for (first, second, want) in [
        ((&one, "json", began), (&one, "text", ""), true),
        ((&one, "text", ""), (&one, "json", began), true),
        ((&one, "json", began), (&one, "text", began), true),
        ((&one, "json", began), (&one, "text", later), false),
        ((&one, "json", began), (&other, "text", ""), false),
        // Of 4,000 wakeups in one bucket another run may well have as many.
        ((&quiet, "json", began), (&quiet, "text", ""), false),
    ] {
        let [first_run, second_run] =
            [first, second].map(|(samples, format, started)| of_format(samples, format, started));
        assert_eq!(is_refused(first_run, second_run), want, "{:?} {:?}", first.1, second.1);
    }
}

/// Runs of one machine, of 40 buckets and 4,000 samples each.
#[test]
fn runs_that_differ_are_not_taken_for_one() {
    let mut random = Random::new(12);
    let run = |random: &mut Random, format: &str| {
        let us = (0..3_999).map(|_| (0..4).map(|_| random.below(10) as u64).sum::<u64>() + 20);
        let run = of_samples(us.chain([90]).map(|us| us * 1_000).collect::<Vec<u64>>().into_iter());
        let source = Source { format: format.into(), ..Source::default() };
        Observation::from(Run { started: String::new(), source: Some(source), ..run })
    };
    let formats = ["json", "text"].into_iter().cycle();
    let runs: Vec<Observation> = formats.take(100).map(|f| run(&mut random, f)).collect();
    let names: Vec<String> = (0..100).map(|i| format!("{i}")).collect();
    assert_eq!(repetition(&labelled(&names, &runs)), None);
}
