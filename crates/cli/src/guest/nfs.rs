//! An NFS server in a guest, and its client: a tree that loads use over the loopback interface.
//!
//! Only the kernel's parts are there, no daemon: what `rpc.mountd` would answer when the server asks whom it
//! may serve is given to the kernel beforehand (Documentation/filesystems/nfs/rpc-cache.rst). Version 4 needs
//! no port mapper.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use wakescope_sys::guest::{mount, mount_from};

/// Where the client has the server's tree.
pub(super) const MOUNTED: &str = "/nfs";

/// The tree that is exported: a file system in memory.
const EXPORTED: &str = "/export";

/// The files of the server.
const SERVER: &str = "/proc/fs/nfsd";

/// Of the server's caches: what may be asked for until the year 2038, by whoever is at 127.0.0.1. The flags
/// are those of include/uapi/linux/nfsd/export.h: a file system that is known by the number 0 (0x2000), without
/// checks of subtrees (0x400), for clients on any port (2); root stays root.
const CACHES: [(&str, &str); 3] = [
    ("auth.unix.ip", "nfsd 127.0.0.1 2147483647 guest\n"),
    ("nfsd.export", "guest /export 2147483647 9218 65534 65534 0\n"),
    ("nfsd.fh", "guest 1 \\x00000000 2147483647 /export\n"),
];

/// Starts the server and mounts its tree. The kernel has the server and the client, built in or loaded.
pub(super) fn serve() -> io::Result<()> {
    // A kernel without a server refuses this, and nothing else is done.
    mount("nfsd", SERVER, "")?;
    for folder in [EXPORTED, MOUNTED] {
        fs::create_dir_all(folder)?;
    }
    mount("tmpfs", EXPORTED, "size=50%")?;
    for (cache, entry) in CACHES {
        write(&Path::new("/proc/net/rpc").join(cache).join("channel"), entry)?;
    }
    let control = |name: &str, text: &str| write(&Path::new(SERVER).join(name), text);
    // Kernels from 6.2 on need not know version 2.
    let _ = control("versions", "-2\n");
    control("versions", "-3 +4.1 +4.2\n")?;
    // A server that was never there has no clients to wait for, in seconds.
    let _ = control("nfsv4leasetime", "10\n");
    let _ = control("nfsv4gracetime", "10\n");
    control("portlist", "tcp 2049\n")?;
    control("threads", "2\n")?;
    let _ = control("v4_end_grace", "Y\n");
    let options = "vers=4.2,proto=tcp,port=2049,sec=sys,addr=127.0.0.1,clientaddr=127.0.0.1";
    mount_from("127.0.0.1:/", "nfs4", MOUNTED, options)
}

/// Whether the tree is mounted.
pub(super) fn is_mounted() -> bool {
    let device = |path: &str| fs::metadata(path).map(|meta| meta.dev()).ok();
    device(MOUNTED).is_some_and(|own| device("/") != Some(own))
}

/// The kernel takes each of these texts as one write.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
    let file = OpenOptions::new().write(true).open(path).map_err(named);
    file?.write_all(text.as_bytes()).map_err(named)
}
