//! What snow computes with: X25519 of curve25519-dalek, BLAKE2s of blake2, ChaCha20-Poly1305 of ring. Unlike snow's
//! own choice, secret keys are wiped when they are dropped, an agreement of all zeros (a public key of low order)
//! fails, and the one draw that a handshake makes comes from outside.

use crate::aead::{Aead, RingKey, Suite, TAG};
use blake2::{Blake2s256, Digest};
use curve25519_dalek::MontgomeryPoint;
use snow::Error;
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::CryptoResolver;
use snow::types::{Cipher, Dh, Hash, Random};
use std::sync::Mutex;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Bytes that only our own side of a handshake has.
pub(crate) type Ephemeral = Zeroizing<[u8; 32]>;

/// The primitives of one handshake.
pub(super) struct Primitives {
    /// Taken once, by the builder, which has the resolver to itself.
    draw: Mutex<Option<Ephemeral>>,
}

impl Primitives {
    /// Whose ephemeral key is `ephemeral`.
    pub(super) fn drawing(ephemeral: Ephemeral) -> Self {
        Self { draw: Mutex::new(Some(ephemeral)) }
    }
}

impl CryptoResolver for Primitives {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        let draw = self.draw.lock().ok()?.take();
        Some(Box::new(OneDraw(draw)))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        matches!(choice, DHChoice::Curve25519).then(|| Box::new(X25519::default()) as _)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        matches!(choice, HashChoice::Blake2s).then(|| Box::new(Blake2s(Blake2s256::new())) as _)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        let key = RingKey::new(Suite::ChaCha20Poly1305, &[0; 32]);
        matches!(choice, CipherChoice::ChaChaPoly).then(|| Box::new(ChaChaPoly(key)) as _)
    }
}

/// The ephemeral key, once.
struct OneDraw(Option<Ephemeral>);

impl Random for OneDraw {
    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), Error> {
        let drawn = self.0.take().filter(|drawn| drawn.len() == dest.len()).ok_or(Error::Rng)?;
        dest.copy_from_slice(&*drawn);
        Ok(())
    }
}

#[derive(Default)]
pub(super) struct X25519 {
    private: Zeroizing<[u8; 32]>,
    public: [u8; 32],
}

impl Dh for X25519 {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        32
    }

    fn priv_len(&self) -> usize {
        32
    }

    fn set(&mut self, private: &[u8]) {
        self.private.copy_from_slice(private);
        self.public = MontgomeryPoint::mul_base_clamped(*self.private).to_bytes();
    }

    fn generate(&mut self, random: &mut dyn Random) -> Result<(), Error> {
        let mut private = Zeroizing::new([0; 32]);
        random.try_fill_bytes(&mut *private)?;
        self.set(&*private);
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public
    }

    fn privkey(&self) -> &[u8] {
        &*self.private
    }

    fn dh(&self, public: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let public = *public.first_chunk::<32>().ok_or(Error::Dh)?;
        let shared = Zeroizing::new(MontgomeryPoint(public).mul_clamped(*self.private).to_bytes());
        if shared.ct_eq(&[0; 32]).into() {
            return Err(Error::Dh);
        }
        out.get_mut(..32).ok_or(Error::Dh)?.copy_from_slice(&*shared);
        Ok(())
    }
}

struct Blake2s(Blake2s256);

impl Hash for Blake2s {
    fn name(&self) -> &'static str {
        "BLAKE2s"
    }

    fn block_len(&self) -> usize {
        64
    }

    fn hash_len(&self) -> usize {
        32
    }

    fn reset(&mut self) {
        self.0 = Blake2s256::new();
    }

    fn input(&mut self, data: &[u8]) {
        Digest::update(&mut self.0, data);
    }

    fn result(&mut self, out: &mut [u8]) {
        let hash = std::mem::replace(&mut self.0, Blake2s256::new()).finalize();
        out[..32].copy_from_slice(&hash);
    }
}

struct ChaChaPoly(RingKey);

impl Cipher for ChaChaPoly {
    fn name(&self) -> &'static str {
        "ChaChaPoly"
    }

    fn set(&mut self, key: &[u8; 32]) {
        self.0 = RingKey::new(Suite::ChaCha20Poly1305, key);
    }

    fn encrypt(&self, nonce: u64, ad: &[u8], plain: &[u8], out: &mut [u8]) -> usize {
        let (text, rest) = out.split_at_mut(plain.len());
        text.copy_from_slice(plain);
        // ring seals whatever has less than 256 GiB; a tag of zeros would open nowhere.
        let tag = self.0.seal(nonce, ad, text).unwrap_or_default();
        rest[..TAG].copy_from_slice(&tag);
        plain.len() + TAG
    }

    fn decrypt(
        &self,
        nonce: u64,
        ad: &[u8],
        sealed: &[u8],
        out: &mut [u8],
    ) -> Result<usize, Error> {
        let mut text = Zeroizing::new([0; 128]);
        let text = text.get_mut(..sealed.len()).ok_or(Error::Decrypt)?;
        text.copy_from_slice(sealed);
        let len = self.0.open(nonce, ad, text).ok_or(Error::Decrypt)?;
        out.get_mut(..len).ok_or(Error::Decrypt)?.copy_from_slice(&text[..len]);
        Ok(len)
    }
}
