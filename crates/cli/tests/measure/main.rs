//! `wakescope measure`, run as a command from beginning to end.

use std::fs;
use std::path::{Path, PathBuf};

use common::bench::{Running, Test, eventually_some, skip};
use common::measured::{
    RECORD, allowed_cpus, assert_found, assert_not_found, await_samples_in, finding, histogram_of,
    names, record,
};
use wakescope_core::finding::Severity;
use wakescope_core::limit::Outcome;
use wakescope_core::plan::{Family, IdleStates, ProbePolicy, Stimulus};
use wakescope_core::run::{Run, State};
use wakescope_core::units::SpanNs;
use wakescope_sys::file::effective_user;

mod audio;
mod check;
#[path = "../common/mod.rs"]
mod common;
mod deadline;
mod line;
mod spin;
mod stopped;
mod wakers;

#[test]
fn samples_are_what_was_asked_for_on_every_cpu() {
    let test = Test::new("samples");
    let ended = test.measure(&["--samples", "200", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.stderr, "");
    let folder = test.run_folder();
    assert_eq!(ended.stdout.trim_end(), fs::read_to_string(folder.join(RECORD)).unwrap());
    let run = record(&folder);
    assert_eq!((run.state, run.plan.samples), (State::Complete, Some(200)));
    let cpus: Vec<_> = run.threads.iter().map(|t| t.cpu.unwrap()).collect();
    assert_eq!(cpus, allowed_cpus());
    assert!(run.threads.iter().all(|t| t.woken.count == 200), "{:?}", run.threads);
}

#[test]
fn each_expiry_of_the_duration_counts_once() {
    let test = Test::new("duration");
    let run = test.measured(&["--duration", "500ms", "--interval", "1ms"]);
    assert_eq!((run.state, run.duration_ns), (State::Complete, 500_000_000));
    for thread in &run.threads {
        assert_eq!(thread.expiries.count, 500, "{thread:?}");
    }
    assert_eq!(names(&test.run_folder()), [RECORD]);
}

#[test]
fn every_timer_on_the_grid_keeps_the_same_books() {
    let test = Test::new("grid");
    let grid = |s: &&Stimulus| s.family() == Family::Grid && s.policy().is_none();
    let grid = |s: &&Stimulus| grid(s) && !matches!(s, Stimulus::Rtc | Stimulus::Device);
    for &stimulus in Stimulus::OF_PROBES.iter().filter(grid) {
        let rate =
            if stimulus.keeps_rate() { ["--rtc-hz", "2048"] } else { ["--interval", "500us"] };
        let how = [&["--stimulus", stimulus.name()][..], &rate].concat();
        let points = if stimulus.keeps_rate() { 512 } else { 500 };
        let ended = test.measure(&[&how[..], &["--duration", "250ms", "--json"]].concat());
        if stimulus == Stimulus::Epoll && ended.stderr.contains("epoll_pwait2") {
            let text = (ended.code, ended.stderr.contains("futex-timeout"));
            assert_eq!(text, (Some(2), true), "{ended:?}");
            continue;
        }
        let run = Run::from_json(ended.stdout.as_bytes()).expect(&ended.stderr);
        assert_eq!((run.state, run.plan.stimulus), (State::Complete, stimulus));
        for thread in &run.threads {
            // A late wakeup has swallowed the expiries until then, and none is lost.
            assert_eq!(thread.expiries.count, points, "{stimulus}: {thread:?}");
            assert_eq!(thread.woken.count + thread.missed, points, "{stimulus}: {thread:?}");
            assert!(thread.woken.min_ns > Some(0), "{stimulus}: {thread:?}");
        }
        assert!(run.validity.findings.iter().all(|f| f.code != "early"), "{run:?}");
        let deviation = run.summary.interval_deviation.expect("pairs of wakeups");
        let pairs: u64 = run.threads.iter().map(|t| t.woken.count - 1).sum();
        assert!(deviation.count == pairs && deviation.max_ns > deviation.min_ns, "{deviation:?}");
        // The number of wakeups ends it, too.
        let run = test.measured(&[&how[..], &["--samples", "50"]].concat());
        assert!(run.threads.iter().all(|thread| thread.woken.count == 50), "{:?}", run.threads);
    }
}

#[test]
fn a_real_time_clock_that_cannot_be_had_is_refused_with_a_remedy() {
    let test = Test::new("rtc");
    let cpu = allowed_cpus()[0].to_string();
    for (args, want, remedy) in [
        (
            &["--stimulus", "rtc", "--interval", "500us"][..],
            "a real-time clock's rate",
            "--rtc-hz 2048",
        ),
        (&["--stimulus", "rtc-grid", "--rtc-hz", "1000"], "power of two", "2048"),
        (
            &["--stimulus", "timer", "--rtc-hz", "2048"],
            "does not apply to --stimulus timer",
            "rtc-grid",
        ),
    ] {
        let ended = test.measure(args);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(want) && ended.stderr.contains(remedy), "{ended:?}");
    }
    if !Path::new("/dev/rtc0").exists() && !Path::new("/dev/rtc").exists() {
        let ended = test.measure(&["--stimulus", "rtc", "--cpus", &cpu]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        let text =
            ended.stderr.contains("cannot wake the probe by rtc: this machine has no /dev/rtc0");
        assert!(text && ended.stderr.contains("--stimulus rtc-grid"), "{ended:?}");
    }
}

#[test]
fn the_answer_comes_first_and_where_the_run_lies_last() {
    let test = Test::new("text");
    let out = test.dir.join("a").join("named");
    let ended = test.measure(&["--samples", "300", "--out", &out.display().to_string()]);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert!(lines[0].starts_with("Worst wakeup ") && lines[0].contains(" late ("), "{lines:#?}");
    let run = record(&out);
    assert!(lines[0].contains(&run.validity.verdict.to_string()), "{lines:#?}");
    let table = lines.iter().position(|l| l.starts_with(" cpu ")).expect("a table");
    let rows = &lines[table + 1..=table + run.threads.len()];
    for (row, thread) in rows.iter().zip(&run.threads) {
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(cells[0], thread.cpu.unwrap().to_string());
        assert_eq!(cells[1], thread.expiries.count.to_string());
        assert_eq!(cells[2], thread.missed.to_string());
    }
    for finding in &run.validity.findings {
        assert!(lines.iter().any(|l| l.contains(&finding.code)), "{finding:?}");
    }
    let shown = format!(" run: {0}   show: wakescope report {0}", out.display());
    let mut end = lines.iter().rev();
    if effective_user() == 0 && Path::new("/sys/kernel/btf/vmlinux").exists() {
        // What is possible here is offered; the path is too long for the same line.
        assert_eq!(end.next(), Some(&" why: wakescope explain"), "{lines:#?}");
    }
    assert_eq!(end.next(), Some(&shown.as_str()));
    assert!(!ended.stdout.contains('\x1b'), "{:?}", ended.stdout);
}

/// Runs `wakescope measure` with a terminal for stdout and stderr.
fn on_a_terminal(test: &Test, name: &str, variables: &[(&str, &str)]) -> Option<String> {
    on_a_terminal_of(test, name, variables, "rows 24 cols 80")
}

/// The same, with a terminal of this size. It is written as for stty(1): `rows 24 cols 80`.
fn on_a_terminal_of(
    test: &Test,
    name: &str,
    variables: &[(&str, &str)],
    size: &str,
) -> Option<String> {
    let script = Path::new("/usr/bin/script");
    if !script.exists() {
        skip(name, "/usr/bin/script (Debian's bsdutils) is not there to make a terminal");
        return None;
    }
    let command = format!("stty {size}; '{}' measure --duration 1s", test.program.display());
    let mut script = test.program(script);
    script.args(["-qec", &command, "/dev/null"]).env("TERM", "xterm").env_remove("NO_COLOR");
    let ended = Running::start(script.envs(variables.iter().copied())).output();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    Some(ended.stdout)
}

#[test]
fn a_terminal_shows_progress_until_there_is_a_result() {
    let test = Test::new("terminal");
    let name = "a_terminal_shows_progress_until_there_is_a_result";
    let Some(shown) = on_a_terminal(&test, name, &[]) else { return };
    let (progress, result) = shown.split_once("\x1b[J").expect("the block is removed");
    let height = allowed_cpus().len() + 2;
    let title = "measuring wakeups  timer 1.00 ms";
    assert!(progress.starts_with(title), "{progress:?}");
    // Each block is drawn over the one before, and the last is removed from its first line on.
    assert!(progress.matches(title).count() >= 2, "{progress:?}");
    let up = format!("\x1b[{height}A");
    assert_eq!(progress.matches(&up).count(), progress.matches(title).count(), "{progress:?}");
    assert!(progress.ends_with(&up), "{progress:?}");
    assert!(result.starts_with("\x1b[1mWorst wakeup"), "{result:?}");
    assert!(!result.contains("measuring"), "{result:?}");
}

#[test]
fn a_small_terminal_shows_what_it_has_room_for() {
    let test = Test::new("small-terminal");
    let name = "a_small_terminal_shows_what_it_has_room_for";
    let size = "rows 3 cols 30";
    let Some(shown) = on_a_terminal_of(&test, name, &[], size) else { return };
    let (progress, _) = shown.split_once("\x1b[J").expect("the block is removed");
    // Lines that go on in the next one, or are above the first one, would not be drawn over.
    let title = "measuring wakeups  timer 1.0…";
    assert!(progress.starts_with(title), "{progress:?}");
    assert_eq!(progress.matches("\x1b[2A").count(), progress.matches(title).count());
    for line in progress.split("\x1b[2A").flat_map(str::lines) {
        assert!(line.trim_end_matches("\x1b[K").chars().count() < 30, "{line:?}");
    }
}

#[test]
fn a_terminal_of_somebody_who_wants_no_colour_is_left_in_peace() {
    for variables in [&[("NO_COLOR", "1")][..], &[("NO_COLOR", "1"), ("TERM", "dumb")]] {
        let test = Test::new("no-colour");
        let name = "a_terminal_of_somebody_who_wants_no_colour";
        let Some(shown) = on_a_terminal(&test, name, variables) else { return };
        assert!(!shown.contains('\x1b') && shown.starts_with("Worst wakeup"), "{shown:?}");
    }
}

/// Arguments that are refused, and a piece of what is said about it: the remedy.
const REFUSED: [(&str, &str); 44] = [
    ("--interval 0us", "at least 1.00 µs is needed"),
    ("--interval -1ms", "`-1ms` is negative; a length of time is not"),
    ("--interval 2h", "at most 1.00 h is possible"),
    ("--interval 1", "write 1us, 1ms or 1s"),
    ("--interval 1parsec", "use ns, us, ms, s, min, h or d"),
    ("--interval ms", "write a number and a unit"),
    ("--interval 1us --duration 10ms", "→ use --interval "),
    ("--duration 0s", "at least 1.00 µs is needed"),
    ("--duration -5s", "`-5s` is negative"),
    ("--duration 400d", "at most 366 d is possible"),
    ("--duration 99999999999999999999s", "longer than the maximum of 292 years"),
    ("--duration 10", "write 10us, 10ms or 10s"),
    ("--duration 100us", "→ measure for at least a few intervals"),
    ("--samples 0", "at least one is needed, as in --samples 100000"),
    ("--samples -3", "write a whole number, as in --samples 100000"),
    ("--samples 1e6", "write a whole number, as in --samples 100000"),
    ("--samples 18446744073709551615", "→ set fewer --samples"),
    ("--samples 10 --duration 1s", "cannot be used with '--duration"),
    ("--cpus 8000", "→ name some of these with --cpus"),
    ("--cpus 99999", "write 0, 0,2 or 1-3"),
    ("--cpus -1", "write 0, 0,2 or 1-3"),
    ("--cpus 1-0", "write 0, 0,2 or 1-3"),
    ("--cpus all", "write 0, 0,2 or 1-3"),
    ("--cpus 0,,1", "write 0, 0,2 or 1-3"),
    ("--priority 0", "a whole number from 1 to 99"),
    ("--priority 100", "a whole number from 1 to 99"),
    ("--priority abc", "a whole number from 1 to 99"),
    ("--priority -5", "a whole number from 1 to 99"),
    ("--priority 50 --policy other", "→ omit --priority, or use --policy fifo or rr"),
    ("--policy batch", "possible values: other, fifo, rr, deadline"),
    ("--stimulus nosuch", "possible values: timer"),
    ("--idle-states deep", "possible values: as-is, shallow"),
    ("--load fnid", "the loads are find, launch, file-move, cpu, "),
    ("--load exec:", "needs a command"),
    ("--load find --load-dir /does/not/exist", "another directory for their files: --load-dir"),
    ("--warmup 2h", "at most 1.00 h is possible"),
    ("--worst 20001", "0..=20000"),
    ("--fail-above 0us", "write a time, as in 100us"),
    ("--fail-above -1ms", "`-1ms` is negative"),
    ("--fail-above p100=1ms", "write p50, p99.9 or p99.999"),
    ("--fail-above nonsense", "write a number and a unit"),
    ("--fail-above p99=7", "write 7us, 7ms or 7s"),
    ("--out file/below", "→ name a folder that you can write to: --out"),
    ("--out run", "→ name another folder: --out"),
];

#[test]
fn bad_arguments_are_refused_with_a_remedy() {
    let test = Test::new("arguments");
    fs::write(test.dir.join("file"), "a file").unwrap();
    let ended = test.measure(&["--samples", "1", "--out", "run"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let before = (names(&test.dir), fs::read(test.dir.join("run").join(RECORD)).unwrap());
    for (args, text) in REFUSED {
        let ended = test.measure(&args.split(' ').collect::<Vec<_>>());
        assert_eq!(ended.code, Some(2), "{args}: {ended:?}");
        assert!(ended.stderr.contains(text), "{args}: {}", ended.stderr);
        assert_eq!(ended.stdout, "", "{args}");
        let after = (names(&test.dir), fs::read(test.dir.join("run").join(RECORD)).unwrap());
        assert_eq!(after, before, "{args}");
    }
}

#[test]
fn the_interval_that_is_suggested_can_be_asked_for() {
    let test = Test::new("suggested");
    let ended = test.measure(&["--interval", "1us", "--duration", "10ms"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let last = ended.stderr.lines().last().unwrap_or_default();
    let hint = last.strip_prefix("  → use --interval ").and_then(|l| l.strip_suffix(" or more"));
    let interval = hint.and_then(|text| text.parse::<SpanNs>().ok());
    let message = interval.unwrap_or_else(|| panic!("{last}"));
    assert!(message.0 >= 50_000 && message.0 % 10_000 == 0, "{last}");
    assert_eq!(hint, Some(message.as_argument().as_str()));
}

#[test]
fn saved_samples_are_those_of_the_histograms() {
    let test = Test::new("save");
    // Both ends: by a number of wakeups, and by the end of the grid.
    for (i, args) in [["--samples", "700"], ["--duration", "700ms"]].iter().enumerate() {
        let out = format!("run{i}");
        let ended = test.measure(&[args[0], args[1], "--save-samples", "--out", &out]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let folder = test.dir.join(out);
        assert_eq!(names(&folder), [RECORD, "samples.csv"]);
        let run = record(&folder);
        assert_eq!((finding(&run, "lost-samples"), finding(&run, "not-saved")), (None, None));
        assert_samples_agree(&run, &fs::read_to_string(folder.join("samples.csv")).unwrap());
    }
}

fn assert_samples_agree(run: &Run, csv: &str) {
    let (head, lines) = csv.split_once('\n').unwrap();
    assert_eq!(head, "cpu,expiry_ns,wakeup_latency_ns");
    let numbers = |line: &str| line.split(',').map(|n| n.parse().unwrap()).collect::<Vec<u64>>();
    let samples: Vec<Vec<u64>> = lines.lines().map(numbers).collect();
    let woken: u64 = run.threads.iter().map(|t| t.woken.count).sum();
    assert_eq!(samples.len() as u64, woken);
    for thread in &run.threads {
        let own = samples.iter().filter(|s| s[0] == u64::from(thread.cpu.unwrap()));
        let (due, late): (Vec<u64>, Vec<u64>) = own.map(|s| (s[1], s[2])).unzip();
        assert_eq!(histogram_of(&late), thread.woken.histogram);
        assert_eq!(late.iter().sum::<u64>(), thread.woken.sum_ns);
        assert!(due.is_sorted() && due.windows(2).all(|pair| pair[0] < pair[1]), "{due:?}");
        // The first expiry is never missed: only a wakeup for it can come late.
        let on_grid = |d: &u64| (d - due[0]) % run.plan.interval_ns == 0;
        assert!(due.iter().all(on_grid) && due[0] < run.plan.interval_ns, "{due:?}");
    }
}

#[test]
fn limits_decide_the_exit_code() {
    let test = Test::new("limits");
    // An invalid run would be inconclusive; nothing here makes one.
    for (args, code, outcomes) in [
        (&["1ns"][..], 1, &[Outcome::Fail][..]),
        (&["1h"], 0, &[Outcome::Pass]),
        (&["p50=1ns"], 1, &[Outcome::Fail]),
        (&["p99.999=1h"], 3, &[Outcome::Inconclusive]),
        (&["1h", "p99.999=1h"], 3, &[Outcome::Pass, Outcome::Inconclusive]),
        (&["p99.999=1h", "1ns", "1h"], 1, &[Outcome::Inconclusive, Outcome::Fail, Outcome::Pass]),
    ] {
        let out = args.join("+");
        let mut all = vec!["--samples", "300", "--out", &out];
        all.extend(args.iter().flat_map(|limit| ["--fail-above", *limit]));
        let ended = test.measure(&all);
        assert_eq!(ended.code, Some(code), "{args:?}: {ended:?}");
        let run = record(&test.dir.join(&out));
        let got: Vec<_> = run.limits.iter().map(|j| j.outcome).collect();
        assert_eq!(got, outcomes, "{:?}", run.limits);
        for judgement in &run.limits {
            // The maximum and the median are carried by 300 samples, five nines are not.
            assert_eq!(judgement.observed_ns.is_none(), judgement.limit.starts_with("p99.999"));
            assert_eq!(judgement.reason.is_empty(), judgement.outcome != Outcome::Inconclusive);
            assert!(ended.stdout.contains(&judgement.limit), "{}", ended.stdout);
        }
        if outcomes.contains(&Outcome::Inconclusive) {
            assert!(assert_found(&run, "few-samples").hint.contains("--duration"));
        } else {
            assert_not_found(&run, "few-samples");
        }
    }
}

#[test]
fn policies_are_what_the_record_says() {
    if effective_user() != 0 {
        return skip("policies_are_what_the_record_says", "only root may use them all");
    }
    let test = Test::new("policies");
    for (arg, policy, priority) in [
        ("other", ProbePolicy::Other, None),
        ("fifo", ProbePolicy::Fifo, Some(90)),
        ("rr", ProbePolicy::Rr, Some(90)),
    ] {
        let run = test.measured(&["--samples", "100", "--policy", arg]);
        assert_eq!((run.plan.policy, run.plan.priority), (policy, priority));
        assert!(run.plan.policy_required && run.threads.iter().all(|t| t.cpu.is_some()));
        assert_not_found(&run, "policy");
        assert_not_found(&run, "unprivileged");
        // Asked for, it is no reservation.
        let severity = finding(&run, "ordinary-task").map(|f| f.severity);
        assert_eq!(severity, (policy == ProbePolicy::Other).then_some(Severity::Note));
    }
    let run = test.measured(&["--samples", "100", "--policy", "rr", "--priority", "7"]);
    assert_eq!((run.plan.policy, run.plan.priority), (ProbePolicy::Rr, Some(7)));
    assert_not_found(&run, "policy");
}

/// The kernel's own word for what the threads run under, while they do.
#[test]
fn threads_run_under_the_policy_and_on_the_cpu_of_the_record() {
    let name = "threads_run_under_the_policy_and_on_the_cpu_of_the_record";
    if effective_user() != 0 {
        return skip(name, "only root may use SCHED_FIFO for certain");
    }
    let test = Test::new("threads");
    let running = test.start_measure(&["--duration", "1h", "--priority", "42", "--out", "run"]);
    await_samples_in(&test.dir.join("run"));
    let mut cpus = Vec::new();
    for task in fs::read_dir(format!("/proc/{}/task", running.pid())).unwrap().flatten() {
        let comm = fs::read_to_string(task.path().join("comm")).unwrap();
        let Some(cpu) = comm.trim().strip_prefix("wakescope/") else { continue };
        let stat = fs::read_to_string(task.path().join("stat")).unwrap();
        let fields: Vec<_> = stat[stat.rfind(')').unwrap() + 1..].split_whitespace().collect();
        // Counted from the state, field 3 of proc(5): rt_priority is 40, the policy 41.
        assert_eq!((fields[37], fields[38]), ("42", "1"), "{stat}");
        let status = fs::read_to_string(task.path().join("status")).unwrap();
        let allowed = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:"));
        assert_eq!(allowed.map(str::trim), Some(cpu));
        cpus.push(cpu.parse::<u32>().unwrap());
    }
    cpus.sort_unstable();
    assert_eq!(cpus, allowed_cpus());
}

#[test]
fn as_many_of_the_worst_are_kept_as_asked() {
    let test = Test::new("worst");
    for keep in [0, 3] {
        let run = test.measured(&["--samples", "200", "--worst", &keep.to_string()]);
        assert_eq!(run.worst.len(), keep);
        assert!(run.worst.is_sorted_by_key(|w| std::cmp::Reverse(w.wakeup_latency_ns)));
        if let Some(worst) = run.worst.first() {
            assert_eq!(Some(worst.wakeup_latency_ns), run.woken().max_ns);
        }
    }
}

#[test]
fn shallow_idle_states_are_asked_for_while_it_lasts() {
    let name = "shallow_idle_states_are_asked_for_while_it_lasts";
    let device = PathBuf::from("/dev/cpu_dma_latency");
    if effective_user() != 0 || !device.exists() {
        return skip(name, "it takes root and /dev/cpu_dma_latency");
    }
    let test = Test::new("shallow");
    let run = test.measured(&["--samples", "50", "--idle-states", "shallow"]);
    assert_eq!(run.plan.idle_states, IdleStates::Shallow);
    assert_eq!(assert_found(&run, "idle-limited").severity, Severity::Note);
    assert_not_found(&test.measured(&["--samples", "50"]), "idle-limited");
}

/// Of the measuring process alone: loads have what they would have without being measured.
#[test]
fn the_kernel_takes_no_pages_away_to_make_huge_ones() {
    let name = "the_kernel_takes_no_pages_away_to_make_huge_ones";
    let huge_pages = |pid: &str| -> Option<bool> {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        status.lines().find_map(|line| Some(line.strip_prefix("THP_enabled:")?.trim() == "1"))
    };
    if huge_pages("self") != Some(true) {
        return skip(name, "this process gets no huge pages, or the kernel does not tell");
    }
    let test = Test::new("pages");
    let args = ["--duration", "1h", "--load", "exec:sleep 1000", "--out", "run"];
    let running = test.start_measure(&args);
    await_samples_in(&test.dir.join("run"));
    assert_eq!(huge_pages(&running.pid().to_string()), Some(false));
    let processes = test.processes();
    let load = processes.iter().find(|(_, command)| command.starts_with("sleep"));
    assert_eq!(huge_pages(&load.unwrap().0.to_string()), Some(true), "{processes:?}");
}

#[test]
fn memory_is_bounded() {
    let test = Test::new("memory");
    let args = ["--duration", "1h", "--worst", "1000", "--out", "run"];
    let running = test.start_measure(&args);
    let folder = test.dir.join("run");
    await_samples_in(&folder);
    // Some rewrites of the record on: each takes memory too.
    let first = record(&folder).duration_ns;
    eventually_some("it goes on", || {
        let run = record(&folder);
        (run.duration_ns >= first + 2_000_000_000).then_some(())
    });
    let status = fs::read_to_string(format!("/proc/{}/status", running.pid())).unwrap();
    let kib = |key: &str| -> usize {
        let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    };
    // What is locked is resident, all of the program too, which differs from build to build.
    let own_kib = kib("VmHWM:") - kib("RssFile:");
    let most_kib = (4 + 2 * allowed_cpus().len()) * 1024;
    assert!(own_kib <= most_kib, "{own_kib} KiB of its own, {most_kib} allowed");
}
