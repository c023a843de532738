use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use wakescope_core::preemption::Model;
use wakescope_testing::Folder;

use super::*;

/// A made-up machine in a folder, which goes with it.
struct Machine(Folder);

impl Machine {
    /// Each file with its content; `/` at the end makes a folder.
    fn of(files: &[(&str, &str)]) -> Self {
        let machine = Self(Folder::new("host"));
        for (path, text) in files {
            machine.write(path, text.as_bytes());
        }
        machine
    }

    fn write(&self, path: &str, bytes: &[u8]) {
        let at = path.trim_start_matches('/');
        if path.ends_with('/') {
            fs::create_dir_all(self.0.join(at)).unwrap();
        } else {
            self.0.write(at, bytes);
        }
    }

    fn read(&self) -> Host {
        read_from(&Files::under(self.0.path()), &[1])
    }

    fn examine(&self) -> (Host, Vec<Instrument>) {
        examine(&Files::under(self.0.path()), &[1])
    }
}

const CPU: &str = "/sys/devices/system/cpu";

/// A workstation with all that can be read there.
fn workstation() -> Machine {
    let cpu = |rest: &str| format!("{CPU}/{rest}");
    Machine::of(&[
        ("/proc/sys/kernel/osrelease", "6.1.0-49-amd64\n"),
        ("/proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2 (2026-08-20)\n"),
        ("/proc/sys/kernel/arch", "x86_64\n"),
        ("/proc/cmdline", "root=UUID=5ec2e7 ro quiet isolcpus=3 nohz_full=3 5ec2e7 -- 5ec2e7\n"),
        (
            "/proc/cpuinfo",
            "processor\t: 0\nmodel name\t: A Fast Processor\nmicrocode\t: 0xf8\nflags\t\t: fpu vme\n",
        ),
        ("/proc/self/status", "Name:\tx\nCapEff:\t0000000000800000\nCpus_allowed_list:\t0-2\n"),
        ("/proc/self/cgroup", "4:memory:/\n3:cpu,cpuacct:/system.slice/x.service\n0::/\n"),
        (
            "/proc/self/mountinfo",
            "30 23 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
             31 23 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct\n",
        ),
        ("/sys/fs/cgroup/cpu,cpuacct/system.slice/x.service/cpu.rt_runtime_us", "0\n"),
        ("/proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
        ("/proc/sys/kernel/sched_rt_period_us", "1000000\n"),
        (
            "/boot/config-6.1.0-49-amd64",
            "CONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_PREEMPT_DYNAMIC=y\nCONFIG_RT_GROUP_SCHED=y\n",
        ),
        ("/sys/kernel/debug/sched/preempt", "none voluntary (full)\n"),
        ("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
        (&cpu("online"), "0-3\n"),
        (&cpu("isolated"), "3\n"),
        (&cpu("nohz_full"), "3\n"),
        (&cpu("cpuidle/current_driver"), "intel_idle\n"),
        (&cpu("cpuidle/current_governor_ro"), "menu\n"),
        (&cpu("cpu1/cpuidle/state0/name"), "POLL\n"),
        (&cpu("cpu1/cpuidle/state0/latency"), "0\n"),
        (&cpu("cpu1/cpuidle/state0/disable"), "0\n"),
        (&cpu("cpu1/cpuidle/state1/name"), "C6\n"),
        (&cpu("cpu1/cpuidle/state1/latency"), "133\n"),
        (&cpu("cpu1/cpuidle/state1/disable"), "1\n"),
        (&cpu("cpu1/cpufreq/scaling_governor"), "powersave\n"),
    ])
}

#[test]
fn this_machine_can_be_read() {
    let host = read(&[0]);
    assert!(!host.release.is_empty() && !host.version.is_empty() && !host.arch.is_empty());
    assert!(!host.cpus_online.is_empty() && !host.cpus_allowed.is_empty());
    assert!(host.clock.read_cost_ns > 0 && host.clock.resolution_ns > 0);
}

#[test]
fn a_workstation_is_read_in_full() {
    let host = workstation().read();
    assert_eq!(host.release, "6.1.0-49-amd64");
    assert_eq!(host.arch, "x86_64");
    assert_eq!(host.preemption.model, Model::Full);
    let conflicts = &host.preemption.conflicts;
    assert!(conflicts.is_empty(), "{conflicts:?}");
    assert_eq!(host.cpu_model.as_deref(), Some("A Fast Processor"));
    assert_eq!(host.microcode.as_deref(), Some("0xf8"));
    assert_eq!(host.hypervisor, None);
    assert_eq!(
        (&*host.cpus_online, &*host.cpus_allowed, &*host.cpus_isolated, &*host.cpus_nohz_full),
        (&[0, 1, 2, 3][..], &[0, 1, 2][..], &[3][..], &[3][..])
    );
    assert_eq!(host.clock.source, "tsc");
    assert_eq!(host.cmdline, "root=[masked] ro quiet isolcpus=3 nohz_full=3 [masked] -- [masked]");
    let record = serde_json::to_string(&host).unwrap();
    assert!(!record.contains("5ec2e7"), "{record}");
    assert_eq!(host.idle.driver.as_deref(), Some("intel_idle"));
    assert_eq!(host.idle.governor.as_deref(), Some("menu"));
    let states: Vec<_> =
        host.idle.states.iter().map(|s| (&*s.name, s.exit_latency_ns, s.disabled)).collect();
    assert_eq!(states, [("POLL", 0, false), ("C6", 133_000, true)]);
    assert_eq!(host.governors, ["powersave"]);
    assert_eq!(host.rt.runtime_ns, Some(950_000_000));
    assert_eq!(host.rt.period_ns, Some(1_000_000_000));
    // Debugfs is there and has no fair server.
    assert_eq!(host.rt.fair_server, Some(false));
    assert_eq!(host.rt.group_scheduling, Some(true));
    assert_eq!(host.rt.group_runtime_ns, Some(0));
    assert_eq!(host.rt.nice_capability, Some(true));
}

#[test]
fn an_empty_machine_gives_no_guess() {
    let host = Machine::of(&[]).read();
    // The architecture is the running kernel's word where the file is missing.
    assert!(!host.arch.is_empty());
    let got = Host { arch: String::new(), clock: Clock::default(), ..host };
    let unread = got.preemption.unread.clone();
    let mut want = Host { arch: String::new(), ..Host::default() };
    want.preemption.unread.clone_from(&unread);
    want.rt.priority_limit = got.rt.priority_limit;
    want.unreadable = vec![KernelFiles::Proc, KernelFiles::Sys];
    assert_eq!(got, want);
    assert!(unread.iter().all(|u| u.why == "absent"), "{unread:#?}");
    assert_eq!(unread.len(), 6);
}

/// The processor was taken for a sign of /proc. But a board with a device tree has its name in /sys, and an Arm
/// server has none in either.
#[test]
fn folders_that_cannot_be_read_are_told_apart() {
    use KernelFiles::{Proc, ProcSys, Sys};
    let proc_sys = ("/proc/sys/kernel/osrelease", "6.12.1\n");
    let of_proc = [("/proc/stat", "cpu  1 2 3 4\n"), ("/proc/cpuinfo", "processor\t: 0\n")];
    let sys = ("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
    let board = ("/sys/firmware/devicetree/base/model", "A Board\0");
    for (files, want) in [
        (&[proc_sys, of_proc[0], of_proc[1], sys][..], &[][..]),
        (&[of_proc[0], of_proc[1], sys], &[ProcSys]),
        (&[of_proc[0], of_proc[1]], &[ProcSys, Sys]),
        (&[proc_sys], &[Sys]),
        (&[sys, board], &[Proc]),
    ] {
        assert_eq!(Machine::of(files).read().unreadable, want, "{files:?}");
    }
}

#[test]
fn garbage_and_huge_files_do_no_harm() {
    let machine = workstation();
    let mut paths = Vec::new();
    collect(&machine.0, &mut paths);
    assert!(paths.len() > 25, "{paths:?}");
    let huge = vec![b'9'; 1 << 20];
    let zeroes = vec![0; 1 << 20];
    let hostile: [&[u8]; 5] = [b"", b"\xff\xfe(\x00)\x1b[31m,-,", b"(", &huge, &zeroes];
    for bytes in hostile {
        for path in &paths {
            fs::write(path, bytes).unwrap();
        }
        let (host, _) = machine.examine();
        assert_eq!(host.preemption.model, Model::Unknown);
        assert!(host.cmdline.len() <= 200_000, "{} bytes", host.cmdline.len());
    }
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, paths);
        } else {
            paths.push(path);
        }
    }
}

#[test]
fn a_configuration_that_inflates_without_end_is_cut() {
    let machine = Machine::of(&[
        ("/proc/sys/kernel/osrelease", "6.1.0\n"),
        ("/proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC\n"),
    ]);
    let mut config = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    config.write_all(b"CONFIG_PREEMPT_NONE=y\nCONFIG_PREEMPT_DYNAMIC=y\n").unwrap();
    for _ in 0..64 {
        config.write_all(&vec![b'\n'; 1 << 20]).unwrap();
    }
    machine.write("/proc/config.gz", &config.finish().unwrap());
    assert_eq!(machine.read().preemption.model, Model::None);
    // A file cut short is read as far as it goes, or not at all, but without a panic.
    machine.write("/proc/config.gz", b"\x1f\x8b\x08\x00");
    let preemption = machine.read().preemption;
    assert_eq!(preemption.model, Model::Unknown);
    assert!(preemption.unread.iter().any(|u| u.source.contains("config.gz")), "{preemption:#?}");
}

#[track_caller]
fn hypervisor(files: &[(&str, &str)], want: Option<&str>) {
    assert_eq!(Machine::of(files).read().hypervisor.as_deref(), want, "{files:?}");
}

#[test]
fn hypervisors_are_named() {
    let guest = ("/proc/cpuinfo", "processor : 0\nflags : fpu hypervisor sse\n");
    let bare = ("/proc/cpuinfo", "processor : 0\nflags : fpu sse\n");
    let arm = ("/proc/cpuinfo", "processor : 0\nFeatures : fp asimd\n");
    let clocks = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
    let (vendor, product) = ("/sys/class/dmi/id/sys_vendor", "/sys/class/dmi/id/product_name");
    hypervisor(&[bare], None);
    hypervisor(&[guest], Some("unknown"));
    hypervisor(&[guest, (clocks, "tsc kvm-clock\n")], Some("KVM"));
    hypervisor(&[guest, (clocks, "hyperv_clocksource_tsc_page acpi_pm\n")], Some("Hyper-V"));
    hypervisor(&[guest, (vendor, "VMware, Inc."), (product, "VMware20,1")], Some("VMware"));
    hypervisor(&[guest, (vendor, "QEMU"), (product, "Standard PC")], Some("QEMU"));
    hypervisor(&[guest, (vendor, "innotek GmbH"), (product, "VirtualBox")], Some("VirtualBox"));
    hypervisor(
        &[guest, (vendor, "Microsoft Corporation"), (product, "Virtual Machine")],
        Some("Hyper-V"),
    );
    // The vendor of a real machine sells guests too.
    hypervisor(&[bare, (vendor, "Amazon EC2"), (product, "m5.metal")], None);
    hypervisor(&[arm], None);
    hypervisor(&[arm, (vendor, "Amazon EC2"), (product, "c7g.large")], Some("Amazon EC2"));
    hypervisor(&[arm, (vendor, "Amazon EC2"), (product, "c7g.metal")], None);
    hypervisor(&[arm, (vendor, "QEMU"), (product, "KVM Virtual Machine")], Some("KVM"));
    hypervisor(&[("/sys/hypervisor/type", "xen\n")], Some("Xen"));
    hypervisor(
        &[("/sys/firmware/devicetree/base/hypervisor/compatible", "xen,xen-4.17\0xen,xen\0")],
        Some("Xen"),
    );
    hypervisor(
        &[("/proc/sysinfo", "Type: 3906\nVM00 Control Program: KVM/Linux\n")],
        Some("KVM/Linux"),
    );
}

#[test]
fn rights_end_at_a_user_namespace() {
    const FIRST: &str = "user:[4026531837]";
    const OTHER: &str = "user:[4026532250]";
    for (capabilities, namespace, want) in [
        ("000001ffffffffff", Some(FIRST), [true, true, true]),
        // A kernel without user namespaces.
        ("000001ffffffffff", None, [true, true, true]),
        ("000001ffffffffff", Some(OTHER), [false, false, false]),
        ("0000000000000000", Some(FIRST), [false, false, false]),
        // CAP_SYS_NICE, CAP_SYS_ADMIN, CAP_BPF, CAP_PERFMON, and both of these.
        ("0000000000800000", Some(FIRST), [true, false, false]),
        ("0000000000200000", Some(FIRST), [false, true, true]),
        ("0000008000000000", Some(FIRST), [false, false, false]),
        ("0000004000000000", Some(FIRST), [false, false, true]),
        ("000000c000000000", Some(FIRST), [false, true, true]),
    ] {
        let machine = workstation();
        machine.write("/proc/self/status", format!("CapEff:\t{capabilities}\n").as_bytes());
        machine.write("/proc/sys/kernel/unprivileged_bpf_disabled", b"2\n");
        machine.write("/proc/sys/kernel/perf_event_paranoid", b"2\n");
        machine.write("/proc/self/ns/", b"");
        let link = machine.0.join("proc/self/ns/user");
        namespace.map(|name| symlink(name, &link)).transpose().unwrap();
        let (host, instruments) = machine.examine();
        let available = |name| instruments.iter().find(|i| i.name == name).unwrap().available;
        let got = [host.rt.nice_capability, available("bpf"), available("perf-events")];
        assert_eq!(got, want.map(Some), "{capabilities} {namespace:?}");
    }
}

#[test]
fn a_seccomp_filter_may_refuse_what_capabilities_allow() {
    for (capabilities, mode, want) in [
        ("000001ffffffffff", "0", Some(true)),
        ("000001ffffffffff", "2", None),
        ("0000000000000000", "2", Some(false)),
    ] {
        let machine = workstation();
        let status = format!("CapEff:\t{capabilities}\nSeccomp:\t{mode}\nSeccomp_filters:\t1\n");
        machine.write("/proc/self/status", status.as_bytes());
        machine.write("/proc/sys/kernel/unprivileged_bpf_disabled", b"2\n");
        machine.write("/proc/sys/kernel/perf_event_paranoid", b"2\n");
        assert_eq!(has_seccomp_filter(&Files::under(machine.0.path())), mode == "2");
        let (_, instruments) = machine.examine();
        for name in ["bpf", "perf-events"] {
            let found = instruments.iter().find(|i| i.name == name).unwrap();
            assert_eq!(found.available, want, "{status} {found:?}");
            assert_eq!(found.detail.contains("seccomp filter"), want.is_none(), "{found:?}");
        }
    }
}

#[test]
fn group_scheduling_is_on_as_the_kernel_reads_its_command_line() {
    // With the default on, and with the default off.
    for (cmdline, want) in [
        ("quiet", [true, false]),
        ("rt_group_sched=0", [false, false]),
        ("rt_group_sched=1", [true, true]),
        ("rt_group_sched=0 rt_group_sched=1", [true, true]),
        ("rt_group_sched=0x0", [false, false]),
        ("rt_group_sched=+01", [true, true]),
        // The kernel ignores what is neither 0 nor 1.
        ("rt_group_sched=off", [true, false]),
        ("rt_group_sched=n", [true, false]),
        ("rt_group_sched=2", [true, false]),
        ("rt_group_sched=-1", [true, false]),
        ("rt_group_sched=-+1", [true, false]),
        ("rt_group_sched=", [true, false]),
        ("rt_group_sched=0 rt_group_sched=on", [false, false]),
    ] {
        let defaults = ["", "CONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED=y\n"];
        let got = defaults.map(|default| {
            let machine = workstation();
            machine.write("/proc/cmdline", cmdline.as_bytes());
            let config = format!("CONFIG_RT_GROUP_SCHED=y\n{default}");
            machine.write("/boot/config-6.1.0-49-amd64", config.as_bytes());
            machine.read().rt.group_scheduling
        });
        assert_eq!(got, want.map(Some), "{cmdline}");
    }
}

#[test]
fn the_fair_server_is_known_from_debugfs_or_the_release() {
    let machine = Machine::of(&[("/proc/sys/kernel/osrelease", "6.12.1\n")]);
    assert_eq!(machine.read().rt.fair_server, Some(true));
    machine.write("/proc/sys/kernel/osrelease", b"5.14.0-600.el9.x86_64\n");
    assert_eq!(machine.read().rt.fair_server, None);
    machine.write("/sys/kernel/debug/sched/fair_server/cpu0/runtime", b"50000000\n");
    assert_eq!(machine.read().rt.fair_server, Some(true));
}

#[test]
fn a_scheduler_of_sched_ext_is_known_while_it_is_loaded() {
    let machine = Machine::of(&[("/sys/kernel/sched_ext/state", "disabled\n")]);
    assert_eq!(machine.read().sched_ext, None);
    machine.write("/sys/kernel/sched_ext/state", b"enabled\n");
    assert_eq!(machine.read().sched_ext.as_deref(), Some(""));
    machine.write("/sys/kernel/sched_ext/root/ops", b"simple\n");
    assert_eq!(machine.read().sched_ext.as_deref(), Some("simple"));
}

#[test]
fn the_share_of_the_fair_server_is_the_largest_of_all_cpus() {
    let machine = Machine::of(&[("/sys/kernel/debug/sched/fair_server/", "")]);
    let check = |cpu: u32, runtime: u64, period: u64, want: Option<(u64, u64)>| {
        let folder = format!("/sys/kernel/debug/sched/fair_server/cpu{cpu}");
        machine.write(&format!("{folder}/runtime"), format!("{runtime}\n").as_bytes());
        machine.write(&format!("{folder}/period"), format!("{period}\n").as_bytes());
        let share = machine.read().rt.fair_server_share;
        assert_eq!(share.map(|share| (share.runtime_ns, share.period_ns)), want);
    };
    // A CPU on which nothing has run yet, one with the default, one with a larger share, one that is off.
    check(0, 0, 0, None);
    check(1, 50_000_000, 1_000_000_000, Some((50_000_000, 1_000_000_000)));
    check(2, 40_000_000, 500_000_000, Some((40_000_000, 500_000_000)));
    check(3, 0, 1_000_000_000, Some((40_000_000, 500_000_000)));
    check(2, 0, 1_000_000_000, Some((50_000_000, 1_000_000_000)));
    check(1, 0, 1_000_000_000, Some((0, 1_000_000_000)));
}

#[test]
fn instruments_are_found_in_tracefs() {
    let machine = Machine::of(&[
        ("/sys/kernel/tracing/available_tracers", "hwlat timerlat function nop\n"),
        ("/sys/kernel/tracing/events/sched/sched_waking/", ""),
        ("/sys/class/rtc/rtc0/", ""),
        ("/proc/sys/kernel/modules_disabled", "1\n"),
        ("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n"),
    ]);
    let (_, instruments) = machine.examine();
    let available = |name: &str| {
        let found = instruments.iter().find(|i| i.name == name);
        found.unwrap_or_else(|| panic!("{name} is not in {instruments:#?}")).available
    };
    for (name, want) in [
        ("btf", Some(false)),
        ("tracepoint:sched_waking", Some(true)),
        ("tracepoint:irq_disable", Some(false)),
        ("tracepoint:sched_entry_tp", None),
        ("tracer:timerlat", Some(true)),
        ("tracer:irqsoff", Some(false)),
        ("rtc", Some(true)),
        ("msr", Some(false)),
        ("modules", Some(false)),
        ("no-lockdown", Some(false)),
    ] {
        assert_eq!(available(name), want, "{name}: {instruments:#?}");
    }
}

#[test]
fn names_of_the_kernel_are_there_where_any_address_is() {
    let hidden = "0000000000000000 T _text\n0000000000000000 t f\n";
    let text = format!("{hidden}ffffffff81000000 T g\n");
    // Of a 32-bit kernel.
    let short_hidden = "00000000 T _text\n00000000 t f\n";
    let short = format!("{short_hidden}c0008000 T g\n");
    for (list, want, detail) in [
        (Some(text.as_str()), true, "/proc/kallsyms"),
        (Some(hidden), false, "hides addresses"),
        (Some(&short), true, "/proc/kallsyms"),
        (Some(short_hidden), false, "hides addresses"),
        (Some("\n"), false, "hides addresses"),
        (Some(""), false, "lists none"),
        (None, false, "absent"),
    ] {
        let machine = Machine::of(&[]);
        list.iter().for_each(|list| machine.write("/proc/kallsyms", list.as_bytes()));
        let (_, instruments) = machine.examine();
        let names = instruments.iter().find(|i| i.name == "kernel-names").unwrap();
        assert_eq!(names.available, Some(want), "{names:?}");
        assert!(names.detail.contains(detail), "{names:?}");
    }
}

#[test]
fn an_empty_mount_point_is_not_absence() {
    let machine = Machine::of(&[("/sys/kernel/debug/", ""), ("/sys/kernel/security/", "")]);
    let (host, instruments) = machine.examine();
    let unread = &host.preemption.unread[0];
    assert_eq!(unread.why, "/sys/kernel/debug is not mounted", "{unread:?}");
    let lockdown = instruments.iter().find(|i| i.name == "no-lockdown").unwrap();
    assert_eq!(lockdown.available, None);
    assert!(lockdown.detail.contains("is not mounted"), "{lockdown:?}");
}
