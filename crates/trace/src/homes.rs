//! Whose the functions of stacks are: the kernel's own or a module's, and of which build.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;

use crate::image::build_id_of_notes;
use crate::symbols::Symbols;

/// More than notes of a kernel take, in bytes.
const LARGEST_NOTES: u64 = 1 << 20;

/// Whose a function is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Home {
    Kernel,
    Module(String),
    /// Several have functions of that name.
    Several,
}

/// Whose functions are, by their names.
#[derive(Debug, Default)]
pub(crate) struct Homes(BTreeMap<String, Home>);

impl Homes {
    /// Remembers whose the functions at `addresses` are, as long as that makes no more than `most`.
    pub(crate) fn add(
        &mut self,
        symbols: &Symbols,
        addresses: impl Iterator<Item = u64>,
        most: usize,
    ) {
        for (name, module) in addresses.filter_map(|address| symbols.home(address)) {
            let is = |home: &Home| match home {
                Home::Kernel => module.is_none(),
                Home::Module(own) => module == Some(own),
                Home::Several => true,
            };
            let has_room = self.0.len() < most;
            match self.0.get_mut(name) {
                Some(home) if is(home) => {}
                Some(home) => *home = Home::Several,
                None if has_room => {
                    let home = module.map_or(Home::Kernel, |own| Home::Module(own.to_owned()));
                    self.0.insert(name.to_owned(), home);
                }
                None => {}
            }
        }
    }

    /// The functions of modules, each with its module's name: an empty one where several have a
    /// function of that name.
    pub(crate) fn of_modules(self) -> BTreeMap<String, String> {
        let named = self.0.into_iter().filter_map(|(function, home)| match home {
            Home::Kernel => None,
            Home::Module(module) => Some((function, module)),
            Home::Several => Some((function, String::new())),
        });
        named.collect()
    }
}

/// The id of the running kernel's build, if it tells.
pub fn build_id_of_kernel() -> Option<String> {
    build_id_in("/sys/kernel/notes")
}

/// The ids of the builds of loaded `modules`, by their names: of those that tell. What stands for a
/// module in the list of functions but is none, as `bpf`, has none.
pub(crate) fn build_ids<'m>(
    modules: impl IntoIterator<Item = &'m String>,
) -> BTreeMap<String, String> {
    let modules: BTreeSet<&String> = modules.into_iter().collect();
    let is_name = |name: &str| !name.is_empty() && !name.contains(['/', '.']);
    let id = |name: &String| {
        let path = format!("/sys/module/{name}/notes/.note.gnu.build-id");
        Some((name.clone(), build_id_in(&path)?))
    };
    modules.into_iter().filter(|name| is_name(name)).filter_map(id).collect()
}

fn build_id_in(path: &str) -> Option<String> {
    let mut notes = Vec::new();
    File::open(path).ok()?.take(LARGEST_NOTES).read_to_end(&mut notes).ok()?;
    build_id_of_notes(&notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\
1000 t probe
1100 T vfs_read
2000 t probe\t[nvme]
2100 t nvme_irq\t[nvme]
3000 t init\t[nvme]
4000 t init\t[ext4]
";

    fn told(addresses: &[u64]) -> Vec<(String, String)> {
        let symbols = Symbols::from_list(LIST.as_bytes()).unwrap();
        let mut homes = Homes::default();
        for &address in addresses {
            homes.add(&symbols, [address].into_iter(), 3);
        }
        homes.of_modules().into_iter().collect()
    }

    fn named(functions: &[(&str, &str)]) -> Vec<(String, String)> {
        functions.iter().map(|&(function, module)| (function.into(), module.into())).collect()
    }

    #[test]
    fn functions_of_modules_are_told_with_their_modules() {
        assert_eq!(told(&[0x1108, 0x2108, 0x2110, 0]), named(&[("nvme_irq", "nvme")]));
        // Only what was seen counts.
        assert_eq!(told(&[0x2008]), named(&[("probe", "nvme")]));
        assert_eq!(told(&[0x1008]), named(&[]));
    }

    #[test]
    fn of_what_several_have_it_is_told_that_it_is_no_one_s() {
        for addresses in [&[0x1008, 0x2008][..], &[0x2008, 0x1008], &[0x2008, 0x1008, 0x2008]] {
            assert_eq!(told(addresses), named(&[("probe", "")]), "{addresses:x?}");
        }
        assert_eq!(told(&[0x3001, 0x4001]), named(&[("init", "")]));
        // Also when there is no room for more.
        let all = [0x1008, 0x1108, 0x2108, 0x3001, 0x2008];
        assert_eq!(told(&all), named(&[("nvme_irq", "nvme"), ("probe", "")]));
    }

    #[test]
    fn what_is_no_module_has_no_build() {
        let none = ["bpf", "", "..", "../kernel", "__builtin__kprobes"].map(str::to_owned);
        assert_eq!(build_ids(&none), BTreeMap::new());
    }
}
