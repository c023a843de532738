//! How much memory debug information takes when lines are looked up in it.
//!
//! A few bytes can stand for many: units may share tables of lines, files, ranges and abbreviations, and
//! each unit keeps its own. So all of it is counted before any is kept.

use gimli::{Dwarf, Reader, Section, Unit, UnitHeader};
use wakescope_core::budget::{Budget, Entry};

use super::lines::Bytes;
use super::{Image, NoImage};

const UNPACKED: Entry = Entry { name: "unpacked debug information", bytes: 1 };
const UNIT: Entry = Entry { name: "units of debug information", bytes: 1_024 };
const RANGE: Entry = Entry { name: "address ranges of debug information", bytes: 64 };
/// A byte of a table of addresses can hold one if they are short.
const SHORT_RANGE: Entry = Entry { bytes: 24, ..RANGE };
/// For each byte: an abbreviation takes 5 of them or more, and each of its attributes 2.
const ABBREVIATIONS: Entry = Entry { name: "abbreviations of debug information", bytes: 64 };
/// For each byte: a function takes 4 of them or more.
const FUNCTIONS: Entry = Entry { name: "functions of debug information", bytes: 24 };
/// For each byte, which can make a row.
const LINES: Entry = Entry { name: "source lines", bytes: 48 };
/// A file or its folder.
const FILE: Entry = Entry { name: "source files", bytes: 256 };
const PATH: Entry = Entry { name: "paths of source files", bytes: 1 };

/// The budget of an image, which grows with the image's file.
pub(super) fn budget_of(image: &Image<'_>) -> Budget {
    Budget::of(image.elf.data().len() as u64)
}

/// Draws the memory for so many bytes that are unpacked or copied.
pub(super) fn keep_bytes(budget: &Budget, bytes: u64) -> Result<(), NoImage> {
    Ok(budget.keep(bytes, UNPACKED)?)
}

/// Fails if more memory than is left may be needed to look up lines. Functions count by the length of the
/// section that they are in, since only those of units are read that an address lies in.
pub(super) fn check(dwarf: &Dwarf<Bytes<'_>>, budget: &Budget) -> Result<(), NoImage> {
    budget.keep(dwarf.debug_aranges.reader().len() as u64, SHORT_RANGE)?;
    budget.keep(dwarf.debug_info.reader().len() as u64, FUNCTIONS)?;
    budget.keep(dwarf.debug_line.reader().len() as u64, LINES)?;
    let mut headers = dwarf.units();
    while let Some(header) = headers.next().map_err(|_| NoImage::Damaged)? {
        budget.keep(1, UNIT)?;
        budget.keep(length_of_abbreviations(dwarf, &header), ABBREVIATIONS)?;
        // Units that are damaged are left out in the search, too.
        let Ok(unit) = dwarf.unit(header) else { continue };
        check_ranges(dwarf, &unit, budget)?;
        check_lines(dwarf, &unit, budget)?;
    }
    Ok(())
}

fn check_ranges(
    dwarf: &Dwarf<Bytes<'_>>,
    unit: &Unit<Bytes<'_>>,
    budget: &Budget,
) -> Result<(), NoImage> {
    let Ok(mut ranges) = dwarf.unit_ranges(unit) else { return Ok(()) };
    while let Ok(Some(_)) = ranges.next() {
        budget.keep(1, RANGE)?;
    }
    Ok(())
}

fn check_lines(
    dwarf: &Dwarf<Bytes<'_>>,
    unit: &Unit<Bytes<'_>>,
    budget: &Budget,
) -> Result<(), NoImage> {
    let Some(program) = &unit.line_program else { return Ok(()) };
    let header = program.header();
    budget.keep(header.raw_program_buf().len() as u64, LINES)?;
    budget.keep(header.include_directories().len() as u64, FILE)?;
    let length = |name| dwarf.attr_string(unit, name).map_or(0, |name| name.len() as u64);
    let folder_of_unit = unit.comp_dir.map_or(0, |folder| folder.len() as u64);
    for file in header.file_names() {
        let folder = file.directory(header).map_or(0, length);
        budget.keep(1, FILE)?;
        budget.keep(folder_of_unit + folder + length(file.path_name()), PATH)?;
    }
    Ok(())
}

/// How many bytes the table of a unit's abbreviations has.
fn length_of_abbreviations(dwarf: &Dwarf<Bytes<'_>>, header: &UnitHeader<Bytes<'_>>) -> u64 {
    let mut table = *dwarf.debug_abbrev.reader();
    if table.skip(header.debug_abbrev_offset().0).is_err() {
        return 0;
    }
    let whole = table.len();
    // Where it is damaged, it ends for the reader of units, too.
    let _ = skip_abbreviations(&mut table);
    (whole - table.len()) as u64
}

fn skip_abbreviations(table: &mut Bytes<'_>) -> gimli::Result<()> {
    let implicit_const = u64::from(gimli::DW_FORM_implicit_const.0);
    // The code, the tag and whether there are children; then attributes, each a name and a form.
    while table.read_uleb128()? != 0 {
        table.read_uleb128()?;
        table.read_u8()?;
        loop {
            let (name, form) = (table.read_uleb128()?, table.read_uleb128()?);
            if form == implicit_const {
                table.read_sleb128()?;
            }
            if (name, form) == (0, 0) {
                break;
            }
        }
    }
    Ok(())
}
