//! [`Connection`]: what a packet's rules see of connection tracking, and what they ask of it.
//!
//! Before tracking a packet has no connection; `-j CT` in the raw table says how it is to be tracked. Then
//! it has a [`CtView`], and through it a flow whose mark and labels targets may change.

use conntrack::{CtState, CtView, Doubt, Flow, States, Taken, Template, Tracker};

/// A packet's connection.
#[derive(Debug)]
pub struct Connection<'p> {
    /// What tracking says of the packet.
    pub view: CtView,
    /// The table that the flow is in; `None` where nothing is tracked.
    pub tracker: Option<&'p mut Tracker>,
    /// The packet's state, if it is given and not for tracking to find.
    pub given: Option<CtState>,
    /// What `-j CT` asked for, before tracking.
    pub request: Request,
    /// The packet walks once more, as what it is taken for: what it changes beyond itself is changed already.
    pub again: bool,
    /// Something else of the flow depends on a rule that may have matched.
    pub doubtful: bool,
    /// The state that a packet of several states is taken for ([`Taken::For`]), while it is certainly on its way in that
    /// one: walks of rules tell what that state alone leads to, as long as nothing but states is open
    /// ([`Verdicts::as_taken`](crate::eval::Verdicts::as_taken)).
    pub walks_as: Option<CtState>,
}

/// How a packet is to be tracked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Request {
    /// As any.
    #[default]
    Plain,
    /// In a zone, or with a helper.
    Template(Template),
    /// Not at all.
    Untracked,
    /// The packet has a connection already, and keeps it.
    Attached,
    /// A rule that may have matched asked for something else.
    Unknown,
}

impl Default for Connection<'_> {
    fn default() -> Self {
        Self {
            view: CtView::UNKNOWN,
            tracker: None,
            given: None,
            request: Request::Plain,
            again: false,
            doubtful: false,
            walks_as: None,
        }
    }
}

/// What is known of a packet's flow.
#[derive(Debug, Clone, Copy)]
pub enum KnownFlow<'f> {
    /// The packet has no flow.
    None,
    /// The flow.
    Flow(&'f Flow),
    /// Whether there is one, or what it holds, is not known.
    Unknown,
}

impl Connection<'_> {
    /// What the raw table sees: the kernel calls it invalid.
    #[must_use]
    pub fn before_tracking() -> Self {
        Self { view: CtView::INVALID, ..Self::default() }
    }

    /// The packet's flow.
    #[must_use]
    pub fn flow(&self) -> KnownFlow<'_> {
        let flow = self.tracker.as_ref().zip(self.view.flow).and_then(|(t, at)| t.flow(at));
        match (flow, self.view.state()) {
            (Some(flow), Some(_)) if flow.doubt() == Doubt::None && !self.doubtful => {
                KnownFlow::Flow(flow)
            }
            (None, Some(CtState::Invalid | CtState::Untracked)) => KnownFlow::None,
            _ => KnownFlow::Unknown,
        }
    }

    /// The packet's flow, as far as its mark and labels are known.
    #[must_use]
    pub fn marked(&self) -> KnownFlow<'_> {
        match self.flow() {
            KnownFlow::Flow(flow) if flow.is_mark_vague() => KnownFlow::Unknown,
            seen => seen,
        }
    }

    /// States that remain possible.
    #[must_use]
    pub fn states(&self) -> States {
        self.view.states
    }

    /// Changes the mark or labels of the flow where it is known and the change is certain; where it may happen, or
    /// depends on something unknown, nothing is known of the flow any more. The mark and labels of a flow that may have
    /// begun before the capture are not known.
    pub fn change(&mut self, known: bool, change: impl FnOnce(&mut Flow)) {
        if self.again {
            return;
        }
        let is_taken = matches!(self.view.taken, Taken::For(_)) && !self.doubtful;
        let known = known && (is_taken || matches!(self.flow(), KnownFlow::Flow(_)));
        let Some((tracker, handle)) = self.tracker.as_mut().zip(self.view.flow) else { return };
        let flow = tracker.flow_mut(handle).filter(|_| !known && is_taken);
        if let Some(flow) = flow {
            flow.blur_mark();
        } else if !known {
            tracker.make_indeterminate(handle);
            self.doubtful = true;
        } else if let Some(flow) = tracker.flow_mut(handle) {
            change(flow);
        }
    }

    /// A reset is sent, or may be, in the name of the packet's other side.
    pub fn reset(&mut self, now: u64, certain: bool) {
        match (&mut self.tracker, self.view.flow) {
            (Some(tracker), _) if certain => tracker.close(&self.view, now),
            (Some(_), _) if matches!(self.view.taken, Taken::For(_)) => {}
            (Some(tracker), Some(handle)) => tracker.make_indeterminate(handle),
            _ => {}
        }
    }

    /// Takes a request of the raw table: the first one counts.
    pub fn request(&mut self, request: Request, certain: bool) {
        if self.request == Request::Attached {
            return;
        }
        self.request = match (self.request, certain) {
            (Request::Plain, true) => request,
            (Request::Plain, false) => Request::Unknown,
            (earlier, _) => earlier,
        };
        self.view = match self.request {
            Request::Untracked => CtView::UNTRACKED,
            // The template stands in for the flow, which is new.
            Request::Template(_) => CtView::without_flow(States::of(CtState::New)),
            Request::Unknown => CtView::UNKNOWN,
            Request::Plain | Request::Attached => self.view,
        };
    }
}
