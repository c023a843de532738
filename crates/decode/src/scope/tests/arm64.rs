//! A kernel for arm64, made up of what is looked for in it.

use super::super::kernel::{Followed, Tasks, What};
use super::super::unwind::{Base, Unwind};
use super::{BANNER, BASE, BTF, CODE, Form, in_block, table, types_of, written_by};
use crate::scope::{Kernel, ScopeError};

const VECTORS: u64 = BASE + 0x2000;
const SWITCH: u64 = CODE + 0x40;
const JUMPS: u64 = BASE + 0x4_8000;
const END: u64 = BASE + 0x4000;

/// A task with its thread's own at 8, whose flags stand before a union without a name.
fn btf() -> Vec<u8> {
    let strings = b"\0task_struct\0pid\0comm\0prio\0policy\0thread_info\0flags\0cpu\0";
    let task = [1, 4 << 24 | 5, 64, 13, 1, 256, 17, 1, 320, 22, 1, 448, 27, 1, 480, 34, 1, 64];
    let thread = [34, 4 << 24 | 3, 24, 46, 1, 0, 0, 1, 64, 52, 1, 128];
    types_of(&[&task[..], &thread].concat(), strings)
}

/// Without those of these names.
fn memory(without: &[&str]) -> Vec<u8> {
    written_by(183, &image(without))
}

fn image(without: &[&str]) -> Vec<u8> {
    let named = [
        (BASE, "T_stext"),
        (BANNER, "Dlinux_banner"),
        (CODE, "Tlock"),
        (SWITCH, "Tcpu_switch_to"),
        (CODE + 0x80, "ttry_to_wake_up"),
        (CODE + 0x90, "Tgeneric_handle_domain_irq"),
        (VECTORS, "Tvectors"),
        (VECTORS + 0x800, "t__bp_harden_el1_vectors"),
        (VECTORS + 0x1800, "tel1h_64_irq_handler"),
        (END, "T_etext"),
        (JUMPS, "D__start___jump_table"),
        (JUMPS + 16, "D__stop___jump_table"),
        (BTF, "R__start_BTF"),
        (BTF + btf().len() as u64, "R__stop_BTF"),
    ];
    let named = named.into_iter().filter(|(_, name)| !without.contains(&&name[1..]));
    let many = (0..6_000_u64).map(|n| (BASE + 0x10_0000 + 16 * n, format!("dthing_{n}")));
    let symbols: Vec<_> = named.map(|(at, name)| (at, name.to_owned())).chain(many).collect();
    let mut image = vec![0_u8; 0x5_0000];
    let mut put = |address: u64, bytes: &[u8]| {
        let at = usize::try_from(address - BASE).unwrap();
        image[at..at + bytes.len()].copy_from_slice(bytes);
    };
    put(BANNER, b"Linux version 6.12.0 (made up)");
    // stp, mov x29, nop, ldp, ret; behind it what the jump at the nop leads to: bl.
    let lock = [0xa9be_7bfd_u32, 0x9100_03fd, 0xd503_201f, 0xa8c2_7bfd, 0xd65f_03c0, 0x9400_0400];
    put(CODE, &lock.map(u32::to_le_bytes).concat());
    // mov sp, x9; msr sp_el0, x1; ret
    let switch = [0x9100_013f_u32, 0xd518_4101, 0xd65f_03c0];
    put(SWITCH, &switch.map(u32::to_le_bytes).concat());
    put(JUMPS, &(CODE + 8).wrapping_sub(JUMPS).to_le_bytes()[..4]);
    put(JUMPS + 4, &(CODE + 20).wrapping_sub(JUMPS + 4).to_le_bytes()[..4]);
    put(BTF, &btf());
    put(BASE + 0x1_0004, &table(Form::AllDistances, &symbols, BASE + 0x1_0004));
    image
}

#[test]
fn a_kernel_for_arm64_is_read() {
    let kernel = Kernel::read(&memory(&[])).unwrap();
    assert_eq!(kernel.preempt_count, 8 + 8);
    let want = Tasks { current: SWITCH + 4, pid: 32, comm: 40, prio: 56, policy: 60 };
    assert_eq!(kernel.tasks, Some(want));
    // One table of all processors, and two of those that must not be led astray.
    let ways = kernel.followed.iter().filter(|code| code.what != What::Wake);
    assert_eq!(ways.count(), 3 * 16 + 1);
    let way = |start, what| Followed { start, end: start + 1, what, value: 0 };
    for (start, what, name) in [
        (VECTORS + 0x280, What::Interrupt, "el1h_64_irq"),
        (VECTORS + 0x800 + 0x400, What::Exception, "el0t_64_sync"),
        (VECTORS + 0x1000 + 0x480, What::Interrupt, "el0t_64_irq"),
    ] {
        assert!(kernel.followed.contains(&way(start, what)), "{name}");
        assert_eq!(kernel.function(start + 0x40), Some(name));
    }
    assert!(kernel.followed.contains(&way(CODE + 0x90, What::Handler)));
    // Modules lie elsewhere.
    assert_eq!(kernel.function(END), None);
    let of_lock = kernel.unwinds.iter().filter(|unwind| (CODE..SWITCH).contains(&unwind.from));
    let of_lock: Vec<Unwind> = of_lock.copied().collect();
    let unwind = |from, base| Unwind { from, offset: 0, base };
    let (link, frame) = (Base::Link, Base::Frame);
    assert_eq!(of_lock[..2], [unwind(CODE, link), unwind(CODE + 8, frame)]);
    assert_eq!(of_lock[2..4], [unwind(CODE + 16, link), unwind(CODE + 20, frame)]);
    assert_eq!(Kernel::unpack(&kernel.pack()), Some(kernel));
}

/// Debian's 6.1 for arm64 has symbols of functions alone.
#[test]
fn a_kernel_for_arm64_needs_no_symbols_of_data() {
    let data = ["linux_banner", "__start_BTF", "__stop_BTF"];
    let (with, without) = (Kernel::read(&memory(&[])), Kernel::read(&memory(&data)));
    // But for the names of variables.
    let packed = |kernel: Kernel| {
        let text = kernel.pack();
        let lines = text.lines().filter(|line| !line.starts_with("v "));
        lines.collect::<Vec<_>>().join("\n")
    };
    assert_eq!(packed(with.unwrap()), packed(without.unwrap()));
}

/// Each place that begins as type information does is read as such, as far as it says that it goes.
#[test]
fn type_information_is_looked_for_with_an_end() {
    let mut image = image(&["__start_BTF", "__stop_BTF"]);
    let (from, to) = (0x5000, 0x1_0000);
    assert!(image[from..to].iter().all(|&byte| byte == 0), "nothing else lies there");
    for place in (from..to).step_by(24) {
        let length = u32::try_from(image.len() - place - 24).unwrap();
        let words = [24, 0, length, 0, length].map(u32::to_le_bytes);
        image[place..place + 24]
            .copy_from_slice(&[&[0x9f, 0xeb, 1, 0], words.as_flattened()].concat());
    }
    let ScopeError::TooMuch(why) = Kernel::read(&written_by(183, &image)).unwrap_err() else {
        panic!("it is read without an end");
    };
    assert!(why.to_string().contains("bytes of type information"), "{why}");
}

#[test]
fn a_kernel_for_arm64_without_what_is_needed_is_refused_by_name() {
    for (without, what) in
        [("vectors", "vectors"), ("_etext", "_etext"), ("cpu_switch_to", "cpu_switch_to")]
    {
        let refused = Kernel::read(&memory(&[without])).unwrap_err();
        assert_eq!(refused, ScopeError::Lacks(what));
    }
    let mut other = memory(&[]);
    let types = other.windows(4).position(|bytes| bytes == [0x9f, 0xeb, 1, 0]).unwrap();
    other[types] = 0;
    let lacking = ScopeError::Lacks("type information (CONFIG_DEBUG_INFO_BTF)");
    // With the checksum of what it is now.
    assert_eq!(Kernel::read(&in_block(&other[8..])).unwrap_err(), lacking);
}
