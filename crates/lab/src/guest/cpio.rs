//! Writes an initramfs: the `newc` format of cpio, as the kernel's
//! Documentation/driver-api/early-userspace/buffer-format.rst has it. Owner, times and inode numbers
//! are always the same, so that the same files give the same bytes.

/// An archive in the making.
#[derive(Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    /// The inode number of the last entry.
    inode: u32,
}

const DIR: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const DEVICE: u32 = 0o020_000;

/// Major and minor number of /dev/console.
const CONSOLE: (u32, u32) = (5, 1);

/// QEMU and boot loaders read whole sectors.
const SECTOR: usize = 512;

impl Archive {
    /// An empty directory.
    pub(super) fn dir(&mut self, path: &str) {
        self.inode(DIR | 0o755, &[path], &[]);
    }

    /// A file.
    pub(super) fn file(&mut self, path: &str, mode: u32, content: &[u8]) {
        self.file_of_names(&[path], mode, content);
    }

    /// A file that has several names. Its content is in the archive once.
    pub(super) fn file_of_names(&mut self, paths: &[&str], mode: u32, content: &[u8]) {
        self.inode(FILE | mode, paths, content);
    }

    /// A symbolic link.
    pub(super) fn link(&mut self, path: &str, target: &str) {
        self.inode(LINK | 0o777, &[path], target.as_bytes());
    }

    /// The device node of the console.
    pub(super) fn console(&mut self, path: &str) {
        self.inode = self.inode.wrapping_add(1);
        self.entry(path, DEVICE | 0o600, 1, &[], CONSOLE);
    }

    /// Bytes so far.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The finished archive.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.inode = 0;
        self.entry("TRAILER!!!", 0, 1, &[], (0, 0));
        self.bytes.resize(self.bytes.len().next_multiple_of(SECTOR), 0);
        self.bytes
    }

    /// The kernel takes entries of one inode number for one file (`maybe_link` in init/initramfs.c), and leaves
    /// the content of the first as it is if the others have none.
    fn inode(&mut self, mode: u32, paths: &[&str], content: &[u8]) {
        self.inode = self.inode.wrapping_add(1);
        let names = u32::try_from(paths.len()).unwrap_or(u32::MAX);
        for (place, path) in paths.iter().enumerate() {
            let content = if place == 0 { content } else { &[] };
            self.entry(path, mode, names, content, (0, 0));
        }
    }

    fn entry(&mut self, path: &str, mode: u32, names: u32, content: &[u8], device: (u32, u32)) {
        let size = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let fields = [
            self.inode,
            mode,
            0, // Owner,
            0, // group,
            names,
            0, // And time of the last change.
            size(content.len()),
            0, // Device that the file lies on,
            0,
            device.0,
            device.1,
            size(path.len() + 1),
            0, // No checksum in this variant.
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08X}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.align();
        self.bytes.extend_from_slice(content);
        self.align();
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn an_archive_is_as_the_kernel_wants_it() {
        let mut archive = Archive::default();
        archive.dir("dev");
        archive.console("dev/console");
        archive.file("init", 0o755, b"hello");
        archive.file_of_names(&["a", "b"], 0o644, b"twice");
        archive.link("lib", "usr/lib");
        let bytes = archive.finish();
        assert_eq!(bytes.len() % SECTOR, 0);
        let text = String::from_utf8(bytes).unwrap();
        let text = text.trim_end_matches('\0').replace('\0', "·");
        let text = text.replace("0707", "\n0707");
        expect![[r#"

            07070100000001000041ED0000000000000000000000010000000000000000000000000000000000000000000000000000000400000000dev···
            07070100000002000021800000000000000000000000010000000000000000000000000000000000000005000000010000000C00000000dev/console···
            07070100000003000081ED0000000000000000000000010000000000000005000000000000000000000000000000000000000500000000init··hello···
            07070100000004000081A40000000000000000000000020000000000000005000000000000000000000000000000000000000200000000a·twice···
            07070100000004000081A40000000000000000000000020000000000000000000000000000000000000000000000000000000200000000b·
            070701000000050000A1FF0000000000000000000000010000000000000007000000000000000000000000000000000000000400000000lib···usr/lib·
            07070100000000000000000000000000000000000000010000000000000000000000000000000000000000000000000000000B00000000TRAILER!!!"#]]
        .assert_eq(&text);
    }
}
