//! What several tests need.

/// The smallest bzImage that says it is `release`: five sectors, and a kernel of 64 bytes.
pub(crate) fn bzimage(release: &str) -> Vec<u8> {
    let mut image = vec![0; 5 * 512 + 64];
    image[0x1f1] = 4;
    image[0x1f4] = 4;
    image[0x1fe..0x200].copy_from_slice(&[0x55, 0xaa]);
    image[0x202..0x206].copy_from_slice(b"HdrS");
    image[0x206..0x208].copy_from_slice(&0x20f_u16.to_le_bytes());
    image[0x20e..0x210].copy_from_slice(&0x300_u16.to_le_bytes());
    image[0x211] = 1;
    image[0x236] = 1;
    let banner = format!(
        "{release} (debian-kernel@lists.debian.org) #1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2 (2026-11-01)"
    );
    image[0x500..0x500 + banner.len()].copy_from_slice(banner.as_bytes());
    image
}

/// An archive of tar with these entries: kind, name, target of a link, mode, content.
pub(crate) fn tar(entries: &[(u8, &str, &str, u32, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for &(kind, name, target, mode, content) in entries {
        for (kind, long) in [(b'L', name), (b'K', target)] {
            if long.len() > 100 {
                put(&mut bytes, kind, "././@LongLink", "", 0, &[long.as_bytes(), b"\0"].concat());
            }
        }
        put(&mut bytes, kind, name, target, mode, content);
    }
    bytes.extend([0; 1024]);
    bytes
}

fn put(bytes: &mut Vec<u8>, kind: u8, name: &str, target: &str, mode: u32, content: &[u8]) {
    let mut header = [0; 512];
    let mut field = |at: usize, most: usize, text: &str| {
        let text = &text.as_bytes()[..text.len().min(most)];
        header[at..at + text.len()].copy_from_slice(text);
    };
    field(0, 100, name);
    field(100, 8, &format!("{mode:07o}"));
    field(124, 12, &format!("{:011o}", content.len()));
    field(148, 8, "        ");
    field(157, 100, target);
    field(257, 8, "ustar  ");
    header[156] = kind;
    let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    bytes.extend(header);
    bytes.extend(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
}

/// A package of Debian's format: `control` describes it, `files` are the bytes of its archive.
pub(crate) fn deb(control: &str, files: &[u8]) -> Vec<u8> {
    let control = tar(&[(b'0', "./control", "", 0o644, control.as_bytes())]);
    let mut bytes = b"!<arch>\n".to_vec();
    for (name, content) in
        [("debian-binary", &b"2.0\n"[..]), ("control.tar", &control), ("data.tar", files)]
    {
        let size = content.len();
        let header = format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 100_644);
        bytes.extend(header.as_bytes());
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(2), b'\n');
    }
    bytes
}

/// The least that looks like a program.
pub(crate) fn program(machine: u8, dynamic: bool) -> Vec<u8> {
    let mut file = vec![0; 64 + 56];
    file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    file[18] = machine;
    file[32] = 64;
    file[54] = 56;
    file[56] = 1;
    file[64] = if dynamic { 3 } else { 1 };
    file
}
