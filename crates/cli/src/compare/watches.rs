//! Watches to be compared: folders of stored windows, each of which counts as one run.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use wakescope_core::histogram::Bucket;
use wakescope_core::units::{grouped, one_or_many};
use wakescope_core::watch::Window;
use wakescope_core::watch::observed::{Grouping, Observed};
use wakescope_report::style::clean;
use wakescope_stats::compare::{Compare, Watched, compare_watches};

use super::{CompareArgs, failure};
use crate::Failure;
use crate::runs::{folders_in, is_watch, labels, run_in, selection};
use crate::watch::replay::{Range, Stored, mark};

/// The most memory for the groups of all watches, bytes: room for 270,000 groups of 60 buckets.
const MOST_BYTES: usize = 512 << 20;

/// What a group takes beside its buckets, bytes: its name, and its place in the map.
const GROUP: usize = 512;

/// Compares watches, if the paths are those of watches.
pub(super) fn run(args: &CompareArgs) -> Result<Option<Compare>, Failure> {
    let Some([new, old]) = watches_of([&args.runs, &args.against])? else {
        return match args.by {
            None => Ok(None),
            Some(_) => Err(Failure::new("--by applies only to watches").try_this("omit it")),
        };
    };
    refuse_what_means_nothing(args)?;
    let paths: Vec<PathBuf> = new.iter().chain(&old).cloned().collect();
    let labels = labels(&paths);
    let grouping = args.by.map_or_else(Grouping::default, Into::into);
    let read = read_all(&paths, grouping, MOST_BYTES)?;
    let watched: Vec<Watched> =
        labels.iter().zip(&read).map(|(label, watch)| Watched { label, watch }).collect();
    let (new, old) = watched.split_at(new.len());
    let compared = compare_watches(new, old, grouping, &args.options());
    compared.map(Some).map_err(|refusal| failure(&refusal))
}

/// The watches to which the paths of each side lead; `None` if no path leads to one.
pub(crate) fn watches_of<const SIDES: usize>(
    sides: [&Vec<PathBuf>; SIDES],
) -> Result<Option<[Vec<PathBuf>; SIDES]>, Failure> {
    let mut watch: Option<PathBuf> = None;
    let mut other: Option<PathBuf> = None;
    let sides = sides.map(|paths| -> Vec<PathBuf> {
        let each = paths.iter().flat_map(|path| {
            let found = Found::at(path);
            watch = watch.take().or_else(|| found.watches.first().cloned());
            other = other.take().or(found.other);
            found.watches
        });
        each.collect()
    });
    match (watch, other) {
        (None, _) => Ok(None),
        (Some(_), None) => Ok(Some(sides)),
        (Some(watch), Some(other)) => Err(mixed(&watch, &other)),
    }
}

/// What a path leads to.
struct Found {
    watches: Vec<PathBuf>,
    /// Something that is no watch.
    other: Option<PathBuf>,
}

impl Found {
    /// A watch, or a folder of watches; anything else is left to the reader of runs.
    fn at(path: &Path) -> Self {
        if is_watch(path) {
            return Self { watches: vec![path.into()], other: None };
        }
        let within = match run_in(path) {
            None => folders_in(path).unwrap_or_default(),
            Some(_) => Vec::new(),
        };
        let (watches, others): (Vec<_>, Vec<_>) =
            within.into_iter().partition(|folder| is_watch(folder));
        let other = match watches.is_empty() {
            true => Some(path.to_owned()),
            false => others.into_iter().find(|folder| run_in(folder).is_some()),
        };
        Self { watches, other }
    }
}

fn mixed(watch: &Path, other: &Path) -> Failure {
    let is_empty_folder = other.is_dir()
        && run_in(other).is_none()
        && folders_in(other).is_ok_and(|folders| folders.iter().all(|f| run_in(f).is_none()));
    let missing = std::fs::metadata(selection(other).0).err();
    let [watch, other] = [watch, other].map(|path| clean(&path.display().to_string(), 200));
    if is_empty_folder || missing.is_some() {
        let what = match missing {
            Some(e) => format!("cannot read {other}: {e}"),
            None => format!("{other} contains no watch"),
        };
        return Failure::new(what)
            .try_this("name the folder of a watch (wakescope watch --out DIR), or one of several");
    }
    Failure::new(format!(
        "cannot compare a watch with anything else: {watch} is one, {other} is not"
    ))
    .because(
        "a watch counts how long all tasks of a machine wait in a run queue, which is not wakeup \
             latency and not what other programs measure",
    )
    .try_this("name folders of watches on both sides (wakescope watch --out DIR), or runs on both")
}

fn refuse_what_means_nothing(args: &CompareArgs) -> Result<(), Failure> {
    for (option, is_asked, why) in [
        ("--mix-quantities", args.mix_quantities, "waits are compared only with waits"),
        ("--unit", args.units.unit().is_some(), "a watch is in ns"),
    ] {
        if is_asked {
            return Err(Failure::new(format!("{option} does not apply to watches: {why}"))
                .try_this("omit it"));
        }
    }
    Ok(())
}

/// Reads watches of which only all waits together matter.
pub(crate) fn read_ungrouped(paths: &[PathBuf]) -> Result<Vec<Observed>, Failure> {
    read_all(paths, Grouping::None, MOST_BYTES)
}

/// Reads watches one after the other: each may take much memory until its windows are added up. The groups of
/// all of them take no more than `most` bytes.
fn read_all(paths: &[PathBuf], by: Grouping, most: usize) -> Result<Vec<Observed>, Failure> {
    let mut seen: HashMap<u64, usize> = HashMap::new();
    let mut bytes = 0_usize;
    let mut all = Vec::with_capacity(paths.len());
    for (place, path) in paths.iter().enumerate() {
        let stored = Stored::read(path, Range::default(), false, |window, _| {
            match seen.insert(mark(window), place) {
                Some(before) => Err(repeated(&paths[before], path, window)),
                None => Ok(true),
            }
        })?;
        let (first, end) = stored.extent();
        let watch = Observed::of(&stored.total, first, end, by);
        let buckets = watch.groups.values().map(|d| d.histogram.buckets().len());
        bytes = bytes.saturating_add(watch.groups.len().saturating_mul(GROUP));
        bytes = bytes.saturating_add(buckets.sum::<usize>().saturating_mul(size_of::<Bucket>()));
        all.push(watch);
        if bytes > most {
            return Err(too_many(&all, most));
        }
    }
    Ok(all)
}

fn repeated(one: &Path, other: &Path, window: &Window) -> Failure {
    let [one, other] = [one, other].map(|path| clean(&path.display().to_string(), 200));
    let started = &window.started;
    let what = match one == other {
        true => format!("cannot compare: {one} is given twice"),
        false => format!("cannot compare: {one} and {other} have a window in common"),
    };
    Failure::new(what)
        .because(format!("that of {} would count twice", clean(started, 30)))
        .try_this(
            "name each watch once, and each window in one folder; a copy is not a second watch",
        )
}

fn too_many(all: &[Observed], most: usize) -> Failure {
    let groups: usize = all.iter().map(|watch| watch.groups.len()).sum();
    Failure::new("cannot compare so many series at once")
        .because(format!(
            "those of {} {} are {}, and take more than {} MiB",
            grouped(all.len() as u64),
            one_or_many(all.len() as u64, "watch", "watches"),
            grouped(groups as u64),
            most >> 20
        ))
        .try_this("match by less: --by cgroup, --by comm or --by none; or compare fewer watches")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_many_watches_take_is_bounded() {
        let waits = r#"{"count":1,"sum_ns":5,"max_ns":5,"max_is_exact":true,"min_ns":5,
            "min_is_exact":true,"histogram":"@0 1"}"#;
        let series: Vec<String> = (0..10)
            .map(|i| format!(r#"{{"cgroup_id":7,"cgroup":"/a","comm":"{i}","waits":{waits}}}"#))
            .collect();
        let line = format!(
            r#"{{"schema":"wakescope.watch/1","started":"2026-11-21T01:00:00Z","begin_ns":0,
            "window_ns":9,"from":"queued","series":[{}],"others":{waits},"cpus":[],"left_out":{{
            "uncovered_ns":0,"unstamped":0,"discarded":0,"untracked":0,"first":0,"caught_up":0,
            "missed":0,"missed_ns":0,"contradicted":0}},"moved":{{"count":0,"before_ns":0}},
            "series_used":3,"series_limit":9,"own_cost":{{"agent_ns":1,"program_ns":null,
            "program_runs":9,"source":"unknown","cpus":2}}}}"#,
            series.join(",")
        );
        let line = line.replace('\n', "") + "\n";
        let folder = wakescope_testing::Folder::new("watches");
        folder.write("2026-11-21T01-00-00.jsonl", line);
        let read = |by, most| read_all(&[folder.to_path_buf()], by, most);
        let needed = 10 * (GROUP + size_of::<Bucket>());
        assert_eq!(read(Grouping::Series, needed).unwrap()[0].groups.len(), 10);
        let refused = read(Grouping::Series, needed - 1).unwrap_err().to_string();
        assert!(refused.contains("those of 1 watch are 10, and take more than"), "{refused}");
        assert!(refused.contains("--by cgroup"), "{refused}");
        assert_eq!(read(Grouping::Cgroup, needed - 1).unwrap()[0].groups.len(), 1);
    }
}
