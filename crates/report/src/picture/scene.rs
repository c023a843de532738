//! What a picture is made of: lines, bars, dots and text in places, made once and then drawn as SVG
//! or as pixels.

/// A place, in units of 1/96 inch from the upper left.
pub(crate) type Point = (f64, f64);

/// What something is drawn with. A page has its own colours for each, light and dark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    /// Text and axes.
    Text,
    /// Text that stands back.
    Faint,
    /// Lines behind everything else.
    Grid,
    /// Lines behind everything else that only divide further.
    FineGrid,
    /// A limit.
    Limit,
    /// The colour of a curve, a component or a cause.
    Series(usize),
    /// What is written, or hatched, on such a colour.
    On(usize),
    /// What stands behind a curve for comparison.
    Behind,
    /// A step of a scale from little to much.
    Heat(usize),
    /// What is written on such a step.
    OnHeat(usize),
}

/// Colours of series: those of Okabe and Ito ("Color Universal Design", 2008), which colour-blind
/// people tell apart, without the yellow, which paper does not show.
pub(crate) const COLOURS: [u32; 7] =
    [0x00_72_b2, 0xd5_5e_00, 0x00_9e_73, 0xcc_79_a7, 0xe6_9f_00, 0x56_b4_e9, 0x33_33_33];

/// The steps of a scale from little to much: tints and shades of the first curve's blue, so that the
/// order is seen without telling hues apart, and on grey paper.
pub(crate) const HEATS: [u32; 6] =
    [0xe6_f1_f8, 0xb8_d8_ec, 0x86_bc_dd, 0x4f_9d_ca, 0x00_72_b2, 0x00_4a_75];

impl Ink {
    /// Its colour on white paper.
    pub(crate) fn colour(self) -> u32 {
        match self {
            Self::Text => 0x1f_23_28,
            Self::Faint => 0x5c_64_6d,
            Self::Grid => 0xd8_dc_e1,
            Self::FineGrid => 0xee_f0_f2,
            Self::Limit => 0xb0_00_20,
            Self::Series(at) => COLOURS[at % COLOURS.len()],
            // White, but on the light ones.
            Self::On(at) if matches!(at % COLOURS.len(), 3..=5) => 0x11_11_11,
            Self::On(_) => 0xff_ff_ff,
            Self::Behind => 0xb4_ba_c2,
            Self::Heat(step) => HEATS[step.min(HEATS.len() - 1)],
            Self::OnHeat(0..=3) => 0x11_11_11,
            Self::OnHeat(_) => 0xff_ff_ff,
        }
    }

    /// Its name in style sheets.
    pub(crate) fn class(self) -> String {
        match self {
            Self::Text => "text".into(),
            Self::Faint => "faint".into(),
            Self::Grid => "grid".into(),
            Self::FineGrid => "fine".into(),
            Self::Limit => "limit".into(),
            Self::Series(at) => format!("s{}", at % COLOURS.len()),
            Self::On(at) => format!("on{}", at % COLOURS.len()),
            Self::Behind => "behind".into(),
            Self::Heat(step) => format!("h{}", step.min(HEATS.len() - 1)),
            Self::OnHeat(step) => format!("onh{}", step.min(HEATS.len() - 1)),
        }
    }
}

/// Lengths of dashes and gaps, by which curves are told apart without colour; none for a whole line.
/// There are as many as have no divisor in common with the colours, so that it takes 35 curves until
/// two look alike.
pub(crate) const DASHES: [&[f64]; 5] =
    [&[], &[7.0, 3.0], &[2.0, 2.5], &[9.0, 3.0, 2.0, 3.0], &[14.0, 4.0]];

/// Where a text has its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// The forms of dots, by which the ends of curves are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Disc,
    Square,
    Triangle,
    Diamond,
}

impl Shape {
    const ALL: [Self; 4] = [Self::Disc, Self::Square, Self::Triangle, Self::Diamond];

    /// That of the curve `at`.
    pub(crate) fn of(at: usize) -> Self {
        Self::ALL[at % Self::ALL.len()]
    }

    /// Its corners around `(x, y)`, where it is no disc.
    pub(crate) fn corners(self, (x, y): Point, radius: f64) -> Vec<Point> {
        let r = radius;
        match self {
            Self::Disc => (0..16)
                .map(|i| (f64::from(i) * std::f64::consts::TAU / 16.0).sin_cos())
                .map(|(sin, cos)| (x + r * cos, y + r * sin))
                .collect(),
            Self::Square => {
                let r = r * 0.9;
                vec![(x - r, y - r), (x + r, y - r), (x + r, y + r), (x - r, y + r)]
            }
            Self::Triangle => {
                vec![(x, y - 1.2 * r), (x + 1.1 * r, y + 0.8 * r), (x - 1.1 * r, y + 0.8 * r)]
            }
            Self::Diamond => {
                let r = r * 1.25;
                vec![(x, y - r), (x + r, y), (x, y + r), (x - r, y)]
            }
        }
    }
}

/// One thing in a picture.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Mark {
    /// Lines from point to point, each list by itself.
    Lines { lines: Vec<Vec<Point>>, ink: Ink, width: f64, dash: &'static [f64] },
    /// A bar.
    Bar { at: Point, width: f64, height: f64, ink: Ink },
    /// Text on its baseline.
    Text { at: Point, text: String, size: f64, anchor: Anchor, ink: Ink, strong: bool },
    /// A dot.
    Dot { at: Point, shape: Shape, radius: f64, ink: Ink },
    /// What follows belongs together, until [`Mark::End`]: its class, and the run that it shows.
    Begin { class: &'static str, run: Option<usize> },
    /// The end of what belongs together.
    End,
}

impl Mark {
    /// The same, so much further down.
    pub(crate) fn moved_down(mut self, by: f64) -> Self {
        match &mut self {
            Self::Lines { lines, .. } => lines.iter_mut().flatten().for_each(|at| at.1 += by),
            Self::Bar { at, .. } | Self::Text { at, .. } | Self::Dot { at, .. } => at.1 += by,
            Self::Begin { .. } | Self::End => {}
        }
        self
    }
}

/// A picture.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Scene {
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// What it shows, in a few words.
    pub(crate) title: String,
    /// What one would see in it, for who cannot.
    pub(crate) description: String,
    pub(crate) marks: Vec<Mark>,
    /// Where its plot lies, for a page's script: name and value.
    pub(crate) notes: Vec<(&'static str, String)>,
}

/// Sizes of text.
pub(crate) const SMALL: f64 = 12.0;
pub(crate) const NORMAL: f64 = 13.0;
pub(crate) const LARGE: f64 = 17.0;

impl Scene {
    pub(crate) fn line(&mut self, from: Point, to: Point, ink: Ink, width: f64) {
        self.lines(vec![vec![from, to]], ink, width, &[]);
    }

    pub(crate) fn lines(
        &mut self,
        lines: Vec<Vec<Point>>,
        ink: Ink,
        width: f64,
        dash: &'static [f64],
    ) {
        self.marks.push(Mark::Lines { lines, ink, width, dash });
    }

    pub(crate) fn bar(&mut self, at: Point, width: f64, height: f64, ink: Ink) {
        self.marks.push(Mark::Bar { at, width, height, ink });
    }

    pub(crate) fn text(&mut self, at: Point, text: &str, anchor: Anchor, ink: Ink) {
        self.text_of(SMALL, at, text, anchor, ink, false);
    }

    pub(crate) fn text_of(
        &mut self,
        size: f64,
        at: Point,
        text: &str,
        anchor: Anchor,
        ink: Ink,
        strong: bool,
    ) {
        let text = text.into();
        self.marks.push(Mark::Text { at, text, size, anchor, ink, strong });
    }

    pub(crate) fn dot(&mut self, at: Point, shape: Shape, ink: Ink) {
        self.marks.push(Mark::Dot { at, shape, radius: 4.0, ink });
    }

    pub(crate) fn begin(&mut self, class: &'static str, run: Option<usize>) {
        self.marks.push(Mark::Begin { class, run });
    }

    pub(crate) fn end(&mut self) {
        self.marks.push(Mark::End);
    }
}
