//! The runs that a command is given: each a run's folder, its record, or a file of another program.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use wakescope_core::budget::SMALL;
use wakescope_core::observation::Observation;
use wakescope_core::run::Run;
use wakescope_formats::import::Unit;
use wakescope_report::style::clean;
use wakescope_store::{Contents, RECORD};

use crate::foreign_json::{watch_is_no_run, why_no_run};
use crate::input::{not_a_run, read_file, regular};
use crate::unit::UnitArgs;
use crate::{Failure, import, output, parallel};

/// The largest record that is read: that of 8,192 CPUs takes less.
const LARGEST: u64 = 2 << 30;

/// A run, or what is kept of it, and what the user called it.
pub(crate) struct Named<T = Run> {
    /// A short name that no other of the runs beside it has, unless one is given twice.
    pub(crate) label: String,
    /// As it was given, and where a file holds several, with what sets it apart.
    pub(crate) path: PathBuf,
    /// The place of the path that holds it, among those given.
    pub(crate) given: usize,
    pub(crate) run: T,
}

/// A run as comparisons use it.
pub(crate) type Observed = Named<Observation>;

/// Paths with each folder of runs replaced by the runs in it, in the order of their names. Watches and further
/// folders of runs in it are named on stderr, because they are left out, and so are folders that this user may not
/// look into.
///
/// Fails where a folder is none of a run and holds none.
pub(crate) fn expand(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut all = Vec::with_capacity(paths.len());
    for path in paths {
        // Most are folders of runs.
        if path.join(RECORD).exists() || !path.is_dir() {
            all.push(path.clone());
        } else if let Some(run) = run_in(path) {
            all.push(run);
        } else {
            let Held { runs, others } = Held::below(path)?;
            if runs.is_empty() {
                return Err(no_run_in(path, &others));
            }
            others.iter().for_each(|other| output::tell(&format!("left out: {}", other.text())));
            all.extend(runs);
        }
    }
    Ok(all)
}

/// What lies in a folder of runs.
struct Held {
    runs: Vec<PathBuf>,
    others: Vec<Other>,
}

/// A folder in it that is no run, but holds what was measured.
struct Other {
    path: PathBuf,
    /// `None` if this user may not look into it.
    what: Option<&'static str>,
}

impl Other {
    fn text(&self) -> String {
        let Self { path, what } = self;
        match what {
            Some(what) => {
                format!("{} is {what}: {}", path.display(), output::command("report", path))
            }
            None => format!("{} cannot be looked into", path.display()),
        }
    }
}

impl Held {
    fn below(folder: &Path) -> Result<Self, Failure> {
        let unread = |path: &Path, e: &io::Error| not_a_run(path, path, e);
        let mut held = Self { runs: Vec::new(), others: Vec::new() };
        for path in folders_in(folder).map_err(|e| unread(folder, &e))? {
            let other = |what| Other { path: path.clone(), what };
            match Contents::of(&path) {
                Ok(Contents::Run) => held.runs.push(path),
                Ok(Contents::Watch) => held.others.push(other(Some("a watch"))),
                Ok(Contents::Runs) => held.others.push(other(Some("a folder of runs"))),
                Ok(Contents::Other) => held.runs.extend(run_in(&path)),
                // As `lost+found` is, at the root of a disk.
                Err(_) => held.others.push(other(None)),
            }
        }
        Ok(held)
    }
}

/// The run that a folder is: one that wakescope or jitterdebugger wrote.
pub(crate) fn run_in(folder: &Path) -> Option<PathBuf> {
    if folder.join(RECORD).exists() {
        return Some(folder.into());
    }
    import::JITTERDEBUGGER.iter().map(|name| folder.join(name)).find(|file| file.is_file())
}

/// Whether windows of a watch lie in this folder, or what has their names, and no run.
pub(crate) fn is_watch(path: &Path) -> bool {
    Contents::of(path).is_ok_and(|contents| contents == Contents::Watch)
}

/// The folders in a folder, in the order of their names.
pub(crate) fn folders_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut held = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        held.extend(path.is_dir().then_some(path));
    }
    held.sort_by_cached_key(|path| (sort_key(path), path.clone()));
    Ok(held)
}

/// What a path sorts by: text, and numbers by their size, so that `v6.6` comes before `v6.12`.
fn sort_key(path: &Path) -> Vec<(String, u128)> {
    let name = path.to_string_lossy();
    let mut parts = Vec::new();
    let mut rest: &str = &name;
    while !rest.is_empty() {
        let digit = |c: char| c.is_ascii_digit();
        let (text, after) = rest.split_at(rest.find(digit).unwrap_or(rest.len()));
        let (number, after) = after.split_at(after.find(|c| !digit(c)).unwrap_or(after.len()));
        // What ends in text comes before the same with a number.
        let number = if number.is_empty() { 0 } else { number.parse().unwrap_or(u128::MAX) };
        parts.push((text.to_owned(), number));
        rest = after;
    }
    parts
}

fn no_run_in(folder: &Path, others: &[Other]) -> Failure {
    let failure = Failure::new(format!("{} contains no run", folder.display()))
        .because(format!("neither it nor a folder in it contains a {RECORD}"));
    let (shown, closed): (Vec<_>, Vec<_>) = others.iter().partition(|other| other.what.is_some());
    let failure = closed.iter().take(8).fold(failure, |of, other| of.because(other.text()));
    if shown.is_empty() {
        return failure.try_this(
            "name a run folder, which contains a run.json, or a folder of run folders; by default \
             they are under runs/",
        );
    }
    shown.iter().take(8).fold(failure, |failure, other| failure.try_this(other.text()))
}

/// Reads the runs that paths name, each with the shortest end of its path that sets it apart. A file
/// of another program may hold several: `FILE#NAME`. Of each run, `keep` says what is kept.
pub(crate) fn read_all<T: Send>(
    paths: &[PathBuf],
    units: &UnitArgs,
    keep: impl Fn(Run) -> T + Sync,
) -> Result<Vec<Named<T>>, Failure> {
    let reader = Reader { units, large: Mutex::new(()) };
    let read = parallel::each(paths, |path| reader.read_each(path, &keep))?;
    let mut all = Vec::with_capacity(paths.len());
    for (given, ((path, label), runs)) in paths.iter().zip(labels(paths)).zip(read).enumerate() {
        for (name, run) in runs {
            let (label, path) = match name.as_str() {
                "" => (label.clone(), path.clone()),
                _ => (format!("{label}#{name}"), format!("{}#{name}", path.display()).into()),
            };
            all.push(Named { label, path, given, run });
        }
    }
    Ok(all)
}

/// Reads the run that a path names.
pub(crate) fn read(path: &Path) -> Result<Run, Failure> {
    read_in(path, &UnitArgs::default())
}

/// The same, where the user may know the unit of its values.
pub(crate) fn read_in(path: &Path, units: &UnitArgs) -> Result<Run, Failure> {
    let mut runs = Reader { units, large: Mutex::new(()) }.read_each(path, &|run| run)?;
    if runs.len() > 1 {
        let file = path.display();
        let failure = Failure::new(format!("{file} holds {} runs", runs.len()));
        return Err(runs.iter().take(8).fold(failure, |failure, (name, run)| {
            let quantity = run.quantity();
            failure.try_this(format!("{file}#{name}, {quantity}"))
        }));
    }
    match runs.pop() {
        Some((_, run)) => Ok(run),
        None => Err(Failure::new(format!("there is no run in {}", path.display()))),
    }
}

/// Reads runs, several at once.
struct Reader<'a> {
    units: &'a UnitArgs,
    /// Locked while an input is read that may take much memory: so that all inputs together have the
    /// budget of one.
    large: Mutex<()>,
}

impl Reader<'_> {
    fn lock(&self) -> MutexGuard<'_, ()> {
        self.large.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is kept of the runs that a path names, each with what sets it apart from the others of the
    /// same file.
    fn read_each<T>(
        &self,
        path: &Path,
        keep: &impl Fn(Run) -> T,
    ) -> Result<Vec<(String, T)>, Failure> {
        let record = path.join(RECORD);
        if let Ok(opened) = regular(&record) {
            return Ok(vec![(String::new(), self.read_opened(&opened, path, &record, keep)?)]);
        }
        if path.is_dir() {
            // A record that is no file stands for no run.
            return match run_in(path).filter(|file| file != path) {
                Some(file) => self.read_each(&file, keep),
                None if is_watch(path) => Err(watch_is_no_run(path, path)),
                None => Ok(vec![(String::new(), self.read_record(path, &record, keep)?)]),
            };
        }
        let (file, name) = selection(path);
        let mut opened = regular(&file).map_err(|e| not_a_run(path, &file, &e))?;
        let runs = match import::format_of(&mut opened, &file)? {
            None => {
                let run = self.read_record(path, &file, keep);
                let why = |e| why_no_run(&mut opened, &file).unwrap_or(e);
                vec![(String::new(), run.map_err(why)?)]
            }
            Some(format) => {
                let about = import::about(format, &file, self.units.unit())?;
                // Another program's file may hold much in few bytes.
                let _alone = self.lock();
                let runs = import::read(format, &opened, &file, &about)?;
                runs.into_iter().map(|imported| (imported.name, keep(imported.run))).collect()
            }
        };
        let Some(wanted) = name else { return Ok(runs) };
        let there: Vec<String> = runs.iter().map(|(name, _)| name.clone()).collect();
        match runs.into_iter().find(|(name, _)| *name == wanted) {
            // Its name is in the path already, and so in the label.
            Some((_, run)) => Ok(vec![(String::new(), run)]),
            None => {
                let file = file.display();
                let failure = Failure::new(format!("{file} holds no run named `{wanted}`"));
                let named = there.iter().take(8).map(|name| match name.as_str() {
                    // Its only run has no name.
                    "" => file.to_string(),
                    name => format!("{file}#{name}"),
                });
                Err(named.fold(failure, Failure::try_this))
            }
        }
    }
    fn read_record<T>(
        &self,
        path: &Path,
        file: &Path,
        keep: &impl Fn(Run) -> T,
    ) -> Result<T, Failure> {
        let opened = regular(file).map_err(|e| not_a_run(path, file, &e))?;
        self.read_opened(&opened, path, file, keep)
    }

    fn refuse_unit(&self, file: &Path) -> Result<(), Failure> {
        match self.units.unit().filter(|&unit| unit != Unit::Ns) {
            None => Ok(()),
            Some(unit) => Err(Failure::new(format!("cannot read {} in {unit}", file.display()))
                .because("it is a run's record, which is always in ns")
                .try_this(
                    "omit --unit; import the file that it was made from again: wakescope import \
                     FILE --unit …",
                )),
        }
    }

    fn read_opened<T>(
        &self,
        opened: &File,
        path: &Path,
        file: &Path,
        keep: &impl Fn(Run) -> T,
    ) -> Result<T, Failure> {
        self.refuse_unit(file)?;
        let failure = |e| not_a_run(path, file, &e);
        let length = opened.metadata().map_err(failure)?.len();
        let _alone = (length > SMALL).then(|| self.lock());
        let text = read_file(opened, length, LARGEST).map_err(failure)?;
        // The error may quote the record, which may be anybody's.
        Run::from_json(&text).map(keep).map_err(|e| {
            Failure::new(format!("cannot use {}: {}", file.display(), clean(&e.to_string(), 300)))
                .try_this(
                    e.remedy().unwrap_or("name another run's folder; this record cannot be shown"),
                )
        })
    }
}

/// The file, and which of its runs: `FILE#NAME`, unless there is a file of that very name.
pub(crate) fn selection(path: &Path) -> (PathBuf, Option<String>) {
    let text = path.to_string_lossy();
    match text.rsplit_once('#') {
        Some((file, name)) if !path.exists() && Path::new(file).is_file() => {
            (file.into(), Some(name.into()))
        }
        _ => (path.into(), None),
    }
}

/// For each path as many of its last parts as set it apart from the others.
pub(crate) fn labels(paths: &[PathBuf]) -> Vec<String> {
    let parts: Vec<Vec<String>> = paths.iter().map(|path| parts(path)).collect();
    let end = |of: &[String], count: usize| of[of.len().saturating_sub(count)..].join("/");
    let mut labels: Vec<Option<String>> = vec![None; paths.len()];
    // A round per part: ends that several paths have get one part more in the next. So the time does
    // not grow with the square of the number of paths.
    for count in 1.. {
        let open = labels.iter().zip(&parts).filter(|(label, _)| label.is_none());
        if open.count() == 0 {
            break;
        }
        let mut found: HashMap<String, usize> = HashMap::new();
        for part in &parts {
            *found.entry(end(part, count)).or_default() += 1;
        }
        for (label, part) in labels.iter_mut().zip(&parts).filter(|(label, _)| label.is_none()) {
            let text = end(part, count);
            if count >= part.len() || found.get(&text) == Some(&1) {
                *label = Some(clean(&text, 120));
            }
        }
    }
    labels.into_iter().flatten().collect()
}

/// The parts of a path that tell which run it is: not the record's name, which is always the same.
fn parts(path: &Path) -> Vec<String> {
    let mut parts: Vec<String> =
        path.components().map(|c| c.as_os_str().to_string_lossy().into_owned()).collect();
    if parts.len() > 1 && parts.last().is_some_and(|last| last == RECORD) {
        parts.pop();
    }
    parts
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[track_caller]
    fn check(paths: &[&str], want: &[&str]) {
        let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
        assert_eq!(labels(&paths), want, "{paths:?}");
    }

    /// How many runs were read at once, of records with so much text each.
    fn most_at_once(text: usize) -> usize {
        let mut run = Run { schema: wakescope_core::run::SCHEMA.into(), ..Run::default() };
        run.host.cmdline = "x".repeat(text);
        let folder = wakescope_testing::Folder::new("runs");
        let paths: Vec<PathBuf> = (0..24).map(|i| folder.join(i.to_string())).collect();
        for path in &paths {
            folder.write(path.join(RECORD), run.to_json());
        }
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let read = read_all(&paths, &UnitArgs::default(), |_| {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            (0..100).for_each(|_| std::thread::yield_now());
            now.fetch_sub(1, Ordering::SeqCst);
        });
        assert_eq!(read.unwrap().len(), paths.len());
        most.into_inner()
    }

    #[test]
    fn what_may_take_much_memory_is_read_alone() {
        let small = usize::try_from(SMALL).unwrap();
        assert_eq!(most_at_once(small + 1), 1);
        // On one CPU there may be no more than one either.
        assert!((1..=8).contains(&most_at_once(1_000)));
    }

    #[test]
    fn numbers_in_names_sort_by_size() {
        let mut names =
            ["v6.12", "10", "v6.6", "2", "v6.6-rc2", "a2", "a", "a3", "2026-11-22", "2026-11-3"];
        names.sort_by_cached_key(|name| sort_key(Path::new(name)));
        let want =
            ["2", "10", "2026-11-3", "2026-11-22", "a", "a2", "a3", "v6.6", "v6.6-rc2", "v6.12"];
        assert_eq!(names, want);
    }

    #[test]
    fn labels_are_as_short_as_they_can_be() {
        check(&["runs/a"], &["a"]);
        check(&["runs/a/run.json"], &["a"]);
        check(&["old/1", "old/2", "new/1"], &["old/1", "2", "new/1"]);
        check(&["x", "x"], &["x", "x"]);
        check(&["run.json", "a/run.json"], &["run.json", "a"]);
        check(&[], &[]);
    }
}
