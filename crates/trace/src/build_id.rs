//! Of which build the running kernel and its modules are.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;

use crate::image::build_id_of_notes;

/// More than notes of a kernel take, in bytes.
const LARGEST_NOTES: u64 = 1 << 20;

/// The id of the running kernel's build, if it tells.
pub fn build_id_of_kernel() -> Option<String> {
    build_id_in("/sys/kernel/notes")
}

/// The ids of the builds of loaded `modules`, by their names: of those that tell. What stands for a
/// module in the list of functions but is none, as `bpf`, has none.
pub(crate) fn build_ids(modules: &BTreeSet<&str>) -> BTreeMap<String, String> {
    let is_name = |name: &str| !name.is_empty() && !name.contains(['/', '.']);
    let id = |name: &&str| {
        let path = format!("/sys/module/{name}/notes/.note.gnu.build-id");
        Some(((*name).to_owned(), build_id_in(&path)?))
    };
    modules.iter().filter(|name| is_name(name)).filter_map(id).collect()
}

fn build_id_in(path: &str) -> Option<String> {
    let mut notes = Vec::new();
    File::open(path).ok()?.take(LARGEST_NOTES).read_to_end(&mut notes).ok()?;
    build_id_of_notes(&notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_module_has_no_build() {
        let none = ["bpf", "", "..", "../kernel", "__builtin__kprobes"].into();
        assert_eq!(build_ids(&none), BTreeMap::new());
    }
}
