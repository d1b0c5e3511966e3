//! [`Batch`]: packets on their way from the captures to the report, and what is known of each of them.

use std::ops::Range;
use std::sync::Arc;

use conntrack::{CtState, States};
use dataplane::{
    Arrival, Bridge, Disposition, Footprint, Left, Origin, Path, Program, Skip, find_headers,
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
    /// Bytes on the wire of all frames, where they are a run as it was read: of one capture, in order of time.
    pub(crate) run: Option<u64>,
    /// Which way some of the frames went the capture may say; false where it says so of none.
    pub(crate) tells: bool,
    /// For each frame, what it is; empty where nothing tells of any.
    pub(crate) seen: Vec<Seen>,
    /// What is known of the captures.
    pub(crate) stream: Stream,
    /// The result of each frame, where somebody wants to know.
    pub(crate) outcomes: Vec<Outcome>,
    /// The worker of each frame, where workers share it.
    pub(crate) owners: Vec<u8>,
}

/// What a worker makes of its frames of a batch that it shares with others.
pub(crate) struct Part {
    /// The result of each frame, where somebody wants to know.
    pub(crate) outcomes: Vec<Outcome>,
    /// What its packets have left up to here that concerns other workers.
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
    /// Packets may have passed on links that no capture was taken on.
    pub(crate) unrecorded: bool,
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

/// One frame of a batch, its bytes there or copied.
pub(crate) struct StreamFrame<'b, 's> {
    /// Its captured bytes.
    pub(crate) bytes: &'b mut [u8],
    pub(crate) meta: &'b FrameMeta,
    pub(crate) arrived: Arrived,
    /// What it is, if anything tells of some frame.
    pub(crate) seen: Option<&'s Seen>,
    pub(crate) stream: &'s Stream,
}

impl Stream {
    /// The arrival of a frame of which nothing else is told: [`StreamFrame::tell`] says of each what is its own.
    pub(crate) fn arrival(&self) -> Arrival<'_> {
        Arrival {
            began: self.began,
            one_sided: self.one_sided,
            unrecorded: self.unrecorded,
            bridge: Bridge { names: self.devices.all(), ..Bridge::default() },
            ..Arrival::new(0, Link::Ethernet, 0)
        }
    }
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
            run: None,
            tells: false,
            seen: Vec::new(),
            stream: Stream::default(),
            outcomes: Vec::new(),
            owners: Vec::new(),
        }
    }
}

impl Batch {
    /// Forgets the frames and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.burst.clear();
        self.arrived.clear();
        (self.run, self.tells) = (None, false);
        self.seen.clear();
        self.outcomes.clear();
        self.owners.clear();
    }

    /// Finds the headers of a frame, as this program is to see them; none of a frame that it never sees.
    pub(crate) fn headers(&self, at: usize, program: &Program) -> Option<Headers> {
        let Frame { bytes, meta } = self.burst.get(at)?;
        let sighting = sighting_at(&self.seen, at);
        let link = link_of(meta.link_type).filter(|_| skip_of(sighting).is_none())?;
        Some(find_headers(program, bytes, link, meta.wire_length as usize, origin_of(sighting)))
    }

    /// Its frames in order.
    pub(crate) fn frames(&mut self) -> impl Iterator<Item = StreamFrame<'_, '_>> {
        self.range(0..self.arrived.len()).1
    }

    /// Some of its frames in order, and [`Stream::arrival`] for them.
    #[inline]
    pub(crate) fn range<'s>(
        &'s mut self,
        range: Range<usize>,
    ) -> (Arrival<'s>, impl Iterator<Item = StreamFrame<'s, 's>>) {
        let Self { burst, arrived, seen, stream, .. } = self;
        let (arrived, seen, stream) = (&*arrived, &*seen, &*stream);
        let frames = burst.range_mut(range.clone()).zip(range);
        let frames = frames.map(move |(FrameMut { bytes, meta }, at)| StreamFrame {
            bytes,
            meta,
            arrived: arrived[at],
            seen: seen.get(at),
            stream,
        });
        (stream.arrival(), frames)
    }

    /// A frame with a copy of its bytes, which may be rewritten.
    pub(crate) fn copied<'b, 's: 'b>(
        &'s self,
        at: usize,
        copy: &'b mut Vec<u8>,
    ) -> Option<StreamFrame<'b, 's>> {
        let Frame { bytes, meta } = self.burst.get(at)?;
        copy.clear();
        copy.extend_from_slice(bytes);
        let (arrived, seen) = (*self.arrived.get(at)?, self.seen.get(at));
        Some(StreamFrame { bytes: copy, meta, arrived, seen, stream: &self.stream })
    }
}

/// Why a frame is no packet of its own, if it is none.
#[inline]
fn skip_of(sighting: Sighting) -> Option<Skip> {
    match sighting {
        Sighting::Second { .. } => Some(Skip::Second),
        Sighting::Lower { .. } => Some(Skip::Lower),
        Sighting::OtherHost => Some(Skip::OtherHost),
        Sighting::Unknown | Sighting::Arrival | Sighting::Own => None,
    }
}

/// Where a frame comes from, by what it was seen to be.
#[inline]
fn origin_of(sighting: Sighting) -> Origin {
    match sighting {
        Sighting::Arrival => Origin::Wire,
        Sighting::Own => Origin::Host,
        _ => Origin::Addresses,
    }
}

/// What the frame at a place of [`Batch::seen`] is.
#[inline]
pub(crate) fn sighting_at(seen: &[Seen], at: usize) -> Sighting {
    seen.get(at).map_or(Sighting::Unknown, |seen| seen.sighting)
}

impl<'s> StreamFrame<'_, 's> {
    /// How to read it, if tamis can.
    #[inline]
    pub(crate) fn link(&self) -> Option<Link> {
        link_of(self.meta.link_type)
    }

    /// What it is.
    #[inline]
    pub(crate) fn sighting(&self) -> Sighting {
        self.seen.map_or(Sighting::Unknown, |seen| seen.sighting)
    }

    /// Why it is no packet of its own, if it is none.
    #[inline]
    pub(crate) fn skip(&self) -> Option<Skip> {
        skip_of(self.sighting())
    }

    /// How it arrived. What shows that the host let it go on is used if `is_let_go_told`.
    pub(crate) fn arrival(&self, link: Link, is_let_go_told: bool) -> Arrival<'s> {
        let mut arrival = self.stream.arrival();
        self.tell(&mut arrival, link, is_let_go_told);
        arrival
    }

    /// Tells how it arrived: in [`Stream::arrival`] of its stream, which may have told of another frame.
    #[inline]
    pub(crate) fn tell(&self, arrival: &mut Arrival<'s>, link: Link, is_let_go_told: bool) {
        let Self { meta, arrived, stream, .. } = self;
        let interface = stream.interfaces.get(meta.interface as usize);
        arrival.number = arrived.number;
        arrival.link = link;
        arrival.wire_len = meta.wire_length as usize;
        arrival.time = arrived.time;
        arrival.direction = meta.direction;
        arrival.interface = interface.and_then(|interface| interface.name.as_deref());
        // Of all frames of a batch something is known, or of none.
        if let Some(seen) = self.seen {
            seen_as(seen, stream, arrival, is_let_go_told);
        }
    }
}

/// Tells what a frame was seen to be.
fn seen_as<'s>(
    seen: &'s Seen,
    stream: &'s Stream,
    arrival: &mut Arrival<'s>,
    is_let_go_told: bool,
) {
    let devices = &stream.devices;
    arrival.bridge = Bridge {
        port: devices.of(seen.bridged.port),
        ports: seen.bridged.ports,
        more: seen.bridged.more,
        is_passed_on: seen.bridged.is_passed_on,
        names: devices.all(),
    };
    arrival.was_let_go = seen.sighting == Sighting::Own && is_let_go_told;
    arrival.quotes_unseen = seen.quotes_unseen;
    arrival.is_joined = seen.is_joined;
    arrival.unrecorded = stream.unrecorded || seen.may_have_come;
    // What holds for a copy before it holds for that alone.
    if seen.is_copy || arrival.path.is_some() {
        // Wherever its addresses lead, it left.
        arrival.ctstate = seen.is_copy.then_some(CtState::Untracked);
        arrival.path = seen.is_copy.then_some(Path::Output);
    }
    arrival.interface = devices.of(seen.device).or(arrival.interface);
    arrival.origin = origin_of(seen.sighting);
    arrival.left = seen.left.map(|left| Left {
        number: left.number,
        interface: devices.of(left.device),
        source: left.ends.source,
        destination: left.ends.destination,
        ports: left.ends.ports,
        bridged: left.bridged,
        let_go: is_let_go_told,
    });
}
