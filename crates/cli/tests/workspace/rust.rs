//! Reads Rust source as far as the rules need: words of code, without comments and strings.

/// Identifiers and single punctuation characters of `source`, in order. Comments, and what is
/// inside string and character literals, are no code.
pub(crate) fn words(source: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut rest = source;
    while let Some(c) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let length = if is_word(c) {
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            // r"…", br#"…"# and the like; r#type is a word.
            match raw_string(&rest[length..]).filter(|_| rest[..length].ends_with('r')) {
                Some(string) => length + string,
                None => {
                    words.push(rest[..length].into());
                    length
                }
            }
        } else if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment(rest)
        } else if c == '"' {
            quoted(rest, '"')
        } else if c == '\'' {
            character(rest)
        } else {
            if !c.is_whitespace() {
                words.push(c.into());
            }
            c.len_utf8()
        };
        rest = &rest[length..];
    }
    words
}

/// `source` without items that are for tests only. rustfmt ends each of them with the first line
/// that is a brace, or with the line it begins on.
pub(crate) fn without_tests(source: &str) -> String {
    let mut parts = source.split("\n#[cfg(test)]\n");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (first, rest) = part.split_once('\n').unwrap_or((part, ""));
        let after = match first.ends_with('{') {
            true => rest.split_once("\n}").map_or("", |(_, after)| after),
            false => rest,
        };
        kept = kept + "\n" + after;
    }
    kept
}

/// Every path below `std` that `source` names, in expressions and in `use` trees. A tree counts
/// as one path of all its names.
pub(crate) fn std_paths(source: &str) -> Vec<Vec<String>> {
    let words = words(source);
    let mut paths = Vec::new();
    for start in (0..words.len()).filter(|&i| words[i] == "std") {
        let in_use = start > 0 && words[start - 1] == "use";
        let mut depth = 0_i32;
        let path = words[start + 1..].iter().take_while(|word| match word.as_str() {
            "{" if in_use => {
                depth += 1;
                true
            }
            "}" | "," | "as" | "*" if in_use => {
                depth -= i32::from(word.as_str() == "}");
                depth >= 0
            }
            ":" => true,
            word => word.chars().all(|c| c.is_alphanumeric() || c == '_'),
        });
        let names = path.filter(|w| w.starts_with(|c: char| c.is_alphabetic())).cloned();
        paths.push(names.collect());
    }
    paths
}

/// The length of the raw string whose hashes begin here, if one does.
fn raw_string(text: &str) -> Option<usize> {
    let hashes = text.find(|c| c != '#')?;
    let body = text[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = body.find(&end).map_or(body.len(), |at| at + end.len());
    Some(hashes + 1 + length)
}

/// The length of a literal that begins and ends with `quote`.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if c == quote && !escaped {
            return at + c.len_utf8();
        }
        escaped = c == '\\' && !escaped;
    }
    text.len()
}

/// The length of a character literal, or of the quote of a lifetime.
fn character(text: &str) -> usize {
    let mut after = text.chars().skip(1);
    match (after.next(), after.next()) {
        (Some('\\'), _) | (_, Some('\'')) => quoted(text, '\''),
        _ => 1,
    }
}

/// The length of a block comment; they nest.
fn block_comment(text: &str) -> usize {
    let mut depth = 0_u32;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

#[test]
fn code_is_told_from_text() {
    for (source, want) in [
        ("a // b\nc", "a c"),
        ("a /* b /* c */ d */ e", "a e"),
        (r#"f("b \" c") + d"#, "f ( ) + d"),
        ("r#\"b \" c\"# d r#type", "d r # type"),
        (r"'\'' a 'b' &'static str", "a & static str"),
        ("x: b\"y\"", "x : b"),
    ] {
        assert_eq!(words(source).join(" "), want, "{source}");
    }
}

#[test]
fn tests_are_left_out() {
    let source = "a\n#[cfg(test)]\nmod tests {\n    b\n}\nc\n#[cfg(test)]\nmod more;\nd\n";
    assert_eq!(words(&without_tests(source)).join(" "), "a c d");
}

#[test]
fn paths_below_std_are_found() {
    let source =
        "use std::{fmt, io::{self, Write}}; use other::fs; let a = std::env::var(std::fmt::x);";
    let paths: Vec<String> = std_paths(source).iter().map(|p| p.join(" ")).collect();
    assert_eq!(paths, ["fmt io self Write", "env var", "fmt x"]);
}
