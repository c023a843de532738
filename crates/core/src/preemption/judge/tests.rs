use proptest::prelude::*;

use super::super::{Model, Preemption, Reading, Sources, Traits};
use super::judge;

/// A kernel as its files describe it. `-` stands for a file that cannot be read.
#[derive(Clone, Copy)]
struct Kernel {
    release: &'static str,
    version: &'static str,
    arch: &'static str,
    cmdline: &'static str,
    config: &'static str,
    debugfs: &'static str,
    boot_log: &'static str,
    realtime: &'static str,
}

/// Nothing can be read but what every process may.
const BARE: Kernel = Kernel {
    release: "",
    version: "#1 SMP",
    arch: "x86_64",
    cmdline: "root=/dev/vda1 ro quiet",
    config: "-",
    debugfs: "-",
    boot_log: "-",
    realtime: "-",
};

/// Debian 12, `amd64` and `cloud-amd64`.
const DEBIAN_6_1: Kernel = Kernel {
    release: "6.1.0-49-amd64",
    version: "#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2 (2026-08-20)",
    config: "CONFIG_PREEMPT_BUILD=y\n# CONFIG_PREEMPT_NONE is not set\nCONFIG_PREEMPT_VOLUNTARY=y\n\
             # CONFIG_PREEMPT is not set\nCONFIG_PREEMPT_COUNT=y\nCONFIG_PREEMPTION=y\n\
             CONFIG_PREEMPT_DYNAMIC=y\nCONFIG_PREEMPT_RCU=y\n",
    ..BARE
};

/// Debian 12, `rt-amd64`, with the lazy of the RT patches of its time.
const DEBIAN_6_1_RT: Kernel = Kernel {
    release: "6.1.0-49-rt-amd64",
    version: "#1 SMP PREEMPT_RT Debian 6.1.192-2 (2026-08-20)",
    config: "CONFIG_PREEMPT_LAZY=y\n# CONFIG_PREEMPT is not set\nCONFIG_PREEMPT_RT=y\n\
             CONFIG_PREEMPT_COUNT=y\nCONFIG_PREEMPTION=y\n",
    realtime: "1\n",
    ..BARE
};

/// Debian 12, `cloud-arm64`.
const DEBIAN_6_1_ARM64: Kernel = Kernel {
    release: "6.1.0-56-cloud-arm64",
    version: "#1 SMP Debian 6.1.192-2 (2026-08-20)",
    arch: "aarch64",
    config: "# CONFIG_PREEMPT_NONE is not set\nCONFIG_PREEMPT_VOLUNTARY_BUILD=y\n\
             CONFIG_PREEMPT_VOLUNTARY=y\n# CONFIG_PREEMPT is not set\n\
             # CONFIG_PREEMPT_DYNAMIC is not set\n",
    ..BARE
};

/// Debian 13, `amd64`: as in Debian 12.
const DEBIAN_6_12: Kernel = Kernel {
    release: "6.12.95+deb13-amd64",
    version: "#1 SMP PREEMPT_DYNAMIC Debian 6.12.95-1 (2026-08-20)",
    ..DEBIAN_6_1
};

/// Debian 13, `rt-amd64`: dynamic as well, with the lazy of 6.13.
const DEBIAN_6_12_RT: Kernel = Kernel {
    release: "6.12.95+deb13-rt-amd64",
    version: "#1 SMP PREEMPT_RT Debian 6.12.95-1 (2026-08-20)",
    config: "CONFIG_PREEMPT_BUILD=y\nCONFIG_ARCH_HAS_PREEMPT_LAZY=y\n# CONFIG_PREEMPT is not set\n\
             CONFIG_PREEMPT_LAZY=y\nCONFIG_PREEMPT_RT=y\nCONFIG_PREEMPT_DYNAMIC=y\n",
    realtime: "1\n",
    ..BARE
};

/// A kernel for small VMs that chooses none.
const MICRO_VM_6_18: Kernel = Kernel {
    release: "6.18.44",
    version: "#1 SMP PREEMPT_DYNAMIC @0",
    config: "CONFIG_PREEMPT_BUILD=y\nCONFIG_ARCH_HAS_PREEMPT_LAZY=y\nCONFIG_PREEMPT_NONE=y\n\
             # CONFIG_PREEMPT_LAZY is not set\nCONFIG_PREEMPT_DYNAMIC=y\n",
    ..BARE
};

/// A kernel that knows only full and lazy.
const DEBIAN_7_2: Kernel = Kernel {
    release: "7.2.3+deb14-amd64",
    version: "#1 SMP PREEMPT_DYNAMIC Debian 7.2.3-1 (2026-08-20)",
    config: "CONFIG_PREEMPT_BUILD=y\nCONFIG_ARCH_HAS_PREEMPT_LAZY=y\n# CONFIG_PREEMPT is not set\n\
             CONFIG_PREEMPT_LAZY=y\nCONFIG_PREEMPT_DYNAMIC=y\n",
    ..BARE
};

/// Ubuntu 22.04, `lowlatency`: full, and not dynamic although its release could be.
const UBUNTU_5_15_LOWLATENCY: Kernel = Kernel {
    release: "5.15.0-100-lowlatency",
    version: "#110-Ubuntu SMP PREEMPT Wed Feb 7 13:27:48 UTC 2024",
    config: "CONFIG_PREEMPT_BUILD=y\nCONFIG_PREEMPT=y\n# CONFIG_PREEMPT_DYNAMIC is not set\n",
    ..BARE
};

/// A dynamic kernel of the time when the version string did not tell.
const DYNAMIC_5_15: Kernel = Kernel {
    release: "5.15.12-arch1-1",
    version: "#1 SMP PREEMPT Wed, 29 Dec 2021 12:04:56 +0000",
    config: "CONFIG_PREEMPT_BUILD=y\nCONFIG_PREEMPT=y\nCONFIG_PREEMPT_DYNAMIC=y\n",
    ..BARE
};

/// A Fedora-like kernel, lazy by default.
const FEDORA_6_17: Kernel = Kernel {
    release: "6.17.4-300.fc43.x86_64",
    version: "#1 SMP PREEMPT_DYNAMIC Sun Oct 19 18:47:49 UTC 2025",
    config: "CONFIG_PREEMPT_BUILD=y\nCONFIG_ARCH_HAS_PREEMPT_LAZY=y\nCONFIG_PREEMPT_LAZY=y\n\
             CONFIG_PREEMPT_DYNAMIC=y\n",
    ..BARE
};

/// Raspberry Pi OS: full, not dynamic.
const RASPBERRY_6_12: Kernel = Kernel {
    release: "6.12.47+rpt-rpi-v8",
    version: "#1 SMP PREEMPT Debian 1:6.12.47-1+rpt1 (2025-09-16)",
    arch: "aarch64",
    config: "CONFIG_PREEMPT_BUILD=y\nCONFIG_PREEMPT=y\n# CONFIG_PREEMPT_DYNAMIC is not set\n",
    ..BARE
};

/// Debian 11: none of the newer things.
const DEBIAN_5_10: Kernel = Kernel {
    release: "5.10.0-28-amd64",
    version: "#1 SMP Debian 5.10.209-2 (2024-01-31)",
    config: "# CONFIG_PREEMPT_NONE is not set\nCONFIG_PREEMPT_VOLUNTARY=y\n\
             # CONFIG_PREEMPT is not set\n# CONFIG_PREEMPT_RT is not set\n",
    ..BARE
};

/// A ChromeOS-like kernel.
const CHROMEOS_6_6: Kernel = Kernel {
    release: "6.6.99-08726-g28eab9a1f61e",
    version: "#1 SMP PREEMPT_DYNAMIC Tue, 2 Sep 2025 15:25:28 -0700",
    config: "CONFIG_PREEMPT_BUILD=y\nCONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_PREEMPT_DYNAMIC=y\n",
    ..BARE
};

fn judged(kernel: Kernel) -> Preemption {
    let reading = |source: &str, text: &str| Reading {
        source: source.into(),
        text: if text == "-" { Err("absent".into()) } else { Ok(text.into()) },
    };
    judge(&Sources {
        release: kernel.release.into(),
        version: kernel.version.into(),
        arch: kernel.arch.into(),
        debugfs: reading("/sys/kernel/debug/sched/preempt", kernel.debugfs),
        boot_log: reading("/dev/kmsg", kernel.boot_log),
        realtime: reading("/sys/kernel/realtime", kernel.realtime),
        cmdline: reading("/proc/cmdline", kernel.cmdline),
        config: reading("/proc/config.gz", kernel.config),
        btf: None,
    })
}

/// `conflicts` are parts of the sentences expected, one each.
#[track_caller]
fn check(kernel: Kernel, model: Model, conflicts: &[&str]) {
    let got = judged(kernel);
    assert_eq!(got.model, model, "{}: {got:#?}", kernel.release);
    assert_eq!(got.because.is_empty(), model == Model::Unknown, "{got:#?}");
    let fits = got.conflicts.len() == conflicts.len()
        && got.conflicts.iter().zip(conflicts).all(|(got, want)| got.contains(want));
    assert!(fits, "{}: {:#?} instead of {conflicts:#?}", kernel.release, got.conflicts);
}

#[test]
fn kernels_run_what_they_are_built_for() {
    check(DEBIAN_6_1, Model::Voluntary, &[]);
    check(DEBIAN_6_1_RT, Model::Rt, &[]);
    check(DEBIAN_6_1_ARM64, Model::Voluntary, &[]);
    check(DEBIAN_6_12, Model::Voluntary, &[]);
    check(DEBIAN_6_12_RT, Model::Rt, &[]);
    check(MICRO_VM_6_18, Model::None, &[]);
    check(DEBIAN_7_2, Model::Lazy, &[]);
    check(UBUNTU_5_15_LOWLATENCY, Model::Full, &[]);
    check(DYNAMIC_5_15, Model::Full, &[]);
    check(FEDORA_6_17, Model::Lazy, &[]);
    check(RASPBERRY_6_12, Model::Full, &[]);
    check(DEBIAN_5_10, Model::Voluntary, &[]);
    check(CHROMEOS_6_6, Model::Voluntary, &[]);
}

#[test]
fn dynamic_kernels_obey_the_command_line() {
    let with = |kernel: Kernel, cmdline| Kernel { cmdline, ..kernel };
    check(with(DEBIAN_6_1, "preempt=full"), Model::Full, &[]);
    check(with(DEBIAN_6_1, "ro preempt=none quiet"), Model::None, &[]);
    check(with(DEBIAN_6_12, "\"preempt=full\""), Model::Full, &[]);
    check(with(DYNAMIC_5_15, "preempt=none"), Model::None, &[]);
    check(with(MICRO_VM_6_18, "preempt=lazy"), Model::Lazy, &[]);
    check(with(DEBIAN_7_2, "preempt=full"), Model::Full, &[]);
    // Init's arguments are not the kernel's.
    check(with(DEBIAN_6_1, "quiet -- preempt=full"), Model::Voluntary, &[]);
    check(
        with(DEBIAN_6_1, "preempt=none preempt=full"),
        Model::Full,
        &["more than once on the command line (none, full)"],
    );
    check(with(DEBIAN_6_1, "preempt=full preempt=full"), Model::Full, &[]);
}

#[test]
fn words_that_a_kernel_ignores_are_conflicts() {
    let with = |kernel: Kernel, cmdline| Kernel { cmdline, ..kernel };
    let not_dynamic = "built without PREEMPT_DYNAMIC";
    check(with(DEBIAN_6_1_ARM64, "preempt=full"), Model::Voluntary, &[not_dynamic]);
    check(with(DEBIAN_5_10, "preempt=none"), Model::Voluntary, &[not_dynamic]);
    check(with(RASPBERRY_6_12, "preempt=none"), Model::Full, &[not_dynamic]);
    check(with(UBUNTU_5_15_LOWLATENCY, "preempt=none"), Model::Full, &[not_dynamic]);
    check(with(DEBIAN_6_1_RT, "preempt=none"), Model::Rt, &["RT kernel without PREEMPT_DYNAMIC"]);
    check(with(DEBIAN_6_12_RT, "preempt=none"), Model::Rt, &["supports only full and lazy"]);
    check(with(DEBIAN_6_12_RT, "preempt=full"), Model::Rt, &[]);
    check(
        with(DEBIAN_6_1, "preempt=lazy"),
        Model::Voluntary,
        &["lazy preemption exists since Linux 6.13"],
    );
    check(
        with(DEBIAN_7_2, "preempt=voluntary"),
        Model::Lazy,
        &["Linux 7.0 and later support only full and lazy"],
    );
    check(with(DEBIAN_6_1, "preempt=rt"), Model::Voluntary, &["does not know this model"]);
    check(with(DEBIAN_6_1, "preempt="), Model::Voluntary, &["does not know this model"]);
    // The last one that is known wins.
    check(
        with(DEBIAN_6_1, "preempt=full preempt=lazy"),
        Model::Full,
        &["preempt=lazy on the command line is ignored"],
    );
    let without_lazy = Kernel {
        release: "7.1.0",
        arch: "mips",
        config: "CONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_PREEMPT_DYNAMIC=y\n",
        cmdline: "preempt=lazy preempt=none",
        ..DEBIAN_7_2
    };
    check(without_lazy, Model::None, &["built without lazy preemption"]);
}

#[test]
fn the_kernels_own_word_comes_first() {
    let debugfs = |kernel: Kernel, debugfs| Kernel { debugfs, ..kernel };
    check(debugfs(DEBIAN_6_1, "none (voluntary) full \n"), Model::Voluntary, &[]);
    check(debugfs(DEBIAN_6_1, "(none) voluntary full"), Model::None, &[]);
    check(debugfs(DEBIAN_7_2, "full (lazy)"), Model::Lazy, &[]);
    check(debugfs(DEBIAN_6_12_RT, "full (lazy)"), Model::Rt, &[]);
    // Garbage decides nothing.
    check(debugfs(DEBIAN_6_1, "none voluntary full"), Model::Voluntary, &[]);
    check(debugfs(DEBIAN_6_1, "() (x"), Model::Voluntary, &[]);
    check(
        Kernel { cmdline: "preempt=none", ..debugfs(DEBIAN_6_1, "none voluntary (full)") },
        Model::Full,
        &["preempt=none is on the command line, but full is in force"],
    );
    let log = "6,89,240266,-;Dynamic Preempt: none\n";
    check(Kernel { boot_log: log, ..DEBIAN_6_1 }, Model::None, &[]);
    check(
        Kernel { boot_log: log, ..debugfs(DEBIAN_6_1, "none voluntary (full)") },
        Model::Full,
        &["The boot log says none, but full is in force now"],
    );
    // The kernel announces each switch.
    let switched = "6,89,240266,-;Dynamic Preempt: none\n6,900,99240266,-;Dynamic Preempt: full\n";
    check(Kernel { boot_log: switched, ..DEBIAN_6_1 }, Model::Full, &[]);
    // A program (facility 1) cannot pass for the kernel.
    let forged = "14,89,240266,-;Dynamic Preempt: none\n";
    check(Kernel { boot_log: forged, ..DEBIAN_6_1 }, Model::Voluntary, &[]);
}

#[test]
fn little_evidence_gives_no_guess() {
    let config = "-";
    check(Kernel { config, ..DEBIAN_6_1 }, Model::Unknown, &[]);
    check(Kernel { config, cmdline: "preempt=full", ..DEBIAN_6_1 }, Model::Full, &[]);
    check(
        Kernel { config, cmdline: "preempt=lazy", ..DEBIAN_6_1 },
        Model::Unknown,
        &["lazy preemption exists since Linux 6.13"],
    );
    check(Kernel { config, ..DEBIAN_5_10 }, Model::Unknown, &[]);
    check(Kernel { config, ..DEBIAN_6_1_RT }, Model::Rt, &[]);
    check(Kernel { config, ..RASPBERRY_6_12 }, Model::Full, &[]);
    check(Kernel { config, ..DYNAMIC_5_15 }, Model::Full, &[]);
    check(Kernel { config, cmdline: "preempt=none", ..DYNAMIC_5_15 }, Model::Unknown, &[]);
    check(Kernel { config, release: "6.18.1", ..RASPBERRY_6_12 }, Model::Unknown, &[]);
    check(Kernel { version: "", cmdline: "-", ..BARE }, Model::Unknown, &[]);
    check(Kernel { config: "\u{1f}\u{8b}garbage", ..DEBIAN_5_10 }, Model::Unknown, &[]);
}

#[test]
fn a_configuration_of_another_build_is_not_trusted() {
    let config = DEBIAN_6_1_RT.config;
    check(
        Kernel { config, ..DEBIAN_5_10 },
        Model::Unknown,
        &["belongs to another build: it says RT"],
    );
    check(Kernel { realtime: "1", ..DEBIAN_6_1 }, Model::Rt, &["does not say PREEMPT_RT"]);
}

#[test]
fn type_information_fills_a_gap() {
    let sources = |traits| Sources {
        version: "#1 SMP PREEMPT custom".into(),
        release: "5.15.1".into(),
        cmdline: Reading { source: "/proc/cmdline".into(), text: Ok("preempt=none".into()) },
        btf: Some(("/sys/kernel/btf/vmlinux".into(), traits)),
        ..Sources::default()
    };
    for (traits, want) in [
        (Ok(Traits { rt: true, dynamic: false }), Model::Rt),
        (Ok(Traits { rt: false, dynamic: true }), Model::None),
        (Ok(Traits::default()), Model::Unknown),
        (Err("absent".into()), Model::Unknown),
    ] {
        assert_eq!(judge(&sources(traits.clone())).model, want, "{traits:?}");
    }
}

#[test]
fn what_could_not_be_read_is_named() {
    let got = judged(Kernel { config: "-", ..MICRO_VM_6_18 });
    let names: Vec<_> = got.unread.iter().map(|u| u.source.as_str()).collect();
    let want =
        ["/sys/kernel/debug/sched/preempt", "/dev/kmsg", "/sys/kernel/realtime", "/proc/config.gz"];
    assert_eq!(names, want);
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(
        release in "\\PC{0,20}",
        version in "(#1 )?(SMP )?(PREEMPT(_RT|_DYNAMIC|)? )*\\PC{0,10}",
        cmdline in "(preempt=[a-z\"]{0,8} ?|-- ?)*",
        config in "(CONFIG_PREEMPT[_A-Z]{0,10}=y\n)*",
        debugfs in "[a-z() \u{e9}]{0,20}",
        boot_log in "([0-9]{0,3},1;Dynamic Preempt: [a-z]{0,5}\n)*",
    ) {
        let reading = |text: String| Reading { source: "x".into(), text: Ok(text) };
        let sources = Sources {
            release,
            version,
            arch: "x86_64".into(),
            debugfs: reading(debugfs),
            boot_log: reading(boot_log),
            realtime: reading(String::new()),
            cmdline: reading(cmdline),
            config: reading(config),
            btf: None,
        };
        let _ = judge(&sources);
    }
}
