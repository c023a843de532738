//! The load `fs`: works on files with holes: writes far beyond their ends, truncates and extends them,
//! reads the holes, and removes the files. After FS of the stress-kernel package.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::budget::Budget;
use super::desk::{Desk, fault};
use super::kinds::Job;
use super::random::Random;

/// The number of files.
const FILES: u64 = 64;

/// What is written or read at a time.
const BLOCK: usize = 4096;

/// What the content of all files takes up at most where there is room.
const MOST: u64 = 32 << 20;

/// The longest file, most of which is holes. Ten times what its content may take up.
const LONGEST: u64 = 5 << 20;

/// Fewer blocks to each file would leave nothing between the holes.
const FEWEST_BLOCKS: u64 = 4;

/// Works on files in the current directory, which is called `dir`, until the desk says stop.
pub(super) fn run(job: &Job<'_>) -> Result<(), String> {
    let &Job { dir, seed, desk, .. } = job;
    let budget = Budget::here(dir)?;
    let files = FILES.min(budget.files);
    let blocks = budget.bytes.min(MOST) / BLOCK as u64 / files.max(1);
    if files < FILES || blocks < FEWEST_BLOCKS {
        return Err(format!(
            "{dir} has space for only {} files and {} kB; fs needs {FILES} and {} kB (it uses a quarter \
             of the free space, and an eighth of memory where files are in memory)",
            budget.files,
            budget.bytes / 1000,
            FILES * FEWEST_BLOCKS * BLOCK as u64 / 1000 + 1
        ));
    }
    let mut random = Random::new(seed);
    let mut files: Vec<Sparse> = (0..FILES).map(|n| Sparse::new(n, blocks)).collect();
    desk.ready();
    while !desk.stopping() {
        let file = &mut files[usize::try_from(random.below(FILES)).unwrap_or(0)];
        file.work(&mut random, desk)
            .map_err(|(what, e)| format!("{}, in {dir}", fault(what, &file.path, &e)))?;
    }
    Ok(())
}

/// A file with holes.
struct Sparse {
    path: PathBuf,
    /// How many blocks may be written before it is removed.
    most: u64,
    written: u64,
}

/// What could not be done, and why.
type Fault = (&'static str, io::Error);

impl Sparse {
    fn new(number: u64, most: u64) -> Self {
        Self { path: Path::new(".").join(format!("sparse-{number}")), most, written: 0 }
    }

    /// A few things that are done to such files, in a random order.
    fn work(&mut self, random: &mut Random, desk: &Desk) -> Result<(), Fault> {
        if self.written >= self.most {
            self.written = 0;
            fs::remove_file(&self.path).map_err(|e| ("remove", e))?;
            desk.done(1);
        }
        let open =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&self.path);
        let file = open.map_err(|e| ("open", e))?;
        desk.done(1);
        for _ in 0..8 {
            if desk.stopping() {
                break;
            }
            self.step(&file, random)?;
            desk.done(1);
        }
        Ok(())
    }

    fn step(&mut self, file: &File, random: &mut Random) -> Result<(), Fault> {
        let at = random.below(LONGEST - BLOCK as u64);
        let mut block = [0; BLOCK];
        match random.below(4) {
            // Shorter or longer: what is beyond the new end is freed, or a hole is made.
            0 => return file.set_len(at).map_err(|e| ("truncate", e)),
            1 => return file.read_at(&mut block, at).map(drop).map_err(|e| ("read", e)),
            _ => {}
        }
        // One that is not at a multiple takes up two.
        if self.written + 2 <= self.most {
            self.written += 2;
            random.fill(&mut block[..64]);
            file.write_all_at(&block, at).map_err(|e| ("write", e))?;
        } else {
            self.written = self.most;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::load::desk::test_desk;

    #[test]
    fn files_have_holes_and_take_up_no_more_than_they_may() {
        let dir = wakescope_testing::Folder::new("fs");
        const MOST_BLOCKS: u64 = 20;
        let mut file = Sparse { path: dir.join("file"), ..Sparse::new(0, MOST_BLOCKS) };
        let (mut random, desk) = (Random::new(1), test_desk());
        let mut longest = 0;
        for _ in 0..300 {
            file.work(&mut random, &desk).unwrap();
            let about = fs::metadata(&file.path).unwrap();
            // 512 bytes each, and the file system's own for the list of blocks.
            let used = about.blocks() * 512;
            assert!(used <= (MOST_BLOCKS + 8) * BLOCK as u64, "{used} bytes");
            longest = about.len().max(longest);
        }
        assert!(longest > LONGEST / 2 && longest <= LONGEST, "{longest}");
        assert!(desk.work() >= 300 * 9);
    }
}
