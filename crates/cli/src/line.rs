//! Lines as arguments, and what to do where one cannot be used.

use std::path::{Path, PathBuf};

use wakescope_core::line::GpioLines;
use wakescope_core::plan::{LinePlan, Stimulus};
use wakescope_probe::line::LineError;
use wakescope_sys::serial;
use wakescope_sys::time_namespace::Shifted;

use crate::Failure;

/// Which line a stimulus goes over.
#[derive(clap::Args)]
pub(crate) struct LineArgs {
    /// Serial line to send over, of --stimulus line; `wakescope respond` answers at its other end. Or
    /// CHIP:OUT:IN for edges on lines of a GPIO chip, sent on line OUT and received on line IN
    #[arg(long, value_name = "DEVICE", value_hint = clap::ValueHint::FilePath)]
    line: Option<PathBuf>,

    /// Speed of the line in bits per second, the same at both ends [default: 115200]
    #[arg(long, value_name = "NUMBER", value_parser = baud)]
    baud: Option<u32>,
}

/// The speed unless another is asked for: the fastest that every serial port has.
pub(crate) const BAUD: u32 = 115_200;

impl LineArgs {
    /// The line of a plan with this stimulus; `None` where that needs none.
    pub(crate) fn plan(&self, stimulus: Stimulus) -> Result<Option<LinePlan>, Failure> {
        if stimulus != Stimulus::Line {
            let given = self.line.is_some() || self.baud.is_some();
            return match given {
                false => Ok(None),
                true => Err(Failure::new(format!(
                    "--line and --baud do not apply to --stimulus {stimulus}"
                ))
                .try_this("omit them, or use --stimulus line")),
            };
        }
        let Some(line) = &self.line else {
            return Err(Failure::new("--stimulus line needs a line to send over")
                .try_this("name its device: --line /dev/ttyS1, and run `wakescope respond` at its other end")
                .try_this("or try it on this machine: wakescope respond --pty"));
        };
        if let Some(GpioLines { chip, out, into }) = gpio_lines(line) {
            if self.baud.is_some() {
                return Err(no_baud());
            }
            let chip = canonical(Path::new(chip))?;
            let device = format!("{chip}:{out}:{into}");
            return Ok(Some(LinePlan { device, baud: BAUD, answers_on: None }));
        }
        let device = canonical(line)?;
        Ok(Some(LinePlan { device, baud: self.baud.unwrap_or(BAUD), answers_on: None }))
    }
}

/// The lines of a GPIO chip that a name stands for; `None` if it is the path of something.
pub(crate) fn gpio_lines(name: &Path) -> Option<GpioLines<'_>> {
    GpioLines::parse(name.to_str()?).filter(|_| !name.exists())
}

/// That edges have no speed.
pub(crate) fn no_baud() -> Failure {
    Failure::new("--baud does not apply to lines of a GPIO chip").try_this("omit it")
}

/// The path of a line without links.
fn canonical(line: &Path) -> Result<String, Failure> {
    // A link may name the serial number of an adapter, which no record holds.
    let device = line.canonicalize().map_err(|e| {
        Failure::new(format!("cannot find the line {}: {e}", line.display()))
            .try_this("list the lines: ls /dev/ttyS* /dev/ttyUSB* /dev/ttyACM* /dev/gpiochip*")
    })?;
    let device = device.to_str().map(str::to_owned);
    device.ok_or_else(|| {
        Failure::new(format!("{} is not the name of a line", line.display()))
            .try_this("give it a name of text: ln -s")
    })
}

/// Reads a speed that lines have.
pub(crate) fn baud(text: &str) -> Result<u32, String> {
    let asked = text.parse().ok();
    asked.filter(|asked| serial::speeds().any(|known| known == *asked)).ok_or_else(|| {
        let known: Vec<String> = serial::speeds().map(|speed| speed.to_string()).collect();
        format!("lines have one of these speeds: {}", known.join(", "))
    })
}

/// What lies behind a line that cannot be used, and what to do.
pub(crate) fn explain(error: &LineError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        LineError::Open(_, e) if e.kind() == std::io::ErrorKind::PermissionDenied => failure
            .because("devices of lines belong to root and a group, often dialout or uucp (serial) or gpio")
            .try_this("become a member of that group (ls -l shows it), or run as root"),
        LineError::Open(..) => {
            failure.try_this("list the lines: ls /dev/ttyS* /dev/ttyUSB* /dev/ttyACM* /dev/gpiochip*")
        }
        LineError::NotALine(_) => {
            failure.try_this("name the device of a serial line, as in /dev/ttyS1 or /dev/ttyUSB0")
        }
        LineError::NotAChip(..) => failure
            .try_this("list the chips and their lines (gpioinfo of Debian's package gpiod)")
            .try_this("name the chip, the line to send on and the one to receive on: /dev/gpiochip0:17:27"),
        LineError::Shifted(_) => failure.because(Shifted::CAUSE).try_this(Shifted::REMEDY),
        LineError::GpioBusy(..) => failure
            .try_this("see what has it (gpioinfo), and end that, or use another line"),
        LineError::Gpio(..) => failure
            .because("not every line can be both set and watched: the chip must give it an interrupt")
            .try_this("see `dmesg` for messages of its driver; use another line"),
        LineError::OwnTerminal(_) => failure
            .because("it would be unusable while bytes go over it")
            .try_this("name the device of a serial line; or try it without one: wakescope respond --pty"),
        LineError::Console(_) => failure
            .because("its messages would go between the bytes that are sent")
            .try_this("use another line, or start the kernel with another console="),
        LineError::Busy(path) => failure
            .try_this(format!("see which (fuser -v {}), and end it", path.display())),
        LineError::Speed(..) => failure.try_this("use another --baud, at both ends"),
        LineError::Settings(..) => {
            failure.try_this("see `dmesg` for messages of its driver; use another line")
        }
        LineError::NoAnswer(_) => failure
            .because("bytes were sent for two seconds, and none came back")
            .try_this("start this at the other end, with the same --baud: wakescope respond DEVICE")
            .try_this("check the wiring: the lines cross (null modem), and the grounds are connected"),
        LineError::OtherBytes(_) => failure
            .try_this("check that both ends have the same --baud, and that `wakescope respond` runs at the other")
            .try_this("end other programs on the line, such as a login prompt or a modem manager"),
        LineError::Interval(..) => failure.try_this("use a longer --interval, or a higher --baud"),
        LineError::Failed(..) => {
            failure.try_this("see whether its other end is still there, and start both again")
        }
    }
}
