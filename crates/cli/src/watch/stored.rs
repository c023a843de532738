//! Windows on disk: several intervals as one, and what becomes of them when the disk is full.

use std::io;
use std::path::{Path, PathBuf};

use wakescope_core::redact::redact_window;
use wakescope_core::units::{SpanNs, grouped};
use wakescope_core::watch::Window;
use wakescope_core::watch::packed;
use wakescope_core::watch::sum::Sum;
use wakescope_store::{AppendError, RunFolderError, WindowFolder, window_files};

use super::replay::tell_refused;
use crate::{Failure, folder};

/// A window with so many series is stored before its time, so that none takes much memory.
const MOST_SERIES: usize = 16_384;

/// So is one whose series have so many bytes of names and paths. The line has six for each control character.
const MOST_TEXT: usize = packed::LONGEST_LINE / 16;

/// Stores windows. One that cannot be written is added to the next: its waits are late, not lost.
pub(super) struct Storage {
    folder: WindowFolder,
    path: PathBuf,
    /// The most bytes that all files of windows may have.
    keep: u64,
    merge: SpanNs,
    /// Half an interval: so much a window may be shorter than `merge`, whose intervals are never exact.
    tolerance: SpanNs,
    redacts: bool,
    /// What is not written yet.
    sum: Sum,
    /// How much of it there is to be when it is written next, ns.
    next_ns: u64,
    /// Why it could not be written last time.
    failure: Option<String>,
    /// How long the windows were that are larger than all that may be kept. They are not stored.
    too_large: SpanNs,
    /// Whether a file was removed to make room.
    has_removed: bool,
    /// Whether a window was stored without some of its series.
    has_unnamed: bool,
}

/// A window that was stored.
struct Stored {
    /// How many files were removed to make room for it.
    removed: u32,
    /// Whether its folder or that one's lock had been removed, and was made again.
    is_in_new_folder: bool,
}

/// What makes windows fit.
const SMALLER: &str = "raise --keep, or shorten --merge";

impl Storage {
    /// Stores windows of the length `merge`, made of intervals of the length `interval`, in the folder at `path`,
    /// of at most `keep` bytes.
    pub(super) fn open(
        path: &Path,
        keep: u64,
        (merge, interval): (SpanNs, SpanNs),
        redacts: bool,
    ) -> Result<Self, Failure> {
        let folder = open_folder(path, keep)?;
        let refused = window_files(path).unwrap_or_default().refused;
        tell_refused(&refused, "neither counted for --keep nor removed");
        let (path, next_ns) = (path.into(), merge.0);
        let (sum, failure, too_large) = (Sum::default(), None, SpanNs(0));
        let (has_removed, has_unnamed) = (false, false);
        let tolerance = SpanNs(interval.0 / 2);
        Ok(Self {
            folder,
            path,
            keep,
            merge,
            tolerance,
            redacts,
            sum,
            next_ns,
            failure,
            too_large,
            has_removed,
            has_unnamed,
        })
    }

    /// Takes a window. What the user should know now.
    pub(super) fn add(&mut self, window: &Window) -> Vec<String> {
        match self.redacts {
            true => {
                let mut window = window.clone();
                redact_window(&mut window);
                self.sum.add(window);
            }
            false => self.sum.add(window),
        }
        let is_large = self.sum.series() >= MOST_SERIES || self.sum.text_bytes() >= MOST_TEXT;
        let is_whole = self.sum.window_ns().saturating_add(self.tolerance.0) >= self.next_ns;
        if (is_large && self.failure.is_none()) || is_whole { self.store() } else { Vec::new() }
    }

    /// Stores what is left; fails if that cannot be written, or some before could not.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        self.store();
        let path = self.path.display();
        if let Some(why) = self.failure {
            let lost = SpanNs(self.sum.window_ns());
            let before = match self.too_large {
                SpanNs(0) => "all before were".into(),
                large => format!("nor were {large} before, in windows larger than --keep"),
            };
            return Err(Failure::new(format!("cannot write to {path}: {why}"))
                .because(format!("the last {lost} are not stored; {before}"))
                .try_this("make room, or name another folder: --out DIR"));
        }
        match self.too_large {
            SpanNs(0) => Ok(()),
            lost => Err(Failure::new(format!("{lost} are not stored in {path}"))
                .because("their windows were larger than --keep")
                .try_this(SMALLER)),
        }
    }

    fn store(&mut self) -> Vec<String> {
        let Some(window) = self.sum.window() else { return Vec::new() };
        let line = packed::line(&window).map_err(|e| AppendError::Io(io::Error::other(e)));
        let unnamed = line.as_ref().map_or(0, |line| line.unnamed);
        let written = line.and_then(|line| self.append(&window.started, line.text.as_bytes()));
        let (path, span) = (self.path.display().to_string(), SpanNs(window.window_ns));
        match written {
            Ok(Stored { removed, is_in_new_folder }) => {
                self.begin_anew();
                let makes = is_in_new_folder.then(|| {
                    format!("{path}, or its lock, was removed: what it held may be gone, and it was begun anew")
                });
                let again = self.failure.take().map(|_| {
                    format!("{path} can be written again: all of the last {span} is one window")
                });
                let is_first = removed > 0 && !std::mem::replace(&mut self.has_removed, true);
                let removes = is_first.then(|| {
                    format!("{path} is as large as --keep allows: from now on the oldest files go")
                });
                let is_first = unnamed > 0 && !std::mem::replace(&mut self.has_unnamed, true);
                let joins = is_first.then(|| {
                    format!(
                        "the names of {} series are not stored in {path}, and their waits are among \
                         (others): with them the window would have more than {} MiB\n  → shorten --interval",
                        grouped(unnamed as u64),
                        packed::LONGEST_LINE >> 20
                    )
                });
                makes.into_iter().chain(again).chain(removes).chain(joins).collect()
            }
            // With more added to it, it would never be stored.
            Err(e @ AppendError::TooLarge { .. }) => {
                self.begin_anew();
                // What could not be written before is in what is given up.
                self.failure = None;
                let is_first = self.too_large == SpanNs(0);
                self.too_large = SpanNs(self.too_large.0.saturating_add(span.0));
                let text = format!("{span} are not stored in {path}: {e}\n  → {SMALLER}");
                is_first.then_some(text).into_iter().collect()
            }
            Err(AppendError::Io(e)) => {
                self.next_ns = self.sum.window_ns().saturating_add(self.merge.0);
                let is_new = self.failure.replace(e.to_string()).is_none();
                let text = format!(
                    "cannot write to {path}: {e}\n  windows are kept in memory and added up until \
                     that is possible\n  → make room"
                );
                is_new.then_some(text).into_iter().collect()
            }
        }
    }

    /// Writes a line. Nothing can be written to a folder that was removed, nor is to be where another watch may
    /// hold a new lock, so it is opened anew.
    fn append(&mut self, started: &str, line: &[u8]) -> Result<Stored, AppendError> {
        match self.folder.append(started, line) {
            Err(AppendError::Io(e)) if e.kind() == io::ErrorKind::NotFound => {}
            written => {
                return written.map(|removed| Stored { removed, is_in_new_folder: false });
            }
        }
        self.folder = open_folder(&self.path, self.keep).map_err(|e| {
            io::Error::other(format!("it or its lock was removed; {}", e.summary()))
        })?;
        let removed = self.folder.append(started, line)?;
        Ok(Stored { removed, is_in_new_folder: true })
    }

    fn begin_anew(&mut self) {
        self.sum = Sum::default();
        self.next_ns = self.merge.0;
    }
}

fn open_folder(path: &Path, keep: u64) -> Result<WindowFolder, Failure> {
    WindowFolder::open(path, keep).map_err(|e| match e {
        RunFolderError::InUse(_) => {
            Failure::new(format!("another watch writes to {}", path.display()))
                .try_this("name another folder: --out DIR")
        }
        other => folder::failure(other),
    })
}

#[cfg(test)]
mod tests {
    use wakescope_core::watch::meter::{Meter, Reading};
    use wakescope_core::watch::{OwnCost, SCHEMA, Series, Waits};
    use wakescope_testing::Folder;

    use super::*;

    const SECOND: SpanNs = SpanNs(1_000_000_000);

    /// A window of a second with so many series.
    fn window(second: u64, series: u64) -> Window {
        let one =
            |id| Series { cgroup_id: id, cgroup: None, comm: "x".into(), waits: Waits::default() };
        Window {
            schema: SCHEMA.into(),
            started: format!("2026-11-21T01:00:{second:02}Z"),
            begin_ns: second * 1_000_000_000,
            window_ns: 1_000_000_000,
            series: (1..=series).map(one).collect(),
            series_used: series,
            series_limit: series,
            own_cost: OwnCost { cpus: 1, ..OwnCost::default() },
            ..Window::default()
        }
    }

    #[test]
    fn what_is_larger_than_may_be_kept_is_told_and_the_next_window_is_stored() {
        let folder = Folder::new("stored");
        let path = folder.join("watch");
        let mut storage = Storage::open(&path, 4_000, (SECOND, SECOND), false).unwrap();
        let [large] = &storage.add(&window(1, 100))[..] else { panic!("nothing is told") };
        assert!(
            large.starts_with("1.00 s are not stored in") && large.ends_with(SMALLER),
            "{large}"
        );
        assert_eq!(storage.add(&window(2, 100)), [""; 0]);
        assert_eq!(storage.add(&window(3, 2)), [""; 0]);
        let files = window_files(&path).unwrap().files;
        assert!(files[0].ends_with("2026-11-21T01-00-03.jsonl"), "{files:?}");
        let failure = storage.finish().unwrap_err().to_string();
        assert!(failure.contains("2.00 s are not stored"), "{failure}");
    }

    /// A window of a second, whose tasks have these names in a cgroup with the longest path.
    fn long_window(second: u64, names: std::ops::Range<u64>) -> Window {
        let path = format!("/{}", "\u{1}".repeat(4_000));
        let of = Reading { sum_ns: 100, max_ns: 100, min_ns: 100, buckets: vec![(0, 1)] };
        let series = names.map(|name| Series {
            cgroup_id: 7,
            cgroup: Some(path.clone()),
            comm: name.to_string(),
            waits: Meter::default().read(of.clone()),
        });
        Window { series: series.collect(), ..window(second, 0) }
    }

    /// Of the windows in the folder at `path`: how many series they have, and how many waits without any.
    #[track_caller]
    fn stored(path: &Path) -> Vec<(usize, u64)> {
        let mut all = Vec::new();
        for file in window_files(path).unwrap().files {
            let file = io::BufReader::new(std::fs::File::open(file).unwrap());
            let each = |_, window: Result<Window, _>| {
                window.map(|window| all.push((window.series.len(), window.others.count)))
            };
            packed::read_lines(file, each).unwrap().unwrap();
        }
        all
    }

    #[test]
    fn a_window_with_long_names_is_stored_before_its_time() {
        let folder = Folder::new("stored");
        let path = folder.join("watch");
        let merge = (SpanNs(600 * SECOND.0), SECOND);
        let mut storage = Storage::open(&path, 1 << 30, merge, false).unwrap();
        // 4 MB of names and paths each.
        for second in 1..=4 {
            let names = long_window(second, second * 1_000..(second + 1) * 1_000);
            assert_eq!(storage.add(&names), [""; 0]);
        }
        assert_eq!(stored(&path), [(2_000, 0); 2]);
        storage.finish().unwrap();
    }

    #[test]
    fn names_that_no_reader_takes_are_told_and_their_waits_are_stored() {
        let folder = Folder::new("stored");
        let path = folder.join("watch");
        let mut storage = Storage::open(&path, 1 << 30, (SECOND, SECOND), false).unwrap();
        let [told] = &storage.add(&long_window(1, 0..2_900))[..] else { panic!("nothing is told") };
        assert!(told.starts_with("the names of ") && told.contains("than 64 MiB"), "{told}");
        let [(series, others)] = stored(&path)[..] else { panic!("not one window") };
        assert!(series > 2_700 && others > 0, "{series} series, and {others} waits of others");
        assert_eq!(series as u64 + others, 2_900);
        storage.finish().unwrap();
    }

    #[test]
    fn the_first_file_that_goes_is_told() {
        let folder = Folder::new("stored");
        let path = folder.join("watch");
        let mut storage = Storage::open(&path, 2_500, (SECOND, SECOND), false).unwrap();
        let notes: Vec<_> = (1..20).flat_map(|second| storage.add(&window(second, 1))).collect();
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].ends_with("from now on the oldest files go"), "{notes:?}");
        storage.finish().unwrap();
    }

    #[test]
    fn a_folder_that_is_removed_is_made_again_and_its_removal_is_told() {
        let folder = Folder::new("stored");
        let path = folder.join("watch");
        let mut storage = Storage::open(&path, 1_000_000, (SECOND, SECOND), false).unwrap();
        assert_eq!(storage.add(&window(1, 1)), [""; 0]);
        std::fs::remove_dir_all(&path).unwrap();
        // What cannot be stored now is kept, and is in the next window.
        std::fs::write(&path, "").unwrap();
        let [told] = &storage.add(&window(2, 1))[..] else { panic!("nothing is told") };
        assert!(
            told.contains(": it or its lock was removed; cannot create the run's folder "),
            "{told}"
        );
        std::fs::remove_file(&path).unwrap();
        let [made, again] = &storage.add(&window(3, 1))[..] else { panic!("nothing is told") };
        assert!(
            made.ends_with(
                "or its lock, was removed: what it held may be gone, and it was begun anew"
            ),
            "{made}"
        );
        assert!(again.ends_with("all of the last 2.00 s is one window"), "{again}");
        let files = wakescope_store::window_files(&path).unwrap().files;
        assert!(files[0].ends_with("2026-11-21T01-00-02.jsonl"), "{files:?}");
        storage.finish().unwrap();
    }

    /// An interval lasts until its end is seen, and the next one is so much shorter.
    #[test]
    fn windows_have_the_length_that_was_asked_for_although_intervals_are_not_exact() {
        let folder = Folder::new("stored");
        let path = folder.join("watch");
        let interval = SpanNs(SECOND.0 / 2);
        let mut storage = Storage::open(&path, 1_000_000, (SECOND, interval), false).unwrap();
        let off = [-9_000_i64, 4_000, -30_000, 7_000, 2_000, -3_000, 120_000, -110_000];
        for (number, off) in (0..).zip(off) {
            let window_ns = interval.0.saturating_add_signed(off);
            storage.add(&Window { window_ns, ..window(number, 1) });
        }
        storage.finish().unwrap();
        let mut lengths = Vec::new();
        for file in window_files(&path).unwrap().files {
            for line in std::fs::read_to_string(file).unwrap().lines() {
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                lengths.push(line["window_ns"].as_u64().unwrap());
            }
        }
        assert_eq!(lengths, [999_995_000, 999_977_000, 999_999_000, 1_000_010_000]);
    }
}
