//! A flame graph: where the time of long sections went, by who called whom.

use std::fmt::Write;

use wakescope_core::scope::flame::{Call, Flame};
use wakescope_core::units::SpanNs;

use super::NAME;
use crate::picture::escaped;
use crate::style::clean;

/// The picture's width and the height of a row, in its own units.
const WIDTH: f64 = 960.0;
const ROW: f64 = 18.0;

/// The width of a letter, about.
const LETTER: f64 = 6.6;

/// Functions that are narrower have no place.
const NARROWEST: f64 = 0.5;

/// The deepest call that is drawn.
const DEEPEST: usize = 64;

/// The picture as SVG: callers above those that they call, each as wide as its time.
pub(super) fn svg(flame: &Flame) -> String {
    let boxes = boxes(flame);
    let rows = boxes.iter().map(|of| of.row + 1).max().unwrap_or(0);
    let height = rows as f64 * ROW;
    let mut out = format!(
        "<svg class=\"flame\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" role=\"img\" \
         font-family=\"monospace\" font-size=\"11\">\n"
    );
    for of in &boxes {
        let Box { call, row, left, width } = of;
        let name = clean(name(call), NAME);
        let share = 100.0 * call.total_ns as f64 / flame.total_ns.max(1) as f64;
        let told = format!(
            "{name}: {} with all that it called ({share:.1} %), {} itself",
            SpanNs(call.total_ns),
            SpanNs(call.self_ns)
        );
        let top = *row as f64 * ROW;
        let fits = |(letters, _): &(u32, char)| f64::from(*letters) * LETTER < width - 4.0;
        let label: String = (1..).zip(name.chars()).take_while(fits).map(|(_, c)| c).collect();
        let label = if label.chars().count() < 3 { "" } else { &label };
        let _ = writeln!(
            out,
            "<g><title>{}</title><rect x=\"{left:.2}\" y=\"{top}\" width=\"{width:.2}\" height=\"{}\" \
             fill=\"hsl({} 65% 68%)\" stroke=\"#fff\" stroke-width=\"0.5\"/>\
             <text x=\"{:.2}\" y=\"{}\" fill=\"#111\">{}</text></g>",
            escaped(&told),
            ROW - 1.0,
            hue(&name),
            left + 2.0,
            top + 13.0,
            escaped(label),
        );
    }
    out + "</svg>\n"
}

/// A call in its place.
struct Box<'a> {
    call: &'a Call,
    row: usize,
    left: f64,
    width: f64,
}

fn boxes(flame: &Flame) -> Vec<Box<'_>> {
    let scale = WIDTH / flame.total_ns.max(1) as f64;
    let mut boxes: Vec<Box> = Vec::new();
    // Of each call, its row and where the next one that it calls begins.
    let mut places: Vec<Option<(usize, f64)>> = Vec::new();
    let mut outermost = 0.0;
    for call in &flame.calls {
        let width = call.total_ns as f64 * scale;
        let caller = call.caller.map(|caller| caller as usize);
        let place = match caller {
            None => Some((0, &mut outermost)),
            Some(caller) => match places.get_mut(caller) {
                Some(Some((row, next))) if *row + 1 < DEEPEST => Some((*row + 1, next)),
                _ => None,
            },
        };
        let placed = place.filter(|_| width >= NARROWEST).map(|(row, next)| {
            let left = *next;
            *next += width;
            (row, left)
        });
        boxes.extend(placed.map(|(row, left)| Box { call, row, left, width }));
        places.push(placed);
    }
    boxes
}

pub(super) fn name(call: &Call) -> &str {
    call.function.as_deref().unwrap_or("code of modules")
}

/// The same function has the same colour everywhere, from yellow to red.
fn hue(name: &str) -> u32 {
    name.bytes().fold(7_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into())) % 55
}

#[cfg(test)]
mod tests {
    use wakescope_core::scope::Kind;

    use super::*;

    fn call(function: &str, caller: Option<u32>, self_ns: u64, total_ns: u64) -> Call {
        Call { function: Some(function.into()), caller, self_ns, total_ns }
    }

    #[test]
    fn calls_stand_below_their_callers_and_are_as_wide_as_their_time() {
        let calls = vec![
            call("free_bulk", None, 100, 1_000),
            call("free_one", Some(0), 600, 600),
            call("list_del", Some(0), 300, 300),
            call("<b>", None, 1_000, 1_000),
            call("tiny", Some(3), 1, 1),
        ];
        let flame = Flame { kind: Kind::IrqsOff, sections: 3, total_ns: 2_000, calls };
        let places: Vec<String> = boxes(&flame)
            .iter()
            .map(|of| format!("{} {:.0} {:.0}", of.row, of.left, of.width))
            .collect();
        assert_eq!(places, ["0 0 480", "1 0 288", "1 288 144", "0 480 480"]);
        let svg = svg(&flame);
        assert!(
            svg.contains("free_one: 600 ns with all that it called (30.0 %), 600 ns itself"),
            "{svg}"
        );
        assert!(!svg.contains("<b>") && svg.contains("&lt;b&gt;"), "{svg}");
    }

    #[test]
    fn callers_that_are_not_there_place_nothing() {
        let calls = vec![call("one", Some(7), 5, 5), call("two", Some(1), 5, 5)];
        let flame = Flame { kind: Kind::IrqsOff, sections: 1, total_ns: 5, calls };
        assert!(boxes(&flame).is_empty());
    }
}
