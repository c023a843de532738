//! The line that round trips go over: what of them is transmission, and what got no answer.

use serde::{Deserialize, Serialize};

use crate::finding::{Finding, Severity};
use crate::units::{SpanNs, counted, grouped, one_or_many};

use Severity::{Note, Warning};

/// Bits that a byte takes on the wire: 8, a start bit and a stop bit.
const BITS: u64 = 10;

/// A line, and what went over it beside the round trips that are samples.
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
        let sent = answered + unanswered;
        if unanswered > 0 {
            out.push(Finding::new(
                "line-unanswered",
                Warning,
                format!(
                    "{} of {} got no answer: how long {} would have taken is in no figure",
                    grouped(unanswered),
                    counted(sent, "byte"),
                    one_or_many(unanswered, "it", "they"),
                ),
                "see what `wakescope respond` counted; measure with a longer --interval or at a \
                 lower --baud",
            ));
        }
        if stray > 0 {
            out.push(Finding::new(
                "line-stray",
                Warning,
                format!(
                    "{} came that {} nothing that was sent: noise, late answers, or another \
                     program on the line",
                    counted(stray, "byte"),
                    one_or_many(stray, "answers", "answer"),
                ),
                "check the wiring and the speed of both ends; end other programs on the line",
            ));
        }
        if left_out > 0 {
            let points = sent + left_out;
            out.push(Finding::new(
                "line-left-out",
                if left_out > points / 10 { Warning } else { Note },
                format!(
                    "at {} of {} no byte was sent: the sender was late itself, or waited for \
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
                "the other end sends bytes back as they came: it is a plug or another program, not \
                 `wakescope respond`"
                    .into(),
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
