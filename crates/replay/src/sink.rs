//! [`Sink`]: takes evaluated packets in capture order and writes what is wanted of them one by one.
//!
//! Contract: batches come in the order in which they were read, whichever worker evaluated them.

use std::io::Write;

use host::Host;
use host::sighting::Sighting;
use packet::Link;
use pktio::Frame;
use rules::model::Family;

use crate::batch::{Arrived, Batch, Outcome, sighting_at};
use crate::changes::Groups;
use crate::decider::{Decider, DeciderPlace};
use crate::error::Error;
use crate::evaluated::{Evaluated, PacketWords, flow_of};
use crate::groups::{Gathering, GroupBy, Grouped};
use crate::lane::{Keeps, Rules};
use crate::list::Lists;
use crate::logged::Loggers;
use crate::outputs::{Outputs, failed};
use crate::report::examples::{Example, Examples};
use crate::report::timeline::Timeline;
use crate::report::{Listed, Listing, Report};
use crate::rules_file::RulesFile;
use crate::source::Numbers;
use dataplane::link_of;

/// Where evaluated packets go.
pub(crate) struct Sink<'f, 'w> {
    rules: Rules<'f>,
    /// How frame numbers are printed.
    numbers: Numbers,
    /// Rules that record packets, once there is a record.
    loggers: Option<Loggers>,
    outputs: Outputs<'w>,
    verdicts: Option<&'w mut dyn Write>,
    /// What is listed, and how many packets are shown one by one.
    list: Option<(Listing, usize)>,
    listed: Vec<Listed>,
    changes: Option<Groups>,
    groups: Vec<Gathering>,
    /// What only the page shows.
    page: Option<(Timeline, Examples)>,
    /// Packets taken, and how many of the next ones were taken before.
    taken: u64,
    skip: u64,
    /// What was written of a batch is flushed with it.
    follows: bool,
    scratch: Vec<u8>,
}

impl<'f, 'w> Sink<'f, 'w> {
    pub(crate) fn new(
        rules: Rules<'f>,
        numbers: Numbers,
        outputs: Outputs<'w>,
        verdicts: Option<&'w mut dyn Write>,
        page: bool,
    ) -> Self {
        Self {
            rules,
            numbers,
            loggers: None,
            outputs,
            verdicts,
            list: None,
            listed: Vec::new(),
            changes: rules.new.map(|_| Groups::default()),
            groups: Vec::new(),
            page: page.then(Default::default),
            taken: 0,
            skip: 0,
            follows: false,
            scratch: Vec::new(),
        }
    }

    /// Lists packets, or groups them; a page shows some kinds of groups, of refused packets unless others are asked
    /// for.
    pub(crate) fn listing(self, list: Option<(Lists, usize)>, groups: &[GroupBy]) -> Self {
        let grouped = match &list {
            Some((lists, _)) if lists.has_packets() => lists.clone(),
            _ => Lists::refused(),
        };
        let kinds = GroupBy::ALL.into_iter().map(|by| (by, groups.contains(&by)));
        let shown = |by: GroupBy| self.page.is_some() && GroupBy::ON_PAGE.contains(&by);
        let kinds = kinds.filter(|(by, asked)| *asked || shown(*by));
        let groups: Vec<Gathering> =
            kinds.map(|(by, asked)| Gathering::new(by, asked, &grouped)).collect();
        // What is shown in groups is not shown one by one.
        let is_grouped = groups.iter().any(Gathering::is_asked);
        let list = list.map(|(lists, limit)| {
            let one_by_one = if is_grouped { 0 } else { limit };
            (Listing { lists, limit, found: 0 }, one_by_one)
        });
        Self { list, groups, ..self }
    }

    /// Keeps nobody waiting for what was written of a batch.
    pub(crate) fn following(self, follows: bool) -> Self {
        Self { follows, ..self }
    }

    /// What workers have to keep for this.
    pub(crate) fn keeps(&self) -> Keeps {
        let words = !self.outputs.is_none()
            || self.list.is_some()
            || self.page.is_some()
            || !self.groups.is_empty()
            || self.changes.is_some();
        Keeps {
            outcomes: words || self.verdicts.is_some(),
            bytes: words,
            sides: self.outputs.wants_words(),
            calls: self.groups.iter().any(|groups| groups.by() == GroupBy::Path),
        }
    }

    /// The packets taken so far come once more, and are not written again: how many they are.
    pub(crate) fn rewind(&mut self) -> u64 {
        self.skip = self.taken;
        self.taken
    }

    /// Takes the packets of a batch.
    pub(crate) fn take(&mut self, batch: &mut Batch) -> Result<(), Error> {
        let Batch { burst, arrived, seen, stream, outcomes, .. } = batch;
        let frames = burst.iter().zip(&*arrived).zip(outcomes.drain(..));
        for (at, ((frame, arrived), outcome)) in frames.enumerate() {
            if self.skip > 0 {
                self.skip -= 1;
                continue;
            }
            self.taken += 1;
            let interface = stream.interfaces.get(frame.meta.interface as usize);
            self.packet(frame, *arrived, sighting_at(seen, at), interface, &outcome)?;
        }
        if self.follows { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        if let Some(to) = &mut self.verdicts {
            to.flush().map_err(failed("--verdicts"))?;
        }
        self.outputs.flush()
    }

    fn packet(
        &mut self,
        frame: Frame<'_>,
        arrived: Arrived,
        sighting: Sighting,
        interface: Option<&pktio::Interface>,
        outcome: &Outcome,
    ) -> Result<(), Error> {
        let Outcome { end, by, new, sides: [input, output], states, path: _ } = outcome;
        if let Some((timeline, _)) = &mut self.page {
            timeline.count(arrived.time, &end.verdict);
        }
        if let Some(to) = &mut self.verdicts {
            writeln!(to, "{}", end.verdict.word()).map_err(failed("--verdicts"))?;
        }
        let link = link_of(frame.meta.link_type);
        if !self.outputs.is_none() {
            let Rules { files, new: new_files, config, .. } = self.rules;
            let place = by.place(&config.host, |family| of_family(files, family));
            let new_files = new_files.unwrap_or_default();
            let new_place = new.map(|(_, by)| place_in(by, &config.host, new_files, files));
            let words = link.filter(|_| self.outputs.wants_words());
            let logged_by = match words {
                Some(Link::Nflog) => {
                    self.loggers.get_or_insert_with(|| Loggers::of(files)).of_frame(frame.bytes)
                }
                _ => Vec::new(),
            };
            self.outputs.write(&Evaluated {
                frame: arrived.number,
                numbers: &self.numbers,
                bytes: frame.bytes,
                meta: frame.meta,
                time: arrived.time,
                interface,
                words: words.map(|link| words_of(&mut self.scratch, frame, link)),
                end,
                decider: *by,
                place: &place,
                sides: [input.as_deref(), output.as_deref()],
                states: *states,
                sighting,
                logged_by,
                new: new.as_ref().map(|(end, _)| end).zip(new_place.as_ref()),
            })?;
        }
        self.keep(frame, link, arrived, outcome);
        Ok(())
    }

    /// Keeps the packet as an example, on the list, and in its groups.
    fn keep(&mut self, frame: Frame<'_>, link: Option<Link>, arrived: Arrived, outcome: &Outcome) {
        let Outcome { end, by, new, .. } = outcome;
        let Arrived { number, time, .. } = arrived;
        let scratch = &mut self.scratch;
        let mut words = || match link {
            Some(link) => words_of(scratch, frame, link).line,
            None => format!("a frame of link type {}", frame.meta.link_type.0),
        };
        if let Some((_, examples)) = &mut self.page {
            examples.offer(end, || Example { frame: number, time, packet: words() });
        }
        let changed = match (&mut self.changes, new) {
            (Some(groups), Some((new, new_by))) => {
                let example = || Example { frame: number, time, packet: words() };
                groups.compare(end, *by, new, *new_by, example)
            }
            _ => false,
        };
        if let Some((listing, limit)) = &mut self.list
            && listing.lists.lists(end, changed)
        {
            listing.found += 1;
            if self.listed.len() < *limit {
                let (packet, new) = (words(), new.filter(|_| changed));
                let (disposition, by) = (*end, *by);
                self.listed.push(Listed { frame: number, time, packet, disposition, by, new });
            }
        }
        self.group(frame, link, arrived, outcome, changed);
    }

    /// Counts the packet in its groups.
    fn group(
        &mut self,
        frame: Frame<'_>,
        link: Option<Link>,
        arrived: Arrived,
        outcome: &Outcome,
        changed: bool,
    ) {
        let Some(any) = self.groups.first() else { return };
        let packet = Grouped {
            number: arrived.number,
            time: arrived.time,
            end: &outcome.end,
            by: outcome.by,
            path: outcome.path.as_deref(),
            flow: link.and_then(|link| flow_of(&mut self.scratch, frame, link)),
            listed: any.lists(&outcome.end, changed),
        };
        self.groups.iter_mut().for_each(|groups| groups.add(&packet));
    }

    /// Ends every file, and says in the report what was kept. The changes come back.
    pub(crate) fn finish(self, report: &mut Report) -> Result<Option<Groups>, Error> {
        self.outputs.finish()?;
        report.listed = self.listed;
        report.listing = self.list.map(|(listing, _)| listing);
        report.groups = self.groups.into_iter().map(Gathering::finish).collect();
        if let Some((timeline, examples)) = self.page {
            report.timeline = Some(timeline);
            report.examples = examples;
        }
        Ok(self.changes)
    }
}

/// A frame as text. Only a copy of it can be parsed: a batch lends its frames to be read.
fn words_of(scratch: &mut Vec<u8>, frame: Frame<'_>, link: Link) -> PacketWords {
    scratch.clear();
    scratch.extend_from_slice(frame.bytes);
    PacketWords::of(scratch, frame.meta.wire_length as usize, link)
}

fn of_family(files: &[RulesFile], family: Family) -> Option<&RulesFile> {
    files.iter().find(|file| file.ruleset.family == family)
}

/// The place of a decider under the new rules; families that these have none for keep their old ones.
fn place_in<'f>(
    decider: Decider,
    host: &Host,
    new: &'f [RulesFile],
    old: &'f [RulesFile],
) -> DeciderPlace<'f> {
    decider.place(host, |family| of_family(new, family).or_else(|| of_family(old, family)))
}
