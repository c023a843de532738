//! Sections of debug information, unpacked where they are packed.

use std::borrow::Cow;
use std::io::Read;

use flate2::read::ZlibDecoder;
use gimli::SectionId;
use object::{CompressedFileRange, CompressionFormat, Object, ObjectSection};
use wakescope_core::budget::Budget;

use super::{Image, NoImage, costs, relocation};

/// Those that say which line an address is of.
const NEEDED: [SectionId; 11] = [
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugAranges,
    SectionId::DebugInfo,
    SectionId::DebugLine,
    SectionId::DebugLineStr,
    SectionId::DebugRanges,
    SectionId::DebugRngLists,
    SectionId::DebugStr,
    SectionId::DebugStrOffsets,
    SectionId::DebugTypes,
];

/// What unpacking, and copies with their relocations, may take at the most, in bytes, however long the
/// file is: a kernel's sections are half of that. Of a short file the budget is less.
const LARGEST: u64 = 1 << 30;

/// The sections that an image has.
pub(super) struct Sections<'a>(Vec<(SectionId, Cow<'a, [u8]>)>);

impl<'a> Sections<'a> {
    /// Those of `image`; what is unpacked is drawn from its `budget`.
    pub(super) fn of(image: &Image<'a>, budget: &Budget) -> Result<Self, NoImage> {
        let mut room = Room { left: LARGEST, budget };
        let mut relocations = relocation::Left::of(image);
        let mut sections = Vec::new();
        for id in NEEDED {
            let Some(section) = image.elf.section_by_name(id.name()) else { continue };
            let range = section.compressed_file_range().map_err(|_| NoImage::Damaged)?;
            let mut bytes = match range.format {
                CompressionFormat::None => {
                    Cow::Borrowed(section.data().map_err(|_| NoImage::Damaged)?)
                }
                _ => Cow::Owned(unpacked(image, range, &mut room)?),
            };
            if let (Some(layout), true) = (&image.layout, section.relocations().next().is_some()) {
                let own = copied(&mut bytes, &mut room)?;
                relocation::apply(image, layout, &section, own, &mut relocations)?;
            }
            sections.push((id, bytes));
        }
        Ok(Self(sections))
    }

    /// The bytes of a section; none if the image lacks it.
    pub(super) fn get(&self, id: SectionId) -> &[u8] {
        self.0.iter().find(|(own, _)| *own == id).map_or(&[], |(_, bytes)| bytes)
    }
}

/// How much may still be unpacked or copied.
struct Room<'b> {
    left: u64,
    budget: &'b Budget,
}

impl Room<'_> {
    fn draw(&mut self, bytes: u64) -> Result<(), NoImage> {
        let left = self.left.checked_sub(bytes);
        self.left = left.ok_or(NoImage::Packed("into more than 1 GiB"))?;
        costs::keep_bytes(self.budget, bytes)
    }
}

/// A copy of `bytes`, if they are none yet, as long as there is `room`.
fn copied<'c>(
    bytes: &'c mut Cow<'_, [u8]>,
    room: &mut Room<'_>,
) -> Result<&'c mut Vec<u8>, NoImage> {
    if let Cow::Borrowed(bytes) = bytes {
        room.draw(bytes.len() as u64)?;
    }
    Ok(bytes.to_mut())
}

/// Unpacks a section, as long as there is `room`.
fn unpacked(
    image: &Image<'_>,
    range: CompressedFileRange,
    room: &mut Room<'_>,
) -> Result<Vec<u8>, NoImage> {
    if range.format != CompressionFormat::Zlib {
        return Err(NoImage::Packed("other than by zlib"));
    }
    let packed = range.data(image.elf.data()).map_err(|_| NoImage::Damaged)?.data;
    // Before anything is unpacked. If the section says less than there is, that is not read.
    room.draw(range.uncompressed_size)?;
    let mut bytes = Vec::with_capacity(usize::try_from(range.uncompressed_size).unwrap_or(0));
    let size = ZlibDecoder::new(packed).take(range.uncompressed_size).read_to_end(&mut bytes);
    let size = size.map_err(|_| NoImage::Damaged)? as u64;
    if size < range.uncompressed_size {
        return Err(NoImage::Damaged);
    }
    Ok(bytes)
}
