//! A tree of C files, made from a seed, with headers of its own and those of the C library. The files are small:
//! in a guest of the lab the compiler takes a tenth of a virtual second for one.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::super::desk::fault;
use super::super::random::Random;

/// Folders, and C files in each of them.
const FOLDERS: u64 = 6;
const FILES: u64 = 12;

/// Functions in a file.
const FUNCTIONS: u64 = 3;

/// The headers of the C library that each file includes.
const LIBRARY: [&str; 4] = ["stdint.h", "stdio.h", "stdlib.h", "string.h"];

/// Makes the tree in the current directory. The paths of its C files, in the order of a build.
pub(super) fn make(seed: u64) -> Result<Vec<PathBuf>, String> {
    make_in(Path::new(""), seed)
}

fn make_in(root: &Path, seed: u64) -> Result<Vec<PathBuf>, String> {
    let mut random = Random::new(seed);
    let write = |path: &Path, text: &str| {
        let path = root.join(path);
        path.parent().map_or(Ok(()), fs::create_dir_all).map_err(|e| fault("create", &path, &e))?;
        fs::write(&path, text).map_err(|e| fault("write", &path, &e))
    };
    let mut sources = Vec::new();
    for folder in 0..FOLDERS {
        write(Path::new(&format!("include/part{folder}.h")), &header(folder, &mut random))?;
    }
    for folder in 0..FOLDERS {
        for file in 0..FILES {
            let path = PathBuf::from(format!("part{folder}/file{file}.c"));
            write(&path, &source(folder, file, &mut random))?;
            sources.push(path);
        }
    }
    Ok(sources)
}

/// The structure of a folder, and what its files call of each other.
fn header(folder: u64, random: &mut Random) -> String {
    let mut text = format!("#ifndef PART{folder}_H\n#define PART{folder}_H\n\n");
    for name in LIBRARY {
        let _ = writeln!(text, "#include <{name}>");
    }
    let _ =
        writeln!(text, "\nstruct part{folder} {{\n\tstruct part{folder} *next;\n\tchar name[32];");
    for field in 0..8 {
        let kind = match random.below(4) {
            0 => "int",
            1 => "unsigned long",
            2 => "uint8_t",
            _ => "uint32_t",
        };
        let _ = writeln!(text, "\t{kind} field{field};");
    }
    let _ = writeln!(text, "}};\n");
    for file in 0..FILES {
        for function in 0..FUNCTIONS {
            let _ = writeln!(
                text,
                "unsigned long part{folder}_{file}_{function}(struct part{folder} *all, unsigned long key);"
            );
        }
    }
    text + "\n#endif\n"
}

fn source(folder: u64, file: u64, random: &mut Random) -> String {
    let other = random.below(FOLDERS);
    let mut text = format!("#include \"part{folder}.h\"\n#include \"part{other}.h\"\n");
    for function in 0..FUNCTIONS {
        let _ = writeln!(
            text,
            "\nunsigned long part{folder}_{file}_{function}(struct part{folder} *all, unsigned long key)\n{{\n\
             \tunsigned long sum = {}u;\n\n\tfor (struct part{folder} *at = all; at; at = at->next) {{",
            random.below(1000)
        );
        for _ in 0..4 {
            statement(&mut text, folder, random);
        }
        text += "\t}\n\treturn sum;\n}\n";
    }
    text
}

/// A few lines, of one of several kinds.
fn statement(text: &mut String, folder: u64, random: &mut Random) {
    let (one, two) = (random.below(8), random.below(8));
    let number = random.below(10_000) + 1;
    let callee = (random.below(FILES), random.below(FUNCTIONS));
    let _ = match random.below(5) {
        0 => writeln!(
            text,
            "\t\tif (at->field{one} > {number})\n\t\t\tsum += at->field{two} % {number};\n\t\telse\n\
             \t\t\tat->field{two} ^= sum >> {};",
            number % 31
        ),
        1 => writeln!(
            text,
            "\t\tswitch ((sum + key) % 7) {{\n\t\tcase 0: at->field{one}++; break;\n\t\tcase 3: sum *= {number}; \
             break;\n\t\tcase 5: sum -= at->field{two}; /* fall through */\n\t\tdefault: key += {number};\n\t\t}}"
        ),
        2 => writeln!(
            text,
            "\t\tif (!strncmp(at->name, \"name{number}\", sizeof(at->name)))\n\
             \t\t\tsnprintf(at->name, sizeof(at->name), \"%lu-%d\", sum, (int)at->field{one});"
        ),
        3 => writeln!(
            text,
            "\t\tfor (unsigned int i = 0; i < sizeof(at->name) && at->name[i]; i++)\n\
             \t\t\tsum = sum * 31 + (unsigned char)at->name[i] + at->field{one};"
        ),
        _ => writeln!(
            text,
            "\t\tif (at->field{one} == {number} && at->next)\n\
             \t\t\tsum ^= part{folder}_{}_{}(at->next, key ^ at->field{two});",
            callee.0, callee.1
        ),
    };
}

#[cfg(test)]
mod tests {
    use wakescope_testing::Folder;

    use super::*;

    fn text_of(seed: u64) -> String {
        let root = Folder::new("c-tree");
        let sources = make_in(&root, seed).unwrap();
        assert_eq!(sources.len() as u64, FOLDERS * FILES);
        sources.iter().map(|path| fs::read_to_string(root.join(path)).unwrap()).collect()
    }

    #[test]
    fn a_seed_repeats_the_tree_and_seeds_differ() {
        assert_eq!(text_of(1), text_of(1));
        assert_ne!(text_of(1), text_of(2));
    }

    #[test]
    fn a_compiler_takes_every_file() {
        let name = "a_compiler_takes_every_file";
        let compiler =
            ["/usr/bin/gcc", "/usr/bin/cc"].into_iter().find(|path| Path::new(path).exists());
        let Some(compiler) = compiler.filter(|_| Path::new("/usr/include/stdio.h").exists()) else {
            return wakescope_testing::skip(name, "there is no C compiler with a C library");
        };
        let root = Folder::new("c-tree");
        let sources = make_in(&root, 7).unwrap();
        let ended = std::process::Command::new(compiler)
            .current_dir(&root)
            .args(["-O1", "-Iinclude", "-fsyntax-only", "-Wall"])
            .args(&sources)
            .output()
            .unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }
}
