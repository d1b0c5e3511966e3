//! What JMH found, read from its JSON.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::bench::document::Runs;

/// Rounds whose figures count, as in the study: the last ones.
pub(super) const COUNTED: usize = 10;

/// A technique's rounds in one fork.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Measured {
    pub(super) technique: String,
    /// Structs of the ring, or frames of a burst.
    pub(super) varied: u32,
    /// Nanoseconds a packet, round by round.
    pub(super) rounds: Vec<f64>,
    /// Bytes that each packet of the rounds that count made the JVM allocate, where that was asked for.
    pub(super) allocated: Option<f64>,
}

impl Measured {
    /// The rounds that count.
    pub(super) fn counted(&self) -> &[f64] {
        counted(&self.rounds)
    }

    pub(super) fn median(&self) -> f64 {
        median(&self.rounds)
    }
}

/// The rounds that count.
fn counted(rounds: &[f64]) -> &[f64] {
    &rounds[rounds.len().saturating_sub(COUNTED)..]
}

fn median(rounds: &[f64]) -> f64 {
    Runs::of(counted(rounds).to_vec()).value
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Found {
    params: BTreeMap<String, String>,
    primary_metric: Primary,
    #[serde(default)]
    secondary_metrics: BTreeMap<String, Secondary>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Primary {
    /// Nanoseconds of each round, by fork.
    raw_data: Vec<Vec<f64>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Secondary {
    /// As of the primary.
    #[serde(default)]
    raw_data: Vec<Vec<f64>>,
}

/// Reads a result file; `varies` is the parameter that is a number of structs or frames.
pub(super) fn read(path: &Path, varies: &str) -> Result<Vec<Measured>, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("JMH's results: {error}"))?;
    parse(&text, varies)
}

/// The same of a text.
pub(super) fn parse(text: &str, varies: &str) -> Result<Vec<Measured>, String> {
    let found: Vec<Found> =
        serde_json::from_str(text).map_err(|error| format!("JMH's results: {error}"))?;
    found.into_iter().map(|one| measured(one, varies)).collect()
}

fn measured(found: Found, varies: &str) -> Result<Measured, String> {
    let word = |name: &str| {
        let value = found.params.get(name);
        value.ok_or_else(|| format!("JMH's results: expected the parameter {name}"))
    };
    let number = |name: &str| {
        let number = word(name)?.parse::<u32>();
        number.map_err(|error| format!("JMH's results: {name}: {error}"))
    };
    let packets = f64::from(number("packets")?.max(1));
    let rounds = found.primary_metric.raw_data.iter().flatten().map(|nanos| nanos / packets);
    let bytes = found.secondary_metrics.get("gc.alloc.rate.norm");
    let bytes = bytes.map(|bytes| bytes.raw_data.iter().flatten().map(|all| all / packets));
    Ok(Measured {
        technique: word("technique")?.clone(),
        varied: number(varies)?,
        rounds: rounds.collect(),
        allocated: bytes.map(|rounds| median(&rounds.collect::<Vec<_>>())),
    })
}
