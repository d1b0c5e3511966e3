//! [`Program`]: rules ready to be walked by packets. Immutable, and without the state that packets leave behind, which
//! is [`crate::State`].
//!
//! Contract: owns its rules and its configuration, so it may be held, shared between threads and replaced by another
//! one between two packets. Making a program of revisions looks at their tables and at none of their rules: it costs
//! the same however many there are.

use std::sync::Arc;

use access::list::Schedule;
use conntrack::Mode;
use host::Host;
use host::foreign::ForeignFamily;
use packet::{Headers, Link};
use rules::Class;
use rules::eval::RuleRef;
use rules::ipset::Sets;
use rules::layout::Indexed;
use rules::model::{Family, Rule, Ruleset};
use rules::revision::{Numbers, Revision};

use crate::config::{Config, Start};
use crate::routing::course::{Course, bridged, family_of, family_of_type};
use crate::routing::path::Path;
use crate::shared::Shared;
use crate::walk::Tables;

/// The number of families.
const FAMILIES: usize = 4;

/// The rules of one or more families, laid out, and what is given of the host that they protect.
///
/// Aligned to pairs of cache lines, as processors fetch them: all workers read it for each packet, and its neighbours on the
/// stack may be written as often.
#[derive(Debug)]
#[repr(align(128))]
pub struct Program {
    number: u64,
    plans: Vec<Plan>,
    /// Whether a bridge's rules are among them; a bridge sees all frames first.
    bridges: bool,
    /// By `Family as usize`: the place of the family's plan, if the family has rules.
    places: [Option<u8>; FAMILIES],
    config: Arc<Config>,
    start: Arc<Start>,
    /// What all workers of this program share; `None` where each has its own.
    shared: Option<Shared>,
}

/// The rules of one family, with derived facts that their walk needs.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) tables: Tables,
    /// The route of a packet that came in, where its addresses do not decide it.
    pub(crate) of_rules: Course<'static>,
    /// The host's answer to a packet that it refused is expected. Not under rules whose packets are shared out whatever
    /// their connections: an answer may pass another worker than its packet.
    pub(crate) expects_answers: bool,
    /// Some rule matches ports of bridges.
    pub(crate) asks_for_ports: bool,
    /// Whether the kernel would track connections, and so reassemble fragments first.
    pub(crate) ruleset_tracks: bool,
    /// Connections are tracked here, too.
    pub(crate) is_tracked: bool,
}

impl Program {
    /// Makes a program of rulesets, at most one for each family.
    #[must_use]
    pub fn new(
        rulesets: impl IntoIterator<Item = impl Into<Arc<Ruleset>>>,
        config: impl Into<Arc<Config>>,
    ) -> Self {
        Self::starting(rulesets, config, Start::default())
    }

    /// Makes a program like [`Program::new`] whose states start with this.
    #[must_use]
    pub fn starting(
        rulesets: impl IntoIterator<Item = impl Into<Arc<Ruleset>>>,
        config: impl Into<Arc<Config>>,
        start: impl Into<Arc<Start>>,
    ) -> Self {
        let (config, start) = (config.into(), start.into());
        let plan = |ruleset| Plan::new(ruleset, &config, start.sets.as_ref());
        let plans = rulesets.into_iter().map(|ruleset| plan(ruleset.into())).collect();
        Self::of_plans(0, plans, config, start)
    }

    /// Makes the program of this number of revisions, at most one for each family.
    #[must_use]
    pub fn of_revisions(
        number: u64,
        revisions: impl IntoIterator<Item = Arc<Revision>>,
        config: Arc<Config>,
        start: Arc<Start>,
    ) -> Self {
        let plans = revisions.into_iter().map(|revision| Plan::of_revision(revision, &config));
        Self::of_plans(number, plans.collect(), config, start)
    }

    fn of_plans(number: u64, plans: Vec<Plan>, config: Arc<Config>, start: Arc<Start>) -> Self {
        let bridges = plans.iter().any(|plan| plan.family() == Family::Bridge);
        let mut places = [None; FAMILIES];
        (0..).zip(&plans).for_each(|(at, plan)| places[plan.family() as usize] = Some(at));
        Self { number, plans, bridges, places, config, start, shared: None }
    }

    /// Sets what the workers of this program share.
    pub(crate) fn sharing(self, shared: Shared) -> Self {
        Self { shared: Some(shared), ..self }
    }

    /// Makes the next program: each of these revisions replaces the present one of its family.
    pub(crate) fn after(&self, next: &[Arc<Revision>]) -> Self {
        let config = &self.config;
        let of = |family| next.iter().find(|next| next.family() == family);
        let kept = self.plans.iter().map(|plan| {
            let next = of(plan.family()).unwrap_or(plan.tables.revision());
            plan.after(Arc::clone(next), config)
        });
        let is_new = |next: &&Arc<Revision>| self.plan(next.family()).is_none();
        let new = next.iter().filter(is_new);
        let new = new.map(|next| Plan::of_revision(Arc::clone(next), config));
        let plans = kept.chain(new).collect();
        let (config, start) = (Arc::clone(config), Arc::clone(&self.start));
        let program = Self::of_plans(self.number + 1, plans, config, start);
        Self { shared: self.shared.clone(), ..program }
    }

    /// Replaces the sets and the access list.
    #[must_use]
    pub fn with(self, sets: Option<Sets>, bans: Option<Schedule>) -> Self {
        let start = Start { sets, bans, connections: self.start.connections.clone() };
        let shared = self.shared.as_ref().map(|shared| shared.renewed(&start));
        Self { start: Arc::new(start), shared, ..self }
    }

    /// What all workers of this program share.
    pub(crate) fn shared(&self) -> Option<&Shared> {
        self.shared.as_ref()
    }

    /// The program's number among those published one after the other, from 1; 0 if it was not published.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The given configuration of the host.
    #[must_use]
    pub fn config(&self) -> &Arc<Config> {
        &self.config
    }

    /// What its states start with.
    #[must_use]
    pub fn start(&self) -> &Arc<Start> {
        &self.start
    }

    /// The rules of a family, if it has some.
    #[must_use]
    pub fn revision(&self, family: Family) -> Option<&Arc<Revision>> {
        Some(self.plan(family)?.tables.revision())
    }

    /// All revisions of the program.
    pub fn revisions(&self) -> impl Iterator<Item = &Arc<Revision>> {
        self.plans.iter().map(|plan| plan.tables.revision())
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

    /// The plans, one for each family.
    pub(crate) fn plans(&self) -> &[Plan] {
        &self.plans
    }

    pub(crate) fn plan(&self, family: Family) -> Option<&Plan> {
        self.plans.get(self.place_of(family)?)
    }

    /// The place of a family's plan among [`Program::plans`].
    #[inline]
    pub(crate) fn place_of(&self, family: Family) -> Option<usize> {
        self.places[family as usize].map(usize::from)
    }

    /// Whether any rules evaluate an Ethernet frame of this EtherType.
    #[inline]
    pub fn is_for(&self, ethertype: u16) -> bool {
        let family = family_of_type(ethertype);
        self.bridges || family.is_some_and(|family| self.place_of(family).is_some())
    }

    /// The family whose rules evaluate a frame with these headers: a bridge's rules see all frames. Frames that cross a
    /// wire are evaluated by the rules of their payload's family, if there are any, and by the rules of the bridge
    /// below them ([`crate::walk`]).
    #[inline]
    pub(crate) fn family_for(
        &self,
        headers: &Headers,
        link: Link,
        is_on_wire: bool,
    ) -> Option<Family> {
        let held = family_of(headers);
        if !self.bridges {
            return held;
        }
        held.filter(|family| is_on_wire && self.plan(*family).is_some()).or_else(|| bridged(link))
    }

    /// Whether there are rules of a bridge.
    #[inline]
    pub(crate) fn bridges(&self) -> bool {
        self.bridges
    }
}

impl Plan {
    fn new(ruleset: Arc<Ruleset>, config: &Config, sets: Option<&Sets>) -> Self {
        let revision = Revision::first(&ruleset, &mut Numbers::default());
        let revision = Arc::new(revision.indexed(Indexed::WhenItPays));
        let reference = config.reference.then(|| Arc::clone(&ruleset));
        let tables = Tables::of(revision, reference, &config.host);
        let is_tracked = tables.tracks() && config.ct.mode != Mode::Off;
        let is_pure = ruleset.class(is_tracked, sets) == Class::Pure;
        Self::of(tables, config, !is_pure)
    }

    /// Packets under revisions are always shared out by their connections: a worker sees the answers to its own
    /// packets.
    fn of_revision(revision: Arc<Revision>, config: &Config) -> Self {
        Self::of(Tables::of(revision, None, &config.host), config, true)
    }

    /// The family's plan with its next revision, or with the present one.
    fn after(&self, next: Arc<Revision>, config: &Config) -> Self {
        Self::of(self.tables.after(next, &config.host), config, true)
    }

    fn of(tables: Tables, config: &Config, expects_answers: bool) -> Self {
        let sure = |path: Path| Course::sure(path);
        let asks_for_ports = tables.asks_for_ports();
        Self {
            of_rules: config.path.map_or_else(|| Course::of_rules(&tables), sure),
            expects_answers,
            asks_for_ports,
            ruleset_tracks: tables.tracks() || foreign_tracks(&config.host, tables.family()),
            is_tracked: tables.tracks() && config.ct.mode != Mode::Off,
            tables,
        }
    }

    /// The family of its rules.
    pub(crate) fn family(&self) -> Family {
        self.tables.family()
    }
}

/// Whether chains that are not evaluated here make the kernel track connections of a family.
fn foreign_tracks(host: &Host, family: Family) -> bool {
    match family {
        Family::Ipv4 => host.foreign.tracks(&[ForeignFamily::Ip, ForeignFamily::Inet]),
        Family::Ipv6 => host.foreign.tracks(&[ForeignFamily::Ip6, ForeignFamily::Inet]),
        Family::Arp | Family::Bridge => false,
    }
}

#[cfg(test)]
mod tests {
    //! The next program compared with a program made from scratch of the same revisions.

    use proptest::prelude::*;
    use rules::revision::Transaction;
    use rules::save::{LoadOptions, load};

    use super::*;

    const FAMILIES: [Family; 3] = [Family::Ipv4, Family::Ipv6, Family::Bridge];

    /// Built-in chains of tables that the families have.
    const CHAINS: [(&str, &str); 6] = [
        ("filter", "INPUT"),
        ("filter", "FORWARD"),
        ("nat", "PREROUTING"),
        ("nat", "POSTROUTING"),
        ("raw", "OUTPUT"),
        ("mangle", "FORWARD"),
    ];

    /// A rule that asks for nothing, and rules that ask for tracking, translation and ports.
    const RULES: [&str; 4] = [
        "-j ACCEPT",
        "-m conntrack --ctstate NEW -j ACCEPT",
        "-j MASQUERADE",
        "-m physdev --physdev-in p0 -j DROP",
    ];

    /// A change of the rules of a family.
    #[derive(Debug, Clone)]
    enum Change {
        /// Adds a built-in chain, with its table.
        Chain(usize),
        Rule(usize, usize),
        Flush(usize),
        /// Replaces all rules by these chains and rules, tables in the order in which they are named first.
        Whole(Vec<(usize, usize)>),
    }

    fn changes() -> impl Strategy<Value = Vec<Vec<(usize, Change)>>> {
        let chain = || 0..CHAINS.len();
        let rule = || (chain(), 0..RULES.len());
        let change = prop_oneof![
            2 => chain().prop_map(Change::Chain),
            4 => rule().prop_map(|(chain, rule)| Change::Rule(chain, rule)),
            2 => chain().prop_map(Change::Flush),
            1 => prop::collection::vec(rule(), 0..6).prop_map(Change::Whole),
        ];
        let of_families = prop::collection::vec((0..FAMILIES.len(), change), 1..3);
        prop::collection::vec(of_families, 1..40)
    }

    fn whole(chains: &[(usize, usize)]) -> String {
        let mut tables: Vec<&str> = Vec::new();
        for (table, _) in chains.iter().map(|(at, _)| CHAINS[*at]) {
            if !tables.contains(&table) {
                tables.push(table);
            }
        }
        let of = |table: &str| {
            let mut places: Vec<_> =
                chains.iter().filter(|(at, _)| CHAINS[*at].0 == table).collect();
            let rules =
                places.iter().map(|(at, rule)| format!("-A {} {}\n", CHAINS[*at].1, RULES[*rule]));
            let rules: String = rules.collect();
            places.sort_by_key(|(at, _)| at);
            places.dedup_by_key(|(at, _)| *at);
            let heads = places.iter().map(|(at, _)| format!(":{} ACCEPT [0:0]\n", CHAINS[*at].1));
            format!("*{table}\n{}{rules}COMMIT\n", heads.collect::<String>())
        };
        tables.into_iter().map(of).collect()
    }

    /// The next revision, unless the family has no such chain or does not take such a rule.
    fn next(old: &Revision, change: &Change, numbers: &mut Numbers) -> Option<Revision> {
        let (at, line) = match change {
            Change::Whole(chains) => {
                let ruleset = ruleset(old.family(), chains)?;
                return old.replaced_by(ruleset, numbers).ok();
            }
            Change::Chain(at) => {
                let (table, chain) = CHAINS[*at];
                let mut transaction = Transaction::new(old, numbers);
                return transaction.new_chain(table, chain).ok().map(|()| transaction.commit());
            }
            Change::Rule(at, rule) => (at, format!("-A {} {}", CHAINS[*at].1, RULES[*rule])),
            Change::Flush(at) => (at, format!("-F {}", CHAINS[*at].1)),
        };
        old.changed_by(&format!("*{}\n{line}\nCOMMIT\n", CHAINS[*at].0), numbers).ok()
    }

    fn ruleset(family: Family, chains: &[(usize, usize)]) -> Option<Ruleset> {
        let options = LoadOptions { family: Some(family), ..LoadOptions::default() };
        load(&whole(chains), &options).ok().map(|loaded| loaded.ruleset)
    }

    /// Rules as they were read have the built-in chains that the text names; a table that is made later has all.
    fn first(family: Family, chains: &[(usize, usize)], numbers: &mut Numbers) -> Revision {
        let none = || Ruleset { family, backend: rules::Backend::default(), tables: Vec::new() };
        let ruleset = ruleset(family, chains).unwrap_or_else(none);
        Revision::first(&ruleset, numbers)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_next_program_is_the_one_made_from_scratch(
            start in prop::collection::vec((0..CHAINS.len(), 0..RULES.len()), 0..4),
            commits in changes(),
        ) {
            let (mut numbers, config) = (Numbers::default(), Arc::new(Config::default()));
            let start = Arc::new(first(FAMILIES[0], &start, &mut numbers));
            let mut program = Program::of_revisions(1, [start], Arc::clone(&config), Arc::default());
            for commit in commits {
                let mut revisions: Vec<Arc<Revision>> = Vec::new();
                for (family, change) in commit {
                    let family = FAMILIES[family];
                    if revisions.iter().any(|revision| revision.family() == family) {
                        continue;
                    }
                    let none = first(family, &[], &mut numbers);
                    let old = program.revision(family).map_or(&none, |old| old);
                    revisions.extend(next(old, &change, &mut numbers).map(Arc::new));
                }
                program = program.after(&revisions);
                let (number, all) = (program.number(), program.revisions().cloned());
                let scratch = Program::of_revisions(number, all, Arc::clone(&config), Arc::default());
                prop_assert_eq!(format!("{:?}", program), format!("{:?}", scratch));
                for next in revisions {
                    let family = next.family();
                    prop_assert!(program.revision(family).is_some_and(|is| Arc::ptr_eq(is, &next)));
                }
            }
        }
    }
}
