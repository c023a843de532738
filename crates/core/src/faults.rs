//! Faults of the parts of a record, and where they are.

/// The first of `all` that has a fault, and where it is: `rows[3]: …`.
pub(crate) fn first<T>(
    key: &str,
    all: &[T],
    fault: impl Fn(&T) -> Option<String>,
) -> Option<String> {
    let mut all = all.iter().enumerate();
    all.find_map(|(i, one)| Some(format!("{key}[{i}]: {}", fault(one)?)))
}

/// A figure with its name.
pub(crate) type Figure<'a> = (&'a str, u64);

/// The first pair of figures of which the part is more than the whole.
pub(crate) fn more_than_whole<const N: usize>(
    pairs: [(Figure<'_>, Figure<'_>); N],
) -> Option<String> {
    pairs.into_iter().find_map(|((part, of_part), (whole, of_whole))| {
        (of_part > of_whole).then(|| format!("{part} is {of_part}, but {whole} is {of_whole}"))
    })
}

/// That the figures of the parts do not add up to the one that is stated.
pub(crate) fn wrong_sum(
    key: &str,
    stated: u64,
    parts: &str,
    all: impl IntoIterator<Item = u64>,
) -> Option<String> {
    let sum: u128 = all.into_iter().map(u128::from).sum();
    (u128::from(stated) != sum).then(|| format!("{key} is {stated}, but {parts} add up to {sum}"))
}
