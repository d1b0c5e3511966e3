//! [`Quoted`]: the packet that an ICMP error is about. What the host tells itself by `lo` may be about one that no frame
//! shows.

use packet::{Checksums, Headers, L4, Link, Upper, icmpv4, icmpv6, parse};

use super::frame::{Frame, LONGEST, Sighting};
use super::print::Print;
use super::remembered::Sightings;
use super::table::MOST;

/// A packet that an ICMP error quotes.
#[derive(Debug, Clone, Copy)]
pub struct Quoted<'a> {
    /// Its bytes, as far as they are quoted and were captured.
    pub bytes: &'a [u8],
    /// How long it was.
    pub len: usize,
}

/// The packet that a frame quotes, if it is an ICMP error.
#[must_use]
pub fn quoted<'a>(frame: &'a [u8], headers: &Headers) -> Option<Quoted<'a>> {
    let L4::Upper(Upper { protocol, offset }) = headers.l4 else { return None };
    let frame = frame.get(..headers.end).unwrap_or(frame);
    let is_error = match (protocol, frame.get(offset)?) {
        (icmpv4::PROTOCOL, kind) => matches!(kind, 3 | 11 | 12),
        (icmpv6::PROTOCOL, kind) => matches!(kind, 1..=4),
        _ => false,
    };
    let bytes = frame.get(offset + 8..).filter(|_| is_error)?;
    let len = match *bytes.first_chunk::<6>()? {
        [first, _, high, low, ..] if first >> 4 == 4 => u16::from_be_bytes([high, low]).into(),
        [.., high, low] => 40 + usize::from(u16::from_be_bytes([high, low])),
    };
    Some(Quoted { bytes: bytes.get(..len).unwrap_or(bytes), len })
}

impl Sightings {
    /// Whether an error that the host sends itself is about a packet that was not seen: it waited for a neighbour in vain,
    /// or a rule rejected it as it was to leave.
    pub(super) fn quotes(&mut self, index: u64, frame: &Frame<'_>) {
        let Some(entry) = self.entry(index) else { return };
        let quoted = quoted(frame.bytes, frame.headers);
        let Some(quoted) = quoted.filter(|_| entry.sighting == Sighting::Own) else { return };
        let headers = parse(Link::Raw, quoted.bytes, quoted.len, Checksums::Ignore);
        let print = Print::of(quoted.bytes, &headers, &self.keys, |_, segment| segment);
        let is_shown = |print: &Print, is_out: bool| {
            let mut shown = self.alike(print, is_out).take(MOST);
            shown.any(|(_, shown)| frame.time.saturating_sub(shown.time) <= LONGEST)
        };
        let is_unseen = print.is_some_and(|print| {
            print.ends.ports.is_some()
                && ![true, false].map(|is_out| is_shown(&print, is_out)).contains(&true)
        });
        if let Some(entry) = self.entry_mut(index) {
            entry.quotes_unseen = is_unseen;
        }
    }
}
