//! Episodes that were recorded in guests of the lab and on machines, each with the answer that it was
//! given. A change of a rule shows here which answers change.
//!
//! To take over new answers, and to redact new files:
//! UPDATE_CORPUS=1 scripts/cargo test -p wakescope-attribution --test corpus.
//! The difference of the files is the difference that the rule makes.

use std::fmt::Write as _;
use std::fs;

use recorded::corpus;
use wakescope_attribution::{blame, components};
use wakescope_core::episodes::{Attributed, Entry, Head, Line, without_stacks};
use wakescope_core::explain::{Cause, Share};
use wakescope_core::preemption::Model;
use wakescope_core::redact::{redact_attributed, redact_head};
use wakescope_core::units::SpanNs;

mod recorded;

/// By the rules of today.
fn again(head: &Head, episode: &Attributed) -> Attributed {
    let wakeup = episode.wakeup.clone();
    let (components, mut blame) = (components(&wakeup.marks), blame(&wakeup, &head.known));
    blame.iter_mut().for_each(without_stacks);
    Attributed { wakeup, components, blame }
}

/// The answer, a share to a line.
fn text_of(episode: &Attributed) -> String {
    let mut out = format!("    {:?}\n", episode.components);
    for share in &episode.blame {
        writeln!(out, "    {}", serde_json::to_string(share).unwrap()).unwrap();
    }
    out
}

#[test]
fn every_stored_answer_is_repeated() {
    let updates = std::env::var_os("UPDATE_CORPUS").is_some();
    let mut changed = String::new();
    for recorded in &corpus() {
        let mut text = String::new();
        let mut last: Option<Head> = None;
        for (number, (head, episode)) in (1..).zip(&recorded.episodes) {
            let (mut head, mut episode) = (head.clone(), episode.clone());
            if updates {
                // So a file can be put here as a run stored it.
                redact_head(&mut head);
                redact_attributed(&mut episode);
            }
            let new = again(&head, &episode);
            if (&new.components, &new.blame) != (&episode.components, &episode.blame) {
                let late_ns = episode.wakeup_latency_ns();
                let name = recorded.name();
                writeln!(changed, "{name}, episode {number}, {late_ns} ns late").unwrap();
                write!(changed, "  was\n{}  is\n{}", text_of(&episode), text_of(&new)).unwrap();
            }
            let origin_ns = head.origin_ns;
            if last.as_ref() != Some(&head) {
                text += &Entry::Head(Box::new(head.clone())).text();
                last = Some(head);
            }
            text += &Entry::Episode(Box::new(Line::of(new, origin_ns))).text();
        }
        if updates {
            fs::write(&recorded.path, text).unwrap();
        }
    }
    let how = "to take them over: UPDATE_CORPUS=1";
    assert!(changed.is_empty() || updates, "these answers change:\n{changed}{how}");
}

/// What the loads `disturb-KIND-TIME` are to be found as.
fn is_found_as(kind: &str, share: &Share) -> bool {
    match kind {
        "fifo" => share.cause == Cause::HigherPriorityTask,
        "syscall" => matches!(share.cause, Cause::NoPreemptionPoint | Cause::PreemptOff),
        "softirq" => share.cause == Cause::Softirq,
        "timers" => share.cause == Cause::Irq,
        "throttle" => share.cause == Cause::Throttled,
        other => panic!("what is {other} to be found as?"),
    }
}

/// The kind and the length of what a load does, nanoseconds.
fn disturbance(head: &Head) -> Option<(&str, u64)> {
    let load = head.load.iter().find_map(|load| load.strip_prefix("disturb-"))?;
    let (kind, length) = load.split_once('-')?;
    let SpanNs(length_ns) = length.parse().ok()?;
    Some((kind, length_ns))
}

/// Where it is known what was done to a machine, each answer says so: a wakeup comes somewhere in the
/// disturbance, and waits for the rest of it.
#[test]
fn what_was_injected_is_found() {
    let mut checked = 0;
    for recorded in &corpus() {
        for (number, (head, episode)) in (1..).zip(&recorded.episodes) {
            let Some((kind, length_ns)) = disturbance(head) else { continue };
            let answer = again(head, episode);
            let found = answer.blame.iter().filter(|share| is_found_as(kind, share));
            let ns: u64 = found.map(|share| share.ns).sum();
            assert!(
                ns >= length_ns / 6 && ns <= length_ns + length_ns / 5,
                "{}, episode {number}: {ns} ns of {kind}\n{}",
                recorded.name(),
                text_of(&answer)
            );
            checked += 1;
        }
    }
    assert!(checked > 0, "no episode of the corpus has a known cause");
}

/// What the emulator saw from outside of episodes that `wakescope scope` looked into, or the kernel module wrote down:
/// how long the cause truly held the wakeup up, and how far off the answer may be, ns.
const SEEN: [(&str, u64, Cause, u64, u64); 10] = [
    // Of the way to the scheduler 956 ns are not the code's: 1.4 times the shortest of the run.
    ("amd64-6.1-none-find-way.jsonl", 14_000_000, Cause::NoPreemptionPoint, 303_853, 300),
    ("amd64-6.1-none-find-way.jsonl", 77_500_000, Cause::NoPreemptionPoint, 18_005, 200),
    ("amd64-6.1-none-file-move.jsonl", 166_500_000, Cause::IrqOff, 2_316_101, 100),
    // From the event of its end on, the softirq woke its thread for 1.3 us. No event tells.
    ("amd64-6.1-none-file-move.jsonl", 166_500_000, Cause::Softirq, 3_903, 1_300),
    ("amd64-6.1-none-file-move.jsonl", 166_500_000, Cause::NoPreemptionPoint, 3, 3),
    // Here one does. The code is all that was seen of sections between its preemption points.
    ("amd64-6.12-none-launch.jsonl", 59_500_000, Cause::Softirq, 4_941, 200),
    ("amd64-6.12-none-launch.jsonl", 59_500_000, Cause::NoPreemptionPoint, 63_014, 600),
    // The kernel did eight more at once, each 675 ns after the one before, which were the scheduler's: 5.4 us. Of the
    // 327 ns before the first of these no event tells.
    ("amd64-6.12-none-launch.jsonl", 115_500_000, Cause::Softirq, 41_499, 350),
    // A known miss: the interrupt came with preemption off, then interrupts went off, and preemption on. No stock
    // kernel shows either edge, so all of it is given to preemption off.
    ("amd64-6.12-full-overlapping.jsonl", 26_600_000, Cause::PreemptOff, 138_328, 99_600),
    ("amd64-6.12-full-overlapping.jsonl", 26_600_000, Cause::IrqOff, 99_990, 99_990),
];

#[test]
fn what_was_seen_from_outside_is_found() {
    let corpus = corpus();
    for (name, expiry_ns, cause, seen_ns, most_off_ns) in SEEN {
        let recorded = corpus.iter().find(|recorded| recorded.name() == name).expect(name);
        let is_it = |(head, episode): &&(Head, Attributed)| {
            episode.wakeup.marks.due.0 == head.origin_ns + expiry_ns
        };
        let (head, episode) = recorded.episodes.iter().find(is_it).expect(name);
        let answer = again(head, episode);
        let found = answer.blame.iter().filter(|share| share.cause == cause);
        let ns: u64 = found.map(|share| share.ns).sum();
        assert!(ns.abs_diff(seen_ns) <= most_off_ns, "{name}: {cause:?}\n{}", text_of(&answer));
    }
}

#[test]
fn the_corpus_is_small_and_names_nobody() {
    const MOST_BYTES: u64 = 40 << 10;
    for recorded in &corpus() {
        let (bytes, name) = (fs::metadata(&recorded.path).unwrap().len(), recorded.name());
        assert!(bytes <= MOST_BYTES, "{name} has {bytes} bytes");
        assert!(!recorded.episodes.is_empty(), "{name} has no episode");
        for (head, episode) in &recorded.episodes {
            let (mut public_head, mut public) = (head.clone(), episode.clone());
            redact_head(&mut public_head);
            redact_attributed(&mut public);
            assert_eq!((&public_head, &public), (head, episode), "{name}");
        }
    }
}

/// The kernels that the page has rows of.
const KERNELS: [&str; 5] = ["6.1", "6.12", "6.18", "7.2", "7.3"];

/// Whether a kernel has this model. (docs/preemption.md)
fn has_model(kernel: &str, model: Model) -> bool {
    match model {
        Model::Lazy => !["6.1", "6.12"].contains(&kernel),
        Model::None | Model::Voluntary => !kernel.starts_with("7."),
        _ => true,
    }
}

/// Of which architecture, kernel and model an episode is.
fn combination(head: &Head) -> (&'static str, &'static str, Model) {
    let arch = match head.arch.as_str() {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => panic!("no row has the architecture {other}"),
    };
    let is_it = |kernel: &&str| head.release.starts_with(&format!("{kernel}."));
    let kernel = KERNELS.into_iter().find(is_it);
    (arch, kernel.unwrap_or_else(|| panic!("no row has the kernel {}", head.release)), head.model)
}

#[test]
fn the_page_of_the_corpus_names_the_combinations_that_it_lacks() {
    let corpus = corpus();
    let heads = corpus.iter().flat_map(|recorded| recorded.episodes.iter().map(|(head, _)| head));
    let held: Vec<_> = heads.map(combination).collect();
    let list = |models: &[Model]| match models.is_empty() {
        true => "nothing".to_owned(),
        false => models.iter().map(Model::to_string).collect::<Vec<_>>().join(", "),
    };
    let mut rows = String::new();
    for arch in ["amd64", "arm64"] {
        for kernel in KERNELS {
            let mut all = vec![Model::None, Model::Voluntary, Model::Full, Model::Lazy, Model::Rt];
            all.retain(|&model| has_model(kernel, model));
            let (holds, lacks): (Vec<_>, Vec<_>) =
                all.into_iter().partition(|&model| held.contains(&(arch, kernel, model)));
            writeln!(rows, "| {arch} | {kernel} | {} | {} |", list(&holds), list(&lacks)).unwrap();
        }
    }
    let page = include_str!("../corpus/README.md");
    assert!(page.contains(&rows), "corpus/README.md is to have these rows:\n{rows}");
}
