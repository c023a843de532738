//! Marks that distinguish what is on one machine from what is on others, and do not reveal it.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use sha2::{Digest, Sha256};
use wakescope_core::hex::to_hex;

const MACHINE_IDS: [&str; 2] = ["/etc/machine-id", "/var/lib/dbus/machine-id"];
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// A mark of `value` that is the same for the same value on the same machine; `None` where this machine has
/// no number of its own. Marks for one `purpose` are not those for another.
///
/// A mere checksum could be used to try out passwords until one fits. This one depends on the number
/// of the machine, 128 random bits that no record holds.
pub(crate) fn of(purpose: &str, value: &str) -> Option<String> {
    let machine = machine().or_else(boot)?;
    Some(on(&machine, purpose, value))
}

/// A mark of this machine; `None` where it has no number that outlives a boot (machine-id(5)).
pub(crate) fn of_machine() -> Option<String> {
    machine().map(|machine| on(&machine, "wakescope machine", ""))
}

/// A mark of the boot of this machine.
pub(crate) fn of_boot() -> Option<String> {
    boot().map(|boot| on(&boot, "wakescope boot", ""))
}

fn on(machine: &str, purpose: &str, value: &str) -> String {
    let mut hash = Sha256::new();
    for part in [purpose, machine, value] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    to_hex(&hash.finalize()[..8])
}

fn machine() -> Option<String> {
    MACHINE_IDS.into_iter().find_map(number_in)
}

fn boot() -> Option<String> {
    number_in(BOOT_ID)
}

fn number_in(path: &str) -> Option<String> {
    let mut text = String::new();
    File::open(Path::new(path)).ok()?.take(64).read_to_string(&mut text).ok()?;
    number(&text)
}

/// A number of 128 bits in hexadecimal. A machine-id may also say that it is not there yet.
fn number(text: &str) -> Option<String> {
    let digits: String = text.trim().chars().filter(|&c| c != '-').collect();
    let is_number = digits.len() == 32 && digits.chars().all(|c| c.is_ascii_hexdigit());
    (is_number && digits.contains(|c| c != '0')).then_some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_tell_values_apart_on_one_machine() {
        let mark = |machine: &str, value: &str| on(machine, "test", value);
        assert_eq!(mark("a", "make -j2"), mark("a", "make -j2"));
        assert_ne!(mark("a", "make -j2"), mark("a", "make -j4"));
        assert_ne!(mark("a", "make -j2"), mark("b", "make -j2"));
        assert_ne!(mark("a", "bc"), mark("ab", "c"), "parts have their lengths");
        assert_ne!(on("a", "test", "x"), on("a", "other", "x"));
        assert_eq!(mark("a", "make").len(), 16);
        // Stored marks of commands stay comparable.
        assert_eq!(on("a", "wakescope exec", "make"), "a4e81bb30cd6656b");
    }

    #[test]
    fn numbers_of_machines() {
        let digits = "0123456789abcdef0123456789abcdef";
        assert_eq!(number(&format!("{digits}\n")).as_deref(), Some(digits));
        assert_eq!(number("01234567-89ab-cdef-0123-456789abcdef\n").as_deref(), Some(digits));
        for none in ["", "uninitialized\n", "0123", &"0".repeat(32), &"x".repeat(32)] {
            assert_eq!(number(none), None, "{none}");
        }
    }
}
