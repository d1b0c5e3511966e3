//! Both sides of a handshake: the messages that each writes and reads, and the keys that they split.

use snow::{Builder, HandshakeState};
use zeroize::Zeroizing;

use super::primitives::{Ephemeral, Primitives};
use crate::keys::{PresharedKey, PrivateKey, PublicKey};

pub(super) const NAME: &str = "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s";

/// What both messages are bound to besides.
pub(crate) fn prologue(head: [u8; 8]) -> [u8; 16] {
    let mut prologue = *b"tamis 1 ........";
    prologue[8..].copy_from_slice(&head);
    prologue
}

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
    /// The message's author, which is proven.
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
