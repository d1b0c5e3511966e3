//! A packet of which something is open, or that begins or ends its flow, once the flow was brought up to date.

use super::flows::Tracker;
use super::unseen;
use super::visit::Visit;
use crate::config::Mode;
use crate::dissect::Layer;
use crate::flow::{Doubt, Flow};
use crate::index::Handle;
use crate::key::{Direction, Tuple};
use crate::protocol::{self, Upper};
use crate::status::Status;
use crate::step::{Arrival, Step};
use crate::tcp;
use crate::view::{Certainty, CtState, CtView, Space, States, Taken};

/// A packet's flow as it was found, or created.
#[derive(Clone, Copy)]
pub(super) struct Met {
    pub(super) handle: Handle,
    pub(super) direction: Direction,
    pub(super) is_first: bool,
    pub(super) space: Space,
}

/// A packet whose flow was brought up to date, and how that was before: its state by the flow, and the flow's doubt.
#[derive(Clone, Copy)]
pub(super) struct Stepped {
    pub(super) met: Met,
    pub(super) before: CtState,
    pub(super) doubt: Doubt,
    pub(super) step: Step,
}

impl Tracker {
    /// What is left to do of a packet of which something is open, or that begins or ends its flow.
    #[inline(never)]
    pub(super) fn stepped(
        &mut self,
        stepped: &Stepped,
        tuple: &Tuple,
        layer: &Layer,
        upper: &Upper<'_>,
        visit: &Visit,
    ) -> Option<CtView> {
        let Stepped { met: Met { handle, is_first, space, .. }, mut doubt, step, .. } = *stepped;
        if is_first && self.is_end_of_unlisted(upper) {
            self.table.release(handle);
            return Some(self.stray(tuple, upper, visit));
        }
        let may_predate = self.may_predate();
        let Some(flow) = self.table.flow_mut(handle) else { return Some(CtView::INVALID) };
        let is_closing = tcp::is_closing(flow);
        if step.ends_flow() && !is_first && visit.certainty == Certainty::Maybe {
            doubt = Doubt::History;
        }
        if is_first && may_predate && upper.is_midstream() {
            flow.assumed = step != Step::Invalid;
        }
        if is_closing {
            self.table.closes();
        }
        let is_early = is_first && doubt == Doubt::None && self.may_be_early(tuple, upper, visit);
        let step = if doubt == Doubt::None { step } else { in_doubt(step) };
        match step {
            Step::Reopen => {
                // Gone at once, with what it expects: the packet is not part of it.
                self.table.release(handle);
                self.bury();
                return None;
            }
            Step::Kill => self.retire(handle),
            Step::Invalid if is_first => {
                self.table.release(handle);
                return Some(self.stray(tuple, upper, visit));
            }
            _ => {}
        }
        if is_early && let Some(flow) = self.table.flow_mut(handle) {
            unseen::begin(flow);
        }
        let found = Stepped { step, doubt, ..*stepped };
        let view = self.view(&found, tuple, layer, upper, visit);
        Some(CtView { space, ..view })
    }

    /// The view of a packet after its flow was brought up to date.
    fn view(
        &mut self,
        found: &Stepped,
        tuple: &Tuple,
        layer: &Layer,
        upper: &Upper<'_>,
        visit: &Visit,
    ) -> CtView {
        let Stepped { met: Met { handle, direction, is_first, .. }, before, doubt, step } = *found;
        let is_invalid = step == Step::Invalid;
        if is_invalid && doubt == Doubt::None {
            if visit.certainty == Certainty::Maybe && !is_first {
                self.raise_doubt(handle, Doubt::History, visit.now);
            }
            return CtView::INVALID;
        }
        let Some(flow) = self.table.flow_mut(handle) else { return CtView::INVALID };
        let mut state = if is_invalid { CtState::Invalid } else { before };
        if flow.assumed {
            flow.status.set(Status::SEEN_REPLY);
            state = CtState::Established;
        }
        if direction == Direction::Reply && !is_invalid {
            flow.status.set(Status::SEEN_REPLY);
        }
        let assumed = flow.assumed;
        let mut states = States::of(state);
        let mut taken = Taken::Seen;
        if self.config.mode == Mode::Midstream && !is_invalid && doubt == Doubt::None {
            let protocol = layer.protocol;
            (states, taken) =
                unseen::states(flow, state, protocol, direction, is_first, visit.unheard);
        }
        if is_first {
            self.loose_end = Some(handle);
        }
        if doubt != Doubt::None {
            states = states.or(before.into());
            let alone = self.without_flow(tuple, layer, upper, visit);
            if alone != CtState::Invalid.into() {
                self.expect_own(handle, tuple, visit);
            }
            states = states.or(alone);
            // Or a followed flow begins it, of which nobody knows what it expects.
            if direction == Direction::Original && self.untraceable.may_be_expected(tuple) {
                states = states.or(CtState::Related.into());
            }
        }
        if doubt == Doubt::History || step == Step::Vague {
            states = states.or(CtState::Established.into());
            if protocol::has_states(layer.protocol) {
                states = states.or(CtState::Invalid.into());
            }
        }
        let is_maybe = visit.certainty == Certainty::Maybe && !is_first;
        if step == Step::Vague {
            taken = Taken::Seen;
        }
        if doubt != Doubt::None || step == Step::Vague || is_maybe {
            self.raise_doubt(handle, Doubt::History, visit.now);
        }
        CtView {
            states,
            flow: Some(handle),
            direction,
            is_first,
            assumed,
            taken,
            space: Space::Enough,
        }
    }

    /// What a packet would be if its flow did not exist.
    fn without_flow(
        &self,
        tuple: &Tuple,
        layer: &Layer,
        upper: &Upper<'_>,
        visit: &Visit,
    ) -> States {
        let tuple = tuple.in_zone(visit.template.zone.id_in(Direction::Original));
        let Some(reply) = tuple.inverse() else { return CtState::Invalid.into() };
        let mut flow = Flow::new(tuple, reply, visit.frame);
        let direction = Direction::Original;
        let arrival = Arrival { now: visit.now, direction, bytes: 0, ahead: 0 };
        match protocol::track_apart(&mut flow, layer.protocol, upper, &arrival, &self.config) {
            Step::Invalid => CtState::Invalid.into(),
            _ if self.is_end_of_unlisted(upper) => CtState::Invalid.into(),
            _ if self.may_predate() && upper.is_midstream() => CtState::Established.into(),
            _ if self.expectations.peek(&tuple, visit.template.zone.id, visit.now).is_some() => {
                CtState::Related.into()
            }
            _ => CtState::New.into(),
        }
    }
}

/// Keeps a flow in doubt from ending: there may be another flow that does not end.
fn in_doubt(step: Step) -> Step {
    if step.ends_flow() { Step::Ignore } else { step }
}
