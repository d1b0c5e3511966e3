//! What rules ask of tracking: `notrack`, `ct zone set`, `ct label set`, `ct helper set`.
//!
//! A packet that has a connection keeps it, in its zone; a packet that tracking found none for is untracked from `notrack` on.
//! Source: kernel `nft_notrack_eval` in `net/netfilter/nft_ct.c`; measured on 6.18.

use super::{Act, Next};
use crate::lower::read::Loads;
use conntrack::{CtState, Direction, Helper, States, Template, Zone};
use rules::{KnownFlow, Request, Transit};

/// Exempts packets from tracking.
#[derive(Debug)]
pub(crate) struct Notrack;

impl Act for Notrack {
    fn act(&self, transit: &mut Transit<'_, '_>) -> Next {
        if transit.ct.view.flow.is_some() {
            return Next::On;
        }
        let states = transit.ct.view.states;
        if transit.ct.tracker.is_none() || states == States::of(CtState::Invalid) {
            // Before tracking, or after it found no connection.
            transit.ct.request(Request::Untracked, transit.certain);
        } else if states.may_be(CtState::Invalid) {
            transit.ct.view.states = states.or(States::of(CtState::Untracked));
        }
        Next::On
    }

    fn may_end(&self) -> bool {
        false
    }

    fn untracks(&self) -> bool {
        true
    }
}

/// The zone in which the packet's connection is looked up.
#[derive(Debug)]
pub(crate) struct SetZone {
    pub zone: Loads,
    /// `original` or `reply`; both ways without.
    pub direction: Option<&'static str>,
}

impl Act for SetZone {
    fn act(&self, transit: &mut Transit<'_, '_>) -> Next {
        let loaded = self.zone.load(transit);
        if loaded.words.is_empty() {
            return Next::Ends;
        }
        if transit.ct.tracker.is_some() {
            // After tracking, a template stands in for the connection that a packet lacks.
            if !matches!(transit.ct.flow(), KnownFlow::Flow(_)) {
                transit.ct.view.states = States::ANY;
            }
            return if loaded.breaks { Next::MayEnd } else { Next::On };
        }
        let id = loaded.only().and_then(|id| u16::try_from(id).ok());
        let request = match id {
            Some(id) => {
                let (original, reply) =
                    (self.direction != Some("reply"), self.direction != Some("original"));
                let zone = Zone { id, original, reply };
                Request::Template(Template { zone, helper: Helper::None })
            }
            None => Request::Unknown,
        };
        transit.ct.request(request, transit.certain && !loaded.breaks);
        if loaded.breaks { Next::MayEnd } else { Next::On }
    }

    fn lacks(&self) -> Option<&str> {
        self.zone.lacks()
    }

    fn tracks(&self) -> bool {
        true
    }

    fn retracks(&self) -> bool {
        true
    }

    fn bytecode(&self, show: &mut dyn FnMut(String)) {
        self.zone.bytecode(show);
    }
}

/// A label of the packet's connection, by the number of its bit.
#[derive(Debug)]
pub(crate) struct SetLabel(pub u8);

impl Act for SetLabel {
    fn act(&self, transit: &mut Transit<'_, '_>) -> Next {
        transit.ct.change(transit.certain, |flow| flow.set_label(self.0));
        Next::On
    }

    fn may_end(&self) -> bool {
        false
    }

    fn tracks(&self) -> bool {
        true
    }
}

/// The helper of a connection that the packet begins.
#[derive(Debug)]
pub(crate) struct SetHelper {
    pub helper: Helper,
    /// The protocol whose connections it is for.
    pub protocol: u8,
    /// The connections that it is for are of IPv6, or of IPv4; `None` for both.
    pub six: Option<bool>,
}

impl Act for SetHelper {
    fn act(&self, transit: &mut Transit<'_, '_>) -> Next {
        let gets = match transit.ct.flow() {
            KnownFlow::None => false,
            KnownFlow::Unknown => {
                transit.ct.change(false, |_| {});
                false
            }
            KnownFlow::Flow(flow) => {
                let tuple = flow.tuple(Direction::Original);
                let fits = tuple.protocol() == self.protocol
                    && self.six.is_none_or(|six| six == tuple.is_ipv6());
                fits && !flow.is_confirmed() && flow.helper() == Helper::None
            }
        };
        if gets {
            transit.ct.change(transit.certain, |flow| flow.set_helper(self.helper));
        }
        Next::On
    }

    fn may_end(&self) -> bool {
        false
    }

    fn tracks(&self) -> bool {
        true
    }

    fn couples(&self) -> bool {
        true
    }
}
