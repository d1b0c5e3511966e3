//! UDP and UDP-Lite: a flow with an answer that is still in use after two seconds is a stream, lives
//! longer and is assured.
//!
//! Source: Linux 6.18 `nf_conntrack_proto_udp.c`.

use crate::config::Timeouts;
use crate::dissect::{Layer, Unparsable, known};
use crate::flow::{Flow, Proto};
use crate::status::Status;
use crate::step::{Arrival, Step};
use crate::verify;
use packet::{Packet, Read, udp};

/// An answered flow is a stream from this age on.
const STREAM_AGE: u64 = 2_000_000_000;

/// Whether the datagram is well formed, and with `verify` whether its checksum holds.
pub(crate) fn check(packet: &Packet<'_>, layer: &Layer, verify: bool) -> Result<(), Unparsable> {
    let header = known(packet.read::<{ udp::HEADER_LEN }>(layer.offset))?;
    let Some(header) = udp::Header::new_checked(&header) else { return Err(Unparsable::Invalid) };
    let available = packet.headers().end.saturating_sub(layer.offset);
    let claimed = usize::from(header.length());
    let is_lite = layer.protocol == udp::PROTOCOL_LITE;
    let covered = if is_lite && claimed == 0 { available } else { claimed };
    let has_checksum = header.checksum() != 0;
    if covered < udp::HEADER_LEN || covered > available || (is_lite && !has_checksum) {
        return Err(Unparsable::Invalid);
    }
    if !verify || !has_checksum {
        return Ok(());
    }
    let summed = if is_lite { covered } else { available };
    match verify::internet(packet, layer, summed) {
        Read::Known(true) => Ok(()),
        Read::Unknown => Err(Unparsable::Unknown),
        Read::Known(false) | Read::Absent => Err(Unparsable::Invalid),
    }
}

/// Brings a flow up to date with a well-formed datagram.
pub(crate) fn track(flow: &mut Flow, arrival: &Arrival, timeouts: &Timeouts) -> Step {
    if !flow.is_confirmed() {
        flow.proto = Proto::Udp { stream_from: arrival.now.saturating_add(STREAM_AGE) };
    }
    let timeout = if flow.status.contains(Status::SEEN_REPLY) && is_stream(flow, arrival.now) {
        flow.status.set(Status::ASSURED);
        timeouts.udp_stream
    } else {
        timeouts.udp
    };
    flow.refresh(arrival.direction, arrival.now, timeout, arrival.bytes);
    Step::Accept
}

/// UDP-Lite knows no age: every answered flow is a stream.
fn is_stream(flow: &Flow, now: u64) -> bool {
    let is_lite = flow.original.protocol() == udp::PROTOCOL_LITE;
    is_lite || matches!(flow.proto, Proto::Udp { stream_from } if now > stream_from)
}
