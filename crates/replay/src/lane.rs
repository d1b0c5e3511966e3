//! [`Lane`]: judges batches of packets and counts what became of them. A replay has one, or one a thread.
//!
//! Contract: nothing is written and nothing shared, so lanes may run side by side; what they counted is
//! added up at the end.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use dataplane::{Arrival, BURST, Bridge, Config, Disposition, Handler, Left, Origin, Skip};
use host::sighting::{Seen, Sighting};
use packet::Link;
use pktio::{FrameMeta, FrameMut};

use crate::changes::Versus;
use crate::decider::Decider;
use crate::recorder::Recorder;
use crate::rules_file::RulesFile;
use crate::run::link_of;
use crate::source::{Arrived, Batch, Outcome, Stream, seen_at};

/// What is wanted of each packet besides counting it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Keeps {
    /// What became of it.
    pub(crate) outcomes: bool,
    /// Its bytes as captured, when targets rewrite it.
    pub(crate) bytes: bool,
    /// Its interfaces.
    pub(crate) sides: bool,
}

/// The rules of a replay.
#[derive(Clone, Copy)]
pub(crate) struct Rules<'f> {
    pub(crate) files: &'f [RulesFile],
    /// Those to compare with.
    pub(crate) new: Option<&'f [RulesFile]>,
    pub(crate) config: &'f Config,
    /// Once true, nobody waits for the end of a walk.
    pub(crate) stop: Option<&'f Arc<AtomicBool>>,
}

/// What a judge counted.
pub(crate) struct Counted {
    pub(crate) rules: Recorder,
    /// Under the rules to compare with.
    pub(crate) new: Option<Recorder>,
}

impl Counted {
    /// Adds what another judge counted.
    pub(crate) fn merge(&mut self, other: Self) {
        let Self { rules, new } = other;
        self.rules.merge(rules);
        if let (Some(ours), Some(theirs)) = (&mut self.new, new) {
            ours.merge(theirs);
        }
    }
}

/// One judge.
pub(crate) struct Lane<'f> {
    handler: Handler<'f>,
    /// Under the rules to compare with.
    versus: Option<Versus<'f>>,
    recorder: Recorder,
    keeps: Keeps,
    /// What frames that left tell is used.
    pairs: bool,
    /// A copy of the current frame, for targets to rewrite.
    scratch: Vec<u8>,
}

impl<'f> Lane<'f> {
    pub(crate) fn new(rules: Rules<'f>, keeps: Keeps) -> Self {
        let Rules { files, new, config, stop } = rules;
        Self {
            handler: Handler::new(files.iter().map(|file| &file.ruleset), config),
            versus: new.map(|new| Versus::new(new, rules)),
            recorder: Recorder::new(files, keeps.sides).stopped_by(stop.cloned()),
            keeps,
            pairs: config.pair,
            scratch: Vec::new(),
        }
    }

    /// What was counted.
    pub(crate) fn counted(self) -> Counted {
        Counted { rules: self.recorder, new: self.versus.map(|versus| versus.recorder) }
    }

    /// Judges every frame of a batch, in order.
    pub(crate) fn judge(&mut self, batch: &mut Batch) {
        let Batch { burst, arrived, seen, stream, outcomes, connections } = batch;
        for (chunk, start) in arrived.chunks(BURST).zip((0..).step_by(BURST)) {
            let range = start..start + chunk.len();
            if self.handler.tracks() {
                let frames = burst.range_mut(range.clone());
                self.handler.ahead(frames.filter_map(|frame| {
                    let link = link_of(frame.meta.link_type)?;
                    Some((frame.bytes, link, frame.meta.wire_length as usize))
                }));
            }
            for ((frame, arrived), at) in burst.range_mut(range).zip(chunk).zip(start..) {
                let arrived = (*arrived, seen_at(seen, at));
                outcomes.extend(self.frame(frame, arrived, stream));
            }
        }
        *connections = self.handler.connections();
        if let Some(versus) = &self.versus {
            *connections = versus.handler.connections().max(*connections);
        }
    }

    /// Judges and counts one frame.
    #[inline]
    fn frame(
        &mut self,
        FrameMut { bytes, meta }: FrameMut<'_>,
        (arrived, seen): (Arrived, Seen),
        stream: &Stream,
    ) -> Option<Outcome> {
        self.recorder.next_packet();
        self.recorder.sighted(seen.sighting);
        let mut new = None;
        let end = match (link_of(meta.link_type), skip(seen.sighting)) {
            (None, _) => Disposition::skipped(Skip::LinkType),
            (_, Some(skip)) => Disposition::skipped(skip),
            (Some(link), None) => {
                let mut arrival = arrival((meta, link), (arrived, seen), stream);
                // What other rules let go on tells nothing of these: both are given the same.
                let trusts = self.pairs && self.versus.is_none();
                if let Some(left) = &mut arrival.left {
                    left.let_go = trusts;
                }
                arrival.was_let_go &= trusts;
                let Self { handler, recorder, scratch, .. } = self;
                let own = if self.keeps.bytes { copy(scratch, bytes) } else { &mut *bytes };
                let outcome = handler.handle(own, &arrival, recorder);
                let is_own = seen.sighting == Sighting::Own;
                recorder.compare(arrived.number, &outcome, (arrival.left.as_ref(), is_own));
                let end = outcome.end;
                new = self.versus.as_mut().map(|versus| {
                    // Targets rewrite in place: the new rules get what was captured.
                    versus.judge(copy(scratch, bytes), &arrival)
                });
                end
            }
        };
        let outcome = self.keeps.outcomes.then(|| Outcome {
            by: Decider::of(&end, self.recorder.first_cause()),
            new,
            sides: self.recorder.take_sides(),
            states: self.recorder.states,
            end,
        });
        self.recorder.ended(&end);
        outcome
    }
}

/// A copy that may be rewritten.
fn copy<'s>(scratch: &'s mut Vec<u8>, bytes: &[u8]) -> &'s mut [u8] {
    scratch.clear();
    scratch.extend_from_slice(bytes);
    scratch
}

/// How a frame arrived.
pub(crate) fn arrival<'a>(
    (meta, link): (&FrameMeta, Link),
    (Arrived { number, time }, seen): (Arrived, Seen),
    Stream { interfaces, devices, one_sided, began }: &'a Stream,
) -> Arrival<'a> {
    let interface = interfaces.get(meta.interface as usize);
    let named = devices.of(seen.device);
    Arrival {
        time,
        began: *began,
        one_sided: *one_sided,
        bridge: Bridge {
            port: devices.of(seen.bridged.port),
            ports: seen.bridged.ports,
            names: devices.all(),
            more: seen.bridged.more,
            is_passed_on: seen.bridged.is_passed_on,
        },
        was_let_go: seen.sighting == Sighting::Own,
        direction: meta.direction,
        interface: named.or(interface.and_then(|interface| interface.name.as_deref())),
        origin: match seen.sighting {
            Sighting::Arrival => Origin::Wire,
            Sighting::Own => Origin::Host,
            _ => Origin::Addresses,
        },
        left: seen.left.map(|left| Left {
            number: left.number,
            interface: devices.of(left.device),
            source: left.ends.source,
            destination: left.ends.destination,
            ports: left.ends.ports,
            bridged: left.bridged,
            let_go: true,
        }),
        ..Arrival::new(number, link, meta.wire_length as usize)
    }
}

/// Why a frame is no packet of its own, if it is none.
pub(crate) fn skip(sighting: Sighting) -> Option<Skip> {
    match sighting {
        Sighting::Second { .. } => Some(Skip::Second),
        Sighting::Lower { .. } => Some(Skip::Lower),
        Sighting::OtherHost => Some(Skip::OtherHost),
        Sighting::Unknown | Sighting::Arrival | Sighting::Own => None,
    }
}
