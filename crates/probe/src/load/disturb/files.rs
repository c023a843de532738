//! How many files a disturbance may use.

use wakescope_sys::process::raise_open_files;

/// Files that others of this process may need.
const SPARE: usize = 256;

/// As many as this process may have open, after its limit was raised as far as it can be.
pub(super) fn all() -> Result<usize, String> {
    let files =
        raise_open_files().map_err(|e| format!("cannot raise the limit of open files: {e}"))?;
    Ok(usize::try_from(files).unwrap_or(usize::MAX))
}

/// As many as each of `cpus` threads may open, at least 1.
pub(super) fn for_each_of(cpus: usize) -> Result<usize, String> {
    shared(all()?, cpus)
}

fn shared(files: usize, cpus: usize) -> Result<usize, String> {
    match files.saturating_sub(SPARE) / cpus.max(1) {
        0 => Err(format!(
            "the limit of open files, {files}, is too low: this load needs at least {}, and \
             thousands for long disturbances",
            SPARE.saturating_add(cpus)
        )),
        each => Ok(each),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_gets_its_part_or_it_is_told_that_there_are_too_few() {
        for (files, cpus, want) in [
            (0, 1, None),
            (16, 2, None),
            (256, 1, None),
            (257, 1, Some(1)),
            (257, 2, None),
            (1_024, 2, Some(384)),
            (1_024, 1_000, None),
            (usize::MAX, 0, Some(usize::MAX - SPARE)),
        ] {
            let got = shared(files, cpus);
            assert_eq!(got.as_ref().ok(), want.as_ref(), "{files} for {cpus}");
            if let Err(text) = got {
                assert!(text.contains(&format!("the limit of open files, {files},")), "{text}");
            }
        }
    }
}
