//! [`Program`]: what packets walk, ready to be walked. Immutable, and without anything that packets leave behind:
//! that is [`crate::State`]'s.
//!
//! Contract: owns its rules and its configuration, so it may be held, shared between threads and replaced by
//! another one between two packets.

use std::sync::Arc;

use conntrack::Mode;
use rules::Class;
use rules::model::{Family, Ruleset};

use crate::bridge;
use crate::config::Config;
use crate::course::Course;
use crate::path::Path;
use crate::walk::Tables;

/// The rules of one or more families, laid out, and what is given of the host that they stand on.
#[derive(Debug)]
pub struct Program {
    plans: Vec<Plan>,
    config: Arc<Config>,
}

/// The rules of one family, with what their walk needs at hand.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) tables: Tables,
    /// Where packets go that came in, when no address tells.
    pub(crate) of_rules: Course<'static>,
    /// A packet's result may depend on others; else nobody needs to know what it answers.
    pub(crate) is_coupled: bool,
    /// Some rule asks for ports of bridges.
    pub(crate) asks_for_ports: bool,
    /// The kernel would track connections, and so reassemble fragments first.
    pub(crate) ruleset_tracks: bool,
    /// They are tracked here, too.
    pub(crate) is_tracked: bool,
}

impl Program {
    /// These rulesets, at most one for each family.
    #[must_use]
    pub fn new(
        rulesets: impl IntoIterator<Item = impl Into<Arc<Ruleset>>>,
        config: impl Into<Arc<Config>>,
    ) -> Self {
        let config = config.into();
        let plans = rulesets.into_iter().map(|ruleset| Plan::new(ruleset.into(), &config));
        Self { plans: plans.collect(), config }
    }

    /// What is given of the host.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The rules of a family.
    #[must_use]
    pub fn ruleset(&self, family: Family) -> Option<&Arc<Ruleset>> {
        self.plans.iter().map(|plan| plan.tables.ruleset()).find(|rules| rules.family == family)
    }

    /// Whether connections are tracked.
    #[must_use]
    pub fn tracks(&self) -> bool {
        self.plans.iter().any(|plan| plan.is_tracked)
    }

    /// One for each family.
    pub(crate) fn plans(&self) -> &[Plan] {
        &self.plans
    }

    /// Whether it has rules of a bridge, which then sees frames before anybody else.
    pub(crate) fn bridges(&self) -> bool {
        self.plans.iter().any(|plan| plan.family() == Family::Bridge)
    }
}

impl Plan {
    fn new(ruleset: Arc<Ruleset>, config: &Config) -> Self {
        let ruleset_tracks = ruleset.tracks();
        let is_tracked = ruleset_tracks && config.ct.mode != Mode::Off;
        let sure = |path: Path| Course::sure(path);
        Self {
            of_rules: config.path.map_or_else(|| Course::of_rules(&ruleset), sure),
            is_coupled: ruleset.class(is_tracked, config.sets.as_ref()) != Class::Pure,
            asks_for_ports: bridge::asks_for_ports(&ruleset),
            ruleset_tracks,
            is_tracked,
            tables: Tables::of(ruleset, config.layout),
        }
    }

    /// The family of its rules.
    pub(crate) fn family(&self) -> Family {
        self.tables.ruleset().family
    }
}
