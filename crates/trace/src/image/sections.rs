//! Sections of debug information, unpacked where they are packed.

use std::borrow::Cow;
use std::io::Read;

use flate2::read::ZlibDecoder;
use gimli::SectionId;
use object::{CompressedFileRange, CompressionFormat, Object, ObjectSection};

use super::{Image, NoImage, relocation};

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

/// What unpacking, or a copy with its relocations, may take at the most, in bytes: a kernel's sections
/// are half of that.
const LARGEST: u64 = 1 << 30;

/// The sections that an image has.
pub(super) struct Sections<'a>(Vec<(SectionId, Cow<'a, [u8]>)>);

impl<'a> Sections<'a> {
    pub(super) fn of(image: &Image<'a>) -> Result<Self, NoImage> {
        let mut left = LARGEST;
        let mut relocations = relocation::Left::of(image);
        let mut sections = Vec::new();
        for id in NEEDED {
            let Some(section) = image.elf.section_by_name(id.name()) else { continue };
            let range = section.compressed_file_range().map_err(|_| NoImage::Damaged)?;
            let mut bytes = match range.format {
                CompressionFormat::None => {
                    Cow::Borrowed(section.data().map_err(|_| NoImage::Damaged)?)
                }
                _ => Cow::Owned(unpacked(image, range, &mut left)?),
            };
            if let (Some(layout), true) = (&image.layout, section.relocations().next().is_some()) {
                let own = copied(&mut bytes, &mut left)?;
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

/// A copy of `bytes`, if they are none yet, as long as there is room `left`.
fn copied<'c>(bytes: &'c mut Cow<'_, [u8]>, left: &mut u64) -> Result<&'c mut Vec<u8>, NoImage> {
    if let Cow::Borrowed(bytes) = bytes {
        let rest = left.checked_sub(bytes.len() as u64);
        *left = rest.ok_or(NoImage::Packed("into more than 1 GiB"))?;
    }
    Ok(bytes.to_mut())
}

/// Unpacks a section, as long as there is room `left`.
fn unpacked(
    image: &Image<'_>,
    range: CompressedFileRange,
    left: &mut u64,
) -> Result<Vec<u8>, NoImage> {
    if range.format != CompressionFormat::Zlib {
        return Err(NoImage::Packed("other than by zlib"));
    }
    let packed = range.data(image.elf.data()).map_err(|_| NoImage::Damaged)?.data;
    // No larger than the room, whatever it says of itself.
    let mut bytes = Vec::new();
    let size = ZlibDecoder::new(packed).take(*left + 1).read_to_end(&mut bytes);
    let size = size.map_err(|_| NoImage::Damaged)? as u64;
    if size > *left {
        return Err(NoImage::Packed("into more than 1 GiB"));
    }
    *left -= size;
    Ok(bytes)
}
