//! Benchmarks: tamis and its peers on the same work in the same run.
//!
//! Contract: a figure is the median of several runs, its peer's runs taken in turn with ours; what is
//! missing is listed with the reason. Each benchmark is a function that puts its figures into [`Rows`] as it measures
//! them, and begins nothing more once its time is over ([`limit`]).

pub mod access;
mod chart;
pub mod document;
pub mod figure;
pub mod java;
pub mod limit;
#[cfg(target_os = "linux")]
pub mod live;
pub mod pictures;
pub mod recorded;
pub mod replay;
mod rows;
pub mod rules;
mod shape;
mod svg;
#[cfg(target_os = "linux")]
pub mod tunnel;

pub use document::{Machine, Missing, Peer, Row, Runs};
pub use recorded::{Measured, Recorded};
pub use rows::{Rows, show};

/// A study's published text, by the number that its name begins with; without it, says so.
#[cfg(test)]
fn published_text(number: &str) -> Option<String> {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/seeds");
    let is_it = |path: &std::path::PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(number))
    };
    let files = std::fs::read_dir(&dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let text = files.filter(is_it).find_map(|path| std::fs::read_to_string(path).ok());
    if text.is_none() {
        eprintln!("SKIPPED: no published text {number}* in {}", dir.display());
    }
    text
}
