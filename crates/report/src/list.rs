//! Lists of which only the first entries are shown.

use wakescope_core::units::grouped;

/// The first `most` of `all`, and, if there are others, how many: `and 12 more`.
pub(crate) fn first<T>(all: &[T], most: usize) -> (&[T], Option<String>) {
    let (shown, others) = all.split_at(all.len().min(most));
    let more = (!others.is_empty()).then(|| format!("and {} more", grouped(others.len() as u64)));
    (shown, more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_shown_is_counted() {
        assert_eq!(first(&[1, 2, 3], 3), (&[1, 2, 3][..], None));
        assert_eq!(first(&[1, 2, 3], 2), (&[1, 2][..], Some("and 1 more".into())));
        assert_eq!(first(&[0; 2_000], 0).1, Some("and 2,000 more".into()));
        assert_eq!(first::<u8>(&[], 2), (&[][..], None));
    }
}
