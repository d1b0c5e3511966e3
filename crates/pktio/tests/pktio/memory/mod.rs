//! Frames with memory of their own: every chunk goes back exactly once, whatever happens to its frame, and no two
//! frames share a byte.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod joined;
mod ring;
mod steps;
