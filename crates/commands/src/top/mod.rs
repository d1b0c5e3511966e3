//! `tamis top`: a run, watched: rates, verdicts, rules, reasons, talkers and workers.
//!
//! Contract: it asks by the control socket, and changes nothing but that talkers are counted while it does. A run that goes
//! away is waited for. [`figures`] and [`view`] are pure.

mod command;
mod figures;
mod reading;
mod svg;
mod terminal;
#[cfg(test)]
mod tests;
mod view;

pub(crate) use command::{TopArgs, run};
