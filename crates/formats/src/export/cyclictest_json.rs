//! The file that cyclictest writes with `--json`, with the colons that are in some of its keys.

use std::io::{self, Write};

use serde_json::Value;
use wakescope_core::date::Date;
use wakescope_core::finding::Verdict;
use wakescope_core::limit::Outcome;
use wakescope_core::preemption::Model;
use wakescope_core::run::{Run, Thread};
use wakescope_core::units::SpanNs;

use super::cyclictest::{Column, Rows};
use super::{Values, head, writer};
use wakescope_core::harmless::clean;

/// Writes the file; `rows` as in [`super::cyclictest::write`]. It has no key for what lies beyond
/// them: that is `cycles` less the sum of the histogram.
pub fn write(run: &Run, values: Values, rows: Option<u64>, out: &mut impl Write) -> io::Result<()> {
    let all = Column::all(run, values);
    let rows = Rows::of(run, &all, rows);
    write_head(run, values, rows, out)?;
    writeln!(out, "  \"thread\": {{")?;
    for (i, (thread, column)) in run.threads.iter().zip(&all).enumerate() {
        write_thread(i, thread, column, rows.count, out)?;
        writeln!(out, "    }}{}", if i + 1 < all.len() { "," } else { "" })?;
    }
    writeln!(out, "  }}\n}}")
}

fn write_head(run: &Run, values: Values, rows: Rows, out: &mut impl Write) -> io::Result<()> {
    let started = Date::parse(&run.started);
    let ended = started.map(|date| date.after(SpanNs(run.duration_ns)));
    let known = run.knows("started");
    let date = |date: Option<Date>| match known {
        true => quoted(&date.map_or(run.started.clone(), Date::mail)),
        false => quoted(""),
    };
    let host = &run.host;
    writeln!(out, "{{\n  \"file_version\": 1,")?;
    // Readers tell which of rt-tests' programs wrote a file by the first word.
    let command = format!("cyclictest by {}, {}", head(run, values, "us"), options(run, rows));
    writeln!(out, "  \"cmdline:\": {},", quoted(&command))?;
    writeln!(out, "  \"rt_test_version:\": {},", quoted(&writer()))?;
    writeln!(out, "  \"start_time\": {},", date(started))?;
    writeln!(out, "  \"end_time\": {},", date(ended))?;
    writeln!(out, "  \"return_code\": {},", i32::from(has_failed(run)))?;
    writeln!(out, "  \"sysinfo\": {{")?;
    writeln!(out, "    \"sysname\": \"Linux\",")?;
    writeln!(out, "    \"nodename\": \"\",")?;
    writeln!(out, "    \"release\": {},", quoted(&host.release))?;
    writeln!(out, "    \"version\": {},", quoted(&host.version))?;
    writeln!(out, "    \"machine\": {},", quoted(&host.arch))?;
    writeln!(out, "    \"realtime\": {}", i32::from(host.preemption.model == Model::Rt))?;
    writeln!(out, "  }},")?;
    writeln!(out, "  \"num_threads\": {},", run.threads.len())?;
    writeln!(out, "  \"resolution_in_ns\": 0,")
}

/// The plan as cyclictest's options, as far as it is known and there is one for it.
fn options(run: &Run, rows: Rows) -> String {
    let plan = &run.plan;
    let mut options = format!("-t {}", run.threads.len());
    if run.knows("plan.interval_ns") && plan.interval_ns > 0 && plan.interval_ns % 1_000 == 0 {
        options.push_str(&format!(" -i {}", plan.interval_ns / 1_000));
    }
    if run.knows("plan.policy") && !plan.is_of_others() {
        options.push_str(&format!(" -y {}", plan.policy));
        if let Some(priority) = plan.priority {
            options.push_str(&format!(" -p {priority}"));
        }
    }
    if rows.is_limit {
        options.push_str(&format!(" -h {}", rows.count));
    }
    options
}

fn write_thread(
    i: usize,
    thread: &Thread,
    column: &Column,
    rows: u64,
    out: &mut impl Write,
) -> io::Result<()> {
    write!(out, "    \"{i}\": {{\n      \"histogram\": {{")?;
    let within = column.rows.iter().take_while(|row| row.0 < rows);
    for (at, (us, count)) in within.enumerate() {
        write!(out, "{}\n        \"{us}\": {count}", if at > 0 { "," } else { "" })?;
    }
    writeln!(out, "\n      }},")?;
    writeln!(out, "      \"cycles\": {},", column.count)?;
    writeln!(out, "      \"min\": {},", column.min_us())?;
    writeln!(out, "      \"max\": {},", column.max_us())?;
    writeln!(out, "      \"avg\": {:.2},", column.mean_us(rows))?;
    // As cyclictest says that a thread is not bound.
    writeln!(out, "      \"cpu\": {}", thread.cpu.map_or(-1, i64::from))
}

/// As a JSON string.
fn quoted(text: &str) -> String {
    Value::from(clean(text, 400)).to_string()
}

/// cyclictest's own code says that it could not measure; those who read it take it for a verdict.
fn has_failed(run: &Run) -> bool {
    run.validity.verdict == Verdict::Invalid
        || run.limits.iter().any(|limit| limit.outcome == Outcome::Fail)
}
