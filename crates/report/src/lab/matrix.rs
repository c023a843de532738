//! The cells in rows and columns, and what is shown of each.

use std::collections::{BTreeMap, BTreeSet};

use wakescope_core::lab::{self, Asked, Cell, Lab, Status};
use wakescope_core::preemption::Model;

use super::figures::{amount, median, micros};
use super::names;
use super::notes::{self, Notes};

/// A lab's cells by kernel and load in rows, by model in columns.
pub(super) struct Matrix<'a> {
    /// The columns' titles.
    pub(super) columns: Vec<String>,
    /// The kernels, in the order of the cells.
    pub(super) kernels: Vec<Kernel<'a>>,
    /// Why cells have no number.
    pub(super) notes: Notes,
    /// The most seeds that a place of the table has.
    pub(super) seeds: usize,
}

/// A kernel's rows.
pub(super) struct Kernel<'a> {
    pub(super) name: &'a str,
    pub(super) rows: Vec<Row<'a>>,
}

/// A load's places, one per column.
pub(super) struct Row<'a> {
    pub(super) load: &'a str,
    /// One per column.
    pub(super) places: Vec<Place<'a>>,
}

/// Cells that differ in their seeds only; none where nothing was asked for.
#[derive(Clone, Default)]
pub(super) struct Place<'a> {
    pub(super) cells: Vec<&'a Cell>,
    note: Option<usize>,
}

/// A figure of a cell.
pub(super) type Figure = fn(&Cell) -> Option<u64>;

/// What is shown of a place.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Shown {
    /// Nothing was asked for.
    Nothing,
    /// Words, where there is no number.
    Words(String),
    /// A figure.
    Figure {
        /// Whether it is the least or the largest of its load.
        rank: Rank,
        /// The median over the seeds, µs.
        median: String,
        /// The range over the seeds, in parentheses, and a note's number.
        range: String,
        /// Work per second.
        work: String,
    },
}

impl Shown {
    pub(super) fn has_work(&self) -> bool {
        matches!(self, Self::Figure { work, .. } if !work.is_empty())
    }

    /// All of it in a row.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::Words(words) => words.clone(),
            Self::Figure { rank, median, range, work } => {
                let figure = format!("{}{median} {range}", rank.mark());
                let parts = [figure.trim_end(), work];
                parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" · ")
            }
        }
    }
}

/// What is shown of a kernel under a load, by column.
pub(super) struct Line<'a> {
    pub(super) kernel: &'a str,
    pub(super) load: &'a str,
    pub(super) shown: Vec<Shown>,
}

/// How a figure stands among those of its load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rank {
    Least,
    Between,
    Largest,
}

impl Rank {
    /// Its symbol.
    pub(super) fn mark(self) -> &'static str {
        match self {
            Self::Least => "↓",
            Self::Between => "",
            Self::Largest => "↑",
        }
    }
}

impl<'a> Matrix<'a> {
    pub(super) fn of(lab: &'a Lab) -> Self {
        let columns = Columns::of(&lab.cells);
        let mut kernels: Vec<Kernel> = Vec::new();
        for cell in &lab.cells {
            let at = kernels.iter().position(|k| k.name == cell.kernel).unwrap_or(kernels.len());
            if at == kernels.len() {
                kernels.push(Kernel { name: &cell.kernel, rows: Vec::new() });
            }
            let rows = &mut kernels[at].rows;
            let at = rows.iter().position(|row| row.load == cell.load).unwrap_or(rows.len());
            if at == rows.len() {
                rows.push(Row {
                    load: &cell.load,
                    places: vec![Place::default(); columns.words.len()],
                });
            }
            rows[at].places[columns.place(cell)].cells.push(cell);
        }
        let mut notes = Notes::default();
        let mut seeds = 0;
        for place in kernels.iter_mut().flat_map(|k| &mut k.rows).flat_map(|row| &mut row.places) {
            place.note = notes.on(&place.cells);
            seeds = seeds.max(place.cells.len());
        }
        let columns = columns.words.iter().map(|asked| names::model(asked)).collect();
        Self { columns, kernels, notes, seeds }
    }

    /// Whether any cell has this figure.
    pub(super) fn has(&self, figure: Figure) -> bool {
        self.places().any(|place| place.values(figure).next().is_some())
    }

    /// Whether any cell that measured lacks this figure.
    pub(super) fn lacks(&self, figure: Figure) -> bool {
        let mut cells = self.places().flat_map(|place| place.measured());
        cells.any(|cell| figure(cell).is_none())
    }

    /// All places, row by row.
    pub(super) fn places(&self) -> impl Iterator<Item = &Place<'a>> {
        self.kernels.iter().flat_map(|kernel| &kernel.rows).flat_map(|row| &row.places)
    }

    /// The first `most` loads, in the order of the cells.
    pub(super) fn loads(&self, most: usize) -> Vec<&'a str> {
        let mut loads = Vec::new();
        for row in self.kernels.iter().flat_map(|kernel| &kernel.rows) {
            if loads.len() < most && !loads.contains(&row.load) {
                loads.push(row.load);
            }
        }
        loads
    }

    /// A figure of all cells, line by line, and whether work stands beside any.
    pub(super) fn lines(&self, figure: Figure, with_work: bool) -> (Vec<Line<'a>>, bool) {
        let view = self.view(figure, with_work);
        let mut lines = Vec::new();
        for kernel in &self.kernels {
            let line =
                |row: &Row<'a>| Line { kernel: kernel.name, load: row.load, shown: view.of(row) };
            lines.extend(kernel.rows.iter().map(line));
        }
        let has_work = lines.iter().flat_map(|line| &line.shown).any(Shown::has_work);
        (lines, has_work)
    }

    /// A figure, ready to be shown of every row.
    pub(super) fn view(&self, figure: Figure, with_work: bool) -> View<'a> {
        let mut extremes = BTreeMap::new();
        for row in self.kernels.iter().flat_map(|kernel| &kernel.rows) {
            for median in row.places.iter().filter_map(|place| place.median(figure)) {
                let (least, largest) = extremes.entry(row.load).or_insert((median, median));
                *least = median.min(*least);
                *largest = median.max(*largest);
            }
        }
        View { figure, with_work, extremes }
    }
}

/// One figure of all cells.
pub(super) struct View<'a> {
    figure: Figure,
    with_work: bool,
    /// The least and the largest median of each load.
    extremes: BTreeMap<&'a str, (f64, f64)>,
}

impl View<'_> {
    /// What is shown of each place of `row`.
    pub(super) fn of(&self, row: &Row) -> Vec<Shown> {
        row.places.iter().map(|place| place.shown(self, row.load)).collect()
    }

    /// Whether a load has a best and a worst.
    pub(super) fn is_ranked(&self) -> bool {
        self.extremes.values().any(|(least, largest)| micros(*least) != micros(*largest))
    }

    /// What reads the same has the same rank.
    fn rank(&self, load: &str, median: f64) -> Rank {
        let Some((least, largest)) = self.extremes.get(load) else { return Rank::Between };
        let (median, least, largest) = (micros(median), micros(*least), micros(*largest));
        if least == largest {
            Rank::Between
        } else if median == least {
            Rank::Least
        } else if median == largest {
            Rank::Largest
        } else {
            Rank::Between
        }
    }
}

impl<'a> Place<'a> {
    /// The cells that measured.
    pub(super) fn measured(&self) -> impl Iterator<Item = &'a Cell> + '_ {
        self.cells.iter().copied().filter(|cell| cell.status == Status::Ok)
    }

    /// The cell with the latest wakeup of all seeds.
    pub(super) fn worst(&self) -> Option<&'a Cell> {
        lab::worst(self.cells.iter().copied(), |cell| cell)
    }

    fn values(&self, figure: Figure) -> impl Iterator<Item = f64> + '_ {
        self.measured().filter_map(figure).map(|ns| ns as f64)
    }

    /// The median of a figure over the seeds, ns.
    pub(super) fn median(&self, figure: Figure) -> Option<f64> {
        median(self.values(figure).collect())
    }

    fn shown(&self, view: &View, load: &str) -> Shown {
        let Some(middle) = self.median(view.figure) else { return self.without_number() };
        let values: Vec<f64> = self.values(view.figure).collect();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut range = String::new();
        if values.len() > 1 {
            range = format!("({}–{})", micros(least), micros(largest));
        }
        range.push_str(&notes::mark(self.note));
        let work = median(self.measured().filter_map(|cell| cell.throughput).collect());
        Shown::Figure {
            rank: view.rank(load, middle),
            median: micros(middle),
            range,
            work: work.filter(|_| view.with_work).map(amount).unwrap_or_default(),
        }
    }

    /// What stands where there is no figure.
    pub(super) fn without_number(&self) -> Shown {
        let any = |status| self.cells.iter().find(|cell| cell.status == status);
        let words = if self.cells.is_empty() {
            return Shown::Nothing;
        } else if any(Status::Failed).is_some() {
            format!("failed{}", notes::mark(self.note))
        } else if let Some(cell) = any(Status::Ignored) {
            let runs = match cell.model {
                Some(model) => format!("runs {model}"),
                None => "not run".into(),
            };
            format!("{runs}{}", notes::mark(self.note))
        } else {
            "–".into()
        };
        Shown::Words(words)
    }
}

/// Which column a cell stands in. An RT kernel that is not told a model runs RT and nothing else,
/// so it stands there, unless the kernel was asked for that by name too.
struct Columns<'a> {
    /// The columns' words, in their order.
    words: Vec<&'a str>,
    /// Kernels whose default stands in the column RT.
    rt_by_default: BTreeSet<&'a str>,
}

impl<'a> Columns<'a> {
    fn of(cells: &'a [Cell]) -> Self {
        let is_default = |cell: &&Cell| cell.asked == Asked::Default.word();
        let rt = cells.iter().filter(is_default).filter(|cell| cell.model == Some(Model::Rt));
        let mut rt_by_default: BTreeSet<&str> = rt.map(|cell| &*cell.kernel).collect();
        for cell in cells.iter().filter(|cell| cell.asked == Asked::Rt.word()) {
            rt_by_default.remove(&*cell.kernel);
        }
        let mut columns = Self { words: Vec::new(), rt_by_default };
        for cell in cells {
            let word = columns.word(cell);
            if !columns.words.contains(&word) {
                columns.words.push(word);
            }
        }
        // What is no model comes last.
        columns
            .words
            .sort_by_key(|w| w.parse::<Asked>().map_or(usize::MAX, |asked| asked as usize));
        columns
    }

    fn word(&self, cell: &'a Cell) -> &'a str {
        let is_default = cell.asked == Asked::Default.word();
        if is_default && self.rt_by_default.contains(&*cell.kernel) {
            Asked::Rt.word()
        } else {
            &cell.asked
        }
    }

    fn place(&self, cell: &'a Cell) -> usize {
        let word = self.word(cell);
        self.words.iter().position(|known| *known == word).unwrap_or(0)
    }
}
