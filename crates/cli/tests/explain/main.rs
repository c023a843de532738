//! `wakescope explain`, run as a command from beginning to end.
//!
//! Where the kernel cannot be looked into from here, as without root, each test that would says by
//! name that it is skipped, and why.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use common::bench::{Ended, Test, skip};
use common::following::{can_follow, explain, explained};
use common::measured::{allowed_cpus, names, record};
use wakescope_attribution::without_stolen;
use wakescope_core::distribution::Distribution;
use wakescope_core::explain::{By, NetOfSteal, Ranking, StepEvent};
use wakescope_core::histogram::Bucket;
use wakescope_core::plan::{Family, Stimulus};
use wakescope_core::run::{Episode, Run, State};
use wakescope_core::units::SpanNs;
use wakescope_sys::clock;
use wakescope_sys::sched::{self, Schedule};

#[path = "../common/mod.rs"]
mod common;
mod deadline;
mod ends;
mod episodes;
mod hogged;
mod lent;
mod lines;
mod module_lines;
mod moved;
mod others;
mod programs;
mod refused;
mod sections;
mod senders;
mod stacks;
mod stopper;
mod taking_turns;
mod waits;

/// The first CPU that may be used, as an argument.
fn a_cpu() -> String {
    allowed_cpus()[0].to_string()
}

#[test]
fn each_wakeup_is_followed_and_its_parts_add_up() {
    if !can_follow("each_wakeup_is_followed_and_its_parts_add_up") {
        return;
    }
    let test = Test::new("explain");
    let cpu = a_cpu();
    let args = ["--duration", "2s", "--cpus", &cpu, "--interval", "500us", "--json"];
    // Many late ones: in some virtual machines a thread of the host's takes the CPU now and then, and
    // hides it from tracers. The very latest are then those that nobody could follow.
    let many = ["--above", "p90", "--worst", "400"];
    let ended = explain(&test, &[&args[..], &many].concat());
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let folder = test.run_folder();
    let json = fs::read_to_string(folder.join("run.json")).unwrap();
    assert_eq!(ended.stdout.trim_end(), json);
    assert_eq!(names(&folder), ["episodes.jsonl", "run.json"]);
    let run = record(&folder);
    assert_eq!(run.state, State::Complete);
    assert_parts_add_up(&run);
    assert_shares_add_up(&run);
    let explanation = run.explanation.as_ref().unwrap();
    assert!(explanation.seen_with.contains(&"sched_switch".into()), "{:?}", explanation.seen_with);
    assert_eq!(explanation.above, "p90");
}

#[test]
fn wakeups_by_another_thread_are_followed_from_its_call() {
    const TEST: &str = "wakeups_by_another_thread_are_followed_from_its_call";
    if !can_follow(TEST) {
        return;
    }
    let cpus = allowed_cpus();
    let (first, last) = (cpus[0], cpus[cpus.len() - 1]);
    for (stimulus, between, waker_cpu) in [
        (Stimulus::Futex, "threads", first),
        (Stimulus::Pipe, "threads", last),
        (Stimulus::Eventfd, "processes", first),
        (Stimulus::Tcp, "processes", last),
    ] {
        check_followed_from_the_call(stimulus, between, waker_cpu, first);
    }
    if first == last {
        skip(TEST, "wakers on another CPU: there is one CPU");
    }
}

#[track_caller]
fn check_followed_from_the_call(stimulus: Stimulus, between: &str, waker_cpu: u32, probe: u32) {
    let test = Test::new(&format!("explain-{stimulus}"));
    let place = format!("{waker_cpu}:{probe}");
    let args = ["--stimulus", stimulus.name(), "--between", between, "--place", &place];
    let length = ["--duration", "1s", "--interval", "500us", "--warmup", "100ms"];
    let (run, text) = explained(
        &test,
        &[&args[..], &length, &["--above", "p90", "--worst", "400", "--out", "run"]].concat(),
    );
    assert_eq!((run.state, run.plan.stimulus), (State::Complete, stimulus));
    assert_parts_add_up(&run);
    assert_shares_add_up(&run);
    let explanation = run.explanation.as_ref().unwrap();
    // Followed are all but those that somebody hid.
    assert!(explanation.not_followed <= explanation.wakeups / 10, "{explanation:?}");
    assert!(explanation.seen_with.contains(&"sched_waking".into()), "{:?}", explanation.seen_with);
    let waker = format!("wakescope-w/{waker_cpu}");
    let from = (waker_cpu != probe).then_some(waker_cpu);
    let explained: Vec<_> = run.worst.iter().filter(|w| !w.blame.is_empty()).collect();
    for episode in explained {
        let made_ready = episode.timeline.iter().find_map(|step| match &step.event {
            StepEvent::MadeReady { by: Some(by), cpu, .. } => Some((by.comm.as_str(), *cpu)),
            _ => None,
        });
        assert_eq!(made_ready, Some((waker.as_str(), from)), "{:?}", episode.timeline);
    }
    assert!(text.contains(&format!("made ready by {waker}[")), "{text}");
    let found = |code: &str| run.validity.findings.iter().any(|finding| finding.code == code);
    assert!(!found("contradictory-counts") && !found("contradictory-tracer"), "{text}");
}

/// Ends what goes on beside a test, also where that fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Takes a CPU from everything else, again and again for up to 0.6 ms, until told to stop.
fn takes(cpu: u32, stop: &AtomicBool) {
    sched::set_affinity(&[cpu]).unwrap();
    sched::set_schedule(Schedule::Fifo { priority: 99 }).unwrap();
    // Any lengths will do: they only have to fall on every moment of a wakeup.
    let mut seed = 1_u64;
    let mut up_to = |most: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        SpanNs((seed >> 33) % most)
    };
    while !stop.load(Ordering::Relaxed) {
        clock::sleep_until(clock::now().after(up_to(900_000))).unwrap();
        let end = clock::now().after(up_to(600_000));
        while clock::now() < end {}
    }
}

#[test]
fn a_wakeup_that_begins_while_the_last_one_ends_changes_nothing_of_it() {
    const TEST: &str = "a_wakeup_that_begins_while_the_last_one_ends_changes_nothing_of_it";
    let cpus = allowed_cpus();
    let (probe, waker) = (cpus[0], cpus[cpus.len() - 1]);
    if !can_follow(TEST) {
        return;
    }
    if waker == probe {
        return skip(TEST, "a waker on another CPU: there is one CPU");
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stop = &stop;
        let _ends = Ends(stop);
        for cpu in [probe, waker] {
            scope.spawn(move || takes(cpu, stop));
        }
        for stimulus in [Stimulus::Pipe, Stimulus::Tcp] {
            let test = Test::new(&format!("explain-both-{stimulus}"));
            let place = format!("{waker}:{probe}");
            let args = ["--stimulus", stimulus.name(), "--place", &place, "--duration", "2s"];
            let more = ["--interval", "200us", "--above", "p90", "--out", "run"];
            let (run, text) = explained(&test, &[&args[..], &more].concat());
            assert_parts_add_up(&run);
            assert!(!text.contains("contradict"), "{text}");
        }
    });
}

#[test]
fn every_timer_on_the_grid_is_followed_from_when_it_is_due() {
    if !can_follow("every_timer_on_the_grid_is_followed_from_when_it_is_due") {
        return;
    }
    let cpu = a_cpu();
    // A real-time clock and the kernel module may be missing, and deadline tasks are not bound to a CPU.
    let grid = |s: &&Stimulus| s.family() == Family::Grid && s.policy().is_none();
    let grid = |s: &&Stimulus| grid(s) && !matches!(s, Stimulus::Rtc | Stimulus::Device);
    for &stimulus in Stimulus::OF_PROBES.iter().filter(grid) {
        let test = Test::new(stimulus.name());
        let how = ["--stimulus", stimulus.name(), "--duration", "1s", "--cpus", &cpu];
        let interval = if stimulus.keeps_rate() { "488281ns" } else { "500us" };
        let many = ["--interval", interval, "--above", "p90", "--worst", "400", "--out", "run"];
        let (run, text) = explained(&test, &[&how[..], &many].concat());
        assert_eq!((run.state, run.plan.stimulus), (State::Complete, stimulus));
        assert_parts_add_up(&run);
        assert_shares_add_up(&run);
        let explanation = run.explanation.as_ref().unwrap();
        // Some are lost on a machine that stalls, 18 % of one run where five programs wanted each CPU.
        // Of a timer that the tracer does not know, all are.
        assert!(explanation.not_followed < explanation.wakeups, "{stimulus}: {explanation:?}");
        // All but those that found the probe awake began with an interrupt.
        let timers = run.worst.iter().filter(|w| {
            let first = w.timeline.first().map(|step| &step.event);
            matches!(first, Some(StepEvent::TimerExpiry { .. }))
        });
        let explained = run.worst.iter().filter(|w| !w.blame.is_empty()).count();
        assert!(timers.count() * 2 > explained && explained > 0, "{stimulus}: {text}");
        let found = |code: &str| run.validity.findings.iter().any(|finding| finding.code == code);
        assert!(!found("contradictory-counts") && !found("contradictory-tracer"), "{text}");
    }
}

/// The components of all wakeups, against what the probe itself measured.
#[track_caller]
fn assert_parts_add_up(run: &Run) {
    let explained = run.explanation.as_ref().expect("an explanation");
    let woken = run.woken();
    assert_eq!(explained.wakeups + explained.not_followed, woken.count);
    assert!(explained.wakeups > 0, "{explained:?}");
    let table = run.components.as_ref().expect("components");
    let always = [&table.handler_duration, &table.sched_latency];
    for part in always {
        assert_eq!(part.count, explained.wakeups, "{part:?}");
    }
    // Not all wait for an interrupt. Where the scheduler's entry was not seen, the component before it has the time.
    let sometimes = [&table.irq_latency].into_iter().chain(&table.sched_duration);
    let parts: Vec<&Distribution> = always.into_iter().chain(sometimes).collect();
    for part in &parts {
        let held: u64 = part.histogram.buckets().iter().map(|b| b.count).sum();
        assert!(part.count == held && held <= explained.wakeups, "{part:?}");
    }
    let sum: u64 = parts.iter().map(|part| part.sum_ns).sum();
    let maxima: Vec<u64> = parts.iter().filter_map(|part| part.max_ns).collect();
    if explained.not_followed == 0 {
        // Both are counted from the same two readings of the clock, on either side of the kernel.
        assert_eq!(sum, woken.sum_ns);
        let worst = woken.max_ns.unwrap();
        assert!(maxima.iter().all(|&max| max <= worst), "{maxima:?}, {worst}");
        assert!(maxima.iter().sum::<u64>() >= worst, "{maxima:?}, {worst}");
    } else {
        assert!(sum < woken.sum_ns, "{sum} of {}", woken.sum_ns);
    }
}

/// What is known of each late wakeup, and of all together.
#[track_caller]
fn assert_shares_add_up(run: &Run) {
    let it = run.explanation.as_ref().expect("an explanation");
    assert!(it.late >= it.explained, "{it:?}");
    assert!(it.wakeups + it.not_followed >= it.late, "{it:?}");
    let explained: Vec<_> = run.worst.iter().filter(|w| !w.blame.is_empty()).collect();
    assert!(!explained.is_empty(), "{:?}", run.worst);
    for episode in explained {
        let late_ns = episode.wakeup_latency_ns;
        assert_eq!(episode.blame.iter().map(|share| share.ns).sum::<u64>(), late_ns);
        assert_eq!(episode.components.map(|parts| parts.total_ns()), Some(late_ns));
        let steps = episode.timeline.iter().map(|step| step.at_ns);
        let steps: Vec<u64> = steps.collect();
        assert_eq!((steps.first(), steps.last()), (Some(&0), Some(&late_ns)), "{episode:?}");
        assert!(steps.is_sorted(), "{episode:?}");
    }
    let shares: f64 = run.causes.iter().map(|row| row.share).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}: {:?}", run.causes);
    let late = it.late_components.expect("components of the late ones").total_ns();
    let caused: u64 = run.causes.iter().map(|row| row.total_ns).sum();
    assert_eq!(late + it.unexplained_ns, caused);
    assert_books_balance(run);
    run.net_of_steal.iter().for_each(|net| assert_net_adds_up(run, net));
}

/// The second account, where the hypervisor took anything of late wakeups by the clock of steal.
#[track_caller]
fn assert_net_adds_up(run: &Run, net: &NetOfSteal) {
    assert!(net.explained + net.late_not_followed <= net.late, "{net:?}");
    let shares: f64 = net.causes.iter().map(|row| row.share).sum();
    assert!(net.late == 0 || (shares - 1.0).abs() < 1e-9, "{shares}: {:?}", net.causes);
    let stolen_ns = |episode: &Episode| episode.stolen_ns.unwrap_or(0);
    let latest = net.worst.iter().map(|e| e.wakeup_latency_ns - stolen_ns(e));
    let latest: Vec<u64> = latest.collect();
    assert!(latest.iter().rev().is_sorted(), "{latest:?}");
    assert!(latest.iter().all(|&ns| ns >= net.above_ns), "{latest:?} of {}", net.above_ns);
    assert!(net.worst.len() as u64 == net.explained.min(run.plan.worst as u64), "{net:?}");
    for episode in &net.worst {
        let rest: u64 =
            without_stolen(&episode.blame, stolen_ns(episode)).iter().map(|s| s.ns).sum();
        assert_eq!(rest, episode.wakeup_latency_ns - stolen_ns(episode), "{episode:?}");
    }
    // Nobody is later without stolen time than with it.
    assert!(latest.first().is_none_or(|&ns| Some(ns) <= run.woken().max_ns), "{latest:?}");
}

/// Late wakeups are all that the probes recorded, and causes have all their time.
#[track_caller]
fn assert_books_balance(run: &Run) {
    let it = run.explanation.as_ref().expect("an explanation");
    let woken = run.woken();
    let buckets = || woken.histogram.buckets().iter().filter(|b| b.upper > it.above_ns);
    let late = || buckets().filter(|b| b.lower >= it.above_ns);
    let count = |buckets: &mut dyn Iterator<Item = &Bucket>| buckets.map(|b| b.count).sum::<u64>();
    let (least, most) = (count(&mut late()), count(&mut buckets()));
    assert!((least..=most).contains(&it.late), "{least} to {most}: {it:?}");
    assert!(it.explained + it.late_not_followed <= it.late, "{it:?}");
    assert!(it.late_not_followed <= it.not_followed, "{it:?}");
    // A sample stands for what it was drawn from, more or less.
    if it.one_in.is_none() {
        let least: u64 = late().map(|b| b.lower * b.count).sum();
        let most: u64 = buckets().map(|b| (b.upper - 1) * b.count).sum();
        let caused: u64 = run.causes.iter().map(|row| row.total_ns).sum();
        assert!((least..=most).contains(&caused), "{least} to {most} ns: {caused}");
    }
    let codes: Vec<&str> = run.validity.findings.iter().map(|f| f.code.as_str()).collect();
    for contradiction in ["contradictory-counts", "contradictory-tracer"] {
        assert!(!codes.contains(&contradiction), "{:?}", run.validity.findings);
    }
}

#[test]
fn late_wakeups_that_are_not_followed_count_as_well() {
    if !can_follow("late_wakeups_that_are_not_followed_count_as_well") {
        return;
    }
    let test = Test::new("books");
    let cpu = a_cpu();
    // At such an interval the tracer misses some wakeups, and loses records of others.
    for (interval, above) in [("30us", "50us"), ("20us", "p90"), ("100us", "p99")] {
        let out = format!("{interval}-{above}");
        let explain_at = |interval: &str| {
            let args = ["--duration", "1s", "--cpus", &cpu, "--interval", interval];
            explain(&test, &[&args[..], &["--above", above, "--out", &out]].concat())
        };
        let mut ended = explain_at(interval);
        // A slow machine sleeps and wakes no faster than this; the refusal names what it can do.
        if let Some(possible) = remedy_for_a_short_interval(&ended) {
            ended = explain_at(&possible);
        }
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_books_balance(&record(&test.dir.join(&out)));
    }
}

/// The interval to use instead, if this one was refused because it is too short here.
fn remedy_for_a_short_interval(ended: &Ended) -> Option<String> {
    let (_, remedy) = ended.stderr.split_once(" is too short: ")?;
    let (_, interval) = remedy.split_once("use --interval ")?;
    Some(interval.split_once(' ')?.0.to_owned())
}

#[test]
fn what_the_hypervisor_took_is_told_apart() {
    if !can_follow("what_the_hypervisor_took_is_told_apart") {
        return;
    }
    let test = Test::new("net-of-steal");
    let cpu = a_cpu();
    let args = ["--duration", "2s", "--cpus", &cpu, "--load", "file-move", "--fail-above", "1ns"];
    let ended = explain(&test, &[&args[..], &["--above", "p90", "--worst", "400"]].concat());
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let run = record(&test.run_folder());
    assert_shares_add_up(&run);
    // Whether there was any steal is the host's business. Lines end where the figures in them let them end.
    let text = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let says = |words: &str| text.contains(words);
    let is_told = says("net of measured steal") || says("Net of measured steal");
    assert_eq!(is_told, run.net_of_steal.is_some(), "{}", ended.stdout);
    assert_eq!(says("(steal included)"), run.net_of_steal.is_some(), "{}", ended.stdout);
    assert!(says("above the limit max ≤ 1 ns"), "{}", ended.stdout);
}

#[test]
fn late_time_is_ranked_by_who_had_the_cpu() {
    if !can_follow("late_time_is_ranked_by_who_had_the_cpu") {
        return;
    }
    let test = Test::new("by");
    let cpu = a_cpu();
    let args = ["--duration", "1s", "--cpus", &cpu, "--above", "p50", "--by", "pid"];
    let ended = explain(&test, &args);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let folder = test.run_folder();
    let run = record(&folder);
    let ranking = run.ranking.as_ref().expect("a ranking");
    let late = run.explanation.as_ref().unwrap().late;
    assert_eq!((ranking.by, ranking.complete, ranking.wakeups), (By::Pid, true, late));
    let total_ns = |ranking: &Ranking| ranking.rows.iter().map(|row| row.total_ns).sum::<u64>();
    assert_eq!(total_ns(ranking), run.causes.iter().map(|row| row.total_ns).sum::<u64>());
    let folder = folder.to_str().unwrap();
    let again = |by: &str| explain(&test, &[folder, "--by", by, "--json"]).stdout;
    let ranked = |by| Run::from_json(again(by).as_bytes()).unwrap().ranking.unwrap();
    assert_eq!(ranked("pid"), *ranking);
    // Of late wakeups that were not explained there are no episodes.
    let explanation = run.explanation.as_ref().unwrap();
    let stored = ranked("function");
    let complete = explanation.explained == late;
    assert_eq!(
        (stored.by, stored.complete, stored.wakeups),
        (By::Function, complete, explanation.explained)
    );
    assert_eq!(total_ns(&stored) + explanation.unexplained_ns, total_ns(ranking));
    // Without episodes, nothing but the worst is in the record.
    fs::remove_file(Path::new(folder).join("episodes.jsonl")).unwrap();
    let worst = ranked("function");
    assert_eq!((worst.by, worst.complete, worst.wakeups), (By::Function, false, 10));
    let worst_ns: u64 = run.worst.iter().map(|episode| episode.wakeup_latency_ns).sum();
    assert_eq!(total_ns(&worst), worst_ns);
    let shown = explain(&test, &[folder, "--by", "module"]).stdout;
    assert!(shown.contains(" late wakeups only the worst 10 "), "{shown}");
}

#[test]
fn a_stored_explanation_is_shown_again_as_it_was() {
    if !can_follow("a_stored_explanation_is_shown_again_as_it_was") {
        return;
    }
    let test = Test::new("again");
    let cpu = a_cpu();
    let ended = explain(&test, &["--samples", "1000", "--cpus", &cpu, "--out", "run"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let (text, footer) = ended.stdout.rsplit_once(" run: ").unwrap();
    assert_eq!(footer, "run   show: wakescope explain run\n");
    assert!(text.starts_with("Worst wakeup "), "{text}");
    for part in ["1,000 wakeups followed", "\n interrupt latency ", "\n traced with: "] {
        // A wakeup that comes before its thread sleeps is not followed, and so said.
        assert!(text.contains(part) || text.contains("not followed"), "{part}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let shown = |args: &[&str]| {
        let ended = explain(&test, args);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{args:?}: {ended:?}");
        ended.stdout
    };
    assert_eq!(shown(&["run", "--as-recorded"]), text);
    assert_eq!(shown(&["run/run.json", "--episodes", "3", "--as-recorded"]), text);
    let json = fs::read_to_string(test.dir.join("run").join("run.json")).unwrap();
    assert_eq!(shown(&["run", "--json", "--as-recorded"]).trim_end(), json);
    let short = shown(&["run", "--episodes", "0"]);
    assert!(!short.contains("\n #") && text.contains("\n #"), "{short}");
    let report = test.start_command(&["report", "run"]).output();
    assert_eq!(report.code, Some(0), "{report:?}");
    assert!(report.stdout.contains(" expiries at 1.00 ms"), "{}", report.stdout);
}

#[test]
fn what_is_late_is_what_was_asked_for() {
    if !can_follow("what_is_late_is_what_was_asked_for") {
        return;
    }
    let test = Test::new("above");
    let cpu = a_cpu();
    let ask = |above: &str| {
        explained(&test, &["--samples", "300", "--cpus", &cpu, "--above", above, "--out", above])
    };
    // Everything: each wakeup leaves the kernel.
    let (run, text) = ask("1ns");
    let explanation = run.explanation.as_ref().unwrap();
    assert_eq!(
        (explanation.above_ns, explanation.late),
        (1, explanation.wakeups + explanation.not_followed),
        "{explanation:?}"
    );
    assert_eq!(
        explanation.records + explanation.lost_records,
        explanation.wakeups,
        "{explanation:?}"
    );
    assert_eq!(explanation.explained, explanation.records, "{explanation:?}");
    assert_shares_add_up(&run);
    assert!(text.contains(" above 1 ns"), "{text}");
    // Nothing, which is an answer too.
    let (run, text) = ask("10s");
    let explanation = run.explanation.as_ref().unwrap();
    assert_eq!(
        (explanation.late, explanation.explained, explanation.records),
        (0, 0, 0),
        "{explanation:?}"
    );
    assert!(explanation.wakeups > 0 && run.causes.is_empty(), "{explanation:?}");
    assert!(run.worst.iter().all(|w| w.blame.is_empty() && w.components.is_none()));
    let answer = "late: no wakeup was as late as 10.0 s, so there is nothing to explain.\n";
    assert!(text.lines().next().is_some_and(|line| (line.to_owned() + "\n").ends_with(answer)));
    assert!(!text.contains("causes of") && !text.contains("\n #1 "), "{text}");
    assert!(text.contains("\n interrupt latency "), "{text}");
    // A percentile that so few samples do not carry gives way to one that they do, and so told.
    let (run, text) = ask("p99.9");
    let explanation = run.explanation.as_ref().unwrap();
    assert_eq!(explanation.above, "p99", "{explanation:?}");
    assert!(
        explanation.late > 0 && explanation.above_ns > 0 && text.contains("(p99)"),
        "{explanation:?} {text}"
    );
}
