//! Where two files differ that should be the same.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;
use wakescope_report::style::clean;

/// The most characters of a value that are shown.
const LONGEST: usize = 80;

/// The first place in which two cells differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The file.
    pub file: String,
    /// Where in it: `threads[0].woken.max_ns`, or `line 7` of what is not JSON.
    pub place: String,
    /// What was stored; `None` if there was nothing.
    pub stored: Option<String>,
    /// What the repetition gave; `None` if it gave nothing.
    pub repeated: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".into());
        let (stored, repeated) = (value(&self.stored), value(&self.repeated));
        write!(f, "{}, {}: {stored}, repeated {repeated}", self.file, self.place)
    }
}

/// The first place in which the texts of `file` differ. Keys of JSON are compared in alphabetical
/// order.
pub(super) fn between(file: &str, stored: &[u8], repeated: &[u8]) -> Option<Difference> {
    if stored == repeated {
        return None;
    }
    let parsed = |bytes| serde_json::from_slice::<Value>(bytes).ok();
    let found =
        parsed(stored).zip(parsed(repeated)).and_then(|(a, b)| in_json("", Some(&a), Some(&b)));
    // Numbers can be spelled in more than one way: then it is the text that differs.
    Some(found.unwrap_or_else(|| in_text(stored, repeated)).in_file(file))
}

impl Difference {
    fn new(place: &str, stored: Option<&str>, repeated: Option<&str>) -> Self {
        let value = |text: Option<&str>| text.map(|text| clean(text, LONGEST));
        let (stored, repeated) = (value(stored), value(repeated));
        Self { file: String::new(), place: clean(place, 2 * LONGEST), stored, repeated }
    }

    pub(super) fn in_file(self, file: &str) -> Self {
        Self { file: file.into(), ..self }
    }

    /// A file that one of the two does not have.
    pub(super) fn of_presence(file: &str, stored: bool, repeated: bool) -> Self {
        let text = |there: bool| there.then_some("a file");
        Self::new("the whole of it", text(stored), text(repeated)).in_file(file)
    }

    /// Of how two runs ended.
    pub(super) fn of_endings(stored: &str, repeated: &str) -> Self {
        Self::new("how it ended", Some(stored), Some(repeated)).in_file("ending.json")
    }
}

fn in_json(place: &str, stored: Option<&Value>, repeated: Option<&Value>) -> Option<Difference> {
    match (stored, repeated) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            let dot = if place.is_empty() { "" } else { "." };
            keys.into_iter()
                .find_map(|key| in_json(&format!("{place}{dot}{key}"), a.get(key), b.get(key)))
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => (0..a.len().max(b.len()))
            .find_map(|index| in_json(&format!("{place}[{index}]"), a.get(index), b.get(index))),
        _ if stored == repeated => None,
        _ => {
            let text = |value: Option<&Value>| value.map(Value::to_string);
            let place = if place.is_empty() { "the whole of it" } else { place };
            Some(Difference::new(place, text(stored).as_deref(), text(repeated).as_deref()))
        }
    }
}

fn in_text(stored: &[u8], repeated: &[u8]) -> Difference {
    let lines =
        |bytes| String::from_utf8_lossy(bytes).split('\n').map(String::from).collect::<Vec<_>>();
    let (a, b) = (lines(stored), lines(repeated));
    let differs = |&line: &usize| a.get(line) != b.get(line);
    match (0..a.len().max(b.len())).find(differs) {
        Some(line) => {
            let of = |lines: &[String]| lines.get(line).cloned();
            let place = format!("line {}", line + 1);
            Difference::new(&place, of(&a).as_deref(), of(&b).as_deref())
        }
        // Only what is no text can differ without a line that does.
        None => Difference::new("bytes that are no text", None, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(stored: &str, repeated: &str, want: Option<&str>) {
        let found = between("run.json", stored.as_bytes(), repeated.as_bytes());
        assert_eq!(found.map(|d| d.to_string()).as_deref(), want);
    }

    #[test]
    fn the_first_difference_is_named() {
        check("{}", "{}", None);
        check(
            r#"{"b": 1, "threads": [{"max_ns": 5}, {"max_ns": 6}]}"#,
            r#"{"b": 1, "threads": [{"max_ns": 5}, {"max_ns": 7}]}"#,
            Some("run.json, threads[1].max_ns: 6, repeated 7"),
        );
        check(r#"{"b": 1, "a": 1}"#, r#"{"b": 2, "a": 2}"#, Some("run.json, a: 1, repeated 2"));
        check(r#"{"a": null}"#, "{}", Some("run.json, a: null, repeated nothing"));
        check("[1]", "[1,2]", Some("run.json, [1]: nothing, repeated 2"));
        check("[[]]", "[{}]", Some("run.json, [0]: [], repeated {}"));
        check("1", "2", Some("run.json, the whole of it: 1, repeated 2"));
        check("{\"a\": 1}", "{\"a\":1}", Some("run.json, line 1: {\"a\": 1}, repeated {\"a\":1}"));
        check("a\nb\n", "a\nc\n", Some("run.json, line 2: b, repeated c"));
        check("a\n", "a", Some("run.json, line 2: , repeated nothing"));
        let bytes = between("x", b"\xff", b"\xfe").unwrap();
        assert_eq!(bytes.place, "bytes that are no text");
    }

    #[test]
    fn what_is_shown_is_short_and_harmless() {
        let hostile = format!("\"{}\"", "x".repeat(10_000));
        let found = between("run.json", hostile.as_bytes(), b"\"\\u001b[2J\x1b\"").unwrap();
        assert!(found.to_string().chars().count() < 400, "{found}");
        assert!(!found.to_string().contains('\x1b'));
    }
}
