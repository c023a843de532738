//! The record of a lab that can be published.

use super::names::{redact_name_of_load, remove};
use super::{explained, redact_finding};
use crate::lab::{Arm, Cell, CellLimit, CellScope, CellSections, Comparison, Lab, LabKernel};
use crate::scope::Place;

/// Removes from a lab what tells whose it is: paths of kernels and runs, the plan's name, the command
/// that repeats it, lines of logs, and lines of published figures that are none of those that `all_have`,
/// because they are of a built-in plan. Kernels that were given by file are numbered. It can be done twice.
pub fn redact_lab(lab: &mut Lab, all_have: &[String]) {
    let names = new_names(lab);
    let Lab {
        schema: _,
        plan,
        repeat,
        // Figures, and the emulator's version.
        settings: _,
        kernels,
        cells,
        comparisons,
        limits,
        published,
        other,
    } = lab;
    // Empty ones are not shown.
    plan.clear();
    repeat.clear();
    for kernel in kernels {
        let LabKernel { name, release: _, version: _, arch: _, sha256: _, package: _ } = kernel;
        rename(name, &names);
    }
    cells.iter_mut().for_each(|cell| redact_cell(cell, &names));
    comparisons.iter_mut().for_each(|comparison| redact_comparison(comparison, &names));
    limits.iter_mut().for_each(|limit| redact_limit(limit, &names));
    // A plan of one's own may have any text here.
    published.retain(|line| all_have.contains(line));
    other.clear();
}

/// What kernels are called that are known to have no package, or not known at all: by default these have
/// the path of their file.
fn new_names(lab: &Lab) -> Vec<(String, String)> {
    let Lab { kernels, cells, comparisons, limits, .. } = lab;
    let packaged: Vec<&str> =
        kernels.iter().filter(|k| k.package.is_some()).map(|k| k.name.as_str()).collect();
    let of_pairs = comparisons.iter().flat_map(|c| [&c.a.kernel, &c.b.kernel]);
    let all = kernels.iter().map(|kernel| &kernel.name);
    let all = all.chain(cells.iter().map(|cell| &cell.kernel)).chain(of_pairs);
    let mut names: Vec<(String, String)> = Vec::new();
    for name in all.chain(limits.iter().map(|limit| &limit.arm.kernel)) {
        let is_new = names.iter().all(|(old, _)| old != name);
        if is_new && !packaged.contains(&name.as_str()) {
            names.push((name.clone(), format!("kernel {}", names.len() + 1)));
        }
    }
    names
}

fn rename(name: &mut String, names: &[(String, String)]) {
    if let Some((_, new)) = names.iter().find(|(old, _)| old == name) {
        new.clone_into(name);
    }
}

fn redact_arm(arm: &mut Arm, names: &[(String, String)]) {
    let Arm { kernel, asked: _ } = arm;
    rename(kernel, names);
}

/// Sentences name kernels.
fn redact_sentence(sentence: &mut String, names: &[(String, String)]) {
    if names.iter().any(|(old, _)| sentence.contains(old.as_str())) {
        remove(sentence);
    }
}

fn redact_cell(cell: &mut Cell, names: &[(String, String)]) {
    let Cell {
        kernel,
        asked: _,
        model: _,
        load,
        seed: _,
        status: _,
        reason,
        evidence,
        min_ns: _,
        p50_ns: _,
        p99_ns: _,
        p999_ns: _,
        max_ns: _,
        count: _,
        throughput: _,
        unit: _,
        findings,
        culprit,
        bound: _,
        scope,
        histogram_sha256: _,
        run,
        cached: _,
        other,
    } = cell;
    rename(kernel, names);
    redact_loads(load);
    remove(reason);
    evidence.clear();
    findings.iter_mut().for_each(redact_finding);
    culprit.iter_mut().for_each(explained::redact_share);
    scope.iter_mut().for_each(redact_scope);
    *run = None;
    other.clear();
}

/// Functions are those of the kernel itself.
fn redact_scope(scope: &mut CellScope) {
    let CellScope { failed, sections } = scope;
    remove(failed);
    for section in sections {
        let CellSections { kind: _, began, ended, count: _, longest_ns: _, total_ns: _ } = section;
        for place in [began, ended] {
            let Place { function: _, caller: _ } = place;
        }
    }
}

fn redact_comparison(comparison: &mut Comparison, names: &[(String, String)]) {
    let Comparison {
        a,
        b,
        load,
        margin: _,
        seeds: _,
        max: _,
        p999: _,
        throughput_ratio: _,
        verdict: _,
        reasons,
    } = comparison;
    [a, b].into_iter().for_each(|arm| redact_arm(arm, names));
    redact_loads(load);
    reasons.iter_mut().for_each(|reason| redact_sentence(reason, names));
}

fn redact_limit(limit: &mut CellLimit, names: &[(String, String)]) {
    let CellLimit { limit: _, limit_ns: _, arm, load, seed: _, observed_ns: _, within: _, reason } =
        limit;
    redact_arm(arm, names);
    redact_loads(load);
    redact_sentence(reason, names);
}

/// Several at once are joined by `+`; `idle` is none.
fn redact_loads(loads: &mut String) {
    let names = loads.split('+').map(|name| {
        let mut name = name.to_owned();
        if name != "idle" {
            redact_name_of_load(&mut name);
        }
        name
    });
    *loads = names.collect::<Vec<_>>().join("+");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::{Culprit, NamedTask, Share};
    use crate::finding::{Finding, Severity};
    use crate::lab::{SCHEMA, Settings, Status};
    use crate::redact::REDACTED;
    use crate::redact::tests::{MARKER, places};
    use crate::scope::Kind;
    use crate::unknown::Unknown;

    /// Texts that stay, and why.
    const STAYS: &[(&str, &str)] = &[
        ("settings.emulator", "anybody's, and decides figures"),
        ("settings.guest_sha256", "a checksum"),
        ("kernels[].release", "the kernel is what is judged"),
        ("kernels[].version", "as above"),
        ("kernels[].arch", "as above"),
        ("kernels[].sha256", "a checksum"),
        ("kernels[].package", "of a distribution"),
        ("cells[].asked", "a preemption model"),
        ("cells[].unit", "named by this program"),
        ("cells[].scope.sections[].began.function", "of the kernel"),
        ("cells[].scope.sections[].began.caller", "as above"),
        ("cells[].scope.sections[].ended.function", "as above"),
        ("cells[].scope.sections[].ended.caller", "as above"),
        ("cells[].histogram_sha256", "a checksum"),
        ("comparisons[].a.asked", "a preemption model"),
        ("comparisons[].b.asked", "as above"),
        ("comparisons[].reasons[]", "sentences of this program, but for those that name kernels"),
        ("limits[].limit", "a time or percentile"),
        ("limits[].arm.asked", "a preemption model"),
        ("limits[].reason", "sentences of this program, but for those that name kernels"),
    ];

    /// A whole lab. Nothing is left to a default, so that a new field is not compiled until it is here.
    fn full() -> Lab {
        let marker = || MARKER.to_owned();
        let arm = || Arm { kernel: "own".into(), asked: marker() };
        let place = || Place { function: Some(marker()), caller: Some(marker()) };
        let kernel = |name: &str, package| LabKernel {
            name: name.into(),
            release: marker(),
            version: marker(),
            arch: marker(),
            sha256: marker(),
            package,
        };
        let cell = Cell {
            kernel: "own".into(),
            asked: marker(),
            model: None,
            load: marker(),
            seed: 1,
            status: Status::Ok,
            reason: marker(),
            evidence: vec![marker()],
            min_ns: None,
            p50_ns: None,
            p99_ns: None,
            p999_ns: None,
            max_ns: None,
            count: 1,
            throughput: None,
            unit: marker(),
            findings: vec![Finding {
                code: marker(),
                severity: Severity::Warning,
                message: marker(),
                hint: marker(),
            }],
            culprit: Some(Share {
                culprit: Culprit::Task(NamedTask { comm: marker(), ..NamedTask::default() }),
                ..Share::default()
            }),
            bound: None,
            scope: Some(CellScope {
                failed: marker(),
                sections: vec![CellSections {
                    kind: Kind::IrqsOff,
                    began: place(),
                    ended: place(),
                    count: 1,
                    longest_ns: 1,
                    total_ns: 1,
                }],
            }),
            histogram_sha256: Some(marker()),
            run: Some(marker()),
            cached: false,
            other: Unknown::of(MARKER, "1"),
        };
        Lab {
            schema: SCHEMA.into(),
            plan: marker(),
            repeat: marker(),
            settings: Settings {
                emulator: marker(),
                guest_sha256: marker(),
                ..Settings::default()
            },
            kernels: vec![kernel("packaged", Some(marker())), kernel("own", None)],
            cells: vec![cell],
            comparisons: vec![Comparison {
                a: arm(),
                b: arm(),
                load: marker(),
                margin: 0.1,
                seeds: 1,
                max: None,
                p999: None,
                throughput_ratio: None,
                verdict: crate::lab::Verdict::default(),
                reasons: vec![marker()],
            }],
            limits: vec![CellLimit {
                limit: marker(),
                limit_ns: 1,
                arm: arm(),
                load: marker(),
                seed: None,
                observed_ns: None,
                within: None,
                reason: marker(),
            }],
            published: vec![marker(), "as in a built-in plan".into()],
            other: Unknown::of(MARKER, "1"),
        }
    }

    /// Every text of the record is in one of two lists: of those that stay, or of those that go.
    #[test]
    fn no_text_stays_but_for_a_reason() {
        let mut lab = full();
        redact_lab(&mut lab, &["as in a built-in plan".into()]);
        let mut after = std::collections::BTreeSet::new();
        places(&serde_json::to_value(&lab).unwrap(), "", &mut after);
        let stays = STAYS.iter().map(|(place, _)| (*place).to_owned()).collect();
        assert_eq!(after, stays);
        assert_eq!(lab.published, ["as in a built-in plan"]);
    }

    #[test]
    fn kernels_of_ones_own_are_numbered_everywhere() {
        let own = "/home/me/secret/bzImage";
        let arm = |kernel: &str| Arm { kernel: kernel.into(), asked: "full".into() };
        let cell = |kernel: &str, load: &str| Cell {
            kernel: kernel.into(),
            load: load.into(),
            status: Status::Failed,
            reason: format!("{own} panicked"),
            evidence: vec!["secret".into()],
            findings: vec![Finding {
                code: "of-a-newer-version".into(),
                severity: Severity::Warning,
                message: "secret".into(),
                hint: "secret".into(),
            }],
            culprit: Some(Share {
                culprit: Culprit::Task(NamedTask { comm: "secret".into(), ..NamedTask::default() }),
                ..Share::default()
            }),
            scope: Some(CellScope::failed("/home/me/secret is full".into())),
            run: Some("/home/me/secret/run".into()),
            other: Unknown::of("secret", "1"),
            ..Cell::default()
        };
        let package = Some("linux-image-6.1 6.1.1-1".to_owned());
        let mut lab = Lab {
            schema: SCHEMA.into(),
            plan: "secret".into(),
            repeat: "wakescope lab run --append secret".into(),
            kernels: vec![
                LabKernel { name: "6.1-cloud".into(), package, ..LabKernel::default() },
                LabKernel { name: own.into(), ..LabKernel::default() },
            ],
            cells: vec![cell("6.1-cloud", "idle"), cell(own, "find+launch"), cell(own, "secret")],
            comparisons: vec![Comparison {
                a: arm("6.1-cloud"),
                b: arm(own),
                reasons: vec![format!("{own}/full has no cell"), "too few seeds".into()],
                ..Comparison::default()
            }],
            limits: vec![CellLimit { arm: arm(own), ..CellLimit::default() }],
            other: Unknown::of("secret", "1"),
            ..Lab::default()
        };
        redact_lab(&mut lab, &[]);
        let text = lab.to_json();
        assert!(!text.contains("secret"), "{text}");
        let kernels: Vec<&str> = lab.cells.iter().map(|cell| cell.kernel.as_str()).collect();
        assert_eq!(kernels, ["6.1-cloud", "kernel 1", "kernel 1"]);
        let loads: Vec<&str> = lab.cells.iter().map(|cell| cell.load.as_str()).collect();
        assert_eq!(loads, ["idle", "find+launch", REDACTED]);
        assert_eq!(lab.comparisons[0].b.kernel, "kernel 1");
        assert_eq!(lab.comparisons[0].reasons, [REDACTED, "too few seeds"]);
        assert_eq!(lab.limits[0].arm.kernel, "kernel 1");
        let once = lab.clone();
        redact_lab(&mut lab, &[]);
        assert_eq!(lab, once);
    }
}
