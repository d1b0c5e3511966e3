//! Messages on the wire. All numbers are little-endian. A message begins with four bytes: its type, version 1, and
//! two zeros; types are none of WireGuard's, so neither takes the other's.
//!
//! | message | bytes | type | what follows the first four |
//! |---|---|---|---|
//! | initiation | 152 | 0x81 | sender's index 4; e 32; sealed static key 48; sealed payload 32; mac1 16; mac2 16 |
//! | response | 124 | 0x82 | sender's index 4, receiver's index 4; e 32; sealed payload 48; mac1 16; mac2 16 |
//! | cookie | 64 | 0x83 | receiver's index 4; nonce 24; sealed cookie 32 |
//! | data | 32 and more | 0x84 | receiver's index 4; counter 8; sealed inner packet, padded; tag 16 |
//!
//! A response is shorter than an initiation and a cookie shorter than either, so nothing here amplifies.

/// Bytes of an initiation.
pub const INITIATION: usize = 152;
/// Bytes of a response.
pub const RESPONSE: usize = 124;
/// Bytes of a cookie.
pub const COOKIE: usize = 64;
/// Bytes before what a data message seals.
pub const DATA_HEADER: usize = 16;
/// Bytes of the shortest data message, a keepalive.
pub const SHORTEST_DATA: usize = DATA_HEADER + crate::aead::TAG;

/// Bytes of what an initiation seals for the responder: a [`Timestamp`](crate::Timestamp) 12, the suites offered 1,
/// zeros 3, which are ignored.
pub(crate) const INITIATION_PAYLOAD: usize = 16;
/// Bytes of what a response seals: the suite 1, or 0 for an initiation that came too late; zeros 3, which are
/// ignored; the sender's index once more 4; a timestamp 12, that of the latest initiation if this one came too
/// late; zeros 12.
pub(crate) const RESPONSE_PAYLOAD: usize = 32;

/// Bytes of mac1 and of mac2.
pub(crate) const MAC: usize = 16;

const VERSION: u8 = 1;
/// Where the Noise message of an initiation and of a response begins.
pub(crate) const INITIATION_NOISE: usize = 8;
pub(crate) const RESPONSE_NOISE: usize = 12;

/// What a datagram is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// The first of a handshake.
    Initiation(&'a [u8; INITIATION]),
    /// The second, and last.
    Response(&'a [u8; RESPONSE]),
    /// Handshake messages come too fast: show this along with the next one.
    Cookie(&'a [u8; COOKIE]),
    /// A sealed inner packet, or a keepalive.
    Data {
        /// The session, by the receiver's index.
        receiver: u32,
        /// The datagram's number, and nonce.
        counter: u64,
    },
}

/// The types of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Type {
    Initiation = 0x81,
    Response = 0x82,
    Cookie = 0x83,
    Data = 0x84,
}

impl Type {
    /// The first four bytes of such a message.
    pub(crate) fn first(self) -> [u8; 4] {
        [self as u8, VERSION, 0, 0]
    }
}

/// What is no message of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The first four bytes fit no message.
    Type,
    /// The length does not fit the type.
    Length,
}

impl<'a> Message<'a> {
    /// Reads the head of a datagram.
    ///
    /// # Errors
    /// [`Malformed`] whatever is not exactly as long as it has to be.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, Malformed> {
        let first: [u8; 4] = at(datagram, 0).ok_or(Malformed::Length)?;
        let kinds = [Type::Data, Type::Initiation, Type::Response, Type::Cookie];
        let kind = kinds.into_iter().find(|kind| kind.first() == first).ok_or(Malformed::Type)?;
        let message = match kind {
            Type::Initiation => datagram.try_into().ok().map(Self::Initiation),
            Type::Response => datagram.try_into().ok().map(Self::Response),
            Type::Cookie => datagram.try_into().ok().map(Self::Cookie),
            Type::Data => Self::data(datagram),
        };
        message.ok_or(Malformed::Length)
    }

    fn data(datagram: &[u8]) -> Option<Self> {
        if datagram.len() < SHORTEST_DATA {
            return None;
        }
        let counter = u64::from_le_bytes(at(datagram, 8)?);
        Some(Self::Data { receiver: u32::from_le_bytes(at(datagram, 4)?), counter })
    }
}

/// The head of a data message.
pub(crate) fn data_header(receiver: u32, counter: u64) -> [u8; DATA_HEADER] {
    let mut header = [0; DATA_HEADER];
    header[..4].copy_from_slice(&Type::Data.first());
    header[4..8].copy_from_slice(&receiver.to_le_bytes());
    header[8..].copy_from_slice(&counter.to_le_bytes());
    header
}

/// Returns `N` bytes from `start` on, if there are that many.
pub(crate) fn at<const N: usize>(bytes: &[u8], start: usize) -> Option<[u8; N]> {
    bytes.get(start..)?.first_chunk().copied()
}

/// An index of a handshake message, which has it.
pub(crate) fn index<const START: usize, const N: usize>(message: &[u8; N]) -> u32 {
    const { assert!(START + 4 <= N) };
    let [a, b, c, d] = [START, START + 1, START + 2, START + 3].map(|i| message[i]);
    u32::from_le_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_has_its_length_and_no_other() {
        let fixed =
            [(Type::Initiation, INITIATION), (Type::Response, RESPONSE), (Type::Cookie, COOKIE)];
        for (kind, len) in fixed {
            let mut bytes = [0; 200];
            bytes[..4].copy_from_slice(&kind.first());
            for cut in 0..=bytes.len() {
                let is = Message::parse(&bytes[..cut]);
                assert_eq!(is.is_ok(), cut == len, "{kind:?} of {cut}");
            }
        }
        let data = data_header(0x0403_0201, 0x1_0000_0002);
        let mut long = data.to_vec();
        long.extend([0; 16]);
        assert_eq!(Message::parse(&long[..31]), Err(Malformed::Length));
        let read = Message::Data { receiver: 0x0403_0201, counter: 0x1_0000_0002 };
        assert_eq!(Message::parse(&long), Ok(read));
    }

    #[test]
    fn other_types_versions_and_reserved_bytes_are_none_of_ours() {
        for first in [[1, 0, 0, 0], [4, 0, 0, 0], [0x84, 2, 0, 0], [0x84, 1, 1, 0], [0x85, 1, 0, 0]]
        {
            let mut bytes = [0; 152];
            bytes[..4].copy_from_slice(&first);
            assert_eq!(Message::parse(&bytes), Err(Malformed::Type), "{first:?}");
        }
    }
}
