//! [`Plan`]: the rules of one family with what their packets leave for those that follow.

use conntrack::defrag::{Defrag, Defragged};
use conntrack::{Mode, Tracker};
use packet::Packet;
use rules::Class;
use rules::eval::Memories;
use rules::model::{Family, Ruleset};

use crate::answers::{Answers, Found};
use crate::arrival::{Arrival, Origin};
use crate::bridge;
use crate::config::Config;
use crate::course::Course;
use crate::delivery::{self, Delivery, is_fragment};
use crate::interfaces;
use crate::path::Path;
use crate::walk::Tables;

/// A ruleset with what its walk needs at hand.
#[derive(Debug)]
pub(crate) struct Plan<'r> {
    pub(crate) memories: Memories,
    pub(crate) tables: Tables<'r>,
    /// Where packets go that came in, when no address tells.
    pub(crate) of_rules: Course<'r>,
    /// What the host sends for packets that it refused.
    pub(crate) answers: Answers,
    /// A packet's result may depend on others; else nobody needs to know what it answers.
    pub(crate) is_coupled: bool,
    /// Some rule asks for ports of bridges.
    pub(crate) asks_for_ports: bool,
    /// The kernel would track connections, and so reassemble fragments first.
    ruleset_tracks: bool,
    /// Its connections, where they are tracked here too.
    pub(crate) tracker: Option<Tracker>,
    defrag: Option<Defrag>,
    /// Where they are not: what the host sent in fragments.
    own: Option<Defrag>,
    /// And what came for it.
    pub(crate) delivery: Delivery,
}

impl<'r> Plan<'r> {
    /// The family of its rules.
    pub(crate) fn family(&self) -> Family {
        self.tables.ruleset().family
    }

    /// What tracking makes of the packet before the first hook, if it is a fragment.
    pub(crate) fn defrag(
        &mut self,
        packet: &Packet<'_>,
        arrival: &Arrival<'_>,
        config: &Config,
    ) -> Defragged {
        let now = arrival.time.unwrap_or(0);
        let is_own = arrival.origin == Origin::Host;
        match &mut self.defrag {
            Some(defrag) => defrag.push(packet, now, 0),
            // The kernel would put it together, but nobody does here.
            None if self.ruleset_tracks && is_fragment(packet) => Defragged::Unknown,
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
        match self.answers.is_empty() || !may_be_own || !goes_out {
            true => Found::Nothing,
            false => self.answers.take(packet, arrival.time.unwrap_or(0)),
        }
    }

    /// Nothing seen yet.
    pub(crate) fn new(ruleset: &'r Ruleset, config: &Config) -> Self {
        let ruleset_tracks = ruleset.tracks();
        let tracked = ruleset_tracks && config.ct.mode != Mode::Off;
        Self {
            memories: Memories::of(ruleset),
            tables: Tables::of(ruleset, config.layout),
            of_rules: config.path.map_or_else(|| Course::of_rules(ruleset), Course::sure),
            answers: Answers::default(),
            is_coupled: ruleset.class(tracked, config.sets.as_ref()) != Class::Pure,
            asks_for_ports: bridge::asks_for_ports(ruleset),
            ruleset_tracks,
            tracker: tracked.then(|| Tracker::new(config.ct.clone())),
            defrag: tracked.then(|| Defrag::new(delivery::limits(&config.host))),
            own: None,
            delivery: Delivery::default(),
        }
    }
}
