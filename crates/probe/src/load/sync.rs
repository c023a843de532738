//! The load `sync`: writes to a file and waits until the disk has it, again and again.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::budget::Budget;
use super::desk::{Desk, fault};
use super::kinds::Job;
use super::random::Random;

/// What is written between two waits.
const BLOCK: usize = 4096;

/// Blocks of the file.
const BLOCKS: u64 = 256;

/// Works on a file in the current directory, which is called `dir`, until the desk says stop. Only
/// this file is waited for, not what others have written.
pub(super) fn run(job: &Job<'_>) -> Result<(), String> {
    let &Job { dir, seed, desk, .. } = job;
    let path = Path::new("./file");
    let budget = Budget::here(dir)?;
    if budget.bytes < BLOCKS * BLOCK as u64 || budget.files < 1 {
        return Err(budget.too_small(dir, "sync", BLOCKS * BLOCK as u64));
    }
    let placed = |e| format!("{}, in {dir}", fault("write", path, &e));
    let file = OpenOptions::new().write(true).create_new(true).open(path).map_err(placed)?;
    let mut random = Random::new(seed);
    desk.ready();
    while !desk.stopping() {
        grow_and_sync(&file, &mut random, desk).map_err(placed)?;
    }
    Ok(())
}

/// Lets the file grow from nothing, block by block, and then writes over it at random. Waits after
/// each block: every other time for the content only, as fdatasync(2), else also for the metadata.
fn grow_and_sync(file: &File, random: &mut Random, desk: &Desk) -> std::io::Result<()> {
    let mut content = [0; BLOCK];
    file.set_len(0)?;
    for n in 0..2 * BLOCKS {
        if desk.stopping() {
            break;
        }
        let block = if n < BLOCKS { n } else { random.below(BLOCKS) };
        random.fill(&mut content[..64]);
        file.write_all_at(&content, block * BLOCK as u64)?;
        if n % 2 == 0 { file.sync_data() } else { file.sync_all() }?;
        desk.done(1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::desk::test_desk;

    #[test]
    fn each_wait_counts_and_the_file_has_its_size() {
        let folder = wakescope_testing::Folder::new("sync");
        let file = File::create(folder.join("file")).unwrap();
        let (mut random, desk) = (Random::new(1), test_desk());
        for round in 1..=2 {
            grow_and_sync(&file, &mut random, &desk).unwrap();
            assert_eq!(desk.work(), round * 2 * BLOCKS);
            assert_eq!(file.metadata().unwrap().len(), BLOCKS * BLOCK as u64);
        }
    }
}
