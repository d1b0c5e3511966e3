//! [`TunPort`]: what is received from a queue, and sent to it.

use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::num::NonZeroU32;

use libc::c_uint;

use super::lanes::Lanes;
use super::sys;
use crate::burst::Burst;
use crate::frame::{Direction, FrameMeta, LiveMeta};
use crate::link::LinkType;
use crate::memory::FrameBuf;
use crate::opener::{InProcess, Opener, TunLanes};
use crate::pool::Pool;
use crate::port::{Port, PortError, Stats};
use crate::readiness::Readiness;
use crate::timestamp::Timestamp;
use crate::vnet;

/// Bytes after which a burst ends: superframes of one burst stay in a core's own cache.
const BURST_BYTES: u64 = 256 * 1024;

/// How to open a TUN device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunConfig {
    /// The device's name, at most 15 bytes; `%d` in it becomes the first free number. Empty: the kernel names it.
    pub name: String,
    /// How many queues to open: one port each.
    pub queues: u16,
    /// Whether frames may come unfinished: superframes, and checksums still to be computed.
    pub offload: bool,
    /// Frames received at once, at most.
    pub burst_frames: usize,
    /// The lanes of the only queue; not of one among several.
    pub lanes: Option<TunLanes>,
}

/// What the kernel leaves unfinished in frames that it hands over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offloads {
    /// Checksums of TCP and UDP.
    pub checksum: bool,
    /// Cutting into TCP segments.
    pub tcp: bool,
    /// Cutting into UDP datagrams (Linux 6.2 or later).
    pub udp: bool,
}

impl Offloads {
    const NONE: Self = Self { checksum: false, tcp: false, udp: false };
    const TCP: Self = Self { checksum: true, tcp: true, udp: false };
    const ALL: Self = Self { checksum: true, tcp: true, udp: true };

    fn features(self) -> c_uint {
        let one = |is_on: bool, features: c_uint| if is_on { features } else { 0 };
        one(self.checksum, libc::TUN_F_CSUM)
            | one(self.tcp, libc::TUN_F_TSO4 | libc::TUN_F_TSO6)
            | one(self.udp, libc::TUN_F_USO4 | libc::TUN_F_USO6)
    }
}

/// One queue of a TUN device.
#[derive(Debug)]
pub struct TunPort {
    lanes: Lanes,
    name: String,
    offloads: Offloads,
    /// What its frames have in common.
    live: LiveMeta,
    pool: Pool,
    burst_frames: usize,
    /// Frames to read into, whatever is in them.
    spare: Vec<FrameBuf>,
    stats: Stats,
}

impl TunPort {
    /// Bytes of the longest frame: an IPv6 header and as many bytes as its length field says. A pool's frames
    /// should be as long where offloads are on, and as long as the device's MTU where not; longer frames are lost,
    /// and counted.
    pub const FRAME_BYTES: usize = 40 + 65_535;

    /// Opens the device in the calling thread's namespace, or makes it, with a port for each queue. They read into
    /// chunks of `pool`, which needs more of them than the ports keep: `burst_frames` each.
    ///
    /// # Errors
    /// When the kernel refuses: without `CAP_NET_ADMIN`, without TUN devices, under a name that is no TUN device's.
    pub fn open(config: &TunConfig, pool: &Pool) -> Result<Vec<Self>, PortError> {
        Self::open_by(&InProcess, config, pool)
    }

    /// Opens the queues as [`TunPort::open`] does, through `opener`.
    ///
    /// # Errors
    /// See [`TunPort::open`].
    pub fn open_by(
        opener: &dyn Opener,
        config: &TunConfig,
        pool: &Pool,
    ) -> Result<Vec<Self>, PortError> {
        let mut ports: Vec<Self> = Vec::new();
        for number in 0..config.queues {
            // The first one's name is that of all, whatever was asked for.
            let name = ports.first().map_or(&config.name, |first| &first.name).clone();
            ports.push(Self::open_queue(opener, config, &name, number, pool)?);
        }
        Ok(ports)
    }

    fn open_queue(
        opener: &dyn Opener,
        config: &TunConfig,
        name: &str,
        number: u16,
        pool: &Pool,
    ) -> Result<Self, PortError> {
        let is_only = config.queues == 1;
        let opened = match &config.lanes {
            Some(lanes) if is_only => opener.tun_lanes(name, lanes),
            _ => opener.tun_queue(name, is_only).map(|(queue, name)| (vec![queue], name)),
        };
        let (queues, name) = opened.map_err(refused(name))?;
        let lanes = Lanes::new(queues).map_err(refused(&name))?;
        // Both are the device's: what is set by one queue holds for all.
        sys::set_header_length(lanes.first(), vnet::LENGTH).map_err(refused(&name))?;
        let wanted = if config.offload { Offloads::ALL } else { Offloads::NONE };
        let offloads = set_offloads(lanes.first(), wanted).map_err(refused(&name))?;
        let ifindex: Option<NonZeroU32> = sys::index_of(&name);
        Ok(Self {
            lanes,
            name,
            offloads,
            live: LiveMeta { ifindex, queue: number, ..LiveMeta::default() },
            pool: pool.clone(),
            burst_frames: config.burst_frames.max(1),
            spare: Vec::new(),
            stats: Stats::default(),
        })
    }

    /// The device's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the kernel leaves unfinished.
    pub fn offloads(&self) -> Offloads {
        self.offloads
    }

    /// Takes a frame that was read, `length` bytes with its header, or what is left of it; false if it is lost.
    fn take(
        &mut self,
        lane: usize,
        frame: &mut FrameBuf,
        header: &[u8; vnet::LENGTH],
        length: usize,
    ) -> bool {
        let length = length.saturating_sub(vnet::LENGTH);
        let is_whole = length <= frame.length;
        let Some((checksum, segments)) = vnet::decode(header).filter(|_| is_whole) else {
            self.stats.rx_lost += 1;
            return false;
        };
        frame.length = length;
        self.stats.rx_frames += 1;
        self.stats.rx_bytes += length as u64;
        let queue = self.live.queue + lane as u16;
        *frame.live_mut() = LiveMeta { checksum, segments, queue, ..self.live };
        true
    }

    /// Receives what a lane has, up to a turn's bytes and what there is room for; returns whether it may have more.
    ///
    /// # Errors
    /// The port has failed, and there is nothing to hand over.
    fn take_turn(
        &mut self,
        lane: usize,
        burst: &mut Burst,
        timestamp: &mut Option<Timestamp>,
        most: u64,
    ) -> Result<bool, PortError> {
        let before = self.stats.rx_bytes;
        while self.stats.rx_bytes - before < most && burst.len() < self.burst_frames {
            let Some(mut frame) = self.spare.pop() else { return Ok(true) };
            let (mut header, mut beyond) = ([0; vnet::LENGTH], [0]);
            match read(self.lanes.get(lane), &mut header, &mut frame, &mut beyond) {
                Ok(length) if self.take(lane, &mut frame, &header, length) => {
                    // The clock is asked once for a burst.
                    *timestamp = timestamp.or_else(|| Some(Timestamp::now()));
                    frame.meta = FrameMeta {
                        number: self.stats.rx_frames,
                        timestamp: *timestamp,
                        wire_length: frame.length as u32,
                        link_type: LinkType::RAW,
                        interface: 0,
                        direction: Direction::Inbound,
                    };
                    burst.push_frame(frame);
                }
                Ok(_) => self.spare.push(frame),
                Err(error) => {
                    self.spare.push(frame);
                    if is_later(&error) || !burst.is_empty() {
                        return Ok(false);
                    }
                    return Err(self.failure(error));
                }
            }
        }
        Ok(true)
    }

    fn failure(&self, source: io::Error) -> PortError {
        let name = self.name.clone();
        match source.raw_os_error() {
            Some(libc::EBADFD) => PortError::Gone { name },
            _ => PortError::Io { name, offset: 0, source },
        }
    }

    /// Counts a frame that was offered to the kernel.
    ///
    /// # Errors
    /// When it is neither sent nor to be dropped: there is no room for it now, or the port has failed.
    fn count_sent(&mut self, sent: io::Result<usize>, length: usize) -> io::Result<()> {
        match sent {
            Ok(_) => {
                self.stats.tx_frames += 1;
                self.stats.tx_bytes += length as u64;
            }
            Err(error) => match error.raw_os_error() {
                Some(libc::EMSGSIZE) => self.stats.tx_too_long += 1,
                // No IP packet, or none as its header says; the device is down.
                Some(libc::EINVAL | libc::EIO) => self.stats.tx_refused += 1,
                _ => return Err(error),
            },
        }
        Ok(())
    }
}

impl Port for TunPort {
    /// The oldest frames of the lanes, in turn. A device that was deleted is an error once there is nothing left to hand
    /// over.
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        burst.clear();
        self.pool.fill(&mut self.spare, self.burst_frames);
        self.lanes.find_ready().map_err(|error| self.failure(error))?;
        let (mut timestamp, before) = (None, self.stats.rx_bytes);
        while let Some(room) = BURST_BYTES.checked_sub(self.stats.rx_bytes - before)
            && room > 0
            && burst.len() < self.burst_frames
            && !self.spare.is_empty()
            && let Some(lane) = self.lanes.next()
        {
            let from = self.stats.rx_bytes;
            let most = self.lanes.most(room);
            let has_more = self.take_turn(lane, burst, &mut timestamp, most)?;
            self.lanes.end_turn(lane, self.stats.rx_bytes - from, has_more);
        }
        Ok(burst.len())
    }

    /// Writes frame by frame, each with its vnet header. Frames of any memory are taken, and none is copied but by
    /// the kernel.
    fn tx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        let mut taken = 0;
        let mut stopped = None;
        for frame in burst.iter() {
            let header = burst.live(taken).map_or([0; vnet::LENGTH], vnet::encode);
            let parts = [IoSlice::new(&header), IoSlice::new(frame.bytes)];
            let sent = self.lanes.first().write_vectored(&parts);
            if let Err(error) = self.count_sent(sent, frame.bytes.len()) {
                stopped = Some(error).filter(|error| !is_later(error));
                break;
            }
            taken += 1;
        }
        // All of their chunks at once, unlike `drain`.
        let mut place = 0;
        burst.retain(|_| {
            place += 1;
            place > taken
        });
        self.stats.tx_full += burst.len() as u64;
        match stopped {
            Some(error) if taken == 0 => Err(self.failure(error)),
            _ => Ok(taken),
        }
    }

    fn readiness(&self) -> Readiness<'_> {
        Readiness::Descriptor(self.lanes.readiness())
    }

    fn finishes(&self) -> bool {
        true
    }

    fn stats(&self) -> Stats {
        self.stats
    }
}

/// Reads a frame to all the room after the headroom of `frame`, and what does not fit into `beyond`: the kernel cuts
/// without a word. The number of bytes, header included.
fn read(
    mut queue: &File,
    header: &mut [u8],
    frame: &mut FrameBuf,
    beyond: &mut [u8],
) -> io::Result<usize> {
    frame.length = frame.chunk.memory.bytes().len() - frame.start;
    let room = IoSliceMut::new(frame.bytes_mut());
    queue.read_vectored(&mut [IoSliceMut::new(header), room, IoSliceMut::new(beyond)])
}

/// Sets what is wanted, less what the kernel does not know.
fn set_offloads(queue: &File, wanted: Offloads) -> io::Result<Offloads> {
    match sys::set_offload(queue, wanted.features()) {
        Err(error) if wanted.udp && error.kind() == ErrorKind::InvalidInput => {
            sys::set_offload(queue, Offloads::TCP.features()).map(|()| Offloads::TCP)
        }
        set => set.map(|()| wanted),
    }
}

fn refused(name: &str) -> impl FnOnce(io::Error) -> PortError {
    let name = name.to_string();
    |source| PortError::Io { name, offset: 0, source }
}

/// Whether the same call may do better later: there is nothing to read, or no memory to write to.
fn is_later(error: &io::Error) -> bool {
    let is_short = matches!(error.raw_os_error(), Some(libc::ENOBUFS | libc::ENOMEM));
    is_short || matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
