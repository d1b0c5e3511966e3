//! Keys of peers: X25519 (RFC 7748), of the same form as WireGuard's, and the preshared key of a pair. Secret ones
//! are wiped when they are dropped, and show nothing of themselves.

use curve25519_dalek::MontgomeryPoint;
use zeroize::Zeroizing;

use crate::entropy::{Entropy, NoEntropy, draw};

/// The identity of a peer: its public key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// From its 32 bytes, whatever they are.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the key's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl std::fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [a, b, c, d, ..] = self.0;
        write!(f, "PublicKey({a:02x}{b:02x}{c:02x}{d:02x}…)")
    }
}

/// The secret half of a peer's key.
#[derive(Clone)]
pub struct PrivateKey(Zeroizing<[u8; 32]>);

impl PrivateKey {
    /// From its 32 bytes, clamped or not.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// A new one, clamped as RFC 7748 section 5 says.
    ///
    /// # Errors
    /// If there is no randomness.
    pub fn generate(entropy: &mut dyn Entropy) -> Result<Self, NoEntropy> {
        let bytes = Zeroizing::new(draw(entropy)?);
        Ok(Self(Zeroizing::new(curve25519_dalek::scalar::clamp_integer(*bytes))))
    }

    /// Returns the public half.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey(MontgomeryPoint::mul_base_clamped(*self.0).to_bytes())
    }

    /// Returns the key's bytes, which are the secret.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl std::fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PrivateKey(…)")
    }
}

/// A secret that two peers share besides, mixed into each handshake (psk2). All zeros is none. Where it comes from a
/// post-quantum exchange, and is renewed, sessions withstand who records today and computes later.
#[derive(Clone)]
pub struct PresharedKey(Zeroizing<[u8; 32]>);

impl PresharedKey {
    /// From its 32 bytes.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    pub(crate) fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl Default for PresharedKey {
    fn default() -> Self {
        Self::new([0; 32])
    }
}

impl std::fmt::Debug for PresharedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PresharedKey(…)")
    }
}
