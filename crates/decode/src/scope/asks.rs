//! Where the kernel asks whether somebody else is to run: where it looks by itself ([`need_resched`]), and the
//! places at which `cond_resched` and `might_sleep` were compiled in. Kernels whose model can be changed at boot
//! list these (include/linux/static_call_types.h), and patch them away under models that preempt. The places stay
//! the same.

use wakescope_core::scope::edges::AskKind;

use super::kernel::MODULES;
use super::memory::Memory;
use super::need_resched;
use super::symbols::{Symbol, address};

/// What the two static calls are known by (include/linux/sched.h, include/linux/kernel.h).
const KEYS: [(&str, AskKind); 2] = [
    ("__SCK__cond_resched", AskKind::CondResched),
    ("__SCK__might_resched", AskKind::MightResched),
];

/// Bytes of an entry of the list: the distance to the place, and the distance to the static call, four each.
const ENTRY: usize = 8;

/// Flags in the low bits of the second distance: a tail call, and code that is thrown away after boot.
const FLAGS: u64 = 3;
const AFTER_BOOT: u64 = 2;

/// No kernel has nearly as many. The plugin takes no more.
pub(super) const MOST: usize = 1 << 16;

/// All places, in order; none that should be listed if the kernel has no list, or one in a form that is not known.
pub(super) fn find(memory: &Memory, symbols: &[Symbol]) -> Vec<(u64, AskKind)> {
    let mut all = listed(memory, symbols).unwrap_or_default();
    let looks = need_resched::find(memory, symbols);
    all.extend(looks.into_iter().map(|place| (place, AskKind::NeedResched)));
    all.sort_unstable_by_key(|(place, _)| *place);
    all.dedup_by_key(|(place, _)| *place);
    if all.len() > MOST { Vec::new() } else { all }
}

fn listed(memory: &Memory, symbols: &[Symbol]) -> Option<Vec<(u64, AskKind)>> {
    let at = |name: &str| address(symbols, name);
    let (start, end) = (at("__start_static_call_sites")?, at("__stop_static_call_sites")?);
    let [cond, might] = KEYS.map(|(name, kind)| at(name).map(|address| (address, kind)));
    let keys = [cond?, might?];
    let length = usize::try_from(end.checked_sub(start)?).ok()?;
    let table = memory.from(start)?.get(..length)?;
    let mut all = Vec::new();
    let mut here = start;
    for entry in table.chunks_exact(ENTRY) {
        let distance = |at: usize| {
            let bytes: [u8; 4] = entry[at..at + 4].try_into().ok()?;
            let from = here.wrapping_add(at as u64);
            Some(from.wrapping_add_signed(i32::from_le_bytes(bytes).into()))
        };
        let (place, key) = (distance(0)?, distance(4)?);
        here = here.wrapping_add(ENTRY as u64);
        let found = keys.iter().find(|(address, _)| *address == key & !FLAGS);
        let Some((_, kind)) = found.filter(|_| key & AFTER_BOOT == 0) else { continue };
        let code = memory.from(place).filter(|_| place < MODULES)?;
        // Of a list in another form nothing is believed, nor where the kernel may or may not ask, by a conditional
        // jump: Debian's kernels from 6.1 to 7.2 have none.
        is_call(code).then_some(())?;
        all.push((place, *kind));
    }
    Some(all)
}

/// Whether there is what the kernel may put at a static call (arch/x86/kernel/static_call.c): a call, a jump, a
/// return, nothing, or zero as the result, in the forms that it had since 6.1.
fn is_call(code: &[u8]) -> bool {
    const NOTHING: [u8; 5] = [0x0f, 0x1f, 0x44, 0, 0];
    const ZERO: [[u8; 5]; 2] = [[0x66, 0x66, 0x48, 0x31, 0xc0], [0x2e, 0x2e, 0x2e, 0x31, 0xc0]];
    match code.first() {
        Some(0xe8 | 0xe9 | 0xc3) => true,
        _ => code.get(..5).is_some_and(|code| code == NOTHING || ZERO.iter().any(|z| code == z)),
    }
}
