//! The line of round trips in words.

use wakescope_core::line::Attachment;
use wakescope_core::run::Run;
use wakescope_core::units::{SpanNs, grouped};

use crate::style::clean;

/// Which line round trips went over, and how much of each is transmission; `None` where there is no line.
pub(crate) fn sentence(run: &Run) -> Option<String> {
    let line = run.line.as_ref()?;
    let device = run.plan.line.as_ref().map_or("", |line| line.device.as_str());
    let kind = match line.attachment {
        Attachment::Uart => "a serial port",
        Attachment::Usb => "a USB adapter",
        Attachment::Pseudoterminal => "a pseudoterminal",
        Attachment::Loopback => "a serial port in loopback, with answers on another",
        Attachment::Gpio => "two lines of a GPIO chip",
    };
    let speed = match line.baud {
        Some(baud) => format!(
            " at {} bits/s: {} of each round trip is transmission",
            grouped(baud.into()),
            SpanNs(line.transmission_ns)
        ),
        None => ": nothing is transmitted".into(),
    };
    let own = line.own_wakeup.and_then(|waits| Some((waits.mean()?, SpanNs(waits.max_ns))));
    let own = own.map_or_else(String::new, |(mean, max)| {
        format!(
            "; the sender ran {mean} after the interrupt of an answer on average, {max} at most"
        )
    });
    Some(format!("line {}, {kind}{speed}{own}", clean(device, 40)))
}

#[cfg(test)]
mod tests {
    use wakescope_core::line::{EdgeWaits, Line, transmission};
    use wakescope_core::plan::{LinePlan, Plan, Stimulus};

    use super::*;
    use crate::style::Style;
    use crate::text::tests::run_of;
    use crate::text::{report, summary};

    fn run() -> Run {
        let mut run = run_of(&[&[[250_000; 2_999].as_slice(), &[4_310_000]].concat()]);
        let line =
            Some(LinePlan { device: "/dev/ttyUSB0".into(), baud: 115_200, ..LinePlan::default() });
        run.plan = Plan { stimulus: Stimulus::Line, line, ..run.plan };
        run.line = Some(Line {
            attachment: Attachment::Usb,
            baud: Some(115_200),
            transmission_ns: transmission(115_200).0,
            ..Line::default()
        });
        run
    }

    #[test]
    fn a_line_is_told_with_the_transmission_in_each_round_trip() {
        let mut run = run();
        let want = "line /dev/ttyUSB0, a USB adapter at 115,200 bits/s: 174 µs of each round trip is \
                    transmission";
        assert_eq!(sentence(&run).as_deref(), Some(want));
        run.line = Some(Line { attachment: Attachment::Pseudoterminal, ..Line::default() });
        run.plan.line = Some(LinePlan { device: "/dev/pts/3".into(), ..LinePlan::default() });
        let want = "line /dev/pts/3, a pseudoterminal: nothing is transmitted";
        assert_eq!(sentence(&run).as_deref(), Some(want));
        let waits = EdgeWaits { count: 2, min_ns: 2_000, max_ns: 10_000, sum_ns: 12_000 };
        let attachment = Attachment::Gpio;
        run.line = Some(Line { attachment, own_wakeup: Some(waits), ..Line::default() });
        let device = "/dev/gpiochip0:17:27".into();
        run.plan.line = Some(LinePlan { device, ..LinePlan::default() });
        let want = "line /dev/gpiochip0:17:27, two lines of a GPIO chip: nothing is transmitted; the sender \
                    ran 6.00 µs after the interrupt of an answer on average, 10.0 µs at most";
        assert_eq!(sentence(&run).as_deref(), Some(want));
        run.line = None;
        assert_eq!(sentence(&run), None);
    }

    #[test]
    fn round_trips_are_never_called_wakeups() {
        let run = run();
        let style = Style { colour: false };
        for text in [summary(&run, style), report(&run, style)] {
            assert!(text.starts_with("Largest round trip 4.31 ms"), "{text}");
            assert!(text.contains("3,000 round trips at 1.00 ms"), "{text}");
            assert!(text.contains("174 µs of each round trip is transmission"), "{text}");
            assert!(!text.contains("wakeup") && !text.contains("expir"), "{text}");
        }
    }
}
