//! Lines of source for functions of modules, from files with these modules' debug information.

use std::collections::BTreeSet;
use std::path::Path;

use wakescope_core::explain::stacks_mut;
use wakescope_core::run::Run;
use wakescope_trace::{MappedImage, NoImage};

use super::SOURCE_LINES;
use super::files::Place;
use super::wanted::{Wanted, WhyNot};

/// The most modules that are looked for: stacks have few.
const MOST_MODULES: usize = 256;

/// How many modules one line tells of.
const MOST_NAMED: usize = 8;

/// Adds to the stacks of `run` the lines of functions in modules, from files near the image `vmlinux`
/// and at the usual places. `root`: where the kernel's sources lay. What is missing is told, in words;
/// without an image of the kernel nobody misses files that are not there.
pub(super) fn add_lines(run: &mut Run, vmlinux: Option<&Path>, root: Option<&str>) -> Vec<String> {
    let names = named_in_stacks(run);
    let build_ids =
        run.explanation.as_ref().map(|explanation| explanation.module_build_ids.clone());
    let build_ids = build_ids.unwrap_or_default();
    let (mut known, unknown): (Vec<String>, Vec<String>) =
        names.into_iter().partition(|name| build_ids.contains_key(name));
    let too_many = known.split_off(known.len().min(MOST_MODULES));
    let mut wanted: Vec<Wanted> =
        known.into_iter().map(|name| Wanted::new(name.clone(), build_ids[&name].clone())).collect();
    if !wanted.is_empty() {
        let release = run.host.release.clone();
        for place in Place::all(&release, vmlinux) {
            look_at(&place, &mut wanted, run, root);
        }
    }
    let mut unseen = Vec::new();
    if vmlinux.is_some() {
        unseen.extend(without("modules without a build ID in the record", &unknown));
    }
    unseen.extend(missing(&wanted, vmlinux.is_some()));
    unseen.extend(without("too many modules", &too_many));
    unseen
}

/// The modules that functions of stacks are in.
fn named_in_stacks(run: &mut Run) -> BTreeSet<String> {
    let frames = stacks_mut(run).flat_map(|stack| &*stack);
    // Code that is made while the kernel runs is listed as if it were in modules.
    let has_file =
        |name: &&String| !(name.is_empty() || *name == "bpf" || name.starts_with("__builtin__"));
    frames.filter_map(|frame| frame.module.as_ref()).filter(has_file).cloned().collect()
}

/// Adds the lines of those that are `wanted` and at `place`; they are not any more.
fn look_at(place: &Place, wanted: &mut Vec<Wanted>, run: &mut Run, root: Option<&str>) {
    let mut files = place.files(wanted);
    wanted.retain_mut(|module| {
        let paths = files.remove(&module.name).unwrap_or_default();
        !paths.iter().any(|path| {
            let added = add_from(path, module, run, root);
            added.map_err(|why| module.why_not.get_or_insert(why)).is_ok()
        })
    });
}

/// Adds the lines of `module` from the file at `path`, if that is its very own.
fn add_from(path: &Path, module: &Wanted, run: &mut Run, root: Option<&str>) -> Result<(), WhyNot> {
    let named = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let unusable = |e: NoImage| match e {
        NoImage::NoLines | NoImage::NoSymbols => WhyNot::Bare(named(&e)),
        _ => WhyNot::Other(named(&e)),
    };
    let mapped = MappedImage::open(path).map_err(unusable)?;
    let image = mapped.module().map_err(unusable)?;
    image.has_lines().map_err(unusable)?;
    let Wanted { name, build_id, .. } = module;
    match image.build_id() {
        Some(own) if own == *build_id => {}
        Some(own) => {
            let why = format!("its build ID is {own}, the module's is {build_id}");
            return Err(WhyNot::Other(named(&why)));
        }
        None => return Err(WhyNot::Other(named(&"it has no build ID"))),
    }
    super::add_lines(run, &image, Some(name), root).map(drop).map_err(unusable)
}

/// Why there are no lines of those that are still `wanted`. Of those of which there is no file with
/// debug information only if that is `missed`.
fn missing(wanted: &[Wanted], missed: bool) -> Vec<String> {
    let mut without_file = Vec::new();
    let mut unseen = Vec::new();
    for Wanted { name, why_not, .. } in wanted {
        match why_not {
            Some(WhyNot::Bare(_)) if !missed => {}
            Some(WhyNot::Bare(why) | WhyNot::Other(why)) => {
                unseen.push(format!("{SOURCE_LINES} of {name} ({why})"));
            }
            None if missed => without_file.push(name.clone()),
            None => {}
        }
    }
    unseen.extend(without("modules without a debug file", &without_file));
    unseen
}

/// Of many the first are named.
fn without(what: &str, names: &[String]) -> Option<String> {
    let named = names.iter().take(MOST_NAMED).cloned().collect::<Vec<_>>().join(", ");
    let others = match names.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!names.is_empty()).then(|| format!("{SOURCE_LINES} of {named}{others} ({what})"))
}
