//! Sends frames with `sendmmsg(2)`: each with a vnet header before it, and with the VLAN tag that was taken out.
//!
//! Contract: frames are sent from where they lie; the tag stands between two pieces of the frame. The vnet header
//! passes on what the kernel, or the device, has to finish: a checksum, or cutting a superframe, which without it
//! would be longer than the link takes. The kernel copies what it takes before the call returns.
//!
//! Source: `packet(7)`; Linux `net/packet/af_packet.c` (`packet_snd`).

use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::BorrowedFd;

use super::config::BATCH;
use super::header::VNET_LENGTH;
use super::sys::{self, PIECES};
use crate::burst::Burst;
use crate::frame::{ChecksumState, LiveMeta, VlanTag};
use crate::vnet;

/// Bytes of a frame before its EtherType: both addresses. A tag follows them.
const ADDRESSES: usize = 12;
const TAG: usize = 4;

/// Sends frames of the burst from `first` on, `most` or as many as fit one call; how many the kernel took, at least one.
pub(super) fn send(
    socket: BorrowedFd<'_>,
    burst: &Burst,
    first: usize,
    most: usize,
) -> io::Result<usize> {
    let mut heads = [Head::default(); BATCH];
    let count = BATCH.min(most).min(burst.len() - first);
    for (at, head) in heads[..count].iter_mut().enumerate() {
        // A frame without memory of its own is what its bytes say.
        *head = burst.live(first + at).map_or_else(Head::default, Head::new);
    }
    let mut frames = [[IoSlice::new(&[]); PIECES]; BATCH];
    for ((pieces, head), frame) in
        frames.iter_mut().zip(&heads).zip(burst.range(first..first + count))
    {
        *pieces = head.pieces(frame.bytes);
    }
    sys::send(socket, &frames[..count])
}

/// What a frame is sent with that is not among its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Head {
    vnet: [u8; VNET_LENGTH],
    /// In network byte order.
    tag: Option<[u8; TAG]>,
}

impl Head {
    fn new(live: &LiveMeta) -> Self {
        let mut live = *live;
        if let (ChecksumState::Unfinished { start, .. }, Some(_)) = (&mut live.checksum, live.vlan)
        {
            *start = start.saturating_add(TAG as u16);
        }
        let mut vnet = [0; VNET_LENGTH];
        vnet.copy_from_slice(&vnet::encode(&live)[..VNET_LENGTH]);
        Self { vnet, tag: live.vlan.map(in_network_order) }
    }

    fn pieces<'f>(&'f self, bytes: &'f [u8]) -> [IoSlice<'f>; PIECES] {
        let tag = self.tag.as_ref().map_or(&[][..], |tag| tag);
        let before = if tag.is_empty() { bytes.len() } else { ADDRESSES.min(bytes.len()) };
        let (before, after) = bytes.split_at(before);
        [&self.vnet, before, tag, after].map(IoSlice::new)
    }
}

fn in_network_order(VlanTag { tci, tpid }: VlanTag) -> [u8; TAG] {
    let ([a, b], [c, d]) = (tpid.to_be_bytes(), tci.to_be_bytes());
    [a, b, c, d]
}

/// Why the kernel did not take a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The socket has no room for it now.
    Later,
    /// The frame is longer than the link takes.
    TooLong,
    /// The frame has no link header, or is not what its vnet header says.
    Malformed,
    /// The device, or this process, may not send at all.
    Failed,
}

impl Refusal {
    pub(super) fn of(error: &io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::ENOBUFS | libc::ENOMEM) => Self::Later,
            Some(libc::EMSGSIZE) => Self::TooLong,
            Some(libc::EINVAL) => Self::Malformed,
            _ if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                Self::Later
            }
            _ => Self::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{SegmentKind, Segments};

    const FRAME: &[u8] = b"destinsourceipwhatever";

    fn joined(live: LiveMeta, bytes: &[u8]) -> Vec<u8> {
        Head::new(&live).pieces(bytes).iter().flat_map(|piece| piece.to_vec()).collect()
    }

    #[test]
    fn a_plain_frame_has_an_empty_header_before_it() {
        let sent = joined(LiveMeta::default(), FRAME);
        assert_eq!(sent, [&[0; VNET_LENGTH], FRAME].concat());
    }

    #[test]
    fn a_tag_stands_after_the_addresses_and_moves_the_checksum() {
        let live = LiveMeta {
            checksum: ChecksumState::Unfinished { start: 34, offset: 16 },
            segments: Some(Segments { size: 1448, kind: SegmentKind::TcpV4 }),
            vlan: Some(VlanTag { tci: 0x2005, tpid: 0x88a8 }),
            ..LiveMeta::default()
        };
        let sent = joined(live, FRAME);
        assert_eq!(&sent[VNET_LENGTH..], b"destinsource\x88\xa8\x20\x05ipwhatever");
        assert_eq!(sent[6..8], 38_u16.to_ne_bytes());
        assert_eq!(joined(live, b"short")[VNET_LENGTH..], *b"short\x88\xa8\x20\x05");
    }
}
