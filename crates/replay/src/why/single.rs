//! Batch mode: one result line for each of hundreds of packet specs, to search for a packet that is let through.

use std::sync::Arc;

use dataplane::{Evaluator, Program};

use super::past::Past;
use super::story::{Detail, of_spec};
use super::teller::tell_knowing;
use super::witness;
use crate::cases::PlaceName;
use crate::decider::Decider;
use crate::logged::Loggers;
use crate::report::{UnknownReason, walk_flags};
use crate::rules_file::{RulesFile, program};
use crate::spec::{self, SpecError};
use crate::walk::Setup;

/// Rules that packet specs are asked about.
#[derive(Debug)]
pub struct Singles {
    program: Program,
    files: Arc<[RulesFile]>,
    loggers: Loggers,
}

/// A packet's verdict in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Single {
    /// The word of `--verdicts`.
    pub verdict: &'static str,
    /// Line of what decided, 0 for none, and its text.
    pub by: Option<(u32, String)>,
    /// Where it stands in the rules.
    pub place: Option<PlaceName>,
    /// What an unknown verdict depends on, and what to give to know it.
    pub because: Vec<String>,
}

impl Singles {
    /// Lays these rules out, once.
    #[must_use]
    pub fn of(files: &[RulesFile], setup: &Setup) -> Self {
        let loggers = Loggers::of(files);
        Self { program: program(files, setup), files: files.into(), loggers }
    }

    /// The options that give how packets walk, to be typed again, each with a blank before it.
    #[must_use]
    pub fn flags(&self) -> String {
        walk_flags(&self.files, self.program.config(), spec::CT)
    }

    /// The verdict on a packet spec that nothing came before.
    ///
    /// # Errors
    /// The first word that is not what was expected, or that the host does not have.
    pub fn ask(&self, packet: &str) -> Result<Single, SpecError> {
        let config = self.program.config();
        let spec = spec::parse(packet)?;
        spec.fit(packet, config)?;
        let story = witness::hold(&self.loggers, &spec, |known| {
            let mut evaluator = Evaluator::new(&self.program);
            let arrival = known.arrival(spec.arrival(1, 0, config));
            let (mut bytes, mut past) = (spec.frame.clone(), Past::default());
            let (files, past) = (&self.files, &mut past);
            let (story, met) =
                tell_knowing(&mut evaluator, files, &mut bytes, &arrival, Detail::End, past, known);
            (of_spec(story, &spec), met)
        });
        let told = if story.contradiction.is_some() { None } else { Some(&story.end) };
        let reasons = told.map_or_else(Vec::new, |_| story.report.unknown_places());
        let contradiction = story.contradiction.iter().map(|it| it.what.clone());
        Ok(Single {
            verdict: story.verdict().word(),
            by: told.and_then(|end| story.report.decided_by(end)),
            place: told.and_then(|end| PlaceName::of(&Decider::of(end, None), &self.files)),
            because: contradiction.chain(reasons.iter().map(words)).collect(),
        })
    }
}

/// What a verdict depends on, with what to give to know it.
fn words(reason: &UnknownReason) -> String {
    match &reason.how {
        Some(how) => format!("{}: {how}", reason.what),
        None => reason.what.clone(),
    }
}
