//! `wakescope explain RUN` with the episodes of a run that was stored: records made by hand.

use std::fs;

use crate::common::bench::{Ended, Test};
use stored::{Stored, store};
use wakescope_core::explain::{Cause, Culprit};
use wakescope_core::run::{Run, State};

mod stored;

/// The stored run as `explain --json` shows it.
#[track_caller]
fn shown(test: &Test, args: &[&str]) -> (Run, Ended) {
    let ended = test.ended(&[&["explain", "run", "--json"], args].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    crate::common::assert_valid_run(&ended.stdout);
    (Run::from_json(ended.stdout.as_bytes()).unwrap(), ended)
}

#[test]
fn what_is_attributed_anew_by_the_same_rules_stays_as_recorded() {
    let test = Test::new("anew");
    let stored = store(&test, |_| {});
    let (mut run, ended) = shown(&test, &[]);
    assert_eq!(ended.stderr, "");
    let anew = run.explanation.as_mut().unwrap().anew.take().expect("an answer");
    assert_eq!((anew.episodes, anew.changed, anew.excess_ns), (3, 0, 0));
    assert_eq!(run, stored.run);
    let text = test.done(&["explain", "run"]);
    let message = "attributed anew: 3 of 4 late wakeups; all answers are as recorded";
    assert!(text.contains(message), "{text}");
    let as_recorded = test.done(&["explain", "run", "--as-recorded"]);
    assert_eq!(as_recorded, text.replace(&format!(" {message}\n"), ""));
}

/// As another version had answered, which took an interrupt for a softirq.
fn by_another_rule(stored: &mut Stored) {
    let change = |blame: &mut Vec<wakescope_core::explain::Share>| {
        for share in blame.iter_mut().filter(|share| share.cause == Cause::Irq) {
            share.cause = Cause::Softirq;
            share.culprit = Culprit::softirq("NET_RX");
        }
    };
    stored.episodes.iter_mut().for_each(|episode| change(&mut episode.blame));
    stored.run.worst.iter_mut().for_each(|episode| change(&mut episode.blame));
    for row in stored.run.causes.iter_mut().filter(|row| row.cause == Cause::Irq) {
        row.cause = Cause::Softirq;
        row.culprit = Culprit::softirq("NET_RX");
    }
}

#[test]
fn where_an_answer_changed_both_are_told() {
    let test = Test::new("changed");
    let today = store(&test, |_| {}).run;
    fs::remove_dir_all(test.dir.join("run")).unwrap();
    let old = store(&test, by_another_rule).run;
    let (run, ended) = shown(&test, &[]);
    assert_eq!(ended.stderr, "");
    assert_eq!(run.worst, today.worst);
    let explanation = run.explanation.as_ref().unwrap();
    let anew = explanation.anew.as_ref().unwrap();
    assert_eq!((anew.episodes, anew.changed, anew.excess_ns), (3, 3, 0));
    // What was kept in short only stands as recorded: so does its part of the ranking.
    let ns = |run: &Run, cause| {
        let rows = run.causes.iter().filter(|row| row.cause == cause);
        rows.map(|row| row.total_ns).sum::<u64>()
    };
    let moved = anew.changes.iter().map(|change| change.ns).sum::<u64>();
    assert_eq!(ns(&run, Cause::Softirq), ns(&old, Cause::Softirq) - moved);
    assert_eq!(ns(&run, Cause::Irq), ns(&old, Cause::Irq) + moved);
    assert!(moved > 0 && ns(&run, Cause::Softirq) > 0, "{:?}", run.causes);
    let all = |run: &Run| run.causes.iter().map(|row| row.total_ns).sum::<u64>();
    assert_eq!(all(&run), all(&old));
    let text = test.done(&["explain", "run"]);
    for part in ["3 answers changed (--as-recorded", "softirq NET_RX → interrupt eth0"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let (mut recorded, _) = shown(&test, &["--as-recorded"]);
    recorded.summarize();
    assert_eq!(recorded, old);
}

#[test]
fn damaged_lines_are_named_and_the_others_count() {
    let test = Test::new("damaged");
    let stored = store(&test, |_| {});
    let file = test.dir.join("run/episodes.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines[2] = &lines[2][..lines[2].len() / 2];
    fs::write(&file, lines.join("\n")).unwrap();
    let (run, ended) = shown(&test, &[]);
    assert!(ended.stderr.contains("episodes.jsonl, line 3: it is damaged"), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    let anew = run.explanation.as_ref().unwrap().anew.as_ref().unwrap();
    assert_eq!((anew.episodes, anew.damaged_lines, anew.excess_ns), (2, 1, 0));
    assert_eq!((&run.causes, &run.worst), (&stored.run.causes, &stored.run.worst));
    let ended = test.ended(&["explain", "run"]);
    assert!(ended.stdout.contains("not used: 1 damaged line of episodes.jsonl"), "{ended:?}");
    // Of a line that stands there twice, the episode counts once.
    let lines: Vec<&str> = text.lines().collect();
    fs::write(&file, [&lines[..], &lines[1..2]].concat().join("\n")).unwrap();
    let (run, ended) = shown(&test, &[]);
    assert_eq!(ended.stderr, "episodes.jsonl: 1 line repeats an episode, which counts once\n");
    let anew = run.explanation.as_ref().unwrap().anew.as_ref().unwrap();
    assert_eq!((anew.episodes, anew.damaged_lines, anew.excess_ns), (3, 0, 0));
    assert_eq!((&run.causes, &run.worst), (&stored.run.causes, &stored.run.worst));
    // Whatever is wrong with a file that is there, the record is shown.
    for (bytes, why) in [
        (&b"\xff\0\n{}\n[]\n"[..], "episodes.jsonl holds no episode that can be used"),
        (b"", "holds no episode"),
    ] {
        fs::write(&file, bytes).unwrap();
        let (run, ended) = shown(&test, &[]);
        assert_eq!(run, stored.run);
        assert!(ended.stderr.contains(why), "{ended:?}");
    }
}

#[test]
fn a_file_that_cannot_be_used_is_named_and_the_record_shown() {
    let test = Test::new("unusable");
    let stored = store(&test, |_| {});
    let file = test.dir.join("run/episodes.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    let check = |why: &str| {
        let (run, ended) = shown(&test, &[]);
        assert_eq!(run, stored.run);
        let is_missing = why.contains("has no");
        assert!(is_missing != ended.stderr.contains(why), "{ended:?}");
        let text = test.ended(&["explain", "run"]).stdout;
        assert!(text.contains("shown as recorded: ") && text.contains(why), "{text}");
    };
    fs::write(&file, text.replacen("\"run\":\"r1\"", "\"run\":\"r2\"", 1)).unwrap();
    check("episodes.jsonl belongs to another run, with the id r2");
    fs::write(&file, text.replacen("episode/1", "episode/9", 1)).unwrap();
    check("holds no episode");
    fs::remove_file(&file).unwrap();
    check("its folder has no episodes.jsonl");
    fs::create_dir(&file).unwrap();
    check("episodes.jsonl cannot be read");
}

#[test]
fn a_killed_run_is_explained_from_what_it_had_stored() {
    let test = Test::new("killed");
    let whole = store(&test, |_| {}).run;
    fs::remove_dir_all(test.dir.join("run")).unwrap();
    store(&test, |stored| {
        let run = &mut stored.run;
        run.state = State::Running;
        (run.explanation, run.components) = (None, None);
        run.causes.clear();
        for episode in &mut run.worst {
            (episode.components, episode.blame) = (None, Vec::new());
            episode.timeline.clear();
        }
    });
    let (run, ended) = shown(&test, &[]);
    assert_eq!(ended.stderr, "");
    let explanation = run.explanation.as_ref().unwrap();
    assert_eq!(
        (explanation.late, explanation.explained, explanation.stored_episodes),
        (4, 3, Some(3))
    );
    assert_eq!(run.worst[..3], whole.worst[..3]);
    let all: u64 = run.causes.iter().map(|row| row.total_ns).sum();
    let unexplained = run.causes.iter().filter(|row| row.cause == Cause::Unexplained);
    // The fourth was kept in short, which a killed run has lost.
    assert!(unexplained.map(|row| row.total_ns).sum::<u64>() >= 40_000, "{:?}", run.causes);
    assert!((350_000..351_000).contains(&all), "{all}");
    fs::remove_file(test.dir.join("run/episodes.jsonl")).unwrap();
    for args in [&["explain", "run"][..], &["explain", "run", "--as-recorded"]] {
        let ended = test.ended(args);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains("this run was killed"), "{ended:?}");
    }
}

/// A record to be published lies elsewhere, or has another name: what lies beside it is not its own.
#[test]
fn episodes_are_those_of_a_run_s_folder() {
    let test = Test::new("elsewhere");
    store(&test, |_| {});
    fs::copy(test.dir.join("run/run.json"), test.dir.join("run/public.json")).unwrap();
    let text = test.done(&["explain", "run/public.json"]);
    assert!(text.contains("its folder has no episodes.jsonl"), "{text}");
    let text = test.done(&["explain", "run/run.json"]);
    assert!(text.contains("attributed anew: 3 of 4"), "{text}");
}

/// A scenario whose only length is what an interrupt took of the late wakeups that are stored.
#[test]
fn a_scenario_takes_lengths_of_stored_episodes() {
    let test = Test::new("lengths");
    store(&test, |stored| stored.run.worst.clear());
    let simulated = |of: &str| {
        let scenario = format!(
            r#"schema = "wakescope.scenario/1"
name = "lengths"
[[task]]
name = "probe"
policy = "fifo:80"
period = "1ms"
[[task]]
name = "load"
path = "load"
[path]
load = [{{ user = {{ run = "run", of = "{of}" }} }}, {{ block = "1ms" }}]
"#
        );
        fs::write(test.dir.join("lengths.toml"), scenario).unwrap();
        test.ended(&["model", "run", "lengths.toml", "--samples", "10", "--preempt", "none"])
    };
    let ended = simulated("irq eth0");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for (of, want) in [
        ("irq eth1", "no late wakeup that is stored has a share irq of eth1"),
        ("nmi", "no late wakeup that is stored has a share nmi"),
        ("irqs", "expected wakeup_latency, irq_latency,"),
    ] {
        let ended = simulated(of);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.replace("\n  ", " ").contains(want), "{of}: {ended:?}");
    }
}
