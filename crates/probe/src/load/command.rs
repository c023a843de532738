//! What a record may hold of a command: its program's name, and a mark that tells it from others.

use crate::mark;

/// The name of a command whose program cannot be found in its text: it is the shell that runs.
const SHELL: &str = "sh";

/// The longest name of a program that is kept, in bytes.
const LONGEST_NAME: usize = 64;

/// Words that begin what the shell does itself.
const KEYWORDS: &[&str] = &[
    ".", "[[", "case", "command", "coproc", "do", "done", "elif", "else", "esac", "eval", "exec",
    "export", "fi", "for", "function", "if", "in", "local", "readonly", "select", "set", "then",
    "time", "until", "while",
];

/// The name of the program that a shell command starts first, without its folder: `make` of
/// `PASSWORD=x /usr/bin/make -j`. `sh` where the command begins with anything but plain words, for
/// then only a shell could tell where a secret ends and the program's name begins.
pub(super) fn program(command: &str) -> &str {
    first_word(command).and_then(name).unwrap_or(SHELL)
}

/// The first word that assigns no variable; `None` if one before it cannot be read.
fn first_word(command: &str) -> Option<&str> {
    let mut rest = command.trim_start();
    loop {
        let end = end_of_word(rest)?;
        let word = &rest[..end];
        if !is_assignment(word) {
            // A function's name is followed by what it does.
            return Some(word).filter(|_| !rest[end..].starts_with('('));
        }
        // What ends an assignment's command ends what can be told.
        rest = rest[end..].strip_prefix([' ', '\t'])?.trim_start_matches([' ', '\t']);
    }
}

/// Where the first word of `text` ends. `None` where it holds what is replaced by something else, or
/// a quotation without an end.
fn end_of_word(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            _ if is_escaped => is_escaped = false,
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (Some('\''), _) => {}
            (_, '$' | '`') => return None,
            (_, '\\') => is_escaped = true,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')') => return Some(at),
            (None, _) => {}
        }
    }
    (quote.is_none() && !is_escaped).then_some(text.len())
}

fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn name(word: &str) -> Option<&str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.+/[".contains(c);
    let name = word.rsplit('/').next().unwrap_or(word);
    let is_name = !name.is_empty() && name.len() <= LONGEST_NAME && word.chars().all(is_plain);
    (is_name && !KEYWORDS.contains(&word)).then_some(name)
}

/// A mark of `command` that is the same for the same command on the same machine, so that `compare`
/// sees unlike commands of one program; `None` where this machine has no number of its own.
pub(super) fn mark(command: &str) -> Option<String> {
    mark::of("wakescope exec", command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_cut_to_their_programs() {
        for (command, want) in [
            ("make", "make"),
            ("make -j4 TOKEN=secret", "make"),
            ("PASSWORD=secret make -j", "make"),
            (" A=1 B='x secret' C=\"y secret\" D=secret\\ z\t/usr/bin/make -j", "make"),
            ("sleep 1000 & (sleep 1000 &) ; wait", "sleep"),
            ("make;curl https://secret", "make"),
            ("./run-it.sh secret", "run-it.sh"),
            ("/opt/my-tool+1/bin/x_y.2 secret", "x_y.2"),
            ("[ -e secret ]", "["),
            ("yes>secret", "yes"),
            // A shell's own syntax.
            ("while :; do secret; done", "sh"),
            ("(secret)", "sh"),
            ("{ secret; }", "sh"),
            ("! secret", "sh"),
            (": secret", "sh"),
            ("f() { secret; }; f", "sh"),
            ("# secret\nmake", "sh"),
            (">secret make", "sh"),
            ("eval secret", "sh"),
            // What cannot be read.
            ("PASSWORD=$(cat secret) make", "sh"),
            ("PASSWORD=`cat secret` make", "sh"),
            ("PASSWORD=${X:-a secret} make", "sh"),
            ("PASSWORD=$'a\\' secret' make", "sh"),
            ("PASSWORD=\"a secret", "sh"),
            ("PASSWORD='a secret", "sh"),
            ("PASSWORD=secret\\", "sh"),
            ("PASSWORD=secret", "sh"),
            ("PASSWORD=secret;make", "sh"),
            ("PASSWORD=secret\nmake", "sh"),
            ("PASSWORD+=secret make", "sh"),
            ("A[0]=secret make", "sh"),
            ("my-key=secret make", "sh"),
            ("PASS\\\nWORD=secret make", "sh"),
            ("\"my program\" secret", "sh"),
            ("geheim€ x", "sh"),
            ("secret/", "sh"),
            ("", "sh"),
        ] {
            assert_eq!(program(command), want, "{command:?}");
        }
        assert_eq!(program(&"x".repeat(65)), "sh");
    }
}
