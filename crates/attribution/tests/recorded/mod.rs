//! The stored episodes of this crate, as tests read them.

use std::fs;
use std::path::{Path, PathBuf};

use wakescope_core::episodes::{Attributed, Head, read};

/// A file with its episodes, each with its head.
pub(crate) struct Recorded {
    pub(crate) path: PathBuf,
    pub(crate) episodes: Vec<(Head, Attributed)>,
}

impl Recorded {
    #[track_caller]
    fn read(path: PathBuf) -> Self {
        let mut episodes = Vec::new();
        let ended = read(&fs::read(&path).unwrap()[..], |number, line| {
            let (head, episode) =
                line.unwrap_or_else(|e| panic!("{}, line {number}: {e}", path.display()));
            episodes.push((head.clone(), episode));
            Ok::<(), ()>(())
        });
        ended.unwrap().unwrap();
        Self { path, episodes }
    }

    pub(crate) fn name(&self) -> String {
        self.path.file_name().unwrap().to_string_lossy().into_owned()
    }
}

/// All of them, in the order of their names.
pub(crate) fn corpus() -> Vec<Recorded> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "jsonl"));
    paths.sort();
    paths.into_iter().map(Recorded::read).collect()
}
