//! Figures as SVG, in one style: a title, panels side by side over the same axes, units at the axes, names beside the
//! panels, what others published as hollow rings beside what was measured, and below, how it was measured.
//!
//! Contract: a panel holds at most [`MOST`] measured series; a name has one colour everywhere (`style`). The spread
//! of runs is drawn: whiskers at points, boxes in strips.

mod axis;
mod strips;
mod style;

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::bench::recorded::Measured;
use crate::bench::svg::{self, Drawing, Drawn, FONT};

use axis::Axis;
pub use axis::Scale;
pub use strips::{Strip, strips};
use style::{FAINT, INK};

/// The most measured series of a panel.
pub const MOST: usize = 8;

/// What a figure says besides its data.
#[derive(Debug, Clone)]
pub struct Caption {
    /// Above.
    pub title: String,
    /// Below: machine, packets, runs, date.
    pub note: String,
}

impl Caption {
    /// Pixels that its note takes, at 6 a letter, with a margin on both sides.
    fn width(&self) -> i32 {
        32 + 6 * self.note.chars().count() as i32
    }
}

/// A figure's axes.
#[derive(Debug, Clone, Copy)]
pub struct Axes {
    /// Name and unit of the lower one.
    pub x: (&'static str, Scale),
    /// Of the left one.
    pub y: (&'static str, Scale),
}

/// A figure of several runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// What was varied.
    pub x: f64,
    /// The median or the least.
    pub y: f64,
    /// The least and the most.
    pub spread: (f64, f64),
}

/// One line of a panel.
#[derive(Debug, Clone)]
pub struct Series {
    /// Its name, which is its colour.
    pub name: String,
    /// From left to right.
    pub points: Vec<Point>,
    /// Whether somebody else measured it.
    pub is_published: bool,
}

/// Lines over the same axes.
#[derive(Debug, Clone)]
pub struct Panel {
    /// Above it.
    pub title: String,
    /// Its lines.
    pub series: Vec<Series>,
}

impl Point {
    /// The least of a row's runs, which other work on the machine disturbs least, and its spread, each by `scale`.
    #[must_use]
    pub fn least(x: f64, row: &Measured, scale: f64) -> Self {
        Self { y: row.min * scale, ..Self::of(x, row, scale) }
    }

    /// A row's median and spread, each by `scale`.
    #[must_use]
    pub fn of(x: f64, row: &Measured, scale: f64) -> Self {
        Self { x, y: row.value * scale, spread: (row.min * scale, row.max * scale) }
    }

    /// A figure without a spread.
    #[must_use]
    pub fn sole(x: f64, y: f64) -> Self {
        Self { x, y, spread: (y, y) }
    }
}

/// A line for each engine of some rows, in the order of the engines' first rows, with its points from left to right.
pub fn by_engine<'r>(
    rows: impl IntoIterator<Item = &'r Measured>,
    place: impl Fn(&Measured) -> Point,
) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    for row in rows {
        let point = place(row);
        match all.iter_mut().find(|one| one.name == row.engine) {
            Some(one) => one.points.push(point),
            None => all.push(Series {
                name: row.engine.clone(),
                points: vec![point],
                is_published: false,
            }),
        }
    }
    for one in &mut all {
        one.points.sort_by(|one, other| one.x.total_cmp(&other.x));
    }
    all
}

const PANEL: (i32, i32) = (330, 270);
/// Room left of, above, right of and below the lines of a panel.
const LEFT: i32 = 58;
const ABOVE: i32 = 28;
const RIGHT: i32 = 14;
const BELOW: i32 = 44;
const LEGEND: i32 = 190;
const TOP: i32 = 46;
const COLUMNS: usize = 3;

/// Draws panels, three in a row.
///
/// # Errors
/// The file cannot be written, or a panel holds too many series.
pub fn panels(file: &Path, caption: &Caption, axes: Axes, panels: &[Panel]) -> Result<(), String> {
    let measured = |panel: &Panel| panel.series.iter().filter(|one| !one.is_published).count();
    if let Some(panel) = panels.iter().find(|panel| measured(panel) > MOST) {
        return Err(format!(
            "{}: expected at most {MOST} series in {}",
            file.display(),
            panel.title
        ));
    }
    let columns = panels.len().clamp(1, COLUMNS) as i32;
    let rows = panels.len().div_ceil(COLUMNS) as i32;
    let width = (columns * PANEL.0 + LEGEND).max(caption.width());
    let size = (width, TOP + rows * PANEL.1 + 26);
    let points = || panels.iter().flat_map(|panel| &panel.series).flat_map(|one| &one.points);
    let x = Axis::over(axes.x.1, points().map(|point| point.x));
    let y =
        Axis::over(axes.y.1, points().flat_map(|point| [point.y, point.spread.0, point.spread.1]));
    let drawn = svg::draw(file, (size.0 as u32, size.1 as u32), |root| {
        frame(root, caption, size.1)?;
        for (panel, at) in panels.iter().zip(0i32..) {
            let corner = (at % columns * PANEL.0, TOP + at / columns * PANEL.1);
            Grid { corner, x, y }.draw(root, axes, panel)?;
        }
        legend(root, (columns * PANEL.0 + 12, TOP + ABOVE), panels)
    });
    drawn.map_err(|why| why.to_string())
}

/// The words around a figure of this height.
fn frame(root: &Drawing<'_>, caption: &Caption, height: i32) -> Drawn {
    text(root, &caption.title, (16, 24), 18, HPos::Left)?;
    text(root, &caption.note, (16, height - 14), 12, HPos::Left)
}

fn text(root: &Drawing<'_>, words: &str, at: (i32, i32), size: u32, side: HPos) -> Drawn {
    let style = TextStyle::from((FONT, size)).color(&INK).pos(Pos::new(side, VPos::Center));
    root.draw(&Text::new(words.to_owned(), at, style))?;
    Ok(())
}

/// Where a panel is and what its places mean.
struct Grid {
    corner: (i32, i32),
    x: Axis,
    y: Axis,
}

impl Grid {
    fn left(&self, x: f64) -> i32 {
        self.corner.0 + LEFT + (self.x.place(x) * f64::from(PANEL.0 - LEFT - RIGHT)) as i32
    }

    fn down(&self, y: f64) -> i32 {
        let height = PANEL.1 - ABOVE - BELOW;
        self.corner.1 + ABOVE + height - (self.y.place(y) * f64::from(height)) as i32
    }

    fn draw(&self, root: &Drawing<'_>, axes: Axes, panel: &Panel) -> Drawn {
        let (left, top) = (self.corner.0 + LEFT, self.corner.1 + ABOVE);
        let (right, bottom) = (self.corner.0 + PANEL.0 - RIGHT, self.corner.1 + PANEL.1 - BELOW);
        for tick in self.y.ticks() {
            let y = self.down(tick);
            root.draw(&PathElement::new([(left, y), (right, y)], FAINT))?;
            text(root, &axis::short(tick), (left - 6, y), 11, HPos::Right)?;
        }
        for tick in self.x.ticks() {
            let x = self.left(tick);
            root.draw(&PathElement::new([(x, bottom), (x, bottom + 4)], INK))?;
            text(root, &axis::short(tick), (x, bottom + 12), 11, HPos::Center)?;
        }
        root.draw(&PathElement::new([(left, top), (left, bottom), (right, bottom)], INK))?;
        text(root, &panel.title, (left, top - 16), 14, HPos::Left)?;
        text(root, axes.y.0, (left, top - 4), 11, HPos::Left)?;
        text(root, axes.x.0, ((left + right) / 2, bottom + 28), 12, HPos::Center)?;
        panel.series.iter().try_for_each(|series| self.series(root, series))
    }

    fn series(&self, root: &Drawing<'_>, series: &Series) -> Drawn {
        let (colour, width) = (style::colour(&series.name), style::width(&series.name));
        let finite = || series.points.iter().filter(|point| point.y.is_finite());
        let place = |point: &Point| (self.left(point.x), self.down(point.y));
        if series.is_published {
            for point in finite() {
                root.draw(&Circle::new(place(point), 5, colour.stroke_width(1)))?;
            }
            return Ok(());
        }
        let line: Vec<_> = finite().map(place).collect();
        root.draw(&PathElement::new(line, colour.stroke_width(width)))?;
        for point in finite() {
            let (x, y) = place(point);
            let whisker = [(x, self.down(point.spread.0)), (x, self.down(point.spread.1))];
            root.draw(&PathElement::new(whisker, colour.stroke_width(1)))?;
            root.draw(&Circle::new((x, y), 3, colour.filled()))?;
        }
        Ok(())
    }
}

/// Each name once, and what rings are if there are any.
fn legend(root: &Drawing<'_>, at: (i32, i32), panels: &[Panel]) -> Drawn {
    let mut names: Vec<&str> = Vec::new();
    let series = || panels.iter().flat_map(|panel| &panel.series);
    for one in series() {
        if !names.contains(&one.name.as_str()) {
            names.push(&one.name);
        }
    }
    let mut y = at.1;
    for name in names {
        let line = [(at.0, y), (at.0 + 20, y)];
        let (colour, width) = (style::colour(name), style::width(name));
        root.draw(&PathElement::new(line, colour.stroke_width(width)))?;
        root.draw(&Circle::new((at.0 + 10, y), 3, colour.filled()))?;
        text(root, name, (at.0 + 28, y), 13, HPos::Left)?;
        y += 22;
    }
    if series().any(|one| one.is_published) {
        root.draw(&Circle::new((at.0 + 10, y), 5, style::colour("published").stroke_width(1)))?;
        text(root, "as published", (at.0 + 28, y), 13, HPos::Left)?;
    }
    Ok(())
}
