use wakescope_core::distribution::Distribution;
use wakescope_core::explain::{Culprit, Frame, StepEvent};
use wakescope_core::finding::{Finding, Severity, Validity};
use wakescope_core::run::{LoadResult, Run, TimeDomain};
use wakescope_core::source::{Omission, Quantity, Source};

use super::*;
use crate::explain::tests::hostile::waits;
use crate::explain::tests::runs::crowded;
use crate::picture::tests::HOSTILE;
use crate::run_set::{Entry, Line};
use crate::text::tests::run_of;

/// Checks that elements close in order, and that there are only those that we write.
#[track_caller]
fn check_page(page: &str) {
    const VOID: [&str; 3] = ["meta", "br", "!doctype"];
    let mut open: Vec<String> = Vec::new();
    let mut rest = page;
    while let Some(start) = rest.find('<') {
        rest = &rest[start + 1..];
        let end = rest.find('>').expect("every tag ends");
        let tag = &rest[..end];
        let name = tag.trim_end_matches('/').split([' ', '\n']).next().unwrap().to_owned();
        rest = &rest[end + 1..];
        if let Some(name) = name.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "<{tag}>");
        } else if !tag.ends_with('/') && !VOID.contains(&name.as_str()) {
            assert!(name.chars().all(|c| c.is_ascii_alphanumeric()), "<{tag}>");
            // What these hold is no markup.
            if name == "script" || name == "style" {
                let end = rest.find(&format!("</{name}>")).unwrap();
                rest = &rest[end..];
            }
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?} are not closed");
    for outside in ["http:", "https:", "src=", "href=", "url("] {
        let found = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!found.contains(outside), "the page reaches outside: {outside}");
    }
}

#[test]
fn a_command_line_that_nobody_masked_is_masked_on_a_page() {
    let mut run = crowded();
    run.host.cmdline = "root=/dev/secret preempt=full -- secret".into();
    let page = page(&RunSet::of(vec![Entry::of("run", &run)]));
    assert!(page.contains("root=[masked] preempt=full -- [masked]"));
    assert!(!page.contains("secret"));
}

/// The page of a run, and how many expiries were missed by it, by the text, and by Markdown.
fn page_and_missed(run: &Run) -> (String, [String; 3]) {
    let run_set = RunSet::of(vec![Entry::of("run", run)]);
    let page = page(&run_set);
    check_page(&page);
    let (_, cells) = page.split_once("3,000</td>").unwrap();
    let of_page = cells.split(['<', '>']).nth(2).unwrap().to_owned();
    let text = crate::text::report(run, crate::style::Style::default());
    let of_text = text.lines().find(|line| line.starts_with(" all")).unwrap();
    let of_text = of_text.split_whitespace().nth(2).unwrap().to_owned();
    let markdown = crate::markdown::report(&run_set);
    let (_, cells) = markdown.split_once("| 6,000 | ").unwrap();
    (page, [of_page, of_text, cells.split(' ').next().unwrap().to_owned()])
}

#[test]
fn figures_that_the_source_lacks_are_not_shown() {
    let mut run = run_of(&[&[9_000; 3_000], &[9_000; 3_000]]);
    let facts = ["plan", "measured for", "seed", "kernel"].map(|fact| format!("<dt>{fact}</dt>"));
    let (of_own, missed) = page_and_missed(&run);
    assert_eq!(missed, ["0", "0", "0"]);
    assert!(facts.iter().all(|fact| of_own.contains(fact)), "{of_own}");

    let unknown =
        ["threads.missed", "duration_ns", "seed", "host", "plan.interval_ns", "plan.policy"];
    let unknown = unknown.map(String::from).to_vec();
    let (tool, format) = ("cyclictest".into(), "text histogram".into());
    run.source = Some(Source { tool, format, unknown, ..Source::default() });
    run.id = "cyclictest-1".into();
    (run.duration_ns, run.seed, run.host) = (0, 0, Default::default());
    (run.plan.interval_ns, run.plan.priority) = (0, None);
    let (of_one, missed) = page_and_missed(&run);
    assert_eq!(missed, ["–", "–", "–"]);
    assert!(facts.iter().all(|fact| !of_one.contains(fact)), "{of_one}");
    let of_two = page(&RunSet::of(vec![Entry::of("a", &run), Entry::of("b", &run)]));
    assert!(!of_two.contains("<bdi></bdi>"), "{of_two}");
}

#[test]
fn a_culprit_has_all_its_stacks_as_in_the_text() {
    let mut run = crowded();
    let frame = |function: &str| Frame { function: Some(function.into()), ..Frame::default() };
    let share = &mut run.worst[0].blame[0];
    share.given_up_at = ["schedule", "tty_wait"].map(frame).to_vec();
    share.user_stack = (0..30).map(|i| frame(&format!("of_program_{i}"))).collect();
    let page = page(&RunSet::of(vec![Entry::of("run", &run)]));
    check_page(&page);
    let text = crate::explain::text(&run, Default::default(), crate::explain::Extent::Worst(1));
    for (part, of_text) in [
        (
            "<li><bdi>gives up the CPU in schedule+0x0</bdi></li>",
            "gives up the CPU in schedule+0x0",
        ),
        ("<li><bdi>user stack: of_program_0+0x0</bdi></li>", "user stack: of_program_0+0x0"),
        ("<li><bdi>of_program_23+0x0</bdi></li><li>… 6 more</li>", "… 18 more"),
    ] {
        assert!(page.contains(part) && text.contains(of_text), "{part}: {text}");
    }
}

#[test]
fn figures_that_make_no_sense_are_dashes_as_in_the_text() {
    let mut run = crowded();
    let components = run.components.as_mut().unwrap();
    (components.irq_latency.min_ns, components.irq_latency.max_ns) = (Some(7), Some(3));
    let page = page(&RunSet::of(vec![Entry::of("run", &run)]));
    let row = row_of_table(&page, "Components of all wakeups");
    assert_eq!(row.matches('–').count(), 5, "{row}");
    let text = crate::explain::text(&run, Default::default(), crate::explain::Extent::Worst(1));
    let row = text.lines().find(|line| line.starts_with(" interrupt latency")).unwrap();
    assert_eq!(row.matches('–').count(), 4, "{row}");
}

#[test]
fn lists_say_how_much_they_leave_out() {
    let mut run = run_of(&[&[9_000; 3_000]]);
    let finding = |severity, i| Finding::new("lost-samples", severity, format!("message {i}"), "");
    let warnings = (0..70).map(|i| finding(Severity::Warning, i));
    let notes = (70..145).map(|i| finding(Severity::Note, i));
    run.validity = Validity::of(warnings.chain(notes).collect());
    let unknown = (0..63).map(|i| format!("key{i}")).collect();
    run.source = Some(Source { unknown, ..Source::default() });
    let run_set = RunSet::of(vec![Entry::of("run", &run)]);
    let page = page(&run_set);
    check_page(&page);
    for part in [
        "message 59</bdi></li>\n<li>and 10 more</li>",
        "<summary>75 notes</summary>",
        "<li>and 15 more</li>",
        "key59</bdi> and 3 more.",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let markdown = crate::markdown::report(&run_set);
    assert!(markdown.contains("message 39\n- and 30 more\n"), "{markdown}");
}

#[test]
fn of_several_runs_no_seed_is_that_of_all() {
    let run = run_of(&[&[9_000; 3_000]]);
    for (runs, has_seed) in [(1, true), (2, false)] {
        let merged = crate::run_set::merged(&vec![&run; runs]).unwrap();
        let entry = Entry { runs, ..Entry::of("run", &merged) };
        let page = page(&RunSet::of(vec![entry]));
        assert_eq!(page.contains("<dt>seed</dt>"), has_seed);
        assert_eq!(page.contains("<dt>run</dt>"), has_seed);
    }
}

#[test]
fn runs_that_are_shown_as_one_prove_nothing_together() {
    let run = run_of(&[&[9_000; 3_000]]);
    for (runs, proves) in [(1, true), (10, false)] {
        let merged = crate::run_set::merged(&vec![&run; runs]).unwrap();
        let entry = Entry { runs, ..Entry::of("run", &merged) };
        let run_set = RunSet::of(vec![entry]);
        let (page, markdown) = (page(&run_set), crate::markdown::report(&run_set));
        assert_eq!(page.contains("How long is long enough"), proves);
        for text in [page, markdown] {
            assert!(text.contains(" expiries at 1.00 ms"), "{text}");
            assert_eq!(text.contains("Not excluded at 95 %"), proves, "{text}");
        }
    }
}

#[test]
fn waits_of_threads_have_a_table() {
    let mut run = crowded();
    let title = "Waits of the followed threads";
    assert!(!page(&RunSet::of(vec![Entry::of("run", &run)])).contains(title));
    let mut of_threads = waits("spin");
    of_threads.kinds.iter_mut().for_each(|row| row.sum_ns = 6_300_000_000);
    of_threads.kinds[1].count = 63;
    run.explanation.as_mut().unwrap().waits = Some(of_threads);
    let page = page(&RunSet::of(vec![Entry::of("run", &run)]));
    check_page(&page);
    for part in [title, "throttled", "6.30 s", ">63<", "higher_priority_task", "to raise the quota"]
    {
        assert!(page.contains(part), "{part}");
    }
}

/// The row of a page's table, as text.
fn row_of_table(page: &str, caption: &str) -> String {
    let table = &page[page.find(&format!("<caption>{caption}")).unwrap()..];
    let row = table.split("<tr").nth(2).unwrap().split("</tr").next().unwrap();
    row.split(['<', '>']).skip(1).step_by(2).collect::<Vec<_>>().join(" ")
}

#[test]
fn minima_are_those_of_wakeups_and_a_dash_if_a_file_lacks_them() {
    // A stall swallowed two expiries; the second of them is 500 ns late.
    let mut run = run_of(&[&[3_000, 4_000, 4_000, 2_000_500], &[5_000]]);
    run.threads[0].missed = 2;
    let of_expiries = [3_000, 4_000, 4_000, 2_000_500, 1_000_500, 500];
    run.threads[0].expiries = Distribution::of(of_expiries);
    run.summarize();
    let rows = |run: &Run| {
        let page = page(&RunSet::of(vec![Entry::of("run", run)]));
        let text = crate::text::report(run, Default::default());
        let all = text.lines().find(|line| line.trim_start().starts_with("all ")).unwrap();
        let [of_run, of_cpu] =
            ["Percentiles", "Each CPU"].map(|caption| row_of_table(&page, caption));
        [of_run, of_cpu, all.to_owned()]
    };
    for row in rows(&run) {
        assert!(row.contains("3.00 µs") && !row.contains("500 ns"), "{row}");
    }
    let unknown = vec!["threads.woken.min_ns".into()];
    run.source = Some(Source { unknown, ..Default::default() });
    for row in rows(&run) {
        assert!(!row.contains("3.00 µs"), "{row}");
    }
}

fn hostile(text: &str) -> Run {
    let mut run = crowded();
    run.id = text.into();
    run.host.release = text.into();
    run.host.cmdline = text.repeat(9);
    run.host.preemption.because = text.into();
    run.plan.load = vec![text.into()];
    run.load = vec![LoadResult {
        name: text.into(),
        unit: text.into(),
        fault: text.into(),
        ..Default::default()
    }];
    run.validity = Validity::of(vec![Finding {
        code: text.into(),
        severity: Severity::Warning,
        message: text.into(),
        hint: text.into(),
    }]);
    for episode in &mut run.worst {
        for share in &mut episode.blame {
            share.culprit = Culprit::interrupt(text);
            share.within.syscall = Some(text.into());
            share.frames = vec![Frame::in_function(text, 16); 3];
        }
        let happened = || StepEvent::Softirq { name: text.into() };
        episode.timeline.iter_mut().for_each(|step| step.event = happened());
    }
    run.causes.iter_mut().for_each(|row| row.culprit = Culprit::interrupt(text));
    run.explanation.as_mut().unwrap().waits = Some(waits(text));
    run.source = Some(Source {
        tool: text.into(),
        version: Some(text.into()),
        format: text.into(),
        file: text.into(),
        quantity: Quantity::Gap,
        omission: Omission::Unknown,
        resolution_ns: None,
        unknown: vec![text.into()],
        approximate: vec![text.into()],
    });
    run
}

#[test]
fn no_text_from_elsewhere_becomes_markup() {
    let runs = HOSTILE.map(hostile);
    for count in [1, runs.len()] {
        let entries =
            runs.iter().zip(HOSTILE).take(count).map(|(run, label)| Entry::of(label, run));
        let mut run_set = RunSet::of(entries.collect());
        run_set.title = HOSTILE.concat();
        run_set.add(Line { label: HOSTILE[0].into(), at_ns: 50_000, share: None });
        let page = page(&run_set);
        check_page(&page);
        assert_eq!(page.matches("<script").count(), 2, "ours, and its data");
        assert!(!page.contains("alert(1)</script>"));
        assert!(!page.contains(['\u{202e}', '\u{2066}', '\u{1b}', '\u{0}']));
    }
}

#[test]
fn nothing_but_our_script_may_run() {
    use sha2::{Digest, Sha256};
    let sum = Sha256::digest(SCRIPT.as_bytes());
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let base64: String = sum
        .chunks(3)
        .flat_map(|part| {
            let bits = part.iter().fold(0_u32, |bits, &byte| bits << 8 | u32::from(byte));
            let bits = bits << (8 * (3 - part.len()));
            let digit = move |i: usize| char::from(DIGITS[(bits >> (18 - 6 * i)) as usize & 63]);
            let is_there = move |i: usize| if i <= part.len() { digit(i) } else { '=' };
            (0..4).map(is_there)
        })
        .collect();
    assert_eq!(
        SCRIPT_SHA256.trim(),
        base64,
        "curves.js or page.js has changed: put this into page.js.sha256"
    );
}

#[test]
fn pages_stay_small() {
    // A long run: some thousand buckets, and some far out.
    let samples: Vec<u64> = (0..40_000_u64).map(|i| 2_000 + i * i % 90_007 * (1 + i % 7)).collect();
    let run = run_of(&[&samples[..20_000], &samples[20_000..]]);
    let of = |count: usize| {
        let entries = (0..count).map(|i| Entry::of(&format!("run {i}"), &run));
        page(&RunSet::of(entries.collect())).len()
    };
    assert!(of(1) < 120_000, "{}", of(1));
    assert!(of(20) < 700_000, "{}", of(20));
}

#[test]
fn a_moment_in_virtual_time_is_called_virtual() {
    let mut run = crowded();
    run.time_domain = TimeDomain::Virtual;
    let page = page(&RunSet::of(vec![Entry::of("run", &run)]));
    let (page, _) = page.split_once("<script").unwrap();
    let mut moments = page.match_indices(" in, ").chain(page.match_indices(" in · ")).peekable();
    assert!(moments.peek().is_some(), "{page}");
    for (at, _) in moments {
        let unit = page[..at].rsplit(' ').nth(1);
        assert_eq!(unit, Some("virtual"), "{}", &page[at.saturating_sub(60)..at]);
    }
}

#[test]
fn virtual_time_is_called_virtual() {
    let mut run = crowded();
    run.time_domain = TimeDomain::Virtual;
    let page = page(&RunSet::of(vec![Entry::of("a", &run)]));
    assert!(page.contains("412 virtual µs late"), "{page}");
    assert!(page.contains("Virtual time counts instructions"));
    assert!(page.contains("The tracer that explains wakeups takes virtual time"));
    assert!(page.contains("\"word\":\"virtual \""));
    for caption in page.split("<caption>").skip(1).map(|c| c.split_once('<').unwrap().0) {
        assert!(caption.contains("virtual") || caption == "Work of the loads", "{caption}");
    }
}

#[test]
fn a_page_reads_without_a_script() {
    let mut run = crowded();
    run.load = vec![LoadResult {
        name: "find".into(),
        work: 9,
        unit: "files".into(),
        per_second: 3.0,
        alive: true,
        ..Default::default()
    }];
    let page = page(&RunSet::of(vec![Entry::of("a", &run)]));
    check_page(&page);
    let order = [
        "<h1>Worst wakeup 412\u{a0}µs late: 391\u{a0}µs no preemption point",
        // The verdict, then why.
        "</header>\n<main>\n<section id=\"causes\"",
        "id=\"episodes\"",
        "function_of_the_kernel_3",
        "id=\"components\"",
        "id=\"exceedance\"",
        "id=\"histogram\"",
        "id=\"load\"",
        "id=\"machine\"",
    ];
    let mut from = 0;
    for part in order {
        let at = page[from..].find(part);
        from += at.unwrap_or_else(|| panic!("{part} is not there, or too early"));
    }
}
