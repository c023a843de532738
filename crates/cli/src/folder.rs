//! The folder of a run, with its samples, and what to tell when it cannot be written.

use std::io;
use std::path::{Path, PathBuf};

use wakescope_probe::measurement::{SampleSink, SavedSample, Unsaved};
use wakescope_store::{
    EPISODES, EPISODES_FRESH, GrowingFile, RunFiles, RunFolderError, SAMPLES, SeriesFolder,
    check_runs_folder, is_full,
};

use wakescope_core::units::SpanNs;

use crate::Failure;
use crate::samples::{SampleFile, SamplesOf};

/// A run's folder while the run is written.
pub(crate) struct RunFolder {
    files: RunFiles,
    samples: Option<SampleFile>,
    /// How much of the run the record in the folder has; `None` if it is still the one from before the run.
    stored: Option<SpanNs>,
}

impl SampleSink for RunFolder {
    fn add(&mut self, sample: SavedSample) {
        if let Some(samples) = &mut self.samples {
            samples.add(sample);
        }
    }

    fn close(&mut self) -> Unsaved {
        self.samples.take().map(SampleFile::close).unwrap_or_default()
    }
}

impl RunFolder {
    /// Makes the folder that the user named, or one named after the time below `runs/`, with
    /// `record` in it, and a file for `samples`.
    pub(crate) fn create(
        named: Option<&Path>,
        time: &str,
        samples: Option<SamplesOf>,
        record: &[u8],
    ) -> Result<Self, Failure> {
        let mut files = RunFiles::create(named, time, record).map_err(failure)?;
        match samples.map(|of| samples_in(&mut files, of)).transpose() {
            Ok(samples) => Ok(Self { files, samples, stored: None }),
            Err(e) => {
                files.discard();
                Err(e.try_this("measure without --save-samples"))
            }
        }
    }

    /// Makes the file of the run's episodes.
    pub(crate) fn add_episodes(&mut self) -> Result<GrowingFile, Failure> {
        self.files.add_growing(EPISODES, EPISODES_FRESH).map_err(failure)
    }

    /// Puts a new version of the record, of the run's first `measured`, in place of the last one. If
    /// that fails, the last one stays, whole.
    pub(crate) fn write(&mut self, record: &[u8], measured: SpanNs) -> io::Result<()> {
        self.files.write(record)?;
        self.stored = Some(measured);
        Ok(())
    }

    /// Removes what has been written and made: the run did not begin.
    pub(crate) fn discard(self) {
        self.files.discard();
    }

    /// Writes the final record and removes what was needed only to get there.
    pub(crate) fn finish(self, record: &[u8]) -> Result<PathBuf, Failure> {
        let stored = self.stored;
        self.files.finish(record).map_err(|e| match e {
            RunFolderError::File(path, cause) => unfinished(&path, &cause, stored),
            other => failure(other),
        })
    }
}

/// The final record could not be written to `path`, whose last version has the first `stored` of the run.
fn unfinished(path: &Path, cause: &io::Error, stored: Option<SpanNs>) -> Failure {
    let failure = cannot_write(path, cause);
    if cause.kind() == io::ErrorKind::NotFound {
        return failure
            .because("the run's folder was removed while it was measured")
            .try_this("measure again into a folder that stays: --out DIR");
    }
    let kept = match stored {
        Some(stored) => format!("the record in the folder has the first {stored} of the run"),
        None => "the record in the folder has no wakeup".into(),
    };
    failure.because(kept).try_this(match lacks_room(cause) {
        true => "make room and measure again, or name another folder: --out DIR",
        false => "measure again, and name another folder: --out DIR",
    })
}

/// The folder in which the runs of one command have theirs.
pub(crate) enum RunsFolder {
    /// The one that the user named, which its first run makes.
    Named(PathBuf),
    /// One that is named after the time.
    New(SeriesFolder),
}

impl RunsFolder {
    pub(crate) fn create(named: Option<&Path>, time: &str) -> Result<Self, Failure> {
        Ok(match named {
            Some(path) => Self::Named(path.into()),
            None => Self::New(SeriesFolder::create(time).map_err(failure)?),
        })
    }

    /// Fails if the folders `runs` cannot be made in what [`Self::create`] gives, or if it or one of them holds a run.
    /// Changes nothing.
    pub(crate) fn check(
        named: Option<&Path>,
        time: &str,
        runs: impl Iterator<Item = PathBuf>,
    ) -> Result<(), Failure> {
        match named {
            Some(path) => check_runs_folder(path, runs),
            // The folder is a new one, and goes at once.
            None => SeriesFolder::create(time).map(drop),
        }
        .map_err(failure)
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Named(path) => path,
            Self::New(folder) => folder.path(),
        }
    }
}

fn samples_in(files: &mut RunFiles, of: SamplesOf) -> Result<SampleFile, Failure> {
    let file = files.add(SAMPLES).map_err(failure)?;
    SampleFile::begin(file, of).map_err(|e| failure(RunFolderError::File(SAMPLES.into(), e)))
}

pub(crate) fn failure(error: RunFolderError) -> Failure {
    match error {
        RunFolderError::HoldsRun(path) => {
            Failure::new(format!("{} already holds a run", path.display()))
                .try_this("name another folder: --out DIR")
        }
        RunFolderError::HoldsRuns(path) => {
            Failure::new(format!("{} already holds folders with runs", path.display()))
                .because("it would be shown without these")
                .try_this(format!("name a folder in it: --out {}", path.join("NAME").display()))
        }
        RunFolderError::HoldsWatch(path) => {
            Failure::new(format!("{} already holds the windows of a watch", path.display()))
                .because("it would be shown without these")
                .try_this("name another folder: --out DIR")
        }
        RunFolderError::InUse(path) => Failure::new(format!("{} already exists", path.display()))
            .because("another run is writing to this folder, or a killed run left it")
            .try_this("name another folder: --out DIR"),
        RunFolderError::TooMany(runs) => {
            Failure::new(format!("{runs} runs started in this second"))
                .try_this("name one: --out DIR")
        }
        RunFolderError::Folder(path, e) if is_refused(&e) => {
            Failure::new(format!("cannot use the run's folder {}: {e}", path.display())).try_this(
                "name a new folder, or one that you or root own and that others cannot write to: \
                 --out DIR",
            )
        }
        RunFolderError::Folder(path, e) => {
            Failure::new(format!("cannot create the run's folder {}: {e}", path.display()))
                .try_this("name a folder that you can write to: --out DIR")
        }
        RunFolderError::File(path, e) if is_refused(&e) => {
            Failure::new(format!("cannot write {}: {e}", path.display()))
                .because("wakescope neither follows nor replaces it")
                .try_this("remove it, or name another folder: --out DIR")
        }
        RunFolderError::File(path, e) => cannot_write(&path, &e).try_this(match lacks_room(&e) {
            true => "name a folder on a file system with room: --out DIR",
            false => "name another folder: --out DIR",
        }),
    }
}

/// Whether there was no room: on the disk, or within what this user or a file may have.
fn lacks_room(e: &io::Error) -> bool {
    is_full(e) || e.kind() == io::ErrorKind::FileTooLarge
}

/// Whether it was not the kernel that refused, but the rules of what is safe to write.
fn is_refused(e: &io::Error) -> bool {
    e.get_ref().is_some_and(|inner| inner.is::<wakescope_store::Refused>())
}

fn cannot_write(path: &Path, e: &io::Error) -> Failure {
    Failure::new(format!("cannot write {}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use io::ErrorKind::{FileTooLarge, NotFound, PermissionDenied, QuotaExceeded, StorageFull};

    use super::*;

    #[test]
    fn what_is_left_of_a_run_and_what_helps_depends_on_the_error() {
        const NOTHING: &str = "the record in the folder has no wakeup";
        const FIRST: &str = "the record in the folder has the first 2.00 s of the run";
        const REMOVED: &str = "the run's folder was removed while it was measured";
        const ROOM: &str = "make room and measure again, or name another folder: --out DIR";
        const STAYS: &str = "measure again into a folder that stays: --out DIR";
        const OTHER: &str = "measure again, and name another folder: --out DIR";
        for (kind, stored, because, remedy) in [
            (StorageFull, None, NOTHING, ROOM),
            (StorageFull, Some(SpanNs(2_000_000_000)), FIRST, ROOM),
            (QuotaExceeded, None, NOTHING, ROOM),
            (FileTooLarge, None, NOTHING, ROOM),
            (NotFound, None, REMOVED, STAYS),
            (NotFound, Some(SpanNs(2_000_000_000)), REMOVED, STAYS),
            (PermissionDenied, None, NOTHING, OTHER),
            (PermissionDenied, Some(SpanNs(2_000_000_000)), FIRST, OTHER),
        ] {
            let cause = io::Error::from(kind);
            let told = unfinished(Path::new("run/run.json"), &cause, stored).to_string();
            let want =
                format!("wakescope: cannot write run/run.json: {cause}\n  {because}\n  → {remedy}");
            assert_eq!(told, want);
        }
    }

    #[test]
    fn a_file_that_cannot_be_made_needs_room_only_if_there_is_none() {
        for (kind, has_room) in [(StorageFull, false), (PermissionDenied, true), (NotFound, true)] {
            let told = failure(RunFolderError::File("run.json".into(), kind.into())).to_string();
            assert_eq!(told.contains("with room"), !has_room, "{told}");
            assert!(told.contains("--out DIR"), "{told}");
        }
    }
}
