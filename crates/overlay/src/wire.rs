//! [`Reader`] and [`Writer`]: fields of a message. All numbers are little-endian; a text is its length in one byte, then
//! its bytes in UTF-8.
//!
//! Contract: no length is believed before the bytes are there, and nothing panics.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The error for bytes that are no message: where they differ, and what was expected there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The byte, counted from 0.
    pub at: usize,
    /// What was expected.
    pub expected: &'static str,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: expected {}", self.at, self.expected)
    }
}

impl std::error::Error for Malformed {}

/// A cursor over the bytes of a message.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The error that something else was expected at the byte before which the cursor stands.
    pub(crate) fn expected(&self, expected: &'static str) -> Malformed {
        Malformed { at: self.at, expected }
    }

    pub(crate) fn take(
        &mut self,
        count: usize,
        expected: &'static str,
    ) -> Result<&'a [u8], Malformed> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let taken = rest.get(..count).ok_or(self.expected(expected))?;
        self.at += count;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(
        &mut self,
        expected: &'static str,
    ) -> Result<[u8; N], Malformed> {
        let at = self.at;
        self.take(N, expected)?.try_into().map_err(|_| Malformed { at, expected })
    }

    pub(crate) fn byte(&mut self, expected: &'static str) -> Result<u8, Malformed> {
        Ok(self.array::<1>(expected)?[0])
    }

    /// A byte that is 0 or 1.
    pub(crate) fn flag(&mut self, expected: &'static str) -> Result<bool, Malformed> {
        let at = self.at;
        match self.byte(expected)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed { at, expected }),
        }
    }

    pub(crate) fn number(&mut self, expected: &'static str) -> Result<u64, Malformed> {
        Ok(u64::from_le_bytes(self.array(expected)?))
    }

    pub(crate) fn text(&mut self, expected: &'static str) -> Result<&'a str, Malformed> {
        let at = self.at;
        let length = self.byte(expected)?;
        let bytes = self.take(length.into(), expected)?;
        std::str::from_utf8(bytes).map_err(|_| Malformed { at, expected })
    }

    /// An address and a port: its family, 4 or 6; the address; the port.
    pub(crate) fn endpoint(&mut self, expected: &'static str) -> Result<SocketAddr, Malformed> {
        let at = self.at;
        let address: IpAddr = match self.byte(expected)? {
            4 => Ipv4Addr::from(self.array::<4>(expected)?).into(),
            6 => Ipv6Addr::from(self.array::<16>(expected)?).into(),
            _ => return Err(Malformed { at, expected }),
        };
        Ok((address, u16::from_le_bytes(self.array(expected)?)).into())
    }

    /// Addresses and ports: how many, at most `most`, then each.
    pub(crate) fn endpoints(
        &mut self,
        most: usize,
        expected: &'static str,
    ) -> Result<Vec<SocketAddr>, Malformed> {
        let at = self.at;
        match usize::from(self.byte(expected)?) {
            count if count > most => Err(Malformed { at, expected }),
            count => (0..count).map(|_| self.endpoint("an address and a port")).collect(),
        }
    }

    /// Whether something follows.
    pub(crate) fn has_more(&self) -> bool {
        self.at < self.bytes.len()
    }

    /// Where the cursor stands.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Proves that nothing follows.
    pub(crate) fn end(self) -> Result<(), Malformed> {
        match self.at == self.bytes.len() {
            true => Ok(()),
            false => Err(self.expected("the end of the message")),
        }
    }
}

/// The bytes of a message that is being written.
#[derive(Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn number(&mut self, number: u64) -> &mut Self {
        self.bytes(&number.to_le_bytes())
    }

    /// Writes a text of at most 255 bytes; what is longer is cut, which no reader takes for the text.
    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        let bytes = &text.as_bytes()[..text.len().min(usize::from(u8::MAX))];
        self.bytes(&[bytes.len() as u8]).bytes(bytes)
    }

    pub(crate) fn endpoint(&mut self, endpoint: SocketAddr) -> &mut Self {
        match endpoint.ip() {
            IpAddr::V4(address) => self.bytes(&[4]).bytes(&address.octets()),
            IpAddr::V6(address) => self.bytes(&[6]).bytes(&address.octets()),
        };
        self.bytes(&endpoint.port().to_le_bytes())
    }

    /// Writes addresses and ports, of which there are at most 255.
    pub(crate) fn endpoints(&mut self, endpoints: &[SocketAddr]) -> &mut Self {
        self.bytes(&[endpoints.len() as u8]);
        for endpoint in endpoints {
            self.endpoint(*endpoint);
        }
        self
    }
}
