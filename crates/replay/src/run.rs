//! Feeds captures to the handler, packet by packet, and gathers the report.
//!
//! Contract: constant memory in the length of the captures; several captures are one stream in argument
//! order; time never runs backwards (a packet with an earlier time takes the latest time, and is counted).

use std::io::Write;
use std::time::Instant;

use dataplane::{Arrival, Config, Disposition, DropReason, Handler, Judgement, Skip};
use packet::{Checksums, Link, Packet};
use pktio::{Burst, CaptureReader, FrameMut, LinkType, Port};
use rules::eval::By;

use crate::error::Error;
use crate::recorder::Recorder;
use crate::report::examples::Example;
use crate::report::timeline::Timeline;
use crate::report::{Capture, DropReasons, Listed, Report, Skipped};
use crate::rules_file::RulesFile;

/// Which packets to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    /// Dropped ones.
    Drop,
    /// Rejected ones.
    Reject,
    /// Those whose verdict is unknown.
    Unknown,
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
}

/// Replays captures against rules.
///
/// # Errors
/// A capture cannot be opened or read, or the verdicts cannot be written. A capture that is cut off or
/// damaged is no error: its packets before that count, and the report warns.
pub fn replay<'f>(
    files: &'f [RulesFile],
    captures: &[String],
    config: &'f Config,
    wanted: &mut Wanted<'_>,
) -> Result<Report<'f>, Error> {
    let started = Instant::now();
    let mut replay = Replay {
        handler: Handler::new(files.iter().map(|file| &file.ruleset), config),
        recorder: Recorder::new(files),
        report: Report::new(files, config),
        now: None,
    };
    replay.report.timeline = wanted.page.then(Timeline::default);
    let mut burst = Burst::new();
    for capture in captures {
        replay.capture(capture, &mut burst, wanted)?;
    }
    let mut report = replay.report;
    report.take(replay.recorder);
    report.elapsed_s = started.elapsed().as_secs_f64();
    Ok(report)
}

struct Replay<'f> {
    handler: Handler<'f>,
    recorder: Recorder,
    report: Report<'f>,
    /// The latest time seen.
    now: Option<u64>,
}

impl Replay<'_> {
    fn capture(
        &mut self,
        name: &str,
        burst: &mut Burst,
        wanted: &mut Wanted<'_>,
    ) -> Result<(), Error> {
        let mut reader = CaptureReader::open(name)?;
        let mut capture = Capture { file: name.to_owned(), ..Capture::default() };
        while reader.rx_burst(burst)? > 0 {
            for frame in burst.iter_mut() {
                let index = frame.meta.interface as usize;
                let interface = reader.interfaces().get(index).and_then(|i| i.name.as_deref());
                self.frame(frame, interface, &mut capture, wanted)
                    .map_err(|source| Error::File { file: "--verdicts".to_owned(), source })?;
            }
            if let Some(progress) = &mut wanted.progress {
                progress(reader.bytes_read(), reader.total_bytes());
            }
        }
        self.report.warnings.extend(reader.warning());
        self.report.captures.push(capture);
        Ok(())
    }

    fn frame(
        &mut self,
        frame: FrameMut<'_>,
        interface: Option<&str>,
        capture: &mut Capture,
        wanted: &mut Wanted<'_>,
    ) -> std::io::Result<()> {
        let time = frame.meta.timestamp.and_then(|time| u64::try_from(time.as_nanos()).ok());
        let time = self.clamp(time);
        capture.count(u64::from(frame.meta.wire_length), time);
        self.report.packets += 1;
        let disposition = match link_of(frame.meta.link_type) {
            None => skipped(Skip::LinkType),
            Some(link) => {
                let arrival = Arrival {
                    link,
                    wire_len: frame.meta.wire_length as usize,
                    time,
                    direction: frame.meta.direction,
                    interface,
                    input: None,
                    output: None,
                    mark: 0,
                };
                self.recorder.next_packet();
                let disposition =
                    self.handler.handle(&mut *frame.bytes, &arrival, &mut self.recorder);
                self.recorder.ended(&disposition);
                if wanted.page {
                    self.example(&disposition, frame.bytes, &arrival);
                }
                self.list(&disposition, frame.bytes, &arrival, wanted);
                disposition
            }
        };
        if let Some(timeline) = &mut self.report.timeline {
            timeline.count(time, &disposition.judgement);
        }
        self.report.count(&disposition);
        match &mut wanted.verdicts {
            Some(to) => writeln!(to, "{}", disposition.judgement.word()),
            None => Ok(()),
        }
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

    fn list(
        &mut self,
        disposition: &Disposition,
        bytes: &mut [u8],
        arrival: &Arrival<'_>,
        wanted: &Wanted<'_>,
    ) {
        let Some((which, limit)) = wanted.list else { return };
        let listed = match which {
            List::Drop => matches!(disposition.judgement, Judgement::Drop(_)),
            List::Reject => matches!(disposition.judgement, Judgement::Reject(_)),
            List::Unknown => disposition.judgement == Judgement::Unknown,
        };
        if !listed || self.report.listed.len() >= limit {
            return;
        }
        let packet = in_words(bytes, arrival);
        let frame = self.report.packets;
        let time = arrival.time;
        self.report.listed.push(Listed { frame, time, packet, disposition: *disposition });
    }

    fn example(&mut self, disposition: &Disposition, bytes: &mut [u8], arrival: &Arrival<'_>) {
        let frame = self.report.packets;
        self.report.examples.offer(disposition, || Example {
            frame,
            time: arrival.time,
            packet: in_words(bytes, arrival),
        });
    }
}

/// A packet in one line.
fn in_words(bytes: &mut [u8], arrival: &Arrival<'_>) -> String {
    Packet::parse(bytes, arrival.wire_len, arrival.link, Checksums::Ignore).to_string()
}

fn skipped(skip: Skip) -> Disposition {
    Disposition {
        judgement: Judgement::Skip(skip),
        family: None,
        path: None,
        bytes: 0,
        offload: false,
    }
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
        DropReason::Stack(_) | DropReason::Ttl => None,
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
        }
    }
}

impl Skipped {
    fn count(&mut self, skip: Skip) {
        match skip {
            Skip::Family => self.family += 1,
            Skip::Duplicate => self.duplicate += 1,
            Skip::LinkType => self.link_type += 1,
        }
    }
}
