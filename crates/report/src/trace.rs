//! The latest wakeups as a trace that Perfetto and Chrome's `about:tracing` show.
//!
//! The format is the JSON of the Trace Event Format. Each CPU has a track with its late wakeups, in
//! each wakeup its components and what happened meanwhile, and a track beside it with who was to
//! blame. Slices of a track never overlap except where one lies within the other: viewers need that.

use std::io::{self, Write};

use serde_json::{Value, json};
use wakescope_core::explain::Components;
use wakescope_core::run::{Episode, Run, TimeDomain};
use wakescope_core::units::SpanNs;

use crate::explain::{culprit, kernel_frame, named, place, step as step_words};
use crate::quantity;
use crate::style::clean;

/// Writes the trace. Times are µs from the start of the run, with ns as decimals.
pub fn write(run: &Run, out: &mut impl Write) -> io::Result<()> {
    let time = match run.time_domain {
        TimeDomain::Real => String::new(),
        other => format!("{}time, ", other.before_unit()),
    };
    let release = clean(&run.host.release, 60);
    let name = format!("wakescope run {} ({time}kernel {release})", clean(&run.id, 60));
    let mut events = Events::begin(out, &name)?;
    let mut tid = 0;
    for (cpu, lanes) in lanes(&run.worst) {
        for (i, episodes) in lanes.iter().enumerate() {
            let more = if i > 0 { format!(" ({})", i + 1) } else { String::new() };
            let cpu = cpu.map_or_else(|| "any CPU".into(), |cpu| format!("CPU {cpu}"));
            let (track, blame) = (tid + 1, tid + 2);
            events.metadata("thread_name", track, &format!("{cpu}{more}"))?;
            for episode in episodes {
                events.episode(track, episode)?;
            }
            if episodes.iter().any(|episode| !episode.blame.is_empty()) {
                let name = format!("{cpu}{more}: attribution, largest first, not in time order");
                events.metadata("thread_name", blame, &name)?;
                for episode in episodes {
                    events.blame(blame, episode)?;
                }
            }
            tid += 2;
        }
    }
    events.maxima(run)?;
    events.end()
}

/// Nanoseconds in µs, to the nanosecond.
fn us(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000, ns % 1_000)
}

type Lane<'a> = Vec<&'a Episode>;

/// The episodes of each CPU in order of time, in as many lanes as it takes for none to overlap.
/// Wakeups of a probe never do; those of several tasks may.
fn lanes(worst: &[Episode]) -> Vec<(Option<u32>, Vec<Lane<'_>>)> {
    let mut episodes: Vec<&Episode> = worst.iter().collect();
    episodes.sort_by_key(|e| (e.cpu, e.expiry_ns));
    let mut cpus: Vec<(Option<u32>, Vec<Lane>)> = Vec::new();
    for episode in episodes {
        if cpus.last().is_none_or(|last| last.0 != episode.cpu) {
            cpus.push((episode.cpu, Vec::new()));
        }
        let Some((_, lanes)) = cpus.last_mut() else { continue };
        let is_free = |lane: &&mut Lane| {
            lane.last().is_none_or(|last| {
                last.expiry_ns.saturating_add(last.wakeup_latency_ns) <= episode.expiry_ns
            })
        };
        match lanes.iter_mut().find(is_free) {
            Some(lane) => lane.push(episode),
            None => lanes.push(vec![episode]),
        }
    }
    cpus
}

pub(crate) struct Events<'a, W> {
    out: &'a mut W,
    first: bool,
}

impl<'a, W: Write> Events<'a, W> {
    /// Begins a trace of something of this name.
    pub(crate) fn begin(out: &'a mut W, name: &str) -> io::Result<Self> {
        let mut events = Events { out, first: true };
        write!(events.out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
        events.metadata("process_name", 0, name)?;
        Ok(events)
    }

    /// Ends it.
    pub(crate) fn end(self) -> io::Result<()> {
        writeln!(self.out, "\n]}}")
    }

    /// Writes an event of which only the times are not in `rest`.
    fn put(&mut self, times: &str, rest: &Value) -> io::Result<()> {
        let comma = if std::mem::take(&mut self.first) { "" } else { "," };
        let rest = rest.to_string();
        // Times keep their nanoseconds only if they do not go through a double.
        write!(self.out, "{comma}\n{{{times}{}", rest.get(1..).unwrap_or("}"))
    }

    pub(crate) fn metadata(&mut self, what: &str, tid: u64, name: &str) -> io::Result<()> {
        let event = json!({"ph": "M", "pid": 1, "tid": tid, "name": what, "args": {"name": name}});
        self.put("", &event)
    }

    pub(crate) fn slice(
        &mut self,
        tid: u64,
        from_ns: u64,
        ns: u64,
        name: &str,
        args: Value,
    ) -> io::Result<()> {
        let times = format!("\"ts\":{},\"dur\":{},", us(from_ns), us(ns));
        self.put(&times, &json!({"ph": "X", "pid": 1, "tid": tid, "name": name, "args": args}))
    }

    pub(crate) fn episode(&mut self, tid: u64, episode: &Episode) -> io::Result<()> {
        let Episode { expiry_ns, wakeup_latency_ns, missed, .. } = *episode;
        let name = format!("late by {}", SpanNs(wakeup_latency_ns));
        let args = json!({"wakeup_latency_ns": wakeup_latency_ns, "missed": missed});
        self.slice(tid, expiry_ns, wakeup_latency_ns, &name, args)?;
        let mut at = expiry_ns;
        for (name, ns) in episode.components.iter().flat_map(parts).filter(|part| part.1 > 0) {
            self.slice(tid, at, ns, name, json!({"ns": ns}))?;
            at = at.saturating_add(ns);
        }
        for step in &episode.timeline {
            let times = format!("\"ts\":{},", us(expiry_ns.saturating_add(step.at_ns)));
            let name = clean(&step_words(step), 200);
            self.put(
                &times,
                &json!({"ph": "i", "s": "t", "pid": 1, "tid": tid, "name": name,
                        "args": {"depth": step.depth}}),
            )?;
        }
        Ok(())
    }

    fn blame(&mut self, tid: u64, episode: &Episode) -> io::Result<()> {
        let mut at = episode.expiry_ns;
        for share in episode.blame.iter().filter(|share| share.ns > 0) {
            let name = named(share.blamed());
            let stack: Vec<String> =
                share.frames.iter().map(|frame| clean(&kernel_frame(frame), 200)).collect();
            let args = json!({
                "cause": share.cause.name(),
                "culprit": clean(&culprit(share.blamed()), 200),
                "within": clean(&place(share), 200),
                "evidence": share.evidence,
                "ns": share.ns,
                "stack": stack.join("\n"),
            });
            self.slice(tid, at, share.ns, &name, args)?;
            at = at.saturating_add(share.ns);
        }
        Ok(())
    }

    /// The course of the maxima, as a curve per CPU.
    fn maxima(&mut self, run: &Run) -> io::Result<()> {
        let value = quantity::words(run).value;
        for (i, thread) in run.threads.iter().enumerate() {
            let Some(maxima) = &thread.maxima else { continue };
            let name = match thread.cpu {
                Some(cpu) => format!("largest {value}, CPU {cpu}"),
                None => format!("largest {value}, thread {i}"),
            };
            let mut from_ns = 0_u64;
            for max_ns in &maxima.max_ns {
                if let Some(max_ns) = max_ns {
                    let times = format!("\"ts\":{},", us(from_ns));
                    let args = json!({"us": *max_ns as f64 / 1e3});
                    self.put(&times, &json!({"ph": "C", "pid": 1, "name": name, "args": args}))?;
                }
                from_ns = from_ns.saturating_add(maxima.slot_ns);
            }
        }
        Ok(())
    }
}

/// Components in order of time.
fn parts(c: &Components) -> [(&'static str, u64); 4] {
    [
        ("irq_latency", c.irq_latency_ns),
        ("handler_duration", c.handler_duration_ns),
        ("sched_latency", c.sched_latency_ns),
        ("sched_duration", c.sched_duration_ns.unwrap_or(0)),
    ]
}

#[cfg(test)]
mod tests;
