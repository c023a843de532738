//! Fields of files of /proc that tell of one process.

/// The value of a line of /proc/PID/status, such as `State:`.
pub(crate) fn status_line<'a>(status: &'a str, key: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim)
}

/// The field of /proc/PID/stat that comes so many after the name, which may hold anything: 0 is the state.
pub(crate) fn field_after_name(stat: &[u8], number: usize) -> Option<&str> {
    let after_name = stat.iter().rposition(|&byte| byte == b')')? + 1;
    std::str::from_utf8(&stat[after_name..]).ok()?.split_ascii_whitespace().nth(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_whatever_the_name() {
        for (stat, want) in [
            (&b"12 (sh) S 7 12 12"[..], Some("7")),
            (b"12 (a) R 9 (b) S 7 12", Some("7")),
            (b"12 (\xff\n) ) S 7 12", Some("7")),
            (b"12 (sh) S", None),
            (b"12 sh", None),
            (b"", None),
        ] {
            assert_eq!(field_after_name(stat, 1), want, "{}", String::from_utf8_lossy(stat));
        }
    }
}
