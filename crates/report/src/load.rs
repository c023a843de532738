//! stub
use wakescope_core::run::LoadResult;
/// stub
pub fn table(_: &[LoadResult]) -> String {
    String::new()
}
