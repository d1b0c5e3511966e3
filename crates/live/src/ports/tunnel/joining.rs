//! [`Joins`]: makes frames of the packets of a frame that was opened: consecutive packets of a flow become one
//! superframe, as by the kernel's GRO, which the kernel takes through its stack at once.
//!
//! Payload moves towards the front of its own frame, over what was around it; the largest group keeps the frame, and the
//! others move to chunks of their own: small ones, as many as there can be of a burst, and large ones for the rest.

use std::cell::OnceCell;
use std::mem;
use std::ops::Range;

use ::tunnel::{HEADROOM, TAILROOM};
use packet::{Joined, JoinedKind, Offload};
use pktio::{
    Burst, ChecksumState, Frame, FrameBuf, LinkType, LiveMeta, Lost, Pool, SegmentKind, Segments,
};

use super::outer::OUTER;
use super::reception::{BURST, FEW};
use super::seal::MOST_PIECES;

/// Small chunks: for each packet of the messages that are received at once, except the packet that keeps its frame. And
/// their bytes, for a packet of the usual length and what it takes to be sealed again.
const SMALL_CHUNKS: usize = (BURST + FEW) * (MOST_PIECES - 1);
const SMALL: usize = 1_600;

/// Buffers that are used again for each frame.
#[derive(Default)]
pub(super) struct Joins {
    /// Where the packets of the frame lie, in order.
    pub(super) packets: Vec<Range<usize>>,
    groups: Vec<Group>,
    apart: Vec<Option<FrameBuf>>,
    /// Made when the first packet needs one: a worker that opens nothing has none.
    small: OnceCell<Pool>,
}

/// Packets that became one.
struct Group {
    range: Range<usize>,
    live: LiveMeta,
}

impl Joins {
    pub(super) fn clear(&mut self) {
        self.packets.clear();
        self.groups.clear();
        self.apart.clear();
    }

    /// Puts the packets of a frame into a burst, in order.
    pub(super) fn join(
        &mut self,
        mut frame: FrameBuf,
        pool: &Pool,
        out: &mut Burst,
        lose: &mut dyn FnMut(Lost, Frame<'_>),
    ) {
        self.group(frame.bytes_mut());
        let longest = self.groups.iter().enumerate().max_by_key(|(_, group)| group.range.len());
        let Some((keeper, _)) = longest else { return };
        let mut meta = frame.meta;
        meta.link_type = LinkType::RAW;
        for (at, Group { range, .. }) in self.groups.iter().enumerate() {
            let mut apart = if at == keeper { None } else { self.chunk(range.len(), pool) };
            if let Some(apart) = &mut apart {
                apart.extend(&frame.bytes()[range.clone()]);
            } else if at != keeper {
                lose(Lost::NoRoom, Frame { bytes: &frame.bytes()[range.clone()], meta: &meta });
            }
            self.apart.push(apart);
        }
        let mut frame = Some(frame);
        for (at, (group, apart)) in self.groups.drain(..).zip(self.apart.drain(..)).enumerate() {
            let placed = match at == keeper {
                true => frame.take(),
                false => apart,
            };
            let Some(mut placed) = placed else { continue };
            if at == keeper {
                placed.narrow(group.range.clone());
            }
            placed.meta = meta;
            placed.meta.wire_length = group.range.len() as u32;
            *placed.live_mut() = group.live;
            out.push_frame(placed);
        }
    }

    /// A chunk that has room for `len` bytes.
    fn chunk(&self, len: usize, large: &Pool) -> Option<FrameBuf> {
        let small = self.small.get_or_init(|| Pool::new(SMALL_CHUNKS, SMALL, OUTER + HEADROOM));
        let fits = len + TAILROOM <= small.frame_bytes();
        fits.then(|| small.take()).flatten().or_else(|| large.take())
    }

    /// Whether all chunks are back.
    #[cfg(any(test, fuzzing))]
    pub(super) fn is_whole(&self) -> bool {
        self.small.get().is_none_or(|small| small.free() == small.chunks())
    }

    fn group(&mut self, bytes: &mut [u8]) {
        let mut packets = mem::take(&mut self.packets);
        let mut current: Option<(Range<usize>, Option<Joined>)> = None;
        for packet in packets.drain(..) {
            if let Some((range, Some(joined))) = &mut current
                && let Some(payload) = joined.take(&bytes[packet.clone()])
            {
                let from = packet.start + payload.start..packet.start + payload.end;
                let len = from.len();
                bytes.copy_within(from, range.end);
                range.end += len;
                continue;
            }
            let next = Joined::new(&bytes[packet.clone()]);
            let before = current.replace((packet, next));
            self.groups.extend(before.map(|(range, joined)| finish(bytes, range, joined)));
        }
        self.groups.extend(current.map(|(range, joined)| finish(bytes, range, joined)));
        self.packets = packets;
    }
}

/// The end of a group: its headers become a superframe's, if it is one.
fn finish(bytes: &mut [u8], range: Range<usize>, joined: Option<Joined>) -> Group {
    let mut live = LiveMeta::default();
    if let Some(joined) = joined.filter(|joined| joined.count() > 1)
        && let Some(Offload { size, kind, start, offset }) =
            joined.finish(&mut bytes[range.clone()])
    {
        let kind = match kind {
            JoinedKind::TcpV4 => SegmentKind::TcpV4,
            JoinedKind::TcpV6 => SegmentKind::TcpV6,
            JoinedKind::Udp => SegmentKind::UdpDatagrams,
        };
        live.segments = Some(Segments { size, kind });
        live.checksum = ChecksumState::Unfinished { start, offset };
    }
    Group { range, live }
}
