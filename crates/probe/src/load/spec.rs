//! Loads by name.

use std::fmt;
use std::str::FromStr;

use super::command;
use super::disturb::{self, Disturbance, DisturbanceError};

/// Which load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spec {
    /// Walks a tree of files.
    Find,
    /// Starts programs.
    Launch,
    /// Copies files over each other.
    FileMove,
    /// Keeps every CPU busy.
    Cpu,
    /// Delays wakeups by a known cause and length.
    Disturb(Disturbance),
    /// A command of the user's.
    Exec(String),
}

/// What is the same for all loads of a kind.
pub(super) struct Kind {
    /// How it is named.
    name: &'static str,
    /// What it does in a few words.
    about: &'static str,
    /// What a unit of its work is.
    unit: &'static str,
    /// A name without a parameter, short enough (15 bytes) to name a thread.
    pub(super) thread_name: &'static str,
    /// Whether it needs a directory to work in.
    needs_directory: bool,
    /// Whether it starts what it likes: its work is then known to itself only, and what it leaves
    /// behind has to be caught.
    pub(super) is_foreign: bool,
}

/// The kinds, in the order in which they are listed.
const KINDS: [&Kind; 6] = [&FIND, &LAUNCH, &FILE_MOVE, &CPU, &DISTURB, &COMMAND];

const FIND: Kind = Kind {
    name: "find",
    about: "walks a tree of 12,000 files repeatedly, as find(1) does",
    unit: "files",
    thread_name: "load-find",
    needs_directory: true,
    is_foreign: false,
};
const LAUNCH: Kind = Kind {
    name: "launch",
    about: "starts a trivial program repeatedly and reads its output",
    unit: "programs",
    thread_name: "load-launch",
    needs_directory: false,
    is_foreign: false,
};
const FILE_MOVE: Kind = Kind {
    name: "file-move",
    about: "copies two large files over a third alternately, as cp(1) does",
    unit: "bytes",
    thread_name: "load-file-move",
    needs_directory: true,
    is_foreign: false,
};
const CPU: Kind = Kind {
    name: "cpu",
    about: "keeps every allowed CPU busy",
    unit: "loops",
    thread_name: "load-cpu",
    needs_directory: false,
    is_foreign: false,
};
const DISTURB: Kind = Kind {
    name: "disturb-KIND-TIME",
    about: "delays wakeups in a known way: fifo, timers, syscall, softirq, throttle",
    unit: "times",
    thread_name: "load-disturb",
    needs_directory: false,
    is_foreign: false,
};
const COMMAND: Kind = Kind {
    name: "exec:COMMAND",
    about: "runs a shell command, which must keep running",
    unit: "starts",
    thread_name: "load-exec",
    needs_directory: false,
    is_foreign: true,
};

const EXEC: &str = "exec:";

impl Spec {
    /// Every load: how it is named, and what it does in a few words.
    pub fn list() -> impl Iterator<Item = (&'static str, &'static str)> {
        KINDS.iter().map(|kind| (kind.name, kind.about))
    }

    pub(super) fn kind(&self) -> &'static Kind {
        match self {
            Self::Find => &FIND,
            Self::Launch => &LAUNCH,
            Self::FileMove => &FILE_MOVE,
            Self::Cpu => &CPU,
            Self::Disturb(_) => &DISTURB,
            Self::Exec(_) => &COMMAND,
        }
    }

    /// What a unit of its work is.
    pub fn unit(&self) -> &'static str {
        self.kind().unit
    }

    /// As one writes it: `exec:make -j4`. What is stored and shown is its name instead, which is what
    /// it displays as: `exec:make`. The rest of a command may be secret.
    pub fn as_argument(&self) -> String {
        match self {
            Self::Exec(command) => format!("{EXEC}{command}"),
            _ => self.to_string(),
        }
    }

    /// What tells a command from others of the same program, and says nothing else; `None` for what
    /// is no command, or where that cannot be had.
    pub fn mark(&self) -> Option<String> {
        match self {
            Self::Exec(command) => command::mark(command),
            _ => None,
        }
    }

    /// Whether its work grows for as long as it is well. A command's does not: it is started once,
    /// and what it does then only it knows.
    pub fn counts_work(&self) -> bool {
        !self.kind().is_foreign
    }

    /// Whether it needs a directory to work in.
    pub fn needs_directory(&self) -> bool {
        self.kind().needs_directory
    }

    /// The load without a parameter of this name.
    fn plain(name: &str) -> Option<Self> {
        let mut all = [Self::Find, Self::Launch, Self::FileMove, Self::Cpu].into_iter();
        all.find(|spec| spec.kind().name == name)
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disturb(what) => what.fmt(f),
            Self::Exec(command) => f.pad(&format!("{EXEC}{}", command::program(command))),
            plain => f.pad(plain.kind().name),
        }
    }
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        if let Some(plain) = Self::plain(text) {
            return Ok(plain);
        }
        if disturb::is_meant(text) {
            return text.parse().map(Self::Disturb).map_err(SpecError::Disturbance);
        }
        match text.strip_prefix(EXEC) {
            Some(command) if command.contains('\0') => Err(SpecError::NotText),
            Some(command) if !command.trim().is_empty() => Ok(Self::Exec(command.into())),
            Some(_) => Err(SpecError::NoCommand),
            None => Err(SpecError::Unknown(text.chars().take(80).collect())),
        }
    }
}

/// Reads a list such as `find,launch,exec:COMMAND`. A command may hold commas, so it takes all
/// that follows: it comes last. An empty text is an empty list.
pub fn parse_list(text: &str) -> Result<Vec<Spec>, SpecError> {
    let mut loads = Vec::new();
    let mut rest = Some(text).filter(|t| !t.is_empty());
    while let Some(text) = rest {
        let (name, more) = match text.split_once(',') {
            Some((name, more)) if !name.starts_with(EXEC) => (name, Some(more)),
            _ => (text, None),
        };
        loads.push(name.parse()?);
        rest = more;
    }
    Ok(loads)
}

/// Why a text does not name a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpecError {
    /// No load has this name.
    Unknown(String),
    /// A disturbance that is none.
    Disturbance(DisturbanceError),
    /// `exec:` without a command.
    NoCommand,
    /// A command with a NUL in it.
    NotText,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => {
                let names: Vec<_> = KINDS.iter().map(|kind| kind.name).collect();
                write!(f, "there is no load `{name}`; the loads are {}", names.join(", "))
            }
            Self::Disturbance(e) => e.fmt(f),
            Self::NoCommand => {
                f.write_str("`exec:` needs a command, as in exec:'while :; do make; done'")
            }
            Self::NotText => f.write_str("a command cannot hold a NUL character"),
        }
    }
}

impl std::error::Error for SpecError {}

#[cfg(test)]
mod tests {
    use wakescope_core::redact::redact;
    use wakescope_core::run::{LoadResult, Run};

    use super::*;

    #[track_caller]
    fn check(text: &str, want: Result<&[&str], &str>) {
        match (parse_list(text), want) {
            (Ok(loads), Ok(want)) => {
                let arguments: Vec<_> = loads.iter().map(Spec::as_argument).collect();
                assert_eq!(arguments, want, "{text:?}");
            }
            (Err(e), Err(want)) => assert!(e.to_string().contains(want), "{text:?}: {e}"),
            (got, _) => panic!("{text:?}: {got:?}"),
        }
    }

    #[test]
    fn lists_of_loads() {
        check("", Ok(&[]));
        check("find", Ok(&["find"]));
        check("find,launch,file-move,cpu", Ok(&["find", "launch", "file-move", "cpu"]));
        check("cpu,exec:a,b c", Ok(&["cpu", "exec:a,b c"]));
        check("exec:find,cpu", Ok(&["exec:find,cpu"]));
        check("fnid", Err("no load `fnid`; the loads are find, launch, file-move, cpu, disturb-"));
        check("find,", Err("no load ``"));
        check(",find", Err("no load ``"));
        check("Find", Err("no load `Find`"));
        check("disturb-fifo-0.3ms,cpu", Ok(&["disturb-fifo-300us", "cpu"]));
        check("disturb-fifo", Err("write a disturbance as `disturb-KIND-TIME`"));
        check("exec:", Err("needs a command"));
        check("exec: ", Err("needs a command"));
        check("exec:a\0b", Err("NUL"));
    }

    #[test]
    fn commands_are_named_by_their_program() {
        let spec = Spec::Exec("PASSWORD=secret /bin/make -j4".into());
        assert_eq!(spec.to_string(), "exec:make");
        assert_eq!(spec.as_argument(), "exec:PASSWORD=secret /bin/make -j4");
        assert_eq!(spec.mark(), spec.clone().mark());
        assert_eq!(Spec::Find.mark(), None);
    }

    #[test]
    fn loads_that_every_wakescope_has_stay_in_records_that_are_published() {
        for (name, _) in Spec::list().filter(|(name, _)| !name.starts_with(EXEC)) {
            let spec: Spec = name.replace("KIND", "fifo").replace("TIME", "300us").parse().unwrap();
            let (name, unit) = (spec.to_string(), spec.unit().to_owned());
            let load = LoadResult { name: name.clone(), unit, ..LoadResult::default() };
            let mut run = Run { load: vec![load.clone()], ..Run::default() };
            run.plan.load = vec![name.clone()];
            redact(&mut run);
            assert_eq!((run.plan.load, run.load), (vec![name], vec![load]));
        }
    }

    #[test]
    fn every_load_is_listed_once() {
        for (listed, _) in Spec::list() {
            let name = listed.replace("KIND", "fifo").replace("TIME", "1ms");
            let spec: Spec = name.parse().unwrap();
            assert_eq!((spec.as_argument(), spec.kind().name), (name, listed));
            assert_eq!(spec.counts_work(), spec.mark().is_none());
            assert!(spec.kind().thread_name.len() <= 15);
        }
    }
}
