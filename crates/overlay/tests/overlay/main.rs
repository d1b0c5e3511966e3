//! The overlay's state machines over a simulated network.
#![allow(clippy::unwrap_used, reason = "a test fails by it")]

mod apart;
mod authority;
mod clouded;
mod codec;
mod day;
mod direct;
mod enrolment;
mod families;
mod framed;
mod fresh;
mod home;
mod hostile;
mod pairs;
mod policed;
mod punch;
mod relayed;
mod router;
mod routers;
mod setups;
mod several;
mod signaling;
mod town;
mod ways;
mod world;
