//! The task of a guest, which stands on the kernel's command line, or is read from the machine once the guest is ready.

use clap::Parser;
use wakescope_core::explain::Above;
use wakescope_core::plan::Plan;
use wakescope_core::units::SpanNs;

use crate::Failure;

/// What a guest is to do
#[derive(Parser)]
#[command(no_binary_name = true)]
pub(super) struct Order {
    /// When to give up, counted from now
    #[arg(long)]
    pub(super) limit: SpanNs,

    #[command(subcommand)]
    pub(super) task: Task,
}

#[derive(clap::Subcommand)]
pub(super) enum Task {
    /// Tell what kernel this is, also from its behaviour
    Check,
    /// Measure as a plan says
    Measure(Measure),
    /// Measure as a plan says, and explain late wakeups
    Explain(Explain),
}

/// What is to be measured
#[derive(clap::Args)]
pub(super) struct Measure {
    /// Seed for the phase of the grid and for the contents of the loads' files
    #[arg(long)]
    pub(super) seed: u64,

    /// The plan of the run, as JSON
    #[arg(value_parser = plan)]
    pub(super) plan: Box<Plan>,
}

#[derive(clap::Args)]
pub(super) struct Explain {
    #[command(flatten)]
    pub(super) measure: Measure,

    /// Wakeups count as late from this time or percentile on
    #[arg(long, default_value = "p99.9")]
    pub(super) above: Above,

    /// Compute an upper bound on the wakeup latency
    #[arg(long)]
    pub(super) bound: bool,

    /// Measure every section with interrupts or preemption off
    #[arg(long)]
    pub(super) sections: bool,
}

fn plan(json: &str) -> Result<Box<Plan>, String> {
    // As bytes, like the other records: for text serde would generate its code once more.
    serde_json::from_slice(json.as_bytes()).map_err(|e| format!("this is no plan of a run: {e}"))
}

impl Order {
    /// Reads the order from `words`, those of the command line, or from the machine if there are none.
    pub(super) fn receive(words: &[String]) -> Result<Self, Failure> {
        let words = if words.is_empty() { read_from_machine()? } else { words.to_vec() };
        Self::try_parse_from(words).map_err(|e| Failure::new(format!("of the order: {e}")))
    }
}

/// Reports that the guest is ready, waits, and reads the order from the machine. The lab may halt and save the
/// machine during the wait, which the guest does not notice.
#[cfg(target_arch = "x86_64")]
fn read_from_machine() -> Result<Vec<String>, Failure> {
    use wakescope_lab::guest::order::{FW_CFG, FwCfg, PVPANIC, READING, READY, WAIT, receive};
    use wakescope_sys::clock;
    use wakescope_sys::ports::Ports;

    struct Device(Ports);

    impl FwCfg for Device {
        fn select(&mut self, file: u16) {
            self.0.write_two(FW_CFG[0], file);
        }

        fn read(&mut self, bytes: &mut [u8]) {
            bytes.fill_with(|| self.0.read(FW_CFG[1]));
        }
    }

    let open = |[first, last]: [u16; 2]| {
        Ports::open(first..last + 1).map_err(|e| {
            let remedy = "it needs CONFIG_X86_IOPL_IOPERM; one that locks itself down needs lockdown= on its command line";
            Failure::new(format!("the kernel lets no program use ports: {e} ({remedy})"))
        })
    };
    let events = open([PVPANIC; 2])?;
    events.write(PVPANIC, READY);
    let began = clock::now();
    while clock::now().since(began) < WAIT {}
    events.write(PVPANIC, READING);
    drop(events);
    let order = receive(&mut Device(open(FW_CFG)?));
    order.ok_or_else(|| Failure::new("the machine has no order for its guest"))
}

#[cfg(not(target_arch = "x86_64"))]
fn read_from_machine() -> Result<Vec<String>, Failure> {
    Err(Failure::new("there is no order on the kernel's command line"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(words: &[&str]) -> Result<Task, String> {
        let words = [&["--limit", "1s"], words].concat().into_iter().map(String::from);
        let order = Order::receive(&words.collect::<Vec<_>>());
        order.map(|order| order.task).map_err(|e| e.to_string())
    }

    #[test]
    fn a_plan_arrives_as_it_was_sent() {
        let sent = Plan { load: vec!["find".into()], samples: Some(5), ..Plan::default() };
        let json = serde_json::to_string(&sent).unwrap();
        let Ok(Task::Measure(measure)) = task(&["measure", "--seed", "7", &json]) else { panic!() };
        assert_eq!((measure.seed, &*measure.plan), (7, &sent));
        let words = ["explain", "--seed", "7", "--above", "50us", "--bound", &json];
        let Ok(Task::Explain(explain)) = task(&words) else { panic!() };
        assert_eq!((*explain.measure.plan, explain.bound, explain.sections), (sent, true, false));
        assert_eq!(explain.above.time_ns(), Some(50_000));
        let refused = task(&["measure", "--seed", "7", "{}"]).err().unwrap();
        assert!(refused.contains("this is no plan of a run: missing field"), "{refused}");
    }
}
