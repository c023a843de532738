//! The program that counts all waits, in the running kernel.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};

use wakescope_attribution::Machine;
use wakescope_core::explain::Policy;
use wakescope_core::host::Host;
use wakescope_core::plan::{Stimulus, Target};
use wakescope_core::preemption::Model;
use wakescope_core::run::TimeDomain;
use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_core::watch::episode::Episode;
use wakescope_core::watch::{LeftOut, Waits};
use wakescope_sys::clock;
use wakescope_sys::sched::{Schedule, affinity, set_affinity, set_schedule, this_thread};
use wakescope_testing::skip;
use wakescope_trace::watch::{Counted, Limits, Watcher};
use wakescope_trace::{Options, TraceError, Tracer};

/// A watch of this machine; `None` where it cannot be watched, which is said for `test`.
fn watch(test: &str, limits: Limits) -> Option<Watcher> {
    match Watcher::start(limits, true) {
        Ok(watcher) => Some(watcher),
        Err(why @ (TraceError::NotAllowed | TraceError::NoTypes(_) | TraceError::LockedDown)) => {
            skip(test, &why.to_string());
            None
        }
        Err(why) => panic!("{why}"),
    }
}

/// Lets threads be switched to and from for a while.
fn sleep_often(times: u64) {
    for _ in 0..times {
        clock::sleep_until(clock::now().after(SpanNs(100_000))).unwrap();
    }
}

/// Lets each CPU switch to another task and back.
fn switch_on_all_cpus() {
    let on = |cpu| {
        move || {
            set_affinity(&[cpu]).unwrap();
            sleep_often(3);
        }
    };
    let threads: Vec<_> =
        affinity().unwrap().into_iter().map(|cpu| std::thread::spawn(on(cpu))).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// A sum of windows may not know its extremes exactly. That of the whole time does.
fn with_extremes_of(total: &Waits, windows: Waits) -> Waits {
    Waits {
        max_is_exact: total.max_is_exact,
        max_ns: total.max_ns,
        min_is_exact: total.min_is_exact,
        min_ns: total.min_ns,
        ..windows
    }
}

fn all_series(counted: &Counted) -> Waits {
    counted.series.iter().fold(counted.others.clone(), |sum, one| sum.merged(&one.waits))
}

fn all_cpus(counted: &Counted) -> Waits {
    counted.cpus.iter().fold(Waits::default(), |sum, cpu| sum.merged(&cpu.waits))
}

#[test]
fn each_wait_is_counted_once_for_its_series_and_once_for_its_cpu() {
    let name = "each_wait_is_counted_once_for_its_series_and_once_for_its_cpu";
    let Some(mut watcher) = watch(name, Limits::default()) else { return };
    let mut windows = Waits::default();
    for _ in 0..5 {
        sleep_often(50);
        windows = windows.merged(&all_series(&watcher.read()));
    }
    watcher.detach();
    windows = windows.merged(&all_series(&watcher.read()));
    let total = watcher.total();
    for series in &total.series {
        assert_eq!(series.waits.fault(), None, "{series:?}");
        assert!(series.waits.max_is_exact && series.waits.min_is_exact, "{series:?}");
    }
    let (series, cpus) = (all_series(&total), all_cpus(&total));
    assert!(series.count >= 250, "{series:?}");
    assert_eq!(series, cpus);
    let exact = with_extremes_of(&series, windows);
    assert_eq!(exact, series);
    // Nothing more comes after it is detached.
    sleep_often(10);
    assert_eq!(all_series(&watcher.read()), Waits::default());
}

/// Where no hypervisor has reported steal, nobody knows what it took.
#[test]
fn steal_that_nobody_reports_is_not_measured() {
    let name = "steal_that_nobody_reports_is_not_measured";
    let Some(mut watcher) = watch(name, Limits::default()) else { return };
    sleep_often(50);
    let said = watcher.read().episodes.not_measured;
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let steal = stat.split_whitespace().nth(8).unwrap();
    assert!(said.steal || steal != "0", "{said:?}, but {stat}");
    assert_eq!(watcher.total().episodes.not_measured, said);
}

#[test]
fn what_has_no_series_of_its_own_is_counted_with_others() {
    let name = "what_has_no_series_of_its_own_is_counted_with_others";
    let limits = Limits { series: 2, tasks: 64 };
    let Some(mut watcher) = watch(name, limits) else { return };
    let start = |index: u32| {
        let thread = std::thread::Builder::new().name(format!("others-{index}"));
        thread.spawn(|| sleep_often(20)).unwrap()
    };
    let threads: Vec<_> = (0..8).map(start).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    watcher.detach();
    let counted = watcher.read();
    assert_eq!(watcher.series_used(), 2);
    assert!(counted.series.len() <= 2, "{counted:?}");
    assert!(counted.others.count >= 6 * 20, "{counted:?}");
    assert_eq!(all_series(&counted), all_cpus(&counted));
}

#[test]
fn tasks_without_a_place_are_told() {
    let name = "tasks_without_a_place_are_told";
    let Some(mut watcher) = watch(name, Limits { series: 64, tasks: 1 }) else { return };
    let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(|| sleep_often(20))).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    watcher.detach();
    let counted = watcher.read();
    assert!(counted.left_out.untracked > 0, "{counted:?}");
    assert_eq!(all_series(&counted), all_cpus(&counted));
}

/// Tasks of this process, and what else lives here, while two threads are awake by turns.
#[test]
fn what_is_counted_of_tasks_is_what_the_kernel_counts() {
    let name = "what_is_counted_of_tasks_is_what_the_kernel_counts";
    // With fewer places than tasks, most have another's place, or none.
    for tasks in [Limits::default().tasks, 64, 4] {
        compare_with_the_kernel(name, Limits { tasks, ..Limits::default() });
    }
}

fn compare_with_the_kernel(name: &str, limits: Limits) {
    let Some(mut watcher) = watch(name, limits) else { return };
    let all_are_known = limits.tasks >= 32_768;
    match watcher.prepare_audit() {
        Err(TraceError::Target(why)) => return skip(name, &why.to_string()),
        prepared => prepared.unwrap(),
    }
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !ends.load(Ordering::Relaxed) {
                    sleep_often(5);
                    (0..20_000_u64).for_each(|n| {
                        std::hint::black_box(n);
                    });
                }
            });
        }
        sleep_often(200);
        let audit = watcher.audit(MonoNs(u64::MAX)).unwrap();
        ends.store(true, Ordering::Relaxed);
        assert!(!all_are_known || (audit.equal >= 2 && audit.waits > 100), "{audit:?}");
        assert_eq!((audit.differing, audit.not_reached), (0, 0), "{audit:?}");
    });
    let left_out = watcher.read().left_out;
    assert_eq!((left_out.contradicted, left_out.discarded), (0, 0), "{left_out:?}");
    // No time is left: nothing is said.
    let none = watcher.audit(MonoNs(0)).unwrap();
    assert_eq!((none.equal, none.differing), (0, 0), "{none:?}");
    assert!(none.not_reached > 0 || !all_are_known, "{none:?}");
}

/// Threads with names of their own that come and go, more of them than there are rows.
#[test]
fn rows_of_series_that_ended_are_given_to_others() {
    const NAMES: usize = 700;
    let name = "rows_of_series_that_ended_are_given_to_others";
    let limits = Limits { series: 2_048, ..Limits::default() };
    let Some(mut watcher) = watch(name, limits) else { return };
    let mut windows = Waits::default();
    let mut with_rows = 0;
    for generation in 0..5 {
        let prefix = format!("reuse-{generation}-");
        for index in 0..NAMES {
            let thread = std::thread::Builder::new().name(format!("{prefix}{index}"));
            thread.spawn(|| sleep_often(3)).unwrap().join().unwrap();
        }
        let counted = watcher.read();
        windows = windows.merged(&all_series(&counted));
        let own = counted.series.iter().filter(|series| series.comm.starts_with(&prefix));
        with_rows = own.count();
        // Rows are free when they were idle for a reading, and then each CPU has switched.
        for _ in 0..2 {
            windows = windows.merged(&all_series(&watcher.read()));
            switch_on_all_cpus();
        }
    }
    // Others may need rows, too.
    assert!(with_rows > NAMES / 2, "{with_rows} of the last {NAMES} have rows");
    watcher.detach();
    windows = windows.merged(&all_series(&watcher.read()));
    let total = watcher.total();
    let (series, cpus) = (all_series(&total), all_cpus(&total));
    let exact = with_extremes_of(&series, windows);
    assert_eq!((&series, &exact), (&cpus, &series));
    assert!(total.series.len() > 2_048, "{}", total.series.len());
}

/// The kernel keeps 15 bytes of a name, and may cut it within a character. Its text then is another name.
#[test]
fn tasks_are_followed_by_the_name_that_they_keep() {
    let name = "tasks_are_followed_by_the_name_that_they_keep";
    let Some(mut watcher) = watch(name, Limits::default()) else { return };
    let given = "предупреждение";
    let (has_name, ends) = (Barrier::new(2), AtomicBool::new(false));
    let (kept_name, followed) = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::fs::write("/proc/thread-self/comm", given).unwrap();
            sleep_often(50);
            has_name.wait();
            while !ends.load(Ordering::Relaxed) {
                sleep_often(1);
            }
        });
        has_name.wait();
        let series = watcher.read().series.into_iter().find(|it| it.comm == "предупр\u{fffd}");
        let kept_name = series.as_ref().and_then(|series| watcher.kept_name(series));
        let target = series.map(|series| Target::Comm { comm: series.comm });
        let followed = target.map(|target| follow(target, kept_name));
        // Whatever was found: the thread is waited for.
        ends.store(true, Ordering::Relaxed);
        (kept_name.expect("the series is counted"), followed.unwrap())
    });
    let kept: Vec<u8> = kept_name.iter().flat_map(|half| half.to_ne_bytes()).collect();
    assert_eq!((&kept[..15], kept[15]), (&given.as_bytes()[..15], 0));
    assert!(followed.unwrap() > 0);
}

/// How many wakeups of threads of this name are seen in a while.
fn follow(target: Target, kept_name: Option<[u64; 2]>) -> Result<u64, TraceError> {
    let options = Options {
        target,
        within_cgroup: None,
        kept_name,
        stimulus: Stimulus::Any,
        probes: 0,
        pinned: false,
        above_ns: Some(1),
        tail: 0.0,
        late: 0,
        model: Model::Unknown,
        idle_states: Vec::new(),
        room: 16,
        machine: Machine::of(&Host::default(), TimeDomain::Real),
        watch: None,
        sections: None,
        by: None,
    };
    let mut tracer = Tracer::start(options)?;
    tracer.begin(clock::now())?;
    sleep_often(200);
    Ok(tracer.finish().0.wakeup_latency.count)
}

/// Real-time threads of these names that keep a CPU by turns of 50 µs, each for so long. Their numbers.
fn take_turns(cpu: u32, planted: &[(&'static str, SpanNs)]) -> Vec<(&'static str, u32)> {
    let all_are_there = Arc::new(Barrier::new(planted.len()));
    let start = |&(name, span): &(&'static str, SpanNs)| {
        let all_are_there = Arc::clone(&all_are_there);
        let take_turns = move || {
            set_affinity(&[cpu]).unwrap();
            set_schedule(Schedule::Fifo { priority: 3 }).unwrap();
            all_are_there.wait();
            let end = clock::now().after(span);
            while clock::now() < end {
                let turn = clock::now().after(SpanNs(50_000));
                while clock::now() < turn {
                    std::hint::spin_loop();
                }
                std::thread::yield_now();
            }
            (name, this_thread().number())
        };
        std::thread::Builder::new().name(name.into()).spawn(take_turns).unwrap()
    };
    let threads: Vec<_> = planted.iter().map(start).collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

/// The longest wait of a task of the lowest weight that could run all the time on a CPU on which such threads
/// are [planted](take_turns), with their numbers. Until they have ended, `meanwhile` has the watch.
fn wait_behind(
    watcher: &mut Watcher,
    planted: &[(&'static str, SpanNs)],
    meanwhile: impl FnOnce(&mut Watcher, &dyn Fn() -> bool),
) -> Option<(Episode, Vec<(&'static str, u32)>)> {
    let cpu = *affinity().unwrap().last().unwrap();
    let [ends, is_over] = [AtomicBool::new(false), AtomicBool::new(false)];
    let threads = std::thread::scope(|scope| {
        let waiter = std::thread::Builder::new().name("waits-long".into());
        let waiter = waiter.spawn_scoped(scope, || {
            set_affinity(&[cpu]).unwrap();
            set_schedule(Schedule::Other { nice: 19 }).unwrap();
            while !ends.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let threads = scope.spawn(|| {
            let threads = take_turns(cpu, planted);
            is_over.store(true, Ordering::Relaxed);
            threads
        });
        meanwhile(watcher, &|| is_over.load(Ordering::Relaxed));
        let threads = threads.join().unwrap();
        sleep_often(100);
        ends.store(true, Ordering::Relaxed);
        waiter.unwrap().join().unwrap();
        threads
    });
    watcher.read();
    // One that was read before is in the sum.
    let longest = watcher.total().episodes.longest;
    let found = longest.into_iter().find(|episode| episode.task.comm == "waits-long");
    found.map(|episode| (episode, threads))
}

/// Whether threads may have a real-time priority; otherwise that is said for `test`.
fn can_take_turns(test: &str) -> bool {
    let fifo = Schedule::Fifo { priority: 1 };
    let can = std::thread::spawn(move || set_schedule(fifo).is_ok()).join().unwrap();
    if !can {
        skip(test, "no thread may have a real-time priority");
    }
    can
}

/// Hundreds of turns, far more than are kept with a wait.
#[test]
fn all_turns_of_a_long_wait_are_known() {
    let name = "all_turns_of_a_long_wait_are_known";
    if !can_take_turns(name) {
        return;
    }
    let planted = ["alone", "one-of-two", "one-of-two"].map(|name| (name, SpanNs(400_000_000)));
    let mut best = None;
    // A guest of 6.18 omits up to one switch in a hundred, and others may have to run there, too.
    for _ in 0..10 {
        let Some(mut watcher) = watch(name, Limits::default()) else { return };
        let found = wait_behind(&mut watcher, &planted, |_, _| ());
        let Some((episode, threads)) = found else { continue };
        let is_behind =
            |name: &str| episode.occupants.iter().any(|occupant| occupant.task.comm == name);
        let is_behind_all = planted.iter().all(|&(name, _)| is_behind(name));
        // On a busy machine the longest wait may be another one, behind tasks that were not planted.
        if is_behind_all && episode.unexplained_ns <= episode.ns / 10 {
            return check_all_is_known(&episode, &threads);
        }
        best = Some(episode);
    }
    panic!("no wait is explained: {best:?}");
}

fn check_all_is_known(episode: &Episode, threads: &[(&str, u32)]) {
    let ran = |name: &str| episode.occupants.iter().find(|occupant| occupant.task.comm == name);
    let (alone, two) = (ran("alone").unwrap(), ran("one-of-two").unwrap());
    let of_alone = threads.iter().find(|thread| thread.0 == "alone").unwrap().1;
    assert_eq!((alone.task.pid, two.task.pid), (Some(of_alone), None), "{episode:?}");
    for occupant in [alone, two] {
        assert_eq!(occupant.task.policy, Policy::Fifo, "{episode:?}");
        assert_eq!(occupant.task.priority, Some(3), "{episode:?}");
        assert!(occupant.ns > 64 * 50_000, "{episode:?}");
    }
    let occupants = episode.occupants.iter().map(|occupant| occupant.ns);
    let known: u64 = occupants.chain([episode.irq_ns, episode.steal_ns]).sum();
    // Only a third occupant stands for others, too.
    let all = known + episode.unexplained_ns;
    assert!(all == episode.ns || (episode.occupants.len() == 3 && all < episode.ns), "{episode:?}");
}

/// The row of a thread that ran in the beginning of a wait is another's when that ends.
#[test]
fn a_row_that_was_given_to_another_names_nobody() {
    let name = "a_row_that_was_given_to_another_names_nobody";
    let [own, .., _] = affinity().unwrap()[..] else { return skip(name, "it takes two CPUs") };
    if !can_take_turns(name) {
        return;
    }
    let limits = Limits { series: 32, ..Limits::default() };
    let Some(mut watcher) = watch(name, limits) else { return };
    // Two go on: a row is free only after each CPU has switched.
    let planted = [("was-first", 50), ("goes-on", 400), ("goes-on", 400)];
    let planted = planted.map(|(name, ms)| (name, SpanNs(ms * 1_000_000)));
    let found = wait_behind(&mut watcher, &planted, |watcher, is_over| {
        let mut round = 0;
        while !is_over() {
            let start = |number| {
                let thread = std::thread::Builder::new().name(format!("later-{round}-{number}"));
                let sleep = move || {
                    set_affinity(&[own]).unwrap();
                    sleep_often(2);
                };
                thread.spawn(sleep).unwrap()
            };
            let threads: Vec<_> = (0..8).map(start).collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            watcher.read();
            round += 1;
        }
    });
    let Some((episode, _)) = found else { return };
    for occupant in &episode.occupants {
        assert!(!occupant.task.comm.starts_with("later-"), "{episode:?}");
    }
}

/// What the kernel keeps of a task says since when it waits, so nothing has to be read of tasks that were there
/// before.
#[test]
fn a_wait_in_progress_at_the_start_is_counted_from_its_begin() {
    let name = "a_wait_in_progress_at_the_start_is_counted_from_its_begin";
    let fifo = Schedule::Fifo { priority: 1 };
    let cpus = affinity().unwrap();
    let [own, .., cpu] = cpus[..] else { return skip(name, "it takes two CPUs") };
    if !std::thread::spawn(move || set_schedule(fifo).is_ok()).join().unwrap() {
        return skip(name, "no thread may have a real-time priority");
    }
    set_affinity(&[own]).unwrap();
    // Real-time tasks leave others a part of each second, in which the watch may happen to start. And a wait whose
    // end the kernel does not report is counted as missed: a guest of 6.18 omits up to one switch in a hundred.
    for _ in 0..10 {
        let Some((in_progress, waits, left_out)) = start_during_a_wait(name, cpu, fifo) else {
            return;
        };
        // On a busy machine its waits may be left out altogether. Then they have to be counted so.
        assert!(waits.max_ns.is_some() || left_out.lost() > 0, "{waits:?}, {left_out:?}");
        if let (Some(in_progress), 0, Some(longest)) = (in_progress, left_out.missed, waits.max_ns)
        {
            // The clock of the queue is not adjusted as that of spans is.
            assert!(longest >= in_progress.0 / 100 * 99 - 1_000_000, "{in_progress}: {waits:?}");
            return;
        }
    }
    panic!("no watch started while the task waited, or each missed or left out waits");
}

/// Starts a watch while a task of this CPU that never sleeps has to wait for one scheduled so. How long the wait
/// was that was in progress, by the task's own clock, all its waits that were counted, and what was left out of all
/// tasks.
fn start_during_a_wait(
    name: &str,
    cpu: u32,
    hog: Schedule,
) -> Option<(Option<SpanNs>, Waits, LeftOut)> {
    let [hog_ends, ends] = [AtomicBool::new(false), AtomicBool::new(false)];
    let (watcher, started, gaps) = std::thread::scope(|scope| {
        let waiter = std::thread::Builder::new().name("was-waiting".into());
        let waiter = waiter.spawn_scoped(scope, || {
            set_affinity(&[cpu]).unwrap();
            let (mut gaps, mut last) = (Vec::new(), clock::now());
            while !ends.load(Ordering::Relaxed) {
                let now = clock::now();
                if now.since(last) > SpanNs(50_000_000) {
                    gaps.push((last, now));
                }
                last = now;
            }
            gaps
        });
        scope.spawn(|| {
            set_affinity(&[cpu]).unwrap();
            set_schedule(hog).unwrap();
            while !hog_ends.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        clock::sleep_until(clock::now().after(SpanNs(100_000_000))).unwrap();
        let watcher = watch(name, Limits::default());
        let started = clock::now();
        // The wait ends, and then the task.
        hog_ends.store(true, Ordering::Relaxed);
        clock::sleep_until(clock::now().after(SpanNs(200_000_000))).unwrap();
        ends.store(true, Ordering::Relaxed);
        (watcher, started, waiter.unwrap().join().unwrap())
    });
    let mut watcher = watcher?;
    watcher.detach();
    let counted = watcher.read();
    let found = counted.series.into_iter().find(|series| series.comm == "was-waiting");
    let in_progress = gaps.iter().find(|gap| gap.0 < started && started < gap.1);
    let waits = found.map(|series| series.waits).unwrap_or_default();
    Some((in_progress.map(|gap| gap.1.since(gap.0)), waits, counted.left_out))
}
