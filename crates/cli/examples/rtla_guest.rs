//! The first process of a guest in which rtla explains late wakeups of a known cause. It prints on the console
//! what rtla says, and when the sections of the load were.
//!
//! `benches/rtla.py` reads that. The guest's kernel has the timerlat tracer and the project's module, and its
//! root image rtla.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use wakescope_sys::guest::{load_module, mount, restart};
use wakescope_sys::process::terminate_child;

/// This program, as the guest has it.
const PROGRAM: &str = "/init";
/// Where Debian's package has it.
const RTLA: &str = "/usr/bin/rtla";
/// Where the load writes when it disturbed.
const LOG: &str = "/tmp/disturbances";
/// From 6.18 on, kernels test their ciphers for about a second after the first process was started. A load
/// needs some of the same.
const SETTLE: Duration = Duration::from_secs(3);

fn main() -> ExitCode {
    if std::process::id() != 1 {
        return wakescope_cli::main();
    }
    // The lab first asks which model the kernel runs, in a guest without packages.
    if !Path::new(RTLA).exists() {
        return wakescope_cli::guest_main();
    }
    match scored() {
        Ok(()) => say("done"),
        Err(why) => say(&format!("FAILED: {why}")),
    }
    say(&format!("cannot restart: {}", restart()));
    ExitCode::FAILURE
}

/// The console is where output goes.
#[allow(clippy::print_stdout)] // A program on the host reads it there.
fn say(text: &str) {
    println!("rtla: {text}");
}

/// What the kernel does not know on its command line is the environment of the first process.
fn asked(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|_| format!("{name} is not on the kernel's command line"))
}

/// Has rtla look for late wakeups while one load after the other disturbs.
fn scored() -> Result<(), String> {
    make_ready()?;
    let hits: u32 = asked("RTLA_HITS")?.parse().map_err(|e| format!("RTLA_HITS: {e}"))?;
    for name in asked("RTLA_LOADS")?.split(',') {
        say(&format!("load {name}"));
        let mut load = disturb(name)?;
        std::thread::sleep(SETTLE);
        (0..hits).try_for_each(look)?;
        let pid = i32::try_from(load.id()).map_err(|e| e.to_string())?;
        terminate_child(pid).and_then(|()| load.wait()).map_err(|e| e.to_string())?;
        let log = fs::read_to_string(LOG).map_err(|e| format!("{LOG}: {e}"))?;
        say(&format!("{} disturbances", log.lines().count()));
    }
    Ok(())
}

/// Has rtla wait for the next late wakeup, at which it stops.
fn look(hit: u32) -> Result<(), String> {
    let mut rtla = Command::new(RTLA);
    // As the probe of explain: FIFO 90, on the only CPU.
    rtla.args(["timerlat", "top", "-q", "-c", "0", "-P", "f:90", "-d", "10s"]).current_dir("/tmp");
    rtla.args(["-p", &asked("RTLA_PERIOD_US")?, "-a", &asked("RTLA_ABOVE_US")?]);
    let ended = rtla.output().map_err(|e| format!("cannot start rtla: {e}"))?;
    say(&format!("begin {hit}"));
    for text in [&ended.stdout, &ended.stderr] {
        for line in String::from_utf8_lossy(text).lines() {
            say(&format!("| {line}"));
        }
    }
    say(&format!("end {hit}: {}", ended.status));
    Ok(())
}

fn disturb(load: &str) -> Result<Child, String> {
    let mut command = Command::new(PROGRAM);
    let _ = fs::remove_file(LOG);
    command
        .args(["load", load])
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .env("WAKESCOPE_DISTURBANCES", LOG);
    command.spawn().map_err(|e| format!("cannot start the load: {e}"))
}

/// Mounts what rtla and the load need, and loads the module.
fn make_ready() -> Result<(), String> {
    for (kind, target) in [
        ("devtmpfs", "/dev"),
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("tmpfs", "/tmp"),
        ("tracefs", "/sys/kernel/tracing"),
    ] {
        mount(kind, target, "").map_err(|e| format!("cannot mount {kind}: {e}"))?;
    }
    let Ok(module) = File::open("/modules/wakescope.ko") else { return Ok(()) };
    load_module(&module, "inject=1").map_err(|e| format!("cannot load the module: {e}"))
}
