//! The first process of a guest in which `wakescope measure --stimulus line` and `wakescope respond` are at both
//! ends of a cable between lines of a simulated GPIO chip (gpio-sim). It says on the console how that went.
//!
//! Part of `make test-lab`: the chip takes a kernel with modules.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use wakescope_core::line::{AnsweredBy, Attachment};
use wakescope_core::run::{Run, State};
use wakescope_sys::guest::{load_module, mount, restart};
use wakescope_sys::process::terminate_child;
use wakescope_sys::sched::{Schedule, set_schedule};

/// This program, as the guest has it.
const PROGRAM: &str = "/init";
/// Where runs are stored, one after the other.
const RUN: &str = "/tmp/run";
/// The chip in configfs.
const CHIP: &str = "/sys/kernel/config/gpio-sim/chip";
/// Nothing is connected; the sender with the responder, both ways; the sender with itself.
const NOTHING: u8 = 0;
const CABLE: u8 = 1;
const PLUG: u8 = 2;
/// How often the cable looks at the level of its lines. It is asleep in between.
const LOOK: Duration = Duration::from_micros(20);

fn main() -> ExitCode {
    if std::process::id() != 1 {
        return wakescope_cli::main();
    }
    match tried() {
        Ok(()) => say("all passed"),
        Err(why) => say(&format!("FAILED: {why}")),
    }
    say(&format!("cannot restart: {}", restart()));
    ExitCode::FAILURE
}

/// The console is where output goes.
#[allow(clippy::print_stdout)] // A test reads it there.
fn say(text: &str) {
    println!("gpio: {text}");
}

fn tried() -> Result<(), String> {
    make_ready()?;
    let wire = Wire::start()?;
    let chip = format!("/dev/{}", wire.chip);
    // It sends on line 2, and receives on line 1.
    let responder = Running::start(&["respond", &format!("{chip}:2:1")])?;
    let sender = format!("{chip}:0:3");
    let trips = |more: &[&str]| measure(&sender, more);

    let run = trips(&["--samples", "200"])?;
    let line = run.line.as_ref().ok_or("there is no line")?;
    let waits = line.own_wakeup.ok_or("the kernel's stamps are missing")?;
    say(&format!("{:?}, {:?}", run.summary, line));
    expect("kind", (line.attachment, line.answered_by), (Attachment::Gpio, AnsweredBy::Responder))?;
    expect("lost", (line.unanswered, line.stray, run.state), (0, 0, State::Complete))?;
    expect("answers", (run.threads[0].woken.count, waits.count), (200, 200))?;
    let [min, max] = [run.summary.min_ns, run.summary.max_ns].map(Option::unwrap_or_default);
    if min == 0 || waits.max_ns > max || waits.min_ns > waits.max_ns {
        return Err(format!("a part is longer than the whole: {line:?}, {:?}", run.summary));
    }

    let again = Command::new(PROGRAM).args(["respond", &format!("{chip}:2:1")]).output();
    refused(&again.map_err(|e| e.to_string())?, "in use by wakescope")?;
    let odd = Command::new(PROGRAM).args(["respond", &format!("{chip}:2:99")]).output();
    refused(&odd.map_err(|e| e.to_string())?, "is no GPIO chip with the lines 2 and 99")?;

    let told = responder.finish()?;
    if !told.contains(" edges answered in ") || !told.contains("from the interrupt of an edge") {
        return Err(format!("the responder said: {told}"));
    }

    wire.connect(PLUG);
    let run = trips(&["--samples", "50"])?;
    let line = run.line.as_ref().ok_or("there is no line")?;
    expect("plug", (line.answered_by, run.threads[0].woken.count), (AnsweredBy::Echo, 50))?;

    // It is pulled out while edges go over it.
    let cut = wire.connection.clone();
    let cutting = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(1_000));
        cut.store(NOTHING, Ordering::Relaxed);
    });
    let run = trips(&["--duration", "10s"])?;
    cutting.join().map_err(|_| "a thread died")?;
    let codes: Vec<&str> = run.validity.findings.iter().map(|f| f.code.as_str()).collect();
    if !codes.contains(&"line-lost") || run.threads[0].woken.count == 0 {
        return Err(format!("a cable that was pulled out: {codes:?}"));
    }
    let _ = fs::remove_dir_all(RUN);
    let ended = command(&sender, &["--samples", "50"]).output().map_err(|e| e.to_string())?;
    refused(&ended, "nothing answers on the line")
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, got: T, want: T) -> Result<(), String> {
    if got == want { Ok(()) } else { Err(format!("{what}: {got:?} instead of {want:?}")) }
}

fn refused(ended: &Output, why: &str) -> Result<(), String> {
    let message = String::from_utf8_lossy(&ended.stderr);
    if ended.status.code() == Some(2) && message.contains(why) {
        return Ok(());
    }
    Err(format!("{}, expected exit code 2 and the message {why:?}: {message}", ended.status))
}

fn command(line: &str, more: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(["measure", "--stimulus", "line", "--line", line, "--interval", "2ms"]);
    command.args(["--out", RUN]).args(more);
    command
}

/// The run of a sender at `line`.
fn measure(line: &str, more: &[&str]) -> Result<Run, String> {
    let _ = fs::remove_dir_all(RUN);
    let ended = command(line, more).output().map_err(|e| e.to_string())?;
    let text = fs::read(format!("{RUN}/run.json"))
        .map_err(|e| format!("{e}: {}", String::from_utf8_lossy(&ended.stderr)))?;
    Run::from_json(&text).map_err(|e| e.to_string())
}

/// Mounts what is needed, and loads all modules, those last that need others.
fn make_ready() -> Result<(), String> {
    let mounted = |kind: &str, target: &str| {
        mount(kind, target, "").map_err(|e| format!("cannot mount {kind}: {e}"))
    };
    for (kind, target) in
        [("devtmpfs", "/dev"), ("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/tmp")]
    {
        mounted(kind, target)?;
    }
    let all: Vec<_> = fs::read_dir("/modules").map_err(|e| e.to_string())?.flatten().collect();
    for _ in &all {
        for module in &all {
            // Fails until what it needs is there, and then because it is there itself.
            let _ = File::open(module.path()).map(|file| load_module(&file, ""));
        }
    }
    mounted("configfs", "/sys/kernel/config")
}

/// A command that runs until it is ended.
struct Running(Child);

impl Running {
    /// Starts it, and waits until it has printed its first line.
    fn start(args: &[&str]) -> Result<Self, String> {
        let mut command = Command::new(PROGRAM);
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|e| e.to_string())?;
        let mut byte = [0];
        while byte != *b"\n" {
            let output = child.stdout.as_mut().ok_or("it has no output")?;
            if output.read(&mut byte).map_err(|e| e.to_string())? == 0 {
                let ended = child.wait_with_output().map_err(|e| e.to_string())?;
                return Err(String::from_utf8_lossy(&ended.stderr).into_owned());
            }
        }
        Ok(Self(child))
    }

    /// Ends it, and returns what it had to say.
    fn finish(self) -> Result<String, String> {
        let pid = i32::try_from(self.0.id()).map_err(|e| e.to_string())?;
        terminate_child(pid).map_err(|e| e.to_string())?;
        let ended = self.0.wait_with_output().map_err(|e| e.to_string())?;
        Ok(String::from_utf8_lossy(&ended.stderr).into_owned())
    }
}

/// A chip of four lines, and what connects them.
struct Wire {
    chip: String,
    connection: Arc<AtomicU8>,
}

impl Wire {
    fn start() -> Result<Self, String> {
        let made = || -> std::io::Result<(String, String)> {
            fs::create_dir_all(format!("{CHIP}/bank"))?;
            fs::write(format!("{CHIP}/bank/num_lines"), "4")?;
            fs::write(format!("{CHIP}/live"), "1")?;
            let name = fs::read_to_string(format!("{CHIP}/bank/chip_name"))?;
            let device = fs::read_to_string(format!("{CHIP}/dev_name"))?;
            Ok((name.trim().into(), device.trim().into()))
        };
        let (chip, device) = made().map_err(|e| format!("cannot make a chip: {e}"))?;
        let folder = format!("/sys/devices/platform/{device}/{chip}");
        let lines = (0..4).map(|number| Simulated::open(Path::new(&folder), number));
        let lines: std::io::Result<Vec<_>> = lines.collect();
        let mut lines = lines.map_err(|e| format!("{folder}: {e}"))?;
        let wire = Self { chip, connection: Arc::new(AtomicU8::new(CABLE)) };
        let connection = wire.connection.clone();
        std::thread::spawn(move || {
            // Beyond what measures: a cable waits for nobody.
            set_schedule(Schedule::Fifo { priority: 95 }).unwrap();
            loop {
                let pairs: &[(usize, usize)] = match connection.load(Ordering::Relaxed) {
                    CABLE => &[(0, 1), (2, 3)],
                    PLUG => &[(0, 3)],
                    _ => &[],
                };
                for &(from, into) in pairs {
                    let is_high = lines[from].is_high();
                    lines[into].pull(is_high);
                }
                std::thread::sleep(LOOK);
            }
        });
        Ok(wire)
    }

    fn connect(&self, connection: u8) {
        self.connection.store(connection, Ordering::Relaxed);
    }
}

/// A line of the chip, from outside.
struct Simulated {
    value: File,
    pull: File,
    was: bool,
}

impl Simulated {
    fn open(chip: &Path, number: usize) -> std::io::Result<Self> {
        let folder = chip.join(format!("sim_gpio{number}"));
        let value = File::open(folder.join("value"))?;
        let pull = File::options().write(true).open(folder.join("pull"))?;
        Ok(Self { value, pull, was: false })
    }

    fn is_high(&mut self) -> bool {
        let mut text = [0];
        self.value.seek(SeekFrom::Start(0)).unwrap();
        self.value.read_exact(&mut text).unwrap();
        text == *b"1"
    }

    fn pull(&mut self, is_high: bool) {
        if is_high != self.was {
            let text: &[u8] = if is_high { b"pull-up" } else { b"pull-down" };
            self.pull.write_all(text).unwrap();
            self.was = is_high;
        }
    }
}
