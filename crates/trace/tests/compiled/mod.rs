//! Programs of tests, compiled with the headers of those that follow wakeups.

use std::process::Command;
use std::{env, fs};

use wakescope_testing::Folder;

/// The object of `tests/NAME.bpf.c`, compiled with these further arguments.
pub(crate) fn compiled(name: &str, arguments: &[&str]) -> Vec<u8> {
    let crate_dir = env!("CARGO_MANIFEST_DIR");
    let folder = Folder::new(name);
    let object = folder.join("object.o");
    let clang = env::var_os("CLANG").unwrap_or("clang".into());
    let mut compile = Command::new(clang);
    compile.args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wno-unused-function", "-I"]);
    compile.arg(format!("{crate_dir}/bpf")).args(arguments);
    compile.arg("-c").arg(format!("{crate_dir}/tests/{name}.bpf.c"));
    let ended = compile.arg("-o").arg(&object).output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    fs::read(object).unwrap()
}
