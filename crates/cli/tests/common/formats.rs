//! What `wakescope report` can write, and what it can read.

/// A histogram of two threads as cyclictest prints it, in a unit that it does not state.
pub(crate) const HISTOGRAM: &str = "\
# Histogram
000001 000003\t000000
000002 000005\t000004
000003 000001\t000000
# Total: 000000009 000000004
# Min Latencies: 00001 00002
# Avg Latencies: 00001 00002
# Max Latencies: 00003 00002
# Histogram Overflows: 00000 00000
# Histogram Overflow at cycle number:
# Thread 0:
# Thread 1:

";

/// Every format that is text.
pub(crate) fn texts() -> impl Iterator<Item = &'static str> {
    ["text", "html", "svg", "md", "json", "realfeel"].into_iter().chain(OF_OTHERS)
}

/// Those that other programs read.
pub(crate) const OF_OTHERS: [&str; 9] = [
    "cyclictest",
    "cyclictest-json",
    "csv",
    "hlog",
    "hgrm",
    "prometheus",
    "openmetrics",
    "jsonl",
    "trace",
];

/// Every format that is not.
pub(crate) const BINARY: &str = "png";

/// Every picture.
pub(crate) const PICTURES: [&str; 9] = [
    "exceedance",
    "histogram",
    "cpus",
    "course",
    "audio",
    "components",
    "causes",
    "episodes",
    "matrix",
];
