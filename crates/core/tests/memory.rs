//! A recorder takes what it takes at the start: alone in its process, so that nothing else
//! changes the figure.

use wakescope_core::recorder::Recorder;

const MS: u64 = 1_000_000;

/// Resident memory of this process, in KiB; `None` where the kernel does not tell.
fn resident_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// Records samples up to 1 ms late, and one in a thousand up to 1 s, and looks now and then.
fn feed(recorder: &Recorder, numbers: std::ops::Range<u64>) {
    for i in numbers {
        // The bits of a counter, scattered (the constant is 2^64 over the golden ratio).
        let noise = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let late_ns = noise >> if i % 1_000 == 0 { 34 } else { 44 };
        recorder.record(i * MS, late_ns, late_ns / MS, MS);
        if i % 50_000 == 0 {
            assert_eq!(recorder.snapshot().woken.fault(), None);
        }
    }
}

#[test]
fn memory_does_not_grow_with_samples() {
    const FEW: u64 = 100_000;
    const MANY: u64 = 10_000_000;
    let recorder = Recorder::new(1_000);
    feed(&recorder, 0..FEW);
    let Some(before_kib) = resident_kib() else {
        wakescope_testing::skip(
            "memory_does_not_grow_with_samples",
            "/proc/self/status tells no VmRSS",
        );
        return;
    };
    feed(&recorder, FEW..MANY);
    let after_kib = resident_kib().unwrap();
    assert_eq!(recorder.snapshot().woken.count, MANY);
    // A byte for every hundred samples would be 97 KiB; the allocator may keep a page or two.
    assert!(after_kib <= before_kib + 64, "{before_kib} KiB became {after_kib} KiB");
}
