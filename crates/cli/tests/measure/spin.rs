//! A loop that never sleeps, measured by the whole command.

use std::fs;

use crate::common::bench::Test;
use crate::common::measured::{RECORD, allowed_cpus, assert_not_found, finding, record};
use wakescope_core::finding::Severity;
use wakescope_core::limit::Outcome;
use wakescope_core::plan::{ProbePolicy, Stimulus};
use wakescope_core::run::State;
use wakescope_core::source::Quantity;

#[test]
fn gaps_of_a_busy_loop_are_measured_on_every_cpu() {
    let test = Test::new("spin");
    let ended = test.measure(&[
        "--stimulus",
        "spin",
        "--duration",
        "600ms",
        "--save-samples",
        "--out",
        "r",
    ]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let run = record(&test.dir.join("r"));
    assert_eq!((run.state, run.plan.stimulus), (State::Complete, Stimulus::Spin));
    assert_eq!((run.quantity(), run.plan.gap_from_ns), (Quantity::Gap, Some(1_000)));
    // Nobody asked for a policy that takes the machine.
    assert_eq!((run.plan.policy, run.plan.priority), (ProbePolicy::Other, None));
    assert_eq!(finding(&run, "ordinary-task").unwrap().severity, Severity::Note);
    let cpus: Vec<_> = run.threads.iter().map(|t| t.cpu.unwrap()).collect();
    assert_eq!(cpus, allowed_cpus());
    for thread in &run.threads {
        let spin = thread.spin.expect("a loop");
        assert!(spin.observed_ns >= 600_000_000, "{spin:?}");
        // A gap lies within a turn of the loop; the only turn can be one if the CPU was away for all the time.
        assert!(spin.loops >= thread.woken.count, "{thread:?}");
        assert!(thread.woken.min_ns.is_none_or(|min| min >= 1_000), "{:?}", thread.woken);
        assert!(thread.woken.sum_ns <= spin.observed_ns, "{thread:?}");
        assert_eq!((thread.missed, thread.migrated), (0, 0));
    }
    assert!(run.duration_ns >= 600_000_000);
    let first = ended.stdout.lines().next().unwrap_or_default();
    assert!(first.starts_with("Largest gap in a busy loop ") || first.starts_with("No gap"));
    for word in ["wakeup", "expir", "why: "] {
        assert!(!ended.stdout.contains(word), "{word}: {}", ended.stdout);
    }
    let samples = fs::read_to_string(test.dir.join("r/samples.csv")).unwrap();
    assert_eq!(samples.lines().next(), Some("cpu,begin_ns,gap_ns"));
    let counted: u64 = run.threads.iter().map(|t| t.woken.count - t.lost).sum();
    assert_eq!(samples.lines().count() as u64 - 1, counted);
    // Those of a CPU do not overlap.
    let mut ends = vec![0; cpus.len()];
    for line in samples.lines().skip(1) {
        let fields: Vec<u64> = line.split(',').map(|field| field.parse().unwrap()).collect();
        let end = &mut ends[cpus.iter().position(|&cpu| u64::from(cpu) == fields[0]).unwrap()];
        assert!(fields[1] >= *end, "{line}: {end}");
        *end = fields[1] + fields[2];
    }
}

#[test]
fn a_gap_that_nothing_reaches_keeps_every_limit() {
    let test = Test::new("spin-quiet");
    let from = ["--gap-from", "1s", "--fail-above", "1s"];
    let ended = test.measure(&[&["--stimulus", "spin", "--duration", "200ms"][..], &from].concat());
    let run = record(&test.run_folder());
    // A stall of a second is possible, and then it must be seen.
    if run.summary.count == 0 {
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_not_found(&run, "no-samples");
        assert_eq!(run.limits[0].outcome, Outcome::Pass);
        assert!(ended.stdout.starts_with("No gap of 1.00 s or more in "), "{ended:?}");
    }
}

#[test]
fn gaps_are_not_compared_with_wakeups() {
    let test = Test::new("spin-compare");
    for (args, out) in [
        (&["--stimulus", "spin", "--duration", "300ms"][..], "gaps"),
        (&["--samples", "300"], "wakeups"),
    ] {
        let ended = test.measure(&[args, &["--out", out]].concat());
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    let ended = test.ended(&["compare", "gaps", "--against", "wakeups"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("they measure different quantities"), "{ended:?}");
}

#[test]
fn what_a_busy_loop_cannot_do_is_refused_with_a_remedy() {
    let test = Test::new("spin-refused");
    for (args, text) in [
        ("--stimulus spin --interval 1ms", "→ omit --interval"),
        ("--stimulus spin --samples 5", "→ use --duration"),
        ("--stimulus spin --policy deadline", "--policy deadline does not apply to"),
        ("--stimulus spin --policy fifo", "would take every CPU that this process may use"),
        ("--stimulus spin --policy rr --priority 1", "→ or omit --policy"),
        ("--stimulus spin --gap-from 99ns", "at least 100 ns is needed"),
        (
            "--stimulus spin --gap-from 5us --fail-above 4us",
            "→ raise the limit, or lower --gap-from",
        ),
        ("--gap-from 5us", "→ omit --gap-from, or use --stimulus spin"),
    ] {
        if text.starts_with("→ or omit") && allowed_cpus().len() == 1 {
            continue;
        }
        let ended = test.measure(&args.split(' ').collect::<Vec<_>>());
        assert_eq!(ended.code, Some(2), "{args}: {ended:?}");
        assert!(ended.stderr.contains(text), "{args}: {}", ended.stderr);
        assert!(!test.dir.join("runs").exists(), "{args}");
    }
    let ended = test.ended(&["explain", "--stimulus", "spin"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("→ use wakescope measure --stimulus spin"), "{ended:?}");
    assert!(!test.dir.join("runs").exists() && !test.dir.join(RECORD).exists());
}
