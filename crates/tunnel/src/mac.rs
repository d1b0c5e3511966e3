//! Keyed BLAKE2s (RFC 7693), and keys made of a label and a public key: who does not know a peer's public key cannot
//! have it do any work.

use blake2::digest::typenum::{U16, U32};
use blake2::digest::{FixedOutput, KeyInit, Update};
use blake2::{Blake2s256, Blake2sMac, Digest};
use subtle::ConstantTimeEq;

use crate::keys::PublicKey;
use crate::message::{MAC, Message, Type};

/// The label of mac1's key.
const MAC1: &[u8] = b"tamis mac1 of ";

/// Makes a key that anybody with the public key can make.
pub(crate) fn public_key(label: &[u8], of: &PublicKey) -> [u8; 32] {
    Blake2s256::new().chain_update(label).chain_update(of.as_bytes()).finalize().into()
}

/// BLAKE2s of all `parts` under `key`, of 16 bytes.
pub(crate) fn mac(key: &[u8; 32], parts: &[&[u8]]) -> [u8; MAC] {
    let mut state = Blake2sMac::<U16>::new(&(*key).into());
    parts.iter().for_each(|part| state.update(part));
    state.finalize_fixed().into()
}

/// Derives a key of 32 bytes from another.
pub(crate) fn derive(key: &[u8; 32], from: &[u8]) -> [u8; 32] {
    let mut state = Blake2sMac::<U32>::new(&(*key).into());
    state.update(from);
    state.finalize_fixed().into()
}

/// mac1 of messages to one peer.
pub(crate) struct Mac1 {
    /// Keyed, with the head of an initiation, and of a response, taken in. In a flood, each message then costs one of
    /// three blocks less: the key's block is only compressed once something follows it.
    initiation: Blake2sMac<U16>,
    response: Blake2sMac<U16>,
}

impl Mac1 {
    pub(crate) fn of(receiver: &PublicKey) -> Self {
        let keyed = Blake2sMac::<U16>::new(&public_key(MAC1, receiver).into());
        let [initiation, response] =
            [Type::Initiation, Type::Response].map(|kind| keyed.clone().chain(kind.first()));
        Self { initiation, response }
    }

    /// Returns mac1 of the covered part of a handshake message.
    fn of_covered(&self, covered: &[u8]) -> [u8; MAC] {
        let (head, rest) = covered.split_at(Type::Response.first().len());
        let is_response = head == Type::Response.first();
        let state = if is_response { &self.response } else { &self.initiation };
        state.clone().chain(rest).finalize_fixed().into()
    }

    /// Writes it where it belongs.
    pub(crate) fn sign(&self, message: &mut [u8]) -> [u8; MAC] {
        let start = message.len() - 2 * MAC;
        let tag = self.of_covered(&message[..start]);
        message[start..start + MAC].copy_from_slice(&tag);
        tag
    }

    /// Whether a handshake message has the right one.
    pub(crate) fn verifies(&self, message: &[u8]) -> bool {
        let (rest, _) = message.split_at(message.len() - MAC);
        let (covered, tag) = rest.split_at(rest.len() - MAC);
        self.of_covered(covered).ct_eq(tag).into()
    }
}

/// The peer that handshake messages are for, as anybody who knows the peer's public key can tell: for a relay, which has no
/// other key.
pub struct Addressee(Mac1);

impl Addressee {
    /// The peer that has this key.
    #[must_use]
    pub fn new(key: &PublicKey) -> Self {
        Self(Mac1::of(key))
    }

    /// Whether a datagram is a handshake message for the peer.
    #[must_use]
    pub fn is_of(&self, datagram: &[u8]) -> bool {
        let parsed = Message::parse(datagram);
        matches!(parsed, Ok(Message::Initiation(_) | Message::Response(_)))
            && self.0.verifies(datagram)
    }
}
