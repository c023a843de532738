//! Entries of stacks.

use serde::{Deserialize, Serialize, Serializer};

/// A place in code, as an entry of a stack. Of the kernel's, `module` is the kernel module that it is
/// in; of a program's, the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Frame {
    /// The symbol, with what the compiler adds to the parts that it makes of a function; `None` if the
    /// place is in none that is known.
    pub function: Option<String>,
    /// From the function's beginning, bytes. Without a function from the beginning of the file
    /// `module`, or 0 if that is not known either.
    #[serde(default)]
    pub offset: u64,
    /// The module or file; `None` for the kernel itself, or if it is not known.
    #[serde(default)]
    pub module: Option<String>,
    /// The source file, from the root of the sources where that is known; `None` if nobody looked for
    /// it, or found none.
    #[serde(default)]
    pub file: Option<String>,
    /// The line of that file, counted from 1; 0 if it is not known.
    #[serde(default)]
    pub line: u32,
    /// The functions that the compiler put into this one at this place, the innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inlined: Vec<SourceLine>,
}

/// A function that was put into another one, and the line of source in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SourceLine {
    /// The function; may be empty.
    #[serde(default)]
    pub function: String,
    /// The file, from the root of the sources where that is known; may be empty.
    pub file: String,
    /// Counted from 1; 0 if it is not known.
    pub line: u32,
}

/// A function, as it is called in the sources.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The kernel module that it is in; `None` for the kernel itself.
    #[serde(default)]
    pub module: Option<String>,
}

impl Frame {
    /// A place in a function of the kernel itself, `offset` bytes behind its beginning.
    pub fn in_function(function: impl Into<String>, offset: u64) -> Self {
        Self { function: Some(function.into()), offset, ..Self::default() }
    }

    /// The function as the sources call it: `exit_mmap` where the symbol is `exit_mmap.part.0`. Empty
    /// if it is not known.
    pub fn name(&self) -> &str {
        let symbol = self.function.as_deref().unwrap_or_default();
        match symbol.find('.') {
            Some(dot) if dot > 0 => &symbol[..dot],
            _ => symbol,
        }
    }

    /// The function that it is in, if that is known.
    pub fn function(&self) -> Option<Function> {
        let name = self.name();
        (!name.is_empty()).then(|| Function { name: name.to_owned(), module: self.module.clone() })
    }

    /// Takes over the lines of source of this place, the innermost function's first and its own last.
    /// Without any it stays as it is.
    pub fn set_lines(&mut self, mut lines: Vec<SourceLine>) {
        if let Some(SourceLine { file, line, .. }) = lines.pop() {
            self.file = Some(file).filter(|file| !file.is_empty());
            self.line = line;
            self.inlined = lines;
        }
    }

    /// Whether both are the same place, whatever is known of their lines.
    pub fn is_at(&self, other: &Self) -> bool {
        (self.offset, &self.function, &self.module)
            == (other.offset, &other.function, &other.module)
    }
}

/// Writes a stack without the keys that say nothing: an episode has many frames and few lines of source.
pub(crate) fn short_stack<S: Serializer>(stack: &[Frame], out: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Short<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        function: Option<&'a str>,
        offset: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        module: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        file: Option<&'a str>,
        #[serde(skip_serializing_if = "is_unknown")]
        line: u32,
        #[serde(skip_serializing_if = "<[SourceLine]>::is_empty")]
        inlined: &'a [SourceLine],
    }
    out.collect_seq(stack.iter().map(|frame| Short {
        function: frame.function.as_deref(),
        offset: frame.offset,
        module: frame.module.as_deref(),
        file: frame.file.as_deref(),
        line: frame.line,
        inlined: &frame.inlined,
    }))
}

#[allow(clippy::trivially_copy_pass_by_ref)] // So serde calls it.
fn is_unknown(line: &u32) -> bool {
    *line == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_called_as_in_the_sources() {
        for (symbol, want) in [
            (Some("exit_mmap"), "exit_mmap"),
            (Some("exit_mmap.part.0"), "exit_mmap"),
            (Some("shmem_undo_range.constprop.0.isra.0"), "shmem_undo_range"),
            (Some("do_exit.cold"), "do_exit"),
            (Some(".hidden"), ".hidden"),
            (Some(""), ""),
            (None, ""),
        ] {
            let frame = Frame { function: symbol.map(str::to_owned), ..Frame::default() };
            assert_eq!(frame.name(), want, "{symbol:?}");
        }
        assert_eq!(Frame::default().function(), None);
    }

    #[test]
    fn records_of_frames_have_all_keys() {
        let json = serde_json::to_value(Frame::in_function("f", 16)).unwrap();
        let want = serde_json::json!({
            "function": "f", "offset": 16, "module": null, "file": null, "line": 0
        });
        assert_eq!(json, want);
        let unknown: Frame = serde_json::from_str(r#"{"function": null}"#).unwrap();
        assert_eq!(unknown, Frame::default());
    }
}
