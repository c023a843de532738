//! Sections with interrupts or preemption off in guests whose kernel shows where they begin and end,
//! which no distribution's does: `make test-sections` builds one.

use std::path::PathBuf;

use crate::common::bench::skip;
use crate::common::lab::{Bench, Stock};
use wakescope_core::explain::{Cause, Measured, Sections};
use wakescope_core::run::Run;

/// The kernel, and its configuration. `None`, and so said for `test`, unless there is one.
fn kernel(test: &str) -> Option<(PathBuf, PathBuf)> {
    let Some(folder) = std::env::var_os("WAKESCOPE_TEST_SECTIONS").map(PathBuf::from) else {
        let why = "no distribution's kernel has preemptirq tracepoints, and \
                   WAKESCOPE_TEST_SECTIONS names no folder with one (make test-sections)";
        skip(test, why);
        return None;
    };
    Some((folder.join("bzImage"), folder.join("config")))
}

/// The run of a guest with that kernel.
fn run(bench: &Bench, (kernel, config): &(PathBuf, PathBuf), how: &[&str]) -> Run {
    let kernel = ["--kernel", kernel.to_str().unwrap(), "--config", config.to_str().unwrap()];
    let what = ["--preempt", "full", "--seeds", "1", "--explain", "--sections", "--worst", "1000"];
    bench.run(&[&kernel[..], &what, how].concat()).record()
}

fn sections(run: &Run) -> (&Sections, &Measured) {
    let sections = run.explanation.as_ref().unwrap().sections.as_ref().unwrap();
    assert!(sections.exact, "{sections:?}");
    (sections, sections.measured.as_ref().unwrap())
}

#[test]
fn the_longest_sections_are_named_and_none_that_held_a_wakeup_up_is_longer() {
    let name = "the_longest_sections_are_named_and_none_that_held_a_wakeup_up_is_longer";
    let Some(kernel) = kernel(name) else { return };
    let Some(stock) = Stock::get(name) else { return };
    let bench = Bench::new(stock, "sections");
    let run = run(&bench, &kernel, &["--load", "file-move", "--samples", "500"]);
    let (sections, measured) = sections(&run);
    assert_eq!((measured.unpaired, measured.with_nmi), (0, 0), "{measured:?}");
    let counted: u64 = measured.kinds().map(|kind| kind.lengths.count).sum();
    assert!(counted > 10_000 && measured.edges >= 2 * counted, "{measured:?}");
    // Pages are given back and taken in batches, with interrupts off for hundreds of µs.
    let longest = sections.irq_off.as_ref().unwrap();
    assert!(
        longest.ns > 50_000 && longest.frames.iter().any(|f| f.name().contains("page")),
        "{longest:?}"
    );
    let shares = run.worst.iter().flat_map(|episode| &episode.blame);
    for share in shares.filter(|share| share.cause == Cause::IrqOff) {
        assert!(share.ns <= longest.ns, "{share:?} in {longest:?}");
    }
}
