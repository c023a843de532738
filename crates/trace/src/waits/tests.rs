use std::fs;
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;
use wakescope_core::explain::{Cause, Culprit, NamedTask};

use super::*;
use crate::shared::{RUNNERS, Task, WAIT_KINDS};

fn named(comm: &str, pid: u32) -> Task {
    let mut task = Task { pid, prio: 120, ..Task::default() };
    task.comm[..comm.len()].copy_from_slice(comm.as_bytes());
    task
}

/// Waits of a thread, all of which the kernel counts.
fn thread(pid: u32, sums: [u64; WAIT_KINDS]) -> shared::Waits {
    let mut waits = shared::Waits { task: named("waits", pid), ..Default::default() };
    for (of, sum) in waits.of.iter_mut().zip(sums) {
        let count = u64::from(sum > 0);
        *of = WaitsOfKind {
            count,
            sum,
            worst: sum,
            worst_ran: sum,
            runner: named("taker", 9),
            ..*of
        };
    }
    let sum = sums.iter().fold(0, |sum: u64, &ns| sum.saturating_add(ns));
    (waits.by_clock, waits.run_delay, waits.compared) = (sum, sum, 1);
    waits
}

fn of(threads: Vec<shared::Waits>) -> Waits {
    Counted { counts: WaitCounts::default(), threads }.waits(MonoNs(1_000))
}

#[test]
fn what_still_waits_is_in_no_sum() {
    let mut open = thread(1, [7, 0, 0, 0]);
    open.since = 400;
    let mut later = thread(2, [0; WAIT_KINDS]);
    later.since = 1_200;
    let waits = of(vec![open, later]);
    assert_eq!((waits.sum_ns(), waits.open, waits.open_ns), (7, 2, 600));
    let longest = waits.longest_open.clone().unwrap();
    assert_eq!((longest.ns, longest.at_ns, longest.task.pid), (600, 400, Some(1)));
    // One that waited throughout has waited longer than any that began to wait in the run.
    let task = NamedTask { pid: Some(3), ..NamedTask::default() };
    let span = (MonoNs(100), MonoNs(1_000));
    let more = with_throughout(waits.clone(), span, vec![task.clone(), task.clone()]);
    let longest_open = Some(OpenWait { ns: 900, at_ns: 100, task });
    assert_eq!(more, Waits { throughout: 2, longest_open, ..waits.clone() });
    assert_eq!(with_throughout(waits.clone(), span, Vec::new()), waits);
    // It has no wait that ended.
    assert_eq!(waits.threads.len(), 1);
}

#[test]
fn the_longest_of_all_threads_is_told_with_its_cause() {
    let mut stopped = thread(3, [0, 0, 90, 0]);
    (stopped.of[2].stopped, stopped.of[2].worst_stopped) = (85, 85);
    (stopped.of[2].worst_at, stopped.of[2].worst_cpu) = (77, 1);
    let waits = of(vec![thread(1, [0, 50, 60, 0]), stopped, thread(2, [0, 50, 0, 0])]);
    let row = waits.of(WaitKind::Throttled).unwrap();
    assert_eq!((row.count, row.sum_ns, row.throttled_ns), (2, 150, 85));
    let worst = row.worst.as_ref().unwrap();
    assert_eq!((worst.ns, worst.at_ns, worst.cpu, worst.cause), (90, 77, 1, Cause::Throttled));
    assert_eq!(worst.task.pid, Some(3));
    // Of two that are equally long it is no chance which is told.
    let worst = waits.of(WaitKind::Preempted).unwrap().worst.clone().unwrap();
    assert_eq!((worst.task.pid, worst.cause), (Some(1), Cause::EqualOrLowerTask));
    let Culprit::Task(NamedTask { comm, pid, .. }) = worst.culprit else { panic!("{worst:?}") };
    assert_eq!((comm.as_str(), pid), ("taker", Some(9)));
    assert_eq!(waits.of(WaitKind::Woken), None);
}

#[test]
fn waits_that_were_not_seen_to_end_are_not_the_longest() {
    let mut made_up = thread(1, [0, 500, 0, 0]);
    made_up.of[1].worst = 0;
    let waits = of(vec![made_up]);
    let row = &waits.kinds[0];
    assert_eq!((row.sum_ns, &row.worst), (500, &None));
}

#[test]
fn what_nobody_knows_of_a_quota_is_unexplained() {
    let mut unsure = thread(1, [0, 0, 0, 90]);
    unsure.of[3].worst_unsure = 1;
    let worst = of(vec![unsure]).kinds[0].worst.clone().unwrap();
    assert_eq!((worst.cause, worst.culprit), (Cause::Unexplained, Culprit::None));
}

#[test]
fn a_thread_that_the_kernel_counts_otherwise_is_told() {
    let mut differs = thread(1, [5_000_000, 0, 0, 0]);
    differs.run_delay += 100_001;
    let mut missed = thread(2, [5_000_000, 0, 0, 0]);
    (missed.run_delay, missed.unseen) = (missed.run_delay + 900_000, 900_000);
    let mut not_compared = thread(3, [1, 0, 0, 0]);
    not_compared.compared = 0;
    let waits = of(vec![differs, missed, not_compared]);
    let compared = waits.schedstat.unwrap();
    assert_eq!((compared.threads, compared.differing, compared.sum_ns), (2, 1, 10_000_000));
    assert_eq!(compared.run_delay_ns, 11_000_001);
    assert_eq!(waits.begins_missed_ns, 900_000);
    assert_eq!(of(vec![not_compared]).schedstat, None);
    assert_eq!(of(vec![not_compared]).threads[0].run_delay_ns, None);
}

proptest! {
    /// Whatever threads waited, nothing is counted twice or left out.
    #[test]
    fn sums_of_kinds_are_those_of_threads(
        sums in prop::collection::vec(prop::array::uniform4(0..u64::MAX / 1_000), 0..150)
    ) {
        let threads = (1..).zip(&sums).map(|(pid, &sums)| thread(pid, sums)).collect();
        let waits = of(threads);
        let listed: u64 = waits.threads.iter().map(|thread| thread.sum_ns).sum();
        let all: u64 = sums.iter().flatten().sum();
        prop_assert_eq!(waits.sum_ns(), all);
        prop_assert_eq!(listed + waits.more_threads_ns, all);
        let waited = sums.iter().filter(|sums| sums.iter().any(|&ns| ns > 0)).count();
        prop_assert_eq!(waits.threads.len() as u64 + waits.more_threads, waited as u64);
        prop_assert!(waits.threads.len() <= MOST_THREADS);
        prop_assert!(waits.threads.is_sorted_by(|a, b| a.sum_ns >= b.sum_ns));
        let least = waits.threads.last().map_or(0, |thread| thread.sum_ns);
        prop_assert!(waits.more_threads_ns <= least.saturating_mul(waits.more_threads));
        for thread in &waits.threads {
            let sum: u64 = thread.kinds.iter().map(|row| row.sum_ns).sum();
            prop_assert_eq!(sum, thread.sum_ns);
            prop_assert_eq!(thread.run_delay_ns, Some(sum));
        }
        for row in &waits.kinds {
            let longest = sums.iter().map(|sums| sums[row.kind as usize]).max();
            prop_assert_eq!(row.worst.as_ref().map(|worst| worst.ns), longest);
        }
    }
}

/// The programs themselves, compiled for this host: on a machine that is drawn they count each wait as
/// it is, and what a switch that they are not shown hides from them, the kernel's own count tells.
#[test]
fn programs_count_waits_as_they_are() {
    let dir = wakescope_testing::Folder::new("books");
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let of_programs =
        ["bpf/waits.h", "bpf/quota.h", "bpf/throttle.h", "bpf/runners.h", "bpf/shared.h"];
    for file in of_programs.into_iter().chain(["src/waits/host/bpf.h", "src/waits/host/books.c"]) {
        let file = crate_dir.join(file);
        fs::copy(&file, dir.join(file.file_name().unwrap())).unwrap();
    }
    // All of these are made up in bpf.h.
    for empty in ["kernel.h", "state.h", "beginnings.h"] {
        fs::write(dir.join(empty), "#pragma once\n").unwrap();
    }
    let shared = fs::read_to_string(dir.join("shared.h")).unwrap();
    let (many, few) = (format!("#define RUNNERS {RUNNERS}\n"), "#define RUNNERS 2\n");
    assert!(shared.contains(&many));
    let clang = std::env::var_os("CLANG").unwrap_or("clang".into());
    for runners in [&many, few] {
        fs::write(dir.join("shared.h"), shared.replace(&many, runners)).unwrap();
        let compile = ["-O1", "-w", "books.c", "-o", "books"];
        let compiled = Command::new(&clang).current_dir(&dir).args(compile).output().unwrap();
        let errors = String::from_utf8_lossy(&compiled.stderr);
        assert!(compiled.status.success(), "{errors}");
        for (stops_queues, misses) in [("0", "0"), ("0", "20"), ("1", "0"), ("1", "20")] {
            for seed in 1..=20 {
                let words = [&seed.to_string(), stops_queues, misses];
                let ran = Command::new(dir.join("books")).args(words).output().unwrap();
                let said = String::from_utf8_lossy(&ran.stdout);
                assert!(ran.status.success(), "{runners}books {}: {said}", words.join(" "));
            }
        }
    }
}
