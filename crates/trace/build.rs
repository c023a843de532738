//! Compiles the BPF programs, and packs them: uncompressed they are larger than what loads them.

use std::env;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The objects: each is compiled from the file of its name in bpf/. The last one is for an example only.
const OBJECTS: [&str; 3] = ["wakeups", "watch", "nothing"];

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-env-changed=CLANG");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    for name in OBJECTS {
        compile(&out, name);
    }
}

fn compile(out: &Path, name: &str) {
    let source = format!("bpf/{name}.bpf.c");
    let object = out.join(format!("{name}.bpf.o"));
    let clang = PathBuf::from(env::var_os("CLANG").unwrap_or("clang".into()));
    let mut compile = Command::new(&clang);
    compile.args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror"]);
    compile
        .args(["-Wno-unused-function", "-ffile-prefix-map=.=", "-c", &source, "-o"])
        .arg(&object);
    match compile.status() {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{} could not compile {source}: {status}", clang.display()),
        Err(e) => panic!(
            "cannot run {}, which compiles the BPF programs: {e}; install it (on Debian and \
             Ubuntu: apt-get install clang), or name one in CLANG",
            clang.display()
        ),
    }
    let bytes = fs::read(&object).expect("clang has written it");
    let file = File::create(out.join(format!("{name}.bpf.o.gz"))).expect("OUT_DIR can be written");
    let mut packed = flate2::write::GzEncoder::new(file, flate2::Compression::best());
    packed.write_all(&bytes).and_then(|()| packed.finish().map(drop)).expect("there is room");
}
