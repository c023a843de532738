//! The load `memory`: maps memory, touches each page of it, and unmaps it again. Where it can be in a
//! cgroup of its own, it also has the kernel reclaim memory.

mod own_cgroup;

use wakescope_sys::memory::Mapping;

use super::budget::available_memory;
use super::crew::{allowed_cpus, work_together};
use super::desk::Desk;
use super::kinds::Job;
use super::random::Random;
use own_cgroup::OwnCgroup;

/// The smallest page of the machines that Linux runs on. Where pages are larger, each is counted
/// several times.
const PAGE: usize = 4096;

/// Pages that are touched between two looks whether to stop: a fraction of a millisecond.
const CHUNK: usize = 64;

/// A large mapping where there is room.
const LARGE: usize = 64 << 20;

/// Below this no mapping is large.
const SMALLEST_LARGE: usize = 1 << 20;

/// Below this, small mappings are so much of all that too little is left to reclaim.
const SMALLEST_RECLAIMED: usize = 32 << 20;

/// A small mapping, and how many of them are there at once.
const SMALL: usize = 16 * PAGE;
const SMALL_ONES: usize = 64;

/// Maps and unmaps on every allowed CPU until the desk says stop. All threads together use at most an
/// eighth of the memory that can be had. What can be reclaimed is left out where that is not possible.
pub(super) fn run(job: &Job<'_>) -> Result<(), String> {
    let &Job { seed, desk, .. } = job;
    let cpus = allowed_cpus()?;
    let part = usize::try_from(available_memory() / 8).unwrap_or(usize::MAX) / cpus.len().max(1);
    let large = part.min(LARGE) / SMALLEST_LARGE * SMALLEST_LARGE;
    if large < SMALLEST_LARGE.max(SMALL * SMALL_ONES) {
        return Err(format!(
            "an eighth of the available memory is {} kB for each CPU; memory needs {} kB",
            part / 1000,
            SMALL * SMALL_ONES / 1000
        ));
    }
    let group = if large < SMALLEST_RECLAIMED {
        Err(format!("it needs {} kB for each CPU", SMALLEST_RECLAIMED / 1000))
    } else {
        // More than all threads have at once without what they have given back: where the kernel finds
        // nothing to take, it lets a process sleep instead.
        OwnCgroup::enter((large * cpus.len()) as u64 / 4 * 3)
    };
    if let Err(reason) = &group {
        desk.omit("reclaim", reason);
    }
    let (members, reclaims) = ((0..cpus.len() as u64).collect(), group.is_ok());
    work_together("load-memory", members, desk, |rank, crew| {
        let mut random = Random::new(seed.wrapping_add(rank));
        let mut worker = Worker { large, reclaims, given_back: None };
        crew.ready();
        while !crew.stopping() {
            worker.round(&mut random, desk).map_err(|e| format!("cannot map memory: {e}"))?;
        }
        Ok(())
    })
    .map(drop)
}

/// What one thread does.
struct Worker {
    /// How much it has mapped at most, beside small mappings.
    large: usize,
    /// Whether there is a limit at which the kernel takes back what was given back.
    reclaims: bool,
    given_back: Option<Mapping>,
}

impl Worker {
    /// A large mapping, with or without huge pages, and then many small ones.
    fn round(&mut self, random: &mut Random, desk: &Desk) -> std::io::Result<()> {
        let mut mapping = Mapping::new(if self.reclaims { self.large / 2 } else { self.large })?;
        if random.below(2) == 0 {
            // Kernels without huge pages do not know the request.
            let _ = mapping.no_huge_pages();
        }
        touch(&mut mapping, desk);
        if self.reclaims {
            // It stays until the next one is touched: there is then more than the limit, and the kernel
            // has to look for what it may take. That needs neither swap nor a disk.
            mapping.free_lazily()?;
            self.given_back = Some(mapping);
        } else {
            drop(mapping);
        }
        let mut small = Vec::with_capacity(SMALL_ONES);
        while small.len() < SMALL_ONES && !desk.stopping() {
            let mut mapping = Mapping::new(SMALL)?;
            touch(&mut mapping, desk);
            small.push(mapping);
        }
        Ok(())
    }
}

/// Touches each page, which has the kernel find memory for it.
fn touch(mapping: &mut Mapping, desk: &Desk) {
    for chunk in mapping.chunks_mut(CHUNK * PAGE) {
        if desk.stopping() {
            return;
        }
        for page in chunk.chunks_mut(PAGE) {
            page[0] = 1;
        }
        desk.done(chunk.len().div_ceil(PAGE) as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::desk::test_desk;

    #[test]
    fn each_page_counts() {
        let (mut random, desk) = (Random::new(1), test_desk());
        let pages = |bytes: usize| (bytes / PAGE) as u64;
        for (reclaims, size) in [(false, SMALLEST_LARGE), (true, SMALLEST_LARGE / 2)] {
            let mut worker = Worker { large: SMALLEST_LARGE, reclaims, given_back: None };
            for _ in 0..3 {
                let before = desk.work();
                worker.round(&mut random, &desk).unwrap();
                assert_eq!(desk.work() - before, pages(size) + 64 * pages(SMALL));
                assert_eq!(worker.given_back.is_some(), reclaims);
            }
        }
        let mut mapping = Mapping::new(3 * PAGE).unwrap();
        touch(&mut mapping, &desk);
        assert!((0..3).all(|page| mapping[page * PAGE] == 1 && mapping[page * PAGE + 1] == 0));
    }
}
