//! What is written where others may have put something: nothing of theirs is overwritten, and
//! nothing is waited for.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::path::Path;
use std::process::Command;

use flate2::read::GzDecoder;
use wakescope_sys::file::effective_user;

use crate::common::bench::{NOBODY, Running, Test, eventually, skip};
use crate::common::measured::{NEXT, RECORD, names, record};

const TREASURE: &str = "treasure";

/// Puts something at a path; a link leads to the file beside the folder that it lies in.
type Put = fn(&Path);

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

const PUT: [(&str, Put); 6] = [
    ("a symbolic link", |path| symlink("../treasure", path).unwrap()),
    ("a symbolic link", |path| symlink("../nowhere", path).unwrap()),
    ("a FIFO", fifo),
    ("a folder", |path| fs::create_dir(path).unwrap()),
    ("already exists", |path| fs::write(path, TREASURE).unwrap()),
    ("already exists", |path| {
        fs::write(path, TREASURE).unwrap();
        if effective_user() == 0 {
            chown(path, Some(NOBODY), None).unwrap();
        }
    }),
];

#[test]
fn no_name_of_a_run_folder_is_followed_or_waited_for() {
    for name in [RECORD, NEXT, "run.json.new", "samples.csv"] {
        for (text, put) in PUT {
            let test = Test::new("names");
            fs::write(test.dir.join("treasure"), TREASURE).unwrap();
            let folder = test.dir.join("run");
            fs::create_dir(&folder).unwrap();
            put(&folder.join(name));
            let ended = test.measure(&["--samples", "1", "--save-samples", "--out", "run"]);
            assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{name}: {ended:?}");
            let is_told = ended.stderr.contains(text)
                || ended.stderr.contains("already holds a run")
                || ended.stderr.contains("a file of that name already");
            assert!(is_told && ended.stderr.contains("--out DIR"), "{name} {text}: {ended:?}");
            assert_eq!(names(&folder), [name]);
            assert_eq!(fs::read_to_string(test.dir.join("treasure")).unwrap(), TREASURE);
            assert!(!test.dir.join("nowhere").exists());
        }
    }
}

#[test]
fn of_two_runs_told_one_new_folder_one_gets_it() {
    let test = Test::new("one-folder");
    for round in 0..4 {
        let out = format!("run-{round}");
        let args = ["--samples", "3", "--out", &out];
        let runs = [test.start_measure(&args), test.start_measure(&args)];
        let ended = runs.map(|run| run.output());
        let mut codes = ended.iter().map(|ended| ended.code.unwrap()).collect::<Vec<_>>();
        codes.sort_unstable();
        assert_eq!(codes, [0, 2], "{ended:?}");
        assert_eq!(names(&test.dir.join(&out)), [RECORD]);
        let thread = &record(&test.dir.join(&out)).threads[0];
        // Late ones swallow expiries, which are no samples.
        assert_eq!((thread.woken.count, thread.expiries.count), (3, 3 + thread.missed));
    }
}

#[test]
fn a_run_folder_of_others_is_refused() {
    let test = Test::new("folders");
    let measure = |out: &str| test.measure(&["--samples", "1", "--out", out]);
    for (mode, text) in [(0o777, "other users may write to the folder (mode 0777)"), (0o1777, "")] {
        let folder = test.dir.join("open");
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).unwrap();
        let ended = measure("open");
        assert_eq!(ended.code, Some(if text.is_empty() { 0 } else { 2 }), "{ended:?}");
        assert!(ended.stderr.contains(text), "{}", ended.stderr);
        fs::remove_dir_all(folder).unwrap();
    }
    if effective_user() != 0 {
        return skip("a_run_folder_of_others_is_refused", "only root can give folders away");
    }
    let theirs = test.dir.join("theirs");
    fs::create_dir(&theirs).unwrap();
    chown(&theirs, Some(NOBODY), None).unwrap();
    symlink("theirs", test.dir.join("link")).unwrap();
    fs::create_dir(test.dir.join("root's")).unwrap();
    symlink("root's", test.dir.join("their-link")).unwrap();
    lchown(test.dir.join("their-link"), Some(NOBODY), None).unwrap();
    let through = ["their-link/", "their-link/.", "their-link/new", "their-link/../root's"];
    for out in ["theirs", "link", "their-link"].into_iter().chain(through) {
        let ended = measure(out);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains("user 65534"), "{}", ended.stderr);
    }
    // A new folder in a place of theirs is one's own.
    assert_eq!(measure("theirs/new").code, Some(0));
    fs::remove_dir_all(theirs.join("new")).unwrap();
    let without_out = [
        &["measure", "--samples", "1"][..],
        &["measure", "--stimulus", "all", "--samples", "1"],
        &["model", "run", "late-wakeup", "--preempt", "none", "--samples", "1"],
    ];
    let check_runs = || {
        for args in without_out {
            let ended = test.start_command(args).output();
            assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
            assert!(ended.stderr.contains("cannot use the run's folder runs: "), "{ended:?}");
        }
    };
    symlink("root's", test.dir.join("runs")).unwrap();
    lchown(test.dir.join("runs"), Some(NOBODY), None).unwrap();
    check_runs();
    fs::remove_file(test.dir.join("runs")).unwrap();
    fs::create_dir(test.dir.join("runs")).unwrap();
    chown(test.dir.join("runs"), Some(NOBODY), None).unwrap();
    check_runs();
    assert_eq!(names(&test.dir.join("runs")), [""; 0]);
    assert_eq!(names(&test.dir.join("root's")), [""; 0]);
    // Unless it is they who measure, by sudo. Their links stay foreign.
    for (args, code) in [
        (&["--samples", "1"][..], 0),
        (&["--samples", "1", "--out", "theirs"], 0),
        (&["--samples", "1", "--out", "their-link"], 2),
        (&["--samples", "1", "--out", "their-link/new"], 2),
    ] {
        let mut command = test.command(&[&["measure"], args].concat());
        let ended = Running::start(command.env("SUDO_UID", NOBODY.to_string())).output();
        assert_eq!(ended.code, Some(code), "{args:?}: {ended:?}");
    }
}

/// Every way to write a report to a file.
const REPORTS: [&[&str]; 8] = [
    &["report", "run", "--format", "html"],
    &["report", "run", "--format", "svg"],
    &["report", "run", "--format", "csv"],
    &["report", "run", "--format", "jsonl"],
    &["compare", "run", "--against", "other"],
    &["compare", "run", "--against", "other", "--json"],
    &["trend", "run", "other"],
    &["trend", "run", "other", "--json"],
];

/// A test with a run in it.
fn with_run(name: &str) -> Test {
    let test = Test::new(name);
    for run in ["run", "other"] {
        let ended = test.measure(&["--samples", "20", "--save-samples", "--out", run]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    test
}

#[test]
fn reports_go_to_files_of_ones_own_only() {
    let test = with_run("reports");
    let path = |name: &str| test.dir.join(name);
    fs::write(path("treasure"), TREASURE).unwrap();
    fifo(&path("fifo"));
    fs::create_dir(path("open")).unwrap();
    fs::set_permissions(path("open"), fs::Permissions::from_mode(0o777)).unwrap();
    symlink("../treasure", path("open/link")).unwrap();
    fs::hard_link(path("treasure"), path("open/hard")).unwrap();
    let mut cases = vec![
        ("fifo", "it is a FIFO, not a regular file"),
        ("open/link", "it is a symbolic link that user"),
        ("open/hard", "the file has other hard links"),
        ("run", "it is a folder, not a regular file"),
    ];
    if effective_user() == 0 {
        fs::write(path("theirs"), TREASURE).unwrap();
        symlink("treasure", path("their-link")).unwrap();
        chown(path("theirs"), Some(NOBODY), None).unwrap();
        lchown(path("their-link"), Some(NOBODY), None).unwrap();
        symlink(".", path("their-way")).unwrap();
        lchown(path("their-way"), Some(NOBODY), None).unwrap();
        cases.extend([
            ("theirs", "belongs to user 65534"),
            ("their-link", "it is a symbolic link that user 65534 controls"),
            (
                "their-way/treasure",
                "its path leads through a symbolic link that user 65534 controls",
            ),
        ]);
    } else {
        skip("reports_go_to_files_of_ones_own_only", "only root can give files away");
    }
    for report in REPORTS {
        for (file, text) in &cases {
            let ended = test.start_command(&[report, &["-o", file]].concat()).output();
            assert_eq!(ended.code, Some(2), "{report:?} {file}: {ended:?}");
            assert!(ended.stderr.contains(text), "{report:?} {file}: {}", ended.stderr);
            assert_eq!(fs::read_to_string(path("treasure")).unwrap(), TREASURE);
        }
    }
}

#[test]
fn links_and_files_in_the_folder_of_the_caller_of_sudo_do_not_count() {
    let name = "links_and_files_in_the_folder_of_the_caller_of_sudo_do_not_count";
    if effective_user() != 0 {
        return skip(name, "only root can give folders away");
    }
    let test = with_run("caller");
    let path = |name: &str| test.dir.join(name);
    fs::write(path("treasure"), TREASURE).unwrap();
    fs::create_dir(path("theirs")).unwrap();
    fs::hard_link(path("treasure"), path("theirs/hard")).unwrap();
    // As if they had moved a link that root had made there.
    symlink("../treasure", path("theirs/link")).unwrap();
    chown(path("theirs"), Some(NOBODY), None).unwrap();
    let report = |file: &str| {
        let mut command = test.command(&["report", "run", "--format", "text", "-o", file]);
        Running::start(command.env("SUDO_UID", NOBODY.to_string())).output()
    };
    for (file, text) in [
        ("theirs/hard", "the file has other hard links, and its folder is not safe"),
        ("theirs/link", "it is a symbolic link that user 65534 controls"),
    ] {
        let ended = report(file);
        assert_eq!(ended.code, Some(2), "{file}: {ended:?}");
        assert!(ended.stderr.contains(text), "{file}: {}", ended.stderr);
        assert_eq!(fs::read_to_string(path("treasure")).unwrap(), TREASURE);
    }
    for _ in 0..2 {
        assert_eq!(report("theirs/new").code, Some(0), "a file of root's own is replaced");
    }
}

#[test]
fn reports_take_the_place_of_no_input_and_no_record() {
    let test = with_run("inputs");
    let path = |name: &str| test.dir.join(name);
    let write =
        |args: &[&str], file: &str| test.start_command(&[args, &["-o", file]].concat()).output();
    assert_eq!(write(&["report", "run", "--format", "cyclictest"], "values").code, Some(0));
    assert_eq!(write(&["report", "run", "--format", "json"], "copy").code, Some(0));
    symlink("copy", path("link")).unwrap();
    fs::hard_link(path("copy"), path("hard")).unwrap();
    fs::hard_link(path("other/run.json"), path("other.txt")).unwrap();
    let read = |name: &str| fs::read(path(name)).unwrap();
    fs::create_dir(path("watch")).unwrap();
    let windows = "watch/2026-11-21T01-00-00.jsonl";
    for file in ["run/samples.csv", "run/episodes.jsonl", windows, "watch/lock"] {
        fs::write(path(file), "measured").unwrap();
    }
    let measured = "it holds what a run or a watch has measured";
    for (args, file, text) in [
        (&["report", "run", "--format", "csv"][..], "run/samples.csv", measured),
        (&["report", "run", "--format", "jsonl"], "run/episodes.jsonl", measured),
        (&["report", "run", "--format", "jsonl"], windows, measured),
        (&["trend", "run", "other"], "run/run.json", "it is the record of a run"),
        (&["report", "run", "--redact"], "run/run.json", "it is the record of a run"),
        (&["report", "run", "--redact"], "other/run.json", "it is the record of a run"),
        (&["report", "run", "--format", "text"], "other.txt", "it is the record of a run"),
        (&["report", "copy", "--format", "text"], "hard", "it is the record of a run"),
    ] {
        let before = read(file);
        let ended = write(args, file);
        assert_eq!(ended.code, Some(2), "{args:?} {file}: {ended:?}");
        assert!(ended.stderr.contains(text), "{args:?} {file}: {}", ended.stderr);
        assert!(ended.stderr.contains("name another file"), "{}", ended.stderr);
        assert!(read(file) == before, "{args:?} {file}");
    }
    fs::remove_file(path("hard")).unwrap();
    for (args, file) in [
        (&["report", "copy", "--format", "text"][..], "copy"),
        (&["report", "copy", "--format", "html"], "link"),
        (&["report", "values"], "values"),
    ] {
        let before = read(file);
        let ended = write(args, file);
        assert_eq!(ended.code, Some(2), "{args:?} {file}: {ended:?}");
        assert!(ended.stderr.contains("it is also an input"), "{args:?} {file}: {ended:?}");
        assert!(read(file) == before, "{args:?} {file}");
    }
    // A copy of a record that is not read is replaced like any file.
    assert_eq!(write(&["report", "run", "--format", "text"], "copy").code, Some(0));
}

#[test]
fn reports_go_where_the_user_says() {
    let test = with_run("where");
    symlink("real", test.dir.join("link")).unwrap();
    for report in REPORTS {
        let to = |file: &str| {
            let ended = test.start_command(&[report, &["-o", file]].concat()).output();
            assert!(ended.code.is_some_and(|code| code != 2), "{report:?} {file}: {ended:?}");
            ended.stdout
        };
        let printed = to("/dev/stdout");
        assert!(!printed.is_empty(), "{report:?}");
        to("/dev/null");
        // A longer file is there at first.
        fs::write(test.dir.join("real"), vec![b'x'; 4 << 20]).unwrap();
        for file in ["real", "link", "new"] {
            to(file);
            assert!(fs::read_to_string(test.dir.join(file)).unwrap() == printed, "{report:?}");
        }
        fs::remove_file(test.dir.join("new")).unwrap();
        // By its name it is compressed.
        to("new.gz");
        let mut unpacked = String::new();
        let packed = fs::File::open(test.dir.join("new.gz")).unwrap();
        GzDecoder::new(packed).read_to_string(&mut unpacked).unwrap();
        assert!(unpacked == printed, "{report:?}");
        // As a shell passes `-o >(cat)`.
        let mut shell = test.program(Path::new("/bin/bash"));
        let script = "\"$0\" \"$@\" -o >(cat >piped) && wait $!";
        shell.args(["-c", script]).arg(&test.program).args(report);
        if shell.output().is_ok_and(|ended| ended.status.code() != Some(127)) {
            eventually("the pipe has all of it", || {
                fs::read_to_string(test.dir.join("piped")).is_ok_and(|text| text == printed)
            });
        }
    }
}

#[test]
fn a_run_is_nobody_elses_business() {
    let test = with_run("modes");
    for file in [RECORD, "samples.csv"] {
        let mode = fs::metadata(test.dir.join("run").join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}
