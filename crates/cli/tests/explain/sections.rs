//! Sections with interrupts or preemption off, on kernels that show their edges and on those that
//! do not.

use std::fs;

use wakescope_core::explain::{Evidence, Measured, SectionKind};
use wakescope_core::run::Run;

use crate::a_cpu;
use crate::common::bench::{Test, skip};
use crate::common::following::{can_follow, explained};

/// Whether the running kernel has the tracepoint.
fn has(tracepoint: &str) -> bool {
    let types = fs::read("/sys/kernel/btf/vmlinux").unwrap_or_default();
    let name = format!("\0btf_trace_{tracepoint}\0");
    types.windows(name.len()).any(|window| window == name.as_bytes())
}

fn has_edges() -> bool {
    has("irq_disable") && has("preempt_disable")
}

fn run(test: &Test) -> (Run, String) {
    let cpu = a_cpu();
    explained(test, &["--sections", "--samples", "500", "--cpus", &cpu, "--out", "run"])
}

#[test]
fn a_kernel_without_edges_of_sections_gives_an_estimate_and_says_so() {
    let name = "a_kernel_without_edges_of_sections_gives_an_estimate_and_says_so";
    if !can_follow(name) {
        return;
    }
    if has_edges() {
        return skip(name, "this kernel has preemptirq tracepoints");
    }
    let test = Test::new("explain-no-edges");
    let (run, shown) = run(&test);
    let found = run.validity.findings.iter().find(|f| f.code == "no-section-edges").unwrap();
    assert!(found.hint.contains("CONFIG_PREEMPTIRQ_TRACEPOINTS"), "{found:?}");
    let sections = run.explanation.unwrap().sections.unwrap();
    assert!(!sections.exact, "{sections:?}");
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = "preemption off (no PREEMPTIRQ_TRACEPOINTS)";
    assert!(shown.contains(text), "{shown}");
    // What a guest may have stood still in is not even that long for certain.
    let both = [&sections.irq_off, &sections.preempt_off].into_iter().flatten();
    let (perhaps, at_least): (Vec<_>, Vec<_>) =
        both.partition(|share| share.evidence == Evidence::Bound);
    assert_eq!(shown.matches(": at least ").count(), at_least.len(), "{shown}");
    assert_eq!(shown.matches(": perhaps ").count(), perhaps.len(), "{shown}");
}

#[test]
fn sections_are_counted_from_edge_to_edge() {
    let name = "sections_are_counted_from_edge_to_edge";
    if !can_follow(name) {
        return;
    }
    if !has_edges() {
        return skip(name, "this kernel has no preemptirq tracepoints");
    }
    let test = Test::new("explain-edges");
    let (run, shown) = run(&test);
    let sections = run.explanation.unwrap().sections.unwrap();
    assert!(sections.exact && shown.contains("sections, from edge to edge"), "{shown}");
    let measured = sections.measured.unwrap();
    let Measured { irq_off: Some(irq_off), preempt_off: Some(preempt_off), .. } = &measured else {
        panic!("{measured:?}")
    };
    for (kind, share) in [(irq_off, &sections.irq_off), (preempt_off, &sections.preempt_off)] {
        assert_adds_up(kind);
        assert!(share.as_ref().unwrap().ns >= kind.lengths.max_ns.unwrap(), "{share:?}");
    }
    let counted: u64 = measured.kinds().map(|kind| kind.lengths.count).sum();
    assert!(measured.edges >= 2 * counted, "{measured:?}");
}

#[track_caller]
fn assert_adds_up(kind: &SectionKind) {
    let worst = kind.places.first().unwrap();
    assert_eq!(Some(worst.worst_ns), kind.lengths.max_ns, "{kind:?}");
    let placed: u64 = kind.places.iter().map(|place| place.count).sum();
    assert!(kind.lengths.count >= placed && placed > 0, "{kind:?}");
    assert!(!kind.longest.as_ref().unwrap().frames.is_empty(), "{kind:?}");
}
