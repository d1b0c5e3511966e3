//! [`picture`]: a screen as SVG, for pages that show what it looks like.

use std::fmt::Write;

use packet::visible;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

/// Pixels of a place on the screen, and of the text in it.
const WIDTH: usize = 8;
const HEIGHT: usize = 17;
const SIZE: usize = 13;
/// Around all of it.
const MARGIN: usize = 12;

const BACKGROUND: &str = "#1b1f27";
const FOREGROUND: &str = "#d5dae3";

/// A screen as SVG.
pub(super) fn picture(screen: &Buffer) -> String {
    let (columns, rows) = (usize::from(screen.area.width), usize::from(screen.area.height));
    let (width, height) = (columns * WIDTH + 2 * MARGIN, rows * HEIGHT + 2 * MARGIN);
    let mut svg = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" font-family=\"ui-monospace, 'DejaVu Sans Mono', \
         Menlo, Consolas, monospace\" font-size=\"{SIZE}\">"
    );
    let _ = writeln!(svg, "<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>");
    for (row, cells) in screen.content.chunks(columns.max(1)).enumerate() {
        write_row(&mut svg, row, cells);
    }
    svg.push_str("</svg>\n");
    svg
}

/// A word is one text, as wide as its cells are, whatever the font: what shows pictures does what it likes with spaces.
fn write_row(svg: &mut String, row: usize, cells: &[Cell]) {
    let mut at = 0;
    let looks = |cell: &Cell| (cell.fg, cell.modifier, cell.symbol().trim().is_empty());
    for run in cells.chunk_by(|a, b| looks(a) == looks(b)) {
        let text: String = run.iter().map(Cell::symbol).collect();
        let (first, column) = (&run[0], at);
        at += run.len();
        if text.trim().is_empty() {
            continue;
        }
        let (x, y) = (MARGIN + column * WIDTH, MARGIN + row * HEIGHT + SIZE);
        let (colour, length) = (colour(first.fg), run.len() * WIDTH);
        let bold =
            if first.modifier.contains(Modifier::BOLD) { " font-weight=\"bold\"" } else { "" };
        let _ = writeln!(
            svg,
            "<text x=\"{x}\" y=\"{y}\" textLength=\"{length}\" fill=\"{colour}\"{bold}>{}</text>",
            escaped(&visible::word(&text))
        );
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn colour(colour: Color) -> &'static str {
    match colour {
        Color::Cyan => "#56c8d8",
        Color::Green => "#7ec97e",
        Color::Red => "#ef6b73",
        Color::Yellow => "#e3c169",
        Color::DarkGray => "#737b8c",
        _ => FOREGROUND,
    }
}
