//! [`Reception`]: how a port receives, turn after turn, on the main socket and on the sockets of peers
//! ([`super::own`]).
//!
//! Contract: peers come first, one after the other in turn, as many messages as make a burst. While they have any, the
//! main socket gives [`FEW`] at most of each turn, so a flood costs only that many. Where they have none, it gives a
//! whole burst. Inner packets keep their order also when a peer gets a socket: what waits at the main one then is
//! received before, up to [`SETTLING`] messages, as a flood has no end.

use std::io;
use std::ops::Range;

use pktio::datagram::{Arrived, RecvBatch};
use pktio::{FrameBuf, Pool};

use super::outer::OUTER;
use super::own::Ready;
use super::site::Site;

/// Chunks for what is received, and bytes of each: the longest UDP datagram that the kernel joins, and what is noted before
/// it.
const CHUNKS: usize = 128;
pub(super) const CHUNK: usize = 68 * 1024;
/// Messages that are received at once.
pub(super) const BURST: usize = 16;
/// Messages of anybody that are received in a turn in which peers are received, too.
pub(super) const FEW: usize = 8;

/// Messages of the main socket that are received before the messages of a peer that has got its socket, at most.
const SETTLING: usize = 4096;

/// The buffers and counters of a port's reception.
pub(super) struct Reception {
    pool: Pool,
    spare: Vec<FrameBuf>,
    whole: RecvBatch,
    few: RecvBatch,
    ready: Ready,
    /// The socket whose turn it is.
    next: usize,
    /// Moves of sockets that are settled, and messages received since the first unsettled move.
    settled: u64,
    settling: usize,
    pub(super) arrived: Vec<(FrameBuf, Arrived)>,
    /// The range of `arrived` that sockets of peers received.
    pub(super) by_peers: Range<usize>,
}

impl Reception {
    pub(super) fn new() -> Self {
        Self {
            pool: Pool::new(CHUNKS, CHUNK, OUTER),
            spare: Vec::new(),
            whole: RecvBatch::new(BURST),
            few: RecvBatch::new(FEW),
            ready: Ready::default(),
            next: 0,
            settled: 0,
            settling: 0,
            arrived: Vec::new(),
            by_peers: 0..0,
        }
    }

    /// Messages that were longer than their chunk.
    pub(super) fn lost(&self) -> u64 {
        self.whole.lost() + self.few.lost()
    }

    /// Receives what is there, up to a burst from peers and a few from others, into `arrived`, which is empty.
    pub(super) fn receive(&mut self, site: &Site) -> io::Result<()> {
        site.own.find_ready(&mut self.ready)?;
        // In this order: a move that makes a socket ready is seen after the socket.
        let moves = site.own.moves();
        self.by_peers = 0..0;
        if moves != self.settled && !self.settle(site, moves)? {
            return Ok(());
        }
        let first = self.arrived.len();
        self.pool.fill(&mut self.spare, BURST);
        self.receive_peers(site)?;
        self.by_peers = first..self.arrived.len();
        if self.ready.is_main {
            self.receive_others(site)?;
        }
        Ok(())
    }

    /// Receives what waits at the main socket since before a move; returns whether that is all.
    fn settle(&mut self, site: &Site, moves: u64) -> io::Result<bool> {
        let came = self.receive_others(site)?;
        self.settling += came;
        let is_over = moves.is_multiple_of(2) && (came < BURST || self.settling >= SETTLING);
        if is_over {
            (self.settled, self.settling) = (moves, 0);
        }
        Ok(is_over)
    }

    fn receive_peers(&mut self, site: &Site) -> io::Result<()> {
        let own = &mut self.ready.own;
        let turn = own.partition_point(|number| *number < self.next);
        let turn = if turn < own.len() { turn } else { 0 };
        own.rotate_left(turn);
        for number in own.drain(..) {
            let Some(socket) = site.own.get(number) else { break };
            if self.spare.is_empty() {
                break;
            }
            let arrived = &mut self.arrived;
            socket.recv(&mut self.whole, &mut self.spare, |frame, from| {
                arrived.push((frame, from));
            })?;
            self.next = number + 1;
        }
        Ok(())
    }

    fn receive_others(&mut self, site: &Site) -> io::Result<usize> {
        let has_peers = !self.by_peers.is_empty();
        let (batch, most) = if has_peers { (&mut self.few, FEW) } else { (&mut self.whole, BURST) };
        self.pool.fill(&mut self.spare, most);
        let arrived = &mut self.arrived;
        site.socket.recv(batch, &mut self.spare, |frame, from| arrived.push((frame, from)))
    }
}
