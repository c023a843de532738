//! What loads did meanwhile: latency that is bought with throughput is no gain.

use wakescope_core::run::LoadResult;
use wakescope_core::units::grouped;

use super::element::{self, Column, key_table, name, text};
use crate::load::rate;
use crate::overlay::Overlay;

pub(super) fn section(overlay: &Overlay) -> String {
    let is_several = overlay.entries.len() > 1;
    let mut rows = Vec::new();
    for entry in &overlay.entries {
        for load in entry.run.load.iter().take(32) {
            let mut row = if is_several { vec![name(&entry.name(), 80)] } else { vec![] };
            row.extend(cells(load));
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let mut head = if is_several { vec![("run", Column::Words)] } else { vec![] };
    head.push(("load", Column::Words));
    head.extend(["work", "per second", "per second before", "kept"].map(|n| (n, Column::Number)));
    head.push(("", Column::Words));
    element::section("load", "Load and throughput", &key_table("Work of the loads", &head, &rows))
}

fn cells(load: &LoadResult) -> Vec<String> {
    let unit = crate::style::clean(&load.unit, 16);
    // Of bytes, nobody wants to read all digits.
    let work = match unit.as_str() {
        "bytes" => rate(load.work as f64, "bytes"),
        unit => format!("{} {unit}", grouped(load.work)),
    };
    let before = load.before_per_second.filter(|b| b.is_finite() && *b > 0.0);
    let kept =
        before.map(|before| 100.0 * load.per_second / before).filter(|k| (0.0..1e6).contains(k));
    let state = if load.alive {
        String::new()
    } else {
        format!("<span class=\"badge bad\">died</span> {}", name(&load.fault, 240))
    };
    vec![
        name(&load.name, 80),
        text(&work),
        text(&rate(load.per_second, &unit)),
        before.map_or_else(|| "–".into(), |b| text(&rate(b, &unit))),
        kept.map_or_else(|| "–".into(), |k| format!("{k:.0} %")),
        state,
    ]
}
