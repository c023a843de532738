//! Files that are mapped to be read.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::fd::AsFd;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::region::Region;

/// The bytes of a file, of which only those take memory that are looked at.
///
/// For files that nobody writes to any more: who does changes what is read. Where somebody cuts the
/// file short, or the disk cannot read it, there are zeros from there on, and [`Self::is_cut`].
pub struct MappedFile {
    region: Region,
    /// Where the signal handler finds it.
    slot: &'static Slot,
}

// SAFETY: the memory stays mapped for as long as the value lives, and is only ever read.
unsafe impl Send for MappedFile {}
// SAFETY: as above.
unsafe impl Sync for MappedFile {}

/// A mapping, as the handler of SIGBUS needs to know it. Free if it has no length.
struct Slot {
    taken: AtomicBool,
    start: AtomicUsize,
    length: AtomicUsize,
    cut: AtomicBool,
}

/// More than are ever mapped at once.
const MOST: usize = 16;

static SLOTS: [Slot; MOST] = [const {
    Slot {
        taken: AtomicBool::new(false),
        start: AtomicUsize::new(0),
        length: AtomicUsize::new(0),
        cut: AtomicBool::new(false),
    }
}; MOST];

impl Slot {
    fn take() -> Option<&'static Self> {
        SLOTS.iter().find(|slot| !slot.taken.swap(true, Ordering::AcqRel))
    }

    fn fill(&self, start: usize, length: usize) {
        self.cut.store(false, Ordering::Relaxed);
        self.start.store(start, Ordering::Relaxed);
        self.length.store(length, Ordering::Release);
    }

    fn free(&self) {
        self.length.store(0, Ordering::Release);
        self.taken.store(false, Ordering::Release);
    }

    /// How many bytes of the mapping there are from `address` on.
    fn bytes_from(&self, address: usize) -> Option<usize> {
        let length = self.length.load(Ordering::Acquire);
        let into = address.checked_sub(self.start.load(Ordering::Relaxed))?;
        length.checked_sub(into).filter(|&left| left > 0)
    }
}

impl MappedFile {
    /// Maps all of `file`, as long as it is now. Fails for what is empty or no regular file.
    pub fn of(file: &File) -> io::Result<Self> {
        let about = file.metadata()?;
        if !about.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let length = usize::try_from(about.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
        if length == 0 {
            return Err(io::Error::other("it is empty"));
        }
        catch_cuts();
        let slot = Slot::take().ok_or_else(|| io::Error::other("too many files are mapped"))?;
        let region = Region::of_file(file.as_fd(), length, libc::PROT_READ, libc::MAP_PRIVATE)
            .inspect_err(|_| slot.free())?;
        slot.fill(region.start::<u8>().as_ptr() as usize, length);
        Ok(Self { region, slot })
    }

    /// Whether some of it could not be read: what was read may be zeros.
    pub fn is_cut(&self) -> bool {
        self.slot.cut.load(Ordering::Relaxed)
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: so many bytes are mapped there, readable, for as long as this value lives.
        unsafe { std::slice::from_raw_parts(self.region.start().as_ptr(), self.region.length()) }
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // Before the memory is: a mapping that comes to its place is not this one.
        self.slot.free();
    }
}

type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// Catches SIGBUS from now on.
fn catch_cuts() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: `sigaction` is plain data for which zero is a value: an empty mask. The handler
        // makes one system call and touches atomics only, which is safe at any moment.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = put_zeros as Handler as libc::sighandler_t;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut());
        }
    });
}

/// The size that mappings are a multiple of on every machine that Linux runs on, and more.
const PAGE: usize = 64 << 10;

/// Puts zeros where a mapped file cannot be read, from there to its end. A SIGBUS for another reason
/// ends the process as by default.
extern "C" fn put_zeros(signal: libc::c_int, about: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes what it knows of the signal, and for this one an address.
    let address = unsafe { (*about).si_addr() } as usize;
    for slot in &SLOTS {
        let Some(left) = slot.bytes_from(address) else { continue };
        slot.cut.store(true, Ordering::Relaxed);
        // Rounded down to where pages begin, but not to before the mapping, which begins with one.
        let start = slot.start.load(Ordering::Relaxed).max(address & !(PAGE - 1));
        let length = left + (address - start);
        // SAFETY: the range lies in a mapping of this process, up to the end of its last page, of
        // which nobody but its owner has a byte, who only reads.
        let mapped = unsafe {
            libc::mmap(
                start as *mut libc::c_void,
                length,
                libc::PROT_READ,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            )
        };
        if mapped != libc::MAP_FAILED {
            return;
        }
    }
    // SAFETY: the instruction is run again, and ends the process.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

#[cfg(test)]
mod tests {
    use wakescope_testing::Folder;

    use super::*;

    #[test]
    fn a_mapped_file_is_its_bytes() {
        let folder = Folder::new("mapped");
        let path = folder.write("file", "wake\n");
        let mapped = MappedFile::of(&File::open(&path).unwrap()).unwrap();
        assert_eq!(&*mapped, b"wake\n");
        assert!(!mapped.is_cut());
        std::fs::write(&path, "").unwrap();
        let empty = MappedFile::of(&File::open(&path).unwrap());
        assert_eq!(empty.err().unwrap().to_string(), "it is empty");
        let folder = MappedFile::of(&File::open("/").unwrap());
        assert_eq!(folder.err().unwrap().to_string(), "it is not a regular file");
    }

    #[test]
    fn a_file_that_is_cut_short_ends_in_zeros_and_is_known() {
        const LENGTH: usize = 1_000_000;
        let folder = Folder::new("cut");
        let path = folder.join("file");
        for kept in [0, 1, 300_000, LENGTH] {
            std::fs::write(&path, vec![b'x'; LENGTH]).unwrap();
            let file = File::options().read(true).write(true).open(&path).unwrap();
            let mapped = MappedFile::of(&file).unwrap();
            file.set_len(kept as u64).unwrap();
            // From the end, as from the begin, and in the middle.
            let last = mapped[LENGTH - 1];
            assert_eq!(
                (last, mapped.is_cut()),
                if kept == LENGTH { (b'x', false) } else { (0, true) }
            );
            let zeros = mapped.iter().filter(|&&byte| byte == 0).count();
            assert!(zeros >= LENGTH - kept, "{zeros} of {kept}");
            drop(mapped);
        }
    }
}
