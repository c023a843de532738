//! Labs that are interrupted or asked again, and labs that share a cache.

use std::fs;

use wakescope_core::lab::Status;

use crate::common::bench::{eventually, kill};
use crate::common::lab::{Bench, FIRST, KERNEL, Ran, first_lab};

const THREE: [&str; 12] = [
    "--kernel",
    KERNEL,
    "--preempt",
    "full",
    "--load",
    "idle",
    "--seeds",
    "3,4,5",
    "--samples",
    "100",
    "--jobs",
    "1",
];

#[test]
fn what_is_finished_is_kept_and_the_rest_resumed() {
    let name = "what_is_finished_is_kept_and_the_rest_resumed";
    let Some((stock, pool, _)) = first_lab(name) else { return };
    let bench = Bench::new(stock, "resumed");
    bench.take_kernels(&pool);
    let running = bench.start(&THREE);
    eventually("a cell is finished", || !bench.measurements().is_empty());
    kill("INT", &[running.pid()]);
    let ran = Ran::of(running.output());
    assert_eq!(ran.code, Some(3), "{}", ran.json);
    assert!(ran.stderr.contains("run the same command again to resume"), "{}", ran.stderr);
    let done = ran.states().iter().filter(|&&status| status == Status::Ok).count();
    assert_eq!(done, bench.measurements().len());
    assert!((1..3).contains(&done), "{}", ran.json);
    assert_eq!(bench.emulators(), [0; 0]);
    assert!(bench.cells().iter().all(|cell| !cell.contains('.')), "{:?}", bench.cells());

    let ran = bench.run(&THREE);
    assert_eq!((ran.code, ran.states()), (Some(0), vec![Status::Ok; 3]), "{}", ran.json);
    let was_done: Vec<bool> = (0..3).map(|i| i < done).collect();
    assert_eq!(ran.cached(), was_done);
}

#[test]
fn two_labs_that_share_a_cache_run_each_cell_once() {
    let name = "two_labs_that_share_a_cache_run_each_cell_once";
    let Some((stock, pool, _)) = first_lab(name) else { return };
    let bench = Bench::new(stock, "shared");
    bench.take_kernels(&pool);
    let (one, other) = (bench.start(&THREE), bench.start(&THREE));
    let (one, other) = (Ran::of(one.output()), Ran::of(other.output()));
    for ran in [&one, &other] {
        assert_eq!((ran.code, ran.states()), (Some(0), vec![Status::Ok; 3]), "{}", ran.json);
    }
    assert_eq!(one.result(), other.result());
    let fresh: Vec<bool> = one.cached().iter().map(|&cached| !cached).collect();
    assert_eq!(fresh, other.cached(), "a cell was run by both, or by none");
}

#[test]
fn what_was_run_is_not_run_again() {
    let Some((_, pool, first)) = first_lab("what_was_run_is_not_run_again") else { return };
    let written = |bench: &Bench| -> Vec<Vec<u8>> {
        let meta = |cell: &String| bench.cache.join("cells").join(cell).join("meta.json");
        bench.cells().iter().map(|cell| fs::read(meta(cell)).unwrap()).collect()
    };
    let before = written(&pool);
    let again = pool.run(&FIRST);
    assert_eq!(again.code, first.code);
    let ran: Vec<bool> = again.lab.cells.iter().map(|c| c.status == Status::Ok).collect();
    assert_eq!(again.cached(), ran);
    assert_eq!(again.result(), first.result());
    assert_eq!(again.keys(), first.keys());
    assert_eq!(written(&pool), before);
}
