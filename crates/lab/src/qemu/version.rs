//! Which version an emulator is, and where it looks for firmware.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wakescope_core::units::SpanNs;
use wakescope_sys::clock;
use wakescope_sys::process::Exit;

use super::{SANDBOX, Start};
use crate::archive::tool::{self, Tool};
use crate::cache::{Cache, read_bounded};
use crate::watch::{Step, Watch};

/// How long an emulator may take to say what it is.
const PATIENCE: SpanNs = SpanNs(20_000_000_000);

/// The largest file of answers that is read, and the most answers in it.
const LARGEST: u64 = 256 << 10;
const MOST: usize = 64;

/// A version: `10.0.13`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Version(pub u32, pub u32, pub u32);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.0, self.1, self.2)
    }
}

impl Version {
    /// Reads the numbers that `text` begins with: `10.0.13+ds-0+deb13u1`, `9.2.50-rc1`, `9.2`.
    pub fn of(text: &str) -> Option<Self> {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let mut numbers = text[..end].trim_end_matches('.').split('.').map(|n| n.parse().ok());
        let (first, second) = (numbers.next()??, numbers.next()??);
        Some(Self(first, second, numbers.next().unwrap_or(Some(0))?))
    }
}

/// What an emulator said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Answer {
    pub(super) version: Version,
    pub(super) banner: String,
    pub(super) data: Vec<PathBuf>,
    pub(super) has_sandbox: bool,
}

/// Asks the emulator, or remembers what the same program said before: starting it takes longer
/// than all else of a cell that is there already.
pub(super) fn ask(start: &Start, sha256: &str, cache: &Cache) -> Result<Answer, String> {
    let key = format!("{sha256} {}", start.program.display());
    let place = cache.qemu().join("answers.json");
    let mut known = read(&place);
    if let Some(answer) = known.get(&key) {
        return Ok(answer.clone());
    }
    let said = run(start, &["--version"])??;
    let (version, banner) = parse(&said).ok_or("it does not identify itself as QEMU")?;
    let data = run(start, &["-L", "help"])?.map(|text| folders(&text)).unwrap_or_default();
    // It forbids itself what it does not need before it lists its processors.
    let trial = ["-sandbox", SANDBOX, "-nodefaults", "-machine", "none", "-cpu", "help"];
    let has_sandbox = run(start, &trial)?.is_ok();
    let answer = Answer { version, banner, data, has_sandbox };
    known.insert(key, answer.clone());
    while known.len() > MOST {
        known.pop_first();
    }
    // It is only for speed: where it cannot be written, it is done without.
    if let Ok(text) = serde_json::to_vec(&known) {
        let _ = cache.write(&place, &text);
    }
    Ok(answer)
}

fn read(place: &Path) -> BTreeMap<String, Answer> {
    let text = read_bounded(place, LARGEST).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

/// How the kernel ends a program that does what a seccomp filter forbids (SIGSYS).
const FORBIDDEN: Exit = Exit::Signal(31);

/// What the emulator says to `args`, or that it refuses: both are answers, which stay the same.
///
/// # Errors
/// If it did not start, or was ended before it had an answer. It may have one the next time.
fn run(start: &Start, args: &[&str]) -> Result<Result<String, String>, String> {
    let mut words = start.command().into_iter();
    let tool = Tool::new(words.next().unwrap_or_default()).args(words).args(args.iter().copied());
    let mut patience = Patience(clock::now().after(PATIENCE));
    let ended = tool::run(&tool, tool::text(64 << 10), &mut patience, |_| Ok(()))
        .map_err(|e| e.to_string())?;
    if ended.success() {
        return Ok(Ok(ended.output));
    }
    let said = ended.complaints.lines().last().unwrap_or_default().to_owned();
    let why = if said.is_empty() { ended.exit.to_string() } else { said };
    match ended.exit {
        Exit::Status(_) | FORBIDDEN => Ok(Err(why)),
        Exit::Signal(_) | Exit::Unknown => Err(why),
    }
}

/// Ends what takes too long.
struct Patience(wakescope_core::units::MonoNs);

impl Watch for Patience {
    fn step(&mut self, _: &Step<'_>) {}

    fn stopped(&mut self) -> bool {
        clock::now() >= self.0
    }
}

/// Reads `QEMU emulator version 10.0.13 (Debian 1:10.0.13+ds-0+deb13u1)`.
fn parse(said: &str) -> Option<(Version, String)> {
    let line = said.lines().next()?;
    let rest = line.strip_prefix("QEMU emulator version ")?;
    let banner: String = rest.chars().filter(|c| !c.is_control()).take(100).collect();
    Some((Version::of(rest)?, format!("QEMU {}", banner.trim())))
}

/// Reads the list of folders that `-L help` prints.
fn folders(said: &str) -> Vec<PathBuf> {
    said.lines()
        .take(20)
        .map(PathBuf::from)
        .filter(|dir| dir.is_absolute() && dir.is_dir())
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn versions_are_read() {
        for (said, want) in [
            (
                "QEMU emulator version 10.0.13 (Debian 1:10.0.13+ds-0+deb13u1)\nCopyright",
                Some(("10.0.13", "QEMU 10.0.13 (Debian 1:10.0.13+ds-0+deb13u1)")),
            ),
            ("QEMU emulator version 7.2.22", Some(("7.2.22", "QEMU 7.2.22"))),
            ("QEMU emulator version 9.2", Some(("9.2.0", "QEMU 9.2"))),
            ("QEMU emulator version 9.1.50-rc1\x1b[31m", Some(("9.1.50", "QEMU 9.1.50-rc1[31m"))),
            ("QEMU emulator version 9", None),
            ("QEMU emulator version 99999999999.0.0", None),
            ("VirtualBox 7.0", None),
            ("", None),
        ] {
            let got = parse(said).map(|(version, banner)| (version.to_string(), banner));
            assert_eq!(got, want.map(|(v, b)| (v.into(), b.into())), "{said}");
        }
        assert!(Version(8, 0, 0) > Version(7, 2, 22) && Version(10, 0, 0) > Version(8, 2, 0));
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in ".{0,60}") {
            let _ = parse(&format!("QEMU emulator version {text}"));
            let _ = folders(&text);
        }
    }
}
