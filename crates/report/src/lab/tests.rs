use expect_test::{Expect, expect};
use wakescope_core::lab::{ALPHA, Arm, Cell, LabKernel, SCHEMA, Settings, Status};
use wakescope_stats::cells::{compare, limits, parse_limit};

use super::*;

/// A lab of the linux-journal kind, without cells.
fn empty() -> Lab {
    Lab {
        schema: SCHEMA.into(),
        plan: "linux-journal".into(),
        repeat: "wakescope lab run --plan linux-journal".into(),
        settings: Settings {
            interval_ns: 500_000,
            samples: 4_000,
            priority: Some(90),
            cpu_mips: 1_000,
            cpus: 1,
            emulator: "QEMU 10.0.13".into(),
            ..Settings::default()
        },
        kernels: vec![LabKernel { name: "6.1-cloud".into(), ..LabKernel::default() }],
        ..Lab::default()
    }
}

fn model(asked: &str) -> Option<Model> {
    match asked {
        "none" => Some(Model::None),
        "voluntary" => Some(Model::Voluntary),
        "full" => Some(Model::Full),
        "lazy" => Some(Model::Lazy),
        _ => Some(Model::Rt),
    }
}

/// Adds `seeds` cells whose maxima go from `low` to `high` µs.
fn add(lab: &mut Lab, kernel: &str, asked: &str, load: &str, (low, high): (u64, u64), seeds: u64) {
    let work = match load {
        "find" => (8_100.0, "files"),
        "launch" => (512.0, "programs"),
        _ => (1.9e9, "bytes"),
    };
    for seed in 1..=seeds {
        // Not in order, as seeds are.
        let share = seed * 7 % seeds.max(2);
        let max_ns = low * 1_000 + (high - low) * 1_000 * share / (seeds - 1).max(1);
        lab.cells.push(Cell {
            kernel: kernel.into(),
            asked: asked.into(),
            model: model(asked),
            load: load.into(),
            seed,
            status: Status::Ok,
            p50_ns: Some(max_ns / 20),
            p99_ns: Some(max_ns / 4),
            p999_ns: Some(max_ns / 2),
            max_ns: Some(max_ns),
            count: 4_000,
            throughput: (load != "idle").then_some(work.0 - 10.0 * seed as f64),
            unit: if load == "idle" { String::new() } else { work.1.into() },
            cached: seed < 4,
            ..Cell::default()
        });
    }
}

fn arm(text: &str) -> Arm {
    let (kernel, asked) = text.rsplit_once('/').unwrap();
    Arm { kernel: kernel.into(), asked: asked.into() }
}

fn judge(lab: &mut Lab, pairs: &[(&str, &str)]) {
    let pairs: Vec<_> = pairs.iter().map(|(a, b)| (arm(a), arm(b))).collect();
    lab.comparisons = compare(&lab.cells, &pairs, 0.1, ALPHA);
}

#[test]
fn a_lab_whose_guests_explain_says_that_the_tracer_is_in_its_figures() {
    let mut lab = journal();
    // Also where none of them was late enough to be explained.
    for explained in [false, true] {
        lab.settings.explained = explained;
        for text in [text(&lab, Extent::Screen, Style::default()), markdown(&lab)] {
            assert_eq!(text.contains("The tracer that explains wakeups"), explained, "{text}");
        }
    }
}

/// Models and loads of 6.1-cloud, and its RT kernel.
fn journal() -> Lab {
    let mut lab = empty();
    for (asked, find, launch, file_move) in [
        ("none", (103, 114), (109, 117), (259, 269)),
        ("voluntary", (44, 50), (44, 82), (265, 272)),
        ("full", (10, 44), (11, 12), (238, 245)),
    ] {
        add(&mut lab, "6.1-cloud", asked, "find", find, 10);
        add(&mut lab, "6.1-cloud", asked, "launch", launch, 10);
        add(&mut lab, "6.1-cloud", asked, "file-move", file_move, 10);
    }
    add(&mut lab, "6.1-rt", "default", "find", (6, 7), 10);
    add(&mut lab, "6.1-rt", "default", "launch", (6, 6), 10);
    add(&mut lab, "6.1-rt", "default", "file-move", (6, 8), 10);
    judge(&mut lab, &[("6.1-cloud/none", "6.1-cloud/full")]);
    lab.published = vec!["Linux Journal, 2002: find 78.51 → 0.48 ms".into()];
    lab
}

#[track_caller]
fn check(lab: &Lab, want: Expect) {
    let text = text(lab, Extent::Screen, Style::default());
    // `expect!` takes off the blanks that all lines begin with; a frame keeps them.
    let framed: String = text.lines().map(|line| format!("|{line}\n")).collect();
    want.assert_eq(&framed);
    assert_fits(lab, &text);
    // Colour only repeats what the words say.
    let coloured = super::text(lab, Extent::Screen, Style { colour: true });
    assert_eq!(without_colour(&coloured), text);
}

fn assert_fits(lab: &Lab, text: &str) {
    for line in text.lines().filter(|line| !line.starts_with(" repeat: ")) {
        assert!(line.chars().count() <= WIDTH, "too wide: {line}");
        assert!(!line.contains('\x1b'), "{line:?}");
    }
    assert!(text.contains("Virtual time counts instructions"), "{}", lab.plan);
}

fn without_colour(text: &str) -> String {
    let mut parts = text.split('\x1b');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| out + part.split_once('m').unwrap().1)
}

mod gaps;

#[test]
fn a_full_matrix() {
    check(
        &journal(),
        expect![[r#"
            | full is better than none under find and launch, no different under file-move.
            |
            | largest wakeup latency, virtual µs · median of 10 seeds (range) · work per virtual second
            |               none                  voluntary             full                 RT
            | 6.1-cloud
            |   find        ↑108 (103–114) 8.0k     47 (44–50)   8.0k    27 (10–44)   8.0k
            |   launch      ↑113 (109–117)  457     63 (44–82)    457    11 (11–12)    457
            |   file-move    264 (259–269) 1.9G   ↑268 (265–272) 1.9G   241 (238–245) 1.9G
            | 6.1-rt
            |   find                                                                         ↓6.5 (6.0–7.0) 8.0k
            |   launch                                                                       ↓6.0 (6.0–6.0)  457
            |   file-move                                                                    ↓7.0 (6.0–8.0) 1.9G
            |
            | ↓ best, ↑ worst of a load · work: find in files, launch in programs, file-move in bytes
            | p99.9 and p50: --all-figures
            |
            | find       full better than none: max 0.25 ×, p99.9 0.25 × (10 of 10 seeds, p = 0.012), work 1.00 ×
            | launch     full better than none: max 0.10 ×, p99.9 0.10 × (10 of 10 seeds, p = 0.012), work 1.00 ×
            | file-move  full no different from none: max 0.91 ×, p99.9 0.91 × (0.91–0.92 over 10 seeds),
            |              work 1.00 ×
            | Better or worse: p ≤ 0.05, corrected for 6 figures, more than the margin of 10 %, and the 95 %
            | interval of the median leaves 1 out.
            |
            | Linux Journal, 2002: find 78.51 → 0.48 ms
            |
            | Virtual time counts instructions: the order of kernels and the differences between them are
            | meaningful, absolute times are not. Caches, idle states and firmware are not modelled.
            | 4,000 wakeups every 500 µs of virtual time, fifo 90 · 1 CPU, 1000 MIPS · QEMU 10.0.13
            | repeat: wakescope lab run --plan linux-journal
        "#]],
    );
}

#[test]
fn the_same_as_markdown() {
    expect![[r#"
        **full is better than none under find and launch, no different under file-move.**

        **largest wakeup latency, virtual µs · median of 10 seeds (range) · work per virtual second**

        | kernel | load | none | voluntary | full | RT |
        |---|---|---|---|---|---|
        | 6.1-cloud | find | ↑108 (103–114) · 8.0k | 47 (44–50) · 8.0k | 27 (10–44) · 8.0k |  |
        | 6.1-cloud | launch | ↑113 (109–117) · 457 | 63 (44–82) · 457 | 11 (11–12) · 457 |  |
        | 6.1-cloud | file-move | 264 (259–269) · 1.9G | ↑268 (265–272) · 1.9G | 241 (238–245) · 1.9G |  |
        | 6.1-rt | find |  |  |  | ↓6.5 (6.0–7.0) · 8.0k |
        | 6.1-rt | launch |  |  |  | ↓6.0 (6.0–6.0) · 457 |
        | 6.1-rt | file-move |  |  |  | ↓7.0 (6.0–8.0) · 1.9G |

        **p99.9 of wakeup latency, virtual µs · median of 10 seeds (range)**

        | kernel | load | none | voluntary | full | RT |
        |---|---|---|---|---|---|
        | 6.1-cloud | find | ↑54 (52–57) | 23 (22–25) | 13 (5.0–22) |  |
        | 6.1-cloud | launch | ↑56 (54–58) | 31 (22–41) | 5.7 (5.5–6.0) |  |
        | 6.1-cloud | file-move | 132 (130–134) | ↑134 (132–136) | 121 (119–122) |  |
        | 6.1-rt | find |  |  |  | ↓3.2 (3.0–3.5) |
        | 6.1-rt | launch |  |  |  | ↓3.0 (3.0–3.0) |
        | 6.1-rt | file-move |  |  |  | ↓3.5 (3.0–4.0) |

        **p50 of wakeup latency, virtual µs · median of 10 seeds (range)**

        | kernel | load | none | voluntary | full | RT |
        |---|---|---|---|---|---|
        | 6.1-cloud | find | ↑5.4 (5.2–5.7) | 2.3 (2.2–2.5) | 1.3 (0.50–2.2) |  |
        | 6.1-cloud | launch | ↑5.6 (5.5–5.8) | 3.1 (2.2–4.1) | 0.57 (0.55–0.60) |  |
        | 6.1-cloud | file-move | ↑13 (13–13) | ↑13 (13–14) | 12 (12–12) |  |
        | 6.1-rt | find |  |  |  | ↓0.32 (0.30–0.35) |
        | 6.1-rt | launch |  |  |  | ↓0.30 (0.30–0.30) |
        | 6.1-rt | file-move |  |  |  | ↓0.35 (0.30–0.40) |

        - ↓ best, ↑ worst of a load
        - work: find in files, launch in programs, file-move in bytes

        - find: **full better than none**: max 0.25 ×, p99.9 0.25 × (10 of 10 seeds, p = 0.012), work 1.00 ×
        - launch: **full better than none**: max 0.10 ×, p99.9 0.10 × (10 of 10 seeds, p = 0.012), work 1.00 ×
        - file-move: **full no different from none**: max 0.91 ×, p99.9 0.91 × (0.91–0.92 over 10 seeds), work 1.00 ×

        Better or worse: p ≤ 0.05, corrected for 6 figures, more than the margin of 10 %, and the 95 % interval of the median leaves 1 out.

        ```text
        Linux Journal, 2002: find 78.51 → 0.48 ms
        ```

        Virtual time counts instructions: the order of kernels and the differences between them are meaningful, absolute times are not. Caches, idle states and firmware are not modelled.

        4,000 wakeups every 500 µs of virtual time, fifo 90 · 1 CPU, 1000 MIPS · QEMU 10.0.13

        To repeat it:

        ```sh
        wakescope lab run --plan linux-journal
        ```
    "#]].assert_eq(&markdown(&journal()));
}

#[test]
fn long_paths_are_shortened_and_two_kernels_compared() {
    let mut lab = empty();
    let path = |build: &str| {
        format!("/home/somebody/{}{build}/arch/x86/boot/bzImage", "linux/".repeat(20))
    };
    let (old, new) = (path("old"), path("new"));
    for (kernel, range) in [(&old, (50, 55)), (&new, (90, 120))] {
        add(&mut lab, kernel, "full", "find", range, 10);
        add(&mut lab, kernel, "full", "find+launch", range, 10);
    }
    lab.repeat = format!("wakescope lab run --kernel {old},{new} --preempt full");
    judge(&mut lab, &[(&format!("{old}/full"), &format!("{new}/full"))]);
    check(
        &lab,
        expect![[r#"
            | …nux/linux/new/arch/x86/boot/bzImage is worse than …nux/linux/old/arch/x86/boot/bzImage under both
            | loads.
            |
            | largest wakeup latency, virtual µs · median of 10 seeds (range) · work per virtual second
            |                 full
            | …/linux/linux/linux/linux/linux/linux/linux/linux/linux/linux/linux/linux/old/arch/x86/boot/bzImage
            |   find           ↓52 (50–55)  8.0k
            |   find+launch    ↓52 (50–55)  1.9G
            | …/linux/linux/linux/linux/linux/linux/linux/linux/linux/linux/linux/linux/new/arch/x86/boot/bzImage
            |   find          ↑105 (90–120) 8.0k
            |   find+launch   ↑105 (90–120) 1.9G
            |
            | ↓ best, ↑ worst of a load · work: find in files, find+launch in bytes
            | p99.9 and p50: --all-figures
            |
            | find         …nux/linux/new/arch/x86/boot/bzImage worse than …nux/linux/old/arch/x86/boot/bzImage:
            |                max 2.00 ×, p99.9 2.00 × (10 of 10 seeds, p = 0.008), work 1.00 ×
            | find+launch  …nux/linux/new/arch/x86/boot/bzImage worse than …nux/linux/old/arch/x86/boot/bzImage:
            |                max 2.00 ×, p99.9 2.00 × (10 of 10 seeds, p = 0.008), work 1.00 ×
            | Better or worse: p ≤ 0.05, corrected for 4 figures, more than the margin of 10 %, and the 95 %
            | interval of the median leaves 1 out.
            |
            | Virtual time counts instructions: the order of kernels and the differences between them are
            | meaningful, absolute times are not. Caches, idle states and firmware are not modelled.
            | 4,000 wakeups every 500 µs of virtual time, fifo 90 · 1 CPU, 1000 MIPS · QEMU 10.0.13
            | repeat: wakescope lab run --kernel /home/somebody/linux/linux/linux/linux/linux/linux/linux/linux/linux/linux/linux/linux/linux/linux/linux/linux/linux/linux/linux/linux/old/arch/x86/boot/bzImage,/home/somebody/linux/linux/linux/linux/linux/linux/linux/linux/linux/linux/linux/linux/linux/linux/linux/linux/linux/linux/linux/linux/new/arch/x86/boot/bzImage --preempt full
        "#]],
    );
}

#[test]
fn twelve_kernels_and_more_columns_than_fit() {
    let mut lab = empty();
    for i in 1..=12 {
        for asked in ["default", "lazy", "full", "voluntary", "none"] {
            add(&mut lab, &format!("6.{i}-cloud"), asked, "file-move", (1_800 + i, 1_912 + i), 10);
        }
    }
    for cell in lab.cells.iter_mut().filter(|cell| cell.asked == "default") {
        cell.model = Some(Model::Lazy);
    }
    let shown = text(&lab, Extent::All, Style::default());
    assert_fits(&lab, &shown);
    // The largest latencies with the work beside them take two parts, the others one each.
    let parts =
        shown.lines().filter(|line| line.contains("none ") || line.contains("lazy  ")).count();
    assert_eq!(parts, 4, "{shown}");
    let first: String = shown.lines().skip(25).take(5).map(|line| format!("|{line}\n")).collect();
    expect![[r#"
        |   file-move   ↑1868 (1812–1924) 1.9G   ↑1868 (1812–1924) 1.9G   ↑1868 (1812–1924) 1.9G
        |               lazy                     default
        | 6.1-cloud
        |   file-move   ↓1857 (1801–1913) 1.9G   ↓1857 (1801–1913) 1.9G
        | 6.2-cloud
    "#]]
    .assert_eq(&first);
    assert_eq!(shown.lines().filter(|l| *l == " 6.12-cloud").count(), 4, "{shown}");
}

#[test]
fn comparisons_across_kernels_name_both() {
    let mut lab = journal();
    judge(&mut lab, &[("6.1-cloud/full", "6.1-rt/default"), ("6.1-cloud/none", "6.1-cloud/full")]);
    let shown = text(&lab, Extent::Screen, Style::default());
    assert!(shown.contains("6.1-rt/default better than 6.1-cloud/full"), "{shown}");
}

#[test]
fn a_stimulus_that_is_not_the_usual_one_is_named() {
    let mut lab = empty();
    add(&mut lab, "6.1", "full", "idle", (5, 6), 7);
    lab.settings.stimulus = wakescope_core::plan::Stimulus::Futex;
    let message = text(&lab, Extent::All, Style::default());
    assert!(
        message.contains(" 4,000 wakeups by futex every 500 µs of virtual time, fifo 90 "),
        "{message}"
    );
    lab.settings.between = wakescope_core::plan::Between::Processes;
    let message = text(&lab, Extent::All, Style::default());
    assert!(message.contains(" by futex between processes every 500 µs"), "{message}");
}

#[test]
fn hostile_names_do_not_reach_the_terminal() {
    let mut lab = empty();
    let hostile = "k\x1b]0;x\x07|`*\n\u{202e}";
    add(&mut lab, hostile, hostile, hostile, (5, 6), 7);
    add(&mut lab, hostile, "full", hostile, (5, 6), 7);
    lab.cells[0].status = Status::Failed;
    for text in [&mut lab.cells[0].reason, &mut lab.repeat, &mut lab.settings.emulator] {
        *text = hostile.into();
    }
    for cell in &mut lab.cells {
        cell.unit = hostile.into();
    }
    lab.cells[0].evidence = vec![hostile.into(), "```".into()];
    lab.published = vec![hostile.into()];
    judge(&mut lab, &[(&format!("{hostile}/full"), &format!("{hostile}/{hostile}"))]);
    lab.comparisons[0].reasons.push(hostile.into());
    lab.limits = limits(&lab.cells, &[parse_limit("1ms").unwrap()]);
    lab.limits[0].reason = hostile.into();
    for text in [text(&lab, Extent::Screen, Style::default()), markdown(&lab), footer(&lab, None)] {
        let control = |c: &char| c.is_control() && *c != '\n' || *c == '\u{202e}';
        assert_eq!(text.chars().find(control), None, "{text}");
    }
}

#[test]
fn what_fits_no_screen_is_shown_when_asked_for() {
    let lab = journal();
    let shown = |extent| text(&lab, extent, Style::default());
    let (screen, all) = (shown(Extent::Screen), shown(Extent::All));
    assert!(screen.lines().count() <= 34, "{screen}");
    assert!(screen.contains("--all-figures") && !screen.contains("p50 of wakeup latency"));
    assert!(!all.contains("--all-figures") && all.contains("p50 of wakeup latency"), "{all}");
    // Where there is room, nobody need ask.
    let mut small = empty();
    add(&mut small, "6.1-cloud", "none", "find", (103, 114), 2);
    assert_eq!(
        text(&small, Extent::Screen, Style::default()),
        text(&small, Extent::All, Style::default())
    );
}

#[test]
fn times_are_told_in_words() {
    for (s, want) in
        [(0, "0 s"), (59, "59 s"), (60, "1 min 0 s"), (372, "6 min 12 s"), (7_500, "2 h 5 min")]
    {
        assert_eq!(in_words(SpanNs(s * 1_000_000_000)), want);
    }
}

#[test]
fn what_it_took_is_no_part_of_the_table() {
    let mut lab = journal();
    let before = text(&lab, Extent::Screen, Style::default());
    assert_eq!(
        footer(&lab, Some(SpanNs(372_000_000_000))),
        " 120 cells, 36 cached, 6 min 12 s · verify: wakescope lab verify"
    );
    lab.cells.iter_mut().for_each(|cell| cell.cached = true);
    assert_eq!(text(&lab, Extent::Screen, Style::default()), before);
}
