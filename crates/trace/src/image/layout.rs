//! Addresses for code that has none: in a module's file every section begins at 0.

use std::collections::HashMap;

use object::elf::SHF_EXECINSTR;
use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSection, SectionFlags, SectionIndex};

/// Where the first one lies: 0 is no address.
const FIRST: u64 = 1 << 20;

/// What lies between two, so that what is just behind one, or in a function of unknown length, is not
/// in the next.
const GAP: u64 = 1 << 20;

/// More sections of code than modules have, also where each function has its own.
const MOST: usize = 1 << 16;

/// Where sections of code are taken to lie: one behind the other, in the order of the file.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// In the order of addresses.
    sections: Vec<Placed>,
    /// Which of them it is, by a section's number.
    places: HashMap<SectionIndex, usize>,
}

#[derive(Clone, Copy, Debug)]
struct Placed {
    index: SectionIndex,
    start: u64,
    size: u64,
}

impl Layout {
    /// A place for each section of code; `None` if they have no room together, or are too many.
    pub(super) fn of(elf: &ElfFile64<'_, Endianness>) -> Option<Self> {
        let is_code = |flags| match flags {
            SectionFlags::Elf { sh_flags } => sh_flags & u64::from(SHF_EXECINSTR) != 0,
            _ => false,
        };
        let code = elf.sections().filter(|section| is_code(section.flags()));
        Self::of_sizes(code.map(|section| (section.index(), section.size())))
    }

    fn of_sizes(sizes: impl Iterator<Item = (SectionIndex, u64)>) -> Option<Self> {
        let mut layout = Self::default();
        let mut start = FIRST;
        for (index, size) in sizes {
            if layout.sections.len() == MOST {
                return None;
            }
            layout.places.insert(index, layout.sections.len());
            layout.sections.push(Placed { index, start, size });
            start = start.checked_add(size)?.checked_next_multiple_of(GAP)?.checked_add(GAP)?;
        }
        Some(layout)
    }

    /// The address of what lies so far `into` a section; `None` where that is none of code, or too
    /// short.
    pub(super) fn address(&self, section: SectionIndex, into: u64) -> Option<u64> {
        let Placed { start, size, .. } = self.sections[*self.places.get(&section)?];
        (into <= size).then(|| start + into)
    }

    /// Where a section begins; 0 for those without code, which have no place.
    pub(super) fn start(&self, section: SectionIndex) -> u64 {
        self.address(section, 0).unwrap_or(0)
    }

    /// The section that `address` is in, and how far into it.
    pub(super) fn section_at(&self, address: u64) -> Option<(SectionIndex, u64)> {
        let after = self.sections.partition_point(|placed| placed.start <= address);
        let Placed { index, start, size } = *self.sections[..after].last()?;
        let into = address - start;
        (into < size).then_some((index, into))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn layout(sizes: &[u64]) -> Option<Layout> {
        // The first one of a file is no section.
        let numbers = (1..).map(SectionIndex);
        Layout::of_sizes(numbers.zip(sizes.iter().copied()))
    }

    #[test]
    fn each_section_has_a_place_of_its_own() {
        let layout = layout(&[0x100, 0, GAP + 1]).unwrap();
        let [first, empty, last] = [1, 2, 3].map(|n| layout.start(SectionIndex(n)));
        assert_eq!([first, empty, last], [FIRST, FIRST + 2 * GAP, FIRST + 3 * GAP]);
        assert_eq!(layout.section_at(first + 0xff), Some((SectionIndex(1), 0xff)));
        assert_eq!(layout.section_at(first + 0x100), None);
        assert_eq!(layout.section_at(empty), None);
        assert_eq!(layout.section_at(last + GAP), Some((SectionIndex(3), GAP)));
        assert_eq!(layout.section_at(0), None);
        // The end of a section is a place where a call returns to.
        assert_eq!(layout.address(SectionIndex(1), 0x100), Some(first + 0x100));
        assert_eq!(layout.address(SectionIndex(1), 0x101), None);
        // One without code has none.
        assert_eq!(layout.address(SectionIndex(4), 0), None);
        assert_eq!(layout.start(SectionIndex(4)), 0);
    }

    #[test]
    fn what_has_no_room_has_no_layout() {
        assert!(layout(&[u64::MAX]).is_none());
        assert!(layout(&[1 << 63, 1 << 63]).is_none());
        assert!(layout(&vec![1; MOST]).is_some());
        assert!(layout(&vec![1; MOST + 1]).is_none());
    }

    proptest! {
        #[test]
        fn places_do_not_overlap(
            sizes in proptest::collection::vec(0_u64..1 << 40, 1..20),
            which in any::<prop::sample::Index>(),
            into in any::<u64>(),
        ) {
            let layout = layout(&sizes).unwrap();
            let which = which.index(sizes.len());
            let into = into % (sizes[which] + 1);
            let section = SectionIndex(which + 1);
            let address = layout.address(section, into).unwrap();
            let found = layout.section_at(address);
            prop_assert_eq!(found, (into < sizes[which]).then_some((section, into)));
        }
    }
}
