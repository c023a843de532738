//! What the programs say was stolen of a wakeup, in the kernel, by a clock that the test sets.

use std::os::fd::AsFd;

use aya::maps::Map;
use aya::programs::{ProgramFd, RawTracePoint};
use aya::{Ebpf, EbpfLoader};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use wakescope_sys::bpf::run_once;
use wakescope_sys::shared::Words;
use wakescope_testing::skip;

use compiled::compiled;

mod compiled;

/// Events that there is room for before a wakeup, and how many of them are looked at.
const BEFORE: usize = 12;
const LOOK_BACK: usize = 8;

struct Follower {
    follow: ProgramFd,
    words: Words,
    // Its maps live as long as this.
    _programs: Ebpf,
}

impl Follower {
    fn load() -> Result<Self, String> {
        let mut loader = EbpfLoader::new();
        // At the run queue itself, and known.
        loader.set_global("steal_time_place", &[0_i64, 1], true);
        let mut programs = loader.load(&compiled("steal", &[])).map_err(|e| e.to_string())?;
        let program: &mut RawTracePoint =
            programs.program_mut("follow").unwrap().try_into().unwrap();
        program.load().map_err(|e| e.to_string())?;
        let follow = program.fd().unwrap().try_clone().unwrap();
        let words = match programs.map("words") {
            Some(Map::Array(data)) => Words::map(data.fd().as_fd(), 2 * BEFORE + 9).unwrap(),
            other => panic!("{other:?}"),
        };
        Ok(Self { follow, words, _programs: programs })
    }

    /// What is stolen of a wakeup that was due then. Each point has a time and a reading: `before` it
    /// began, and when it began, was switched to and was answered.
    fn stolen(&self, before: &[(u64, u64)], due: u64, points: [(u64, u64); 3]) -> u64 {
        let mut all = vec![before.len() as u64];
        all.extend(before.iter().flat_map(|&(at, steal)| [at, steal]));
        all.resize(1 + 2 * BEFORE, 0);
        all.push(due);
        all.extend(points.iter().flat_map(|&(at, steal)| [at, steal]));
        all.iter().enumerate().for_each(|(at, &word)| self.words.store(at, word));
        assert_eq!(run_once(self.follow.as_fd(), &[0]).unwrap(), 0);
        self.words.load(2 * BEFORE + 8)
    }
}

fn follower(test: &str) -> Option<Follower> {
    Follower::load().map_err(|why| skip(test, &why)).ok()
}

#[test]
fn only_what_fits_between_two_readings_was_stolen() {
    let Some(follower) = follower("only_what_fits_between_two_readings_was_stolen") else { return };
    let check = |before: &[(u64, u64)], points: [(u64, u64); 3], want: u64| {
        assert_eq!(follower.stolen(before, 1_000, points), want, "{before:?} {points:?}");
    };
    // Nothing was; before the interrupt; before the switch; after it.
    check(&[(900, 50), (1_100, 50)], [(1_110, 50), (1_200, 50), (1_210, 50)], 0);
    check(&[(900, 50), (1_100, 120)], [(1_110, 120), (1_200, 120), (1_210, 120)], 70);
    check(&[(900, 50), (1_100, 50)], [(1_110, 50), (1_200, 110), (1_210, 110)], 60);
    check(&[(900, 50), (1_100, 50)], [(1_110, 50), (1_200, 50), (1_210, 55)], 5);
    // Before it was due, and after its response, the CPU may have been stopped for long.
    check(&[(900, 50), (1_003, 5_050)], [(1_010, 5_050), (1_200, 5_050), (1_210, 5_050)], 3);
    check(&[(900, 50), (1_003, 50)], [(1_010, 50), (1_200, 50), (1_210, 5_050)], 10);
    // Several interrupts came while it was due.
    check(
        &[(900, 50), (1_100, 90), (1_300, 190), (1_500, 190)],
        [(1_510, 190), (1_600, 190), (1_610, 190)],
        140,
    );
    // Without a reading from before there is no knowing; nor without a clock.
    check(&[(1_100, 90)], [(1_110, 90), (1_200, 95), (1_210, 95)], 5);
    check(&[], [(1_110, 90), (1_200, 95), (1_210, 95)], 5);
    check(&[(900, 0), (1_100, 0)], [(1_110, 0), (1_200, 0), (1_210, 0)], 0);
}

/// A CPU that is stopped now and then: it tells what was stolen up to a time, and between two.
struct Stops(Vec<(u64, u64)>);

impl Stops {
    fn between(&self, from: u64, to: u64) -> u64 {
        let overlap = |&(begin, end): &(u64, u64)| end.min(to).saturating_sub(begin.max(from));
        self.0.iter().map(overlap).sum()
    }

    fn reading(&self, at: u64) -> (u64, u64) {
        // Since the machine started, it was stopped before as well.
        (at, 7 + self.between(0, at))
    }
}

#[test]
fn what_was_stolen_is_found_where_readings_tell() {
    const SEED: u8 = 17;
    let Some(follower) = follower("what_was_stolen_is_found_where_readings_tell") else { return };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[SEED; 32]);
    let mut runner = TestRunner::new_with_rng(Config::with_cases(400), rng);
    let drawn = (
        prop::collection::vec((1_u64..300, 1_u64..300), 1..20),
        prop::collection::btree_set(1_u64..4_000, 0..BEFORE),
        1_u64..4_000,
        [1_u64..400, 1_u64..400, 1_u64..400],
    );
    let ran = runner.run(&drawn, |(stops, events, due, waits)| {
        let mut at = 0;
        let stops = stops.into_iter().map(|(runs, stops)| {
            let begin = at + runs;
            at = begin + stops;
            (begin, at)
        });
        let stops = Stops(stops.collect());
        let last = events.last().copied().unwrap_or(0).max(due);
        let begin = last + waits[0];
        let points = [begin, begin + waits[1], begin + waits[1] + waits[2]];
        let before: Vec<(u64, u64)> = events.iter().map(|&at| stops.reading(at)).collect();
        let got = follower.stolen(&before, due, points.map(|at| stops.reading(at)));
        let response = points[2];
        prop_assert!(got <= response - due);
        let since = events.iter().filter(|&&at| at >= due).count();
        let seen_before = events.iter().rfind(|&&at| at < due);
        let first = events.iter().find(|&&at| at >= due).copied().unwrap_or(begin);
        match seen_before.filter(|_| since < LOOK_BACK) {
            Some(&seen) => {
                // What was stolen just before it was due may count, as far as it fits.
                let least = stops.between(due, response);
                let most =
                    stops.between(first, response) + stops.between(seen, first).min(first - due);
                prop_assert_eq!(got, most);
                prop_assert!(got >= least);
            }
            // No more than is certain.
            None => prop_assert!(got <= stops.between(due, response)),
        }
        Ok(())
    });
    ran.unwrap_or_else(|why| panic!("seed {SEED}: {why}"));
}
