//! Random small rulesets and random packets: the walk against a naive one, what it says of packets that
//! are partly unknown against every way to complete them, and the text of the rules against itself.
//!
//! `made` has rules and packets as plain values with their text and bytes, `naive` evaluates them without any
//! of the code under test, `sound` and `printed` compare; `laid` compares every layout with the walk.

mod laid;
mod made;
mod naive;
mod printed;
mod sound;
