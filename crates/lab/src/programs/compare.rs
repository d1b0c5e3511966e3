//! What the kernel counted beside what a replay says.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::Path;
use std::process::Command;

use super::counters::{Counted, CounterName, Told, of_json, reached_from};
use super::recording::{Act, Recording, Way};
use super::scenes::Scene;

/// A counter that the replay has wrong, and no doubt about it.
#[derive(Clone, Debug)]
pub struct Wrong {
    /// Which.
    pub place: CounterName,
    /// What the kernel has.
    pub kernel: Counted,
    /// What the replay has.
    pub told: Told,
}

/// One scene, recorded one way.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// Counters compared.
    pub counters: usize,
    /// Counters that moved and that the document does not have: of tables that were not evaluated.
    pub untold: usize,
    /// Surely wrong.
    pub wrong: Vec<Wrong>,
    /// Counters that differ by packets which no tap of this way shows; see `unseen`.
    pub apart: usize,
    /// Frames, and those of them that were no packets of their own.
    pub frames: u64,
    /// See `frames`.
    pub skipped: u64,
    /// Packets with a verdict that is unknown.
    pub unknown: u64,
    /// The first causes of that.
    pub because: Vec<String>,
    /// Packets that the replay drops and the capture shows leaving, if the document counts them.
    pub contradictions: Option<u64>,
    /// What the replay warned of.
    pub warnings: Vec<String>,
}

impl Comparison {
    /// Unknown packets in a hundred of those that have a verdict.
    pub fn unknown_share(&self) -> f64 {
        let walked = self.frames.saturating_sub(self.skipped).max(1);
        100.0 * self.unknown as f64 / walked as f64
    }

    /// Whether it is as it must be for this way of recording.
    pub fn is_good(&self, scene: Scene, way: Way) -> bool {
        self.wrong.is_empty()
            && (self.untold == 0 || scene.hidden() > 0.0)
            && self.contradictions.unwrap_or(0) == 0
            && self.unknown_share() <= way.most_unknown(scene)
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let contradictions =
            self.contradictions.map_or("-".to_owned(), |packets| packets.to_string());
        write!(
            f,
            "counters {:3}  untold {:2}  wrong {:3}  apart {:2}  unknown {:5.1} %  contradictions {contradictions}",
            self.counters,
            self.untold,
            self.wrong.len(),
            self.apart,
            self.unknown_share(),
        )
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Told { packets, maybe } = self.told;
        let told = packets..=packets + maybe;
        write!(
            f,
            "{}: kernel {}, replay {told:?}: {}",
            self.place, self.kernel.packets, self.kernel.text
        )
    }
}

/// Replays the captures of `way` by the binary `tamis`, act by act, and compares.
pub fn compare(
    scene: Scene,
    recording: &Recording,
    way: Way,
    tamis: &Path,
) -> io::Result<Comparison> {
    let mut whole = Comparison::default();
    for &act in recording.acts(way) {
        let document = replayed(scene, recording, way, act, tamis)?;
        whole.read(&document);
        whole.hold(scene, &recording.kernel(act), way, &of_json(&document));
    }
    whole.because.truncate(3);
    Ok(whole)
}

/// The document `tamis.replay/1` of one act.
fn replayed(
    scene: Scene,
    recording: &Recording,
    way: Way,
    act: Act,
    tamis: &Path,
) -> io::Result<serde_json::Value> {
    let output = Command::new(tamis)
        .arg("replay")
        .arg(recording.host(act))
        .args(recording.captures(way, scene)?)
        .args(recording.span(act))
        .arg("--json")
        .output()
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", tamis.display())))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("{}: {}", output.status, message.trim())));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

impl Comparison {
    /// Adds what a document says of packets.
    fn read(&mut self, document: &serde_json::Value) {
        let number = |value: &serde_json::Value| value.as_u64().unwrap_or(0);
        let lines = |key: &str| document[key].as_array().into_iter().flatten();
        self.frames += number(&document["packets"]);
        self.skipped += number(&document["verdicts"]["skip"]["packets"]);
        self.unknown += number(&document["verdicts"]["unknown"]["packets"]);
        self.because.extend(
            lines("unknown_because")
                .map(|cause| format!("{} x {}", cause["packets"], cause["what"])),
        );
        if let Some(packets) = document["contradictions"]["packets"].as_u64() {
            *self.contradictions.get_or_insert(0) += packets;
        }
        self.warnings.extend(lines("warnings").filter_map(|line| line.as_str()).map(str::to_owned));
    }

    /// Holds what a replay says of counters to the kernel's.
    fn hold(
        &mut self,
        scene: Scene,
        kernel: &BTreeMap<CounterName, Counted>,
        way: Way,
        told: &BTreeMap<CounterName, Told>,
    ) {
        let unseen = unseen(scene, kernel, way);
        for (place, kernel) in kernel {
            self.counters += 1;
            let Some(told) = told.get(place).copied() else {
                self.untold += usize::from(kernel.packets > 0);
                continue;
            };
            if told.allows(kernel.packets, 0) {
                continue;
            }
            let is_cut = way == Way::One && scene.is_cut() && scene.leaves_by_one(&kernel.text);
            if is_cut || told.allows(kernel.packets, unseen.get(place).copied().unwrap_or(0)) {
                self.apart += 1;
            } else {
                let (place, kernel) = (place.clone(), kernel.clone());
                self.wrong.push(Wrong { place, kernel, told });
            }
        }
    }
}

/// How many packets a counter may have that no tap of this way shows.
///
/// What OUTPUT drops or rejects never reaches a device, and the rule that did it has counted it: that many packets may
/// be missing in every chain reached from there. Packets that the kernel hands back to itself are counted by rules
/// that the scene names; that many may be missing anywhere. Of a recording of what came in, all that the host sent is
/// missing; of that of one interface what came and went by others, but for rules that ask for what came in by it.
fn unseen(
    scene: Scene,
    kernel: &BTreeMap<CounterName, Counted>,
    way: Way,
) -> BTreeMap<CounterName, u64> {
    let is_inbound = way == Way::In;
    let roots: &[&str] = if is_inbound { &["output", "postrouting"] } else { &["output"] };
    let own = reached_from(kernel, roots);
    let is_own = |place: &CounterName| {
        own.contains(&(place.family.clone(), place.table.clone(), place.chain.clone()))
    };
    let sum = |family: &str, wanted: &dyn Fn(&CounterName, &Counted) -> bool| -> u64 {
        let of_family = kernel.iter().filter(|(place, _)| place.family == family);
        of_family
            .filter(|(place, counted)| wanted(place, counted))
            .map(|(_, counted)| counted.packets)
            .sum()
    };
    let named = scene.unseen();
    let looped =
        |place: &CounterName, _: &Counted| named.iter().any(|(rule, _)| *rule == place.to_string());
    let dropped = |place: &CounterName, counted: &Counted| is_own(place) && counted.ends_packets();
    let is_of_others =
        |place: &CounterName| way == Way::One && !scene.comes_in_on_one(&kernel[place].text);
    let most = |place: &CounterName| match (is_own(place), is_inbound) {
        _ if is_of_others(place) => u64::MAX,
        (true, true) => u64::MAX,
        (true, false) => sum(&place.family, &looped) + sum(&place.family, &dropped),
        (false, _) => sum(&place.family, &looped),
    };
    kernel.keys().map(|place| (place.clone(), most(place))).collect()
}
