//! What `wakescope check` shows.

use serde_json::{Value, json};
use wakescope_core::behaviour::{Agreement, Call, Judgement, Observations, Prober, Summary};
use wakescope_core::finding::{Finding, Severity};
use wakescope_core::host::Host;
use wakescope_core::instruments::Instrument;
use wakescope_core::preemption::Model;
use wakescope_core::units::{SpanNs, counted, grouped};

use crate::findings::wrapped;
use crate::style::{Style, clean};

/// Everything that is known about a machine.
#[derive(Clone, Debug)]
pub struct Check {
    /// The machine.
    pub host: Host,
    /// Limitations of a measurement there.
    pub limitations: Vec<Finding>,
    /// What can be seen there.
    pub instruments: Vec<Instrument>,
    /// What was observed there and what it means, if anybody looked.
    pub behaviour: Option<(Observations, Judgement)>,
}

impl Check {
    /// How the behaviour and the evidence stand to each other, if the behaviour was observed.
    pub fn agreement(&self) -> Option<Agreement> {
        let (_, judgement) = self.behaviour.as_ref()?;
        Some(judgement.agreement(self.host.preemption.model))
    }

    /// As JSON: the `host` of a run record, with `limitations`, `instruments` and, where it was
    /// observed, `behaviour`.
    pub fn json(&self) -> Result<Value, serde_json::Error> {
        let mut value = serde_json::to_value(&self.host)?;
        value["schema"] = "wakescope.check/1".into();
        value["limitations"] = serde_json::to_value(&self.limitations)?;
        value["instruments"] = serde_json::to_value(&self.instruments)?;
        if let Some((observations, judgement)) = &self.behaviour {
            value["behaviour"] = json!({
                "cpu": observations.cpu,
                "agreement": self.agreement(),
                "models": judgement.models,
                "reason": judgement.reason,
                "series": judgement.series,
                "obstacles": observations.obstacles,
            });
        }
        Ok(value)
    }

    /// As text: the answer, what it rests on, and what to expect.
    pub fn text(&self, style: Style) -> String {
        let mut out = Text { style, lines: Vec::new() };
        out.answer(self);
        out.evidence(&self.host);
        if let Some((observations, judgement)) = &self.behaviour {
            out.behaviour(observations, judgement);
        }
        out.machine(&self.host);
        out.limitations(&self.limitations);
        out.instruments(&self.instruments);
        let mut text = out.lines.join("\n");
        text.push('\n');
        text
    }
}

/// The screen's width.
const WIDTH: usize = 100;

/// Where the second column begins.
const COLUMN: usize = 36;

/// Longer text from a kernel is cut.
const LONG: usize = 200;

struct Text {
    style: Style,
    lines: Vec<String>,
}

impl Text {
    fn answer(&mut self, check: &Check) {
        let preemption = &check.host.preemption;
        let sentence = match preemption.model {
            Model::Unknown => {
                "The preemption model of this kernel cannot be determined from what the \
                               kernel reports."
                    .into()
            }
            model => {
                let because = clean(&preemption.because, LONG);
                format!("This kernel runs preemption model {model}: {because}.")
            }
        };
        for line in wrapped(&sentence, WIDTH, "").split('\n') {
            self.lines.push(self.style.strong(line));
        }
        if let (Some((_, judgement)), Some(agreement)) = (&check.behaviour, check.agreement()) {
            let sentence = agreement_sentence(agreement, judgement, preemption.model);
            for line in wrapped(&sentence, WIDTH, "").split('\n') {
                let line = match agreement {
                    Agreement::Agree => self.style.good(line),
                    Agreement::Contradict => self.style.bad(line),
                    Agreement::Undecided => self.style.warn(line),
                };
                self.lines.push(line);
            }
        }
    }

    fn evidence(&mut self, host: &Host) {
        let preemption = &host.preemption;
        self.section("evidence, strongest first");
        for evidence in &preemption.evidence {
            self.pair(&evidence.source, &evidence.says);
        }
        for unread in &preemption.unread {
            let line = format!(" {:COLUMN$} {}", source(&unread.source), clean(&unread.why, LONG));
            self.lines.push(self.style.faint(&format!("{line} (not read)")));
        }
        for conflict in &preemption.conflicts {
            self.marked("!", "conflict", conflict, "");
        }
    }

    fn behaviour(&mut self, observations: &Observations, judgement: &Judgement) {
        self.section(&format!("behaviour on CPU {}", observations.cpu));
        for summary in &judgement.series {
            self.pair(&series_name(summary), &series_says(summary));
        }
        for obstacle in &observations.obstacles {
            self.pair("not observed", obstacle);
        }
        if !judgement.reason.is_empty() {
            for line in wrapped(&judgement.reason, WIDTH - COLUMN - 2, "").split('\n') {
                self.pair("", line);
            }
        }
    }

    fn machine(&mut self, host: &Host) {
        self.section("machine");
        let release = known_or(&host.release, "of an unknown release,");
        self.pair("kernel", &format!("{release} {}", host.arch));
        if let Some(model) = &host.cpu_model {
            self.pair("processor", model);
        }
        let mut cpus = match host.cpus_online.len() {
            0 => "not known".to_string(),
            online => format!("{online} online"),
        };
        for (list, what) in [(&host.cpus_isolated, "isolated"), (&host.cpus_nohz_full, "nohz_full")]
        {
            if !list.is_empty() {
                cpus.push_str(&format!(", {} {what}", list.len()));
            }
        }
        self.pair("CPUs", &cpus);
        let (resolution, cost) =
            (SpanNs(host.clock.resolution_ns), SpanNs(host.clock.read_cost_ns));
        let source = known_or(&host.clock.source, "of an unknown source");
        let clock = format!("{source}, resolution {resolution}, {cost} per reading");
        self.pair("clock", &clock);
    }

    fn limitations(&mut self, findings: &[Finding]) {
        self.section("limitations of measurements on this machine");
        if findings.is_empty() {
            self.pair("none found in advance", "");
        }
        for finding in findings {
            let mark = if finding.severity == Severity::Note { "·" } else { "!" };
            self.marked(mark, &finding.code, &finding.message, &finding.hint);
        }
    }

    fn instruments(&mut self, instruments: &[Instrument]) {
        self.section("instruments");
        for (title, available) in
            [("available", Some(true)), ("missing", Some(false)), ("not known", None)]
        {
            let of: Vec<_> = instruments.iter().filter(|i| i.available == available).collect();
            let mut title = title;
            for (kind, plural) in
                [("", ""), ("tracepoint:", "tracepoints "), ("tracer:", "tracers ")]
            {
                let name = |i: &&&Instrument| match kind {
                    // Why something is missing is worth a line of its own, except for the many that
                    // one cause explains.
                    "" if i.name.contains(':') || available != Some(true) => None,
                    _ => i.name.strip_prefix(kind).map(String::from),
                };
                let names: Vec<_> = of.iter().filter_map(|i| name(&i)).collect();
                if !names.is_empty() {
                    self.column(
                        std::mem::take(&mut title),
                        &format!("{plural}{}", names.join(", ")),
                    );
                }
            }
            for i in of.iter().filter(|i| available != Some(true) && !i.name.contains(':')) {
                self.column(std::mem::take(&mut title), &format!("{}: {}", i.name, i.detail));
            }
        }
    }

    fn section(&mut self, title: &str) {
        self.lines.push(String::new());
        self.lines.push(format!(" {title}"));
    }

    fn pair(&mut self, left: &str, right: &str) {
        self.lines
            .push(format!(" {:COLUMN$} {}", source(left), clean(right, LONG)).trim_end().into());
    }

    /// A title, and text that is wrapped beside it.
    fn column(&mut self, mut title: &str, text: &str) {
        const INDENT: usize = 11;
        for line in wrapped(&clean(text, 2000), WIDTH - INDENT - 1, "").split('\n') {
            self.lines.push(format!(" {:INDENT$}{line}", std::mem::take(&mut title)));
        }
    }

    fn marked(&mut self, mark: &str, code: &str, message: &str, hint: &str) {
        let indent = 17;
        let mut head = format!(" {mark} {:14}", clean(code, 14));
        for line in wrapped(&clean(message, 2000), WIDTH - indent, "").split('\n') {
            let line = format!("{head}{line}");
            self.lines.push(if mark == "!" { self.style.warn(&line) } else { line });
            head = " ".repeat(indent);
        }
        if !hint.is_empty() {
            self.lines.push(self.style.faint(&format!("{:indent$}→ {}", "", clean(hint, LONG))));
        }
    }
}

/// What could be read, or what stands in its place.
fn known_or<'t>(read: &'t str, unknown: &'t str) -> &'t str {
    if read.is_empty() { unknown } else { read }
}

/// A file's name in the first column, its middle left out if it is too long.
fn source(name: &str) -> String {
    let name = clean(name, LONG);
    let count = name.chars().count();
    if count <= COLUMN {
        return name;
    }
    let (head, tail) = (COLUMN / 2, COLUMN - COLUMN / 2 - 1);
    name.chars().take(head).chain(['…']).chain(name.chars().skip(count - tail)).collect()
}

fn agreement_sentence(agreement: Agreement, judgement: &Judgement, model: Model) -> String {
    let models = listed(&judgement.models);
    match agreement {
        Agreement::Agree => format!("Its behaviour agrees: it matches {models}."),
        Agreement::Contradict => {
            format!("Its behaviour contradicts that: it matches {models}, not {model}.")
        }
        Agreement::Undecided if model == Model::Unknown && judgement.models.len() < 5 => {
            format!("Its behaviour matches {models}.")
        }
        Agreement::Undecided => "Its behaviour is inconclusive.".into(),
    }
}

/// `none`, `none or voluntary`, `full, lazy or RT`.
fn listed(models: &[Model]) -> String {
    let names: Vec<_> = models.iter().map(Model::to_string).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        Some((last, _)) => last.clone(),
        None => "no model".into(),
    }
}

fn series_name(summary: &Summary) -> String {
    let call = match summary.call {
        Call::PipeRead => "read of a pipe",
        Call::PipeWrite => "write to a pipe",
        Call::ZeroRead => "read of /dev/zero",
        Call::LockScan => "scan of record locks",
    };
    match summary.prober {
        Prober::Realtime => call.into(),
        Prober::Fair => format!("{call}, ordinary task"),
    }
}

fn series_says(summary: &Summary) -> String {
    let Summary { median_share, answer, disturbed, .. } = *summary;
    let (undisturbed, disturbed) = (summary.wakeups as u64, disturbed as u64);
    let others = match disturbed {
        0 => String::new(),
        count => format!(", {} disturbed by others", grouped(count)),
    };
    let wakeups = format!("{}{others}", counted(undisturbed, "wakeup"));
    match median_share {
        None if disturbed > 0 => format!("undecided ({wakeups})"),
        None => "undecided: no wakeup arrived during it".into(),
        Some(share) => {
            format!("{answer} ({:.0} % of the rest came first; {wakeups})", share * 100.0)
        }
    }
}

#[cfg(test)]
mod tests;
