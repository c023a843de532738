//! A sound card of this machine, taken for one use: found by its name, and set up for fragments.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use wakescope_core::sound_card::{PcmName, SoundCard};
use wakescope_core::units::SpanNs;
use wakescope_sys::pcm::{Configuration, Field, Format, PLAIN_FORMATS, Pcm};
use wakescope_sys::time_namespace::{Shifted, check_clock};

/// Why a sound card cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CardError {
    /// It is named in a way that only the ALSA library knows.
    #[error("`{0}` is not the name of a sound card's device")]
    Name(String),
    /// Its stamps are of another clock than this process reads.
    #[error(transparent)]
    Shifted(#[from] Shifted),
    /// There is none of that name: with those that there are.
    #[error("this machine has no sound card {0}")]
    Absent(String, Vec<PcmName>),
    /// Another program has it.
    #[error("the sound card {0} is in use")]
    Busy(PcmName),
    /// Its device cannot be opened.
    #[error("cannot open the sound card {0}: {1}")]
    Open(PcmName, #[source] io::Error),
    /// It cannot do what is asked for.
    #[error("the sound card {0} {1}")]
    Unsuited(PcmName, Unsuited),
    /// Only one probe can wait for it.
    #[error("a sound card wakes one probe, not {0}")]
    OneProbe(usize),
}

/// What a card cannot do.
#[derive(Debug, thiserror::Error)]
pub enum Unsuited {
    /// Frames are not written to it by calls.
    #[error("takes no frames that a program writes")]
    Writes,
    /// It has no format that is known here.
    #[error("plays no plain samples")]
    Format,
    /// Its fragments have other lengths: with the nearest one that it has.
    #[error("has no fragments of about {asked}")]
    Fragment {
        /// What was asked for.
        asked: SpanNs,
        /// The nearest that it can do.
        nearest: Option<SpanNs>,
    },
    /// Its buffer has another number of fragments: the one that was asked for, the least and the most.
    #[error("has no buffer of {0} fragments")]
    Fragments(u64, u32, u32),
    /// It refuses to be set up.
    #[error("cannot be set up: {0}")]
    Refused(#[source] io::Error),
}

impl CardError {
    /// What lies behind it, if there is more to say, and what to do.
    pub fn cause_and_remedies(&self) -> (Option<String>, Vec<String>) {
        let virtual_one = || "omit --pcm: a virtual sound card needs no device".to_owned();
        match self {
            Self::Name(_) => (
                Some(
                    "wakescope talks to the kernel, without the ALSA library and its names for \
                     converters and mixers"
                        .into(),
                ),
                vec!["name a card and a device of it, as in --pcm hw:0,0".into(), virtual_one()],
            ),
            Self::Shifted(_) => {
                (Some(Shifted::CAUSE.into()), vec![Shifted::REMEDY.into(), virtual_one()])
            }
            Self::Absent(_, there) if there.is_empty() => (
                Some("there is no playback device in /dev/snd".into()),
                vec![
                    "load the driver of a card; `modprobe snd-dummy` makes one without hardware"
                        .into(),
                    virtual_one(),
                ],
            ),
            Self::Absent(_, there) => {
                let names: Vec<String> = there.iter().map(ToString::to_string).collect();
                (None, vec![format!("use one of those that there are: --pcm {}", names.join(", "))])
            }
            Self::Busy(name) => (
                Some("another program plays on it, often PipeWire or PulseAudio".into()),
                vec![format!("end that program; to find it: fuser -v {}", device(*name).display())],
            ),
            Self::Open(_, e) if e.kind() == io::ErrorKind::PermissionDenied => (
                Some("devices of sound cards belong to root and a group, often audio".into()),
                vec!["become a member of that group, or run as root".into(), virtual_one()],
            ),
            Self::Open(..) => (None, vec!["see `dmesg` for messages of its driver".into()]),
            Self::Unsuited(_, why) => why.cause_and_remedies(),
            Self::OneProbe(_) => (
                Some("a card plays what one program writes".into()),
                vec!["name one CPU: --cpus 0".into(), virtual_one()],
            ),
        }
    }
}

impl Unsuited {
    fn cause_and_remedies(&self) -> (Option<String>, Vec<String>) {
        let other = || "use another card".to_owned();
        match self {
            Self::Writes => {
                (Some("its driver only shares memory with programs".into()), vec![other()])
            }
            Self::Format => {
                let known: Vec<&str> =
                    PLAIN_FORMATS.iter().map(|known| known.format.name()).collect();
                (Some(format!("known here are {}", known.join(", "))), vec![other()])
            }
            Self::Fragment { nearest: Some(nearest), .. } => (
                Some("its driver has fixed lengths, or bounds".into()),
                vec![format!("use the nearest one: --fragment {}", nearest.as_argument())],
            ),
            Self::Fragment { nearest: None, .. } => {
                (None, vec!["use another --fragment, or fewer --fragments".into()])
            }
            Self::Fragments(_, least, most) => {
                (None, vec![format!("use --fragments from {least} to {most}, or another card")])
            }
            Self::Refused(_) => (None, vec!["see `dmesg` for messages of its driver".into()]),
        }
    }
}

/// A card that this process has for itself, set up and not started. It is stopped when it is dropped.
#[derive(Debug)]
pub struct Card {
    /// Its device.
    pub pcm: Pcm,
    /// How it was set up.
    pub about: SoundCard,
    /// How long it plays a fragment.
    pub fragment: SpanNs,
    /// Frames per second, as a fraction.
    pub rate: (u32, u32),
    /// Bytes of a frame.
    pub frame_bytes: u64,
}

impl Card {
    /// Takes the card `name` and sets it up for a buffer of `fragments` that last for about `fragment`
    /// each.
    pub fn open(name: PcmName, fragment: SpanNs, fragments: u64) -> Result<Self, CardError> {
        check_clock()?;
        let pcm = Pcm::open(&device(name)).map_err(|e| match e.kind() {
            io::ErrorKind::ResourceBusy | io::ErrorKind::WouldBlock => CardError::Busy(name),
            io::ErrorKind::NotFound => CardError::Absent(name.to_string(), all()),
            _ if e.raw_os_error() == Some(NO_DEVICE) => CardError::Absent(name.to_string(), all()),
            _ => CardError::Open(name, e),
        })?;
        Self::set_up(pcm, fragment, fragments).map_err(|why| CardError::Unsuited(name, why))
    }

    fn set_up(pcm: Pcm, fragment: SpanNs, fragments: u64) -> Result<Self, Unsuited> {
        let Choice { mut wanted, format } = choose(&pcm, fragment, fragments)?;
        pcm.set_up(&mut wanted).map_err(Unsuited::Refused)?;
        let value = |field| wanted.range(field).0;
        let (fragment_frames, buffer_frames) =
            (value(Field::FragmentFrames).into(), value(Field::BufferFrames).into());
        pcm.set_thresholds(fragment_frames, buffer_frames).map_err(Unsuited::Refused)?;
        let (rate, channels) = (wanted.rate(), value(Field::Channels));
        let about = SoundCard {
            name: pcm.name().unwrap_or_default(),
            format: format.format,
            channels,
            rate_hz: rate.0 / rate.1,
            fragment_frames,
            buffer_frames,
        };
        let frame_bytes = u64::from(channels) * u64::from(format.bytes);
        Ok(Self { pcm, about, fragment: length_of(fragment_frames, rate), rate, frame_bytes })
    }
}

/// `ENODEV`: its file is there, and its card is gone.
const NO_DEVICE: i32 = 19;

/// How long a card of that rate plays so many frames, to the nearest nanosecond.
pub(crate) fn length_of(frames: u64, (hz, of): (u32, u32)) -> SpanNs {
    let hz = u128::from(hz.max(1));
    let ns = (u128::from(frames) * u128::from(of) * 1_000_000_000 + hz / 2) / hz;
    SpanNs(u64::try_from(ns).unwrap_or(u64::MAX))
}

/// The number of a card and its device, by the name that a user knows: `hw:0,0`, `hw:PCH,0`, or the path of
/// the device.
pub fn find(name: &str) -> Result<PcmName, CardError> {
    if let Ok(name) = name.parse() {
        return Ok(name);
    }
    if let Some(there) = all().into_iter().find(|&there| device(there) == Path::new(name)) {
        return Ok(there);
    }
    let absent = || CardError::Absent(name.chars().take(80).collect(), all());
    if name.starts_with("/dev/snd/pcmC") && name.ends_with('p') {
        return Err(absent());
    }
    let unknown = || CardError::Name(name.chars().take(80).collect());
    let (id, number) = name
        .strip_prefix("hw:")
        .map(|rest| rest.split_once(',').unwrap_or((rest, "0")))
        .ok_or_else(unknown)?;
    let is_id = !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_id || id.chars().all(|c| c.is_ascii_digit()) {
        return Err(unknown());
    }
    // A link to the folder of the card: `card0`.
    let folder = fs::read_link(Path::new("/proc/asound").join(id)).map_err(|_| absent())?;
    let card = folder.to_str().and_then(|folder| folder.strip_prefix("card"));
    let numbers = format!("hw:{},{number}", card.ok_or_else(absent)?);
    numbers.parse().map_err(|_| unknown())
}

fn device(name: PcmName) -> PathBuf {
    format!("/dev/snd/pcmC{}D{}p", name.card, name.device).into()
}

/// All playback devices of this machine.
fn all() -> Vec<PcmName> {
    let entries = fs::read_dir("/dev/snd").into_iter().flatten().flatten();
    let mut all: Vec<PcmName> = entries.filter_map(|e| name_of(e.file_name().to_str()?)).collect();
    all.sort_by_key(|name| (name.card, name.device));
    all
}

/// The name of the device in the file `pcmC0D0p`.
fn name_of(file: &str) -> Option<PcmName> {
    let (card, device) = file.strip_prefix("pcmC")?.strip_suffix('p')?.split_once('D')?;
    format!("hw:{card},{device}").parse().ok()
}

/// A device that narrows configurations to what it can do: a card, or a simulation of one in tests.
trait Refines {
    fn refine(&self, wanted: &mut Configuration) -> io::Result<()>;
}

impl Refines for Pcm {
    fn refine(&self, wanted: &mut Configuration) -> io::Result<()> {
        Self::refine(self, wanted)
    }
}

/// What a card is to be set up with.
#[derive(Debug)]
struct Choice {
    wanted: Configuration,
    format: Format,
}

/// Rates that are tried, before the fastest of a card.
const RATES: [u32; 2] = [48_000, 44_100];

/// By what part of it a fragment may be longer or shorter than asked for.
const TOLERANCE: u64 = 20;

/// How many lengths of fragments are tried, up and down.
const ATTEMPTS: u32 = 64;

/// Chooses among what `device` can do: two channels if it has them, one of [`RATES`], and the fragment
/// nearest to that asked for.
fn choose(device: &impl Refines, fragment: SpanNs, fragments: u64) -> Result<Choice, Unsuited> {
    let narrowed = |from: &Configuration, narrow: &dyn Fn(&mut Configuration)| {
        let mut wanted = from.clone();
        narrow(&mut wanted);
        device.refine(&mut wanted).map(|()| wanted)
    };
    let none_or_refused = |e: io::Error, none: Unsuited| match e.kind() {
        io::ErrorKind::InvalidInput => none,
        _ => Unsuited::Refused(e),
    };
    let all = Configuration::all();
    let left = narrowed(&all, &Configuration::limit_to_writes)
        .map_err(|e| none_or_refused(e, Unsuited::Writes))?;
    let format = PLAIN_FORMATS.into_iter().find(|&format| left.has_format(format));
    let format = format.ok_or(Unsuited::Format)?;
    let left = narrowed(&left, &|c| c.limit_format(format))
        .map_err(|e| none_or_refused(e, Unsuited::Format))?;
    let (least, most) = left.range(Field::Channels);
    let channels = 2.clamp(least, most.max(least));
    let left = narrowed(&left, &|c| c.limit(Field::Channels, (channels, channels)))
        .map_err(Unsuited::Refused)?;
    let fastest = left.range(Field::Rate).1;
    let rates = RATES.into_iter().chain([fastest]);
    let left = rates
        .map(|rate| narrowed(&left, &|c| c.limit(Field::Rate, (rate, rate))))
        .reduce(|first, next| first.or(next))
        .unwrap_or_else(|| Err(io::ErrorKind::InvalidInput.into()))
        .map_err(Unsuited::Refused)?;

    let (least, most) = left.range(Field::Fragments);
    let of_buffer = || Unsuited::Fragments(fragments, least.max(2), most.min(1_000));
    let count = u32::try_from(fragments).map_err(|_| of_buffer())?;
    let left = narrowed(&left, &|c| c.limit(Field::Fragments, (count, count)))
        .map_err(|e| none_or_refused(e, of_buffer()))?;
    let rate = left.range(Field::Rate).0;
    let frames = u128::from(fragment.0) * u128::from(rate) + 500_000_000;
    let asked = u32::try_from(frames / 1_000_000_000).unwrap_or(u32::MAX).max(1);
    let fits = |frames: u32| {
        let buffer = frames.checked_mul(count)?;
        narrowed(&left, &|c| {
            c.limit(Field::FragmentFrames, (frames, frames));
            c.limit(Field::BufferFrames, (buffer, buffer));
        })
        .ok()
    };
    // Bounds after narrowing to one side of what was asked for are the next candidates on that side.
    let bounds = |range| narrowed(&left, &|c| c.limit(Field::FragmentFrames, range)).ok();
    let (smallest, largest) = left.range(Field::FragmentFrames);
    let side = |is_up: bool| {
        let mut from = asked;
        for _ in 0..ATTEMPTS {
            let range = if is_up { (from, largest) } else { (smallest, from) };
            let left = bounds(range)?.range(Field::FragmentFrames);
            let frames = if is_up { left.0.max(from) } else { left.1.min(from) };
            if let Some(wanted) = fits(frames) {
                return Some((frames, wanted));
            }
            from = if is_up { frames.checked_add(1)? } else { frames.checked_sub(1)? };
        }
        None
    };
    let nearest = [side(true), side(false)].into_iter().flatten();
    let nearest = nearest.min_by_key(|&(frames, _)| frames.abs_diff(asked));
    match nearest {
        Some((frames, wanted))
            if u64::from(frames.abs_diff(asked)) * TOLERANCE <= u64::from(asked.max(20)) =>
        {
            Ok(Choice { wanted, format })
        }
        nearest => Err(Unsuited::Fragment {
            asked: fragment,
            nearest: nearest.map(|(frames, _)| length_of(frames.into(), (rate, 1))),
        }),
    }
}

#[cfg(test)]
mod tests;
