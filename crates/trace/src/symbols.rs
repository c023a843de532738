//! Names of the kernel's addresses, from /proc/kallsyms.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};

use wakescope_core::explain::Frame;

/// Where the kernel lists its symbols.
const KALLSYMS: &str = "/proc/kallsyms";

/// What says whether the kernel shows addresses, and to whom.
const RESTRICTION: &str = "/proc/sys/kernel/kptr_restrict";

/// Longer than a kernel with every module has.
const LARGEST: u64 = 256 << 20;

/// How far from its symbol an address may be: further away it is in no function.
const FARTHEST: u64 = 1 << 20;

/// No module.
const KERNEL: u16 = u16::MAX;

/// All functions of the kernel and its modules: some 4 MB where a distribution's kernel runs.
#[derive(Debug, Default)]
pub(crate) struct Symbols {
    /// In order of where they begin, no two at one place.
    functions: Vec<Function>,
    /// Their names, each up to a line's end.
    names: String,
    modules: Vec<String>,
    /// Whether functions are listed whose addresses are not shown.
    hidden: bool,
}

/// Why no address has a name.
#[derive(Debug)]
pub(crate) enum Unnamed {
    /// The list cannot be read.
    Unreadable(io::Error),
    /// There are no functions in it.
    Empty,
    /// It shows no addresses, by this value of kernel.kptr_restrict, if that is known.
    Hidden(Option<u8>),
}

impl fmt::Display for Unnamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Reports cut at 80 characters what is not seen.
        match self {
            Self::Unreadable(why) => write!(f, "{KALLSYMS}: {why}"),
            Self::Empty => write!(f, "{KALLSYMS} lists none"),
            // Not even to root (kallsyms_show_value(), 6.18).
            Self::Hidden(Some(2)) => {
                write!(f, "{KALLSYMS} hides addresses (kernel.kptr_restrict is 2)")
            }
            // With 0 and 1 to whoever has that.
            Self::Hidden(Some(_)) => write!(f, "{KALLSYMS} hides addresses (no CAP_SYSLOG)"),
            Self::Hidden(None) => {
                write!(f, "{KALLSYMS} hides them (kptr_restrict, or no CAP_SYSLOG)")
            }
        }
    }
}

/// The list as it is now.
fn listed() -> io::Result<impl BufRead> {
    let list = File::open(KALLSYMS)?.take(LARGEST);
    Ok(BufReader::with_capacity(1 << 16, list))
}

#[derive(Clone, Copy, Debug)]
struct Function {
    start: u64,
    /// Where in all names its name begins.
    name: u32,
    /// The number of its module.
    module: u16,
}

impl Symbols {
    /// Reads the list as it is now, which must name something.
    pub(crate) fn read() -> Result<Self, Unnamed> {
        let restriction =
            || fs::read_to_string(RESTRICTION).ok().and_then(|text| text.trim().parse().ok());
        listed().and_then(Self::from_list).map_err(Unnamed::Unreadable)?.or_unnamed(restriction)
    }

    fn or_unnamed(self, restriction: impl FnOnce() -> Option<u8>) -> Result<Self, Unnamed> {
        match (self.functions.is_empty(), self.hidden) {
            (false, _) => Ok(self),
            (true, true) => Err(Unnamed::Hidden(restriction())),
            (true, false) => Err(Unnamed::Empty),
        }
    }

    pub(crate) fn from_list(list: impl BufRead) -> io::Result<Self> {
        let mut all = Self::default();
        for_each_line(list, FUNCTIONS, |line| {
            let (Some(start), Ok(at)) = (line.start(), u32::try_from(all.names.len())) else {
                return;
            };
            // Where addresses are hidden, all of them are 0.
            if start == 0 {
                all.hidden = true;
                return;
            }
            if marks_a_place(line.name) {
                return;
            }
            let module = line.module.map_or(KERNEL, |name| all.number_of_module(name));
            all.functions.push(Function { start, name: at, module });
            all.names.push_str(line.name);
            all.names.push('\n');
        })?;
        // Of several names for one place the first in the list is taken.
        all.functions.sort_by_key(|function| function.start);
        all.functions.dedup_by_key(|function| function.start);
        all.functions.shrink_to_fit();
        all.names.shrink_to_fit();
        Ok(all)
    }

    /// A module's functions follow one another.
    fn number_of_module(&mut self, name: &str) -> u16 {
        if self.modules.last().is_none_or(|last| last != name) {
            self.modules.push(name.to_string());
        }
        u16::try_from(self.modules.len() - 1).unwrap_or(KERNEL)
    }

    /// The function that `address` is in.
    fn at(&self, address: u64) -> Option<Function> {
        let after = self.functions.partition_point(|function| function.start <= address);
        let function = self.functions[..after].last()?;
        (address - function.start <= FARTHEST).then_some(*function)
    }

    fn name(&self, function: Function) -> &str {
        let from = self.names.get(function.name as usize..).unwrap_or_default();
        from.split('\n').next().unwrap_or_default()
    }

    /// The place `address` in its function. Where that has no name, no more is told: addresses of the
    /// kernel are nobody else's business.
    pub(crate) fn frame(&self, address: u64) -> Frame {
        let Some(function) = self.at(address) else { return Frame::default() };
        Frame {
            module: self.modules.get(usize::from(function.module)).cloned(),
            ..Frame::in_function(self.name(function), address - function.start)
        }
    }

    /// As [`Self::frame`]; `None` for 0, which stands for none.
    pub(crate) fn frame_if_any(&self, address: u64) -> Option<Frame> {
        (address != 0).then(|| self.frame(address))
    }

    /// `function`; empty if the address has no name.
    pub(crate) fn function(&self, address: u64) -> String {
        match self.at(address) {
            Some(function) => self.name(function).to_string(),
            None => String::new(),
        }
    }
}

/// Whether this is no function: `$x` and `$d` tell where code and data begin on arm64, and `.L…` are labels. 6.1
/// lists those of modules. (arm64, 6.1-rt: `$x` was blamed for 29 sections of a module.)
fn marks_a_place(name: &str) -> bool {
    name.starts_with('$') || name.starts_with(".L")
}

/// Addresses of the kernel's own symbols, by their names.
pub(crate) type Addresses = BTreeMap<String, u64>;

/// The addresses of `names`, functions and what lies beside code, but for those that the kernel does
/// not list or hides.
pub(crate) fn addresses_of(names: &[&str]) -> Addresses {
    listed().and_then(|list| addresses_in(list, names)).unwrap_or_default()
}

/// Of several of a name the first counts.
fn addresses_in(list: impl BufRead, names: &[&str]) -> io::Result<Addresses> {
    let mut found = Addresses::new();
    let kinds = [FUNCTIONS, &["D", "d", "R", "r"]].concat();
    for_each_line(list, &kinds, |line| {
        if line.module.is_none() && names.contains(&line.name) {
            if let Some(start) = line.start().filter(|&start| start != 0) {
                found.entry(line.name.to_string()).or_insert(start);
            }
        }
    })?;
    Ok(found)
}

/// Where the kernel's own variables `names` lie, by their names: those that it lists once, and does
/// not hide. Of variables that each CPU has, x86 lists how far they are from where these begin.
pub(crate) fn variables(names: &[&str]) -> BTreeMap<String, u64> {
    listed().and_then(|list| variables_in(list, names)).unwrap_or_default()
}

fn variables_in(list: impl BufRead, names: &[&str]) -> io::Result<BTreeMap<String, u64>> {
    let mut found: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for_each_line(list, &["A", "a", "D", "d", "B", "b"], |line| {
        if line.module.is_none() && names.contains(&line.name) {
            found.entry(line.name.to_string()).or_default().extend(line.start());
        }
    })?;
    let once = found.into_iter().filter_map(|(name, starts)| match starts[..] {
        [start] if start != 0 => Some((name, start)),
        _ => None,
    });
    Ok(once.collect())
}

/// Kinds of symbols that are functions.
const FUNCTIONS: &[&str] = &["t", "T", "w", "W"];

/// A line of the list: `ffffffff81000000 T _stext`, and for modules with the name of the module in
/// brackets after that.
struct Line<'a> {
    address: &'a str,
    kind: &'a str,
    name: &'a str,
    module: Option<&'a str>,
}

impl<'a> Line<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let (address, rest) = text.trim_end().split_once(' ')?;
        let (kind, rest) = rest.split_once(' ')?;
        let (name, module) = match rest.split_once('\t') {
            Some((name, module)) => {
                (name, module.strip_prefix('[').and_then(|module| module.strip_suffix(']')))
            }
            None => (rest, None),
        };
        Some(Self { address, kind, name, module })
    }

    /// Where it lies; 0 where that is hidden.
    fn start(&self) -> Option<u64> {
        u64::from_str_radix(self.address, 16).ok()
    }
}

/// Calls `each` with every line of such a kind. There are 120,000 lines and more, most of which nobody wants:
/// what is not asked for is not read, such as the address.
fn for_each_line(
    mut list: impl BufRead,
    kinds: &[&str],
    mut each: impl FnMut(Line<'_>),
) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if list.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let line = std::str::from_utf8(&line).ok().and_then(Line::read);
        if let Some(line) = line.filter(|line| kinds.contains(&line.kind)) {
            each(line);
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
    fn addresses_are_those_that_the_kernel_itself_lists_first() {
        let list = "ffffffff81000000 T _stext\n0000000000000000 T hidden\n\
                    ffffffff84000000 r __start_orc_unwind_ip\nffffffff82000000 t twice\n\
                    ffffffff82000100 t twice\nffffffffc0000000 t elsewhere\t[module]\n";
        let names = ["_stext", "hidden", "__start_orc_unwind_ip", "twice", "elsewhere", "missing"];
        let found = addresses_in(list.as_bytes(), &names).unwrap();
        let found: Vec<_> = found.iter().map(|(name, start)| (name.as_str(), *start)).collect();
        assert_eq!(
            found,
            [
                ("__start_orc_unwind_ip", 0xffff_ffff_8400_0000),
                ("_stext", 0xffff_ffff_8100_0000),
                ("twice", 0xffff_ffff_8200_0000)
            ]
        );
    }

    #[test]
    fn fuzz_lists_of_symbols() {
        wakescope_testing::fuzz("symbols", &[LIST.into()], |bytes| {
            let Ok(symbols) = Symbols::from_list(bytes) else { return };
            for address in [0, 0xffff_ffff_8100_0188, 0xffff_ffff_c000_0000, u64::MAX] {
                symbols.frame(address);
            }
        });
    }

    #[test]
    fn an_address_belongs_to_the_function_before_it() {
        let asked = [0xffff_ffff_8100_0104, 0xffff_ffff_8100_01f0, 0xffff_ffff_8100_0200, 0x10, 0];
        let asked = asked.into_iter().chain([0xffff_ffff_c000_0010, 0xffff_ffff_f000_0000]);
        let symbols = Symbols::from_list(LIST.as_bytes()).unwrap();
        let frames: Vec<_> = asked.map(|a| symbols.frame(a)).collect();
        let of = Frame::in_function;
        let in_module = Frame { module: Some("module".into()), ..of("in_module", 0x10) };
        let unknown = Frame::default;
        assert_eq!(
            frames,
            [
                of("helper", 4),
                of("helper", 0xf0),
                of("last", 0),
                unknown(),
                unknown(),
                in_module,
                unknown()
            ]
        );
        assert_eq!(symbols.frame_if_any(0), None);
        assert_eq!(symbols.function(0xffff_ffff_8100_0104), "helper");
    }

    #[test]
    fn marks_in_the_code_of_modules_are_no_functions() {
        let list = "ffff000001 t $x\t[m]\nffff000001 t begin\t[m]\nffff000100 t $d.2\t[m]\n\
                    ffff000108 t $x\t[m]\nffff000110 t .Lend\t[m]\n";
        let symbols = Symbols::from_list(list.as_bytes()).unwrap();
        let named = |at| (symbols.function(at), symbols.frame(at).offset);
        assert_eq!(named(0xff_ff00_0001), ("begin".into(), 0));
        assert_eq!(named(0xff_ff00_0112), ("begin".into(), 0x111));
    }

    #[test]
    fn why_nothing_has_a_name_is_told() {
        let hidden = "0000000000000000 A fixed_percpu_data\n0000000000000000 T _stext\n\
                      0000000000000000 t in_module\t[module]\n";
        let named = "0000000000000000 T absent\nffffffff81000000 T _stext\n";
        let data = "ffffffff82000000 d data\n";
        for (list, restriction, why) in [
            (LIST, Some(2), None),
            (named, Some(2), None),
            (hidden, Some(2), Some("/proc/kallsyms hides addresses (kernel.kptr_restrict is 2)")),
            (hidden, Some(1), Some("/proc/kallsyms hides addresses (no CAP_SYSLOG)")),
            (hidden, Some(0), Some("/proc/kallsyms hides addresses (no CAP_SYSLOG)")),
            (hidden, None, Some("/proc/kallsyms hides them (kptr_restrict, or no CAP_SYSLOG)")),
            ("", None, Some("/proc/kallsyms lists none")),
            ("not a list", None, Some("/proc/kallsyms lists none")),
            (data, Some(2), Some("/proc/kallsyms lists none")),
        ] {
            let symbols = Symbols::from_list(list.as_bytes()).unwrap();
            let text = symbols.or_unnamed(|| restriction).err().map(|why| why.to_string());
            assert_eq!(text.as_deref(), why, "{list}");
            // Reports cut what is longer.
            let length = text.map_or(0, |why| format!("names of functions: {why}").len());
            assert!(length <= 80, "{length}: {why:?}");
        }
    }

    #[test]
    fn of_names_for_one_place_the_first_is_taken_in_whatever_order_places_come() {
        let list = "30 t c\n10 t a\n10 T also_a\n20 t b\n";
        let symbols = Symbols::from_list(list.as_bytes()).unwrap();
        assert_eq!([0x10, 0x1f, 0x21, 0x30].map(|a| symbols.function(a)), ["a", "a", "b", "c"]);
        assert_eq!(symbols.function(0xf), "");
    }
}
