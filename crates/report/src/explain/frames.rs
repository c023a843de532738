//! Entries of stacks in words. None of them is cleaned.

use wakescope_core::explain::Frame;

/// What stands for a function that is not known.
const UNKNOWN: &str = "[unknown]";

/// `shmem_undo_range+0x1b2`
pub(crate) fn kernel_frame(frame: &Frame) -> String {
    match &frame.function {
        Some(function) => format!("{function}+{:#x}", frame.offset),
        None => UNKNOWN.into(),
    }
}

/// `main+0x10 [program]`, or `program+0x1230` without a function.
pub(crate) fn user_frame(frame: &Frame) -> String {
    let offset = frame.offset;
    match (&frame.function, &frame.module) {
        (Some(function), Some(file)) => format!("{function}+{offset:#x} [{file}]"),
        (Some(function), None) => format!("{function}+{offset:#x}"),
        (None, Some(file)) => format!("{file}+{offset:#x}"),
        (None, None) => UNKNOWN.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_told_as_far_as_they_are_known() {
        let frame = |function: &str, module: &str| {
            let known = |name: &str| Some(name.to_owned()).filter(|name| !name.is_empty());
            Frame {
                function: known(function),
                module: known(module),
                offset: 16,
                ..Frame::default()
            }
        };
        for (frame, of_kernel, of_program) in [
            (frame("f.part.0", ""), "f.part.0+0x10", "f.part.0+0x10"),
            (frame("f", "a"), "f+0x10", "f+0x10 [a]"),
            (frame("", "a"), "[unknown]", "a+0x10"),
            (Frame::default(), "[unknown]", "[unknown]"),
        ] {
            assert_eq!(
                (kernel_frame(&frame).as_str(), user_frame(&frame).as_str()),
                (of_kernel, of_program)
            );
        }
    }
}
