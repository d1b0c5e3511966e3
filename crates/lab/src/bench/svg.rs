//! A picture in a file: SVG on white, without fonts of the machine.

use std::error::Error;
use std::io;
use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;

/// Of all texts.
pub(super) const FONT: &str = "sans-serif";

/// What is drawn on.
pub(super) type Drawing<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// What drawing comes to.
pub(super) type Drawn = Result<(), Box<dyn Error>>;

/// Draws into a file; `size` is width and height in pixels.
///
/// # Errors
/// The file cannot be written.
pub(super) fn draw(
    path: &Path,
    size: (u32, u32),
    body: impl FnOnce(&Drawing<'_>) -> Drawn,
) -> io::Result<()> {
    let all = || -> Drawn {
        let root = SVGBackend::new(path, size).into_drawing_area();
        root.fill(&WHITE)?;
        body(&root)?;
        root.present()?;
        Ok(())
    };
    all().map_err(|error| io::Error::other(format!("{}: {error}", path.display())))
}
