//! Pairs of CPUs of waker and probe.

use wakescope_core::percentile::Percentile;

use super::element::{Column, paragraph, table, text};
use super::{element, figure, values};
use crate::matrix::Matrix;
use crate::overlay::Overlay;
use crate::picture::Picture;
use crate::quantity;

pub(super) fn section(overlay: &Overlay) -> String {
    let Some(matrix) = Matrix::of(overlay) else { return String::new() };
    let caveats: String =
        matrix.caveats().iter().map(|c| paragraph("lead", &text(&quantity::capital(c)))).collect();
    let title = format!("Pairs of CPUs: median {}", quantity::words_of(overlay).value);
    let figure = figure(Picture::Matrix, overlay, false);
    element::section("matrix", &title, &(figure + &caveats + &pairs(&matrix, overlay)))
}

/// A row per waker.
fn pairs(matrix: &Matrix, overlay: &Overlay) -> String {
    let probes: Vec<String> = matrix.cpus.iter().map(|cpu| format!("probe on CPU {cpu}")).collect();
    let mut head = vec![("waker", Column::Words)];
    head.extend(probes.iter().map(|probe| (probe.as_str(), Column::Number)));
    let cell = |pair| match matrix.run(pair).map(|run| run.expiries()) {
        Some(all) => {
            let median = values::quantile(&all, Percentile::SHOWN[0]);
            format!("{median}, max {}", values::time(all.max_ns))
        }
        None => "not measured".into(),
    };
    let rows = matrix.cpus.iter().map(|&waker| {
        let name = format!("on CPU {waker}");
        std::iter::once(name).chain(matrix.cpus.iter().map(|&probe| cell((waker, probe)))).collect()
    });
    let caption = values::caption("Median and maximum", overlay);
    table(&caption, &head, &rows.collect::<Vec<_>>())
}
