//! How frames are sealed; [`super::open`] is the way back.
//!
//! A packet is sealed where it lies. A superframe is cut into a chunk of its own, piece by piece, each sealed while it is in
//! the cache: one copy. TCP that is longer than the path takes is cut to fit it; anything else is too long.

use std::borrow::Borrow;
use std::sync::Arc;

use packet::{L4, Superframe, tcp};
use pktio::datagram::{MOST_BYTES, Source};
use pktio::{Burst, Frame, FrameBuf, LinkType, LiveMeta, Lost, Pool, Region, Taken};
use tunnel::{HEADROOM, Inner, PeerId, SealingRun, TAILROOM, Unstaged};

use super::fit::headers_of;
use super::outer::{OUTER, Outer};
use super::site::{Site, State};
use super::{ecn, mss};
use crate::config::tunnel::Dscp;
use dataplane::is_ip;

/// Datagrams that the kernel takes as one message.
pub(super) const MOST_PIECES: usize = 64;

/// The plan for a frame.
pub(super) enum Plan {
    /// The frame is sealed already.
    Sealed,
    Seal(SealingRun, How),
    /// The frame waits for its peer, whose `reached` had this value.
    Waits(PeerId, u64),
    Lost(Lost),
}

/// How a packet is sealed.
#[derive(Clone, Copy)]
pub(super) struct How {
    /// Length of the packet in bytes.
    len: usize,
    /// Bytes of payload of each piece, if the packet is cut.
    pieces: Option<u16>,
    tos: u8,
    own: Option<Source>,
    /// Bytes of the longest packet that the path takes.
    most: u16,
}

/// Seals a frame, and appends it, or its pieces, to `out`.
pub(super) fn seal_one(
    pool: &Pool,
    taken: Taken<'_>,
    run: SealingRun,
    how: How,
    out: &mut Burst,
) -> Result<(), Lost> {
    match (how.pieces, taken) {
        (Some(size), Taken::Moved(frame)) => seal_pieces(pool, frame.frame(), size, run, how, out),
        (Some(size), Taken::Lent { bytes, meta }) => {
            seal_pieces(pool, Frame { bytes, meta: &meta }, size, run, how, out)
        }
        (None, Taken::Moved(frame)) if has_room(&frame, how.len) => {
            seal_in_place(frame, run, how, out)
        }
        (None, taken) => {
            let mut copy = pool.take().ok_or(Lost::NoRoom)?;
            let (bytes, meta) = match &taken {
                Taken::Moved(frame) => (frame.bytes(), frame.meta),
                Taken::Lent { bytes, meta } => (*bytes, *meta),
            };
            copy.meta = meta;
            if copy.extend(bytes) { seal_in_place(copy, run, how, out) } else { Err(Lost::NoRoom) }
        }
    }
}

/// Cuts a superframe, and seals its pieces.
fn seal_pieces(
    pool: &Pool,
    Frame { bytes, meta }: Frame<'_>,
    size: u16,
    mut run: SealingRun,
    how: How,
    out: &mut Burst,
) -> Result<(), Lost> {
    let headers = headers_of(bytes);
    let superframe = Superframe::new(&bytes[..how.len.min(bytes.len())], &headers, size);
    let superframe = superframe.map_err(|_| Lost::NotIp)?;
    let to = run.to();
    let mut index = 0;
    while index < superframe.count() {
        let mut frame = pool.take().ok_or(Lost::NoRoom)?;
        frame.grow_front(OUTER + HEADROOM).ok_or(Lost::NoRoom)?;
        let room = frame.tailroom();
        let buffer = frame.grow_back(room).ok_or(Lost::NoRoom)?;
        let (mut end, mut segment, mut count) = (OUTER, 0, 0);
        while index < superframe.count() && count < MOST_PIECES {
            let start = end + HEADROOM;
            let Some(len) = superframe.piece_len(index) else { break };
            if segment > 0 && end - OUTER + segment > MOST_BYTES {
                break;
            }
            superframe.write(index, &mut buffer[start..]).ok_or(Lost::NoRoom)?;
            let sealed = run.seal(buffer, start..start + len).map_err(|_| Lost::NoRoom)?;
            segment = segment.max(sealed.len());
            end = sealed.end;
            (index, count) = (index + 1, count + 1);
        }
        let outer = Outer { peer: to, own: how.own, tos: how.tos, segment: segment as u16 };
        outer.write(buffer);
        frame.meta = *meta;
        finish(frame, end, out);
    }
    Ok(())
}

/// A packet's place in its peer's session, and how it is sealed.
pub(super) fn place(
    site: &Site,
    state: &mut State,
    frame: Frame<'_>,
    segment: Option<u16>,
    now: u64,
) -> Result<Plan, Lost> {
    let inner = Inner::parse(frame.bytes).filter(|_| is_ip(frame.meta.link_type));
    let inner = inner.ok_or(Lost::NotIp)?;
    let id = state.tunnel.peer_of(inner.destination).ok_or(Lost::NoPeer)?;
    let peer = state.peers.get_mut(&id).ok_or(Lost::NoPeer)?;
    let most = peer.path.usable();
    peer.path.sends(inner.len);
    let (pieces, count) = cut(frame.bytes, inner.len, segment, most)?;
    let tos = ecn::tos(frame.bytes);
    let dscp = match site.dscp {
        Dscp::Copy => tos & !3,
        Dscp::Fixed(dscp) => dscp << 2,
    };
    let how = How { len: inner.len, pieces, tos: dscp | ecn::mark(tos), own: peer.own, most };
    match state.tunnel.stage_run(id, (count, inner.len), now) {
        Ok(run) => Ok(Plan::Seal(run.within(most), how)),
        Err(Unstaged::Wait(_)) => Ok(Plan::Waits(id, peer.reached)),
        // A name that is not resolved yet may be soon.
        Err(Unstaged::Dropped(_)) if peer.endpoint.is_some() => Ok(Plan::Waits(id, peer.reached)),
        Err(Unstaged::Dropped(_)) => Err(Lost::NoSession),
    }
}

/// How a packet of `len` bytes is cut so that no piece is longer than `most`, and into how many pieces.
///
/// # Errors
/// The packet cannot be cut so.
fn cut(
    bytes: &[u8],
    len: usize,
    segment: Option<u16>,
    most: u16,
) -> Result<(Option<u16>, usize), Lost> {
    if segment.is_none() && len <= usize::from(most) {
        return Ok((None, 1));
    }
    let too_long = Lost::TooLong { most };
    let (whole, headers) = (&bytes[..len.min(bytes.len())], headers_of(bytes));
    let superframe = |size| Superframe::new(whole, &headers, size).map_err(|_| too_long);
    let one = superframe(segment.unwrap_or(u16::MAX))?;
    let over = one.longest().saturating_sub(most.into());
    if over == 0 {
        return Ok((segment, one.count()));
    }
    // Only a stream may be cut again.
    let is_tcp = matches!(headers.l4, L4::Upper(upper) if upper.protocol == tcp::PROTOCOL);
    let fits = (one.longest() - one.piece_headers()).checked_sub(over);
    let fits = fits.filter(|fits| *fits > 0 && is_tcp).ok_or(too_long)? as u16;
    Ok((Some(fits), superframe(fits)?.count()))
}

/// Whether a frame can be sealed where it lies.
fn has_room<R: Borrow<Arc<dyn Region>>>(frame: &FrameBuf<R>, len: usize) -> bool {
    let after = frame.bytes().len() - len.min(frame.bytes().len()) + frame.tailroom();
    frame.headroom() >= OUTER + HEADROOM && after >= TAILROOM
}

fn seal_in_place<R: Borrow<Arc<dyn Region>>>(
    mut frame: FrameBuf<R>,
    mut run: SealingRun,
    how: How,
    out: &mut Burst,
) -> Result<(), Lost> {
    let inner = OUTER + HEADROOM..OUTER + HEADROOM + how.len;
    frame.grow_front(inner.start).ok_or(Lost::NoRoom)?;
    let more = (inner.end + TAILROOM).saturating_sub(frame.bytes().len());
    let buffer = frame.grow_back(more).ok_or(Lost::NoRoom)?;
    mss::clamp(&mut buffer[inner.clone()], how.most);
    let sealed = run.seal(buffer, inner).map_err(|_| Lost::NoRoom)?;
    let segment = sealed.len() as u16;
    Outer { peer: run.to(), own: how.own, tos: how.tos, segment }.write(buffer);
    finish(frame, sealed.end, out);
    Ok(())
}

/// Puts a sealed frame, which ends at `end`, into a burst.
fn finish<R: Borrow<Arc<dyn Region>>>(mut frame: FrameBuf<R>, end: usize, out: &mut Burst) {
    frame.narrow(0..end);
    frame.meta.link_type = LinkType::SEALED;
    frame.meta.wire_length = end as u32;
    *frame.live_mut() = LiveMeta::default();
    out.push_frame(frame);
}
