//! Reads an archive in the format of tar, as it comes through a pipe: the variants that Debian's
//! packages are made of (ustar, and GNU's long names).

use std::io::{self, Read};

/// Everything in an archive has a multiple of this size.
const BLOCK: usize = 512;

/// The longest name. The kernel takes no longer path.
const LONGEST_NAME: u64 = 4096;

/// What is wrong with an archive.
#[derive(Debug, thiserror::Error)]
pub(super) enum TarError {
    /// It cannot be read, or ends too early.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is not in this format.
    #[error("{0}")]
    Format(&'static str),
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Folder,
    /// A symbolic link.
    Link,
    /// Another name of an earlier entry.
    HardLink,
    /// A device, a FIFO, or what no package holds.
    Other,
}

/// What an archive says about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) kind: Kind,
    pub(super) name: Vec<u8>,
    /// Of a link: where it leads.
    pub(super) target: Vec<u8>,
    pub(super) mode: u32,
    /// Bytes of content, which follow.
    pub(super) size: u64,
}

/// An archive that is being read.
pub(super) struct Reader<R> {
    source: R,
    /// Of the last entry: content that was not read, and what fills its last block.
    content: u64,
    padding: u64,
}

impl<R: Read> Reader<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, content: 0, padding: 0 }
    }

    /// The next entry; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Entry>, TarError> {
        let (mut long_name, mut long_target) = (None, None);
        loop {
            self.skip()?;
            let mut header = [0; BLOCK];
            self.source.read_exact(&mut header)?;
            if header == [0; BLOCK] {
                return Ok(None);
            }
            let entry = parse(&header)?;
            self.content = entry.size;
            self.padding = entry.size.next_multiple_of(BLOCK as u64) - entry.size;
            match header[156] {
                b'L' => long_name = Some(self.text()?),
                b'K' => long_target = Some(self.text()?),
                _ => {
                    let name = long_name.unwrap_or(entry.name);
                    let target = long_target.unwrap_or(entry.target);
                    return Ok(Some(Entry { name, target, ..entry }));
                }
            }
        }
    }

    /// Writes the content of the last entry to `sink`.
    pub(super) fn copy(&mut self, sink: &mut impl io::Write) -> io::Result<()> {
        let copied = io::copy(&mut self.source.by_ref().take(self.content), sink)?;
        self.content -= copied;
        if self.content > 0 { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    /// The content as a name, which ends with NUL.
    fn text(&mut self) -> Result<Vec<u8>, TarError> {
        if self.content > LONGEST_NAME {
            return Err(TarError::Format("a name is too long"));
        }
        let mut bytes = Vec::new();
        self.copy(&mut bytes)?;
        Ok(until_nul(&bytes).to_vec())
    }

    fn skip(&mut self) -> io::Result<()> {
        let rest = self.content.saturating_add(self.padding);
        let skipped = io::copy(&mut self.source.by_ref().take(rest), &mut io::sink())?;
        if skipped < rest {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        (self.content, self.padding) = (0, 0);
        Ok(())
    }
}

fn parse(header: &[u8; BLOCK]) -> Result<Entry, TarError> {
    let stated = number(&header[148..156])?;
    let blanked = |(place, &byte): (usize, &u8)| match place {
        148..156 => u64::from(b' '),
        _ => u64::from(byte),
    };
    if stated != header.iter().enumerate().map(blanked).sum::<u64>() {
        return Err(TarError::Format("a header has a wrong checksum"));
    }
    let kind = match header[156] {
        b'0' | 0 | b'7' => Kind::File,
        b'1' => Kind::HardLink,
        b'2' => Kind::Link,
        b'5' => Kind::Folder,
        // Of POSIX: they could rename what follows.
        b'x' | b'g' => return Err(TarError::Format("it has extended headers")),
        _ => Kind::Other,
    };
    let mut name = until_nul(&header[..100]).to_vec();
    // GNU's variant, whose magic ends with blanks, has other things in place of the prefix.
    let prefix = if &header[257..263] == b"ustar\0" { until_nul(&header[345..500]) } else { b"" };
    if !prefix.is_empty() {
        name = [prefix, b"/", &name].concat();
    }
    let mode = u32::try_from(number(&header[100..108])?).unwrap_or(0);
    let size = number(&header[124..136])?;
    // Links, folders and devices have no content, whatever their headers say.
    let has_content = matches!(kind, Kind::File | Kind::Other);
    let is_device = matches!(header[156], b'3' | b'4' | b'6');
    let size = if has_content && !is_device { size } else { 0 };
    Ok(Entry { kind, name, target: until_nul(&header[157..257]).to_vec(), mode, size })
}

/// A number in octal digits, or in GNU's binary form.
fn number(field: &[u8]) -> Result<u64, TarError> {
    let wrong = || TarError::Format("a number is malformed");
    if field[0] & 0x80 != 0 {
        let (high, low) = field.split_at(field.len().saturating_sub(8));
        let is_small = high.iter().all(|&byte| byte & 0x7f == 0);
        let low =
            if high.is_empty() { [&[low[0] & 0x7f], &low[1..]].concat() } else { low.to_vec() };
        let value = low.iter().fold(0, |value, &byte| value << 8 | u64::from(byte));
        return if is_small { Ok(value) } else { Err(wrong()) };
    }
    let text = std::str::from_utf8(until_nul(field)).map_err(|_| wrong())?.trim_matches(' ');
    if text.is_empty() { Ok(0) } else { u64::from_str_radix(text, 8).map_err(|_| wrong()) }
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::tar as archive;

    fn read(bytes: &[u8]) -> Result<Vec<(Entry, Vec<u8>)>, TarError> {
        let mut reader = Reader::new(bytes);
        let mut all = Vec::new();
        while let Some(entry) = reader.next()? {
            let mut content = Vec::new();
            reader.copy(&mut content)?;
            all.push((entry, content));
        }
        Ok(all)
    }

    #[test]
    fn entries_are_read_with_their_content() {
        let long = "long/".repeat(60);
        let bytes = archive(&[
            (b'5', "./usr/", "", 0o755, b""),
            (b'0', "./usr/file", "", 0o4755, b"content"),
            (b'2', "./link", "usr/file", 0o777, b""),
            (b'0', &long, "", 0o644, &[1; 1000]),
            (b'2', "./far", &long, 0o777, b""),
            (b'1', "./again", "./usr/file", 0o644, b""),
            (b'3', "./device", "", 0o666, b""),
        ]);
        let all = read(&bytes).unwrap();
        let kinds: Vec<Kind> = all.iter().map(|(entry, _)| entry.kind).collect();
        use Kind::{File, Folder, HardLink, Link, Other};
        assert_eq!(kinds, [Folder, File, Link, File, Link, HardLink, Other]);
        assert_eq!((all[1].0.mode, &all[1].1[..]), (0o4755, &b"content"[..]));
        assert_eq!((&all[3].0.name[..], all[3].1.len()), (long.as_bytes(), 1000));
        assert_eq!((&all[4].0.name[..], &all[4].0.target[..]), (&b"./far"[..], long.as_bytes()));
        // What is not read is skipped.
        let mut reader = Reader::new(&bytes[..]);
        assert_eq!(std::iter::from_fn(|| reader.next().unwrap()).count(), 7);
    }

    #[test]
    fn what_is_no_archive_is_an_error() {
        let good = archive(&[(b'0', "file", "", 0o644, &[1; 1000])]);
        for (change, why) in [
            (&(|bytes: &mut Vec<u8>| bytes[0] ^= 1) as &dyn Fn(&mut Vec<u8>), "checksum"),
            (&|bytes| bytes[150] = b'9', "malformed"),
            (&|bytes| bytes.truncate(1200), "end of file"),
            (&|bytes| bytes.clear(), "fill whole buffer"),
            (
                &|bytes| *bytes = archive(&[(b'x', "file", "", 0, b"20 path=/etc/passwd\n")]),
                "extended",
            ),
            (&|bytes| *bytes = archive(&[(b'L', "file", "", 0, &[b'a'; 5000])]), "too long"),
        ] {
            let mut bytes = good.clone();
            change(&mut bytes);
            let e = read(&bytes).unwrap_err().to_string();
            assert!(e.contains(why), "{e} is not {why}");
        }
    }

    #[test]
    fn numbers_are_octal_or_binary() {
        for (field, want) in [
            (&b"0000644\0"[..], Some(0o644)),
            (b"   644 \0", Some(0o644)),
            (b"\0\0\0\0\0\0\0\0", Some(0)),
            (b"00000008", None),
            (b"-0000001", None),
            (b"\x80\0\0\0\0\0\x01\x02", Some(0x102)),
            (b"\x80\0\0\0\0\0\0\0\0\0\x01\x02", Some(0x102)),
            (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", None),
        ] {
            assert_eq!(number(field).ok(), want, "{field:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_a_danger(
            bytes in prop::collection::vec(any::<u8>(), 0..3000),
            place in 0..2000_usize,
            byte in any::<u8>(),
        ) {
            let _ = read(&bytes);
            let mut damaged = archive(&[(b'0', "file", "", 0o644, &[1; 1000])]);
            damaged[place] = byte;
            let _ = read(&damaged);
        }
    }
}
