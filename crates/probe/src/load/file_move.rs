//! The load `file-move`: copies two large files over a third alternately, as cp(1) does.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use super::budget::Budget;
use super::desk::{Desk, fault};
use super::kinds::Job;
use super::random::Random;

/// What cp(1) of coreutils reads and writes at a time.
const BUFFER: usize = 128 << 10;

/// One part; the large file has four, the small one has one, and the target grows to four.
const LARGEST_PART: u64 = 16 << 20;
const PARTS: [u64; 2] = [4, 1];
const PARTS_IN_ALL: u64 = 9;

/// Below this, a copy is over after one buffer, and nothing about it is large.
const SMALLEST_PART: u64 = BUFFER as u64;

/// Makes the files in the current directory, which is called `dir`, and copies until the desk says
/// stop.
pub(super) fn run(job: &Job<'_>) -> Result<(), String> {
    let &Job { dir, seed, desk, .. } = job;
    let here = Path::new(".");
    let budget = Budget::here(dir)?;
    let part = part_for(budget.bytes)
        .ok_or_else(|| budget.too_small(dir, "file-move", SMALLEST_PART * PARTS_IN_ALL))?;
    let placed = |fault| format!("{fault}, in {dir}");
    let mut buffer = vec![0; BUFFER];
    let mut random = Random::new(seed);
    let sources = ["large", "small"].map(|name| here.join(name));
    for (path, parts) in sources.iter().zip(PARTS) {
        fill(path, part * parts, &mut random, &mut buffer, desk).map_err(placed)?;
    }
    let target = here.join("target");
    File::create_new(&target).map_err(|e| placed(fault("make", &target, &e)))?;
    desk.ready();
    for source in sources.iter().cycle() {
        if desk.stopping() {
            break;
        }
        copy(source, &target, &mut buffer, desk).map_err(placed)?;
    }
    Ok(())
}

/// The size of a part, whole buffers, for a budget; `None` if it is too small for any.
fn part_for(bytes: u64) -> Option<u64> {
    let part = (bytes / PARTS_IN_ALL).min(LARGEST_PART) / SMALLEST_PART * SMALLEST_PART;
    (part > 0).then_some(part)
}

fn fill(
    path: &PathBuf,
    size: u64,
    random: &mut Random,
    buffer: &mut [u8],
    desk: &Desk,
) -> Result<(), String> {
    let mut file = File::create_new(path).map_err(|e| fault("make", path, &e))?;
    for _ in 0..size / SMALLEST_PART {
        if desk.stopping() {
            break;
        }
        random.fill(buffer);
        file.write_all(buffer).map_err(|e| fault("write", path, &e))?;
    }
    Ok(())
}

/// Copies by read and write. Not by `copy_file_range`, which file systems may answer by sharing
/// blocks: then nothing is moved.
fn copy(source: &Path, target: &Path, buffer: &mut [u8], desk: &Desk) -> Result<(), String> {
    let mut from = File::open(source).map_err(|e| fault("read", source, &e))?;
    // As cp opens a target that exists: what was in it is freed at once.
    let to = OpenOptions::new().write(true).truncate(true).open(target);
    let mut to = to.map_err(|e| fault("write", target, &e))?;
    while !desk.stopping() {
        let read = from.read(buffer).map_err(|e| fault("read", source, &e))?;
        if read == 0 {
            break;
        }
        to.write_all(&buffer[..read]).map_err(|e| fault("write", target, &e))?;
        desk.done(read as u64);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::load::desk::test_desk;

    #[test]
    fn sizes_follow_the_budget() {
        const MIB: u64 = 1 << 20;
        for (bytes, want) in [
            (0, None),
            (9 * SMALLEST_PART - 1, None),
            (9 * SMALLEST_PART, Some(SMALLEST_PART)),
            (18 * SMALLEST_PART - 1, Some(SMALLEST_PART)),
            (9 * MIB, Some(MIB)),
            (u64::MAX, Some(16 * MIB)),
        ] {
            assert_eq!(part_for(bytes), want, "{bytes}");
        }
    }

    #[test]
    fn copies_are_whole_and_counted() {
        let dir = wakescope_testing::Folder::new("file-move");
        let desk = test_desk();
        let mut buffer = vec![0; BUFFER];
        let mut random = Random::new(1);
        let [large, small, target] = ["large", "small", "target"].map(|name| dir.join(name));
        fill(&large, 4 * SMALLEST_PART, &mut random, &mut buffer, &desk).unwrap();
        fill(&small, SMALLEST_PART, &mut random, &mut buffer, &desk).unwrap();
        assert!(copy(&large, &target, &mut buffer, &desk).unwrap_err().contains("No such file"));
        fs::write(&target, "").unwrap();
        for source in [&large, &small, &large] {
            copy(source, &target, &mut buffer, &desk).unwrap();
            assert!(fs::read(&target).unwrap() == fs::read(source).unwrap(), "not a copy");
        }
        assert_eq!(desk.work(), 9 * SMALLEST_PART);
    }
}
