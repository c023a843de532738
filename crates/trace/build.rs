//! Compiles the BPF programs, and packs them: uncompressed they are larger than what loads them.

use std::env;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

const SOURCE: &str = "bpf/wakeups.bpf.c";

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let object = out.join("wakeups.bpf.o");
    let clang = PathBuf::from(env::var_os("CLANG").unwrap_or("clang".into()));
    let mut compile = Command::new(&clang);
    compile.args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror"]);
    compile.args(["-Wno-unused-function", "-ffile-prefix-map=.=", "-c", SOURCE, "-o"]).arg(&object);
    match compile.status() {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{} could not compile {SOURCE}: {status}", clang.display()),
        Err(e) => panic!(
            "cannot run {}, which compiles the BPF programs: {e}; install it (on Debian and \
             Ubuntu: apt-get install clang), or name one in CLANG",
            clang.display()
        ),
    }
    let bytes = fs::read(&object).expect("clang has written it");
    let file = File::create(out.join("wakeups.bpf.o.gz")).expect("OUT_DIR can be written");
    let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::best());
    packed.write_all(&bytes).and_then(|()| packed.finish().map(drop)).expect("there is room");
}
