//! How long the kernel's verifier looks at the programs: it may refuse them, and each start waits for it.

use wakescope_testing::skip;

use super::one_probe::options;
use super::*;

/// A tenth of what the verifier allows a program (a million instructions since 5.2). Most of what it took on 6.18
/// was 36,500, in `on_waking_of_comm`.
const MOST: u32 = 100_000;

/// Each program that a tracer with these options attaches, and how many instructions the verifier looked at.
fn verified(options: Options) -> Result<Vec<(String, u32)>, TraceError> {
    let tracer = Tracer::start(options)?;
    let looked_at = tracer.programs.programs().filter_map(|(name, program)| {
        let count = program.info().ok()?.verified_instruction_count()?;
        Some((name.to_owned(), count))
    });
    Ok(looked_at.collect())
}

#[test]
fn programs_are_far_from_what_the_verifier_allows() {
    const NAME: &str = "programs_are_far_from_what_the_verifier_allows";
    let of = |target| Options { target, probes: 0, ..options(None, 16) };
    let own = std::process::id();
    let with_all = Options { watch: Some(Watch::default()), ..options(None, 16) };
    for options in [
        options(None, 16),
        with_all,
        of(Target::Process { pid: own }),
        of(Target::Thread { tid: own }),
        of(Target::Comm { comm: "systemd".into() }),
    ] {
        let target = options.target.clone();
        let programs = match verified(options) {
            Ok(programs) => programs,
            Err(why) => return skip(NAME, &why.to_string()),
        };
        if programs.is_empty() {
            return skip(NAME, "kernels before 5.16 do not say what the verifier looked at");
        }
        for (name, count) in programs {
            assert!(
                count <= MOST,
                "{target:?}: the verifier looked at {count} instructions of {name}"
            );
        }
    }
}
