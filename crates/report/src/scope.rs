//! The sections of a guest's kernel as a table, longest first.

use std::fmt::Write;

use wakescope_core::distribution::Distribution;
use wakescope_core::percentile::Percentile;
use wakescope_core::run::{Episode, TimeDomain};
use wakescope_core::scope::{Kind, Place, Row, Scope, Spent, TimeIn};
use wakescope_core::units::{SpanNs, counted, grouped};

use crate::explain::blocks;
use crate::findings::wrapped;
use crate::progress::span_or_dash;
use crate::style::{Style, clean};
use crate::table::columns;

mod explained;
mod first_blame;
mod flame;
mod locks;
mod page;
pub mod trace;

pub use page::page;

/// The widest line of a sentence, in characters.
const WIDTH: usize = 100;

/// The longest name of a function that is shown.
const NAME: usize = 80;

/// Functions of a row that are named.
const FUNCTIONS: usize = 4;

/// The sections as text: of each kind, the `most` longest rows.
pub fn text(scope: &Scope, most: usize, style: Style) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", style.strong(&headline(scope)));
    for kind in Kind::ALL {
        let _ = write!(out, "\n{}", table(scope, kind, most, style));
    }
    if let Some(of_locks) = &scope.locks {
        let _ = write!(out, "\n{}", locks::tables(of_locks, most, style));
    }
    if let Some(explained) = &scope.explained {
        let _ = write!(out, "\n{}", explained::table(explained, style));
    }
    if !scope.episodes.is_empty() {
        let _ = write!(out, "\n{}", episodes(scope, style));
    }
    if let Some(all) = scope.locks.as_ref().map(|locks| &locks.in_episodes) {
        if !all.is_empty() {
            let _ = write!(out, "\n{}", locks::episodes(all, style));
        }
    }
    if let Some(first) = &scope.first_blame {
        let _ = write!(out, "\n{}", first_blame::text(first, style));
    }
    for warning in warnings(scope) {
        let _ = writeln!(out, "\n {} {}", style.warn("!"), wrapped(&warning, WIDTH - 4, "   "));
    }
    let _ = writeln!(out, "\n {}", style.faint(&wrapped(&basis(scope), WIDTH - 2, " ")));
    out
}

fn headline(scope: &Scope) -> String {
    let longest = |kind| rows(scope, kind).filter_map(|row| row.lengths.max_ns).max();
    let parts = Kind::ALL.map(|kind| match longest(kind) {
        Some(ns) => format!("with {} {}", name(kind), SpanNs(ns)),
        None => format!("none with {}", name(kind)),
    });
    format!("Longest sections, in virtual time: {}.", parts.join(", "))
}

/// What all figures rest on.
fn basis(scope: &Scope) -> String {
    format!(
        "{}, {} of virtual time. The guest's result is the stored one, to the bit. Lengths are instructions \
         between both ends; the guest's clock agrees to {}. Virtual time counts instructions: the \
         order of sections is meaningful, absolute lengths are not.",
        clean(&scope.label, 200),
        SpanNs(scope.window_ns),
        SpanNs(scope.drift_ns),
    )
}

/// `interrupts off: 1,002 sections, 1.51 ms in all`
fn title(scope: &Scope, kind: Kind) -> String {
    let sections = rows(scope, kind).fold(0_u64, |sum, row| sum.saturating_add(row.lengths.count));
    let total = rows(scope, kind).fold(0_u64, |sum, row| sum.saturating_add(row.lengths.sum_ns));
    format!("{}: {}, {} in all", name(kind), counted(sections, "section"), SpanNs(total))
}

/// The latest wakeups, as the emulator saw them.
fn episodes(scope: &Scope, style: Style) -> String {
    let title = " the latest wakeups, each nanosecond as the emulator saw it:";
    let ranked: Vec<(usize, &Episode)> = (1..).zip(&scope.episodes).collect();
    format!("{}\n{}", style.strong(title), blocks(&ranked, TimeDomain::Virtual, style))
}

fn rows(scope: &Scope, kind: Kind) -> impl Iterator<Item = &Row> {
    scope.rows.iter().filter(move |row| row.kind == kind)
}

pub(crate) fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::IrqsOff => "interrupts off",
        Kind::PreemptOff => "preemption off",
    }
}

fn table(scope: &Scope, kind: Kind, most: usize, style: Style) -> String {
    let all: Vec<&Row> = rows(scope, kind).collect();
    let mut out = format!("{}\n", style.strong(&format!(" {}", title(scope, kind))));
    if all.is_empty() {
        return out;
    }
    let head = ["longest", "p99", "count", "total"].map(String::from).to_vec();
    let figures: Vec<Vec<String>> =
        [head].into_iter().chain(all.iter().take(most).map(|row| figures(&row.lengths))).collect();
    let laid_out = columns(&figures, false);
    let mut lines = laid_out.lines();
    if let Some(head) = lines.next() {
        let _ = writeln!(out, "{}", style.faint(&format!("{head}  began in … ended in")));
    }
    let width = figures_width(&laid_out);
    for (line, row) in lines.zip(&all) {
        let _ = writeln!(out, "{line:<width$}  {}", place(&row.began));
        let _ = writeln!(out, "{:width$}  … {}", "", place(&row.ended));
        if let Some(spent) = &row.spent {
            let _ = writeln!(out, "{:width$}  {}", "", in_functions(spent));
        }
    }
    if let Some(more @ 1..) = all.len().checked_sub(most) {
        let hidden = format!(" {}: --rows N, --json", counted(more as u64, "more row"));
        let _ = writeln!(out, "{}", style.faint(&hidden));
    }
    out
}

/// `3.74 ms: 52 % __free_one_page, 31 % free_pcppages_bulk, 17 % 5 others`
fn in_functions(spent: &Spent) -> String {
    let share = |ns: u64| format!("{:.0} %", ns as f64 / spent.total_ns.max(1) as f64 * 100.0);
    let named = |time: &TimeIn| {
        let name = time.function.as_deref().unwrap_or("code of modules");
        format!("{} {}", share(time.ns), clean(name, NAME))
    };
    let (shown, others) = spent.functions.split_at(FUNCTIONS.min(spent.functions.len()));
    let mut parts: Vec<String> = shown.iter().map(named).collect();
    if !others.is_empty() {
        let ns = others.iter().fold(0_u64, |sum, time| sum.saturating_add(time.ns));
        parts.push(format!("{} {}", share(ns), counted(others.len() as u64, "other")));
    }
    format!("{}: {}", SpanNs(spent.total_ns), parts.join(", "))
}

fn figures_width(laid_out: &str) -> usize {
    laid_out.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

/// The longest, p99, count and sum of the lengths of a row.
fn figures(lengths: &Distribution) -> Vec<String> {
    vec![
        span_or_dash(lengths.max_ns),
        span_or_dash(lengths.percentile(Percentile::whole(99))),
        grouped(lengths.count),
        SpanNs(lengths.sum_ns).to_string(),
    ]
}

/// `_raw_spin_lock_irqsave, called by crng_make_state`
pub(crate) fn place(place: &Place) -> String {
    let function = place.function.as_deref().unwrap_or("a module");
    let function = clean(function, NAME);
    match &place.caller {
        Some(caller) => format!("{function}, called by {}", clean(caller, NAME)),
        None => function,
    }
}

/// What keeps the table from being whole.
fn warnings(scope: &Scope) -> Vec<String> {
    let mut all = Vec::new();
    if !scope.has_callers {
        all.push(
            "Callers are not known: the kernel has no unwind tables (CONFIG_UNWINDER_ORC), or has \
             them in an unknown form."
                .into(),
        );
    }
    if scope.preempt_count_partial {
        all.push(
            "The kernel does not count code that turns preemption off (CONFIG_PREEMPT_COUNT is not \
             set): of preemption off, these are softirqs and interrupts alone."
                .into(),
        );
    }
    if scope.sections_lost > 0 {
        let lost = counted(scope.sections_lost, "section");
        all.push(format!("{lost} are in no row: there are too many different ones."));
    }
    if let Some(why) = &scope.not_compared {
        all.push(format!(
            "The explanation is not compared with the sections: {}.",
            clean(why, 300)
        ));
    }
    if let Some(why) = &scope.no_episodes {
        all.push(format!("The latest wakeups are not explained: {}.", clean(why, 300)));
    }
    if !scope.sees_timer && !scope.episodes.is_empty() {
        all.push(
            "It was not seen when the timer fired: delivery begins when a wakeup was due.".into(),
        );
    }
    if scope.callers_lost > 0 {
        let lost = counted(scope.callers_lost, "caller");
        all.push(format!("{lost} could not be read from the guest's stack."));
    }
    all.extend(scope.locks.iter().flat_map(locks::warnings));
    all
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use wakescope_core::distribution::Distribution;
    use wakescope_core::explain::{Cause, Share};
    use wakescope_core::run::Episode;

    use super::*;

    fn place_of(function: Option<&str>, caller: Option<&str>) -> Place {
        Place { function: function.map(Into::into), caller: caller.map(Into::into) }
    }

    fn scope() -> Scope {
        let lock = place_of(Some("_raw_spin_lock_irqsave"), Some("crng_make_state"));
        let unlock = place_of(Some("_raw_spin_unlock_irqrestore"), Some("_get_random_bytes"));
        let entry = place_of(Some("asm_sysvec_apic_timer_interrupt"), None);
        let exit = place_of(Some("native_irq_return_iret"), None);
        let row = |kind, began: &Place, ended: &Place, lengths| Row {
            kind,
            began: began.clone(),
            ended: ended.clone(),
            lengths,
            spent: None,
        };
        let many = (0..1_000).map(|n| 1_000 + n);
        Scope {
            label: "6.1-cloud full find seed 1".into(),
            window_ns: 500_000_000,
            sections: 1_002,
            has_callers: true,
            rows: vec![
                row(Kind::IrqsOff, &lock, &unlock, Distribution::of([7_676])),
                row(Kind::IrqsOff, &entry, &exit, Distribution::of(many)),
                row(Kind::IrqsOff, &place_of(None, None), &exit, Distribution::of([40])),
            ],
            ..Scope::default()
        }
    }

    #[test]
    fn sections_are_a_table() {
        expect![[r#"
            Longest sections, in virtual time: with interrupts off 7.68 µs, none with preemption off.

             interrupts off: 1,002 sections, 1.51 ms in all
             longest      p99  count    total  began in … ended in
             7.68 µs        –      1  7.68 µs  _raw_spin_lock_irqsave, called by crng_make_state
                                               … _raw_spin_unlock_irqrestore, called by _get_random_bytes
             2.00 µs  1.99 µs  1,000  1.50 ms  asm_sysvec_apic_timer_interrupt
                                               … native_irq_return_iret
             1 more row: --rows N, --json

             preemption off: 0 sections, 0 ns in all

             6.1-cloud full find seed 1, 500 ms of virtual time. The guest's result is the stored one, to the
             bit. Lengths are instructions between both ends; the guest's clock agrees to 0 ns. Virtual time
             counts instructions: the order of sections is meaningful, absolute lengths are not.
        "#]]
        .assert_eq(&text(&scope(), 2, Style::default()));
    }

    #[test]
    fn functions_stand_below_their_sections() {
        let mut scope = Scope { rows: scope().rows.split_off(1), ..scope() };
        let time = |function: Option<&str>, ns| TimeIn { function: function.map(Into::into), ns };
        let functions = ["rcu_do_batch", "kfree", "memset", "free", "list_del", "unlock"];
        let mut functions: Vec<TimeIn> = functions
            .into_iter()
            .zip([500, 200, 150, 60, 10, 5])
            .map(|(f, ns)| time(Some(f), ns))
            .collect();
        functions.insert(3, time(None, 75));
        scope.rows[0].spent = Some(Spent { sections: 1, total_ns: 1_000, functions });
        expect![[r#"
            Longest sections, in virtual time: with interrupts off 2.00 µs, none with preemption off.

             interrupts off: 1,001 sections, 1.50 ms in all
             longest      p99  count    total  began in … ended in
             2.00 µs  1.99 µs  1,000  1.50 ms  asm_sysvec_apic_timer_interrupt
                                               … native_irq_return_iret
                                               1.00 µs: 50 % rcu_do_batch, 20 % kfree, 15 % memset, 8 % code of modules, 8 % 3 others
             1 more row: --rows N, --json

             preemption off: 0 sections, 0 ns in all

             6.1-cloud full find seed 1, 500 ms of virtual time. The guest's result is the stored one, to the
             bit. Lengths are instructions between both ends; the guest's clock agrees to 0 ns. Virtual time
             counts instructions: the order of sections is meaningful, absolute lengths are not.
        "#]].assert_eq(&text(&scope, 1, Style::default()));
    }

    #[test]
    fn what_is_missing_is_said() {
        let lacking = Scope {
            has_callers: false,
            preempt_count_partial: true,
            sections_lost: 3,
            callers_lost: 1,
            rows: Vec::new(),
            episodes: vec![Episode {
                wakeup_latency_ns: 900,
                blame: vec![Share { cause: Cause::IrqOff, ns: 900, ..Share::default() }],
                ..Episode::default()
            }],
            ..scope()
        };
        expect![[r#"
            Longest sections, in virtual time: none with interrupts off, none with preemption off.

             interrupts off: 0 sections, 0 ns in all

             preemption off: 0 sections, 0 ns in all

             the latest wakeups, each nanosecond as the emulator saw it:
             #1  900 virtual ns  ├irq_off 900──────────────────────────────────────────────────────────────────┤
                900 virtual ns  100 %  irq_off · upper bound: remainder between two events

             ! Callers are not known: the kernel has no unwind tables (CONFIG_UNWINDER_ORC), or has them in an
               unknown form.

             ! The kernel does not count code that turns preemption off (CONFIG_PREEMPT_COUNT is not set): of
               preemption off, these are softirqs and interrupts alone.

             ! 3 sections are in no row: there are too many different ones.

             ! It was not seen when the timer fired: delivery begins when a wakeup was due.

             ! 1 caller could not be read from the guest's stack.

             6.1-cloud full find seed 1, 500 ms of virtual time. The guest's result is the stored one, to the
             bit. Lengths are instructions between both ends; the guest's clock agrees to 0 ns. Virtual time
             counts instructions: the order of sections is meaningful, absolute lengths are not.
        "#]]
        .assert_eq(&text(&lacking, 2, Style::default()));
    }
}
