//! Names of functions in programs, for a run that is stored without them.

use wakescope_attribution::Accounted;
use wakescope_core::explain::{Frame, user_stacks_mut};
use wakescope_core::run::Run;
use wakescope_core::units::SpanNs;
use wakescope_store::EPISODES;
use wakescope_trace::{ProgramFiles, ProgramFunctions};

use super::episodes::Episodes;

/// The record of a run says this while functions of programs are looked up.
pub(super) const NOT_LOOKED_UP: &str =
    "names of functions in programs (wakescope ended before it had found them)";

/// Programs may lie on a network mount whose server is gone. To read 128 MiB, which is all that is read,
/// takes 7 s at 20 MB/s.
const MOST_TIME: SpanNs = SpanNs(10_000_000_000);

/// The functions of programs that are to be looked up once a run is stored.
pub(super) struct ProgramLookup {
    files: ProgramFiles,
    accounted: Accounted,
    /// Where the run's episodes are stored, if they are.
    episodes: Option<Episodes>,
}

impl ProgramLookup {
    /// `None` if there is nothing to look up.
    pub(super) fn of(
        files: ProgramFiles,
        episodes: Option<Episodes>,
        accounted: Accounted,
    ) -> Option<Self> {
        (!files.is_empty()).then_some(Self { files, accounted, episodes })
    }

    /// Names functions in the stacks of programs of `run` and of its episodes, and stores these again.
    pub(super) fn complete(self, run: &mut Run) {
        let Self { files, mut accounted, episodes } = self;
        let functions = files.functions_within(MOST_TIME);
        let mut lacking = Vec::new();
        if functions.late_files > 0 {
            lacking.push(format!(
                "names of some functions in programs (their files could not be read within {MOST_TIME})"
            ));
        }
        name_all(&functions, run, &mut accounted);
        if let Some(mut episodes) = episodes.filter(|_| has_stored_episodes(run)) {
            if let Err(e) = episodes.replace(run, &accounted) {
                lacking.push(format!("names of functions in programs, in {EPISODES} ({e})"));
            }
        }
        if let Some(explanation) = &mut run.explanation {
            explanation.not_seen.append(&mut lacking);
        }
    }
}

/// Whether the episodes of `run` could be stored.
fn has_stored_episodes(run: &Run) -> bool {
    run.explanation.as_ref().is_some_and(|explanation| explanation.stored_episodes.is_some())
}

fn name_all(functions: &ProgramFunctions, run: &mut Run, accounted: &mut Accounted) {
    let wakeups = accounted.episodes.iter_mut().map(|episode| &mut episode.wakeup);
    let of_wakeups = wakeups.flat_map(|wakeup| {
        let interrupted = wakeup.interrupted.iter_mut().map(|context| &mut context.user_stack);
        let given_up = wakeup.given_up.iter_mut().map(|last| &mut last.user_stack);
        interrupted.chain(given_up)
    });
    let name = |frame: &mut Frame| functions.name(frame);
    of_wakeups.flatten().for_each(name);
    user_stacks_mut(run).flatten().for_each(name);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use super::*;
    use crate::folder::RunFolder;
    use wakescope_core::episodes::Attributed;
    use wakescope_core::explain::{Above, Context, Explanation, GivenUp, Share, Wakeup};
    use wakescope_core::run::Episode;
    use wakescope_testing::Folder;
    use wakescope_trace::{NamePrograms as _, SymbolReader, Users};

    /// A frame of this process, as a tracer leaves it, and the file in which its function is to be found.
    fn unnamed(read: SymbolReader) -> (Frame, ProgramFiles) {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let code = maps.lines().find(|line| line.contains(" r-xp ") && line.contains('/')).unwrap();
        let address = u64::from_str_radix(code.split('-').next().unwrap(), 16).unwrap();
        let own = std::process::id();
        let mut users = Users::read_by(read);
        users.look_up(own, &[address]);
        let (mut places, files) = Box::new(users).place(&[(own, &[address])]);
        (places.remove(&(own, address)).unwrap(), files)
    }

    #[test]
    fn functions_are_named_in_the_record_and_in_the_episodes_once_both_are_stored() {
        let test = Folder::new("functions");
        let (frame, files) = unnamed(|_, offsets| {
            offsets.iter().map(|&offset| (offset, ("burn".into(), 7))).collect()
        });
        let named = Frame { module: frame.module.clone(), ..Frame::in_function("burn", 7) };
        let stack = || vec![frame.clone(), Frame::default()];
        let share = Share { user_stack: stack(), ..Share::default() };
        let mut run = Run {
            worst: vec![Episode { blame: vec![share], ..Episode::default() }],
            explanation: Some(Explanation::default()),
            ..Run::default()
        };
        let wakeup = Wakeup {
            interrupted: Some(Context { user_stack: stack(), ..Context::default() }),
            given_up: Some(GivenUp { user_stack: stack(), ..GivenUp::default() }),
            ..Wakeup::default()
        };
        let accounted = Accounted {
            episodes: vec![Attributed { wakeup, ..Attributed::default() }],
            ..Accounted::default()
        };
        let folder = test.join("run");
        let mut files_of_run = RunFolder::create(Some(&folder), "", None, b"{}").unwrap();
        let file = files_of_run.add_episodes().unwrap();
        let mut episodes = Episodes::in_file(file, &run, Above::All, 10, false);
        let stored = || fs::read_to_string(folder.join(EPISODES)).unwrap();
        episodes.store(&mut run, &accounted);
        assert_eq!(stored().matches("burn").count(), 0, "{}", stored());
        let lookup = ProgramLookup::of(files, Some(episodes), accounted).unwrap();
        lookup.complete(&mut run);
        assert_eq!(stored().matches("burn").count(), 2, "{}", stored());
        assert_eq!(run.worst[0].blame[0].user_stack, [named, Frame::default()]);
        let explanation = run.explanation.unwrap();
        assert_eq!(explanation.stored_episodes, Some(1));
        assert_eq!(explanation.not_seen, Vec::<String>::new());
    }

    #[test]
    fn a_run_without_stacks_of_programs_has_nothing_to_look_up() {
        let (files, accounted) = (ProgramFiles::default(), Accounted::default());
        assert!(ProgramLookup::of(files, None, accounted).is_none());
        let (_, files) = unnamed(|_, _| BTreeMap::new());
        assert!(ProgramLookup::of(files, None, Accounted::default()).is_some());
    }
}
