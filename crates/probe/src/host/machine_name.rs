//! What the machine calls itself: processor, microcode, hypervisor.

use super::Files;

/// /proc/cpuinfo has some KiB per CPU, all alike for what is looked for here.
const CPUINFO_LIMIT: u64 = 16 << 10;

/// The value of the first line of /proc/cpuinfo whose key is one of `keys`.
fn cpuinfo(files: &Files, keys: &[&str]) -> Option<String> {
    let bytes = files.bytes("/proc/cpuinfo", CPUINFO_LIMIT).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let value = |key: &&str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(name, _)| name.trim() == *key).map(|(_, value)| value.trim().to_string())
    };
    keys.iter().find_map(value).filter(|value| !value.is_empty())
}

/// The processor's name; the board's where the processor has none, as on most Arm machines.
pub(super) fn cpu_model(files: &Files) -> Option<String> {
    cpuinfo(files, &["model name", "cpu model", "uarch", "cpu"])
        .or_else(|| files.word("/sys/firmware/devicetree/base/model"))
}

pub(super) fn microcode(files: &Files) -> Option<String> {
    cpuinfo(files, &["microcode"])
        .or_else(|| files.word("/sys/devices/system/cpu/cpu0/microcode/version"))
}

/// The hypervisor's name; `unknown` where the machine is a guest of one that hides its name.
pub(super) fn hypervisor(files: &Files) -> Option<String> {
    if let Some(kind) = files.word("/sys/hypervisor/type") {
        return Some(if kind == "xen" { "Xen".into() } else { kind });
    }
    if let Some(compatible) = files.word("/sys/firmware/devicetree/base/hypervisor/compatible") {
        let name = if compatible.contains("xen") { "Xen" } else { "KVM" };
        return Some(if compatible.contains("vmware") { "VMware" } else { name }.into());
    }
    // s390 lists the levels of hypervisors, the innermost with the highest number.
    if let Ok(sysinfo) = files.text("/proc/sysinfo") {
        let named = |line: &str| Some(line.split_once("Control Program:")?.1.trim().to_string());
        if let Some(name) = sysinfo.lines().filter_map(named).next_back() {
            return Some(name);
        }
    }
    if cpuinfo(files, &["platform"]).is_some_and(|p| p.contains("emulated by qemu")) {
        return Some("KVM or QEMU".into());
    }
    let flags = cpuinfo(files, &["flags"]);
    let flagged = flags.as_ref().map(|f| f.split_whitespace().any(|flag| flag == "hypervisor"));
    let named = by_clocksource(files).or_else(|| by_firmware(files));
    match flagged {
        Some(true) => Some(named.unwrap_or("unknown").into()),
        // x86 without the flag: the firmware's vendor may sell real machines too.
        Some(false) => None,
        None => named.map(Into::into),
    }
}

/// A clock that only guests of one hypervisor have.
fn by_clocksource(files: &Files) -> Option<&'static str> {
    let clocks = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
    let clocks = files.word(clocks)?;
    let known = [("kvm-clock", "KVM"), ("hyperv", "Hyper-V"), ("xen", "Xen")];
    known.iter().find(|(clock, _)| clocks.contains(clock)).map(|known| known.1)
}

/// What the firmware was told to call the machine.
fn by_firmware(files: &Files) -> Option<&'static str> {
    let field = |name: &str| files.word(&format!("/sys/class/dmi/id/{name}")).unwrap_or_default();
    let (vendor, product) = (field("sys_vendor"), field("product_name"));
    // Amazon's bare machines have the same vendor as its guests.
    if product.ends_with(".metal") {
        return None;
    }
    let text = format!("{vendor} {product}");
    let known = [
        ("KVM", "KVM"),
        ("QEMU", "QEMU"),
        ("VMware", "VMware"),
        ("VirtualBox", "VirtualBox"),
        ("Virtual Machine", "Hyper-V"),
        ("Xen", "Xen"),
        ("Parallels", "Parallels"),
        ("Bochs", "Bochs"),
        ("Apple Virtualization", "Apple Virtualization"),
        ("Amazon EC2", "Amazon EC2"),
        ("Google Compute Engine", "Google Compute Engine"),
        ("OpenStack", "OpenStack"),
    ];
    let by_dmi = known.iter().find(|(mark, _)| text.contains(mark)).map(|known| known.1);
    let emulated = || files.exists("/sys/firmware/qemu_fw_cfg").then_some("QEMU");
    by_dmi.or_else(emulated)
}
