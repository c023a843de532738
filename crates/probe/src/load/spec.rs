//! Loads by name.

use std::fmt;
use std::str::FromStr;

use wakescope_core::plan::Plan;

use super::command;
use super::disturb::{self, Disturbance, DisturbanceError};
use super::intensity::Intensity;
use super::kinds::{Form, GROUPS, KINDS, Kind};

/// Which load, and how much of the time it works.
#[derive(Clone, Debug)]
pub struct Spec {
    kind: &'static Kind,
    /// Its name with what that holds: `find`, `disturb-fifo-300us`, `exec:make -j4`.
    name: String,
    intensity: Intensity,
    /// Of the group that was named in place of the load.
    group: Option<&'static str>,
}

const EXEC: &str = "exec:";

impl Spec {
    /// Every load and group: how it is named, and what it does in a few words.
    pub fn list() -> impl Iterator<Item = (&'static str, String)> {
        let kinds = KINDS.iter().map(|kind| (kind.name, kind.about.to_owned()));
        let groups = GROUPS.iter().map(|group| {
            let names: Vec<_> = group.kinds().map(|kind| kind.name).collect();
            (group.name, format!("all of {}", names.join(", ")))
        });
        kinds.chain(groups)
    }

    pub(super) fn kind(&self) -> &'static Kind {
        self.kind
    }

    /// Its name with what that holds, and without what [`Self::as_argument`] adds.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// How much of the time it works.
    pub(super) fn intensity(&self) -> Intensity {
        self.intensity
    }

    /// What a unit of its work is.
    pub fn unit(&self) -> &'static str {
        self.kind.unit
    }

    /// The group that was named in its place; such a load is left out where it cannot run.
    pub fn group(&self) -> Option<&'static str> {
        self.group
    }

    /// As one writes it: `exec:make -j4`, `find@25%`. What is stored and shown is its name instead,
    /// which is what it displays as: `exec:make`. The rest of a command may be secret.
    pub fn as_argument(&self) -> String {
        format!("{}{}", self.name, self.intensity)
    }

    /// What tells a command from others of the same program, and says nothing else; `None` for what
    /// is no command, or where that cannot be had.
    pub fn mark(&self) -> Option<String> {
        self.command().and_then(command::mark)
    }

    /// Whether its work grows for as long as it is well. A command's does not: it is started once,
    /// and what it does then only it knows.
    pub fn counts_work(&self) -> bool {
        !self.is_foreign()
    }

    /// Whether it starts what it likes.
    pub(super) fn is_foreign(&self) -> bool {
        self.kind.form == Form::Command
    }

    /// Whether it needs a directory to work in.
    pub fn needs_directory(&self) -> bool {
        self.kind.needs_directory
    }

    fn command(&self) -> Option<&str> {
        command_of(&self.name)
    }

    /// A load that works all the time.
    fn full(form: Form, name: &str) -> Option<Self> {
        let mut kinds = KINDS.iter().filter(|kind| kind.form == form);
        let kind = kinds.find(|kind| form != Form::Plain || kind.name == name)?;
        Some(Self { kind, name: name.into(), intensity: Intensity::FULL, group: None })
    }
}

/// The command that `exec:COMMAND` names.
pub(super) fn command_of(name: &str) -> Option<&str> {
    name.strip_prefix(EXEC)
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.command() {
            Some(command) => f.pad(&format!("{EXEC}{}", command::program(command))),
            None => f.pad(&self.as_argument()),
        }
    }
}

impl FromStr for Spec {
    type Err = SpecError;

    /// Reads the name of one load, which no group is.
    fn from_str(text: &str) -> Result<Self, SpecError> {
        if let Some(command) = command_of(text) {
            return of_command(text, command);
        }
        let (name, intensity) = split_intensity(text)?;
        let unknown = || SpecError::Unknown(shortened(name));
        if !disturb::is_meant(name) {
            let plain = Self::full(Form::Plain, name).ok_or_else(unknown)?;
            return Ok(Self { intensity: intensity.unwrap_or(Intensity::FULL), ..plain });
        }
        let what: Disturbance = name.parse().map_err(SpecError::Disturbance)?;
        match intensity {
            Some(_) => Err(SpecError::NoIntensity("a disturbance")),
            None => Self::full(Form::Disturbance, &what.to_string()).ok_or_else(unknown),
        }
    }
}

fn of_command(text: &str, command: &str) -> Result<Spec, SpecError> {
    if command.contains('\0') {
        return Err(SpecError::NotText);
    }
    if command.trim().is_empty() {
        return Err(SpecError::NoCommand);
    }
    // All that follows `exec:` is the command. One that ends like this is hardly meant as such.
    if command.rsplit_once('@').is_some_and(|(_, end)| end.parse::<Intensity>().is_ok()) {
        return Err(SpecError::NoIntensity("a command"));
    }
    Spec::full(Form::Command, text).ok_or_else(|| SpecError::Unknown(shortened(text)))
}

/// The name before `@25%`, and the intensity if there is one.
fn split_intensity(text: &str) -> Result<(&str, Option<Intensity>), SpecError> {
    let Some((name, intensity)) = text.split_once('@') else { return Ok((text, None)) };
    match intensity.parse() {
        Ok(intensity) => Ok((name, Some(intensity))),
        Err(()) => Err(SpecError::Intensity(shortened(text))),
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

/// Names in `plan` the loads that are to run, or that run, in place of those that it named.
pub fn name_in<'a>(plan: &mut Plan, loads: impl Iterator<Item = &'a Spec> + Clone) {
    plan.load = loads.clone().map(Spec::to_string).collect();
    plan.load_marks = loads.map(|load| load.mark().unwrap_or_default()).collect();
    // There are none where no load is a command.
    if plan.load_marks.iter().all(String::is_empty) {
        plan.load_marks.clear();
    }
}

/// Reads a list such as `find,launch@25%,exec:COMMAND`. A group stands for its loads. A command may
/// hold commas, so it takes all that follows: it comes last. An empty text is an empty list.
pub fn parse_list(text: &str) -> Result<Vec<Spec>, SpecError> {
    let mut loads = Vec::new();
    let mut rest = Some(text).filter(|t| !t.is_empty());
    while let Some(text) = rest {
        let (name, more) = match text.split_once(',') {
            Some((name, more)) if !name.starts_with(EXEC) => (name, Some(more)),
            _ => (text, None),
        };
        match group(name)? {
            Some(members) => loads.extend(members),
            None => loads.push(name.parse()?),
        }
        rest = more;
    }
    Ok(loads)
}

/// The loads of the group of this name, all at the intensity of the group.
fn group(text: &str) -> Result<Option<Vec<Spec>>, SpecError> {
    let name = text.split('@').next().unwrap_or(text);
    let Some(group) = GROUPS.iter().find(|group| group.name == name) else { return Ok(None) };
    let (_, intensity) = split_intensity(text)?;
    let intensity = intensity.unwrap_or(Intensity::FULL);
    let member = |kind: &'static Kind| Spec {
        kind,
        name: kind.name.into(),
        intensity,
        group: Some(group.name),
    };
    Ok(Some(group.kinds().map(member).collect()))
}

/// Why a text does not name a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpecError {
    /// No load has this name.
    Unknown(String),
    /// A disturbance that is none.
    Disturbance(DisturbanceError),
    /// What follows `@` in this is no intensity.
    Intensity(String),
    /// There is none of this that works part of the time.
    NoIntensity(&'static str),
    /// `exec:` without a command.
    NoCommand,
    /// A command with a NUL in it.
    NotText,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => {
                let names: Vec<_> = Spec::list().map(|(name, _)| name).collect();
                write!(f, "there is no load `{name}`; the loads are {}", names.join(", "))
            }
            Self::Disturbance(e) => e.fmt(f),
            Self::Intensity(text) => write!(
                f,
                "`{text}` is not a load with an intensity; write a whole number from 1 to 100, as \
                 in find@25%"
            ),
            Self::NoIntensity(what) => {
                write!(f, "{what} has no intensity; omit `@` and what follows it")
            }
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
        check("fnid", Err("no load `fnid`; the loads are find, launch, file-move, cpu, "));
        check("find,", Err("no load ``"));
        check(",find", Err("no load ``"));
        check("Find", Err("no load `Find`"));
        check("disturb-fifo-0.3ms,cpu", Ok(&["disturb-fifo-300us", "cpu"]));
        check("disturb-fifo", Err("write a disturbance as `disturb-KIND-TIME`"));
        check("exec:", Err("needs a command"));
        check("exec: ", Err("needs a command"));
        check("exec:a\0b", Err("NUL"));
        // Intensities.
        check("find@25%,cpu@1%", Ok(&["find@25%", "cpu@1%"]));
        check("find@100%", Ok(&["find"]));
        for text in ["find@0%", "find@200%", "find@x", "find@", "find@25", "find@5%@5%"] {
            check(text, Err("write a whole number from 1 to 100, as in find@25%"));
        }
        check("nosuch@5%", Err("no load `nosuch`"));
        check("@5%", Err("no load ``"));
        check("disturb-fifo-1ms@50%", Err("a disturbance has no intensity; omit `@`"));
        check("exec:make@50%", Err("a command has no intensity; omit `@`"));
        check("exec:ssh me@home", Ok(&["exec:ssh me@home"]));
    }

    #[test]
    fn commands_are_named_by_their_program() {
        let spec: Spec = "exec:PASSWORD=secret /bin/make -j4".parse().unwrap();
        assert_eq!(spec.to_string(), "exec:make");
        assert_eq!(spec.as_argument(), "exec:PASSWORD=secret /bin/make -j4");
        assert_eq!(spec.mark(), spec.clone().mark());
        assert_eq!("find".parse::<Spec>().unwrap().mark(), None);
    }

    /// All kinds as one writes them, and the name in the table.
    fn examples() -> impl Iterator<Item = (Spec, &'static str)> {
        KINDS.iter().map(|kind| {
            let name = kind.name.replace("KIND", "fifo").replace("TIME", "1ms");
            (name.parse().unwrap(), kind.name)
        })
    }

    #[test]
    fn loads_that_every_wakescope_has_stay_in_records_that_are_published() {
        for (spec, _) in examples().filter(|(spec, _)| !spec.is_foreign()) {
            let part = format!("{spec}@25%").parse::<Spec>();
            for name in [Some(spec.clone()), part.ok()].iter().flatten().map(Spec::to_string) {
                let unit = spec.unit().to_owned();
                let load = LoadResult { name: name.clone(), unit, ..LoadResult::default() };
                let mut run = Run { load: vec![load.clone()], ..Run::default() };
                run.plan.load = vec![name.clone()];
                redact(&mut run);
                assert_eq!((run.plan.load, run.load), (vec![name], vec![load]));
            }
        }
    }

    #[test]
    fn every_load_is_listed_once() {
        for (spec, listed) in examples() {
            assert_eq!(spec.kind().name, listed);
            assert_eq!(Spec::list().filter(|(name, _)| *name == listed).count(), 1);
            assert_eq!(spec.as_argument().parse::<Spec>().unwrap().name, spec.name);
            assert_eq!(spec.counts_work(), spec.mark().is_none());
            assert!(spec.kind().thread_name.len() <= 15);
        }
    }

    #[test]
    fn groups_stand_for_their_loads() {
        for group in &GROUPS {
            for (text, intensity) in
                [(group.name.to_owned(), ""), (format!("{}@5%", group.name), "@5%")]
            {
                let loads = parse_list(&format!("cpu,{text}")).unwrap();
                let names: Vec<_> = loads[1..].iter().map(Spec::as_argument).collect();
                let want: Vec<_> =
                    group.kinds().map(|k| format!("{}{intensity}", k.name)).collect();
                assert_eq!(names, want);
                assert!(loads[1..].iter().all(|load| load.group() == Some(group.name)));
                assert_eq!(loads[0].group(), None);
            }
            check(&format!("{}@0%", group.name), Err("write a whole number"));
            assert!(group.name.parse::<Spec>().is_err(), "a group is not one load");
        }
    }
}
