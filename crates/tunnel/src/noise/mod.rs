//! The handshake: `Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s` (Perrin, "The Noise Protocol Framework", revision 34) by
//! snow, on primitives of our own choice ([`primitives`]). It gives the two keys of a session and nothing else.
//!
//! The prologue is our name and the head of the initiation, so a peer that read another head has other keys. snow
//! frees its chaining key and its copy of the preshared key without wiping them; private keys and cipher keys are
//! wiped, as they are ours.

mod handshake;
mod primitives;
#[cfg(test)]
mod tests;

pub(crate) use handshake::{Accepted, Initiated, Split, accept, initiate, prologue};
pub(crate) use primitives::Ephemeral;
