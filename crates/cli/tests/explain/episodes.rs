//! What an explained run stores of its late wakeups, and what it is worth later.

use std::fs;

use wakescope_core::run::{Run, State};
use wakescope_sys::sched::this_thread;

use crate::a_cpu;
use crate::common::assert_valid_run;
use crate::common::bench::{Disk, Test, eventually, kill};
use crate::common::episodes::{EPISODES, stored};
use crate::common::following::{can_follow, explain, explained, start_explain};
use crate::common::measured::{RECORD, assert_found, assert_not_found, names, record};

#[test]
fn what_is_stored_is_attributed_as_it_was() {
    if !can_follow("what_is_stored_is_attributed_as_it_was") {
        return;
    }
    let test = Test::new("stored");
    let cpu = a_cpu();
    let us = this_thread().number().to_string();
    let probes = ["--duration", "2s", "--cpus", &cpu, "--interval", "500us", "--above", "p90"];
    let others = ["--duration", "1s", "--pid", &us, "--above", "1ns"];
    for (args, out) in [(&probes[..], "probes"), (&others[..], "others")] {
        let (run, _) = explained(&test, &[args, &["--out", out]].concat());
        let folder = test.dir.join(out);
        assert_eq!(names(&folder), [EPISODES, RECORD]);
        let explanation = run.explanation.as_ref().unwrap();
        let all = stored(&folder);
        assert_eq!(explanation.stored_episodes, Some(all.len() as u64));
        // Those are stored, too, that are late only when the hypervisor's share is left out.
        let net = run.net_of_steal.as_ref();
        let explained = explanation.explained + net.map_or(0, |net| net.explained);
        assert!(explained >= all.len() as u64, "{explained}, {}", all.len());
        let least_ns = net.map_or(u64::MAX, |net| net.above_ns).min(explanation.above_ns);
        let mut late = 0;
        for (head, episode) in &all {
            assert_eq!((&head.run, head.origin_ns), (&run.id, run.origin_ns));
            let late_ns = episode.as_ref().unwrap().wakeup_latency_ns();
            assert!(late_ns >= least_ns, "{late_ns}");
            late += u64::from(late_ns >= explanation.above_ns);
        }
        let again = test.done(&["explain", out, "--json"]);
        assert_valid_run(&again);
        let mut again = Run::from_json(again.as_bytes()).unwrap();
        let anew = again.explanation.as_mut().unwrap().anew.take().unwrap();
        assert_eq!((anew.episodes, anew.changed, anew.excess_ns), (late, 0, 0));
        assert_eq!(again, run, "{out}");
    }
    assert!(!stored(&test.dir.join("probes")).is_empty());
}

#[test]
fn a_run_killed_while_it_goes_on_can_be_explained() {
    if !can_follow("a_run_killed_while_it_goes_on_can_be_explained") {
        return;
    }
    let test = Test::new("killed-stored");
    let args = ["--duration", "1h", "--cpus", &a_cpu(), "--interval", "500us", "--above", "p90"];
    let running = start_explain(&test, &[&args[..], &["--out", "run"]].concat());
    let folder = test.dir.join("run");
    let is_stored = || stored(&folder).iter().any(|(_, episode)| episode.is_ok());
    eventually("an episode is stored", || folder.join(RECORD).exists() && is_stored());
    kill("KILL", &[running.pid()]);
    assert_eq!(running.output().code, None);
    let before = record(&folder);
    assert!(before.state == State::Running && before.explanation.is_none());
    let ended = test.ended(&["explain", "run", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_valid_run(&ended.stdout);
    let run = Run::from_json(ended.stdout.as_bytes()).unwrap();
    let explanation = run.explanation.as_ref().unwrap();
    assert!(
        explanation.stored_episodes > Some(0) && explanation.explained <= explanation.late,
        "{explanation:?}"
    );
    let shares: f64 = run.causes.iter().map(|row| row.share).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}: {:?}", run.causes);
}

#[test]
fn a_full_disk_costs_the_episodes_and_not_the_run() {
    let name = "a_full_disk_costs_the_episodes_and_not_the_run";
    if !can_follow(name) {
        return;
    }
    let test = Test::new("full-stored");
    let place = test.dir.join("disk");
    fs::create_dir(&place).unwrap();
    let Some(_disk) = Disk::mount(&place, "size=1m", name) else { return };
    let (folder, cpu) = (place.join("run"), a_cpu());
    // A megabyte is room for the record, and for a fifth of the episodes.
    let args = ["--duration", "2s", "--cpus", &cpu, "--interval", "250us", "--above", "1ns"];
    let ended = explain(&test, &[&args[..], &["--out", &folder.display().to_string()]].concat());
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    assert_eq!(names(&folder), [RECORD]);
    let run = record(&folder);
    assert_eq!(run.state, State::Complete);
    assert_found(&run, "episodes-not-stored");
    assert_eq!(run.explanation.as_ref().unwrap().stored_episodes, None);
    let shown = test.done(&["explain", &folder.display().to_string()]);
    assert!(shown.contains("its folder has no episodes.jsonl"), "{shown}");
}

#[test]
fn what_is_to_be_published_names_nobody() {
    if !can_follow("what_is_to_be_published_names_nobody") {
        return;
    }
    let test = Test::new("published");
    // No function of the kernel has this name.
    let program = test.dir.join("unmistakable");
    std::os::unix::fs::symlink("/bin/sleep", &program).unwrap();
    let load = format!("exec:{} 9", program.display());
    let args = ["--duration", "1s", "--cpus", &a_cpu(), "--above", "p90", "--load", &load];
    let ended = explain(&test, &[&args[..], &["--redact", "--out", "run"]].concat());
    let folder = test.dir.join("run");
    assert!(folder.join(EPISODES).exists(), "{ended:?}");
    assert_not_found(&record(&folder), "episodes-not-stored");
    let text = fs::read_to_string(folder.join(EPISODES)).unwrap();
    assert!(text.contains(r#""load":["exec:[redacted]"]"#), "{text}");
    assert!(!text.contains("unmistakable"), "{text}");
    for (_, episode) in stored(&folder) {
        let wakeup = episode.unwrap().wakeup;
        let comm = wakeup.interrupted.map(|context| context.task.comm).unwrap_or_default();
        let known = ["[redacted]", "swapper", "kworker", "wakescope", "load-", "rcu_", "ksoftirqd"];
        let stays = comm.is_empty() || known.iter().any(|known| comm.starts_with(known));
        assert!(stays || comm.contains('/') || comm.starts_with('k'), "{comm}");
    }
}
