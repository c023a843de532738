//! The kernel's type information (BTF), as far as names of functions and types go.
//!
//! Format: Documentation/bpf/btf.rst. Every offset is checked: the file comes from the kernel, but
//! a damaged one must give an error and not a panic.

use std::collections::BTreeMap;

/// A kind of named thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A function.
    Function,
    /// A `typedef`; each tracepoint has one called `btf_trace_<tracepoint>`.
    Typedef,
    /// A variable; of those the kernel lists the ones that each CPU has.
    Variable,
    /// A list of variables that lie together.
    Section,
    /// A struct.
    Struct,
    /// Anything else.
    Other,
}

/// A named thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named<'a> {
    /// What it is.
    pub kind: Kind,
    /// Its name, never empty.
    pub name: &'a str,
    /// Its number among all types, by which the kernel knows it.
    pub id: u32,
}

/// Where the data stop making sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("damaged at byte {offset}")]
pub struct Damaged {
    offset: usize,
}

/// The named things of a BTF file, in its order.
#[derive(Clone, Debug)]
pub struct Names<'a> {
    types: &'a [u8],
    strings: &'a [u8],
    at: usize,
    /// Where the type begins that came last.
    last: usize,
    id: u32,
    little_endian: bool,
}

/// Where each variable of `section` lies in it, by name.
pub fn variables<'a>(data: &'a [u8], section: &str) -> Result<BTreeMap<&'a str, u32>, Damaged> {
    let mut names = Names::of(data)?;
    let mut known = BTreeMap::new();
    let mut places = Vec::new();
    while let Some(thing) = names.next() {
        let Named { kind, name, id } = thing?;
        match kind {
            Kind::Variable => drop(known.insert(id, name)),
            Kind::Section if name == section => places = names.places(),
            _ => {}
        }
    }
    let named = |(id, offset)| known.get(&id).map(|&name| (name, offset));
    Ok(places.into_iter().filter_map(named).collect())
}

/// Where each member with a name lies in the struct `name`, in bytes. Bit fields are left out. Empty if there
/// is no such struct.
pub fn members<'a>(data: &'a [u8], name: &str) -> Result<BTreeMap<&'a str, u32>, Damaged> {
    let mut names = Names::of(data)?;
    while let Some(thing) = names.next() {
        let thing = thing?;
        if thing.kind == Kind::Struct && thing.name == name {
            return Ok(names.members());
        }
    }
    Ok(BTreeMap::new())
}

/// Where each member without a name lies in the struct `name`, in bytes: a struct or union whose own members are as
/// if they were the struct's. Empty if there is no such struct.
pub fn unnamed_members(data: &[u8], name: &str) -> Result<Vec<u32>, Damaged> {
    let mut names = Names::of(data)?;
    while let Some(thing) = names.next() {
        let thing = thing?;
        if thing.kind == Kind::Struct && thing.name == name {
            return Ok(names
                .places_of_members()
                .filter(|(name, _)| name.is_empty())
                .map(|(_, at)| at)
                .collect());
        }
    }
    Ok(Vec::new())
}

impl<'a> Names<'a> {
    /// Reads the header of `data`.
    pub fn of(data: &'a [u8]) -> Result<Self, Damaged> {
        let little_endian = match data.get(..2) {
            Some([0x9f, 0xeb]) => true,
            Some([0xeb, 0x9f]) => false,
            _ => return Err(Damaged { offset: 0 }),
        };
        let header = |offset| word(data, offset, little_endian).ok_or(Damaged { offset });
        let start = header(4)? as usize;
        let section = |offset| {
            let begin = start.checked_add(header(offset)? as usize);
            let end =
                begin.zip(Some(header(offset + 4)? as usize)).and_then(|(b, l)| b.checked_add(l));
            begin.zip(end).and_then(|(b, e)| data.get(b..e)).ok_or(Damaged { offset })
        };
        Ok(Self { types: section(8)?, strings: section(16)?, at: 0, last: 0, id: 0, little_endian })
    }

    /// Of the section that came last, the ids of its variables and where they lie.
    fn places(&self) -> Vec<(u32, u32)> {
        let mut at = self.last + 12;
        std::iter::from_fn(|| {
            let word = |offset| word(self.types, at + offset, self.little_endian);
            let place = (at < self.at).then(|| word(0).zip(word(4))).flatten();
            at += 12;
            place
        })
        .collect()
    }

    /// Of the struct that came last, where its members lie in it.
    pub fn members(&self) -> BTreeMap<&'a str, u32> {
        self.places_of_members().filter(|(name, _)| !name.is_empty()).collect()
    }

    /// The same, also of members without a name.
    fn places_of_members(&self) -> impl Iterator<Item = (&'a str, u32)> {
        let word = |at| word(self.types, at, self.little_endian);
        let has_bit_fields = word(self.last + 4).is_some_and(|info| info >> 31 == 1);
        let member = move |at: usize| {
            let (name, bits) = (self.name(word(at)? as usize)?, word(at + 8)?);
            // With bit fields among the members, the highest byte is the width of one.
            let is_whole = bits % 8 == 0 && !(has_bit_fields && bits >> 24 > 0);
            is_whole.then_some((name, bits / 8))
        };
        (self.last + 12..self.at).step_by(12).filter_map(member)
    }

    fn name(&self, at: usize) -> Option<&'a str> {
        let name = self.strings.get(at..)?;
        let name = &name[..name.iter().position(|&byte| byte == 0)?];
        std::str::from_utf8(name).ok()
    }

    /// The type at `self.at` with its whole length.
    fn entry(&self) -> Option<(Kind, &'a str, usize)> {
        let word = |offset| word(self.types, self.at + offset, self.little_endian);
        let (name, info) = (word(0)? as usize, word(4)?);
        word(8)?;
        let (members, kind) = (info as usize & 0xffff, info >> 24 & 0x1f);
        let (kind, rest) = match kind {
            14 => (Kind::Variable, 4),
            1 | 17 => (Kind::Other, 4),
            2 | 7 | 9..=11 | 16 | 18 => (Kind::Other, 0),
            3 => (Kind::Other, 12),
            15 => (Kind::Section, 12 * members),
            4 => (Kind::Struct, 12 * members),
            5 | 19 => (Kind::Other, 12 * members),
            6 | 13 => (Kind::Other, 8 * members),
            8 => (Kind::Typedef, 0),
            12 => (Kind::Function, 0),
            // A kind of a later kernel: without its length nothing after it can be found.
            _ => return None,
        };
        Some((kind, self.name(name)?, 12 + rest))
    }
}

impl<'a> Iterator for Names<'a> {
    type Item = Result<Named<'a>, Damaged>;

    /// The next thing that has a name. After damage nothing follows.
    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.types.len() {
            let Some((kind, name, length)) = self.entry() else {
                let offset = self.at;
                self.at = self.types.len();
                return Some(Err(Damaged { offset }));
            };
            self.last = self.at;
            self.at += length;
            // Ids count from 1: 0 is `void`, which is not in the file.
            self.id += 1;
            if !name.is_empty() {
                return Some(Ok(Named { kind, name, id: self.id }));
            }
        }
        None
    }
}

fn word(data: &[u8], offset: usize, little_endian: bool) -> Option<u32> {
    let bytes = data.get(offset..offset.checked_add(4)?)?.try_into().ok()?;
    Some(if little_endian { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakescope_testing::fuzz;

    /// A file with a struct of one member, a function and a typedef.
    fn sample(big: bool) -> Vec<u8> {
        let strings = b"\0task\0rt_spin_lock\0btf_trace_sched_waking\0";
        let types =
            [[1, 4 << 24 | 1, 8].as_slice(), &[0, 0, 0], &[6, 12 << 24, 1], &[19, 8 << 24, 1]]
                .concat();
        file(&types, strings, big)
    }

    fn file(types: &[u32], strings: &[u8], big: bool) -> Vec<u8> {
        let length = |n: usize| u32::try_from(n).unwrap();
        let header =
            [24, 0, length(types.len() * 4), length(types.len() * 4), length(strings.len())];
        let bytes = |w: &u32| if big { w.to_be_bytes() } else { w.to_le_bytes() };
        let mut data = if big { vec![0xeb, 0x9f, 1, 0] } else { vec![0x9f, 0xeb, 1, 0] };
        data.extend(header.iter().flat_map(bytes));
        data.extend(types.iter().flat_map(bytes));
        data.extend(strings);
        data
    }

    #[test]
    fn names_are_found_in_both_byte_orders() {
        let want = [
            (Kind::Struct, "task"),
            (Kind::Function, "rt_spin_lock"),
            (Kind::Typedef, "btf_trace_sched_waking"),
        ];
        let want = want.iter().zip(1..).map(|(&(kind, name), id)| Ok(Named { kind, name, id }));
        let want: Vec<_> = want.collect();
        for big in [false, true] {
            assert_eq!(Names::of(&sample(big)).unwrap().collect::<Vec<_>>(), want);
        }
    }

    #[test]
    fn variables_are_found_in_their_section() {
        let strings = b"\0first\0second\0.data..percpu\0.data\0";
        let variable = |name| [name, 14 << 24, 1, 1];
        let section =
            |name, places: [[u32; 3]; 1]| [&[name, 15 << 24 | 1, 0], &places[0][..]].concat();
        let types = [
            variable(1).to_vec(),
            variable(7).to_vec(),
            section(14, [[2, 40, 8]]),
            section(28, [[1, 16, 8]]),
        ]
        .concat();
        let data = file(&types, strings, false);
        assert_eq!(variables(&data, ".data..percpu"), Ok([("second", 40)].into()));
        assert_eq!(variables(&data, ".bss"), Ok([].into()));
    }

    #[test]
    fn members_are_found_in_their_struct() {
        let strings = b"\0task\0pid\0comm\0other\0";
        let [task, pid, comm, other] = [1, 6, 10, 15];
        // The second one has bit fields: `comm` is one of three bits.
        let types = [
            vec![other, 4 << 24 | 1, 8, pid, 1, 8],
            vec![task, 1 << 31 | 4 << 24 | 3, 8, pid, 1, 64, comm, 1, 3 << 24 | 96, 0, 1, 128],
        ]
        .concat();
        let data = file(&types, strings, false);
        assert_eq!(members(&data, "task"), Ok([("pid", 8)].into()));
        assert_eq!(members(&data, "other"), Ok([("pid", 1)].into()));
        assert_eq!(members(&data, "none"), Ok([].into()));
    }

    #[test]
    fn damage_is_told_once() {
        assert!(Names::of(b"").is_err());
        assert!(Names::of(b"\x9f\xeb\x01\x00\xff\xff\xff\xff").is_err());
        let mut data = sample(false);
        data[24 + 7] = 31; // The struct becomes a kind that does not exist.
        let names: Vec<_> = Names::of(&data).unwrap().collect();
        assert_eq!(names, [Err(Damaged { offset: 0 })]);
    }

    #[test]
    fn fuzz_btf() {
        fuzz("btf", &[sample(false), sample(true)], |bytes| {
            if let Ok(names) = Names::of(bytes) {
                assert!(names.count() <= bytes.len());
            }
            let _ = variables(bytes, ".data..percpu");
            let _ = members(bytes, "task");
        });
    }
}
