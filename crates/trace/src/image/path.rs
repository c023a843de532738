//! Names of source files.

/// `path` from the folder `root` on, without steps up and down again: `mm/shmem.c`. As it is if it
/// lies elsewhere.
pub(super) fn shortened(path: &str, root: Option<&str>) -> String {
    let straight = straightened(path);
    let root = root.map(straightened).filter(|root| !root.is_empty());
    let inside = root.and_then(|root| straight.strip_prefix(&root)?.strip_prefix('/'));
    match inside {
        Some(rest) if !rest.is_empty() => rest.to_owned(),
        _ => straight,
    }
}

/// Without `.`, and with `..` taken back where there is a folder to leave.
fn straightened(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match (part, parts.last()) {
            ("." | "", Some(_)) | (".", None) => {}
            ("..", Some(&last)) if !matches!(last, "" | "..") => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_within_the_sources() {
        let root = Some("/build/linux-6.1");
        for (path, root, want) in [
            ("/build/linux-6.1/mm/shmem.c", root, "mm/shmem.c"),
            ("/build/linux-6.1/debian/build/./../../mm/shmem.c", root, "mm/shmem.c"),
            ("./include/linux/mm.h", root, "include/linux/mm.h"),
            ("/usr/include/stdio.h", root, "/usr/include/stdio.h"),
            ("/build/linux-6.12/mm/shmem.c", root, "/build/linux-6.12/mm/shmem.c"),
            ("/build/linux-6.1", root, "/build/linux-6.1"),
            ("../../x.c", None, "../../x.c"),
            ("/../x.c", None, "/../x.c"),
            ("a//b/", None, "a/b"),
            ("", Some(""), ""),
        ] {
            assert_eq!(shortened(path, root), want, "{path}");
        }
    }
}
