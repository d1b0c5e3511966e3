//! What tamis and the kernel counted in series, beside each other.
//!
//! Source of the kernel's side: `iptables-legacy-save -c`, or `ip6tables-legacy-save -c`; of tamis's: `tamis ctl counters
//! --save` and `status`.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use super::{Order, Setting};
use crate::programs::counters::{Counted, CounterName, of_save};

/// What is sent between two readings of the counters, as the script does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Programs of host a talk to those of host b.
    Talk,
    /// And the other way round.
    TalkBack,
    /// Host a probes host b: the same packets each time.
    Probe,
    /// And the other way round.
    ProbeBack,
}

impl Phase {
    const ALL: [Self; 4] = [Self::Talk, Self::TalkBack, Self::Probe, Self::ProbeBack];

    fn is_same_each_time(self) -> bool {
        matches!(self, Self::Probe | Self::ProbeBack)
    }
}

/// Packets and bytes of a rule.
type Counts = (u64, u64);
/// What each rule counted in one phase.
type Deltas = BTreeMap<CounterName, Counts>;

/// What one run left behind.
#[derive(Debug)]
pub struct Played {
    /// Which way round.
    pub order: Order,
    texts: BTreeMap<CounterName, String>,
    /// Of each phase.
    phases: Vec<Reading>,
    /// Whether every frame on the wire was accounted for, at every reading.
    is_accounted: bool,
}

/// What both counted in a phase.
#[derive(Debug)]
struct Reading {
    tamis: Deltas,
    kernel: Deltas,
    /// What each dropped of what came from host a, and of what came from host b.
    dropped: [Drops; 2],
}

#[derive(Clone, Copy, Debug)]
struct Drops {
    tamis: u64,
    kernel: u64,
}

/// Something that is not as it must be.
#[derive(Clone, Debug)]
pub enum Finding {
    /// The second one dropped what the first one let through.
    Dropped {
        /// By the second one.
        frames: u64,
        /// Whose second one it was.
        order: Order,
        /// When.
        phase: Phase,
    },
    /// A rule counted more, or less, than what one of them dropped before the other saw it can explain.
    Counter {
        /// Which rule.
        rule: String,
        /// What tamis counted.
        tamis: Counts,
        /// What the kernel counted.
        kernel: Counts,
        /// Where and when: in one run, or by each in the order in which it met the packets first.
        place: &'static str,
        /// When.
        phase: Phase,
    },
    /// `received + made` is not `sent + dropped`.
    Unaccounted(Order),
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dropped { frames, order, phase } => {
                let order = order.name();
                write!(f, "{phase:?}, {order}: {frames} dropped that the first one let through")
            }
            Self::Counter { rule, tamis, kernel, place, phase } => write!(
                f,
                "{phase:?}, {place}: tamis [{}:{}], kernel [{}:{}]: {rule}",
                tamis.0, tamis.1, kernel.0, kernel.1
            ),
            Self::Unaccounted(order) => write!(f, "{}: frames are not accounted for", order.name()),
        }
    }
}

/// What there was to compare.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// Rules and policies.
    pub counters: usize,
    /// Those of them that counted anything.
    pub hit: usize,
    /// Packets that tamis's rules saw, of both orders.
    pub packets: u64,
    /// Frames that one of them dropped before the other.
    pub dropped: u64,
    /// What is wrong.
    pub findings: Vec<Finding>,
}

impl Played {
    /// Reads what a run left in `dir`.
    ///
    /// # Errors
    /// A file is missing, or no JSON.
    pub fn read(dir: &Path, setting: &Setting, order: Order) -> io::Result<Self> {
        let stages: Vec<Stage> = (0..=Phase::ALL.len())
            .map(|at| Stage::read(dir, setting, at))
            .collect::<Result<_, _>>()?;
        let texts = stages[0].tamis.iter().filter(|(_, counted)| !is_timed(&counted.text));
        let texts = texts.map(|(name, counted)| (name.clone(), counted.text.clone()));
        let reading = |pair: &[Stage]| Reading {
            tamis: deltas(&pair[0].tamis, &pair[1].tamis),
            kernel: deltas(&pair[0].kernel, &pair[1].kernel),
            dropped: [0, 1].map(|from| Drops {
                tamis: pair[1].dropped[from].tamis - pair[0].dropped[from].tamis,
                kernel: pair[1].dropped[from].kernel.saturating_sub(pair[0].dropped[from].kernel),
            }),
        };
        Ok(Self {
            order,
            texts: texts.collect(),
            phases: stages.windows(2).map(reading).collect(),
            is_accounted: stages.iter().all(|stage| stage.is_accounted),
        })
    }
}

/// One reading of all counters.
struct Stage {
    tamis: BTreeMap<CounterName, Counted>,
    kernel: BTreeMap<CounterName, Counted>,
    dropped: [Drops; 2],
    is_accounted: bool,
}

impl Stage {
    fn read(dir: &Path, setting: &Setting, at: usize) -> io::Result<Self> {
        let file =
            |name: &str, end: &str| fs::read_to_string(dir.join(format!("{name}-{at}.{end}")));
        let family = setting.family.name();
        let kernel = of_save(family, &file("kernel", "save")?);
        let status: serde_json::Value = serde_json::from_str(&file("status", "json")?)?;
        let wire = |input: &str| {
            let wires = status["wires"].as_array().into_iter().flatten();
            wires.clone().find(|wire| wire["in"] == input).cloned().unwrap_or_default()
        };
        let wires = [setting.left.interface, setting.right.interface].map(wire);
        let marked = |number: u64| {
            let name = |chain: &str| CounterName {
                family: family.to_owned(),
                table: "mangle".to_owned(),
                chain: chain.to_owned(),
                number,
            };
            let packets = |chain| kernel.get(&name(chain)).map_or(0, |counted| counted.packets);
            packets("FORWARD") - packets("POSTROUTING").min(packets("FORWARD"))
        };
        let dropped = [0, 1]
            .map(|from| Drops { tamis: refused(&wires[from]), kernel: marked(from as u64 + 1) });
        let is_accounted = wires.iter().all(is_accounted);
        let tamis = of_save(family, &file("tamis", "save")?);
        Ok(Self { tamis, kernel, dropped, is_accounted })
    }
}

/// What such a rule counts depends on microseconds between packets, which differ.
fn is_timed(rule: &str) -> bool {
    rule.contains("-m limit ")
}

/// Frames that did not leave, but for fragments, for which others did.
fn refused(wire: &serde_json::Value) -> u64 {
    let dropped = wire["dropped"].as_object().into_iter().flatten();
    dropped
        .filter(|(reason, _)| *reason != "fragment")
        .filter_map(|(_, count)| count.as_u64())
        .sum()
}

fn is_accounted(wire: &serde_json::Value) -> bool {
    let count = |key: &str| wire[key].as_u64().unwrap_or(u64::MAX / 4);
    let dropped = wire["dropped"].as_object().into_iter().flatten();
    let dropped: u64 = dropped.filter_map(|(_, count)| count.as_u64()).sum();
    count("received") + count("made") == count("sent") + dropped
}

/// What was counted in between, where tamis has a counter that packets in FORWARD can reach.
fn deltas(
    before: &BTreeMap<CounterName, Counted>,
    after: &BTreeMap<CounterName, Counted>,
) -> Deltas {
    let is_passed = |name: &CounterName| {
        name.table != "mangle" && !matches!(name.chain.as_str(), "INPUT" | "OUTPUT")
    };
    let difference = |(name, counted): (&CounterName, &Counted)| {
        let earlier = before.get(name).map_or((0, 0), |counted| (counted.packets, counted.bytes));
        (name.clone(), (counted.packets - earlier.0, counted.bytes - earlier.1))
    };
    after.iter().filter(|(name, _)| is_passed(name)).map(difference).collect()
}

/// Holds two runs of the same rules to each other, one in each order.
#[must_use]
pub fn compare(runs: &[Played]) -> Compared {
    let mut compared = Compared::default();
    for run in runs {
        within(run, &mut compared);
    }
    if let [one, other] = runs {
        across(one, other, &mut compared);
        across(other, one, &mut compared);
    }
    let Some(first) = runs.first() else { return compared };
    compared.counters = first.texts.len();
    let is_hit = |name: &&CounterName| {
        runs.iter().flat_map(|run| &run.phases).any(|phase| count(&phase.tamis, name).0 > 0)
    };
    compared.hit = first.texts.keys().filter(is_hit).count();
    compared
}

/// One run: the second drops nothing that the first let through, and counters differ by what was dropped at most.
fn within(run: &Played, compared: &mut Compared) {
    if !run.is_accounted {
        compared.findings.push(Finding::Unaccounted(run.order));
    }
    for (phase, reading) in Phase::ALL.into_iter().zip(&run.phases) {
        let [left, right] = reading.dropped;
        let (second, first) = match run.order {
            Order::Before => (left.kernel + right.tamis, [left.tamis, right.kernel]),
            Order::After => (left.tamis + right.kernel, [right.tamis, left.kernel]),
        };
        if second > 0 {
            compared.findings.push(Finding::Dropped { frames: second, order: run.order, phase });
        }
        compared.dropped += first[0] + first[1];
        for (name, text) in run.texts.iter().filter(|(name, _)| reading.kernel.contains_key(name)) {
            let (tamis, kernel) = (count(&reading.tamis, name), count(&reading.kernel, name));
            if name.table == "raw" && name.number == 0 {
                compared.packets += tamis.0;
            }
            let [more, less] = first;
            let is_alike = tamis.0 <= kernel.0 + more && kernel.0 <= tamis.0 + less;
            let is_equal = first == [0, 0] && tamis == kernel;
            if !is_equal && (!is_alike || first == [0, 0]) {
                let place = run.order.name();
                let rule = format!("{name}: {text}");
                compared.findings.push(Finding::Counter { rule, tamis, kernel, place, phase });
            }
        }
    }
}

/// Packets that are the same each time: what tamis counts in one order the kernel counts in the other.
fn across(tamis: &Played, kernel: &Played, compared: &mut Compared) {
    let phases = Phase::ALL.into_iter().zip(tamis.phases.iter().zip(&kernel.phases));
    for (phase, (ours, theirs)) in phases.filter(|(phase, _)| phase.is_same_each_time()) {
        for (name, text) in tamis.texts.iter().filter(|(name, _)| theirs.kernel.contains_key(name))
        {
            let (tamis, kernel) = (count(&ours.tamis, name), count(&theirs.kernel, name));
            if tamis != kernel {
                let rule = format!("{name}: {text}");
                let place = "each in its turn";
                compared.findings.push(Finding::Counter { rule, tamis, kernel, place, phase });
            }
        }
    }
}

fn count(deltas: &Deltas, name: &CounterName) -> Counts {
    deltas.get(name).copied().unwrap_or_default()
}
