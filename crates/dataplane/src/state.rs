//! [`State`]: what packets leave behind for later packets: connections, fragments, memories of matches, sets, the
//! access list's place in time, and answers that are expected.
//!
//! Contract: one worker's own, except what workers share ([`Shared`]). It belongs to the [`Program`] that it was made
//! for, until it follows another one.

use std::sync::Arc;

use access::list::List;
use conntrack::defrag::{Carried, Defrag, Defragged};
use conntrack::steer::Shard;
use conntrack::{Listing, Tracker};
use host::Change;
use packet::Packet;
use rules::Chance;
use rules::eval::{Memories, SharedLists};
use rules::ipset::Sets;
use rules::model::Family;
use rules::revision::Lineage;

use crate::answers::{Answers, Found};
use crate::arrival::{Arrival, Origin};
use crate::config::{Config, Start};
use crate::delivery::{self, Delivery, is_fragment};
use crate::footprint::Footprint;
use crate::program::{Plan, Program};
use crate::routing::interfaces;
use crate::routing::path::Path;
use crate::shared::{Bans, Shared};

/// What packets leave behind for later packets.
#[derive(Debug)]
pub struct State {
    /// One state for each of the program's plans.
    pub(crate) families: Vec<FamilyState>,
    pub(crate) bans: Option<Bans>,
    /// The host's sets, which all its rules share.
    pub(crate) sets: Option<Sets>,
    /// The source of random numbers, if they are drawn here.
    pub(crate) chance: Option<Chance>,
    part: Part,
}

/// A worker's part where several work.
#[derive(Debug, Default)]
struct Part {
    /// The worker's own connections, where workers share them out.
    shard: Option<Shard>,
    /// What workers share because the kernel keeps it globally.
    shared: Option<Shared>,
    /// Lists of `-m recent` where they are the worker's own: families share them.
    lists: Arc<SharedLists>,
}

/// The state that the packets of one family leave.
#[derive(Debug)]
pub(crate) struct FamilyState {
    family: Family,
    /// The rules that the memories belong to.
    lineage: Lineage,
    pub(crate) memories: Memories,
    /// The host's replies to packets that it refused.
    pub(crate) answers: Answers,
    /// The family's connections, where they are tracked.
    pub(crate) tracker: Option<Tracker>,
    defrag: Option<Defrag>,
    /// The host's own fragments, where connections are not tracked.
    own: Option<Defrag>,
    /// Fragments for the host, where connections are not tracked.
    pub(crate) delivery: Delivery,
}

impl State {
    /// An empty state.
    #[must_use]
    pub fn new(program: &Program) -> Self {
        Self::of_shard(program, None)
    }

    /// An empty state of one worker of several.
    #[must_use]
    pub fn of_shard(program: &Program, shard: Option<Shard>) -> Self {
        Self::of(program, Part { shard, ..Part::default() })
    }

    /// An empty state of one worker of several that share what the kernel has once, under revisions of one publication.
    #[must_use]
    pub fn sharing(program: &Program, shared: &Shared, shard: Option<Shard>) -> Self {
        Self::of(program, Part { shard, shared: Some(shared.clone()), ..Part::default() })
    }

    fn of(program: &Program, part: Part) -> Self {
        let start = program.start();
        let new = |plan| FamilyState::new(plan, program, &part);
        Self {
            families: program.plans().iter().map(new).collect(),
            bans: part.bans(start),
            sets: part.sets(start),
            chance: program.config().entropy.chance(),
            part,
        }
    }

    /// Returns the access list for packets of this time, where there is one.
    #[inline]
    pub(crate) fn bans_at(&mut self, time: Option<u64>) -> Option<&List> {
        self.bans.as_mut()?.at(time)
    }

    /// Switches to another program. Connections, fragments, sets and the access list stay (except sets and a list that
    /// were read again with the program), and what matches remember as far as their rules stay: the program has
    /// revisions that come after the present ones, and none of their rules is looked at. Under other rules matches
    /// remember nothing. What belongs to a family that has no rules now is dropped.
    pub fn follow(&mut self, new: &Program) {
        self.share(new);
        let (part, start) = (&self.part, new.start());
        for (place, plan) in new.plans().iter().enumerate() {
            let mut left = (place..self.families.len()).zip(&self.families[place..]);
            match left.find(|(_, state)| state.family == plan.family()).map(|(at, _)| at) {
                Some(at) => {
                    self.families.swap(place, at);
                    self.families[place].follow(plan, new, part);
                }
                None => self.families.insert(place, FamilyState::new(plan, new, part)),
            }
        }
        let gone = self.families.drain(new.plans().len()..);
        gone.for_each(|family| family.memories.end());
        self.bans = self.bans.take().or_else(|| part.bans(start));
        self.sets = self.sets.take().or_else(|| part.sets(start));
        self.chance = self.chance.take().or_else(|| new.config().entropy.chance());
    }

    /// Replaces sets and the access list where they were read again with the program.
    fn share(&mut self, new: &Program) {
        let (Some(old), Some(new)) = (&mut self.part.shared, new.shared()) else { return };
        if !old.is(new) {
            *old = new.clone();
            (self.bans, self.sets) = (None, None);
        }
    }

    /// The number of states of matches that there is room for, in use or not.
    #[must_use]
    pub fn memories(&self) -> usize {
        self.families.iter().map(|family| family.memories.room()).sum()
    }

    /// The present connections, for a worker that continues after a restart.
    pub fn connections(&mut self) -> Listing {
        self.trackers().map(Tracker::listing).reduce(Listing::and).unwrap_or_default()
    }

    /// The tables of connections, one for each family that tracks.
    pub fn trackers(&mut self) -> impl Iterator<Item = &mut Tracker> {
        self.families.iter_mut().filter_map(|family| family.tracker.as_mut())
    }

    /// The number of connections held, including ended ones that no packet has met yet.
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
    fn new(plan: &Plan, program: &Program, part: &Part) -> Self {
        Self {
            family: plan.family(),
            lineage: plan.tables.revision().lineage().clone(),
            memories: memories(plan, part),
            answers: Answers::default(),
            tracker: tracker(plan, program, part),
            defrag: defrag(plan, program.config()),
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

    /// Follows other rules of the family. Connections stay even where the new rules do not ask for them: nothing looks
    /// at them until some rules do again. How they are tracked stays as it was when the first rules asked.
    fn follow(&mut self, plan: &Plan, program: &Program, part: &Part) {
        let revision = plan.tables.revision();
        if self.lineage.is(revision.lineage()) {
            self.memories.follow(revision);
        } else {
            std::mem::take(&mut self.memories).end();
            (self.lineage, self.memories) = (revision.lineage().clone(), memories(plan, part));
        }
        self.tracker = self.tracker.take().or_else(|| tracker(plan, program, part));
        self.defrag = self.defrag.take().or_else(|| defrag(plan, program.config()));
    }

    /// Passes the packet through reassembly before the first hook, if it is a fragment.
    pub(crate) fn defrag(
        &mut self,
        plan: &Plan,
        packet: &mut Packet<'_>,
        arrival: &Arrival<'_>,
        carried: Carried,
        config: &Config,
    ) -> Defragged {
        let marks = packet.assume();
        let defragged =
            match packet.described().is_some() && packet.is_open() && is_fragment(packet) {
                // Its length is not known.
                true if plan.ruleset_tracks => Defragged::Unknown,
                _ => self.defrag_known(plan, packet, arrival, carried, config),
            };
        marks.into_iter().for_each(|marks| packet.knows(marks));
        defragged
    }

    fn defrag_known(
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
            // The kernel would reassemble it, but it is not reassembled here.
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

    /// The refused packet that a packet of the host's own answers.
    pub(crate) fn answer_of(
        &mut self,
        packet: &Packet<'_>,
        arrival: &Arrival<'_>,
        config: &Config,
    ) -> Found {
        let may_be_own = match arrival.origin {
            Origin::Host => true,
            Origin::Wire => false,
            // A packet with a given input interface was received there.
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
    fn bans(&self, start: &Start) -> Option<Bans> {
        let own = || start.bans.clone().map(Bans::Own);
        self.shared.as_ref().map_or_else(own, |shared| Some(shared.reader()))
    }

    fn sets(&self, start: &Start) -> Option<Sets> {
        let own = || start.sets.clone();
        self.shared.as_ref().map_or_else(own, |shared| shared.sets().cloned())
    }
}

/// The memories at first.
fn memories(plan: &Plan, part: &Part) -> Memories {
    let shared = part.shared.as_ref().map(|shared| shared.memories(plan.family()));
    let own = || Memories::among(plan.family(), Arc::clone(&part.lists));
    let mut memories = shared.unwrap_or_else(own);
    memories.follow(plan.tables.revision());
    memories
}

/// The table of connections at first, where they are tracked.
fn tracker(plan: &Plan, program: &Program, part: &Part) -> Option<Tracker> {
    if !plan.is_tracked {
        return None;
    }
    let Config { ct, entropy, host, .. } = &**program.config();
    let shard = part.shard.clone();
    let mut ct = shard.map_or_else(|| ct.clone(), |shard| ct.of_shard(shard));
    ct.dccp_is_generic &= host.has(Change::DccpIsGeneric) == Some(true);
    ct.discovery_is_exempt &= host.has(Change::RouterDiscoveryIsUntracked) == Some(true);
    ct.destination_ports_in_order &= host.has(Change::DestinationPortsInOrder) == Some(true);
    let is_ipv6 = plan.family() == Family::Ipv6;
    let start = program.start().connections.as_ref().map(|all| all.of_family(is_ipv6));
    let mut tracker = Tracker::starting(conntrack::Config { entropy: *entropy, ..ct }, start);
    if part.shared.is_some() {
        tracker.tells();
    }
    Some(tracker)
}

/// An empty table of fragments, where connections are tracked.
fn defrag(plan: &Plan, config: &Config) -> Option<Defrag> {
    plan.is_tracked.then(|| Defrag::new(delivery::limits(&config.host)))
}
