//! `wakescope report --format …`, for the formats of other programs.

use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};

use wakescope_core::run::Run;
use wakescope_core::units::{SpanNs, counted, grouped};
use wakescope_formats::export::cyclictest::{Layout, MOST_ROWS};
use wakescope_formats::export::{Values, csv, cyclictest, cyclictest_json, hdr, jsonl, prometheus};
use wakescope_report::{text, trace};
use wakescope_store::SAMPLES;

use crate::{Failure, input, output};

/// A format of another program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Cyclictest,
    CyclictestJson,
    Csv,
    Hlog,
    Hgrm,
    Prometheus,
    OpenMetrics,
    Jsonl,
    Trace,
}

#[derive(Clone, clap::Args)]
pub(super) struct ExportArgs {
    /// Values to export: one per wakeup or one per expiry [default: woken for the formats of
    /// cyclictest, both for csv, expiries for the others]
    #[arg(long, value_enum)]
    distribution: Option<Distribution>,

    /// Rows of cyclictest's histogram, one per µs; later samples count as overflow [default: as
    /// many as the maximum needs, at most 1000000]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=MOST_ROWS))]
    rows: Option<u64>,

    /// Omit empty rows of cyclictest's histogram, as rt-tests 2.7 and later do
    #[arg(long)]
    sparse: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Distribution {
    /// One value per wakeup
    Woken,
    /// One value per expiry, including expiries that a late wakeup missed
    Expiries,
}

impl ExportArgs {
    /// Refuses options that mean nothing to `format`; `None` stands for one that is not exported.
    pub(super) fn check(&self, format: Option<Format>) -> Result<(), Failure> {
        let is_text = format == Some(Format::Cyclictest);
        let has_rows = is_text || format == Some(Format::CyclictestJson);
        let has_values = format.is_some_and(|f| !matches!(f, Format::Jsonl | Format::Trace));
        for (given, meant, option, formats) in [
            (
                self.distribution.is_some(),
                has_values,
                "--distribution",
                "csv, or another histogram",
            ),
            (self.rows.is_some(), has_rows, "--rows", "cyclictest or cyclictest-json"),
            (self.sparse, is_text, "--sparse", "cyclictest"),
        ] {
            if given && !meant {
                return Err(Failure::new(format!("{option} does not apply to this format"))
                    .try_this(format!("add --format {formats}, or omit it")));
            }
        }
        Ok(())
    }

    fn layout(&self) -> Layout {
        if self.sparse { Layout::Sparse } else { Layout::Full }
    }

    fn values(&self, default: Values) -> Values {
        match self.distribution {
            None => default,
            Some(Distribution::Woken) => Values::Woken,
            Some(Distribution::Expiries) => Values::Expiries,
        }
    }
}

/// Writes `run`, which was read from `path`, to `file` or standard output.
pub(super) fn write(
    run: &Run,
    path: &Path,
    format: Format,
    args: &ExportArgs,
    file: Option<&Path>,
) -> Result<(), Failure> {
    if format == Format::Jsonl {
        return write_samples(path, file);
    }
    if format == Format::Cyclictest {
        let checked = cyclictest::check(run, args.values(Values::Woken), args.layout(), args.rows);
        checked.map_err(|exceeded| {
            Failure::new(format!("cannot export {}: {exceeded}", path.display()))
                .try_this(
                    "omit empty rows, with --sparse, or end the histogram earlier: --rows 1000",
                )
                .try_this(
                    "choose a format that has only the rows with samples: cyclictest-json, csv",
                )
        })?;
    }
    output::result(file, |out| write_run(run, format, args, out))?;
    match format {
        Format::Prometheus | Format::OpenMetrics => {
            tell_bounds(run, args.values(Values::Expiries), u64::MAX, BOUND);
        }
        Format::Hlog => {
            tell_bounds(run, args.values(Values::Expiries), u64::MAX, BOUND_WITH_MEAN);
        }
        Format::Cyclictest | Format::CyclictestJson => {
            let values = args.values(Values::Woken);
            let end_ns = cyclictest::end_ns(run, values, args.rows);
            tell_bounds(run, values, end_ns, BOUND_WITH_MEAN);
        }
        // They have the buckets as they are, or single samples.
        Format::Csv | Format::Hgrm | Format::Jsonl | Format::Trace => {}
    }
    Ok(())
}

/// Figures that a reader computes from samples that are as late as they can have been. A format that
/// states the sum of its samples has the mean itself.
const BOUND: &str = "percentiles among them are upper bounds";
const BOUND_WITH_MEAN: &str = "percentiles among them, and a mean, are upper bounds";

/// Says which samples the file puts where they are at the most, and by that which figures are `bound`:
/// its format has no bounds, but for samples from `beyond_ns` on, which it only counts.
fn tell_bounds(run: &Run, values: Values, beyond_ns: u64, bound: &str) {
    let (mut least, mut most, mut count, mut all) = (u64::MAX, 0, 0_u64, 0_u64);
    for d in values.of_threads(run) {
        all = all.saturating_add(d.count);
        for (low, high, samples) in d.only_bounded().filter(|&(low, ..)| low < beyond_ns) {
            (least, most) = (least.min(low), most.max(high));
            count = count.saturating_add(samples);
        }
    }
    if count > 0 {
        output::tell(&format!(
            "of {} of {} only bounds are known, from {} to {}: the file has each as late as it can \
             have been, so that {bound}",
            grouped(count),
            counted(all, "sample"),
            SpanNs(least),
            SpanNs(most)
        ));
    }
}

fn write_run(run: &Run, format: Format, args: &ExportArgs, out: &mut Out) -> io::Result<()> {
    let mut out = out;
    let out = &mut out;
    let (woken, expiries) = (args.values(Values::Woken), args.values(Values::Expiries));
    match format {
        Format::Cyclictest => cyclictest::write(run, woken, args.layout(), args.rows, out),
        Format::CyclictestJson => cyclictest_json::write(run, woken, args.rows, out),
        Format::Csv if args.distribution.is_none() => csv::write(run, &Values::ALL, out),
        Format::Csv => csv::write(run, &[expiries], out),
        Format::Hlog => hdr::write_log(run, expiries, out),
        Format::Hgrm => hdr::write_percentiles(run, expiries, out),
        Format::Prometheus | Format::OpenMetrics => {
            let format = match format {
                Format::Prometheus => prometheus::Format::Prometheus,
                _ => prometheus::Format::OpenMetrics,
            };
            prometheus::write(run, &text::known_plan(run), expiries, format, out)
        }
        Format::Jsonl => Ok(()), // Not made from the record.
        Format::Trace => trace::write(run, out),
    }
}

/// Writes the samples that lie beside the record `path`.
fn write_samples(path: &Path, file: Option<&Path>) -> Result<(), Failure> {
    let samples = beside(path);
    let opened = input::regular(&samples).map_err(|e| {
        let failure = Failure::new(format!("cannot read {}: {e}", samples.display()));
        match e.kind() {
            io::ErrorKind::NotFound => failure
                .because(
                    "the run was measured without --save-samples, so its record has only \
                     histograms",
                )
                .try_this("measure again: wakescope measure --save-samples"),
            _ => failure,
        }
    })?;
    let mut fault = None;
    output::result(file, |mut out| match jsonl::write(&mut BufReader::new(opened), &mut out) {
        Err(jsonl::Error::Write(e)) => Err(e),
        other => {
            fault = other.err();
            Ok(())
        }
    })?;
    match fault {
        Some(fault) => Err(Failure::new(format!("cannot use {}: {fault}", samples.display()))
            .because("everything before it was written")),
        None => Ok(()),
    }
}

fn beside(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(SAMPLES) } else { path.with_file_name(SAMPLES) }
}

type Out<'a> = dyn Write + 'a;
