//! An episode as one line: a part per share, as wide as it is long, but never too narrow to say what
//! it is.

use wakescope_core::units::SpanNs;

/// A part of an episode.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// How long, nanoseconds.
    pub(super) ns: u64,
    /// What it is called.
    pub(super) name: String,
    /// Who it was, shown where there is room; may be empty.
    pub(super) culprit: String,
}

/// Parts that have a name of their own to begin with: far more than any line has room for.
const MOST: usize = 32;
/// The fewest characters of a culprit that are worth showing.
const LEAST_CULPRIT: usize = 6;
/// So many characters of the longest part's culprit come before the names of short parts, as long as
/// there are more than a few.
const ENOUGH_CULPRIT: usize = 24;
const FEW: usize = 3;

/// Draws `parts` in their order, `width` characters wide: `├irq_off 231 uart_drain───┤sched 4┤`.
/// Lengths are in the unit that `whole_ns` is printed in. Parts for whose names there is no room are
/// folded into their neighbours: `irq +2 4.1` is an interrupt and two smaller parts beside it.
pub(super) fn draw(parts: Vec<Part>, whole_ns: u64, width: usize) -> String {
    let unit_ns = unit_of(whole_ns);
    let mut pieces: Vec<Piece> =
        parts.into_iter().map(|part| Piece { ns_of_name: part.ns, part, more: 0 }).collect();
    fold_smallest(&mut pieces);
    let with_edges = |widths: &[usize]| widths.iter().sum::<usize>() + widths.len() + 1;
    while pieces.len() > 1 && with_edges(&least_widths(&pieces, unit_ns)) > width {
        fold_one(&mut pieces);
    }
    if pieces.is_empty() || width < 3 {
        return String::new();
    }
    let widths = widths(&pieces, unit_ns, width - pieces.len() - 1);
    let drawn = pieces.iter().zip(widths).map(|(piece, width)| piece.drawn(unit_ns, width) + "┤");
    "├".to_owned() + &drawn.collect::<String>()
}

/// A part, with those that were folded into it.
#[derive(Clone, Debug)]
struct Piece {
    /// Its length is that of all of them.
    part: Part,
    /// The length of the one that gave its name.
    ns_of_name: u64,
    /// How many others there are.
    more: usize,
}

impl Piece {
    /// The name and the length.
    fn label(&self, unit_ns: u64) -> String {
        let Self { part, more, .. } = self;
        let more = if *more > 0 { format!(" +{more}") } else { String::new() };
        format!("{}{more} {}", part.name, in_unit(part.ns, unit_ns))
    }

    /// Exactly `width` characters, with the culprit if there is room.
    fn drawn(&self, unit_ns: u64, width: usize) -> String {
        let mut text = cut(&self.label(unit_ns), width);
        let room = width.saturating_sub(text.chars().count() + 1);
        let culprit = &self.part.culprit;
        let is_short = culprit.chars().count() <= room;
        if !culprit.is_empty() && (is_short || room >= LEAST_CULPRIT) {
            text = format!("{text} {}", cut(culprit, room));
        }
        format!("{text:─<width$}")
    }

    /// Takes in the next piece. The name is that of the longer one.
    fn take_in(&mut self, next: Self) {
        let ns = self.part.ns.saturating_add(next.part.ns);
        let more = self.more + next.more + 1;
        if next.ns_of_name > self.ns_of_name {
            *self = next;
        }
        self.part.ns = ns;
        self.more = more;
    }
}

/// Folds together what lies between the longest parts, so that any number of them takes little time.
fn fold_smallest(pieces: &mut Vec<Piece>) {
    if pieces.len() <= MOST {
        return;
    }
    let mut lengths: Vec<u64> = pieces.iter().map(|piece| piece.part.ns).collect();
    lengths.sort_unstable_by_key(|&ns| std::cmp::Reverse(ns));
    let (least, mut left) = (lengths[MOST - 1], MOST);
    let mut folded: Vec<Piece> = Vec::new();
    let mut is_own = true;
    for piece in pieces.drain(..) {
        let was_own = std::mem::replace(&mut is_own, piece.part.ns >= least && left > 0);
        left -= usize::from(is_own);
        match folded.last_mut() {
            Some(last) if !was_own && !is_own => last.take_in(piece),
            _ => folded.push(piece),
        }
    }
    *pieces = folded;
}

/// Folds those two neighbours together that are the shortest, which spares the long ones. There must
/// be two.
fn fold_one(pieces: &mut Vec<Piece>) {
    let both = |at: usize| u128::from(pieces[at].part.ns) + u128::from(pieces[at + 1].part.ns);
    let Some(first) = (0..pieces.len().saturating_sub(1)).min_by_key(|&at| both(at)) else {
        return;
    };
    let next = pieces.remove(first + 1);
    pieces[first].take_in(next);
}

/// What each piece takes at least: its label, and for the longest of many who it was too, since that
/// is what the bar is looked at for.
fn least_widths(pieces: &[Piece], unit_ns: u64) -> Vec<usize> {
    let mut widths: Vec<usize> = pieces.iter().map(|p| p.label(unit_ns).chars().count()).collect();
    if pieces.len() > FEW {
        if let Some(longest) = (0..pieces.len()).max_by_key(|&at| pieces[at].part.ns) {
            let culprit = pieces[longest].part.culprit.chars().count();
            widths[longest] += if culprit > 0 { 1 + culprit.min(ENOUGH_CULPRIT) } else { 0 };
        }
    }
    widths
}

/// Divides `room` among the pieces by their lengths, and gives each at least what its label takes.
fn widths(pieces: &[Piece], unit_ns: u64, room: usize) -> Vec<usize> {
    let least = least_widths(pieces, unit_ns);
    let ns = |at: usize| u128::from(pieces[at].part.ns);
    let mut fixed = vec![false; pieces.len()];
    loop {
        let free: Vec<usize> = (0..pieces.len()).filter(|&at| !fixed[at]).collect();
        let taken: usize = (0..pieces.len()).filter(|&at| fixed[at]).map(|at| least[at]).sum();
        let left = room.saturating_sub(taken);
        let whole: u128 = free.iter().map(|&at| ns(at)).sum::<u128>().max(1);
        let share = |at: usize| usize::try_from(ns(at) * left as u128 / whole).unwrap_or(0);
        let narrow: Vec<usize> = free.iter().copied().filter(|&at| share(at) < least[at]).collect();
        if narrow.is_empty() || free.len() == 1 {
            let mut widths: Vec<usize> =
                (0..pieces.len()).map(|at| if fixed[at] { least[at] } else { share(at) }).collect();
            // What rounding left over goes to the longest.
            if let Some(longest) = (0..pieces.len()).max_by_key(|&at| ns(at)) {
                let used: usize = widths.iter().sum();
                widths[longest] += room.saturating_sub(used);
            }
            return widths;
        }
        narrow.into_iter().for_each(|at| fixed[at] = true);
    }
}

/// The length of the unit that a span is printed in.
fn unit_of(ns: u64) -> u64 {
    match SpanNs(ns).to_string().split_once(' ') {
        Some((_, "ns")) => 1,
        Some((_, "µs")) => 1_000,
        Some((_, "ms")) => 1_000_000,
        Some((_, "min")) => 60_000_000_000,
        Some((_, "h")) => 3_600_000_000_000,
        Some((_, "d")) => 86_400_000_000_000,
        _ => 1_000_000_000,
    }
}

/// A length in a unit, short: `231`, `3.1`, `0.42`.
fn in_unit(ns: u64, unit_ns: u64) -> String {
    let value = ns as f64 / unit_ns as f64;
    match value {
        _ if unit_ns == 1 || value >= 9.95 => format!("{value:.0}"),
        v if v >= 0.995 => format!("{v:.1}"),
        v if v >= 0.005 => format!("{v:.2}"),
        _ => "<0.01".into(),
    }
}

/// `text` in at most `width` characters.
fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.into();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    if width > 0 {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn part(name: &str, ns: u64, culprit: &str) -> Part {
        Part { ns, name: name.into(), culprit: culprit.into() }
    }

    #[track_caller]
    fn check(parts: &[(&str, u64, &str)], width: usize, want: &str) {
        let whole = parts.iter().map(|p| p.1).sum();
        let parts = parts.iter().map(|&(name, ns, culprit)| part(name, ns, culprit)).collect();
        assert_eq!(draw(parts, whole, width), want);
    }

    #[test]
    fn parts_are_as_wide_as_they_are_long() {
        let parts = [
            ("irq_off", 231_000, "uart_drain_fifo"),
            ("irq", 3_100, "local_timer"),
            ("sched", 3_900, ""),
        ];
        check(&parts, 60, "├irq_off 231 uart_drain_fifo─────────────┤irq 3.1┤sched 3.9┤");
        check(&parts, 40, "├irq_off 231 uart_dr…┤irq 3.1┤sched 3.9┤");
        check(&parts, 32, "├irq_off 231─┤irq 3.1┤sched 3.9┤");
        check(
            &[("a", 1_000, ""), ("b", 1_000, ""), ("c", 2_000, "")],
            25,
            "├a 1.0┤b 1.0┤c 2.0──────┤",
        );
    }

    #[test]
    fn what_has_no_room_is_folded_into_its_neighbour() {
        let parts =
            [("irq_off", 231_000, "uart_drain_fifo"), ("irq", 3_100, ""), ("sched", 3_900, "")];
        check(&parts, 28, "├irq_off 231──┤sched +1 7.0┤");
        check(&parts, 16, "├irq_off +2 238┤");
        check(&parts, 8, "├irq_o…┤");
        // Of many parts the longest keeps its culprit, at the cost of the shortest ones.
        let many = [
            ("irq_off", 900, ""),
            ("irq", 2_000, "local_timer"),
            ("no_preemption_point", 391_000, "shmem_undo_range"),
            ("higher_priority", 14_000, ""),
            ("sched", 4_000, ""),
        ];
        check(
            &many,
            80,
            "├irq +1 2.9┤no_preemption_point 391 shmem_undo_range─────┤higher_priority +1 18┤",
        );
        check(&parts, 2, "");
        check(&[], 60, "");
    }

    #[test]
    fn lengths_are_in_one_unit() {
        check(
            &[("a", 4_000_000, ""), ("b", 310_000, ""), ("c", 100, "")],
            30,
            "├a 4.0────────┤b 0.31┤c <0.01┤",
        );
        check(&[("a", 90_000_000_000, ""), ("b", 30_000_000_000, "")], 20, "├a 1.5──────┤b 0.50┤");
        check(&[("a", 400, ""), ("b", 31, "")], 20, "├a 400────────┤b 31┤");
    }

    proptest! {
        #[test]
        fn a_bar_has_its_width_and_keeps_the_order(
            lengths in prop::collection::vec(prop_oneof![1_u64..1_000_000, any::<u64>()], 1..200),
            width in 3_usize..100,
        ) {
            // Names that are numbers tell which part is where.
            let parts: Vec<Part> =
                lengths.iter().enumerate().map(|(at, &ns)| part(&format!("p{at}"), ns, "x-x")).collect();
            let bar = draw(parts, lengths[0], width);
            prop_assert_eq!(bar.chars().count(), width, "{}", bar);
            let names: Vec<usize> = bar
                .split(['├', '┤'])
                .filter(|piece| !piece.contains('…'))
                .filter_map(|piece| piece.split(' ').next()?.strip_prefix('p')?.parse().ok())
                .collect();
            prop_assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "{}", bar);
            let more = bar.split(' ').filter_map(|word| word.strip_prefix('+')?.parse::<usize>().ok());
            let drawn = names.len() + more.sum::<usize>();
            prop_assert!(bar.contains('…') || drawn == lengths.len(), "{}: {} drawn", bar, drawn);
        }
    }
}
