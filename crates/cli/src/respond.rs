//! `wakescope respond`

use std::fs::File;
use std::path::PathBuf;

use wakescope_core::plan::{Plan, ProbePolicy};
use wakescope_core::units::{MonoNs, SpanNs, counted};
use wakescope_probe::edges::{AnyLine, EdgeLine};
use wakescope_probe::line::{LineError, Port};
use wakescope_probe::respond::{RespondTask, Responder};
use wakescope_probe::schedule::{settle_schedule, words};
use wakescope_probe::session::MeasureError;
use wakescope_report::style::clean;
use wakescope_sys::signal::EndSignals;
use wakescope_sys::{clock, memory, sched};

use crate::line::{BAUD, baud, explain, gpio_lines, no_baud};
use crate::{Failure, Outcome, measure, output};

/// Answer each byte of a serial line at once, for `wakescope measure --stimulus line` at its other end
///
/// Run it on the machine under test. It prints the device of the line, and answers until Ctrl-C. The
/// settings of the line are restored at the end. On two lines of a GPIO chip it answers each edge.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  wakescope respond /dev/ttyS1\n  wakescope respond /dev/ttyUSB0 --baud 921600\n  wakescope respond /dev/gpiochip0:27:17\n  wakescope respond --pty"
)]
pub(crate) struct RespondArgs {
    /// Device of the line to answer on, or CHIP:OUT:IN for lines of a GPIO chip: edges that come in on line
    /// IN are answered on line OUT
    #[arg(value_name = "DEVICE", required_unless_present = "pty", value_hint = clap::ValueHint::FilePath)]
    device: Option<PathBuf>,

    /// Make a pseudoterminal and answer on it, for a sender on this machine
    #[arg(long, conflicts_with_all = ["device", "baud"])]
    pty: bool,

    /// Speed of the line in bits per second, the same at both ends [default: 115200]
    #[arg(long, value_name = "NUMBER", value_parser = baud)]
    baud: Option<u32>,

    /// Real-time priority of the thread that answers, 1 to 99 [default: 90, or none where that is not
    /// allowed]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=99))]
    priority: Option<u8>,

    /// CPU to bind that thread to [default: any]
    #[arg(long, value_name = "CPU")]
    cpu: Option<u32>,
}

/// The priority of probes, which this thread stands for.
const PRIORITY: u8 = 90;

/// How often it is looked whether the line is still there.
const LOOK: SpanNs = SpanNs(50_000_000);

/// Runs `wakescope respond`.
pub(crate) fn run(args: &RespondArgs) -> Result<Outcome, Failure> {
    let signals = measure::prepare_process()?;
    let (any, kept) = take(args)?;
    let mut plan = Plan {
        policy: ProbePolicy::Fifo,
        priority: Some(args.priority.unwrap_or(PRIORITY)),
        policy_required: args.priority.is_some(),
        ..Plan::default()
    };
    let (schedule, refused) = settle_schedule(&mut plan)
        .map_err(|(wanted, e)| measure::explain(MeasureError::Schedule(wanted, e)))?;
    if let Some(cpu) = args.cpu {
        check_cpu(cpu)?;
    }
    let (path, line) = (any.path().to_owned(), any.line().clone());
    let task = RespondTask { cpu: args.cpu, schedule };
    let started = match any {
        AnyLine::Bytes(port) => Responder::start(task, port, kept),
        AnyLine::Edges(edges) => Responder::start_edges(task, edges),
    };
    let responder = started.map_err(|e| Failure::new(format!("cannot start to answer: {e}")))?;
    // After all that the thread touches is there.
    let unlocked = memory::lock_present().err();
    output::print(&format!("{}\n", path.display()))?;
    let id = responder.id.number();
    output::tell(&format!(
        "answering on {} under {}, thread {id}",
        path.display(),
        words(schedule)
    ));
    for (what, why) in [
        ("without real-time priority, answers wait for other tasks", refused),
        (
            "its memory is not locked, so answers may wait for a disk",
            unlocked.map(|e| e.to_string()),
        ),
    ] {
        if let Some(why) = why {
            output::tell(&format!("{what} ({})", clean(&why, 200)));
        }
    }
    for finding in line.findings(0, None) {
        output::tell(&format!("{}: {}\n  → {}", finding.code, finding.message, finding.hint));
    }
    let began = clock::now();
    let ended_by = wait(&signals, &responder);
    let waits = responder.waits();
    let (answered, result) = responder.end();
    drop(signals);
    let unit = line.attachment.unit();
    let counts = format!("{} answered in {}", counted(answered, unit), since(began));
    if let Some(mean) = waits.mean() {
        let [min, max] = [waits.min_ns, waits.max_ns].map(SpanNs);
        output::tell(&format!(
            "from the interrupt of an edge until its answer was sent: {min} to {max}, {mean} on average"
        ));
    }
    match (ended_by, result) {
        (Some(signal), _) => output::tell(&format!("{counts}; ended by {signal}")),
        (None, Ok(())) => output::tell(&counts),
        (None, Err(e)) => return Err(explain(&LineError::Failed(path, e)).because(counts)),
    }
    Ok(Outcome::Done)
}

/// The line to answer on, and what must stay open meanwhile.
fn take(args: &RespondArgs) -> Result<(AnyLine, Option<File>), Failure> {
    let taken = match &args.device {
        None => Port::pair().map(|(port, line)| (AnyLine::Bytes(port), Some(line))),
        Some(device) => match gpio_lines(device) {
            Some(_) if args.baud.is_some() => return Err(no_baud()),
            Some(lines) => {
                EdgeLine::open_to_answer(lines).map(|edges| (AnyLine::Edges(edges), None))
            }
            None => Port::open(device, args.baud.unwrap_or(BAUD))
                .map(|port| (AnyLine::Bytes(port), None)),
        },
    };
    taken.map_err(|e| explain(&e))
}

fn check_cpu(cpu: u32) -> Result<(), Failure> {
    match sched::affinity() {
        Ok(allowed) if !allowed.contains(&cpu) => {
            Err(Failure::new(format!("this process may not use CPU {cpu}"))
                .try_this("name another CPU, or omit --cpu"))
        }
        _ => Ok(()),
    }
}

/// Waits for what ends it: a signal, whose name is returned, or the line.
fn wait(signals: &EndSignals, responder: &Responder) -> Option<&'static str> {
    while !responder.is_finished() {
        if let Some(signal) = signals.wait(LOOK) {
            return Some(signal.name());
        }
    }
    None
}

fn since(began: MonoNs) -> SpanNs {
    clock::now().since(began)
}
