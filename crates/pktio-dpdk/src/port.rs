//! [`DpdkPort`]: a queue of a device, driven by its poll mode driver.
//!
//! Contract: frames are received in the mbufs that the driver wrote them to, and a frame in an mbuf of the same NUMA
//! node is sent from where it lies. Any other is copied, and counted.
//!
//! - A frame in several mbufs, or in memory that others share, is copied into one mbuf as it comes; a frame that is
//!   longer than an mbuf is lost, and counted.
//! - Frames to send are collected, up to [`DpdkConfig::tx_burst`], and sent by the first call, receiving or
//!   transmitting, that finds so many frames, or the first of them older than [`DpdkConfig::drain`]. A worker polls, so
//!   a frame leaves even if no other follows. What a device takes is counted then.
//! - A tag that the device took out is put back into the bytes. A frame whose checksum is unfinished, or that is to be
//!   cut into segments, is refused: drivers do not say alike who does that. Wires complete checksums as frames come.
//! - There is no event to wait for: a worker that waits for frames polls ([`Readiness::After`] no time).
//! - One thread drives a port. The last port of a device closes it.

use std::iter;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pktio::{
    Burst, ChecksumState, Direction, FrameMeta, LinkType, LiveMeta, Port, PortError, Readiness,
    Stats, VlanTag,
};

use crate::config::DpdkConfig;
use crate::device::Device;
use crate::eal::Eal;
use crate::mbuf::Mbufs;
use crate::sys::{self, Frame, Mbuf, Queue, Received};

/// Drivers take out tags of this kind.
const CUSTOMER_TAG: u16 = 0x8100;
/// Bytes before a tag: both addresses.
const ADDRESSES: usize = 12;
const TAG: usize = 4;

/// How often what is left is offered to the device as the port closes.
const LAST_OFFERS: usize = 100;

/// A queue of a device.
#[derive(Debug)]
pub struct DpdkPort {
    // Before the device, which it is a part of.
    queue: Queue,
    leaving: Leaving,
    device: Arc<Device>,
    eal: Eal,
    /// Whether the port's thread is registered with the EAL.
    is_known: bool,
    stats: Stats,
}

/// Frames that are collected to be sent.
#[derive(Debug)]
struct Leaving {
    frames: Vec<sys::Leaving>,
    /// When the first of them came.
    since: Option<Instant>,
    enough: usize,
    drain: Duration,
}

impl DpdkPort {
    /// Opens a device: one port for each queue.
    ///
    /// # Errors
    /// There is no such device, its memory cannot be had, or its driver refuses.
    pub fn open(eal: &Eal, config: &DpdkConfig) -> Result<Vec<Self>, PortError> {
        let device = Device::open(eal, config).map_err(|source| {
            let name = config.device.clone();
            PortError::Io { name, offset: 0, source }
        })?;
        let device = Arc::new(device);
        let port = |number| Self::new(eal, config, &device, number);
        Ok((0..device.queues).map(port).collect())
    }

    fn new(eal: &Eal, config: &DpdkConfig, device: &Arc<Device>, number: u16) -> Self {
        let [rx_burst, enough] =
            [config.rx_burst, config.tx_burst].map(|size| size.clamp(1, DpdkConfig::MOST_BURST));
        Self {
            queue: Queue::new(device.number(), number, rx_burst),
            leaving: Leaving {
                frames: Vec::with_capacity(enough),
                since: None,
                enough,
                drain: config.drain,
            },
            device: Arc::clone(device),
            eal: eal.clone(),
            is_known: false,
            stats: Stats::default(),
        }
    }

    /// The memory that its frames are in.
    #[must_use]
    pub fn mbufs(&self) -> Mbufs {
        Mbufs { pool: Arc::clone(&self.device.pool) }
    }

    /// Makes the thread that drives the port known to the EAL.
    fn enter(&mut self) {
        if !self.is_known {
            self.eal.register_thread();
            self.is_known = true;
        }
    }

    /// Takes the memory of frames of a burst, to be sent.
    fn take(&mut self, burst: &mut Burst, frames: Range<usize>) {
        let Self { leaving, device, stats, .. } = self;
        for at in frames {
            match leave(burst, at, device) {
                Ok((frame, is_copied)) => {
                    leaving.frames.push(frame);
                    stats.tx_copied += u64::from(is_copied);
                }
                Err(Refused::TooLong) => stats.tx_too_long += 1,
                Err(Refused::Unfit) => stats.tx_refused += 1,
            }
        }
    }

    /// Offers what is collected to the device.
    fn send(&mut self) {
        let Self { queue, leaving, stats, .. } = self;
        stats.tx_frames += queue.send(&mut leaving.frames, &mut stats.tx_bytes) as u64;
        leaving.since = None;
    }

    /// Sends what is enough, or has waited long enough.
    fn send_due(&mut self) {
        let Leaving { frames, since, enough, drain } = &mut self.leaving;
        if frames.is_empty() {
            return;
        }
        let mut is_old = || since.get_or_insert_with(Instant::now).elapsed() >= *drain;
        if frames.len() >= *enough || is_old() {
            self.send();
        }
    }
}

impl Port for DpdkPort {
    fn rx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        burst.clear();
        self.enter();
        self.send_due();
        let Self { queue, device, stats, .. } = self;
        let number = queue.number();
        let (mut received, mut bytes) = (Received::default(), 0);
        for (frame, at) in queue.receive(device.pool.pool, &mut received).zip(1..) {
            bytes += frame.length as u64;
            let (meta, live) = known_of(&frame, stats.rx_frames + at, number);
            let place = (frame.start, frame.length);
            burst.push_memory(frame.memory, &device.pool, place, (meta, live));
        }
        stats.rx_frames += burst.len() as u64;
        stats.rx_bytes += bytes;
        stats.rx_lost += received.lost;
        Ok(burst.len())
    }

    fn tx_burst(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        self.enter();
        let (offered, mut taken) = (burst.len(), 0);
        while taken < offered {
            let room = self.leaving.enough - self.leaving.frames.len();
            let until = offered.min(taken + room);
            self.take(burst, taken..until);
            taken = until;
            self.send_due();
            if self.leaving.frames.len() == self.leaving.enough {
                break;
            }
        }
        drop(burst.drain(taken));
        self.stats.tx_full += burst.len() as u64;
        Ok(taken)
    }

    fn readiness(&self) -> Readiness<'_> {
        Readiness::After(Duration::ZERO)
    }

    /// The first port reports the frames that the device lost on all queues.
    fn stats(&self) -> Stats {
        let lost = if self.queue.number() == 0 { self.device.lost() } else { 0 };
        Stats { rx_lost: self.stats.rx_lost + lost, ..self.stats }
    }
}

impl Drop for DpdkPort {
    /// Sends what is left, if the device takes it; what it does not take is freed.
    fn drop(&mut self) {
        for _ in 0..LAST_OFFERS {
            if self.leaving.frames.is_empty() {
                return;
            }
            self.send();
        }
        Mbuf::free(self.leaving.frames.drain(..).map(sys::Leaving::into_mbuf));
    }
}

/// What is known of a frame that was received.
#[inline]
fn known_of(frame: &Frame, number: u64, queue: u16) -> (FrameMeta, LiveMeta) {
    let meta = FrameMeta {
        number,
        wire_length: frame.length as u32,
        link_type: LinkType::ETHERNET,
        direction: Direction::Inbound,
        ..FrameMeta::default()
    };
    let checksum =
        if frame.is_verified { ChecksumState::Verified } else { ChecksumState::NotKnown };
    let vlan = frame.tci.map(|tci| VlanTag { tci, tpid: CUSTOMER_TAG });
    (meta, LiveMeta { queue, checksum, vlan, ..LiveMeta::default() })
}

/// Why a frame is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    TooLong,
    /// The frame has no link header or an unfinished checksum, or there is no mbuf to copy it into.
    Unfit,
}

/// Where a frame of a burst is sent from: its own mbuf, or a copy's; and whether that is so.
#[inline]
fn leave(burst: &mut Burst, at: usize, device: &Device) -> Result<(sys::Leaving, bool), Refused> {
    if let Some(&LiveMeta { segments, checksum, vlan, .. }) = burst.live(at) {
        if segments.is_some() {
            return Err(Refused::TooLong);
        }
        if matches!(checksum, ChecksumState::Unfinished { .. }) {
            return Err(Refused::Unfit);
        }
        if let Some(tag) = vlan {
            put_tag_back(burst, at, tag)?;
        }
    }
    if let Some((memory, range)) = burst.reclaim(at, &device.pool) {
        let fits = check_length(range.len(), device);
        let frame = sys::Leaving::new(memory, range).ok_or(Refused::Unfit)?;
        return match fits {
            Ok(()) => Ok((frame, false)),
            Err(refused) => {
                Mbuf::free(iter::once(frame.into_mbuf()));
                Err(refused)
            }
        };
    }
    check_length(bytes_of(burst, at).len(), device)?;
    let copy = device.pool.pool.copy(bytes_of(burst, at));
    copy.map(|copy| (copy, true)).ok_or(Refused::Unfit)
}

#[inline]
fn bytes_of(burst: &Burst, at: usize) -> &[u8] {
    burst.get(at).map_or(&[], |frame| frame.bytes)
}

fn check_length(length: usize, device: &Device) -> Result<(), Refused> {
    match length {
        0..=ADDRESSES => Err(Refused::Unfit),
        _ if length > device.frame_bytes => Err(Refused::TooLong),
        _ => Ok(()),
    }
}

/// Puts a tag after the addresses.
fn put_tag_back(
    burst: &mut Burst,
    at: usize,
    VlanTag { tci, tpid }: VlanTag,
) -> Result<(), Refused> {
    if bytes_of(burst, at).len() < ADDRESSES {
        return Err(Refused::Unfit);
    }
    let bytes = burst.grow_front(at, TAG).ok_or(Refused::TooLong)?.bytes;
    bytes.copy_within(TAG..TAG + ADDRESSES, 0);
    let ([a, b], [c, d]) = (tpid.to_be_bytes(), tci.to_be_bytes());
    bytes[ADDRESSES..ADDRESSES + TAG].copy_from_slice(&[a, b, c, d]);
    Ok(())
}

#[cfg(test)]
mod tests {
    use pktio::Pool;

    use super::*;

    fn burst(bytes: &[u8], headroom: usize) -> Burst {
        let mut frame = Pool::new(1, 64, headroom).take().unwrap();
        assert!(frame.extend(bytes));
        let mut burst = Burst::with_capacity(0);
        burst.push_frame(frame);
        burst
    }

    #[test]
    fn a_tag_stands_after_the_addresses_again() {
        let mut tagged = burst(b"destinsourceipwhatever", 4);
        let tag = VlanTag { tci: 0x2005, tpid: 0x88a8 };
        assert_eq!(put_tag_back(&mut tagged, 0, tag), Ok(()));
        assert_eq!(bytes_of(&tagged, 0), b"destinsource\x88\xa8\x20\x05ipwhatever");
    }

    #[test]
    fn a_tag_needs_addresses_and_room_before_them() {
        let tag = VlanTag { tci: 1, tpid: CUSTOMER_TAG };
        let refused = |bytes: &[u8], headroom| put_tag_back(&mut burst(bytes, headroom), 0, tag);
        assert_eq!(refused(b"destinsource", 3), Err(Refused::TooLong));
        assert_eq!(refused(b"short", 8), Err(Refused::Unfit));
    }
}
