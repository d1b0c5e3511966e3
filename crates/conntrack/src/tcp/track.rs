//! [`track`]: brings a flow up to date with a segment.

use super::record::{SideState, Tcp};
use super::segment::{Kind, Segment, before, flag};
use super::states::{self, Next, State};
use super::window;
use crate::config::{Config, Mode};
use crate::flow::{Flow, Proto};
use crate::key::Direction;
use crate::status::Status;
use crate::step::{Arrival, Step};

impl Tcp {
    fn seen(&mut self, direction: Direction) -> &mut SideState {
        let [original, reply] = &mut self.seen;
        if direction == Direction::Original { original } else { reply }
    }

    /// What a flow begins with; `None` where no flow may begin with this segment.
    fn begin(segment: &Segment<'_>, config: &Config) -> Option<Self> {
        let mut tcp = Self::default();
        if segment.kind == Kind::Syn {
            tcp.seen = [SideState::of_syn(segment), SideState::default()];
            return Some(tcp);
        }
        let is_midstream = config.mode == Mode::Midstream && segment.kind == Kind::Fin;
        if !(segment.kind == Kind::Ack || is_midstream) || !config.loose {
            return None;
        }
        tcp.seen = SideState::picked_up(segment);
        if is_midstream {
            tcp.state = State::Established;
        }
        Some(tcp)
    }

    /// The client and the server agree on a SYN that did not fit: the flow goes on from it.
    fn resynchronise(&mut self, direction: Direction) {
        let last = self.last;
        let scale = last.scale;
        let flags = last.flags & !flag::EXPECTS_CHALLENGE;
        self.last.flags = flags;
        let sender = self.seen(direction.opposite());
        let of_syn = SideState::at(last.end, u32::from(last.window));
        *sender = of_syn.with(scale, flags, sender.max_ack);
        self.seen(direction).forget();
    }

    /// Remembers a segment that is let through without touching the state.
    fn note_ignored(&mut self, segment: &Segment<'_>, direction: Direction, old: State) {
        self.last.note(segment.kind, direction);
        self.last.sequence = segment.sequence;
        self.last.end = segment.end;
        self.last.window = segment.window;
        if segment.kind == Kind::Syn && direction == Direction::Original {
            let options = segment.syn_options();
            self.last.scale = options.scale.unwrap_or(0);
            self.last.flags = options.flags();
            if old == State::LastAck {
                self.last.flags |= flag::EXPECTS_CHALLENGE;
            }
        }
        let is_answer = segment.kind == Kind::Ack && direction == Direction::Reply;
        if old == State::SynSent && is_answer {
            self.last.acknowledgement = segment.acknowledgement;
        }
    }
}

/// What the transition table and the special cases after it decide.
enum Course {
    /// Test the window, then go to this state.
    Window(State, State),
    /// Go to this state untested.
    Go(State, State),
    /// Let through, nothing changes.
    Ignore,
    Invalid,
    Reopen,
}

impl Tcp {
    /// Returns a connection of which only the state is known: its next packets show the rest, and windows are not
    /// enforced, as in a connection that is picked up.
    pub(in super::super) fn listed(state: State) -> Self {
        let closes = if state.is_closing() { flag::CLOSE_INIT } else { 0 };
        let begun = flag::SACK_PERMITTED | flag::LIBERAL | closes;
        let side = SideState::default().with(0, begun, 0);
        Self { state, seen: [side; 2], ..Self::default() }
    }
}

/// Picks up a flow of which only a SYN was seen, and this segment follows as if it was answered.
pub(in super::super) fn pick_up(flow: &mut Flow, segment: &Segment<'_>) {
    let seen = SideState::picked_up(segment);
    flow.proto = Proto::Tcp(Tcp { state: State::Established, seen, ..Tcp::default() });
}

/// Whether a flow has seen nothing but SYNs.
pub(in super::super) fn waits_for_answer(flow: &Flow) -> bool {
    matches!(&flow.proto, Proto::Tcp(tcp) if tcp.state == State::SynSent)
}

/// Evaluates a segment of a flow and brings the flow up to date.
pub(in super::super) fn track(
    flow: &mut Flow,
    segment: &Segment<'_>,
    arrival: &Arrival,
    config: &Config,
) -> Step {
    if !flow.is_confirmed() {
        let Some(tcp) = Tcp::begin(segment, config) else { return Step::Invalid };
        flow.proto = Proto::Tcp(tcp);
        flow.vague_window = segment.options.is_none();
    }
    let (vague, status) = (flow.vague_window, flow.status);
    let Proto::Tcp(tcp) = &mut flow.proto else { return Step::Invalid };
    let old = tcp.state;
    let course = match states::next(arrival.direction, segment.kind, old) {
        // Nothing is special about these.
        Next::To(
            new @ (State::Established | State::FinWait | State::CloseWait | State::LastAck),
        ) => Course::Window(old, new),
        next => tcp.course(next, segment, arrival.direction, status, config),
    };
    let (old, new) = match course {
        Course::Invalid => return Step::Invalid,
        Course::Ignore => return Step::Ignore,
        Course::Reopen => return Step::Reopen,
        Course::Go(old, new) => (old, new),
        Course::Window(old, new) => match tcp.fits(segment, arrival, config.liberal, vague) {
            window::Fit::In => (old, new),
            window::Fit::Ignore => return Step::Ignore,
            window::Fit::Out => {
                shorten(flow, segment.kind, arrival, config);
                return Step::Invalid;
            }
            window::Fit::Vague => {
                settle_vague(flow, segment, arrival, config, old, new);
                return Step::Vague;
            }
        },
    };
    settle(flow, segment, arrival, config, old, new)
}

impl Tcp {
    /// What the table of transitions leads to, with the cases in which it does not.
    #[inline(never)]
    fn course(
        &mut self,
        next: Next,
        segment: &Segment<'_>,
        direction: Direction,
        status: Status,
        config: &Config,
    ) -> Course {
        let old = self.state;
        let kind = segment.kind;
        let new = match next {
            Next::Invalid => return Course::Invalid,
            Next::Ignore => return self.ignore_or_agree(segment, direction, old),
            Next::To(new) => new,
        };
        match new {
            State::SynSent if old >= State::TimeWait => {
                let closed = (self.seen[0].flags | self.seen[1].flags) & flag::CLOSE_INIT != 0;
                let aborted = self.last.is_from(direction) && self.last.kind == Kind::Rst;
                if closed || aborted {
                    return Course::Reopen;
                }
                self.ignore_or_agree(segment, direction, old)
            }
            State::TimeWait if self.is_challenge(kind, direction, old) => {
                self.last.flags &= !flag::EXPECTS_CHALLENGE;
                Course::Ignore
            }
            State::SynSent2 => {
                self.last.flags |= flag::SIMULTANEOUS_OPEN;
                Course::Window(old, new)
            }
            State::SynRecv => {
                let opened = direction == Direction::Reply
                    && kind == Kind::Ack
                    && self.last.flags & flag::SIMULTANEOUS_OPEN != 0;
                Course::Window(old, if opened { State::Established } else { new })
            }
            State::Close if kind == Kind::Rst => self.reset(segment, direction, status, config),
            _ => Course::Window(old, new),
        }
    }

    /// An acknowledgement that answers a stray SYN must not pass for that of the last FIN.
    fn is_challenge(&self, kind: Kind, direction: Direction, old: State) -> bool {
        old == State::LastAck
            && kind == Kind::Ack
            && !self.last.is_from(direction)
            && self.last.kind == Kind::Syn
            && self.last.flags & flag::EXPECTS_CHALLENGE != 0
    }

    /// Our entry may be out of step with the two sides: what does not fit passes and is remembered; if
    /// the answer shows that they agree, so do we.
    fn ignore_or_agree(
        &mut self,
        segment: &Segment<'_>,
        direction: Direction,
        old: State,
    ) -> Course {
        let agrees = segment.kind == Kind::SynAck
            && self.last.kind == Kind::Syn
            && !self.last.is_from(direction)
            && segment.acknowledgement == self.last.end;
        if agrees {
            self.resynchronise(direction);
            return Course::Window(State::SynSent, State::SynRecv);
        }
        self.note_ignored(segment, direction, old);
        Course::Ignore
    }

    /// A reset must be where the other side expects the next byte.
    fn reset(
        &mut self,
        segment: &Segment<'_>,
        direction: Direction,
        status: Status,
        config: &Config,
    ) -> Course {
        let is_assured = status.contains(Status::ASSURED);
        let seen_reply = status.contains(Status::SEEN_REPLY);
        let (old, mut new) = (self.state, State::Close);
        if old.is_closing() {
            return Course::Go(old, new);
        }
        let is_established = old == State::Established && is_assured;
        let peer = *self.seen(direction.opposite());
        if peer.flags & flag::ACKNOWLEDGED != 0 && self.last.kind != Kind::Syn {
            if segment.sequence == 0 && !is_established {
                return Course::Window(old, new);
            }
            let expected = peer.max_ack;
            if before(segment.sequence, expected) && !config.ignore_invalid_rst {
                return Course::Invalid;
            }
            let in_train = self.last.kind == Kind::Ack
                && self.last.is_from(direction)
                && segment.sequence == self.last.end;
            if !is_established || segment.sequence == expected || in_train {
                return Course::Window(old, new);
            }
            // Not exactly there: the other side may challenge it, so the connection lives on.
            new = old;
        }
        // Measured: a SYN of its own is not what it answers.
        let answers_syn =
            seen_reply && self.last.kind == Kind::Syn && !self.last.is_from(direction);
        let answers_ignored = answers_syn || (!is_assured && self.last.kind == Kind::Ack);
        if answers_ignored && segment.acknowledgement == self.last.end {
            return Course::Go(old, new);
        }
        let answers_challenge = old == State::SynSent
            && self.last.kind == Kind::Ack
            && self.last.is_reply
            && segment.sequence == self.last.acknowledgement;
        if answers_challenge { Course::Go(old, new) } else { Course::Window(old, new) }
    }
}

/// A segment is taken of which it is not known whether it fits.
#[cold]
fn settle_vague(
    flow: &mut Flow,
    segment: &Segment<'_>,
    arrival: &Arrival,
    config: &Config,
    old: State,
    new: State,
) {
    settle(flow, segment, arrival, config, old, new);
}

/// The segment is taken: state, timeout, and whether the flow is assured.
#[inline(always)]
fn settle(
    flow: &mut Flow,
    segment: &Segment<'_>,
    arrival: &Arrival,
    config: &Config,
    old: State,
    new: State,
) -> Step {
    let direction = arrival.direction;
    let seen_reply = flow.status.contains(Status::SEEN_REPLY);
    let is_assured = flow.status.contains(Status::ASSURED);
    let Proto::Tcp(tcp) = &mut flow.proto else { return Step::Invalid };
    tcp.last.note(segment.kind, direction);
    tcp.state = new;
    if old != new && new == State::FinWait {
        tcp.seen(direction).flags |= flag::CLOSE_INIT;
    }
    let mut timeout = tcp.timeout(segment.kind, config);
    if !seen_reply {
        if segment.kind == Kind::Rst {
            flow.count(direction, arrival.bytes);
            return Step::Kill;
        }
        if segment.kind == Kind::Syn && old == State::SynSent {
            // A repeated SYN does not keep a flow alive that nobody answers.
            return Step::Ignore;
        }
        if new == State::Established {
            timeout = timeout.min(config.timeouts.tcp_unacknowledged);
        }
    } else if !is_assured
        && matches!(old, State::SynRecv | State::Established)
        && new == State::Established
    {
        flow.status.set(Status::ASSURED);
    }
    flow.refresh(direction, arrival.now, timeout, arrival.bytes);
    Step::Accept
}

impl Tcp {
    fn timeout(&self, kind: Kind, config: &Config) -> u64 {
        let times = &config.timeouts;
        let of = |state: State| times.tcp.get(state as usize).copied().unwrap_or(0);
        let own = of(self.state);
        let is_unacknowledged =
            (self.seen[0].flags | self.seen[1].flags) & flag::UNACKNOWLEDGED != 0;
        if self.retrans >= config.max_retrans && own > times.tcp_max_retrans {
            times.tcp_max_retrans
        } else if kind == Kind::Rst {
            of(State::Close)
        } else if is_unacknowledged && own > times.tcp_unacknowledged {
            times.tcp_unacknowledged
        } else if self.last.window == 0 && own > times.tcp_max_retrans {
            times.tcp_max_retrans
        } else {
            own
        }
    }
}

/// Shortens the life of a flow when a FIN or reset out of window answers another: the connection is likely closed.
fn shorten(flow: &mut Flow, kind: Kind, arrival: &Arrival, config: &Config) {
    const SOON: u64 = 120_000_000_000;
    let is_fixed = flow.status.contains(Status::FIXED_TIMEOUT);
    if is_fixed || !flow.status.contains(Status::ASSURED) || !kind.ends() {
        return;
    }
    let left = flow.expires_in(arrival.now);
    let Proto::Tcp(tcp) = &mut flow.proto else { return };
    if tcp.last.is_from(arrival.direction) || !tcp.last.kind.ends() {
        tcp.last.note(kind, arrival.direction);
        return;
    }
    let most = config.timeouts.tcp_unacknowledged;
    if left >= SOON && left > most {
        flow.deadline = arrival.now.saturating_add(most);
    }
}

/// Whether a flow is one of TCP on its way to the end.
pub(in super::super) fn is_closing(flow: &Flow) -> bool {
    matches!(&flow.proto, Proto::Tcp(tcp) if tcp.state.is_closing())
}

/// A reset was sent in the name of the other side (`-j REJECT --reject-with tcp-reset`).
pub(in super::super) fn close(flow: &mut Flow, now: u64, config: &Config) {
    let is_fixed = flow.status.contains(Status::FIXED_TIMEOUT);
    let confirmed = flow.is_confirmed();
    let Proto::Tcp(tcp) = &mut flow.proto else { return };
    if !confirmed {
        return;
    }
    let old = std::mem::replace(&mut tcp.state, State::Close);
    if old != State::Close && !is_fixed {
        let timeout = config.timeouts.tcp.get(State::Close as usize).copied().unwrap_or(0);
        flow.deadline = now.saturating_add(timeout);
    }
}
