//! Bytes as hexadecimal digits: checksums and the ids of builds.

/// Two digits a byte, in lower case.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether `text` is so many digits, as [`to_hex`] writes them.
pub fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_the_bytes() {
        assert_eq!(to_hex(&[0xab, 0, 0x1f]), "ab001f");
        for (text, digits, want) in
            [("ab001f", 6, true), ("ab001f", 5, false), ("AB001F", 6, false), ("ab00 f", 6, false)]
        {
            assert_eq!(is_hex(text, digits), want, "{text:?}, {digits} digits");
        }
    }
}
