//! The load `printk`: lines to the kernel's log.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::Path;

use wakescope_core::units::{MonoNs, SpanNs};
use wakescope_sys::clock;
use wakescope_sys::file::effective_user;

use super::desk::{Desk, fault};
use super::kinds::Job;

const LOG: &str = "/dev/kmsg";

/// Whether programs may write to the log: `on`, `off`, or by default `ratelimit`, with which the
/// kernel drops all but ten lines in five seconds and says nothing of that to who writes them.
const PERMISSION: &str = "/proc/sys/kernel/printk_devkmsg";

/// Lines are so far apart: 100 in a second. On a serial console of 115,200 baud, such a line takes
/// 6 ms.
const INTERVAL: SpanNs = SpanNs(10_000_000);

/// The most lines of one load, so that a load that somebody forgets does not fill a disk with what a
/// daemon copies there: 7 MB, after 16 min 40 s.
const MOST_LINES: u64 = 100_000;

/// Writes lines until the desk says stop.
pub(super) fn run(job: &Job<'_>) -> Result<(), String> {
    let desk = job.desk;
    expect_permission(Path::new(PERMISSION), desk)?;
    let path = Path::new(LOG);
    let log = OpenOptions::new().write(true).open(path).map_err(|e| {
        desk.advise("run as root, outside of a container");
        fault("open", path, &e)
    })?;
    desk.ready();
    write_lines(&log, MOST_LINES, INTERVAL, desk)
}

/// Fails where the kernel would drop most lines without a word.
fn expect_permission(setting: &Path, desk: &Desk) -> Result<(), String> {
    let found = fs::read_to_string(setting).map_err(|e| fault("read", setting, &e))?;
    match found.trim() {
        "on" => Ok(()),
        found => {
            desk.advise(remedy(effective_user()));
            let found: String = found.chars().take(20).collect();
            Err(format!(
                "the kernel limits what programs write to its log (kernel.printk_devkmsg is \
                 `{found}`)"
            ))
        }
    }
}

/// What lets `user` write to the log. With the setting alone, others than root still may not open it.
fn remedy(user: u32) -> &'static str {
    match user {
        0 => "allow it for as long as you measure: sysctl kernel.printk_devkmsg=on",
        _ => {
            "run as root, and allow it for as long as you measure: sysctl kernel.printk_devkmsg=on"
        }
    }
}

fn write_lines(mut log: &File, most: u64, interval: SpanNs, desk: &Desk) -> Result<(), String> {
    let mut next = clock::now();
    for number in 1..=most {
        // As information (6), like most of what drivers say.
        let line = format!("<6>wakescope: the load printk writes this line, number {number}\n");
        match log.write(line.as_bytes()) {
            Ok(_) => desk.done(1),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(fault("write to", Path::new(LOG), &e)),
        }
        next = MonoNs(next.0 + interval.0).max(clock::now());
        let _ = clock::sleep_until(next);
        if desk.stopping() {
            return Ok(());
        }
    }
    Err(format!("it has written {most} lines to the kernel's log, which is the most it may"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::desk::test_desk;
    use wakescope_sys::pipe::pipe;

    #[test]
    fn lines_are_counted_and_limited() {
        use std::io::Read;
        let desk = test_desk();
        let (mut reader, writer) = pipe().unwrap();
        let fault = write_lines(&writer, 3, SpanNs(1), &desk).unwrap_err();
        assert!(fault.contains("3 lines"), "{fault}");
        assert_eq!(desk.work(), 3);
        drop(writer);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text.lines().count(), 3);
        assert!(text.lines().all(|line| line.starts_with("<6>wakescope: ")), "{text}");
    }

    #[test]
    fn all_that_a_user_lacks_is_named() {
        for (user, needs_root) in [(0, false), (1000, true), (65534, true)] {
            let remedy = remedy(user);
            assert!(remedy.contains("sysctl kernel.printk_devkmsg=on"), "{remedy}");
            assert_eq!(remedy.contains("run as root"), needs_root, "{remedy}");
        }
    }

    #[test]
    fn a_log_that_drops_lines_is_refused() {
        let dir = wakescope_testing::Folder::new("printk");
        let setting = dir.join("setting");
        for (text, works) in [("on\n", true), ("ratelimit\n", false), ("off\n", false), ("", false)]
        {
            fs::write(&setting, text).unwrap();
            assert_eq!(expect_permission(&setting, &test_desk()).is_ok(), works, "{text}");
        }
        fs::remove_file(&setting).unwrap();
        assert!(expect_permission(&setting, &test_desk()).is_err());
    }
}
