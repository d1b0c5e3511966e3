//! The story of the last packet of a conversation, or of a packet of captures, told after those before it.

use std::sync::Arc;

use dataplane::{Disposition, Evaluator, Program, Skip};
use host::sighting::Sighting;

use super::past::Past;
use super::story::{Before, SeenAs, Story, of_spec, shown};
use super::teller::{tell, tell_knowing};
use super::witness::{self, Known};
use crate::batch::{Batch, StreamFrame};
use crate::error::Error;
use crate::logged::Loggers;
use crate::report::Report;
use crate::rules_file::{RulesFile, program};
use crate::source::{Numbers, Reading, Source, capture_of};
use crate::spec::{Spec, arrivals};
use crate::spotter::Spotter;
use crate::walk::Setup;
use crate::walk::names::fit_captures;

/// Tells the story of the last packet of a conversation of packet specs; the packets before it are handled first,
/// by the same evaluator, and have a line each. With `near`, that many near misses are kept.
#[must_use]
pub fn of_conversation(
    files: &[RulesFile],
    setup: &Setup,
    before: &[Spec],
    last: &Spec,
    near: Option<usize>,
) -> Story {
    let config = &setup.config;
    let (program, files) = (program(files, setup), Arc::<[RulesFile]>::from(files));
    let walked = |known: &Known| {
        let mut evaluator = Evaluator::new(&program);
        let mut past = Past::default();
        let mut packets = arrivals(before.iter().chain([last]), config);
        let earlier: Vec<Before> = packets
            .by_ref()
            .take(before.len())
            .map(|(_, mut bytes, arrival)| {
                let packet = shown(&mut bytes, &arrival);
                let observer = past.next(arrival.number, arrival.time);
                Before { packet, end: evaluator.handle(&mut bytes, &arrival, observer).outcome.end }
            })
            .collect();
        let (mut bytes, arrival) = packets.next().map_or_else(
            || (last.frame.clone(), last.arrival(1, 0, config)),
            |(_, bytes, arrival)| (bytes, arrival),
        );
        let arrival = known.arrival(arrival);
        let (story, met) = tell_knowing(
            &mut evaluator,
            &files,
            &mut bytes,
            &arrival,
            near.into(),
            &mut past,
            known,
        );
        (Story { before: earlier, ..of_spec(story, last) }, met)
    };
    witness::hold(&Loggers::of(&files), last, walked)
}

/// Tells the story of a packet of captures, named as [`Numbers`] has it; those before it are replayed silently. With
/// `near`, that many near misses are kept.
///
/// # Errors
/// A capture cannot be read, or it has no such packet.
pub fn of_capture(
    files: &[RulesFile],
    setup: &Setup,
    captures: &[String],
    packet: &str,
    near: Option<usize>,
) -> Result<Story, Error> {
    let config = &setup.config;
    fit_captures(captures, &config.host.links)?;
    let numbers = Numbers::of(captures);
    let number = numbers
        .parse(packet)
        .ok_or_else(|| Error::NoSuchPacket { number: packet.to_owned(), packets: None })?;
    let program = program(files, setup);
    let mut evaluator = Evaluator::new(&program);
    let mut source = Source::new(captures, Some(Spotter::new(files, config)), Reading::default());
    let (mut batch, mut past) = (Batch::default(), Past::default());
    while source.next(&mut batch)? {
        for frame in batch.frames() {
            if frame.arrived.number == number {
                let story =
                    of_frame(frame, config.pair, &mut evaluator, &files.into(), near, &mut past);
                let report = Report { numbers, ..story.report };
                return Ok(Story { report, ..story });
            }
            if let (Some(link), None) = (frame.link(), frame.skip()) {
                let arrival = frame.arrival(link, config.pair);
                let observer = past.next(arrival.number, arrival.time);
                evaluator.handle(frame.bytes, &arrival, observer);
            }
        }
    }
    let packets = source.read.packets_of_each().get(capture_of(number)).copied();
    Err(Error::NoSuchPacket { number: packet.to_owned(), packets })
}

/// The story of a frame of a capture. `pairs` says whether what frames that left tell is used.
pub(super) fn of_frame(
    frame: StreamFrame<'_, '_>,
    pairs: bool,
    evaluator: &mut Evaluator<'_>,
    files: &Arc<[RulesFile]>,
    near: Option<usize>,
    past: &mut Past,
) -> Story {
    let sighting = frame.sighting();
    let left = frame.seen.and_then(|seen| seen.left).map(|left| left.number);
    let seen = (sighting != Sighting::Unknown).then_some(SeenAs { sighting, left });
    let program = evaluator.program();
    let story = match (frame.link(), frame.skip()) {
        (None, _) => {
            let packet = format!("a frame of link type {}", frame.meta.link_type.0);
            not_walked(program, files, packet, None)
        }
        (Some(link), Some(skip)) => {
            let arrival = frame.arrival(link, pairs);
            not_walked(program, files, shown(frame.bytes, &arrival), Some(skip))
        }
        (Some(link), None) => {
            let arrival = frame.arrival(link, pairs);
            tell(evaluator, files, frame.bytes, &arrival, near.into(), past)
        }
    };
    Story { seen, ..story }
}

/// The story of a frame that is no packet of its own, or that cannot be read.
fn not_walked(
    program: &Program,
    files: &Arc<[RulesFile]>,
    packet: String,
    skip: Option<Skip>,
) -> Story {
    Story {
        report: Report::new(Arc::clone(files), Arc::clone(program.config())),
        before: Vec::new(),
        packet,
        assumed: Vec::new(),
        end: Disposition::skipped(skip.unwrap_or(Skip::LinkType)),
        steps: Vec::new(),
        untold: 0,
        misses: None,
        seen: None,
        logged: Vec::new(),
        contradiction: None,
    }
}
