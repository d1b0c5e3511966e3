//! A packet spec: `[in=eth0] [out=eth1] tcp 198.51.100.7:51200 > 10.0.0.9:5432 syn`, then `key=value`
//! for ttl, mark, ctstate, after, len, tos, frag and path, and for what is in it (`contents`); or a line of another program
//! that says what a packet was (`spelt`). What none of its words gives is not known (`gaps`).

mod contents;
mod described;
mod fields;
mod fit;
mod gaps;
mod lack;
mod message;
mod read;
mod spelt;
mod talk;
mod word;
pub(crate) mod words;

pub use crate::logged::Prefix;
pub use contents::{Contents, USUAL_KEYS};
#[cfg(test)]
pub(crate) use described::config;
pub use described::{CT, Spec};
pub(crate) use lack::Lack;
pub(crate) use read::{OfLine, of_line};
pub use read::{parse, parse_with};
pub(crate) use spelt::{Among, Captured, Passed, What};
pub(crate) use talk::Talk;
pub use talk::arrivals;
pub use word::SpecError;
