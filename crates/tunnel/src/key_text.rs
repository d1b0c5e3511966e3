//! Keys as text: base64 of their 32 bytes, padded, as `wg genkey` and `wg pubkey` print them. The time that takes does
//! not depend on the bytes (base64ct), and texts of secrets are wiped when they are dropped.

use std::fmt;
use std::str::FromStr;

use base64ct::{Base64, Encoding};
use zeroize::Zeroizing;

use crate::entropy::{Entropy, NoEntropy, draw};
use crate::keys::{PresharedKey, PrivateKey, PublicKey};

/// A text that is no key: not 44 characters of base64 that stand for 32 bytes, the last of them `=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAKey;

impl fmt::Display for NotAKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no key, which is 32 bytes as 44 characters of base64")
    }
}

impl std::error::Error for NotAKey {}

fn bytes(text: &str) -> Result<Zeroizing<[u8; 32]>, NotAKey> {
    let mut bytes = Zeroizing::new([0; 32]);
    match Base64::decode(text, &mut *bytes) {
        Ok(decoded) if decoded.len() == 32 => Ok(bytes),
        _ => Err(NotAKey),
    }
}

impl FromStr for PublicKey {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        Ok(Self::new(*bytes(text)?))
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Base64::encode_string(self.as_bytes()))
    }
}

impl FromStr for PrivateKey {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        Ok(Self::new(*bytes(text)?))
    }
}

impl PrivateKey {
    /// The secret as text.
    #[must_use]
    pub fn text(&self) -> Zeroizing<String> {
        Zeroizing::new(Base64::encode_string(self.as_bytes()))
    }
}

impl FromStr for PresharedKey {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        Ok(Self::new(*bytes(text)?))
    }
}

impl PresharedKey {
    /// A new one.
    ///
    /// # Errors
    /// If there is no randomness.
    pub fn generate(entropy: &mut dyn Entropy) -> Result<Self, NoEntropy> {
        let bytes = Zeroizing::new(draw(entropy)?);
        Ok(Self::new(*bytes))
    }

    /// The secret as text.
    #[must_use]
    pub fn text(&self) -> Zeroizing<String> {
        Zeroizing::new(Base64::encode_string(self.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The pair of `wg genkey` and `wg pubkey` of RFC 7748, section 6.1: Alice's.
    #[test]
    fn keys_are_texts_as_wireguard_has_them() {
        let private: PrivateKey = "dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=".parse().unwrap();
        let public = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";
        assert_eq!(private.public().to_string(), public);
        assert_eq!(public.parse(), Ok(private.public()));
    }

    #[test]
    fn other_texts_are_no_keys() {
        let key = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";
        let texts = [
            "",
            "key",
            &key[..43],
            &format!("{key}\n"),
            &format!(" {key}"),
            // Bits that stand for nothing are set.
            "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmp=",
            // 31 bytes, and 33.
            "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTg==",
            "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmoA",
        ];
        for text in texts {
            assert_eq!(text.parse::<PublicKey>(), Err(NotAKey), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(bytes: [u8; 32]) {
            let public = PublicKey::new(bytes);
            prop_assert_eq!(public.to_string().parse(), Ok(public));
            let private: PrivateKey = PrivateKey::new(bytes).text().parse().unwrap();
            prop_assert_eq!(private.as_bytes(), &bytes);
            let preshared: PresharedKey = PresharedKey::new(bytes).text().parse().unwrap();
            prop_assert_eq!(preshared.as_bytes(), &bytes);
        }
    }
}
