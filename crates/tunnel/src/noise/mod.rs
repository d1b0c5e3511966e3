//! The handshake: `Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s` (Perrin, "The Noise Protocol Framework", revision 34) by
//! snow, on primitives of our own choice ([`primitives`]). It gives the two keys of a session and nothing else.
//!
//! The prologue is our name and the head of the initiation, so a peer that read another head has other keys. snow
//! frees its chaining key and its copy of the preshared key without wiping them; private keys and cipher keys are
//! wiped, as they are ours.

mod primitives;
#[cfg(test)]
mod tests;

use snow::{Builder, HandshakeState};
use zeroize::Zeroizing;

use crate::keys::{PresharedKey, PrivateKey, PublicKey};
use primitives::Primitives;

const NAME: &str = "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s";

/// What both messages are bound to besides.
pub(crate) fn prologue(head: [u8; 8]) -> [u8; 16] {
    let mut prologue = *b"tamis 1 ........";
    prologue[8..].copy_from_slice(&head);
    prologue
}

/// Bytes that only our own side of a handshake has.
pub(crate) type Ephemeral = Zeroizing<[u8; 32]>;

/// The two keys of a session.
pub(crate) struct Split {
    pub(crate) initiator: Zeroizing<[u8; 32]>,
    pub(crate) responder: Zeroizing<[u8; 32]>,
}

fn builder<'a>(
    local: &'a PrivateKey,
    prologue: &'a [u8],
    ephemeral: Ephemeral,
) -> Result<Builder<'a>, snow::Error> {
    Builder::with_resolver(NAME.parse()?, Box::new(Primitives::drawing(ephemeral)))
        .local_private_key(local.as_bytes())?
        .prologue(prologue)
}

fn split(state: &mut HandshakeState) -> Split {
    let (initiator, responder) = state.dangerously_get_raw_split();
    Split { initiator: Zeroizing::new(initiator), responder: Zeroizing::new(responder) }
}

/// A handshake whose first message we wrote.
pub(crate) struct Initiated(Box<HandshakeState>);

/// Writes the first message, as long as `message`.
pub(crate) fn initiate(
    (local, remote): (&PrivateKey, &PublicKey),
    psk: &PresharedKey,
    prologue: &[u8],
    ephemeral: Ephemeral,
    payload: &[u8],
    message: &mut [u8],
) -> Result<Initiated, snow::Error> {
    let mut state = builder(local, prologue, ephemeral)?
        .remote_public_key(remote.as_bytes())?
        .psk(2, psk.as_bytes())?
        .build_initiator()?;
    state.write_message(payload, message)?;
    Ok(Initiated(Box::new(state)))
}

impl Initiated {
    /// The preshared key that the second message is read by.
    pub(crate) fn set_preshared_key(&mut self, psk: &PresharedKey) {
        // Fails for another place or length alone; and then nothing that answers is genuine.
        let _ = self.0.set_psk(2, psk.as_bytes());
    }

    /// Reads the second message. One that is not genuine leaves the handshake as it was.
    pub(crate) fn finish(
        &mut self,
        message: &[u8],
        payload: &mut [u8],
    ) -> Result<Split, snow::Error> {
        self.0.read_message(message, payload)?;
        Ok(split(&mut self.0))
    }
}

/// A handshake whose first message was read.
pub(crate) struct Accepted {
    /// Who wrote it, which is proven.
    pub(crate) remote: PublicKey,
    state: Box<HandshakeState>,
}

/// Reads the first message into `payload`.
pub(crate) fn accept(
    local: &PrivateKey,
    prologue: &[u8],
    ephemeral: Ephemeral,
    message: &[u8],
    payload: &mut [u8],
) -> Result<Accepted, snow::Error> {
    let mut state = builder(local, prologue, ephemeral)?.build_responder()?;
    state.read_message(message, payload)?;
    let remote = state.get_remote_static().and_then(|key| key.try_into().ok());
    let remote = PublicKey::new(remote.ok_or(snow::Error::Input)?);
    Ok(Accepted { remote, state: Box::new(state) })
}

impl Accepted {
    /// Writes the second message, as long as `message`.
    pub(crate) fn answer(
        mut self,
        psk: &PresharedKey,
        payload: &[u8],
        message: &mut [u8],
    ) -> Result<Split, snow::Error> {
        self.state.set_psk(2, psk.as_bytes())?;
        self.state.write_message(payload, message)?;
        Ok(split(&mut self.state))
    }
}
