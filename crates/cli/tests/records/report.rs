//! `wakescope report`, run as a command, on runs and on what is none.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::common::bench::{Ended, Test};
use crate::common::formats::{BINARY, PICTURES, texts};
use crate::common::measured::{RECORD, histogram_of, record};
use crate::common::reported::{measured, report, shown};
use serde_json::{Value, json};
use wakescope_core::plan::{Placement, Stimulus, Waker};
use wakescope_core::run::{Run, Thread};
use wakescope_core::units::{SpanNs, counted};
use wakescope_sys::clock::{self, Clock};
use wakescope_sys::file::effective_user;

/// A test with a run to report on in its folder `run`, in which much is in the record.
fn with_run(name: &str) -> Test {
    measured(name, &["--fail-above", "1h"])
}

/// Writes `json` as a run's record and reports on it in some format.
fn report_on(test: &Test, json: &[u8], format: &str) -> Ended {
    let file = test.dir.join("other.json");
    fs::write(&file, json).unwrap();
    let ended = report(test, &[&file.display().to_string(), "--format", format]);
    assert!(!ended.stderr.contains("panicked") && ended.code.is_some(), "{format}: {ended:?}");
    ended
}

#[test]
fn a_run_is_shown_as_text_by_its_folder_or_its_record() {
    let test = with_run("text");
    let run = record(&test.dir.join("run"));
    let text = shown(&test, &["run"]);
    assert!(text.starts_with("Worst wakeup "), "{text}");
    assert!(text.contains(&run.validity.verdict.to_string()), "{text}");
    for part in ["\n cpu ", "\n load ", "within the limit max ≤ 1.00 h", "kernel ", "lateness"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(!text.contains('\x1b'), "{text:?}");
    for args in [&["run/run.json"][..], &["run", "--format", "text"], &["run/"]] {
        assert_eq!(shown(&test, args), text);
    }
}

#[test]
fn json_is_the_record() {
    let test = with_run("json");
    let json = shown(&test, &["run", "--format", "json"]);
    crate::common::assert_valid_run(&json);
    let again = Run::from_json(json.as_bytes()).unwrap();
    assert_eq!(again, record(&test.dir.join("run")));
    // Keys of a later version of the same schema are kept.
    let mut value: Value = serde_json::from_str(&json).unwrap();
    value["later"] = json!([{"cause": "steal", "episodes": 3}]);
    let ended = report_on(&test, value.to_string().as_bytes(), "json");
    let kept: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(kept["later"], value["later"]);
}

/// The run with other samples, the same per wakeup and per expiry, on as many CPUs as there are lists.
fn with_samples(run: &Run, cpus: &[&[u64]]) -> Run {
    let mut run = run.clone();
    let threads = (0..).zip(cpus).map(|(cpu, samples)| {
        let mut d = run.threads[0].woken.clone();
        d.count = samples.len() as u64;
        (d.min_ns, d.max_ns) = (samples.iter().min().copied(), samples.iter().max().copied());
        d.max_at_ns = Some(0);
        d.sum_ns = samples.iter().sum();
        d.histogram = histogram_of(samples);
        Thread { cpu: Some(cpu), woken: d.clone(), expiries: d, ..Default::default() }
    });
    run.threads = threads.collect();
    run.limits.clear();
    let latest = cpus.concat().into_iter().max().unwrap_or(0);
    for worst in &mut run.worst {
        (worst.cpu, worst.expiry_ns, worst.missed) = (Some(0), 0, 0);
        worst.wakeup_latency_ns = worst.wakeup_latency_ns.min(latest);
    }
    let most = cpus.iter().map(|samples| samples.len() as u64).max();
    run.duration_ns = run.plan.interval_ns * most.unwrap_or(0);
    run.plan.cpus = (0..).zip(cpus).map(|(cpu, _)| cpu).collect();
    run.summarize();
    run
}

#[test]
fn realfeel_counts_below_each_threshold() {
    const US: u64 = 1_000;
    let test = with_run("realfeel");
    let samples: [&[u64]; 2] =
        [&[50 * US, 150 * US, 250_000 * US], &[60 * US, 600 * US, 3_000 * US, 70_000 * US]];
    let run = with_samples(&record(&test.dir.join("run")), &samples);
    let all = samples.concat();
    fs::write(test.dir.join("run").join(RECORD), run.to_json()).unwrap();
    let williams = "100us,200us,500us,700us,1ms,5ms,10ms,50ms,100ms";
    for (args, thresholds) in [
        (&[][..], williams),
        // In order, whatever the order asked for.
        (&["--thresholds", "1ms,55us", "--thresholds", "7ms"], "55us,1ms,7ms"),
        (&["--thresholds", "1h"], ""),
    ] {
        let block = shown(&test, &[&["run", "--format", "realfeel"], args].concat());
        assert!(block.contains("samples 7\n") && block.contains("maximum 250.0"), "{block}");
        assert!(block.contains("five nines: 7 samples are too few"), "{block}");
        let below: Vec<&str> = block.lines().filter(|l| l.contains(" % below ")).collect();
        let wanted: Vec<String> = thresholds
            .split(',')
            .filter(|t| !t.is_empty())
            .map(|t| {
                let threshold = t.parse::<SpanNs>().unwrap().0;
                let count = all.iter().filter(|&&s| s < threshold).count();
                format!("({})", counted(count as u64, "sample"))
            })
            .collect();
        assert_eq!(below.len(), wanted.len(), "{block}");
        for (line, want) in below.iter().zip(&wanted) {
            assert!(line.ends_with(want.as_str()), "{want}: {block}");
        }
    }
}

#[test]
fn a_report_goes_to_a_file_where_one_is_named() {
    let test = with_run("file");
    for format in ["text", "json", "realfeel"] {
        let printed = shown(&test, &["run", "--format", format]);
        assert_eq!(shown(&test, &["run", "--format", format, "-o", "out"]), "");
        assert_eq!(fs::read_to_string(test.dir.join("out")).unwrap(), printed);
    }
    let ended = report(&test, &["run", "-o", "not/there"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    assert!(ended.stderr.contains("cannot write not/there: No such file"), "{}", ended.stderr);
}

#[test]
fn an_ending_that_says_another_format_is_refused() {
    let test = Test::new("endings");
    test.write_run("run", &crate::common::made_up::run(5));
    for (args, message) in [
        ("-o x.pdf", "wakescope cannot write files that end in .pdf"),
        ("-o x.pdf --format html", "the requested format does not match a name that ends in .pdf"),
        ("-o x.png --format svg", "the requested format does not match a name that ends in .png"),
        (
            "-o x.json --format html",
            "the requested format does not match a name that ends in .json",
        ),
        (
            "-o x.html --format text",
            "the requested format does not match a name that ends in .html",
        ),
        (
            "-o x.csv.gz --format html",
            "the requested format does not match a name that ends in .csv",
        ),
        ("-o x.csv.xz --format csv", "the requested format does not match a name that ends in .xz"),
        ("-o x.xml", ".html .htm .svg .png .md .markdown .json .csv .hlog .hgrm .prom"),
    ] {
        let ended = report(&test, &[&["run"], &*args.split(' ').collect::<Vec<_>>()].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{args}: {ended:?}");
        assert!(ended.stderr.contains(message), "{args}: {}", ended.stderr);
        assert!(!test.dir.join(args.split(' ').nth(1).unwrap()).exists(), "{args}");
    }
    for args in [
        "-o x.json --format cyclictest-json",
        "-o x.json --format trace",
        "-o x.txt --format md",
        "-o x.txt",
        "-o x.hist --format cyclictest",
        "-o x.prom --format openmetrics",
        "-o x.csv.gz --format csv",
        "-o 6.12",
    ] {
        assert_eq!(shown(&test, &[&["run"], &*args.split(' ').collect::<Vec<_>>()].concat()), "");
    }
}

#[test]
fn a_folder_of_runs_stands_for_them() {
    let test = Test::new("folders");
    let runs = test.write_runs("all", &[5, 7, 9]);
    fs::create_dir(test.dir.join("all/notes")).unwrap();
    let one_by_one = shown(&test, &runs.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(shown(&test, &["all"]), one_by_one);
    for (args, text) in [
        (&["all", "--format", "csv"][..], "--format csv shows one run"),
        (
            &["all/notes"],
            "all/notes contains no run\n  neither it nor a folder in it contains a run.json",
        ),
    ] {
        let ended = report(&test, args);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        assert!(ended.stderr.contains(text), "{}", ended.stderr);
    }
}

#[test]
fn the_only_run_of_a_file_has_no_name() {
    let test = Test::new("only-run");
    let runs = test.write_runs("all", &[5]);
    shown(&test, &[&runs[0], "--format", "cyclictest", "-o", "c.hist"]);
    let ended = report(&test, &["c.hist#wrong"]);
    let want = "wakescope: c.hist holds no run named `wrong`\n  → c.hist\n";
    assert_eq!((ended.code, &*ended.stderr), (Some(2), want));
}

#[test]
fn what_a_folder_of_runs_holds_besides_is_named() {
    let mut test = Test::new("folders-besides");
    let runs = test.write_runs("all", &[5, 7]);
    let one_by_one = shown(&test, &runs.iter().map(String::as_str).collect::<Vec<_>>());
    test.write_runs("all/series", &[9]);
    fs::create_dir(test.dir.join("all/watch")).unwrap();
    fs::write(test.dir.join("all/watch/2026-11-21T01-00-00.jsonl"), "").unwrap();
    let left_out = "left out: all/series is a folder of runs: wakescope report all/series\n\
                    left out: all/watch is a watch: wakescope report all/watch\n";
    let ended = report(&test, &["all"]);
    assert_eq!((ended.stdout, ended.stderr.as_str()), (one_by_one, left_out));
    fs::create_dir(test.dir.join("all/closed")).unwrap();
    fs::set_permissions(test.dir.join("all/closed"), fs::Permissions::from_mode(0o000)).unwrap();
    if effective_user() == 0 {
        test.become_nobody();
    }
    let ended = report(&test, &["all"]);
    let left_out = format!("left out: all/closed cannot be looked into\n{left_out}");
    assert_eq!((ended.code, ended.stderr), (Some(0), left_out));
}

#[test]
fn what_is_no_run_is_refused_with_a_remedy() {
    let test = Test::new("no-run");
    fs::create_dir_all(test.dir.join("directory").join(RECORD)).unwrap();
    fs::create_dir(test.dir.join("empty")).unwrap();
    fs::write(test.dir.join("text"), "hello").unwrap();
    fs::write(test.dir.join("nothing"), "").unwrap();
    fs::write(test.dir.join("newer"), r#"{"schema": "wakescope.run/3", "all": "new"}"#).unwrap();
    fs::write(test.dir.join("older"), r#"{"schema": "wakescope.run/1", "id": "x"}"#).unwrap();
    let explained = r#"{"schema": "wakescope.run/1", "id": "x", "explanation": {}}"#;
    fs::write(test.dir.join("older-explained"), explained).unwrap();
    fs::write(test.dir.join("other"), r#"{"schema": "wakescope.load/1"}"#).unwrap();
    fs::write(test.dir.join("json"), "[1, 2]").unwrap();
    fs::write(test.dir.join("unknown"), r#"{"b": 1, "a": {"c": []}}"#).unwrap();
    let samples = "{\"cpu\": 0, \"expiry_ns\": 0}\n{\"cpu\": 0, \"expiry_ns\": 1}\n";
    fs::write(test.dir.join("samples.jsonl"), samples).unwrap();
    let episodes = "{\"schema\": \"wakescope.episode/1\"}\n{\"comm\": \"a\"}\n";
    fs::write(test.dir.join("episodes.jsonl"), episodes).unwrap();
    fs::write(test.dir.join("deep"), "[".repeat(200_000)).unwrap();
    for (args, message) in [
        ("missing", "→ name a run folder"),
        ("empty", "→ name a run folder"),
        ("directory", "→ name the folder of one run"),
        ("directory/run.json", "→ name a run folder"),
        (".", "by default it is under runs/"),
        ("text", "neither a run record nor the output of a supported program"),
        ("nothing", "it is empty (0 bytes)"),
        ("json", "neither a run record nor"),
        ("deep", "neither a run record nor"),
        ("newer", "schema `wakescope.run/3`, this wakescope reads `wakescope.run/2`"),
        ("older", "schema `wakescope.run/1`: it was measured with an earlier version of wakescope"),
        ("older", "→ measure again with `wakescope measure`"),
        ("older-explained", "→ measure again with `wakescope explain`"),
        ("newer", "use the version that wrote it, or a newer one"),
        ("other", "its schema is `wakescope.load/1`"),
        ("unknown", "it is JSON, but neither a run record nor the output of a supported program"),
        ("unknown", "its keys are `a`, `b`"),
        ("samples.jsonl", "it is JSON, but neither a run record nor the output of a supported"),
        ("samples.jsonl", "its keys are `cpu`, `expiry_ns`"),
        ("episodes.jsonl", "as a run: its schema is `wakescope.episode/1`"),
        (
            "text --format xml",
            "possible values: text, html, svg, png, md, json, realfeel, cyclictest,",
        ),
        ("text --thresholds 5", "write 5us, 5ms or 5s"),
        ("text --picture pie", "available: exceedance, histogram"),
        ("text --picture course", "--picture does not apply to this format"),
        ("text --line 5us --format md", "--line does not apply to this format"),
        ("text --title a", "--title does not apply to this format"),
        ("text json --format json", "--format json shows one run"),
    ] {
        let ended = report(&test, &args.split(' ').collect::<Vec<_>>());
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{args}: {ended:?}");
        assert!(ended.stderr.contains(message), "{args}: {}", ended.stderr);
        assert!(!ended.stderr.contains("panicked"), "{args}: {}", ended.stderr);
    }
}

/// Writes the runs of pairs of CPUs, each median that of its place, and gives their folder.
fn write_matrix(test: &Test, folder: &str, pairs: &[(u32, u32)]) {
    for (us, &(waker, probe)) in (1..).zip(pairs) {
        let mut run = crate::common::made_up::run(us);
        let (placement, cpus) = match waker == probe {
            true => (Placement::SameCpu, Vec::new()),
            false => (Placement::CrossCpu, vec![waker]),
        };
        run.threads[0].cpu = Some(probe);
        run.plan.cpus = vec![probe];
        run.plan.stimulus = Stimulus::Futex;
        run.plan.waker = Some(Waker { placement, cpus, ..Waker::of_probe(Some(90)) });
        test.write_run(&format!("{folder}/{waker}-{probe}"), &run);
    }
}

#[test]
fn pairs_of_cpus_are_a_heat_map_and_a_table() {
    let test = Test::new("report-matrix");
    write_matrix(&test, "two", &[(0, 0), (0, 1), (1, 0), (1, 1)]);
    let three = [(0, 0), (0, 1), (0, 3), (1, 0), (1, 1), (3, 0), (3, 1), (3, 3)];
    write_matrix(&test, "three", &three);
    let shown = |folder: &str, format: &str| shown(&test, &[folder, "--format", format]);
    let drawn = |folder: &str| {
        let ended = report(&test, &[folder, "--format", "svg", "--picture", "matrix"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.stdout
    };
    for (folder, missing) in [("two", false), ("three", true)] {
        let (svg, page) = (drawn(folder), shown(folder, "html"));
        assert!(svg.contains("Median lateness by CPU of waker and probe, in µs"), "{svg}");
        assert_eq!(svg.contains("not measured: 1 of 9 pairs (waker:probe): 1:3"), missing, "{svg}");
        assert!(page.contains("data-picture=\"matrix\"") && page.contains("probe on CPU 1"));
        assert_eq!(page.contains("<td class=\"n\">not measured</td>"), missing);
    }
    test.write_runs("runs", &[5, 7]);
    assert!(!shown("runs", "html").contains("data-picture=\"matrix\""));
    let ended = report(&test, &["runs", "--format", "svg", "--picture", "matrix"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
    assert!(ended.stderr.contains("it needs runs of pairs of 2 to 64 CPUs"), "{}", ended.stderr);
}

#[test]
fn a_matrix_may_have_more_runs_than_curves_can_be_told_apart() {
    let test = Test::new("report-large-matrix");
    let pairs: Vec<(u32, u32)> = (0..9).flat_map(|w| (0..9).map(move |p| (w, p))).collect();
    write_matrix(&test, "nine", &pairs);
    let ended = report(&test, &["nine", "--format", "svg", "--picture", "matrix"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let page = shown(&test, &["nine", "--format", "html"]);
    assert!(page.contains("data-picture=\"matrix\""), "the page has no heat map");
    let said = "The 12 of 81 pairs of CPUs with the latest wakeups";
    assert!(page.contains(said) && page.contains("waker 8, probe 8"), "the latest have no curves");
    let curves = page.matches("<li><button type=\"button\" aria-pressed").count();
    assert_eq!(curves, 12, "the other pairs have curves");
    for format in ["svg", "md"] {
        let ended = report(&test, &["nine", "--format", format]);
        assert!(ended.code == Some(2) && ended.stderr.contains("81 curves"), "{ended:?}");
    }
}

/// The tests of hostile records, of privacy and of memory go through these lists.
#[test]
fn the_lists_of_formats_and_pictures_are_complete() {
    let test = Test::new("report-lists");
    let listed = |option: &str, before: &str| {
        let ended = report(&test, &["run", option, "nonsense"]);
        let values =
            ended.stderr.split(before).nth(1).and_then(|rest| rest.split([']', '\n']).next());
        let values = values.unwrap_or_else(|| panic!("{option}: {ended:?}")).split(',');
        let names = values.map(|name| name.split_whitespace().collect::<String>());
        names.collect::<BTreeSet<_>>()
    };
    let set = |names: &mut dyn Iterator<Item = &str>| names.map(str::to_owned).collect();
    let formats: BTreeSet<String> = set(&mut texts().chain([BINARY]));
    assert_eq!(listed("--format", "[possible values:"), formats);
    let pictures: BTreeSet<String> = set(&mut PICTURES.into_iter());
    assert_eq!(listed("--picture", "available:"), pictures);
}

/// Refused with an error, or shown consistently.
#[track_caller]
fn check_damaged(test: &Test, json: &[u8], what: &str) -> bool {
    let ended = report_on(test, json, "json");
    if ended.code == Some(0) {
        assert!(Run::from_json(ended.stdout.as_bytes()).is_ok(), "{what}: {ended:?}");
        for format in ["text", "realfeel", "html", "md"] {
            let ended = report_on(test, json, format);
            assert_eq!(ended.code, Some(0), "{what} as {format}: {ended:?}");
            assert!(!ended.stdout.contains("NaN"), "{what} as {format}");
        }
        return true;
    }
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{what}: {ended:?}");
    assert!(ended.stderr.contains("other.json"), "{what}: {ended:?}");
    false
}

#[test]
fn a_record_cut_short_is_refused() {
    let test = with_run("cut");
    let whole = fs::read(test.dir.join("run").join(RECORD)).unwrap();
    let places = (0..40).map(|i| whole.len() * i / 40).chain([1, whole.len() - 1]);
    for length in places {
        assert!(!check_damaged(&test, &whole[..length], &format!("{length} bytes")));
    }
}

#[test]
fn a_damaged_record_is_refused_or_consistent() {
    const VARIABLE: &str = "WAKESCOPE_TEST_SEED";
    let seed = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or_else(|| clock::read(Clock::Realtime));
    let test = with_run("damaged");
    let whole = fs::read(test.dir.join("run").join(RECORD)).unwrap();
    let mut state = seed;
    // A linear congruential generator (Knuth's MMIX); its upper bits are good enough.
    let mut below = |limit: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % limit
    };
    for round in 0..120 {
        let mut json = whole.clone();
        for _ in 0..=below(3) {
            let at = below(json.len());
            match below(4) {
                0 => json[at] ^= 1 << below(8),
                // More often than by chance, something that is still JSON.
                1 => json[at] = b"0123456789-.,:[]{}\"e"[below(20)],
                2 => drop(json.remove(at)),
                _ => json.insert(at, b'9'),
            }
        }
        check_damaged(&test, &json, &format!("round {round} of {VARIABLE}={seed}"));
    }
}

#[test]
fn numbers_at_the_limits_do_no_harm() {
    let test = with_run("numbers");
    let run = record(&test.dir.join("run"));
    let two: [&[u64]; 2] = [&[5_000, 7_000, 90_000, 95_000], &[6_000, 8_000, 91_000, 96_000]];
    let json = with_samples(&run, &two).to_json();
    let base: Value = serde_json::from_str(&json).unwrap();
    // As many samples as a number can hold in all, and as many on each of two CPUs.
    for (each, is_taken) in [(u64::MAX / 8, true), (u64::MAX / 4, false)] {
        let mut many = base.clone();
        many.as_object_mut().unwrap().remove("summary");
        // No run is long enough for them.
        many["plan"]["interval_ns"] = 0.into();
        for thread in many["threads"].as_array_mut().unwrap() {
            for kind in ["woken", "expiries"] {
                let d = &mut thread[kind];
                for bucket in d["histogram"].as_array_mut().unwrap() {
                    bucket[2] = each.into();
                }
                (d["count"], d["sum_ns"]) = ((each * 4).into(), u64::MAX.into());
            }
        }
        let many = many.to_string();
        assert_eq!(check_damaged(&test, many.as_bytes(), "many samples"), is_taken);
    }
    // Samples as late as a number can hold.
    let lates = with_samples(&run, &[&[0, 1, (u64::MAX - 1) >> 1, u64::MAX >> 1]]);
    assert!(check_damaged(&test, lates.to_json().as_bytes(), "late samples"));
    let mut last = serde_json::to_value(&lates).unwrap();
    for kind in ["woken", "expiries"] {
        last["threads"][0][kind]["max_ns"] = u64::MAX.into();
        last["threads"][0][kind]["histogram"][2][1] = u64::MAX.into();
    }
    check_damaged(&test, last.to_string().as_bytes(), "the latest of all");
    for number in [json!(u64::MAX), json!(0), json!(-1), json!(1e300), json!(null), json!([])] {
        for at in leaves(&base, &|leaf| leaf.is_number()) {
            let mut json = base.clone();
            *json.pointer_mut(&at).unwrap() = number.clone();
            // One of the formats for most, all of them where it is taken.
            check_damaged(&test, json.to_string().as_bytes(), &format!("{at} = {number}"));
        }
    }
}

#[test]
fn hostile_text_does_not_reach_the_terminal() {
    const HOSTILE: &str = "\u{1b}[31m\u{9b}31m\r\u{7}\u{202e}\u{0}evil";
    let test = with_run("hostile");
    let json = fs::read_to_string(test.dir.join("run").join(RECORD)).unwrap();
    let mut base: Value = serde_json::from_str(&json).unwrap();
    base["host"]["hypervisor"] = "KVM".into();
    base["host"]["preemption"]["because"] = "it says so".into();
    base["validity"]["verdict"] = "invalid".into();
    base["validity"]["findings"] =
        json!([{"code": "steal", "severity": "error", "message": "m", "hint": "h"}]);
    base["load"][0]["fault"] = "f".into();
    base["plan"]["load"] = json!(["cpu"]);
    let limit = &mut base["limits"][0];
    (limit["outcome"], limit["reason"]) = ("inconclusive".into(), "r".into());
    let mut taken = 0;
    for at in leaves(&base, &|leaf| leaf.is_string()) {
        let mut json = base.clone();
        *json.pointer_mut(&at).unwrap() = HOSTILE.into();
        for format in ["text", "realfeel", "json"] {
            let ended = report_on(&test, json.to_string().as_bytes(), format);
            let said = ended.stdout + &ended.stderr;
            let harmful = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
            // In JSON, control characters are escaped and all else is as it was.
            let harmful = said.chars().find(|&c| harmful(c) && (format != "json" || c.is_ascii()));
            assert_eq!(harmful, None, "{at} as {format}: {said:?}");
            taken += u32::from(ended.code == Some(0));
        }
    }
    assert!(taken > 30, "only {taken} of these texts were taken");
}

/// Pointers to the values in `json` that are `wanted`, histograms apart.
fn leaves(json: &Value, wanted: &dyn Fn(&Value) -> bool) -> Vec<String> {
    let inside = |key: &str, value: &Value| {
        let below = leaves(value, wanted).into_iter();
        below.map(|rest| format!("/{key}{rest}")).collect::<Vec<_>>()
    };
    match json {
        Value::Object(map) => map
            .iter()
            .filter(|(key, _)| *key != "histogram")
            .flat_map(|(key, value)| inside(key, value))
            .collect(),
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.flat_map(|(i, value)| inside(&i.to_string(), value)).collect()
        }
        leaf if wanted(leaf) => vec![String::new()],
        _ => Vec::new(),
    }
}

#[test]
fn the_folder_is_left_as_it_was() {
    let test = with_run("untouched");
    let folder: &Path = &test.dir.join("run");
    let before = fs::read(folder.join(RECORD)).unwrap();
    shown(&test, &["run"]);
    assert_eq!(crate::common::measured::names(folder), [RECORD]);
    assert_eq!(fs::read(folder.join(RECORD)).unwrap(), before);
}
