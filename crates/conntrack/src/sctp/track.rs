//! [`track`]: brings a flow up to date with the chunks of a packet.

use super::message::{Chunk, Message, TAG_REFLECTED, kind};
use super::record::{Sctp, State};
use crate::config::Timeouts;
use crate::flow::{Flow, Proto};
use crate::key::Direction;
use crate::status::Status;
use crate::step::{Arrival, Step};

/// Evaluates a packet of an association and brings it up to date.
pub(crate) fn track(
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

/// Result of all chunks of a packet.
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
        let checked_by_chunk = [
            kind::INIT,
            kind::SHUTDOWN_COMPLETE,
            kind::COOKIE_ECHO,
            kind::ABORT,
            kind::SHUTDOWN_ACK,
            kind::HEARTBEAT,
            kind::HEARTBEAT_ACK,
        ];
        let (own, _) = sides(direction);
        if !message.has(&checked_by_chunk) && message.tag != self.tags[own] {
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
    State::ALL.get(usize::from(*state)).copied()
}
