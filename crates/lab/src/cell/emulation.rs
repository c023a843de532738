//! Runs guests in the emulator. Those whose boot was saved resume.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use wakescope_sys::process::Exit;

use super::conclusion::conclude;
use super::{Work, result_of};
use crate::cache::Cache;
use crate::farm::{Job, Runner};
use crate::guest::CHECK;
use crate::machine::boot::{Boot, Lines, Observer};
use crate::machine::confinement::Confinement;
use crate::machine::power::{self, End, Watch};
use crate::machine::state::State;
use crate::qemu::SANDBOX;
use crate::states::States;
use crate::store::{CONSOLE, Ending, Key};
use crate::sum::Memo;

/// Runs guests in the emulator.
#[derive(Debug)]
pub struct Emulation {
    confinement: Confinement,
    /// By which an emulator is seen to be the one that a recipe names.
    memo: Mutex<Memo>,
    /// From which guests go on, if they need not boot.
    states: Option<States>,
}

/// While a guest runs: what comes out of its line of results, and what the emulator says.
pub(super) const RESULTS: &str = "results.parcel";
pub(super) const WORDS: &str = "emulator.log";

/// How an emulator ends that writes a larger file than it may (SIGXFSZ): a state can be too large.
const TOO_LARGE: Exit = Exit::Signal(25);

/// While a state is proven: the files of a second guest.
const PROOF: &str = "proof";

/// How a guest gets to the point where it reads its order.
enum Beginning<'a> {
    /// It boots.
    Boot(Option<&'a Observer>),
    /// It boots, and its machine is saved.
    BootAndSave(&'a mut Option<State>),
    /// Its machine is resumed.
    Resume(&'a State),
}

/// One run of a guest.
struct Attempt<'a> {
    job: &'a Job<Work>,
    /// Where the guest's lines and its results are written.
    folder: &'a Path,
    cancel: &'a AtomicBool,
}

impl Emulation {
    /// Guests boot. Sums of files are remembered in `cache`.
    pub fn new(cache: &Cache) -> Self {
        let memo = Mutex::new(Memo::open(cache));
        Self { confinement: Confinement::default(), memo, states: None }
    }

    /// Guests resume from the states of `cache` where they can, and boot otherwise.
    pub(crate) fn with_states(cache: &Cache) -> Self {
        Self { states: Some(States::of(cache)), ..Self::new(cache) }
    }

    /// Boots the guest of `work`, whose lines are written to files in `folder`, and waits for its end.
    pub(crate) fn boot(
        &self,
        work: &Work,
        folder: &Path,
        observer: Option<&Observer>,
        cancel: &AtomicBool,
    ) -> End {
        self.emulate(work, folder, Beginning::Boot(observer), cancel)
    }

    fn emulate(
        &self,
        work: &Work,
        folder: &Path,
        beginning: Beginning<'_>,
        cancel: &AtomicBool,
    ) -> End {
        let Work { qemu, machine, kernel, guest, root, cmdline, order, limit, .. } = work;
        let [console, results, words] = [CONSOLE, RESULTS, WORDS].map(|name| folder.join(name));
        let root = root.as_ref();
        let lines = Lines { kernel, guest, root, console: &console, results: &results };
        let expect_unchanged = || {
            let mut memo = self.memo.lock().unwrap_or_else(PoisonError::into_inner);
            qemu.expect_unchanged(&mut memo)
        };
        let (mut monitor, mut saves) = (None, None);
        let prepare = || {
            expect_unchanged()?;
            let mut boot = Boot::new(qemu.arch, machine, cmdline, lines)?;
            order.iter().try_for_each(|order| boot.order(order))?;
            if qemu.has_sandbox {
                boot.add("-sandbox", SANDBOX.into());
            }
            match beginning {
                Beginning::Boot(observer) => {
                    observer.map_or(Ok(()), |observer| boot.observe(observer))?;
                }
                Beginning::Resume(state) => boot.resume(state)?,
                Beginning::BootAndSave(place) => {
                    let (own, state) = boot.save()?;
                    (monitor, saves) = (Some(own), Some((place, state)));
                }
            }
            Ok(boot)
        };
        let boot = match prepare() {
            Ok(boot) => boot,
            Err(e) => return End::NotStarted(e),
        };
        let watch = Watch { limit: *limit, console: &console, results: &results, cancel };
        let start = |words: &File| self.confinement.start(qemu, &boot, words);
        let end = power::run(start, &words, watch, monitor.as_mut());
        // It may have been replaced just before it started.
        if let Err(e) = expect_unchanged() {
            return End::NotStarted(e);
        }
        if let (Some(Ok(())), Some((place, state))) = (monitor.map(|m| m.outcome()), saves) {
            *place = Some(state);
        }
        end
    }

    /// Boots the guest of `job`, and writes what it gives into `folder`.
    pub(crate) fn observe(
        &self,
        job: &Job<Work>,
        folder: &Path,
        observer: Option<&Observer>,
        cancel: &AtomicBool,
    ) -> Ending {
        let end = self.boot(&job.work, folder, observer, cancel);
        conclude(&end, &job.recipe, folder)
    }

    /// Resumes the saved state of this boot, if there is one that the emulator takes.
    fn resume(&self, states: &States, boot: &Key, attempt: &Attempt) -> Option<Ending> {
        let Attempt { job, folder, cancel } = *attempt;
        let cell = job.recipe.key();
        let state = states.find(boot, &cell)?;
        let end = self.emulate(&job.work, folder, Beginning::Resume(&state), cancel);
        if matches!(end, End::Refused(_) | End::NotStarted(_)) {
            states.discard(boot, &cell);
            clear(folder);
            return None;
        }
        Some(conclude(&end, &job.recipe, folder))
    }

    /// Boots, and saves the machine for other guests. If it cannot be saved, these boot.
    fn boot_and_save(&self, states: &States, boot: &Key, attempt: &Attempt) -> Ending {
        let Attempt { job, folder, cancel } = *attempt;
        let mut saved = None;
        let end = self.emulate(&job.work, folder, Beginning::BootAndSave(&mut saved), cancel);
        if matches!(end, End::Refused(_) | End::NotStarted(_) | End::Killed(TOO_LARGE)) {
            // It may be because of the state.
            clear(folder);
            return self.observe(job, folder, None, cancel);
        }
        let lines = saved.as_ref().and_then(|_| lines_of(folder).ok());
        let ending = conclude(&end, &job.recipe, folder);
        if let (Some(state), Some(lines), Ending::Measured) = (saved, lines, &ending) {
            if let Some(state) = self.proven(state, &lines, attempt) {
                let _ = states.keep(boot, &state);
            }
        }
        ending
    }

    /// `state`, if a guest that resumes from it gives the same bytes as the one that booted, which gave `lines`.
    fn proven(&self, state: State, lines: &[Vec<u8>; 2], attempt: &Attempt) -> Option<State> {
        let folder = attempt.folder.join(PROOF);
        let run = || {
            let copy = state.copy()?;
            fs::create_dir(&folder)?;
            let (work, cancel) = (&attempt.job.work, attempt.cancel);
            Ok::<_, io::Error>(self.emulate(work, &folder, Beginning::Resume(&copy), cancel))
        };
        let end = run();
        let proof = lines_of(&folder);
        let _ = fs::remove_dir_all(&folder);
        let [console, results] = proof.ok()?;
        let before = lines[0].strip_suffix(&console[..])?;
        let same = matches!(end, Ok(End::Restarted)) && results == lines[1];
        same.then(|| state.after(before))
    }
}

/// What came out of the console and of the line of results; nothing, where the emulator did not begin.
pub(super) fn lines_of(folder: &Path) -> io::Result<[Vec<u8>; 2]> {
    let read = |name| match fs::read(folder.join(name)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        other => other,
    };
    Ok([read(CONSOLE)?, read(RESULTS)?])
}

/// Makes way for another attempt.
fn clear(folder: &Path) {
    for name in [CONSOLE, RESULTS, WORDS] {
        let _ = fs::remove_file(folder.join(name));
    }
}

impl Runner<Work> for Emulation {
    fn run(&self, job: &Job<Work>, folder: &Path, cancel: &AtomicBool) -> Ending {
        let Some((states, boot)) = self.states.as_ref().zip(job.work.boot.as_ref()) else {
            return self.observe(job, folder, None, cancel);
        };
        let attempt = Attempt { job, folder, cancel };
        if let Some(ending) = self.resume(states, boot, &attempt) {
            return ending;
        }
        // A lab's first guest of a kernel only checks it, so it is the fastest one to prove a state with.
        if result_of(&job.recipe) == CHECK && states.is_wanted(boot) {
            return self.boot_and_save(states, boot, &attempt);
        }
        self.observe(job, folder, None, cancel)
    }

    fn confinement(&self, job: &Job<Work>) -> Vec<String> {
        self.confinement.in_force(&job.work.qemu)
    }

    fn state(&self, job: &Job<Work>) -> Option<String> {
        self.states.as_ref()?.used_by(&job.recipe.key())
    }
}
