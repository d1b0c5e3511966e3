//! Cookies: under load, a peer answers a handshake message with a cookie that only its source receives, and does the
//! expensive work once a message comes back that shows it (WireGuard, section 5.4.7; after DTLS and IKEv2).
//!
//! A cookie is a MAC of the source's address **and port** under a secret that changes every two minutes, so nothing
//! is remembered of anyone. It is sealed under a key that is made of the public key and a random nonce of 24 bytes,
//! and is bound to mac1 of the message it answers. Whom a cookie comes from says nothing about where a peer is.

use std::net::{IpAddr, SocketAddr};

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::aead::{Aead, RingKey, Suite};
use crate::entropy::{Entropy, NoEntropy, draw};
use crate::keys::PublicKey;
use crate::limits::{COOKIE_SECRET_TIME, COOKIE_TIME};
use crate::mac::{derive, mac, public_key};
use crate::message::{COOKIE, INITIATION, MAC, Type, at};

const LABEL: &[u8] = b"tamis cookie of ";
const NONCE: usize = 24;
const SEALED: usize = 8 + NONCE;

/// What seals and opens one cookie.
fn cipher(key: &[u8; 32], nonce: &[u8; NONCE]) -> RingKey {
    RingKey::new(Suite::ChaCha20Poly1305, &Zeroizing::new(derive(key, nonce)))
}

/// A cookie, as the key that it is of mac2.
fn mac2(cookie: &[u8; MAC], covered: &[u8]) -> [u8; MAC] {
    let mut key = Zeroizing::new([0; 32]);
    key[..MAC].copy_from_slice(cookie);
    mac(&key, &[covered])
}

/// Gives cookies out and knows them again.
pub(crate) struct Cookies {
    key: [u8; 32],
    /// The secret, its birth, and the secret before.
    secret: Zeroizing<[u8; 32]>,
    born: u64,
    before: Option<Zeroizing<[u8; 32]>>,
}

impl Cookies {
    pub(crate) fn of(local: &PublicKey, entropy: &mut dyn Entropy) -> Result<Self, NoEntropy> {
        let secret = Zeroizing::new(draw(entropy)?);
        Ok(Self { key: public_key(LABEL, local), secret, born: 0, before: None })
    }

    /// Takes a new secret where the one there is is too old. Called before every use.
    pub(crate) fn refresh(&mut self, entropy: &mut dyn Entropy, now: u64) -> Result<(), NoEntropy> {
        let age = now.saturating_sub(self.born);
        if age >= COOKIE_SECRET_TIME {
            let old = std::mem::replace(&mut self.secret, Zeroizing::new(draw(entropy)?));
            // One that was not used for long is none that anybody has a cookie of.
            self.before = (age < 2 * COOKIE_SECRET_TIME).then_some(old);
            self.born = now;
        }
        Ok(())
    }

    fn cookie(secret: &[u8; 32], source: SocketAddr) -> [u8; MAC] {
        let address = match source.ip() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
            IpAddr::V6(v6) => v6.octets(),
        };
        mac(secret, &[&address, &source.port().to_le_bytes()])
    }

    /// Whether a handshake message shows a cookie that its source was given.
    pub(crate) fn shown(&self, message: &[u8], source: SocketAddr) -> bool {
        let (covered, tag) = message.split_at(message.len() - MAC);
        // Most of a flood: nothing has to be made to know it.
        if tag == [0; MAC] {
            return false;
        }
        let shows = |secret: &[u8; 32]| -> bool {
            mac2(&Self::cookie(secret, source), covered).ct_eq(tag).into()
        };
        shows(&self.secret) || self.before.as_ref().is_some_and(|before| shows(before))
    }

    /// The message with the cookie of the source of `asked`, a handshake message.
    pub(crate) fn give(
        &self,
        asked: &[u8],
        source: SocketAddr,
        entropy: &mut dyn Entropy,
    ) -> Result<[u8; COOKIE], NoEntropy> {
        let nonce: [u8; NONCE] = draw(entropy)?;
        let mac1 = &asked[asked.len() - 2 * MAC..asked.len() - MAC];
        let mut cookie = Self::cookie(&self.secret, source);
        let tag = cipher(&self.key, &nonce).seal(0, mac1, &mut cookie).ok_or(NoEntropy)?;
        let mut reply = [0; COOKIE];
        reply[..4].copy_from_slice(&Type::Cookie.first());
        reply[4..8].copy_from_slice(&asked[4..8]);
        reply[8..SEALED].copy_from_slice(&nonce);
        reply[SEALED..SEALED + MAC].copy_from_slice(&cookie);
        reply[SEALED + MAC..].copy_from_slice(&tag);
        Ok(reply)
    }
}

/// What a peer gave us.
pub(crate) struct Jar {
    key: [u8; 32],
    cookie: Option<(u64, Zeroizing<[u8; MAC]>)>,
    /// mac1 of our last initiation, and of our last response; a cookie may answer each once. They are apart because an
    /// attacker who replays initiations makes us send responses.
    asked: [Option<[u8; MAC]>; 2],
}

impl Jar {
    pub(crate) fn of(peer: &PublicKey) -> Self {
        Self { key: public_key(LABEL, peer), cookie: None, asked: [None; 2] }
    }

    /// Writes mac2 into a message whose mac1 is there: of the cookie, or zeros.
    pub(crate) fn sign(&mut self, message: &mut [u8], mac1: [u8; MAC], now: u64) {
        self.asked[usize::from(message.len() != INITIATION)] = Some(mac1);
        let (covered, tag) = message.split_at_mut(message.len() - MAC);
        let fresh = |at: u64| now.saturating_sub(at) < COOKIE_TIME;
        match &self.cookie {
            Some((at, cookie)) if fresh(*at) => tag.copy_from_slice(&mac2(cookie, covered)),
            _ => tag.fill(0),
        }
    }

    /// Takes a cookie that answers our last initiation, or our last response.
    pub(crate) fn take(&mut self, reply: &[u8; COOKIE], initiation: bool, now: u64) -> bool {
        let asked = &mut self.asked[usize::from(!initiation)];
        let (Some(mac1), Some(nonce), Some(sealed)) =
            (*asked, at(reply, 8), at::<{ 2 * MAC }>(reply, SEALED))
        else {
            return false;
        };
        let mut cookie = Zeroizing::new(sealed);
        if cipher(&self.key, &nonce).open(0, &mac1, &mut cookie[..]).is_none() {
            return false;
        }
        let mut taken = Zeroizing::new([0; MAC]);
        taken.copy_from_slice(&cookie[..MAC]);
        *asked = None;
        self.cookie = Some((now, taken));
        true
    }
}
