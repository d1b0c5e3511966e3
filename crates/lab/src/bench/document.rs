//! A figure of a benchmark and what belongs to it, for programs and as a line for people.

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};
use std::fs;

use serde::Serialize;
use serde_json::{Map, Value};

/// The machine of a benchmark; what it does not tell is `unknown`, or 0.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// Name of the processor.
    pub cpu: String,
    /// Cores that this process may use.
    pub cores: usize,
    /// Release of the operating system.
    pub kernel: String,
}

/// One figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// What was measured, such as `replay.rate`.
    pub name: Cow<'static, str>,
    /// What did the work.
    pub engine: &'static str,
    /// What was varied, and the work as text.
    pub params: Map<String, Value>,
    /// Our figures.
    #[serde(flatten)]
    pub runs: Runs,
    /// Of all figures of the row.
    pub unit: &'static str,
    /// The peer's figure of the same work.
    #[serde(flatten)]
    pub peer: Option<Peer>,
}

/// Several runs of the same work.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Runs {
    /// The median of all runs.
    pub value: f64,
    /// The least of them.
    pub min: f64,
    /// The most of them.
    pub max: f64,
    /// How many runs.
    pub runs: usize,
}

/// A peer on the same work.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Peer {
    /// The program or engine.
    pub peer: &'static str,
    /// The median of its runs, in the unit of ours.
    #[serde(rename = "peer_value")]
    pub value: f64,
    /// Ours divided by it; where both ran round by round, the median of what each round gave.
    pub ratio: f64,
}

/// What could not be measured, or was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// Its name: a peer's, an engine's, or an experiment's.
    #[serde(rename = "missing")]
    pub peer: Cow<'static, str>,
    /// Why not.
    pub why: String,
}

impl Machine {
    /// This one.
    #[must_use]
    pub fn this() -> Self {
        let unknown = || "unknown".to_owned();
        let named = |text: String| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let read = |path: &str| fs::read_to_string(path).ok();
        Self {
            cpu: read("/proc/cpuinfo").and_then(named).unwrap_or_else(unknown),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            kernel: read("/proc/sys/kernel/osrelease")
                .map_or_else(unknown, |release| release.trim().to_owned()),
        }
    }
}

impl Runs {
    /// The figures of some runs; all 0 where there is none.
    #[must_use]
    pub fn of(mut figures: Vec<f64>) -> Self {
        figures.sort_by(f64::total_cmp);
        let at = |index: usize| figures.get(index).copied().unwrap_or_default();
        let last = figures.len().saturating_sub(1);
        let value = (at(last / 2) + at(last.div_ceil(2))) / 2.0;
        Self { value, min: at(0), max: at(last), runs: figures.len() }
    }
}

impl Row {
    /// A figure of these runs, so far without parameters and alone.
    #[must_use]
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        engine: &'static str,
        unit: &'static str,
        figures: &[f64],
    ) -> Self {
        let runs = Runs::of(figures.to_vec());
        Self { name: name.into(), engine, params: Map::new(), runs, unit, peer: None }
    }

    /// With a parameter.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.params.insert(name.to_owned(), value.into());
        self
    }

    /// Beside a peer whose runs were taken in turn with ours, round by round.
    #[must_use]
    pub fn beside(mut self, peer: &'static str, ours: &[f64], theirs: &[f64]) -> Self {
        let ratios = ours.iter().zip(theirs).map(|(one, other)| one / other).collect();
        let value = Runs::of(theirs.to_vec()).value;
        self.peer = Some(Peer { peer, value, ratio: Runs::of(ratios).value });
        self
    }
}

impl Peer {
    /// A peer's median beside ours.
    #[must_use]
    pub fn of(peer: &'static str, ours: Runs, theirs: Runs) -> Self {
        let ratio = if theirs.value > 0.0 { ours.value / theirs.value } else { 0.0 };
        Self { peer, value: theirs.value, ratio }
    }
}

impl Display for Machine {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { cpu, cores, kernel } = self;
        write!(f, "machine   {cpu}, {cores} cores, {kernel}")
    }
}

impl Display for Missing {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "missing   {}: {}", self.peer, self.why)
    }
}

impl Display for Row {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let plain = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Number(number) if number.is_f64() => figure(number.as_f64().unwrap_or_default()),
            value => value.to_string(),
        };
        // Long words have their own lines, in front of their figure.
        let (long, short): (Vec<_>, Vec<_>) =
            self.params.iter().partition(|(_, value)| plain(value).len() > 24);
        for (name, value) in long {
            writeln!(f, "  {name}: {}", plain(value))?;
        }
        let params: Vec<String> =
            short.iter().map(|(name, value)| format!("{name} {}", plain(value))).collect();
        let Runs { value, min, max, runs } = self.runs;
        let [value, min, max] = [value, min, max].map(figure);
        let work = format!("{}, {}", self.engine, params.join(", "));
        write!(
            f,
            "{:<22} {work:<52} {value:>8} {} ({min} to {max}, {runs} runs)",
            self.name, self.unit
        )?;
        match &self.peer {
            Some(Peer { peer, value, ratio }) => {
                write!(f, "; {peer} {}, ours/{peer} {}", figure(*value), figure(*ratio))
            }
            None => Ok(()),
        }
    }
}

/// A number in three digits or more, small ones by powers of ten, large ones by thousands.
fn figure(value: f64) -> String {
    match value.abs() {
        1e9.. => format!("{:.2}G", value / 1e9),
        1e6.. => format!("{:.2}M", value / 1e6),
        1e4.. => format!("{:.1}k", value / 1e3),
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        0.01.. => format!("{value:.2}"),
        0.0 => "0".to_owned(),
        _ => format!("{value:.2e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_both_middles() {
        let runs = |figures: &[f64]| Runs::of(figures.to_vec());
        assert_eq!(runs(&[3.0, 1.0, 8.0]), Runs { value: 3.0, min: 1.0, max: 8.0, runs: 3 });
        assert_eq!(runs(&[4.0, 1.0, 2.0, 9.0]).value, 3.0);
        assert_eq!(runs(&[]), Runs { value: 0.0, min: 0.0, max: 0.0, runs: 0 });
    }

    #[test]
    fn a_row_has_the_names_of_the_contract() {
        let ours = Runs::of(vec![30.0]);
        let row = Row {
            name: "replay.rate".into(),
            engine: "walk",
            params: Map::new(),
            runs: ours,
            unit: "packets/s",
            peer: Some(Peer::of("tcpdump", ours, Runs::of(vec![10.0]))),
        };
        let json = serde_json::json!({
            "name": "replay.rate", "engine": "walk", "params": {}, "value": 30.0, "min": 30.0,
            "max": 30.0, "runs": 1, "unit": "packets/s", "peer": "tcpdump", "peer_value": 10.0,
            "ratio": 3.0,
        });
        assert_eq!(serde_json::to_value(&row).unwrap(), json);
        let rounds = Row::new("x", "tamis", "1/s", &[10.0, 20.0, 60.0]).with("threads", 2).beside(
            "matrix",
            &[10.0, 20.0, 60.0],
            &[5.0, 10.0, 10.0],
        );
        assert_eq!(rounds.peer, Some(Peer { peer: "matrix", value: 10.0, ratio: 2.0 }));
        assert_eq!(rounds.params["threads"], 2);
        let alone = serde_json::to_value(Row { peer: None, ..row }).unwrap();
        assert!(alone.get("peer").is_none() && alone.get("ratio").is_none());
    }
}
