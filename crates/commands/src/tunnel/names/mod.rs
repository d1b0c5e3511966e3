//! Names of a network's nodes, while a tunnel is up: programs ask for a name at this node's own virtual address, the
//! network's directory shows the way, and the tunnel gets a peer. [`agent`] speaks to all three, [`programs`] has
//! the sockets of programs, [`forward`] asks others for names of other networks, [`dns`] reads and writes messages of DNS,
//! [`client`] asks as programs do, [`way`] says whether servers are reached by UDP or by TCP, [`places`] at which of its places the
//! directory is spoken to, [`mapped`] has the router map a port, [`policy`] makes rules of what nodes may begin.
//!
//! Contract: the sockets are opened before the process gives up its privileges; one thread has them, next to the workers: no
//! packet waits for it. Only this host is answered.

mod agent;
mod client;
mod dns;
mod forward;
mod mapped;
mod places;
mod policy;
mod programs;
mod way;

pub(super) use agent::Names;
pub(super) use client::{Told, address, own_name};
#[cfg(fuzzing)]
pub(crate) use dns::hostile;
pub(super) use policy::{COMMENT, chain, tables};
pub(super) use programs::bound;
