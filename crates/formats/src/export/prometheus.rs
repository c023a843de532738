//! Classic histograms as Prometheus and OpenMetrics have them in text.

use std::io::{self, Write};

use wakescope_core::distribution::Distribution;
use wakescope_core::run::{Run, TimeDomain};
use wakescope_core::source::Quantity;

use super::{Values, latest, latest_of_all, numbered, seconds};
use wakescope_core::harmless::clean;

/// Which of the two formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' text format 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

/// Upper edges of the buckets, ns: 1, 2, 5, … from 1 µs to 10 s.
const EDGES_NS: [u64; 22] = {
    let mut edges = [0; 22];
    let (mut at, mut decade) = (0, 1_000);
    while at < 22 {
        edges[at] = decade * [1, 2, 5][at % 3];
        at += 1;
        if at % 3 == 0 {
            decade *= 10;
        }
    }
    edges
};

/// Writes the run's histograms, one per thread, its maxima and, if they are known, its missed expiries.
/// `plan` is the run's plan in words.
///
/// The count of a bucket is that of the samples that are certainly not later than its edge.
pub fn write(
    run: &Run,
    plan: &str,
    values: Values,
    format: Format,
    out: &mut impl Write,
) -> io::Result<()> {
    let name = format!("wakescope_{}", quantity(run));
    let whose = Labels::of(run, values);
    write_info(run, plan, format, out)?;

    let other = run.quantity().to_string();
    let what = match values {
        _ if run.quantity() != Quantity::WakeupLatency => other.as_str(),
        Values::Woken => "lateness of each wakeup",
        Values::Expiries => "lateness of each timer expiry, missed ones included",
    };
    let histogram = format!("{name}_seconds");
    head(&histogram, "histogram", &format!("wakescope run: {what}."), format, out)?;
    for (thread, labels) in run.threads.iter().zip(&whose.threads) {
        write_histogram(&histogram, labels, values.of(thread), format, out)?;
    }

    let largest = format!("{name}_max_seconds");
    head(&largest, "gauge", "Largest value of the histogram.", format, out)?;
    for (thread, labels) in run.threads.iter().zip(&whose.threads) {
        let d = values.of(thread);
        if d.count > 0 {
            writeln!(out, "{largest}{{{labels}}} {}", seconds(latest_of_all(d)))?;
        }
    }

    if run.knows("threads.missed") {
        let help = "Expiries without a wakeup of their own.";
        head("wakescope_missed_expiries", "counter", help, format, out)?;
        for (thread, labels) in run.threads.iter().zip(&whose.of_cpus) {
            writeln!(out, "wakescope_missed_expiries_total{{{labels}}} {}", thread.missed)?;
        }
    }
    if format == Format::OpenMetrics {
        writeln!(out, "# EOF")?;
    }
    Ok(())
}

/// What the values are, as part of a name.
fn quantity(run: &Run) -> &'static str {
    match run.quantity() {
        Quantity::WakeupLatency => "wakeup_latency",
        Quantity::IrqLatency => "irq_latency",
        Quantity::ThreadLatency => "thread_latency",
        Quantity::UserLatency => "user_latency",
        Quantity::IntervalDeviation => "interval_deviation",
        Quantity::Gap => "gap",
        Quantity::RunqueueDelay => "runqueue_delay",
        Quantity::RequestLatency => "request_latency",
        Quantity::RoundTrip => "round_trip",
        Quantity::Unknown => "value",
    }
}

/// The labels of each thread's series.
struct Labels {
    of_cpus: Vec<String>,
    threads: Vec<String>,
}

impl Labels {
    fn of(run: &Run, values: Values) -> Self {
        let time = match run.time_domain {
            TimeDomain::Real => "real",
            TimeDomain::Virtual => "virtual",
            TimeDomain::Simulated => "simulated",
        };
        let labels = |(cpu, number): (String, u32)| match number {
            0 => format!("cpu=\"{cpu}\",time=\"{time}\""),
            _ => format!("cpu=\"{cpu}\",time=\"{time}\",thread=\"{number}\""),
        };
        let of_cpus: Vec<String> = numbered(run).map(labels).collect();
        let threads =
            of_cpus.iter().map(|cpu| format!("{cpu},distribution=\"{values}\"")).collect();
        Self { of_cpus, threads }
    }
}

fn write_info(run: &Run, plan: &str, format: Format, out: &mut impl Write) -> io::Result<()> {
    const HELP: &str = "The run and the machine it was measured on.";
    match format {
        Format::OpenMetrics => head("wakescope_run", "info", HELP, format, out)?,
        Format::Prometheus => head("wakescope_run_info", "gauge", HELP, format, out)?,
    }
    let host = &run.host;
    let labels = [
        ("run", run.id.clone()),
        ("started", run.known_start().to_owned()),
        ("release", host.release.clone()),
        ("preemption", host.preemption.model.to_string()),
        ("plan", plan.to_owned()),
        ("verdict", run.validity.verdict.to_string()),
    ];
    let labels = labels.map(|(name, value)| format!("{name}=\"{}\"", escaped(&value, 200)));
    writeln!(out, "wakescope_run_info{{{}}} 1", labels.join(","))
}

/// A label's value between its quotes, of at most so many characters.
pub(crate) fn escaped(text: &str, most: usize) -> String {
    // No line feed is left to escape.
    clean(text, most).replace('\\', "\\\\").replace('"', "\\\"")
}

/// The lines that tell what follows.
pub(crate) fn head(
    family: &str,
    kind: &str,
    help: &str,
    format: Format,
    out: &mut impl Write,
) -> io::Result<()> {
    // Prometheus' own format knows the names of samples only, OpenMetrics those of families.
    let family = match (format, kind) {
        (Format::Prometheus, "counter") => format!("{family}_total"),
        _ => family.into(),
    };
    writeln!(out, "# TYPE {family} {kind}")?;
    if format == Format::OpenMetrics && family.ends_with("_seconds") {
        writeln!(out, "# UNIT {family} seconds")?;
    }
    writeln!(out, "# HELP {family} {help}")
}

fn write_histogram(
    name: &str,
    labels: &str,
    d: &Distribution,
    format: Format,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut buckets = d.histogram.buckets().iter().peekable();
    let mut sum = 0_u64;
    for edge in EDGES_NS {
        while let Some(bucket) = buckets.next_if(|b| latest(b, d) <= edge) {
            sum += bucket.count;
        }
        writeln!(out, "{name}_bucket{{{labels},le=\"{}\"}} {sum}", edge_text(edge, format))?;
    }
    writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {}", d.count)?;
    writeln!(out, "{name}_sum{{{labels}}} {}", seconds(d.sum_ns))?;
    writeln!(out, "{name}_count{{{labels}}} {}", d.count)
}

/// An edge as those formats' own programs write the number, so that series of theirs and ours have
/// the same labels.
pub(crate) fn edge_text(ns: u64, format: Format) -> String {
    if ns < 100_000 {
        let digits = ns.to_string();
        let exponent = 10 - digits.len();
        let (first, rest) = digits.trim_end_matches('0').split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        return format!("{first}{point}{rest}e-{exponent:02}");
    }
    let text = seconds(ns);
    let text = text.trim_end_matches('0');
    match (text.strip_suffix('.'), format) {
        (Some(whole), Format::Prometheus) => whole.into(),
        (Some(_), Format::OpenMetrics) => format!("{text}0"),
        (None, _) => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_written_as_go_does() {
        let of = |format| EDGES_NS.map(|edge| edge_text(edge, format)).join(" ");
        assert_eq!(
            of(Format::Prometheus),
            "1e-06 2e-06 5e-06 1e-05 2e-05 5e-05 0.0001 0.0002 0.0005 0.001 0.002 0.005 \
             0.01 0.02 0.05 0.1 0.2 0.5 1 2 5 10"
        );
        assert!(of(Format::OpenMetrics).ends_with("0.5 1.0 2.0 5.0 10.0"));
        let odd = [1, 127, 1_023, 65_535, 131_071, 17_179_869_183];
        assert_eq!(
            odd.map(|ns| edge_text(ns, Format::Prometheus)).join(" "),
            "1e-09 1.27e-07 1.023e-06 6.5535e-05 0.000131071 17.179869183"
        );
    }
}
