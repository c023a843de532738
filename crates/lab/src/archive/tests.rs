use super::*;

#[test]
fn packages_are_read_out_of_a_list() {
    let list = "Package: a\nVersion: 1:2\nSize: 7\nDescription: x\n Package: not this\n\n\
                Package: b\nVersion: 3\n\nPackage: c\nSize: huge\n";
    let package = |name: &str, version: &str, size| Package {
        name: name.into(),
        version: version.into(),
        size,
    };
    let got = stanzas(list.as_bytes(), |name| name != "b");
    assert_eq!(got, [package("a", "1:2", 7), package("c", "", 0)]);
    assert_eq!(stanzas(&b"Package: \xff\nSize: 1\n"[..], |_| true), []);
}

#[test]
fn what_would_be_installed_is_read() {
    for (line, want) in [
        ("Inst libc6 (2.41-12 Debian:13.5/stable [amd64])", Some(("libc6", "2.41-12"))),
        ("Inst x [1.0] (1:2.0+ds-1 Debian:13 [all]) []", Some(("x", "1:2.0+ds-1"))),
        ("Conf libc6 (2.41-12 Debian:13.5/stable [amd64])", None),
        ("Inst libc6", None),
        ("", None),
    ] {
        let got = installed(line);
        assert_eq!(got.as_ref().map(|p| (&*p.name, &*p.version)), want, "{line}");
    }
}

#[test]
fn of_complaints_the_errors_are_kept() {
    let complaints = |text: &str| match failed("x", text) {
        ArchiveError::Failed { complaints, .. } => complaints,
        other => panic!("{other}"),
    };
    assert_eq!(complaints("W: old\nE: broken\n"), ["E: broken"]);
    assert_eq!(complaints("one\n\ntwo\n"), ["one", "two"]);
    let full = "tar: x: Cannot write: No space left on device\ntar: y: the same\nE: error\n";
    assert_eq!(complaints(full), ["tar: x: Cannot write: No space left on device"]);
    assert!(failed("x", full).is_full());
    assert!(!failed("x", "E: Unable to locate package").is_full());
}
