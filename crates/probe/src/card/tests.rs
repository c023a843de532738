use super::*;

/// A card with bounds, and a step of its fragments.
struct Made {
    writes: bool,
    format: Format,
    channels: (u32, u32),
    rates: &'static [u32],
    frames: (u32, u32),
    step: u32,
    fragments: (u32, u32),
    most_buffer: u32,
}

/// As `snd-dummy` is.
const USUAL: Made = Made {
    writes: true,
    format: PLAIN_FORMATS[0],
    channels: (1, 2),
    rates: &[8_000, 44_100, 48_000],
    frames: (16, 8_192),
    step: 1,
    fragments: (1, 1_024),
    most_buffer: 16_384,
};

impl Refines for Made {
    fn refine(&self, wanted: &mut Configuration) -> io::Result<()> {
        let none = || io::Error::from(io::ErrorKind::InvalidInput);
        let cut = |wanted: &mut Configuration, field, (least, most): (u32, u32)| {
            let (min, max) = wanted.range(field);
            let left = (min.max(least), max.min(most));
            wanted.limit(field, left);
            if left.0 <= left.1 { Ok(left) } else { Err(none()) }
        };
        if !self.writes || !wanted.has_writes() || !wanted.has_format(self.format) {
            return Err(none());
        }
        wanted.limit_format(self.format);
        cut(wanted, Field::Channels, self.channels)?;
        let (slowest, fastest) = wanted.range(Field::Rate);
        let mut rates = self.rates.iter().filter(|rate| (slowest..=fastest).contains(rate));
        let first = *rates.next().ok_or_else(none)?;
        wanted.limit(Field::Rate, (first, *rates.next_back().unwrap_or(&first)));
        let count = cut(wanted, Field::Fragments, self.fragments)?;
        let buffer = cut(wanted, Field::BufferFrames, (1, self.most_buffer))?;
        let (least, most) = cut(wanted, Field::FragmentFrames, self.frames)?;
        let least = least.max(buffer.0.div_ceil(count.1)).next_multiple_of(self.step);
        let most = most.min(buffer.1 / count.0) / self.step * self.step;
        wanted.limit(Field::FragmentFrames, (least, most));
        if least <= most { Ok(()) } else { Err(none()) }
    }
}

/// What is chosen of a card: its format, channels, rate and frames of a fragment and of the buffer.
fn chosen(card: &Made, us: u64, fragments: u64) -> Result<(&'static str, [u32; 4]), String> {
    let choice = choose(card, SpanNs(us * 1_000), fragments).map_err(|why| {
        let (_, remedies) = why.cause_and_remedies();
        format!("{why} → {}", remedies.join("; "))
    })?;
    let fields = [Field::Channels, Field::Rate, Field::FragmentFrames, Field::BufferFrames];
    Ok((choice.format.format.name(), fields.map(|field| choice.wanted.range(field).0)))
}

#[test]
fn what_a_card_can_do_is_taken() {
    // 2.9 ms are 139.2 frames.
    assert_eq!(chosen(&USUAL, 2_900, 3), Ok(("S16_LE", [2, 48_000, 139, 417])));
    assert_eq!(chosen(&USUAL, 10_000, 2), Ok(("S16_LE", [2, 48_000, 480, 960])));
    let rigid = Made { step: 16, ..USUAL };
    assert_eq!(chosen(&rigid, 2_900, 3), Ok(("S16_LE", [2, 48_000, 144, 432])));
    let old = Made { channels: (8, 8), rates: &[22_050, 44_100], ..USUAL };
    assert_eq!(chosen(&old, 2_900, 3), Ok(("S16_LE", [8, 44_100, 128, 384])));
    let odd = Made { channels: (1, 1), rates: &[8_000, 96_000], format: PLAIN_FORMATS[3], ..USUAL };
    assert_eq!(chosen(&odd, 1_000, 4), Ok(("S24_3LE", [1, 96_000, 96, 384])));
}

#[test]
fn what_a_card_cannot_do_is_refused_with_what_it_can() {
    let refused = |card: &Made, us, fragments| chosen(card, us, fragments).unwrap_err();
    let coarse = Made { step: 1_024, ..USUAL };
    // Of 1024 frames.
    assert_eq!(
        refused(&coarse, 2_900, 3),
        "has no fragments of about 2.90 ms → use the nearest one: --fragment 21333333ns"
    );
    assert_eq!(
        refused(&USUAL, 100_000, 8),
        "has no fragments of about 100 ms → use the nearest one: --fragment 42666667ns"
    );
    let few = Made { fragments: (4, 8), ..USUAL };
    assert_eq!(
        refused(&few, 2_900, 3),
        "has no buffer of 3 fragments → use --fragments from 4 to 8, or another card"
    );
    assert!(refused(&Made { writes: false, ..USUAL }, 2_900, 3).starts_with("takes no frames"));
    let dsd = Format { number: 48, ..PLAIN_FORMATS[7] };
    let strange = refused(&Made { format: dsd, ..USUAL }, 2_900, 3);
    assert!(strange.starts_with("plays no plain samples"), "{strange}");
}

#[test]
fn lengths_are_those_of_the_rate() {
    assert_eq!(length_of(128, (44_100, 1)), SpanNs(2_902_494));
    assert_eq!(length_of(139, (48_000, 1)), SpanNs(2_895_833));
    assert_eq!(length_of(1_001, (48_000_000, 1_001)), SpanNs(20_875_021));
}

#[test]
fn names_of_devices_are_found_and_others_refused_with_a_remedy() {
    let name = |card, device| PcmName { card, device };
    assert_eq!(find("hw:250").unwrap(), name(250, 0));
    assert_eq!(name_of("pcmC1D3p"), Some(name(1, 3)));
    for file in ["pcmC1D3c", "pcmC1p", "controlC0", "pcmC1D3", "pcmCxD0p"] {
        assert_eq!(name_of(file), None, "{file}");
    }
    for text in ["default", "plughw:0,0", "hw:", "hw:0,0,1", "hw:../x", "hw:900", "/dev/null"] {
        let error = find(text).unwrap_err();
        assert!(matches!(error, CardError::Name(_)), "{text}: {error}");
        assert!(error.cause_and_remedies().1[0].contains("--pcm hw:0,0"), "{error:?}");
    }
    for text in ["hw:Nobody", "hw:Nobody,1", "/dev/snd/pcmC250D31p"] {
        assert!(matches!(find(text), Err(CardError::Absent(..))), "{text}");
    }
    let error = Card::open(name(250, 31), SpanNs(2_900_000), 3).unwrap_err();
    assert_eq!(error.to_string(), "this machine has no sound card hw:250,31");
}

#[test]
fn each_refusal_says_what_to_do() {
    let name = PcmName { card: 0, device: 0 };
    let denied = io::Error::from(io::ErrorKind::PermissionDenied);
    for (error, want) in [
        (CardError::Absent("hw:1,0".into(), vec![]), "modprobe snd-dummy"),
        (CardError::Absent("hw:1,0".into(), vec![name]), "--pcm hw:0,0"),
        (CardError::Busy(name), "fuser -v /dev/snd/pcmC0D0p"),
        (CardError::Open(name, denied), "run as root"),
        (CardError::Open(name, io::ErrorKind::Other.into()), "dmesg"),
        (CardError::OneProbe(2), "--cpus 0"),
        (CardError::Unsuited(name, Unsuited::Refused(io::ErrorKind::Other.into())), "dmesg"),
    ] {
        let (_, remedies) = error.cause_and_remedies();
        assert!(remedies.concat().contains(want), "{error}: {remedies:?}");
    }
}
