//! From entries of stacks to lines of source.

use std::collections::{BTreeSet, HashMap};

use addr2line::Context;
use gimli::{AbbreviationsCacheStrategy, Dwarf, EndianSlice, RunTimeEndian};
use object::Object;
use wakescope_core::budget::Budget;
use wakescope_core::explain::{Frame, SourceLine};

use super::path::shortened;
use super::sections::Sections;
use super::{Function, Image, NoImage, costs};

/// Functions that are put into one another, at one place.
const MOST_INLINED: usize = 8;

/// The longest name of a function, and of a file, in characters.
const LONGEST_FUNCTION: usize = 128;
const LONGEST_FILE: usize = 256;

/// The file that the function is in with which a kernel begins: it tells where its sources lay.
const FIRST_FUNCTION: &str = "start_kernel";
const FIRST_FILE: &str = "/init/main.c";

pub(super) type Bytes<'s> = EndianSlice<'s, RunTimeEndian>;

/// What an image tells of stacks.
pub struct Found {
    /// For each frame of each stack its lines, as [`Frame::set_lines`] takes them; none where they are
    /// not known for certain.
    pub lines: Vec<Vec<Vec<SourceLine>>>,
    /// Where the sources lay, if that is known. Files are told from there on.
    pub root: Option<String>,
}

impl Image<'_> {
    /// The lines of stacks, innermost first: of their frames in the kernel itself, or in `module`. Where
    /// the sources lay, a kernel tells itself, and a module is told as `root`.
    pub fn lines(
        &self,
        stacks: &[&[Frame]],
        module: Option<&str>,
        root: Option<&str>,
    ) -> Result<Found, NoImage> {
        self.has_lines()?;
        let found = self.find_lines(stacks, module, root);
        self.check()?;
        found
    }

    fn find_lines(
        &self,
        stacks: &[&[Frame]],
        module: Option<&str>,
        root: Option<&str>,
    ) -> Result<Found, NoImage> {
        let is_here = |frame: &&Frame| frame.module.as_deref() == module;
        let frames = stacks.iter().flat_map(|stack| stack.iter()).filter(is_here);
        let names: BTreeSet<&str> = frames.filter_map(|frame| frame.function.as_deref()).collect();
        let functions = self.functions(&names.into_iter().collect::<Vec<_>>());
        let budget = costs::budget_of(self);
        let sections = Sections::of(self, &budget)?;
        let mut finder = Finder::of(self, &sections, functions, &budget)?;
        finder.root = match self.layout {
            Some(_) => root.map(str::to_owned),
            None => finder.root_of_kernel(),
        };
        let mut known = HashMap::new();
        let mut lines = |(depth, frame): (usize, &Frame)| {
            let Some(function) = frame.function.as_ref().filter(|_| is_here(&frame)) else {
                return Vec::new();
            };
            let key = (depth == 0, function.clone(), frame.offset);
            let find = || finder.lines(function, frame.offset, depth == 0);
            known.entry(key).or_insert_with(find).clone()
        };
        let lines =
            stacks.iter().map(|stack| stack.iter().enumerate().map(&mut lines).collect()).collect();
        Ok(Found { lines, root: finder.root })
    }
}

struct Finder<'i, 's> {
    image: &'i Image<'i>,
    functions: HashMap<&'i str, Vec<Function>>,
    context: Context<Bytes<'s>>,
    /// Where the sources lay.
    root: Option<String>,
}

impl<'i, 's> Finder<'i, 's> {
    fn of(
        image: &'i Image<'i>,
        sections: &'s Sections<'_>,
        functions: HashMap<&'i str, Vec<Function>>,
        budget: &Budget,
    ) -> Result<Self, NoImage> {
        let endian = match image.elf.is_little_endian() {
            true => RunTimeEndian::Little,
            false => RunTimeEndian::Big,
        };
        let load = |id| Ok::<_, gimli::Error>(EndianSlice::new(sections.get(id), endian));
        let mut dwarf = Dwarf::load(load).map_err(|_| NoImage::Damaged)?;
        costs::check(&dwarf, budget)?;
        // Tables that units share are read once.
        dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
        let context = Context::from_dwarf(dwarf).map_err(|_| NoImage::Damaged)?;
        Ok(Self { image, functions, context, root: None })
    }

    /// Where the sources of a kernel lay.
    fn root_of_kernel(&self) -> Option<String> {
        let start = self.image.functions(&[FIRST_FUNCTION])[FIRST_FUNCTION].first()?.start;
        let file = self.context.find_location(start).ok()??.file?;
        file.strip_suffix(FIRST_FILE).map(str::to_owned)
    }

    /// The lines of one entry. Only the innermost one can be where code was: all others are where a
    /// call returns to, and the call is what lies before that.
    fn lines(&self, name: &str, offset: u64, innermost: bool) -> Vec<SourceLine> {
        let functions = self.functions.get(name).map(Vec::as_slice).unwrap_or_default();
        let calls = |at: &u64| self.image.follows_call(*at);
        let all = functions.iter().filter_map(|function| function.at(offset));
        // Of functions of one name, those cannot be it that have no call there.
        let all: Vec<u64> =
            all.filter(|at| innermost || calls(at) != Some(false)).take(2).collect();
        let [at] = all[..] else { return Vec::new() };
        let returns = !innermost || (offset > 0 && calls(&at) == Some(true));
        self.lines_at(if returns { at.saturating_sub(1) } else { at })
    }

    fn lines_at(&self, address: u64) -> Vec<SourceLine> {
        // No debug information lies in files of its own here.
        let Ok(mut frames) = self.context.find_frames(address).skip_all_loads() else {
            return Vec::new();
        };
        let mut lines = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            lines.push(self.line(&frame));
        }
        // Of many the innermost are kept, and the function that all of them are in.
        if lines.len() > MOST_INLINED {
            lines.drain(MOST_INLINED - 1..lines.len() - 1);
        }
        match lines.iter().all(|line| line.line == 0) {
            true => Vec::new(),
            false => lines,
        }
    }

    fn line(&self, frame: &addr2line::Frame<'_, Bytes<'_>>) -> SourceLine {
        let function = frame
            .function
            .as_ref()
            .and_then(|name| Some(cut(&name.raw_name().ok()?, LONGEST_FUNCTION)));
        let file = frame.location.as_ref().and_then(|location| location.file);
        let file = file.map(|file| cut(&shortened(file, self.root.as_deref()), LONGEST_FILE));
        SourceLine {
            function: function.unwrap_or_default(),
            file: file.unwrap_or_default(),
            line: frame.location.as_ref().and_then(|location| location.line).unwrap_or(0),
        }
    }
}

fn cut(text: &str, longest: usize) -> String {
    text.chars().take(longest).collect()
}
