//! [`Batch`]: packets on their way from the captures to the report, and what is known of each of them.

use std::ops::Range;
use std::sync::Arc;

use conntrack::States;
use dataplane::{
    Arrival, Bridge, Disposition, Footprint, Left, Origin, Program, Skip, find_headers,
};
use host::sighting::{Seen, Sighting};
use packet::{Headers, Link};
use pktio::{Burst, Frame, FrameMeta, FrameMut, Interface};

use crate::decider::Decider;
use crate::groups::CallPath;
use dataplane::link_of;

/// Bytes of frames that are read and evaluated together: they stay in the cache.
pub(crate) const BATCH_BYTES: usize = 64 * 1024;

/// Frames that are read and evaluated together.
pub(crate) struct Batch {
    /// The frames to evaluate.
    pub(crate) burst: Burst,
    /// For each frame, when and which it is.
    pub(crate) arrived: Vec<Arrived>,
    /// For each frame, what it is; empty where nothing tells of any.
    pub(crate) seen: Vec<Seen>,
    /// What is known of the captures.
    pub(crate) stream: Stream,
    /// The result of each frame, where somebody wants to know.
    pub(crate) outcomes: Vec<Outcome>,
    /// What its worker's packets have left up to here that concerns other workers.
    pub(crate) footprint: Footprint,
}

/// A frame's place in the stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrived {
    /// Its number in its capture, from 1, and which capture that is: see [`crate::Numbers`].
    pub(crate) number: u64,
    /// Its time in nanoseconds since the Unix epoch; when it is handed out, made to run forward.
    pub(crate) time: Option<u64>,
}

/// What is known of the captures when a batch is handed out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stream {
    /// Their interfaces so far.
    pub(crate) interfaces: Arc<[Interface]>,
    /// Names of the devices that frames were seen at, by number.
    pub(crate) devices: Names,
    /// No frame was seen that the host sent, though the captures tell which way frames went.
    pub(crate) one_sided: bool,
    /// The time of the first frame.
    pub(crate) began: Option<u64>,
}

/// Names of devices by number, from 1.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names(Arc<[Option<Arc<str>>]>);

/// The result of one frame.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) end: Disposition,
    pub(crate) by: Decider,
    /// By which jumps it came there, if that is wanted and it stands in the rules.
    pub(crate) path: Option<Box<CallPath>>,
    /// Its result under the rules of `--vs`.
    pub(crate) new: Option<(Disposition, Decider)>,
    /// The interfaces that it came in and goes out by, where known and wanted.
    pub(crate) sides: [Option<String>; 2],
    /// The states that its connection may be in, where one is tracked.
    pub(crate) states: Option<States>,
}

/// One frame of a batch.
pub(crate) struct StreamFrame<'b> {
    /// Its captured bytes.
    pub(crate) bytes: &'b mut [u8],
    pub(crate) meta: &'b FrameMeta,
    pub(crate) arrived: Arrived,
    /// What it is.
    pub(crate) seen: &'b Seen,
    stream: &'b Stream,
}

impl Names {
    /// All of them.
    pub(crate) fn all(&self) -> &[Option<Arc<str>>] {
        &self.0
    }

    /// The name of a device, if it is known.
    pub(crate) fn of(&self, device: u32) -> Option<&str> {
        self.0.get((device as usize).checked_sub(1)?)?.as_deref()
    }
}

impl FromIterator<Option<Arc<str>>> for Names {
    fn from_iter<I: IntoIterator<Item = Option<Arc<str>>>>(names: I) -> Self {
        Self(names.into_iter().collect())
    }
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            burst: Burst::with_capacity(BATCH_BYTES),
            arrived: Vec::new(),
            seen: Vec::new(),
            stream: Stream::default(),
            outcomes: Vec::new(),
            footprint: Footprint::default(),
        }
    }
}

impl Batch {
    /// Forgets the frames and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.burst.clear();
        self.arrived.clear();
        self.seen.clear();
        self.outcomes.clear();
    }

    /// Finds the headers of some of its frames, as this program is to see them; none of a frame that it never sees.
    pub(crate) fn headers(
        &self,
        range: Range<usize>,
        program: &Program,
    ) -> impl Iterator<Item = Option<Headers>> {
        let frames = self.burst.range(range.clone()).zip(range);
        frames.map(|(Frame { bytes, meta }, at)| {
            let seen = seen_at(&self.seen, at);
            let link = link_of(meta.link_type).filter(|_| skip_of(seen).is_none())?;
            let wire_len = meta.wire_length as usize;
            Some(find_headers(program, bytes, link, wire_len, origin_of(seen)))
        })
    }

    /// Its frames in order.
    pub(crate) fn frames(&mut self) -> impl Iterator<Item = StreamFrame<'_>> {
        self.range(0..self.arrived.len())
    }

    /// Some of its frames in order.
    pub(crate) fn range(&mut self, range: Range<usize>) -> impl Iterator<Item = StreamFrame<'_>> {
        let Self { burst, arrived, seen, stream, .. } = self;
        let (arrived, seen, stream) = (&*arrived, &*seen, &*stream);
        burst.range_mut(range.clone()).zip(range).map(move |(FrameMut { bytes, meta }, at)| {
            StreamFrame { bytes, meta, arrived: arrived[at], seen: seen_at(seen, at), stream }
        })
    }
}

/// Why a frame is no packet of its own, if it is none.
#[inline]
fn skip_of(seen: &Seen) -> Option<Skip> {
    match seen.sighting {
        Sighting::Second { .. } => Some(Skip::Second),
        Sighting::Lower { .. } => Some(Skip::Lower),
        Sighting::OtherHost => Some(Skip::OtherHost),
        Sighting::Unknown | Sighting::Arrival | Sighting::Own => None,
    }
}

/// Where a frame comes from, by what it was seen to be.
#[inline]
fn origin_of(seen: &Seen) -> Origin {
    match seen.sighting {
        Sighting::Arrival => Origin::Wire,
        Sighting::Own => Origin::Host,
        _ => Origin::Addresses,
    }
}

/// What the frame at a place of [`Batch::seen`] is.
pub(crate) fn seen_at(seen: &[Seen], at: usize) -> &Seen {
    seen.get(at).unwrap_or(&Seen::NOTHING)
}

impl<'b> StreamFrame<'b> {
    /// How to read it, if tamis can.
    pub(crate) fn link(&self) -> Option<Link> {
        link_of(self.meta.link_type)
    }

    /// Why it is no packet of its own, if it is none.
    #[inline]
    pub(crate) fn skip(&self) -> Option<Skip> {
        skip_of(self.seen)
    }

    /// How it arrived. What shows that the host let it go on is used if `is_let_go_told`.
    #[inline]
    pub(crate) fn arrival(&self, link: Link, is_let_go_told: bool) -> Arrival<'b> {
        let Self { meta, arrived, seen, stream, .. } = self;
        let Stream { interfaces, devices, one_sided, began } = *stream;
        let interface = interfaces.get(meta.interface as usize);
        let named = devices.of(seen.device);
        Arrival {
            time: arrived.time,
            began: *began,
            one_sided: *one_sided,
            bridge: Bridge {
                port: devices.of(seen.bridged.port),
                ports: seen.bridged.ports,
                names: devices.all(),
                more: seen.bridged.more,
                is_passed_on: seen.bridged.is_passed_on,
            },
            was_let_go: seen.sighting == Sighting::Own && is_let_go_told,
            direction: meta.direction,
            interface: named.or(interface.and_then(|interface| interface.name.as_deref())),
            origin: origin_of(seen),
            left: seen.left.map(|left| Left {
                number: left.number,
                interface: devices.of(left.device),
                source: left.ends.source,
                destination: left.ends.destination,
                ports: left.ends.ports,
                bridged: left.bridged,
                let_go: is_let_go_told,
            }),
            ..Arrival::new(arrived.number, link, meta.wire_length as usize)
        }
    }
}
