//! Images whose few bytes stand for many.

use wakescope_testing::Folder;

use super::{built, stack_of};
use crate::image::{Image, NoImage};

/// The reason for which an image is refused; `None` if its lines are found. An assembler makes its `sections`,
/// and they are packed.
fn refusal(sections: &str) -> Option<String> {
    let folder = Folder::new("costs");
    folder.write("sections.s", sections);
    let path = folder.join("sections.s");
    let bytes = built("costs-image", &["-g", "-gz=zlib", path.to_str().unwrap()]);
    let image = Image::parse(&bytes).unwrap();
    match image.lines(&[&stack_of(["twice+0x4"])], None, None) {
        Ok(found) => {
            assert_eq!(found.lines[0][0].len(), 1, "{sections}");
            None
        }
        Err(e @ NoImage::Large(_)) => Some(e.to_string()),
        Err(e) => panic!("{sections}: {e:?}"),
    }
}

/// Debug information of version 4: so many units, whose root is all that they have. Its attributes are
/// names and forms for the table of abbreviations, and their value is `value`, of so many bytes.
fn units(count: u32, attributes: &str, value: &str, bytes: u32) -> String {
    format!(
        ".section .debug_abbrev,\"\",@progbits\n\
         .Lown: .byte 1, 0x11, 0{attributes}, 0, 0, 0\n\
         .section .debug_info,\"\",@progbits\n\
         .rept {count}\n\
         .long {}\n .short 4\n .long .Lown\n .byte 8, 1\n {value}\n\
         .endr\n",
        8 + bytes
    )
}

/// A table of lines of version 4, whose header ends with `files`, and its program.
fn table_of_lines(files: &str, program: &str) -> String {
    format!(
        ".section .debug_line,\"\",@progbits\n\
         .Ltable: .long 2f - 1f\n 1: .short 4\n .long 4f - 3f\n\
         3: .byte 1, 1, 1, 1, 1, 1, 0\n {files}\n .byte 0\n\
         4: {program}\n 2:\n"
    )
}

#[test]
fn what_would_take_much_memory_is_refused_and_named() {
    let zeros = |bytes: u32| format!(".section .debug_types,\"\",@progbits\n.zero {bytes}\n");
    let many_ranges = ".section .debug_ranges,\"\",@progbits\n.Ltable: .rept 20000\n\
                       .quad 16, 32\n.endr\n.quad 0, 0\n";
    let many_files = table_of_lines(".rept 5000\n.asciz \"f\"\n.byte 0, 0, 0\n.endr", "");
    let long_program = table_of_lines("", ".fill 100000, 1, 1");
    let (ranges, lines, table) = (", 0x55, 0x17", ", 0x10, 0x17", ".long .Ltable");
    let many_attributes = ", 3, 8".repeat(5_000);
    for (need, sections) in [
        ("", zeros(1_000_000)),
        ("unpacked debug information", zeros(130_000_000)),
        (
            "functions of debug information",
            ".section .debug_info,\"\",@progbits\n.zero 5500000\n".into(),
        ),
        ("", units(10_000, "", "", 0)),
        ("units of debug information", units(90_000, "", "", 0)),
        ("", format!("{many_ranges}{}", units(20, ranges, table, 4))),
        (
            "address ranges of debug information",
            format!("{many_ranges}{}", units(200, ranges, table, 4)),
        ),
        ("", format!("{many_files}{}", units(20, lines, table, 4))),
        ("source files", format!("{many_files}{}", units(200, lines, table, 4))),
        ("", format!("{long_program}{}", units(4, lines, table, 4))),
        ("source lines", format!("{long_program}{}", units(40, lines, table, 4))),
        ("", units(20, &many_attributes, "", 0)),
        ("abbreviations of debug information", units(1_000, &many_attributes, "", 0)),
    ] {
        let want = (!need.is_empty()).then(|| {
            format!("it needs more than 128 MB of memory for {need}, the limit for an input of up to 1 MB")
        });
        assert_eq!(refusal(&sections), want);
    }
}
