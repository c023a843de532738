use super::*;
use expect_test::expect;
use wakescope_core::explain::{Cause, Culprit, NamedTask, Policy};
use wakescope_core::histogram::{Bucket, Histogram};
use wakescope_core::preemption::Model;
use wakescope_core::watch::boot::Boot;
use wakescope_core::watch::episode::{EarlierQueue, Episode, Episodes, NotMeasured, Occupant};
use wakescope_core::watch::extent::Timeline;
use wakescope_core::watch::{Cpu, Moved, SCHEMA, Series};

pub(super) fn waits(of: &[u64]) -> Waits {
    Waits {
        count: of.len() as u64,
        sum_ns: of.iter().sum(),
        max_ns: of.iter().max().copied(),
        max_is_exact: true,
        min_ns: of.iter().min().copied(),
        min_is_exact: true,
        histogram: Histogram::of(of.iter().copied()),
    }
}

pub(super) fn series(comm: &str, id: u64, cgroup: Option<&str>, of: &[u64]) -> Series {
    Series { cgroup_id: id, cgroup: cgroup.map(str::to_owned), comm: comm.into(), waits: waits(of) }
}

pub(super) fn window() -> Window {
    let many = [vec![12_000; 2_998], vec![212_000, 4_310_000]].concat();
    Window {
        schema: SCHEMA.into(),
        started: "2026-11-21T01:00:00Z".into(),
        begin_ns: 5_000_000_000,
        window_ns: 2_000_000_000,
        series: vec![
            series("find", 21, Some("/system.slice/backup.service"), &many),
            series("find", 22, Some("/user.slice"), &[9_000; 250]),
            series("kworker/0:1", 1, Some("/"), &[2_000, 30_000_000]),
            series("gone", 23, None, &[1_000]),
            series("\x1b[2Ja\u{202e}b", 0, None, &[70]),
        ],
        cpus: vec![
            Cpu { cpu: 0, switches: 9_000, waits: waits(&many) },
            Cpu { cpu: 3, switches: 7_000, waits: waits(&[9_000; 250]) },
        ],
        moved: Moved { count: 12, before_ns: 90_000 },
        series_used: 123,
        series_limit: 4_096,
        own_cost: OwnCost {
            agent_ns: 1_500_000,
            program_ns: Some(1_600_000),
            program_runs: 16_000,
            source: CostSource::Measured,
            cpus: 2,
            ..OwnCost::default()
        },
        ..Window::default()
    }
}

const VIEW: View = View { by: By::Series, sort: Sort::Max, rows: 20 };

fn extent(windows: &[&Window]) -> Extent {
    let mut timeline = Timeline::default();
    windows.iter().for_each(|window| timeline.add(window));
    timeline.extent().unwrap()
}

#[test]
fn long_paths_keep_their_ends() {
    let path = format!("/{}/web.service", "kubepods.slice/".repeat(20).trim_end_matches('/'));
    let window = Window { series: vec![series("x", 7, Some(&path), &[5_000_000])], ..window() };
    let text = table(&window, VIEW, Style { colour: false });
    assert!(text.contains("x in …") && text.contains("/web.service."), "{text}");
    assert!(text.contains(" …ice/web.service "), "{text}");
}

#[test]
fn the_block_is_of_the_last_window() {
    let mut history = History::default();
    let mut before = window();
    before.series.truncate(2);
    history.add(Past::of(&before));
    history.add(Past::of(&before));
    expect![[r#"
        waits of all tasks, runnable to running: the last 2.00 s of 0:07
         task            cgroup            waits      p99      max   waited
         kworker/0:1     /                     2        –  30.0 ms  30.0 ms  ▁▁█
         find            …/backup.service  3,000  12.0 µs  4.31 ms  40.5 ms  ▁▁▁
         find            /user.slice         250  9.00 µs  9.00 µs  2.25 ms  ▁▁▁
         gone            (id 23)               1        –  1.00 µs  1.00 µs  ▁▁█
         �[2Ja�b         –                     1        –    70 ns    70 ns  ▁▁█
         All: 3,254 waits, p99.9 12.0 µs, max 30.0 ms, waited 72.8 ms
         own cost 0.08 % of 2 CPUs: program 16,000 × 100 ns, wakescope 1.50 ms
         series 123 of 4,096; left out 0; uncovered 0 ns; moved 12"#]]
    .assert_eq(&block(&window(), VIEW, &history, 20));
}

#[test]
fn a_block_fits_a_terminal() {
    let mut window = window();
    window.series = (0..500)
        .map(|n| {
            series(
                &format!("name-of-a-task{n}"),
                n,
                Some(&"/long".repeat(40)),
                &[1_234_567_890 + n; 9],
            )
        })
        .collect();
    window.audit = Some(Audit { differing: 7, ..Audit::default() });
    for by in [By::Series, By::Comm, By::Cgroup, By::Cpu] {
        let block = block(&window, View { by, ..VIEW }, &History::default(), 20);
        assert!(block.lines().count() <= 20, "{block}");
        assert!(block.lines().all(|line| line.chars().count() <= 79), "{block}");
        assert!(block.contains("7 tasks DIFFER"), "{block}");
    }
}

#[test]
fn the_table_says_what_it_rests_on() {
    expect![[r#"
        Longest wait 30.0 ms: kworker/0:1 in /. 3,254 waits in 2.00 s.

         task            cgroup            waits      p99    p99.9      max   waited
         kworker/0:1     /                     2        –        –  30.0 ms  30.0 ms
         find            …/backup.service  3,000  12.0 µs  12.0 µs  4.31 ms  40.5 ms
         find            /user.slice         250  9.00 µs        –  9.00 µs  2.25 ms
         gone            (id 23)               1        –        –  1.00 µs  1.00 µs
         �[2Ja�b         –                     1        –        –    70 ns    70 ns
         All: 3,254 waits, p99.9 12.0 µs, max 30.0 ms, waited 72.8 ms

         own cost 0.08 % of 2 CPUs: program 16,000 × 100 ns, wakescope 1.50 ms
         series 123 of 4,096; left out 0; uncovered 0 ns; moved 12
    "#]]
    .assert_eq(&table(&window(), VIEW, Style::default()));
}

#[test]
fn one_row_that_is_left_out_is_one_row() {
    for (rows, want) in [(2, "… 2 more rows. All:"), (3, "… 1 more row. All:"), (4, " All:")] {
        let text = table(&window(), View { by: By::Comm, rows, ..VIEW }, Style::default());
        assert!(text.contains(want), "{text}");
        assert_eq!(text.contains('…'), rows < 4, "{text}");
    }
}

/// Lines without the space that begins each: an expected text has no margin of its own.
fn unindented<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    lines.map(|line| line.strip_prefix(' ').unwrap()).collect::<Vec<_>>().join("\n")
}

#[test]
fn rows_are_what_is_asked_for() {
    let shown = |by, sort| {
        let text = table(&window(), View { by, sort, rows: 2 }, Style::default());
        unindented(text.lines().skip(2).take(4))
    };
    let all = [
        shown(By::Comm, Sort::Time),
        shown(By::Cgroup, Sort::Percentile),
        shown(By::Cpu, Sort::Max),
    ];
    expect![[r#"
         task         waits      p99    p99.9      max   waited
         find         3,250  12.0 µs  12.0 µs  4.31 ms  42.7 ms
         kworker/0:1      2        –        –  30.0 ms  30.0 ms
         … 2 more rows. All: 3,254 waits, p99.9 12.0 µs, max 30.0 ms, waited 72.8 ms
         cgroup            waits      p99    p99.9      max   waited
         …/backup.service  3,000  12.0 µs  12.0 µs  4.31 ms  40.5 ms
         /                     2        –        –  30.0 ms  30.0 ms
         … 3 more rows. All: 3,254 waits, p99.9 12.0 µs, max 30.0 ms, waited 72.8 ms
         CPU  waits      p99    p99.9      max   waited
         0    3,000  12.0 µs  12.0 µs  4.31 ms  40.5 ms
         3      250  9.00 µs        –  9.00 µs  2.25 ms
         All: 3,254 waits, p99.9 12.0 µs, max 30.0 ms, waited 72.8 ms"#]]
    .assert_eq(&all.join("\n"));
}

#[test]
fn every_loss_is_a_number() {
    let mut window = window();
    window.others = waits(&[5_000; 7]);
    window.left_out = LeftOut {
        uncovered_ns: 11_000_000,
        unstamped: 1,
        discarded: 2,
        untracked: 3,
        first: 9,
        caught_up: 6,
        missed: 4,
        missed_ns: 4_000,
        contradicted: 5,
        asleep: 8,
        asleep_ns: 900_000_000,
    };
    window.own_cost.source = CostSource::Estimated;
    window.audit = Some(Audit {
        equal: 40,
        behind: 8,
        differing: 0,
        largest_ns: 0,
        busy: 1,
        gone: 2,
        not_reached: 3,
        waits: 1_234,
    });
    let text = table(&window, VIEW, Style::default());
    let (_, notes) = text.split_once("\n\n").unwrap();
    let (_, notes) = notes.split_once("\n\n").unwrap();
    let notes = unindented(notes.lines());
    expect![[r#"
        own cost 0.08 % of 2 CPUs (estimated): program 16,000 × 100 ns, wakescope 1.50 ms
        series 123 of 4,096; left out at most 22; uncovered 11.0 ms; moved 12
        audit: 40 tasks (1,234 waits) equal to the ns; 8 behind by a switch; 6 not compared
        ! 1 time a task began to run that the kernel did not count as waiting: it was preempted when it was about to sleep
        ! 9 first waits of tasks that had run before: time in the queue of another CPU before is not in them
        ! the kernel did not report the switch that ended 6 waits: counted from its own sums
        ! the program did not see 4 waits of 4.00 µs in all that the kernel counted
        ! 3 waits of tasks beyond the limit of tasks: time in the queue of another CPU before is not in them
        ! 2 waits ended before the begin by the kernel's clock
        ! 5 times the kernel's own sum was less than what was counted here
        ! 8 waits, of up to 900 ms in all, are left out: the kernel counts the sleep of a task as waiting if the task is moved to another CPU just after it fell asleep
        ! 7 waits of tasks without a series of their own are counted as one; --series raises the limit of 4,096 series"#]].assert_eq(&notes);
}

#[test]
fn a_line_for_logs() {
    expect!["0:07: 3,254 waits, p99.9 12.0 µs, max 30.0 ms (kworker/0:1 in /); own cost 0.08 %; left out 0, uncovered 0 ns"].assert_eq(&line(&window()));
    let mut none = window();
    (none.series, none.cpus) = (Vec::new(), Vec::new());
    none.own_cost = OwnCost { program_ns: None, source: CostSource::Unknown, ..none.own_cost };
    expect!["0:07: 0 waits, p99.9 –, max –; own cost not known; left out 0, uncovered 0 ns"]
        .assert_eq(&line(&none));
}

/// Long waits of the tasks of [`window`], each of another cause.
pub(super) fn episodes() -> Episodes {
    let task =
        |comm: &str, pid| NamedTask { comm: comm.into(), pid: Some(pid), ..NamedTask::default() };
    let hog = NamedTask { policy: Policy::Fifo, priority: Some(50), ..task("hog", 77) };
    let ran = |task: &NamedTask, ns| Occupant {
        task: task.clone(),
        cgroup_id: 22,
        cgroup: Some("/user.slice".into()),
        ns,
    };
    let whole = Episode {
        end_ns: 6_000_000_000,
        cpu: 1,
        ns: 30_000_000,
        task: task("kworker/0:1", 12),
        cgroup_id: 1,
        cgroup: Some("/".into()),
        cause: Cause::HigherPriorityTask,
        culprit: Culprit::Task(hog.clone()),
        occupants: vec![ran(&hog, 29_900_000)],
        unexplained_ns: 100_000,
        ..Episode::default()
    };
    let find = Episode {
        task: task("find", 13),
        cgroup_id: 21,
        cgroup: Some("/system.slice/backup.service".into()),
        ns: 4_310_000,
        ..whole.clone()
    };
    let cc = task("cc1", 80);
    let unexplained = Episode {
        ns: 3_000_000,
        cause: Cause::Unexplained,
        culprit: Culprit::None,
        // Others ran for 0.3 ms: all parts of a line add up to the wait.
        occupants: vec![ran(&cc, 700_000)],
        steal_ns: 200_000,
        moved_ns: 900_000,
        unexplained_ns: 1_800_000,
        ..find.clone()
    };
    let of = |ns, cause, culprit| Episode { ns, cause, culprit, ..find.clone() };
    let longest = vec![
        whole,
        Episode { throttled_ns: 4_000_000, ..of(4_310_000, Cause::Throttled, Culprit::None) },
        unexplained,
        Episode { steal_ns: 2_000_000, ..of(2_100_000, Cause::Steal, Culprit::Hypervisor) },
        Episode { irq_ns: 1_900_000, ..of(2_000_000, Cause::Irq, Culprit::None) },
        Episode {
            occupants: vec![ran(&cc, 1_500_000)],
            ..of(1_600_000, Cause::EqualOrLowerTask, Culprit::Task(cc))
        },
    ];
    let not_measured = NotMeasured { interrupts: true, quota: true, ..NotMeasured::default() };
    Episodes { least_ns: 1_000_000, long_waits: 1_234, not_measured, longest }
}

#[test]
fn long_waits_are_listed_with_who_took_them() {
    let window = Window { episodes: Some(episodes()), ..window() };
    let text = table(&window, VIEW, Style::default());
    let list: Vec<&str> = text.split("\n\n").collect();
    expect![[r#"
        6 of 1,234 waits of 1.00 ms and longer, from the two longest of each CPU and interval:
        30.0 ms  kworker/0:1[12] in /, CPU 1 at 0:06: hog[77] (fifo 50) in /user.slice ran 29.9 ms
        4.31 ms  find[13] in /system.slice/backup.service, CPU 1 at 0:06: its CPU quota took 4.00 ms
        3.00 ms  find[13] in /system.slice/backup.service, CPU 1 at 0:06: no single cause: 1.80 ms not explained, 900 µs of it in the queue of another CPU; cc1[80] in /user.slice ran 700 µs; the hypervisor took 200 µs; others ran 300 µs
        2.10 ms  find[13] in /system.slice/backup.service, CPU 1 at 0:06: the hypervisor took 2.00 ms (steal)
        2.00 ms  find[13] in /system.slice/backup.service, CPU 1 at 0:06: interrupts took 1.90 ms
        1.60 ms  find[13] in /system.slice/backup.service, CPU 1 at 0:06: cc1[80] in /user.slice ran 1.50 ms
        the time of interrupts and quotas is not measured here: it is in that of others"#]].assert_eq(&unindented(list[2].lines()));
    assert_eq!(list.len(), 4, "{text}");
    // Of stored windows, which may be of several watches, by the date.
    let stored =
        Window { started: "2026-11-21T01:00:00Z".into(), begin_ns: 5_000_000_000, ..window };
    let extent = extent(&[&stored]);
    let text = stored_table(&extent, &stored, VIEW, Style::default());
    assert!(
        text.contains(
            "find[13] in /system.slice/backup.service, CPU 1 at 2026-11-21T01:00:01Z: its"
        ),
        "{text}"
    );
}

/// Several tasks of one name have no number, and nothing is said of time that is all known.
#[test]
fn a_wait_in_which_many_ran_is_all_known() {
    let ran = |comm: &str, pid, ns| Occupant {
        task: NamedTask { comm: comm.into(), pid, ..NamedTask::default() },
        ns,
        ..Occupant::default()
    };
    let one = Episode {
        ns: 324_000_000,
        task: NamedTask { comm: "cc1".into(), pid: Some(7), ..NamedTask::default() },
        occupants: vec![
            ran("load-fork", None, 131_000_000),
            ran("sh", None, 60_000_000),
            ran("ld", Some(81), 50_000_000),
        ],
        irq_ns: 3_000_000,
        ..Episode::default()
    };
    let episodes =
        Episodes { least_ns: 1_000_000, long_waits: 1, longest: vec![one], ..Episodes::default() };
    let window = Window { episodes: Some(episodes), ..window() };
    let lines = super::episodes::list(&window, 8, Times::Elapsed);
    expect![[r#"
        waits of 1.00 ms and longer:
         324 ms  cc1[7], CPU 0 at 0:00: no single cause: load-fork ran 131 ms; sh ran 60.0 ms; interrupts took 3.00 ms; others ran 130 ms"#]]
    .assert_eq(&unindented(lines[lines.len() - 2..].iter().map(String::as_str)));
}

/// Of a wait in several queues, the line says for which CPUs the task waited before, and what is not known.
#[test]
fn a_wait_for_several_cpus_is_told_with_each() {
    let hog = NamedTask { comm: "hog".into(), pid: Some(77), ..NamedTask::default() };
    let one = Episode {
        ns: 90_000_000,
        cpu: 2,
        task: NamedTask { comm: "cc1".into(), pid: Some(7), ..NamedTask::default() },
        cause: Cause::EqualOrLowerTask,
        culprit: Culprit::Task(hog.clone()),
        occupants: vec![Occupant { task: hog, ns: 70_000_000, ..Occupant::default() }],
        moved_ns: 80_000_000,
        earlier_queues: vec![
            EarlierQueue { cpu: 0, ns: 72_000_000 },
            EarlierQueue { cpu: 1, ns: 20_000 },
        ],
        unexplained_ns: 20_000_000,
        ..Episode::default()
    };
    let mixed = Episode { cause: Cause::Unexplained, culprit: Culprit::None, ..one.clone() };
    let longest = vec![one, mixed];
    let episodes = Episodes { least_ns: 1_000_000, long_waits: 2, longest, ..Episodes::default() };
    let window = Window { episodes: Some(episodes), ..window() };
    let lines = super::episodes::list(&window, 8, Times::Elapsed);
    expect![[r#"
        90.0 ms  cc1[7], CPU 2 at 0:00: hog[77] ran 70.0 ms; before, it waited 72.0 ms for CPU 0, 20.0 µs for CPU 1
        90.0 ms  cc1[7], CPU 2 at 0:00: no single cause: hog[77] ran 70.0 ms; 20.0 ms not explained, 7.98 ms of it in the queue of another CPU; before, it waited 72.0 ms for CPU 0, 20.0 µs for CPU 1"#]]
    .assert_eq(&unindented(lines[lines.len() - 2..].iter().map(String::as_str)));
}

/// Waits of 17.2 s or more, which ended just as the window did: nobody has read how long the longest was.
fn beyond_the_scale(count: u64) -> Waits {
    let bucket = Bucket { lower: 1 << 34, upper: u64::MAX, count };
    let histogram = Histogram::from_buckets(vec![bucket]).unwrap();
    Waits { count, histogram, max_is_exact: false, ..waits(&[1 << 34]) }
}

#[test]
fn beyond_the_scale_figures_are_the_least_that_they_can_be() {
    let long = Some(60_000_000_000);
    let read = Waits { max_ns: long, min_ns: long, max_is_exact: true, ..beyond_the_scale(1) };
    let of_bucket = |ns| Waits { max_is_exact: false, ..waits(&[ns]) };
    for (waits, p50, longest) in [
        (beyond_the_scale(100), "≥17.2 s", "≥17.2 s"),
        (beyond_the_scale(1).merged(&waits(&[1_000; 99])), "1.00 µs", "≥17.2 s"),
        (of_bucket(5_400_000).merged(&waits(&[5_400_000; 99])), "5.40 ms", "5.40 ms"),
        (of_bucket(5_400_000).merged(&waits(&[1_000; 99])), "1.00 µs", "≤5.40 ms"),
        // The longest is longer than one that was read; another in its bucket may be shorter than that.
        (beyond_the_scale(99).merged(&read), "≥17.2 s", "≥1.00 min"),
        (Waits::default(), "–", "–"),
    ] {
        assert_eq!((&*percentile_of(&waits, "p50"), &*max(&waits)), (p50, longest), "{waits:?}");
    }
}

/// What the table says is the longest wait is on the list, or the list says why not.
#[test]
fn a_longest_wait_that_nobody_saw_is_told() {
    let check = |longest: Waits, seen: &[u64], want: Option<&str>| {
        let of = |&ns| Episode { ns, ..Episode::default() };
        let longest_of = seen.iter().map(of).collect();
        let episodes = Episodes {
            least_ns: 1_000_000,
            long_waits: seen.len() as u64,
            longest: longest_of,
            ..Episodes::default()
        };
        let one = Series { waits: longest.clone(), ..series("find", 21, Some("/"), &[]) };
        let window = Window { series: vec![one], episodes: Some(episodes), ..window() };
        let line = want.map(|ns| format!(" the longest wait, {ns}: its cause was not seen"));
        let all = super::episodes::list(&window, 8, Times::Elapsed);
        assert_eq!(all.iter().find(|line| line.contains("not seen")), line.as_ref(), "{longest:?}");
        let told = want.map(|ns| format!(" longest: {ns}  its cause was not seen"));
        let line = super::episodes::longest(&window).filter(|line| line.contains("not seen"));
        assert_eq!(line, told, "{longest:?}");
    };
    let of_bucket = |ns| Waits { max_is_exact: false, ..waits(&[ns]) };
    check(waits(&[5_000_000]), &[5_000_000, 2_000_000], None);
    check(waits(&[8_000_000]), &[5_000_000], Some("8.00 ms"));
    check(waits(&[8_000_000]), &[], Some("8.00 ms"));
    check(waits(&[900_000]), &[], None);
    // The wait itself is somewhere in its bucket.
    check(of_bucket(5_300_000), &[5_000_000], None);
    check(of_bucket(5_400_000), &[5_000_000], Some("≤5.40 ms"));
    check(beyond_the_scale(1), &[17_100_000_000], Some("≥17.2 s"));
}

#[test]
fn a_clock_that_was_set_is_told() {
    let at = |time: &str, begin_s: u64| Window {
        started: format!("2026-11-21T{time}Z"),
        begin_ns: begin_s * 1_000_000_000,
        window_ns: 600_000_000_000,
        ..Window::default()
    };
    let line = |windows: &[Window]| stored_extent(&extent(&windows.iter().collect::<Vec<_>>()));
    let said =
        |rest: &str| format!("2 stored windows from 2026-11-21T01:00:00Z to 2026-11-21T{rest}");
    let (first, forward) = (at("01:00:00", 0), at("03:10:00", 600));
    assert_eq!(
        line(&[first.clone(), forward]),
        said(
            "03:20:00Z. Meanwhile the clock was set forward by 2.00 h, or the machine was suspended."
        )
    );
    assert_eq!(
        line(&[first.clone(), at("00:40:00", 600)]),
        said("00:50:00Z. Meanwhile the clock was set back by 30.0 min.")
    );
    assert_eq!(
        line(&[first.clone(), at("00:40:00", 0)]),
        said("00:50:00Z. Dates overlap by 30.0 min: the clock was set back in between.")
    );
    assert_eq!(
        line(&[first.clone(), at("03:10:00", 0)]),
        said("03:20:00Z. In between, 2.00 h were not watched.")
    );
    // The clock of the boot separates the two, and shows for how long nobody watched.
    let by_boot = |window: Window, boottime_s: u64| Window {
        boottime_ns: Some(boottime_s * 1_000_000_000),
        boots: vec![Boot { boot: Some("1".into()), ..Boot::default() }],
        ..window
    };
    let first = by_boot(first, 0);
    assert_eq!(
        line(&[first.clone(), by_boot(at("03:10:00", 600), 4_200)]),
        said(
            "03:20:00Z. Meanwhile the machine was suspended for 1.00 h. Meanwhile the clock was set forward by \
             1.00 h."
        )
    );
    assert_eq!(
        line(&[first, by_boot(at("03:10:00", 0), 4_200)]),
        said(
            "03:20:00Z. In between, 1.00 h were not watched. Meanwhile the clock was set forward by 1.00 h."
        )
    );
}

#[test]
fn stored_windows_name_their_kernel_and_machine() {
    let boot = |mark: &str, release: &str| Boot {
        machine: Some("m".into()),
        boot: Some(mark.into()),
        release: release.into(),
        preemption: Model::Full,
        cpu_model: Some("Some CPU".into()),
        hypervisor: Some("KVM".into()),
        clock: Some("tsc".into()),
        ..Boot::default()
    };
    let line = |boots: Vec<Boot>| {
        let total = Window { boots, ..window() };
        let extent = extent(&[&total]);
        let text = stored_table(&extent, &total, VIEW, Style::default());
        text.lines().nth(1).unwrap().to_owned()
    };
    let one = "Kernel 6.12, preemption full · Some CPU · tsc · KVM guest";
    assert_eq!(line(vec![boot("1", "6.12")]), one);
    assert_eq!(line(vec![boot("1", "6.12"), boot("2", "6.12")]), format!("{one} · 2 boots"));
    assert_eq!(
        line(vec![boot("1", "6.12"), boot("2", "\u{1b}6.18"), Boot::default()]),
        "! Windows of 2 boots, 2 kernels: 6.12, preemption full, \u{fffd}6.18, preemption full; of some \
         windows machine and kernel are not known"
    );
    let under = |name: &str| Boot { sched_ext: Some(name.into()), ..boot("2", "6.12") };
    assert_eq!(line(vec![under("simple")]), format!("{one} · sched_ext simple"));
    assert_eq!(
        line(vec![boot("1", "6.12"), under("")]),
        format!("{one} · sched_ext none, one without a name · 2 boots")
    );
    let told = line(vec![boot("1", "6.18"), under("a\u{1b}")]);
    assert!(told.ends_with("6.12, preemption full; sched_ext a\u{fffd}, none"), "{told}");
    let other = Boot { machine: Some("n".into()), ..boot("2", "6.12") };
    let told = line(vec![boot("1", "6.12"), other]);
    assert!(told.starts_with("! Windows of 2 boots, 2 machines, 1 kernel: "), "{told}");
    // Windows of earlier versions do not say it.
    assert!(line(Vec::new()).starts_with("Longest wait "));
    let heading = stored_heading(&Window { boots: vec![boot("1", "6.12")], ..window() });
    assert_eq!(heading, "2026-11-21T01:00:00Z UTC, 2.00 s, 6.12");
}
