//! Three kinds of picture: curves over logarithmic axes, stacked bars, and bars of a logarithmic length.

use std::io;
use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::svg::{self, Drawing, Drawn, FONT};

const WIDTH: u32 = 960;
const INK: RGBColor = RGBColor(40, 40, 48);
const FAINT: RGBColor = RGBColor(214, 214, 220);
/// Of Okabe and Ito: told apart by all eyes.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(90, 90, 90),
];

/// A named curve.
pub(super) type Curve = (String, Vec<(f64, f64)>);

/// A bar: its label, and its parts by length.
pub(super) type Bar = (String, Vec<f64>);

/// A bar of a logarithmic length, and what stands at its end.
pub(super) struct Marked {
    pub(super) label: String,
    pub(super) value: f64,
    pub(super) mark: String,
}

/// What a picture says besides its data.
#[derive(Debug, Clone, Copy)]
pub(super) struct Captions<'w> {
    pub(super) title: &'w str,
    /// Below the title.
    pub(super) note: &'w str,
}

fn colour(index: usize) -> RGBColor {
    COLOURS[index % COLOURS.len()]
}

/// Draws into a file of this height, below the captions.
fn draw(
    path: &Path,
    height: usize,
    captions: Captions<'_>,
    body: impl FnOnce(&Drawing<'_>) -> Drawn,
) -> io::Result<()> {
    svg::draw(path, (WIDTH, height as u32), |root| {
        text(root, captions.title, (24, 30), 20, HPos::Left)?;
        text(root, captions.note, (24, 54), 13, HPos::Left)?;
        body(root)
    })
}

fn text(area: &Drawing<'_>, words: &str, at: (i32, i32), size: u32, side: HPos) -> Drawn {
    let style = TextStyle::from((FONT, size)).color(&INK).pos(Pos::new(side, VPos::Center));
    area.draw(&Text::new(words.to_owned(), at, style))?;
    Ok(())
}

/// Curves over two logarithmic axes, with their names to the right.
pub(super) fn curves(
    path: &Path,
    captions: Captions<'_>,
    x_name: &str,
    y_name: &str,
    curves: &[Curve],
) -> io::Result<()> {
    let points = || curves.iter().flat_map(|(_, points)| points);
    let span = |of: fn(&(f64, f64)) -> f64| {
        let low = points().map(of).fold(f64::INFINITY, f64::min);
        let high = points().map(of).fold(f64::MIN_POSITIVE, f64::max);
        (low / 1.3)..(high * 1.3)
    };
    if points().next().is_none() {
        return Ok(());
    }
    draw(path, 560, captions, |root| {
        let (left, right) = root.margin(72, 16, 16, 16).split_horizontally(740);
        let mut chart = ChartBuilder::on(&left)
            .x_label_area_size(48)
            .y_label_area_size(76)
            .build_cartesian_2d(span(|(x, _)| *x).log_scale(), span(|(_, y)| *y).log_scale())?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .bold_line_style(FAINT)
            .axis_style(INK)
            .label_style((FONT, 13).into_font().color(&INK))
            .x_desc(x_name)
            .y_desc(y_name)
            .x_label_formatter(&|x| count(*x))
            .y_label_formatter(&|y| seconds(*y))
            .draw()?;
        for (index, (name, points)) in curves.iter().enumerate() {
            let colour = colour(index);
            chart.draw_series(LineSeries::new(points.iter().copied(), colour.stroke_width(2)))?;
            let dots = points.iter().map(|point| Circle::new(*point, 3, colour.filled()));
            chart.draw_series(dots)?;
            let y = 24 + 24 * index as i32;
            right.draw(&Rectangle::new([(8, y - 5), (26, y + 5)], colour.filled()))?;
            text(&right, name, (34, y), 14, HPos::Left)?;
        }
        Ok(())
    })
}

/// Bars from the left, their parts one after the other, the sum at their end.
pub(super) fn bars(
    path: &Path,
    captions: Captions<'_>,
    parts: &[&str],
    bars: &[Bar],
) -> io::Result<()> {
    const LEFT: i32 = 300;
    const STEP: i32 = 26;
    let sum = |bar: &Bar| bar.1.iter().map(|part| part.max(0.0)).sum::<f64>();
    let most = bars.iter().map(sum).fold(f64::MIN_POSITIVE, f64::max);
    let scale = f64::from(WIDTH as i32 - LEFT - 90) / most;
    let top = if parts.len() > 1 { 108 } else { 80 };
    draw(path, top + bars.len() * STEP as usize + 20, captions, |root| {
        for (index, part) in parts.iter().enumerate().filter(|_| parts.len() > 1) {
            let x = LEFT + 150 * index as i32;
            root.draw(&Rectangle::new([(x, 77), (x + 18, 87)], colour(index).filled()))?;
            text(root, part, (x + 26, 82), 14, HPos::Left)?;
        }
        for (row, bar) in bars.iter().enumerate() {
            let y = top as i32 + STEP * row as i32 + STEP / 2;
            text(root, &bar.0, (LEFT - 10, y), 14, HPos::Right)?;
            let mut from = 0.0;
            for (index, part) in bar.1.iter().enumerate() {
                let to = from + part.max(0.0);
                let x = |value: f64| LEFT + (value * scale) as i32;
                let corners = [(x(from), y - 9), (x(to), y + 9)];
                root.draw(&Rectangle::new(corners, colour(index).filled()))?;
                from = to;
            }
            let end = LEFT + (from * scale) as i32 + 6;
            text(root, &short(from), (end, y), 13, HPos::Left)?;
        }
        Ok(())
    })
}

/// Bars from the left over powers of ten, from the one below the least value on; nothing is drawn without bars.
pub(super) fn logarithmic(path: &Path, captions: Captions<'_>, bars: &[Marked]) -> io::Result<()> {
    const LEFT: i32 = 250;
    const RIGHT: i32 = 150;
    const STEP: i32 = 26;
    const TOP: i32 = 100;
    let log = |bar: &Marked| bar.value.max(f64::MIN_POSITIVE).log10();
    let low = bars.iter().map(log).fold(f64::INFINITY, f64::min);
    let low = if low.fract() == 0.0 { low - 1.0 } else { low.floor() };
    let high = bars.iter().map(log).fold(low + 1.0, f64::max).ceil();
    if bars.is_empty() {
        return Ok(());
    }
    let scale = f64::from(WIDTH as i32 - LEFT - RIGHT) / (high - low);
    let x = |log: f64| LEFT + ((log - low) * scale) as i32;
    let bottom = TOP + bars.len() as i32 * STEP;
    draw(path, bottom as usize + 20, captions, |root| {
        for power in low as i32..=high as i32 {
            let at = x(f64::from(power));
            root.draw(&PathElement::new([(at, TOP - 8), (at, bottom)], FAINT))?;
            text(root, &count(10f64.powi(power)), (at, TOP - 18), 13, HPos::Center)?;
        }
        for (bar, row) in bars.iter().zip(0..) {
            let y = TOP + STEP * row + STEP / 2;
            text(root, &bar.label, (LEFT - 10, y), 14, HPos::Right)?;
            let corners = [(LEFT, y - 9), (x(log(bar)), y + 9)];
            root.draw(&Rectangle::new(corners, colour(0).filled()))?;
            text(root, &bar.mark, (x(log(bar)) + 6, y), 13, HPos::Left)?;
        }
        Ok(())
    })
}

/// A number in three digits.
pub(super) fn short(value: f64) -> String {
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn count(value: f64) -> String {
    match value {
        1e6.. => format!("{}M", value / 1e6),
        1e3.. => format!("{}k", value / 1e3),
        _ => format!("{value}"),
    }
}

fn seconds(value: f64) -> String {
    let (value, unit) = match value {
        1.0.. => (value, "s"),
        1e-3.. => (value * 1e3, "ms"),
        1e-6.. => (value * 1e6, "µs"),
        _ => (value * 1e9, "ns"),
    };
    format!("{} {unit}", (value * 100.0).round() / 100.0)
}
