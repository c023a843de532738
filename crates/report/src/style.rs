//! How text is dressed: colour that only repeats what the words say.

pub use wakescope_core::harmless::{clean, is_hostile};

/// The same as [`clean`] of a path: what is beyond `limit` characters is cut at the begin, because the end says
/// most.
pub(crate) fn clean_end(path: &str, limit: usize) -> String {
    let path = clean(path, usize::MAX);
    let length = path.chars().count();
    if length <= limit {
        return path;
    }
    let end = path.chars().skip(length + 1 - limit.max(1));
    std::iter::once('…').chain(end).collect()
}

/// Whether and how to use colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Use ANSI colours.
    pub colour: bool,
}

impl Style {
    /// The sentence that matters.
    pub(crate) fn strong(self, text: &str) -> String {
        self.dress("1", text)
    }

    /// What is well.
    pub fn good(self, text: &str) -> String {
        self.dress("32", text)
    }

    /// What needs attention.
    pub(crate) fn warn(self, text: &str) -> String {
        self.dress("33", text)
    }

    /// What is wrong.
    pub fn bad(self, text: &str) -> String {
        self.dress("31", text)
    }

    /// What stands back.
    pub(crate) fn faint(self, text: &str) -> String {
        self.dress("2", text)
    }

    fn dress(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_can_be_off() {
        assert_eq!(Style { colour: false }.bad("x"), "x");
        assert_eq!(Style { colour: true }.bad("x"), "\x1b[31mx\x1b[0m");
    }
}
