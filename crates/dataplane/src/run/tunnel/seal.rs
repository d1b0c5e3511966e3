//! [`Worker`]: one worker's hands at a tunnel. Here is how frames are sealed; [`super::open`] has the way back.
//!
//! A packet is sealed where it lies. A superframe is cut into a chunk of its own, piece by piece, each sealed while it is in
//! the cache: one copy. TCP that is longer than the path takes is cut to fit it; anything else is too long.

use std::mem;
use std::sync::Arc;

use packet::{Checksums, Headers, L4, Link, Superframe, parse, tcp};
use pktio::datagram::{MOST_BYTES, SendBatch, Source};
use pktio::{Burst, Envelope, Frame, FrameBuf, LinkType, LiveMeta, Lost, Pool, Taken};
use tunnel::{HEADROOM, Inner, PeerId, SealingRun, TAILROOM, Unstaged};

use super::open::Opens;
use super::outer::{OUTER, Outer};
use super::reception::CHUNK;
use super::site::{Site, State};
use super::{ecn, fit, mss, open};
use crate::link::link_of;
use crate::run::config::tunnel::Dscp;

/// Chunks for pieces of superframes, and for packets whose memory has no room to be sealed in.
const CHUNKS: usize = 96;
/// Datagrams that the kernel takes as one message.
const MOST_PIECES: usize = 64;

/// One worker's hands.
pub(super) struct Worker {
    pub(super) site: Arc<Site>,
    pub(super) pool: Pool,
    plans: Vec<Plan>,
    late: Vec<(PeerId, u64, FrameBuf)>,
    /// What is made of a burst, before they change places.
    pub(super) out: Burst,
    pub(super) opens: Opens,
    pub(super) sending: SendBatch,
}

/// What is to be done with a frame.
enum Plan {
    /// It is sealed already.
    Sealed,
    Seal(SealingRun, How),
    /// For its peer, which had been reached so often.
    Waits(PeerId, u64),
    Lost(Lost),
}

/// How a packet is sealed.
#[derive(Clone, Copy)]
struct How {
    /// Bytes of it.
    len: usize,
    /// Bytes of payload of each piece, if it is cut.
    pieces: Option<u16>,
    tos: u8,
    own: Option<Source>,
    /// Bytes of the longest packet that the path takes.
    most: u16,
}

impl Worker {
    pub(super) fn new(site: Arc<Site>) -> Self {
        Self {
            site,
            pool: Pool::new(CHUNKS, CHUNK, OUTER + HEADROOM),
            plans: Vec::new(),
            late: Vec::new(),
            out: Burst::with_capacity(0),
            opens: Opens::default(),
            sending: SendBatch::default(),
        }
    }

    /// Sends what waited for a peer, which can be reached now.
    pub(super) fn send_waiting(&mut self, peer: PeerId) {
        let frames = match self.site.lock().peers.get_mut(&peer) {
            Some(peer) => peer.waiting.take(),
            None => return,
        };
        let mut burst = Burst::with_capacity(0);
        frames.into_iter().for_each(|frame| burst.push_frame(frame));
        // What is lost now was counted as sent when it began to wait.
        self.seal(&mut burst, &mut |_, _| {});
        self.site.send(burst.iter().map(|frame| frame.bytes), &mut self.sending);
    }

    /// Finds each frame its place.
    pub(super) fn plan(&mut self, burst: &Burst) {
        let mut state = self.site.lock();
        let now = self.site.now();
        for (at, frame) in burst.iter().enumerate() {
            let segment = burst.live(at).and_then(|live| live.segments).map(|it| it.size);
            let plan = match frame.meta.link_type {
                LinkType::SEALED => Ok(Plan::Sealed),
                _ => place(&self.site, &mut state, frame, segment, now),
            };
            self.plans.push(plan.unwrap_or_else(Plan::Lost));
        }
    }

    fn seal_one(
        &self,
        taken: Taken<'_>,
        run: SealingRun,
        how: How,
        out: &mut Burst,
    ) -> Result<(), Lost> {
        match (how.pieces, taken) {
            (Some(size), Taken::Moved(frame)) => {
                self.seal_pieces(frame.frame(), size, run, how, out)
            }
            (Some(size), Taken::Lent { bytes, meta }) => {
                self.seal_pieces(Frame { bytes, meta: &meta }, size, run, how, out)
            }
            (None, Taken::Moved(frame)) if has_room(&frame, how.len) => {
                seal_in_place(frame, run, how, out)
            }
            (None, taken) => {
                let mut copy = self.pool.take().ok_or(Lost::NoRoom)?;
                let (bytes, meta) = match &taken {
                    Taken::Moved(frame) => (frame.bytes(), frame.meta),
                    Taken::Lent { bytes, meta } => (*bytes, *meta),
                };
                copy.meta = meta;
                if copy.extend(bytes) {
                    seal_in_place(copy, run, how, out)
                } else {
                    Err(Lost::NoRoom)
                }
            }
        }
    }

    /// Cuts a superframe, and seals its pieces.
    fn seal_pieces(
        &self,
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
            let mut frame = self.pool.take().ok_or(Lost::NoRoom)?;
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
}

impl Envelope for Worker {
    fn open(&mut self, burst: &mut Burst, lose: &mut dyn FnMut(Lost, Frame<'_>)) {
        open::open(self, burst, lose);
    }

    fn seal(&mut self, burst: &mut Burst, lose: &mut dyn FnMut(Lost, Frame<'_>)) -> usize {
        if self.site.is_narrow() {
            fit::fit(&self.site, burst, &self.pool, lose);
        }
        self.plan(burst);
        self.carry_out(burst, lose)
    }
}

impl Worker {
    /// Does what is planned with each frame: how many wait.
    pub(super) fn carry_out(
        &mut self,
        burst: &mut Burst,
        lose: &mut dyn FnMut(Lost, Frame<'_>),
    ) -> usize {
        let (mut plans, mut out) = (mem::take(&mut self.plans), mem::take(&mut self.out));
        for (taken, plan) in burst.drain(usize::MAX).zip(plans.drain(..)) {
            let (meta, bytes) = match &taken {
                Taken::Moved(frame) => (frame.meta, frame.bytes()),
                Taken::Lent { bytes, meta } => (*meta, *bytes),
            };
            match plan {
                Plan::Sealed => out.append(taken),
                Plan::Lost(why) => lose(why, Frame { bytes, meta: &meta }),
                Plan::Waits(peer, reached) => self.late.push((peer, reached, taken.into_buf())),
                Plan::Seal(run, how) => {
                    if let Err(why) = self.seal_one(taken, run, how, &mut out) {
                        lose(why, Frame { bytes: &[], meta: &meta });
                    }
                }
            }
        }
        mem::swap(burst, &mut out);
        (self.plans, self.out) = (plans, out);
        if self.late.is_empty() { 0 } else { self.wait(lose) }
    }

    /// Has frames wait for their peers' sessions: how many do.
    #[cold]
    fn wait(&mut self, lose: &mut dyn FnMut(Lost, Frame<'_>)) -> usize {
        let (mut waiting, mut reached) = (0, Vec::new());
        let mut state = self.site.lock();
        for (id, before, frame) in self.late.drain(..) {
            match state.peers.get_mut(&id).filter(|peer| peer.waiting.has_room()) {
                Some(peer) => {
                    peer.waiting.push(frame);
                    waiting += 1;
                    // Another worker got its session meanwhile, and sent what waited then.
                    if peer.reached != before && !reached.contains(&id) {
                        reached.push(id);
                    }
                }
                None => lose(Lost::NoSession, frame.frame()),
            }
        }
        drop(state);
        self.site.send_due(&mut self.sending);
        reached.into_iter().for_each(|peer| self.send_waiting(peer));
        waiting
    }
}

/// A packet's place in its peer's session, and how it is sealed.
fn place(
    site: &Site,
    state: &mut State,
    frame: Frame<'_>,
    segment: Option<u16>,
    now: u64,
) -> Result<Plan, Lost> {
    let is_ip = matches!(link_of(frame.meta.link_type), Some(Link::Raw | Link::Ipv4 | Link::Ipv6));
    let inner = Inner::parse(frame.bytes).filter(|_| is_ip).ok_or(Lost::NotIp)?;
    let id = state.tunnel.peer_of(inner.destination).ok_or(Lost::NoPeer)?;
    let peer = state.peers.get(&id).ok_or(Lost::NoPeer)?;
    let most = peer.path.usable();
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
/// It cannot be cut so.
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
    // Only a stream may be cut anew.
    let is_tcp = matches!(headers.l4, L4::Upper(upper) if upper.protocol == tcp::PROTOCOL);
    let fits = (one.longest() - one.piece_headers()).checked_sub(over);
    let fits = fits.filter(|fits| *fits > 0 && is_tcp).ok_or(too_long)? as u16;
    Ok((Some(fits), superframe(fits)?.count()))
}

pub(super) fn headers_of(bytes: &[u8]) -> Headers {
    parse(Link::Raw, bytes, bytes.len(), Checksums::Ignore)
}

/// Whether a frame can be sealed where it lies.
fn has_room<R: std::borrow::Borrow<Arc<dyn pktio::Region>>>(
    frame: &FrameBuf<R>,
    len: usize,
) -> bool {
    let after = frame.bytes().len() - len.min(frame.bytes().len()) + frame.tailroom();
    frame.headroom() >= OUTER + HEADROOM && after >= TAILROOM
}

fn seal_in_place<R: std::borrow::Borrow<Arc<dyn pktio::Region>>>(
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

/// Puts a sealed frame, which ends there, into a burst.
fn finish<R: std::borrow::Borrow<Arc<dyn pktio::Region>>>(
    mut frame: FrameBuf<R>,
    end: usize,
    out: &mut Burst,
) {
    frame.narrow(0..end);
    frame.meta.link_type = LinkType::SEALED;
    frame.meta.wire_length = end as u32;
    *frame.live_mut() = LiveMeta::default();
    out.push_frame(frame);
}
