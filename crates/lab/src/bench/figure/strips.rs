//! Strips: for each name a row with every figure as a dot, or a line over all where they are many, and a box from the first
//! to the third quarter with the median across it; what others published as rings in the same row.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::axis::{self, Axis, Scale};
use super::style::{self, FAINT, INK};
use super::{Caption, Drawing, Drawn, frame, svg, text};
use crate::bench::Measured;

/// One row.
#[derive(Debug, Clone)]
pub struct Strip {
    /// What stands left of it.
    pub label: String,
    /// The name whose colour it has.
    pub name: String,
    /// Every figure.
    pub values: Vec<f64>,
    /// What others published.
    pub published: Vec<f64>,
}

impl Strip {
    /// Least, median and most of a row.
    #[must_use]
    pub fn of(label: String, row: &Measured) -> Self {
        let values = vec![row.min, row.value, row.max];
        Self { label, name: row.engine.clone(), values, published: Vec::new() }
    }
}

const LEFT: i32 = 280;
const WIDTH: i32 = 920;
const RIGHT: i32 = 24;
const ROW: i32 = 30;
const TOP: i32 = 66;
/// The most figures of a row that are drawn one by one; of more, a line from the least to the most.
const DOTS: usize = 60;

/// Draws rows over one axis; figures that a logarithmic one cannot show, 0 above all, are at its low end.
///
/// # Errors
/// The file cannot be written.
pub fn strips(
    file: &Path,
    caption: &Caption,
    (unit, scale): (&str, Scale),
    rows: &[Strip],
) -> Result<(), String> {
    let values = rows.iter().flat_map(|row| row.values.iter().chain(&row.published));
    let axis = Axis::over(scale, values.copied());
    let bottom = TOP + rows.len() as i32 * ROW;
    let height = bottom + 64;
    let x = |value: f64| LEFT + (axis.place(value) * f64::from(WIDTH - LEFT - RIGHT)) as i32;
    let drawn = svg::draw(file, (WIDTH as u32, height as u32), |root| {
        frame(root, caption, height)?;
        for tick in axis.ticks() {
            let at = x(tick);
            root.draw(&PathElement::new([(at, TOP), (at, bottom)], FAINT))?;
            text(root, &axis::short(tick), (at, bottom + 12), 11, HPos::Center)?;
        }
        text(root, unit, ((LEFT + WIDTH - RIGHT) / 2, bottom + 30), 12, HPos::Center)?;
        text(root, "dots and box: ours; rings: as published", (LEFT, TOP - 14), 12, HPos::Left)?;
        for (row, at) in rows.iter().zip(0..) {
            draw(root, row, TOP + at * ROW + ROW / 2, &x)?;
        }
        Ok(())
    });
    drawn.map_err(|why| why.to_string())
}

fn draw(root: &Drawing<'_>, row: &Strip, y: i32, x: &dyn Fn(f64) -> i32) -> Drawn {
    let colour = style::colour(&row.name);
    text(root, &row.label, (LEFT - 10, y), 13, HPos::Right)?;
    if row.values.len() <= DOTS {
        for value in &row.values {
            root.draw(&Circle::new((x(*value), y), 2, colour.mix(0.5).filled()))?;
        }
    } else {
        let ends = [row.values.iter().copied().fold(f64::INFINITY, f64::min)]
            .into_iter()
            .chain([row.values.iter().copied().fold(f64::NEG_INFINITY, f64::max)]);
        let whisker: Vec<_> = ends.map(|end| (x(end), y)).collect();
        root.draw(&PathElement::new(whisker, colour.stroke_width(1)))?;
    }
    for value in &row.published {
        root.draw(&Circle::new((x(*value), y - 9), 3, INK.stroke_width(1)))?;
    }
    let mut sorted = row.values.clone();
    sorted.sort_by(f64::total_cmp);
    if let [Some(low), Some(middle), Some(high)] =
        [0.25, 0.5, 0.75].map(|share| quantile(&sorted, share))
    {
        let corners = [(x(low), y - 7), (x(high), y + 7)];
        root.draw(&Rectangle::new(corners, colour.stroke_width(2)))?;
        root.draw(&PathElement::new(
            [(x(middle), y - 10), (x(middle), y + 10)],
            INK.stroke_width(2),
        ))?;
    }
    Ok(())
}

/// The value that this share of sorted ones does not exceed.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let at = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(at.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quarters() {
        let values = [1.0, 2.0, 3.0, 4.0];
        assert_eq!([0.25, 0.5, 0.75, 1.0].map(|share| quantile(&values, share)), values.map(Some));
        assert_eq!(quantile(&[], 0.5), None);
    }
}
