//! Rules against rules: which packets get another verdict, all tables of their way taken together.
//!
//! Packets are as they come: what targets make of them on the way, marks and other destinations, is followed. What cannot
//! be told without a packet at hand is said to be unknown: a test that can only be asked, a target whose effect depends on
//! the packet, whether an address is the host's own, another mark where routing sees it.
//!
//! Only packets that may match a changed rule are sent through the rules (`changed`), so that most comparisons are small
//! however many rules there are; `paths` says which get to a chain at all. `altered` is what was made of packets, `send` a chain, `way` all chains of a way,
//! `compare` the two rulesets, `witness` the packets that walks confirm. `apart` and `unequal` are of tests that remember
//! packets.

mod after;
mod altered;
mod apart;
mod cases;
mod causes;
mod changed;
mod compare;
mod differences;
mod paths;
mod remember;
mod rulesets;
mod send;
mod stage;
#[cfg(test)]
mod tests;
mod through;
mod translate;
mod unequal;
mod way;
mod witness;

pub use differences::{Compared, Difference, Differences};
pub use rulesets::{Given, Incomparable, diff, diff_on};
pub(crate) use through::{Through, cause, sent_on_elsewhere, through};
pub use witness::whole_walk;
