//! A System V semaphore: the sleeper takes one from it, the waker adds one (semop).
//!
//! A set of them outlives its process. So the set says in further semaphores whose it is: the next start
//! removes those whose process is gone.

use std::fs;
use std::io;

use wakescope_sys::file::effective_user;
use wakescope_sys::proc_files::began;
use wakescope_sys::semaphore_set::{self as set, SetId};

use super::{Channel, Slept};
use crate::stimulus::waker::exchange::Exchange;

/// Where the kernel lists all sets.
const SETS: &str = "/proc/sysvipc/sem";

/// The semaphore that is slept on.
const SLEPT_ON: u16 = 0;

/// What no other program's sets say, in the semaphores that follow.
const MARK: [u16; 4] = [0x5761, 0x6b65, 0x7363, 0x6f70];

/// Semaphores hold 15 bits.
const BITS: u32 = 15;
const MOST: u64 = (1 << BITS) - 1;

/// The semaphores of a set: that which is slept on, the mark, and whose it is.
const COUNT: usize = 1 + MARK.len() + Owner::PARTS;

pub(crate) struct SysvSemaphore(SetId);

impl Channel for SysvSemaphore {
    const KEEPS_WAKEUPS: bool = true;

    fn open(_: &Exchange) -> io::Result<Self> {
        let this = Self(set::create(u16::try_from(COUNT).unwrap_or(0))?);
        for (semaphore, value) in marks(Owner::this_process()?) {
            set::set_value(this.0, semaphore, value)?;
        }
        Ok(this)
    }

    #[inline]
    fn sleep(&self, _: &Exchange) -> Slept {
        Slept::in_call(set::add(self.0, SLEPT_ON, -1))
    }

    #[inline]
    fn wake(&self, _: &Exchange) -> io::Result<()> {
        set::add(self.0, SLEPT_ON, 1)
    }
}

/// The semaphores that say that a set is `owner`'s, and their values, in the order in which they are set. The
/// mark comes last: no other start takes a part of the owner for one that is gone.
fn marks(owner: Owner) -> Vec<(u16, u16)> {
    let mut all: Vec<_> = (1..).zip(MARK.into_iter().chain(owner.parts())).collect();
    all.reverse();
    all
}

impl Drop for SysvSemaphore {
    fn drop(&mut self) {
        // Somebody may have removed it, which ended the measurement.
        let _ = set::remove(self.0);
    }
}

/// A process, for all time since the machine started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owner {
    process: u64,
    /// The PID namespace that the number belongs to.
    namespace: u64,
    /// When it began, in the kernel's ticks.
    began: u64,
}

impl Owner {
    /// The semaphores for each of its numbers.
    const WIDTHS: [usize; 3] = [2, 3, 4];
    const PARTS: usize = 9;

    fn this_process() -> io::Result<Self> {
        let unknown = || io::Error::other("/proc does not tell about this process");
        let process = std::process::id();
        let began = began(process.into()).ok_or_else(unknown)?;
        Ok(Self { process: process.into(), namespace: namespace().ok_or_else(unknown)?, began })
    }

    fn parts(self) -> impl Iterator<Item = u16> {
        let numbers = [self.process, self.namespace, self.began];
        numbers.into_iter().zip(Self::WIDTHS).flat_map(|(number, width)| {
            let part = move |at: usize| number.checked_shr(BITS * u32::try_from(at).ok()?);
            (0..width).map(move |at| u16::try_from(part(at).unwrap_or(0) & MOST).unwrap_or(0))
        })
    }

    fn from_parts(parts: &[u16]) -> Option<Self> {
        let mut parts = parts.iter().copied();
        let [process, namespace, began] = Self::WIDTHS.map(|width| {
            let taken: Vec<u64> = parts.by_ref().take(width).map(u64::from).collect();
            taken.iter().rev().fold(0, |number, part| number << BITS | part)
        });
        (process > 0).then_some(Self { process, namespace, began })
    }

    /// Whether it is known to be gone. Not of one in another namespace, nor if /proc is another's.
    fn is_gone(self) -> bool {
        let sees_itself = began(std::process::id().into()).is_some();
        let is_ours = sees_itself && namespace() == Some(self.namespace);
        is_ours && began(self.process) != Some(self.began)
    }
}

fn namespace() -> Option<u64> {
    let link = fs::read_link("/proc/self/ns/pid").ok()?;
    link.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

/// Removes the sets of this user that processes made which are gone. Those of others stay: what is
/// removed has no key, is of this user, and says that it was made for this purpose.
pub(crate) fn remove_leftovers() {
    let Ok(list) = fs::read_to_string(SETS) else { return };
    for id in list.lines().skip(1).filter_map(|line| candidate(line, effective_user())) {
        if owner(id).is_some_and(Owner::is_gone) {
            // Another start may have been faster.
            let _ = set::remove(id);
        }
    }
}

/// The set in a line of the kernel's list, if it looks like one of ours.
fn candidate(line: &str, user: u32) -> Option<SetId> {
    let fields: Vec<&str> = line.split_ascii_whitespace().take(5).collect();
    let [key, id, _, count, owner] = fields[..] else { return None };
    let is_ours = key == "0" && count.parse() == Ok(COUNT) && owner.parse() == Ok(user);
    is_ours.then_some(SetId::of(id.parse().ok()?))
}

/// The owner that a marked set names.
fn owner(id: SetId) -> Option<Owner> {
    let values = (1..u16::try_from(COUNT).ok()?).map(|at| set::value(id, at).ok());
    let values: Vec<u16> = values.collect::<Option<_>>()?;
    let (mark, parts) = values.split_at(MARK.len());
    (mark == MARK).then(|| Owner::from_parts(parts)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakescope_core::plan::Between;

    #[test]
    fn an_owner_is_what_its_parts_say() {
        for owner in [
            Owner::this_process().unwrap(),
            Owner { process: 1, namespace: 4_026_531_836, began: 0 },
            Owner { process: 4_194_304, namespace: u64::from(u32::MAX), began: (1 << 60) - 1 },
        ] {
            let parts: Vec<u16> = owner.parts().collect();
            assert_eq!(parts.len(), Owner::PARTS);
            assert!(parts.iter().all(|&part| u64::from(part) <= MOST), "{parts:?}");
            assert_eq!(Owner::from_parts(&parts), Some(owner));
        }
        assert_eq!(Owner::from_parts(&[0; Owner::PARTS]), None);
    }

    #[test]
    fn only_sets_without_a_key_of_this_user_are_looked_at() {
        for (line, want) in [
            ("         0      65539   600         14     7     0  7 0 0 1", Some(65_539)),
            ("         0      65539   600         14     8     0  7 0 0 1", None),
            ("         0      65539   600         13     7     0  7 0 0 1", None),
            ("    -12345      65539   600         14     7     0  7 0 0 1", None),
            ("", None),
            ("0 x 600 14 7", None),
        ] {
            assert_eq!(candidate(line, 7).map(SetId::number), want, "{line}");
        }
    }

    /// Whether a set exists.
    fn exists(id: SetId) -> bool {
        set::value(id, 0).is_ok()
    }

    #[test]
    fn a_set_says_whose_it_is_only_when_it_is_marked_whole() {
        let Ok(id) = set::create(u16::try_from(COUNT).unwrap()) else {
            return wakescope_testing::skip(
                "a_set_says_whose_it_is_only_when_it_is_marked_whole",
                "this system has no such semaphores",
            );
        };
        let ours = Owner::this_process().unwrap();
        for (semaphore, value) in marks(ours) {
            assert_eq!(owner(id), None, "before {semaphore}");
            set::set_value(id, semaphore, value).unwrap();
        }
        assert_eq!(owner(id), Some(ours));
        set::remove(id).unwrap();
    }

    #[test]
    fn only_what_a_dead_process_left_is_removed() {
        let exchange = Exchange::of_this_thread(Between::Threads).unwrap();
        let kept = match SysvSemaphore::open(&exchange) {
            Err(e) => {
                return wakescope_testing::skip(
                    "only_what_a_dead_process_left_is_removed",
                    &e.to_string(),
                );
            }
            Ok(kept) => kept,
        };
        let count = u16::try_from(COUNT).unwrap();
        let marked = |owner: Owner, mark: u16| {
            let id = set::create(count).unwrap();
            let values = [mark].into_iter().chain(MARK[1..].iter().copied()).chain(owner.parts());
            for (at, value) in (1..).zip(values) {
                set::set_value(id, at, value).unwrap();
            }
            id
        };
        let ours = Owner::this_process().unwrap();
        let dead = Owner { began: ours.began + 1, ..ours };
        let elsewhere = Owner { namespace: ours.namespace + 1, ..dead };
        let others = [marked(elsewhere, MARK[0]), marked(dead, 1), set::create(count).unwrap()];
        let left = marked(dead, MARK[0]);
        remove_leftovers();
        assert!(!exists(left));
        assert!(exists(kept.0) && others.iter().all(|&id| exists(id)));
        others.into_iter().for_each(|id| set::remove(id).unwrap());
        let id = kept.0;
        drop(kept);
        assert!(!exists(id), "it is removed at the end");
    }
}
