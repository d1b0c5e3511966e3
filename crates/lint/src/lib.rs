//! Rules without packets: what is dead in them, what a change of them changes, and what they let through.
#![forbid(unsafe_code)]

mod around;
mod baseline;
mod diagram;
mod diff;
mod flow;
mod lint;
mod meeting;
mod packet;
mod reach;
mod report;
mod space;

pub use baseline::Baseline;
pub use diagram::{Diagrams, Region, TooLarge};
pub use diff::{Compared, Difference, Differences, Given, Incomparable, diff, diff_on, whole_walk};
pub use flow::{Altered, Decision, Fate, Flow, Remembering, Sent, Visit, flow, target_text};
pub use lint::{Code, Finding, Findings, OnHost, Severity, lint, lint_on, lint_text};
pub use packet::{After, Walked, spec, walked, walked_after, walked_among};
pub use reach::{
    Asked, Closed, Judge, Judged, Question, Reach, Reached, Reaching, States, To, Translated, reach,
};
pub use report::{InFile, Report, Told};
pub use space::{Part, Piece, Pieces, Preferred, Sample, Space};
