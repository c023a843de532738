//! The notes that a linker leaves in an image, and the kernel shows of itself.

use wakescope_core::hex::to_hex;

/// What `/sys/kernel/notes` names its notes of: the id of the build.
const OWNER: &[u8] = b"GNU\0";
const BUILD_ID: u32 = 3;

/// Longer than any id is, bytes.
pub(super) const LONGEST: usize = 64;

/// The id of the running kernel's build in the bytes of `/sys/kernel/notes`, as lower-case
/// hexadecimal digits; `None` if it is not there.
pub(crate) fn build_id_of_notes(mut notes: &[u8]) -> Option<String> {
    loop {
        let word = |at: usize| {
            let bytes = notes.get(at..at + 4)?;
            Some(u32::from_ne_bytes(bytes.try_into().ok()?))
        };
        let (name_size, size, kind) =
            (usize::try_from(word(0)?).ok()?, usize::try_from(word(4)?).ok()?, word(8)?);
        let name = notes.get(12..12_usize.checked_add(name_size)?)?;
        let begin = 12_usize.checked_add(padded(name_size)?)?;
        let content = notes.get(begin..begin.checked_add(size)?)?;
        if kind == BUILD_ID && name == OWNER && (1..=LONGEST).contains(&size) {
            return Some(to_hex(content));
        }
        notes = notes.get(begin.checked_add(padded(size)?)?..)?;
    }
}

/// Names and contents begin at multiples of four bytes.
fn padded(size: usize) -> Option<usize> {
    size.checked_next_multiple_of(4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn note(owner: &[u8], kind: u32, content: &[u8]) -> Vec<u8> {
        let size = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap().to_ne_bytes();
        let mut note = [size(owner), size(content), kind.to_ne_bytes()].concat();
        for part in [owner, content] {
            note.extend(part);
            note.resize(note.len().next_multiple_of(4), 0);
        }
        note
    }

    #[test]
    fn the_build_id_is_found_among_other_notes() {
        let other = note(b"Linux\0", 0x101, &[1; 5]);
        let id = note(b"GNU\0", 3, &[0xab, 0, 0x1f]);
        let all = [&other[..], &id, &other].concat();
        assert_eq!(build_id_of_notes(&all).as_deref(), Some("ab001f"));
        assert_eq!(build_id_of_notes(&other), None);
        assert_eq!(build_id_of_notes(&note(b"GNU\0", 3, &[])), None);
        assert_eq!(build_id_of_notes(&all[..other.len() + 13]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_borne(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = build_id_of_notes(&bytes);
        }

        #[test]
        fn sizes_may_lie(a in any::<u32>(), b in any::<u32>(), rest in any::<[u8; 24]>()) {
            let bytes = [&a.to_ne_bytes()[..], &b.to_ne_bytes(), &3_u32.to_ne_bytes(), &rest];
            let _ = build_id_of_notes(&bytes.concat());
        }
    }
}
