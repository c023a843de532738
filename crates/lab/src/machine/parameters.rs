//! What users add to a kernel's command line.

use std::str::FromStr;

/// The longest command line that kernels take, in bytes. They cut off what is longer
/// (`COMMAND_LINE_SIZE` of x86 and arm64: 2,048 with the byte that ends it).
pub(super) const LONGEST_LINE: usize = 2047;

/// The longest addition, in bytes. The rest of the line is the lab's own.
const LONGEST: usize = 1024;

/// Parameters for the kernel, as in `nohz=off threadirqs`. What follows them on the command line,
/// the order to the guest's program, reaches the program whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters(String);

impl Parameters {
    /// The text, which may be empty.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl FromStr for Parameters {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(odd) = text.chars().find(|c| !matches!(c, ' '..='~')) {
            let odd = odd.escape_default();
            return Err(format!("`{odd}` is no printable ASCII; separate parameters by blanks"));
        }
        if text.matches('"').count() % 2 == 1 {
            return Err("a quote (\") is never closed; close it".into());
        }
        if text.split(' ').any(|word| word == "--") {
            return Err(
                "`--` ends the kernel's parameters, and the lab writes it itself; leave it out"
                    .into(),
            );
        }
        if text.len() > LONGEST {
            return Err(format!(
                "{} bytes are too many: the kernel cuts off a long command line; write {LONGEST} at most",
                text.len()
            ));
        }
        Ok(Self(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_cut_off_the_order_to_the_guest_is_refused() {
        for good in ["", "nohz=off threadirqs", "a=\"b c\" --x", &"x".repeat(LONGEST)] {
            assert_eq!(good.parse::<Parameters>().unwrap().text(), good);
        }
        for (bad, why) in [
            ("a\nb", "`\\n` is no printable ASCII"),
            ("a\tb", "`\\t` is no printable ASCII"),
            ("a=µ", "`\\u{b5}` is no printable ASCII"),
            ("a=\"b", "is never closed"),
            ("--", "`--` ends"),
            ("a -- b", "`--` ends"),
            (&"x".repeat(LONGEST + 1), "1025 bytes are too many"),
        ] {
            let error = bad.parse::<Parameters>().unwrap_err();
            assert!(error.contains(why), "{bad:?}: {error}");
        }
    }
}
