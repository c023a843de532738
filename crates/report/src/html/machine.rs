//! What it was measured on, and what was asked.

use wakescope_core::command_line::masked;
use wakescope_core::host::cpu_ranges;
use wakescope_core::run::Run;
use wakescope_core::units::SpanNs;

use super::element::{self, folded, name, text};
use crate::line;
use crate::run_set::{Entry, RunSet};
use crate::stamps;
use crate::text::known_plan;

pub(super) fn section(run_set: &RunSet) -> String {
    let shown: String = match run_set.entries.as_slice() {
        [entry] => facts(entry),
        entries => entries.iter().map(|e| folded(&name(&e.name(), 120), &facts(e))).collect(),
    };
    element::section("machine", "Host and plan", &shown)
}

fn facts(entry: &Entry) -> String {
    let run = &entry.run;
    let facts = asked(entry).into_iter().chain(host(run)).filter(|(_, html)| !html.is_empty());
    let rows: String =
        facts.map(|(what, html)| format!("<dt>{what}</dt><dd>{html}</dd>\n")).collect();
    format!("<dl>\n{rows}</dl>\n")
}

/// A fact that is not known is empty.
fn asked(entry: &Entry) -> Vec<(&'static str, String)> {
    let run = &entry.run;
    let if_known = |key: &str, value: String| if run.knows(key) { value } else { String::new() };
    vec![
        ("plan", text(&known_plan(run))),
        ("line", line::sentence(run).map(|message| text(&message)).unwrap_or_default()),
        ("stamps", stamps::sentence(run).map(|message| text(&message)).unwrap_or_default()),
        ("measured for", if_known("duration_ns", text(&SpanNs(run.duration_ns).to_string()))),
        ("started", plain(run.known_start(), 40)),
        (
            "time",
            match run.time_domain.before_unit() {
                "" => String::new(),
                word => text(word.trim()),
            },
        ),
        // Of several runs, each has its own.
        (
            "seed",
            if entry.runs > 1 { String::new() } else { if_known("seed", run.seed.to_string()) },
        ),
        ("run", plain(&run.id, 120)),
    ]
}

/// Foreign text; empty if there is none.
fn plain(text: &str, limit: usize) -> String {
    if text.is_empty() { String::new() } else { name(text, limit) }
}

fn host(run: &Run) -> Vec<(&'static str, String)> {
    let host = &run.host;
    let list = |items: &[String]| {
        items.iter().take(64).map(|i| name(i, 80)).collect::<Vec<_>>().join(", ")
    };
    let cpus = |cpus: &[u32]| if cpus.is_empty() { String::new() } else { text(&cpu_ranges(cpus)) };
    let option = |text: &Option<String>| text.as_ref().map(|t| name(t, 120)).unwrap_or_default();
    let because = match host.preemption.because.as_str() {
        "" => String::new(),
        because => format!(" ({})", name(because, 200)),
    };
    let states = host.idle.states.iter().take(32).map(|s| {
        let off = if s.disabled { ", off" } else { "" };
        format!("{} ({}{off})", name(&s.name, 24), SpanNs(s.exit_latency_ns))
    });
    let states: Vec<String> = states.collect();
    let clock = match host.clock.source.as_str() {
        "" => String::new(),
        source => format!("{}, {} to read", name(source, 40), SpanNs(host.clock.read_cost_ns)),
    };
    vec![
        ("kernel", plain(&host.release, 100)),
        ("version", plain(&host.version, 200)),
        ("preemption", format!("{}{because}", text(&host.preemption.model.to_string()))),
        ("architecture", plain(&host.arch, 40)),
        ("processor", option(&host.cpu_model)),
        ("CPUs online", cpus(&host.cpus_online)),
        ("CPUs isolated", cpus(&host.cpus_isolated)),
        ("hypervisor", option(&host.hypervisor)),
        ("clock", clock),
        ("idle states", states.join(", ")),
        ("governors", list(&host.governors)),
        ("sched_ext", option(&host.sched_ext)),
        ("microcode", option(&host.microcode)),
        // A record may be anybody's, and older than the masking.
        ("command line", plain(&masked(&host.cmdline), 2_000)),
    ]
}
