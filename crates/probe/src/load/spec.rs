//! Loads by name.

use std::fmt;
use std::str::FromStr;

use wakescope_core::plan::Plan;
use wakescope_core::validity::LeftOut;

use super::command;
use super::disturb::{self, Disturbance, DisturbanceError};
use super::intensity::Intensity;
use super::kinds::{Form, GROUPS, Group, KINDS, Kind};
use super::serial::{self, NoPort, PortName};

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
const STRESS_NG: &str = "stress-ng:";
const SERIAL: &str = "serial";

/// Loads whose threads wait for each other.
const WAIT_FOR_THEMSELVES: [&str; 5] =
    ["fifos-mmap", "hackbench", "interrupts", "serial-pty", "ttcp"];

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

    /// What tells a command, or arguments, from others of the same program, and says nothing else;
    /// `None` for what has none, or where that cannot be had.
    pub fn mark(&self) -> Option<String> {
        foreign_parts(&self.name).and_then(|(_, text)| command::mark(text))
    }

    /// Whether its work grows for as long as it is well. A command's does not: it is started once,
    /// and what it does then only it knows.
    pub fn counts_work(&self) -> bool {
        !self.is_foreign()
    }

    /// Whether it starts what it likes.
    pub(super) fn is_foreign(&self) -> bool {
        self.kind.form.is_foreign()
    }

    /// Whether it runs an installed program.
    pub(super) fn is_program(&self) -> bool {
        matches!(self.kind.form, Form::Program | Form::Arguments)
    }

    /// Whether its program says now and then how much work it did.
    pub(super) fn is_told_work(&self) -> bool {
        self.kind.form == Form::Program
    }

    /// How many units it may do at once, and then none for as long as they last.
    pub(super) fn at_once(&self) -> u64 {
        let waits_for_itself = WAIT_FOR_THEMSELVES.contains(&self.kind.name);
        match self.kind.form {
            Form::Port => serial::AT_ONCE,
            // There is no bound: its threads take their waits for work, and pause in proportion.
            // hackbench@1% did 800 messages in one go and nothing for 0.8 s.
            _ if waits_for_itself && self.intensity != Intensity::FULL => u64::MAX,
            _ => 1,
        }
    }

    /// Whether it needs a directory to work in.
    pub fn needs_directory(&self) -> bool {
        self.kind.needs_directory
    }

    /// A load that works all the time.
    fn full(kind: &'static Kind, name: String) -> Self {
        Self { kind, name, intensity: Intensity::FULL, group: None }
    }

    /// The load whose name holds nothing more.
    fn plain(name: &str) -> Option<Self> {
        let is_plain = |kind: &&Kind| matches!(kind.form, Form::Plain | Form::Program);
        let kind = KINDS.iter().filter(is_plain).find(|kind| kind.name == name)?;
        Some(Self::full(kind, name.into()))
    }

    /// A load whose name holds more, of which there is one.
    fn of_form(form: Form, name: String) -> Option<Self> {
        KINDS.iter().find(|kind| kind.form == form).map(|kind| Self::full(kind, name))
    }
}

/// The form and the text of what starts what the user likes: `exec:COMMAND`, `stress-ng:ARGS`.
fn foreign_parts(name: &str) -> Option<(Form, &str)> {
    [(EXEC, Form::Command), (STRESS_NG, Form::Arguments)]
        .into_iter()
        .find_map(|(prefix, form)| Some((form, name.strip_prefix(prefix)?)))
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match foreign_parts(&self.name) {
            Some((Form::Command, command)) => {
                f.pad(&format!("{EXEC}{}", command::program(command)))
            }
            // The program alone.
            Some(_) => f.pad(STRESS_NG.trim_end_matches(':')),
            None => f.pad(&self.as_argument()),
        }
    }
}

impl FromStr for Spec {
    type Err = SpecError;

    /// Reads the name of one load, which no group is.
    fn from_str(text: &str) -> Result<Self, SpecError> {
        if let Some((form, command)) = foreign_parts(text) {
            return of_command(text, form, command);
        }
        let (name, intensity) = split_intensity(text)?;
        if name.is_empty() {
            return Err(SpecError::NoName);
        }
        let unknown = || SpecError::Unknown(shortened(name));
        if !disturb::is_meant(name) {
            let plain = match port_in(name) {
                Some(port) => of_port(port)?,
                None => Self::plain(name).ok_or_else(unknown)?,
            };
            if intensity.is_some() && plain.is_foreign() {
                return Err(SpecError::NoIntensity("an installed program"));
            }
            return Ok(Self { intensity: intensity.unwrap_or(Intensity::FULL), ..plain });
        }
        let what: Disturbance = name.parse().map_err(SpecError::Disturbance)?;
        match intensity {
            Some(_) => Err(SpecError::NoIntensity("a disturbance")),
            None => Self::of_form(Form::Disturbance, what.to_string()).ok_or_else(unknown),
        }
    }
}

/// The port that `serial:PORT` names; empty if it should and does not.
fn port_in(name: &str) -> Option<&str> {
    let rest = name.strip_prefix(SERIAL)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix(':') }
}

fn of_port(port: &str) -> Result<Spec, SpecError> {
    let wrong = || SpecError::NoPort(shortened(port));
    let port: PortName = port.parse().map_err(|NoPort| wrong())?;
    Spec::of_form(Form::Port, format!("{SERIAL}:{port}")).ok_or_else(wrong)
}

fn of_command(text: &str, form: Form, command: &str) -> Result<Spec, SpecError> {
    if command.contains('\0') {
        return Err(SpecError::NotText);
    }
    if command.trim().is_empty() {
        return Err(match form {
            Form::Command => SpecError::NoCommand,
            _ => SpecError::NoArguments,
        });
    }
    // All that follows `exec:` is the command. One that ends like this is hardly meant as such.
    if command.rsplit_once('@').is_some_and(|(_, end)| end.parse::<Intensity>().is_ok()) {
        return Err(SpecError::NoIntensity("a command"));
    }
    Spec::of_form(form, text.into()).ok_or_else(|| SpecError::Unknown(shortened(text)))
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
/// hold commas, so it takes all that follows: it comes last. An empty text is an empty list. Blanks around commas do
/// not matter.
pub fn parse_list(text: &str) -> Result<Vec<Spec>, SpecError> {
    let mut loads = Vec::new();
    let mut rest = Some(text).filter(|t| !t.is_empty());
    while let Some(text) = rest {
        let text = text.trim_start();
        let (name, more) = match text.split_once(',') {
            Some((name, more)) if foreign_parts(name).is_none() => (name, Some(more)),
            _ => (text, None),
        };
        // A command ends as it was written.
        let name = if foreign_parts(name).is_none() { name.trim_end() } else { name };
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

/// What groups of `loads` name that this program does not have.
pub fn missing<'a>(loads: impl Iterator<Item = &'a Spec> + Clone) -> Vec<LeftOut> {
    let of_group = |group: &'static Group| {
        let is_named = loads.clone().any(|load| load.group == Some(group.name));
        group.missing().filter(move |_| is_named).map(|part| LeftOut {
            part: part.into(),
            of: group.name.into(),
            reason: "this version of wakescope does not have it".into(),
        })
    };
    GROUPS.iter().flat_map(of_group).collect()
}

/// Why a text does not name a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpecError {
    /// No load has this name.
    Unknown(String),
    /// A list has a place without a name.
    NoName,
    /// A disturbance that is none.
    Disturbance(DisturbanceError),
    /// What follows `@` in this is no intensity.
    Intensity(String),
    /// There is none of this that works part of the time.
    NoIntensity(&'static str),
    /// `exec:` without a command.
    NoCommand,
    /// `stress-ng:` without arguments.
    NoArguments,
    /// This names no serial port.
    NoPort(String),
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
            Self::NoName => f.write_str(
                "a load has no name; write a comma only between two loads, as in find,launch",
            ),
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
            Self::NoArguments => {
                f.write_str("`stress-ng:` needs arguments, as in stress-ng:'--cpu 2'")
            }
            Self::NoPort(text) if text.is_empty() => f.write_str(
                "`serial` needs a port; name one, as in serial:ttyS0, or use a pseudo-terminal: \
                 serial-pty",
            ),
            Self::NoPort(text) => write!(
                f,
                "`{text}` is not the kernel's name of a serial port; name one, as in serial:ttyS0, or \
                 use a pseudo-terminal: serial-pty"
            ),
            Self::NotText => f.write_str("a command cannot hold a NUL character"),
        }
    }
}

impl std::error::Error for SpecError {}

#[cfg(test)]
mod tests {
    use wakescope_core::explain::{CauseRow, Culprit, NamedTask};
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
        for text in ["find,", ",find", "find,,cpu", "find, ,cpu", " "] {
            check(text, Err("a load has no name; write a comma only between two loads"));
        }
        check("find, cpu , exec:a, b ", Ok(&["find", "cpu", "exec:a, b "]));
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
        check("@5%", Err("a load has no name"));
        check("disturb-fifo-1ms@50%", Err("a disturbance has no intensity; omit `@`"));
        check("exec:make@50%", Err("a command has no intensity; omit `@`"));
        check("exec:ssh me@home", Ok(&["exec:ssh me@home"]));
        // Ports, and arguments of programs.
        check("serial:/dev/ttyS1,cpu", Ok(&["serial:ttyS1", "cpu"]));
        check("serial:ttyS1@25%", Ok(&["serial:ttyS1@25%"]));
        for text in ["serial", "serial:", "serial:/tmp/x", "serial:sda"] {
            check(text, Err("name one, as in serial:ttyS0"));
        }
        for text in ["serial", "serial:"] {
            check(text, Err("`serial` needs a port"));
        }
        check("serialX", Err("no load `serialX`"));
        check("cpu,stress-ng:--vm 1 --x a,b", Ok(&["cpu", "stress-ng:--vm 1 --x a,b"]));
        check("stress-ng: ", Err("needs arguments"));
        check("stress-ng", Err("no load `stress-ng`"));
        check("stress-ng:--cpu 1@25%", Err("has no intensity"));
        check("dbench@25%", Err("has no intensity"));
    }

    #[test]
    fn commands_are_named_by_their_program() {
        let spec: Spec = "exec:PASSWORD=secret /bin/make -j4".parse().unwrap();
        assert_eq!(spec.to_string(), "exec:make");
        assert_eq!(spec.as_argument(), "exec:PASSWORD=secret /bin/make -j4");
        assert_eq!(spec.mark(), spec.clone().mark());
        let spec: Spec = "stress-ng:--temp-path /home/secret".parse().unwrap();
        assert_eq!(spec.to_string(), "stress-ng");
        assert!(spec.mark().is_some() && spec.as_argument().ends_with("secret"));
        assert_eq!("find".parse::<Spec>().unwrap().mark(), None);
    }

    /// All kinds as one writes them, and the name in the table.
    fn examples() -> impl Iterator<Item = (Spec, &'static str)> {
        KINDS.iter().map(|kind| {
            let name = kind.name.replace("KIND", "fifo").replace("TIME", "1ms");
            let name = name.replace("PORT", "ttyS0").replace("ARGS", "--cpu 1");
            (name.parse().unwrap(), kind.name)
        })
    }

    #[test]
    fn loads_that_every_wakescope_has_stay_in_records_that_are_published() {
        let is_named_by_all =
            |spec: &Spec| matches!(spec.kind.form, Form::Plain | Form::Disturbance);
        for (spec, _) in examples().filter(|(spec, _)| is_named_by_all(spec)) {
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

    /// Programs of others may have names that begin alike, so `core::redact` knows each name whole.
    #[test]
    fn threads_and_disturbances_keep_their_names_in_records_that_are_published() {
        let of_disturbances = Disturbance::all().map(|disturbance| disturbance.thread_name());
        let of_loads = KINDS.iter().map(|kind| kind.thread_name.to_owned());
        for mut comm in of_loads.chain(of_disturbances) {
            // As the kernel does.
            comm.truncate(15);
            let culprit = Culprit::Task(NamedTask { comm, ..NamedTask::default() });
            let causes = vec![CauseRow { culprit, ..CauseRow::default() }];
            let mut run = Run { causes: causes.clone(), ..Run::default() };
            redact(&mut run);
            assert_eq!(run.causes, causes);
        }
        for name in Disturbance::all().map(|disturbance| disturbance.to_string()) {
            let mut run = Run::default();
            run.plan.load = vec![name.clone()];
            redact(&mut run);
            assert_eq!(run.plan.load, [name]);
        }
    }

    #[test]
    fn every_load_is_listed_once() {
        for (spec, listed) in examples() {
            assert_eq!(spec.kind().name, listed);
            assert_eq!(Spec::list().filter(|(name, _)| *name == listed).count(), 1);
            assert_eq!(spec.as_argument().parse::<Spec>().unwrap().name, spec.name);
            assert_eq!(spec.is_foreign(), !spec.counts_work());
            // A program is known by its name.
            assert_eq!(spec.mark().is_some(), spec.is_foreign() && !spec.is_told_work());
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
            // Every name of a group runs or is said to be missing, once.
            let loads = parse_list(&format!("{},{}@5%", group.name, group.name)).unwrap();
            let parts = missing(loads.iter());
            assert!(parts.iter().all(|part| part.of == group.name && !part.reason.is_empty()));
            let has = |name: &&str| loads.iter().any(|load| load.name == *name);
            let lacks = |name: &&str| parts.iter().filter(|part| part.part == **name).count();
            assert!(group.loads.iter().all(|name| usize::from(has(name)) + lacks(name) == 1));
            assert!(missing(loads[..0].iter()).is_empty());
        }
    }
}
