//! Ports in memory: what comes is made here, what leaves is looked at here.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use live::TunnelEnd;
use pktio::{Burst, Envelope, FrameBuf, MemoryPort, Pool, Port, PortError, Readiness, Stats};

use tunnel::Window;

use super::packets::{Kind, Numbered, numbers};

/// Bytes of a burst of superframes, as of a TUN device, and frames of one of others.
const BURST_BYTES: usize = 256 * 1024;
const BURST: usize = 64;
/// Messages that a socket hands over at once.
const MESSAGES: usize = 16;
/// Bytes before a sealed frame's first datagram, and where a datagram has its counter (docs/tunnel.md).
const OUTER: usize = 48;
const SEGMENT: usize = 4;
const COUNTER: usize = 8;
/// How often it is looked again whether what was sent has come.
const LOOK: Duration = Duration::from_micros(50);

/// What has left so far.
#[derive(Debug, Default)]
pub(super) struct Left {
    pub(super) packets: AtomicU64,
    /// Packets with a number below an earlier one's, and datagrams whose counter receivers would not remember.
    pub(super) reordered: AtomicU64,
    /// One more than the highest number.
    pub(super) next: AtomicU64,
}

/// Makes packets; as many at most are on their way as there is a window for.
pub(super) struct Feed {
    packets: Numbered,
    kind: Kind,
    count: u64,
    window: Option<(u64, Arc<Left>)>,
    pool: Pool,
}

impl Feed {
    pub(super) fn new(kind: Kind, count: u64, window: Option<(u64, Arc<Left>)>) -> Self {
        let pool = Pool::new(16_384, kind.bytes * kind.joined + 256, 128);
        Self { packets: Numbered::new(kind), kind, count, window, pool }
    }

    fn is_over(&self) -> bool {
        self.packets.made() >= self.count
    }

    fn is_open(&self) -> bool {
        self.window.as_ref().is_none_or(|(most, left)| {
            self.packets.made() < left.next.load(Ordering::Relaxed) + most
        })
    }
}

impl Port for Feed {
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        burst.clear();
        let frame = self.kind.bytes * self.kind.joined;
        let most = BURST.min(BURST_BYTES / frame);
        while burst.len() < most && !self.is_over() && self.is_open() {
            let Some(mut frame) = self.pool.take() else { break };
            if !self.packets.fill(&mut frame) {
                break;
            }
            burst.push_frame(frame);
        }
        Ok(burst.len())
    }

    fn tx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        let sent = burst.len();
        burst.clear();
        Ok(sent)
    }

    fn readiness(&self) -> Readiness<'_> {
        match (self.is_over(), self.window.is_some()) {
            (true, _) => Readiness::Never,
            // As of a capture, nothing of it is lost.
            (false, false) => Readiness::Always,
            (false, true) => Readiness::After(if self.is_open() { Duration::ZERO } else { LOOK }),
        }
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }
}

/// Hands over sealed frames.
pub(super) struct Stored {
    pub(super) frames: VecDeque<FrameBuf>,
    pub(super) end: TunnelEnd,
}

impl Port for Stored {
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        burst.clear();
        let count = self.frames.len().min(MESSAGES);
        self.frames.drain(..count).for_each(|frame| burst.push_frame(frame));
        Ok(burst.len())
    }

    fn tx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        let sent = burst.len();
        burst.clear();
        Ok(sent)
    }

    fn readiness(&self) -> Readiness<'_> {
        if self.frames.is_empty() { Readiness::Never } else { Readiness::Always }
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }

    fn finishes(&self) -> bool {
        true
    }

    fn envelope(&self) -> Option<Box<dyn Envelope>> {
        Some(self.end.envelope())
    }
}

/// Looks at the numbers of packets, or at the counters of datagrams that are for a peer.
pub(super) struct Sink {
    pub(super) left: Arc<Left>,
    pub(super) next: u64,
    pub(super) end: Option<TunnelEnd>,
}

impl Sink {
    /// Whether a number is in its order: a packet's after all before it, a counter as far back as receivers remember.
    fn sees(&mut self, number: u64) -> bool {
        let remembers = if self.end.is_some() { Window::SIZE } else { 0 };
        let is_in_order = number + remembers >= self.next;
        self.next = self.next.max(number + 1);
        is_in_order
    }
}

impl Port for Sink {
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        burst.clear();
        Ok(0)
    }

    fn tx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        let (mut packets, mut reordered) = (0, 0);
        let is_sealed = self.end.is_some();
        for (at, frame) in burst.iter().enumerate() {
            let mut sees = |number| {
                packets += 1;
                reordered += u64::from(!self.sees(number));
            };
            match is_sealed {
                true => counters(frame.bytes).for_each(&mut sees),
                false => numbers(frame.bytes, burst.live(at)).for_each(&mut sees),
            }
        }
        self.left.next.store(self.next, Ordering::Relaxed);
        self.left.reordered.fetch_add(reordered, Ordering::Relaxed);
        self.left.packets.fetch_add(packets, Ordering::Relaxed);
        let sent = burst.len();
        burst.clear();
        Ok(sent)
    }

    fn readiness(&self) -> Readiness<'_> {
        Readiness::Never
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }

    fn finishes(&self) -> bool {
        true
    }

    fn envelope(&self) -> Option<Box<dyn Envelope>> {
        self.end.as_ref().map(TunnelEnd::envelope)
    }
}

/// The counters of the datagrams in a sealed frame.
fn counters(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let segment =
        bytes.get(SEGMENT..SEGMENT + 2).map_or(0, |it| u16::from_ne_bytes([it[0], it[1]]));
    let datagrams = bytes.get(OUTER..).unwrap_or_default().chunks(usize::from(segment).max(1));
    datagrams.filter_map(|datagram| {
        Some(u64::from_le_bytes(*datagram.get(COUNTER..)?.first_chunk::<8>()?))
    })
}

/// Carries sealed frames to another end.
pub(super) struct Carried {
    pub(super) port: MemoryPort,
    pub(super) end: TunnelEnd,
}

impl Port for Carried {
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        self.port.rx_burst(burst)
    }

    fn tx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        self.port.tx_burst(burst)
    }

    fn readiness(&self) -> Readiness<'_> {
        self.port.readiness()
    }

    fn stats(&self) -> Stats {
        self.port.stats()
    }

    fn finishes(&self) -> bool {
        true
    }

    fn envelope(&self) -> Option<Box<dyn Envelope>> {
        Some(self.end.envelope())
    }
}
