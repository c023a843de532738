//! Locks in the stream.

use wakescope_core::scope::locks::{LockKind, Locks};
use wakescope_core::scope::{Kind, Scope};
use wakescope_testing::fuzz;

use super::{WELL, decode, record};
use crate::scope::{FORMAT, KERNEL_HEAD, Kernel, ScopeError};

const CODE: u64 = 0xffff_ffff_8100_0000;
const VARIABLE: u64 = 0xffff_ffff_8200_0000;
/// Where the CPU has what is its own, less the addresses of symbols.
const OWN: u64 = 0xffff_8880_0000_0000;

/// A kernel with a spin lock's functions and a mutex's, at `CODE` and every 256 bytes, and a function that uses them.
pub(super) fn kernel() -> Kernel {
    let of_spin = ["lock", "lock_bh", "lock_irq", "lock_irqsave", "trylock", "trylock_bh"];
    let of_spin =
        of_spin.into_iter().chain(["unlock", "unlock_bh", "unlock_irq", "unlock_irqrestore"]);
    let mut text = format!("{KERNEL_HEAD}\n62 ffffffffc0000000 1fb40 4\nt 1fb48 8 16 40 44\n");
    let mut names = String::new();
    for (number, name) in of_spin.enumerate() {
        let start = CODE + 256 * number as u64;
        let what = if name.starts_with("un") { 9 } else { 8 };
        text += &format!("e {start:x} {:x} {what} {number}\n", start + 1);
        names += &format!("f {start:x} _raw_spin_{name}\n");
    }
    names += &format!("f {:x} user_of_locks\n", CODE + 0x1_0000);
    let variables =
        format!("v 1000 own_lock\nv 1100 \nv {VARIABLE:x} a_lock\nv {:x} \n", VARIABLE + 64);
    Kernel::unpack(&format!("{text}{names}{variables}o 800 1100\nend\n")).unwrap()
}

/// An edge after 10 more instructions: its kind, its number, and the function that it is in.
fn edges(all: &[(u64, u64, u64)]) -> Vec<u64> {
    let mut words = vec![200];
    for (kind, number, function) in all {
        let place = (CODE + 256 * function) & 0xffff_ffff;
        let caller = (CODE + 0x1_0010) & 0xffff_ffff;
        words.extend([kind | 10 << 8 | number << 32, place | caller << 32]);
    }
    record(10, &words)
}

fn stream(of_locks: &[Vec<u64>], edges: u64, locks: u64) -> Vec<u8> {
    let mut end = WELL;
    (end[14], end[16], end[19]) = (edges, 1, locks);
    // No section has ended.
    (end[4], end[7]) = (0, 0);
    let head = vec![u64::from_le_bytes(*b"akescope"), FORMAT, 0, 100, 1_000];
    let start = [record(1, &[100, 100]), record(11, &[7, 0, 0, 0])];
    let start = start.concat().into_iter().chain(record(9, &[200, 0, 0x8000_0000, 0, 1]));
    let words = head.into_iter().chain(start).chain(of_locks.concat()).chain(record(5, &end));
    words.flat_map(u64::to_le_bytes).collect()
}

/// Preemption is turned off and a lock taken twice: one variable of all, and one of the CPU's own.
pub(super) fn whole() -> Vec<u8> {
    let off = (3, 0x8000_0001, 0);
    let batch = [
        off,
        (18, 1, 0),
        (19, 1, 0),
        (18, 2, 3),
        (19, 2, 3),
        (21, 2, 9),
        (21, 1, 6),
        (3, 1 << 31, 6),
    ];
    let locks = [record(13, &[VARIABLE + 4, OWN]), record(13, &[OWN + 0x1004, OWN])];
    stream(&[locks.concat(), edges(&batch)], 8, 2)
}

fn read(bytes: &[u8]) -> Result<Option<Locks>, ScopeError> {
    decode(bytes, &kernel()).map(|decoded| decoded.scope.locks)
}

#[test]
fn locks_are_read_with_their_names() {
    let scope = decode(&whole(), &kernel()).unwrap().scope;
    assert_eq!(Scope::from_json(scope.to_json().as_bytes()).as_ref(), Ok(&scope));
    let locks = scope.locks.unwrap();
    let [outer, inner] = &locks.rows[..] else { panic!("{locks:#?}") };
    assert_eq!((outer.kind, outer.lock.as_deref()), (LockKind::Spin, Some("a_lock")));
    assert_eq!((inner.held.max_ns, inner.lock.as_deref()), (Some(10), Some("own_lock")));
    assert_eq!((outer.held.max_ns, outer.held.max_at_ns), (Some(40), Some(230)));
    assert_eq!(outer.taken.caller.as_deref(), Some("user_of_locks"));
    assert_eq!(inner.released.function.as_deref(), Some("_raw_spin_unlock_irqrestore"));
    assert_eq!((inner.sections[0].kind, inner.sections[0].ns), (Kind::PreemptOff, 10));
    // The kernel has no functions for any other lock, which is said by their names.
    let mutex = locks.not_seen.iter().find(|lacking| lacking.kind == LockKind::Mutex).unwrap();
    assert!(mutex.whole && mutex.functions.contains(&"mutex_unlock".into()), "{mutex:?}");
    assert!(!locks.not_seen.iter().any(|lacking| lacking.kind == LockKind::Spin));
}

#[test]
fn a_kernel_without_one_of_the_ends_shows_none_of_such_locks() {
    let packed = kernel().pack();
    let line =
        packed.lines().find(|line| line.starts_with("e ") && line.ends_with(" 9 6")).unwrap();
    let kernel = Kernel::unpack(&packed.replace(&format!("{line}\n"), "")).unwrap();
    let lacking = kernel.locks_not_seen();
    let spin = lacking.iter().find(|lacking| lacking.kind == LockKind::Spin).unwrap();
    assert_eq!((spin.whole, &spin.functions[..]), (true, &["_raw_spin_unlock".to_owned()][..]));
    assert_eq!(kernel.lock_functions().count(), 0);
    // Without a way to try one, only those are missing.
    let kernel = Kernel::unpack(&packed.replace(" 8 4\n", " 8 40\n")).unwrap();
    let lacking = kernel.locks_not_seen();
    let spin = lacking.iter().find(|lacking| lacking.kind == LockKind::Spin).unwrap();
    assert_eq!((spin.whole, &spin.functions[..]), (false, &["_raw_spin_trylock".to_owned()][..]));
}

#[test]
fn a_stream_that_is_cut_or_wild_is_refused() {
    let whole = whole();
    for length in (40..whole.len()).step_by(8) {
        assert_eq!(read(&whole[..length]), Err(ScopeError::Cut), "{length}");
    }
    let lock = || record(13, &[VARIABLE, OWN]);
    let of_edge = |edge| stream(&[lock(), edges(&[edge])], 1, 1);
    assert!(read(&of_edge((18, 1, 0))).is_ok());
    // A lock without a number, and a function that is none for locks.
    for edge in [(18, 0, 0), (19, 2, 0), (21, u64::from(u32::MAX), 6), (18, 1, 200)] {
        assert_eq!(read(&of_edge(edge)), Err(ScopeError::Foreign), "{edge:?}");
    }
    // More locks than were written.
    assert_eq!(read(&stream(&[lock()], 0, 2)), Err(ScopeError::Cut));
    assert_eq!(read(&stream(&[record(13, &[1])], 0, 1)), Err(ScopeError::Foreign));
    assert_eq!(read(&stream(&[], 0, 0)), Ok(None));
    assert_eq!(read(&stream(&[edges(&[(18, 1, 0)])], 1, 0)), Err(ScopeError::Foreign));
}

#[test]
fn fuzz_locks_of_the_emulator() {
    fuzz("scope-locks", &[whole()], |bytes| {
        let _ = read(bytes);
    });
}
