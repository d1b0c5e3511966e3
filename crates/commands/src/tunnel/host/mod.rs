//! What a tunnel changes on its host, by the host's own programs: addresses and the MTU of the device, routes to
//! allowed prefixes, servers of names, and commands of the configuration.
//!
//! Contract: each step that does not go with the device notes what undoes it before the next one is taken, and [`Host`]
//! undoes them in reverse, also after an error half-way. An error names the command and what it said.
//!
//! Source: wg-quick(8), and its script for Linux; ip-rule(8), ip-route(8), resolvectl(1), resolvconf(8).

mod commands;
mod device;
mod names;
mod routes;

#[cfg(target_os = "linux")]
pub(super) use commands::is_there;
pub(super) use commands::{ask_to_end, hooks, ip, last_hooks};
pub(super) use device::{is_free, ready};
