//! A cell that can be looked into: what it measured, and what it is run once more with.

use wakescope_core::run::Run;
use wakescope_core::scope::edges::Edges;

use super::episodes::Latest;
use super::explained::Late;
use super::{LARGEST_MAP, ScopeFailure};
use crate::cell::{Again, Missing, Work};
use crate::farm::Job;
use crate::guest::{CHECK, EPISODES, FACTS, Facts, RUN};
use crate::kernel::Arch;
use crate::qemu::Version;
use crate::store::{CellStore, Ending, Key, Lookup, Recipe, StoredCell};

/// The first QEMU whose plugins see what is written to memory, and can read it.
pub(super) const OLDEST: Version = Version(9, 2, 0);

/// A cell of which is known, before its guest is run, that it can be.
#[derive(Debug)]
pub struct Subject {
    pub(super) key: Key,
    pub(super) cell: StoredCell,
    pub(super) job: Job<Work>,
    /// An instruction takes two to the power of this, ns.
    pub(super) shift: u32,
    pub(super) measured: Measured,
}

impl Subject {
    /// The cell `key` of `store`, to be run by what `again` has.
    ///
    /// # Errors
    /// If there is no such cell, it measured nothing, or its guest cannot be run again or looked into.
    pub fn of(key: &Key, store: &CellStore, again: &Again) -> Result<Self, ScopeFailure> {
        let cell = match store.lookup(key) {
            Lookup::Stored(cell) => *cell,
            Lookup::Damaged(why) => {
                return Err(ScopeFailure::Cell(format!("it is damaged: {why}")));
            }
            Lookup::Absent => return Err(ScopeFailure::Cell("there is no such cell".into())),
        };
        // Before what is missing is looked for in vain.
        check_ending(&cell.ending, |file| cell.sum(file).is_some())?;
        let job = again.job(&cell).map_err(|missing| match missing {
            Missing::Cpus(number) => ScopeFailure::Cpus(number),
            other => ScopeFailure::Missing(other),
        })?;
        let shift = check(&cell.recipe, job.work.qemu().version)?;
        let measured = Measured::of(&cell)?;
        Ok(Self { key: key.clone(), cell, job, shift, measured })
    }

    /// Its key.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// What it is called.
    pub fn label(&self) -> String {
        self.cell.meta.label.to_string()
    }

    /// What it measured.
    pub fn run(&self) -> &Run {
        &self.measured.run
    }

    /// What its kernel is for.
    pub fn arch(&self) -> Arch {
        self.job.work.qemu().arch
    }

    /// Its late wakeups, if it explained them.
    pub(super) fn late(&self) -> Option<Late> {
        let episodes = self.cell.read(EPISODES, LARGEST_MAP).unwrap_or_default();
        Late::of(&self.measured.run, self.measured.began_ns, &episodes)
    }
}

/// Refuses a cell that has no wakeups; `has` says whether it has a file.
fn check_ending(ending: &Ending, has: impl Fn(&str) -> bool) -> Result<(), ScopeFailure> {
    match ending {
        Ending::Failed(failed) => Err(ScopeFailure::Failed(failed.reason.clone())),
        Ending::Measured if has(CHECK) && !has(RUN) => Err(ScopeFailure::Check),
        Ending::Measured => Ok(()),
    }
}

/// Refuses what the plugin cannot look into. How the CPU counts: an instruction takes two to the power
/// of this, ns.
fn check(recipe: &Recipe, emulator: Version) -> Result<u32, ScopeFailure> {
    if emulator < OLDEST {
        return Err(ScopeFailure::Emulator(emulator));
    }
    if let Some(number) = recipe.several_cpus() {
        return Err(ScopeFailure::Cpus(number.into()));
    }
    // The last word counts, and only words before those of the first process do.
    let command_line = recipe.part("command_line").unwrap_or_default();
    let words = command_line.split(' ').take_while(|word| *word != "--");
    if words.filter(|word| ["kaslr", "nokaslr"].contains(word)).last() != Some("nokaslr") {
        return Err(ScopeFailure::Kaslr);
    }
    let counting = recipe.argument("-icount").unwrap_or_default();
    let shift = counting.split(',').find_map(|part| part.strip_prefix("shift=")?.parse().ok());
    shift.ok_or_else(|| ScopeFailure::Unread("its instructions were not counted".into()))
}

/// What a cell measured, and when, in ns after its first process began.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) run: Run,
    began_ns: u64,
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
}

impl Measured {
    fn of(cell: &StoredCell) -> Result<Self, ScopeFailure> {
        let lacking = || ScopeFailure::Unread("it measured nothing".into());
        let read = |name: &str| cell.read(name, LARGEST_MAP).map_err(|_| lacking());
        let of_version = |e| ScopeFailure::Unread(format!("its {RUN} cannot be read: {e}"));
        let run = Run::from_json(&read(RUN)?).map_err(of_version)?;
        let facts: Facts = serde_json::from_slice(&read(FACTS)?).map_err(|_| lacking())?;
        let from_ns = run.origin_ns.checked_sub(facts.began_ns).ok_or_else(lacking)?;
        let to_ns = from_ns.saturating_add(run.duration_ns);
        Ok(Self { run, began_ns: facts.began_ns, from_ns, to_ns })
    }

    /// Its latest wakeups, explained.
    pub(super) fn episodes(
        &self,
        distance_ns: Option<u64>,
        edges: &Edges,
        most: usize,
    ) -> Result<Latest, String> {
        Latest::of(&self.run, self.began_ns, distance_ns, edges, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::store::{Failed, FailureKind, Ingredients};

    /// A recipe of a machine like the lab's, with this word for each of these of its own.
    fn recipe(change: (&str, &str)) -> Recipe {
        let machine = Machine::new(Arch::Amd64);
        let arguments: Vec<String> =
            machine.arguments().iter().map(|word| word.replace(change.0, change.1)).collect();
        let cmdline = machine.cmdline(Some("full"), "", "lab-guest measure nokaslr");
        Recipe::new(&Ingredients {
            kernel_sha256: "1",
            guest_sha256: "2",
            emulator: "QEMU 10.0.13 3",
            arguments: &arguments,
            command_line: &cmdline.replacen(change.0, change.1, 1),
        })
    }

    #[test]
    fn what_the_plugin_cannot_look_into_is_refused_by_name() {
        let own = ("", "");
        let new = Version(10, 0, 13);
        let judge = |change, version| {
            let checked = check(&recipe(change), version);
            checked.map_err(|e| e.to_string())
        };
        assert_eq!(judge(own, new), Ok(0));
        assert_eq!(judge(("shift=0", "shift=3"), new), Ok(3));
        let refused = |change, version, why: &str| {
            let said = judge(change, version).unwrap_err();
            assert!(said.contains(why), "{said}");
        };
        refused(own, Version(9, 1, 3), "QEMU 9.1.3");
        // Of the machine, each digit of one becomes a two.
        refused(("1", "2"), new, "2 CPUs");
        refused(("nokaslr", "nokaslr kaslr"), new, "nokaslr");
        refused(("nokaslr ", ""), new, "nokaslr");
        refused(("shift=", "align="), new, "not counted");
    }

    #[test]
    fn cells_without_wakeups_are_refused_by_what_they_are() {
        let failed = Ending::Failed(Failed::new(FailureKind::Panic, "it panicked"));
        for (ending, files, want) in [
            (&Ending::Measured, &[RUN][..], None),
            (&Ending::Measured, &[RUN, CHECK], None),
            (&Ending::Measured, &[CHECK], Some("checks which preemption model")),
            (&failed, &[CHECK], Some("its guest failed, so there is no result")),
            (&failed, &[], Some("it panicked")),
        ] {
            let got = check_ending(ending, |file| files.contains(&file)).map_err(|e| e.to_string());
            match (got, want) {
                (Ok(()), None) => {}
                (Err(said), Some(want)) => assert!(said.contains(want), "{said}"),
                other => panic!("{other:?} of {files:?}"),
            }
        }
    }
}
