//! Figures as SVG: lines over numbers, and bars.

use std::path::Path;

use plotters::prelude::*;

use crate::bench::svg::{self, Drawing, Drawn, FONT};

/// Width and height in pixels.
const SIZE: (u32, u32) = (900, 560);

/// A line of a figure: its name, and its points.
pub type Line = (String, Vec<(f64, f64)>);

/// What stands beside a figure's axes.
#[derive(Debug, Clone, Copy)]
pub struct Labels<'l> {
    /// Above it.
    pub title: &'l str,
    /// Below it.
    pub x: &'l str,
    /// Left of it.
    pub y: &'l str,
}

/// A chart with its title and room for what its axes say.
fn chart<'r, 'b>(
    root: &'r Drawing<'b>,
    labels: Labels<'_>,
) -> ChartBuilder<'r, 'b, SVGBackend<'b>> {
    let mut chart = ChartBuilder::on(root);
    chart.caption(labels.title, (FONT, 20)).margin(10).x_label_area_size(40).y_label_area_size(60);
    chart
}

/// Draws lines; both axes begin at 0.
///
/// # Errors
/// The file cannot be written.
pub fn lines(file: &Path, labels: Labels<'_>, lines: &[Line]) -> Result<(), String> {
    let drawn = svg::draw(file, SIZE, |root| draw_lines(root, labels, lines));
    drawn.map_err(|why| why.to_string())
}

fn draw_lines(root: &Drawing<'_>, labels: Labels<'_>, lines: &[Line]) -> Drawn {
    let points = || lines.iter().flat_map(|(_, points)| points);
    let most = |of: fn(&(f64, f64)) -> f64| {
        points().map(of).filter(|value| value.is_finite()).fold(1e-9, f64::max)
    };
    let (most_x, most_y) = (most(|point| point.0), most(|point| point.1));
    let mut chart =
        chart(root, labels).build_cartesian_2d(0.0..most_x * 1.02, 0.0..most_y * 1.05)?;
    chart.configure_mesh().x_desc(labels.x).y_desc(labels.y).light_line_style(WHITE).draw()?;
    for (at, (name, points)) in lines.iter().enumerate() {
        let style = Palette99::pick(at).stroke_width(2);
        let finite = points.iter().copied().filter(|point| point.1.is_finite());
        chart
            .draw_series(LineSeries::new(finite.clone(), style))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
        chart.draw_series(finite.map(|point| Circle::new(point, 3, style.filled())))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .label_font((FONT, 12))
        .draw()?;
    Ok(())
}

/// Draws bars, one for each name.
///
/// # Errors
/// The file cannot be written.
pub fn bars(file: &Path, labels: Labels<'_>, bars: &[(String, f64)]) -> Result<(), String> {
    let drawn = svg::draw(file, SIZE, |root| draw_bars(root, labels, bars));
    drawn.map_err(|why| why.to_string())
}

fn draw_bars(root: &Drawing<'_>, labels: Labels<'_>, bars: &[(String, f64)]) -> Drawn {
    let most = bars.iter().map(|(_, value)| *value).fold(1e-9, f64::max);
    let mut chart =
        chart(root, labels).build_cartesian_2d(0.0..bars.len() as f64, 0.0..most * 1.05)?;
    let name = |at: &f64| {
        let bar = bars.get(*at as usize).filter(|_| (at.fract() - 0.5).abs() < 0.3);
        bar.map_or(String::new(), |(name, _)| name.clone())
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(2 * bars.len() + 1)
        .x_label_formatter(&name)
        .x_desc(labels.x)
        .y_desc(labels.y)
        .light_line_style(WHITE)
        .draw()?;
    for (at, (_, value)) in bars.iter().enumerate() {
        let corners = [(at as f64 + 0.15, 0.0), (at as f64 + 0.85, *value)];
        chart.draw_series([Rectangle::new(corners, Palette99::pick(at).filled())])?;
    }
    Ok(())
}
