//! [`Program`]: what packets walk, ready to be walked. Immutable, and without anything that packets leave behind:
//! that is [`crate::State`]'s.
//!
//! Contract: owns its rules and its configuration, so it may be held, shared between threads and replaced by
//! another one between two packets. One that is made of revisions looks at their tables and at no rule of them: it
//! costs the same however many there are.

use std::sync::Arc;

use access::list::Schedule;
use conntrack::Mode;
use rules::Class;
use rules::eval::RuleRef;
use rules::ipset::Sets;
use rules::model::{Family, Rule, Ruleset};
use rules::revision::Revision;
use smallvec::SmallVec;

use crate::config::Config;
use crate::course::Course;
use crate::path::Path;
use crate::shared::Shared;
use crate::walk::{Rules, Tables};

/// The rules of one or more families, laid out, and what is given of the host that they stand on.
#[derive(Debug)]
pub struct Program {
    number: u64,
    plans: Vec<Plan>,
    /// It has rules of a bridge, which then sees frames before anybody else.
    bridges: bool,
    config: Arc<Config>,
    /// What workers that walk it have one of; `None` where each has its own.
    shared: Option<Shared>,
}

/// The rules of one family, with what their walk needs at hand.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) tables: Tables,
    /// Where packets go that came in, when no address tells.
    pub(crate) of_rules: Course<'static>,
    /// What the host sends for a packet that it refused is expected. Not under rules whose packets are shared out
    /// whatever their connections: the one worker would not see what another's packet is answered.
    pub(crate) expects_answers: bool,
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
        Self::of_plans(0, plans.collect(), config)
    }

    /// These revisions, at most one for each family, as the program of this number. They are walked as they are laid
    /// out, whatever the configuration says of that.
    #[must_use]
    pub fn of_revisions(
        number: u64,
        revisions: impl IntoIterator<Item = Arc<Revision>>,
        config: Arc<Config>,
    ) -> Self {
        let plans = revisions.into_iter().map(|revision| Plan::of_revision(revision, &config));
        Self::of_plans(number, plans.collect(), config)
    }

    fn of_plans(number: u64, plans: Vec<Plan>, config: Arc<Config>) -> Self {
        let bridges = plans.iter().any(|plan| plan.family() == Family::Bridge);
        Self { number, plans, bridges, config, shared: None }
    }

    /// The same for workers that share this.
    pub(crate) fn sharing(self, shared: Shared) -> Self {
        Self { shared: Some(shared), ..self }
    }

    /// The next one, with these revisions in place of those of their families.
    pub(crate) fn after(&self, next: &[Arc<Revision>]) -> Self {
        let mut revisions: SmallVec<[_; 4]> = self.revisions().cloned().collect();
        for next in next {
            match revisions.iter_mut().find(|old| old.family() == next.family()) {
                Some(old) => *old = Arc::clone(next),
                None => revisions.push(Arc::clone(next)),
            }
        }
        let config = Arc::clone(&self.config);
        let program = Self::of_revisions(self.number + 1, revisions, config);
        Self { shared: self.shared.clone(), ..program }
    }

    /// The same with other sets and another access list.
    pub(crate) fn with(self, sets: Option<Sets>, bans: Option<Schedule>) -> Self {
        let config = Config { sets, bans, ..Config::clone(&self.config) };
        let shared = self.shared.as_ref().map(|shared| shared.renewed(&config));
        Self { config: Arc::new(config), shared, ..self }
    }

    /// What workers that walk it have one of.
    pub(crate) fn shared(&self) -> Option<&Shared> {
        self.shared.as_ref()
    }

    /// Its number among the programs that were published one after the other, from 1; 0 if it was not.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// What is given of the host.
    #[must_use]
    pub fn config(&self) -> &Arc<Config> {
        &self.config
    }

    /// The rules of a family, where it has them as they were read.
    #[must_use]
    pub fn ruleset(&self, family: Family) -> Option<&Arc<Ruleset>> {
        match self.plan(family)?.tables.rules() {
            Rules::Read(ruleset, _) => Some(ruleset),
            Rules::Revised(_) => None,
        }
    }

    /// The revision of a family, where it was made of revisions.
    #[must_use]
    pub fn revision(&self, family: Family) -> Option<&Arc<Revision>> {
        match self.plan(family)?.tables.rules() {
            Rules::Read(..) => None,
            Rules::Revised(revision) => Some(revision),
        }
    }

    /// All of its revisions.
    pub(crate) fn revisions(&self) -> impl Iterator<Item = &Arc<Revision>> {
        self.plans.iter().filter_map(|plan| self.revision(plan.family()))
    }

    /// A rule of a family, by the place that verdicts and observers name. Its [`Rule::id`] is the name that no other
    /// rule of a program published before or after has.
    #[must_use]
    pub fn rule(&self, family: Family, at: RuleRef) -> Option<&Arc<Rule>> {
        self.plan(family)?.tables.rule(at)
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

    pub(crate) fn plan(&self, family: Family) -> Option<&Plan> {
        self.plans.iter().find(|plan| plan.family() == family)
    }

    /// Whether it has rules of a bridge, which then sees frames before anybody else.
    pub(crate) fn bridges(&self) -> bool {
        self.bridges
    }
}

impl Plan {
    fn new(ruleset: Arc<Ruleset>, config: &Config) -> Self {
        let tables = Tables::of(Arc::clone(&ruleset), config.layout);
        let is_tracked = tables.tracks() && config.ct.mode != Mode::Off;
        let is_pure = ruleset.class(is_tracked, config.sets.as_ref()) == Class::Pure;
        Self::of(tables, config, !is_pure)
    }

    /// Packets under revisions are always shared out by their connections: a worker sees what its own are answered.
    fn of_revision(revision: Arc<Revision>, config: &Config) -> Self {
        Self::of(Tables::of_revision(revision), config, true)
    }

    fn of(tables: Tables, config: &Config, expects_answers: bool) -> Self {
        let sure = |path: Path| Course::sure(path);
        Self {
            of_rules: config.path.map_or_else(|| Course::of_rules(&tables), sure),
            expects_answers,
            asks_for_ports: tables.asks_for_ports(),
            ruleset_tracks: tables.tracks(),
            is_tracked: tables.tracks() && config.ct.mode != Mode::Off,
            tables,
        }
    }

    /// The family of its rules.
    pub(crate) fn family(&self) -> Family {
        self.tables.family()
    }
}
