//! What `wakescope scope` says of sections that the project's kernel module makes, and of what explain says.

use std::fs;
use std::path::Path;

use serde_json::Value;
use wakescope_core::explain::{Cause, Phase, Share};
use wakescope_core::lab::{CellScope, Status};
use wakescope_core::predict::{Prediction, Reach};
use wakescope_core::preemption::Model;
use wakescope_core::run::Run;
use wakescope_core::scope::locks::{Hold, LockKind, LockRow};
use wakescope_core::scope::{Row, Scope};

use crate::common::bench::{Ended, Running, skip};
use crate::common::lab::{Bench, KERNEL};
use crate::common::measured::record;

/// The instructions between both ends of a section and the module's own readings of the clock there: some
/// 70 in 6.1. A section of the other kind, or with an interrupt in it, is longer.
const AROUND_NS: u64 = 150;

/// A section: when it began, and its length.
pub(crate) type Section = (u64, u64);

/// What the module says of its sections that began while the guest measured.
pub(crate) fn made(folder: &Path) -> Vec<Section> {
    let run = record(folder);
    let measured = run.origin_ns..run.origin_ns + run.duration_ns;
    let log = fs::read_to_string(folder.join("disturbances.log")).unwrap();
    let sections = log.lines().map(|line| {
        let words: Vec<u64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
        (words[1], words[2] - words[1])
    });
    sections.filter(|(begin, _)| measured.contains(begin)).collect()
}

/// What `wakescope scope` says of the sections of this kind that are as long, in their order.
pub(crate) fn seen(bench: &Bench, folder: &Path, kind: &str) -> Vec<Section> {
    let ended = told(bench, &["scope", folder.to_str().unwrap(), "--json"]);
    let scope: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(scope["drift_ns"], 0);
    let number = |section: &Value, key: &str| section[key].as_u64().unwrap();
    let all = scope["longest"].as_array().unwrap().iter();
    let of_kind = all.filter(|section| section["kind"] == kind);
    let mut long: Vec<Section> = of_kind
        .map(|section| (number(section, "begin_ns"), number(section, "length_ns")))
        .filter(|(_, length)| *length >= 300_000)
        .collect();
    long.sort_unstable();
    long
}

#[test]
fn sections_that_a_module_makes_are_seen_to_the_nanosecond() {
    let name = "sections_that_a_module_makes_are_seen_to_the_nanosecond";
    let Some(stock) = crate::stock(name, &[KERNEL]) else { return };
    if let Err(why) = stock.build_module(KERNEL) {
        return skip(name, &why);
    }
    let bench = Bench::new(stock, "scoped");
    for (load, kind) in [
        ("disturb-irqs-off-300us", "irqs_off"),
        ("disturb-preempt-off-300us", "preempt_off"),
        ("disturb-spin-lock-300us", "preempt_off"),
    ] {
        let what = ["--kernel", KERNEL, "--preempt", "full", "--load", load, "--seeds", "1"];
        let how = ["--samples", "600", "--interval", "380us"];
        let log = ["--append", "WAKESCOPE_DISTURBANCES=/tmp/disturbances"];
        let ran = bench.run(&[&what[..], &how, &log].concat());
        let cell = ran.lab.cells.iter().find(|cell| cell.load == load).unwrap();
        assert_eq!(cell.status, Status::Ok, "{}", ran.json);
        let folder = Path::new(cell.run.as_ref().unwrap());
        let (made, seen) = (made(folder), seen(&bench, folder, kind));
        assert!(made.len() >= 5, "{load}: {made:?}");
        assert_eq!(made.len(), seen.len(), "{load}: {made:?} {seen:?}");
        assert_are_the_same(&made, &seen, load);
        if load.contains("spin-lock") {
            assert_lock_is_seen(&made, &seen, &bench, folder);
        }
    }
}

/// The sections that were seen are those that were made.
#[track_caller]
pub(crate) fn assert_are_the_same(made: &[Section], seen: &[Section], load: &str) {
    // The module's clock began later than the machine's, by the same for all of them.
    let since: Vec<u64> = made.iter().zip(seen).map(|(m, s)| s.0.wrapping_sub(m.0)).collect();
    assert!(since.iter().all(|offset| *offset == since[0]), "{load}: {since:?}");
    // What lies around is the same code each time.
    let around: Vec<u64> = made.iter().zip(seen).map(|(m, s)| s.1 - m.1).collect();
    assert!(around.iter().all(|ns| *ns == around[0] && *ns < AROUND_NS), "{load}: {around:?}");
}

/// The lock that the module makes these sections with is held for as long as it says, and within each.
#[track_caller]
fn assert_lock_is_seen(made: &[Section], sections: &[Section], bench: &Bench, folder: &Path) {
    let args = ["scope", folder.to_str().unwrap(), "--locks", "--json"];
    let mut command = bench.test.command(&args);
    bench.prepare(&mut command);
    let ended = Running::start(&mut command).output();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let scope = Scope::from_json(ended.stdout.as_bytes()).unwrap();
    let locks = scope.locks.unwrap();
    let is_modules = |row: &LockRow| row.kind == LockKind::Spin && row.taken.caller.is_none();
    let row_of = |hold: &Hold| &locks.rows[usize::try_from(hold.row).unwrap()];
    let long = locks.longest.iter().filter(|hold| hold.length_ns >= 300_000);
    let mut held: Vec<Section> = long
        .filter(|hold| is_modules(row_of(hold)))
        .map(|hold| (hold.begin_ns, hold.length_ns))
        .collect();
    held.sort_unstable();
    assert_eq!(held.len(), made.len(), "{held:?} {made:?}");
    // It is taken behind the beginning of its section, and before the module first reads its clock.
    for ((hold, section), made) in held.iter().zip(sections).zip(made) {
        let is_within = hold.0 > section.0 && hold.0 + hold.1 < section.0 + section.1;
        assert!(is_within, "{hold:?} {section:?}");
        assert!((made.1..made.1 + AROUND_NS).contains(&hold.1), "{hold:?} {made:?}");
        assert_eq!(hold.0 - section.0, held[0].0 - sections[0].0, "{held:?} {sections:?}");
    }
    let doubts = locks.doubts;
    assert_eq!((doubts.outside_section, doubts.not_seen_released, doubts.calls_lost), (0, 0, 0));
}

/// 6.1 frees pages of a truncated file with interrupts off, most of the time in one function.
#[track_caller]
fn assert_time_is_in_functions(scope: &Scope) {
    const LONG_NS: u64 = 10_000;
    for row in &scope.rows {
        let spent = row.spent.as_ref();
        assert_eq!(spent.is_some(), row.lengths.max_ns >= Some(LONG_NS), "{row:?}");
        let all = spent.map_or(0, |spent| spent.functions.iter().map(|time| time.ns).sum());
        assert_eq!(all, spent.map_or(0, |spent| spent.total_ns), "{row:?}");
    }
    let frees = |row: &&Row| row.began.caller.as_deref() == Some("free_pcppages_bulk");
    let spent = scope.rows.iter().find(frees).and_then(|row| row.spent.as_ref()).unwrap();
    let most = &spent.functions[0];
    assert_eq!(most.function.as_deref(), Some("__free_one_page"), "{spent:?}");
    assert!((spent.total_ns / 2..spent.total_ns * 3 / 4).contains(&most.ns), "{spent:?}");
}

/// The latest wakeups of a cell with explain, as the emulator saw them: every nanosecond has a cause, and what
/// held the wakeup up first is what explain says.
#[track_caller]
fn assert_wakeups_are_explained(scope: &Scope, run: &Run) {
    assert!(!run.worst.is_empty());
    assert_eq!((scope.episodes.len(), &scope.no_episodes), (run.worst.len(), &None));
    for (seen, said) in scope.episodes.iter().zip(&run.worst) {
        assert_eq!(
            (seen.expiry_ns, seen.wakeup_latency_ns),
            (said.expiry_ns, said.wakeup_latency_ns)
        );
        let all: u64 = seen.blame.iter().map(|share| share.ns).sum();
        assert_eq!(all, seen.wakeup_latency_ns, "{seen:#?}");
        assert_eq!(seen.components.unwrap().total_ns(), seen.wakeup_latency_ns, "{seen:#?}");
        assert!(seen.blame.iter().all(|share| share.cause != Cause::Unexplained), "{seen:#?}");
        assert!(!seen.timeline.is_empty(), "{seen:#?}");
    }
    // The kernel sets its timer in counts of 16 ns, and so a little late.
    let is_timer = |share: &Share| share.phase == Some(Phase::Timer);
    let before = scope.episodes.iter().flat_map(|seen| &seen.blame).filter(|share| is_timer(share));
    let before: Vec<u64> = before.map(|share| share.ns).collect();
    assert!(scope.sees_timer && !before.is_empty(), "{before:?}");
    assert!(before.iter().all(|&ns| ns < 1_000), "{before:?}");
    let first = scope.first_blame.as_ref().unwrap();
    let all = run.worst.len() as u64;
    assert_eq!((first.wakeups, first.same_cause), (all, all), "{first:#?}");
}

/// Cells that are looked into side by side, each by its own emulator, show what each of them shows alone.
#[test]
fn cells_are_looked_into_side_by_side() {
    let name = "cells_are_looked_into_side_by_side";
    let Some(stock) = crate::stock(name, &[KERNEL]) else { return };
    let bench = Bench::new(stock, "scoped-together");
    let what = ["--kernel", KERNEL, "--preempt", "none,voluntary,full", "--load", "find"];
    let ran = bench.run(
        &[&what[..], &["--seeds", "1", "--samples", "200", "--scope", "--jobs", "2"]].concat(),
    );
    assert_eq!(ran.lab.cells.len(), 3);
    for cell in &ran.lab.cells {
        let seen = cell.scope.as_ref().unwrap();
        assert_eq!(seen.failed, "", "{}", cell.asked);
        let alone = told(&bench, &["scope", cell.run.as_ref().unwrap(), "--json"]);
        let alone = Scope::from_json(alone.stdout.as_bytes()).unwrap();
        assert_eq!(*seen, CellScope::of(&alone), "{}", cell.asked);
    }
}

/// The first blame of explain is a section's or something else's as the emulator saw it, and lengths differ by
/// no more than what lies between a section's ends and the tracer's events.
#[test]
fn what_explain_says_of_sections_is_what_the_emulator_sees() {
    let name = "what_explain_says_of_sections_is_what_the_emulator_sees";
    let Some(stock) = crate::stock(name, &[KERNEL]) else { return };
    let bench = Bench::new(stock, "scoped-explained");
    let what = ["--kernel", KERNEL, "--preempt", "full", "--load", "file-move", "--seeds", "1"];
    let how = ["--explain", "--above", "p98", "--samples", "1000", "--scope"];
    let ran = bench.run(&[&what[..], &how].concat());
    let cell = ran.lab.cells.iter().find(|cell| cell.load == "file-move").unwrap();
    let seen = cell.scope.as_ref().unwrap();
    assert_eq!(seen.failed, "");
    assert!(!seen.sections.is_empty(), "{}", ran.json);

    let trace = bench.test.dir.join("trace.json");
    let trace = ["--trace", trace.to_str().unwrap(), "--episodes", "20"];
    let again = ["scope", cell.run.as_ref().unwrap(), "--functions", "--json"];
    let ended = told(&bench, &[&again[..], &trace].concat());
    let scope = Scope::from_json(ended.stdout.as_bytes()).unwrap();
    assert_eq!(*seen, CellScope::of(&scope));
    assert_time_is_in_functions(&scope);
    let run = record(Path::new(cell.run.as_ref().unwrap()));
    assert_wakeups_are_explained(&scope, &run);
    let trace: Value = serde_json::from_slice(&fs::read(trace[1]).unwrap()).unwrap();
    let late = |event: &&Value| event["name"].as_str().unwrap().starts_with("late by ");
    assert_eq!(
        trace["traceEvents"].as_array().unwrap().iter().filter(late).count(),
        scope.episodes.len()
    );
    let explained = scope.explained.unwrap();
    assert!(explained.late >= 20 && explained.compared == explained.late, "{explained:#?}");
    // The timer's interrupt and its end, and the switch.
    assert!(explained.matched_times >= 3 * explained.compared, "{explained:#?}");
    assert_eq!(
        (explained.section_not_first, explained.first_not_section),
        (0, 0),
        "{explained:#?}"
    );
    let [irqs, preempt] = &explained.kinds[..] else { panic!("{explained:#?}") };
    assert!(irqs.in_section > 0 && preempt.in_section > 0, "{explained:#?}");
    // What an interrupt takes to arrive is not told from a section so short.
    assert!(irqs.longest_beside_ns.unwrap_or(0) < 50, "{irqs:?}");
    assert_eq!((preempt.longest_beside_ns, irqs.named), (None, irqs.in_section), "{preempt:?}");
    let irqs = irqs.longer_ns.unwrap();
    assert!(irqs.min > -200 && irqs.max < 200, "{irqs:?}");
    // 6.1 has no tracepoint where the scheduler begins: its way to the switch counts as the section's.
    let preempt = preempt.longer_ns.unwrap();
    assert!(preempt.min > 0 && preempt.max < 3_000, "{preempt:?}");
}

/// A larger program of the guest, as `wakescope` itself, takes longer to be faulted in until it reads the clock. (More
/// than 3 ms: nothing was compared then, and another reason was given.)
#[test]
fn explain_is_compared_with_the_sections_whatever_the_guests_program_is() {
    let name = "explain_is_compared_with_the_sections_whatever_the_guests_program_is";
    let Some(stock) = crate::stock(name, &[KERNEL]) else { return };
    let whole = stock.guest_program().with_file_name("wakescope");
    if !whole.is_file() {
        return skip(name, &format!("there is no {} (make build)", whole.display()));
    }
    let bench = Bench::new(stock, "scoped-whole");
    let what = ["--kernel", KERNEL, "--preempt", "full", "--load", "launch", "--seeds", "1"];
    let how = ["--explain", "--above", "p98", "--samples", "300"];
    let program = ["--guest-program", whole.to_str().unwrap()];
    let ran = bench.run(&[&what[..], &how, &program].concat());
    let cell = ran.lab.cells.iter().find(|cell| cell.load == "launch").unwrap();
    assert_eq!(cell.status, Status::Ok, "{}", ran.json);
    let ended = told(&bench, &["scope", cell.run.as_ref().unwrap(), "--json"]);
    let scope = Scope::from_json(ended.stdout.as_bytes()).unwrap();
    assert_eq!((scope.not_compared, scope.no_episodes), (None, None));
    let explained = scope.explained.unwrap();
    assert!(explained.late >= 6 && explained.compared == explained.late, "{explained:#?}");
}

/// Loops over page tables hold a lock and let go of it where somebody waits. The replay knows that, so it neither
/// predicts wakeups as late as the whole loops take, nor proposes to break them up.
#[test]
fn loops_that_let_go_of_their_lock_are_not_proposed_to_be_broken_up() {
    let name = "loops_that_let_go_of_their_lock_are_not_proposed_to_be_broken_up";
    let Some(stock) = crate::stock(name, &[KERNEL]) else { return };
    let bench = Bench::new(stock, "predicted");
    let what = ["--kernel", KERNEL, "--preempt", "full", "--load", "launch", "--seeds", "1,2"];
    let ran = bench.run(&[&what[..], &["--samples", "600", "--interval", "250us"]].concat());
    let cells = ran.lab.cells.iter().filter(|cell| cell.load == "launch");
    let cells: Vec<&str> = cells.map(|cell| cell.run.as_deref().unwrap()).collect();
    let ended = told(&bench, &[&["predict", "--json"], &cells[..]].concat());
    // Its course would count twice.
    let mut command = bench.test.command(&["predict", "--json", cells[0], cells[0]]);
    bench.prepare(&mut command);
    let twice = Running::start(&mut command).output();
    assert_eq!(twice.code, Some(2), "{twice:?}");
    assert!(twice.stderr.contains("it is given twice"), "{twice:?}");
    let said: Prediction = serde_json::from_str(&ended.stdout).unwrap();
    let of = |model| said.models.iter().find(|of| of.model == model).unwrap();
    let steps = &said.next.as_ref().unwrap().steps;
    let proposed = |name: &str| steps.iter().any(|step| step.functions.iter().any(|f| f == name));
    assert!(!proposed("unmap_page_range") && !proposed("copy_page_range"), "{said:#?}");
    // The wakeups of each cell are repeated, whatever they met.
    assert_eq!(said.cells.iter().map(|cell| cell.seed).collect::<Vec<_>>(), [1, 2]);
    for cell in &said.cells {
        let (measured, replayed) = (cell.measured.max_ns.unwrap(), cell.replayed.max_ns.unwrap());
        assert!(measured.abs_diff(replayed) <= measured / 20, "{said:#?}");
        let longest = of(Model::Full).as_recorded.unwrap().longest_ns;
        assert!(longest >= replayed, "{said:#?}");
    }
    // Its preemption points are seen although full has them patched away.
    assert_eq!(of(Model::None).reach, Reach::Whole, "{said:#?}");
}

/// Debian's 6.12 has the address of the preempt count in a register in some functions, so that no instruction there
/// says by itself that it writes the count. Of its RT kernel they are on the way of every load.
#[test]
fn a_preempt_count_that_is_written_by_a_register_is_followed() {
    let name = "a_preempt_count_that_is_written_by_a_register_is_followed";
    let kernel = "6.12-rt";
    let Some(stock) = crate::stock(name, &[kernel]) else { return };
    let bench = Bench::new(stock, "scoped-register");
    let what = ["--kernel", kernel, "--preempt", "rt", "--load", "find", "--seeds", "1"];
    let ran = bench.run(&[&what[..], &["--samples", "300"]].concat());
    let cell = ran.lab.cells.iter().find(|cell| cell.load == "find").unwrap();
    assert_eq!(cell.status, Status::Ok, "{}", ran.json);
    let ended = told(&bench, &["scope", cell.run.as_ref().unwrap(), "--locks", "--json"]);
    let scope = Scope::from_json(ended.stdout.as_bytes()).unwrap();
    assert_eq!((scope.drift_ns, scope.sections_lost), (0, 0));
    // Hardening of copies to programs looks up whether an address is valid, with preemption off.
    let looks_up = |row: &&Row| row.began.function.as_deref() == Some("__virt_addr_valid");
    let looked_up: u64 = scope.rows.iter().filter(looks_up).map(|row| row.lengths.count).sum();
    assert!(looked_up > 1_000, "{looked_up} of {}", scope.sections);
    // Its locks sleep, but for those of the scheduler and of timers.
    let locks = scope.locks.unwrap();
    let held = |kind| {
        let of_kind = locks.rows.iter().filter(move |row| row.kind == kind);
        of_kind.map(|row| row.held.count).sum::<u64>()
    };
    assert!(locks.not_seen.is_empty(), "{:?}", locks.not_seen);
    assert!(held(LockKind::RtSpin) > 10 * held(LockKind::Spin), "{:?}", held(LockKind::RtSpin));
    assert!(held(LockKind::Spin) > 1_000, "{:?}", held(LockKind::Spin));
    // There `mutex_unlock` jumps into `rt_mutex_unlock`, which releases nothing more.
    let doubts = locks.doubts;
    assert_eq!((doubts.outside_section, doubts.not_seen_taken, doubts.calls_lost), (0, 0, 0));
}

/// The first wakeup may come when the CPU has slept since before the measurement, and its interrupt is the first thing
/// that counts. Out of idle, where the tick was stopped, it is started again before the scheduler.
#[test]
fn wakeups_out_of_idle_are_seen_from_the_first_on_and_repeated() {
    let name = "wakeups_out_of_idle_are_seen_from_the_first_on_and_repeated";
    let Some(stock) = crate::stock(name, &[KERNEL]) else { return };
    let bench = Bench::new(stock, "scoped-idle");
    let what = ["--kernel", KERNEL, "--preempt", "full", "--load", "idle", "--seeds", "1"];
    let ran = bench.run(&[&what[..], &["--samples", "200", "--interval", "5ms"]].concat());
    let cell = ran.lab.cells.iter().find(|cell| cell.load == "idle").unwrap();
    let cell = cell.run.as_ref().unwrap();
    let scope = told(&bench, &["scope", cell, "--episodes", "200", "--json"]);
    let scope = Scope::from_json(scope.stdout.as_bytes()).unwrap();
    assert!(scope.episodes.iter().any(|episode| episode.expiry_ns == 0), "the first is late");
    for episode in &scope.episodes {
        let unexplained = episode.blame.iter().any(|share| share.cause == Cause::Unexplained);
        assert!(!unexplained, "{episode:?}");
    }
    let predicted = told(&bench, &["predict", cell, "--json"]);
    let predicted: Prediction = serde_json::from_str(&predicted.stdout).unwrap();
    // Each wakeup finds the tick stopped. The first took 1.4 us longer than all others.
    let [one] = &predicted.cells[..] else { panic!("{predicted:#?}") };
    let full = predicted.models.iter().find(|of| of.model == Model::Full).unwrap();
    let median_ns = full.as_recorded.unwrap().p50.unwrap().median_ns;
    for replayed_ns in [one.replayed.p50_ns.unwrap(), median_ns] {
        let measured_ns = one.measured.p50_ns.unwrap();
        assert!(measured_ns.abs_diff(replayed_ns) <= measured_ns / 50, "{predicted:#?}");
    }
    assert!(one.replayed.p50_ns > Some(one.path.max_ns + 500), "{predicted:#?}");
}

/// What a command says of cells.
fn told(bench: &Bench, args: &[&str]) -> Ended {
    let mut command = bench.test.command(args);
    bench.prepare(&mut command);
    let ended = Running::start(&mut command).output();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended
}
