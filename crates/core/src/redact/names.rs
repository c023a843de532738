//! Names in records: those that are the same everywhere stay.

/// Stands for what is left out.
pub const REDACTED: &str = "[redacted]";

/// Loads that every wakescope has.
const LOADS: [&str; 4] = ["find", "launch", "file-move", "cpu"];

/// What they count.
const UNITS: [&str; 6] = ["files", "programs", "bytes", "loops", "times", "starts"];

/// What is removed is marked; an empty text says already that there is nothing.
pub(super) fn remove(text: &mut String) {
    if !text.is_empty() {
        *text = REDACTED.into();
    }
}

/// Whether `unit` is what a load of every wakescope counts.
pub(super) fn is_unit(unit: &str) -> bool {
    UNITS.contains(&unit)
}

/// Keeps the name of a load that every wakescope has; of a command only that it was one.
pub(super) fn redact_name_of_load(name: &mut String) {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
    let is_disturbance = name.starts_with("disturb-") && name.chars().all(is_plain);
    if name.starts_with("exec:") {
        *name = format!("exec:{REDACTED}");
    } else if !LOADS.contains(&name.as_str()) && !is_disturbance {
        remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_that_all_have_stay() {
        for (name, want) in [
            ("find", "find"),
            ("file-move", "file-move"),
            ("disturb-fifo-300us", "disturb-fifo-300us"),
            ("disturb-fifo-0.3ms", "disturb-fifo-0.3ms"),
            ("disturb-x y", REDACTED),
            ("exec:make", "exec:[redacted]"),
            ("exec:[redacted]", "exec:[redacted]"),
            ("other", REDACTED),
            ("", ""),
        ] {
            let mut got = name.to_owned();
            redact_name_of_load(&mut got);
            assert_eq!(got, want, "{name}");
        }
    }
}
