//! Memory of the kernel, read through a program that is attached to nothing.

use std::collections::HashMap;
use std::os::fd::AsFd;

use aya::Ebpf;
use aya::maps::Map;
use aya::programs::{ProgramFd, RawTracePoint};
use wakescope_sys::bpf;
use wakescope_sys::shared::Words;

/// Bytes that are read at once.
pub(super) const PAGE: usize = 4_096;

pub(super) type Page = [u8; PAGE];

/// Pages that are remembered.
const MOST_PAGES: usize = 256;

/// Where bytes come from.
pub(crate) trait Memory {
    /// The page that begins at `at`; `None` if there is none that can be read.
    fn page(&mut self, at: u64) -> Option<Box<Page>>;
}

/// That of the running kernel.
pub(crate) struct Running {
    program: ProgramFd,
    page: Words,
}

impl Running {
    /// `None` if the kernel does not let its memory be read so.
    pub(super) fn new(programs: &mut Ebpf) -> Option<Self> {
        let page = match programs.map("page_read")? {
            Map::Array(data) => Words::map(data.fd().as_fd(), PAGE / size_of::<u64>()).ok()?,
            _ => return None,
        };
        let program: &mut RawTracePoint = programs.program_mut("read_page")?.try_into().ok()?;
        program.load().ok()?;
        let program = program.fd().ok()?.try_clone().ok()?;
        Some(Self { program, page })
    }
}

impl Memory for Running {
    fn page(&mut self, at: u64) -> Option<Box<Page>> {
        if bpf::run_once(self.program.as_fd(), &[at]).ok()? != 0 {
            return None;
        }
        let mut page = Box::new([0; PAGE]);
        for (index, word) in page.chunks_exact_mut(size_of::<u64>()).enumerate() {
            word.copy_from_slice(&self.page.load(index).to_ne_bytes());
        }
        Some(page)
    }
}

/// Remembers pages of what does not change.
pub(crate) struct Cached<M> {
    of: M,
    pages: HashMap<u64, Option<Box<Page>>>,
}

impl<M: Memory> Cached<M> {
    pub(super) fn new(of: M) -> Self {
        Self { of, pages: HashMap::new() }
    }

    /// The bytes from `at` on.
    pub(super) fn bytes<const COUNT: usize>(&mut self, at: u64) -> Option<[u8; COUNT]> {
        let within = usize::try_from(at % PAGE as u64).ok()?;
        let first = at - at % PAGE as u64;
        let here = COUNT.min(PAGE - within);
        let mut bytes = [0; COUNT];
        bytes[..here].copy_from_slice(&self.page(first)?[within..within + here]);
        if here < COUNT {
            let next = self.page(first.checked_add(PAGE as u64)?)?;
            bytes[here..].copy_from_slice(&next[..COUNT - here]);
        }
        Some(bytes)
    }

    fn page(&mut self, at: u64) -> Option<&Page> {
        if self.pages.len() >= MOST_PAGES && !self.pages.contains_key(&at) {
            self.pages.clear();
        }
        let of = &mut self.of;
        self.pages.entry(at).or_insert_with(|| of.page(at)).as_deref()
    }

    pub(super) fn i32(&mut self, at: u64) -> Option<i32> {
        self.bytes(at).map(i32::from_le_bytes)
    }

    pub(super) fn u64(&mut self, at: u64) -> Option<u64> {
        self.bytes(at).map(u64::from_le_bytes)
    }

    /// The page at `at`, which is not remembered.
    pub(super) fn page_once(&mut self, at: u64) -> Option<Box<Page>> {
        self.of.page(at)
    }
}

#[cfg(test)]
pub(super) mod made_up {
    use super::*;

    /// Memory that holds what was put there. Around that, up to the ends of pages, are zeros.
    #[derive(Default)]
    pub(in crate::stack) struct MadeUp(HashMap<u64, Box<Page>>);

    impl MadeUp {
        pub(in crate::stack) fn put(&mut self, at: u64, bytes: &[u8]) {
            for (at, &byte) in (at..).zip(bytes) {
                let within = at % PAGE as u64;
                let page = self.0.entry(at - within).or_insert_with(|| Box::new([0; PAGE]));
                page[usize::try_from(within).unwrap()] = byte;
            }
        }

        /// Puts there how far it is to `place`.
        pub(in crate::stack) fn put_distance(&mut self, at: u64, place: u64) {
            let distance = i32::try_from(place.wrapping_sub(at) as i64).unwrap();
            self.put(at, &distance.to_le_bytes());
        }
    }

    impl Memory for MadeUp {
        fn page(&mut self, at: u64) -> Option<Box<Page>> {
            self.0.get(&at).cloned()
        }
    }
}
