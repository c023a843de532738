//! A scene as SVG: text as text, so that it can be searched and read aloud.

use std::fmt::Write;

use super::scene::{Anchor, Mark, Point, Scene, Shape};

/// Fonts that are on most machines and are about as wide as the one that pictures are laid out with.
const FONT: &str = "'Noto Sans','Segoe UI','DejaVu Sans',Helvetica,Arial,sans-serif";

/// The picture as a file of its own, on white paper.
pub(crate) fn document(scene: &Scene) -> String {
    let body = draw(scene, "", true);
    let paper = "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>";
    let start = body.find("</desc>").map_or(0, |at| at + "</desc>".len());
    format!("{}{paper}{}\n", &body[..start], &body[start..])
}

/// The picture as an element. In a page, colours come from its style sheet, by class; alone, they are
/// part of it. `id` sets it apart from others in the same page.
pub(crate) fn draw(scene: &Scene, id: &str, is_alone: bool) -> String {
    let mut out = String::new();
    let (width, height) = (tenths(scene.width), tenths(scene.height));
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
         aria-labelledby=\"{id}t {id}d\""
    );
    if is_alone {
        let _ = write!(
            out,
            " width=\"{width}\" height=\"{height}\" font-family=\"{FONT}\" \
             style=\"font-variant-numeric:tabular-nums\""
        );
    }
    for (name, value) in &scene.notes {
        let _ = write!(out, " data-{name}=\"{}\"", escaped(value));
    }
    let _ = write!(
        out,
        "><title id=\"{id}t\">{}</title><desc id=\"{id}d\">{}</desc>",
        escaped(&scene.title),
        escaped(&scene.description)
    );
    scene.marks.iter().for_each(|mark| push(&mut out, mark, is_alone));
    out.push_str("</svg>");
    out
}

fn push(out: &mut String, mark: &Mark, is_alone: bool) {
    let _ = match mark {
        Mark::Begin { class, run: None } => write!(out, "<g class=\"{class}\">"),
        Mark::Begin { class, run: Some(run) } => {
            write!(out, "<g class=\"{class}\" data-run=\"{run}\">")
        }
        Mark::End => write!(out, "</g>"),
        Mark::Lines { lines, ink, width, dash } => {
            let dash = match dash {
                [] => String::new(),
                dash => {
                    let lengths: Vec<String> = dash.iter().map(|&d| tenths(d)).collect();
                    format!(" stroke-dasharray=\"{}\"", lengths.join(" "))
                }
            };
            let (colour, join) = if is_alone {
                (
                    format!("stroke=\"#{:06x}\" fill=\"none\"", ink.colour()),
                    " stroke-linejoin=\"round\"",
                )
            } else {
                (format!("class=\"l {}\"", ink.class()), "")
            };
            write!(
                out,
                "<path {colour} stroke-width=\"{}\"{join}{dash} d=\"{}\"/>",
                hundredths(*width),
                lines.iter().map(|line| path(line)).collect::<String>()
            )
        }
        Mark::Bar { at, width, height, ink } => {
            let fill = fill(*ink, is_alone);
            let (x, y) = (tenths(at.0), tenths(at.1));
            let (width, height) = (hundredths(*width), tenths(*height));
            write!(out, "<rect {fill} x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>")
        }
        Mark::Text { at, text, size, anchor, ink, strong } => {
            let anchor = match anchor {
                Anchor::Start => "",
                Anchor::Middle => " text-anchor=\"middle\"",
                Anchor::End => " text-anchor=\"end\"",
            };
            let weight = if *strong { " font-weight=\"600\"" } else { "" };
            write!(
                out,
                "<text {} x=\"{}\" y=\"{}\" font-size=\"{}\"{anchor}{weight}>{}</text>",
                fill(*ink, is_alone),
                tenths(at.0),
                tenths(at.1),
                tenths(*size),
                escaped(text)
            )
        }
        Mark::Dot { at, shape: Shape::Disc, radius, ink } => {
            let (x, y) = (tenths(at.0), tenths(at.1));
            write!(
                out,
                "<circle {} cx=\"{x}\" cy=\"{y}\" r=\"{}\"/>",
                fill(*ink, is_alone),
                tenths(*radius)
            )
        }
        Mark::Dot { at, shape, radius, ink } => {
            let corners = path(&shape.corners(*at, *radius));
            write!(out, "<path {} d=\"{corners}z\"/>", fill(*ink, is_alone))
        }
    };
}

fn fill(ink: super::scene::Ink, is_alone: bool) -> String {
    if is_alone {
        format!("fill=\"#{:06x}\"", ink.colour())
    } else {
        format!("class=\"f {}\"", ink.class())
    }
}

/// A path through points, each relative to the last, rounded to a tenth so that errors do not add up.
fn path(points: &[Point]) -> String {
    let mut out = String::new();
    let mut last = (0, 0);
    for (i, &(x, y)) in points.iter().enumerate() {
        let point = (in_tenths(x), in_tenths(y));
        let (dx, dy) = (point.0 - last.0, point.1 - last.1);
        let _ = match (i, dx, dy) {
            (0, ..) => write!(out, "M{} {}", of_tenths(point.0), of_tenths(point.1)),
            (_, 0, 0) => Ok(()),
            (_, dx, 0) => write!(out, "h{}", of_tenths(dx)),
            (_, 0, dy) => write!(out, "v{}", of_tenths(dy)),
            (_, dx, dy) => write!(out, "l{} {}", of_tenths(dx), of_tenths(dy)),
        };
        last = point;
    }
    out
}

#[allow(clippy::cast_possible_truncation)] // Places in a picture; what is no number becomes 0.
fn in_tenths(value: f64) -> i64 {
    (value.clamp(-1e6, 1e6) * 10.0).round() as i64
}

fn of_tenths(tenths: i64) -> String {
    let sign = if tenths < 0 { "-" } else { "" };
    let (whole, rest) = (tenths.abs() / 10, tenths.abs() % 10);
    match (whole, rest) {
        (_, 0) => format!("{sign}{whole}"),
        (0, _) => format!("{sign}.{rest}"),
        _ => format!("{sign}{whole}.{rest}"),
    }
}

fn tenths(value: f64) -> String {
    of_tenths(in_tenths(value))
}

fn hundredths(value: f64) -> String {
    let text = format!("{:.2}", value.clamp(-1e6, 1e6));
    text.trim_end_matches('0').trim_end_matches('.').into()
}

/// `text` where markup is read: in an element, or between quotes.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // What no XML may hold.
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c if c.is_control() && !matches!(c, '\n' | '\t') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
