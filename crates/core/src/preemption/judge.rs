//! From evidence to a model.

use super::{Evidence, Model, Preemption, Reading, Sources, Traits, Unread};
use crate::host::KernelVersion;

/// Judges which model runs. The strongest source that decides wins; the others are listed, and
/// where they contradict it a sentence says so.
///
/// ```
/// use wakescope_core::preemption::{judge, Model, Reading, Sources};
/// let cmdline = Reading { source: "/proc/cmdline".into(), text: Ok("quiet preempt=full".into()) };
/// let dynamic = Sources {
///     release: "6.1.0-49-amd64".into(),
///     version: "#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2".into(),
///     cmdline,
///     ..Sources::default()
/// };
/// assert_eq!(judge(&dynamic).model, Model::Full);
/// ```
pub fn judge(sources: &Sources) -> Preemption {
    let facts = Facts::of(sources);
    let model = facts.model();
    let conflicts = facts.conflicts(model);
    let because = facts.because(model);
    Preemption { model, because, evidence: facts.evidence(), conflicts, unread: unread(sources) }
}

/// What the sources say, parsed.
struct Facts<'a> {
    sources: &'a Sources,
    kernel: Option<KernelVersion>,
    tag: Tag,
    /// From debugfs: the model in force, and all words that the kernel knows.
    debugfs: Option<(Model, Vec<&'a str>)>,
    /// The kernel's last word in its log.
    boot_log: Option<Model>,
    realtime: bool,
    /// The words after `preempt=`, in order.
    words: Vec<&'a str>,
    config: Option<Config>,
    traits: Traits,
}

/// What `uname -v` says about preemption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tag {
    Rt,
    Dynamic,
    /// Built preemptible: full or lazy.
    Preempt,
    /// Built not preemptible: none or voluntary.
    Plain,
}

impl Tag {
    fn of(version: &str) -> Self {
        let words: Vec<_> = version.split_whitespace().collect();
        let has = |word| words.contains(&word);
        // The patch set before the merge wrote `PREEMPT RT` (Debian 10, 4.19.*-rt).
        if has("PREEMPT_RT") || words.windows(2).any(|pair| pair == ["PREEMPT", "RT"]) {
            Self::Rt
        } else if has("PREEMPT_DYNAMIC") {
            Self::Dynamic
        } else if has("PREEMPT") {
            Self::Preempt
        } else {
            Self::Plain
        }
    }

    fn says(self) -> &'static str {
        match self {
            Self::Rt => "PREEMPT_RT: built as RT",
            Self::Dynamic => "PREEMPT_DYNAMIC: the model is chosen at boot",
            Self::Preempt => "PREEMPT: built preemptible",
            Self::Plain => "no PREEMPT: built as none or voluntary",
        }
    }
}

/// What the build configuration says about preemption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Config {
    rt: bool,
    dynamic: bool,
    has_lazy: bool,
    /// The model chosen; the default one of a dynamic kernel.
    model: Model,
}

impl Config {
    /// `None` if the text does not look like a kernel's configuration.
    fn of(text: &str) -> Option<Self> {
        let mut config = Self::default();
        let mut is_config = false;
        // Before 5.15 RT was one of the models; since 6.13 it stands beside them.
        for line in text.lines() {
            is_config |= line.starts_with("CONFIG_");
            match line.trim_end() {
                "CONFIG_PREEMPT_RT=y" | "CONFIG_PREEMPT_RT_FULL=y" => config.rt = true,
                "CONFIG_PREEMPT_DYNAMIC=y" => config.dynamic = true,
                "CONFIG_ARCH_HAS_PREEMPT_LAZY=y" => config.has_lazy = true,
                "CONFIG_PREEMPT_NONE=y" | "CONFIG_PREEMPT_NONE_BEHAVIOUR=y" => {
                    config.model = Model::None;
                }
                "CONFIG_PREEMPT_VOLUNTARY=y" | "CONFIG_PREEMPT_VOLUNTARY_BEHAVIOUR=y" => {
                    config.model = Model::Voluntary;
                }
                "CONFIG_PREEMPT_LAZY=y" => config.model = Model::Lazy,
                "CONFIG_PREEMPT=y" | "CONFIG_PREEMPT_BEHAVIOUR=y"
                    if config.model == Model::Unknown =>
                {
                    config.model = Model::Full;
                }
                _ => {}
            }
        }
        is_config.then_some(config)
    }

    /// Whether a kernel of this configuration could carry `tag`. /boot may hold the configuration
    /// of another build under the same release.
    fn fits(self, tag: Tag) -> bool {
        match tag {
            Tag::Rt => self.rt,
            Tag::Dynamic => !self.rt && self.dynamic,
            // From 5.12 to 5.15 a dynamic kernel said PREEMPT.
            Tag::Preempt => !self.rt && matches!(self.model, Model::Full | Model::Lazy),
            Tag::Plain => !self.rt && !matches!(self.model, Model::Full | Model::Lazy),
        }
    }

    fn says(self) -> String {
        let model = match self.model {
            Model::Unknown => "no model".into(),
            model => model.to_string(),
        };
        match (self.rt, self.dynamic) {
            (true, _) => "RT".into(),
            (false, true) => format!("{model} by default, changeable at boot"),
            (false, false) => format!("{model}, not changeable"),
        }
    }
}

impl<'a> Facts<'a> {
    fn of(sources: &'a Sources) -> Self {
        let text = |reading: &'a Reading| reading.text.as_deref().ok();
        Self {
            sources,
            kernel: KernelVersion::of(&sources.release),
            tag: Tag::of(&sources.version),
            debugfs: text(&sources.debugfs).and_then(debugfs),
            boot_log: text(&sources.boot_log).and_then(boot_log),
            realtime: text(&sources.realtime).is_some_and(|t| t.trim() == "1"),
            words: text(&sources.cmdline).map(preempt_words).unwrap_or_default(),
            config: text(&sources.config).and_then(Config::of),
            traits: sources.btf.as_ref().and_then(|b| b.1.clone().ok()).unwrap_or_default(),
        }
    }

    /// The configuration, if it can be this kernel's.
    fn own_config(&self) -> Option<Config> {
        self.config.filter(|c| c.fits(self.tag))
    }

    fn model(&self) -> Model {
        let direct = self.debugfs.as_ref().map(|d| d.0).or(self.boot_log);
        match direct {
            // An RT kernel from 6.13 on may be dynamic as well, and then calls itself full or lazy.
            _ if self.is_rt() => Model::Rt,
            Some(model) => model,
            None if self.is_dynamic() => self.chosen_at_boot(),
            None => self.built(),
        }
    }

    /// How `model` is known.
    fn because(&self, model: Model) -> String {
        let config = || self.sources.config.source.clone();
        if model == Model::Unknown {
            String::new()
        } else if model == Model::Rt {
            match (self.realtime, self.tag) {
                (true, _) => format!("{} is 1", self.sources.realtime.source),
                (_, Tag::Rt) => "its version string says PREEMPT_RT".into(),
                _ => "its spinlocks are those of an RT kernel".into(),
            }
        } else if self.debugfs.is_some() {
            format!("{} says so", self.sources.debugfs.source)
        } else if self.boot_log.is_some() {
            "its boot log says so".into()
        } else if !self.is_dynamic() {
            match self.own_config() {
                Some(_) => format!("{} contains no other model", config()),
                None => "a PREEMPT kernel of this release has no other model".into(),
            }
        } else if self.word_in_force().is_some() {
            format!("preempt={model} is on its command line")
        } else {
            format!("it is the default in {}, and the command line sets no other", config())
        }
    }

    fn is_rt(&self) -> bool {
        self.realtime || self.tag == Tag::Rt || self.traits.rt
    }

    fn is_dynamic(&self) -> bool {
        self.tag == Tag::Dynamic
            || self.own_config().is_some_and(|c| c.dynamic)
            || self.traits.dynamic
            || self.debugfs.is_some()
            || self.boot_log.is_some()
    }

    /// The model of a dynamic kernel that was not switched after boot.
    fn chosen_at_boot(&self) -> Model {
        match self.word_in_force() {
            // Whether it knows the word is not known, so neither is the model.
            Some(word) if self.knows(word).is_none() => Model::Unknown,
            Some(word) => model_of(word),
            None => self.own_config().map_or(Model::Unknown, |c| c.model),
        }
    }

    /// The last `preempt=` that the kernel knows, or may know: it handles each in turn and leaves
    /// out those that it does not know.
    fn word_in_force(&self) -> Option<&str> {
        self.words.iter().rev().copied().find(|word| self.knows(word) != Some(false))
    }

    /// The model of a kernel that has only one.
    fn built(&self) -> Model {
        if let Some(config) = self.own_config() {
            return config.model;
        }
        match self.tag {
            // Before 5.12 PREEMPT could only mean full; until 5.15 it could mean dynamic, and since
            // 6.13 lazy.
            Tag::Preempt => match self.kernel {
                Some(v) if v < KernelVersion(5, 12) => Model::Full,
                Some(v) if v < KernelVersion(5, 16) && self.words.is_empty() => Model::Full,
                Some(v) if v >= KernelVersion(5, 16) && v < KernelVersion(6, 13) => Model::Full,
                _ => Model::Unknown,
            },
            _ => Model::Unknown,
        }
    }

    /// Whether a dynamic kernel of this release and configuration knows `word` after `preempt=`.
    /// `None`: cannot be told.
    fn knows(&self, word: &str) -> Option<bool> {
        if let Some((_, words)) = &self.debugfs {
            return Some(words.contains(&word));
        }
        let has_lazy = match (self.own_config(), self.kernel) {
            (Some(config), _) => Some(config.has_lazy),
            (None, Some(v)) if v < KernelVersion(6, 13) => Some(false),
            // x86 has it since the release that brought it.
            (None, Some(_)) if self.sources.arch == "x86_64" => Some(true),
            (None, _) => None,
        };
        match model_of(word) {
            Model::Full => Some(true),
            Model::Lazy => has_lazy,
            // Linux 7.0 took them from architectures that have lazy.
            Model::None | Model::Voluntary => match self.kernel? {
                v if v < KernelVersion(7, 0) => Some(!self.is_rt()),
                _ => has_lazy.map(|lazy| !lazy && !self.is_rt()),
            },
            Model::Rt | Model::Unknown => Some(false),
        }
    }

    fn evidence(&self) -> Vec<Evidence> {
        let sources = self.sources;
        let mut all = Vec::new();
        let mut add = |source: &str, says: String| {
            all.push(Evidence { source: source.into(), says });
        };
        if let Some((model, _)) = &self.debugfs {
            add(&sources.debugfs.source, model.to_string());
        }
        if let Some(model) = self.boot_log {
            add(&sources.boot_log.source, format!("Dynamic Preempt: {model}"));
        }
        if self.realtime {
            add(&sources.realtime.source, "1: RT".into());
        }
        if !sources.version.is_empty() {
            add("/proc/sys/kernel/version", self.tag.says().into());
        }
        if sources.cmdline.text.is_ok() {
            let says = match self.words.last() {
                Some(_) => {
                    let words: Vec<_> = self.words.iter().map(|w| format!("preempt={w}")).collect();
                    words.join(" ")
                }
                None => "no preempt= given".into(),
            };
            add(&sources.cmdline.source, says);
        }
        if let Some(config) = self.config {
            add(&sources.config.source, config.says());
        }
        if let Some((source, Ok(traits))) = &sources.btf {
            add(source, btf_says(*traits).into());
        }
        all
    }

    fn conflicts(&self, model: Model) -> Vec<String> {
        let mut all = Vec::new();
        if let (Some(config), None) = (self.config, self.own_config()) {
            all.push(format!(
                "{} belongs to another build: it says {}, the running kernel says {}.",
                self.sources.config.source,
                config.says(),
                self.tag.says(),
            ));
        }
        if self.realtime && self.tag != Tag::Rt {
            all.push(format!(
                "{} says 1, but the version string does not say PREEMPT_RT.",
                self.sources.realtime.source
            ));
        }
        if let (Some((debugfs, _)), Some(log)) = (&self.debugfs, self.boot_log) {
            if *debugfs != log {
                all.push(format!("The boot log says {log}, but {debugfs} is in force now."));
            }
        }
        self.conflicts_of_words(model, &mut all);
        all
    }

    /// What became of the `preempt=` words.
    fn conflicts_of_words(&self, model: Model, all: &mut Vec<String>) {
        let Some(last) = self.words.last() else { return };
        if !self.is_dynamic() {
            match self.tag {
                // Without the configuration it cannot be told from a dynamic one of its time.
                Tag::Preempt if model == Model::Unknown => {}
                Tag::Rt => all.push(format!(
                    "preempt={last} on the command line is ignored: an RT kernel without \
                     PREEMPT_DYNAMIC has only one model."
                )),
                _ => all.push(format!(
                    "preempt={last} on the command line is ignored: this kernel is built without \
                     PREEMPT_DYNAMIC."
                )),
            }
            return;
        }
        for word in &self.words {
            if self.knows(word) == Some(false) {
                all.push(format!(
                    "preempt={word} on the command line is ignored: {}.",
                    self.why_unknown(word)
                ));
            }
        }
        let mut known: Vec<_> =
            self.words.iter().filter(|w| self.knows(w) == Some(true)).copied().collect();
        known.dedup();
        if let [.., _, wins] = known[..] {
            all.push(format!(
                "preempt= occurs more than once on the command line ({}): the last one, {wins}, \
                 applies.",
                known.join(", ")
            ));
        }
        // An RT kernel shows full or lazy in debugfs, so compare with that and not with the model.
        let now = self.debugfs.as_ref().map(|d| d.0).or(self.boot_log);
        if let (Some(now), Some(asked)) = (now, known.last()) {
            if now != model_of(asked) {
                all.push(format!(
                    "preempt={asked} is on the command line, but {now} is in force: the model was \
                     changed after boot."
                ));
            }
        }
    }

    fn why_unknown(&self, word: &str) -> String {
        let removed = self.kernel.is_some_and(|v| v >= KernelVersion(7, 0));
        match model_of(word) {
            Model::Lazy if self.kernel.is_some_and(|v| v < KernelVersion(6, 13)) => {
                "lazy preemption exists since Linux 6.13".into()
            }
            Model::Lazy => "this architecture's kernel is built without lazy preemption".into(),
            Model::None | Model::Voluntary if self.is_rt() => {
                "an RT kernel supports only full and lazy".into()
            }
            Model::None | Model::Voluntary if removed => {
                "Linux 7.0 and later support only full and lazy on this architecture".into()
            }
            _ => "this kernel does not know this model".into(),
        }
    }
}

fn model_of(word: &str) -> Model {
    match word {
        "none" => Model::None,
        "voluntary" => Model::Voluntary,
        "full" => Model::Full,
        "lazy" => Model::Lazy,
        _ => Model::Unknown,
    }
}

/// The model in force and all words, from `none (voluntary) full`.
fn debugfs<'a>(text: &'a str) -> Option<(Model, Vec<&'a str>)> {
    let bare = |word: &'a str| word.strip_prefix('(')?.strip_suffix(')');
    let model = model_of(text.split_whitespace().find_map(bare)?);
    let words = text.split_whitespace().map(|w| w.trim_matches(['(', ')'])).collect();
    (model != Model::Unknown).then_some((model, words))
}

/// The last model that the kernel itself announced in its log. It does so at boot and whenever the
/// model is switched (5.12 and later).
fn boot_log(text: &str) -> Option<Model> {
    text.lines().rev().find_map(|line| {
        let (prefix, message) = line.split_once(';')?;
        // The facility is above the three bits of the level; only the kernel's own messages have
        // facility 0, so that no program can forge one.
        let priority: u32 = prefix.split(',').next()?.parse().ok()?;
        let word = message.strip_prefix("Dynamic Preempt: ")?;
        (priority >> 3 == 0).then(|| model_of(word.trim())).filter(|m| *m != Model::Unknown)
    })
}

/// The words after each `preempt=` of a command line. What follows `--` is for init.
fn preempt_words(cmdline: &str) -> Vec<&str> {
    cmdline
        .split_whitespace()
        .take_while(|argument| *argument != "--")
        .filter_map(|argument| argument.trim_matches('"').strip_prefix("preempt="))
        .map(|word| word.trim_matches('"'))
        .collect()
}

fn btf_says(traits: Traits) -> &'static str {
    match (traits.rt, traits.dynamic) {
        (true, _) => "has rt_spin_lock: RT",
        (false, true) => "has sched_dynamic_update: the model is chosen at boot",
        (false, false) => "neither rt_spin_lock nor sched_dynamic_update",
    }
}

fn unread(sources: &Sources) -> Vec<Unread> {
    let readings =
        [&sources.debugfs, &sources.boot_log, &sources.realtime, &sources.cmdline, &sources.config];
    let unread = |(source, text): (&String, Option<&String>)| {
        let why = text?.clone();
        (!source.is_empty()).then(|| Unread { source: source.clone(), why })
    };
    let readings = readings.into_iter().map(|r| (&r.source, r.text.as_ref().err()));
    let btf = sources.btf.iter().map(|(source, read)| (source, read.as_ref().err()));
    readings.chain(btf).filter_map(unread).collect()
}

#[cfg(test)]
mod tests;
