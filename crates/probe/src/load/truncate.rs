//! The load `truncate`: lets a file grow and cuts it short, again and again.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::budget::Budget;
use super::desk::{Desk, fault};
use super::kinds::Job;
use super::random::Random;

/// What is written at a time.
const BLOCK: usize = 64 << 10;

/// The size that the file grows to where there is room.
const LARGEST: u64 = 4 << 20;

/// Works on a file in the current directory, which is called `dir`, until the desk says stop.
pub(super) fn run(job: &Job<'_>) -> Result<(), String> {
    let &Job { dir, seed, desk, .. } = job;
    let path = Path::new("./file");
    let budget = Budget::here(dir)?;
    let blocks = budget.bytes.min(LARGEST) / BLOCK as u64;
    if blocks < 2 || budget.files < 1 {
        return Err(budget.too_small(dir, "truncate", 2 * BLOCK as u64));
    }
    let mut content = vec![0; BLOCK];
    Random::new(seed).fill(&mut content);
    let open = OpenOptions::new().write(true).create_new(true).open(path);
    let file = open.map_err(|e| format!("{}, in {dir}", fault("make", path, &e)))?;
    desk.ready();
    while !desk.stopping() {
        grow_and_cut(&file, &content, blocks, desk)
            .map_err(|e| format!("{}, in {dir}", fault("change", path, &e)))?;
    }
    Ok(())
}

/// Lets the file grow by writing to it, cuts it in halves until nothing is left, and then makes it as
/// long again without content.
fn grow_and_cut(file: &File, content: &[u8], blocks: u64, desk: &Desk) -> std::io::Result<()> {
    let block = content.len() as u64;
    for n in 0..blocks {
        if desk.stopping() {
            return Ok(());
        }
        file.write_all_at(content, n * block)?;
        // Growth is work, too, so that the load keeps its pace; cuts are what it counts.
        desk.done(0);
    }
    let mut length = blocks * block;
    while length > 0 {
        length /= 2;
        file.set_len(length)?;
        desk.done(1);
    }
    file.set_len(blocks * block)?;
    file.set_len(0)?;
    desk.done(2);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::desk::test_desk;

    #[test]
    fn each_change_of_the_length_counts() {
        let folder = wakescope_testing::Folder::new("truncate");
        let file = File::create(folder.join("file")).unwrap();
        let desk = test_desk();
        // 4,096, 2,048, …, 1 and 0.
        grow_and_cut(&file, &[1; 4096], 2, &desk).unwrap();
        assert_eq!((desk.work(), file.metadata().unwrap().len()), (14 + 2, 0));
    }
}
