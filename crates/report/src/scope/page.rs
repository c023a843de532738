//! The sections of a guest's kernel as a page: flame graphs, and all that the text says.

use wakescope_core::scope::Scope;
use wakescope_core::scope::flame::Flame;
use wakescope_core::units::{SpanNs, counted};

use super::{flame, name as kind_name};
use crate::html::element::{Column, folded, headline, name, paragraph, section, table, text};
use crate::html::still_page;
use crate::style::Style;

/// Functions in the table of each graph.
const FUNCTIONS: usize = 40;

/// The page; of each kind of section, the text has the `most` longest rows.
pub fn page(scope: &Scope, most: usize) -> String {
    let said = super::text(scope, most, Style::default());
    let (first, rest) = said.split_once('\n').unwrap_or((&said, ""));
    let flames: String = scope.flames.iter().map(graph).collect();
    let body = [
        format!(
            "<header>\n{}{}</header>\n<main>\n",
            headline(first),
            paragraph("lead", &name(&scope.label, 200))
        ),
        flames,
        section("text", "Sections and latest wakeups", &format!("<pre>{}</pre>\n", text(rest))),
        "</main>\n".into(),
    ];
    still_page(&format!("Sections of {}", scope.label), &body.concat())
}

/// A graph with its functions as a table.
fn graph(flame: &Flame) -> String {
    let kind = kind_name(flame.kind);
    let lead = format!(
        "{} with {kind}, {} together. The width of a function is its time with all that it called; \
         callers stand above. Point at one for its figures.",
        counted(flame.sections, "long section"),
        SpanNs(flame.total_ns),
    );
    let head = [("function", Column::Words), ("itself", Column::Number), ("share", Column::Number)];
    let mut own: std::collections::BTreeMap<&str, u64> = Default::default();
    for call in &flame.calls {
        *own.entry(flame::name(call)).or_default() += call.self_ns;
    }
    let mut own: Vec<(&str, u64)> = own.into_iter().filter(|(_, ns)| *ns > 0).collect();
    own.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let row = |(function, ns): &(&str, u64)| {
        let share = 100.0 * *ns as f64 / flame.total_ns.max(1) as f64;
        vec![name(function, super::NAME), text(&SpanNs(*ns).to_string()), format!("{share:.1} %")]
    };
    let rows: Vec<Vec<String>> = own.iter().take(FUNCTIONS).map(row).collect();
    let functions = table("Functions by their own time", &head, &rows);
    let html = paragraph("lead", &text(&lead))
        + &format!(
            "<figure class=\"bars\"><div class=\"scroll\">{}</div></figure>\n",
            flame::svg(flame)
        )
        + &folded("The same as a table", &functions);
    let id = format!("flame-{}", kind.replace(' ', "-"));
    section(&id, &format!("Where the time went with {kind}"), &html)
}

#[cfg(test)]
mod tests {
    use wakescope_core::scope::Kind;
    use wakescope_core::scope::flame::Call;

    use super::*;

    #[test]
    fn a_page_holds_its_graphs_and_loads_nothing() {
        let call =
            Call { function: Some("free<bulk>".into()), caller: None, self_ns: 9, total_ns: 9 };
        let flame = Flame { kind: Kind::IrqsOff, sections: 1, total_ns: 9, calls: vec![call] };
        let label = "6.1-cloud <full> find seed 1".to_owned();
        let scope = Scope { label, flames: vec![flame], ..Scope::default() };
        let page = page(&scope, 3);
        for part in [
            "free&lt;bulk&gt;: 9 ns",
            "default-src 'none'",
            "none with interrupts off",
            "&lt;full&gt;",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        for foreign in ["<script", "http://", "https://", "free<bulk>", "<full>", "src="] {
            assert!(!page.contains(foreign), "{foreign}: {page}");
        }
    }
}
