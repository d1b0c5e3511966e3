//! Forwarding: a worker's thread, and all that a frame meets between the ports of its wire.
//!
//! Contract: no rule changes here, and no thread but a worker's runs here; other threads ask through [`requests`].

pub(crate) mod account;
pub(crate) mod awake;
pub(crate) mod causes;
pub(crate) mod clock;
pub(crate) mod evaluator;
pub(crate) mod fate;
pub(crate) mod fragments;
pub(crate) mod handover;
pub(crate) mod handover_frame;
pub(crate) mod middlebox;
pub(crate) mod ordered;
pub(crate) mod parker;
pub mod reorder;
pub mod replies;
pub(crate) mod requests;
pub(crate) mod shadow;
pub(crate) mod slots;
pub(crate) mod steering;
pub(crate) mod talkers;
pub(crate) mod taps;
pub(crate) mod wire;
pub(crate) mod worker;
