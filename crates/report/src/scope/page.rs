//! The sections of a guest's kernel as a page: all that the text says, and flame graphs.

use crate::style::clean;
use wakescope_core::run::TimeDomain;
use wakescope_core::scope::Scope;
use wakescope_core::scope::flame::Flame;
use wakescope_core::units::{SpanNs, counted};

use super::{flame, name as kind_name};
use crate::html::element::{Column, folded, headline, name, paragraph, section, table, text};
use crate::html::{episode, still_page};

mod compared;
mod rows;

/// Functions in the table of each graph.
const FUNCTIONS: usize = 40;

/// The page: each table has at most `most` rows, the longest.
pub fn page(scope: &Scope, most: usize) -> String {
    let warnings = super::warnings(scope);
    let warnings: String =
        warnings.iter().map(|warning| paragraph("warning", &text(warning))).collect();
    let header = [
        headline(&super::headline(scope)),
        paragraph("lead", &text(&super::basis(scope))),
        warnings,
    ];
    let body = [
        format!("<header>\n{}</header>\n<main>\n", header.concat()),
        section("sections", "Sections", &rows::sections(scope, most)),
        scope.flames.iter().map(graph).collect(),
        section(
            "locks",
            "Locks",
            &scope.locks.as_ref().map_or_else(String::new, |locks| rows::locks(locks, most)),
        ),
        section("episodes", "Latest wakeups", &episodes(scope)),
        section("compared", "What explain says, against what was seen", &compared::both(scope)),
        "</main>\n".into(),
    ];
    still_page(&format!("Sections of {}", clean(&scope.label, 200)), &body.concat())
}

/// The latest wakeups, each nanosecond as the emulator saw it, and which locks were held meanwhile.
fn episodes(scope: &Scope) -> String {
    let told = (1..).zip(&scope.episodes);
    let told = told.map(|(rank, of)| episode::tell("", TimeDomain::Virtual, rank, of));
    told.collect::<String>()
        + &scope.locks.as_ref().map_or_else(String::new, rows::locks_of_episodes)
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
    use wakescope_core::distribution::Distribution;
    use wakescope_core::explain::{Answer, Cause, Culprit, Function, Share};
    use wakescope_core::run::Episode;
    use wakescope_core::scope::explained::Explained;
    use wakescope_core::scope::first_blame::{FirstBlame, OtherBlame};
    use wakescope_core::scope::flame::Call;
    use wakescope_core::scope::locks::{EpisodeLocks, LockInEpisode, LockKind, LockRow, Locks};
    use wakescope_core::scope::{Kind, Place, Row, Spent, TimeIn};

    use super::*;

    fn place_of(function: &str) -> Place {
        Place { function: Some(function.into()), caller: Some("ca<ll>er".into()) }
    }

    /// One of all that a page can show, with names that mean something in HTML.
    fn scope() -> Scope {
        let call =
            Call { function: Some("free<bulk>".into()), caller: None, self_ns: 9, total_ns: 9 };
        let row = Row {
            kind: Kind::PreemptOff,
            began: place_of("be<gan>"),
            ended: place_of("ended"),
            lengths: Distribution::of([7, 3_000]),
            spent: Some(Spent {
                sections: 1,
                total_ns: 3_000,
                functions: vec![TimeIn { function: Some("sp<ent>".into()), ns: 3_000 }],
            }),
        };
        let lock = LockRow {
            kind: LockKind::Mutex,
            lock: Some("a_<lock>".into()),
            locks: 1,
            taken: place_of("mutex_<lock>"),
            released: place_of("mutex_unlock"),
            held: Distribution::of([40_000]),
            waited: Distribution::of([30]),
            waited_for: None,
            sections: Vec::new(),
        };
        let meanwhile = LockInEpisode {
            kind: LockKind::Mutex,
            lock: None,
            taken: place_of("ta<ken>"),
            pid: 7,
            ns: 5,
            held_ns: 40_000,
        };
        let in_episodes = [vec![meanwhile], vec![]];
        let in_episodes = in_episodes.map(|locks| EpisodeLocks { expiry_ns: 5, locks });
        let locks = Locks { rows: vec![lock], in_episodes: in_episodes.into(), ..Locks::default() };
        let said = Answer { cause: Cause::IrqOff, ..Answer::default() };
        let culprit = Culprit::Function(Function { name: "se<en>".into(), module: None });
        let other = OtherBlame {
            seen: Answer { culprit, ..said.clone() },
            said,
            expiry_ns: 5,
            wakeup_latency_ns: 11_000,
            said_ns: 4_100,
            seen_ns: 4_200,
        };
        Scope {
            label: "6.1-cloud <full> find seed 1".into(),
            rows: vec![row.clone(), Row { began: place_of("second"), ..row }],
            flames: vec![Flame {
                kind: Kind::IrqsOff,
                sections: 1,
                total_ns: 9,
                calls: vec![call],
            }],
            locks: Some(locks),
            explained: Some(Explained { late: 4, compared: 3, ..Explained::default() }),
            first_blame: Some(FirstBlame {
                wakeups: 4,
                others: vec![other],
                ..FirstBlame::default()
            }),
            episodes: vec![Episode {
                wakeup_latency_ns: 900,
                blame: vec![Share { cause: Cause::IrqOff, ns: 900, ..Share::default() }],
                ..Episode::default()
            }],
            sections_lost: 3,
            ..Scope::default()
        }
    }

    #[test]
    fn a_page_has_all_that_was_seen_and_loads_nothing() {
        let page = page(&scope(), 1);
        for part in [
            "default-src 'none'",
            "none with interrupts off",
            "&lt;full&gt;",
            "Preemption off: 4 sections, 6.01 µs in all, in virtual time",
            "be&lt;gan&gt;, called by ca&lt;ll&gt;er",
            "100 % sp&lt;ent&gt;",
            "1 more row",
            "Interrupts off: 0 sections",
            "free&lt;bulk&gt;: 9 ns",
            "Locks that sleep: held 1 time, 40.0 µs in all, in virtual time",
            "mutex, a_&lt;lock&gt;",
            "had to be waited for 1 time",
            "#1 0 virtual ns in, 900 virtual ns late",
            "5 ns of 40.0 µs: mutex, ta&lt;ken&gt;",
            "<li>none</li>",
            "3 of 4 late wakeups compared",
            "4 latest wakeups compared",
            "seen were 4.20 µs interrupts off in se&lt;en&gt;",
            "3 sections are in no row",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        for foreign in [
            "<script", "http://", "https://", "<bulk>", "<full>", "<gan>", "<ll>", "<ent>",
            "<lock>", "<ken>", "<en>", "src=", "<pre>",
        ] {
            assert!(!page.contains(foreign), "{foreign}: {page}");
        }
    }

    #[test]
    fn what_was_not_looked_for_has_no_part_of_the_page() {
        let page = page(&Scope { label: "6.\u{1b}1".into(), ..Scope::default() }, 3);
        assert!(!page.contains('\u{1b}'), "{page}");
        for part in ["id=\"locks\"", "id=\"episodes\"", "id=\"compared\"", "<table"] {
            assert!(!page.contains(part), "{part}: {page}");
        }
        assert!(page.contains("Preemption off: 0 sections, 0 ns in all."));
    }
}
