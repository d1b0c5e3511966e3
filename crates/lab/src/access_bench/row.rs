//! One measured figure, as `tamis.bench/1` has it.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

/// One measured figure.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// What was measured, such as `access.a.preset1`.
    pub name: String,
    /// On which engine.
    pub engine: String,
    /// Under which settings.
    pub params: BTreeMap<&'static str, Value>,
    /// The median.
    pub value: f64,
    /// Of what.
    pub unit: &'static str,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// Of so many.
    pub runs: usize,
    /// What it was measured beside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// The peer's median.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer_value: Option<f64>,
    /// Ours divided by the peer's: the median of what each round gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
}

impl Row {
    /// A row of these values.
    #[must_use]
    pub fn new(name: impl Into<String>, engine: &str, unit: &'static str, values: &[f64]) -> Self {
        Self {
            name: name.into(),
            engine: engine.to_owned(),
            params: BTreeMap::new(),
            value: median(values),
            unit,
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            runs: values.len(),
            peer: None,
            peer_value: None,
            ratio: None,
        }
    }

    /// With a parameter.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.params.insert(name, value.into());
        self
    }

    /// Beside a peer's values of the same rounds.
    #[must_use]
    pub fn beside(mut self, peer: &str, ours: &[f64], theirs: &[f64]) -> Self {
        let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(one, other)| one / other).collect();
        self.peer = Some(peer.to_owned());
        self.peer_value = Some(median(theirs));
        self.ratio = Some(median(&ratios));
        self
    }

    /// As one line.
    #[must_use]
    pub fn line(&self) -> String {
        let params: Vec<String> = self.params.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let ratio = self.ratio.map_or(String::new(), |ratio| {
            format!("  {ratio:.2}x {}", self.peer.as_deref().unwrap_or_default())
        });
        format!(
            "{:<22} {:<26} {:>10} {} [{} {}]{ratio}  {}",
            self.name,
            self.engine,
            short(self.value),
            self.unit,
            short(self.min),
            short(self.max),
            params.join(" ").replace('"', ""),
        )
    }
}

/// The middle value, or the mean of the two in the middle.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => values[count / 2],
        count => f64::midpoint(values[count / 2 - 1], values[count / 2]),
    }
}

/// A number in about four characters.
fn short(value: f64) -> String {
    let magnitude = value.abs();
    match magnitude {
        _ if magnitude >= 1e9 => format!("{:.2}G", value / 1e9),
        _ if magnitude >= 1e6 => format!("{:.2}M", value / 1e6),
        _ if magnitude >= 1e4 => format!("{:.1}k", value / 1e3),
        _ if magnitude >= 100.0 => format!("{value:.0}"),
        _ if magnitude >= 0.01 || magnitude == 0.0 => format!("{value:.3}"),
        _ => format!("{value:.1e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_ratios_are_of_rounds() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0]), 2.5);
        let (ours, theirs) = ([10.0, 20.0, 60.0], [5.0, 10.0, 10.0]);
        let row = Row::new("x", "tamis", "1/s", &ours).beside("matrix", &ours, &theirs);
        assert_eq!((row.value, row.peer_value, row.ratio), (20.0, Some(10.0), Some(2.0)));
    }
}
