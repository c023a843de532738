//! Callers that claim the same words at once, in the kernel.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{hint, io, thread};

use aya::maps::Map;
use aya::programs::{ProgramFd, RawTracePoint};
use aya::{Ebpf, EbpfLoader};
use wakescope_sys::bpf::run_once;
use wakescope_sys::shared::Words;
use wakescope_testing::skip;

use compiled::compiled;

mod compiled;

/// Words in the program.
const WORDS: usize = 1024;

/// Callers at once, and how often they try.
const CALLERS: u32 = 3;
const ROUNDS: u64 = 300;

fn program(programs: &mut Ebpf, name: &str) -> Result<ProgramFd, String> {
    let program: &mut RawTracePoint = programs.program_mut(name).unwrap().try_into().unwrap();
    program.load().map_err(|e| e.to_string())?;
    Ok(program.fd().unwrap().try_clone().unwrap())
}

fn words(programs: &Ebpf) -> Words {
    match programs.map("words") {
        Some(Map::Array(data)) => Words::map(data.fd().as_fd(), 3 * WORDS + 1).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// What each caller does: all begin at once, as far as the machine has CPUs for them.
fn call(claim: BorrowedFd<'_>, waiting: &AtomicU32) -> io::Result<u32> {
    waiting.fetch_sub(1, Ordering::AcqRel);
    while waiting.load(Ordering::Acquire) > 0 {
        hint::spin_loop();
        thread::yield_now();
    }
    run_once(claim, &[0])
}

#[test]
fn of_callers_at_once_one_claims_or_none() {
    const NAME: &str = "of_callers_at_once_one_claims_or_none";
    let mut programs = match EbpfLoader::new().load(&compiled("claim", &[])) {
        Ok(programs) => programs,
        Err(why) => return skip(NAME, &why.to_string()),
    };
    let (make, claim) = match (program(&mut programs, "make"), program(&mut programs, "claim_each"))
    {
        (Ok(make), Ok(claim)) => (make, claim),
        (Err(why), _) | (_, Err(why)) => return skip(NAME, &why),
    };
    let words = words(&programs);
    let of_word = |word: usize| (words.load(WORDS + word), words.load(2 * WORDS + word));
    let mut before = vec![(0, 0); WORDS];
    for round in 1..=ROUNDS {
        if let Err(why) = run_once(make.as_fd(), &[0]) {
            return skip(NAME, &why.to_string());
        }
        let waiting = AtomicU32::new(CALLERS);
        thread::scope(|scope| {
            for _ in 0..CALLERS {
                scope.spawn(|| assert_eq!(call(claim.as_fd(), &waiting).unwrap(), 0));
            }
        });
        for (word, before) in before.iter_mut().enumerate() {
            let now = of_word(word);
            let (claimed, missed) = (now.0 - before.0, now.1 - before.1);
            assert!(claimed <= 1, "round {round}: word {word} was claimed {claimed} times");
            assert_eq!(claimed + missed, u64::from(CALLERS), "round {round}, word {word}");
            *before = now;
        }
    }
    assert_eq!(words.load(3 * WORDS), 0, "owners that no word was made for");
    // A single caller always gets what it claims, and only once.
    assert_eq!(run_once(make.as_fd(), &[0]).unwrap(), 0);
    for _ in 0..2 {
        assert_eq!(run_once(claim.as_fd(), &[0]).unwrap(), 0);
    }
    for (word, before) in before.iter().enumerate() {
        assert_eq!(of_word(word), (before.0 + 1, before.1 + 1), "word {word}");
    }
}
