//! Plan files.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use toml::Spanned;
use wakescope_core::audio::AudioPlan;
use wakescope_core::plan::{Between, NoRate, ProbePolicy, Rate, Stimulus};
use wakescope_core::units::{SpanError, SpanNs};

use super::overrides::{from_word, parse_each, parse_limits};
use super::{CpuSpeed, Kernels, OwnKeys, Plan, PlanError, Seeds};

/// The largest plan file that is read, in bytes.
pub const LARGEST_FILE: usize = 1 << 20;

/// A plan file as it is written; every key may be left out.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Option<Spanned<String>>,
    description: Option<Spanned<String>>,
    kernels: Option<Words>,
    preempt: Option<Words>,
    preempt_of: Option<Spanned<BTreeMap<String, Words>>>,
    loads: Option<Words>,
    seeds: Option<Spanned<SeedsWord>>,
    samples: Option<Spanned<u64>>,
    stimulus: Option<Spanned<Stimulus>>,
    between: Option<Spanned<Between>>,
    interval: Option<Spanned<String>>,
    rtc_hz: Option<Spanned<u64>>,
    fragments: Option<Spanned<u64>>,
    share: Option<Spanned<String>>,
    pcm: Option<Spanned<String>>,
    runtime: Option<Spanned<String>>,
    warmup: Option<Spanned<String>>,
    cpu_mips: Option<Spanned<u64>>,
    policy: Option<Spanned<ProbePolicy>>,
    priority: Option<Spanned<u8>>,
    compare: Option<Words>,
    margin: Option<Spanned<Number>>,
    published: Option<Words>,
    fail_above: Option<Words>,
    explain: Option<Spanned<bool>>,
    scope: Option<Spanned<bool>>,
}

type Words = Spanned<Vec<Spanned<String>>>;

/// Reads a plan file.
pub(super) fn parse(bytes: &[u8]) -> Result<Plan, PlanError> {
    if bytes.len() > LARGEST_FILE {
        return Err(PlanError::TooLarge);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| PlanError::NotText)?;
    let file: File = toml::from_str(text).map_err(|e| PlanError::Syntax {
        line: line_of(text, e.span().map_or(0, |span| span.start)),
        what: e.message().replace('\n', ": "),
    })?;
    plan(&file).and_then(Plan::checked).map_err(|e| with_line(e, text, &file))
}

fn plan(file: &File) -> Result<Plan, PlanError> {
    /// Takes over a value that the file has.
    fn take<T: Clone>(own: &mut T, said: &Option<Spanned<T>>) {
        if let Some(said) = said {
            own.clone_from(said.get_ref());
        }
    }
    let mut plan = Plan::default();
    take(&mut plan.name, &file.name);
    take(&mut plan.description, &file.description);
    take(&mut plan.samples, &file.samples);
    take(&mut plan.stimulus, &file.stimulus);
    take(&mut plan.between, &file.between);
    take(&mut plan.explain, &file.explain);
    take(&mut plan.scope, &file.scope);
    if let Some(list) = &file.kernels {
        plan.kernels = Kernels::of(words(list).map(str::to_owned).collect());
    }
    if let Some(list) = &file.preempt {
        plan.preempt = parse_each("preempt", words(list))?;
    }
    for (kernel, list) in file.preempt_of.iter().flat_map(|map| map.get_ref()) {
        plan.preempt_of.insert(kernel.clone(), parse_each("preempt_of", words(list))?);
    }
    if let Some(list) = &file.loads {
        plan.loads = parse_each("loads", words(list))?;
    }
    if let Some(seeds) = &file.seeds {
        plan.seeds = match seeds.get_ref() {
            SeedsWord::Count(count) => Seeds::count(*count),
            SeedsWord::List(list) => Seeds::list(list.clone()),
        }
        .map_err(|why| {
            PlanError::value(
                "seeds",
                why,
                "write a number of seeds, as in 10, or a list, as in [3, 5]",
            )
        })?;
    }
    let interval = file.interval.as_ref().map(|text| span("interval", text)).transpose()?;
    let rate = file.rtc_hz.as_ref().map(|hz| rate(*hz.get_ref())).transpose()?;
    plan.take_interval(interval, rate)?;
    plan.own = own_keys(file)?;
    if let Some(text) = &file.warmup {
        plan.warmup = span("warmup", text)?;
    }
    if let Some(mips) = &file.cpu_mips {
        plan.cpu = CpuSpeed::of_mips(*mips.get_ref()).ok_or_else(|| {
            let what = format!("{} million instructions per second", mips.get_ref());
            PlanError::value("cpu_mips", what, "write 1000, 500, 250 or 125")
        })?;
    }
    let own = |x: &Spanned<ProbePolicy>| *x.get_ref();
    let policy = file.policy.as_ref().map(own).or(plan.stimulus.policy());
    plan.take_policy(policy, file.priority.as_ref().map(|p| *p.get_ref()));
    if let Some(list) = &file.compare {
        plan.compare = words(list).map(str::to_owned).collect();
    }
    if let Some(margin) = &file.margin {
        plan.margin = margin.get_ref().0;
    }
    if let Some(list) = &file.published {
        plan.published = words(list).map(str::to_owned).collect();
    }
    if let Some(list) = &file.fail_above {
        plan.fail_above = parse_limits(words(list))?;
    }
    Ok(plan)
}

/// The keys that belong to one stimulus or policy.
fn own_keys(file: &File) -> Result<OwnKeys, PlanError> {
    let fragments = file.fragments.as_ref().map(|count| AudioPlan::fragments_of(*count.get_ref()));
    let share = file.share.as_ref().map(|text| AudioPlan::share_of(text.get_ref()));
    let pcm = file.pcm.as_ref().map(|name| name.get_ref().parse());
    Ok(OwnKeys {
        runtime: file.runtime.as_ref().map(|text| span("runtime", text)).transpose()?,
        fragments: fragments.transpose().map_err(|why| from_word("fragments", &why))?,
        share_ppm: share.transpose().map_err(|why| from_word("share", &why))?,
        pcm: pcm.transpose().map_err(|why: String| from_word("pcm", &why))?,
    })
}

fn rate(hz: u64) -> Result<Rate, PlanError> {
    let read = hz.to_string().parse();
    read.map_err(|e: NoRate| PlanError::value("rtc_hz", e.to_string(), "write one of these"))
}

fn span(key: &'static str, text: &Spanned<String>) -> Result<SpanNs, PlanError> {
    let read = text.get_ref().parse::<SpanNs>();
    read.map_err(|e: SpanError| from_word(key, &e.to_string()))
}

fn words(list: &Words) -> impl Iterator<Item = &str> {
    list.get_ref().iter().map(|word| word.get_ref().as_str())
}

/// `error` with the line of its key, where the file has that.
fn with_line(error: PlanError, text: &str, file: &File) -> PlanError {
    match error {
        PlanError::Value { line: None, key, what, remedy, index } => {
            let line = place(file, key, index).map(|span| line_of(text, span.start));
            PlanError::Value { line, key, what, remedy, index }
        }
        other => other,
    }
}

/// Where a key's value stands, or the entry `index` of it.
fn place(file: &File, key: &str, index: Option<usize>) -> Option<Range<usize>> {
    fn of<T>(value: &Option<Spanned<T>>) -> Option<Range<usize>> {
        value.as_ref().map(Spanned::span)
    }
    let list = |words: &Option<Words>| {
        let entry = |words: &Words| Some(words.get_ref().get(index?)?.span());
        words.as_ref().map(|words| entry(words).unwrap_or_else(|| words.span()))
    };
    match key {
        "name" => of(&file.name),
        "description" => of(&file.description),
        "kernels" => list(&file.kernels),
        "preempt" => list(&file.preempt),
        "preempt_of" => of(&file.preempt_of),
        "loads" => list(&file.loads),
        "seeds" => of(&file.seeds),
        "samples" => of(&file.samples),
        "stimulus" => of(&file.stimulus),
        "between" => of(&file.between),
        "interval" => of(&file.interval),
        "rtc_hz" => of(&file.rtc_hz),
        "fragments" => of(&file.fragments),
        "share" => of(&file.share),
        "pcm" => of(&file.pcm),
        "runtime" => of(&file.runtime),
        "warmup" => of(&file.warmup),
        "cpu_mips" => of(&file.cpu_mips),
        "policy" => of(&file.policy),
        "priority" => of(&file.priority),
        "compare" => list(&file.compare),
        "margin" => of(&file.margin),
        "published" => list(&file.published),
        "fail_above" => list(&file.fail_above),
        "explain" => of(&file.explain),
        "scope" => of(&file.scope),
        _ => None,
    }
}

/// The line, from 1, in which the byte `at` stands.
fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|&b| b == b'\n').count()
}

/// How many seeds, or which.
enum SeedsWord {
    Count(u64),
    List(Vec<u64>),
}

impl<'de> Deserialize<'de> for SeedsWord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = SeedsWord;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of seeds, as in 10, or a list of them, as in [3, 5]")
            }

            fn visit_i64<E: serde::de::Error>(self, count: i64) -> Result<SeedsWord, E> {
                u64::try_from(count)
                    .map(SeedsWord::Count)
                    .map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(count), &self))
            }

            fn visit_u64<E>(self, count: u64) -> Result<SeedsWord, E> {
                Ok(SeedsWord::Count(count))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<SeedsWord, A::Error> {
                let mut list = Vec::new();
                while let Some(seed) = seq.next_element()? {
                    list.push(seed);
                }
                Ok(SeedsWord::List(list))
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

/// A number that may be written without a fraction.
#[derive(Clone, Copy)]
struct Number(f64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl Visitor<'_> for Reader {
            type Value = Number;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a share, as in 0.1 for 10 %")
            }

            fn visit_f64<E>(self, number: f64) -> Result<Number, E> {
                Ok(Number(number))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Number, E> {
                Ok(Number(number as f64))
            }
        }

        deserializer.deserialize_any(Reader)
    }
}
