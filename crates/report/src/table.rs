//! Columns of text.

/// Lays out `rows` in columns as wide as their widest cell, two spaces apart. The first column is
/// aligned to the left if `left`, all others to the right.
pub fn columns(rows: &[Vec<String>], left: bool) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|r| r.get(column)).map(|c| c.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if left && column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        out.push(' ');
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_by_characters_not_bytes() {
        let row = |cells: &[&str]| cells.iter().map(ToString::to_string).collect();
        let rows = [row(&["load", "time"]), row(&["x", "8.10 µs"]), row(&["long name", "1.00 ms"])];
        assert_eq!(
            columns(&rows, true),
            " load          time\n x          8.10 µs\n long name  1.00 ms\n"
        );
    }
}
