//! Fragments packets of IPv4 that are longer than the path to their peer takes, and may be fragmented (RFC 791).
//!
//! Contract: only where a path is known to take less than what is configured; a packet that may not be fragmented stays
//! as it is, and is refused when it is to be sealed. TCP is not touched here: it is cut into segments.

use std::mem;

use packet::fragment::{self, Cut, Frames};
use packet::{Checksums, Headers, L4, Link, Packet, parse, tcp};
use pktio::{Burst, Frame, Lost, Pool, Taken};
use tunnel::Inner;

use super::site::Site;

/// Where the flags of an IPv4 header are, and which of them forbids fragmenting.
const FLAGS: usize = 6;
const DONT_FRAGMENT: u8 = 0x40;

/// Replaces each packet of a burst that is too long, and may be fragmented, by its fragments.
pub(super) fn fit(
    site: &Site,
    burst: &mut Burst,
    pool: &Pool,
    lose: &mut dyn FnMut(Lost, Frame<'_>),
) {
    let mut most = site.usable(burst.iter().map(|frame| frame.bytes));
    for (at, most) in most.iter_mut().enumerate() {
        // Only the pieces of a superframe may be too long.
        *most = most.filter(|_| burst.live(at).is_none_or(|live| live.segments.is_none()));
    }
    let is_long = |bytes: &[u8], most: &Option<u16>| {
        most.is_some_and(|most| is_longer(bytes, most.into()) && may_be_cut(bytes))
    };
    if !burst.iter().zip(&most).any(|(frame, most)| is_long(frame.bytes, most)) {
        return;
    }
    let mut out = Burst::with_capacity(0);
    let mut fragments = Frames::default();
    for (taken, most) in burst.drain(usize::MAX).zip(&most) {
        let (bytes, meta) = match &taken {
            Taken::Moved(frame) => (frame.bytes(), frame.meta),
            Taken::Lent { bytes, meta } => (*bytes, *meta),
        };
        if !is_long(bytes, most) || !cut(bytes, most.unwrap_or_default(), &mut fragments) {
            out.append(taken);
            continue;
        }
        let wanted = fragments.iter().count();
        let mut frames = Vec::with_capacity(wanted);
        pool.fill(&mut frames, wanted);
        if frames.len() < wanted {
            // Without one of its fragments the others are useless.
            lose(Lost::NoRoom, Frame { bytes, meta: &meta });
            continue;
        }
        for (fragment, mut frame) in fragments.iter().zip(frames) {
            frame.meta = meta;
            frame.extend(fragment);
            out.push_frame(frame);
        }
    }
    mem::swap(burst, &mut out);
}

/// Whether a packet is longer than `most`, whatever comes after it in its frame.
fn is_longer(bytes: &[u8], most: usize) -> bool {
    bytes.len() > most && Inner::parse(bytes).is_some_and(|inner| inner.len > most)
}

/// Whether a packet may be fragmented, and is no TCP.
fn may_be_cut(bytes: &[u8]) -> bool {
    let is_v4 = bytes.first().is_some_and(|first| first >> 4 == 4);
    let allows = bytes.get(FLAGS).is_some_and(|flags| flags & DONT_FRAGMENT == 0);
    is_v4
        && allows
        && !matches!(headers_of(bytes).l4, L4::Upper(upper) if upper.protocol == tcp::PROTOCOL)
}

fn cut(bytes: &[u8], most: u16, to: &mut Frames) -> bool {
    let Some(inner) = Inner::parse(bytes) else { return false };
    let mut whole = bytes[..inner.len].to_vec();
    let headers = headers_of(&whole);
    let packet = Packet::with_headers(&mut whole, headers);
    to.clear();
    let cut = Cut { most: most.into(), pieces: &[], dont_fragment: false, id: 0 };
    fragment::cut(&packet, &cut, to)
}

/// The headers of a bare packet.
pub(super) fn headers_of(bytes: &[u8]) -> Headers {
    parse(Link::Raw, bytes, bytes.len(), Checksums::Ignore)
}
