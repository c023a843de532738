//! Prometheus' text format and OpenMetrics.

use std::io::{self, Write};

use super::{Family, Kind, Value, cumulative, inclusive, octaves};
use crate::export::prometheus::{Format, edge_text, escaped, head};
use crate::export::seconds;
use wakescope_core::watch::Waits;

/// Writes families.
pub(super) fn write(families: &[Family], format: Format, out: &mut impl Write) -> io::Result<()> {
    for Family { name, kind, help, samples } in families {
        let (kind, suffix) = match kind {
            Kind::Counter => ("counter", "_total"),
            Kind::Gauge => ("gauge", ""),
            Kind::Histogram => ("histogram", ""),
        };
        head(name, kind, help, format, out)?;
        for sample in samples {
            let labels = labels(&sample.labels);
            match &sample.value {
                Value::Number(number) => {
                    writeln!(out, "{name}{suffix}{} {number}", braced(&labels))?
                }
                Value::Time(ns) => {
                    writeln!(out, "{name}{suffix}{} {}", braced(&labels), seconds(*ns))?
                }
                Value::Waits(waits) => write_histogram(name, &labels, waits, format, out)?,
            }
        }
    }
    if format == Format::OpenMetrics {
        writeln!(out, "# EOF")?;
    }
    Ok(())
}

fn write_histogram(
    name: &str,
    labels: &str,
    waits: &Waits,
    format: Format,
    out: &mut impl Write,
) -> io::Result<()> {
    let comma = if labels.is_empty() { "" } else { "," };
    for (edge, count) in cumulative(waits.histogram.buckets(), octaves()) {
        let le = edge_text(inclusive(edge), format);
        writeln!(out, "{name}_bucket{{{labels}{comma}le=\"{le}\"}} {count}")?;
    }
    writeln!(out, "{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {}", waits.count)?;
    writeln!(out, "{name}_sum{} {}", braced(labels), seconds(waits.sum_ns))?;
    writeln!(out, "{name}_count{} {}", braced(labels), waits.count)
}

fn labels(labels: &[(&'static str, String)]) -> String {
    let each =
        labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value, usize::MAX)));
    each.collect::<Vec<_>>().join(",")
}

fn braced(labels: &str) -> String {
    if labels.is_empty() { String::new() } else { format!("{{{labels}}}") }
}
