//! Pictures of runs, for pages, papers and slides: as SVG, and as PNG for who cannot take that.
//!
//! Each is made once, as a scene of lines, bars and text, whatever it is drawn as. Curves differ by
//! colour and by dashes, bars by colour and by hatching, so that grey paper loses nothing.

use std::fmt;
use std::str::FromStr;

use wakescope_stats::trend::{Series, Trend};

use crate::model::Drawn;
use crate::run_set::RunSet;

mod audio;
mod axis;
mod bars;
mod causes;
mod components;
mod course;
mod cpus;
mod curve;
mod episodes;
mod exceedance;
mod font;
mod frame;
mod histogram;
mod matrix;
mod png;
mod raster;
pub(crate) mod scene;
mod svg;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod timeline;
mod trend;
mod width;

pub(crate) use scene::Scene;
pub(crate) use svg::{draw as draw_svg, escaped};

/// What a picture shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Picture {
    /// The share of samples later than x.
    #[default]
    Exceedance,
    /// How many wakeups were how late.
    Histogram,
    /// The share of samples later than x, for each CPU.
    Cpus,
    /// The largest lateness over the course of the run.
    Course,
    /// The fragments of a virtual sound card over the course of the run.
    Audio,
    /// Components of wakeup latency.
    Components,
    /// Causes of late wakeups.
    Causes,
    /// What the latest wakeups consist of.
    Episodes,
    /// The median of each pair of CPUs of waker and probe.
    Matrix,
}

impl Picture {
    /// All of them, in the order in which a page shows them.
    pub const ALL: [Self; 9] = [
        Self::Exceedance,
        Self::Histogram,
        Self::Cpus,
        Self::Course,
        Self::Audio,
        Self::Components,
        Self::Causes,
        Self::Episodes,
        Self::Matrix,
    ];

    /// Its name on a command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exceedance => "exceedance",
            Self::Histogram => "histogram",
            Self::Cpus => "cpus",
            Self::Course => "course",
            Self::Audio => "audio",
            Self::Components => "components",
            Self::Causes => "causes",
            Self::Episodes => "episodes",
            Self::Matrix => "matrix",
        }
    }

    /// What a run lacks that cannot be shown so.
    pub fn needs(self) -> &'static str {
        match self {
            Self::Exceedance | Self::Histogram | Self::Cpus => "samples",
            Self::Course => "maxima over time",
            Self::Audio => "a virtual sound card (`wakescope measure --stimulus audio` has one)",
            Self::Components | Self::Causes => "an explanation (`wakescope explain` makes one)",
            Self::Episodes => "late wakeups",
            Self::Matrix => {
                "runs of pairs of 2 to 64 CPUs, the same otherwise (`wakescope measure --place matrix` \
                 makes a folder of them)"
            }
        }
    }
}

impl fmt::Display for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Picture {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = Self::ALL.map(Self::name).join(", ");
        Self::ALL
            .into_iter()
            .find(|p| p.name() == text)
            .ok_or_else(|| format!("`{text}` is not a picture; available: {names}"))
    }
}

/// How much room a picture has, and what stands beside it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Room {
    pub(crate) width: f64,
    /// Without title and legend: these stand beside it.
    pub(crate) bare: bool,
}

impl Room {
    /// A picture by itself.
    pub(crate) const ALONE: Self = Self { width: 880.0, bare: false };

    pub(crate) fn is_narrow(self) -> bool {
        self.width < 560.0
    }
}

/// The picture as SVG, for papers, slides and pages; `None` if no run has what it shows.
pub fn svg(picture: Picture, run_set: &RunSet) -> Option<String> {
    scene(picture, run_set, Room::ALONE).map(|scene| svg::document(&scene))
}

/// The picture as PNG, at 192 dots per inch; `None` if no run has what it shows.
pub fn png(picture: Picture, run_set: &RunSet) -> Option<Vec<u8>> {
    scene(picture, run_set, Room::ALONE).map(|scene| png::draw(&scene))
}

/// The picture of a series of runs as SVG, one quantity of it; `None` where there is nothing to draw.
pub fn trend_svg(trend: &Trend, series: &Series) -> Option<String> {
    trend::scene(trend, series).map(|scene| svg::document(&scene))
}

/// The same as PNG, at 192 dots per inch.
pub fn trend_png(trend: &Trend, series: &Series) -> Option<Vec<u8>> {
    trend::scene(trend, series).map(|scene| png::draw(&scene))
}

/// The pictures of wakeups of a simulation, each under its model, one above the other as SVG.
pub fn timelines_svg(drawn: &[Drawn<'_>]) -> String {
    svg::document(&timelines(drawn))
}

/// The same as PNG, at 192 dots per inch.
pub fn timelines_png(drawn: &[Drawn<'_>]) -> Vec<u8> {
    png::draw(&timelines(drawn))
}

fn timelines(drawn: &[Drawn<'_>]) -> Scene {
    let scenes = drawn.iter().map(|d| timeline::scene(d.image, &d.timeline, Room::ALONE));
    timeline::below_each_other(scenes.collect())
}

/// What the picture consists of.
pub(crate) fn scene(picture: Picture, run_set: &RunSet, room: Room) -> Option<Scene> {
    match picture {
        Picture::Exceedance => exceedance::scene(run_set, room),
        Picture::Histogram => histogram::scene(run_set, room),
        Picture::Cpus => cpus::scene(run_set, room),
        Picture::Course => course::scene(run_set, room),
        Picture::Audio => audio::scene(run_set, room),
        Picture::Components => components::scene(run_set, room),
        Picture::Causes => causes::scene(run_set, room),
        Picture::Episodes => episodes::scene(run_set, room),
        Picture::Matrix => matrix::scene(run_set, room),
    }
}

pub(crate) use course::maxima;
pub(crate) use curve::bands;

/// The class of a curve's ink, and its dashes as an attribute.
pub(crate) fn look_of(at: usize) -> (String, String) {
    let (ink, dash) = frame::look(at);
    let lengths: Vec<String> = dash.iter().map(ToString::to_string).collect();
    let dash = match lengths.join(" ") {
        none if none.is_empty() => none,
        dash => format!(" stroke-dasharray=\"{dash}\""),
    };
    (ink.class(), dash)
}
