//! Answers on a packet's walk: what the host sends for it is kept ready, and where it is such an answer itself it
//! carries the connection of the packet it answers.

use std::net::IpAddr;

use conntrack::{AnswerKind, Attachment, CtView, Tuple, answerable, answered};
use host::Refused;
use packet::{L3, ipv4, ipv6};
use rules::eval::{By, Verdict};
use rules::ext::Answer;
use rules::model::{Action, Family};
use rules::nat::rewrite;
use rules::{Iface, Request};

use super::packet_walk::Walk;
use crate::answers::{Answerable, Answers, Found};
use crate::disposition::{DropReason, FinalVerdict};
use crate::observer::Observer;

impl Walk<'_, '_, '_> {
    /// Gives an answer of the host's own the connection that it carries, and the source that it was made with.
    pub(crate) fn answers(
        &mut self,
        found: Found,
        answers: &Answers,
        observer: &mut impl Observer,
    ) {
        let about = if found == Found::Nothing { self.about() } else { None };
        if found == Found::Nothing && about.is_none() {
            return;
        }
        let ct = &mut self.transit.ct;
        let Some(tracker) = ct.tracker.as_mut().filter(|_| ct.given.is_none()) else { return };
        let refused = about.as_ref().or_else(|| answers.at(found));
        let view = match refused {
            None => CtView::UNKNOWN,
            Some(Answerable { connection: None, .. }) => return,
            Some(Answerable { connection: Some(attachment), .. }) => tracker.attach(attachment),
        };
        ct.view = view;
        ct.request = Request::Attached;
        self.tracking.tracked = true;
        if let Some(refused) = refused {
            self.undo_source(refused);
        }
        observer.tracked(&self.transit.ct.view, self.transit.ct.flow());
    }

    /// What an error is about, recorded as it left, that goes back to the sender of a translated packet: one which was let
    /// go and found no neighbour, or had reached the host.
    fn about(&mut self) -> Option<Answerable> {
        if !self.recorded.as_left || !self.tables.translates {
            return None;
        }
        let (AnswerKind::Error, sent) = answered(self.transit.packet)? else { return None };
        let now = self.transit.time.unwrap_or(0);
        let connection = self.transit.ct.tracker.as_mut()?.translated(&sent, now)?;
        let here = connection.here()?;
        Some(Answerable {
            kind: Some(AnswerKind::Error),
            sent,
            here,
            connection: Some(connection),
            to_host: self.transit.host.is_local(here.destination()) == Some(true),
            came_to: None,
            certain: true,
        })
    }

    /// A capture shows an answer as it leaves. Where the packet answered was translated, rules see another source.
    fn undo_source(&mut self, refused: &Answerable) {
        if !refused.is_moved() {
            return;
        }
        let Some(answer) = refused.here.inverse() else { return };
        if refused.kind == Some(AnswerKind::Reset) || refused.to_host {
            return rewrite::source(self.transit.packet, &answer);
        }
        // An error about what was to go on comes from the interface that it leaves by; of IPv6, from that by which the
        // packet came.
        let own = match (answer.is_ipv6(), self.transit.output) {
            (true, _) => refused.came_to,
            (false, Iface::Named(name)) => self.transit.host.address_of(name, false),
            (false, Iface::Absent | Iface::Unknown) => None,
        };
        if let Some(own) = own {
            return rewrite::source(self.transit.packet, &answer.with_source(own, 0));
        }
        match self.transit.packet.headers().l3 {
            L3::Ipv4 { .. } => {
                self.transit.forget_net(ipv4::SOURCE);
                self.transit.forget_net(ipv4::CHECKSUM);
            }
            _ => self.transit.forget_net(ipv6::SOURCE),
        }
    }

    /// It goes back by the link that it came by: the host may tell its sender of the shorter way, before FORWARD.
    #[inline]
    pub(crate) fn turns_back(&mut self, input: Iface<'_>, output: Iface<'_>) {
        if self.transit.ct.tracker.is_none() || self.transit.family != Family::Ipv4 {
            return;
        }
        let is_back =
            matches!((input, output), (Iface::Named(one), Iface::Named(other)) if one == other);
        if is_back && self.progress.is_alive() {
            self.keep();
        }
    }

    /// A packet that leaves, or did until FORWARD, with a connection that is in no table: an ICMP error about it
    /// carries that connection, and nothing else would tell of it.
    #[inline]
    pub(crate) fn stray(&mut self) -> Option<Answerable> {
        if self.tracking.attachment.is_none() { None } else { self.kept_stray() }
    }

    fn kept_stray(&mut self) -> Option<Answerable> {
        let connection = self.tracking.attachment.take().filter(Attachment::is_stray)?;
        let here = answerable(self.transit.packet, AnswerKind::Error)?;
        let kind = Some(AnswerKind::Error);
        Some(Answerable {
            kind,
            sent: here,
            here,
            connection: Some(connection),
            to_host: false,
            came_to: None,
            certain: true,
        })
    }

    /// See [`Answerable::came_to`].
    fn came_to(&self) -> Option<IpAddr> {
        match self.transit.input {
            Iface::Named(name) if self.transit.family == Family::Ipv6 => {
                self.transit.host.address_of(name, true)
            }
            _ => None,
        }
    }

    /// Keeps the packet's connection where the host may answer the packet, before it is forgotten.
    pub(super) fn keep_connection(&mut self) {
        let is_answer = self.transit.ct.request == Request::Attached && self.progress.is_alive();
        let may_answer =
            self.progress.verdicts.may_be(Verdict::Reject) || self.untold_answer().is_some();
        if may_answer || is_answer {
            self.keep();
        }
    }

    fn keep(&mut self) {
        if let Some(tracker) = self.transit.ct.tracker.as_ref()
            && self.tracking.attachment.is_none()
        {
            self.tracking.attachment = tracker.keep(&self.transit.ct.view);
        }
    }

    /// What the host sends the packet's sender, where it certainly does, and the packet as one that it answers, or may.
    #[inline]
    pub(crate) fn answer(
        &mut self,
        verdict: &FinalVerdict,
        to_host: bool,
    ) -> Option<(Option<Answer>, Answerable)> {
        match verdict {
            FinalVerdict::Accept(_) | FinalVerdict::Skip(_) => None,
            FinalVerdict::Drop(_) if self.progress.untold.is_none() => None,
            _ => self.answered(verdict, to_host),
        }
    }

    fn answered(
        &mut self,
        verdict: &FinalVerdict,
        to_host: bool,
    ) -> Option<(Option<Answer>, Answerable)> {
        let certain = *verdict != FinalVerdict::Unknown;
        let answer = self.sent_for(verdict)?;
        self.keep_connection();
        let kind = match answer {
            Answer::Reset => AnswerKind::Reset,
            Answer::Icmp { .. } => AnswerKind::Error,
        };
        let here = answerable(self.transit.packet, kind)?;
        let connection = self.tracking.attachment.take();
        let sent = connection.as_ref().map_or(here, |attachment| attachment.sent());
        let kind = Some(kind).filter(|_| certain);
        // Asked where a translation is undone.
        let came_to = if sent == here { None } else { self.came_to() };
        let refused = Answerable { kind, sent, here, connection, to_host, came_to, certain };
        Some((Some(answer).filter(|_| certain), refused))
    }

    /// What the host sends for a packet with this verdict, whatever the packet is.
    #[inline]
    pub(crate) fn sent_for(&self, verdict: &FinalVerdict) -> Option<Answer> {
        let answer = match verdict {
            FinalVerdict::Accept(_) | FinalVerdict::Skip(_) => None,
            FinalVerdict::Drop(_) => self.untold_answer(),
            FinalVerdict::Reject(by) => self.rejection(*by),
            FinalVerdict::Unknown => match self.progress.verdicts.by(Verdict::Reject) {
                Some(by) => self.rejection(by),
                None => self.untold_answer(),
            },
        };
        answer.filter(|_| self.transit.family.is_ip())
    }

    /// Gives a refused packet back the destination that its sender gave it, which is what an error quotes.
    pub(crate) fn undo_destination(&mut self, sent: &Tuple) {
        rewrite::destination(self.transit.packet, sent);
    }

    /// What the rule that rejects sends.
    fn rejection(&self, by: By) -> Option<Answer> {
        let By::Rule(at) = by else { return None };
        match &self.tables.rule(at)?.action {
            Action::Target(target) => target.body.answer(),
            _ => None,
        }
    }

    /// What is sent for a packet that no rule dropped.
    #[inline]
    fn untold_answer(&self) -> Option<Answer> {
        let is_v6 = self.transit.family == Family::Ipv6;
        let icmp = |v4: (u8, u8), v6: (u8, u8)| {
            let (kind, code) = if is_v6 { v6 } else { v4 };
            Some(Answer::Icmp { kind, code })
        };
        match self.progress.untold? {
            DropReason::Ttl => icmp((11, 0), (3, 0)),
            DropReason::TooBig => icmp((3, 4), (2, 0)),
            DropReason::Route(Refused::NoRoute) => icmp((3, 0), (1, 0)),
            DropReason::Route(Refused::Unreachable) => icmp((3, 1), (1, 3)),
            DropReason::Route(Refused::Prohibit) => icmp((3, 13), (1, 1)),
            DropReason::Route(Refused::Scope) => icmp((3, 0), (1, 2)),
            _ => None,
        }
    }
}
