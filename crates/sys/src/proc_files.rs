//! Files of /proc with names in them, which need not be UTF-8. The kernel cuts that of a thread at 15 bytes, which
//! may be within a character.

use std::fs;
use std::io;
use std::path::Path;

/// When the process or thread of this number began, ticks since the boot; `None` if there is none.
pub fn began(id: u64) -> Option<u64> {
    // For /proc/ID/stat, the kernel goes through all threads of the process.
    let stat = fs::read(format!("/proc/{id}/task/{id}/stat")).ok()?;
    field_after_name(&stat, 19)?.parse().ok()
}

/// Whether this is the number of a thread that is not the first of its process.
pub fn is_thread(id: u32) -> bool {
    let status = status(id).unwrap_or_default();
    status_line(&status, "Tgid:").is_some_and(|process| process != id.to_string())
}

/// /proc/ID/status, with a replacement character for what is not UTF-8; `None` if there is no such process or thread.
pub fn status(id: u32) -> Option<String> {
    text(Path::new(&format!("/proc/{id}/status"))).ok()
}

/// The text of a file, with a replacement character for what is not UTF-8.
///
/// # Errors
/// If the file cannot be read.
pub fn text(path: &Path) -> io::Result<String> {
    fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// The value of a line of /proc/ID/status, such as `State:`.
pub fn status_line<'a>(status: &'a str, key: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim)
}

/// The field of /proc/ID/stat that comes so many after the name, which may hold anything: 0 is the state.
pub fn field_after_name(stat: &[u8], number: usize) -> Option<&str> {
    let after_name = stat.iter().rposition(|&byte| byte == b')')? + 1;
    std::str::from_utf8(&stat[after_name..]).ok()?.split_ascii_whitespace().nth(number)
}

/// The name in /proc/ID/stat.
pub fn name(stat: &[u8]) -> Option<&[u8]> {
    let begin = stat.iter().position(|&byte| byte == b'(')? + 1;
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    stat.get(begin..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_whatever_the_name() {
        for (stat, want, want_name) in [
            (&b"12 (sh) S 7 12 12"[..], Some("7"), Some(&b"sh"[..])),
            (b"12 (a) R 9 (b) S 7 12", Some("7"), Some(b"a) R 9 (b")),
            (b"12 (\xff\n) ) S 7 12", Some("7"), Some(b"\xff\n) ")),
            (b"12 (sh) S", None, Some(b"sh")),
            (b"12 sh", None, None),
            (b") (", None, None),
            (b"", None, None),
        ] {
            let shown = String::from_utf8_lossy(stat);
            assert_eq!((field_after_name(stat, 1), name(stat)), (want, want_name), "{shown}");
        }
    }

    #[test]
    fn a_thread_is_known_whatever_its_name() {
        let process = std::process::id();
        assert!(began(process.into()).is_some() && !is_thread(process));
        let (named, thread) = std::thread::spawn(|| {
            fs::write("/proc/thread-self/comm", b"a name of umla\xc3").unwrap();
            let id = crate::sched::this_thread().number();
            (
                fs::read("/proc/thread-self/comm").unwrap(),
                (began(id.into()), is_thread(id), status(id)),
            )
        })
        .join()
        .unwrap();
        assert_eq!(named, b"a name of umla\xc3\n");
        let (began, is_thread, status) = thread;
        assert!(began.is_some() && is_thread);
        assert_eq!(status_line(&status.unwrap(), "Name:"), Some("a name of umla\u{fffd}"));
    }

    #[test]
    fn of_a_number_that_nobody_has_nothing_is_known() {
        const NOBODY: u32 = 0x7fff_fff0;
        assert!(began(NOBODY.into()).is_none() && status(NOBODY).is_none() && !is_thread(NOBODY));
    }
}
