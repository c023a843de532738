//! Pieces of a page. All text from elsewhere goes through here.

use crate::picture::escaped;
use crate::style::clean;

/// Text of our own making, which may hold names from elsewhere that were cleaned.
pub(crate) fn text(text: &str) -> String {
    escaped(text)
}

/// What a page says first, in which no line breaks between a figure and its unit.
pub(crate) fn headline(sentence: &str) -> String {
    const UNITS: [&str; 7] = ["ns", "µs", "ms", "s", "min", "h", "d"];
    let is_unit = |word: &str| UNITS.contains(&word.trim_end_matches([',', '.', ':', ';']));
    let is_figure = |word: &str| word.ends_with(|c: char| c.is_ascii_digit());
    let escaped = text(sentence);
    let words: Vec<&str> = escaped.split(' ').collect();
    let mut out = words[0].to_owned();
    for pair in words.windows(2) {
        let stay = is_figure(pair[0]) && is_unit(pair[1]);
        out.push_str(if stay { "\u{a0}" } else { " " });
        out.push_str(pair[1]);
    }
    format!("<h1>{out}</h1>\n")
}

/// A name from elsewhere: cleaned, cut, and kept from turning the text around it.
pub(crate) fn name(text: &str, limit: usize) -> String {
    format!("<bdi>{}</bdi>", escaped(&clean(text, limit)))
}

/// A sentence from elsewhere, in which commands stand between backticks.
pub(crate) fn prose(text: &str, limit: usize) -> String {
    let cleaned = clean(text, limit);
    let parts: Vec<&str> = cleaned.split('`').collect();
    // Without its other half, a backtick is only that.
    if parts.len() % 2 == 0 {
        return name(text, limit);
    }
    let dressed = parts.iter().enumerate().map(|(i, part)| match i % 2 {
        0 => escaped(part),
        _ => format!("<code>{}</code>", escaped(part)),
    });
    format!("<bdi>{}</bdi>", dressed.collect::<String>())
}

/// A paragraph; nothing if it would be empty.
pub(crate) fn paragraph(class: &str, html: &str) -> String {
    if html.is_empty() { String::new() } else { format!("<p class=\"{class}\">{html}</p>\n") }
}

/// Columns that begin at the left; all others are of numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    Words,
    Number,
}

/// A table of cells that are HTML already. The first of each row names it. Where it is too wide for
/// its screen, it is scrolled.
pub(crate) fn table(caption: &str, head: &[(&str, Column)], rows: &[Vec<String>]) -> String {
    table_of(caption, head, rows, false)
}

/// A table whose figures must all be seen at once: on a narrow screen, each row is a list of them.
pub(crate) fn key_table(caption: &str, head: &[(&str, Column)], rows: &[Vec<String>]) -> String {
    table_of(caption, head, rows, true)
}

fn table_of(caption: &str, head: &[(&str, Column)], rows: &[Vec<String>], is_key: bool) -> String {
    let class = |column: Column| if column == Column::Number { " class=\"n\"" } else { "" };
    let of = |title: &str| match is_key && !title.is_empty() {
        true => format!(" data-of=\"{}\"", text(title)),
        false => String::new(),
    };
    let kind = if is_key { " class=\"key\"" } else { "" };
    let caption = text(caption);
    let mut out =
        format!("<div class=\"scroll\"><table{kind}><caption>{caption}</caption><thead><tr>");
    for (title, column) in head {
        out.push_str(&format!("<th scope=\"col\"{}>{}</th>", class(*column), text(title)));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        out.push_str("<tr>");
        for (i, (cell, (title, column))) in row.iter().zip(head).enumerate() {
            out.push_str(&match i {
                0 => format!("<th scope=\"row\">{cell}</th>"),
                _ => format!("<td{}{}>{cell}</td>", class(*column), of(title)),
            });
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    out
}

/// What is there for who wants it, and folded for who does not.
pub(crate) fn folded(summary: &str, html: &str) -> String {
    if html.is_empty() {
        return String::new();
    }
    format!("<details><summary>{summary}</summary>\n{html}</details>\n")
}

/// A part of the page with its heading; nothing if it would be empty.
pub(crate) fn section(id: &str, heading: &str, html: &str) -> String {
    if html.is_empty() {
        return String::new();
    }
    format!(
        "<section id=\"{id}\" aria-labelledby=\"h-{id}\">\n<h2 id=\"h-{id}\">{}</h2>\n{html}</section>\n",
        text(heading)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_stays_with_its_unit() {
        for (sentence, want) in [
            ("Worst wakeup 40.2 µs late", "Worst wakeup 40.2\u{a0}µs late"),
            ("391 µs, of 2 s.", "391\u{a0}µs, of 2\u{a0}s."),
            ("Largest delay 1.50 d", "Largest delay 1.50\u{a0}d"),
            ("5 CPUs in a <b>", "5 CPUs in a &lt;b&gt;"),
            ("a h", "a h"),
            ("", ""),
        ] {
            assert_eq!(headline(sentence), format!("<h1>{want}</h1>\n"));
        }
    }
}
