//! How wide a text becomes.

use super::font;

/// The width of a text of some size. Who shows an SVG may use another font: this is a little more than
/// that of the usual ones.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().map(font::advance).sum::<f64>() * size * 1.03
}

/// As much of `text` as has room, with an ellipsis for the rest.
pub(crate) fn fitting(text: &str, size: f64, room: f64) -> String {
    if text_width(text, size) <= room {
        return text.into();
    }
    let mut kept = String::new();
    for c in text.chars() {
        kept.push(c);
        if text_width(&kept, size) + text_width("…", size) > room {
            kept.pop();
            break;
        }
    }
    let kept = kept.trim_end();
    if kept.is_empty() { String::new() } else { format!("{kept}…") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_fits() {
        assert_eq!(fitting("short", 12.0, 100.0), "short");
        for room in [0.0, 5.0, 20.0, 60.0] {
            let cut = fitting("a text that is too long for its room", 12.0, room);
            assert!(text_width(&cut, 12.0) <= room, "{cut}");
        }
    }
}
