//! Feeds captures to the handler, packet by packet, and gathers the report.
//!
//! Contract: constant memory in the length of the captures; several captures are one stream in argument
//! order; time never runs backwards (a packet with an earlier time takes the latest time, and is counted).

use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use dataplane::{Arrival, Config, Disposition, DropReason, Handler, Judgement, Midstream, Skip};
use packet::Link;
use pktio::{Burst, CaptureReader, Frame, FrameMut, Interface, LinkType, Port};
use rules::eval::By;
use rules::model::Family;

use crate::annotate::Annotation;
use crate::changes::{Changes, Versus};
use crate::decider::{Decider, Place};
use crate::error::Error;
use crate::outputs::{Judged, Outputs, Words, failed};
use crate::recorder::Recorder;
use crate::report::examples::Example;
use crate::report::timeline::Timeline;
use crate::report::{Capture, DropReasons, Listed, Report, Skipped};
use crate::rules_file::RulesFile;
use crate::select::{Choice, Selection};
use crate::split::Split;
use crate::stoppable;

/// Which packets to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    /// Dropped ones.
    Drop,
    /// Rejected ones.
    Reject,
    /// Those whose verdict is unknown.
    Unknown,
    /// Those whose verdict is another under [`Wanted::versus`].
    Change,
}

/// What a replay is to do besides counting.
#[derive(Default)]
pub struct Wanted<'w> {
    /// Packets to list, and at most how many.
    pub list: Option<(List, usize)>,
    /// Where to write one word per packet.
    pub verdicts: Option<&'w mut dyn Write>,
    /// Also gather what only the page shows: verdicts over time, and example packets.
    pub page: bool,
    /// Called now and then with bytes read and, if known, bytes in all, of the current capture.
    pub progress: Option<&'w mut dyn FnMut(u64, Option<u64>)>,
    /// Which packets to judge.
    pub selection: Selection,
    /// Rules to compare with, at most one file per family.
    pub versus: Option<Vec<RulesFile>>,
    /// Where to write a JSON line per packet.
    pub packets: Option<&'w mut dyn Write>,
    /// Directory for one capture per verdict and per dropping rule.
    pub split: Option<PathBuf>,
    /// Where to write a pcapng with verdicts as packet comments.
    pub annotate: Option<&'w mut dyn Write>,
    /// Once true, the replay ends and reports what it has.
    pub stop: Option<Arc<AtomicBool>>,
}

impl<'w> Wanted<'w> {
    fn outputs(&mut self, files: &[RulesFile]) -> Result<Outputs<'w>, Error> {
        let first = files.first().map(|file| file.ruleset.family);
        Ok(Outputs {
            packets: self.packets.take(),
            split: self.split.take().map(|dir| Split::new(&dir, first)).transpose()?,
            annotation: self
                .annotate
                .take()
                .map(Annotation::new)
                .transpose()
                .map_err(failed("--annotate"))?,
        })
    }

    fn stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))
    }
}

/// Replays captures against rules.
///
/// # Errors
/// A capture cannot be opened or read, a file cannot be written, a filter cannot be compiled, or rules to
/// compare with are of a family that the first rules are not. A capture that is cut off or damaged is no
/// error: its packets before that count, and the report warns.
pub fn replay<'f>(
    files: &'f [RulesFile],
    captures: &[String],
    config: &'f Config,
    wanted: &mut Wanted<'_>,
) -> Result<Report<'f>, Error> {
    let started = Instant::now();
    let new = wanted.versus.take();
    comparable(files, new.as_deref().unwrap_or_default())?;
    let outputs = wanted.outputs(files)?;
    let mut replay = Replay {
        handler: Handler::new(files.iter().map(|file| &file.ruleset), config),
        keeps_bytes: !outputs.is_none() || wanted.list.is_some() || wanted.page || new.is_some(),
        versus: new.as_deref().map(|new| (new, Versus::new(new, files, config))),
        outputs,
        recorder: Recorder::new(files),
        report: Report::new(files, config),
        as_captured: Vec::new(),
        start: None,
        now: None,
    };
    replay.report.timeline = wanted.page.then(Timeline::default);
    replay.recorder.notes_sides = replay.outputs.wants_words();
    replay.captures(captures, wanted)?;
    let Replay { mut report, recorder, versus, outputs, .. } = replay;
    outputs.finish()?;
    report.take(recorder);
    let found = versus.map(|(_, versus)| versus.finish());
    report.changes = new.zip(found).map(|(files, found)| Changes { files, ..found });
    report.selection = std::mem::take(&mut wanted.selection);
    report.elapsed_s = started.elapsed().as_secs_f64();
    Ok(report)
}

/// New rules replace old ones of their family: there must be some.
fn comparable(old: &[RulesFile], new: &[RulesFile]) -> Result<(), Error> {
    let families = || old.iter().map(|file| file.ruleset.family);
    match new.iter().find(|file| !families().any(|family| family == file.ruleset.family)) {
        None => Ok(()),
        Some(file) => Err(Error::Families {
            file: file.file.clone(),
            expected: families().next().map_or("no", |family| family.tool()),
            found: file.ruleset.family.tool(),
        }),
    }
}

struct Replay<'f, 'n, 'w> {
    handler: Handler<'f>,
    /// The rules to compare with.
    versus: Option<(&'n [RulesFile], Versus<'n>)>,
    outputs: Outputs<'w>,
    recorder: Recorder,
    report: Report<'f>,
    /// Whether a frame is needed as it was captured after a handler rewrote it.
    keeps_bytes: bool,
    /// The current frame as it was captured.
    as_captured: Vec<u8>,
    /// The time of the first packet.
    start: Option<u64>,
    /// The latest time seen.
    now: Option<u64>,
}

impl Replay<'_, '_, '_> {
    fn captures(&mut self, captures: &[String], wanted: &mut Wanted<'_>) -> Result<(), Error> {
        let mut burst = Burst::new();
        for capture in captures {
            let ended = self.capture(capture, &mut burst, wanted)?;
            self.report.interrupted = wanted.stopped();
            if self.report.interrupted || ended.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn capture(
        &mut self,
        name: &str,
        burst: &mut Burst,
        wanted: &mut Wanted<'_>,
    ) -> Result<ControlFlow<()>, Error> {
        let mut capture = Capture { file: name.to_owned(), ..Capture::default() };
        let mut ended = ControlFlow::Continue(());
        match stoppable::open(name, wanted.stop.as_ref()) {
            Ok(mut reader) => {
                ended = self.frames(&mut reader, burst, &mut capture, wanted)?;
                // One that was not read to its end is not whole, and no wonder.
                if !wanted.stopped() {
                    self.report.warnings.extend(reader.warning());
                }
            }
            // Stopped before the capture said what it is.
            Err(_) if wanted.stopped() => {}
            Err(error) => return Err(error.into()),
        }
        self.report.captures.push(capture);
        Ok(ended)
    }

    fn frames(
        &mut self,
        reader: &mut CaptureReader,
        burst: &mut Burst,
        capture: &mut Capture,
        wanted: &mut Wanted<'_>,
    ) -> Result<ControlFlow<()>, Error> {
        while !wanted.stopped() && reader.rx_burst(burst)? > 0 {
            for frame in burst.iter_mut() {
                let interface = reader.interfaces().get(frame.meta.interface as usize);
                if self.frame(frame, interface, capture, wanted)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            if let Some(progress) = &mut wanted.progress {
                progress(reader.bytes_read(), reader.total_bytes());
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn frame(
        &mut self,
        frame: FrameMut<'_>,
        interface: Option<&Interface>,
        capture: &mut Capture,
        wanted: &mut Wanted<'_>,
    ) -> Result<ControlFlow<()>, Error> {
        let time = frame.meta.timestamp.and_then(|time| u64::try_from(time.as_nanos()).ok());
        let time = self.clamp(time);
        self.start = self.start.or(time);
        let lent = Frame { bytes: frame.bytes, meta: frame.meta };
        match wanted.selection.choose(lent, (time, self.start), self.report.packets)? {
            Choice::Stop => return Ok(ControlFlow::Break(())),
            Choice::LeaveOut => {
                self.report.frames += 1;
                return Ok(ControlFlow::Continue(()));
            }
            Choice::Judge => self.report.frames += 1,
        }
        capture.count(u64::from(frame.meta.wire_length), time);
        self.report.packets += 1;
        let disposition = self.judge(frame, interface, time, wanted)?;
        if let Some(timeline) = &mut self.report.timeline {
            timeline.count(time, &disposition.judgement);
        }
        self.report.count(&disposition);
        if let Some(to) = &mut wanted.verdicts {
            writeln!(to, "{}", disposition.judgement.word()).map_err(failed("--verdicts"))?;
        }
        // A capture that goes on for ever is not waited for.
        let full = wanted.selection.is_full(self.report.packets);
        Ok(if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// Hands the frame to the handler, and what came of it to whoever wants it.
    fn judge(
        &mut self,
        frame: FrameMut<'_>,
        interface: Option<&Interface>,
        time: Option<u64>,
        wanted: &Wanted<'_>,
    ) -> Result<Disposition, Error> {
        self.recorder.next_packet();
        if self.keeps_bytes {
            self.as_captured.clear();
            self.as_captured.extend_from_slice(frame.bytes);
        }
        let Some(link) = link_of(frame.meta.link_type) else {
            let end = Disposition::skipped(Skip::LinkType);
            self.outputs(&frame, (interface, time, None), &end, None)?;
            return Ok(end);
        };
        let arrival = Arrival {
            number: self.report.frames,
            link,
            wire_len: frame.meta.wire_length as usize,
            time,
            direction: frame.meta.direction,
            interface: interface.and_then(|interface| interface.name.as_deref()),
            input: None,
            output: None,
            mark: 0,
            ctstate: None,
        };
        let end = self.handler.handle(frame.bytes, &arrival, &mut self.recorder);
        let new = self.versus.as_mut().map(|(_, versus)| {
            // Targets rewrite in place: the new rules get what was captured.
            frame.bytes.copy_from_slice(&self.as_captured);
            versus.judge(frame.bytes, &arrival)
        });
        self.outputs(&frame, (interface, time, Some(link)), &end, new)?;
        if wanted.page {
            self.example(&end, &arrival);
        }
        self.compare(&end, new, &arrival, wanted.list);
        self.recorder.ended(&end);
        Ok(end)
    }

    /// Writes the packet to the files of `--packets`, `--split` and `--annotate`.
    fn outputs(
        &mut self,
        frame: &FrameMut<'_>,
        (interface, time, link): (Option<&Interface>, Option<u64>, Option<Link>),
        end: &Disposition,
        new: Option<(Disposition, Decider)>,
    ) -> Result<(), Error> {
        if self.outputs.is_none() {
            return Ok(());
        }
        let old_rules = self.report.files;
        let new_rules = self.versus.as_ref().map_or(&[][..], |(files, _)| files);
        let decider = Decider::of(end, self.recorder.first_cause());
        let place = decider.place(|family| of_family(old_rules, family));
        let new_place = new.map(|(_, decider)| place_in(decider, new_rules, old_rules));
        let wire_len = frame.meta.wire_length as usize;
        let words = link
            .filter(|_| self.outputs.wants_words())
            .map(|link| Words::of(&mut self.as_captured, wire_len, link));
        let [input, output] = &self.recorder.sides;
        self.outputs.write(&Judged {
            frame: self.report.frames,
            bytes: &self.as_captured,
            meta: frame.meta,
            time,
            interface,
            words,
            end,
            decider,
            place: &place,
            sides: [input.as_deref(), output.as_deref()],
            states: self.recorder.states,
            new: new.as_ref().map(|(end, _)| end).zip(new_place.as_ref()),
        })
    }

    /// Counts and lists the packet.
    fn compare(
        &mut self,
        end: &Disposition,
        new: Option<(Disposition, Decider)>,
        arrival: &Arrival<'_>,
        list: Option<(List, usize)>,
    ) {
        let frame = self.report.frames;
        let Self { versus, recorder, as_captured, report, .. } = self;
        let mut words = || Words::of(as_captured, arrival.wire_len, arrival.link).line;
        let changed = match (versus, &new) {
            (Some((_, versus)), Some((new, by))) => {
                let old_by = Decider::of(end, recorder.first_cause());
                let example = || Example { frame, time: arrival.time, packet: words() };
                versus.compare((end, old_by), (new, *by), example)
            }
            _ => false,
        };
        let Some((which, limit)) = list else { return };
        let listed = match which {
            List::Drop => matches!(end.judgement, Judgement::Drop(_)),
            List::Reject => matches!(end.judgement, Judgement::Reject(_)),
            List::Unknown => end.judgement == Judgement::Unknown,
            List::Change => changed,
        };
        if listed && report.listed.len() < limit {
            let (time, packet) = (arrival.time, words());
            let new = new.filter(|_| changed);
            report.listed.push(Listed { frame, time, packet, disposition: *end, new });
        }
    }

    /// Keeps the packet for the page, if it is one of the first of its end.
    fn example(&mut self, end: &Disposition, arrival: &Arrival<'_>) {
        let (frame, time, bytes) = (self.report.frames, arrival.time, &mut self.as_captured);
        self.report.examples.offer(end, || {
            let packet = Words::of(bytes, arrival.wire_len, arrival.link).line;
            Example { frame, time, packet }
        });
    }

    fn clamp(&mut self, time: Option<u64>) -> Option<u64> {
        let time = time?;
        match self.now {
            Some(now) if time < now => {
                self.report.time_went_back += 1;
                Some(now)
            }
            _ => {
                self.now = Some(time);
                Some(time)
            }
        }
    }
}

fn of_family(files: &[RulesFile], family: Family) -> Option<&RulesFile> {
    files.iter().find(|file| file.ruleset.family == family)
}

/// The place of a decider under the new rules; families that these have none for keep their old ones.
fn place_in<'f>(decider: Decider, new: &'f [RulesFile], old: &'f [RulesFile]) -> Place<'f> {
    decider.place(|family| of_family(new, family).or_else(|| of_family(old, family)))
}

/// How to read frames of a capture's link type, if tamis can.
#[must_use]
pub fn link_of(link_type: LinkType) -> Option<Link> {
    Some(match link_type {
        LinkType::ETHERNET => Link::Ethernet,
        LinkType::RAW | LinkType(12 | 14) => Link::Raw,
        LinkType::IPV4 => Link::Ipv4,
        LinkType::IPV6 => Link::Ipv6,
        LinkType::LINUX_SLL => Link::Sll,
        LinkType::LINUX_SLL2 => Link::Sll2,
        LinkType::NULL => Link::Null,
        LinkType::LOOP => Link::Loop,
        _ => return None,
    })
}

impl Report<'_> {
    fn count(&mut self, end: &Disposition) {
        let slot = match end.judgement {
            Judgement::Accept(by) => {
                self.decided(end, by);
                &mut self.verdicts.accept
            }
            Judgement::Drop(reason) => {
                self.drop_reasons.count(reason);
                self.decided(end, by_of(reason));
                &mut self.verdicts.drop
            }
            Judgement::Reject(by) => {
                self.decided(end, Some(by));
                &mut self.verdicts.reject
            }
            Judgement::Unknown => &mut self.verdicts.unknown,
            Judgement::Skip(skip) => {
                self.skipped.count(skip);
                &mut self.verdicts.skip
            }
        };
        slot.add(end.bytes);
        self.offload += u64::from(end.offload);
        self.midstream_flows += u64::from(end.midstream == Midstream::First);
        self.midstream_packets += u64::from(end.midstream != Midstream::No);
    }

    fn decided(&mut self, end: &Disposition, by: Option<By>) {
        if let (Some(family), Some(by)) = (end.family, by) {
            self.decisions.entry((family, by)).or_default().add(end.bytes);
        }
    }
}

fn by_of(reason: DropReason) -> Option<By> {
    match reason {
        DropReason::Rule(at) => Some(By::Rule(at)),
        DropReason::Policy { table, chain } => Some(By::Policy { table, chain }),
        DropReason::HotDrop(at) => Some(By::HotDrop(at)),
        DropReason::Stack(_) | DropReason::Ttl | DropReason::Conntrack => None,
    }
}

impl DropReasons {
    fn count(&mut self, reason: DropReason) {
        match reason {
            DropReason::Rule(_) => self.rule += 1,
            DropReason::Policy { .. } => self.policy += 1,
            DropReason::HotDrop(_) => self.hotdrop += 1,
            DropReason::Stack(fault) => {
                self.stack += 1;
                *self.stack_faults.entry(fault).or_default() += 1;
            }
            DropReason::Ttl => self.ttl += 1,
            DropReason::Conntrack => self.conntrack += 1,
        }
    }
}

impl Skipped {
    fn count(&mut self, skip: Skip) {
        match skip {
            Skip::Family => self.family += 1,
            Skip::Duplicate => self.duplicate += 1,
            Skip::LinkType => self.link_type += 1,
            Skip::Fragment => self.fragment += 1,
        }
    }
}
