//! docs/reference says what the code does: the schema, the list of findings, the man pages and
//! the completions.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use clap::builder::Resettable;
use clap::{Arg, Command};
use clap_complete::Shell;
use common::runs::{empty_run, full_run, targets};
use common::schema::{
    assert_described, assert_keys_may_be_added, assert_what_fits_is_read, unused_keys,
};
use common::{Checker, assert_valid_run, read, root, schema};
use serde_json::{Value, json};
use wakescope_core::explain::{Cause, Evidence};
use wakescope_core::finding::{CODES, Finding, Severity, Validity};
use wakescope_core::limit::{MeasuredBy, Outcome, doubt};
use wakescope_core::line::{AnsweredBy, Attachment};
use wakescope_core::plan::{Between, IdleStates, Placement, Plan, ProbePolicy, Stimulus};
use wakescope_core::preemption::Model;
use wakescope_core::run::{Run, State, TimeDomain};
use wakescope_core::source::{Omission, Quantity};

#[path = "../common/mod.rs"]
mod common;
mod episodes;
mod free_text;
mod predict;
mod scenario;
mod scope;

#[test]
fn a_run_with_everything_fits_the_schema() {
    let run = full_run();
    assert_valid_run(&run.to_json());
    let mut unused = unused_keys(&schema(), &serde_json::to_value(&run).unwrap());
    for target in targets() {
        let run = Run { plan: Plan { target, ..Plan::default() }, ..empty_run() };
        assert_valid_run(&run.to_json());
        let without = unused_keys(&schema(), &serde_json::to_value(&run).unwrap());
        unused.retain(|key| without.contains(key));
    }
    assert!(unused.is_empty(), "the schema documents keys that no run has: {unused:?}");
}

#[test]
fn a_run_with_nothing_fits_the_schema() {
    assert_valid_run(&empty_run().to_json());
}

#[test]
fn every_name_of_an_enumeration_fits_the_schema() {
    let names = |check: &dyn Fn(&mut Run)| {
        let mut run = full_run();
        check(&mut run);
        assert_valid_run(&run.to_json());
    };
    for state in [State::Running, State::Interrupted, State::Complete] {
        names(&|run| run.state = state);
    }
    for domain in [TimeDomain::Real, TimeDomain::Virtual, TimeDomain::Simulated] {
        names(&|run| run.time_domain = domain);
    }
    for policy in [ProbePolicy::Other, ProbePolicy::Fifo, ProbePolicy::Rr, ProbePolicy::Deadline] {
        names(&|run| run.plan.policy = policy);
    }
    for stimulus in Stimulus::OF_PROBES.iter().copied().chain([Stimulus::Any]) {
        names(&|run| run.plan.stimulus = stimulus);
    }
    for placement in [Placement::SameCpu, Placement::CrossCpu] {
        names(&|run| run.plan.waker.as_mut().unwrap().placement = placement);
    }
    for between in [Between::Threads, Between::Processes] {
        names(&|run| run.plan.waker.as_mut().unwrap().between = between);
    }
    for idle in [IdleStates::AsIs, IdleStates::Shallow] {
        names(&|run| run.plan.idle_states = idle);
    }
    use Attachment::{Gpio, Loopback, Pseudoterminal, Uart, Usb};
    for attachment in [Uart, Usb, Pseudoterminal, Loopback, Gpio] {
        names(&|run| run.line.as_mut().unwrap().attachment = attachment);
    }
    for answered_by in [AnsweredBy::Responder, AnsweredBy::Echo] {
        names(&|run| run.line.as_mut().unwrap().answered_by = answered_by);
    }
    use Omission::{Counted, Relative, Skipped};
    for omission in [Counted, Skipped, Relative, Omission::None, Omission::Unknown] {
        names(&|run| run.source.as_mut().unwrap().omission = omission);
    }
    use Quantity::{Gap, IntervalDeviation, IrqLatency, RequestLatency, RunqueueDelay};
    use Quantity::{RoundTrip, ThreadLatency, UserLatency, WakeupLatency};
    let own = [WakeupLatency, IrqLatency, ThreadLatency, UserLatency, RoundTrip];
    for quantity in own.into_iter().chain([IntervalDeviation, Gap, RunqueueDelay, RequestLatency]) {
        names(&|run| run.source.as_mut().unwrap().quantity = quantity);
    }
    for outcome in [Outcome::Pass, Outcome::Inconclusive, Outcome::Fail] {
        names(&|run| (run.limits[0].outcome, run.limits[0].observed_ns) = (outcome, Option::None));
    }
    use Model::{Full, Lazy, None, Rt, Unknown, Voluntary};
    for model in [None, Voluntary, Full, Lazy, Rt, Unknown] {
        names(&|run| run.host.preemption.model = model);
    }
    for cause in Cause::ALL {
        names(&|run| run.causes[0].cause = cause);
    }
    for evidence in [Evidence::Edge, Evidence::Stack, Evidence::Bound] {
        names(&|run| run.worst[0].blame[0].evidence = evidence);
    }
    for severity in [Severity::Note, Severity::Warning, Severity::Error] {
        let finding = Finding::new("steal", severity, "so much".into(), "");
        names(&|run| {
            run.validity = Validity::of(vec![finding.clone()]);
            run.limits[0].outcome = Outcome::Inconclusive;
        });
    }
}

#[test]
fn damaged_runs_do_not_fit_the_schema() {
    let checker = Checker::new(schema());
    for (pointer, damage) in [
        ("/schema", json!("wakescope.run/1")),
        ("/schema", json!("wakescope.run/3")),
        ("/id", json!("")),
        ("/started", json!("yesterday")),
        ("/duration_ns", json!(-1)),
        ("/duration_ns", json!(1.5)),
        ("/duration_ns", json!("10s")),
        ("/time_domain", json!("imaginary")),
        ("/state", json!("done")),
        ("/host", Value::Null),
        ("/host/preemption/model", json!("RT")),
        ("/host/rt/runtime_ns", json!(-1)),
        ("/plan/target", json!("process 4711")),
        ("/plan/target", json!({"kind": "process"})),
        ("/plan/target", json!({"kind": "planet"})),
        ("/plan/policy", json!("FIFO")),
        ("/plan/priority", json!(100)),
        ("/validity/verdict", json!("fine")),
        ("/validity/findings/0/code", json!("Steal!")),
        ("/threads", json!({})),
        ("/threads/0/missed", Value::Null),
        ("/threads/0/woken/histogram/0", json!([1, 2])),
        ("/threads/0/woken/histogram/0", json!([1, 2, 3, 4])),
        ("/threads/0/woken/histogram/0/2", json!(0)),
        ("/worst/0/wakeup_latency_ns", json!("late")),
        ("/worst/0/blame/0/cause", json!("magic")),
        ("/worst/0/blame/0/evidence", json!("event")),
        ("/worst/0/components/sched_latency_ns", Value::Null),
        ("/worst/0/blame/0/culprit", json!("uart_drain_fifo")),
        ("/worst/0/blame/0/culprit", json!({"kind": "function", "module": null})),
        ("/worst/0/blame/0/culprit", json!({"kind": "interrupt", "name": ""})),
        ("/worst/0/blame/0/culprit", json!({"kind": "task", "comm": "rm", "priority": null})),
        ("/worst/0/blame/0/culprit/kind", json!("firmware")),
        ("/worst/0/blame/0/phase", json!("return from interrupt")),
        ("/worst/0/blame/0/within", json!("serial_release in logger[231]")),
        ("/worst/0/blame/0/within/task/policy", json!("FIFO")),
        ("/worst/0/blame/0/frames/0", json!("uart_drain_fifo+0x1b2")),
        ("/worst/0/blame/0/frames/0/offset", json!(-1)),
        ("/worst/0/timeline/0/at_ns", json!(-1)),
        ("/worst/0/timeline/0/event", json!("timer expiry")),
        ("/worst/0/timeline/0/event/kind", json!("timer expiry")),
        ("/worst/0/timeline/5/event", json!({"kind": "missing"})),
        ("/components/irq_latency", json!({})),
        ("/explanation/sections/irq_off", json!("long")),
        ("/explanation/sections/measured/irq_off/places/0/count", json!(-1)),
        ("/explanation/sections/measured/irq_off/longest/begin", json!("uart_write")),
        ("/explanation/sections/measured/irq_off/longest/begin/place", json!("uart_write")),
        ("/explanation/bound/unsound", Value::Null),
        ("/explanation/bound/unsound/0", json!("a sentence")),
        ("/summary/percentiles", json!({"median": 1})),
        ("/load/0/per_second", json!(-0.5)),
        ("/causes/0/share", json!(1.1)),
    ] {
        let mut run = serde_json::to_value(full_run()).unwrap();
        *run.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = damage.clone();
        assert!(checker.fault(&run).is_some(), "{pointer} = {damage} fits");
    }
}

#[test]
fn a_run_that_fits_the_schema_can_be_read() {
    let whole = serde_json::to_value(full_run()).unwrap();
    assert_what_fits_is_read(schema(), &whole, |json| Run::from_json(json.as_bytes()).is_ok());
}

#[test]
fn keys_may_be_added_but_not_written_unannounced() {
    let whole = serde_json::to_value(full_run()).unwrap();
    let closed_sets = ["/module_build_ids", "/plan/target", "/percentiles", "/percentiles_at_most"];
    assert_keys_may_be_added(&schema(), &whole, &closed_sets);
}

#[test]
fn every_key_of_the_schema_is_described_with_its_unit() {
    assert_described(&schema(), " ns");
}

#[test]
fn findings_are_documented() {
    let page = read("docs/reference/findings.md");
    let sections: Vec<(&str, &str)> = page
        .split("\n## ")
        .skip(1)
        .map(|s| s.split_once('\n').unwrap_or((s, "")))
        .map(|(title, text)| (title.trim().trim_matches('`'), text))
        .collect();
    let documented: Vec<&str> = sections.iter().map(|s| s.0).collect();
    let codes: Vec<&str> = CODES.iter().map(|c| c.0).collect();
    assert_eq!(documented, codes, "sections of findings.md (left) against finding::CODES (right)");
    for ((code, text), (_, meaning)) in sections.iter().zip(CODES) {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        assert!(
            text.starts_with(&meaning.to_lowercase()),
            "the section on {code} does not begin with its meaning: {meaning}"
        );
        assert!(text.contains("**when:**"), "the section on {code} does not say when it comes");
        assert!(text.contains("**what to do:**"), "the section on {code} does not say what to do");
    }
}

/// Each finding that keeps a limit from being passed says so, and no other does.
#[test]
fn findings_that_leave_a_limit_open_say_so() {
    let page = read("docs/reference/findings.md");
    for (code, _) in CODES {
        let (_, section) = page.split_once(&format!("\n## `{code}`\n")).unwrap();
        let section = section.split("\n## ").next().unwrap();
        let says_so =
            section.contains("limit (`--fail-above`) that is not exceeded is inconclusive");
        let finding = Finding::new(code, Severity::Warning, String::new(), "");
        let validity = Validity::of(vec![finding]);
        let is_doubt = |by: &MeasuredBy| doubt(&validity, *by, true).is_some();
        assert_eq!(says_so, MeasuredBy::ALL.iter().any(is_doubt), "{code}");
    }
}

/// Each format that the changelog lists is described by a page or a schema.
#[test]
fn each_format_is_described() {
    let changelog = read("CHANGELOG.md");
    let (_, listed) = changelog.split_once("\n### Schema\n").unwrap();
    let folders =
        ["docs", "docs/reference"].map(|folder| fs::read_dir(root().join(folder)).unwrap());
    let files = folders.into_iter().flatten().map(|entry| entry.unwrap().path());
    let pages: String = files.filter_map(|path| fs::read_to_string(path).ok()).collect();
    for name in listed.split('`').filter(|name| name.starts_with("wakescope.")) {
        assert!(pages.contains(name), "{name}");
    }
}

/// The versions of formats that other programs read are listed in the changelog.
#[test]
fn the_changelog_lists_each_schema() {
    let changelog = read("CHANGELOG.md");
    let (_, listed) = changelog.split_once("\n### Schema\n").unwrap();
    let folder = root().join("docs/reference");
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    for path in names.filter(|path| path.to_string_lossy().ends_with(".schema.json")) {
        let text = fs::read_to_string(&path).unwrap();
        let (_, name) = text.split_once("\"const\": \"wakescope.").unwrap();
        let (name, _) = name.split_once('"').unwrap();
        assert!(listed.contains(&format!("`wakescope.{name}`")), "{}: {name}", path.display());
    }
}

#[test]
fn zsh_runs_no_part_of_a_name_when_it_completes() {
    let command = wakescope_cli::command();
    let text = read("docs/reference/completions/_wakescope");
    let args = with_verbs(&command).into_iter().flat_map(Command::get_arguments);
    let names = args.filter_map(Arg::get_value_names).flatten();
    let names: BTreeSet<&str> =
        names.map(|name| name.as_str()).filter(|n| n.contains(':')).collect();
    assert!(names.contains("A:B"), "{names:?}");
    for name in names {
        assert!(!text.contains(&format!("]:{name}:")), "zsh takes a part of {name} for a command");
        assert!(text.contains(&format!("]:{}:", name.replace(':', "\\:"))), "{name}");
    }
}

#[test]
fn man_pages_and_completions_are_up_to_date() {
    let update = std::env::var_os("UPDATE_REFERENCE").is_some_and(|v| !v.is_empty() && v != "0");
    let wanted = generated(visible(&wakescope_cli::command()));
    let names: BTreeSet<&PathBuf> = wanted.iter().map(|(path, _)| path).collect();
    let mut stale = Vec::new();
    for folder in ["docs/reference/man", "docs/reference/completions"] {
        fs::create_dir_all(root().join(folder)).unwrap();
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let path = PathBuf::from(folder).join(entry.unwrap().file_name());
            if !names.contains(&path) {
                stale.push(path.clone());
                if update {
                    fs::remove_file(root().join(path)).unwrap();
                }
            }
        }
    }
    for (path, text) in &wanted {
        if fs::read(root().join(path)).is_ok_and(|there| there == *text) {
            continue;
        }
        stale.push(path.clone());
        if update {
            fs::write(root().join(path), text).unwrap();
        }
    }
    assert!(
        update || stale.is_empty(),
        "not what the arguments are now: {stale:?}\n\
         to make them anew: UPDATE_REFERENCE=1 cargo test -p wakescope-cli --test reference"
    );
}

/// A script that sets a limit must know how the command answers it.
#[test]
fn verbs_with_limits_list_their_exit_codes() {
    let command = wakescope_cli::command();
    let has_limits = |verb: &&Command| verb.get_arguments().any(|arg| arg.get_id() == "fail_above");
    let verbs: Vec<&Command> = with_verbs(&command).into_iter().filter(has_limits).collect();
    assert!(verbs.len() >= 5, "{verbs:?}");
    for verb in verbs {
        let about = verb.get_long_about().map(ToString::to_string).unwrap_or_default();
        assert!(about.contains("Exit codes: 0 "), "{}: {about}", verb.get_name());
    }
}

#[test]
fn hidden_verbs_stay_out_of_man_pages_and_completions() {
    let hidden = || Command::new("inner").hide(true).about("not for people");
    let nested = Command::new("outer").subcommand(Command::new("nested")).subcommand(hidden());
    let command = Command::new("tool").subcommand(nested).subcommand(hidden());
    let files = generated(visible(&command));
    for (path, text) in &files {
        let text = String::from_utf8_lossy(text);
        assert!(!path.to_string_lossy().contains("inner"), "{path:?}");
        assert!(!text.contains("inner") && !text.contains("not for people"), "{path:?}: {text}");
    }
    let pages: Vec<_> = files.iter().filter_map(|(path, _)| path.file_name()?.to_str()).collect();
    assert!(pages.contains(&"tool-outer-nested.1"), "{pages:?}");
}

#[test]
fn every_verb_has_a_man_page_and_is_named_by_the_one_above_it() {
    let command = visible(&wakescope_cli::command());
    let pages: Vec<(String, String)> = generated(command.clone())
        .into_iter()
        .map(|(path, text)| (path.display().to_string(), String::from_utf8(text).unwrap()))
        .collect();
    let page = |name: &str| {
        let path = format!("docs/reference/man/{name}.1");
        let found = pages.iter().find(|(known, _)| *known == path);
        // roff writes a dash that is not a hyphen as `\-`.
        found.map(|(_, text)| text.replace("\\-", "-")).unwrap_or_else(|| panic!("no {path}"))
    };
    for verb in command.get_subcommands() {
        let name = format!("wakescope-{}", verb.get_name());
        assert!(page("wakescope").contains(&format!("{name}(1)")), "{name}");
        for nested in verb.get_subcommands() {
            let inner = format!("{name}-{}", nested.get_name());
            assert!(page(&name).contains(&format!("{inner}(1)")), "{inner}");
            assert!(page(&inner).contains("SYNOPSIS"), "{inner}");
        }
    }
}

/// `command` without its hidden verbs, at any depth, which clap's generators would list.
fn visible(command: &Command) -> Command {
    if !command.has_subcommands() {
        return command.clone();
    }
    let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set()).map(visible);
    // Without its feature `string`, clap wants names that live for ever.
    let name: &'static str = command.get_name().to_owned().leak();
    let version: Option<&'static str> =
        command.get_version().map(|version| &*version.to_owned().leak());
    Command::new(name)
        .version(Resettable::from(version.map(clap::builder::Str::from)))
        .about(command.get_about().cloned().unwrap_or_default())
        .long_about(Resettable::from(command.get_long_about().cloned()))
        .after_help(Resettable::from(command.get_after_help().cloned()))
        .after_long_help(Resettable::from(command.get_after_long_help().cloned()))
        .subcommand_required(command.is_subcommand_required_set())
        .disable_help_subcommand(true)
        .args(command.get_arguments().cloned())
        .subcommands(verbs)
}

/// `command` with all that is below it.
fn with_verbs(command: &Command) -> Vec<&Command> {
    let below = command.get_subcommands().flat_map(with_verbs);
    std::iter::once(command).chain(below).collect()
}

/// `command` as zsh needs it: what follows a colon in the name of a value would be run as a command.
fn with_colons_escaped(command: Command) -> Command {
    let escaped = |arg: Arg| {
        let names = arg.get_value_names().unwrap_or_default();
        if !names.iter().any(|name| name.contains(':')) {
            return arg;
        }
        let names = names.iter().map(|name| &*name.replace(':', "\\:").leak());
        let names: Vec<&'static str> = names.collect();
        arg.value_names(names)
    };
    command.mut_args(escaped).mut_subcommands(with_colons_escaped)
}

/// Every generated file, by its path in the repository.
fn generated(mut command: Command) -> Vec<(PathBuf, Vec<u8>)> {
    let name = command.get_name().to_owned();
    let mut files = Vec::new();
    let completions = PathBuf::from("docs/reference/completions");
    for (shell, file) in [
        (Shell::Bash, format!("{name}.bash")),
        (Shell::Zsh, format!("_{name}")),
        (Shell::Fish, format!("{name}.fish")),
    ] {
        let mut text = Vec::new();
        let mut command = match shell {
            Shell::Zsh => with_colons_escaped(command.clone()),
            _ => command.clone(),
        };
        clap_complete::generate(shell, &mut command, &name, &mut text);
        files.push((completions.join(file), text));
    }
    command.build();
    let man = PathBuf::from("docs/reference/man");
    for page in with_verbs(&command) {
        let title = page.get_display_name().unwrap_or(page.get_name()).to_owned();
        let mut text = Vec::new();
        clap_mangen::Man::new(page.clone())
            .title(&title)
            .source(format!("{name} {}", command.get_version().unwrap_or_default()))
            .manual(name.as_str())
            .render(&mut text)
            .unwrap();
        files.push((man.join(format!("{title}.1")), text));
    }
    files
}
