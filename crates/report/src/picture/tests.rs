use std::io::Read;

use expect_test::expect;
use flate2::read::ZlibDecoder;
use proptest::prelude::*;
use wakescope_core::maxima::Maxima;
use wakescope_core::run::{Run, TimeDomain};

use super::scene::{Anchor, Ink, Mark};
use super::width::text_width;
use super::*;
use crate::explain::tests::runs::{crowded, serial};
use crate::run_set::{Entry, Line};
use crate::text::tests::run_of;

/// What somebody may have called a run.
pub(crate) const HOSTILE: [&str; 5] = [
    "</title><script>alert(1)</script>",
    "\"'&<!-- ]]> \u{0} \u{1b}[31m",
    "שלום \u{202e}evil\u{2066}",
    "aVeryLongNameWithoutAnyBlankInItThatGoesOnAndOnAndOnUntilNobodyWantsToReadItAnyMoreAndThenSomeMore",
    "",
];

/// A run with everything that pictures show.
fn full(samples: &[&[u64]]) -> Run {
    let mut run = serial();
    run.threads = run_of(samples).threads;
    for thread in &mut run.threads {
        let max_ns = [Some(9_000), None, thread.expiries.max_ns, Some(20_000), Some(8_000)];
        thread.maxima = Some(Maxima { slot_ns: 1 << 30, max_ns: max_ns.to_vec() });
    }
    run.summarize();
    let audio = crate::audio::tests::run();
    run.plan.audio = audio.plan.audio;
    run.threads[0].audio = audio.threads[0].audio.clone();
    run
}

/// What has data for a picture: a run, or runs of pairs of CPUs.
fn run_set_for<'a>(picture: Picture, run: &'a Run, pairs: &'a [Run]) -> RunSet<'a> {
    match picture {
        Picture::Matrix => crate::matrix::tests::run_set(pairs),
        _ => RunSet::of(vec![Entry::of("a", run)]),
    }
}

/// The boxes that texts take: left, top, right, bottom.
fn boxes(scene: &Scene) -> Vec<(f64, f64, f64, f64, &str)> {
    let of_text = |mark: &'_ Mark| match mark {
        Mark::Text { at: (x, y), text, size, anchor, .. } => {
            let width = text_width(text, *size);
            let left = match anchor {
                Anchor::Start => *x,
                Anchor::Middle => x - width / 2.0,
                Anchor::End => x - width,
            };
            Some((left, y - size * 0.75, left + width, y + size * 0.2))
        }
        _ => None,
    };
    scene
        .marks
        .iter()
        .filter_map(|mark| {
            let (left, top, right, bottom) = of_text(mark)?;
            let Mark::Text { text, .. } = mark else { return None };
            (!text.is_empty()).then_some((left, top, right, bottom, text.as_str()))
        })
        .collect()
}

#[track_caller]
pub(crate) fn check_scene(scene: &Scene) {
    let boxes = boxes(scene);
    for (i, a) in boxes.iter().enumerate() {
        let is_inside =
            a.0 >= -0.5 && a.1 >= -0.5 && a.2 <= scene.width + 1.0 && a.3 <= scene.height + 0.5;
        assert!(is_inside, "{}: {a:?} leaves {} × {}", scene.title, scene.width, scene.height);
        for b in &boxes[i + 1..] {
            let touches = a.0 < b.2 && b.0 < a.2 && a.1 < b.3 && b.1 < a.3;
            assert!(!touches, "{}: {a:?} lies over {b:?}", scene.title);
        }
    }
    let mut depth = 0;
    for mark in &scene.marks {
        let points: Vec<f64> = match mark {
            Mark::Lines { lines, .. } => lines.iter().flatten().flat_map(|p| [p.0, p.1]).collect(),
            Mark::Bar { at, width, height, .. } => {
                assert!(*width >= 0.0 && *height >= 0.0, "{mark:?}");
                vec![at.0, at.1, at.0 + width, at.1 + height]
            }
            Mark::Text { at, .. } | Mark::Dot { at, .. } => vec![at.0, at.1],
            Mark::Begin { .. } => {
                depth += 1;
                vec![]
            }
            Mark::End => {
                depth -= 1;
                vec![]
            }
        };
        assert!(points.iter().all(|p| p.is_finite() && p.abs() < 1e5), "{}: {mark:?}", scene.title);
        assert!(depth >= 0);
    }
    assert_eq!(depth, 0);
}

/// Checks what an SVG must not hold, and that its elements close in order.
#[track_caller]
pub(crate) fn check_svg(svg: &str) {
    let mut open: Vec<&str> = Vec::new();
    for part in svg.split('<').skip(1) {
        let (tag, text) = part.split_once('>').expect("every tag ends");
        assert!(!text.contains('"') || !text.contains('&') || !text.contains("&;"), "{text}");
        let name = tag.trim_end_matches('/').split([' ', '\n']).next().unwrap();
        match (name.strip_prefix('/'), tag.ends_with('/')) {
            (Some(name), _) => assert_eq!(open.pop(), Some(name), "{tag}"),
            (None, false) => open.push(name),
            (None, true) => {}
        }
        let known = ["svg", "title", "desc", "g", "path", "rect", "circle", "text"];
        assert!(known.contains(&name.trim_start_matches('/')), "<{tag}>");
    }
    assert!(open.is_empty(), "{open:?} are not closed");
    assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{svg}");
}

#[test]
fn every_picture_of_every_run_is_in_order() {
    let (a, b) =
        (full(&[&[9_000, 10_000, 400_000], &[8_000; 5_000]]), full(&[&[120; 40], &[0, 1, 2]]));
    let (c, d) = (crowded(), run_of(&[&[]]));
    let pairs = crate::matrix::tests::runs(3);
    let mut seen = [0; 9];
    for runs in [
        vec![&a],
        vec![&b],
        vec![&c],
        vec![&d],
        vec![&a, &b, &c, &d],
        vec![&a; 20],
        pairs.iter().collect(),
    ] {
        let entry = |(i, run): (usize, &&'_ Run)| Entry {
            label: HOSTILE[i % HOSTILE.len()].into(),
            run: std::borrow::Cow::Owned((*run).clone()),
            // Those of a pair are one.
            runs: if run.plan.waker.is_some() { 1 } else { 1 + i },
        };
        let entries = runs.iter().enumerate().map(entry).collect();
        let mut run_set = RunSet::of(entries);
        run_set.title = HOSTILE[0].into();
        for at_ns in [1, 100_000, 101_000, 102_000, 390_000, u64::MAX] {
            run_set.add(Line {
                label: HOSTILE[3].into(),
                at_ns,
                share: (at_ns % 2 == 0).then_some(0.001),
            });
        }
        for (picture, seen) in Picture::ALL.into_iter().zip(&mut seen) {
            for room in
                [Room::ALONE, Room { width: 880.0, bare: true }, Room { width: 400.0, bare: true }]
            {
                let Some(scene) = scene(picture, &run_set, room) else { continue };
                *seen += 1;
                check_scene(&scene);
                check_svg(&svg::document(&scene));
                check_svg(&draw_svg(&scene, "x", false));
            }
        }
    }
    assert!(seen.iter().all(|&n| n > 0), "{seen:?}");
}

#[test]
fn a_picture_of_a_run() {
    let run = run_of(&[&[&[10_000; 90][..], &[20_000; 9], &[300_000]].concat()]);
    let mut run_set = RunSet::of(vec![Entry::of("a <b>", &run)]);
    run_set.add(Line { label: "p99 ≤ 100 µs".into(), at_ns: 100_000, share: Some(0.01) });
    let svg = svg(Picture::Exceedance, &run_set).unwrap();
    let shown = svg.replace("<g ", "\n<g ").replace("</g>", "</g>\n");
    let parts: Vec<&str> =
        shown.lines().filter(|l| l.contains("series") || l.contains("limits")).collect();
    expect![[r##"
        <g class="limits"><path stroke="#b00020" fill="none" stroke-width="1.5" stroke-linejoin="round" stroke-dasharray="6 4" d="M558 64v300h246"/><text fill="#b00020" x="564" y="78" font-size="12">p99 ≤ 100 µs</text></g>
        <g class="series" data-run="0"><path stroke="#0072b2" fill="none" stroke-width="2" stroke-linejoin="round" d="M72 64h27.4v150h138.2v150h539.3"/><circle fill="#0072b2" cx="776.9" cy="364" r="4"/><text fill="#1f2328" x="695.2" y="380" font-size="12">max 300 µs</text></g>
    "##]].assert_eq(&(parts.join("\n") + "\n"));
}

#[test]
fn virtual_time_is_called_virtual_in_every_picture() {
    let mut run = full(&[&[9_000, 400_000], &[8_000; 500]]);
    run.time_domain = TimeDomain::Virtual;
    let mut pairs = crate::matrix::tests::runs(2);
    pairs.iter_mut().for_each(|run| run.time_domain = TimeDomain::Virtual);
    for picture in Picture::ALL {
        let run_set = run_set_for(picture, &run, &pairs);
        let svg = svg(picture, &run_set).unwrap();
        let drawn = svg.split_once("</desc>").unwrap().1;
        assert!(drawn.contains("virtual"), "{picture}: {drawn}");
    }
}

#[test]
fn a_png_has_the_pixels_of_its_scene() {
    let run = full(&[&[9_000, 10_000, 400_000], &[8_000; 500]]);
    let pairs = crate::matrix::tests::runs(2);
    for picture in Picture::ALL {
        let run_set = run_set_for(picture, &run, &pairs);
        let scene = scene(picture, &run_set, Room::ALONE).unwrap();
        let (width, height, rgb) = decoded(&png(picture, &run_set).unwrap());
        #[allow(clippy::cast_precision_loss)]
        let sides = (width as f64 / 2.0 - scene.width, height as f64 / 2.0 - scene.height);
        assert!(sides.0.abs() < 0.5 && sides.1.abs() < 0.5, "{picture}: {width} × {height}");
        let ink = rgb.chunks(3).filter(|p| p.iter().any(|&c| c < 128)).count();
        assert!(ink > 1_000 && ink < rgb.len() / 6, "{picture}: {ink} dark pixels");
    }
}

#[test]
fn a_png_of_a_long_picture_lacks_nothing() {
    let run = crate::explain::tests::runs::guest();
    let entries = (0..40).map(|i| Entry::of(&format!("run {i}"), &run));
    let run_set = RunSet::of(entries.collect());
    let scene = scene(Picture::Components, &run_set, Room::ALONE).unwrap();
    let (width, height, rgb) = decoded(&png(Picture::Components, &run_set).unwrap());
    assert!(scene.height > 4_000.0 && height == 8_000, "{} {height}", scene.height);
    #[allow(clippy::cast_precision_loss)]
    let ratios = [width as f64 / height as f64, scene.width / scene.height];
    assert!((ratios[0] - ratios[1]).abs() < 1e-3, "{ratios:?}");
    // The last bars are there.
    let end = &rgb[rgb.len() - width * 3 * 100..];
    assert!(end.chunks(3).filter(|p| p.iter().any(|&c| c < 128)).count() > 1_000);
}

/// Width, height and pixels of a PNG as this crate writes them.
fn decoded(file: &[u8]) -> (usize, usize, Vec<u8>) {
    let mut rest = file.strip_prefix(b"\x89PNG\r\n\x1a\n").unwrap();
    let mut data = Vec::new();
    let (mut width, mut height) = (0, 0);
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap()) as usize;
    while !rest.is_empty() {
        let length = number(&rest[..4]);
        let (kind, body) = (&rest[4..8], &rest[8..8 + length]);
        let mut crc = flate2::Crc::new();
        crc.update(&rest[4..8 + length]);
        assert_eq!(number(&rest[8 + length..12 + length]), crc.sum() as usize);
        match kind {
            b"IHDR" => (width, height) = (number(&body[..4]), number(&body[4..8])),
            b"IDAT" => data.extend(body),
            _ => {}
        }
        rest = &rest[12 + length..];
    }
    let mut lines = Vec::new();
    ZlibDecoder::new(data.as_slice()).read_to_end(&mut lines).unwrap();
    let mut rgb: Vec<u8> = Vec::new();
    for line in lines.chunks(width * 3 + 1) {
        assert_eq!(line[0], 2, "differences from the line above");
        let above = rgb.len().saturating_sub(width * 3);
        for (i, &byte) in line[1..].iter().enumerate() {
            let up = if rgb.len() >= width * 3 { rgb[above + i] } else { 0 };
            rgb.push(byte.wrapping_add(up));
        }
    }
    assert_eq!(rgb.len(), width * height * 3);
    (width, height, rgb)
}

#[test]
fn pictures_have_names() {
    for picture in Picture::ALL {
        assert_eq!(picture.name().parse(), Ok(picture));
    }
    assert!("pie".parse::<Picture>().unwrap_err().contains("exceedance, histogram"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn no_run_makes_a_picture_go_wrong(
        cpus in prop::collection::vec(prop::collection::vec(prop_oneof![0_u64..2_000, 1_000_u64..1 << 30, any::<u64>()], 0..60), 1..6),
        labels in prop::collection::vec("\\PC{0,40}", 1..6),
        limit in any::<u64>(),
        narrow in any::<bool>(),
    ) {
        let cpus: Vec<Vec<u64>> = cpus.into_iter().map(|c| c.into_iter().map(|v| v >> 8).collect()).collect();
        let samples: Vec<&[u64]> = cpus.iter().map(Vec::as_slice).collect();
        let run = full(&samples);
        let mut run_set = RunSet::of(labels.iter().map(|label| Entry::of(label, &run)).collect());
        run_set.add(Line { label: labels[0].clone(), at_ns: limit, share: None });
        let room = if narrow { Room { width: 400.0, bare: true } } else { Room::ALONE };
        for picture in Picture::ALL {
            if let Some(scene) = scene(picture, &run_set, room) {
                check_scene(&scene);
                check_svg(&draw_svg(&scene, "x", !narrow));
            }
        }
    }
}

/// The texts of a scene.
fn texts(scene: &Scene) -> Vec<&str> {
    scene
        .marks
        .iter()
        .filter_map(|mark| match mark {
            Mark::Text { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

#[test]
fn histograms_of_runs_of_unequal_length_are_shares() {
    let (short, long) = ([9_000_u64; 500], [9_000_u64; 50_000]);
    let (a, b) = (run_of(&[&short]), run_of(&[&long]));
    let drawn = |runs: [&Run; 2]| {
        let run_set = RunSet::of(vec![Entry::of("a", runs[0]), Entry::of("b", runs[1])]);
        let scene = scene(Picture::Histogram, &run_set, Room::ALONE).unwrap();
        let lines = scene.marks.iter().filter_map(|mark| match mark {
            Mark::Lines { lines, ink: Ink::Series(_), width, .. } if *width < 2.0 => {
                Some(lines.clone())
            }
            _ => None,
        });
        let lines: Vec<_> = lines.collect();
        let shares = scene.notes.iter().any(|(name, _)| *name == "shares");
        let percent = texts(&scene).iter().any(|text| text.contains('%'));
        assert_eq!(shares, percent, "the axis and the page's script agree");
        assert_eq!(scene.description.contains("as shares of each run's expiries"), shares);
        assert_eq!(
            texts(&scene).iter().any(|t| t.starts_with("share of a run's expiries")),
            shares
        );
        (lines, shares)
    };
    let (lines, shares) = drawn([&a, &b]);
    assert!(shares && lines[0] == lines[1], "all of both runs are in one band: {lines:?}");
    let (_, shares) = drawn([&a, &a]);
    assert!(!shares, "runs of the same length are counted");
}

/// Limits far from all samples stood at the ends of the axis, as if they lay there.
#[test]
fn limits_beyond_the_axis_are_named_and_not_drawn() {
    let run = run_of(&[&(1..3_000).map(|i| i * 10_000).collect::<Vec<_>>()]);
    let mut run_set = RunSet::of(vec![Entry::of("a", &run)]);
    for text in ["max=2h", "max=1us", "max=1ms", "max=1ns", "max=400ns"] {
        run_set.add(Line::of(&text.parse().unwrap()));
    }
    for picture in [Picture::Exceedance, Picture::Histogram] {
        let scene = scene(picture, &run_set, Room::ALONE).unwrap();
        check_scene(&scene);
        let shown = texts(&scene);
        for want in
            ["max ≤ 2.00 h →", "max ≤ 1.00 µs", "max ≤ 1.00 ms", "← max ≤ 1 ns", "max ≤ 400 ns"]
        {
            assert!(shown.contains(&want), "{want}: {shown:?}");
        }
        let of_limits = |mark: &&Mark| matches!(mark, Mark::Lines { ink: Ink::Limit, .. });
        assert_eq!(scene.marks.iter().filter(of_limits).count(), 3, "{shown:?}");
    }
    let course = Maxima { slot_ns: 1 << 30, max_ns: vec![Some(9_000), Some(12_000)] };
    let mut run = run.clone();
    run.threads[0].maxima = Some(course);
    let entries = vec![Entry::of("a", &run)];
    let shown = scene(Picture::Course, &RunSet { entries, ..run_set }, Room::ALONE).unwrap();
    check_scene(&shown);
    let left_out = "Limits outside of the picture: max ≤ 2.00 h, max ≤ 1.00 µs, max ≤ 1.00 ms, max ≤ 1 ns, max ≤ 400 ns.";
    assert!(texts(&shown).contains(&left_out), "{:?}", texts(&shown));
}

#[test]
fn all_cpus_together_are_described_where_they_are_drawn() {
    let run = run_of(&[&[9_000; 50], &[8_000; 50]]);
    for count in [1, 2] {
        let entries = (0..count).map(|_| Entry::of("a", &run)).collect();
        let scene = scene(Picture::Cpus, &RunSet::of(entries), Room::ALONE).unwrap();
        let drawn = scene.marks.iter().any(|m| matches!(m, Mark::Lines { ink: Ink::Behind, .. }));
        assert_eq!(scene.description.contains("all CPUs together in grey"), drawn, "{count}");
        assert_eq!(drawn, count == 1);
    }
}

/// An explained run of which some of the latest wakeups were not explained.
fn with_gaps() -> Run {
    let mut run = crowded();
    let first = run.worst[0].clone();
    run.worst = (0..6)
        .map(|i| {
            let mut episode = first.clone();
            episode.expiry_ns = i * 1_000_000_000;
            let less = i * 10_000;
            episode.wakeup_latency_ns -= less;
            if let Some(share) = episode.blame.iter_mut().max_by_key(|share| share.ns) {
                share.ns -= less;
            }
            if i == 1 || i == 3 {
                episode.blame.clear();
            }
            episode
        })
        .collect();
    run
}

#[test]
fn wakeups_have_the_same_numbers_in_the_picture_the_list_and_the_text() {
    let run = with_gaps();
    for count in [1, 3] {
        let entries = (0..count).map(|i| Entry::of(&format!("r{i}"), &run)).collect();
        let run_set = RunSet::of(entries);
        let numbered = |text: &str| {
            let number = text.split('#').nth(1)?.split(' ').next()?.to_owned();
            let late =
                text.split(" late").next()?.rsplit(' ').take(2).collect::<Vec<_>>().join(" ");
            Some((number, late))
        };
        let scene = scene(Picture::Episodes, &run_set, Room::ALONE).unwrap();
        let drawn: Vec<_> = texts(&scene).into_iter().filter_map(numbered).collect();
        let page = crate::html::page(&run_set);
        let listed: Vec<_> = page
            .split("<summary>")
            .skip(1)
            .map(|rest| rest.split("</summary>").next().unwrap())
            .filter_map(numbered)
            .collect();
        assert_eq!(drawn, listed);
        let numbers: Vec<&str> = drawn.iter().map(|(number, _)| number.as_str()).collect();
        let want: &[&str] = if count == 1 { &["1", "3", "5", "6"] } else { &["1", "3", "5"] };
        assert_eq!(numbers, want.repeat(count));
        assert!(page.contains("not explained: #2 "), "what is left out is message");
    }
    let message =
        crate::explain::text(&run, crate::style::Style::default(), crate::explain::Extent::All);
    for number in ["#1", "#3", "#5", "#6"] {
        assert!(message.contains(&format!("\n {number}  ")), "{number}: {message}");
    }
}
