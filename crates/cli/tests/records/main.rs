//! What the command makes of records and of files of other programs: nothing is measured here.

#[path = "../common/mod.rs"]
mod common;
mod compare;
mod compare_record;
mod compare_watches;
mod episodes;
mod export;
mod fuzz;
mod import;
mod import_truth;
mod leaves;
mod model;
mod pages;
mod privacy;
mod report;
mod trend;
