//! Values that a module's file leaves out, for they depend on where its code will lie.

use object::read::elf::ElfSection64;
use object::{
    Endian, Endianness, Object, ObjectSection, ObjectSymbol, Relocation, RelocationFlags,
    RelocationKind, RelocationTarget, SymbolIndex, SymbolSection, elf,
};

use super::layout::Layout;
use super::{Image, NoImage};

/// What stands for a value that is not to be changed, in files of x86-64 and of arm64.
const NONE: [u32; 2] = [elf::R_X86_64_NONE, elf::R_AARCH64_NONE];

/// What one takes in a file, in bytes.
const SIZE: u64 = 24;

/// How many a file can have, of all its sections together: counts down.
pub(super) struct Left(u64);

impl Left {
    pub(super) fn of(image: &Image<'_>) -> Self {
        Self(image.elf.data().len() as u64 / SIZE)
    }
}

/// Puts into `bytes`, which are those of `section`, the values that belong there if code lies as
/// `layout` says.
pub(super) fn apply(
    image: &Image<'_>,
    layout: &Layout,
    section: &ElfSection64<'_, '_>,
    bytes: &mut [u8],
    left: &mut Left,
) -> Result<(), NoImage> {
    for (offset, relocation) in section.relocations() {
        // Those of several sections may lie in one place of a file that lies.
        left.0 = left.0.checked_sub(1).ok_or(NoImage::Damaged)?;
        if matches!(relocation.flags(), RelocationFlags::Elf { r_type } if NONE.contains(&r_type)) {
            continue;
        }
        if relocation.kind() != RelocationKind::Absolute || relocation.has_implicit_addend() {
            return Err(NoImage::Unapplied);
        }
        let value = value(image, layout, &relocation).ok_or(NoImage::Damaged)?;
        put(bytes, offset, relocation.size(), value, image.elf.endian()).ok_or(NoImage::Damaged)?;
    }
    Ok(())
}

fn value(image: &Image<'_>, layout: &Layout, relocation: &Relocation) -> Option<u64> {
    let base = match relocation.target() {
        RelocationTarget::Symbol(index) => address(image, layout, index)?,
        RelocationTarget::Absolute => 0,
        _ => return None,
    };
    Some(base.wrapping_add_signed(relocation.addend()))
}

/// The address of a symbol. Of what is in other files, or is no code, lines need none: such a one
/// counts from 0, as debug information itself does.
fn address(image: &Image<'_>, layout: &Layout, index: SymbolIndex) -> Option<u64> {
    let symbol = image.elf.symbol_by_index(index).ok()?;
    match symbol.section() {
        SymbolSection::Section(section) => {
            Some(layout.start(section).wrapping_add(symbol.address()))
        }
        SymbolSection::Absolute => Some(symbol.address()),
        _ => Some(0),
    }
}

/// Writes `value` with so many bits; `None` where they are out of what there is.
fn put(bytes: &mut [u8], offset: u64, bits: u8, value: u64, endian: Endianness) -> Option<()> {
    let place = bytes.get_mut(usize::try_from(offset).ok()?..)?;
    let is_little = endian.is_little_endian();
    match bits {
        64 => {
            let place = place.first_chunk_mut()?;
            *place = if is_little { value.to_le_bytes() } else { value.to_be_bytes() };
        }
        32 => {
            // An offset within debug information. What is larger is nowhere.
            let value = u32::try_from(value).unwrap_or(u32::MAX);
            let place = place.first_chunk_mut()?;
            *place = if is_little { value.to_le_bytes() } else { value.to_be_bytes() };
        }
        _ => return None,
    }
    Some(())
}
