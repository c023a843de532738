//! What a measurement shows while it lasts.

use wakescope_core::distribution::Distribution;
use wakescope_core::units::{SpanNs, counted, grouped};

use crate::table::columns;

/// One CPU's line.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// The CPU.
    pub cpu: u32,
    /// The last wakeup's lateness.
    pub now_ns: u64,
    /// Lateness per expiry so far.
    pub expiries: Distribution,
    /// Expiries without a wakeup of their own so far.
    pub missed: u64,
    /// The largest lateness in each of the last slices of time, the oldest first.
    pub recent_max_ns: Vec<u64>,
}

/// The block that is redrawn on a terminal: a line that says what is measured and how far it is,
/// and one per CPU, no more than `height` lines in all.
pub fn block(title: &str, elapsed: SpanNs, total: SpanNs, cpus: &[Line], height: usize) -> String {
    let mut rows = vec![["cpu", "now", "p99.9", "max", "missed"].map(String::from).to_vec()];
    rows.extend(cpus.iter().map(|line| {
        let p999 = "p99.9".parse().ok().and_then(|p| line.expiries.percentile(p));
        vec![
            line.cpu.to_string(),
            SpanNs(line.now_ns).to_string(),
            span_or_dash(p999),
            span_or_dash(line.expiries.max_ns),
            grouped(line.missed),
        ]
    }));
    let table = columns(&rows, false);
    let mut lines = vec![format!("{title}   {} / {}", clock(elapsed), clock(total))];
    let spark = |line: &Line| sparkline(&line.recent_max_ns);
    let tails = std::iter::once(String::new()).chain(cpus.iter().map(spark));
    lines.extend(table.lines().zip(tails).map(|(row, tail)| {
        if tail.is_empty() { row.to_string() } else { format!("{row}   {tail}") }
    }));
    let (shown, hidden) =
        (lines.len().min(height.max(3)), lines.len().saturating_sub(height.max(3)));
    lines.truncate(shown);
    if hidden > 0 {
        let last = lines.len() - 1;
        lines[last] = format!(" … and {} more CPUs", hidden + 1);
    }
    lines.join("\n")
}

/// The line that is printed now and then where there is no terminal. `sample` is what one is called.
pub fn line(elapsed: SpanNs, total: SpanNs, cpus: &[Line], sample: &str) -> String {
    let all = cpus.iter().fold(Distribution::default(), |sum, l| sum.merged(&l.expiries));
    let missed: u64 = cpus.iter().map(|l| l.missed).sum();
    let p999 = "p99.9".parse().ok().and_then(|p| all.percentile(p));
    format!(
        "{} / {}: {}, p99.9 {}, max {}, missed {}",
        clock(elapsed),
        clock(total),
        counted(all.count, sample),
        span_or_dash(p999),
        span_or_dash(all.max_ns),
        grouped(missed)
    )
}

/// The line of a run that follows wakeups of others.
pub fn followed(elapsed: SpanNs, total: SpanNs, all: &Distribution) -> String {
    let p999 = "p99.9".parse().ok().and_then(|p| all.percentile(p));
    format!(
        "{} / {}: {} followed, p99.9 {}, max {}",
        clock(elapsed),
        clock(total),
        counted(all.count, "wakeup"),
        span_or_dash(p999),
        span_or_dash(all.max_ns)
    )
}

pub(crate) fn span_or_dash(span_ns: Option<u64>) -> String {
    span_ns.map_or_else(|| "–".into(), |ns| SpanNs(ns).to_string())
}

/// `0:07`, `1:02:03`.
pub(crate) fn clock(span: SpanNs) -> String {
    let s = span.0 / 1_000_000_000;
    let (h, m, s) = (s / 3600, s / 60 % 60, s % 60);
    if h > 0 { format!("{h}:{m:02}:{s:02}") } else { format!("{m}:{s:02}") }
}

/// Heights on a log scale from the least to the largest: a spike must be seen beside a floor that
/// is a hundred times lower.
pub(crate) fn sparkline(values_ns: &[u64]) -> String {
    const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let log = |v: u64| (v.max(1) as f64).log2();
    let least = values_ns.iter().copied().map(log).fold(f64::INFINITY, f64::min);
    let largest = values_ns.iter().copied().map(log).fold(0.0, f64::max);
    // Less than a doubling is no spike, and is drawn flat.
    let range = (largest - least).max(4.0);
    let step = |v: u64| {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // From 0 to 7.
        let step = ((log(v) - least) / range * 7.0).round() as usize;
        STEPS[step.min(7)]
    };
    values_ns.iter().copied().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use wakescope_core::histogram::Histogram;

    fn cpu(cpu: u32, samples: &[u64]) -> Line {
        let expiries = Distribution {
            count: samples.len() as u64,
            min_ns: samples.iter().min().copied(),
            max_ns: samples.iter().max().copied(),
            max_at_ns: None,
            sum_ns: 0,
            histogram: Histogram::of(samples.iter().copied()),
            stated: None,
        };
        Line {
            cpu,
            now_ns: 11_000,
            expiries,
            missed: 3,
            recent_max_ns: vec![8_000, 9_000, 200_000, 4_310_000],
        }
    }

    #[test]
    fn the_block_says_how_far_and_how_late() {
        let many = [vec![12_000; 9_998], vec![212_000, 4_310_000]].concat();
        let block = block(
            "measuring",
            SpanNs(7_400_000_000),
            SpanNs(10_000_000_000),
            &[cpu(0, &many), cpu(1, &[])],
            20,
        );
        expect![[r#"
            measuring   0:07 / 0:10
             cpu      now    p99.9      max  missed
               0  11.0 µs  12.0 µs  4.31 ms       3   ▁▁▅█
               1  11.0 µs        –        –       3   ▁▁▅█"#]]
        .assert_eq(&block);
    }

    #[test]
    fn a_block_fits_its_height() {
        let cpus: Vec<Line> = (0..64).map(|n| cpu(n, &[])).collect();
        let block = block("measuring", SpanNs(0), SpanNs(0), &cpus, 10);
        assert_eq!(block.lines().count(), 10);
        assert!(block.ends_with(" … and 57 more CPUs"), "{block}");
    }

    #[test]
    fn a_line_for_logs() {
        let line = line(
            SpanNs(3_723_000_000_000),
            SpanNs(50_400_000_000_000),
            &[cpu(0, &[12_000; 4])],
            "expiry",
        );
        assert_eq!(line, "1:02:03 / 14:00:00: 4 expiries, p99.9 –, max 12.0 µs, missed 3");
    }
}
