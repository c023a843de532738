//! How results leave the guest: named files one after the other, with a checksum at the end.
//!
//! ```text
//! wakescope parcel 1
//! run.json 5120
//! {…}
//! end 2c26b46b68ffc68ff99b453c1d304134…
//! ```
//!
//! A name, a space, the length in bytes, a newline, the bytes, a newline; then `end` and the SHA-256
//! of all that came before it. A parcel that was cut short or changed on the way is none.

use crate::sum;

/// First line.
const HEAD: &[u8] = b"wakescope parcel 1\n";

/// More files than that come from no guest of ours.
const FILES_MAX: usize = 16;

/// A file of a parcel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Letters, digits, `.`, `-` and `_`; does not begin with a `.`.
    pub name: String,
    /// What is in it.
    pub bytes: Vec<u8>,
}

impl Item {
    /// A file of this name.
    pub fn new(name: &str, bytes: impl Into<Vec<u8>>) -> Self {
        Self { name: name.into(), bytes: bytes.into() }
    }
}

/// Why bytes are no parcel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParcelError {
    /// Nothing came.
    #[error("the guest sent no result")]
    Empty,
    /// It begins as one, but is cut short.
    #[error("the guest ended before it had sent its result")]
    Incomplete,
    /// It is not shaped as one, or its checksum is another.
    #[error("the guest's result is damaged")]
    Damaged,
}

/// The files as one parcel.
pub fn pack(items: &[Item]) -> Vec<u8> {
    let mut out = HEAD.to_vec();
    for item in items {
        out.extend_from_slice(format!("{} {}\n", item.name, item.bytes.len()).as_bytes());
        out.extend_from_slice(&item.bytes);
        out.push(b'\n');
    }
    let sum = sum::of_bytes(&out);
    out.extend_from_slice(format!("end {sum}\n").as_bytes());
    out
}

/// The files of a parcel, of which no two have the same name.
pub fn unpack(bytes: &[u8]) -> Result<Vec<Item>, ParcelError> {
    if bytes.is_empty() {
        return Err(ParcelError::Empty);
    }
    let mut rest = match bytes.strip_prefix(HEAD) {
        Some(rest) => rest,
        None if HEAD.starts_with(bytes) => return Err(ParcelError::Incomplete),
        None => return Err(ParcelError::Damaged),
    };
    let mut items = Vec::new();
    loop {
        let before = bytes.len() - rest.len();
        let end = rest.iter().take(200).position(|&b| b == b'\n').ok_or({
            if rest.len() < 200 { ParcelError::Incomplete } else { ParcelError::Damaged }
        })?;
        let line = std::str::from_utf8(&rest[..end]).map_err(|_| ParcelError::Damaged)?;
        rest = &rest[end + 1..];
        let (name, value) = line.split_once(' ').ok_or(ParcelError::Damaged)?;
        if name == "end" {
            let sum = sum::of_bytes(&bytes[..before]);
            return if value == sum { Ok(items) } else { Err(ParcelError::Damaged) };
        }
        let length: usize = value.parse().map_err(|_| ParcelError::Damaged)?;
        let is_new = items.iter().all(|item: &Item| item.name != name);
        if !is_name(name) || !is_new || items.len() == FILES_MAX {
            return Err(ParcelError::Damaged);
        }
        if rest.len() <= length {
            return Err(ParcelError::Incomplete);
        }
        if rest[length] != b'\n' {
            return Err(ParcelError::Damaged);
        }
        items.push(Item::new(name, &rest[..length]));
        rest = &rest[length + 1..];
    }
}

/// Whether it is safe to make a file of this name: the guest's kernel may be anybody's.
fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    !name.is_empty() && name.len() <= 64 && !name.starts_with('.') && name.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use wakescope_testing::fuzz;

    proptest! {
        #[test]
        fn what_was_packed_is_unpacked(files in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..5)) {
            let items: Vec<_> =
                files.into_iter().enumerate().map(|(i, f)| Item::new(&format!("f{i}"), f)).collect();
            prop_assert_eq!(unpack(&pack(&items)), Ok(items));
        }

        #[test]
        fn what_was_cut_or_changed_is_refused(at in any::<prop::sample::Index>(), change in 1_u8.., cut in any::<bool>()) {
            let mut bytes = pack(&[Item::new("run.json", "{}"), Item::new("kernel.log", "hello\n")]);
            let at = at.index(bytes.len());
            if cut { bytes.truncate(at) } else { bytes[at] ^= change }
            prop_assert!(unpack(&bytes).is_err());
        }
    }

    #[test]
    fn fuzz_parcels() {
        let whole = [Item::new("run.json", "{}"), Item::new("kernel.log", "hello\n")];
        fuzz("parcel", &[pack(&whole)], |bytes| {
            // Its sum lets nothing else through. More may follow: a kernel that restarts has its say.
            if let Ok(items) = unpack(bytes) {
                assert!(bytes.starts_with(&pack(&items)));
            }
        });
    }

    #[test]
    fn hostile_parcels_are_refused() {
        let signed = |body: &str| {
            let mut all = [HEAD, body.as_bytes()].concat();
            let sum = sum::of_bytes(&all);
            all.extend_from_slice(format!("end {sum}\n").as_bytes());
            all
        };
        assert_eq!(unpack(&signed("a 1\nx\n")), Ok(vec![Item::new("a", "x")]));
        for body in [
            "a 1\nx\na 1\ny\n",
            "../a 1\nx\n",
            "a/b 1\nx\n",
            ".a 1\nx\n",
            " 1\nx\n",
            "a -1\nx\n",
            "a 1\nxy",
            "a\nx\n",
        ] {
            assert_eq!(unpack(&signed(body)), Err(ParcelError::Damaged), "{body:?}");
        }
        let many: String = (0..=FILES_MAX).map(|i| format!("f{i} 0\n\n")).collect();
        assert_eq!(unpack(&signed(&many)), Err(ParcelError::Damaged));
        assert_eq!(unpack(&signed("a 18446744073709551615\nx\n")), Err(ParcelError::Incomplete));
        assert_eq!(unpack(b""), Err(ParcelError::Empty));
        assert_eq!(unpack(&HEAD[..9]), Err(ParcelError::Incomplete));
        assert_eq!(unpack(&[b'x'; 4096]), Err(ParcelError::Damaged));
    }
}
