//! Cells for tests.

use wakescope_core::lab::{Arm, Cell, Status};

/// A kernel's model: `6.1/full`.
pub(super) fn arm(text: &str) -> Arm {
    let (kernel, asked) = text.rsplit_once('/').unwrap();
    Arm { kernel: kernel.into(), asked: asked.into() }
}

/// A cell that measured `max_ns`, and half of it as p99.9.
pub(super) fn cell(at: &str, load: &str, seed: u64, max_ns: u64) -> Cell {
    let Arm { kernel, asked } = arm(at);
    Cell {
        kernel,
        asked,
        load: load.into(),
        seed,
        status: Status::Ok,
        p50_ns: Some(max_ns / 10),
        p99_ns: Some(max_ns / 4),
        p999_ns: Some(max_ns / 2),
        max_ns: Some(max_ns),
        count: 4_000,
        ..Cell::default()
    }
}

/// Cells of the seeds 1, 2, …, one per maximum.
pub(super) fn cells(at: &str, load: &str, max_ns: &[u64]) -> Vec<Cell> {
    (1..).zip(max_ns).map(|(seed, &max)| cell(at, load, seed, max)).collect()
}
