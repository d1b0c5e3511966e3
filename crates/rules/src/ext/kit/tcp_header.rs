//! The TCP header for the extensions that read past its ports or write it.
//!
//! Contract: offsets count from the first byte of the TCP header, unless stated otherwise. Writes keep the
//! TCP checksum in step word by word as the kernel's `inet_proto_csum_replace2` does; what is not certain
//! to be written is forgotten, the checksum with it.

use packet::{L3, L4, Read, checksum};

use crate::ext::Effect;
use crate::family::Family;
use crate::transit::Transit;

/// Protocol number.
pub(crate) const PROTOCOL: u8 = 6;
/// Length without options.
pub(crate) const MIN_LEN: usize = 20;
/// The byte whose upper half is the header length in 32-bit words.
pub(crate) const WORDS: usize = 12;
/// The byte with the flags.
pub(crate) const FLAGS: usize = 13;
/// The first byte of the checksum.
const CHECKSUM: usize = 16;

/// ECN-Echo in [`FLAGS`].
pub(crate) const ECE: u8 = 0x40;
/// Congestion window reduced in [`FLAGS`].
pub(crate) const CWR: u8 = 0x80;

/// Where a match that does not ask for fragments looks for the header (`par->thoff`), as an offset in the
/// frame: in a later fragment after the IPv4 header, or at the IPv6 header itself. `None` where that is
/// not known.
pub(crate) fn offset(transit: &Transit<'_, '_>) -> Option<usize> {
    let headers = transit.packet.headers();
    match (headers.l4, headers.l3, transit.family) {
        (L4::Upper(upper), ..) => Some(upper.offset),
        (L4::Fragment { .. }, _, Family::Ipv6) => Some(headers.network),
        (L4::Fragment { .. }, L3::Ipv4 { header_len }, _) => Some(headers.network + header_len),
        _ => None,
    }
}

/// Header length in bytes that the byte at [`WORDS`] stands for.
pub(crate) fn len_of(words: u8) -> usize {
    usize::from(words >> 4) * 4
}

/// Offset in the frame and length in bytes of the header that a target rewrites, options included; or what
/// the target does without one: it leaves what has no header alone, and drops a header that is short or
/// claims more than there is. A described packet has one, and nothing is known of what a target could rewrite in it.
pub(crate) fn whole(transit: &Transit<'_, '_>) -> Result<(usize, usize), Effect> {
    let headers = transit.packet.headers();
    let tcp = match headers.l4 {
        L4::Upper(upper) => upper.offset,
        L4::Unknown => return Err(Effect::Unknown),
        L4::Fragment { .. } | L4::Broken { .. } | L4::None => return Err(Effect::Continue),
    };
    let available = headers.end.saturating_sub(tcp);
    if available < MIN_LEN {
        return Err(Effect::Drop);
    }
    let Read::Known([words]) = transit.packet.read(tcp + WORDS) else {
        let is_sound = transit.packet.described().is_some();
        return Err(if is_sound { Effect::Continue } else { Effect::Unknown });
    };
    let len = len_of(words);
    if available < len || len < MIN_LEN {
        return Err(Effect::Drop);
    }
    Ok((tcp, len))
}

/// Writes `bytes` at `at` of the TCP header that starts at `tcp` in the frame. `words` are the 16-bit words that the
/// checksum exchanges, old and new.
pub(crate) fn write(
    transit: &mut Transit<'_, '_>,
    tcp: usize,
    at: usize,
    bytes: &[u8],
    words: impl IntoIterator<Item = (u16, u16)>,
) {
    let net = tcp.saturating_sub(transit.packet.network_offset());
    let stored = transit.packet.read::<2>(tcp + CHECKSUM);
    transit.write_net(net + at, bytes);
    match stored {
        Read::Known(stored) => {
            let stored = u16::from_be_bytes(stored);
            let sum =
                words.into_iter().fold(stored, |sum, (old, new)| checksum::update(sum, old, new));
            transit.write_net(net + CHECKSUM, &sum.to_be_bytes());
        }
        Read::Unknown | Read::Absent => forget(transit, tcp, CHECKSUM, 2),
    }
}

/// Makes bytes of the TCP header at `tcp`, and its checksum, unknown.
pub(crate) fn forget(transit: &mut Transit<'_, '_>, tcp: usize, at: usize, len: usize) {
    let net = tcp.saturating_sub(transit.packet.network_offset());
    transit.forget_net(net + at..net + at + len);
    transit.forget_net(net + CHECKSUM..net + CHECKSUM + 2);
}
