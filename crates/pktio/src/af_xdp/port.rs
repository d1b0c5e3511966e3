//! [`AfXdpPort`]: the queues of an interface, in turn, and what becomes of it.

use std::borrow::Borrow;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use super::attach::Attached;
use super::config::{AfXdpConfig, ETHERNET, TAG};
use super::device::Device;
use super::queue::Queue;
use super::sys;
use super::umem::Umem;
use crate::burst::Burst;
use crate::frame::{ChecksumState, Direction, FrameMeta, LiveMeta, VlanTag};
use crate::link::LinkType;
use crate::memory::{FrameBuf, Memory, Region, Taken};
use crate::opener::{InProcess, Opener};
use crate::port::{Port, PortError, Stats};
use crate::readiness::Readiness;
use crate::timestamp::Timestamp;

/// Bytes of a frame before its EtherType: both addresses. A tag follows them.
const ADDRESSES: usize = 12;

/// Entries of the rings of a port that has little memory.
pub const SHORTEST_RINGS: u32 = 256;

/// Frames that a port lost, by reason, as the kernel counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XdpLosses {
    /// Frames longer than a chunk, or without one to receive into.
    pub rx_dropped: u64,
    /// Frames that there was no room for in the receive ring.
    pub rx_ring_full: u64,
    /// How often there was no chunk to receive into. Without zero-copy each of them is a frame of `rx_dropped`.
    pub rx_fill_ring_empty: u64,
}

/// An Ethernet interface, by one or several of its queues.
#[derive(Debug)]
pub struct AfXdpPort {
    /// Gone before the sockets are.
    device: Arc<Device>,
    queues: Vec<Queue>,
    /// The queue whose turn it is.
    turn: usize,
    /// Readable while a socket is, where there are several.
    any: Option<OwnedFd>,
    attached: Attached,
    umem: Umem,
    burst_frames: usize,
    /// Frames to copy into.
    spare: Vec<FrameBuf>,
    is_gone: bool,
    stats: Stats,
}

impl AfXdpPort {
    /// Opens the interface in the calling thread's namespace.
    ///
    /// # Errors
    /// When the kernel refuses: without `CAP_NET_ADMIN`, `CAP_NET_RAW` and `CAP_BPF`, without such an interface,
    /// where another program is attached; and when the interface is not Ethernet, or its frames may be longer than a
    /// chunk.
    pub fn open(config: &AfXdpConfig, umem: &Umem) -> Result<Self, PortError> {
        Self::open_by(&InProcess, config, umem)
    }

    /// Opens the interface with the privileges of `opener`, in its namespace.
    ///
    /// # Errors
    /// See [`AfXdpPort::open`]; also when nobody answers for the opener. Locked memory takes a limit that allows it
    /// (`RLIMIT_MEMLOCK`), or `CAP_IPC_LOCK`.
    pub fn open_by(
        opener: &dyn Opener,
        config: &AfXdpConfig,
        umem: &Umem,
    ) -> Result<Self, PortError> {
        let refused = |source| io_error(&config.interface, source);
        let (device, queues, attached) = Device::open(opener, config, umem).map_err(refused)?;
        let any = any_of(&queues).map_err(refused)?;
        Ok(Self {
            device: Arc::new(device),
            queues,
            turn: 0,
            any,
            attached,
            umem: umem.clone(),
            burst_frames: config.burst_frames.max(1),
            spare: Vec::new(),
            is_gone: false,
            stats: Stats::default(),
        })
    }

    /// Opens the interface with a UMEM of its own, and with shorter rings where less memory may be locked.
    ///
    /// # Errors
    /// See [`AfXdpPort::open_by`]; rings of [`SHORTEST_RINGS`] entries are too long, too.
    pub fn open_alone(opener: &dyn Opener, config: &AfXdpConfig) -> Result<Self, PortError> {
        let mut config = config.clone();
        loop {
            let umem = Umem::for_ports(std::slice::from_ref(&config))?;
            match Self::open_by(opener, &config, &umem) {
                Err(PortError::Io { source, .. })
                    if source.raw_os_error() == Some(libc::ENOBUFS)
                        && config.ring_frames > SHORTEST_RINGS =>
                {
                    config.ring_frames /= 2;
                }
                opened => return opened,
            }
        }
    }

    /// Splits the port into `parts` ports, for a thread each, with its queues in turn; fewer, if there are fewer
    /// queues.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub fn into_parts(self, parts: usize) -> Result<Vec<Self>, PortError> {
        let Self { device, queues, attached, umem, burst_frames, .. } = self;
        let mut of_parts: Vec<Vec<Queue>> = Vec::new();
        of_parts.resize_with(parts.clamp(1, queues.len()), Vec::new);
        let count = of_parts.len();
        for (at, queue) in queues.into_iter().enumerate() {
            of_parts[at % count].push(queue);
        }
        let part = |queues: Vec<Queue>| {
            let any = any_of(&queues).map_err(|source| io_error(&device.name, source))?;
            Ok(Self {
                device: Arc::clone(&device),
                queues,
                turn: 0,
                any,
                attached: attached.clone(),
                umem: umem.clone(),
                burst_frames,
                spare: Vec::new(),
                is_gone: false,
                stats: Stats::default(),
            })
        };
        of_parts.into_iter().map(part).collect()
    }

    /// What it is attached by, of all queues of the interface.
    pub fn attached(&self) -> &Attached {
        &self.attached
    }

    /// Frames that it lost, by cause; [`Stats::rx_lost`] is the sum of the first two, and what was unreadable.
    pub fn losses(&self) -> XdpLosses {
        let mut losses = XdpLosses::default();
        let counts = self.queues.iter().filter_map(|queue| sys::statistics(&queue.socket).ok());
        for count in counts {
            losses.rx_dropped += count.rx_dropped;
            losses.rx_ring_full += count.rx_ring_full;
            losses.rx_fill_ring_empty += count.rx_fill_ring_empty_descs;
        }
        losses
    }

    /// Takes the next frames of the queue whose turn it is.
    fn receive(&mut self, burst: &mut Burst) {
        let Self { device, queues, turn, stats, .. } = self;
        let queue = &mut queues[*turn];
        queue.recycle();
        // The clock is asked once for a burst.
        let mut timestamp = None;
        let live = LiveMeta {
            ifindex: Some(device.index),
            queue: queue.number,
            checksum: ChecksumState::MaybeUnfinished,
            ..LiveMeta::default()
        };
        let lost = queue.receive(self.burst_frames, |mut frame| {
            stats.rx_frames += 1;
            stats.rx_bytes += frame.length as u64;
            frame.meta = FrameMeta {
                number: stats.rx_frames,
                timestamp: *timestamp.get_or_insert_with(|| Some(Timestamp::now())),
                wire_length: frame.length as u32,
                link_type: LinkType::ETHERNET,
                interface: 0,
                direction: Direction::Inbound,
            };
            *frame.live_mut() = live;
            burst.push_frame(frame);
        });
        stats.rx_lost += lost;
    }

    /// What has become of the interface, if anything.
    fn check(&mut self) -> Result<(), PortError> {
        for queue in &self.queues {
            // Nothing else happens to such a socket.
            self.is_gone |= queue.check().is_break();
        }
        match self.is_gone {
            true => Err(PortError::Gone { name: self.device.name.clone() }),
            false => Ok(()),
        }
    }

    /// The error of a call to transmit.
    fn failure(&mut self, source: io::Error) -> PortError {
        // The kernel's answer for a socket whose interface has been removed.
        self.is_gone |= source.raw_os_error() == Some(libc::ENXIO);
        match self.is_gone {
            true => PortError::Gone { name: self.device.name.clone() },
            false => io_error(&self.device.name, source),
        }
    }

    /// How many of the burst's first `most` frames there is memory for.
    fn with_memory(&mut self, burst: &Burst, most: usize) -> usize {
        let is_foreign = |at: &usize| !burst.is_of(*at, &self.umem.shared);
        let wanted = (0..most).filter(is_foreign).count();
        self.umem.fill(&mut self.spare, wanted);
        let beyond = (0..most).filter(is_foreign).nth(self.spare.len());
        beyond.unwrap_or(most)
    }

    /// Where a frame lies in this UMEM, as it is transmitted; `None` if it cannot be.
    fn prepare(&mut self, taken: Taken<'_>) -> Option<(Memory, Range<usize>)> {
        let bytes = match &taken {
            Taken::Moved(frame) => frame.bytes(),
            Taken::Lent { bytes, .. } => bytes,
        };
        let live = match &taken {
            Taken::Moved(frame) => *frame.live(),
            Taken::Lent { .. } => LiveMeta::default(),
        };
        let length = bytes.len() + if live.vlan.is_some() { TAG } else { 0 };
        if length > self.device.most_bytes {
            self.stats.tx_too_long += 1;
            return None;
        }
        if length < ETHERNET || matches!(live.checksum, ChecksumState::Unfinished { .. }) {
            self.stats.tx_refused += 1;
            return None;
        }
        // There was memory, and room for a tag before a frame of this UMEM.
        let place = match taken {
            Taken::Moved(frame) if frame.is_of(&self.umem.shared) => self.place(frame, live.vlan),
            _ => {
                let copy = self.spare.pop();
                let copy = copy.and_then(|mut copy| copy.extend(bytes).then_some(copy));
                copy.and_then(|copy| self.place(copy, live.vlan))
            }
        };
        self.stats.tx_refused += u64::from(place.is_none());
        place
    }

    /// Where a frame of this UMEM lies, with the tag that was taken out of it.
    fn place<R: Borrow<Arc<dyn Region>>>(
        &self,
        mut frame: FrameBuf<R>,
        tag: Option<VlanTag>,
    ) -> Option<(Memory, Range<usize>)> {
        if let Some(tag) = tag {
            put_back(&mut frame, tag)?;
        }
        frame.reclaim(&self.umem.shared)
    }
}

/// Readable while a socket of these queues is, where there are several.
fn any_of(queues: &[Queue]) -> io::Result<Option<OwnedFd>> {
    let several = queues.len() > 1;
    several.then(|| sys::any_of(queues.iter().map(|queue| &queue.socket))).transpose()
}

/// Puts back the tag that was taken out of a frame; `None` if there is no room for it.
fn put_back<R: Borrow<Arc<dyn Region>>>(
    frame: &mut FrameBuf<R>,
    VlanTag { tci, tpid }: VlanTag,
) -> Option<()> {
    let bytes = frame.grow_front(TAG)?;
    bytes.copy_within(TAG..TAG + ADDRESSES, 0);
    bytes[ADDRESSES..ADDRESSES + 2].copy_from_slice(&tpid.to_be_bytes());
    bytes[ADDRESSES + 2..ADDRESSES + TAG].copy_from_slice(&tci.to_be_bytes());
    Some(())
}

impl Port for AfXdpPort {
    /// The oldest frames of the first queue in turn that has any.
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        burst.clear();
        for _ in 0..self.queues.len() {
            self.receive(burst);
            let resumed = self.queues[self.turn].resume();
            self.turn = (self.turn + 1) % self.queues.len();
            match resumed {
                Err(error) if burst.is_empty() => return Err(self.failure(error)),
                _ if !burst.is_empty() => return Ok(burst.len()),
                _ => {}
            }
        }
        self.check()?;
        Ok(0)
    }

    /// Transmits by the first queue.
    fn tx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        let room = match self.queues[0].room(burst.len()) {
            Ok(room) => room,
            Err(error) => {
                self.stats.tx_full += burst.len() as u64;
                return Err(self.failure(error));
            }
        };
        let count = self.with_memory(burst, room);
        for taken in burst.drain(count) {
            let is_copied =
                !matches!(&taken, Taken::Moved(frame) if frame.is_of(&self.umem.shared));
            let Some((memory, range)) = self.prepare(taken) else { continue };
            self.stats.tx_frames += 1;
            self.stats.tx_bytes += range.len() as u64;
            self.stats.tx_copied += u64::from(is_copied);
            self.queues[0].put(memory, range);
        }
        self.stats.tx_full += burst.len() as u64;
        // What was put is the kernel's: if that fails, the next call does, too.
        let _ = self.queues[0].submit();
        Ok(count)
    }

    fn readiness(&self) -> Readiness<'_> {
        Readiness::Descriptor(self.any.as_ref().unwrap_or(&self.queues[0].socket).as_fd())
    }

    fn stats(&self) -> Stats {
        let XdpLosses { rx_dropped, rx_ring_full, .. } = self.losses();
        Stats { rx_lost: self.stats.rx_lost + rx_dropped + rx_ring_full, ..self.stats }
    }
}

fn io_error(name: &str, source: io::Error) -> PortError {
    PortError::Io { name: name.to_string(), offset: 0, source }
}
