//! Names of the kernel's addresses, from /proc/kallsyms.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

/// Where the kernel lists its symbols.
const KALLSYMS: &str = "/proc/kallsyms";

/// Longer than a kernel with every module has.
const LARGEST: u64 = 256 << 20;

/// How far from its symbol an address may be: further away it is in no function.
const FARTHEST: u64 = 1 << 20;

/// Names of addresses that were asked for.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    /// For each address the symbol before it, and where that begins.
    names: BTreeMap<u64, (u64, String)>,
    /// Of these symbols those that are in a module, each with its module's name.
    modules: BTreeMap<String, String>,
}

impl Symbols {
    /// Names `addresses`, in one pass over the list: it is long, and few of its lines are needed.
    pub(crate) fn of(addresses: impl IntoIterator<Item = u64>) -> io::Result<Self> {
        let list = BufReader::with_capacity(1 << 16, File::open(KALLSYMS)?.take(LARGEST));
        Self::from_list(list, addresses)
    }

    pub(crate) fn from_list(
        list: impl BufRead,
        addresses: impl IntoIterator<Item = u64>,
    ) -> io::Result<Self> {
        // The nearest symbol so far, for each address.
        let mut names: BTreeMap<u64, (u64, String)> =
            addresses.into_iter().filter(|&a| a != 0).map(|a| (a, (0, String::new()))).collect();
        let highest = names.keys().next_back().copied().unwrap_or(0);
        let mut modules = BTreeMap::new();
        for_each_line(list, |start, name, module| {
            if start == 0 || start > highest {
                return;
            }
            // Nobody is further from the symbol than that, so few addresses are looked at.
            for (_, nearest) in names.range_mut(start..=start.saturating_add(FARTHEST)) {
                if nearest.0 < start {
                    *nearest = (start, name.to_string());
                    if let Some(module) = module {
                        modules.insert(name.to_string(), module.to_string());
                    }
                }
            }
        })?;
        names.retain(|_, (start, _)| *start != 0);
        let named: BTreeSet<&str> = names.values().map(|(_, name)| name.as_str()).collect();
        modules.retain(|name, _| named.contains(name.as_str()));
        Ok(Self { names, modules })
    }

    /// Of the functions that were named those that are in a module, each with its module's name.
    pub(crate) fn into_modules(self) -> BTreeMap<String, String> {
        self.modules
    }

    /// `function+0x10`; the bare address if it has no name.
    pub(crate) fn place(&self, address: u64) -> String {
        match self.names.get(&address) {
            Some((start, name)) => format!("{name}+{:#x}", address - start),
            None => format!("{address:#x}"),
        }
    }

    /// As [`Self::place`]; empty for 0, which stands for none.
    pub(crate) fn place_if_any(&self, address: u64) -> String {
        if address == 0 { String::new() } else { self.place(address) }
    }

    /// `function`; the bare address if it has no name.
    pub(crate) fn function(&self, address: u64) -> String {
        match self.names.get(&address) {
            Some((_, name)) => name.clone(),
            None => format!("{address:#x}"),
        }
    }
}

/// The address of the function `name`; `None` if the kernel does not list it or hides addresses.
pub(crate) fn address_of(name: &str) -> Option<u64> {
    let list = BufReader::with_capacity(1 << 16, File::open(KALLSYMS).ok()?.take(LARGEST));
    let mut found = None;
    for_each_line(list, |start, symbol, _| {
        if symbol == name && start != 0 && found.is_none() {
            found = Some(start);
        }
    })
    .ok()?;
    found
}

/// Where the kernel's own variables `names` lie, by their names: those that it lists once, and does
/// not hide. Of variables that each CPU has, x86 lists how far they are from where these begin.
pub(crate) fn variables(names: &[&str]) -> BTreeMap<String, u64> {
    let list = File::open(KALLSYMS).map(|file| file.take(LARGEST));
    let list = list.map(|list| BufReader::with_capacity(1 << 16, list));
    list.and_then(|list| variables_in(list, names)).unwrap_or_default()
}

fn variables_in(list: impl BufRead, names: &[&str]) -> io::Result<BTreeMap<String, u64>> {
    let mut found: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for_each_symbol(list, &["A", "a", "D", "d", "B", "b"], |start, symbol, module| {
        if module.is_none() && names.contains(&symbol) {
            found.entry(symbol.to_string()).or_default().push(start);
        }
    })?;
    let once = found.into_iter().filter_map(|(name, starts)| match starts[..] {
        [start] if start != 0 => Some((name, start)),
        _ => None,
    });
    Ok(once.collect())
}

/// Calls `each` with the address, name and module of every function.
fn for_each_line(list: impl BufRead, each: impl FnMut(u64, &str, Option<&str>)) -> io::Result<()> {
    for_each_symbol(list, &["t", "T", "w", "W"], each)
}

/// Calls `each` with the address, name and module of every line of such a kind:
/// `ffffffff81000000 T _stext`, and for modules with the name of the module in brackets after that.
fn for_each_symbol(
    mut list: impl BufRead,
    kinds: &[&str],
    mut each: impl FnMut(u64, &str, Option<&str>),
) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if list.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let Ok(text) = std::str::from_utf8(&line) else { continue };
        let mut words = text.split_ascii_whitespace();
        let (start, kind, name) = (words.next(), words.next(), words.next());
        let start = start.and_then(|hex| u64::from_str_radix(hex, 16).ok());
        // Of data and of absolute numbers there are more than of functions.
        let wanted = kind.is_some_and(|kind| kinds.contains(&kind));
        if let (Some(start), true, Some(name)) = (start, wanted, name) {
            let module = words.next().and_then(|m| m.strip_prefix('[')?.strip_suffix(']'));
            each(start, name, module);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000100 t helper
ffffffff81000180 d data
not a line
ffffffff81000200 T last
ffffffffc0000000 t in_module\t[module]
";

    #[test]
    fn variables_are_found_that_are_listed_once() {
        let list = "0000000000000000 A first\n000000000001f000 A runqueues\n\
                    0000000000015018 A __preempt_count\n0000000000018d80 a irq_regs\n\
                    ffffffff81000000 T runqueues_of\nffffffff82000000 d twice\n\
                    ffffffff82000100 d twice\nffffffffc0000000 d elsewhere\t[module]\n";
        let names = ["first", "runqueues", "__preempt_count", "twice", "elsewhere", "missing"];
        let found = variables_in(list.as_bytes(), &names).unwrap();
        let found: Vec<_> = found.iter().map(|(name, start)| (name.as_str(), *start)).collect();
        assert_eq!(found, [("__preempt_count", 0x15018), ("runqueues", 0x1f000)]);
    }

    #[test]
    fn an_address_belongs_to_the_function_before_it() {
        let asked = [0xffff_ffff_8100_0104, 0xffff_ffff_8100_01f0, 0xffff_ffff_8100_0200, 0x10, 0];
        let asked = asked.into_iter().chain([0xffff_ffff_c000_0010, 0xffff_ffff_f000_0000]);
        let symbols = Symbols::from_list(LIST.as_bytes(), asked.clone()).unwrap();
        let places: Vec<_> = asked.map(|a| symbols.place(a)).collect();
        assert_eq!(
            places,
            [
                "helper+0x4",
                "helper+0xf0",
                "last+0x0",
                "0x10",
                "0x0",
                "in_module+0x10",
                "0xfffffffff0000000",
            ]
        );
        assert_eq!(symbols.function(0xffff_ffff_8100_0104), "helper");
        let modules = symbols.into_modules();
        assert_eq!(
            modules.into_iter().collect::<Vec<_>>(),
            [("in_module".into(), "module".into())]
        );
    }
}
