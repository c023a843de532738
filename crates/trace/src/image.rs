//! Files of kernels with symbols and debug information: the image that is called vmlinux, and those of
//! modules.
//!
//! An image may be anybody's file: what lies in it is read through bounds checks only, and what it
//! claims of sizes is held against the file's own.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use object::elf::{self, FileHeader64};
use object::read::elf::{ElfFile64, ElfSection64, FileHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, SymbolKind};
use wakescope_core::budget::Exceeded;
use wakescope_core::hex::to_hex;
use wakescope_sys::input::open_input;
use wakescope_sys::mapped_file::MappedFile;

pub(crate) mod calls;
mod costs;
mod layout;
mod lines;
mod notes;
mod path;
mod program;
mod relocation;
mod sections;
#[cfg(test)]
mod tests;

use layout::Layout;
pub use lines::Found;
pub(crate) use notes::build_id_of_notes;
pub use program::functions_of_program;

/// An image whose bytes are mapped.
pub struct MappedImage(MappedFile);

impl MappedImage {
    /// Maps the file at `path`.
    pub fn open(path: &Path) -> Result<Self, NoImage> {
        let file = open_input(path).map_err(NoImage::Unreadable)?;
        MappedFile::of(&file).map(Self).map_err(NoImage::Unreadable)
    }

    /// The kernel in the file, or another linked program.
    pub fn image(&self) -> Result<Image<'_>, NoImage> {
        self.whole(Image::parse(&self.0))
    }

    /// The module in the file.
    pub fn module(&self) -> Result<Image<'_>, NoImage> {
        self.whole(Image::parse_module(&self.0))
    }

    /// The image with what tells that its file was cut short.
    fn whole<'a>(&'a self, parsed: Result<Image<'a>, NoImage>) -> Result<Image<'a>, NoImage> {
        match parsed {
            _ if self.0.is_cut() => Err(NoImage::Cut),
            other => other.map(|image| Image { file: Some(&self.0), ..image }),
        }
    }
}

/// Why a file is no image to find lines in.
#[derive(Debug, thiserror::Error)]
pub enum NoImage {
    /// It cannot be read.
    #[error(transparent)]
    Unreadable(io::Error),
    /// It could be read in part only, and had been whole before.
    #[error("it was truncated while it was read, or the disk has a read error")]
    Cut,
    /// It is no whole ELF file of 64 bits.
    #[error("it is not a complete 64-bit ELF file")]
    NotElf,
    /// It is one whose code has no addresses yet, as a module's.
    #[error("it is not linked, like a module")]
    Unlinked,
    /// It is one whose code has addresses, as no module's.
    #[error("it is a linked program, not a module")]
    Linked,
    /// It has no symbol table.
    #[error("it has no symbol table")]
    NoSymbols,
    /// It has no debug information of lines.
    #[error("it has no debug information (DWARF)")]
    NoLines,
    /// It has, in a form that is not read: which.
    #[error("its debug information is compressed in an unsupported way: {0}")]
    Packed(&'static str),
    /// It has, with values left open in a way that is not known.
    #[error("its debug information has unsupported relocations")]
    Unapplied,
    /// To read it would take too much memory for a file of this length.
    #[error(transparent)]
    Large(#[from] Exceeded),
    /// Its debug information is damaged.
    #[error("its debug information is damaged")]
    Damaged,
}

/// A kernel image, another linked ELF file, or a module.
pub struct Image<'a> {
    elf: ElfFile64<'a, Endianness>,
    arm64: bool,
    /// Of a module: where its code is taken to lie. It has no addresses of its own.
    layout: Option<Layout>,
    /// What it is read from, if that is mapped.
    file: Option<&'a MappedFile>,
}

/// A function of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) start: u64,
    /// 0 where the image does not say, as of functions in assembler.
    pub(crate) size: u64,
}

impl Function {
    /// How far a function of unknown length is taken to reach.
    const UNKNOWN: u64 = 64 << 10;

    /// The address so far behind the beginning. One just behind the end is where a call that is the
    /// last of its function would return to.
    fn at(self, offset: u64) -> Option<u64> {
        let end = if self.size == 0 { Self::UNKNOWN } else { self.size };
        (offset <= end).then(|| self.start.checked_add(offset)).flatten()
    }
}

impl<'a> Image<'a> {
    /// The kernel image, or other linked file, that `bytes` are.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, NoImage> {
        let (image, kind) = Self::of_any_kind(bytes)?;
        if matches!(kind, elf::ET_EXEC | elf::ET_DYN) { Ok(image) } else { Err(NoImage::Unlinked) }
    }

    /// The module that `bytes` are.
    pub(crate) fn parse_module(bytes: &'a [u8]) -> Result<Self, NoImage> {
        let (image, kind) = Self::of_any_kind(bytes)?;
        if kind != elf::ET_REL {
            return Err(NoImage::Linked);
        }
        let layout = Layout::of(&image.elf).ok_or(NoImage::Damaged)?;
        Ok(Self { layout: Some(layout), ..image })
    }

    fn of_any_kind(bytes: &'a [u8]) -> Result<(Self, u16), NoImage> {
        let header = FileHeader64::<Endianness>::parse(bytes).map_err(|_| NoImage::NotElf)?;
        let endian = header.endian().map_err(|_| NoImage::NotElf)?;
        let kind = header.e_type(endian);
        let arm64 = header.e_machine(endian) == elf::EM_AARCH64;
        let elf = ElfFile64::parse(bytes).map_err(|_| NoImage::NotElf)?;
        Ok((Self { elf, arm64, layout: None, file: None }, kind))
    }

    /// Fails if what was read of it so far may be zeros that are not in the file.
    fn check(&self) -> Result<(), NoImage> {
        if self.file.is_some_and(MappedFile::is_cut) { Err(NoImage::Cut) } else { Ok(()) }
    }

    /// The id of its build, as lower-case hexadecimal digits; `None` if it has none.
    pub fn build_id(&self) -> Option<String> {
        let id = self.elf.build_id().ok().flatten()?;
        Some(to_hex(&id[..id.len().min(notes::LONGEST)]))
    }

    /// What the kernel in it says of itself when it boots: `Linux version 6.1.0-44 (…) …`.
    pub fn banner(&self) -> Option<String> {
        const LONGEST: usize = 1_024;
        let start = self.elf.symbols().find(|s| s.name() == Ok("linux_banner"))?.address();
        let (section, into) = self.section_at(start)?;
        let text = section.data().ok()?.get(usize::try_from(into).ok()?..)?;
        let end = text.iter().take(LONGEST).position(|&b| b == 0 || b == b'\n')?;
        Some(String::from_utf8_lossy(&text[..end]).into_owned())
    }

    /// The section that `address` is in, and how far into it.
    fn section_at(&self, address: u64) -> Option<(ElfSection64<'a, '_>, u64)> {
        if let Some(layout) = &self.layout {
            let (index, into) = layout.section_at(address)?;
            return Some((self.elf.section_by_index(index).ok()?, into));
        }
        self.elf.sections().find_map(|section| {
            let into = address.checked_sub(section.address())?;
            (section.address() != 0 && into < section.size()).then_some((section, into))
        })
    }

    /// The address of a symbol: of a module's, of those in its code; of another's, of those that have
    /// one.
    fn address_of(&self, symbol: &impl ObjectSymbol<'a>) -> Option<u64> {
        let own = symbol.address();
        match &self.layout {
            Some(layout) => layout.address(symbol.section_index()?, own),
            None => Some(own).filter(|&own| own != 0),
        }
    }

    /// The functions of these names: often one each, but functions that are their file's own may
    /// share a name.
    fn functions<'n>(&self, wanted: &[&'n str]) -> HashMap<&'n str, Vec<Function>> {
        let mut found: HashMap<&str, Vec<Function>> =
            wanted.iter().map(|&name| (name, Vec::new())).collect();
        for symbol in self.elf.symbols() {
            // Those in assembler have no type.
            let is_code = matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Unknown);
            if !is_code || symbol.is_undefined() {
                continue;
            }
            let Ok(name) = symbol.name() else { continue };
            let Some(all) = found.get_mut(name) else { continue };
            let Some(start) = self.address_of(&symbol) else { continue };
            let function = Function { start, size: symbol.size() };
            // One place may have a name twice.
            if all.len() < Self::MOST_OF_A_NAME && all.iter().all(|f| f.start != function.start) {
                all.push(function);
            }
        }
        found
    }

    /// How many functions of one name are looked at.
    const MOST_OF_A_NAME: usize = 64;

    /// Whether it has what lines of source follow from. Whether that is whole, only reading it tells.
    pub fn has_lines(&self) -> Result<(), NoImage> {
        let has_symbols = self.elf.symbols().next().is_some();
        let has = |name| {
            let section = self.elf.section_by_name(name);
            section.is_some_and(|section| section.size() > 0)
        };
        let has_lines = has(".debug_info") && has(".debug_line");
        // Of a file that was cut short, nothing that is missing is known to be.
        self.check()?;
        match (has_symbols, has_lines) {
            (false, _) => Err(NoImage::NoSymbols),
            (_, false) => Err(NoImage::NoLines),
            _ => Ok(()),
        }
    }

    /// Whether the instruction before `address` is a call; `None` where the image has no code, as
    /// one of debug information alone.
    fn follows_call(&self, address: u64) -> Option<bool> {
        const LONGEST_CALL: u64 = 7;
        let (section, last) = self.section_at(address.checked_sub(1)?)?;
        let code = section.data().ok().filter(|code| !code.is_empty())?;
        let end = last + 1;
        let begin = usize::try_from(end.saturating_sub(LONGEST_CALL)).ok()?;
        let before = code.get(begin..usize::try_from(end).ok()?)?;
        Some(if self.arm64 { calls::ends_in_arm64(before) } else { calls::ends_in_x86(before) })
    }
}
