//! Scenario files: TOML in, a [`Scenario`] out, or where the file is wrong.

use super::words::{KEYS, SCHEMA};
use super::{Path, Scenario, limits};
use at::At;
use error::Problem;
use lengths::Lengths;
use steps::Paths;
use wakescope_core::budget::Budget;

mod at;
mod error;
mod lengths;
mod machine;
mod measured;
mod names;
mod nearest;
mod node;
mod runnable;
mod steps;
#[cfg(test)]
mod tests;
mod time;
mod who;

pub use error::ReadError;
pub use lengths::RunLengths;

impl Scenario {
    /// Reads the text of a file, which errors call `file`. `of_runs` gives the lengths that a run's
    /// histogram holds: the caller opens the run, and says in a sentence why that cannot be done.
    ///
    /// # Errors
    /// If the text is no scenario, or larger than [`limits`] allow.
    ///
    /// ```
    /// use wakescope_model::Scenario;
    /// let text = r#"
    ///     schema = "wakescope.scenario/1"
    ///     name = "busy"
    ///     task = [{ name = "find", path = "find" }]
    ///     path = { find = [{ user = "1ms" }, { compute = "20usec" }] }
    /// "#;
    /// let no_runs = |_: &str, _: &str| Err("there are no runs here".to_owned());
    /// let error = Scenario::read("busy.toml", text, &no_runs).unwrap_err();
    /// assert_eq!((error.line, error.key.as_str()), (5, "path.find[1].compute"));
    /// assert_eq!(error.what, "`usec` is not a unit of time; use ns, us, ms, s, min, h or d");
    /// ```
    pub fn read(file: &str, text: &str, of_runs: &RunLengths<'_>) -> Result<Self, ReadError> {
        if text.len() > limits::FILE {
            return Err(ReadError::too_large(file, text.len()));
        }
        let lengths = Lengths { of_runs, budget: Budget::of(text.len() as u64) };
        let tree = node::parse(text);
        tree.and_then(|tree| scenario(&At::root(&tree), &lengths))
            .map_err(|problem| problem.in_file(file, text))
    }
}

fn scenario(root: &At<'_>, lengths: &Lengths<'_>) -> Result<Scenario, Problem> {
    let file = root.fields("a scenario", KEYS)?;
    let schema = file.need("schema")?;
    let expected = format!("\"{SCHEMA}\"");
    if schema.text(&expected)? != SCHEMA {
        return Err(schema.found_instead_of(&expected));
    }
    let name = file.need("name")?.name(limits::NAME)?;
    let about = file.get("about").map_or(Ok(String::new()), |at| line(&at, limits::ABOUT))?;
    let published = file.get("published").map_or(Ok(Vec::new()), |at| published(&at))?;
    let measured = file.get("measured").map_or(Ok(Vec::new()), |at| measured::all(&at))?;
    let machine = machine::machine(file.get("machine").as_ref())?;
    let kernel = machine::settings(file.get("kernel").as_ref())?;
    let costs = machine::costs(file.get("costs").as_ref(), lengths)?;
    let (paths, names) = Paths::read(file.get("path").as_ref(), lengths)?;
    let groups = file.get("group").map_or(Ok(Vec::new()), |at| who::groups(&at))?;
    let tasks = who::tasks(&file.need("task")?, machine.cpus, &groups, &paths)?;
    let interrupts = match file.get("interrupt") {
        Some(at) => who::interrupts(&at, machine.cpus, &paths, &names)?,
        None => Vec::new(),
    };
    names.check(&interrupts)?;
    Ok(Scenario {
        name,
        about,
        published,
        measured,
        machine,
        kernel,
        costs,
        paths,
        groups,
        tasks,
        interrupts,
    })
}

/// Published figures, a line each.
fn published(at: &At<'_>) -> Result<Vec<String>, Problem> {
    let lines = at.list(limits::PUBLISHED, "lines of text")?;
    lines.iter().map(|at| line(at, limits::PUBLISHED_LINE)).collect()
}

/// A text of at most so many characters in one line.
fn line(at: &At<'_>, longest: usize) -> Result<String, Problem> {
    let expected = format!("a text of at most {longest} characters in one line");
    let text = at.text(&expected)?;
    if text.chars().count() > longest || text.chars().any(char::is_control) {
        return Err(at.found_instead_of(&expected));
    }
    Ok(text.into())
}

/// The path of this name.
fn path<'p>(at: &At<'_>, paths: &'p [Path]) -> Result<&'p Path, Problem> {
    let name = at.name(limits::NAME)?;
    paths.iter().find(|path| path.name == name).ok_or_else(|| {
        let known = paths.iter().map(|path| path.name.as_str());
        names::nothing(&name, "the name of a path", known, at.problem(""))
    })
}
