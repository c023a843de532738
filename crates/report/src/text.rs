//! A run for people: the verdict first, then what it rests on, then detail.

use std::fmt::Write;

use wakescope_core::distribution::Distribution;
use wakescope_core::finding::Verdict;
use wakescope_core::limit::Outcome;
use wakescope_core::percentile::Percentile;
use wakescope_core::plan::{Between, IdleStates, Placement, Plan, Target};
use wakescope_core::run::{Run, State, TimeDomain};
use wakescope_core::source::Source;
use wakescope_core::units::{SpanNs, counted, grouped};

use crate::domain;
use crate::explain;
use crate::findings::{self, Notes, wrapped};
use crate::headline::Headline;
use crate::intervals;
use crate::line;
use crate::observed;
use crate::plot;
use crate::progress::span_or_dash;
use crate::quantity;
use crate::run_set::Entry;
use crate::style::{Style, clean, clean_end};
use crate::table::columns;
use crate::tail;

/// The whole report on `run`, 100 columns wide.
pub fn report(run: &Run, style: Style) -> String {
    let mut out = overview(run, style, Notes::InFull);
    let proven = tail::block(run, style);
    if !proven.is_empty() {
        let _ = write!(out, "\n{proven}");
    }
    let intervals = intervals::block(run);
    if !intervals.is_empty() {
        let _ = write!(out, "\n{intervals}");
    }
    let all = run.expiries();
    if all.count > 0 {
        let kind = run.time_domain.before_unit();
        let words = quantity::words(run);
        let what = match &run.source {
            None if quantity::is_wakeup(run) || run.plan.stimulus.is_busy() => {
                format!("{} by {kind}{}", words.many, words.value)
            }
            _ => format!("samples by {kind}{}", run.quantity()),
        };
        let _ = write!(out, "\n {what}, both scales logarithmic\n{}", plot::log_log(&all));
    }
    out
}

/// The report without the histogram, and with notes by name only, as printed after a measurement.
pub fn summary(run: &Run, style: Style) -> String {
    overview(run, style, Notes::ByName)
}

fn overview(run: &Run, style: Style, notes: Notes) -> String {
    // Other waits than those after wakeups are in no figure below.
    let mut out = explain::waits_sentence(run, style);
    out.push_str(&headline(run, style));
    out.push_str(&what_it_proves(run));
    for line in crate::audio::sentences(run).into_iter().chain(crate::stamps::sentence(run)) {
        let _ = writeln!(out, "{line}");
    }
    out.push_str(&limits(run, style));
    let _ = write!(out, "\n{}", cpus(run));
    if !run.load.is_empty() {
        let _ = write!(out, "\n{}", crate::load::table(&run.load));
    }
    out.push_str(&findings::list(&run.validity.findings, style, notes));
    let _ = write!(out, "\n{}", machine(run));
    out
}

/// How the run stands to each of its limits, a line each.
pub(crate) fn limits(run: &Run, style: Style) -> String {
    let mut out = String::new();
    for judgement in &run.limits {
        let (limit, observed) = observed::of(judgement, run.time_domain);
        let limit = limit + judged(run);
        let line = match judgement.outcome {
            Outcome::Pass => style.good(&format!("within the limit {limit}: {observed}")),
            Outcome::Fail => style.bad(&format!("above the limit {limit}: {observed}")),
            Outcome::Inconclusive => style.warn(&format!(
                "inconclusive on the limit {limit}: {}",
                clean(&judgement.reason, 200)
            )),
        };
        let _ = writeln!(out, "{line}");
    }
    out
}

/// Which lateness the limits of a run judge, where that is a question; empty otherwise.
pub(crate) fn judged(run: &Run) -> &'static str {
    if run.net_of_steal.is_some() { " (steal included)" } else { "" }
}

fn headline(run: &Run, style: Style) -> String {
    let Some(sentence) = sentence(run) else {
        let none = none_measured(run);
        let is_good = run.plan.stimulus.is_busy() && run.validity.verdict != Verdict::Invalid;
        return format!("{}\n", if is_good { style.good(&none) } else { style.bad(&none) });
    };
    let verdict = verdict(run, style);
    let room = 98_usize.saturating_sub(sentence.chars().count() + 19).max(2);
    format!("{}{}{verdict}\n", style.strong(&sentence), " ".repeat(room))
}

/// `No wakeup was measured.`
pub(crate) fn none_measured(run: &Run) -> String {
    match run.plan.gap_from_ns {
        Some(from_ns) if from_ns > 0 && run.duration_ns > 0 => format!(
            "No gap of {} or more in {}.",
            domain::span(from_ns, run.time_domain),
            domain::span(run.duration_ns, run.time_domain)
        ),
        _ => format!("No {} was measured.", quantity::words_of_quantity(quantity::of(run)).one),
    }
}

/// How late the worst wakeup was, and the others; `None` if there was none.
pub(crate) fn sentence(run: &Run) -> Option<String> {
    Headline::of(run).map(|headline| headline.sentence())
}

/// Whether the run can be trusted, in a word or two.
pub(crate) fn verdict(run: &Run, style: Style) -> String {
    match (run.validity.verdict, run.state) {
        (Verdict::Valid, State::Complete) => style.good("valid"),
        (Verdict::Valid, _) => style.good("valid, ended early"),
        (Verdict::Degraded, _) => style.warn("degraded: see below"),
        (Verdict::Invalid, _) => style.bad("invalid: see below"),
    }
}

/// The samples of a run, in figures: `20,000 expiries at 1.00 ms on 2 CPUs`.
fn samples(run: &Run) -> String {
    let cpus = match run.threads.len() {
        0 | 1 => String::new(),
        n => format!(" on {n} CPUs"),
    };
    match (&run.source, run.plan.is_of_others()) {
        (Some(source), _) => samples_of(run, source),
        _ if run.plan.stimulus.is_busy() => gaps(run) + &cpus,
        (None, false) => {
            let count = counted(run.summary.count, sample_of(&run.plan));
            format!("{count} at {}{cpus}", interval(run))
        }
        (None, true) => counted(run.summary.count, "wakeup"),
    }
}

/// The time from one expiry to the next.
fn interval(run: &Run) -> String {
    domain::span(run.plan.interval_ns, run.time_domain)
}

/// What the maximum of an entry proves. Of several runs as one it proves nothing: their courses lie one
/// over the other, so bursts of late wakeups are not seen.
pub(crate) fn what_it_proves_of(entry: &Entry) -> String {
    match entry.runs {
        0 | 1 => what_it_proves(&entry.run),
        _ => format!("{}.\n", samples(&entry.run)),
    }
}

/// What the maximum proves: the rate of larger ones that the samples do not rule out.
fn what_it_proves(run: &Run) -> String {
    let (summary, counted) = (&run.summary, samples(run));
    let is_timeless = run.duration_ns == 0 && run.source.is_some() && summary.count > 0;
    let sentences = match (summary.max_ns, tail::not_excluded(run)) {
        _ if is_timeless => {
            let unknown = "The duration is unknown, so the rate of larger ones has no bound.";
            vec![format!("{counted}. {unknown}")]
        }
        (Some(_), Some(what)) => {
            vec![format!("{counted}."), format!("Not excluded at 95 %: {what}.")]
        }
        (Some(_), None) => vec![format!("{counted}: too few to bound the rate of larger ones.")],
        _ => Vec::new(),
    };
    sentences.iter().map(|sentence| wrapped(sentence, 100, "") + "\n").collect()
}

/// What one sample of a run made as `plan` is: `expiry`, `wakeup`, `round trip`.
pub fn sample_of(plan: &Plan) -> &'static str {
    quantity::words_of_plan(plan).one
}

/// What a loop that never sleeps saw, in figures: `1,234 gaps of 1.00 µs or more in 10.0 s, 123 per
/// second and CPU, 0.42 % of the time`.
fn gaps(run: &Run) -> String {
    let all = run.expiries();
    let looked = run.threads.iter().filter_map(|t| Some(t.spin?.observed_ns));
    let looked = looked.fold(0, u64::saturating_add);
    let shares = match looked {
        0 => String::new(),
        ns => {
            let (count, looked) = (u128::from(all.count), u128::from(ns));
            let per_second = (count * 1_000_000_000 + looked / 2) / looked;
            // What lacks a little is not the whole.
            let most = if all.sum_ns < ns { 99.999 } else { f64::INFINITY };
            format!(
                ", {} per second and CPU, {:.3} % of the time",
                grouped(u64::try_from(per_second).unwrap_or(u64::MAX)),
                (all.sum_ns as f64 / ns as f64 * 100.0).min(most)
            )
        }
    };
    let from = domain::span(run.plan.gap_from_ns.unwrap_or(0), run.time_domain);
    let span = domain::span(run.duration_ns, run.time_domain);
    format!("{} of {from} or more in {span}{shares}", counted(all.count, "gap"))
}

/// What another program measured, in figures: `20,000 samples of cyclictest at 1.00 ms, 2 threads`.
fn samples_of(run: &Run, source: &Source) -> String {
    let mut text =
        format!("{} of {}", counted(run.summary.count, "sample"), clean(&source.tool, 40));
    if run.plan.interval_ns > 0 {
        let _ = write!(text, " at {}", interval(run));
    }
    if run.threads.len() > 1 {
        let _ = write!(text, ", {} threads", run.threads.len());
    }
    text
}

/// A line per CPU and, with several, one for all.
fn cpus(run: &Run) -> String {
    let mut head: Vec<String> = ["cpu", "count", "missed", "min"].map(String::from).to_vec();
    head.extend(Percentile::SHOWN.iter().map(ToString::to_string));
    head.push("max".into());
    let mut rows = vec![head];
    for (number, thread) in run.threads.iter().enumerate() {
        let name = match (thread.cpu, &run.source) {
            (Some(cpu), _) => cpu.to_string(),
            (None, Some(_)) => format!("#{number}"),
            (None, None) => "any".into(),
        };
        let min_ns = quantity::min_ns(run, thread);
        rows.push(row(name, &thread.expiries, quantity::missed(run, thread), min_ns));
    }
    if run.threads.len() > 1 {
        let min_ns = quantity::min_of_all_ns(run);
        rows.push(row("all".into(), &run.expiries(), quantity::missed_of_all(run), min_ns));
    }
    domain::caption(run.time_domain).to_owned() + &columns(&rows, false)
}

fn row(name: String, d: &Distribution, missed: Option<u64>, min_ns: Option<u64>) -> Vec<String> {
    let mut cells = vec![name, grouped(d.count), quantity::count(missed), span_or_dash(min_ns)];
    cells.extend(Percentile::SHOWN.iter().map(|&p| quantity::quantile(d, p)));
    cells.push(quantity::maximum(d));
    cells
}

/// What it was measured on and how.
pub(crate) fn machine(run: &Run) -> String {
    if let Some(source) = &run.source {
        return imported(run, source);
    }
    let host = &run.host;
    let preemption = match host.preemption.because.as_str() {
        "" => format!("preemption {}", host.preemption.model),
        because => format!("preemption {}: {}", host.preemption.model, clean(because, 90)),
    };
    let mut parts =
        vec![format!("kernel {}", clean(&host.release, 60)), clean(&host.clock.source, 20)];
    if let Some(hypervisor) = &host.hypervisor {
        parts.push(format!("{} guest", clean(hypervisor, 30)));
    }
    parts.retain(|p| !p.is_empty());
    let line = line::sentence(run).map(|text| format!(" {text}\n")).unwrap_or_default();
    format!(" {}\n {preemption}\n {}\n{line}", parts.join(" · "), plan(&run.plan, run.time_domain))
}

/// Which program measured it and how, as far as its file tells.
fn imported(run: &Run, source: &Source) -> String {
    let version = source.version.as_deref().unwrap_or_default();
    let tool = clean(format!("{} {version}", source.tool).trim_end(), 60);
    let of_file = match source.file.as_str() {
        "" => String::new(),
        file => format!(": {}", clean(file, 60)),
    };
    let mut out = format!(" {tool}, {}{of_file}\n", clean(&source.format, 40));
    let kernel = match run.host.release.as_str() {
        "" => String::new(),
        release => format!("kernel {}", clean(release, 60)),
    };
    let parts: Vec<String> =
        [kernel, known_plan(run)].into_iter().filter(|p| !p.is_empty()).collect();
    if !parts.is_empty() {
        let _ = writeln!(out, " {}", parts.join(" · "));
    }
    let _ = writeln!(out, " values: {}; {}", source.quantity, source.omission);
    out
}

/// The plan in a line, as [`plan`] has it. Of another program's run as much of it as the file tells,
/// which may be nothing.
pub fn known_plan(run: &Run) -> String {
    let plan = &run.plan;
    if run.source.is_none() {
        return self::plan(plan, run.time_domain);
    }
    let mut parts = Vec::new();
    if plan.is_of_others() {
        parts.push(target(&plan.target));
    }
    if plan.interval_ns > 0 {
        parts.push(format!("{} {}", plan.stimulus, SpanNs(plan.interval_ns)));
    }
    match plan.priority {
        Some(priority) if run.knows("plan.policy") => {
            parts.push(format!("{} {priority}", plan.policy));
        }
        Some(priority) => parts.push(format!("priority {priority}")),
        None if run.knows("plan.policy") && !plan.is_of_others() => {
            parts.push(plan.policy.to_string());
        }
        None => {}
    }
    parts.join(" · ")
}

/// The plan in a line: `timer 1.00 ms · fifo 90 · 2 CPUs · load find, launch`, or whose wakeups were
/// followed: `wakeups of process 4711`. Its times are of this domain.
pub fn plan(plan: &Plan, time: TimeDomain) -> String {
    let span = |ns| domain::span(ns, time);
    if plan.is_of_others() {
        return format!("wakeups of {}", target(&plan.target));
    }
    let mut parts = vec![match (plan.gap_from_ns, plan.audio) {
        (Some(from_ns), _) => format!("{}, gaps from {}", plan.stimulus, span(from_ns)),
        (None, Some(audio)) => crate::audio::plan(audio, time),
        (None, None) => format!("{} {}", plan.stimulus, span(plan.interval_ns)),
    }];
    parts.extend(waker(plan));
    parts.push(match (plan.priority, plan.runtime()) {
        (Some(priority), _) => format!("{} {priority}", plan.policy),
        (None, Some(runtime)) => format!("{} {}", plan.policy, span(runtime.0)),
        (None, None) => plan.policy.to_string(),
    });
    parts.push(match plan.cpus.as_slice() {
        [cpu] => format!("CPU {cpu}"),
        cpus => format!("{} CPUs", cpus.len()),
    });
    if !plan.load.is_empty() {
        parts.push(format!("load {}", clean(&plan.load.join(", "), 60)));
    }
    if plan.idle_states == IdleStates::Shallow {
        parts.push("idle states shallow".into());
    }
    parts.join(" · ")
}

/// What is unusual about the wakers: `woken by a process on CPU 1`.
fn waker(plan: &Plan) -> Option<String> {
    let waker = plan.waker.as_ref()?;
    let who = match waker.between {
        Between::Threads => "thread",
        Between::Processes => "process",
    };
    match (waker.placement, waker.cpus.as_slice()) {
        (Placement::SameCpu, _) if waker.between == Between::Threads => None,
        (Placement::SameCpu, _) => Some(format!("woken by a {who}")),
        (Placement::CrossCpu, [cpu]) => Some(format!("woken by a {who} on CPU {cpu}")),
        (Placement::CrossCpu, _) => Some(format!("woken by a {who} on another CPU")),
    }
}

/// Whose wakeups these are: `process 4711`.
pub(crate) fn target(target: &Target) -> String {
    match target {
        Target::Probes => "probes".into(),
        Target::Process { pid } => format!("process {pid}"),
        Target::Thread { tid } => format!("thread {tid}"),
        Target::Comm { comm } => format!("threads named {}", clean(comm, 40)),
        Target::Cgroup { path } => format!("cgroup {}", clean_end(path, 70)),
        Target::Tasks { count, latest } => {
            format!("{}, the latest of them {}", counted(*count, "task"), clean(latest, 60))
        }
        Target::Program { name } => format!("{}'s threads", clean(name, 60)),
        Target::Unknown => "other tasks".into(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use expect_test::expect;
    use wakescope_core::finding::{Finding, Severity, Validity};
    use wakescope_core::host::{Clock, Host};
    use wakescope_core::limit::Judgement;
    use wakescope_core::plan::Stimulus;
    use wakescope_core::preemption::{Model, Preemption};
    use wakescope_core::run::{Episode, LoadResult, SCHEMA, Spin, Thread, TimeDomain};

    /// A run with one CPU per list of samples, each list in order of its expiries.
    pub(crate) fn run_of(cpus: &[&[u64]]) -> Run {
        let threads: Vec<Thread> =
            (0..).zip(cpus).map(|(cpu, samples)| thread(cpu, samples)).collect();
        let worst = threads.iter().filter_map(|t| {
            Some(Episode {
                cpu: t.cpu,
                expiry_ns: t.expiries.max_at_ns?,
                wakeup_latency_ns: t.expiries.max_ns?,
                ..Default::default()
            })
        });
        let mut worst: Vec<Episode> = worst.collect();
        worst.sort_by_key(|w| std::cmp::Reverse(w.wakeup_latency_ns));
        let preemption = Preemption {
            model: Model::Voluntary,
            because: "no preempt= on its command line".into(),
            ..Default::default()
        };
        let host = Host {
            release: "6.12.95".into(),
            preemption,
            clock: Clock { source: "tsc".into(), resolution_ns: 1, read_cost_ns: 30 },
            ..Default::default()
        };
        let plan = Plan {
            interval_ns: 1_000_000,
            cpus: (0..).zip(cpus).map(|(cpu, _)| cpu).collect(),
            priority: Some(90),
            ..Default::default()
        };
        let mut run = Run {
            schema: SCHEMA.into(),
            id: "x".into(),
            started: "2026-11-21T01:00:00Z".into(),
            duration_ns: 10_000_000_000,
            origin_ns: 0,
            time_domain: TimeDomain::Real,
            seed: 1,
            state: State::Complete,
            host,
            plan,
            validity: Validity::of(vec![]),
            limits: vec![],
            threads,
            load: vec![],
            worst,
            ..Default::default()
        };
        run.summarize();
        run
    }

    fn thread(cpu: u32, samples: &[u64]) -> Thread {
        let max = samples.iter().max().copied();
        let d = Distribution {
            max_at_ns: samples.iter().position(|&s| Some(s) == max).map(|at| at as u64 * 1_000_000),
            ..Distribution::of(samples.iter().copied())
        };
        Thread { cpu: Some(cpu), woken: d.clone(), expiries: d, ..Default::default() }
    }

    const PLAIN: Style = Style { colour: false };

    #[test]
    fn the_answer_comes_first() {
        let first = [vec![12_000; 6_200], vec![4_310_000], vec![12_000; 3_800]].concat();
        let second = [vec![11_500; 9_980], vec![203_000; 20]].concat();
        let mut run = run_of(&[&first, &second]);
        run.load = vec![LoadResult {
            name: "find".into(),
            work: 412_233,
            unit: "files".into(),
            per_second: 41_223.3,
            alive: true,
            ..Default::default()
        }];
        run.plan.load = vec!["find".into()];
        run.limits = vec![Judgement {
            limit: "max ≤ 1.00 ms".into(),
            limit_ns: 1_000_000,
            observed_ns: Some(4_310_000),
            outcome: Outcome::Fail,
            reason: String::new(),
        }];
        run.validity = Validity::of(vec![
            Finding::new(
                "idle-states",
                Severity::Note,
                "the CPU may sleep as deep as C6".into(),
                "",
            ),
            Finding::new(
                "steal",
                Severity::Warning,
                "the hypervisor took 38 ms from these CPUs: maxima are partly not this kernel's"
                    .into(),
                "measure on the bare machine, or compare kernels in virtual time: `wakescope lab run --plan linux-journal`",
            ),
        ]);
        expect![[r#"
            Worst wakeup 4.31 ms late (CPU 0, 6.20 s in); 99.9 % within 203 µs.            degraded: see below
            20,001 expiries at 1.00 ms on 2 CPUs.
            Not excluded at 95 %: 1 in 6,670 expiries above 4.31 ms, one every 3.33 s.
            above the limit max ≤ 1.00 ms: 4.31 ms

             cpu   count  missed      min      p50      p99    p99.9  p99.99  p99.999      max
               0  10,001       0  12.0 µs  12.0 µs  12.0 µs  12.0 µs       –        –  4.31 ms
               1  10,000       0  11.5 µs  11.5 µs  11.5 µs   203 µs       –        –   203 µs
             all  20,001       0  11.5 µs  12.0 µs  12.0 µs   203 µs  203 µs        –  4.31 ms

             load       work              per second
             find       412,233 files         41,200

             ! steal  the hypervisor took 38 ms from these CPUs: maxima are partly not this kernel's
                      → measure on the bare machine, or compare kernels in virtual time: `wakescope lab run
                        --plan linux-journal`
             · notes, see `wakescope report`: idle-states

             kernel 6.12.95 · tsc
             preemption voluntary: no preempt= on its command line
             timer 1.00 ms · fifo 90 · 2 CPUs · load find
        "#]].assert_eq(&summary(&run, PLAIN));
    }

    #[test]
    fn few_samples_claim_little() {
        expect![[r#"
            Worst wakeup 11.0 µs late (CPU 0, 2.00 ms in).                                 valid
            3 expiries at 1.00 ms: too few to bound the rate of larger ones.

             cpu  count  missed      min  p50  p99  p99.9  p99.99  p99.999      max
               0      3       0  9.00 µs    –    –      –       –        –  11.0 µs

             kernel 6.12.95 · tsc
             preemption voluntary: no preempt= on its command line
             timer 1.00 ms · fifo 90 · CPU 0
        "#]]
        .assert_eq(&summary(&run_of(&[&[9_000, 10_000, 11_000]]), PLAIN));
        assert!(summary(&run_of(&[&[]]), PLAIN).starts_with("No wakeup was measured."));
    }

    #[test]
    fn wakeups_of_others_have_no_grid() {
        let mut run = run_of(&[&[9_000; 3_000]]);
        let others = |target| Plan { target, stimulus: Stimulus::Any, ..Plan::default() };
        run.plan = others(Target::Process { pid: 4_711 });
        let text = report(&run, PLAIN);
        assert!(text.contains("\n3,000 wakeups.\n"), "{text}");
        assert!(text.contains("\n wakeups of process 4711\n"), "{text}");
        assert!(text.contains("\n wakeups by lateness"), "{text}");
        assert!(!text.contains("fifo") && !text.contains("expiries"), "{text}");
        for (target, want) in [
            (Target::Thread { tid: 4_712 }, "wakeups of thread 4712"),
            (Target::Comm { comm: "\u{1b}[2J".into() }, "wakeups of threads named \u{fffd}[2J"),
            (Target::Cgroup { path: "/a".into() }, "wakeups of cgroup /a"),
            (Target::Program { name: "schbench".into() }, "wakeups of schbench's threads"),
            (Target::Unknown, "wakeups of other tasks"),
        ] {
            assert_eq!(plan(&others(target), TimeDomain::Real), want);
        }
    }

    #[test]
    fn wakeups_by_another_thread_are_no_expiries() {
        let mut run = run_of(&[&[9_000; 3_000]]);
        run.plan.stimulus = Stimulus::Futex;
        let text = report(&run, PLAIN);
        assert!(text.contains("\n3,000 wakeups at 1.00 ms.\n"), "{text}");
        assert!(text.contains("\n futex 1.00 ms · fifo 90 · CPU 0\n"), "{text}");
        assert!(text.contains("\n wakeups by lateness") && !text.contains("expiries"), "{text}");
    }

    #[test]
    fn gaps_are_called_gaps() {
        let spin = |samples: &[u64]| {
            let mut run = run_of(&[samples]);
            run.plan.stimulus = Stimulus::Spin;
            (run.plan.interval_ns, run.plan.gap_from_ns) = (0, Some(1_000));
            (run.plan.policy, run.plan.priority) = (wakescope_core::plan::ProbePolicy::Other, None);
            run.threads[0].spin = Some(Spin { loops: 200_000_000, observed_ns: 10_000_000_000 });
            report(&run, PLAIN)
        };
        let text = spin(&[&[2_000; 2_999][..], &[94_000]].concat());
        let count =
            "3,000 gaps of 1.00 µs or more in 10.0 s, 300 per second and CPU, 0.061 % of the";
        for want in [
            "Largest gap in a busy loop 94.0 µs (CPU 0, 3.00 s in); 99.9 % within 2.",
            count,
            "\n spin, gaps from 1.00 µs · other · CPU 0\n",
            "\n gaps by length",
            "gaps above 94.0 µs",
        ] {
            assert!(text.contains(want), "{want}: {text}");
        }
        assert!(!text.contains("wakeup") && !text.contains("expir"), "{text}");
        // Nothing that was seen is the best there is to see.
        assert!(spin(&[]).starts_with("No gap of 1.00 µs or more in 10.0 s.\n"));
    }

    #[test]
    fn no_part_looks_like_the_whole() {
        let mut run = run_of(&[&[1_000; 3]]);
        run.plan.stimulus = Stimulus::Spin;
        run.threads[0].spin = Some(Spin { loops: 1, observed_ns: 3_000 });
        assert!(gaps(&run).ends_with(", 100.000 % of the time"), "{}", gaps(&run));
        run.threads[0].expiries.sum_ns = 299_999_900;
        run.threads[0].spin = Some(Spin { loops: 1, observed_ns: 300_000_000 });
        assert!(gaps(&run).ends_with(", 99.999 % of the time"), "{}", gaps(&run));
    }

    #[test]
    fn a_record_without_threads_has_samples_of_no_cpu() {
        let mut run = run_of(&[&[9_000; 3_000]]);
        run.threads.clear();
        let text = report(&run, PLAIN);
        assert!(text.contains("\n3,000 expiries at 1.00 ms: too few"), "{text}");
    }

    #[test]
    fn what_is_said_of_a_file_without_duration_keeps_to_the_width() {
        let tool = "a-tool-with-a-name-of-forty-characters-x".to_owned();
        let mut run = run_of(&[&[9_000; 3_000], &[9_000; 3_000]]);
        (run.source, run.duration_ns) = (Some(Source { tool, ..Source::default() }), 0);
        let text = report(&run, PLAIN);
        assert!(text.contains(", 2 threads. The duration is\nunknown, "), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }

    #[test]
    fn virtual_time_is_called_virtual() {
        let mut run = run_of(&[&[9_000; 100]]);
        run.time_domain = TimeDomain::Virtual;
        let text = report(&run, PLAIN);
        assert!(text.contains("Worst wakeup 9.00 virtual µs late"), "{text}");
        assert!(text.contains("times are virtual"), "{text}");
        assert!(text.contains("by virtual lateness"), "{text}");
        assert!(text.contains("\n100 expiries at 1.00 virtual ms.\n"), "{text}");
        assert!(text.contains("\n timer 1.00 virtual ms · "), "{text}");
    }

    #[test]
    fn hostile_text_does_not_reach_the_terminal() {
        let mut run = run_of(&[&[9_000; 10]]);
        run.host.release = "\x1b[2J6.12\n".into();
        run.plan.load = vec!["exec:\x1b]0;title\x07".into()];
        run.validity = Validity::of(vec![Finding {
            code: "\x1b[31m".into(),
            severity: Severity::Warning,
            message: "a\rb".repeat(1_000),
            hint: "\u{202e}".into(),
        }]);
        let text = report(&run, PLAIN);
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
        assert!(!text.contains('\u{202e}'));
    }
}
