//! [`Permits`]: the lines of the policy that concern two nodes, as one of them sees them: what either may begin.
//!
//! | | |
//! |---|---|
//! | version 8, lines 1 | then for each line: |
//! | 1 | bits: 1 the other node may begin it, 2 this one may |
//! | 1 | services; none: everything |
//! | 5 each | protocol 1 (6, 17, 1), first port 2, last port 2 |
//! | text | the line as the policy has it |
//!
//! Contract: at most [`LINES`] lines of [`BYTES`] bytes; a text is printable ASCII without quotes, so it may stand in a comment of
//! a rule as it is.

use crate::service::{Protocol, Service};
use crate::wire::{Malformed, Reader, Writer};

/// Lines that may concern two nodes, at most.
pub(crate) const LINES: usize = 32;
/// Bytes that those lines may take in a message.
pub(crate) const BYTES: usize = 512;
/// Bytes of a line's text, beyond which it is cut.
const LONGEST: usize = 100;

/// What two nodes may begin with each other. What no line permits is denied; answers to what is permitted pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permits {
    /// The version of the policy.
    pub version: u64,
    /// The lines that concern the two, in the order of the policy.
    pub lines: Vec<Permit>,
}

/// A line of the policy, for two nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permit {
    /// The other node may begin it.
    pub inward: bool,
    /// This node may begin it.
    pub outward: bool,
    /// What may begin; everything where there are none.
    pub services: Vec<Service>,
    /// The line as the policy has it.
    pub text: String,
}

impl Permits {
    /// Whether the other node (`inward`) or this one may begin something by this protocol at this port.
    #[must_use]
    pub fn permits(&self, inward: bool, protocol: Protocol, port: u16) -> bool {
        self.by(inward, protocol, port).is_some()
    }

    /// The first line by which the other node (`inward`) or this one may begin something.
    #[must_use]
    pub fn by(&self, inward: bool, protocol: Protocol, port: u16) -> Option<&Permit> {
        self.lines.iter().find(|line| {
            (if inward { line.inward } else { line.outward })
                && (line.services.is_empty()
                    || line.services.iter().any(|it| it.holds(protocol, port)))
        })
    }

    pub(crate) fn write(&self, to: &mut Writer) {
        to.number(self.version).bytes(&[self.lines.len() as u8]);
        self.lines.iter().for_each(|line| line.write(to));
    }

    pub(crate) fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let version = from.number("a version of 8 bytes")?;
        let (at, expected) = (from.at(), "at most 32 lines of a policy, of 512 bytes");
        let count = usize::from(from.byte(expected)?);
        if count > LINES {
            return Err(Malformed { at, expected });
        }
        let start = from.at();
        let lines = (0..count).map(|_| Permit::read(from)).collect::<Result<_, _>>()?;
        match from.at() - start > BYTES {
            true => Err(Malformed { at, expected }),
            false => Ok(Self { version, lines }),
        }
    }
}

impl Permit {
    /// The bytes that the line takes in a message.
    pub(crate) fn bytes(services: usize, text: &str) -> usize {
        3 + 5 * services + text.len()
    }

    fn write(&self, to: &mut Writer) {
        let bits = u8::from(self.inward) | u8::from(self.outward) << 1;
        to.bytes(&[bits, self.services.len() as u8]);
        for Service { protocol, ports: (first, last) } in &self.services {
            to.bytes(&[protocol.number()]).bytes(&first.to_le_bytes()).bytes(&last.to_le_bytes());
        }
        to.text(&self.text);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (at, expected) = (from.at(), "who may begin it: 1, 2 or 3");
        let bits = from.byte(expected)?;
        if !(1..=3).contains(&bits) {
            return Err(Malformed { at, expected });
        }
        let services = from.byte("how many services follow")?;
        let services = (0..services).map(|_| service(from)).collect::<Result<_, _>>()?;
        let (at, expected) = (from.at(), "at most 100 printable characters without quotes");
        let text = from.text(expected)?.to_owned();
        if text.len() > LONGEST || !text.bytes().all(is_plain) {
            return Err(Malformed { at, expected });
        }
        Ok(Self { inward: bits & 1 != 0, outward: bits & 2 != 0, services, text })
    }
}

fn service(from: &mut Reader<'_>) -> Result<Service, Malformed> {
    let (at, expected) = (from.at(), "a protocol, and its first and last port");
    let [protocol, a, b, c, d] = from.array(expected)?;
    let ports = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
    Service::of_numbers(protocol, ports).ok_or(Malformed { at, expected })
}

fn is_plain(byte: u8) -> bool {
    (byte.is_ascii_graphic() || byte == b' ') && !matches!(byte, b'"' | b'\'' | b'\\')
}

/// A line's text as a message has it: other characters are question marks, and what is too long is cut.
pub(crate) fn plain(text: &str) -> String {
    let plain =
        |c: char| u8::try_from(c).ok().filter(|byte| is_plain(*byte)).map_or('?', char::from);
    text.chars().map(plain).take(LONGEST).collect()
}
