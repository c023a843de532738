//! Runs a cell once more with a plugin of the emulator, which sees the sections of its kernel with
//! interrupts or preemption off; and believes the plugin only if the guest's result is the stored one,
//! to the bit.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use wakescope_core::scope::Scope;
use wakescope_core::scope::edges::Edges;
use wakescope_core::scope::locks::Locks;
use wakescope_core::scope::signals::Signals;
use wakescope_decode::scope::{Decoded, Kernel, Plan, decode};
use wakescope_store::write_new;

use crate::cache::{Cache, CacheError, read_bounded};
use crate::cell::{Again, Emulation, Missing, Work};
use crate::farm::{
    Continue, Difference, End as FarmEnd, Event, FarmError, Job, Repeated, Runner, Standing, verify,
};
use crate::machine::boot::Observer;
use crate::machine::power::End;
use crate::qemu::Version;
use crate::similar::similar;
use crate::store::{CellStore, Ending, Failed, FailureKind, Scratch, StoreError, StoredCell};
use crate::sum;
use crate::watch::{Step, Watch};

mod distance;
mod episodes;
mod explained;
mod first_blame;
mod locks;
pub(crate) mod plugin;
mod subject;
mod worst;

pub use wakescope_decode::scope::{KERNEL_HEAD, ScopeError};

pub use subject::Subject;
pub use worst::look_into_worst;

use episodes::Latest;
use explained::Late;
use locks::in_episodes;
use subject::{Measured, OLDEST};

/// The largest file that the plugin writes: the image of a kernel in memory, or all edges that it may write.
const LARGEST: u64 = 320 << 20;

/// The most that is kept of a kernel.
const LARGEST_MAP: u64 = 64 << 20;

/// Why there is nothing to show.
#[derive(Debug, thiserror::Error)]
pub enum ScopeFailure {
    /// No such cell, or a damaged one.
    #[error("{0}")]
    Cell(String),
    /// Its guest only checked which preemption model the kernel runs.
    #[error("it checks which preemption model its kernel runs, and measures no wakeups")]
    Check,
    /// Its guest failed, for this reason.
    #[error("its guest failed, so there is no result that could be compared: {0}")]
    Failed(String),
    /// What it measured is not known.
    #[error("{0}")]
    Unread(String),
    /// What it was run with is not all there.
    #[error("it cannot be run again: {0}")]
    Missing(Missing),
    /// Its guest did not give a result this time.
    #[error("{0}")]
    Guest(String),
    /// With several CPUs.
    #[error("its machine has {0} CPUs")]
    Cpus(String),
    /// Its kernel chose its addresses by chance.
    #[error("its kernel was booted without nokaslr, so its addresses are not known")]
    Kaslr,
    /// The emulator is too old for the plugin.
    #[error("it was run by QEMU {0}, whose plugins cannot read memory; {OLDEST} can")]
    Emulator(Version),
    /// There is no compiler.
    #[error("there is no C compiler (cc, gcc or clang) to build the emulator's plugin with")]
    NoCompiler,
    /// The compiler failed.
    #[error("{} cannot build the emulator's plugin", .compiler.display())]
    Compiler {
        /// Which.
        compiler: PathBuf,
        /// What it said, a line each.
        complaints: Vec<String>,
    },
    /// The emulator did not run the guest with the plugin.
    #[error("the guest could not be run with the emulator's plugin: {0}")]
    Emulation(String),
    /// The guest was ended, because it took too long.
    #[error("{0}")]
    TimeUp(String),
    /// Its kernel has no function that is needed.
    #[error("no function of its kernel is known as {name}")]
    NoFunction {
        /// What it was called.
        name: String,
        /// Functions that may have been meant.
        similar: Vec<String>,
    },
    /// What the plugin wrote is of no use.
    #[error("the output of the emulator's plugin cannot be used: {0}")]
    Seen(ScopeError),
    /// The guest's result is not the stored one.
    #[error("the guest's result is not the stored one: {0}")]
    Differs(Difference),
    /// Something on this host.
    #[error("{0}")]
    Host(String),
    /// The lab's folder could not be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// Nor its cells.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The user ended it.
    #[error("interrupted")]
    Stopped,
}

/// How closely to look.
#[derive(Clone, Copy, Debug, Default)]
pub struct Detail<'a> {
    /// From this length on sections are listed one by one, ns.
    pub above_ns: u64,
    /// Whether to say of these in which functions their time went.
    pub functions: bool,
    /// Whether to see each edge.
    pub edges: bool,
    /// How many of the latest wakeups to explain from these.
    pub episodes: usize,
    /// Whether to follow locks. Needs edges.
    pub locks: bool,
    /// Functions that the kernel must have: otherwise the guest is not run.
    pub needs: &'a [String],
}

/// What was seen of a cell.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Its sections.
    pub scope: Scope,
    /// The signals of the wakeups that are explained in it.
    pub signals: Vec<Signals>,
    /// Each edge while it measured, if that was asked for.
    pub edges: Option<Edges>,
}

/// Runs the cell of `store` once more, in `cache`, and says which sections it had in the time in
/// which it measured. `watch` hears of what has to be built, `running` of the guest.
///
/// # Errors
/// If the cell cannot be run again or looked into, and if its result is then another one.
pub fn scope(
    subject: Subject,
    detail: Detail<'_>,
    store: &CellStore,
    again: &Again,
    cache: &Cache,
    watch: &mut dyn Watch,
    running: &mut dyn FnMut(Event<'_>, &Standing) -> Continue,
) -> Result<Seen, ScopeFailure> {
    let late = subject.late();
    let Subject { key, cell, job, shift, mut measured } = subject;
    if let Some(late) = &late {
        late.blame_anew(&mut measured.run.worst);
    }
    let plugin = plugin::build(cache, watch)?;
    let scratch = store.scratch()?;
    // Without room a guest cannot be looked into, whatever the emulator says of it.
    let for_want_of_room = |failure| match failure {
        ScopeFailure::Emulation(_) if store.check_room().is_err() => store.full().into(),
        other => other,
    };
    let kernel = kernel(&cell, &job.work, &plugin, cache, &scratch, watch);
    let kernel = kernel.map_err(for_want_of_room)?;
    check_functions(detail.needs, kernel.names())?;
    let looks = late.as_ref().map(Late::looks).unwrap_or_default();
    let Measured { from_ns, to_ns, .. } = measured;
    let Detail { above_ns, functions, edges, episodes: most, locks, .. } = detail;
    let looks = &looks;
    let plan =
        Plan { kernel: &kernel, shift, from_ns, to_ns, above_ns, looks, functions, edges, locks };
    let (plan_file, seen) = (scratch.path().join("plan"), scratch.path().join("seen"));
    write_new(&plan_file, &plan.bytes()).map_err(CacheError::io("write", &plan_file))?;
    let observer = Observer { plugin, plan: Some(plan_file), seen: seen.clone() };
    let runner = Observed::with(observer, cache);
    let prepare = |cell: &StoredCell| again.job(cell).map_err(Repeated::from);
    let done = verify(std::slice::from_ref(&key), 1, store, &prepare, &runner, running)?;
    match done.end {
        FarmEnd::Complete => {}
        FarmEnd::Stopped => return Err(ScopeFailure::Stopped),
        FarmEnd::Broken(FarmError::Store(e)) => return Err(e.into()),
        FarmEnd::Broken(other) => return Err(ScopeFailure::Host(other.to_string())),
    }
    match done.cells.into_iter().next().map(|cell| cell.repeated) {
        Some(Repeated::Same) => {}
        Some(Repeated::Differs(difference)) => return Err(ScopeFailure::Differs(difference)),
        Some(Repeated::CannotRun(why)) => return Err(for_want_of_room(runner.failure(why))),
        Some(Repeated::Damaged(why) | Repeated::NotPromised(why)) => {
            return Err(ScopeFailure::Cell(why));
        }
        Some(Repeated::FailedAgain) => return Err(ScopeFailure::Guest("its guest failed".into())),
        Some(Repeated::NotRun) | None => {
            return Err(ScopeFailure::Guest("it was not run".into()));
        }
    }
    let decoded = decode(&read_seen(&seen)?, &kernel).map_err(ScopeFailure::Seen)?;
    let Decoded { scope, looked, edges, held } = decoded;
    let distance = late.as_ref().and_then(|late| late.distance(&looked).ok());
    let distance_ns = distance.map(|(distance_ns, _)| distance_ns);
    let interrupts = edges.as_ref().map(Edges::timer_interrupts).unwrap_or_default();
    let compared = late.as_ref().map(|late| late.compare(&looked, &interrupts));
    let (explained, not_compared) = match compared {
        Some(Ok(explained)) => (Some(explained), None),
        Some(Err(why)) => (None, Some(why)),
        None => (None, None),
    };
    let latest = edges.as_ref().filter(|_| most > 0);
    let latest = latest.map(|edges| measured.episodes(distance_ns, edges, most));
    let (latest, no_episodes) = match latest.unwrap_or(Ok(Latest::default())) {
        Ok(latest) => (latest, None),
        Err(why) => (Latest::default(), Some(why)),
    };
    let Latest { episodes, mut signals, first_blame, distance_ns } = latest;
    let (cell, label) = (key.to_string(), cell.meta.label.to_string());
    let scope = Scope { cell, label, explained, not_compared, episodes, no_episodes, ..scope };
    let sees_timer = edges.as_ref().is_some_and(Edges::sees_timer);
    let none_taken = || Locks { not_seen: kernel.locks_not_seen(), ..Locks::default() };
    let mut locks = locks.then(|| scope.locks.clone().unwrap_or_else(none_taken));
    if let Some(locks) = &mut locks {
        let due_ns = |late: &Signals| distance_ns + measured.run.origin_ns + late.expiry_ns;
        locks.in_episodes = in_episodes(locks, &held, &mut signals, due_ns);
    }
    let scope = Scope { first_blame, sees_timer, locks, ..scope };

    Ok(Seen { scope, signals, edges })
}

/// Runs cells with an observer.
struct Observed {
    emulation: Emulation,
    observer: Observer,
    /// Why the guest that was run last has no result.
    failed: Mutex<Option<Failed>>,
}

impl Observed {
    fn with(observer: Observer, cache: &Cache) -> Self {
        Self { emulation: Emulation::new(cache), observer, failed: Mutex::default() }
    }

    /// The failure of a cell that could not be run, for this reason.
    fn failure(&self, why: String) -> ScopeFailure {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        match failed.as_ref().map(|failed| failed.kind) {
            Some(FailureKind::Emulator) => ScopeFailure::Emulation(why),
            Some(FailureKind::HostTimeLimit) => ScopeFailure::TimeUp(why),
            _ => ScopeFailure::Guest(why),
        }
    }
}

impl Runner<Work> for Observed {
    fn run(&self, job: &Job<Work>, folder: &Path, cancel: &AtomicBool) -> Ending {
        let ending = self.emulation.observe(job, folder, Some(&self.observer), cancel);
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        *failed = ending.failed().cloned();
        ending
    }
}

/// Refuses a function that the kernel does not have, by its names.
fn check_functions<'a>(
    needs: &[String],
    names: impl Iterator<Item = &'a str> + Clone,
) -> Result<(), ScopeFailure> {
    let has = |name: &str| names.clone().any(|known| known == name);
    let Some(name) = needs.iter().find(|name| !has(name)) else { return Ok(()) };
    let similar = similar(name, names.clone());
    Err(ScopeFailure::NoFunction { name: name.clone(), similar })
}

/// What is known of the cell's kernel; if nothing is, it is booted up to its first process.
fn kernel(
    cell: &StoredCell,
    work: &Work,
    plugin: &Path,
    cache: &Cache,
    scratch: &Scratch,
    watch: &mut dyn Watch,
) -> Result<Kernel, ScopeFailure> {
    let place = cache.maps().join(cell.recipe.part("kernel").unwrap_or_default());
    if let Some(kernel) = kept(&place) {
        return Ok(kernel);
    }
    let seen = scratch.path().join("memory");
    let observer = Observer { plugin: plugin.into(), plan: None, seen: seen.clone() };
    watch.step(&Step::Note("booting the kernel once to read its symbols, which are kept"));
    let end = boot(work, scratch.path(), &observer, cache, watch);
    match end {
        End::Restarted => {}
        End::Cancelled => return Err(ScopeFailure::Stopped),
        end @ End::TimeUp(_) => return Err(ScopeFailure::TimeUp(end.to_string())),
        other => return Err(ScopeFailure::Emulation(other.to_string())),
    }
    let kernel = Kernel::read(&read_seen(&seen)?).map_err(ScopeFailure::Seen)?;
    let _ = fs::remove_file(&seen);
    cache.write(&place, summed(&kernel.pack()).as_bytes())?;
    Ok(kernel)
}

/// What stands before the checksum of what is kept of a kernel, in its last line.
const SUM: &str = "sha256 ";

fn summed(text: &str) -> String {
    format!("{text}{SUM}{}\n", sum::of_bytes(text.as_bytes()))
}

/// What is kept of a kernel, unless the file was damaged: a name could be another one.
fn kept(place: &Path) -> Option<Kernel> {
    let text = String::from_utf8(read_bounded(place, LARGEST_MAP).ok()?).ok()?;
    let (own, _) = text.rsplit_once(SUM)?;
    (summed(own) == text).then(|| Kernel::unpack(own))?
}

/// Boots the guest of `work` until the observer ends it, or the user does.
fn boot(
    work: &Work,
    folder: &Path,
    observer: &Observer,
    cache: &Cache,
    watch: &mut dyn Watch,
) -> End {
    let (emulation, cancel) = (Emulation::new(cache), AtomicBool::new(false));
    std::thread::scope(|threads| {
        let booting = threads.spawn(|| emulation.boot(work, folder, Some(observer), &cancel));
        while !booting.is_finished() {
            if watch.stopped() {
                cancel.store(true, Ordering::Relaxed);
            }
            std::thread::sleep(LOOK);
        }
        let failed = || End::NotStarted(std::io::Error::other("its thread ended"));
        booting.join().unwrap_or_else(|_| failed())
    })
}

/// How often to look whether the guest has ended.
const LOOK: std::time::Duration = std::time::Duration::from_millis(20);

fn read_seen(path: &Path) -> Result<Vec<u8>, ScopeFailure> {
    let read = read_bounded(path, LARGEST);
    read.map_err(|e| ScopeFailure::Host(format!("cannot read {}: {e}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakescope_testing::Folder;

    #[test]
    fn what_is_kept_of_a_kernel_is_not_believed_if_it_was_damaged() {
        let folder = Folder::new("kept-kernel");
        let place = folder.path().join("kernel");
        let text =
            format!("{KERNEL_HEAD}\n62 ffffffff82000000 0 4\nf ffffffff81000000 lock\nend\n");
        let read = |text: &str| {
            fs::write(&place, text).unwrap();
            kept(&place)
        };
        let whole = summed(&text);
        assert_eq!(read(&whole), Kernel::unpack(&text));
        assert!(read(&whole).is_some());
        for damaged in [&whole.replace("lock", "look"), &text, &whole[..whole.len() - 1]] {
            assert_eq!(read(damaged), None, "{damaged}");
        }
    }
}
