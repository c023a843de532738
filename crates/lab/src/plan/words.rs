//! The words that a plan and the command line have in common.

use std::fmt;
use std::str::FromStr;

/// The most seeds of a lab.
pub(super) const MOST_SEEDS: usize = 1_000;

/// Loads that run at once; none of them is `idle`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LoadSet(Vec<String>);

/// The word for no load.
const IDLE: &str = "idle";

/// The load that writes to a port that guests have for it.
const SPARE_PORT: &str = "serial:ttyS2";

/// The longest name of a load, bytes: disturbances have some parameters.
const LONGEST_NAME: usize = 48;

impl LoadSet {
    /// The loads by name; none if idle.
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// A load whose name is known to be well-formed.
    pub(super) fn known(name: &str) -> Self {
        Self(if name == IDLE { Vec::new() } else { vec![name.into()] })
    }
}

impl fmt::Display for LoadSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { f.pad(IDLE) } else { f.pad(&self.0.join("+")) }
    }
}

impl FromStr for LoadSet {
    type Err = String;

    /// Reads `idle`, `find` or `find+launch`. Whether there is a load of that name, the program in
    /// the guest knows.
    fn from_str(text: &str) -> Result<Self, String> {
        let shown = shortened(text);
        if text == IDLE {
            return Ok(Self(Vec::new()));
        }
        // What follows is a command or its arguments.
        if ["exec:", "stress-ng:"].iter().any(|kind| text.starts_with(kind)) {
            return Err(format!(
                "`{shown}` needs a shell, which a guest does not have; name find, launch or file-move"
            ));
        }
        let mut names = Vec::new();
        for name in text.split('+') {
            let is_plain =
                |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-@%".contains(&b);
            let is_of_port = name.split('@').next() == Some(SPARE_PORT);
            if name.starts_with("serial:") && !is_of_port {
                return Err(format!(
                    "`{shown}` needs a serial port, but a guest has one for loads; name {SPARE_PORT}"
                ));
            }
            let rest = name.trim_start_matches(if is_of_port { SPARE_PORT } else { "" });
            let well_formed =
                !name.is_empty() && name.len() <= LONGEST_NAME && rest.bytes().all(is_plain);
            if !well_formed {
                return Err(format!(
                    "`{shown}` is not a load; write find, or find+launch for both"
                ));
            }
            if name == IDLE {
                return Err(format!("`{shown}` combines `idle` with a load; omit `idle`"));
            }
            if names.iter().any(|n| n == name) {
                return Err(format!("`{shown}` has {name} twice; once is enough"));
            }
            names.push(name.to_owned());
        }
        Ok(Self(names))
    }
}

/// The seeds of a lab: 1 to 1,000 of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seeds {
    /// This many, from 1 on.
    Count(u16),
    /// These.
    List(Vec<u64>),
}

impl Seeds {
    /// Each seed, in order.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let (counted, listed) = match self {
            Self::Count(count) => (1..=u64::from(*count), &[][..]),
            #[allow(clippy::reversed_empty_ranges)] // None are counted.
            Self::List(list) => (1..=0, &list[..]),
        };
        counted.chain(listed.iter().copied())
    }

    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Self::Count(count) => (*count).into(),
            Self::List(list) => list.len(),
        }
    }

    /// Whether there is none, which no plan allows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// This many seeds, if a lab may have so many.
    pub(super) fn count(count: u64) -> Result<Self, String> {
        let counted = u16::try_from(count).ok().filter(|&n| n > 0 && usize::from(n) <= MOST_SEEDS);
        counted.map(Self::Count).ok_or_else(|| format!("{count} is not from 1 to {MOST_SEEDS}"))
    }

    /// These seeds, if a lab may have them.
    pub(super) fn list(list: Vec<u64>) -> Result<Self, String> {
        let mut sorted = list.clone();
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(twice) => Err(format!("seed {} is listed twice", twice[0])),
            None if list.is_empty() => Err("no seed is listed".into()),
            None if list.len() > MOST_SEEDS => {
                Err(format!("{} are listed; the limit is {MOST_SEEDS}", list.len()))
            }
            None => Ok(Self::List(list)),
        }
    }
}

impl fmt::Display for Seeds {
    /// `10` for so many, `3,5` for these; `3,` for one alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::List(list) => {
                let words: Vec<String> = list.iter().map(u64::to_string).collect();
                write!(f, "{}{}", words.join(","), if list.len() == 1 { "," } else { "" })
            }
        }
    }
}

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            text.trim().parse::<u64>().map_err(|_| {
                let shown = shortened(text);
                format!(
                    "`{shown}` is not a seed; write a number of seeds, as in 10, or a list, as in \
                     3,5"
                )
            })
        };
        match text.split_once(',') {
            None => Self::count(number(text)?),
            Some(_) => {
                let list = text.strip_suffix(',').unwrap_or(text);
                Self::list(list.split(',').map(number).collect::<Result<_, _>>()?)
            }
        }
    }
}

/// How fast the guest's CPU is: each instruction takes 2^n virtual ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuSpeed {
    shift: u8,
}

impl CpuSpeed {
    /// The speeds there are, in millions of instructions per virtual second. The next would be no
    /// whole number.
    const MIPS: [u32; 4] = [1_000, 500, 250, 125];

    /// Millions of instructions per virtual second.
    pub fn mips(self) -> u32 {
        Self::MIPS[usize::from(self.shift)]
    }

    /// The emulator's `shift`: an instruction takes 2^shift virtual ns.
    pub fn shift(self) -> u8 {
        self.shift
    }

    /// A CPU of so many millions of instructions per virtual second, if there is one.
    pub(crate) fn of_mips(mips: u64) -> Option<Self> {
        let shift = Self::MIPS.iter().position(|&known| u64::from(known) == mips)?;
        u8::try_from(shift).ok().map(|shift| Self { shift })
    }
}

impl fmt::Display for CpuSpeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.mips())
    }
}

impl FromStr for CpuSpeed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().ok().and_then(Self::of_mips).ok_or_else(|| {
            format!("`{}` is not a CPU speed; write 1000, 500, 250 or 125", shortened(text))
        })
    }
}

/// Reads a margin: `10%` or `0.1`, at most ten times. Without `%` it is below 1: who writes `10` and means 10 % would
/// otherwise allow a hundred times as much.
///
/// # Errors
/// What to write.
pub fn parse_margin(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.strip_suffix('%') {
        Some(number) => (number.trim_end(), 100.0),
        None => (text, 1.0),
    };
    let margin = number.parse::<f64>().ok().map(|m| m / unit).filter(|m| is_margin(*m));
    match margin {
        Some(margin) if margin >= 1.0 && !text.ends_with('%') => Err(format!(
            "`{}` without % would be {}; write {margin}% or {}",
            shortened(text),
            margin_as_argument(margin),
            margin / 100.0
        )),
        Some(margin) => Ok(margin),
        None => Err(format!("`{}` is not a margin; write 10% or 0.1", shortened(text))),
    }
}

/// A margin as [`parse_margin`] reads it. From 1 on it has a `%`, and nine digits behind the point at most.
pub fn margin_as_argument(margin: f64) -> String {
    match margin < 1.0 {
        true => margin.to_string(),
        false => format!("{}%", (margin * 1e11).round() / 1e9),
    }
}

/// Whether a number can be a margin.
pub(super) fn is_margin(margin: f64) -> bool {
    (0.0..=10.0).contains(&margin)
}

/// As much of a text as an error shows.
pub(super) fn shortened(text: &str) -> String {
    let mut shown: String = text.chars().take(80).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check<T: FromStr<Err = String> + fmt::Display>(text: &str, want: Result<&str, &str>) {
        match (text.parse::<T>(), want) {
            (Ok(got), Ok(want)) => assert_eq!(got.to_string(), want, "{text:?}"),
            (Err(e), Err(want)) => assert!(e.contains(want), "{text:?}: {e}"),
            (got, _) => panic!("{text:?}: {:?}", got.map(|g| g.to_string())),
        }
    }

    #[test]
    fn loads() {
        check::<LoadSet>("idle", Ok("idle"));
        check::<LoadSet>("find", Ok("find"));
        check::<LoadSet>("find+file-move", Ok("find+file-move"));
        check::<LoadSet>("find@25%+cpu", Ok("find@25%+cpu"));
        let long = "disturb-loop-lock-break-every-10000-10ms";
        check::<LoadSet>(long, Ok(long));
        check::<LoadSet>(&"x".repeat(49), Err("is not a load"));
        check::<LoadSet>("", Err("is not a load"));
        check::<LoadSet>("find+", Err("is not a load"));
        check::<LoadSet>("find,launch", Err("is not a load"));
        check::<LoadSet>("Find", Err("is not a load"));
        check::<LoadSet>("find+idle", Err("omit `idle`"));
        check::<LoadSet>("find+find", Err("find twice"));
        for text in ["exec:make", "stress-ng:--cpu 1"] {
            check::<LoadSet>(text, Err("needs a shell"));
        }
        check::<LoadSet>("serial:ttyS2+find", Ok("serial:ttyS2+find"));
        check::<LoadSet>("serial:ttyS2@25%", Ok("serial:ttyS2@25%"));
        for text in ["serial:ttyS0", "find+serial:ttyS3", "serial:ttyS22", "serial:"] {
            check::<LoadSet>(text, Err("name serial:ttyS2"));
        }
        check::<LoadSet>(&"x".repeat(10_000), Err("xxx…"));
    }

    #[test]
    fn seeds() {
        check::<Seeds>("10", Ok("10"));
        check::<Seeds>("1000", Ok("1000"));
        check::<Seeds>("3,5", Ok("3,5"));
        check::<Seeds>("3,", Ok("3,"));
        check::<Seeds>("18446744073709551615,0", Ok("18446744073709551615,0"));
        check::<Seeds>("0", Err("not from 1 to 1000"));
        check::<Seeds>("1001", Err("not from 1 to 1000"));
        check::<Seeds>("3,5,3", Err("seed 3 is listed twice"));
        check::<Seeds>("", Err("is not a seed"));
        check::<Seeds>(",", Err("is not a seed"));
        check::<Seeds>("-1", Err("is not a seed"));
        check::<Seeds>("1,x", Err("`x` is not a seed"));
        let seeds = |text: &str| text.parse::<Seeds>().unwrap().iter().collect::<Vec<_>>();
        assert_eq!((seeds("3"), seeds("3,"), seeds("9,2")), (vec![1, 2, 3], vec![3], vec![9, 2]));
    }

    #[test]
    fn cpu_speeds() {
        check::<CpuSpeed>("1000", Ok("1000"));
        check::<CpuSpeed>("125", Ok("125"));
        check::<CpuSpeed>("100", Err("write 1000, 500, 250 or 125"));
        check::<CpuSpeed>("fast", Err("write 1000"));
        for (shift, mips) in (0..).zip(CpuSpeed::MIPS) {
            assert_eq!(CpuSpeed::of_mips(mips.into()).unwrap().shift(), shift);
            assert_eq!(mips << shift, 1_000);
        }
    }

    #[test]
    fn margins() {
        for (text, want) in
            [("10%", Some(0.1)), ("2.5 %", Some(0.025)), ("0.1", Some(0.1)), ("0", Some(0.0))]
        {
            assert_eq!(parse_margin(text).ok(), want, "{text}");
        }
        for bad in ["", "%", "-1%", "NaN", "inf", "11", "ten"] {
            assert!(parse_margin(bad).is_err(), "{bad}");
        }
        for (bad, want) in [
            ("10", "`10` without % would be 1000%; write 10% or 0.1"),
            ("2.5", "`2.5` without % would be 250%; write 2.5% or 0.025"),
            ("1", "`1` without % would be 100%; write 1% or 0.01"),
        ] {
            assert_eq!(parse_margin(bad).unwrap_err(), want);
        }
    }

    #[test]
    fn margins_are_written_as_they_are_read() {
        for tenths in 0..=10_000 {
            let margin = parse_margin(&format!("{}.{}%", tenths / 10, tenths % 10)).unwrap();
            let written = margin_as_argument(margin);
            assert_eq!(parse_margin(&written), Ok(margin), "{written}");
        }
        assert_eq!([0.05, 1.1, 10.0].map(margin_as_argument), ["0.05", "110%", "1000%"]);
    }
}
