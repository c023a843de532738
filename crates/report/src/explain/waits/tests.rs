use expect_test::{Expect, expect};
use wakescope_core::explain::{
    Cause, Culprit, NamedTask, Policy, Quota, ThreadWaitRow, WaitRow, WorstWait,
};

use super::*;
use crate::explain::tests::runs::{named_task, serial};
use crate::style::Style;

const PLAIN: Style = Style { colour: false };

fn row(kind: WaitKind, count: u64, sum_ms: u64, cause: Cause, culprit: Culprit) -> WaitRow {
    let ns = sum_ms * 1_000_000 / count;
    let throttled_ns = if kind == WaitKind::Throttled { sum_ms * 990_000 } else { 0 };
    let task = named_task("spin", 4_711);
    let worst = Some(WorstWait { ns, task, cause, culprit, ..WorstWait::default() });
    WaitRow { kind, count, sum_ns: sum_ms * 1_000_000, throttled_ns, steal_ns: 0, worst }
}

fn urgent() -> Culprit {
    let (policy, priority) = (Policy::Fifo, Some(95));
    Culprit::Task(NamedTask { policy, priority, ..named_task("urgent", 7) })
}

fn thread(pid: u32, sum_ms: u64) -> ThreadWaits {
    let (kind, count, sum_ns) = (WaitKind::Preempted, 3, sum_ms * 1_000_000);
    ThreadWaits {
        task: named_task("spin", pid),
        sum_ns,
        run_delay_ns: Some(sum_ns + 1_000),
        kinds: vec![ThreadWaitRow { kind, count, sum_ns, worst_ns: sum_ns }],
    }
}

fn waits(kinds: Vec<WaitRow>) -> Waits {
    let compared =
        Schedstat { threads: 1, sum_ns: 9_000_000, run_delay_ns: 999_000, ..Default::default() };
    let compared = Schedstat { by_its_clock_ns: 998_000, ..compared };
    Waits { kinds, threads: vec![thread(4_711, 1)], schedstat: Some(compared), ..Waits::default() }
}

#[track_caller]
fn says(waits: Waits, want: &str) {
    let mut run = serial();
    run.duration_ns = 7_000_000_000;
    run.explanation.as_mut().unwrap().waits = Some(waits);
    assert_eq!(sentence(&run), want);
}

/// A wait that goes on may be longer than it is known to be: a shorter one that ended does not come before it.
#[test]
fn a_wait_that_is_not_over_comes_first_if_it_is_the_longest() {
    let preempted = row(WaitKind::Preempted, 12, 240, Cause::HigherPriorityTask, urgent());
    let open = |ms: u64| OpenWait { ns: ms * 1_000_000, at_ns: 0, task: named_task("spin", 4_711) };
    let with = |kinds, ms| Waits { open: 1, longest_open: Some(open(ms)), ..waits(kinds) };
    let ended =
        "Preempted for 240 ms of 7.00 s, 12 times; the longest 20.0 ms, by urgent[7] fifo 95. ";
    let at_end = "At the end, spin[4711] other was waiting for a CPU, for 21.0 ms so far. ";
    says(with(vec![preempted.clone()], 20), ended);
    says(with(vec![preempted], 21), &format!("{at_end}{ended}"));
    says(with(Vec::new(), 21), at_end);
}

#[test]
fn threads_that_only_wait_are_told() {
    let mut all = Waits { open: 1, open_ns: 900_000_000, ..Waits::default() };
    check(
        &all,
        &expect![[r#"
            | at the end 1 wait was not over: it had lasted 900 ms, in no sum
        "#]],
    );
    (all.open, all.throughout) = (0, 2);
    check(
        &all,
        &expect![[r#"
            | 2 threads waited from before the run to its end, in no sum
        "#]],
    );
}

#[test]
fn what_outweighs_wakeups_comes_first() {
    use WaitKind::{Migrated, Preempted, Throttled, Woken};
    let woken = |ms| row(Woken, 10, ms, Cause::IrqOff, Culprit::None);
    let throttled = |ms| row(Throttled, 63, ms, Cause::Throttled, Culprit::None);
    let preempted = |ms| row(Preempted, 12, ms, Cause::HigherPriorityTask, urgent());
    says(Waits::default(), "");
    says(waits(vec![woken(20), preempted(20), throttled(19)]), "");
    says(
        waits(vec![woken(20), preempted(10), throttled(6_364)]),
        "Stopped by its cgroup's CPU quota for 6.30 of 7.00 s, 63 times (cgroup not known). ",
    );
    let quota = Some(Quota {
        cgroup: "/system.slice/spin".into(),
        quota_ns: 10_000_000,
        period_ns: 100_000_000,
    });
    says(
        Waits { quota, ..waits(vec![throttled(640)]) },
        "Stopped by its cgroup's CPU quota for 634 ms of 7.00 s, 63 times (cgroup \
         /system.slice/spin: 10.0 ms of each 100 ms). ",
    );
    says(
        waits(vec![woken(1), preempted(2_400)]),
        "Preempted for 2.40 of 7.00 s, 12 times; the longest 200 ms, by urgent[7] fifo 95. ",
    );
    says(
        waits(vec![woken(1), preempted(2_400), throttled(640)]),
        "Preempted for 2.40 of 7.00 s, 12 times; the longest 200 ms, by urgent[7] fifo 95. Stopped \
         by its cgroup's CPU quota for 634 ms of 7.00 s, 63 times (cgroup not known). ",
    );
    // A preempted wait may be throttled for a part of its time.
    let with = |throttled_ns| WaitRow { throttled_ns, ..preempted(2_400) };
    says(
        waits(vec![with(548_000_000)]),
        "Preempted for 2.40 of 7.00 s, 12 times, throttled for 548 ms of it; the longest 200 ms, by \
         urgent[7] fifo 95. ",
    );
    says(
        waits(vec![with(24_000_000)]),
        "Preempted for 2.40 of 7.00 s, 12 times; the longest 200 ms, by urgent[7] fifo 95. ",
    );
    let mut several = waits(vec![row(Migrated, 1, 9, Cause::Unexplained, Culprit::None)]);
    several.more_threads = 2;
    says(
        several,
        "Waited for 9.00 ms in all, 3 threads within 7.00 s, once, and was moved to the queue of \
         another CPU meanwhile; the longest 9.00 ms: unexplained. ",
    );
}

/// Threads of these policies, all of which were throttled; the first one waited longest.
fn throttled_threads(policies: &[Policy]) -> Waits {
    let mut row = row(WaitKind::Throttled, 63, 640, Cause::Throttled, Culprit::None);
    row.worst.as_mut().unwrap().task.policy = policies[0];
    let mut all = waits(vec![row]);
    let throttled = (1..).zip(policies).map(|(pid, &policy)| {
        let mut thread = thread(pid, 1);
        (thread.task.policy, thread.kinds[0].kind) = (policy, WaitKind::Throttled);
        thread
    });
    all.threads = throttled.collect();
    all
}

/// A cgroup may have a quota, whoever is in it: only the policy tells what can have stopped a thread.
#[test]
fn the_policy_of_a_thread_says_which_limit_stopped_it() {
    use Policy::{Batch, Deadline, Fifo, Other, RoundRobin};
    let quota = Quota { cgroup: "/q".into(), quota_ns: 90_000_000, period_ns: 100_000_000 };
    let of_quota = " (cgroup /q: 90.0 ms of each 100 ms)";
    let one = "634 ms of 7.00 s";
    let two = "634 ms in all, 2 threads within 7.00 s";
    let cpu_max = "to raise the quota: ";
    let rt = "to lift real-time throttling: ";
    let runtime = "to raise the runtime limit: sched_runtime ";
    for (policies, by, time, group, remedies) in [
        (&[Batch][..], "its cgroup's CPU quota", one, of_quota, &[cpu_max][..]),
        (&[Fifo], "real-time throttling", one, "", &[rt]),
        (&[RoundRobin], "real-time throttling", one, "", &[rt]),
        (&[Deadline], "its SCHED_DEADLINE runtime limit", one, "", &[runtime]),
        (
            &[Fifo, Other],
            "its cgroup's CPU quota or real-time throttling",
            two,
            of_quota,
            &[cpu_max, rt],
        ),
    ] {
        let all = Waits { quota: Some(quota.clone()), ..throttled_threads(policies) };
        let told = notes(&all, TimeDomain::Real);
        let told: Vec<&String> = told.iter().filter(|note| note.starts_with("to ")).collect();
        assert_eq!(told.len(), remedies.len(), "{policies:?}: {told:?}");
        let fit = |(note, remedy): (&&String, &&str)| note.starts_with(*remedy);
        assert!(told.iter().zip(remedies).all(fit), "{policies:?}: {told:?}");
        says(all, &format!("Stopped by {by} for {time}, 63 times{group}. "));
    }
}

/// `report` shows the wakeups of such a run, among which there may be none.
#[test]
fn the_text_of_a_report_begins_with_what_outweighs_wakeups() {
    let mut run = serial();
    run.duration_ns = 7_000_000_000;
    let before = crate::text::summary(&run, PLAIN);
    run.explanation.as_mut().unwrap().waits =
        Some(waits(vec![row(WaitKind::Preempted, 12, 2_400, Cause::HigherPriorityTask, urgent())]));
    let preempted =
        "Preempted for 2.40 of 7.00 s, 12 times; the longest 200 ms, by urgent[7] fifo 95.\n";
    assert_eq!(crate::text::summary(&run, PLAIN), preempted.to_owned() + &before);
}

#[track_caller]
fn check(waits: &Waits, want: &Expect) {
    let shown = table(waits, TimeDomain::Real);
    want.assert_eq(&shown.lines().map(|line| format!("|{line}\n")).collect::<String>());
}

#[test]
fn each_kind_has_a_row_and_the_comparison_stands_below() {
    let kinds = vec![
        row(WaitKind::Woken, 10, 2, Cause::IrqOff, Culprit::None),
        row(WaitKind::Preempted, 12, 240, Cause::HigherPriorityTask, urgent()),
        row(WaitKind::Throttled, 63, 6_364, Cause::Throttled, Culprit::None),
    ];
    let mut all = waits(kinds);
    check(
        &all,
        &expect![[r#"
            | waits of 1 thread: cause of the longest             count      sum  longest
            | throttled  throttled                                   63   6.36 s   101 ms
            | preempted  higher_priority_task  urgent[7] fifo 95     12   240 ms  20.0 ms
            | woken      irq_off                                     10  2.00 ms   200 µs
            | to raise the quota: the cgroup's cpu.max (cgroup v1: cpu.cfs_quota_us)
            | by the run queue's clock, sums agree with field 2 of /proc/TID/schedstat of 1 thread: 998 µs here,
            |   999 µs there
        "#]],
    );
    all.threads = (1..=10).map(|pid| thread(pid, 100 - u64::from(pid))).collect();
    (all.more_threads, all.more_threads_ns) = (1, 5_000_000);
    (all.open, all.open_ns, all.ends_missed) = (2, 40_000_000, 1);
    (all.begins_missed, all.begins_missed_ns) = (1, 90_000);
    all.not_followed_ns = 1_200_000;
    let compared = all.schedstat.as_mut().unwrap();
    (compared.threads, compared.differing, compared.not_counted_ns) = (11, 1, 7_000);
    compared.asleep_ns = 400_000;
    check(
        &all,
        &expect![[r#"
            | waits of 11 threads: cause of the longest           count      sum  longest
            | throttled  throttled                                   63   6.36 s   101 ms
            | preempted  higher_priority_task  urgent[7] fifo 95     12   240 ms  20.0 ms
            | woken      irq_off                                     10  2.00 ms   200 µs
            | thread         waits      sum  schedstat
            | spin[1] other      3  99.0 ms    99.0 ms
            | spin[2] other      3  98.0 ms    98.0 ms
            | spin[3] other      3  97.0 ms    97.0 ms
            | spin[4] other      3  96.0 ms    96.0 ms
            | spin[5] other      3  95.0 ms    95.0 ms
            | spin[6] other      3  94.0 ms    94.0 ms
            | spin[7] other      3  93.0 ms    93.0 ms
            | spin[8] other      3  92.0 ms    92.0 ms
            | 3 more                 186 ms
            | to raise the quota: the cgroup's cpu.max (cgroup v1: cpu.cfs_quota_us)
            | by the run queue's clock, sums contradict field 2 of /proc/TID/schedstat of 11 threads: 1.09 ms
            |   here, without 7.00 µs that the kernel does not count, 999 µs there, of which 400 µs is sleep:
            |   threads were moved to another CPU just after they fell asleep
            | at the end 2 waits were not over: they had lasted 40.0 ms, in no sum
            | 1 wait was not seen to end: lengths from the kernel's own account
            | 1 wait was not seen to begin: 90.0 µs, in no sum above
            | under another name or in another cgroup, threads were not followed: 1.20 ms of waiting by the
            |   kernel's own account, in no sum above
        "#]],
    );
    check(&Waits::default(), &expect![[""]]);
}
