//! One late wakeup of a simulation: what each CPU was at, who held which lock, and what kept
//! the scheduler away.

use wakescope_core::run::TimeDomain;
use wakescope_core::units::SpanNs;
use wakescope_model::Image;
use wakescope_model::image::CpuId;
use wakescope_model::kernel::FrameKind;
use wakescope_model::timeline::{LockSpan, Stretch, Timeline};

use super::Room;
use super::axis::{Axis, beside_each_other};
use super::bars::{self, filled};
use super::frame::{Named, Taken, draw_legend};
use super::scene::{Anchor, DASHES, Ink, LARGE, Mark, SMALL, Scene};
use super::width::{fitting, text_width};
use crate::domain;
use crate::model::locks::{Row, Rows, user};
use crate::style::clean;

mod kind;

use kind::Kind;

/// The height of a row of what runs or who holds a lock, and of one that only is or is not so.
const BAR: f64 = 20.0;
const THIN: f64 = 7.0;

/// From the top of a row of each kind to that of the next.
const BAR_ROW: f64 = 25.0;
const THIN_ROW: f64 = 16.0;

/// Between groups of rows.
const GAP: f64 = 8.0;

/// From one row of the names of the marks to the next.
const MARK_ROW: f64 = 16.0;

/// The picture of a wakeup under the model of `image`.
pub(crate) fn scene(image: &Image, timeline: &Timeline, room: Room) -> Scene {
    let mut drawing = Drawing::begin(image, timeline, room);
    drawing.draw_marks();
    for cpu in (0..image.cpus).map(CpuId) {
        drawing.draw_cpu(cpu);
    }
    let locks = Rows::of(timeline);
    locks.rows.iter().for_each(|row| drawing.draw_lock(row));
    drawing.end(&locks.left_out)
}

/// One scene above the other.
pub(crate) fn below_each_other(scenes: Vec<Scene>) -> Scene {
    let mut all = Scene::default();
    let titles: Vec<String> = scenes.iter().map(|scene| scene.title.clone()).collect();
    let descriptions: Vec<String> = scenes.iter().map(|scene| scene.description.clone()).collect();
    for scene in scenes {
        let down = all.height;
        all.marks.extend(scene.marks.into_iter().map(|mark| mark.moved_down(down)));
        all.width = all.width.max(scene.width);
        all.height += scene.height;
    }
    (all.title, all.description) = (titles.join("; "), descriptions.join(" "));
    all
}

/// A picture that is being drawn from the top to the bottom.
struct Drawing<'a> {
    image: &'a Image,
    timeline: &'a Timeline,
    room: Room,
    scene: Scene,
    /// Where time begins and ends.
    left: f64,
    right: f64,
    /// Where the next row begins.
    y: f64,
    /// Where the first row begins, and the lines of the marks with it.
    top: f64,
    /// What occurs, for the legend.
    kinds: Vec<(Kind, Vec<String>)>,
}

impl<'a> Drawing<'a> {
    fn begin(image: &'a Image, timeline: &'a Timeline, room: Room) -> Self {
        let late = timeline.response_ns - timeline.expiry_ns;
        let late = domain::span(late, TimeDomain::Simulated);
        let mut scene = Scene {
            width: room.width,
            title: format!("A wakeup under {}: {late} late", image.rules.name),
            description: description(image, timeline),
            ..Scene::default()
        };
        let mut y = 4.0;
        if !room.bare {
            let title = fitting(&scene.title.clone(), LARGE, room.width - 24.0);
            scene.text_of(LARGE, (12.0, 28.0), &title, Anchor::Start, Ink::Text, true);
            y = 40.0;
        }
        let left = if room.is_narrow() { 104.0 } else { 132.0 };
        let (right, kinds) = (room.width - 12.0, Vec::new());
        Self { image, timeline, room, scene, left, right, y, top: y, kinds }
    }

    /// Where a point in time lies.
    #[allow(clippy::cast_precision_loss)] // A place in a picture.
    fn x(&self, ns: u64) -> f64 {
        let Timeline { from_ns, to_ns, .. } = *self.timeline;
        let share = (ns.clamp(from_ns, to_ns) - from_ns) as f64 / (to_ns - from_ns).max(1) as f64;
        self.left + share * (self.right - self.left)
    }

    /// The points in time that matter; `None` where nothing of the kind happened.
    fn marks(&self) -> [(&'static str, Option<u64>); 4] {
        let timeline = self.timeline;
        [
            ("timer due", Some(timeline.expiry_ns)),
            ("need_resched set", timeline.need_resched_ns()),
            ("scheduler entered", timeline.sched_entry_ns()),
            ("response", Some(timeline.response_ns)),
        ]
    }

    /// Writes the names of the marks beside their lines, each in a row where it touches no other.
    fn draw_marks(&mut self) {
        let top = self.y;
        let mut taken: Vec<Taken> = Vec::new();
        let mut lines = Vec::new();
        let marks = self.marks();
        for (dash, (name, ns)) in DASHES.into_iter().zip(marks) {
            let Some(ns) = ns else { continue };
            let since = ns - self.timeline.expiry_ns;
            let text = if since == 0 { name.into() } else { format!("{name} +{}", SpanNs(since)) };
            let text = fitting(&text, SMALL, self.right - self.left - 12.0);
            let (x, width) = (self.x(ns), text_width(&text, SMALL));
            let from = if x + 5.0 + width <= self.right { x + 5.0 } else { x - 5.0 - width };
            #[allow(clippy::cast_precision_loss)]
            let mut places = (0..marks.len()).map(|row| Taken {
                left: from,
                right: from + width,
                y: top + MARK_ROW * (row as f64 + 0.8),
            });
            let free = places.find(|own| !taken.iter().any(|other| own.touches(other)));
            if let Some(own) = free.filter(|_| from >= 0.0) {
                taken.push(own);
                self.scene.text((from, own.y), &text, Anchor::Start, Ink::Text);
                lines.push((dash, x, own.y - 10.0));
            } else {
                lines.push((dash, x, top));
            }
        }
        self.y = taken.iter().map(|own| own.y).fold(top, f64::max) + 10.0;
        self.top = self.y;
        // Behind the rows, which are drawn later; how far down is known in the end.
        for (dash, x, from) in lines {
            self.scene.lines(vec![vec![(x, from), (x, f64::NAN)]], Ink::Text, 1.25, dash);
        }
    }

    fn draw_cpu(&mut self, cpu: CpuId) {
        let columns = self.columns();
        let stretches = self.timeline.columns(cpu, columns);
        self.name(&format!("CPU {}", cpu.0), BAR, Ink::Text);
        let parts: Vec<_> = stretches.iter().map(|of| of.map(|of| self.part(of))).collect();
        for (from, to, (kind, label)) in runs(&parts) {
            let (from, to) = (self.edge(from, columns), self.edge(to, columns));
            self.draw_part(from, to, *kind, label);
        }
        for stretch in stretches.iter().flatten() {
            self.note(stretch);
        }
        self.y += BAR_ROW;
        let is = |what: fn(&Stretch) -> bool| {
            let of = |of: &Option<&Stretch>| of.filter(|of| what(of)).map(|_| ());
            stretches.iter().map(of).collect::<Vec<_>>()
        };
        let no_preempt = is(|stretch| stretch.at.count & 0xff > 0);
        let irqs_off = is(|stretch| stretch.at.irqs_off);
        for (name, whether) in [("preemption off", no_preempt), ("interrupts off", irqs_off)] {
            let spans = runs(&whether)
                .map(|(from, to, ())| (self.edge(from, columns), self.edge(to, columns), ()));
            let spans = spans.collect();
            self.draw_thin(name, spans);
        }
        let wanted = self.timeline.need_resched(cpu);
        let spans = wanted.into_iter().map(|(from, to)| (self.x(from), self.x(to), ())).collect();
        self.draw_thin("need_resched", spans);
        self.y += GAP;
    }

    /// So many columns that each is half a unit wide.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A few hundred.
    fn columns(&self) -> usize {
        ((self.right - self.left) * 2.0) as usize
    }

    #[allow(clippy::cast_precision_loss)] // A few hundred.
    fn edge(&self, column: usize, columns: usize) -> f64 {
        self.left + (self.right - self.left) * column as f64 / columns as f64
    }

    /// What a stretch is shown as, and what is written into it: the task, with its innermost function.
    fn part(&self, stretch: &Stretch) -> (Kind, String) {
        let kind = Kind::of(self.image, stretch);
        let label = match (kind.has_task(), self.image.stacks[stretch.at.stack.index()].last()) {
            (false, _) => String::new(),
            (true, Some(function)) if !stretch.at.is_user => {
                let function = clean(&self.image.functions[function.index()], 64);
                format!("{}: {function}", self.task(stretch))
            }
            (true, _) => self.task(stretch),
        };
        (kind, label)
    }

    fn task(&self, stretch: &Stretch) -> String {
        clean(self.image.task_name(stretch.at.task), 15)
    }

    /// Notes what a stretch is, for the legend.
    fn note(&mut self, stretch: &Stretch) {
        let kind = Kind::of(self.image, stretch);
        let name = match stretch.at.kind {
            FrameKind::Interrupt(source) => clean(&self.image.sources[source.index()].name, 64),
            FrameKind::Softirq { number, .. } => wakescope_model::scenario::softirq_name(number),
            FrameKind::Scheduler { .. } => String::new(),
            FrameKind::Task if stretch.at.task.is_none() => return,
            FrameKind::Task => match stretch.at.softirq {
                Some(number) => wakescope_model::scenario::softirq_name(number),
                None => self.task(stretch),
            },
        };
        self.remember(kind, name);
    }

    fn remember(&mut self, kind: Kind, name: String) {
        let place = match self.kinds.iter().position(|(of, _)| *of == kind) {
            Some(place) => place,
            None => {
                self.kinds.push((kind, Vec::new()));
                self.kinds.len() - 1
            }
        };
        let names = &mut self.kinds[place].1;
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }

    fn draw_part(&mut self, from: f64, to: f64, kind: Kind, label: &str) {
        if kind == Kind::Idle {
            let y = self.y + BAR - 1.0;
            self.scene.line((from, y), (to, y), Ink::Behind, 1.0);
            return self.draw_label(from, to, "idle", Ink::Faint);
        }
        filled(&mut self.scene, (from, self.y), (to - from, BAR), kind.number());
        if !kind.is_hatched() {
            self.draw_label(from, to, label, Ink::On(kind.number()));
        }
    }

    /// Writes into a bar what has room: a name with its function, the name alone, or nothing.
    fn draw_label(&mut self, from: f64, to: f64, label: &str, ink: Ink) {
        let name = label.split(':').next().unwrap_or_default();
        let fits = |text: &&str| text_width(text, SMALL) + 8.0 <= to - from;
        if let Some(text) = [label, name].into_iter().filter(|t| !t.is_empty()).find(fits) {
            let at = (from + 4.0, self.y + BAR / 2.0 + 4.5);
            self.scene.text(at, text, Anchor::Start, ink);
        }
    }

    /// A row of what is so or not.
    fn draw_thin(&mut self, name: &str, spans: Vec<(f64, f64, ())>) {
        self.name(name, THIN, Ink::Faint);
        for (from, to, ()) in visible(spans) {
            self.scene.bar((from, self.y), to - from, THIN, Ink::Text);
        }
        self.y += THIN_ROW;
    }

    /// Who holds a lock, or waits for it.
    fn draw_lock(&mut self, row: &Row) {
        let ink = if row.waits { Ink::Faint } else { Ink::Text };
        self.name(&row.name(self.image), BAR, ink);
        self.remember(Kind::Holds, String::new());
        let span = |span: &LockSpan| (self.x(span.from_ns), self.x(span.to_ns), span.by);
        for (from, to, by) in visible(row.spans.iter().map(span).collect()) {
            let by = user(self.image, by);
            match row.waits {
                true => self.draw_waiting(from, to, &by),
                false => self.draw_part(from, to, Kind::Holds, &by),
            }
        }
        self.y += BAR_ROW;
    }

    /// Somebody waits: hatched, but for the name.
    fn draw_waiting(&mut self, from: f64, to: f64, by: &str) {
        bars::hatched(&mut self.scene, (from, self.y), (to - from, BAR), Ink::Behind);
        let width = text_width(by, SMALL) + 8.0;
        if width <= to - from {
            self.scene.bar((from, self.y + 2.0), width, BAR - 4.0, Ink::FineGrid);
            self.draw_label(from, to, by, Ink::Text);
        }
    }

    /// The name of a row, to its left.
    fn name(&mut self, name: &str, height: f64, ink: Ink) {
        let name = fitting(name, SMALL, self.left - 18.0);
        let at = (12.0, self.y + height / 2.0 + 4.5);
        self.scene.text(at, &name, Anchor::Start, ink);
    }

    /// The axis of time, the legend, and the lines of the marks, now that their length is known.
    fn end(mut self, left_out: &[String]) -> Scene {
        let bottom = self.y;
        for mark in &mut self.scene.marks {
            let Mark::Lines { lines, .. } = mark else { continue };
            lines.iter_mut().flatten().filter(|p| p.1.is_nan()).for_each(|p| p.1 = bottom);
        }
        let (from, to) = (self.x(self.timeline.expiry_ns), self.x(self.timeline.response_ns));
        #[allow(clippy::cast_precision_loss)]
        let late = (self.timeline.response_ns - self.timeline.expiry_ns) as f64;
        self.scene.line((self.left, bottom), (self.right, bottom), Ink::Text, 1.0);
        for tick in beside_each_other(Axis::linear(late, (from, to)).times(), SMALL) {
            self.scene.line((tick.at, bottom), (tick.at, bottom + 4.0), Ink::Text, 1.0);
            let half = text_width(&tick.label, SMALL) / 2.0;
            let at = tick.at.min(self.room.width - half - 2.0);
            if !tick.label.is_empty() {
                self.scene.text((at, bottom + 17.0), &tick.label, Anchor::Middle, Ink::Faint);
            }
        }
        let title = "simulated time since the wakeup was due";
        let title = fitting(title, SMALL, self.right - 8.0);
        self.scene.text((self.right, bottom + 35.0), &title, Anchor::End, Ink::Text);
        let end = self.draw_legend(bottom + 38.0, left_out);
        self.scene.height = end;
        self.scene
    }

    fn draw_legend(&mut self, top: f64, left_out: &[String]) -> f64 {
        self.kinds.sort_by_key(|(kind, _)| *kind);
        let room = self.room.width - 24.0 - 48.0;
        let named = self.kinds.iter().map(|(kind, names)| {
            let name = match names.as_slice() {
                [] => kind.name().into(),
                names => format!("{}: {}", kind.name(), names.join(", ")),
            };
            // Long lists of names would leave room for one column only.
            let name = fitting(&name, super::scene::NORMAL, (room / 2.0).max(260.0).min(room));
            Named { name, series: kind.number(), is_bar: true }
        });
        let named: Vec<Named> = named.collect();
        let mut end = draw_legend(&mut self.scene, &named, 12.0, top);
        for line in left_out {
            let line = fitting(line, SMALL, self.room.width - 24.0);
            self.scene.text((12.0, end + 8.0), &line, Anchor::Start, Ink::Faint);
            end += 18.0;
        }
        end
    }
}

/// Spans by their beginning, such as can be seen: none lies over another, and each is a little wide. Of
/// many within half a unit the first is shown, so that their number has a limit.
fn visible<T>(spans: Vec<(f64, f64, T)>) -> Vec<(f64, f64, T)> {
    let mut end = f64::NEG_INFINITY;
    let mut kept = Vec::new();
    for (from, to, what) in spans {
        let (from, to) = (from.max(end), to.max(from + 0.75));
        if to - from >= 0.5 {
            end = to;
            kept.push((from, to, what));
        }
    }
    kept
}

/// Neighbours that are alike, as one: the first, the one after the last, and what they are.
fn runs<T: PartialEq>(parts: &[Option<T>]) -> impl Iterator<Item = (usize, usize, &T)> {
    let mut from = 0;
    parts.chunk_by(PartialEq::eq).filter_map(move |chunk| {
        let first = from;
        from += chunk.len();
        Some((first, from, chunk[0].as_ref()?))
    })
}

/// The picture in words: when what happened, and what had the probe's CPU for how long.
fn description(image: &Image, timeline: &Timeline) -> String {
    let since = |ns: u64| SpanNs(ns.saturating_sub(timeline.expiry_ns)).to_string();
    let mut out = String::from("The timer was due at 0");
    if let Some(ns) = timeline.need_resched_ns() {
        out += &format!(", need_resched was set after {}", since(ns));
    }
    if let Some(ns) = timeline.sched_entry_ns() {
        out += &format!(", the scheduler was entered after {}", since(ns));
    }
    out += &format!(
        ", the probe responded after {}.",
        domain::span(timeline.response_ns - timeline.expiry_ns, TimeDomain::Simulated)
    );
    let Some(cpu) = timeline.cpu() else { return out };
    let mut shares: Vec<(String, u64)> = Vec::new();
    for stretch in timeline.stretches.iter().filter(|stretch| stretch.cpu == cpu) {
        let to = stretch.to_ns.min(timeline.response_ns);
        let length = to.saturating_sub(stretch.from_ns.max(timeline.expiry_ns));
        let kind = Kind::of(image, stretch);
        let who = match kind.has_task() {
            true => format!("{} of {}", kind.name(), clean(image.task_name(stretch.at.task), 15)),
            false => kind.name().to_owned(),
        };
        match shares.iter_mut().find(|(name, _)| *name == who) {
            Some((_, sum)) => *sum += length,
            None => shares.push((who, length)),
        }
    }
    shares.retain(|(_, ns)| *ns > 0);
    shares.sort_by_key(|&(_, ns)| std::cmp::Reverse(ns));
    let shares: Vec<String> =
        shares.iter().take(8).map(|(who, ns)| format!("{who} {}", SpanNs(*ns))).collect();
    out + &format!(" Meanwhile CPU {} was at: {}.", cpu.0, shares.join(", "))
}

#[cfg(test)]
mod tests;
