//! The emulator's monitor (docs/interop/qmp-spec.rst in QEMU), by which a machine is halted and saved.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use serde_json::{Value, json};

use wakescope_core::units::SpanNs;

use super::state;

/// No answer is longer, bytes: a guest may have taken the emulator over.
const ANSWERS_MOST: usize = 1 << 20;

/// How often to try. While something is on its way to a device of the machine, the emulator refuses to save it.
const TRIES: u32 = 50;

/// How long an emulator may leave commands unread until there is no room for another one.
const PATIENCE: SpanNs = SpanNs(1_000_000_000);

/// Halts the machine when its guest is ready for its order, saves it, and resumes it.
#[derive(Debug)]
pub struct Monitor {
    stream: UnixStream,
    /// What has come of the next answer.
    line: Vec<u8>,
    /// Whether the guest has begun to read its order.
    is_reading: bool,
    tries: u32,
    /// Whether it did not take a command.
    is_deaf: bool,
    outcome: Option<Result<(), String>>,
}

impl Monitor {
    /// Speaks through `stream`.
    pub fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_write_timeout(Some(Duration::from_nanos(PATIENCE.0)))?;
        Ok(Self {
            stream,
            line: Vec::new(),
            is_reading: false,
            tries: 0,
            is_deaf: false,
            outcome: None,
        })
    }

    /// Waits for so long at most for what comes from the emulator, and answers it.
    pub fn attend(&mut self, most: SpanNs) {
        let mut bytes = [0; 4096];
        let _ = self.stream.set_read_timeout(Some(Duration::from_nanos(most.0)));
        match self.stream.read(&mut bytes) {
            Ok(count) if count > 0 && self.line.len() < ANSWERS_MOST => {
                self.line.extend(&bytes[..count]);
            }
            // It closed its end, or writes without end: nothing more is read.
            Ok(_) => std::thread::sleep(Duration::from_nanos(most.0)),
            Err(_) => {}
        }
        while let Some(end) = self.line.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.line.drain(..=end).collect();
            if let Ok(message) = serde_json::from_slice(&line) {
                self.answer(&message);
            }
        }
    }

    /// Whether the machine was saved.
    ///
    /// # Errors
    /// What the emulator said, or that the guest was never ready.
    pub fn outcome(&self) -> Result<(), String> {
        self.outcome.clone().unwrap_or_else(|| Err("the machine did not halt".into()))
    }

    fn answer(&mut self, message: &Value) {
        let is = |key: &str, text: &str| message[key] == text;
        if message.get("QMP").is_some() {
            self.send(&json!({"execute": "qmp_capabilities"}));
        } else if is("event", "GUEST_PANICKED") && self.outcome.is_none() {
            self.send(&json!({"execute": "stop"}));
        } else if is("event", "GUEST_CRASHLOADED") {
            self.is_reading = true;
        } else if is("event", "STOP") && self.outcome.is_none() {
            if self.is_reading {
                self.finish(Err("the machine halted too late".into()));
            } else {
                self.save();
            }
        } else if is("id", "save") {
            // This older command answers with a text: an empty one, or what went wrong.
            match message["return"].as_str().map(str::trim) {
                Some("") => self.finish(Ok(())),
                Some(text) if text.contains("Try once more") && self.tries < TRIES => self.save(),
                Some(text) => self.finish(Err(text.into())),
                None => self.finish(Err(message["error"]["desc"].to_string())),
            }
        }
    }

    fn save(&mut self) {
        self.tries += 1;
        let command = format!("savevm {}", state::NAME);
        let arguments = json!({ "command-line": command });
        self.send(
            &json!({"execute": "human-monitor-command", "arguments": arguments, "id": "save"}),
        );
    }

    fn finish(&mut self, outcome: Result<(), String>) {
        self.outcome = Some(outcome);
        self.send(&json!({"execute": "cont"}));
    }

    fn send(&mut self, message: &Value) {
        // If it cannot be sent, the machine stays halted, and its time runs out. Nobody waits for that again.
        if !self.is_deaf {
            self.is_deaf = self.stream.write_all(format!("{message}\n").as_bytes()).is_err();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a monitor says to these messages of the emulator, and how it ends.
    fn said(messages: &[Value]) -> (Vec<String>, Result<(), String>) {
        let (own, mut other) = UnixStream::pair().unwrap();
        let mut monitor = Monitor::new(own).unwrap();
        for message in messages {
            // In two parts, as it may come.
            let text = format!("{message}\r\n");
            let (first, last) = text.split_at(text.len() / 2);
            for part in [first, last] {
                other.write_all(part.as_bytes()).unwrap();
                monitor.attend(SpanNs(1_000_000_000));
            }
        }
        let outcome = monitor.outcome();
        drop(monitor);
        let mut text = String::new();
        other.read_to_string(&mut text).unwrap();
        let name = |line: &str| {
            let value: Value = serde_json::from_str(line).unwrap();
            value["execute"].as_str().unwrap().to_owned()
        };
        (text.lines().map(name).collect(), outcome)
    }

    #[test]
    fn a_machine_that_halts_is_saved_and_goes_on() {
        let [ready, reads, stop] = ["GUEST_PANICKED", "GUEST_CRASHLOADED", "STOP"]
            .map(|event| json!({"event": event, "data": {}}));
        let saved = |text: &str| json!({"id": "save", "return": text});
        let begin = [json!({"QMP": {}}), json!({"return": {}}), ready];
        let (save, go_on) = ("human-monitor-command", "cont");
        let check = |rest: &[Value], want: &[&str], end: Result<(), &str>| {
            let (said, outcome) = said(&[&begin, rest].concat());
            assert_eq!(said, [&["qmp_capabilities", "stop"], want].concat());
            assert_eq!(outcome, end.map_err(String::from));
        };
        let halted = |rest: &[Value], want: &[&str], end| {
            check(&[std::slice::from_ref(&stop), rest].concat(), want, end);
        };
        halted(&[saved("")], &[save, go_on], Ok(()));
        // What follows is none of its business.
        let others = [saved(""), json!({"event": "RESUME"}), reads.clone(), stop.clone()];
        halted(&others, &[save, go_on], Ok(()));
        let later = saved("Error: no snapshot right now. Try once more later.\r\n");
        halted(&[later, saved("")], &[save, save, go_on], Ok(()));
        halted(&[saved("Error: no room\r\n")], &[save, go_on], Err("Error: no room"));
        let refused = json!({"id": "save", "error": {"desc": "no such command"}});
        halted(&[refused], &[save, go_on], Err("\"no such command\""));
        halted(&[], &[save], Err("the machine did not halt"));
        check(&[], &[], Err("the machine did not halt"));
        // The guest has its order by then.
        check(&[reads, stop.clone()], &[go_on], Err("the machine halted too late"));
    }

    #[test]
    fn an_emulator_that_reads_nothing_holds_nobody_up() {
        let (own, mut other) = UnixStream::pair().unwrap();
        let mut monitor = Monitor::new(own).unwrap();
        let events = format!("{}\n", json!({"event": "GUEST_PANICKED"})).repeat(100);
        // Each is answered, until the answers take all the room that there is.
        while !monitor.is_deaf {
            other.write_all(events.as_bytes()).unwrap();
            monitor.attend(PATIENCE);
        }
        other.write_all(events.as_bytes()).unwrap();
        monitor.attend(PATIENCE);
        assert_eq!(monitor.outcome(), Err("the machine did not halt".into()));
    }

    #[test]
    fn an_emulator_that_talks_nonsense_is_not_listened_to() {
        let (said, outcome) = said(&[json!(7), json!([]), json!({"id": "other", "return": ""})]);
        assert!(said.is_empty() && outcome.is_err());
    }
}
