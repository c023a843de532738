//! Late time by tasks or code.

use super::runs::{function, named_task};
use super::*;
use crate::html::page;
use crate::run_set::{Entry, RunSet};
use wakescope_core::explain::{By, Function, Ranking, RankingRow, Subject};

fn shown(by: By, complete: bool, subjects: &[Subject]) -> String {
    let all = text(&ranked(by, complete, subjects), PLAIN, Extent::Worst(0));
    let table = all.split("\n\n").find(|part| part.contains("late time by")).expect("a table");
    table.lines().map(|line| format!("|{line}\n")).collect()
}

fn ranked(by: By, complete: bool, subjects: &[Subject]) -> Run {
    let mut run = serial();
    let row = |(number, subject): (u64, &Subject)| RankingRow {
        subject: subject.clone(),
        episodes: 40 - number,
        total_ns: 100_000 >> number,
        worst_ns: 50_000 >> number,
        share: 0.0,
    };
    let rows = (0..).zip(subjects).map(row).collect();
    run.ranking = Some(Ranking { by, wakeups: 10, complete, rows });
    run
}

#[test]
fn who_had_the_cpu_is_a_table() {
    let unexplained = Subject::Cause { cause: Cause::Unexplained };
    let subjects = [
        Subject::Task(named_task("rm", 412)),
        Subject::Cause { cause: Cause::Irq },
        Subject::Task(named_task("\u{1b}[31m", 413)),
        unexplained.clone(),
    ];
    expect![[r#"
        | late time by pid: the 10 late wakeups  episodes    worst   share
        |  1  rm[412] other                            40  50.0 µs  53.3 %
        |  2  no pid: interrupt                        39  25.0 µs  26.7 %
        |  3  �[31m[413] other                         38  12.5 µs  13.3 %
        |     unexplained                              37  6.25 µs   6.7 %
    "#]]
    .assert_eq(&shown(By::Pid, true, &subjects));
    let in_module = Function { name: "f".into(), module: Some("ext4".into()) };
    let functions = (0..12).map(|n| Subject::Function(function(&format!("function_{n}"))));
    let functions: Vec<Subject> = functions.chain([Subject::Function(in_module)]).collect();
    expect![[r#"
        | late time by function: of 41 late wakeups only the worst 10  episodes    worst   share
        |  1  function_0                                                     40  50.0 µs  50.0 %
        |  2  function_1                                                     39  25.0 µs  25.0 %
        |  3  function_2                                                     38  12.5 µs  12.5 %
        |  4  function_3                                                     37  6.25 µs   6.2 %
        |  5  function_4                                                     36  3.13 µs   3.1 %
        |  6  function_5                                                     35  1.56 µs   1.6 %
        |  7  function_6                                                     34   781 ns   0.8 %
        |  8  function_7                                                     33   390 ns   0.4 %
        |  9  function_8                                                     32   195 ns   0.2 %
        | 10  function_9                                                     31    97 ns   0.1 %
        |     3 others                                                             48 ns   0.1 %
        |     unexplained                                                                    0 %
    "#]]
    .assert_eq(&shown(By::Function, false, &functions));
    let modules = [Subject::Module { name: None }, Subject::Module { name: Some("ext4".into()) }];
    let modules = [&modules[..], &[Subject::Others, unexplained]].concat();
    expect![[r#"
        | late time by module: the 10 late wakeups  episodes    worst   share
        |  1  the kernel itself                           40  50.0 µs  53.3 %
        |  2  [ext4]                                      39  25.0 µs  26.7 %
        |  3  others                                      38  12.5 µs  13.3 %
        |     unexplained                                 37  6.25 µs   6.7 %
    "#]]
    .assert_eq(&shown(By::Module, true, &modules));
}

#[test]
fn a_page_and_markdown_have_the_table_too() {
    let subjects = [
        Subject::Task(named_task("<rm>`", 412)),
        Subject::Cause { cause: Cause::Irq },
        Subject::Cause { cause: Cause::Unexplained },
    ];
    let (by_pid, none) = (ranked(By::Pid, true, &subjects), serial());
    let shown = |runs: &[&Run]| {
        let run_set = RunSet::of(runs.iter().map(|run| Entry::of("a", run)).collect());
        (page(&run_set), crate::markdown::report(&run_set))
    };
    let (html, markdown) = shown(&[&by_pid]);
    assert!(html.contains("<summary>Late time by pid: the 10 late wakeups</summary>"), "{html}");
    assert!(html.contains("&lt;rm&gt;`[412] other"), "{html}");
    expect![[r"
        Late time by pid: the 10 late wakeups:

        - 57.1 % `<rm>'[412] other`, worst 50.0 µs
        - 28.6 % `no pid: interrupt`, worst 25.0 µs
        - 14.3 % `unexplained`, worst 12.5 µs

    "]]
    .assert_eq(
        &markdown[markdown.find("Late time").unwrap()..]
            .split_inclusive("\n\n")
            .take(2)
            .collect::<String>(),
    );
    let (html, markdown) = shown(&[&none]);
    assert!(!html.contains("Late time by") && !markdown.contains("Late time by"));
    // Of several, each has its own.
    let (html, markdown) = shown(&[&by_pid, &none, &by_pid]);
    assert_eq!(html.matches("<summary><bdi>a</bdi>, Late time by pid").count(), 2, "{html}");
    assert_eq!(markdown.matches("Late time by pid").count(), 2, "{markdown}");
}
