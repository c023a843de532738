//! A cable in a guest: two serial ports of the machine, each of which receives what it sends. Bytes go out on
//! the first, where the responder reads them; it answers on the second, where the sender reads.
//!
//! A cable that leads out of the emulator and back would be slow by the host's time. These bytes stay within
//! the emulated ports.

use std::fs;
use std::path::Path;

use wakescope_core::plan::{LinePlan, Plan};
use wakescope_probe::respond::{RespondTask, Responder};
use wakescope_sys::sched::Schedule;
use wakescope_sys::serial::{self, Settings};

use crate::Failure;

/// Connects the ports of `line` and starts to answer, at the priority of the sender of `plan`.
pub(super) fn answer(line: &LinePlan, plan: &Plan) -> Result<Responder, Failure> {
    let other = line.answers_on.as_ref().ok_or_else(|| Failure::new("a guest has no other end"))?;
    let [from, to] = [&line.device, other].map(|path| port(Path::new(path), line.baud));
    let schedule = match plan.priority {
        Some(priority) => Schedule::Fifo { priority },
        None => Schedule::Other { nice: 0 },
    };
    let task = RespondTask { cpu: None, schedule };
    Responder::start_between(task, from?, to?)
        .map_err(|e| Failure::new(format!("cannot start to answer: {e}")))
}

/// The port at `path`, in loopback.
fn port(path: &Path, baud: u32) -> Result<fs::File, Failure> {
    let failed = |what: &str, e: std::io::Error| {
        Failure::new(format!("cannot {what} {}: {e}", path.display()))
    };
    let port = serial::open(path).map_err(|e| failed("open", e))?;
    let settings = Settings::of(&port).map_err(|e| failed("read the settings of", e))?;
    // Before the loopback: a port that echoes what it receives would never end.
    let raw = settings.raw();
    raw.at(baud).unwrap_or(raw).apply(&port).map_err(|e| failed("set up", e))?;
    serial::set_loopback(&port, true).map_err(|e| failed("connect", e))?;
    // A single byte is not to wait for more of them. Kernels without the file wait.
    let name = path.file_name().unwrap_or_default();
    let _ = fs::write(Path::new("/sys/class/tty").join(name).join("rx_trig_bytes"), "1\n");
    Ok(port)
}
