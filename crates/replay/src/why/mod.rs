//! One packet's story: every rule that it met, what decided, and which rules it nearly matched.

mod again;
mod diagram;
mod json;
mod lines;
mod packets;
mod past;
mod single;
mod story;
mod teller;
mod text;
mod together;
mod traced;
mod witness;

pub(crate) use again::paths;
pub use lines::{Judged, of_lines};
pub use packets::{of_capture, of_conversation};
pub(crate) use past::Past;
pub use single::{Single, Singles};
pub use story::Story;
