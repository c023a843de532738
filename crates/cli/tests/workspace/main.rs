//! The workspace keeps the rules that ARCHITECTURE.md states.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{read, root};
use serde_json::Value;

#[path = "../common/mod.rs"]
mod common;
mod install;
mod rust;
mod scripts;

/// A crate uses only crates of rows above its own.
const ROWS: &[(&str, u32)] = &[
    ("wakescope-core", 1),
    ("wakescope-testing", 1),
    ("wakescope-sys", 2),
    ("wakescope-model", 2),
    ("wakescope-attribution", 2),
    ("wakescope-decode", 2),
    ("wakescope-stats", 2),
    ("wakescope-formats", 2),
    ("wakescope-oracle", 3),
    ("wakescope-report", 3),
    ("wakescope-probe", 3),
    ("wakescope-trace", 3),
    ("wakescope-store", 3),
    ("wakescope-lab", 4),
    ("wakescope-cli", 5),
];

/// The longest a source file may be, in lines.
const LINES: usize = 800;

#[test]
fn crates_use_only_rows_above_their_own() {
    let rows: BTreeMap<&str, u32> = ROWS.iter().copied().collect();
    let row = |name: &str| {
        *rows
            .get(name)
            .unwrap_or_else(|| panic!("{name} has no row: add it to ARCHITECTURE.md, and here"))
    };
    for package in metadata()["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        for dependency in package["dependencies"].as_array().unwrap() {
            let used = dependency["name"].as_str().unwrap();
            let ours = used.starts_with("wakescope-") && dependency["kind"] != "dev";
            assert!(!ours || row(used) < row(name), "{name} uses {used}, which is not above it");
        }
        assert_eq!(package["rust_version"], metadata_rust_version(), "{name} has its own MSRV");
    }
}

#[test]
fn memory_safety_is_at_stake_in_two_crates_only() {
    let word = "unsafe";
    for file in sources() {
        if file.starts_with("crates/sys") || file.starts_with("crates/trace") {
            continue;
        }
        let words = rust::words(&read(&file));
        assert!(!words.iter().any(|w| w == word), "{} has {word} code", file.display());
    }
}

#[test]
fn pure_crates_do_no_io_and_read_no_clock() {
    let forbidden =
        ["fs", "net", "process", "env", "Instant", "SystemTime", "stdin", "stdout", "stderr"];
    let pure = ["core", "attribution", "decode", "model", "oracle", "stats", "formats", "report"];
    for file in pure.into_iter().flat_map(shipped) {
        for path in rust::std_paths(&rust::without_tests(&read(&file))) {
            let found = path.iter().find(|part| forbidden.contains(&part.as_str()));
            assert_eq!(found, None, "{}: std::{}", file.display(), path.join("::"));
        }
    }
}

/// `scripts/test` lists the tests that were skipped by the form of their lines, and the test harness
/// swallows what `eprintln!` prints: so all of them use `wakescope_testing::skip`.
#[test]
fn tests_are_skipped_through_one_function() {
    let begin = concat!("\"skip", "ped: {");
    for file in sources().iter().filter(|f| !f.starts_with("crates/testing")) {
        let line = read(file).lines().position(|line| line.contains(begin));
        // `lab bisect` shows a candidate of this name.
        let is_verdict = file.ends_with("lab/bisect.rs");
        assert!(line.is_none() || is_verdict, "{}:{line:?} skips by itself", file.display());
    }
}

/// Whoever writes a test for `make test-lab` learns here, and not from CI, that it has to be listed.
#[test]
fn long_tests_are_listed_as_skipped() {
    let listed = read(root().join(".ci/allowed-skips"));
    let listed: BTreeSet<&str> = listed.lines().collect();
    let long = sources().into_iter().filter(|f| f.starts_with("crates/cli/tests/lab_long"));
    let mut found = 0;
    for file in long {
        for test in read(&file).split("#[test]\nfn ").skip(1) {
            let name = &test[..test.find('(').expect("a function has parameters")];
            assert!(listed.contains(name), "{name} is not in .ci/allowed-skips");
            found += 1;
        }
    }
    assert!(found > 30, "only {found} tests of many minutes were found");
}

/// A figure with its range stands there as it stands in the table that it was taken from.
#[test]
fn what_watching_costs_is_what_was_measured() {
    let (page, measured) = (read("docs/watch.md"), read("docs/benchmarks.md"));
    let (_, costs) = page.split_once("## What it costs").unwrap();
    let mut found = 0;
    for (dash, _) in costs.match_indices('–') {
        let open = costs[..dash].rfind(" (").unwrap();
        let begin = costs[..open].rfind(' ').unwrap() + 1;
        let end = dash + costs[dash..].find(')').unwrap();
        let figure = &costs[begin..=end];
        assert!(measured.contains(figure), "{figure} is not in docs/benchmarks.md");
        found += 1;
    }
    assert!(found >= 8, "only {found} figures were found");
}

#[test]
fn only_one_file_prints() {
    let macros = ["print", "println", "eprint", "eprintln", "dbg"];
    for name in ROWS.iter().filter_map(|(name, _)| name.strip_prefix("wakescope-")) {
        for file in shipped(name).iter().filter(|f| !f.ends_with("cli/src/output.rs")) {
            let words = rust::words(&rust::without_tests(&read(file)));
            for pair in words.windows(2).filter(|pair| pair[1] == "!") {
                assert!(!macros.contains(&&*pair[0]), "{} uses {}!", file.display(), pair[0]);
            }
        }
    }
}

/// What may follow a link, empty a file of another user, or wait for the reader of a FIFO.
#[test]
fn only_one_crate_opens_files_to_write() {
    // A load's own files, in a folder of its own that it has entered; files of the kernel, of a
    // constant path, a device's name or below /sys/fs/cgroup, that no other user can replace; and
    // devices of lines, which are neither links nor waited for.
    const EXCEPT: &[&str] = &[
        "crates/probe/src/load/fifos_mmap.rs",
        "crates/probe/src/load/file_move.rs",
        "crates/probe/src/load/fs.rs",
        "crates/probe/src/load/memory/own_cgroup.rs",
        "crates/probe/src/load/nfs_compile/tree.rs",
        "crates/probe/src/load/sync.rs",
        "crates/probe/src/load/truncate.rs",
        "crates/probe/src/load/keeper.rs",
        "crates/probe/src/load/foreign.rs",
        "crates/probe/src/load/printk.rs",
        "crates/probe/src/load/disturb.rs",
        "crates/cli/src/guest.rs",
        "crates/cli/src/guest/cable.rs",
        "crates/cli/src/guest/nfs.rs",
        "crates/sys/src/process/autogroup.rs",
        "crates/sys/src/pm_qos.rs",
        "crates/sys/src/gpio.rs",
        "crates/sys/src/serial.rs",
        "crates/sys/src/pcm.rs",
    ];
    let opening: [&[&str]; 6] = [
        &["File", ":", ":", "create", "("],
        &["fs", ":", ":", "write", "("],
        &["fs", ":", ":", "copy", "("],
        &[".", "write", "(", "true"],
        &[".", "append", "(", "true"],
        &[".", "create", "(", "true"],
    ];
    for name in ROWS.iter().filter_map(|(name, _)| name.strip_prefix("wakescope-")) {
        for file in shipped(name) {
            let is_test = file.iter().any(|part| part == "tests");
            let is_free = ["store", "testing"].contains(&name) || is_test;
            if is_free || EXCEPT.iter().any(|except| file == Path::new(except)) {
                continue;
            }
            let words = rust::words(&rust::without_tests(&read(&file)));
            for way in opening {
                let found = words.windows(way.len()).any(|words| words == way);
                assert!(!found, "{} opens a file to write: {}", file.display(), way.concat());
            }
        }
    }
}

#[test]
fn files_are_short() {
    let scripts = files().into_iter().filter(|f| {
        ["py", "sh"].iter().any(|e| f.extension().is_some_and(|x| x == *e))
            || f.starts_with("scripts")
    });
    for file in sources().into_iter().chain(scripts) {
        let lines = read(&file).lines().count();
        assert!(lines <= LINES, "{} has {lines} lines: divide it", file.display());
    }
}

/// A file that nobody declares is not compiled, and its tests pass by not being there.
#[test]
fn each_file_is_a_part_of_its_crate() {
    let packages = metadata()["packages"].as_array().unwrap().clone();
    let targets = packages.iter().flat_map(|package| package["targets"].as_array().unwrap());
    let roots: Vec<&Path> =
        targets.map(|target| Path::new(target["src_path"].as_str().unwrap())).collect();
    let in_src = |file: &PathBuf| file.iter().nth(2).is_some_and(|folder| folder == "src");
    for file in sources().into_iter().filter(in_src) {
        if roots.contains(&root().join(&file).as_path()) {
            continue;
        }
        let folder = file.parent().unwrap();
        let parents = [folder.with_extension("rs"), folder.join("lib.rs"), folder.join("main.rs")];
        let declared = ["mod", file.file_stem().unwrap().to_str().unwrap(), ";"];
        let declares = |parent: &PathBuf| {
            let text = fs::read_to_string(root().join(parent)).unwrap_or_default();
            rust::words(&text).windows(declared.len()).any(|words| words == declared)
        };
        assert!(parents.iter().any(declares), "nobody declares {}", file.display());
    }
}

#[test]
fn links_between_documents_lead_somewhere() {
    for page in pages() {
        for link in links(&read(&page)) {
            let target = link.split('#').next().unwrap();
            if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let path = root().join(&page).parent().unwrap().join(target);
            assert!(path.exists(), "{} links to {link}, which is not there", page.display());
        }
    }
}

/// What tests expect to be shown, and what documents show, counts one thing as one: "1 sample".
#[test]
fn one_thing_is_not_shown_as_many() {
    // Verbs, units of time, and words that end so by chance.
    const NO_PLURALS: [&str; 19] = [
        "as", "goes", "has", "holds", "insns", "is", "lies", "ms", "needs", "ns", "oops", "runs",
        "s", "says", "series", "this", "us", "uses", "was",
    ];
    let own = Path::new("cli/tests/workspace/main.rs");
    // Inputs as other programs write them.
    let foreign = Path::new("crates/formats/src/import/tests");
    let ours = |file: &PathBuf| !file.ends_with(own) && !file.starts_with(foreign);
    for file in sources().into_iter().chain(pages()).filter(ours) {
        let text = fs::read_to_string(root().join(&file)).unwrap();
        for line in text.lines() {
            // Schbench's own words.
            let said = line.replace("310        (1 samples)", "");
            let plural = plurals_of_one(&said).find(|word| !NO_PLURALS.contains(word));
            assert_eq!(plural, None, "behind a 1 in {}: {line}", file.display());
        }
    }
}

/// The words that end in "s" and stand behind a lone 1.
fn plurals_of_one(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("1 ").filter_map(|(at, _)| {
        let before = line[..at].chars().next_back();
        // "Note 1 gives" names a note and counts nothing.
        let is_name = ["note ", "code ", "step "].iter().any(|name| line[..at].ends_with(name));
        let is_alone =
            !is_name && before.is_none_or(|c| !c.is_alphanumeric() && !"_.,#=".contains(c));
        let word = line[at + 2..].split(|c: char| !c.is_ascii_lowercase()).next()?;
        (is_alone && word.ends_with('s')).then_some(word)
    })
}

#[test]
fn plurals_of_one_are_found() {
    let found = |line| plurals_of_one(line).collect::<Vec<_>>();
    assert_eq!(
        found("(1 samples), 21 samples, 0.1 samples, 1 sample, of 1 cells, note 1 tells"),
        ["samples", "cells"]
    );
}

#[test]
fn commands_in_documents_parse() {
    let mut seen = 0;
    for page in pages() {
        for line in examples(&read(&page)) {
            check_command(&page.display().to_string(), &line);
            seen += 1;
        }
    }
    let of_make = |line: &str| {
        let command = line.strip_prefix('\t')?.trim_start_matches('@');
        Some(command.strip_prefix("$(WAKESCOPE) ")?.replace("$(call quoted,$(RUN))", "run"))
    };
    for line in read("Makefile").lines().filter_map(of_make) {
        let line = line.replace("$(call quoted,$(RUN)/report.html)", "run/report.html");
        check_command("Makefile", &format!("wakescope {line}"));
        seen += 1;
    }
    for (verb, help) in helps("", &wakescope_cli::command()) {
        for line in help.lines().map(str::trim).filter(|line| line.starts_with("wakescope ")) {
            check_command(&format!("help of{verb}"), line);
            seen += 1;
        }
    }
    assert!(seen > 5, "only {seen} commands were found: are examples still recognized?");
}

/// What the help of every verb, at any depth, ends with, by the verb: ` lab run`.
fn helps(above: &str, command: &clap::Command) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for verb in command.get_subcommands() {
        let name = format!("{above} {}", verb.get_name());
        let texts = [verb.get_after_help(), verb.get_after_long_help()];
        let help = texts.into_iter().flatten().map(|text| format!("{text}\n")).collect();
        found.extend(helps(&name, verb));
        found.push((name, help));
    }
    found
}

#[test]
fn examples_of_nested_verbs_are_checked_too() {
    let helps = helps("", &wakescope_cli::command());
    let run = helps.iter().find(|(verb, _)| verb == " lab run");
    assert!(run.is_some_and(|(_, help)| help.contains("wakescope lab run ")), "{helps:?}");
}

#[track_caller]
fn check_command(place: &str, line: &str) {
    use clap::error::ErrorKind::{DisplayHelp, DisplayVersion};
    match wakescope_cli::command().try_get_matches_from(shell_words(line)) {
        Err(e) if !matches!(e.kind(), DisplayHelp | DisplayVersion) => {
            panic!("{place} shows a command that does not work: {line}\n{e}")
        }
        _ => {}
    }
}

#[test]
fn examples_are_found_and_divided() {
    let page = "wakescope no\n```sh\n$ sudo wakescope check --json | jq .host  # all of it\n\
                wakescope: cannot do it\nwakescope load 'exec:make -j2' \\\n  && ls\n```\n    wakescope no\n";
    assert_eq!(
        examples(page),
        [
            "wakescope check --json | jq .host  # all of it",
            "wakescope load 'exec:make -j2'    && ls"
        ]
    );
    assert_eq!(shell_words("wakescope check --json | jq"), ["wakescope", "check", "--json"]);
    assert_eq!(
        shell_words("wakescope load 'exec:make -j2' # c"),
        ["wakescope", "load", "exec:make -j2"]
    );
}

/// Commands in fenced blocks of a Markdown page: lines that begin with `wakescope `, perhaps
/// after a prompt or `sudo`, joined where they are continued.
fn examples(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut fenced = false;
    let mut continued = String::new();
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if fenced {
            let line = std::mem::take(&mut continued) + line;
            if let Some(start) = line.strip_suffix('\\') {
                continued = start.to_owned() + " ";
                continue;
            }
            let command = line.trim_start().trim_start_matches("$ ").trim_start_matches("# ");
            let command = command.strip_prefix("sudo ").unwrap_or(command);
            if command.starts_with("wakescope ") {
                found.push(command.to_owned());
            }
        }
    }
    found
}

/// The words of the first command in a shell line. Knows quotes, and where a command ends.
fn shell_words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(q), _) if c == q => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '|' | ';' | '&' | '>' | '<' | '#') => break,
            (None, ' ') => words.push(String::new()),
            _ => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Targets of inline links in a Markdown page, outside code.
fn links(page: &str) -> Vec<&str> {
    let mut fenced = false;
    let mut found = Vec::new();
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if !fenced {
            let prose = line.split('`').step_by(2);
            found.extend(
                prose
                    .flat_map(|part| part.split("](").skip(1))
                    .filter_map(|rest| rest.split_once(')').map(|(target, _)| target)),
            );
        }
    }
    found
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version=1"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The MSRV that the workspace states.
fn metadata_rust_version() -> Value {
    let manifest = read("Cargo.toml");
    let line = manifest.lines().find_map(|l| l.strip_prefix("rust-version = ")).unwrap();
    Value::from(line.trim_matches('"'))
}

/// Files of the repository, without those that git ignores and those that are generated.
fn files() -> Vec<PathBuf> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let entry = entry.unwrap();
            let path = folder.join(entry.file_name());
            let skipped = ["target", "runs", ".git", "docs/reference/completions"];
            if skipped.iter().any(|s| path == Path::new(s)) {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                walk(&path, found);
            } else {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(Path::new(""), &mut found);
    found.sort();
    found
}

/// Rust files, tests included.
fn sources() -> Vec<PathBuf> {
    let found: Vec<PathBuf> =
        files().into_iter().filter(|f| f.extension().is_some_and(|e| e == "rs")).collect();
    assert!(found.len() > 20, "the sources are not where they were");
    found
}

/// Rust files of a crate that end up in the command.
fn shipped(name: &str) -> Vec<PathBuf> {
    let folder = Path::new("crates").join(name).join("src");
    let found: Vec<PathBuf> = sources()
        .into_iter()
        .filter(|f| f.starts_with(&folder) && !f.ends_with("tests.rs"))
        .collect();
    found
}

/// Markdown pages.
fn pages() -> Vec<PathBuf> {
    files().into_iter().filter(|f| f.extension().is_some_and(|e| e == "md")).collect()
}
