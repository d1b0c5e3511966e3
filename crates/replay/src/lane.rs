//! [`Lane`]: evaluates batches of packets and counts verdicts. A replay has one, or one for each worker.
//!
//! Contract: nothing is written and nothing shared, so lanes may run side by side; what they counted is
//! added up at the end.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use conntrack::steer::Shard;
use dataplane::{
    Arrival, BURST, Config, Disposition, Egress, Evaluator, Footprint, Program, Skip, Start,
};
use host::sighting::Sighting;
use packet::Headers;
use rules::model::Family;

use crate::batch::{Batch, Outcome, Part, StreamFrame};
use crate::decider::Decider;
use crate::recorder::{OnePacket, Recorder};
use crate::rules_file::RulesFile;

/// The end of a frame over which a lane panics.
#[cfg(test)]
pub(crate) const PLANTED: &[u8] = b"over this one a lane panics";

/// What is wanted of each packet besides counting it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Keeps {
    /// The packet's result.
    pub(crate) outcomes: bool,
    /// The packet's bytes as captured, when targets rewrite it.
    pub(crate) bytes: bool,
    /// The interfaces that it came in and goes out by.
    pub(crate) sides: bool,
    /// The jumps by which the packet came to what decided.
    pub(crate) calls: bool,
}

impl Keeps {
    /// Finishes a packet that comes to this end, and keeps of it what is wanted.
    #[inline]
    fn finish(
        self,
        packet: OnePacket<'_>,
        end: &Disposition,
        new: Option<(Disposition, Decider)>,
        outcomes: &mut Vec<Outcome>,
    ) {
        let mut noted = packet.finish(end);
        if self.outcomes {
            let by = noted.by(end);
            outcomes.push(Outcome {
                by,
                path: noted.path(by).map(Box::new),
                new,
                sides: noted.take_sides(),
                states: noted.states(),
                end: *end,
            });
        }
    }
}

/// The rules of a replay.
#[derive(Clone, Copy)]
pub(crate) struct Rules<'f> {
    pub(crate) files: &'f [RulesFile],
    /// Rules to compare with.
    pub(crate) new: Option<&'f [RulesFile]>,
    pub(crate) config: &'f Config,
    pub(crate) start: &'f Start,
    /// The rules as packets walk them, and those to compare with.
    pub(crate) program: &'f Program,
    pub(crate) new_program: Option<&'f Program>,
    /// Once true, nobody waits for the end of a walk.
    pub(crate) stop: Option<&'f Arc<AtomicBool>>,
}

/// What a lane counted.
pub(crate) struct Counted {
    pub(crate) rules: Recorder,
    /// Under the rules to compare with.
    pub(crate) new: Option<Recorder>,
}

impl Counted {
    /// Adds what another lane counted.
    pub(crate) fn merge(&mut self, other: Self) {
        let Self { rules, new } = other;
        self.rules.merge(rules);
        if let (Some(ours), Some(theirs)) = (&mut self.new, new) {
            ours.merge(theirs);
        }
    }
}

/// An evaluator and what it counts.
pub(crate) struct Lane<'f> {
    evaluator: Evaluator<'f>,
    /// Under the rules to compare with.
    versus: Option<Versus<'f>>,
    recorder: Recorder,
    keeps: Keeps,
    /// What frames that left tell is used.
    pairs: bool,
    /// A copy of the current frame, for targets to rewrite.
    scratch: Vec<u8>,
    /// Another copy, of a frame of a batch that other workers have, too.
    room: Vec<u8>,
    /// The headers of a burst's frames.
    found: Vec<Option<Headers>>,
}

impl<'f> Lane<'f> {
    /// Makes a lane that sees all packets, or the packets of a shard.
    pub(crate) fn new(rules: Rules<'f>, keeps: Keeps, shard: Option<Shard>) -> Self {
        let Rules { files, new, config, program, new_program, stop, .. } = rules;
        let versus = new.zip(new_program);
        Self {
            evaluator: Evaluator::of_shard(program, shard.clone()),
            versus: versus.map(|(new, program)| Versus::new(new, program, rules, shard)),
            recorder: Recorder::new(files, keeps.sides)
                .noting_calls(keeps.calls.then_some(files))
                .stopped_by(stop.cloned()),
            keeps,
            pairs: config.pair,
            scratch: Vec::new(),
            room: Vec::new(),
            found: Vec::with_capacity(BURST),
        }
    }

    /// What was counted.
    pub(crate) fn counted(self) -> Counted {
        Counted { rules: self.recorder, new: self.versus.map(|versus| versus.recorder) }
    }

    /// Evaluates every frame of a batch, in order.
    pub(crate) fn evaluate(&mut self, batch: &mut Batch) {
        let mut outcomes = mem::take(&mut batch.outcomes);
        let mut found = mem::take(&mut self.found);
        let frames = batch.arrived.len();
        for start in (0..frames).step_by(BURST) {
            let range = start..frames.min(start + BURST);
            self.prefetch(batch, range.clone(), &mut found);
            let mut found = found.iter();
            let (mut arrival, frames) = batch.range(range);
            for frame in frames {
                arrival.headers = found.next().and_then(Option::as_ref);
                self.frame(frame, &mut arrival, &mut outcomes);
            }
        }
        self.found = found;
        batch.outcomes = outcomes;
    }

    /// Evaluates the frames of a batch that are this worker's, in order, with copies of their bytes: others have the batch,
    /// too.
    pub(crate) fn evaluate_part(&mut self, batch: &Batch, worker: u8) -> Part {
        let mut outcomes = Vec::new();
        let mut found = mem::take(&mut self.found);
        let mut room = mem::take(&mut self.room);
        let own = batch.owners.iter().enumerate().filter(|(_, owner)| **owner == worker);
        let own: Vec<usize> = own.map(|(at, _)| at).collect();
        for part in own.chunks(BURST) {
            self.prefetch(batch, part.iter().copied(), &mut found);
            let mut found = found.iter();
            let mut arrival = batch.stream.arrival();
            for at in part {
                arrival.headers = found.next().and_then(Option::as_ref);
                let Some(frame) = batch.copied(*at, &mut room) else { continue };
                self.frame(frame, &mut arrival, &mut outcomes);
            }
        }
        (self.found, self.room) = (found, room);
        Part { outcomes, footprint: self.footprint() }
    }

    /// What its packets have left that concerns other workers.
    fn footprint(&self) -> Footprint {
        let footprint = self.evaluator.footprint();
        let Some(versus) = &self.versus else { return footprint };
        let new = versus.evaluator.footprint();
        // Each has a table of its own.
        let connections = new.connections.max(footprint.connections);
        Footprint { connections, ..footprint.and(new) }
    }

    /// Finds the headers of some frames and prefetches by them, where the number of connections makes it pay. Elsewhere
    /// the handler finds them.
    fn prefetch(
        &self,
        batch: &Batch,
        frames: impl Iterator<Item = usize> + Clone,
        found: &mut Vec<Option<Headers>>,
    ) {
        found.clear();
        if self.evaluator.fetches() {
            let program = self.evaluator.program();
            found.extend(frames.clone().map(|at| batch.headers(at, program)));
            let frames = frames.zip(&*found);
            let parsed = frames
                .filter_map(|(at, headers)| Some((batch.burst.get(at)?.bytes, headers.as_ref()?)));
            self.evaluator.prefetch(parsed);
        }
    }

    /// Evaluates and counts one frame, of which `arrival` says how it arrived.
    #[inline]
    fn frame<'s>(
        &mut self,
        frame: StreamFrame<'_, 's>,
        arrival: &mut Arrival<'s>,
        outcomes: &mut Vec<Outcome>,
    ) {
        let Self { evaluator, recorder, scratch, keeps, .. } = self;
        let sighting = frame.sighting();
        recorder.sighted(sighting);
        let (link, skip) = (frame.link(), frame.skip());
        if link.is_none() {
            recorder.unreadable(frame.meta.link_type);
        }
        let mut packet = recorder.packet(frame.arrived.number);
        let (Some(link), None) = (link, skip) else {
            let why = skip.filter(|_| link.is_some()).unwrap_or(Skip::LinkType);
            return keeps.finish(packet, &Disposition::skipped(why), None, outcomes);
        };
        // What other rules let go on tells nothing of these: both are given the same.
        let is_let_go_told = self.pairs && self.versus.is_none();
        frame.tell(arrival, link, is_let_go_told);
        let bytes = frame.bytes;
        #[cfg(test)]
        assert!(!bytes.ends_with(PLANTED), "planted");
        let own = if keeps.bytes { copy(scratch, bytes) } else { &mut *bytes };
        let Egress { outcome, .. } = &evaluator.handle(own, arrival, &mut packet);
        let is_own = sighting == Sighting::Own;
        packet.compare(arrival.number, outcome, arrival.left.as_ref(), is_own);
        let new = self.versus.as_mut().map(|versus| {
            // Targets rewrite in place: the new rules get what was captured. They may see other headers.
            let arrival = Arrival { headers: None, ..*arrival };
            versus.evaluate(copy(scratch, bytes), &arrival)
        });
        keeps.finish(packet, &outcome.end, new, outcomes);
    }
}

/// The evaluator under the new rules, in addition to the first one.
pub(crate) struct Versus<'n> {
    pub(crate) evaluator: Evaluator<'n>,
    pub(crate) recorder: Recorder,
}

impl<'n> Versus<'n> {
    pub(crate) fn new(
        new: &'n [RulesFile],
        program: &'n Program,
        rules: Rules<'n>,
        shard: Option<Shard>,
    ) -> Self {
        let files: Vec<&RulesFile> = compared(new, rules.files).collect();
        Self {
            evaluator: Evaluator::of_shard(program, shard),
            recorder: Recorder::new(files, false).stopped_by(rules.stop.cloned()),
        }
    }

    /// The result of a packet under the new rules; `bytes` are as captured, and may be rewritten.
    pub(crate) fn evaluate(
        &mut self,
        bytes: &mut [u8],
        arrival: &Arrival<'_>,
    ) -> (Disposition, Decider) {
        let mut packet = self.recorder.packet(arrival.number);
        let end = self.evaluator.handle(bytes, arrival, &mut packet).outcome.end;
        (end, packet.finish(&end).by(&end))
    }
}

/// The rules to compare with: the old ones evaluate families that `new` has none for.
pub(crate) fn compared<'n>(
    new: &'n [RulesFile],
    old: &'n [RulesFile],
) -> impl Iterator<Item = &'n RulesFile> {
    let replaced = |family: Family| new.iter().any(|file| file.ruleset.family == family);
    new.iter().chain(old.iter().filter(move |file| !replaced(file.ruleset.family)))
}

/// A copy that may be rewritten.
fn copy<'s>(scratch: &'s mut Vec<u8>, bytes: &[u8]) -> &'s mut [u8] {
    scratch.clear();
    scratch.extend_from_slice(bytes);
    scratch
}
