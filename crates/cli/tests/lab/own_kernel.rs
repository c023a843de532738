//! Cells of a kernel that was given as a file: they are run again from whatever folder.

use std::fs;
use std::path::Path;

use crate::common::bench::{Ended, Running};
use crate::common::measured::names;
use crate::confinement::Fake;

/// A guest that panics. Such a cell is kept, and fails in the same way when it is run again.
const PANICS: &str = r#"
for word in "$@"; do
    case $word in
    file,id=console,path=/dev/fdset/*) console=${word#*/fdset/}; console=${console%%,*} ;;
    esac
done
echo 'Kernel panic - not syncing: made up' >&"$console"
"#;

fn lab(fake: &Fake, folder: &Path, kernel: &str) {
    let mut command = fake.command();
    let ended = Running::start(command.args(["--kernel", kernel]).current_dir(folder)).output();
    assert!(ended.stdout.contains("made up"), "{ended:?}");
}

fn verify(fake: &Fake, folder: &Path) -> Ended {
    let mut command = fake.test.command(&["lab", "verify", "--qemu", fake.qemu.to_str().unwrap()]);
    command.env("WAKESCOPE_CACHE", &fake.cache);
    Running::start(command.current_dir(folder)).output()
}

#[test]
fn a_kernel_that_was_given_by_a_relative_path_is_found_from_another_folder() {
    let mut fake = Fake::new("own-kernel", PANICS);
    // The kernel and what precedes it.
    fake.args.truncate(fake.args.len() - 2);
    let (here, elsewhere) = (fake.test.dir.to_path_buf(), fake.test.dir.join("elsewhere"));
    fs::create_dir(&elsewhere).unwrap();
    lab(&fake, &here, "./kernel");
    let cells = || names(&fake.cache.join("cells"));
    let before = cells();
    for folder in [&here, &elsewhere] {
        let ended = verify(&fake, folder);
        assert!(ended.stdout.contains("1 cell was run again and failed again"), "{ended:?}");
    }
    // By whatever path, it is the same cell.
    lab(&fake, &elsewhere, "../kernel");
    assert_eq!(cells(), before);
    let kernel = here.join("kernel");
    fs::rename(&kernel, here.join("moved")).unwrap();
    let ended = verify(&fake, &elsewhere);
    let want = format!("its kernel {} was removed, or is another one now", kernel.display());
    let one_line = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(one_line.contains(&want), "{ended:?}");
}
