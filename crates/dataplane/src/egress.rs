//! [`Egress`]: what becomes of a frame, with the bytes that leave for it. This is the one place where they are
//! decided.
//!
//! A packet leaves where it lies, unless its length changed, it was reassembled, or it leaves as fragments: then its
//! frames are made in the handler's [`Exit`] and lent until the next frame. So is the reply of the host to a packet
//! that it refuses. A reply is in its final form: the translation of the packet that it answers is undone. The sender
//! of a reply takes it through OUTPUT first, by handling it as one of the host's own packets
//! ([`Origin::Host`](crate::Origin::Host)). On a wire there is no host: a reply comes as from a bridge, or from the
//! port's address where packets age, leaves through the port of arrival, and no rule sees it.
//!
//! Contract: only a handler that was made to send ([`Handler::sending`](crate::Handler::sending)) makes any of it. No
//! allocation once its buffers have grown. A packet that holds a byte that is not known does not leave. Bytes before
//! the network header stay as they came.
//!
//! Source: Linux 6.18 `ip_finish_output` and `ip_fragment` (`net/ipv4/ip_output.c`), `ip6_finish_output`
//! (`net/ipv6/ip6_output.c`), `icmp_send` (`net/ipv4/icmp.c`), `icmp6_send` (`net/ipv6/icmp.c`), `nf_reject_ipv4.c`,
//! `nf_reject_ipv6.c`, `net/bridge/netfilter/nft_reject_bridge.c`.

use std::net::IpAddr;

use conntrack::Tuple;
use conntrack::defrag::Whole;
use host::{Host, Outgoing, Routed};
use packet::fragment::{self, Cut, Frames};
use packet::reply::{self, Replier, Terms};
use packet::{L3, Packet, Read, ipv4};
use rules::Iface;
use rules::ext::Answer;

use crate::config::{Config, Unresolved};
use crate::disposition::{FinalVerdict, Outcome};
use crate::routing::path::Path;
use crate::routing::way::{Way, addresses};
use crate::walk::Walk;

/// The outcome of a frame, with the bytes that leave for it.
#[derive(Debug)]
pub struct Egress<'h, 'a> {
    /// The frame's verdict, with the facts behind it.
    pub outcome: Outcome<'a>,
    /// The bytes that leave.
    pub leaves: Leaves<'h>,
    /// The host's reply to the sender.
    pub reply: Option<Own<'h, 'a>>,
}

/// The place of the bytes that leave, to the host itself or through the output interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaves<'h> {
    /// No bytes leave.
    Nothing,
    /// The frame itself leaves, as rewritten: its first bytes, of this number. Padding after the packet is cut off.
    InPlace(usize),
    /// These frames leave in its place.
    Others(&'h Frames),
}

/// A packet of the host's own, from its network header on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Own<'h, 'a> {
    /// The packet's bytes.
    pub bytes: &'h [u8],
    /// The output interface.
    pub output: Iface<'a>,
}

impl<'a> From<Outcome<'a>> for Egress<'_, 'a> {
    /// An outcome for which nothing leaves.
    fn from(outcome: Outcome<'a>) -> Self {
        Self { outcome, leaves: Leaves::Nothing, reply: None }
    }
}

/// Buffers for frames that leave in place of the received one, and for replies.
#[derive(Debug, Default)]
pub(crate) struct Exit {
    pub(crate) frames: Frames,
    replies: Replies,
}

impl Exit {
    /// Makes what leaves for a packet at the end of its walk; `sent` is its tuple as its sender sent it, where its
    /// destination was translated.
    #[inline]
    pub(crate) fn make<'a>(
        &mut self,
        walk: &mut Walk<'_, '_, '_>,
        verdict: &FinalVerdict,
        leaving: &Leaving<'_, 'a>,
        sent: Option<&Tuple>,
        config: &'a Config,
    ) -> Made<'a> {
        let place = leaving.leave(verdict, config.unknown, walk.packet(), &mut self.frames);
        let answer = walk.sent_for(verdict).filter(|_| *verdict != FinalVerdict::Unknown);
        let Some(answer) = answer else { return Made { place, reply: None } };
        if let Some(sent) = sent {
            walk.undo_destination(sent);
        }
        let refused = Refused {
            packet: walk.packet(),
            answer,
            was_translated: sent.is_some(),
            by_rule: matches!(verdict, FinalVerdict::Reject(_)),
            way: leaving.way,
        };
        Made { place, reply: self.replies.make(&refused, &config.host) }
    }
}

/// Lends what was made for a frame: the bytes that leave, and the reply.
#[inline]
pub(crate) fn lent<'h, 'a>(
    made: Option<Made<'a>>,
    exit: &'h Option<Exit>,
) -> (Leaves<'h>, Option<Own<'h, 'a>>) {
    match (made, exit) {
        (Some(made), Some(exit)) => made.lent(exit),
        _ => (Leaves::Nothing, None),
    }
}

/// What was made for a frame.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Made<'a> {
    pub(crate) place: Place,
    /// The output interface of the reply, if there is one.
    reply: Option<Iface<'a>>,
}

impl<'a> Made<'a> {
    /// The bytes that leave, and the reply.
    #[inline]
    fn lent(self, Exit { frames, replies }: &Exit) -> (Leaves<'_>, Option<Own<'_, 'a>>) {
        let leaves = match self.place {
            Place::Nowhere => Leaves::Nothing,
            Place::Frame(len) => Leaves::InPlace(len),
            Place::Frames => Leaves::Others(frames),
        };
        (leaves, self.reply.map(|output| Own { bytes: &replies.bytes, output }))
    }
}

/// Where the bytes that leave are.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Place {
    #[default]
    Nowhere,
    Frame(usize),
    Frames,
}

/// The fragments that a packet was reassembled from.
#[derive(Debug)]
pub(crate) struct Parts {
    pieces: Vec<u32>,
    longest: u32,
    /// Whether they must not be fragmented further.
    must_stay: bool,
    id: u32,
    /// Length of the frame when it was reassembled.
    len: usize,
}

impl Parts {
    /// The parts of a packet that is fragmented again into pieces no longer than `whole` says.
    pub(crate) fn of(whole: &mut Whole) -> Self {
        Self {
            pieces: std::mem::take(&mut whole.pieces),
            longest: whole.longest,
            must_stay: whole.largest > 0,
            id: whole.id,
            len: whole.frame.len(),
        }
    }

    /// Puts the bytes before `end` into one piece, where the first that came was shorter.
    pub(crate) fn pull(&mut self, end: usize) {
        let before = self.len - self.pieces.iter().map(|piece| *piece as usize).sum::<usize>();
        let Some((first, later)) = self.pieces.split_first_mut() else { return };
        let mut lacking = end.min(self.len).saturating_sub(before + *first as usize) as u32;
        *first += lacking;
        for piece in later {
            let taken = lacking.min(*piece);
            *piece -= taken;
            lacking -= taken;
        }
        self.pieces.retain(|piece| *piece > 0);
    }

    /// The pieces, unless a change of the packet's length has made one piece of it.
    fn pieces(&self, packet: &Packet<'_>) -> &[u32] {
        if packet.headers().end == self.len { &self.pieces } else { &[] }
    }
}

/// How a packet leaves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leaving<'p, 'a> {
    /// The packet is where it came.
    in_place: bool,
    way: Way<'a>,
    parts: Option<&'p Parts>,
    /// The longest packet that the frame stands for, if it stands for several.
    segment: Option<u32>,
}

impl<'p, 'a> Leaving<'p, 'a> {
    /// Describes a packet at the end of its way, which came with its first byte at `came_at`.
    #[inline]
    pub(crate) fn new(
        walk: &Walk<'_, '_, '_>,
        way: Way<'a>,
        came_at: *const u8,
        mut parts: Option<&'p mut Parts>,
    ) -> Self {
        if let Some(parts) = &mut parts {
            parts.pull(walk.in_one_piece());
        }
        let in_place = std::ptr::eq(walk.packet().frame().as_ptr(), came_at);
        Self { in_place, way, parts: parts.map(|parts| &*parts), segment: None }
    }

    /// Sets the length of the longest packet that the frame stands for, if it stands for several.
    #[inline]
    pub(crate) fn of(self, segment: Option<u32>) -> Self {
        Self { segment, ..self }
    }

    /// Describes a copy of the packet.
    pub(crate) fn copied(self) -> Self {
        Self { in_place: false, ..self }
    }

    /// Where the bytes of a packet are that may leave.
    #[inline]
    pub(crate) fn leave(
        &self,
        verdict: &FinalVerdict,
        unknown: Unresolved,
        packet: &Packet<'_>,
        frames: &mut Frames,
    ) -> Place {
        frames.clear();
        let end = packet.headers().end;
        let (true, Read::Known(frame)) = (unknown.lets(verdict), packet.read_slice(0, end)) else {
            return Place::Nowhere;
        };
        let is_made = match self.cut(packet) {
            Fit::Whole if self.in_place => return Place::Frame(end),
            Fit::Whole => {
                frames.push(&[frame]);
                true
            }
            Fit::Cut(cut) => fragment::cut(packet, &cut, frames),
            Fit::TooBig => false,
        };
        if is_made { Place::Frames } else { Place::Nowhere }
    }

    fn cut(&self, packet: &Packet<'_>) -> Fit<'_> {
        let (len, mtu) = (packet.len(), self.way.mtu.map_or(usize::MAX, |mtu| mtu as usize));
        let is_for_host = matches!(self.way.path, Path::Input | Path::Loopback);
        match (packet.headers().l3, self.parts) {
            _ if is_for_host => Fit::Whole,
            // Always as fragments, no longer than the received ones.
            (L3::Ipv4 { .. }, Some(parts)) => Fit::Cut(Cut {
                most: mtu.min(parts.longest as usize),
                pieces: parts.pieces(packet),
                dont_fragment: parts.must_stay,
                id: parts.id,
            }),
            (L3::Ipv6, Some(parts)) if len > mtu.min(parts.longest as usize) => Fit::Cut(Cut {
                most: (parts.longest as usize).max(LEAST_MTU_V6),
                pieces: parts.pieces(packet),
                dont_fragment: false,
                id: parts.id,
            }),
            _ if self.segment.map_or(len, |segment| segment as usize) <= mtu => Fit::Whole,
            (L3::Ipv4 { .. }, None) if may_be_cut(packet) => {
                Fit::Cut(Cut { most: mtu, pieces: &[], dont_fragment: false, id: 0 })
            }
            (L3::Ipv4 { .. } | L3::Ipv6, _) => Fit::TooBig,
            _ => Fit::Whole,
        }
    }
}

/// The least MTU of a link of IPv6 (RFC 8200, section 5).
const LEAST_MTU_V6: usize = 1280;

/// Whether a packet fits the link.
enum Fit<'p> {
    Whole,
    Cut(Cut<'p>),
    /// A change after FORWARD made it too long for the link.
    TooBig,
}

fn may_be_cut(packet: &Packet<'_>) -> bool {
    let field = packet.net::<2>(ipv4::FRAGMENT.start).known();
    field.is_some_and(|field| u16::from_be_bytes(field) & ipv4::DONT_FRAGMENT == 0)
}

/// A packet that the host answers.
#[derive(Debug, Clone, Copy)]
struct Refused<'p, 'a> {
    /// The packet as it was when it was refused, with the destination that its sender gave it.
    packet: &'p Packet<'p>,
    answer: Answer,
    /// The packet's destination was translated.
    was_translated: bool,
    /// A rule rejects the packet, and looks at checksums; the stack's own errors do not.
    by_rule: bool,
    /// The packet's way.
    way: Way<'a>,
}

/// Makes the host's replies.
#[derive(Debug, Default)]
struct Replies {
    bytes: Vec<u8>,
    /// Identification of the last error.
    id: u16,
}

impl Replies {
    /// Makes the reply to a packet, if there is one; returns its output interface.
    fn make<'a>(&mut self, refused: &Refused<'_, 'a>, host: &'a Host) -> Option<Iface<'a>> {
        let Way { input, wire, .. } = refused.way;
        let (source, destination) = addresses(refused.packet)?;
        let is_v6 = source.is_ipv6();
        if refused.way.is_bridged() {
            let terms = Terms {
                replier: Replier::Bridge,
                hop_limit: hop_limit(host, is_v6),
                id: 0,
                verify: refused.by_rule,
            };
            reply::reply(refused.packet, refused.what()?, &terms, &mut self.bytes).ok()?;
            return Some(input);
        }
        // On a wire the reply leaves through the port of arrival: nothing is routed, nothing is the host's.
        let (output, is_own) = match wire {
            Some(_) => (input, false),
            None => (back(source, input, host)?, host.is_local(destination) == Some(true)),
        };
        // An IPv6 error has the address of the interface of arrival, an IPv4 error that of its own output interface.
        let device = if is_v6 { input } else { output };
        let own = match (refused.answer, device) {
            (Answer::Reset, _) => destination,
            _ if refused.was_translated || is_own => destination,
            (_, Iface::Named(name)) => host.address_of(name, is_v6)?,
            (_, Iface::Absent | Iface::Unknown) => return None,
        };
        let what = refused.what()?;
        self.id = self.id.wrapping_add(1);
        let terms = Terms {
            replier: Replier::Host(own),
            hop_limit: hop_limit(host, is_v6),
            id: self.id,
            verify: refused.by_rule,
        };
        reply::reply(refused.packet, what, &terms, &mut self.bytes).ok()?;
        Some(output)
    }
}

impl Refused<'_, '_> {
    /// The reply that is sent; `None` where it has to name an MTU that is not known.
    fn what(&self) -> Option<reply::Reply> {
        Some(match self.answer {
            Answer::Reset => reply::Reply::Reset,
            Answer::Icmp { kind, code } => {
                let rest = if is_too_big(kind, code) { self.way.mtu? } else { 0 };
                reply::Reply::Error { kind, code, rest }
            }
        })
    }
}

fn is_too_big(kind: u8, code: u8) -> bool {
    matches!((kind, code), (3, 4) | (2, 0))
}

/// The output interface of the routes back to a packet's sender; where no routes are given, the packet's input
/// interface. `None` where they lead nowhere.
fn back<'a>(source: IpAddr, input: Iface<'a>, host: &'a Host) -> Option<Iface<'a>> {
    let outgoing = Outgoing { tos: Some(0), mark: Some(0), ..Outgoing::to(source) };
    match host.route_out(&outgoing) {
        Routed::Forward { output: Some(name), .. } => Some(Iface::Named(name)),
        Routed::Refused(_) => None,
        _ => Some(input),
    }
}

fn hop_limit(host: &Host, is_v6: bool) -> u8 {
    const USUAL: u8 = 64;
    let name = if is_v6 { "net.ipv6.conf.all.hop_limit" } else { "net.ipv4.ip_default_ttl" };
    let given = host.sysctl.as_ref().and_then(|all| all.number(name));
    given.and_then(|limit| u8::try_from(limit).ok()).unwrap_or(USUAL)
}
