//! Entries of a stack.

/// The function and the offset of `function+0x10`; `None` of anything else: one without a name, or a
/// function with the name of a program behind it.
pub(super) fn parts(frame: &str) -> Option<(&str, u64)> {
    let (name, offset) = frame.rsplit_once('+')?;
    let offset = u64::from_str_radix(offset.strip_prefix("0x")?, 16).ok()?;
    (!name.is_empty() && !name.contains(char::is_whitespace)).then_some((name, offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_a_function_and_an_offset() {
        for (frame, want) in [
            ("shmem_undo_range+0x1b2", Some(("shmem_undo_range", 0x1b2))),
            ("a.constprop.0+0x0", Some(("a.constprop.0", 0))),
            ("xfs_ilock+0x10 [xfs]", None),
            ("main+0x10 [program]", None),
            ("[unknown]", None),
            ("0xffffffff81000000", None),
            ("+0x1", None),
            ("a+1", None),
            ("a+0x", None),
            ("a+0x10000000000000000", None),
            ("", None),
        ] {
            assert_eq!(parts(frame), want, "{frame}");
        }
    }
}
