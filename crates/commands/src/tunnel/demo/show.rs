//! What a demo prints.

use anyhow::Result;
use packet::visible;

use crate::screen;

/// Prints what is done next.
pub(super) fn title(what: &str) -> Result<()> {
    screen::print(&format!("\n== {}\n", visible::word(what)))
}

/// Prints what a program said.
pub(super) fn show(text: &str) -> Result<()> {
    screen::print(&visible::text(text))
}
