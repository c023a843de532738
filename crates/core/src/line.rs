//! The line that round trips go over: what of them is transmission, and what got no answer.

use serde::{Deserialize, Serialize};

use crate::finding::{Finding, Severity};
use crate::units::{SpanNs, counted, grouped, one_or_many};

use Severity::{Note, Warning};

/// Bits that a byte takes on the wire: 8, a start bit and a stop bit.
const BITS: u64 = 10;

/// A line, and what went over it beside the round trips that are samples. On lines of a GPIO chip, edges take
/// the place of bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// How it is attached to this machine.
    pub attachment: Attachment,
    /// Bits per second that were in force; `None` where no bits are sent.
    pub baud: Option<u32>,
    /// The transmission of a byte and of its answer, part of every round trip; 0 where no bits are sent.
    pub transmission_ns: u64,
    /// For how long its USB adapter may hold received bytes back, in ms; `None` if that is not known.
    pub latency_timer_ms: Option<u32>,
    /// From how many received bytes on its UART interrupts at once; `None` if that is not known.
    pub receive_trigger_bytes: Option<u32>,
    /// What answers at its other end.
    pub answered_by: AnsweredBy,
    /// Bytes that no answer came to, which are no samples.
    pub unanswered: u64,
    /// Received bytes that answer nothing.
    pub stray: u64,
    /// Points of the grid at which no byte was sent.
    pub left_out: u64,
    /// How long the sender took to run after its kernel saw the edge of an answer; `None` for bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_wakeup: Option<EdgeWaits>,
}

/// How long it took from the interrupts of edges, by the kernel's stamps, until something was done about them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeWaits {
    /// How many edges there were.
    pub count: u64,
    /// The shortest time.
    pub min_ns: u64,
    /// The longest time.
    pub max_ns: u64,
    /// All of them together.
    pub sum_ns: u64,
}

impl EdgeWaits {
    /// Adds an edge.
    #[inline]
    pub fn add(&mut self, wait: SpanNs) {
        self.min_ns = if self.count == 0 { wait.0 } else { self.min_ns.min(wait.0) };
        self.max_ns = self.max_ns.max(wait.0);
        self.sum_ns = self.sum_ns.saturating_add(wait.0);
        self.count += 1;
    }

    /// The mean, rounded down; `None` without edges.
    pub fn mean(&self) -> Option<SpanNs> {
        self.sum_ns.checked_div(self.count).map(SpanNs)
    }
}

/// Two lines of a GPIO chip, as the name of a line has them: `/dev/gpiochip0:17:27` sends on line 17 of that
/// chip and receives on line 27.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpioLines<'a> {
    /// The device of the chip.
    pub chip: &'a str,
    /// The line that this end sends on.
    pub out: u32,
    /// The line that it receives on.
    pub into: u32,
}

impl<'a> GpioLines<'a> {
    /// Reads such a name; `None` if it is another one.
    pub fn parse(name: &'a str) -> Option<Self> {
        let (before, into) = name.rsplit_once(':')?;
        let (chip, out) = before.rsplit_once(':')?;
        let number = |text: &str| {
            text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
        };
        let (out, into) = (number(out)?, number(into)?);
        (!chip.is_empty() && out != into).then_some(Self { chip, out, into })
    }
}

/// How a line is attached to the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Attachment {
    /// A serial port of the machine.
    #[default]
    Uart,
    /// A USB adapter.
    Usb,
    /// None: a pseudoterminal, whose bytes are copied in memory.
    Pseudoterminal,
    /// None: two serial ports of the machine that receive what they send. Bytes go out on one, and answers
    /// come in on the other.
    Loopback,
    /// Two lines of a GPIO chip of the machine: edges go out on one, and come in on the other.
    Gpio,
}

impl Attachment {
    /// What goes over it, one at a time.
    pub fn unit(self) -> &'static str {
        if self == Self::Gpio { "edge" } else { "byte" }
    }
}

/// What answers a byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnsweredBy {
    /// `wakescope respond`, whose answer is the byte with every bit inverted.
    #[default]
    Responder,
    /// Something that sends each byte back as it came: a plug, or another program.
    Echo,
}

impl AnsweredBy {
    /// The answer to `byte`. It is also the byte that `byte` answers.
    #[inline]
    pub fn answer(self, byte: u8) -> u8 {
        match self {
            Self::Responder => !byte,
            Self::Echo => byte,
        }
    }
}

/// How long the wire takes for a byte and its answer at `baud` bits per second.
pub fn transmission(baud: u32) -> SpanNs {
    SpanNs(2 * BITS * 1_000_000_000 / u64::from(baud.max(1)))
}

impl Line {
    /// What a user must know about a run over this line. `answered` is the number of its samples, `fault`
    /// says why the line was lost, if it was.
    pub fn findings(&self, answered: u64, fault: Option<&str>) -> Vec<Finding> {
        let mut out = Vec::new();
        if let Some(fault) = fault {
            let message = format!("the line was lost during the run: {fault}");
            let hint =
                "see why it ended (`wakescope respond` says so at its end), and measure again";
            out.push(Finding::new("line-lost", Warning, message, hint));
        }
        self.exchange_findings(answered, &mut out);
        out.extend(self.delay_findings());
        out
    }

    fn exchange_findings(&self, answered: u64, out: &mut Vec<Finding>) {
        let Self { unanswered, stray, left_out, .. } = *self;
        let unit = self.attachment.unit();
        let sent = answered + unanswered;
        if unanswered > 0 {
            out.push(Finding::new(
                "line-unanswered",
                Warning,
                format!(
                    "{} of {} got no answer: how long {} would have taken is in no figure",
                    grouped(unanswered),
                    counted(sent, unit),
                    one_or_many(unanswered, "it", "they"),
                ),
                match self.attachment {
                    Attachment::Gpio => {
                        "see what `wakescope respond` counted; measure with a longer --interval"
                    }
                    _ => {
                        "see what `wakescope respond` counted; measure with a longer --interval or at \
                         a lower --baud"
                    }
                },
            ));
        }
        if stray > 0 {
            out.push(Finding::new(
                "line-stray",
                Warning,
                format!(
                    "{} came that {} nothing that was sent: noise, late answers, or another \
                     program on the line",
                    counted(stray, unit),
                    one_or_many(stray, "answers", "answer"),
                ),
                match self.attachment {
                    Attachment::Gpio => "check the wiring, and that both ends share a ground",
                    _ => "check the wiring and the speed of both ends; end other programs on the line",
                },
            ));
        }
        if left_out > 0 {
            let points = sent + left_out;
            out.push(Finding::new(
                "line-left-out",
                if left_out > points / 10 { Warning } else { Note },
                format!(
                    "at {} of {} no {unit} was sent: the sender was late itself, or waited for \
                     answers",
                    grouped(left_out),
                    counted(points, "point"),
                ),
                "use a longer --interval",
            ));
        }
        if self.answered_by == AnsweredBy::Echo {
            out.push(Finding::new(
                "line-echo",
                Warning,
                format!(
                    "the other end sends {unit}s back as they came: it is a plug or another program, \
                     not `wakescope respond`"
                ),
                "this measures the sender and the line; run `wakescope respond` at the other end to \
                 measure a machine there",
            ));
        }
    }

    /// What may hold bytes back at the end of the line that this machine has.
    fn delay_findings(&self) -> Option<Finding> {
        let add = |message, hint| Some(Finding::new("line-buffered", Warning, message, hint));
        if let Some(ms) = self.latency_timer_ms.filter(|&ms| ms > 1) {
            return add(
                format!("the USB adapter may hold each answer back for up to {ms} ms"),
                "set it to 1 ms: echo 1 > /sys/class/tty/NAME/device/latency_timer",
            );
        }
        let trigger = self.receive_trigger_bytes.filter(|&bytes| bytes > 1)?;
        let wait = self.baud.map_or(SpanNs(0), |baud| SpanNs(2 * transmission(baud).0));
        add(
            format!(
                "the serial port interrupts at once only for {trigger} bytes, and holds a single one \
                 back for the time of four, {wait}"
            ),
            "set it to 1 byte: echo 1 > /sys/class/tty/NAME/rx_trig_bytes",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &Line, answered: u64, fault: Option<&str>, want: &[(&str, Severity)]) {
        let found = line.findings(answered, fault);
        let got: Vec<_> = found.iter().map(|f| (f.code.as_str(), f.severity)).collect();
        assert_eq!(got, want, "{found:#?}");
        assert!(found.iter().all(|f| !f.message.contains("  ") && !f.hint.contains("  ")));
    }

    #[test]
    fn whatever_is_no_round_trip_is_found() {
        let line = Line::default();
        check(&line, 1_000, None, &[]);
        check(&line, 1_000, Some("closed"), &[("line-lost", Warning)]);
        let some = |change: fn(&mut Line)| {
            let mut line = Line { baud: Some(9_600), ..Line::default() };
            change(&mut line);
            line
        };
        check(&some(|l| l.unanswered = 1), 1_000, None, &[("line-unanswered", Warning)]);
        check(&some(|l| l.stray = 1), 1_000, None, &[("line-stray", Warning)]);
        check(&some(|l| l.left_out = 100), 1_000, None, &[("line-left-out", Note)]);
        check(&some(|l| l.left_out = 200), 1_000, None, &[("line-left-out", Warning)]);
        check(&some(|l| l.answered_by = AnsweredBy::Echo), 9, None, &[("line-echo", Warning)]);
        check(&some(|l| l.latency_timer_ms = Some(16)), 9, None, &[("line-buffered", Warning)]);
        check(&some(|l| l.latency_timer_ms = Some(1)), 9, None, &[]);
        check(&some(|l| l.receive_trigger_bytes = Some(8)), 9, None, &[("line-buffered", Warning)]);
        check(&some(|l| l.receive_trigger_bytes = Some(1)), 9, None, &[]);
    }

    #[test]
    fn edges_are_called_edges() {
        let line =
            Line { attachment: Attachment::Gpio, unanswered: 2, stray: 3, ..Line::default() };
        let line = Line { left_out: 4, answered_by: AnsweredBy::Echo, ..line };
        let found = line.findings(9, None);
        assert_eq!(found.len(), 4);
        for finding in found {
            let text = format!("{} {}", finding.message, finding.hint);
            assert!(text.contains("edge") && !text.contains("byte"), "{text}");
            assert!(!text.contains("baud") && !text.contains("speed"), "{text}");
        }
    }

    #[test]
    fn two_lines_of_a_chip_have_a_name() {
        let lines = |chip, out, into| Some(GpioLines { chip, out, into });
        for (name, want) in [
            ("/dev/gpiochip0:17:27", lines("/dev/gpiochip0", 17, 27)),
            ("/dev/gpiochip1:0:1", lines("/dev/gpiochip1", 0, 1)),
            ("/dev/gpiochip0:17:17", None),
            ("/dev/gpiochip0:17", None),
            ("/dev/gpiochip0:17:+3", None),
            ("/dev/gpiochip0::3", None),
            (":1:2", None),
            ("/dev/ttyS1", None),
            ("/dev/serial/by-path/pci-0000:00:14.0-usb-0:1:1.0-port0", None),
            ("/dev/gpiochip0:1:99999999999", None),
        ] {
            assert_eq!(GpioLines::parse(name), want, "{name}");
        }
    }

    #[test]
    fn waits_after_edges_are_added_up() {
        let mut waits = EdgeWaits::default();
        assert_eq!(waits.mean(), None);
        for ns in [7, 3, 8] {
            waits.add(SpanNs(ns));
        }
        assert_eq!(waits, EdgeWaits { count: 3, min_ns: 3, max_ns: 8, sum_ns: 18 });
        assert_eq!(waits.mean(), Some(SpanNs(6)));
    }

    #[test]
    fn a_byte_takes_ten_bits_each_way() {
        assert_eq!(transmission(1_000_000), SpanNs(20_000));
        assert_eq!(transmission(115_200), SpanNs(173_611));
        assert_eq!(transmission(0), SpanNs(20_000_000_000));
    }

    #[test]
    fn an_answer_is_told_from_an_echo_for_every_byte() {
        for byte in 0..=u8::MAX {
            let [answer, echo] = [AnsweredBy::Responder, AnsweredBy::Echo].map(|a| a.answer(byte));
            assert_ne!(answer, echo);
            assert_eq!(AnsweredBy::Responder.answer(answer), byte);
        }
    }
}
