//! Rules without packets: what is dead in them, and what a change of them changes.
#![forbid(unsafe_code)]

mod around;
mod diagram;
mod diff;
mod flow;
mod lint;
mod packet;
mod report;
mod space;

pub use diagram::{Diagrams, Region, TooLarge};
pub use diff::{Compared, Difference, Differences, Given, Incomparable, diff, diff_on, whole_walk};
pub use flow::{Altered, Decision, Fate, Flow, Remembering, Sent, Visit, flow};
pub use lint::{Code, Finding, Findings, Severity, lint};
pub use packet::{After, Walked, spec, walked, walked_after};
pub use report::{InFile, Report};
pub use space::{Part, Piece, Pieces, Preferred, Sample, Space};
