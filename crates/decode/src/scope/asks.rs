//! Where the kernel asks whether somebody else is to run: the places at which `cond_resched` and `might_sleep`
//! were compiled in. Kernels whose model can be changed at boot list them (include/linux/static_call_types.h), and
//! patch them away under models that preempt. The places stay the same.

use wakescope_core::scope::edges::AskKind;

use super::kernel::MODULES;
use super::memory::Memory;
use super::symbols::Symbol;

/// What the two static calls are known by (include/linux/sched.h, include/linux/kernel.h).
const KEYS: [(&str, AskKind); 2] = [
    ("__SCK__cond_resched", AskKind::CondResched),
    ("__SCK__might_resched", AskKind::MightResched),
];

/// A place is told by two distances of four bytes: where it is, and whose.
const ENTRY: u64 = 8;

/// Flags in the low bits of the second distance: a tail call, and code that is thrown away after boot.
const FLAGS: u64 = 3;
const AFTER_BOOT: u64 = 2;

/// No kernel has nearly as many. The plugin takes no more.
pub(super) const MOST: usize = 1 << 16;

/// All places, in order; none if the kernel does not list them, or in a form that is not known.
pub(super) fn find(memory: &Memory, symbols: &[Symbol]) -> Vec<(u64, AskKind)> {
    listed(memory, symbols).filter(|all| all.len() <= MOST).unwrap_or_default()
}

fn listed(memory: &Memory, symbols: &[Symbol]) -> Option<Vec<(u64, AskKind)>> {
    let at = |name: &str| symbols.iter().find(|symbol| symbol.name == name).map(|s| s.address);
    let (start, end) = (at("__start_static_call_sites")?, at("__stop_static_call_sites")?);
    let [cond, might] = KEYS.map(|(name, kind)| at(name).map(|address| (address, kind)));
    let keys = [cond?, might?];
    let length = usize::try_from(end.checked_sub(start)?).ok()?;
    let table = memory.from(start)?.get(..length)?;
    let mut all = Vec::new();
    let mut here = start;
    for entry in table.chunks_exact(8) {
        let distance = |at: usize| {
            let bytes: [u8; 4] = entry[at..at + 4].try_into().ok()?;
            let from = here.wrapping_add(at as u64);
            Some(from.wrapping_add_signed(i32::from_le_bytes(bytes).into()))
        };
        let (place, key) = (distance(0)?, distance(4)?);
        here = here.wrapping_add(ENTRY);
        let found = keys.iter().find(|(address, _)| *address == key & !FLAGS);
        let Some((_, kind)) = found.filter(|_| key & AFTER_BOOT == 0) else { continue };
        let code = memory.from(place).filter(|_| place < MODULES)?;
        // A conditional jump may not be taken: whether it asks is not known.
        if matches!(code, [0x0f, 0x80..=0x8f, ..]) {
            continue;
        }
        // Of a list in another form nothing is believed.
        is_call(code).then_some(())?;
        all.push((place, *kind));
    }
    all.sort_unstable_by_key(|(place, _)| *place);
    all.dedup_by_key(|(place, _)| *place);
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
