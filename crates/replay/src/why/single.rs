//! Packet specs by the hundred, each by itself and told in a line, for whoever looks for one that is let through.

use std::sync::Arc;

use dataplane::{Config, Evaluator, Program};

use super::{Past, tell};
use crate::cases::PlaceName;
use crate::decider::Decider;
use crate::report::{UnknownReason, walk_flags};
use crate::rules_file::{RulesFile, program};
use crate::spec::{self, SpecError};

/// Rules that packet specs are asked about.
#[derive(Debug)]
pub struct Singles {
    program: Program,
    files: Arc<[RulesFile]>,
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
    /// These rules, laid out once.
    #[must_use]
    pub fn of(files: &[RulesFile], config: &Config) -> Self {
        Self { program: program(files, config), files: files.into() }
    }

    /// The options that give how packets walk, to be typed again, each with a blank before it.
    #[must_use]
    pub fn flags(&self) -> String {
        walk_flags(&self.files, self.program.config(), spec::CT)
    }

    /// The verdict on a packet spec that nothing came before.
    ///
    /// # Errors
    /// The first word that is not what was expected.
    pub fn ask(&self, packet: &str) -> Result<Single, SpecError> {
        let spec = spec::parse(packet)?;
        let mut evaluator = Evaluator::new(&self.program);
        let (mut bytes, arrival) = (spec.frame.clone(), spec.arrival(1, 0));
        let mut past = Past::default();
        let story = tell(&mut evaluator, &self.files, &mut bytes, &arrival, None, &mut past);
        let because = story.report.unknown_places().into_iter();
        Ok(Single {
            verdict: story.end.verdict.word(),
            by: story.report.decided_by(&story.end),
            place: PlaceName::of(&Decider::of(&story.end, None), &self.files),
            because: because.map(|reason| words(&reason)).collect(),
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
