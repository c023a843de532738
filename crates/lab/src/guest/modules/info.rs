//! What a module says about itself: the section `.modinfo` of its ELF file.

use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection};

use super::{is_name, kernel_name};

/// The names of the modules that `module` needs, as the kernel has them.
pub(super) fn depends(module: &[u8]) -> Result<Vec<String>, &'static str> {
    let file = ElfFile64::<LittleEndian>::parse(module);
    let file = file.map_err(|_| "it is not a complete 64-bit ELF file")?;
    let info = file.section_by_name(".modinfo").and_then(|section| section.data().ok());
    let info = info.ok_or("it has no .modinfo")?;
    // `key=value`, each with a NUL behind it.
    let depends = info.split(|&b| b == 0).find_map(|entry| entry.strip_prefix(b"depends="));
    let depends = std::str::from_utf8(depends.unwrap_or_default()).unwrap_or("?");
    let names = depends.split(',').filter(|name| !name.is_empty());
    let known = |name: &str| is_name(name).then(|| kernel_name(name));
    names.map(known).collect::<Option<_>>().ok_or("its list of dependencies has an invalid name")
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use wakescope_testing::fuzz;

    /// The least that looks like a module with this `.modinfo`.
    pub(in crate::guest::modules) fn module(info: &str) -> Vec<u8> {
        let names = b"\0.modinfo\0";
        let (texts, content) = (64, 64 + names.len());
        let headers = (content + info.len()).next_multiple_of(8);
        let mut file = vec![0; headers + 3 * 64];
        file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        file[18] = 62;
        let mut put = |at: usize, value: usize| {
            file[at..at + 8].copy_from_slice(&(value as u64).to_le_bytes());
        };
        put(40, headers);
        // Number of programs' parts; size, number and names of sections.
        put(56, 64 << 16 | 3 << 32 | 1 << 48);
        for (section, name, from, length) in
            [(1, 0, texts, names.len()), (2, 1, content, info.len())]
        {
            let at = headers + section * 64;
            put(at, name);
            put(at + 24, from);
            put(at + 32, length);
        }
        file[texts..content].copy_from_slice(names);
        file[content..content + info.len()].copy_from_slice(info.as_bytes());
        file
    }

    #[track_caller]
    fn check(info: &str, want: Result<&[&str], &'static str>) {
        let want = want.map(|names| names.iter().map(|&name| name.into()).collect());
        assert_eq!(depends(&module(info)), want, "{info:?}");
    }

    #[test]
    fn a_module_says_what_it_needs() {
        check("license=GPL\0depends=\0name=brd\0", Ok(&[]));
        check("name=brd\0", Ok(&[]));
        check("depends=a,b-c,d_e\0", Ok(&["a", "b_c", "d_e"]));
        check("xdepends=a\0depends=b", Ok(&["b"]));
        let no_names = Err("its list of dependencies has an invalid name");
        check("depends=../a\0", no_names);
        check("depends=a b\0", no_names);
        check(&format!("depends={}\0", "a".repeat(65)), no_names);
        assert_eq!(depends(b"\x7fELF"), Err("it is not a complete 64-bit ELF file"));
        let program = crate::testing::program(62, false);
        assert_eq!(depends(&program), Err("it has no .modinfo"));
    }

    #[test]
    fn fuzz_modules() {
        fuzz("module", &[module("depends=a,b\0")], |bytes| {
            let _ = depends(bytes);
        });
    }
}
