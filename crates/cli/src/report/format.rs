//! What runs are shown as.

use super::export;
use crate::ending::Endings;

/// Formats that a file of text may hold.
const TEXTS: [Format; 10] = [
    Format::Text,
    Format::Md,
    Format::Realfeel,
    Format::Cyclictest,
    Format::Csv,
    Format::Hlog,
    Format::Hgrm,
    Format::Prometheus,
    Format::Openmetrics,
    Format::Jsonl,
];

/// A format of `wakescope report`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// For people: verdict, table, findings, histogram
    Text,
    /// A page in one file, with pictures, tables, and exact values at the pointer
    Html,
    /// One picture, for papers and slides
    Svg,
    /// The same picture as pixels
    Png,
    /// A table and the findings as Markdown, for a pull request
    Md,
    /// The run record
    Json,
    /// The block of Clark Williams' paper of 2002: statistics, shares below thresholds, p99.999
    Realfeel,
    /// The histogram that cyclictest prints, in whole µs
    Cyclictest,
    /// The file that cyclictest writes with --json
    CyclictestJson,
    /// The complete histograms as comma-separated values
    Csv,
    /// HdrHistogram's interval log, compressed, one tag per CPU
    Hlog,
    /// HdrHistogram's percentile distribution over all CPUs
    Hgrm,
    /// A classic histogram for Prometheus
    Prometheus,
    /// The same as OpenMetrics
    Openmetrics,
    /// Every sample as a JSON object on its own line, for runs measured with --save-samples
    Jsonl,
    /// The latest wakeups as a trace for Perfetto (ui.perfetto.dev) or about:tracing
    Trace,
}

impl Format {
    /// What the endings of files say.
    pub(super) const ENDINGS: Endings<'static, Self> = &[
        ("txt", &TEXTS),
        ("text", &TEXTS),
        ("log", &TEXTS),
        ("html", &[Self::Html]),
        ("htm", &[Self::Html]),
        ("svg", &[Self::Svg]),
        ("png", &[Self::Png]),
        ("md", &[Self::Md]),
        ("markdown", &[Self::Md]),
        ("json", &[Self::Json, Self::CyclictestJson, Self::Trace]),
        ("csv", &[Self::Csv]),
        ("hlog", &[Self::Hlog]),
        ("hgrm", &[Self::Hgrm]),
        ("prom", &[Self::Prometheus, Self::Openmetrics]),
        ("jsonl", &[Self::Jsonl]),
        ("ndjson", &[Self::Jsonl]),
    ];

    /// Its name on the command line.
    pub(super) fn name(self) -> String {
        let value = clap::ValueEnum::to_possible_value(&self);
        value.map(|v| v.get_name().to_owned()).unwrap_or_default()
    }

    /// Whether it shows more than one run.
    pub(super) fn takes_several(self) -> bool {
        matches!(self, Self::Text | Self::Html | Self::Svg | Self::Png | Self::Md)
    }

    /// Which format of another program it is, if it is one.
    pub(super) fn exported(self) -> Option<export::Format> {
        Some(match self {
            Self::Text | Self::Html | Self::Svg | Self::Png | Self::Md => return None,
            Self::Json | Self::Realfeel => return None,
            Self::Cyclictest => export::Format::Cyclictest,
            Self::CyclictestJson => export::Format::CyclictestJson,
            Self::Csv => export::Format::Csv,
            Self::Hlog => export::Format::Hlog,
            Self::Hgrm => export::Format::Hgrm,
            Self::Prometheus => export::Format::Prometheus,
            Self::Openmetrics => export::Format::OpenMetrics,
            Self::Jsonl => export::Format::Jsonl,
            Self::Trace => export::Format::Trace,
        })
    }

    /// Whether it is a single picture.
    pub(super) fn is_picture(self) -> bool {
        matches!(self, Self::Svg | Self::Png)
    }

    /// Whether there are pictures in it.
    pub(super) fn has_pictures(self) -> bool {
        self.is_picture() || self == Self::Html
    }

    /// Whether it has a title.
    pub(super) fn has_title(self) -> bool {
        self.has_pictures() || self == Self::Md
    }
}
