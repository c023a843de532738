/// Fails unless what was told has `want` in it, or nothing was told and nothing is wanted.
#[track_caller]
pub fn assert_told(told: Option<impl AsRef<str>>, want: Option<&str>) {
    let told = told.as_ref().map(AsRef::as_ref);
    let is_it = match (told, want) {
        (Some(told), Some(want)) => told.contains(want),
        (None, None) => true,
        _ => false,
    };
    assert!(is_it, "told: {told:?}, wanted: {want:?}");
}
