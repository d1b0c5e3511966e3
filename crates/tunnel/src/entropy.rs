//! Where randomness comes from: keys of handshakes, indexes of sessions, nonces of cookies, jitter of timers. It is
//! passed in, so that a test can repeat what it saw.

use ring::rand::{SecureRandom, SystemRandom};

/// A source of randomness that nobody can predict.
pub trait Entropy: Send {
    /// Fills all of `bytes`.
    ///
    /// # Errors
    /// [`NoEntropy`] if there is none; what `bytes` hold then is of no use.
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), NoEntropy>;
}

/// The source of randomness failed. Nothing that needs it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoEntropy;

impl std::fmt::Display for NoEntropy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the source of randomness failed")
    }
}

impl std::error::Error for NoEntropy {}

/// The operating system's randomness.
#[derive(Debug)]
pub struct SystemEntropy(SystemRandom);

impl SystemEntropy {
    /// Takes nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self(SystemRandom::new())
    }
}

impl Default for SystemEntropy {
    fn default() -> Self {
        Self::new()
    }
}

impl Entropy for SystemEntropy {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), NoEntropy> {
        self.0.fill(bytes).map_err(|_| NoEntropy)
    }
}

/// `N` bytes of it.
pub(crate) fn draw<const N: usize>(entropy: &mut dyn Entropy) -> Result<[u8; N], NoEntropy> {
    let mut bytes = [0; N];
    entropy.fill(&mut bytes)?;
    Ok(bytes)
}
