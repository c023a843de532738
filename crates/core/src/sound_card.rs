//! Sound cards of the machine: how one is named, and how its driver set it up.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A playback device by the kernel's numbers: `hw:0,0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PcmName {
    /// The number of its card.
    pub card: u8,
    /// Its number on the card.
    pub device: u8,
}

impl fmt::Display for PcmName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hw:{},{}", self.card, self.device)
    }
}

impl FromStr for PcmName {
    type Err = String;

    /// Reads `hw:CARD` or `hw:CARD,DEVICE`, both of them numbers.
    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.strip_prefix("hw:").unwrap_or_default();
        let (card, device) = numbers.split_once(',').unwrap_or((numbers, "0"));
        match (number(card), number(device)) {
            (Some(card), Some(device)) => Ok(Self { card, device }),
            _ => Err("write a card and a device of it, as in hw:0,0".into()),
        }
    }
}

/// A number as the kernel writes it, without a sign or zeros before it.
fn number(text: &str) -> Option<u8> {
    text.parse::<u8>().ok().filter(|number| number.to_string() == text)
}

impl Serialize for PcmName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PcmName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// A format of samples in which silence is zeros, by the name that ALSA has for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)] // The names say it: bits, bytes where they are fewer or more, and their order.
pub enum SampleFormat {
    #[default]
    #[serde(rename = "S16_LE")]
    S16Le,
    #[serde(rename = "S32_LE")]
    S32Le,
    #[serde(rename = "S24_LE")]
    S24Le,
    #[serde(rename = "S24_3LE")]
    S24In3Le,
    #[serde(rename = "S16_BE")]
    S16Be,
    #[serde(rename = "S32_BE")]
    S32Be,
    #[serde(rename = "S24_3BE")]
    S24In3Be,
    #[serde(rename = "S8")]
    S8,
    #[serde(rename = "FLOAT_LE")]
    FloatLe,
}

impl SampleFormat {
    /// As ALSA names it: `S16_LE`.
    pub fn name(self) -> &'static str {
        match self {
            Self::S16Le => "S16_LE",
            Self::S32Le => "S32_LE",
            Self::S24Le => "S24_LE",
            Self::S24In3Le => "S24_3LE",
            Self::S16Be => "S16_BE",
            Self::S32Be => "S32_BE",
            Self::S24In3Be => "S24_3BE",
            Self::S8 => "S8",
            Self::FloatLe => "FLOAT_LE",
        }
    }
}

/// A sound card as its driver set it up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoundCard {
    /// The name of the playback device, as its driver has it.
    pub name: String,
    /// The format of its samples.
    pub format: SampleFormat,
    /// How many channels it plays.
    pub channels: u32,
    /// Frames per second, rounded down.
    pub rate_hz: u32,
    /// How many frames a fragment has.
    pub fragment_frames: u64,
    /// How many frames its buffer has.
    pub buffer_frames: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_named_by_two_numbers() {
        let name = |text: &str| text.parse::<PcmName>().map(|name| name.to_string());
        assert_eq!(name("hw:0,0").as_deref(), Ok("hw:0,0"));
        assert_eq!(name("hw:12").as_deref(), Ok("hw:12,0"));
        assert_eq!(name("hw:1,31").as_deref(), Ok("hw:1,31"));
        for text in ["", "hw:", "hw:,", "0,0", "hw:a,0", "hw:0,0,0", "hw:256", "hw:+1", "hw:00"] {
            assert!(name(text).unwrap_err().contains("hw:0,0"), "{text}");
        }
        let json = serde_json::to_string(&PcmName { card: 3, device: 1 }).unwrap();
        assert_eq!(json, "\"hw:3,1\"");
        assert_eq!(serde_json::from_str::<PcmName>(&json).unwrap().card, 3);
        assert!(serde_json::from_str::<PcmName>("\"plughw:0\"").is_err());
    }

    #[test]
    fn formats_have_one_name_in_records_and_in_texts() {
        use SampleFormat::{FloatLe, S8, S16Be, S16Le, S24In3Be, S24In3Le, S24Le, S32Be, S32Le};
        for format in [S16Le, S32Le, S24Le, S24In3Le, S16Be, S32Be, S24In3Be, S8, FloatLe] {
            assert_eq!(serde_json::to_value(format).unwrap(), format.name());
        }
    }
}
