//! `[middlebox]`: where middleboxes see frames, and what becomes of those that they fail over.

use toml::de::DeTable;

use super::At;
use crate::keys::{Section, Wrong};

/// Where a middlebox is, and what becomes of frames that it fails over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Slot {
    /// Before or after the rules.
    pub side: Side,
    /// What becomes of frames that it fails over.
    pub on_error: OnError,
}

/// The longest ring.
const MOST_FRAMES: u64 = 1 << 20;

/// On which side of the rules a middlebox sees frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Side {
    /// Those that leave, as the rules leave them.
    #[default]
    After,
    /// Those that come, as they come.
    Before,
}

/// What becomes of a frame that a middlebox fails over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// It is dropped.
    #[default]
    Drop,
    /// It goes on.
    Pass,
}

/// What a configuration says of middleboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MiddleboxSettings {
    /// Where they are.
    pub slot: Slot,
    /// Frames that may be at a worker's middlebox while the worker goes on; 0 where it waits for its verdicts.
    pub ring: usize,
    /// Where the configuration says so.
    pub at: At,
}

/// What it says, if it has the section, which begins at `at` of the given offset.
pub(super) fn middlebox(
    top: &DeTable<'_>,
    at: impl Fn(usize) -> At,
) -> Result<Option<MiddleboxSettings>, Wrong> {
    let Some(value) = top.get("middlebox") else { return Ok(None) };
    let section = Section::new("[middlebox]", value, &["place", "on_error", "ring"], &[])?;
    let sides = [("after", Side::After), ("before", Side::Before)];
    let errors = [("drop", OnError::Drop), ("pass", OnError::Pass)];
    let slot = Slot {
        side: section.choice("place", &sides, &[])?.unwrap_or_default(),
        on_error: section.choice("on_error", &errors, &[])?.unwrap_or_default(),
    };
    let ring = section.number("ring", MOST_FRAMES)?.unwrap_or_default() as usize;
    Ok(Some(MiddleboxSettings { slot, ring, at: at(value.span().start) }))
}
