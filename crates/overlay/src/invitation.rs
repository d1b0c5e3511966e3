//! What a device is enrolled with: the [`JoinUrl`] says where a network's directory is and pins its keys, the one-time key
//! says which node the device will be; [`Enrolment`] is its question.
//!
//! `tamis://HOST:PORT/DIRECTORY.SIGNER`, with more of `HOST:PORT` after commas where the directory may be elsewhere: the directory's key in the tunnel and the key that identities are signed with,
//! each 43 characters of base64 for URLs.

use std::fmt;
use std::str::FromStr;

use tunnel::PublicKey;

use crate::identity::{SignerKey, url_key, url_text};
use crate::message::{Body, Membership, Message, Refusal, Transaction};

const SCHEME: &str = "tamis://";

/// Where a network's directory is, and its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinUrl {
    /// Address or name, and port, of each place; at least one.
    pub endpoints: Vec<String>,
    /// The directory's key in the tunnel.
    pub key: PublicKey,
    /// The key that identities are signed with.
    pub signer: SignerKey,
}

/// The error for a text that is no URL to join a network by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAJoinUrl;

impl fmt::Display for NotAJoinUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected tamis://HOST:PORT/KEY.SIGNER, as tamis-cloud enrol prints it")
    }
}

impl std::error::Error for NotAJoinUrl {}

impl FromStr for JoinUrl {
    type Err = NotAJoinUrl;

    fn from_str(text: &str) -> Result<Self, NotAJoinUrl> {
        let rest = text.strip_prefix(SCHEME).ok_or(NotAJoinUrl)?;
        let (places, keys) = rest.split_once('/').ok_or(NotAJoinUrl)?;
        let (key, signer) = keys.split_once('.').ok_or(NotAJoinUrl)?;
        let key = url_key(key).map(PublicKey::new).ok_or(NotAJoinUrl)?;
        let signer = signer.parse().map_err(|_| NotAJoinUrl)?;
        Ok(Self { endpoints: places.split(',').map(str::to_owned).collect(), key, signer })
    }
}

impl fmt::Display for JoinUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = self.endpoints.join(",");
        write!(f, "{SCHEME}{places}/{}.{}", url_text(self.key.as_bytes()), self.signer)
    }
}

/// The question of a device that is enrolled.
#[derive(Clone, Debug)]
pub struct Enrolment {
    transaction: Transaction,
    key: PublicKey,
    signer: SignerKey,
}

/// Why a device is not enrolled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotEnrolled {
    /// The directory refuses.
    Refused(Refusal),
    /// The identity is not that of this key and signer.
    NotGenuine,
}

impl fmt::Display for NotEnrolled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) => why.fmt(f),
            Self::NotGenuine => f.write_str("the answer is not signed with the key of the URL"),
        }
    }
}

impl std::error::Error for NotEnrolled {}

impl Enrolment {
    /// The question whether a device of this key may join the network of this signer.
    #[must_use]
    pub fn new(transaction: Transaction, key: PublicKey, signer: SignerKey) -> Self {
        Self { transaction, key, signer }
    }

    /// The message to send until an answer comes. It may be sent again after the enrolment, too.
    #[must_use]
    pub fn question(&self) -> Vec<u8> {
        let body = Body::Enrol { key: self.key };
        Message { transaction: self.transaction, body }.to_bytes()
    }

    /// Takes a message of the directory; nothing if it is no answer.
    ///
    /// # Errors
    /// [`NotEnrolled`].
    pub fn answered(&self, bytes: &[u8]) -> Option<Result<Membership, NotEnrolled>> {
        let message = Message::parse(bytes).ok()?;
        if message.transaction != self.transaction {
            return None;
        }
        match message.body {
            Body::Enrolled(membership) => {
                // What time it is nobody has said yet.
                let is_ours = membership
                    .identity
                    .verify(&self.signer, 0)
                    .is_ok_and(|claims| claims.key == self.key);
                Some(if is_ours { Ok(*membership) } else { Err(NotEnrolled::NotGenuine) })
            }
            Body::Refused(why) => Some(Err(NotEnrolled::Refused(why))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Signer;

    #[test]
    fn a_url_is_read_as_it_is_written() {
        let url = JoinUrl {
            endpoints: ["[2001:db8::1]:51900", "nms.example:9"].map(str::to_owned).to_vec(),
            key: PublicKey::new([3; 32]),
            signer: Signer::of_seed(&[1; 32]).unwrap().key(),
        };
        assert_eq!(url.to_string().parse(), Ok(url.clone()));
        let text = url.to_string();
        for bad in ["", "https://a/b.c", &text[..text.len() - 1], &text.replace('.', "")] {
            assert_eq!(bad.parse::<JoinUrl>(), Err(NotAJoinUrl), "{bad}");
        }
    }
}
