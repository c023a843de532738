//! The sources of evidence for the preemption model.

use std::io::{self, Read};

use flate2::read::GzDecoder;
use wakescope_core::btf;
use wakescope_core::preemption::{Reading, Sources, Traits};
use wakescope_sys::machine;

use super::Files;

/// Reads every source but the type information, which is large.
pub(super) fn read(files: &Files) -> Sources {
    let release = files.word("/proc/sys/kernel/osrelease").unwrap_or_default();
    let config = config(files, &release);
    Sources {
        version: files.word("/proc/sys/kernel/version").unwrap_or_default(),
        // The file came with 6.1.
        arch: files
            .word("/proc/sys/kernel/arch")
            .or_else(|| machine::architecture().ok())
            .unwrap_or_default(),
        debugfs: files.reading("/sys/kernel/debug/sched/preempt"),
        boot_log: boot_log(files),
        realtime: files.reading("/sys/kernel/realtime"),
        cmdline: files.reading("/proc/cmdline"),
        config,
        btf: None,
        release,
    }
}

/// A kernel configuration has about 300 KiB; this stops a file that inflates without end.
const CONFIG_LIMIT: u64 = 4 << 20;

/// The build configuration from wherever it is found first. The running kernel's own comes first:
/// the other files may be of another build with the same release.
fn config(files: &Files, release: &str) -> Reading {
    const OWN: &str = "/proc/config.gz";
    let inflated = files.reading_with(OWN, |files| {
        let mut text = Vec::new();
        GzDecoder::new(files.open(OWN)?).take(CONFIG_LIMIT).read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    });
    let beside = [
        format!("/boot/config-{release}"),
        format!("/usr/lib/modules/{release}/config"),
        format!("/lib/modules/{release}/config"),
    ];
    let mut readings = vec![inflated];
    for path in beside {
        if readings.last().is_some_and(|r| r.text.is_ok()) {
            break;
        }
        readings.push(files.reading_with(&path, |files| {
            Ok(String::from_utf8_lossy(&files.bytes(&path, CONFIG_LIMIT)?).into_owned())
        }));
    }
    if let Some(found) = readings.iter().position(|r| r.text.is_ok()) {
        return readings.swap_remove(found);
    }
    // Nothing was found: say where it was looked for, and what stood in the way if it was more
    // than absence.
    let why = |r: &Reading| r.text.as_ref().err().filter(|why| *why != "absent").cloned();
    let why = readings.iter().find_map(why).unwrap_or_else(|| "absent".into());
    Reading { source: format!("{OWN}, /boot/config-{release}, …"), text: Err(why) }
}

/// More records than a log buffer of 1 MiB holds.
const RECORDS_LIMIT: usize = 20_000;

/// The records of the kernel's log that speak of preemption.
fn boot_log(files: &Files) -> Reading {
    const LOG: &str = "/dev/kmsg";
    files.reading_with(LOG, |files| {
        let mut log = files.open(LOG)?;
        let mut found = String::new();
        let mut first = None;
        // One read gives one record; a record longer than this is no one-line message.
        let mut record = [0; 8192];
        for _ in 0..RECORDS_LIMIT {
            match log.read(&mut record) {
                Ok(0) => break,
                Ok(length) => {
                    let text = String::from_utf8_lossy(&record[..length]);
                    first = first.or_else(|| sequence(&text));
                    if text.contains("Dynamic Preempt:") {
                        found.push_str(&text);
                        found.push('\n');
                    }
                }
                // EAGAIN: that was all.
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                // EPIPE: the record was overwritten meanwhile, the next is a later one. EINVAL: the
                // record is longer than the buffer.
                Err(e)
                    if matches!(
                        e.kind(),
                        io::ErrorKind::BrokenPipe | io::ErrorKind::InvalidInput
                    ) => {}
                Err(e) => return Err(e),
            }
        }
        if found.is_empty() {
            return Err(io::Error::other(match first {
                Some(0) => "the boot log has no line about preemption",
                _ => "the beginning of the boot log is overwritten",
            }));
        }
        Ok(found)
    })
}

/// The number of a log record: `6,89,240266,-;text` has 89.
fn sequence(record: &str) -> Option<u64> {
    record.split(',').nth(1)?.parse().ok()
}

pub(super) const BTF: &str = "/sys/kernel/btf/vmlinux";

/// No kernel has more than some 20 MB of it.
const BTF_LIMIT: u64 = 64 << 20;

/// The kernel's type information. Reading it takes 30 ms here: the kernel hands out a page at a
/// time.
pub(super) fn btf(files: &Files) -> Result<Vec<u8>, String> {
    files.bytes(BTF, BTF_LIMIT).map_err(|e| files.why(BTF, &e))
}

/// What the type information shows about preemption.
pub(super) fn btf_evidence(data: &Result<Vec<u8>, String>) -> (String, Result<Traits, String>) {
    let traits = |data: &Vec<u8>| traits(data).map_err(|damage| damage.to_string());
    (BTF.into(), data.as_ref().map_err(Clone::clone).and_then(traits))
}

fn traits(data: &[u8]) -> Result<Traits, btf::Damaged> {
    let mut traits = Traits::default();
    for thing in btf::Names::of(data)? {
        let btf::Named { kind, name, .. } = thing?;
        match (kind, name) {
            (btf::Kind::Function, "rt_spin_lock") => traits.rt = true,
            (btf::Kind::Function, "sched_dynamic_update") => traits.dynamic = true,
            _ => {}
        }
    }
    Ok(traits)
}
