//! A replay: captures against rules, on one thread or several, and the result.
//!
//! Contract: constant memory in the length of the captures; several captures are one stream, merged by time;
//! time never runs backwards (a packet out of order is put in order; a packet that comes too late for that takes the
//! latest time, and is counted). The report is the same for every number of threads, but for the time it took.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use access::list::Schedule;
use conntrack::steer::Shard;
use conntrack::{Mode, Tracker};
use rules::Class;

use crate::alone::Alone;
use crate::annotate::Annotation;
use crate::error::Error;
use crate::groups::GroupBy;
use crate::lane::{Counted, Lane, Rules, compared};
use crate::lines::Lines;
use crate::outputs::{Outputs, failed};
use crate::report::Report;
use crate::room::Room;
use crate::rules_file::{RulesFile, program};
use crate::select::Selection;
use crate::sink::Sink;
use crate::source::{Numbers, Reading, Source};
use crate::split::Split;
use crate::spotter::Spotter;
use crate::threads::{self, Ended};
use crate::walk::Setup;
use crate::walk::names::fit_captures;
use crate::why;

pub use crate::list::{List, Lists};
pub use dataplane::link_of;

/// What a replay is to do besides counting.
#[derive(Default)]
pub struct Wanted<'w> {
    /// Packets to list, or to group; and at most how many packets, rules or groups are shown.
    pub list: Option<(Lists, usize)>,
    /// Groups to make of those, instead of showing each.
    pub groups: Vec<GroupBy>,
    /// Where to write one word per packet.
    pub verdicts: Option<&'w mut dyn Write>,
    /// Also gather what only the page shows: verdicts over time, and example packets.
    pub page: bool,
    /// Called now and then with bytes read and, if known, bytes in all, of the current capture.
    pub progress: Option<&'w mut dyn FnMut(u64, Option<u64>)>,
    /// Which packets to evaluate.
    pub selection: Selection,
    /// Rules to compare with, at most one file per family.
    pub versus: Option<Vec<RulesFile>>,
    /// Where to write a JSON line per packet.
    pub packets: Option<&'w mut dyn Write>,
    /// Directory for one capture per verdict and per dropping rule.
    pub split: Option<PathBuf>,
    /// How much may be written there.
    pub room: Room,
    /// Where to write a pcapng with verdicts as packet comments.
    pub annotate: Option<&'w mut dyn Write>,
    /// Once true, the replay ends and reports what it has.
    pub stop: Option<Arc<AtomicBool>>,
    /// Packets are evaluated, and written, as they come: nothing is read ahead, and one worker does it all. One
    /// capture can be followed.
    pub follow: bool,
    /// Where to write a line for each packet, or for each one on a list.
    pub lines: Option<(Option<Lists>, &'w mut dyn Write)>,
    /// Workers that evaluate packets, on as many threads; one of them reads and reports, too. 0 is taken for 1.
    pub threads: usize,
}

impl<'w> Wanted<'w> {
    fn outputs(&mut self, files: &[RulesFile]) -> Result<Outputs<'w>, Error> {
        let first = files.first().map(|file| file.ruleset.family);
        Ok(Outputs {
            packets: self.packets.take(),
            lines: self.lines.take().map(|(list, to)| Lines { to, list }),
            split: self
                .split
                .take()
                .map(|dir| Split::new(&dir, first, self.room.clone()))
                .transpose()?,
            annotation: self
                .annotate
                .take()
                .map(Annotation::new)
                .transpose()
                .map_err(failed("--annotate"))?,
        })
    }
}

/// Replays captures against rules.
///
/// # Errors
/// A capture cannot be opened or read, a file cannot be written, a filter cannot be compiled, or rules to
/// compare with are of a family that the first rules are not. A capture that is cut off or damaged is no
/// error: its packets before that count, and the report warns.
pub fn replay(
    files: &[RulesFile],
    captures: &[String],
    setup: &Setup,
    wanted: &mut Wanted<'_>,
) -> Result<Report, Error> {
    let started = Instant::now();
    let new = wanted.versus.take();
    comparable(files, new.as_deref().unwrap_or_default())?;
    let Setup { config, start } = setup;
    fit_captures(captures, &config.host.links)?;
    let stop = wanted.stop.clone();
    let walked = program(files, setup);
    let new_walked = new.as_deref().map(|new| program(compared(new, files), setup));
    let rules = Rules {
        files,
        new: new.as_deref(),
        config,
        start,
        program: &walked,
        new_program: new_walked.as_ref(),
        stop: stop.as_ref(),
    };
    let mut report = Report::new(files.into(), Arc::clone(walked.config()));
    report.numbers = Numbers::of(captures);
    (report.class, report.class_because) = rules.class();
    let mut sink = Sink::new(
        rules,
        report.numbers.clone(),
        wanted.outputs(files)?,
        wanted.verdicts.take(),
        wanted.page,
    )
    .listing(wanted.list.take(), &wanted.groups)
    .following(wanted.follow);
    let reading = Reading {
        selection: std::mem::take(&mut wanted.selection),
        progress: wanted.progress.take(),
        stop: wanted.stop.clone(),
        follows: wanted.follow,
    };
    let mut source = Source::new(captures, Some(Spotter::new(files, config)), reading);
    report.one_worker = (wanted.follow && wanted.threads > 1).then_some(Alone::Follow);
    let counted = if wanted.follow || wanted.threads <= 1 {
        vec![alone(rules, &mut source, &mut sink)?]
    } else {
        several(rules, &mut source, &mut sink, &mut report, wanted.threads)?
    };
    let all = counted.into_iter().reduce(|mut all, one| {
        all.merge(one);
        all
    });
    let new_counters = all.and_then(|Counted { rules: counted, new: new_counted }| {
        counted.report(&mut report);
        new_counted.zip(rules.new).map(|(counted, files)| counted.into_counters(files))
    });
    let (read, selection) = source.finish();
    read.report(&mut report);
    report.warn_of_connections(start);
    report.selection = selection;
    let groups = sink.finish(&mut report)?;
    if wanted.page && !wanted.follow {
        tell_paths(rules, captures, wanted.stop.clone(), &mut report);
    }
    let found = new.zip(groups).zip(new_counters);
    report.changes = found.map(|((files, groups), counters)| groups.finish(files, counters));
    report.warn_of_options();
    report.elapsed_s = started.elapsed().as_secs_f64();
    Ok(report)
}

/// Tells the paths of the packets that the page names; what has been counted stands without them, too.
fn tell_paths(
    rules: Rules<'_>,
    captures: &[String],
    stop: Option<Arc<AtomicBool>>,
    report: &mut Report,
) {
    let named = report.named();
    let selection = std::mem::take(&mut report.selection);
    let reading = Reading { selection, stop, ..Reading::default() };
    let spotter = Some(Spotter::new(rules.files, rules.config));
    let mut source = Source::new(captures, spotter, reading);
    match why::paths(rules, &mut source, &report.numbers, &named) {
        Ok(paths) => report.paths_of = paths,
        Err(error) => report.warnings.push(format!("no paths of packets: {error}")),
    }
    report.selection = source.finish().1;
}

/// Evaluates on this thread.
fn alone(
    rules: Rules<'_>,
    source: &mut Source<'_, '_>,
    sink: &mut Sink<'_, '_>,
) -> Result<Counted, Error> {
    let lane = Lane::new(rules, sink.keeps(), None);
    threads::alone(lane, source, sink)
}

/// Evaluates with as many workers as the rules allow. Where packets turn out to depend on each other, starts again
/// with one.
fn several<'c>(
    mut rules: Rules<'c>,
    source: &mut Source<'c, '_>,
    sink: &mut Sink<'_, '_>,
    report: &mut Report,
    threads: usize,
) -> Result<Vec<Counted>, Error> {
    let (max, stop) = (rules.config.ct.max, rules.stop);
    let mut split = match &report.class {
        Class::Pure => threads::Split::Batches,
        Class::PerFlow(key) => threads::Split::Flows { key: key.clone(), connections: max as u64 },
        Class::Global(_) => threads::Split::None,
    };
    if report.class.key().is_some() && source.may_wait() {
        report.one_worker = Some(Alone::Once);
        split = threads::Split::None;
    }
    if rules.start.bans.as_ref().is_some_and(Schedule::changes_in_time) {
        report.one_worker = Some(Alone::Bans);
        split = threads::Split::None;
    }
    loop {
        let workers = match &split {
            threads::Split::None => 1,
            threads::Split::Batches => threads,
            threads::Split::Flows { .. } => threads.min(most_tables(max)),
        };
        let shard = |number| match &split {
            // Each has room for all: there is none for more than that in all of them.
            threads::Split::Flows { key, .. } => {
                Some(Shard { number, of: workers, key: key.clone(), max })
            }
            _ => None,
        };
        let keeps = sink.keeps();
        let lane = |number| Lane::new(rules, keeps, shard(number));
        match threads::several(workers, lane, split.clone(), stop, source, sink)? {
            Ended::Done(counted, why) => {
                report.one_worker = report.one_worker.or(why);
                return Ok(counted);
            }
            Ended::Again(why) => {
                report.one_worker = Some(why);
                split = threads::Split::None;
                // What was written is to come to the same once more.
                rules.stop = None;
                let spotter = Some(Spotter::new(rules.files, rules.config));
                source.restart(spotter, sink.rewind());
            }
        }
    }
}

/// Workers that have tables for this number of connections each: more would ask for address space that nobody uses.
fn most_tables(connections: usize) -> usize {
    const RESERVED: usize = 512 << 20;
    (RESERVED / Tracker::reserves(connections).max(1)).max(1)
}

impl Rules<'_> {
    /// How far packets depend on each other, under the new rules as well; where all do, why.
    fn class(&self) -> (Class, Option<String>) {
        let tracked = self.config.ct.mode != Mode::Off;
        let all = self.files.iter().chain(self.new.into_iter().flatten());
        let class = |file: &RulesFile| file.ruleset.class(tracked, self.start.sets.as_ref());
        let mut why = None;
        let class = all.fold(Class::Pure, |all, file| {
            let class = class(file);
            if let (Class::Global(because), None) = (&class, &why) {
                why = Some(file.because_text(*because));
            }
            all.or(class)
        });
        (class, why)
    }
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
