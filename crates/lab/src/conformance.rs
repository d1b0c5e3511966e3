//! Writes `docs/conformance.md` from a campaign's [`Summary`] and the registry of extensions.

use crate::summary::Summary;

/// The page.
#[must_use]
pub fn page(summary: &Summary) -> String {
    summary.json_lines()
}
