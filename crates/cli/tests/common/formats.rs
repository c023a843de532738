//! What `wakescope report` can write.

/// Every format that is text.
pub(crate) const TEXTS: [&str; 15] = [
    "text",
    "html",
    "svg",
    "md",
    "json",
    "realfeel",
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
