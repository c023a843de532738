//! Keys, from the bytes that terminals send for them.

use wakescope_report::watch::live::Key;

const ESCAPE: u8 = 0x1b;
/// No sequence of a key is longer.
const LONGEST: usize = 16;

/// What was read of a key whose end is still to come.
#[derive(Debug, Default)]
pub(super) struct Keys {
    begun: Vec<u8>,
}

impl Keys {
    /// The keys that these bytes end.
    pub(super) fn read(&mut self, bytes: &[u8]) -> Vec<Key> {
        let mut keys = Vec::new();
        for &byte in bytes {
            if self.begun.is_empty() {
                match byte {
                    ESCAPE => self.begun.push(byte),
                    _ => keys.extend(plain(byte)),
                }
                continue;
            }
            if byte == ESCAPE {
                keys.extend(self.end());
                self.begun.push(byte);
                continue;
            }
            self.begun.push(byte);
            let is_first = self.begun.len() == 2;
            let goes_on = match byte {
                b'[' | b'O' => is_first,
                0x40..=0x7e => false,
                _ => !is_first,
            };
            if !goes_on || self.begun.len() >= LONGEST {
                keys.extend(of_sequence(&self.begun[1..]));
                self.begun.clear();
            }
        }
        keys
    }

    /// Whether the end of a key is still to come.
    pub(super) fn is_in_key(&self) -> bool {
        !self.begun.is_empty()
    }

    /// No more comes: an escape alone is a key.
    pub(super) fn end(&mut self) -> Vec<Key> {
        let is_alone = self.begun.len() == 1;
        self.begun.clear();
        if is_alone { vec![Key::Back] } else { Vec::new() }
    }
}

fn plain(byte: u8) -> Option<Key> {
    match byte {
        b'\r' | b'\n' => Some(Key::Enter),
        0x08 | 0x7f => Some(Key::Back),
        b' '..=b'~' => Some(Key::Char(char::from(byte))),
        _ => None,
    }
}

/// The key of a sequence without its escape; `None` for keys that mean nothing here.
fn of_sequence(sequence: &[u8]) -> Option<Key> {
    match sequence {
        b"[A" | b"OA" => Some(Key::Up),
        b"[B" | b"OB" => Some(Key::Down),
        b"[C" | b"OC" => Some(Key::Right),
        b"[D" | b"OD" => Some(Key::Left),
        b"[H" | b"OH" | b"[1~" | b"[7~" => Some(Key::Home),
        b"[F" | b"OF" | b"[4~" | b"[8~" => Some(Key::End),
        b"[5~" => Some(Key::PageUp),
        b"[6~" => Some(Key::PageDown),
        b"OM" => Some(Key::Enter),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys of these bytes, in any parts.
    #[track_caller]
    fn check(bytes: &[u8], want: &[Key]) {
        for step in [1, 2, 3, bytes.len().max(1)] {
            let mut keys = Keys::default();
            let mut got: Vec<Key> = bytes.chunks(step).flat_map(|part| keys.read(part)).collect();
            got.extend(keys.end());
            assert!(!keys.is_in_key());
            assert_eq!(got, want, "{bytes:?} by {step}");
        }
    }

    #[test]
    fn sequences_are_keys() {
        check(b"q\r\x7f", &[Key::Char('q'), Key::Enter, Key::Back]);
        check(b"\x1b[A\x1bOB\x1b[C\x1b[D", &[Key::Up, Key::Down, Key::Right, Key::Left]);
        check(b"\x1b[5~\x1b[6~\x1b[H\x1b[4~", &[Key::PageUp, Key::PageDown, Key::Home, Key::End]);
        check(b"\x1b", &[Key::Back]);
        check(b"\x1b\x1b[A", &[Key::Back, Key::Up]);
    }

    #[test]
    fn what_means_nothing_is_left_out_whole() {
        // F5, a mouse, Alt-x, a character of two bytes, Ctrl-A.
        check(b"\x1b[15~\x1b[<0;10;20Mj", &[Key::Char('j')]);
        check(b"\x1bxs\xc3\xa9\x01", &[Key::Char('s')]);
        // One without an end.
        check(&[b"\x1b[".as_slice(), &[b'1'; 14], b"q"].concat(), &[Key::Char('q')]);
        check(b"\x1b[12", &[]);
    }

    #[test]
    fn any_bytes_are_read() {
        let bytes: Vec<u8> = (0..=255).chain((0..=255).rev()).collect();
        for from in 0..bytes.len() {
            let mut keys = Keys::default();
            keys.read(&bytes[from..]);
            assert!(keys.begun.len() < LONGEST);
        }
    }
}
