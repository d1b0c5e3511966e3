//! [`State`]: what packets leave for those that follow: connections, fragments, memories of matches, sets, the access
//! list's place in time, and answers that are expected.
//!
//! Contract: one worker's own, but for what workers share ([`Shared`]). It goes with the [`Program`] that it was made for, until it follows another one.

use std::sync::Arc;

use access::list::List;
use conntrack::defrag::{Carried, Defrag, Defragged};
use conntrack::steer::Shard;
use conntrack::{Listing, Tracker};
use packet::Packet;
use rules::Chance;
use rules::eval::{Memories, SharedLists};
use rules::ipset::Sets;
use rules::model::{Family, Ruleset};
use rules::revision::Lineage;

use crate::answers::{Answers, Found};
use crate::arrival::{Arrival, Origin};
use crate::config::Config;
use crate::delivery::{self, Delivery, is_fragment};
use crate::footprint::Footprint;
use crate::interfaces;
use crate::path::Path;
use crate::program::{Plan, Program};
use crate::shared::{Bans, Shared};
use crate::walk::Rules;

/// What packets leave for those that follow.
#[derive(Debug)]
pub struct State {
    /// One for each of the program's plans.
    pub(crate) families: Vec<FamilyState>,
    pub(crate) bans: Option<Bans>,
    /// The host's sets, which all its rules share.
    pub(crate) sets: Option<Sets>,
    /// What random numbers are drawn from, if they are drawn here.
    pub(crate) chance: Option<Chance>,
    part: Part,
}

/// A worker's part in what several do.
#[derive(Debug, Default)]
struct Part {
    /// Which connections are its own, where workers share them out.
    shard: Option<Shard>,
    /// What is not its own, where workers have one of what the kernel has once.
    shared: Option<Shared>,
    /// Lists of `-m recent` where they are its own: families share them.
    lists: Arc<SharedLists>,
}

/// What matches still know under another program. Connections, fragments, sets and lists of `-m recent` stay in both
/// cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    /// What the rules remember that stay: rules are changed while packets pass.
    Keep,
    /// Nothing, not even under the same rules: what `iptables-restore` leaves of `limit`, `statistic` and
    /// `connlimit`.
    Restore,
}

/// Whose rules the states of matches are.
#[derive(Debug)]
enum Of {
    /// These, as they were read.
    Read(Arc<Ruleset>),
    /// Those of revisions.
    Revised(Lineage),
}

/// What the packets of one family leave.
#[derive(Debug)]
pub(crate) struct FamilyState {
    family: Family,
    of: Of,
    pub(crate) memories: Memories,
    /// What the host sends for packets that it refused.
    pub(crate) answers: Answers,
    /// Its connections, where they are tracked.
    pub(crate) tracker: Option<Tracker>,
    defrag: Option<Defrag>,
    /// Where they are not: what the host sent in fragments.
    own: Option<Defrag>,
    /// And what came for it.
    pub(crate) delivery: Delivery,
}

impl State {
    /// Nothing seen yet.
    #[must_use]
    pub fn new(program: &Program) -> Self {
        Self::of_shard(program, None)
    }

    /// Nothing seen yet, of one worker of several.
    #[must_use]
    pub fn of_shard(program: &Program, shard: Option<Shard>) -> Self {
        Self::of(program, Part { shard, ..Part::default() })
    }

    /// Nothing seen yet, of one worker of several that have one of what the kernel has once, under revisions of one
    /// publication. Under rules as they were read it shares sets and bans alone: those have no names to go by.
    #[must_use]
    pub fn sharing(program: &Program, shared: &Shared, shard: Option<Shard>) -> Self {
        Self::of(program, Part { shard, shared: Some(shared.clone()), ..Part::default() })
    }

    fn of(program: &Program, part: Part) -> Self {
        let config = program.config();
        let new = |plan| FamilyState::new(plan, config, &part);
        Self {
            families: program.plans().iter().map(new).collect(),
            bans: part.bans(config),
            sets: part.sets(config),
            chance: config.entropy.chance(),
            part,
        }
    }

    /// The access list for packets of this time, where there is one.
    #[inline]
    pub(crate) fn bans_at(&mut self, time: Option<u64>) -> Option<&List> {
        self.bans.as_mut()?.at(time)
    }

    /// Goes on under another program. Connections, fragments, sets and the access list stay (but those that were
    /// read anew with the program), and what matches remember as far as their rules stay, if that is to be kept: see [`Memories::carried`]. Revisions of the same
    /// rules are followed without a look at the rules. What workers share stays in either case. What was made for a family without rules now is dropped.
    pub fn follow(&mut self, new: &Program, how: Follow) {
        self.share(new);
        let config = new.config();
        let part = &self.part;
        for (place, plan) in new.plans().iter().enumerate() {
            let mut left = (place..self.families.len()).zip(&self.families[place..]);
            match left.find(|(_, state)| state.family == plan.family()).map(|(at, _)| at) {
                Some(at) => {
                    self.families.swap(place, at);
                    self.families[place].follow(plan, config, part, how);
                }
                None => self.families.insert(place, FamilyState::new(plan, config, part)),
            }
        }
        let gone = self.families.drain(new.plans().len()..);
        gone.for_each(|family| family.memories.end());
        self.bans = self.bans.take().or_else(|| part.bans(config));
        self.sets = self.sets.take().or_else(|| part.sets(config));
        self.chance = self.chance.take().or_else(|| config.entropy.chance());
    }

    /// Sets and the access list are other ones where they were read anew with the program.
    fn share(&mut self, new: &Program) {
        let (Some(old), Some(new)) = (&mut self.part.shared, new.shared()) else { return };
        if !old.is(new) {
            *old = new.clone();
            (self.bans, self.sets) = (None, None);
        }
    }

    /// States of matches that it has room for, in use or not.
    #[must_use]
    pub fn memories(&self) -> usize {
        self.families.iter().map(|family| family.memories.room()).sum()
    }

    /// The connections that there are, for those who go on after a restart.
    pub fn connections(&mut self) -> Listing {
        self.trackers().map(Tracker::listing).reduce(Listing::and).unwrap_or_default()
    }

    /// Its tables of connections, one for each family that tracks.
    pub fn trackers(&mut self) -> impl Iterator<Item = &mut Tracker> {
        self.families.iter_mut().filter_map(|family| family.tracker.as_mut())
    }

    /// How many connections are held, those included that ended and were not met yet.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.families.iter().filter_map(|family| family.tracker.as_ref()).map(Tracker::len).sum()
    }

    /// What was left so far that concerns other workers.
    #[must_use]
    pub fn footprint(&self) -> Footprint {
        let left = self.families.iter().map(FamilyState::footprint);
        left.fold(Footprint::default(), Footprint::and)
    }
}

impl FamilyState {
    fn new(plan: &Plan, config: &Config, part: &Part) -> Self {
        let (of, memories) = remembered(plan, part);
        Self {
            family: plan.family(),
            of,
            memories,
            answers: Answers::default(),
            tracker: tracker(plan, config, part),
            defrag: defrag(plan, config),
            own: None,
            delivery: Delivery::default(),
        }
    }

    fn footprint(&self) -> Footprint {
        let tracker = self.tracker.as_ref();
        Footprint {
            connections: tracker.map_or(0, |tracker| tracker.stats().created),
            kept: self.answers.kept,
            own: self.answers.asked,
            crosses: tracker.is_some_and(Tracker::crosses),
        }
    }

    /// The same under other rules of the family. Connections stay, too, where those do not ask for them: nothing looks
    /// at them until some do again. How they are tracked stays as it was when the first rules asked.
    fn follow(&mut self, plan: &Plan, config: &Config, part: &Part, how: Follow) {
        let memories = std::mem::take(&mut self.memories);
        (self.of, self.memories) = self.of.remembered(memories, plan, part, how);
        self.tracker = self.tracker.take().or_else(|| tracker(plan, config, part));
        self.defrag = self.defrag.take().or_else(|| defrag(plan, config));
    }

    /// What tracking makes of the packet before the first hook, if it is a fragment.
    pub(crate) fn defrag(
        &mut self,
        plan: &Plan,
        packet: &Packet<'_>,
        arrival: &Arrival<'_>,
        carried: Carried,
        config: &Config,
    ) -> Defragged {
        let now = arrival.time.unwrap_or(0);
        let is_own = arrival.origin == Origin::Host;
        match self.defrag.as_mut().filter(|_| plan.is_tracked) {
            Some(defrag) => defrag.push_with(packet, now, 0, carried),
            // The kernel would put it together, but nobody does here.
            None if plan.ruleset_tracks && is_fragment(packet) => Defragged::Unknown,
            // The host's own packets are cut after the last hook.
            None if is_own && is_fragment(packet) => {
                let limits = || Defrag::new(delivery::limits(&config.host));
                let own = self.own.get_or_insert_with(limits);
                own.push(packet, now, 0)
            }
            None => Defragged::Pass,
        }
    }

    /// What a packet of the host's own is sent for.
    pub(crate) fn answer_of(
        &mut self,
        packet: &Packet<'_>,
        arrival: &Arrival<'_>,
        config: &Config,
    ) -> Found {
        let may_be_own = match arrival.origin {
            Origin::Host => true,
            Origin::Wire => false,
            // One that is given as having come in by an interface did.
            Origin::Addresses if arrival.input.is_some() => false,
            Origin::Addresses => {
                interfaces::is_silent(packet, arrival) || interfaces::is_outbound(packet, arrival)
            }
        };
        let goes_out = config.path.is_none_or(|path| path == Path::Output);
        self.answers.asked += u64::from(may_be_own && goes_out);
        match self.answers.is_empty() || !may_be_own || !goes_out {
            true => Found::Nothing,
            false => self.answers.take(packet, arrival.time.unwrap_or(0)),
        }
    }
}

impl Part {
    fn bans(&self, config: &Config) -> Option<Bans> {
        let own = || config.bans.clone().map(Bans::Own);
        self.shared.as_ref().map_or_else(own, |shared| Some(shared.reader()))
    }

    fn sets(&self, config: &Config) -> Option<Sets> {
        let own = || config.sets.clone();
        self.shared.as_ref().map_or_else(own, |shared| shared.sets().cloned())
    }
}

impl Of {
    /// What matches remember under the rules of a plan, of what they did under these.
    fn remembered(
        &self,
        mut memories: Memories,
        plan: &Plan,
        part: &Part,
        how: Follow,
    ) -> (Self, Memories) {
        match (self, plan.tables.rules()) {
            (Self::Read(old), Rules::Read(new, _)) => {
                let memories = match how {
                    Follow::Restore => memories.restored(new),
                    Follow::Keep if Arc::ptr_eq(old, new) => memories,
                    Follow::Keep => memories.carried(old, new),
                };
                (Self::Read(Arc::clone(new)), memories)
            }
            (Self::Revised(lineage), Rules::Revised(new)) if lineage.is(new.lineage()) => {
                if how == Follow::Restore {
                    memories.forget();
                }
                memories.follow(new);
                (Self::Revised(lineage.clone()), memories)
            }
            _ => {
                memories.end();
                remembered(plan, part)
            }
        }
    }
}

/// What matches remember at first.
fn remembered(plan: &Plan, part: &Part) -> (Of, Memories) {
    let own = || Memories::among(plan.family(), Arc::clone(&part.lists));
    match plan.tables.rules() {
        Rules::Read(rules, _) => (Of::Read(Arc::clone(rules)), own().fresh(rules)),
        Rules::Revised(revision) => {
            let shared = part.shared.as_ref().map(|shared| shared.memories(plan.family()));
            let mut memories = shared.unwrap_or_else(own);
            memories.follow(revision);
            (Of::Revised(revision.lineage().clone()), memories)
        }
    }
}

/// No connections, where they are tracked.
fn tracker(plan: &Plan, config: &Config, part: &Part) -> Option<Tracker> {
    let entropy = config.entropy;
    let is_ipv6 = plan.family() == Family::Ipv6;
    let start = || config.ct.start.as_ref().map(|start| start.of_family(is_ipv6));
    let ct = || match &part.shard {
        Some(shard) => {
            let ct = config.ct.of_shard(shard.clone());
            conntrack::Config { entropy, start: start(), ..ct }
        }
        None => conntrack::Config { entropy, start: start(), ..config.ct.clone() },
    };
    let mut tracker = plan.is_tracked.then(|| Tracker::new(ct()));
    if part.shared.is_some() {
        tracker.iter_mut().for_each(Tracker::tells);
    }
    tracker
}

/// No fragments, where connections are tracked.
fn defrag(plan: &Plan, config: &Config) -> Option<Defrag> {
    plan.is_tracked.then(|| Defrag::new(delivery::limits(&config.host)))
}
