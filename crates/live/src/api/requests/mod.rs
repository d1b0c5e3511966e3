//! Requests to a run: each is carried out by the part that it is for, and answered by a document.

mod apply;
mod dispatch;
mod flows;
mod lists;
mod peers;

pub(crate) use dispatch::{answer, answer_to_line};
pub use lists::MOST_CHANGES;
