//! The options on another program's command line, as far as they are needed.

use wakescope_core::plan::ProbePolicy;

/// A command line. It was joined with blanks, so an argument with a blank in it comes apart; of
/// the options that are looked for, none has one.
pub(super) struct Command<'a> {
    words: Vec<&'a str>,
    /// Short options that take a value.
    valued: &'static str,
}

impl<'a> Command<'a> {
    pub(super) fn new(text: &'a str, valued: &'static str) -> Self {
        Self { words: text.split_ascii_whitespace().skip(1).collect(), valued }
    }

    /// The value of the last `-x VALUE`, `-xVALUE`, `-abxVALUE`, `--long VALUE` or `--long=VALUE`;
    /// the outer `None` if it is not there, the inner one if it has no value.
    pub(super) fn option(&self, short: char, long: &str) -> Option<Option<&'a str>> {
        let mut found = None;
        for (i, word) in self.words.iter().enumerate() {
            let next = || self.words.get(i + 1).copied().filter(|w| !w.starts_with('-'));
            if let Some(name) = word.strip_prefix("--") {
                let (name, value) = match name.split_once('=') {
                    Some((name, value)) => (name, Some(value)),
                    None => (name, None),
                };
                if name == long {
                    found = Some(value.or_else(next));
                }
            } else if let Some(cluster) = word.strip_prefix('-') {
                let Some((at, c)) = self.in_cluster(cluster, short) else { continue };
                let rest = &cluster[at + c.len_utf8()..];
                found = Some(if rest.is_empty() { next() } else { Some(rest) });
            }
        }
        found
    }

    /// Where in a cluster of short options one of them is: not behind one that takes the rest.
    fn in_cluster(&self, cluster: &str, short: char) -> Option<(usize, char)> {
        for (at, c) in cluster.char_indices() {
            if c == short {
                return Some((at, c));
            }
            if self.valued.contains(c) {
                return None;
            }
        }
        None
    }

    /// Whether an option is there at all.
    pub(super) fn has(&self, short: char, long: &str) -> bool {
        self.option(short, long).is_some()
    }

    /// An option's whole number.
    pub(super) fn number(&self, short: char, long: &str) -> Option<u64> {
        super::lines::number(self.option(short, long)??)
    }
}

/// A policy by the kernel's or a program's name for it.
pub(super) fn policy(name: &str) -> Option<ProbePolicy> {
    match name.to_ascii_lowercase().trim_start_matches("sched_") {
        "other" | "normal" => Some(ProbePolicy::Other),
        "fifo" => Some(ProbePolicy::Fifo),
        "rr" => Some(ProbePolicy::Rr),
        "deadline" => Some(ProbePolicy::Deadline),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_found_as_getopt_finds_them() {
        let of = |text| Command::new(text, "ipath");
        let number = |text, short, long| of(text).number(short, long);
        assert_eq!(number("cyclictest -i 200 -p80", 'i', "interval"), Some(200));
        assert_eq!(number("cyclictest -qmi200", 'i', "interval"), Some(200));
        assert_eq!(number("cyclictest --interval=200 -i 300", 'i', "interval"), Some(300));
        assert_eq!(number("cyclictest --interval 200", 'i', "interval"), Some(200));
        assert_eq!(number("cyclictest -a -p80", 'i', "interval"), None);
        // The i belongs to the value of -a.
        assert_eq!(number("cyclictest -ai5", 'i', "interval"), None);
        assert!(of("cyclictest -Sp90").has('S', "smp"));
        assert_eq!(number("cyclictest -Sp90", 'p', "priority"), Some(90));
        assert_eq!(of("cyclictest -i").option('i', "interval"), Some(None));
        assert_eq!(of("").option('i', "interval"), None);
        assert_eq!(of("x -é5i").option('i', "interval"), Some(None));
    }
}
