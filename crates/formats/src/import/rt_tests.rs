//! Programs of rt-tests whose files look like those of cyclictest, and are refused.

use super::ImportError;

/// A program, or several that write alike.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused {
    programs: &'static [&'static str],
    pub(super) why: &'static str,
    pub(super) remedy: &'static str,
}

/// They take the microseconds of a difference of two `timeval`, and leave its seconds out.
const PAIRS: Refused = Refused {
    programs: &["ptsematest", "pmqtest", "svsematest", "sigwaittest"],
    why: "it is of ptsematest, pmqtest, svsematest or sigwaittest, which leave out the whole seconds of each value: a true maximum may be longer",
    remedy: "measure the same: wakescope measure --stimulus semaphore, mqueue, sysv-semaphore or kill",
};

pub(super) const SIGNALTEST: Refused = Refused {
    programs: &["signaltest"],
    why: "it is of signaltest, whose values are rounds of a signal through all its threads, with its own sleeps",
    remedy: "measure wakeups by a signal: wakescope measure --stimulus kill",
};

pub(super) const CYCLICDEADLINE: Refused = Refused {
    programs: &["cyclicdeadline"],
    why: "it is of cyclicdeadline, whose values keep a stall in all wakeups that come after it",
    remedy: "measure deadline tasks: wakescope measure --stimulus deadline",
};

impl Refused {
    pub(super) fn error(&self) -> ImportError {
        ImportError::new(self.why).try_this(self.remedy)
    }
}

/// By the command line in their JSON.
pub(super) fn of_command(command: &str) -> Option<&'static Refused> {
    const ALL: [&Refused; 3] = [&PAIRS, &SIGNALTEST, &CYCLICDEADLINE];
    let first = command.split_ascii_whitespace().next()?;
    let name = first.rsplit('/').next()?;
    ALL.into_iter().find(|refused| refused.programs.contains(&name))
}

/// By a line such as `#0: ID7605, P80, CPU0, I1000; #1: ID7606, P80, CPU0, Cycles 500`.
pub(super) fn of_lines(text: &str) -> Option<&'static Refused> {
    let is_pair = |line: &str| {
        let thread = |text: &str| {
            let (number, rest) = text.trim().strip_prefix('#')?.split_once(": ID")?;
            Some(super::lines::number(number).is_some() && rest.contains(", CPU"))
        };
        line.split_once(';').is_some_and(|(receiver, sender)| {
            thread(receiver) == Some(true) && thread(sender) == Some(true)
        })
    };
    text.lines().any(is_pair).then_some(&PAIRS)
}

/// By a thread's line, which is cyclictest's but for a field.
pub(super) fn of_thread_line(line: &str) -> Option<&'static Refused> {
    let has = |field: &str| line.contains(field);
    match (has(" P:"), has(" I:")) {
        (true, false) => Some(&SIGNALTEST),
        (false, true) => Some(&CYCLICDEADLINE),
        _ => None,
    }
}
