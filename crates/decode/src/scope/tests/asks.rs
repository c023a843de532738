//! Places at which the kernel asks whether somebody else is to run.

use wakescope_core::scope::edges::AskKind;

use super::{ASKS, BASE, CODE, ENTRIES, Form, SCHEDULE, image, written};
use crate::scope::Kernel;

pub(super) const COND: u64 = BASE + 0x9_1000;
pub(super) const MIGHT: u64 = BASE + 0x9_1010;
const OTHER: u64 = BASE + 0x9_1020;

/// Of each place: where it is, whose, the flags, and what is there.
type Site = (u64, u64, u64, [u8; 5]);

const CALL: [u8; 5] = [0xe8, 1, 2, 3, 4];
const NOTHING: [u8; 5] = [0x0f, 0x1f, 0x44, 0, 0];
const ZERO: [u8; 5] = [0x2e, 0x2e, 0x2e, 0x31, 0xc0];
const OLD_ZERO: [u8; 5] = [0x66, 0x66, 0x48, 0x31, 0xc0];
const JUMP_IF: [u8; 5] = [0x0f, 0x84, 1, 2, 3];
const OTHERWISE: [u8; 5] = [0x90; 5];

/// In the order of whose they are, as the kernel sorts them.
const SITES: [Site; 5] = [
    (CODE + 0x150, COND, 1, ZERO),
    (CODE + 0x130, COND, 0, CALL),
    // Thrown away after boot.
    (CODE + 0x160, COND, 2, OTHERWISE),
    (CODE + 0x220, MIGHT, 0, NOTHING),
    (CODE + 0x140, OTHER, 0, OTHERWISE),
];

/// Code that clears bit 3 of a task's flags, and code that tests it: `lock andb $0xf7,0x0(%r13)` in the scheduler, and
/// `mov (%rax),%rax; test $0x8,%al`.
const CLEARS: [u8; 6] = [0xf0, 0x41, 0x80, 0x65, 0x00, 0xf7];
const TESTS: [u8; 5] = [0x48, 0x8b, 0x00, 0xa8, 0x08];
const LOOK: u64 = CODE + 0x1c0;

/// The length of their list.
pub(super) const TABLE: u64 = 8 * SITES.len() as u64;

/// Puts them into an image that begins at the base.
pub(super) fn put(image: &mut [u8]) {
    for (number, site) in SITES.into_iter().enumerate() {
        put_one(image, number as u64, site);
    }
    write(image, SCHEDULE, &CLEARS);
    write(image, LOOK, &TESTS);
    // What is outside of the kernel's code is no instruction.
    write(image, ENTRIES + 0x1100, &TESTS);
}

fn put_one(image: &mut [u8], number: u64, (place, key, flags, code): Site) {
    let entry = ASKS + 8 * number;
    write(image, entry, &place.wrapping_sub(entry).to_le_bytes()[..4]);
    write(image, entry + 4, &((key | flags).wrapping_sub(entry + 4)).to_le_bytes()[..4]);
    write(image, place, &code);
}

fn write(image: &mut [u8], at: u64, bytes: &[u8]) {
    let at = usize::try_from(at - BASE).unwrap();
    image[at..at + bytes.len()].copy_from_slice(bytes);
}

fn asks(image: &[u8]) -> Vec<(u64, AskKind)> {
    Kernel::read(&written(image)).unwrap().asks
}

#[test]
fn places_are_those_of_two_static_calls_that_stay() {
    let want = [
        (CODE + 0x130, AskKind::CondResched),
        (CODE + 0x150, AskKind::CondResched),
        (LOOK, AskKind::NeedResched),
        (CODE + 0x220, AskKind::MightResched),
    ];
    for form in [Form::Before, Form::FromThemselves] {
        let mut image = image(form);
        assert_eq!(asks(&image), want, "{form:?}");
        put_one(&mut image, 0, (CODE + 0x150, COND, 1, OLD_ZERO));
        assert_eq!(asks(&image), want, "{form:?}");
        let kernel = Kernel::read(&written(&image)).unwrap();
        assert_eq!(Kernel::unpack(&kernel.pack()).unwrap().asks, want);
    }
}

#[test]
fn of_a_list_in_another_form_nothing_is_believed() {
    let with = |site: Site| {
        let mut image = image(Form::Before);
        put_one(&mut image, 1, site);
        asks(&image)
    };
    assert_eq!(with((CODE + 0x130, COND, 0, CALL)).len(), 4);
    let other_zero = [0x2e, 0x2e, 0x2e, 0x31, 0xc1];
    for code in [OTHERWISE, JUMP_IF, other_zero] {
        assert_eq!(with((CODE + 0x130, COND, 0, code)), [(LOOK, AskKind::NeedResched)]);
    }
    // What is not there, and an order that is none, in what is kept of a kernel.
    let packed = Kernel::read(&written(&image(Form::Before))).unwrap().pack();
    for (one, other) in [(" 2\n", " 4\n"), ("a ffffffff81001220", "a ffffffff81001100")] {
        let changed = packed.replacen(
            &format!("a {:x} 2\n", CODE + 0x220),
            &format!("a {:x} 2\n", CODE + 0x220).replace(one, other),
            1,
        );
        assert_ne!(changed, packed);
        assert_eq!(Kernel::unpack(&changed), None, "{other}");
    }
}

#[test]
fn where_loops_look_is_not_known_without_the_schedulers_bit() {
    let mut image = image(Form::Before);
    write(&mut image, SCHEDULE, &[0x90; 6]);
    assert!(asks(&image).iter().all(|(_, kind)| *kind != AskKind::NeedResched));
    assert_eq!(asks(&image).len(), 3);
}
