//! rteval's `summary.xml`, with cyclictest as its measurement.
//!
//! Each core's histogram is read; what is stated of the whole system must be their sum. Samples
//! beyond the histogram are not in it, nor counted: rteval leaves all statistics out where there
//! are any. Its timerlat adds up three different quantities, which cannot be taken apart again.

use std::io::{BufRead, Read};

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use wakescope_core::budget::{Budget, Entry};
use wakescope_core::date::Date;
use wakescope_core::distribution::Distribution;
use wakescope_core::percentile::Percentile;
use wakescope_core::run::Run;
use wakescope_core::source::{Omission, Quantity};

use super::command::Command;
use super::counts::{Counts, in_ns};
use super::cyclictest::VALUED;
use super::draft::{Draft, Kernel};
use super::lines::{number, thousandths};
use super::statement::Figure;
use super::{About, ImportError, MOST_CPUS, MOST_ROWS, Unit, json, unit};
use wakescope_core::harmless::clean;

const DEPTH: usize = 32;

const MEDIAN: Percentile = Percentile::whole(50);

#[derive(Default)]
struct Part {
    cpu: Option<u32>,
    priority: Option<u8>,
    samples: Option<u64>,
    min: Option<u64>,
    max: Option<u64>,
    mean: Option<u64>,
    deviation: Option<u64>,
    median: Option<u64>,
    rows: Vec<(u64, u64)>,
}

#[derive(Default)]
struct Seen {
    version: Option<String>,
    command: Option<String>,
    kernel: Kernel,
    duration_s: Option<u64>,
    day: Option<String>,
    time: Option<String>,
    system: Option<Part>,
    cores: Vec<Part>,
    current: Option<Part>,
    timerlat: bool,
}

pub(super) fn read(from: &mut dyn BufRead, about: &About) -> Result<Run, ImportError> {
    read_up_to(json::LARGEST, from, about)
}

/// Reads a file of at most `largest` bytes.
pub(super) fn read_up_to(
    largest: u64,
    from: &mut dyn BufRead,
    about: &About,
) -> Result<Run, ImportError> {
    let mut limited = from.take(largest + 1);
    let seen = elements(&mut limited, &about.budget);
    // Such a file ends for the reader inside an element.
    if limited.limit() == 0 {
        return Err(json::too_large());
    }
    seen?.finish(about)
}

/// Reads all elements, and what of them matters.
fn elements(from: &mut dyn BufRead, budget: &Budget) -> Result<Seen, ImportError> {
    let mut reader = Reader::from_reader(Newlines { from, lines: 1, column: 0 });
    reader.config_mut().trim_text(true);
    let mut seen = Seen::default();
    let mut path: Vec<String> = Vec::new();
    let mut event = Vec::new();
    loop {
        event.clear();
        let next = reader.read_event_into(&mut event);
        let at = |error: ImportError| {
            let place = reader.get_ref();
            ImportError {
                remedy: error.remedy,
                ..ImportError::at(place.lines, place.column, error.why)
            }
        };
        match next.map_err(|e| at(format!("not well-formed XML: {e}").into()))? {
            Event::Start(element) => {
                if path.len() >= DEPTH {
                    return Err(at("elements nest deeper than 32".into()));
                }
                path.push(String::from_utf8_lossy(element.name().as_ref()).into_owned());
                seen.open(&path, &element, budget).map_err(at)?;
            }
            Event::Empty(element) => {
                path.push(String::from_utf8_lossy(element.name().as_ref()).into_owned());
                seen.open(&path, &element, budget).map_err(at)?;
                seen.close(&path).map_err(at)?;
                path.pop();
            }
            Event::End(_) => {
                seen.close(&path).map_err(at)?;
                path.pop();
            }
            Event::Text(text) => {
                let text = text.decode().map_err(|e| at(e.to_string().into()))?;
                seen.text(&path, text.trim()).map_err(at)?;
            }
            Event::DocType(_) => {
                return Err(at("it declares a document type; rteval's has none".into()));
            }
            Event::Eof => break,
            // Named characters stand only in texts that are not read; comments nowhere.
            Event::GeneralRef(_)
            | Event::CData(_)
            | Event::Comment(_)
            | Event::Decl(_)
            | Event::PI(_) => {}
        }
    }
    if !path.is_empty() {
        let place = reader.get_ref();
        let why = format!("the file ends inside <{}>: it is truncated", path.join("><"));
        return Err(ImportError::at(place.lines, place.column, clean(&why, 200)));
    }
    Ok(seen)
}

/// A reader that knows where it is, for messages.
struct Newlines<'a> {
    from: &'a mut dyn BufRead,
    lines: u64,
    column: usize,
}

impl Read for Newlines<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let held = self.fill_buf()?;
        let count = held.len().min(into.len());
        into[..count].copy_from_slice(&held[..count]);
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for Newlines<'_> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        self.from.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        if let Ok(held) = self.from.fill_buf() {
            for &byte in &held[..count.min(held.len())] {
                self.column += 1;
                if byte == b'\n' {
                    (self.lines, self.column) = (self.lines + 1, 0);
                }
            }
        }
        self.from.consume(count);
    }
}

impl Seen {
    fn open(
        &mut self,
        path: &[String],
        element: &BytesStart<'_>,
        budget: &Budget,
    ) -> Result<(), ImportError> {
        let parts: Vec<&str> = path.iter().map(String::as_str).collect();
        match parts.as_slice() {
            ["rteval"] => self.version = attribute(element, "version")?,
            ["rteval", "run_info"] => {
                let part = |name| -> Result<u64, String> {
                    attribute(element, name)?.map_or(Ok(0), |text| whole(&text))
                };
                let hours = part("days")?.saturating_mul(24).saturating_add(part("hours")?);
                let minutes = hours.saturating_mul(60).saturating_add(part("minutes")?);
                self.duration_s = Some(minutes.saturating_mul(60).saturating_add(part("seconds")?));
            }
            [.., "Measurements", "timerlat"] => self.timerlat = true,
            [.., "Measurements", "cyclictest"] => {
                if self.command.is_some() {
                    return Err("a second <cyclictest>".into());
                }
                self.command = Some(attribute(element, "command_line")?.unwrap_or_default());
            }
            [.., "cyclictest", "system"] => self.current = Some(Part::default()),
            [.., "cyclictest", "core"] => {
                let id = attribute(element, "id")?.ok_or("a <core> without id")?;
                let priority = attribute(element, "priority")?;
                let cpu = whole(&id)?;
                let cpu = u32::try_from(cpu).ok().filter(|&cpu| u64::from(cpu) < MOST_CPUS);
                self.current = Some(Part {
                    cpu: Some(cpu.ok_or("a <core> whose id is not the number of a CPU")?),
                    priority: priority
                        .and_then(|p| p.parse().ok())
                        .filter(|p| (1..=99).contains(p)),
                    ..Default::default()
                });
            }
            [.., "cyclictest", "system" | "core", "histogram", "bucket"] => {
                let index = attribute(element, "index")?.ok_or("a <bucket> without index")?;
                let count = attribute(element, "value")?.ok_or("a <bucket> without value")?;
                let (row, count) = (whole(&index)?, whole(&count)?);
                let Some(part) = &mut self.current else { return Ok(()) };
                if row >= MOST_ROWS || part.rows.last().is_some_and(|&(last, _)| row <= last) {
                    return Err(
                        format!("a <bucket> {row} that is not above the one before it").into()
                    );
                }
                budget.keep(1, Entry::BUCKET)?;
                part.rows.push((row, count));
            }
            [
                ..,
                "cyclictest",
                "system" | "core",
                "statistics",
                name @ ("minimum" | "maximum" | "mean"),
            ] => {
                let unit = attribute(element, "unit")?;
                if unit.as_deref() != Some("us") {
                    return Err(format!("<{name}> has another unit than us").into());
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn text(&mut self, path: &[String], text: &str) -> Result<(), ImportError> {
        let parts: Vec<&str> = path.iter().map(String::as_str).collect();
        let short = || Some(text.chars().take(200).collect::<String>());
        match parts.as_slice() {
            ["rteval", "run_info", "date"] => self.day = short(),
            ["rteval", "run_info", "time"] => self.time = short(),
            [.., "uname", "kernel"] => self.kernel.release = short().unwrap_or_default(),
            [.., "uname", "arch"] => self.kernel.arch = short().unwrap_or_default(),
            [.., "cyclictest", "system" | "core", "statistics", name] => {
                let Some(part) = &mut self.current else { return Ok(()) };
                match *name {
                    "samples" => part.samples = Some(whole(text)?),
                    "minimum" => part.min = Some(whole(text)?),
                    "maximum" => part.max = Some(whole(text)?),
                    "mean" | "standard_deviation" | "median" => {
                        let value = Some(thousandths(text).ok_or_else(|| not_a_number(text))?);
                        match *name {
                            "mean" => part.mean = value,
                            "median" => part.median = value,
                            _ => part.deviation = value,
                        }
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, path: &[String]) -> Result<(), ImportError> {
        let parts: Vec<&str> = path.iter().map(String::as_str).collect();
        match parts.as_slice() {
            [.., "cyclictest", "system"] => self.system = self.current.take(),
            [.., "cyclictest", "core"] => {
                let Some(core) = self.current.take() else { return Ok(()) };
                if self.cores.iter().any(|c| c.cpu == core.cpu) {
                    return Err("a <core> comes twice".into());
                }
                self.cores.push(core);
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(self, about: &About) -> Result<Run, ImportError> {
        let Some(command) = self.command else {
            return Err(match self.timerlat {
                true => ImportError::new(
                    "its measurement is timerlat: rteval adds up the latencies of interrupt, thread and user space, which cannot be separated again",
                )
                .try_this("import what `rtla timerlat hist` prints, or measure with rteval and cyclictest"),
                false => ImportError::new("there is no <cyclictest> in its <Measurements>"),
            });
        };
        let mut draft =
            Draft::new("rteval", "XML summary", about, Quantity::WakeupLatency, Omission::Skipped);
        draft.source.version = self.version.map(|v| clean(&v, 20));
        let options = Command::new(&command, VALUED);
        draft.interval_ns = options.number('i', "interval").unwrap_or(1_000).checked_mul(1_000);
        draft.priority = self.cores.iter().find_map(|c| c.priority);
        draft.policy = draft.priority.map(|_| wakescope_core::plan::ProbePolicy::Fifo);
        draft.duration_ns =
            self.duration_s.and_then(|s| s.checked_mul(1_000_000_000)).filter(|&n| n > 0);
        if draft.duration_ns.is_some() {
            draft.approximate("duration_ns: given in whole seconds, for the whole run of rteval");
        }
        let start = self.day.zip(self.time);
        draft.started = start.and_then(|(day, time)| Date::parse_day_and_time(&day, &time));
        if draft.started.is_some() {
            draft.approximate("started: in the local time of that machine, which is not stated");
        }
        draft.kernel = (!self.kernel.release.is_empty()).then_some(self.kernel);
        let unit_ns = unit::stated(about, Unit::Us, "rteval writes `unit=\"us\"`")?;
        draft.coarse(unit_ns);
        draft.step_ns = unit_ns;
        draft.approximate("sum_ns: each sample counts as the lower edge of its bucket");
        if self.cores.is_empty() {
            return Err(ImportError::new("there is no <core> with a histogram"));
        }
        let system = self.system.ok_or_else(|| ImportError::new("there is no <system>"))?;
        let mut sum: std::collections::BTreeMap<u64, u64> = Default::default();
        for core in &self.cores {
            for &(row, count) in &core.rows {
                let all = sum.entry(row).or_default();
                *all = all.saturating_add(count);
            }
            let cpu = core.cpu;
            let d = core.distribution();
            let of_core = |why| ImportError::new(format!("core {}: {why}", cpu.unwrap_or(0)));
            draft.thread(cpu, d.map_err(of_core)?);
            for (figure, least, most) in core.statements() {
                draft.states(figure, least, most);
            }
        }
        for (figure, least, most) in system.statements() {
            draft.states_of_all(figure, least, most);
        }
        let stated = system.distribution();
        stated.map_err(|why| ImportError::new(format!("<system>: {why}")))?;
        if !system.rows.iter().copied().eq(sum) {
            return Err(ImportError::new("the histogram of <system> is not the sum of its cores'"));
        }
        draft.finish()
    }
}

impl Part {
    /// What its statistics say beside the histogram, in ns. Thousandths of µs are ns.
    #[allow(clippy::cast_precision_loss)] // It is compared with room for that.
    fn statements(&self) -> impl Iterator<Item = (Figure, f64, f64)> {
        let near = |figure, value: Option<u64>, by: f64| {
            value.map(|ns| (figure, ns as f64 - by, ns as f64 + by))
        };
        [
            near(Figure::Mean, self.mean, 10.0),
            near(Figure::Deviation, self.deviation, 10.0),
            // Of an even number of samples it may lie between two.
            near(Figure::Percentile(MEDIAN), self.median, 1_000.0),
        ]
        .into_iter()
        .flatten()
    }

    fn distribution(&self) -> Result<Distribution, String> {
        let mut counts = Counts::default();
        for &(row, count) in &self.rows {
            counts.push(in_ns(row, 1_000)?, in_ns(row + 1, 1_000)?, count)?;
        }
        let samples = self.samples.ok_or("it has no <samples>")?;
        if samples != counts.count() {
            return Err(format!(
                "its buckets hold {} samples, but <samples> is {samples}",
                counts.count()
            ));
        }
        if samples == 0 {
            return Ok(Distribution::default());
        }
        let extremes = self.min.zip(self.max);
        let (min, max) = extremes.ok_or(
            "it has samples but no statistics, which rteval omits when some were beyond its histogram",
        )?;
        let mut used = self.rows.iter().filter(|&&(_, count)| count > 0).map(|&(row, _)| row);
        let first = used.next();
        let last = used.next_back().or(first);
        if first != Some(min) || last != Some(max) {
            return Err(format!("its extremes {min} and {max} are not those of its buckets"));
        }
        let sum_ns = counts.least_sum();
        counts.finish(in_ns(min, 1_000)?, in_ns(max, 1_000)?, sum_ns)
    }
}

fn attribute(element: &BytesStart<'_>, name: &str) -> Result<Option<String>, String> {
    let found = element.try_get_attribute(name).map_err(|e| e.to_string())?;
    let value = |a: quick_xml::events::attributes::Attribute<'_>| {
        a.unescape_value().map(|v| v.chars().take(4_096).collect()).map_err(|e| e.to_string())
    };
    found.map(value).transpose()
}

fn whole(text: &str) -> Result<u64, String> {
    number(text).ok_or_else(|| not_a_number(text))
}

fn not_a_number(text: &str) -> String {
    format!("`{}` is not a number", clean(text, 40))
}
