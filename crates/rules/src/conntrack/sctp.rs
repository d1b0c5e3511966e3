//! SCTP: the state machine over the chunks of a packet, and the verification tags.
//!
//! Source: Linux 6.18 `nf_conntrack_proto_sctp.c`, its table measured transition by transition; RFC 9260
//! sections 8.4 and 8.5.

use super::config::Timeouts;
use super::dissect::Layer;
use super::flow::{Flow, Proto, Status};
use super::key::Direction;
use super::step::{Arrival, Flaw, Step, known};
use super::verify;
use packet::{Packet, Read, sctp};

/// States, numbered as in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
#[repr(u8)]
pub enum State {
    /// Before the first packet.
    #[default]
    None = 0,
    /// Closed, or about to open.
    Closed = 1,
    /// An INIT was seen, or its acknowledgement.
    CookieWait = 2,
    /// A COOKIE ECHO was seen.
    CookieEchoed = 3,
    /// Open.
    Established = 4,
    /// A SHUTDOWN was seen from the original side.
    ShutdownSent = 5,
    /// A SHUTDOWN was seen from the reply side.
    ShutdownRecd = 6,
    /// A SHUTDOWN ACK was seen.
    ShutdownAckSent = 7,
    /// A HEARTBEAT began the flow: another path of an association.
    HeartbeatSent = 8,
}

/// What is remembered of an association.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sctp {
    /// Its state.
    pub state: State,
    /// Verification tags that packets of each direction carry.
    tags: [u32; 2],
    /// An INIT was seen from each direction.
    init: [bool; 2],
    /// A HEARTBEAT with a strange tag was the last word of this direction.
    strange_heartbeat: Option<Direction>,
}

mod kind {
    pub(super) const DATA: u8 = 0;
    pub(super) const INIT: u8 = 1;
    pub(super) const INIT_ACK: u8 = 2;
    pub(super) const HEARTBEAT: u8 = 4;
    pub(super) const HEARTBEAT_ACK: u8 = 5;
    pub(super) const ABORT: u8 = 6;
    pub(super) const SHUTDOWN: u8 = 7;
    pub(super) const SHUTDOWN_ACK: u8 = 8;
    pub(super) const ERROR: u8 = 9;
    pub(super) const COOKIE_ECHO: u8 = 10;
    pub(super) const COOKIE_ACK: u8 = 11;
    pub(super) const SHUTDOWN_COMPLETE: u8 = 14;
}

/// Chunk flag T: the tag is the other side's.
const TAG_REFLECTED: u8 = 1;

/// One chunk: its header, and the tag in an INIT or its acknowledgement.
#[derive(Debug, Clone, Copy)]
struct Chunk {
    kind: u8,
    flags: u8,
    len: u16,
    init_tag: Option<u32>,
}

/// A packet: its tag and its chunks.
#[derive(Debug)]
pub(super) struct Message {
    tag: u32,
    chunks: Vec<Chunk>,
}

impl Message {
    /// The packet at the layer; with `verify` its checksum must hold.
    pub(super) fn read(packet: &Packet<'_>, layer: &Layer, verify: bool) -> Result<Self, Flaw> {
        let header = known(packet.read::<{ sctp::HEADER_LEN }>(layer.offset))?;
        if verify {
            match verify::sctp(packet, layer.offset) {
                Read::Known(true) => {}
                Read::Unknown => return Err(Flaw::Unknown),
                Read::Known(false) | Read::Absent => return Err(Flaw::Invalid),
            }
        }
        let [_, _, _, _, a, b, c, d, ..] = header;
        let mut message = Self { tag: u32::from_be_bytes([a, b, c, d]), chunks: Vec::new() };
        message.read_chunks(packet, layer.offset + sctp::HEADER_LEN)?;
        if message.is_sensible() { Ok(message) } else { Err(Flaw::Invalid) }
    }

    /// The chunks up to the end, or to a header that is cut. One of length 0 is the last: it is refused
    /// afterwards, and the walk must end.
    fn read_chunks(&mut self, packet: &Packet<'_>, mut at: usize) -> Result<(), Flaw> {
        while at < packet.headers().end {
            let [kind, flags, high, low] = match packet.read::<4>(at) {
                Read::Known(header) => header,
                Read::Absent => break,
                Read::Unknown => return Err(Flaw::Unknown),
            };
            let len = u16::from_be_bytes([high, low]);
            // The tag stands first of the 16 bytes that an INIT must have.
            let init_tag = match packet.read::<16>(at + 4) {
                _ if !matches!(kind, kind::INIT | kind::INIT_ACK) => None,
                Read::Known([a, b, c, d, ..]) => Some(u32::from_be_bytes([a, b, c, d])),
                Read::Absent => None,
                Read::Unknown => return Err(Flaw::Unknown),
            };
            self.chunks.push(Chunk { kind, flags, len, init_tag });
            if len == 0 {
                break;
            }
            at += usize::from(len).next_multiple_of(4);
        }
        Ok(())
    }

    /// Some chunks stand alone, some first, none is empty.
    fn is_sensible(&self) -> bool {
        let mut alone = false;
        for (count, chunk) in self.chunks.iter().enumerate() {
            alone |= matches!(chunk.kind, kind::INIT | kind::INIT_ACK | kind::SHUTDOWN_COMPLETE);
            let first = matches!(chunk.kind, kind::COOKIE_ACK | kind::COOKIE_ECHO);
            if ((alone || first) && count != 0) || chunk.len == 0 {
                return false;
            }
        }
        !self.chunks.is_empty()
    }

    fn has(&self, kinds: &[u8]) -> bool {
        self.chunks.iter().any(|chunk| kinds.contains(&chunk.kind))
    }
}

/// Judges a packet of an association and brings it up to date.
pub(super) fn track(
    flow: &mut Flow,
    message: &Message,
    arrival: &Arrival,
    timeouts: &Timeouts,
) -> Step {
    if !flow.is_confirmed() {
        let Some(sctp) = Sctp::begin(message) else { return Step::Invalid };
        flow.proto = Proto::Sctp(sctp);
    }
    let is_confirmed = flow.is_confirmed();
    let Proto::Sctp(sctp) = &mut flow.proto else { return Step::Invalid };
    let Some(walk) = sctp.walk(message, arrival.direction, is_confirmed) else {
        return Step::Invalid;
    };
    let state = sctp.state;
    if walk.established {
        flow.status.set(Status::ASSURED);
    }
    if walk.ignore {
        return Step::Ignore;
    }
    let timeout = timeouts.sctp.get(state as usize).copied().unwrap_or(0);
    flow.refresh(arrival.direction, arrival.now, timeout, arrival.bytes);
    Step::Accept
}

/// What came of all chunks of a packet.
#[derive(Default)]
struct Walk {
    established: bool,
    /// Let through without renewing the timeout.
    ignore: bool,
}

impl Sctp {
    /// What a flow begins with; `None` where none may begin with this packet.
    fn begin(message: &Message) -> Option<Self> {
        if message.has(&[kind::ABORT, kind::SHUTDOWN_COMPLETE, kind::COOKIE_ACK]) {
            return None;
        }
        let mut sctp = Self::default();
        for chunk in &message.chunks {
            match next(Direction::Original, State::None, chunk.kind)? {
                State::None => return None,
                _ if chunk.kind == kind::INIT => {
                    if message.tag != 0 {
                        return None;
                    }
                    sctp.tags[1] = chunk.init_tag?;
                }
                // Measured: other chunks leave both tags open.
                _ if chunk.kind == kind::HEARTBEAT => sctp.tags[0] = message.tag,
                _ if chunk.kind == kind::SHUTDOWN_ACK => sctp.tags[1] = message.tag,
                _ => {}
            }
        }
        Some(sctp)
    }

    fn walk(&mut self, message: &Message, direction: Direction, confirmed: bool) -> Option<Walk> {
        let judged_by_chunk = [
            kind::INIT,
            kind::SHUTDOWN_COMPLETE,
            kind::COOKIE_ECHO,
            kind::ABORT,
            kind::SHUTDOWN_ACK,
            kind::HEARTBEAT,
            kind::HEARTBEAT_ACK,
        ];
        let (own, _) = sides(direction);
        if !message.has(&judged_by_chunk) && message.tag != self.tags[own] {
            return None;
        }
        let mut walk = Walk::default();
        for chunk in &message.chunks {
            if !self.tag_holds(chunk, message, direction, &mut walk)? {
                continue;
            }
            let old = self.state;
            let new = next(direction, old, chunk.kind)?;
            self.note_init(chunk, direction, old)?;
            // A repeated INIT does not keep a flow alive that nobody answers.
            let is_repeated = old == State::Closed && new == State::Closed && confirmed;
            walk.ignore |= chunk.kind == kind::INIT && is_repeated;
            self.state = new;
            walk.established |= old != new && new == State::Established;
        }
        Some(walk)
    }

    /// Whether the packet's tag is right for a chunk. `None`: the packet is INVALID. False: the chunk
    /// counts for nothing.
    fn tag_holds(
        &mut self,
        chunk: &Chunk,
        message: &Message,
        direction: Direction,
        walk: &mut Walk,
    ) -> Option<bool> {
        let (own, peer) = sides(direction);
        let holds = match chunk.kind {
            kind::INIT => message.tag == 0,
            kind::ABORT | kind::SHUTDOWN_COMPLETE => {
                let side = if chunk.flags & TAG_REFLECTED != 0 { peer } else { own };
                message.tag == self.tags[side]
            }
            kind::COOKIE_ECHO => message.tag == self.tags[own],
            kind::COOKIE_ACK => {
                self.init = [false; 2];
                true
            }
            kind::HEARTBEAT | kind::HEARTBEAT_ACK => {
                return self.heartbeat(chunk.kind, message, direction, walk);
            }
            _ => true,
        };
        holds.then_some(true)
    }

    /// A heartbeat may carry a tag that was not seen before: another path of the association. The answer
    /// settles it.
    fn heartbeat(
        &mut self,
        kind: u8,
        message: &Message,
        direction: Direction,
        walk: &mut Walk,
    ) -> Option<bool> {
        let (own, peer) = sides(direction);
        if self.tags[own] == 0 {
            self.tags[own] = message.tag;
            return Some(true);
        }
        if message.tag == self.tags[own] {
            self.strange_heartbeat = None;
            return Some(true);
        }
        if message.has(&[kind::DATA]) || walk.ignore {
            return None;
        }
        if kind == kind::HEARTBEAT {
            self.strange_heartbeat = Some(direction);
            walk.ignore = true;
            return Some(false);
        }
        if self.strange_heartbeat.is_none_or(|last| last == direction) {
            return None;
        }
        self.strange_heartbeat = None;
        self.tags[own] = message.tag;
        self.tags[peer] = 0;
        Some(true)
    }

    /// Takes over the tag of an INIT or its acknowledgement.
    fn note_init(&mut self, chunk: &Chunk, direction: Direction, old: State) -> Option<()> {
        let (own, peer) = sides(direction);
        match chunk.kind {
            kind::INIT => {
                let tag = chunk.init_tag?;
                // One with the tag that is known is late, or sent again.
                if old == State::None || self.tags[peer] != tag {
                    if self.init[own] && self.init[peer] {
                        self.init[peer] = false;
                    }
                    self.init[own] = true;
                }
                self.tags[peer] = tag;
            }
            kind::INIT_ACK => {
                let tag = chunk.init_tag?;
                let known = self.tags[peer];
                let is_strange = known != tag;
                let is_foreign = !self.init[peer] && known != 0;
                let is_collision = self.init[own] && self.init[peer];
                if is_strange && (is_foreign || is_collision) {
                    return None;
                }
                self.tags[peer] = tag;
            }
            _ => {}
        }
        Some(())
    }
}

/// Places of the sender and of the other side.
fn sides(direction: Direction) -> (usize, usize) {
    match direction {
        Direction::Original => (0, 1),
        Direction::Reply => (1, 0),
    }
}

/// Rows: INIT, INIT ACK, ABORT, SHUTDOWN, SHUTDOWN ACK, ERROR, COOKIE ECHO, COOKIE ACK,
/// SHUTDOWN COMPLETE, HEARTBEAT, HEARTBEAT ACK. Columns: the old state. 9 is INVALID.
#[rustfmt::skip]
const TABLE: [[[u8; 9]; 11]; 2] = [
    [
        [1, 1, 2, 3, 4, 1, 1, 7, 2],
        [1, 1, 2, 3, 4, 5, 6, 7, 1],
        [1, 1, 1, 1, 1, 1, 1, 1, 1],
        [1, 1, 2, 3, 5, 5, 6, 7, 1],
        [7, 1, 2, 3, 4, 7, 7, 7, 7],
        [1, 1, 2, 3, 4, 5, 6, 7, 1],
        [1, 1, 3, 3, 4, 5, 6, 7, 1],
        [1, 1, 2, 4, 4, 5, 6, 7, 1],
        [1, 1, 2, 3, 4, 5, 6, 1, 1],
        [8, 1, 2, 3, 4, 5, 6, 7, 8],
        [1, 1, 2, 3, 4, 5, 6, 7, 8],
    ],
    [
        [9, 1, 2, 3, 4, 5, 6, 7, 9],
        [9, 2, 2, 3, 4, 5, 6, 7, 9],
        [9, 1, 1, 1, 1, 1, 1, 1, 9],
        [9, 1, 2, 3, 6, 5, 6, 7, 9],
        [9, 1, 2, 3, 4, 7, 7, 7, 9],
        [9, 1, 2, 1, 4, 5, 6, 7, 9],
        [9, 1, 3, 3, 4, 5, 6, 7, 9],
        [9, 1, 2, 4, 4, 5, 6, 7, 9],
        [9, 1, 2, 3, 4, 5, 6, 1, 9],
        [9, 1, 2, 3, 4, 5, 6, 7, 8],
        [9, 1, 2, 3, 4, 5, 6, 7, 4],
    ],
];

const STATES: [State; 9] = [
    State::None,
    State::Closed,
    State::CookieWait,
    State::CookieEchoed,
    State::Established,
    State::ShutdownSent,
    State::ShutdownRecd,
    State::ShutdownAckSent,
    State::HeartbeatSent,
];

/// Where a chunk leads; chunks without a row leave the state as it is. `None` is INVALID.
fn next(direction: Direction, old: State, chunk: u8) -> Option<State> {
    let row = match chunk {
        kind::INIT => 0,
        kind::INIT_ACK => 1,
        kind::ABORT => 2,
        kind::SHUTDOWN => 3,
        kind::SHUTDOWN_ACK => 4,
        kind::ERROR => 5,
        kind::COOKIE_ECHO => 6,
        kind::COOKIE_ACK => 7,
        kind::SHUTDOWN_COMPLETE => 8,
        kind::HEARTBEAT => 9,
        kind::HEARTBEAT_ACK => 10,
        _ => return Some(old),
    };
    let (side, _) = sides(direction);
    let state = TABLE.get(side)?.get(row)?.get(old as usize)?;
    STATES.get(usize::from(*state)).copied()
}
