//! Ciphers of sessions: what a peer offers, what a pair chooses, and the keys, behind a trait. ring seals; nothing
//! else here knows it.
//!
//! A nonce is the counter of a datagram: four zero bytes, then 64 bits, little-endian.

use std::hint::black_box;

use ring::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey};

/// Length of a tag, in bytes.
pub(crate) const TAG: usize = 16;

/// An authenticated cipher with 256-bit keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Suite {
    /// RFC 8439. Everyone has it.
    ChaCha20Poly1305 = 1,
    /// NIST SP 800-38D. Faster where the processor has instructions for it, slow and never offered elsewhere.
    Aes256Gcm = 2,
}

impl Suite {
    /// From a byte of a handshake.
    pub(crate) fn from_wire(byte: u8) -> Option<Self> {
        [Self::ChaCha20Poly1305, Self::Aes256Gcm].into_iter().find(|suite| *suite as u8 == byte)
    }

    /// A session that has sent as many datagrams is replaced. `ChaCha20Poly1305`: WireGuard's. `Aes256Gcm`: 2^32
    /// datagrams of 64 KiB are 2^44 blocks, which keeps what an attacker learns of the blocks below 2^-40.
    #[must_use]
    pub fn rekey_after(self) -> u64 {
        match self {
            Self::ChaCha20Poly1305 => 1 << 60,
            Self::Aes256Gcm => 1 << 32,
        }
    }

    /// A session sends no counter as large, and opens none.
    #[must_use]
    pub fn reject_after(self) -> u64 {
        match self {
            Self::ChaCha20Poly1305 => u64::MAX - (1 << 13) - 1,
            Self::Aes256Gcm => 1 << 33,
        }
    }
}

/// The suites that a peer offers: bit 0 is [`Suite::ChaCha20Poly1305`], which is always there, bit 1
/// [`Suite::Aes256Gcm`]. Other bits are for what is to come, and mean nothing yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer(u8);

/// Two peers have no suite in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuite;

impl Offer {
    /// ChaCha20-Poly1305 alone.
    pub const CHACHA: Self = Self(1);
    /// Both.
    pub const BOTH: Self = Self(3);

    /// What this processor does fast.
    #[must_use]
    pub fn of_this_machine() -> Self {
        if has_aes() { Self::BOTH } else { Self::CHACHA }
    }

    pub(crate) fn from_wire(bits: u8) -> Self {
        Self(bits)
    }

    pub(crate) fn to_wire(self) -> u8 {
        self.0
    }

    /// Whether `suite` is among them.
    #[must_use]
    pub fn has(self, suite: Suite) -> bool {
        self.0 & suite as u8 != 0
    }

    /// What a pair that offers this and `other` takes: AES-256-GCM where both have it.
    ///
    /// # Errors
    /// [`NoSuite`] if they share none, which an offer of another version may come to.
    pub fn choose(self, other: Self) -> Result<Suite, NoSuite> {
        let both = Self(self.0 & other.0);
        [Suite::Aes256Gcm, Suite::ChaCha20Poly1305]
            .into_iter()
            .find(|suite| both.has(*suite))
            .ok_or(NoSuite)
    }
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn has_aes() -> bool {
    is_x86_feature_detected!("aes") && is_x86_feature_detected!("pclmulqdq")
}

#[cfg(target_arch = "aarch64")]
fn has_aes() -> bool {
    std::arch::is_aarch64_feature_detected!("aes")
        && std::arch::is_aarch64_feature_detected!("pmull")
}

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
fn has_aes() -> bool {
    false
}

/// A tag, or that the cipher refused: then what was to be sealed is of no use any more.
pub type Sealed = Option<[u8; TAG]>;

/// One key in one direction.
pub trait Aead: Send + Sync {
    /// Seals `text` where it lies; the tag covers `ad`, too. No two calls may have one `counter`.
    fn seal(&self, counter: u64, ad: &[u8], text: &mut [u8]) -> Sealed;

    /// Opens `text`, the last bytes of which are the tag, where it lies: the length of the plain text, or that it is
    /// not genuine, and then `text` is of no use any more.
    fn open(&self, counter: u64, ad: &[u8], text: &mut [u8]) -> Option<usize>;
}

/// ring's.
pub(crate) struct RingKey(LessSafeKey);

impl RingKey {
    pub(crate) fn new(suite: Suite, key: &[u8; 32]) -> Self {
        Self(schedule(
            match suite {
                Suite::ChaCha20Poly1305 => &aead::CHACHA20_POLY1305,
                Suite::Aes256Gcm => &aead::AES_256_GCM,
            },
            key,
        ))
    }

    fn seal_by(&self, nonce: [u8; 12], ad: &[u8], text: &mut [u8]) -> Sealed {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self.0.seal_in_place_separate_tag(nonce, Aad::from(ad), text).ok()?;
        tag.as_ref().try_into().ok()
    }

    fn open_by(&self, nonce: [u8; 12], ad: &[u8], text: &mut [u8]) -> Option<usize> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        Some(self.0.open_in_place(nonce, Aad::from(ad), text).ok()?.len())
    }

    /// ring wipes no keys. Another one, of zeros, takes the place of the whole schedule, and `black_box` has the
    /// compiler write it although nobody reads it again.
    fn wipe(&mut self) {
        self.0 = schedule(self.0.algorithm(), &[0; 32]);
        black_box(&self.0);
    }
}

fn schedule(algorithm: &'static aead::Algorithm, key: &[u8; 32]) -> LessSafeKey {
    // Fails for keys of another length alone.
    LessSafeKey::new(UnboundKey::new(algorithm, key).expect("both suites take 32 bytes"))
}

impl Aead for RingKey {
    fn seal(&self, counter: u64, ad: &[u8], text: &mut [u8]) -> Sealed {
        self.seal_by(nonce(counter), ad, text)
    }

    fn open(&self, counter: u64, ad: &[u8], text: &mut [u8]) -> Option<usize> {
        self.open_by(nonce(counter), ad, text)
    }
}

fn nonce(counter: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&counter.to_le_bytes());
    nonce
}

impl Drop for RingKey {
    fn drop(&mut self) {
        self.wipe();
    }
}

#[cfg(test)]
mod tests;
