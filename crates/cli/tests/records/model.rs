//! `wakescope model`, run as a command.

use std::fs;

use crate::common::bench::{Ended, Test, kill};
use crate::common::measured::names;
use crate::common::{Checker, assert_valid_run, read};
use expect_test::{Expect, expect, expect_file};
use serde_json::Value;
use wakescope_core::run::Run;
use wakescope_core::units::SpanNs;

/// A loop under a spin lock that takes 400 µs, and drops the lock each 40 µs where rules let it.
const PRUNE: &str = r#"
schema = "wakescope.scenario/1"
name = "prune"
about = "a long loop under a spin lock"

[machine]
cpus = 1
tick = "100Hz"

[[task]]
name = "probe"
policy = "fifo:80"
period = "2048Hz"

[[task]]
name = "find"
path = "find"

[path]
find = [
  { user = { exponential = "300us" } },
  { call = "prune_dcache", do = [
    { spin_lock = "dcache_lock" },
    { repeat = 20, do = [{ compute = "20us" }, { lock_break = "dcache_lock", every = 2 }] },
    { spin_unlock = "dcache_lock" },
  ] },
  "work",
]
"#;

/// A folder with that scenario.
fn test(name: &str) -> Test {
    let test = Test::new(name);
    fs::write(test.dir.join("prune.toml"), PRUNE).unwrap();
    test
}

fn model(test: &Test, args: &[&str]) -> Ended {
    let ended = test.ended(&[&["model"], args].concat());
    assert!(!ended.stderr.contains("panicked") && ended.code.is_some(), "{ended:?}");
    ended
}

/// Runs 2,100 wakeups for each model.
fn run(test: &Test, args: &[&str]) -> Ended {
    model(test, &[&["run", "prune.toml", "--samples", "2100"], args].concat())
}

#[track_caller]
fn check(got: &Ended, code: i32, want: &Expect) {
    assert_eq!(got.code, Some(code), "{got:?}");
    assert!(got.stdout.lines().all(|line| line.chars().count() <= 100), "{got:?}");
    want.assert_eq(&format!("stdout:\n{}stderr:\n{}", got.stdout, got.stderr));
}

fn record(test: &Test, path: &str) -> String {
    fs::read_to_string(test.dir.join(path).join("run.json")).unwrap()
}

#[test]
fn a_table_shows_what_each_model_gives() {
    let test = test("model-table");
    let args = ["--preempt", "none,both,rt", "--seeds", "2", "--out", "out"];
    check(
        &run(&test, &args),
        0,
        &expect![[r#"
            stdout:
            prune
             a long loop under a spin lock
             medians of 2 seeds; the samples are those of all seeds together

             times are simulated
             rules  samples      p50    p99.9      max               (range)  find/s
             none     4,200  44.2 µs   402 µs   402 µs    (402 µs to 403 µs)    1.4k
             both     4,200  7.03 µs  42.6 µs  42.7 µs  (42.6 µs to 42.7 µs)    1.4k
             rt       4,200  2.70 µs  2.70 µs  2.70 µs  (2.70 µs to 2.70 µs)    1.4k

             the latest wakeup of each, and the largest share of it
               none: 403 simulated µs late: 400 simulated µs no preemption point in prune_dcache, in find[101]
               both: 42.7 simulated µs late: 39.9 simulated µs preemption off in prune_dcache, in find[101]
               rt: 2.70 simulated µs late: 1.50 simulated µs scheduler in switch

             runs: out   show: wakescope report out/*/*
            stderr:
        "#]],
    );
}

/// A probe behind a task that never sleeps, and goes on every `step`.
fn starving(period: &str, step: &str) -> String {
    format!(
        r#"
schema = "wakescope.scenario/1"
name = "starving"
about = "a probe that never runs"

[machine]
cpus = 1

[[task]]
name = "probe"
policy = "fifo:1"
period = "{period}"

[[task]]
name = "hog"
policy = "fifo:2"
path = "hog"

[path]
hog = [{{ user = "{step}" }}]
"#
    )
}

#[test]
fn a_simulation_without_samples_ends_and_says_how_far_it_came() {
    let args = ["run", "starving.toml", "--preempt", "full", "--samples", "100", "--out", "out"];
    for (period, step, how_far) in [
        ("1s", "1ns", "within 40.0 ms simulated time, and none in the last 100,000,000 steps"),
        ("1ms", "1ms", "within 2.00 s simulated time"),
    ] {
        let test = Test::new("model-starving");
        fs::write(test.dir.join("starving.toml"), starving(period, step)).unwrap();
        let ended = model(&test, &args);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(3), ""), "{ended:?}");
        let words = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "rules samples p50 p99.9 max full 0 – – –",
            "full, seed 1: invalid: the probe probe gave no sample",
            &format!(
                "full, seed 1: invalid: the probes gave 0 wakeups of 100 {how_far}: no figure holds"
            ),
        ] {
            assert!(words.contains(part), "{part}: {words}");
        }
        assert_valid_run(&record(&test, "out/full/1"));
    }
}

#[test]
fn a_simulation_that_is_ended_early_says_so() {
    let test = test("model-ended-early");
    let args = ["model", "run", "prune.toml", "--preempt", "full", "--samples", "1000000000"];
    let more = ["--seeds", "2", "--jobs", "1", "--out", "out"];
    let mut running = test.start_command(&[&args[..], &more].concat());
    running.await_line("simulating: ");
    kill("INT", &[running.pid()]);
    let ended = running.output();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(3), ""), "{ended:?}");
    assert!(ended.stdout.contains(" full, seed 1: ended early: "), "{ended:?}");
    assert!(ended.stdout.contains(" ended early: 1 of 2 was not begun"), "{ended:?}");
    let record = record(&test, "out/full/1");
    assert_valid_run(&record);
    let run = Run::from_json(record.as_bytes()).unwrap();
    let notes = run.validity.findings.iter().filter(|finding| finding.code == "interrupted");
    assert!(notes.count() >= 1, "{:?}", run.validity);
}

#[test]
fn the_latest_wakeup_is_drawn() {
    let test = test("model-timeline");
    let args = ["--preempt", "none", "--out", "out", "--timeline"];
    let ended = run(&test, &args);
    let drawn = ended.stdout.split_once(" runs: ").map(|(_, drawn)| drawn.to_owned()).unwrap();
    assert!(drawn.lines().skip(1).all(|line| line.chars().count() <= 80), "{drawn}");
    check(
        &Ended { stdout: drawn, ..ended },
        0,
        &expect![[r#"
            stdout:
            out   show: wakescope report out/*/*

             none: 403 simulated µs late · a column is 7.32 µs
                              E                                                      R
             CPU 0       AAAaa#AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA+aaaaa
               preempt   111··1111111111111111111111111111111111111111111111111111111······
               irqs off  ·····█······················································█·····
               resched   ·····!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!·····
             dcache_lock AAA··AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA·····
             E expiry, R response; # interrupt, % softirq, + scheduler, ~ spins, - idle
             a task's user mode is a small letter, its kernel mode a capital:
               a find: prune_dcache
               b probe: clock_nanosleep
             beside a lock stands who holds it, and below it who waits for it
            stderr:
        "#]],
    );
    let refused = run(&test, &["--timeline=11"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("a number from 1 to 10"), "{refused:?}");
}

#[test]
fn the_nth_latest_wakeup_is_that_of_all_seeds() {
    let test = test("model-nth");
    let args = ["--preempt", "none", "--seeds", "3", "--no-explain", "--out", "out"];
    let ended = run(&test, &[&args[..], &["--timeline=9"]].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let late_of = |seed: u32| -> Vec<u64> {
        let run: Run = serde_json::from_str(&record(&test, &format!("out/none/{seed}"))).unwrap();
        run.worst.iter().map(|episode| episode.wakeup_latency_ns).collect()
    };
    let of_seeds = [1, 2, 3].map(late_of);
    let mut all = of_seeds.concat();
    all.sort_unstable();
    let shown =
        |ns: u64| format!(" none: {} late", SpanNs(ns).to_string().replace(' ', " simulated "));
    let ninth = shown(all[all.len() - 9]);
    // No seed has the same one alone.
    assert!(of_seeds.iter().all(|late| shown(late[8]) != ninth), "{of_seeds:?}");
    assert!(ended.stdout.contains(&ninth), "{ninth}: {ended:?}");
}

#[test]
fn models_that_are_not_drawn_are_named() {
    let test = test("model-not-drawn");
    let few = ["run", "prune.toml", "--no-explain", "--samples", "2", "--timeline=3", "--out"];
    let ended = model(&test, &[&few[..], &["few", "--preempt", "none"]].concat());
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("there is no wakeup to draw\n"), "{ended:?}");
    fs::write(test.dir.join("half.toml"), HALF_CHANGED).unwrap();
    let half = ["run", "half.toml", "--preempt", "none,full", "--timeline", "--out", "half"];
    let ended = model(&test, &half);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stdout.contains(" none: "), "{ended:?}");
    assert!(ended.stderr.contains("not drawn, without 1 wakeup: full"), "{ended:?}");
}

#[test]
fn wakeups_are_drawn_into_files() {
    let test = test("model-drawing");
    let args = |out: &'static str, file: &'static str| {
        ["--preempt", "none,both", "--seeds", "2", "--no-explain", "--out", out, "-o", file]
    };
    for (out, file, beginning) in [
        ("a", "a.svg", &b"<svg xmlns"[..]),
        ("b", "b.png", b"\x89PNG\r\n"),
        ("c", "c.html", b"<!doctype html>"),
    ] {
        let ended = run(&test, &args(out, file));
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(
            ended.stdout.contains(" runs: ") && !ended.stdout.contains("E expiry"),
            "{ended:?}"
        );
        assert!(fs::read(test.dir.join(file)).unwrap().starts_with(beginning), "{file}");
    }
    let svg = fs::read_to_string(test.dir.join("a.svg")).unwrap();
    for part in ["under none: 403 simulated µs late", "under both: ", ">dcache_lock<"] {
        assert!(svg.contains(part), "{part}: {svg}");
    }
    let page = fs::read_to_string(test.dir.join("c.html")).unwrap();
    let part =
        "wakescope model run prune.toml --preempt none,both --seeds 2 --seed 1 --samples 2100";
    for part in ["both, seed 2", "data-picture=\"timeline-1\"", "dcache_lock", part, "simulated"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("id=\"published\""), "the scenario has none");
    fs::write(
        test.dir.join("prune.toml"),
        PRUNE.replace("[machine]", "published = [\"<5 ms>\"]\n[machine]"),
    )
    .unwrap();
    let ended = run(&test, &args("d", "d.html"));
    assert!(ended.stdout.contains(" published figures: measured elsewhere"), "{ended:?}");
    let page = fs::read_to_string(test.dir.join("d.html")).unwrap();
    assert!(page.contains("id=\"published\"") && page.contains("&lt;5 ms&gt;"));
}

/// A rule that `full` breaks and `none` keeps.
const HALF_CHANGED: &str = r#"
schema = "wakescope.scenario/1"
name = "half-changed"

[machine]
cpus = 1
tick = "off"

[[task]]
name = "probe"
policy = "fifo:80"
period = "1ms"

[[task]]
name = "high"
policy = "fifo:70"
path = "high"

[[task]]
name = "low"
path = "low"

[path]
high = [{ block = "3ms" }, { per_cpu = "v", do = [{ compute = "10us" }] }]
low = [{ per_cpu = "v", do = [{ compute = "700us" }] }, { user = "100us" }]
"#;

#[test]
fn a_broken_rule_stands_on_the_page_and_is_why_there_is_none() {
    let test = Test::new("model-broken-page");
    fs::write(test.dir.join("half.toml"), HALF_CHANGED).unwrap();
    let run = |models, page| {
        let args = ["run", "half.toml", "--samples", "1000", "--preempt", models, "-o", page];
        model(&test, &args)
    };
    let broken = "full, seed 1: broke a rule: a variable of the CPU was seen half-changed, on CPU 0 after 3.";
    let both = run("none,full", "both.html");
    assert_eq!(both.code, Some(2), "{both:?}");
    let page = fs::read_to_string(test.dir.join("both.html")).unwrap();
    assert!(page.contains(broken), "{page}");
    assert!(!page.contains("Every assumption that could be verified held"), "{page}");
    let none = run("full", "none.html");
    assert_eq!(none.code, Some(2), "{none:?}");
    for part in
        ["there is no wakeup to draw in none.html", broken, "ms simulated time", "model check"]
    {
        assert!(none.stderr.contains(part), "{part}: {none:?}");
    }
    assert!(!test.dir.join("none.html").exists());
    let unnamed = model(&test, &["run", ""]);
    assert!(unnamed.stderr.contains("the name of the scenario is empty"), "{unnamed:?}");
}

#[test]
fn drawings_that_cannot_be_are_refused_before_anything_is_simulated() {
    let test = test("model-no-drawing");
    for (args, want) in [
        (&["-o", "a.pdf"][..], "cannot write files that end in .pdf"),
        (&["-o", "a"], "a: the name says no format"),
        (&["-o", "a.html", "--seeds", "11"], "66 runs are too many for a page"),
        (&["--json", "--timeline"], "--timeline draws where --json prints"),
    ] {
        let ended = run(&test, &[args, &["--out", "out"]].concat());
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{args:?}: {ended:?}");
        assert!(ended.stderr.contains(want), "{args:?}: {ended:?}");
        assert!(!test.dir.join("out").exists(), "{args:?}");
    }
}

#[test]
fn folders_that_cannot_be_are_refused_before_anything_is_simulated() {
    let test = test("model-no-folder");
    assert_eq!(run(&test, &["--preempt", "none", "--seeds", "1", "--out", "out"]).code, Some(0));
    let old = record(&test, "out/none/1");
    fs::write(test.dir.join("file"), "").unwrap();
    fs::create_dir_all(test.dir.join("killed/none/2")).unwrap();
    fs::write(test.dir.join("killed/none/2/run.json.next"), "").unwrap();
    // One that would take until tomorrow.
    let long = ["run", "prune.toml", "--preempt", "full,none", "--samples", "1000000000"];
    for (out, want) in [
        ("out", "out/none/1 already holds a run"),
        ("killed", "killed/none/2/run.json.next already exists"),
        ("file", "cannot create the run's folder file/full/1: Not a directory"),
        ("/dev/full/x", "cannot create the run's folder /dev/full/x/full/1: Not a directory"),
        ("/proc/x", "cannot create the run's folder /proc/x/full/1: "),
    ] {
        let ended = model(&test, &[&long[..], &["--seeds", "2", "--out", out]].concat());
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{out}: {ended:?}");
        assert!(ended.stderr.contains(want) && ended.stderr.contains("--out"), "{ended:?}");
    }
    assert_eq!(names(&test.dir.join("out")), ["none"]);
    assert_eq!(names(&test.dir.join("killed")), ["none"]);
    assert_eq!(record(&test, "out/none/1"), old);
    // Without --out, below the current folder.
    fs::write(test.dir.join("runs"), "").unwrap();
    let ended = model(&test, &long);
    assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{ended:?}");
    assert!(ended.stderr.contains("cannot create the run's folder runs: Not a dir"), "{ended:?}");
}

/// `UPDATE_EXPECT=1` makes the pictures anew.
#[test]
fn the_pictures_of_the_page_for_newcomers_are_made_by_its_commands() {
    let test = Test::new("model-pictures");
    let page = read("docs/model/late-wakeup.md");
    let commands: Vec<&str> =
        page.split('`').filter(|text| text.starts_with("wakescope model run ")).collect();
    assert_eq!(commands.len(), 5, "{commands:?}");
    for command in commands {
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        let [.., option, file] = words[..] else { panic!("{command}") };
        assert_eq!(option, "-o", "{command}");
        assert_eq!(
            test.ended(&[&words[..], &["--out", file.trim_end_matches(".svg")]].concat()).code,
            Some(0)
        );
        let picture = format!("late-wakeup-{file}");
        assert!(page.contains(&format!("(../images/{picture})")), "{picture}");
        let drawn = fs::read_to_string(test.dir.join(file)).unwrap();
        expect_file![format!("../../../../docs/images/{picture}")].assert_eq(&drawn);
        // What the page says of the picture is in it, but where it says that another one is the same.
        let late = drawn.split(" simulated").next().unwrap().rsplit(' ').next().unwrap();
        let caption = page.split(&format!("](../images/{picture})")).next().unwrap();
        let caption = caption.rsplit("![").next().unwrap();
        assert!(file == "lazy.svg" || caption.contains(&format!(" {late} ")), "{caption}: {late}");
    }
}

#[test]
fn the_records_are_runs_that_report_and_compare_read() {
    let test = test("model-records");
    let ended = run(&test, &["--preempt", "none,full", "--seeds", "5", "--out", "out"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let json = record(&test, "out/none/1");
    assert_valid_run(&json);
    let own = Run::from_json(json.as_bytes()).unwrap();
    assert_eq!(own.plan.scenario.as_ref().unwrap().rules, "none");
    assert!(!own.worst[0].blame.is_empty() && !own.causes.is_empty());
    let explanation = own.explanation.as_ref().unwrap();
    let truth = explanation.truth.as_ref().unwrap();
    let answers = truth.right + truth.other_function + truth.wrong_bound + truth.unexplained;
    assert_eq!(
        (truth.wakeups, truth.uncompared, answers),
        (explanation.explained, 0, explanation.explained),
        "{truth:?}"
    );
    let late_ns: u64 = own.causes.iter().map(|row| row.total_ns).sum();
    assert_eq!(truth.causes.iter().map(|row| row.ns).sum::<u64>(), late_ns);
    for episode in own.worst.iter().filter(|episode| !episode.blame.is_empty()) {
        let sum: u64 = episode.truth.iter().map(|share| share.ns).sum();
        assert_eq!(sum, episode.wakeup_latency_ns, "{episode:?}");
        assert!(episode.truth.windows(2).all(|pair| pair[0].ns >= pair[1].ns), "{episode:?}");
        assert!(episode.truth.len() <= 28, "{episode:?}");
        // They are nearly all right.
        assert_eq!(episode.truth[0].cause, episode.blame[0].cause, "{episode:?}");
    }
    let explained = test.done(&["explain", "out/none/1"]);
    assert!(explained.contains("compared with the truth of the simulation"), "{explained}");
    assert!(explained.contains("   it truly was: "), "{explained}");
    let shown: Run =
        serde_json::from_str(&test.done(&["explain", "out/none/1", "--json"])).unwrap();
    assert_eq!(shown.worst, own.worst);
    test.done(&["report", "out/none/1", "-o", "none.html"]);
    let page = fs::read_to_string(test.dir.join("none.html")).unwrap();
    assert!(page.contains("true cause"), "no truth on the page");
    let reports: [&[&str]; 4] = [
        &["report", "out/none/1"],
        &["explain", "out/none/1"],
        &["report", "out/none/1", "out/full/1"],
        &["compare", "out/full", "--against", "out/none", "--margin", "1%"],
    ];
    for args in reports {
        let shown = test.ended(args);
        assert!(matches!(shown.code, Some(0 | 1 | 3)), "{args:?}: {shown:?}");
        assert!(shown.stdout.contains("simulated"), "{args:?}: {shown:?}");
        assert!(!shown.stdout.contains("virtual"), "{args:?}: {shown:?}");
    }
    let trend = test.ended(&["trend", "out/none", "out/full"]);
    assert_eq!(trend.code, Some(0), "{trend:?}");
    assert!(trend.stdout.contains("times are simulated"), "{trend:?}");
    let csv = test.done(&["report", "out/none/1", "--format", "csv"]);
    assert!(csv.starts_with("cpu,distribution,lower_simulated_ns,"), "{csv}");
    let page = test.ended(&["report", "out/none/1", "-o", "page.html"]);
    assert_eq!(page.code, Some(0), "{page:?}");
    assert!(fs::read_to_string(test.dir.join("page.html")).unwrap().contains("simulated"));
}

/// Their folders are named after the second.
#[test]
fn runs_that_begin_at_once_have_folders_of_their_own() {
    let test = test("model-at-once");
    let args =
        ["model", "run", "prune.toml", "--samples", "2100", "--preempt", "none", "--no-explain"];
    let running: Vec<_> = (0..8).map(|_| test.start_command(&args)).collect();
    for running in running {
        let ended = running.output();
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    let folders = names(&test.dir.join("runs"));
    assert_eq!(folders.len(), 8, "{folders:?}");
    for folder in folders {
        assert!(test.dir.join("runs").join(folder).join("none/1/run.json").is_file());
    }
}

#[test]
fn runs_of_two_scenarios_are_not_compared() {
    let test = test("model-scenarios");
    assert_eq!(run(&test, &["--preempt", "none", "--out", "a"]).code, Some(0));
    fs::write(test.dir.join("prune.toml"), PRUNE.replace("20us", "21us")).unwrap();
    assert_eq!(run(&test, &["--preempt", "none", "--out", "b"]).code, Some(0));
    let compared = test.ended(&["compare", "a/none/1", "--against", "b/none/1"]);
    assert_eq!(compared.code, Some(2), "{compared:?}");
    assert!(compared.stderr.contains("scenario: prune ("), "{compared:?}");
}

#[test]
fn the_same_bits_come_of_any_number_of_threads() {
    let test = test("model-threads");
    for (jobs, out) in [("1", "one"), ("2", "two")] {
        let args = ["--preempt", "both,lazy", "--seeds", "2", "--jobs", jobs, "--out", out];
        assert_eq!(run(&test, &args).code, Some(0));
    }
    for of in ["both/1", "both/2", "lazy/1", "lazy/2"] {
        let [one, two] = ["one", "two"].map(|out| record(&test, &format!("{out}/{of}")));
        assert_eq!(one, two, "{of}");
    }
    assert_ne!(record(&test, "one/both/1"), record(&test, "one/both/2"));
}

#[test]
fn the_figures_as_json_fit_their_schema() {
    let test = test("model-json");
    let schema: Value = serde_json::from_str(&read("docs/reference/model.schema.json")).unwrap();
    let checker = Checker::closed(schema);
    // The culprit is described by the schema of runs.
    let ended = run(&test, &["--preempt", "none,full", "--out", "out", "--json", "--no-explain"]);
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(checker.fault(&json), None, "{ended:?}");
    assert_eq!(json["runs"][0]["preempt"], "none");
    assert_eq!(json["runs"][0]["run"], "out/none/1");
    assert_eq!(json["runs"][1]["culprit"], Value::Null);
    let again = json["repeat"].as_str().unwrap();
    let want =
        "wakescope model run prune.toml --preempt none,full --seeds 1 --seed 1 --samples 2100";
    assert_eq!(again, want);
    let broken = PRUNE.replace("{ spin_unlock = \"dcache_lock\" },", "\"schedule\",");
    fs::write(test.dir.join("broken.toml"), broken).unwrap();
    let ended = model(&test, &["run", "broken.toml", "--preempt", "none", "--json", "--out", "b"]);
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((checker.fault(&json), ended.code), (None, Some(2)), "{ended:?}");
    assert_eq!(json["runs"][0]["status"], "broken");
    assert!(!test.dir.join("b").exists(), "there is nothing to keep");
}

#[test]
fn what_cannot_be_simulated_is_refused_with_its_place() {
    let test = test("model-refused");
    fs::write(test.dir.join("wrong.toml"), PRUNE.replace("20us", "20usec")).unwrap();
    fs::write(test.dir.join("none.toml"), PRUNE.replace("period = \"2048Hz\"", "path = \"find\""))
        .unwrap();
    for (args, want) in [
        (&["run", "wrong.toml"][..], "wrong.toml:24:38: path.find[1].do[1].do[0].compute: "),
        (&["check", "wrong.toml"], "wrong.toml:24:38: "),
        (&["run", "none.toml"], "none.toml has no probe"),
        (&["run", "nothing"], "there is no scenario named nothing, and no such file"),
        (&["run", "./nothing.toml"], "cannot read the scenario ./nothing.toml: No such file"),
        (&["show", "nothing"], "there is no scenario named nothing"),
        (&["run", "prune.toml", "--preempt", "fall"], "expected one of none, voluntary, full,"),
        (&["run", "prune.toml", "--samples", "0"], "invalid value '0'"),
    ] {
        let ended = model(&test, args);
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{args:?}: {ended:?}");
        assert!(ended.stderr.contains(want), "{args:?}: {ended:?}");
    }
}

#[test]
fn scenarios_are_listed_and_shown() {
    let test = test("model-list");
    let listed = test.done(&["model", "list"]);
    assert!(listed.contains(" catface "), "{listed}");
    let shown = test.done(&["model", "show", "catface"]);
    assert!(shown.contains("schema = \"wakescope.scenario/1\""), "{shown}");
    assert_eq!(test.done(&["model", "show", "prune.toml"]), PRUNE);
}

#[test]
fn a_check_shows_the_shortest_way_to_a_broken_rule() {
    let test = test("model-check");
    check(
        &model(&test, &["check", "catface", "--preempt", "none,full"]),
        1,
        &expect![[r#"
        stdout:
         none: every rule holds in all 217 states and 314 steps, with loops of 3 iterations at most
         full: a variable of the CPU was seen half-changed (catface)
           the shortest schedule that breaks it:
           swapper, in the scheduler: high follows swapper
           high: sleeps
           high, in the scheduler: low follows high
           low: begins to change catface
           interrupt local_timer on low: wakes high, need_resched is set
           low, in the scheduler: high preempts low
           high: begins to change catface, ← a variable of the CPU was seen half-changed (catface)
        stderr:
    "#]],
    );
    let holds = model(&test, &["check", "catface", "--preempt", "none"]);
    assert_eq!((holds.code, &*holds.stderr), (Some(0), ""));
    let part = model(&test, &["check", "catface", "--preempt", "none", "--states", "10"]);
    assert_eq!(part.code, Some(3), "{part:?}");
    assert!(part.stdout.contains("that is no proof"), "{part:?}");
}
