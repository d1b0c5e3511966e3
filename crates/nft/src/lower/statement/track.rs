//! `notrack`: the packet is not tracked. A packet that has a connection keeps it; one that tracking found none for is
//! untracked from then on.
//!
//! Source: kernel `nft_notrack_eval` in `net/netfilter/nft_ct.c`; measured on 6.18.

use super::{Act, Next};
use conntrack::{CtState, CtView, States};
use rules::{Request, Transit};

/// Exempts packets from tracking.
#[derive(Debug)]
pub(crate) struct Notrack;

impl Act for Notrack {
    fn act(&self, transit: &mut Transit<'_, '_>) -> Next {
        if transit.ct.tracker.is_none() || transit.ct.view.flow.is_some() {
            // Before tracking, or with a connection that it has.
            if transit.ct.view.flow.is_none() {
                transit.ct.request(Request::Untracked, transit.certain);
            }
            return Next::On;
        }
        let untracked = States::of(CtState::Untracked);
        let states = transit.ct.view.states;
        let without = States::of(CtState::Invalid);
        if states == without {
            transit.ct.view = match transit.certain {
                true => CtView::UNTRACKED,
                false => CtView::without_flow(states.or(untracked)),
            };
        } else if states.may_be(CtState::Invalid) {
            transit.ct.view.states = states.or(untracked);
        }
        Next::On
    }

    fn untracks(&self) -> bool {
        true
    }
}
