use expect_test::expect;
use wakescope_core::distribution::Distribution;
use wakescope_core::finding::Verdict;
use wakescope_core::run::{Run, TimeDomain};

use super::super::tests::{check_scene, check_svg};
use super::*;
use crate::matrix::tests::{run_set, runs};
use crate::picture::scene::Mark;
use crate::picture::{Picture, svg};

const ROOMS: [Room; 3] =
    [Room::ALONE, Room { width: 880.0, bare: true }, Room { width: 400.0, bare: true }];

fn drawn(runs: &[Run], room: Room) -> Scene {
    scene(&run_set(runs), room).unwrap()
}

/// What is written into cells.
fn figures(scene: &Scene) -> Vec<&str> {
    let begins = |mark: &Mark| matches!(mark, Mark::Begin { class: "cells", .. });
    let cells = scene.marks.iter().skip_while(|mark| !begins(mark));
    let cells = cells.take_while(|mark| **mark != Mark::End);
    cells
        .filter_map(|mark| match mark {
            Mark::Text { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

#[test]
fn pairs_of_two_cpus() {
    let runs = runs(2);
    let svg = svg(Picture::Matrix, &run_set(&runs)).unwrap();
    let shown = svg.replace("><", ">\n<").split_once("<title").unwrap().1.to_owned();
    expect![[r##"
         id="t">Median lateness by CPU of waker and probe, in µs</title>
        <desc id="d">The median lateness for each CPU of the waker, in rows, and of the probe, in columns: from 1.00 µs to 4.00 µs, with the waker on CPU 1 and the probe on CPU 1.</desc>
        <rect width="100%" height="100%" fill="#fff"/>
        <text fill="#1f2328" x="12" y="28" font-size="17" font-weight="600">Median lateness by CPU of waker and probe, in µs</text>
        <text fill="#1f2328" x="12" y="54" font-size="12">rows: CPU of the waker, columns: CPU of the probe; median, µs</text>
        <text fill="#5c646d" x="104" y="76" font-size="12" text-anchor="middle">0</text>
        <text fill="#5c646d" x="200" y="76" font-size="12" text-anchor="middle">1</text>
        <text fill="#5c646d" x="48" y="104" font-size="12" text-anchor="end">0</text>
        <text fill="#5c646d" x="48" y="136" font-size="12" text-anchor="end">1</text>
        <g class="cells">
        <rect fill="#e6f1f8" x="56" y="84" width="95" height="31"/>
        <text fill="#111111" x="103.5" y="104" font-size="12" text-anchor="middle">1.00</text>
        <rect fill="#86bcdd" x="152" y="84" width="95" height="31"/>
        <text fill="#111111" x="199.5" y="104" font-size="12" text-anchor="middle">2.00</text>
        <rect fill="#0072b2" x="56" y="116" width="95" height="31"/>
        <text fill="#ffffff" x="103.5" y="136" font-size="12" text-anchor="middle">3.00</text>
        <rect fill="#004a75" x="152" y="116" width="95" height="31"/>
        <text fill="#ffffff" x="199.5" y="136" font-size="12" text-anchor="middle">4.00</text>
        </g>
        <rect fill="#e6f1f8" x="56" y="162" width="72" height="13"/>
        <rect fill="#b8d8ec" x="128" y="162" width="72" height="13"/>
        <rect fill="#86bcdd" x="200" y="162" width="72" height="13"/>
        <rect fill="#4f9dca" x="272" y="162" width="72" height="13"/>
        <rect fill="#0072b2" x="344" y="162" width="72" height="13"/>
        <rect fill="#004a75" x="416" y="162" width="72" height="13"/>
        <text fill="#5c646d" x="56" y="190" font-size="12" text-anchor="middle">1.00</text>
        <text fill="#5c646d" x="128" y="190" font-size="12" text-anchor="middle">1.26</text>
        <text fill="#5c646d" x="200" y="190" font-size="12" text-anchor="middle">1.59</text>
        <text fill="#5c646d" x="272" y="190" font-size="12" text-anchor="middle">2.00</text>
        <text fill="#5c646d" x="344" y="190" font-size="12" text-anchor="middle">2.52</text>
        <text fill="#5c646d" x="416" y="190" font-size="12" text-anchor="middle">3.18</text>
        <text fill="#5c646d" x="488" y="190" font-size="12" text-anchor="middle">4.00</text>
        </svg>
    "##]].assert_eq(&shown);
}

#[test]
fn a_pair_that_was_not_measured_is_hatched_and_named() {
    let mut runs = runs(3);
    runs.remove(5);
    runs[0].validity.verdict = Verdict::Invalid;
    runs[1].threads[0].expiries = Distribution::default();
    let scene = drawn(&runs, Room::ALONE);
    assert_eq!(figures(&scene), ["1.00", "–", "3.00", "4.00", "5.00", "7.00", "8.00", "9.00"]);
    let hatched = scene.marks.iter().filter(|mark| matches!(mark, Mark::Lines { .. }));
    assert_eq!(hatched.count(), 1);
    let svg = svg(Picture::Matrix, &run_set(&runs)).unwrap();
    for caveat in ["not measured: 1 of 9 pairs (waker:probe): 1:2", "invalid: 1 of 9"] {
        assert_eq!(svg.to_lowercase().matches(caveat).count(), 2, "{caveat}: {svg}");
    }
}

#[test]
fn the_colours_are_in_the_order_of_the_medians_and_no_figure_is_lost_on_them() {
    for cpus in [2, 3, 8] {
        let runs = runs(cpus);
        for room in ROOMS {
            let scene = drawn(&runs, room);
            assert_eq!(figures(&scene).len(), runs.len(), "{cpus} CPUs, {room:?}");
            let heats: Vec<usize> = scene
                .marks
                .iter()
                .filter_map(|mark| match mark {
                    Mark::Bar { ink: Ink::Heat(heat), .. } => Some(*heat),
                    _ => None,
                })
                .take(runs.len())
                .collect();
            assert!(heats.is_sorted(), "{heats:?}");
            assert_eq!((heats[0], heats[runs.len() - 1]), (0, HEATS.len() - 1));
        }
    }
}

#[test]
fn a_small_difference_has_no_strong_colour() {
    let mut runs = runs(2);
    for (run, ns) in runs.iter_mut().zip([1_000, 1_010, 1_020, 1_030]) {
        *run = crate::matrix::tests::run(pair_of(run), ns);
    }
    let scene = drawn(&runs, Room::ALONE);
    let cells = scene.marks.iter().filter(|m| matches!(m, Mark::Bar { ink: Ink::Heat(0), .. }));
    assert_eq!(cells.count(), 4 + 1, "the cells, and the first step of the scale");
}

fn pair_of(run: &Run) -> Pair {
    let probe = run.plan.cpus[0];
    (run.plan.waker.as_ref().unwrap().cpu(0, probe), probe)
}

#[test]
fn matrices_of_every_size_are_in_order() {
    for cpus in [2, 5, 17, 33, 63] {
        let mut runs = runs(cpus);
        runs.truncate(runs.len() - 2);
        // A record may name any CPU.
        runs.push(crate::matrix::tests::run((u32::MAX, u32::MAX), 1 << 40));
        for room in ROOMS {
            let scene = drawn(&runs, room);
            check_scene(&scene);
            check_svg(&crate::picture::draw_svg(&scene, "x", false));
            let message =
                |mark: &Mark| matches!(mark, Mark::Text { text, .. } if text.contains("no room"));
            let has_figures = !figures(&scene).is_empty();
            assert_eq!(!has_figures && !room.bare, scene.marks.iter().any(message), "{cpus}");
            assert!(has_figures || cpus > 2, "{cpus}");
        }
    }
}

#[test]
fn other_time_is_called_so() {
    let mut runs = runs(2);
    runs.iter_mut().for_each(|run| run.time_domain = TimeDomain::Virtual);
    let svg = svg(Picture::Matrix, &run_set(&runs)).unwrap();
    assert!(svg.split_once("</desc>").unwrap().1.contains("median, virtual µs"), "{svg}");
}

#[test]
fn times_have_three_digits() {
    let shown = [0, 4, 1_254, 9_994, 9_996, 12_540, 99_940, 99_960, 125_499, 1_250_500].map(micros);
    let want = ["0.00", "0.00", "1.25", "9.99", "10.0", "12.5", "99.9", "100", "125", "1,251"];
    assert_eq!(shown, want);
}
