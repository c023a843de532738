//! Places of the table without a number, or with fewer than usual.

use expect_test::expect;
use wakescope_core::finding::{Finding, Severity};
use wakescope_core::lab::Status;
use wakescope_stats::cells::{limits, parse_limit};

use super::{Extent, Model, Style, add, check, empty, judge, markdown, text};

#[test]
fn a_model_that_is_ignored() {
    let mut lab = empty();
    add(&mut lab, "6.1-arm", "default", "find", (100, 110), 10);
    add(&mut lab, "6.1-arm", "full", "find", (100, 110), 10);
    add(&mut lab, "6.1-arm", "full", "idle", (5, 6), 10);
    for cell in &mut lab.cells {
        cell.model = Some(Model::Voluntary);
        if cell.asked == "full" {
            cell.status = Status::Ignored;
            cell.reason = "it is built without PREEMPT_DYNAMIC".into();
        }
    }
    judge(&mut lab, &[("6.1-arm/default", "6.1-arm/full")]);
    check(
        &lab,
        expect![[r#"
            | full against default is inconclusive under both loads. 20 of 30 cells have no result: 6.1-arm was
            | not seen to run full.
            |
            | largest wakeup latency, virtual µs · median of 10 seeds (range) · work per virtual second
            |          full              default
            | 6.1-arm
            |   find   runs voluntary¹   105 (100–110) 8.0k
            |   idle   runs voluntary¹
            |
            | p99.9 of wakeup latency, virtual µs · median of 10 seeds (range)
            |          full              default
            | 6.1-arm
            |   find   runs voluntary¹   52 (50–55)
            |   idle   runs voluntary¹
            |
            | p50 of wakeup latency, virtual µs · median of 10 seeds (range)
            |          full              default
            | 6.1-arm
            |   find   runs voluntary¹   5.2 (5.0–5.5)
            |   idle   runs voluntary¹
            |
            | work: find in files · default is voluntary on 6.1-arm
            | ¹ 6.1-arm, asked for full, runs voluntary: it is built without PREEMPT_DYNAMIC
            |
            | find  full against default inconclusive
            | idle  full against default inconclusive
            |         There are no cells of 6.1-arm/default under this load.
            | 6.1-arm/full has no result: this kernel runs voluntary instead.
            |
            | Virtual time counts instructions: the order of kernels and the differences between them are
            | meaningful, absolute times are not. Caches, idle states and firmware are not modelled.
            | 4,000 wakeups every 500 µs of virtual time, fifo 90 · 1 CPU, 1000 MIPS · QEMU 10.0.13
            | repeat: wakescope lab run --plan linux-journal
        "#]],
    );
}

#[test]
fn cells_that_failed_and_cells_that_were_not_run() {
    let mut lab = empty();
    for (asked, range) in [("none", (103, 114)), ("full", (10, 44)), ("lazy", (11, 12))] {
        add(&mut lab, "6.1-cloud", asked, "find", range, 10);
        add(&mut lab, "6.1-cloud", asked, "launch", range, 10);
    }
    for cell in &mut lab.cells {
        let panicked = match (&*cell.asked, &*cell.load, cell.seed) {
            ("none", "find", 3) => "the kernel panicked",
            ("full", "launch", _) => "the kernel hung: no sign of life for 60 s of virtual time",
            ("lazy", "launch", seed) => {
                cell.status = if seed > 2 { Status::NotRun } else { Status::Ok };
                continue;
            }
            ("lazy", ..) => {
                cell.status = Status::NotRun;
                continue;
            }
            _ => continue,
        };
        cell.status = Status::Failed;
        cell.reason = panicked.into();
        cell.evidence = vec![
            "[    3.141592] BUG: unable to handle page fault for address: ffff888000000000".into(),
            "[    3.141593] \x1b[31mKernel panic - not syncing: Fatal exception\x07".into(),
        ];
    }
    judge(&mut lab, &[("6.1-cloud/none", "6.1-cloud/full")]);
    lab.limits =
        limits(&lab.cells, &[parse_limit("100us").unwrap(), parse_limit("p50=1ms").unwrap()]);
    check(
        &lab,
        expect![[r#"
            | full is better than none under find, inconclusive under launch. Of 12 limits 2 are broken, 7
            | undecided, 3 kept. 11 of 60 cells failed, 18 were not run.
            |
            | largest wakeup latency, virtual µs · median of 10 seeds (range) · work per virtual second
            |            none                   full               lazy
            | 6.1-cloud
            |   find     ↑109 (103–114)¹ 8.0k   ↓27 (10–44) 8.0k   –
            |   launch   ↑108 (103–114)   457   failed²            ↓12 (11–12)³ 497
            |
            | p99.9 of wakeup latency, virtual µs · median of 10 seeds (range)
            |            none           full           lazy
            | 6.1-cloud
            |   find     ↑55 (52–57)¹   ↓13 (5.0–22)   –
            |   launch   ↑54 (52–57)    failed²        ↓5.8 (5.7–5.9)³
            |
            | p50 of wakeup latency, virtual µs · median of 10 seeds (range)
            |            none              full              lazy
            | 6.1-cloud
            |   find     ↑5.5 (5.2–5.7)¹   ↓1.3 (0.50–2.2)   –
            |   launch   ↑5.4 (5.2–5.7)    failed²           ↓0.58 (0.57–0.59)³
            |
            | ↓ best, ↑ worst of a load · work: find in files, launch in programs
            | ¹ 6.1-cloud/none find, seed 3: the kernel panicked
            |   │ [    3.141592] BUG: unable to handle page fault for address: ffff888000000000
            |   │ [    3.141593] �[31mKernel panic - not syncing: Fatal exception�
            | ² 6.1-cloud/full launch, 10 seeds (1, 2, 3, 4, …): the kernel hung: no sign of life for 60 s of
            |   virtual time
            |   │ [    3.141592] BUG: unable to handle page fault for address: ffff888000000000
            |   │ [    3.141593] �[31mKernel panic - not syncing: Fatal exception�
            | ³ 6.1-cloud/lazy launch, 8 seeds (3, 4, 5, 6, …): not run, because the lab was ended before
            |
            | find    full better than none: max 0.26 ×, p99.9 0.26 × (9 of 9 seeds, p = 0.008), work 1.00 ×
            |           6.1-cloud/none failed with seed 3.
            | launch  full against none inconclusive
            |           6.1-cloud/full failed with 10 of 10 seeds (1, 2, 3, 4, 5, …).
            | Better or worse: p ≤ 0.05, corrected for 2 figures, more than the margin of 10 %, and the 95 %
            | interval of the median leaves 1 out.
            |
            | max ≤ 100 µs of virtual time broken: 114 virtual µs, 6.1-cloud/none find, seed 7
            | max ≤ 100 µs of virtual time broken: 114 virtual µs, 6.1-cloud/none launch, seed 7
            | max ≤ 100 µs of virtual time undecided: 6.1-cloud/full launch: seed 1 failed
            | max ≤ 100 µs of virtual time undecided: 6.1-cloud/lazy find: seed 1 was not run
            | max ≤ 100 µs of virtual time undecided: 6.1-cloud/lazy launch: seed 3 was not run
            | max ≤ 100 µs of virtual time kept by 1 of 6: at most 44.0 virtual µs, 6.1-cloud/full find, seed 7
            | p50 ≤ 1.00 ms of virtual time undecided: 6.1-cloud/none find: seed 3 failed
            | p50 ≤ 1.00 ms of virtual time undecided: 6.1-cloud/full launch: seed 1 failed
            | p50 ≤ 1.00 ms of virtual time undecided: 6.1-cloud/lazy find: seed 1 was not run
            | p50 ≤ 1.00 ms of virtual time undecided: 6.1-cloud/lazy launch: seed 3 was not run
            | p50 ≤ 1.00 ms of virtual time kept by 2 of 6: at most 5.70 virtual µs, 6.1-cloud/none launch, seed
            |   7
            |
            | Virtual time counts instructions: the order of kernels and the differences between them are
            | meaningful, absolute times are not. Caches, idle states and firmware are not modelled.
            | 4,000 wakeups every 500 µs of virtual time, fifo 90 · 1 CPU, 1000 MIPS · QEMU 10.0.13
            | repeat: wakescope lab run --plan linux-journal
        "#]],
    );
    expect![[r#"
        **full is better than none under find, inconclusive under launch. Of 12 limits 2 are broken, 7 undecided, 3 kept. 11 of 60 cells failed, 18 were not run.**

        **largest wakeup latency, virtual µs · median of 10 seeds (range) · work per virtual second**

        | kernel | load | none | full | lazy |
        |---|---|---|---|---|
        | 6.1-cloud | find | ↑109 (103–114)¹ · 8.0k | ↓27 (10–44) · 8.0k | – |
        | 6.1-cloud | launch | ↑108 (103–114) · 457 | failed² | ↓12 (11–12)³ · 497 |

        **p99.9 of wakeup latency, virtual µs · median of 10 seeds (range)**

        | kernel | load | none | full | lazy |
        |---|---|---|---|---|
        | 6.1-cloud | find | ↑55 (52–57)¹ | ↓13 (5.0–22) | – |
        | 6.1-cloud | launch | ↑54 (52–57) | failed² | ↓5.8 (5.7–5.9)³ |

        **p50 of wakeup latency, virtual µs · median of 10 seeds (range)**

        | kernel | load | none | full | lazy |
        |---|---|---|---|---|
        | 6.1-cloud | find | ↑5.5 (5.2–5.7)¹ | ↓1.3 (0.50–2.2) | – |
        | 6.1-cloud | launch | ↑5.4 (5.2–5.7) | failed² | ↓0.58 (0.57–0.59)³ |

        - ↓ best, ↑ worst of a load
        - work: find in files, launch in programs
        - ¹ 6.1-cloud/none find, seed 3: the kernel panicked
          ```text
          [    3.141592] BUG: unable to handle page fault for address: ffff888000000000
          [    3.141593] �[31mKernel panic - not syncing: Fatal exception�
          ```
        - ² 6.1-cloud/full launch, 10 seeds (1, 2, 3, 4, …): the kernel hung: no sign of life for 60 s of virtual time
          ```text
          [    3.141592] BUG: unable to handle page fault for address: ffff888000000000
          [    3.141593] �[31mKernel panic - not syncing: Fatal exception�
          ```
        - ³ 6.1-cloud/lazy launch, 8 seeds (3, 4, 5, 6, …): not run, because the lab was ended before

        - find: **full better than none**: max 0.26 ×, p99.9 0.26 × (9 of 9 seeds, p = 0.008), work 1.00 ×
          - 6.1-cloud/none failed with seed 3.
        - launch: **full against none inconclusive**
          - 6.1-cloud/full failed with 10 of 10 seeds (1, 2, 3, 4, 5, …).

        Better or worse: p ≤ 0.05, corrected for 2 figures, more than the margin of 10 %, and the 95 % interval of the median leaves 1 out.

        - max ≤ 100 µs of virtual time broken: 114 virtual µs, 6.1-cloud/none find, seed 7
        - max ≤ 100 µs of virtual time broken: 114 virtual µs, 6.1-cloud/none launch, seed 7
        - max ≤ 100 µs of virtual time undecided: 6.1-cloud/full launch: seed 1 failed
        - max ≤ 100 µs of virtual time undecided: 6.1-cloud/lazy find: seed 1 was not run
        - max ≤ 100 µs of virtual time undecided: 6.1-cloud/lazy launch: seed 3 was not run
        - max ≤ 100 µs of virtual time kept by 1 of 6: at most 44.0 virtual µs, 6.1-cloud/full find, seed 7
        - p50 ≤ 1.00 ms of virtual time undecided: 6.1-cloud/none find: seed 3 failed
        - p50 ≤ 1.00 ms of virtual time undecided: 6.1-cloud/full launch: seed 1 failed
        - p50 ≤ 1.00 ms of virtual time undecided: 6.1-cloud/lazy find: seed 1 was not run
        - p50 ≤ 1.00 ms of virtual time undecided: 6.1-cloud/lazy launch: seed 3 was not run
        - p50 ≤ 1.00 ms of virtual time kept by 2 of 6: at most 5.70 virtual µs, 6.1-cloud/none launch, seed 7

        Virtual time counts instructions: the order of kernels and the differences between them are meaningful, absolute times are not. Caches, idle states and firmware are not modelled.

        4,000 wakeups every 500 µs of virtual time, fifo 90 · 1 CPU, 1000 MIPS · QEMU 10.0.13

        To repeat it:

        ```sh
        wakescope lab run --plan linux-journal
        ```
    "#]].assert_eq(&markdown(&lab));
}

#[test]
fn one_seed_has_no_range_and_no_verdict() {
    let mut lab = empty();
    add(&mut lab, "6.1-cloud", "none", "find", (110, 110), 1);
    add(&mut lab, "6.1-cloud", "full", "find", (11, 11), 1);
    judge(&mut lab, &[("6.1-cloud/none", "6.1-cloud/full")]);
    check(
        &lab,
        expect![[r#"
            | full against none is inconclusive under find.
            |
            | largest wakeup latency, virtual µs · one seed · work per virtual second
            |          none        full
            | 6.1-cloud
            |   find   ↑110 8.1k   ↓11 8.1k
            |
            | p99.9 of wakeup latency, virtual µs · one seed
            |          none   full
            | 6.1-cloud
            |   find   ↑55    ↓5.5
            |
            | p50 of wakeup latency, virtual µs · one seed
            |          none   full
            | 6.1-cloud
            |   find   ↑5.5   ↓0.55
            |
            | ↓ best, ↑ worst of a load · work: find in files
            |
            | find  full against none inconclusive: max 0.10 ×, p99.9 0.10 × (1 of 1 seed), work 1.00 ×
            |         1 seed is too few to decide 2 figures compared together: 7 are needed.
            |
            | Virtual time counts instructions: the order of kernels and the differences between them are
            | meaningful, absolute times are not. Caches, idle states and firmware are not modelled.
            | 4,000 wakeups every 500 µs of virtual time, fifo 90 · 1 CPU, 1000 MIPS · QEMU 10.0.13
            | repeat: wakescope lab run --plan linux-journal
        "#]],
    );
}

#[test]
fn what_weakens_a_cell_is_a_note_of_its_figures() {
    let mut lab = empty();
    for asked in ["none", "full"] {
        add(&mut lab, "6.1-cloud", asked, "idle", (5, 6), 2);
        add(&mut lab, "6.1-cloud", asked, "stress-kernel", (100, 110), 2);
    }
    for cell in lab.cells.iter_mut().filter(|cell| cell.load != "idle") {
        cell.throughput = None;
        cell.findings = vec![Finding::new(
            "load-left-out",
            Severity::Warning,
            "nfs-compile was left out of the load stress-kernel: not in this version".into(),
            "",
        )];
    }
    let shown = text(&lab, Extent::Screen, Style::default());
    let note = "¹ 6.1-cloud/none stress-kernel, 2 seeds (1, 2); 6.1-cloud/full stress-kernel, 2 seeds (1, 2):\n   nfs-compile was left out of the load stress-kernel: not in this version\n";
    assert!(shown.contains(note), "{shown}");
    assert!(shown.contains("stress-kernel   105 (100–110)¹   105 (100–110)¹\n"), "{shown}");
    assert!(shown.contains("idle            5.5 (5.0–6.0)    5.5 (5.0–6.0)\n"), "{shown}");
    assert!(markdown(&lab).contains("- ¹ 6.1-cloud/none stress-kernel, 2 seeds (1, 2);"));
}

#[test]
fn reasons_of_all_comparisons_are_told_once() {
    let mut lab = empty();
    for load in ["find", "launch"] {
        // What reads the same is neither best nor worst.
        add(&mut lab, "6.1-cloud", "none", load, (110, 110), 1);
        add(&mut lab, "6.1-cloud", "full", load, (110, 110), 1);
    }
    lab.cells[0].max_ns = Some(110_040);
    lab.cells.iter_mut().for_each(|cell| cell.p999_ns = None);
    judge(&mut lab, &[("6.1-cloud/none", "6.1-cloud/full")]);
    let shown = text(&lab, Extent::Screen, Style::default());
    for once in
        ["p99.9 is unknown: it needs 2,000 samples.", "1 seed is too few to decide 2 figures"]
    {
        assert_eq!(shown.matches(once).count(), 1, "{shown}");
        assert_eq!(markdown(&lab).matches(once.split('.').next().unwrap()).count(), 1);
    }
    assert!(!shown.contains(['↓', '↑']), "{shown}");
}

#[test]
fn without_load_and_with_few_samples() {
    let mut lab = empty();
    for asked in ["none", "full"] {
        add(&mut lab, "6.1-cloud", asked, "idle", (5, 6), 2);
    }
    for cell in &mut lab.cells {
        (cell.p999_ns, cell.count) = (None, 400);
    }
    lab.settings.samples = 400;
    lab.settings.cpus = 2;
    lab.limits =
        limits(&lab.cells, &[parse_limit("p99.9=1ms").unwrap(), parse_limit("1ms").unwrap()]);
    check(
        &lab,
        expect![[r#"
            | Of 4 limits 2 are undecided, 2 kept.
            |
            | largest wakeup latency, virtual µs · median of 2 seeds (range)
            |          none            full
            | 6.1-cloud
            |   idle   5.5 (5.0–6.0)   5.5 (5.0–6.0)
            |
            | p50 of wakeup latency, virtual µs · median of 2 seeds (range)
            |          none               full
            | 6.1-cloud
            |   idle   0.28 (0.25–0.30)   0.28 (0.25–0.30)
            |
            | p99.9 takes 2,000 wakeups per cell
            |
            | p99.9 ≤ 1.00 ms of virtual time undecided: 6.1-cloud/none idle: the 400 samples of seed 1 are too
            |   few for p99.9, which needs 2,000
            | p99.9 ≤ 1.00 ms of virtual time undecided: 6.1-cloud/full idle: the 400 samples of seed 1 are too
            |   few for p99.9, which needs 2,000
            | max ≤ 1.00 ms of virtual time kept by all 2: at most 6.00 virtual µs, 6.1-cloud/full idle, seed 1
            |
            | Virtual time counts instructions: the order of kernels and the differences between them are
            | meaningful, absolute times are not. Caches, idle states and firmware are not modelled.
            | The emulator runs the guest's CPUs in turns of about one virtual ms: with more than one CPU, these
            | turns dominate latencies.
            | 400 wakeups every 500 µs of virtual time, fifo 90 · 2 CPUs, 1000 MIPS · QEMU 10.0.13
            | repeat: wakescope lab run --plan linux-journal
        "#]],
    );
}

#[test]
fn nothing_measured() {
    check(
        &empty(),
        expect![[r#"
            | There are no cells.
            |
            | Virtual time counts instructions: the order of kernels and the differences between them are
            | meaningful, absolute times are not. Caches, idle states and firmware are not modelled.
            | 4,000 wakeups every 500 µs of virtual time, fifo 90 · 1 CPU, 1000 MIPS · QEMU 10.0.13
            | repeat: wakescope lab run --plan linux-journal
        "#]],
    );
    assert!(markdown(&empty()).starts_with("There are no cells.\n"));
}
