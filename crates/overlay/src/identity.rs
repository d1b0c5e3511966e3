//! [`Identity`]: what a node is, signed: its key, its name, its virtual addresses, and until when that holds. The
//! holder of the [`SignerKey`] can check it; only the owner of the [`Signer`] can make one.
//!
//! Source: Ed25519 (RFC 8032), as `ring` verifies it: strictly, so a signature cannot be changed into another signature that
//! holds, too.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use base64ct::{Base64UrlUnpadded, Encoding};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use tunnel::PublicKey;

use crate::name::Name;
use crate::wire::{Malformed, Reader, Writer};

/// What is signed begins with this, so that no other signature of the key is an identity.
const LABEL: &[u8] = b"tamis identity 1\0";

/// Bytes of a signature.
const SIGNATURE: usize = 64;

/// What a node is, as the authority says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    /// The node's key in the tunnel.
    pub key: PublicKey,
    /// The node's name.
    pub name: Name,
    /// The node's virtual IPv4 address.
    pub v4: Ipv4Addr,
    /// The node's virtual IPv6 address.
    pub v6: Ipv6Addr,
    /// Seconds after 1970 at which it is no longer said.
    pub expires: u64,
}

/// Signed claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// What the node is.
    pub claims: Claims,
    signature: [u8; SIGNATURE],
}

/// The error for an identity that nobody may rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotGenuine {
    /// The signature is not that of the network's signer.
    Forged,
    /// It has expired.
    Expired,
}

impl fmt::Display for NotGenuine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Forged => "it is not signed with the key that this node was enrolled under",
            Self::Expired => "it has expired",
        })
    }
}

impl std::error::Error for NotGenuine {}

impl Claims {
    fn write(&self, to: &mut Writer) {
        to.bytes(self.key.as_bytes()).text(self.name.as_str());
        to.bytes(&self.v4.octets()).bytes(&self.v6.octets()).number(self.expires);
    }

    fn signed(&self) -> Vec<u8> {
        let mut text = Writer(LABEL.to_vec());
        self.write(&mut text);
        text.0
    }
}

impl Identity {
    pub(crate) fn write(&self, to: &mut Writer) {
        self.claims.write(to);
        to.bytes(&self.signature);
    }

    pub(crate) fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let key = PublicKey::new(from.array("a public key of 32 bytes")?);
        let at = from.at();
        let name = from.text("a name of a node")?;
        let name = name.parse().map_err(|_| Malformed { at, expected: "a name of a node" })?;
        let v4 = Ipv4Addr::from(from.array::<4>("an IPv4 address")?);
        let v6 = Ipv6Addr::from(from.array::<16>("an IPv6 address")?);
        let expires = from.number("a time of 8 bytes")?;
        let signature = from.array("a signature of 64 bytes")?;
        Ok(Self { claims: Claims { key, name, v4, v6, expires }, signature })
    }

    /// Writes it, as messages have it.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut to = Writer::default();
        self.write(&mut to);
        to.0
    }

    /// Reads what [`Identity::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`Malformed`], with the byte.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut from = Reader::new(bytes);
        let identity = Self::read(&mut from)?;
        from.end()?;
        Ok(identity)
    }

    /// Checks who signed it, and that it has not expired at this second after 1970.
    ///
    /// # Errors
    /// [`NotGenuine`].
    pub fn verify(&self, signer: &SignerKey, unix: u64) -> Result<&Claims, NotGenuine> {
        let key = UnparsedPublicKey::new(&ED25519, signer.0);
        key.verify(&self.claims.signed(), &self.signature).map_err(|_| NotGenuine::Forged)?;
        if self.claims.expires <= unix { Err(NotGenuine::Expired) } else { Ok(&self.claims) }
    }
}

/// The key that identities of a network are signed with.
pub struct Signer(Ed25519KeyPair);

impl Signer {
    /// The signer of a secret seed; nothing where `ring` takes it for none.
    #[must_use]
    pub fn of_seed(seed: &[u8; 32]) -> Option<Self> {
        Ed25519KeyPair::from_seed_unchecked(seed).ok().map(Self)
    }

    /// The public half.
    #[must_use]
    pub fn key(&self) -> SignerKey {
        // An Ed25519 key has 32 bytes; zeros would be the key of nobody.
        SignerKey(self.0.public_key().as_ref().try_into().unwrap_or_default())
    }

    /// Signs what a node is.
    #[must_use]
    pub fn sign(&self, claims: Claims) -> Identity {
        let signature = self.0.sign(&claims.signed());
        // An Ed25519 signature has 64 bytes; zeros would be none.
        let signature = signature.as_ref().try_into().unwrap_or([0; SIGNATURE]);
        Identity { claims, signature }
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signer(…)")
    }
}

/// The public half of a [`Signer`]; as text, base64 for URLs without padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignerKey([u8; 32]);

/// The error for a text that is no key of a signer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotASigner;

impl fmt::Display for NotASigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected the key of a signer, 43 characters of base64 for URLs")
    }
}

impl std::error::Error for NotASigner {}

impl fmt::Display for SignerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Base64UrlUnpadded::encode_string(&self.0))
    }
}

impl FromStr for SignerKey {
    type Err = NotASigner;

    fn from_str(text: &str) -> Result<Self, NotASigner> {
        url_key(text).map(Self).ok_or(NotASigner)
    }
}

/// The 32 bytes of a key in base64 for URLs.
pub(crate) fn url_key(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    let decoded = Base64UrlUnpadded::decode(text, &mut bytes).ok()?;
    (decoded.len() == 32).then_some(bytes)
}

/// A key in base64 for URLs.
pub(crate) fn url_text(key: &[u8; 32]) -> String {
    Base64UrlUnpadded::encode_string(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims() -> Claims {
        Claims {
            key: PublicKey::new([7; 32]),
            name: "nas".parse().unwrap(),
            v4: [10, 99, 0, 2].into(),
            v6: "fd00::2".parse().unwrap(),
            expires: 1_000,
        }
    }

    #[test]
    fn an_identity_holds_until_it_expires() {
        let signer = Signer::of_seed(&[1; 32]).unwrap();
        let identity = signer.sign(claims());
        assert_eq!(identity.verify(&signer.key(), 999), Ok(&claims()));
        assert_eq!(identity.verify(&signer.key(), 1_000), Err(NotGenuine::Expired));
        let other = Signer::of_seed(&[2; 32]).unwrap();
        assert_eq!(identity.verify(&other.key(), 999), Err(NotGenuine::Forged));
    }

    #[test]
    fn no_byte_of_an_identity_may_change() {
        let signer = Signer::of_seed(&[1; 32]).unwrap();
        let mut written = Writer::default();
        signer.sign(claims()).write(&mut written);
        for at in 0..written.0.len() {
            let mut bytes = written.0.clone();
            bytes[at] ^= 1;
            let read = Identity::read(&mut Reader::new(&bytes));
            let verified = read.map(|read| read.verify(&signer.key(), 0).is_ok());
            assert_ne!(verified, Ok(true), "byte {at}");
        }
    }

    #[test]
    fn a_signers_key_is_read_as_it_is_written() {
        let key = Signer::of_seed(&[1; 32]).unwrap().key();
        assert_eq!(key.to_string().parse(), Ok(key));
        assert_eq!("abc".parse::<SignerKey>(), Err(NotASigner));
    }
}
