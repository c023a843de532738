//! The order: the task of a guest, which the guest reads from its machine once it is ready. The kernel's
//! command line does not contain it. So all guests of a kernel are the same machine until then, and one that
//! was saved at that moment can take any order.
//!
//! Machines for x86 have ports through which firmware reads files from the emulator (docs/specs/fw_cfg.rst in
//! QEMU). All orders are of one length, so that none of them changes what firmware does with their directory.
//! Other machines get the order on the command line.

use wakescope_core::units::SpanNs;

/// The file's name, as the emulator has it.
pub const NAME: &str = "opt/wakescope/order";

/// Bytes of the file.
pub const LENGTH: usize = 4096;

/// The port by which a guest reports two events to the emulator's monitor: that it is ready for its order, and
/// that it is reading the order (docs/specs/pvpanic.rst in QEMU). Between the two, the machine can be halted
/// and saved.
pub const PVPANIC: u16 = 0x505;

/// The guest is ready. The monitor calls it `GUEST_PANICKED`.
pub const READY: u8 = 1;

/// The guest is reading the order. The monitor calls it `GUEST_CRASHLOADED`.
pub const READING: u8 = 2;

/// How long the guest waits between the two. The emulator could halt the machine by itself at the first event, but then the
/// guest's clock may jump to its next timer (QEMU 10.0): the CPU stops before the machine is said to, and for
/// so long looks idle.
pub const WAIT: SpanNs = SpanNs(20_000_000);

/// The ports of `fw_cfg`: the number of a file is written to the first, and its bytes are read from the second.
pub const FW_CFG: [u16; 2] = [0x510, 0x511];

/// The number of the directory of files.
const DIRECTORY: u16 = 0x19;

/// The most files that a machine has.
const FILES_MOST: u32 = 256;

/// `order` as a file; `None` if it is too long.
pub fn pack(order: &str) -> Option<[u8; LENGTH]> {
    let mut file = [b' '; LENGTH];
    file.get_mut(..order.len())?.copy_from_slice(order.as_bytes());
    Some(file)
}

/// The device that firmware reads the emulator's files from.
pub trait FwCfg {
    /// Selects a file by its number: its bytes are read next.
    fn select(&mut self, file: u16);
    /// Reads the next bytes of that file.
    fn read(&mut self, bytes: &mut [u8]);
}

/// The words of the order; `None` if the machine has no order for its guest.
pub fn receive(fw_cfg: &mut impl FwCfg) -> Option<Vec<String>> {
    fw_cfg.select(DIRECTORY);
    let mut count = [0; 4];
    fw_cfg.read(&mut count);
    let number = (0..u32::from_be_bytes(count).min(FILES_MOST)).find_map(|_| {
        // Length, number, two bytes that are not used, and the name, which ends with a NUL.
        let mut entry = [0; 64];
        fw_cfg.read(&mut entry);
        let name = entry[8..].split(|&byte| byte == 0).next();
        let is_it = name == Some(NAME.as_bytes())
            && u32::from_be_bytes([entry[0], entry[1], entry[2], entry[3]]) as usize == LENGTH;
        is_it.then(|| u16::from_be_bytes([entry[4], entry[5]]))
    })?;
    fw_cfg.select(number);
    let mut order = [0; LENGTH];
    fw_cfg.read(&mut order);
    let order = std::str::from_utf8(&order).ok()?;
    Some(order.split(' ').filter(|word| !word.is_empty()).map(String::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakescope_testing::fuzz;

    /// A device with these files, the first of which is the directory.
    struct Fake {
        files: Vec<Vec<u8>>,
        rest: Vec<u8>,
    }

    impl Fake {
        fn new(files: &[(&str, &[u8])]) -> Self {
            let length = |count: usize| u32::try_from(count).unwrap().to_be_bytes();
            let mut directory = length(files.len()).to_vec();
            for ((name, bytes), number) in files.iter().zip(1_u16..) {
                let mut entry = [0; 64];
                entry[..4].copy_from_slice(&length(bytes.len()));
                entry[4..6].copy_from_slice(&number.to_be_bytes());
                entry[8..8 + name.len()].copy_from_slice(name.as_bytes());
                directory.extend(entry);
            }
            let files = files.iter().map(|(_, bytes)| bytes.to_vec());
            Self { files: [directory].into_iter().chain(files).collect(), rest: Vec::new() }
        }
    }

    impl FwCfg for Fake {
        fn select(&mut self, file: u16) {
            let file = if file == DIRECTORY { 0 } else { file.into() };
            self.rest = self.files.get(file).cloned().unwrap_or_default();
        }

        fn read(&mut self, bytes: &mut [u8]) {
            let count = bytes.len().min(self.rest.len());
            bytes.fill(0);
            bytes[..count].copy_from_slice(&self.rest.drain(..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_order_arrives_as_it_was_sent() {
        let order = "--limit 60s measure --seed 7 {\"load\":[\"find\"]}";
        let file = pack(order).unwrap();
        let mut fw_cfg = Fake::new(&[("bootorder", b"x"), (NAME, &file), ("opt/other", b"y")]);
        assert_eq!(receive(&mut fw_cfg).unwrap().join(" "), order);
        assert_eq!(pack(&"x".repeat(LENGTH)).map(|file| file[LENGTH - 1]), Some(b'x'));
        assert_eq!(pack(&"x".repeat(LENGTH + 1)), None);
    }

    #[test]
    fn a_machine_without_an_order_has_none() {
        assert_eq!(receive(&mut Fake::new(&[])), None);
        assert_eq!(receive(&mut Fake::new(&[("opt/wakescope/orders", &[b' '; LENGTH])])), None);
        // Of another version, which had another length.
        assert_eq!(receive(&mut Fake::new(&[(NAME, b"check")])), None);
        assert_eq!(receive(&mut Fake::new(&[(NAME, &[0xff; LENGTH])])), None);
    }

    #[test]
    fn fuzz_directories() {
        let file = pack("check").unwrap();
        let whole = Fake::new(&[("bootorder", b"x"), (NAME, &file)]);
        fuzz("order", &[whole.files[0].clone()], |bytes| {
            let files = vec![bytes.to_vec(), b"x".to_vec(), file.to_vec()];
            let words = receive(&mut Fake { files, rest: Vec::new() });
            assert!(words.is_none_or(|words| words.concat().len() <= LENGTH), "{bytes:?}");
        });
    }
}
