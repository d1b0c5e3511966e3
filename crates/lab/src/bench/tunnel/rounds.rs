//! Figures of all overlays, round by round, and the rows that they make.
//!
//! Contract: an overlay without a figure in a round has none in the ratios of that round; why is told once. Tamis stands
//! beside the best of its peers, as the medians of the rounds have it; the bare way is no peer.

use std::io;

use serde_json::Value;

use super::overlay::VETH;
use crate::bench::document::{Row, Runs};
use crate::bench::rows::Rows;

/// The name of our own rows.
pub(super) const OURS: &str = "tamis";

/// What is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Better {
    /// As of bits per second.
    More,
    /// As of milliseconds.
    Less,
}

/// What is measured.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Measure {
    name: &'static str,
    unit: &'static str,
    better: Better,
    params: Vec<(&'static str, Value)>,
}

impl Measure {
    pub(super) fn new(name: &'static str, unit: &'static str, better: Better) -> Self {
        Self { name, unit, better, params: Vec::new() }
    }

    /// With a parameter.
    pub(super) fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.params.push((name, value.into()));
        self
    }
}

/// A figure of one round.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figure {
    value: f64,
    /// What else was seen meanwhile, whose medians are the row's parameters.
    seen: Vec<(&'static str, f64)>,
}

impl Figure {
    pub(super) fn new(value: f64) -> Self {
        Self { value, seen: Vec::new() }
    }

    /// With what was seen meanwhile.
    pub(super) fn seen(mut self, name: &'static str, value: f64) -> Self {
        self.seen.push((name, value));
        self
    }
}

/// Figures of a measure, of one overlay, by the round.
struct Series {
    measure: Measure,
    overlay: &'static str,
    workers: Option<usize>,
    rounds: Vec<(usize, Figure)>,
}

/// All figures of a run.
#[derive(Default)]
pub(super) struct Figures {
    series: Vec<Series>,
    missing: Vec<(&'static str, String)>,
}

/// Where an overlay's figures of a round are noted.
pub(super) struct Sheet<'f> {
    figures: &'f mut Figures,
    overlay: &'static str,
    workers: Option<usize>,
    round: usize,
}

impl Figures {
    /// For an overlay's turn in a round.
    pub(super) fn sheet(
        &mut self,
        (overlay, workers): (&'static str, Option<usize>),
        round: usize,
    ) -> Sheet<'_> {
        Sheet { figures: self, overlay, workers, round }
    }

    /// Writes rows, and what is missing.
    pub(super) fn tell(self, out: &mut Rows) {
        for series in &self.series {
            out.push(self.row(series));
        }
        for (overlay, why) in self.missing {
            out.lacks(overlay, why);
        }
    }

    fn row(&self, series: &Series) -> Row {
        let Series { measure, overlay, workers, .. } = series;
        let mut row = Row::new(measure.name, overlay, measure.unit, &series.values());
        for (name, value) in &measure.params {
            row = row.with(name, value.clone());
        }
        if let Some(workers) = workers {
            row = row.with("workers", *workers);
        }
        for (name, median) in series.seen() {
            row = row.with(name, median);
        }
        match self.best_beside(series).filter(|_| *overlay == OURS) {
            Some(best) => {
                let (ours, theirs) = series.paired(best);
                row.beside(best.overlay, &ours, &theirs)
            }
            None => row,
        }
    }

    /// The best of the peers by the same measure.
    fn best_beside(&self, ours: &Series) -> Option<&Series> {
        let is_peer = |one: &&Series| {
            one.measure == ours.measure && one.overlay != OURS && one.overlay != VETH
        };
        let by_median = |one: &&Series, other: &&Series| one.median().total_cmp(&other.median());
        let peers = self.series.iter().filter(is_peer);
        match ours.measure.better {
            Better::More => peers.max_by(by_median),
            Better::Less => peers.min_by(by_median),
        }
    }
}

impl Series {
    fn values(&self) -> Vec<f64> {
        self.rounds.iter().map(|(_, figure)| figure.value).collect()
    }

    fn median(&self) -> f64 {
        Runs::of(self.values()).value
    }

    /// The medians of what was seen.
    fn seen(&self) -> Vec<(&'static str, f64)> {
        let mut all: Vec<(&'static str, Vec<f64>)> = Vec::new();
        for (name, value) in self.rounds.iter().flat_map(|(_, figure)| &figure.seen) {
            match all.iter_mut().find(|(of, _)| of == name) {
                Some((_, values)) => values.push(*value),
                None => all.push((name, vec![*value])),
            }
        }
        all.into_iter().map(|(name, values)| (name, Runs::of(values).value)).collect()
    }

    /// The figures of both in the rounds that both have.
    fn paired(&self, other: &Self) -> (Vec<f64>, Vec<f64>) {
        let of = |round: usize| other.rounds.iter().find(|(one, _)| *one == round);
        let both = self.rounds.iter().filter_map(|(round, figure)| {
            of(*round).map(|(_, theirs)| (figure.value, theirs.value))
        });
        both.unzip()
    }
}

impl Sheet<'_> {
    /// Notes a figure, or why there is none.
    pub(super) fn note(&mut self, measure: Measure, figure: io::Result<Figure>) {
        match figure {
            Ok(figure) => self.figure(measure, figure),
            Err(error) => self.lack(&format!("{}: {error}", measure.name)),
        }
    }

    /// Notes why something is not there.
    pub(super) fn lack(&mut self, why: &str) {
        let missing = (self.overlay, why.to_owned());
        if !self.figures.missing.contains(&missing) {
            self.figures.missing.push(missing);
        }
    }

    fn figure(&mut self, measure: Measure, figure: Figure) {
        let Self { overlay, workers, round, .. } = *self;
        let series = &mut self.figures.series;
        let is = |one: &&mut Series| {
            (&one.measure, one.overlay, one.workers) == (&measure, overlay, workers)
        };
        match series.iter_mut().find(is) {
            Some(series) => series.rounds.push((round, figure)),
            None => {
                series.push(Series { measure, overlay, workers, rounds: vec![(round, figure)] })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate() -> Measure {
        Measure::new("tunnel.tcp1", "bits/s", Better::More).with("streams", 1)
    }

    /// Rows of these figures, by overlay and round.
    fn rows(measure: &Measure, figures: &[(&'static str, usize, f64)]) -> Rows {
        let mut all = Figures::default();
        for (overlay, round, value) in figures {
            let figure = Figure::new(*value).seen("cpu", value * 10.0);
            all.sheet((overlay, None), *round).note(measure.clone(), Ok(figure));
        }
        let mut out = Rows::kept();
        all.tell(&mut out);
        out
    }

    fn beside(out: &Rows) -> Option<(&'static str, f64, f64)> {
        let ours = out.rows().iter().find(|row| row.engine == OURS)?;
        ours.peer.as_ref().map(|peer| (peer.peer, peer.value, peer.ratio))
    }

    #[test]
    fn ours_stands_beside_the_best_peer_and_nobody_else_does() {
        let figures = [
            (VETH, 0, 100.0),
            ("slow", 0, 1.0),
            ("fast", 0, 2.0),
            (OURS, 0, 3.0),
            ("slow", 1, 1.0),
            ("fast", 1, 4.0),
            (OURS, 1, 5.0),
        ];
        let out = rows(&rate(), &figures);
        assert_eq!(out.rows().len(), 4);
        assert_eq!(beside(&out), Some(("fast", 3.0, 1.375)));
        let alone = out.rows().iter().filter(|row| row.engine != OURS);
        assert!(alone.clone().all(|row| row.peer.is_none()) && alone.count() == 3);
        let less = Measure { better: Better::Less, ..rate() };
        assert_eq!(beside(&rows(&less, &figures)), Some(("slow", 1.0, 4.0)));
        let ours = out.rows().iter().find(|row| row.engine == OURS).unwrap();
        assert_eq!((&ours.params["cpu"], &ours.params["streams"]), (&40.0.into(), &1.into()));
    }

    #[test]
    fn a_round_that_failed_is_in_no_ratio_and_is_told() {
        let mut all = Figures::default();
        for (overlay, round, value) in
            [("peer", 0, 1.0), (OURS, 0, 10.0), (OURS, 1, 99.0), ("peer", 2, 2.0), (OURS, 2, 10.0)]
        {
            all.sheet((overlay, None), round).note(rate(), Ok(Figure::new(value)));
        }
        for round in [1, 3] {
            all.sheet(("peer", None), round).note(rate(), Err(io::Error::other("no answer")));
        }
        let mut out = Rows::kept();
        all.tell(&mut out);
        assert_eq!(beside(&out), Some(("peer", 1.5, 7.5)));
        let missing: Vec<_> =
            out.missing().iter().map(|one| (&*one.peer, one.why.as_str())).collect();
        assert_eq!(missing, [("peer", "tunnel.tcp1: no answer")]);
    }

    #[test]
    fn other_parameters_are_another_measure() {
        let mut all = Figures::default();
        for streams in [1, 8] {
            let measure =
                Measure::new("tunnel.tcp", "bits/s", Better::More).with("streams", streams);
            all.sheet((OURS, None), 0).note(measure.clone(), Ok(Figure::new(1.0)));
            all.sheet(("peer", None), 0).note(measure, Ok(Figure::new(f64::from(streams))));
        }
        let mut out = Rows::kept();
        all.tell(&mut out);
        let ratios = out.rows().iter().filter_map(|row| row.peer.as_ref());
        assert_eq!(ratios.map(|peer| peer.ratio).collect::<Vec<_>>(), [1.0, 0.125]);
    }
}
