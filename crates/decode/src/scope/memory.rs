//! The memory of a kernel's image, as the plugin writes it: pages with their addresses.

use std::collections::BTreeMap;

use super::ScopeError;
use super::blocks::Blocks;
use super::kernel::Machine;

const MAGIC: u64 = u64::from_le_bytes(*b"kememory");

const PAGE: usize = 4096;

/// Stretches of memory without a gap, by the address of their first byte.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) machine: Machine,
    stretches: BTreeMap<u64, Vec<u8>>,
}

impl Memory {
    /// Reads what the plugin wrote. A page with the address 0 ends it.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, ScopeError> {
        let mut blocks = Blocks::of(bytes, MAGIC)?;
        let machine = Machine::of_number(blocks.word()?).ok_or(ScopeError::Machine)?;
        let mut memory = Self { machine, stretches: BTreeMap::new() };
        let mut end: Option<(u64, u64)> = None;
        loop {
            let address = blocks.word()?;
            if address == 0 && blocks.are_read() {
                return Ok(memory);
            }
            let page = blocks.take(PAGE)?;
            let is_next = |(_, end): &(u64, u64)| *end == address;
            // Pages come in the order of their addresses; none reaches the end of the address space.
            if address % PAGE as u64 != 0 || end.is_some_and(|(_, end)| address < end) {
                return Err(ScopeError::Foreign);
            }
            let start = end.filter(is_next).map_or(address, |(start, _)| start);
            memory.stretches.entry(start).or_default().extend_from_slice(page);
            end = Some((start, address.checked_add(PAGE as u64).ok_or(ScopeError::Foreign)?));
        }
    }

    /// The stretches with the addresses of their first bytes.
    pub(super) fn stretches(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.stretches.iter().map(|(start, bytes)| (*start, bytes.as_slice()))
    }

    /// What lies at `address`, up to the end of its stretch.
    pub(super) fn from(&self, address: u64) -> Option<&[u8]> {
        let (start, bytes) = self.stretches.range(..=address).next_back()?;
        bytes.get(usize::try_from(address - start).ok()?..)
    }

    /// What lies from `start` to `end`, if it is in one stretch.
    pub(super) fn between(&self, start: u64, end: u64) -> Option<&[u8]> {
        self.from(start)?.get(..usize::try_from(end.checked_sub(start)?).ok()?)
    }

    /// The signed number of four bytes at `address`.
    pub(super) fn i32(&self, address: u64) -> Option<i32> {
        let bytes = self.from(address)?.get(..4)?;
        bytes.try_into().ok().map(i32::from_le_bytes)
    }
}
