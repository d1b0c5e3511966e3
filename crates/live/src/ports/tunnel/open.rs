//! How a worker opens frames: each datagram where it lies; then consecutive packets of a flow become one superframe
//! ([`super::joining`]).

use std::mem;
use std::ops::Range;

use pktio::datagram::Source;
use pktio::{Burst, Frame, FrameBuf, FrameMeta, LinkType, Lost, Pool, Taken};
use tunnel::message::DATA_HEADER;
use tunnel::{Content, Dropped, Opened, Opening, Outgoing, PeerId, Received};

use super::outer::{OUTER, Outer, is_data};
use super::site::{Site, State};
use super::{ecn, joining, mss};

/// Buffers that a worker keeps from burst to burst so that opening allocates nothing.
#[derive(Default)]
pub(super) struct Opens {
    datagrams: Vec<Datagram>,
    /// Answers that are to be sent, and their source addresses.
    pub(super) answers: Vec<(Outgoing, Option<Source>)>,
    /// Peers that can be reached now.
    pub(super) reached: Vec<PeerId>,
    /// The frames made of a burst, before they change places.
    out: Burst,
    pub(super) joins: joining::Joins,
}

/// One datagram of a burst.
struct Datagram {
    /// The place of the datagram's frame in the burst.
    frame: usize,
    /// Where the datagram lies in that frame.
    range: Range<usize>,
    outer: Met,
    state: Stage,
}

/// The facts of an outer packet.
#[derive(Clone, Copy)]
struct Met {
    tos: u8,
    own: Option<Source>,
}

/// The stage of a datagram that is opened.
enum Stage {
    Staged(Opening),
    Opened(Opened),
    /// The place of its packet in the frame, and the bytes that the path to its peer takes.
    Packet(Range<usize>, u16),
    /// Nothing is left of the datagram.
    Done,
}

impl Opens {
    /// Opens the frames of a burst: what they hold takes their place. `answers` then has the answers to send, and
    /// `reached` the peers that can be reached now.
    pub(super) fn open(
        &mut self,
        site: &Site,
        pool: &Pool,
        burst: &mut Burst,
        lose: &mut dyn FnMut(Lost, Frame<'_>),
    ) {
        // A panic may have left some, which lie in other frames.
        self.datagrams.clear();
        self.joins.clear();
        self.stage(&mut site.lock(), site.now(), burst, lose);
        self.decipher(burst, lose);
        self.release(&mut site.lock(), site.now(), burst, lose);
        let mut out = mem::take(&mut self.out);
        self.join(burst, pool, &mut out, lose);
        mem::swap(burst, &mut out);
        out.clear();
        self.out = out;
    }

    /// Finds the session of each datagram.
    fn stage(
        &mut self,
        state: &mut State,
        now: u64,
        burst: &Burst,
        lose: &mut dyn FnMut(Lost, Frame<'_>),
    ) {
        for (at, frame) in burst.iter().enumerate() {
            let Some(outer) = Outer::read(frame.bytes) else {
                lose(Lost::Unknown, Frame { bytes: &[], meta: frame.meta });
                continue;
            };
            let met = Met { tos: outer.tos, own: outer.own };
            let step = usize::from(outer.segment).max(1);
            let mut start = OUTER;
            while start < frame.bytes.len() {
                let range = start..(start + step).min(frame.bytes.len());
                start = range.end;
                let bytes = &frame.bytes[range.clone()];
                if !is_data(bytes) {
                    continue;
                }
                match state.tunnel.receive(bytes, outer.peer, now) {
                    Received::Opening(opening) => {
                        let state = Stage::Staged(opening);
                        self.datagrams.push(Datagram { frame: at, range, outer: met, state });
                    }
                    Received::Dropped(why) => lose(lost(why), Frame { bytes, meta: frame.meta }),
                    // Handshake messages were answered when they came.
                    _ => {}
                }
            }
        }
    }

    /// Opens each datagram where it lies.
    fn decipher(&mut self, burst: &mut Burst, lose: &mut dyn FnMut(Lost, Frame<'_>)) {
        for datagram in &mut self.datagrams {
            let Stage::Staged(opening) = mem::replace(&mut datagram.state, Stage::Done) else {
                continue;
            };
            let Some(frame) = burst.get_mut(datagram.frame) else { continue };
            let Some(bytes) = frame.bytes.get_mut(datagram.range.clone()) else { continue };
            match opening.open(bytes) {
                Ok(opened) => datagram.state = Stage::Opened(opened),
                Err(why) => lose(lost(why), Frame { bytes, meta: frame.meta }),
            }
        }
    }

    /// Finds what each datagram holds, if it was not seen before and its peer may send it.
    fn release(
        &mut self,
        state: &mut State,
        now: u64,
        burst: &Burst,
        lose: &mut dyn FnMut(Lost, Frame<'_>),
    ) {
        for datagram in &mut self.datagrams {
            let Stage::Opened(opened) = mem::replace(&mut datagram.state, Stage::Done) else {
                continue;
            };
            let Some(frame) = burst.get(datagram.frame) else { continue };
            let Some(bytes) = frame.bytes.get(datagram.range.clone()) else { continue };
            let delivered = match state.tunnel.release(opened, bytes, now) {
                Ok(delivered) => delivered,
                Err(why) => {
                    lose(lost(why), Frame { bytes, meta: frame.meta });
                    continue;
                }
            };
            state.heard(delivered.peer, datagram.outer.own);
            if delivered.established {
                state.reached(delivered.peer);
                self.reached.push(delivered.peer);
            }
            match delivered.content {
                Ok(Content::Packet(range)) => {
                    let start = datagram.range.start;
                    let range = start + range.start..start + range.end;
                    datagram.state = Stage::Packet(range, state.usable(delivered.peer));
                }
                Ok(Content::Probe(answer)) => self.answers.push((answer, datagram.outer.own)),
                Ok(Content::Probed(number)) => state.probed(delivered.peer, number, now),
                Ok(Content::Keepalive) => {}
                // Its content is reported as a bare packet.
                Err(why) => {
                    let bytes = bytes.get(DATA_HEADER..).unwrap_or_default();
                    lose(lost(why), Frame { bytes, meta: &inner(frame.meta, bytes.len()) });
                }
            }
        }
    }

    /// Makes frames of what the datagrams hold.
    fn join(
        &mut self,
        burst: &mut Burst,
        pool: &Pool,
        out: &mut Burst,
        lose: &mut dyn FnMut(Lost, Frame<'_>),
    ) {
        let mut datagrams = self.datagrams.drain(..).peekable();
        for (at, taken) in burst.drain(usize::MAX).enumerate() {
            let mut frame: FrameBuf = match taken {
                Taken::Moved(frame) => frame.into_buf(),
                lent @ Taken::Lent { .. } => lent.into_buf(),
            };
            let meta = frame.meta;
            while let Some(datagram) = datagrams.next_if(|datagram| datagram.frame == at) {
                let Stage::Packet(range, most) = datagram.state else { continue };
                let bytes = &mut frame.bytes_mut()[range.clone()];
                mss::clamp(bytes, most);
                if ecn::told(bytes, datagram.outer.tos) {
                    self.joins.packets.push(range);
                } else {
                    let meta = inner(&meta, bytes.len());
                    lose(Lost::Congestion, Frame { bytes, meta: &meta });
                }
            }
            self.joins.join(frame, pool, out, lose);
        }
    }
}

/// The metadata of a packet that was opened.
fn inner(sealed: &FrameMeta, len: usize) -> FrameMeta {
    FrameMeta { link_type: LinkType::RAW, wire_length: len as u32, ..*sealed }
}

/// Why a datagram was dropped, as a port's reason.
fn lost(why: Dropped) -> Lost {
    match why {
        Dropped::Forged => Lost::Forged,
        Dropped::Replayed(_) => Lost::Replayed,
        Dropped::SourceNotAllowed(..) => Lost::Source,
        Dropped::NotIp => Lost::NotIp,
        _ => Lost::Unknown,
    }
}
