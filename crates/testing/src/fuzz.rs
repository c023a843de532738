//! Readers of files that anybody may have written, given damaged copies of real ones.
//!
//! `FUZZ_CASES` sets how many copies each reader gets, `FUZZ_SEED` which ones. Without it they are the
//! same in each run, so that a test that passes today does not fail tomorrow; `make fuzz` takes new
//! ones each time.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::{env, fs};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use crate::damage::damage;

/// The most memory that a reader may take at once for a file of less than 1 MB.
const MEMORY_BYTES: u64 = 300_000_000;

/// The most CPU time for such a file, in a build that is optimised.
const CPU_NS: u64 = 5_000_000_000;

/// Builds for tests are not: their readers take about this many times as long.
const UNOPTIMISED: u64 = if cfg!(debug_assertions) { 10 } else { 1 };

/// Gives `read` damaged copies of `seeds` and any bytes at all. It may refuse them; it fails the test
/// by a panic, or if one copy takes more than 300 MB or 5 s of CPU time.
///
/// The smallest copy that fails is stored below the folder for temporary files.
#[track_caller]
pub fn fuzz(name: &str, seeds: &[Vec<u8>], read: impl Fn(&[u8])) {
    fuzz_fewer(name, 1, seeds, read);
}

/// The same with one in so many copies, for a reader that takes long.
#[track_caller]
pub fn fuzz_fewer(name: &str, one_in: u32, seeds: &[Vec<u8>], read: impl Fn(&[u8])) {
    let seed = number("FUZZ_SEED").unwrap_or(1);
    let cases = number("FUZZ_CASES").unwrap_or(1_500) / one_in;
    let config =
        Config { cases, failure_persistence: None, max_shrink_iters: 2_000, ..Config::default() };
    let mut bytes = [0; 32];
    bytes[..4].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let damaged = (select(seeds.to_vec()), vec(damage(), 1..6)).prop_map(|(mut bytes, damages)| {
        damages.iter().for_each(|damage| damage.apply(&mut bytes));
        bytes
    });
    let input = prop_oneof![15 => damaged, 1 => vec(any::<u8>(), 0..400)];
    let result = TestRunner::new_with_rng(config, rng).run(&input, |bytes| check(&bytes, &read));
    if let Err(TestError::Fail(why, bytes)) = &result {
        let file = env::temp_dir().join(format!("wakescope-fuzz-{name}-{seed}"));
        let stored = fs::write(&file, bytes).map_or_else(|e| e.to_string(), |()| "stored".into());
        panic!("{name}: {why}\nFUZZ_SEED={seed}; the file: {} ({stored})", file.display());
    }
    result.unwrap();
}

fn check(bytes: &[u8], read: &impl Fn(&[u8])) -> Result<(), TestCaseError> {
    let (mut ended, mut taken_ns) = (Ok(()), 0);
    // A panic may not leave the measurement: it would count on, one level deeper each time.
    let memory = allocation_counter::measure(|| {
        let before = cpu_ns();
        ended = catch_unwind(AssertUnwindSafe(|| read(bytes)));
        taken_ns = cpu_ns().saturating_sub(before);
    });
    ended.unwrap_or_else(|panic| resume_unwind(panic));
    prop_assert!(memory.bytes_max <= MEMORY_BYTES, "took {} bytes of memory", memory.bytes_max);
    let limit_ns = CPU_NS * UNOPTIMISED;
    prop_assert!(taken_ns <= limit_ns, "took {} ns of CPU time", taken_ns);
    Ok(())
}

/// The CPU time of this thread; always 0 where the kernel does not count it.
fn cpu_ns() -> u64 {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

fn number(name: &str) -> Option<u32> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is no whole number: {text}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn failure(
        test: &str,
        read: impl Fn(&[u8]) + std::panic::UnwindSafe + std::panic::RefUnwindSafe,
    ) -> String {
        let seeds = [b"count: 17\nmax: 23\n".to_vec()];
        let run = || fuzz(test, &seeds, read);
        let why = *catch_unwind(AssertUnwindSafe(run)).unwrap_err().downcast::<String>().unwrap();
        let (_, file) = why.rsplit_once("the file: ").unwrap();
        fs::remove_file(file.strip_suffix(" (stored)").unwrap()).unwrap();
        why
    }

    #[test]
    fn a_reader_that_panics_fails() {
        let why =
            failure("panics", |bytes| assert!(!bytes.windows(7).any(|part| part == b"1000000")));
        assert!(why.contains("assertion failed") && why.contains("FUZZ_SEED=1"), "{why}");
    }

    #[test]
    fn a_reader_that_takes_too_much_memory_fails() {
        let hungry = |bytes: &[u8]| {
            if bytes.windows(10).any(|part| part == b"4294967296") {
                std::hint::black_box(Vec::<u8>::with_capacity(1 << 30));
            }
        };
        let why = failure("hungry", hungry);
        assert!(why.contains("took 1073741824 bytes"), "{why}");
    }
}
