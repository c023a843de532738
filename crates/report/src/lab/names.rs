//! Names of kernels, models and loads, safe to print and short enough.

use wakescope_core::lab::{Arm, Asked, Comparison};

use crate::style::clean;

/// The longest name of a kernel beside other text, and of a load.
const LONGEST: usize = 36;

/// A model as tables write it: `none`, `RT`. What is no model is shown as it is.
pub fn model(asked: &str) -> String {
    match asked.parse() {
        Ok(Asked::Rt) => "RT".into(),
        Ok(asked) => asked.word().into(),
        Err(_) => clean(asked, 16),
    }
}

/// A load.
pub(super) fn load(name: &str) -> String {
    clean(name, LONGEST)
}

/// A kernel in at most `limit` characters: of a long path the end, where the difference is.
pub(super) fn kernel(name: &str, limit: usize) -> String {
    let safe = clean(name, 4_096);
    let count = safe.chars().count();
    if count <= limit {
        return safe;
    }
    let end: String = safe.chars().skip(count + 1 - limit).collect();
    format!("…{end}")
}

/// A kernel with a model: `6.1-cloud/full`.
pub(super) fn arm(arm: &Arm) -> String {
    format!("{}/{}", kernel(&arm.kernel, LONGEST), model(&arm.asked))
}

/// How comparisons name their sides: by what differs among them.
#[derive(Clone, Copy)]
pub(super) enum Sides {
    /// It is the same kernel throughout.
    Models,
    /// It is the same model throughout.
    Kernels,
    /// Neither.
    Both,
}

impl Sides {
    pub(super) fn of(comparisons: &[Comparison]) -> Self {
        let arms = || comparisons.iter().flat_map(|c| [&c.a, &c.b]);
        let same =
            |part: fn(&Arm) -> &str| arms().zip(arms().skip(1)).all(|(x, y)| part(x) == part(y));
        match (same(|arm| &arm.kernel), same(|arm| &arm.asked)) {
            (true, _) => Self::Models,
            (_, true) => Self::Kernels,
            _ => Self::Both,
        }
    }

    pub(super) fn name(self, side: &Arm) -> String {
        match self {
            Self::Models => model(&side.asked),
            Self::Kernels => kernel(&side.kernel, LONGEST),
            Self::Both => arm(side),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_paths_lose_their_beginning() {
        assert_eq!(kernel("6.1-cloud", 10), "6.1-cloud");
        assert_eq!(kernel("/a/long/path/bzImage", 12), "…ath/bzImage");
        assert_eq!(kernel("/\x1b[31m/bzImage", 100), "/\u{fffd}[31m/bzImage");
    }

    #[test]
    fn models_are_written_as_people_write_them() {
        assert_eq!(
            (model("rt"), model("lazy"), model("\x07x")),
            ("RT".into(), "lazy".into(), "\u{fffd}x".into())
        );
    }
}
