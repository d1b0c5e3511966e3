//! The figures of the studies, all of them, drawn from documents.

use std::path::Path;

use super::access::{study1, study2};
use super::java;
use super::recorded::Recorded;
use super::rules;
#[cfg(target_os = "linux")]
use super::tunnel::evaluation;

/// Draws into a folder every figure of the studies that a document has rows for.
///
/// # Errors
/// A picture cannot be written.
pub fn draw(recorded: &Recorded, dir: &Path) -> Result<(), String> {
    std::fs::create_dir_all(dir).map_err(|why| format!("{}: {why}", dir.display()))?;
    study1::draw(recorded, dir)?;
    study2::draw(recorded, dir)?;
    java::figure::draw(recorded, dir)?;
    #[cfg(target_os = "linux")]
    evaluation::draw(recorded, dir)?;
    rules::figure::draw(recorded, dir)
}
