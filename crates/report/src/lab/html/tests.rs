use wakescope_core::explain::{Cause, Culprit, Evidence, Function, Share};
use wakescope_core::lab::{Cell, CellScope, CellSections, Lab, SCHEMA, Status};
use wakescope_core::preemption::Model;
use wakescope_core::scope::{Kind, Place};

use super::*;

fn cell(kernel: &str, asked: &str, load: &str, max_us: u64) -> Cell {
    Cell {
        kernel: kernel.into(),
        asked: asked.into(),
        load: load.into(),
        seed: 1,
        status: Status::Ok,
        max_ns: Some(max_us * 1_000),
        count: 1_000,
        ..Cell::default()
    }
}

fn blamed(function: &str, us: u64) -> Option<Share> {
    Some(Share {
        cause: Cause::IrqOff,
        ns: us * 1_000,
        culprit: Culprit::Function(Function { name: function.into(), module: None }),
        evidence: Evidence::Edge,
        ..Share::default()
    })
}

fn seen(us: u64) -> Option<CellScope> {
    let place = |function: &str| Place { function: Some(function.into()), caller: None };
    let section = CellSections {
        kind: Kind::IrqsOff,
        began: place("lock"),
        ended: place("unlock"),
        count: 3,
        longest_ns: us * 1_000,
        total_ns: us * 2_000,
    };
    Some(CellScope { failed: String::new(), sections: vec![section] })
}

/// Two kernels under two loads, of which one does not know a model.
fn lab() -> Lab {
    let mut ignored = cell("7.2", "none", "find", 1);
    (ignored.status, ignored.model, ignored.max_ns) = (Status::Ignored, Some(Model::Full), None);
    let cells = vec![
        Cell {
            culprit: blamed("free_pages", 3_700),
            scope: seen(3_730),
            ..cell("6.1", "full", "file-move", 3_750)
        },
        Cell { culprit: blamed("walk<tree>", 90), ..cell("6.1", "full", "find", 100) },
        cell("6.1", "none", "find", 310),
        cell("7.2", "full", "find", 12),
        ignored,
    ];
    Lab { schema: SCHEMA.into(), plan: "atlas".into(), cells, ..Lab::default() }
}

/// The part of a page from `from` to `to`.
fn part<'a>(html: &'a str, from: &str, to: &str) -> &'a str {
    let html = html.split_once(from).unwrap_or_else(|| panic!("no {from}: {html}")).1;
    html.split_once(to).unwrap_or_else(|| panic!("no {to}")).0
}

#[test]
fn each_figure_of_the_map_leads_to_its_cause() {
    let html = results(&lab(), false);
    let map = part(&html, "<div class=\"heats\">", "</section>");
    let figures: Vec<&str> =
        map.split("<td").skip(1).map(|td| td.split_once("</td>").unwrap().0).collect();
    assert_eq!(figures.len(), 5, "a place of a model that a load has not is in no map: {map}");
    for (figure, heat, anchor) in
        [("3750", 5, "cause-1"), ("310", 3, "cause-2"), ("100", 2, "cause-3"), ("12", 0, "cause-4")]
    {
        let td = figures.iter().find(|td| td.contains(&format!(">{figure}</a>")));
        let td = td.unwrap_or_else(|| panic!("no {figure}: {map}"));
        assert!(td.starts_with(&format!(" class=\"h{heat}\">")), "{td}");
        assert!(td.contains(&format!("href=\"#{anchor}\"")), "{td}");
        assert_eq!(html.matches(&format!("id=\"{anchor}\"")).count(), 1);
    }
    assert!(map.contains("<td class=\"without\">runs full¹</td>"), "{map}");
    // On a narrow screen a map is moved, not the page.
    let boxes = map.matches("<div class=\"scroll\"><table class=\"heat\">").count();
    assert_eq!((boxes > 0, boxes), (true, map.matches("<table").count()), "{map}");
    assert!(map.contains(
        "6.1/full, find: 100 virtual µs late, 90.0 virtual µs interrupts off in walk&lt;tree&gt;"
    ));
}

#[test]
fn causes_name_the_share_the_sections_or_what_is_not_known() {
    let html = results(&lab(), false);
    let causes = part(&html, "id=\"causes\"", "</section>");
    let rows: Vec<&str> = causes.split("<tr>").skip(2).collect();
    for (row, parts) in [
        (
            0,
            &["3.70 virtual ms interrupts off in free_pages", "3.73 virtual ms, lock … unlock"][..],
        ),
        (1, &["not explained", "not looked into"]),
        (
            2,
            &[
                "walk&lt;tree&gt;",
                "looked into <a href=\"#cause-1\">under <bdi>file-move</bdi></a>",
            ],
        ),
        (3, &["not explained", "not looked into"]),
    ] {
        for part in parts {
            assert!(rows[row].contains(part), "row {row} lacks {part}: {}", rows[row]);
        }
    }
    assert!(!html.contains("id=\"culprits\"") && !html.contains("id=\"sections\""), "said twice");
}

#[test]
fn a_map_without_causes_says_how_to_get_them() {
    let mut lab = lab();
    lab.cells.iter_mut().for_each(|cell| (cell.culprit, cell.scope) = (None, None));
    let html = results(&lab, true);
    assert!(html.contains("--explain and --scope find them"), "{html}");
    assert!(!html.contains("href=\"#cause"), "a link to nothing");
    // One figure is no map.
    lab.cells.truncate(1);
    assert!(!results(&lab, true).contains("id=\"heat\""));
}

#[test]
fn a_page_without_curves_answers_by_the_record() {
    let html = answer(&lab(), &RunSet::default());
    let want = "Largest wakeup latency of each cell: from 12.0\u{a0}virtual µs (7.2/full, find) to \
        3.75\u{a0}virtual ms (6.1/full, file-move).";
    assert!(html.replace(' ', "\u{a0}").contains(&want.replace(' ', "\u{a0}")), "{html}");
    let page = crate::html::lab_page(&lab(), &RunSet::default());
    assert!(page.contains("<title>wakescope lab: atlas</title>"));
    assert!(
        page.contains("Curves of single runs are left out") && !page.contains("id=\"exceedance\"")
    );
}
