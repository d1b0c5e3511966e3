//! Undoes what the kernel or a card took out of frames, left unfinished or put together: each frame is restored to its
//! form on a link, before rules see it.
//!
//! Contract: in place, into the room before a frame; nothing is allocated.

use std::mem;

use packet::{Checksums, Headers, Link, Superframe, checksum, ethernet, parse, unfinished};
use pktio::{Burst, ChecksumState, FrameMut, LiveMeta, Segments, VlanTag};

use dataplane::link_of;

/// Bytes of a VLAN tag.
const TAG: usize = 4;

/// Restores frames to their form on a link. Rules see a tag where it was before the kernel took it out, as does what is
/// made of the frame, and they update checksums that are right. A superframe keeps its segments, each of which the
/// kernel sums again.
///
/// Where the output port finishes checksums (`leaves_whole`), a superframe's stays unfinished: summing 64 KiB takes as
/// long as all else, and each of its segments is summed again.
pub(crate) fn as_on_a_link(burst: &mut Burst, leaves_whole: bool) {
    if burst.are_plain() {
        return;
    }
    for at in 0..burst.len() {
        let Some(live) = burst.live(at) else { continue };
        let LiveMeta { vlan, checksum, segments, .. } = *live;
        if let Some(tag) = vlan {
            put_back(burst, at, tag);
        }
        let is_left = leaves_whole && segments.is_some();
        let is_unfinished =
            matches!(checksum, ChecksumState::Unfinished { .. } | ChecksumState::MaybeUnfinished);
        if is_unfinished && !is_left {
            complete_checksum(burst, at);
        }
    }
}

/// Writes the sum of the pseudo header, which is what the field of an unfinished checksum has to hold, into superframes
/// whose checksum stayed unfinished: rules that rewrote addresses kept it as a whole sum.
pub(crate) fn as_left_to_a_port(burst: &mut Burst) {
    if burst.are_plain() {
        return;
    }
    for at in 0..burst.len() {
        let is_left = burst.live(at).is_some_and(|live| {
            live.segments.is_some() && matches!(live.checksum, ChecksumState::Unfinished { .. })
        });
        let Some(FrameMut { bytes, meta }) = burst.get_mut(at).filter(|_| is_left) else {
            continue;
        };
        let Some(link) = link_of(meta.link_type) else { continue };
        let link = if link == Link::Ethernet { Link::Wire } else { link };
        let headers = parse(link, bytes, bytes.len(), Checksums::Ignore);
        unfinished::begin(bytes, &headers);
    }
}

/// Puts a tag back between addresses and EtherType, where there is room before the frame: ports that take tags out
/// leave some.
fn put_back(burst: &mut Burst, at: usize, VlanTag { tci, tpid }: VlanTag) {
    let is_whole = burst.get(at).is_some_and(|frame| frame.bytes.len() >= ethernet::TYPE.start);
    let Some(frame) = is_whole.then(|| burst.grow_front(at, TAG)).flatten() else { return };
    let ([a, b], [c, d]) = (tpid.to_be_bytes(), tci.to_be_bytes());
    frame.bytes.copy_within(TAG..TAG + ethernet::TYPE.start, 0);
    frame.bytes[ethernet::TYPE.start..][..TAG].copy_from_slice(&[a, b, c, d]);
    let Some(live) = burst.live_mut(at) else { return };
    live.vlan = None;
    if let ChecksumState::Unfinished { start, .. } = &mut live.checksum {
        *start = start.saturating_add(TAG as u16);
    }
}

fn complete_checksum(burst: &mut Burst, at: usize) {
    let Some(live) = burst.live_mut(at) else { return };
    let state = mem::replace(&mut live.checksum, ChecksumState::NotKnown);
    let Some(FrameMut { bytes, .. }) = burst.get_mut(at) else { return };
    match state {
        ChecksumState::NotKnown | ChecksumState::Verified => {}
        ChecksumState::Unfinished { start, offset } => {
            checksum::complete(bytes, start.into(), offset.into());
        }
        // Before any rule, under rules of any family, and after a panic: so these headers are its own.
        ChecksumState::MaybeUnfinished => {
            let headers = parse(Link::Wire, bytes, bytes.len(), Checksums::Ignore);
            unfinished::complete(bytes, &headers);
        }
    }
}

/// The longest packet that a superframe stands for; what cannot be cut is a packet itself.
pub(crate) fn longest(
    bytes: &[u8],
    headers: &Headers,
    Segments { size, .. }: Segments,
) -> Option<u32> {
    Some(Superframe::new(bytes, headers, size).ok()?.longest() as u32)
}
