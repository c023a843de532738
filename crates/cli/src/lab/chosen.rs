//! Which cell an argument means: a folder, a key, or a key's first digits.

use std::path::Path;

use wakescope_lab::store::{Key, RECIPE};
use wakescope_report::style::clean;

use crate::Failure;

/// The cell of `keys`, whose folders lie in `cells`, that `argument` means.
pub(super) fn chosen(argument: &Path, keys: &[Key], cells: &Path) -> Result<Key, Failure> {
    let within = name_within(argument, cells);
    // What lies elsewhere may be called like a cell, or like the first digits of one.
    if within.is_none() && !may_be_digits(argument, keys) {
        if argument.is_dir() {
            return Err(of_folder(argument, cells));
        }
        if argument.is_file() {
            return Err(of_file(argument));
        }
    }
    let name = within.or_else(|| Some(argument.file_name()?.to_string_lossy().into_owned()));
    // What has no name would be the beginning of every key.
    let Some(name) = name else { return Err(no_cell(&argument.to_string_lossy())) };
    let mut found = keys.iter().filter(|key| key.as_str().starts_with(&name));
    match (found.next(), found.next()) {
        (Some(key), None) => Ok(key.clone()),
        (None, _) => Err(no_cell(&name)),
        _ => Err(Failure::new(format!("several keys begin with {}", clean(&name, 80)))
            .try_this("give more digits")),
    }
}

/// The name of `folder` in `cells`, if it lies there, however it was named.
fn name_within(folder: &Path, cells: &Path) -> Option<String> {
    let (folder, cells) = (folder.canonicalize().ok()?, cells.canonicalize().ok()?);
    let name = folder.file_name()?.to_string_lossy().into_owned();
    (folder.parent()? == cells).then_some(name)
}

/// Whether this was typed as digits, and there is a key that begins with them.
fn may_be_digits(argument: &Path, keys: &[Key]) -> bool {
    let typed = argument.to_string_lossy();
    !typed.is_empty() && keys.iter().any(|key| key.as_str().starts_with(&*typed))
}

fn no_cell(name: &str) -> Failure {
    Failure::new(format!("no cell has the key {}", clean(name, 80)))
        .because("a key is the name of a cell's folder in the lab's cache")
        .try_this(WHERE)
}

fn of_folder(folder: &Path, cells: &Path) -> Failure {
    let shown = clean(&folder.to_string_lossy(), 200);
    if folder.join(RECIPE).is_file() {
        let cells = clean(&cells.to_string_lossy(), 200);
        return Failure::new(format!("{shown} is a cell's folder, but not of this lab"))
            .because(format!("the lab's cells lie in {cells}"))
            .try_this("name the cache that it lies in: WAKESCOPE_CACHE=FOLDER, with FOLDER/cells");
    }
    Failure::new(format!("{shown} is a folder, but not of a cell: it has no {RECIPE}"))
        .try_this(WHERE)
}

fn of_file(file: &Path) -> Failure {
    let shown = clean(&file.to_string_lossy(), 200);
    let failure = Failure::new(format!("{shown} is a file, and a cell is a folder"));
    match file.with_file_name(RECIPE).is_file() {
        true => failure.try_this("give the folder that the file is in"),
        false => failure.try_this(WHERE),
    }
}

/// Where to find cells.
pub(super) const WHERE: &str =
    "the record of a lab has the folders: wakescope lab run … --json, .cells[].run";

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use wakescope_testing::Folder;

    use super::*;

    fn key(begin: &str) -> Key {
        format!("{begin:0<64}").parse().unwrap()
    }

    fn cell(cells: &Path, key: &Key) {
        let folder = cells.join(key.as_str());
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(RECIPE), "{}").unwrap();
    }

    #[test]
    fn an_argument_means_a_cell_or_is_refused_with_a_reason_and_a_remedy() {
        let folder = Folder::new("chosen");
        let (cells, others) = (folder.join("cells"), folder.join("others"));
        let (first, second, third) = (key("3f6e"), key("3f7a"), key("abc"));
        for key in [&first, &second] {
            cell(&cells, key);
        }
        cell(&others, &third);
        // It is called like the first digits of a cell, but is none.
        fs::create_dir_all(folder.join("3f6")).unwrap();
        std::os::unix::fs::symlink(cells.join(first.as_str()), folder.join("link")).unwrap();
        let keys = [first.clone(), second.clone()];
        let at = |path: &str| folder.join(path);
        let in_cells = |key: &Key| cells.join(key.as_str());

        for meant in [
            PathBuf::from("3f6"),
            PathBuf::from(first.as_str()),
            in_cells(&first),
            in_cells(&first).join("."),
            at("link"),
            at("others/../cells").join(first.as_str()),
            // Of a record that another machine has written.
            Path::new("/nowhere/cells").join(first.as_str()),
        ] {
            let found = chosen(&meant, &keys, &cells);
            assert_eq!(found.ok(), Some(first.clone()), "{}", meant.display());
        }

        for (refused, what, remedy) in [
            (PathBuf::from("3f"), "several keys begin with 3f", "more digits"),
            (PathBuf::from("12"), "no cell has the key 12", ".cells[].run"),
            (at("nowhere"), "no cell has the key nowhere", ".cells[].run"),
            (at("3f6"), "3f6 is a folder, but not of a cell: it has no recipe.json", ".cells[]"),
            (cells.clone(), "is a folder, but not of a cell", ".cells[].run"),
            (PathBuf::from("/"), "/ is a folder, but not of a cell", ".cells[].run"),
            (PathBuf::from(".."), ".. is a folder, but not of a cell", ".cells[].run"),
            (PathBuf::from(""), "no cell has the key", ".cells[].run"),
            (at("nowhere/.."), "no cell has the key", ".cells[].run"),
            (others.join(third.as_str()), "not of this lab", "WAKESCOPE_CACHE=FOLDER"),
            (in_cells(&first).join(RECIPE), "is a file", "the folder that the file is in"),
            (PathBuf::from("/dev/null/x"), "no cell has the key x", ".cells[].run"),
        ] {
            let said = chosen(&refused, &keys, &cells).unwrap_err().to_string();
            assert!(said.contains(what) && said.contains(remedy), "{}: {said}", refused.display());
        }
        // With one cell alone, what has no name does not mean it.
        for nameless in ["", "/", ".."] {
            assert!(chosen(Path::new(nameless), &keys[..1], &cells).is_err(), "{nameless}");
        }
    }
}
