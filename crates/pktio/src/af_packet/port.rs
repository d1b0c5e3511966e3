//! [`AfPacketPort`]: the ring, the ways out of it, and what becomes of the interface.

use std::cell::Cell;
use std::io::{self, ErrorKind};
use std::num::NonZeroU32;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use libc::c_int;

use super::config::{AfPacketConfig, BATCH, Fanout, FanoutKind};
use super::header::Header;
use super::ring::{Ring, Slot};
use super::send::{self, Refusal};
use super::sys;
use crate::burst::Burst;
use crate::frame::{FrameMeta, LiveMeta};
use crate::mapping::Mapping;
use crate::memory::FrameBuf;
use crate::opener::{InProcess, Opener};
use crate::pool::Pool;
use crate::port::{Port, PortError, Stats};
use crate::readiness::Readiness;
use crate::socket::take_error;

/// What the kernel reckons its bound on the number of frames by; frames in a block are as long as they are.
const FRAME_BYTES: u32 = 2048;

/// How often an interface that went down is checked: it may have been removed, or have frames again.
const LOOK: Duration = Duration::from_millis(10);

/// Whether the interface that the socket was bound to has been removed.
fn is_unbound(socket: &OwnedFd) -> bool {
    sys::bound(socket).is_ok_and(|(index, _)| index < 0)
}

/// An Ethernet interface.
#[derive(Debug)]
pub struct AfPacketPort {
    socket: OwnedFd,
    name: String,
    index: NonZeroU32,
    is_promiscuous: bool,
    is_gone: bool,
    /// The interface went down, and has received nothing since.
    is_down: bool,
    queue: u16,
    block_timeout: Duration,
    ring: Ring,
    /// Beyond as many blocks that are out, frames are copied.
    most_out: usize,
    burst_frames: usize,
    send_frames: usize,
    pool: Pool,
    /// Frames to copy into.
    spare: Vec<FrameBuf>,
    stats: Stats,
    /// Frames that the ring had no room for; the kernel forgets them when it is asked.
    lost: Cell<u64>,
}

impl AfPacketPort {
    /// Opens the interface in the calling thread's namespace. Frames that have to be copied are copied to `pool`, if
    /// they fit its chunks; a port that has copied any keeps as many chunks as a burst has frames.
    ///
    /// # Errors
    /// When the kernel refuses: without `CAP_NET_RAW`, without such an interface, with a ring that is none; and when
    /// the interface is not Ethernet (or loopback, which looks like it).
    pub fn open(config: &AfPacketConfig, pool: &Pool) -> Result<Self, PortError> {
        Self::open_by(&InProcess, config, pool)
    }

    /// Opens the interface as [`AfPacketPort::open`] does, with a socket that `opener` makes.
    fn open_by(
        opener: &dyn Opener,
        config: &AfPacketConfig,
        pool: &Pool,
    ) -> Result<Self, PortError> {
        let opened = Self::try_open(opener, config, pool);
        opened.map_err(|source| io_error(&config.interface, source))
    }

    /// Opens `queues` ports that share what the interface receives, as its program says or flow by flow. Each port has
    /// its own ring. Nobody else in the namespace has the ports' fanout group. `opener` makes the sockets.
    ///
    /// # Errors
    /// See [`AfPacketPort::open`].
    pub fn open_queues(
        opener: &dyn Opener,
        config: &AfPacketConfig,
        queues: u16,
        pool: &Pool,
    ) -> Result<Vec<Self>, PortError> {
        let mut ports: Vec<Self> = Vec::new();
        for queue in 0..queues {
            let mut config = AfPacketConfig { queue, ..config.clone() };
            if queues > 1 {
                let group = ports.first().map(Self::group).transpose();
                let group = group.map_err(|source| io_error(&config.interface, source))?;
                let has_program = !config.program.is_empty();
                let kind = if has_program { FanoutKind::Program } else { FanoutKind::Flow };
                config.fanout = Some(Fanout { group, kind });
            }
            ports.push(Self::open_by(opener, &config, pool)?);
        }
        Ok(ports)
    }

    /// The number of the group that it is in.
    fn group(&self) -> io::Result<u16> {
        sys::fanout(&self.socket).map(|bits| bits as u16)
    }

    fn try_open(opener: &dyn Opener, config: &AfPacketConfig, pool: &Pool) -> io::Result<Self> {
        let index = sys::index_of(&config.interface)?;
        let socket = opener.packet_socket()?;
        let ring = make_ring(&socket, config)?;
        sys::bind(&socket, index)?;
        if !matches!(sys::bound(&socket)?.1, libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK) {
            return Err(io::Error::new(ErrorKind::Unsupported, "not an Ethernet interface"));
        }
        if let Some(fanout) = config.fanout {
            sys::set_packet_option(&socket, libc::PACKET_FANOUT, fanout.bits())?;
            // The first one's is the group's.
            if fanout.kind == FanoutKind::Program && fanout.group.is_none() {
                sys::set_program(&socket, &config.program)?;
            }
        }
        if config.promiscuous {
            sys::set_promiscuous(&socket, libc::PACKET_ADD_MEMBERSHIP, index)?;
        }
        Ok(Self {
            socket,
            name: config.interface.clone(),
            index,
            is_promiscuous: config.promiscuous,
            is_gone: false,
            is_down: false,
            queue: config.queue,
            block_timeout: Duration::from_millis(config.timeout_ms().into()),
            ring,
            most_out: config.blocks as usize / 2,
            burst_frames: config.burst_frames.max(1),
            send_frames: config.send_frames.clamp(1, BATCH),
            pool: pool.clone(),
            spare: Vec::new(),
            stats: Stats::default(),
            lost: Cell::new(0),
        })
    }

    /// How long a frame on an idle link waits before it can be received, at most.
    pub fn block_timeout(&self) -> Duration {
        self.block_timeout
    }

    /// Takes a frame of the ring into the burst: in its memory, or as a copy.
    fn receive(&mut self, is_copied: bool, burst: &mut Burst) {
        let Self { ring, spare, stats, .. } = self;
        let Some(slot) = ring.take() else { return };
        let Some(Header { start, length, meta, live }) = Header::read(slot.bytes()) else {
            stats.rx_lost += 1;
            return;
        };
        let frame = if is_copied {
            copy(&slot, start, length, spare)
        } else {
            Some(slot.lend(start, length))
        };
        let Some(mut frame) = frame else {
            stats.rx_lost += 1;
            return;
        };
        stats.rx_frames += 1;
        stats.rx_bytes += length as u64;
        frame.meta = FrameMeta { number: stats.rx_frames, ..meta };
        *frame.live_mut() = LiveMeta { ifindex: Some(self.index), queue: self.queue, ..live };
        burst.push_frame(frame);
    }

    /// Whether there is a chunk to copy a frame into.
    fn has_spare(&mut self) -> bool {
        if self.spare.is_empty() {
            self.pool.fill(&mut self.spare, self.burst_frames);
        }
        !self.spare.is_empty()
    }

    /// What has become of the interface, if anything.
    fn check(&mut self) -> Result<(), PortError> {
        if self.is_gone {
            return Err(PortError::Gone { name: self.name.clone() });
        }
        match take_error(&self.socket) {
            Some(error) => {
                self.is_down = true;
                Err(self.failure(error))
            }
            // One that goes while it is down is no event of the socket's.
            None if self.is_down && is_unbound(&self.socket) => {
                Err(self.failure(ErrorKind::NotFound.into()))
            }
            None => Ok(()),
        }
    }

    /// Turns a socket's error into the port's: the interface may have been removed, or be down.
    fn failure(&mut self, error: io::Error) -> PortError {
        self.is_gone |= is_unbound(&self.socket);
        if self.is_gone {
            return PortError::Gone { name: self.name.clone() };
        }
        // So says `sendmmsg` of an interface that is down.
        let is_down = error.raw_os_error() == Some(libc::ENXIO);
        let down = || io::Error::from_raw_os_error(libc::ENETDOWN);
        io_error(&self.name, if is_down { down() } else { error })
    }

    /// Counts a frame that the kernel refused for what it is; whether that is why.
    fn count_refused(&mut self, refusal: Refusal) -> bool {
        match refusal {
            Refusal::TooLong => self.stats.tx_too_long += 1,
            Refusal::Malformed => self.stats.tx_refused += 1,
            Refusal::Later | Refusal::Failed => return false,
        }
        true
    }

    fn count_sent(&mut self, burst: &Burst, first: usize, sent: usize) {
        let bytes = burst.range(first..first + sent).map(|frame| frame.bytes.len() as u64);
        self.stats.tx_bytes += bytes.sum::<u64>();
        self.stats.tx_frames += sent as u64;
        self.stats.tx_copied += sent as u64;
    }
}

impl Port for AfPacketPort {
    /// The oldest frames of the ring. That the interface went down is said when there is nothing left to hand over.
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        burst.clear();
        while burst.len() < self.burst_frames && self.ring.has_frame() {
            let is_copied = self.ring.out() > self.most_out;
            if is_copied && !self.has_spare() {
                break;
            }
            self.receive(is_copied, burst);
        }
        self.ring.close();
        match burst.is_empty() {
            true => self.check()?,
            false => self.is_down = false,
        }
        Ok(burst.len())
    }

    fn tx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        let mut taken = 0;
        let mut failed = None;
        while taken < burst.len() {
            match send::send(self.socket.as_fd(), burst, taken, self.send_frames) {
                Ok(sent) => {
                    self.count_sent(burst, taken, sent);
                    taken += sent;
                }
                Err(error) => {
                    let refusal = Refusal::of(&error);
                    if !self.count_refused(refusal) {
                        failed = (refusal == Refusal::Failed).then_some(error);
                        break;
                    }
                    taken += 1;
                }
            }
        }
        drop_first(burst, taken);
        self.stats.tx_full += burst.len() as u64;
        match failed {
            // What was taken is said first: the next call fails, too.
            Some(error) if taken == 0 => Err(self.failure(error)),
            _ => Ok(taken),
        }
    }

    fn readiness(&self) -> Readiness<'_> {
        match self.is_down {
            true => Readiness::After(LOOK),
            false => Readiness::Descriptor(self.socket.as_fd()),
        }
    }

    fn finishes(&self) -> bool {
        true
    }

    fn stats(&self) -> Stats {
        let lost = sys::take_lost(&self.socket).unwrap_or(0);
        self.lost.set(self.lost.get() + u64::from(lost));
        Stats { rx_lost: self.stats.rx_lost + self.lost.get(), ..self.stats }
    }
}

impl Drop for AfPacketPort {
    /// Frames in flight keep the kernel's part of the socket, but not the interface's mode.
    fn drop(&mut self) {
        if self.is_promiscuous {
            // A removed interface has nothing to restore.
            let _ = sys::set_promiscuous(&self.socket, libc::PACKET_DROP_MEMBERSHIP, self.index);
        }
    }
}

/// A socket's ring. Its options come first: the kernel refuses them afterwards.
fn make_ring(socket: &OwnedFd, config: &AfPacketConfig) -> io::Result<Ring> {
    let &AfPacketConfig { blocks, block_bytes, .. } = config;
    let frames = u64::from(blocks) * u64::from(block_bytes / FRAME_BYTES);
    let frames = u32::try_from(frames).map_err(|_| io::Error::from(ErrorKind::InvalidInput))?;
    if blocks < 2 {
        return Err(io::Error::new(ErrorKind::InvalidInput, "a ring has two blocks or more"));
    }
    let options = [
        (libc::PACKET_VERSION, libc::tpacket_versions::TPACKET_V3 as c_int),
        (libc::PACKET_VNET_HDR, 1),
        (libc::PACKET_IGNORE_OUTGOING, 1),
    ];
    for (name, value) in options {
        sys::set_packet_option(socket, name, value)?;
    }
    let request = libc::tpacket_req3 {
        tp_block_size: block_bytes,
        tp_block_nr: blocks,
        tp_frame_size: FRAME_BYTES,
        tp_frame_nr: frames,
        tp_retire_blk_tov: config.timeout_ms(),
        tp_sizeof_priv: 0,
        tp_feature_req_word: 0,
    };
    sys::set_ring(socket, &request)?;
    let (blocks, block_bytes) = (blocks as usize, block_bytes as usize);
    let mapping = Mapping::ring(socket, blocks * block_bytes)?;
    Ok(Ring::new(mapping, blocks, block_bytes))
}

/// Copies the frame, if it fits a chunk.
fn copy(
    slot: &Slot<'_>,
    start: usize,
    length: usize,
    spare: &mut Vec<FrameBuf>,
) -> Option<FrameBuf> {
    let mut frame = spare.pop()?;
    frame.extend(slot.bytes().get(start..start + length)?).then_some(frame)
}

/// Drops the first frames of a burst, whose memory goes back at once.
fn drop_first(burst: &mut Burst, count: usize) {
    if count == burst.len() {
        burst.clear();
        return;
    }
    let mut left = count;
    burst.retain(|_| {
        let is_kept = left == 0;
        left = left.saturating_sub(1);
        is_kept
    });
}

fn io_error(name: &str, source: io::Error) -> PortError {
    PortError::Io { name: name.to_string(), offset: 0, source }
}
