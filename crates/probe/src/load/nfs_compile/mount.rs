//! What /proc/self/mountinfo says of the file system that a directory lies on.

/// A mounted file system.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mount<'a> {
    kind: &'a str,
    source: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    /// The one whose files have these numbers of their device, major and minor, by the text of mountinfo.
    pub(super) fn of(device: (u32, u32), mountinfo: &'a str) -> Option<Self> {
        mountinfo.lines().find_map(|line| {
            let (first, second) = line.split_once(" - ")?;
            let (major, minor) = first.split(' ').nth(2)?.split_once(':')?;
            let numbers = (major.parse().ok()?, minor.parse().ok()?);
            let mut words = second.split(' ');
            let mount = Self { kind: words.next()?, source: words.next()?, options: words.next()? };
            (numbers == device).then_some(mount)
        })
    }

    /// Whether it is that of an NFS server on the loopback interface.
    pub(super) fn is_own_server(&self) -> bool {
        let is_loopback =
            |host: &str| host.starts_with("127.") || matches!(host, "::1" | "[::1]" | "localhost");
        let host = self.source.rsplit_once(":/").map_or(self.source, |(host, _)| host);
        let address = self.options.split(',').find_map(|option| option.strip_prefix("addr="));
        // Any name may lead to this machine. If the mount has an address, that decides.
        matches!(self.kind, "nfs" | "nfs4") && is_loopback(address.unwrap_or(host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTINFO: &str = "\
22 28 0:20 / /proc rw,nosuid shared:5 - proc proc rw
28 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
60 28 0:51 / /nfs rw,relatime - nfs4 127.0.0.1:/ rw,vers=4.2,proto=tcp,clientaddr=127.0.0.1,addr=127.0.0.1
61 28 0:52 / /far rw - nfs4 localhost:/ rw,vers=4.2,addr=192.168.1.9
62 28 0:300 / /six rw master:2 - nfs [::1]:/srv rw,vers=3
a line of something else
";

    #[test]
    fn only_own_servers_are_taken() {
        for (device, want) in [
            ((254, 0), Some(("ext4", false))),
            ((0, 20), Some(("proc", false))),
            ((0, 51), Some(("nfs4", true))),
            ((0, 52), Some(("nfs4", false))),
            ((0, 300), Some(("nfs", true))),
            ((8, 1), None),
        ] {
            let mount = Mount::of(device, MOUNTINFO);
            let got = mount.as_ref().map(|mount| (mount.kind, mount.is_own_server()));
            assert_eq!(got, want, "{device:?}");
        }
        assert_eq!(Mount::of((0, 1), ""), None);
    }

    #[test]
    fn the_root_of_this_machine_is_found() {
        use std::os::unix::fs::MetadataExt;
        use wakescope_sys::serial::numbers;
        let text = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let device = std::fs::metadata("/proc").unwrap().dev();
        assert_eq!(Mount::of(numbers(device), &text).unwrap().kind, "proc");
    }
}
