//! Paths and their steps.

use std::collections::BTreeMap;

use super::super::words::{LOCKS, PLAIN, SOFTIRQS, TABLES};
use super::super::{Count, LockBreak, LockKind, Path, Step};
use super::at::{At, Fields};
use super::error::Problem;
use super::lengths::Lengths;
use super::limits;
use super::names::Names;
use super::nearest::nearest;
use super::node::{Value, quoted};

/// Reads the paths of a file.
pub(super) struct Paths<'a> {
    found: BTreeMap<&'a str, At<'a>>,
    lengths: &'a Lengths<'a>,
    /// Those that were read.
    read: BTreeMap<&'a str, Block>,
    /// Those that are being read, each called by the one before it.
    open: Vec<&'a str>,
    steps: usize,
    /// What the steps name.
    names: Names,
}

/// Steps, and how deep they lie within each other.
#[derive(Clone, Default)]
struct Block {
    steps: Vec<Step>,
    /// How many steps there are, with those within.
    count: usize,
    nested: usize,
    loops: usize,
}

/// What a step lies in.
#[derive(Clone, Copy, Default)]
struct Inside {
    /// How many steps, those of callers with it.
    nested: usize,
    /// Whether there is a loop within the function.
    looped: bool,
}

impl<'a> Paths<'a> {
    /// Reads every path of the table.
    pub(super) fn read(
        table: Option<&At<'a>>,
        lengths: &'a Lengths<'a>,
    ) -> Result<(Vec<Path>, Names), Problem> {
        let found = match table {
            Some(table) => table.named(limits::PATHS, "a table of paths, each a list of steps")?,
            None => Vec::new(),
        };
        let mut paths = Paths {
            found: found.iter().cloned().collect(),
            lengths,
            read: BTreeMap::new(),
            open: Vec::new(),
            steps: 0,
            names: Names::default(),
        };
        for (name, at) in &found {
            if !super::at::is_name(name, limits::NAME) {
                let longest = limits::NAME;
                return Err(at.problem(format!(
                    "found the name {}, expected 1 to {longest} printable ASCII characters",
                    quoted(name)
                )));
            }
            paths.path(name, at, Inside::default())?;
        }
        let Paths { mut read, names, .. } = paths;
        let mut steps = |name| read.remove(name).unwrap_or_default().steps;
        let all = found.into_iter().map(|(name, _)| Path { name: name.into(), steps: steps(name) });
        Ok((all.collect(), names))
    }

    /// The steps of a path, which may be read already.
    fn path(&mut self, name: &'a str, at: &At<'a>, inside: Inside) -> Result<(), Problem> {
        if self.read.contains_key(name) {
            return Ok(());
        }
        self.open.push(name);
        let block = self.block(at, Inside { looped: false, ..inside })?;
        self.open.pop();
        self.read.insert(name, block);
        Ok(())
    }

    fn block(&mut self, at: &At<'a>, inside: Inside) -> Result<Block, Problem> {
        let mut all = Block::default();
        for at in at.list(limits::STEPS, "steps")? {
            let block = self.step(&at, inside)?;
            all.steps.extend(block.steps);
            all.count += block.count;
            all.nested = all.nested.max(block.nested);
            all.loops = all.loops.max(block.loops);
        }
        Ok(all)
    }

    fn step(&mut self, at: &At<'a>, inside: Inside) -> Result<Block, Problem> {
        self.count(1, at)?;
        let alone = |step| Block { steps: vec![step], count: 1, ..Block::default() };
        match at.value {
            Value::Text(word) => plain(at, word).map(alone),
            Value::Table(entries) => {
                let known = |key: &str| TABLES.iter().find(|(verb, _)| *verb == key);
                let verb = entries.iter().find_map(|(key, _)| known(key.get_ref()));
                let Some(&(verb, others)) = verb else { return Err(unknown(at)) };
                let keys: Vec<&'static str> = [&[verb], others].concat();
                let fields = at.fields(&format!("the step `{verb}`"), &keys)?;
                let value = fields.need(verb)?;
                match (others.contains(&"do"), fields.get("do")) {
                    (true, Some(steps)) => self.around(verb, &value, &steps, inside),
                    (true, None) if verb == "call" => self.call(&value, inside),
                    (true, None) => Err(fields.need("do").err().unwrap_or_else(|| unknown(at))),
                    (false, _) => self.single(verb, &value, &fields, inside).map(alone),
                }
            }
            _ => {
                Err(at.found_instead_of("a step, as in \"cond_resched\" or { compute = \"3us\" }"))
            }
        }
    }

    /// A step around others.
    fn around(
        &mut self,
        verb: &str,
        value: &At<'a>,
        steps: &At<'a>,
        inside: Inside,
    ) -> Result<Block, Problem> {
        let within = Inside {
            nested: inside.nested + 1,
            looped: verb == "repeat" || (inside.looped && verb != "call"),
        };
        if within.nested > limits::NESTED {
            return Err(too_deep(value));
        }
        let block = self.block(steps, within)?;
        let step = |steps| match verb {
            "call" => Ok(Step::Call(value.name(limits::NAME)?, steps)),
            "repeat" => Ok(Step::Repeat(rounds(value)?, steps)),
            "unless" => Ok(Step::Unless(self.names.waits(value)?, steps)),
            _ => Ok(Step::PerCpu(value.name(limits::NAME)?, steps)),
        };
        wrapped(block, value, usize::from(verb == "repeat"), step)
    }

    /// A call of a path by its name.
    fn call(&mut self, value: &At<'a>, inside: Inside) -> Result<Block, Problem> {
        let name = value.text("the name of a path, or of a function with `do` beside it")?;
        let Some((&name, at)) = self.found.get_key_value(name) else {
            let near = nearest(name, self.found.keys().copied());
            let near = near.map(|near| format!("; the nearest path is `{near}`"));
            return Err(value.problem(format!(
                "found {}, expected the name of a path, or `do` with the steps of a function{}",
                quoted(name),
                near.unwrap_or_default()
            )));
        };
        if self.open.contains(&name) {
            return Err(value.problem(format!("found a call of `{name}` within itself")));
        }
        let within = Inside { nested: inside.nested + 1, looped: false };
        if within.nested > limits::NESTED {
            return Err(too_deep(value));
        }
        let at = at.clone();
        self.path(name, &at, within)?;
        let block = self.read.get(name).cloned().unwrap_or_default();
        self.count(block.count, value)?;
        wrapped(block, value, 0, |steps| Ok(Step::Call(name.into(), steps)))
    }

    fn single(
        &mut self,
        verb: &str,
        value: &At<'a>,
        fields: &Fields<'a>,
        inside: Inside,
    ) -> Result<Step, Problem> {
        for &(kind, take, give) in LOCKS {
            if verb == take {
                return Ok(Step::Lock(kind, self.names.takes(value, kind)?));
            }
            if verb == give {
                return Ok(Step::Unlock(kind, self.names.gives(value, kind)?));
            }
        }
        Ok(match verb {
            "user" => Step::User(self.lengths.read(value)?),
            "compute" => Step::Compute(self.lengths.read(value)?),
            "page_fault" => Step::PageFault(self.lengths.read(value)?),
            "lock_break" => Step::LockBreak(self.lock_break(value, fields, inside)?),
            "block" => {
                let interrupt = match fields.get("interrupt") {
                    Some(at) => Some(self.names.sleeps_until(&at)?),
                    None => None,
                };
                Step::Block { length: self.lengths.read(value)?, interrupt }
            }
            "wait" => Step::Wait(self.names.waits(value)?),
            "prepare_to_wait" => Step::PrepareToWait(self.names.waits(value)?),
            "finish_wait" => Step::FinishWait(self.names.waits(value)?),
            "wake" => Step::Wake(self.names.wakes(value)?),
            _ => Step::RaiseSoftirq(self.names.raises(value, softirq(value)?)),
        })
    }

    fn lock_break(
        &mut self,
        lock: &At<'a>,
        fields: &Fields<'a>,
        inside: Inside,
    ) -> Result<LockBreak, Problem> {
        let every = match fields.get("every") {
            Some(at) => at.small(1..=limits::ROUNDS, "a number of iterations")?,
            None => 1,
        };
        let restart = fields.get("restart").map_or(Ok(false), |at| at.truth())?;
        if !inside.looped {
            return Err(
                lock.problem("found a lock break, expected a loop around it in its function")
            );
        }
        Ok(LockBreak { lock: self.names.gives(lock, LockKind::Spin)?, every, restart })
    }

    fn count(&mut self, steps: usize, at: &At<'_>) -> Result<(), Problem> {
        self.steps += steps;
        if self.steps > limits::STEPS {
            let most = limits::STEPS;
            return Err(at.problem(format!("found more than {most} steps of all paths")));
        }
        Ok(())
    }
}

/// A step around a block.
fn wrapped(
    block: Block,
    at: &At<'_>,
    loops: usize,
    step: impl FnOnce(Vec<Step>) -> Result<Step, Problem>,
) -> Result<Block, Problem> {
    let (nested, loops) = (block.nested + 1, block.loops + loops);
    if nested > limits::NESTED {
        return Err(too_deep(at));
    }
    if loops > limits::NESTED_LOOPS {
        let most = limits::NESTED_LOOPS;
        return Err(at.problem(format!("found loops within loops, expected at most {most}")));
    }
    Ok(Block { steps: vec![step(block.steps)?], count: block.count + 1, nested, loops })
}

fn too_deep(at: &At<'_>) -> Problem {
    at.problem(format!("found steps within steps, expected at most {}", limits::NESTED))
}

fn plain(at: &At<'_>, word: &str) -> Result<Step, Problem> {
    if let Some((_, step)) = PLAIN.iter().find(|(name, _)| *name == word) {
        return Ok(step.clone());
    }
    if TABLES.iter().any(|(verb, _)| *verb == word) {
        return Err(at.problem(format!("found `{word}` alone, expected {{ {word} = … }}")));
    }
    let verbs = TABLES.iter().map(|(verb, _)| *verb);
    let near = nearest(word, PLAIN.iter().map(|(name, _)| *name).chain(verbs)).unwrap_or_default();
    Err(at.problem(format!("found {}, expected a step; the nearest is `{near}`", quoted(word))))
}

/// That a table is no step.
fn unknown(at: &At<'_>) -> Problem {
    let Value::Table(entries) = at.value else { return at.found_instead_of("a step") };
    let Some((key, _)) = entries.first() else {
        return at.problem("found a table without keys, expected a step");
    };
    let key = key.get_ref().as_str();
    if PLAIN.iter().any(|(word, _)| *word == key) {
        return at.problem(format!("found `{key}` with a value, expected \"{key}\" alone"));
    }
    let near = nearest(key, TABLES.iter().map(|(verb, _)| *verb)).unwrap_or_default();
    at.problem(format!("found the key {}, expected a step; the nearest is `{near}`", quoted(key)))
}

fn rounds(at: &At<'_>) -> Result<Count, Problem> {
    let of = "a number of rounds";
    if let Value::List(_) = at.value {
        let [least, most] = at.array("a number of rounds, or the least and the most of them")?;
        let fewest = least.small(0..=limits::ROUNDS, of)?;
        let range = u64::from(fewest)..=limits::ROUNDS;
        return Ok(Count::Uniform(fewest, most.small(range, of)?));
    }
    Ok(Count::Fixed(at.small(1..=limits::ROUNDS, of)?))
}

/// A softirq by its name or number.
pub(super) fn softirq(at: &At<'_>) -> Result<u8, Problem> {
    let number = match at.value {
        Value::Text(name) => softirq_named(name),
        Value::Whole(number) => {
            u8::try_from(*number).ok().filter(|n| usize::from(*n) < SOFTIRQS.len())
        }
        _ => None,
    };
    number.ok_or_else(|| at.found_instead_of(&format!("a softirq: {}", SOFTIRQS.join(", "))))
}

/// The number of a softirq that is named, or written as a number.
pub(super) fn softirq_named(text: &str) -> Option<u8> {
    let named = SOFTIRQS.iter().position(|name| *name == text);
    let number = named.or_else(|| text.parse().ok().filter(|n| *n < SOFTIRQS.len()))?;
    u8::try_from(number).ok()
}
