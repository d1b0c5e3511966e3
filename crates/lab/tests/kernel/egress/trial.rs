//! One ruleset on one pair of links: its packets through the kernel and through tamis.

use std::fmt;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};

use conntrack::{CtState, CtView};
use dataplane::{
    Arrival, Config, Egress, FinalVerdict, Handler, Leaves, Observer, Origin, Path, Program,
};
use fastrand::Rng;
use host::Host;
use lab::oracle::load::restore;
use lab::oracle::netns::{ip, write_setting};
use lab::oracle::tun::Tun;
use lab::scene::{Placement, Scene, Wire};
use packet::ipv6_ext::{self, Find};
use packet::{Checksums, Link, Packet};
use rules::model::Family;
use rules::save::{LoadOptions, load};
use rules::{Iface, KnownFlow};

use super::{PACKETS, rulesets};

/// A packet, and whether it comes in by `t0`.
pub(super) type Input = (bool, Vec<u8>);

/// Rules and links.
#[derive(Debug, Clone)]
pub(super) struct Stage {
    pub(super) family: Family,
    pub(super) rules: Vec<String>,
    /// Of `t0` and `t1`, in bytes.
    pub(super) mtus: [u32; 2],
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} mtu {:?}\n{}", self.family.name(), self.mtus, self.rules.join("\n"))
    }
}

/// What came of it.
pub(super) enum Found {
    Same(Tally),
    /// All packets up to the one that made the difference, and what happened to that.
    Differs(Vec<Input>, String),
}

/// What was compared.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tally {
    packets: u64,
    unknown: u64,
    forwarded: u64,
    fragments: u64,
    replies: u64,
}

impl Tally {
    pub(super) fn add(&mut self, other: &Self) {
        self.packets += other.packets;
        self.unknown += other.unknown;
        self.forwarded += other.forwarded;
        self.fragments += other.fragments;
        self.replies += other.replies;
    }

    /// Enough of everything was compared.
    pub(super) fn check(&self) {
        assert!(self.unknown * 20 < self.packets, "too much is unknown: {self}");
        let each = [self.forwarded, self.fragments, self.replies];
        assert!(each.iter().all(|count| count * 50 > self.packets), "too little of one: {self}");
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { packets, unknown, forwarded, fragments, replies } = self;
        write!(
            f,
            "{packets} packets, {unknown} unknown; equal: {forwarded} frames forwarded, \
             {fragments} of them fragments, {replies} replies"
        )
    }
}

/// A frame that left.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Left {
    by_near: bool,
    /// The host made it.
    is_own: bool,
    bytes: Vec<u8>,
}

/// What tracking said of the packet.
#[derive(Default)]
struct Seen {
    states: Option<CtState>,
}

impl rules::eval::Observer for Seen {}
impl Observer for Seen {
    fn tracked(&mut self, view: &CtView, _: KnownFlow<'_>) {
        self.states = view.states.only();
    }
}

impl Stage {
    pub(super) fn draw(family: Family, rng: &mut Rng) -> Self {
        let sizes: &[u32] = match family {
            Family::Ipv6 => &[65_535, 1500, 1400, 1280],
            _ => &[65_535, 1500, 1400, 900, 600],
        };
        let mut size = || sizes[rng.usize(..sizes.len())];
        let mtus = [size(), size()];
        Self { family, rules: rulesets::draw(family, rng), mtus }
    }

    /// Plays packets as they are drawn, in the calling thread's namespace.
    pub(super) fn play(
        &self,
        mut draw: impl FnMut(&[Input]) -> Option<Input>,
    ) -> io::Result<Found> {
        let mut kernel = self.kernel()?;
        let program = self.program()?;
        let translates = self.rules.iter().any(|line| line == "*nat");
        let clamps = self.rules.iter().any(|line| line.contains("-j TCPMSS"));
        let handler = Handler::new(&program).sending();
        let mut router = Router { handler, program, translates, clamps, number: 0 };
        let (mut inputs, mut seen) = (Vec::new(), Vec::new());
        let mut tally = Tally::default();
        while inputs.len() < PACKETS
            && let Some(input) = draw(&seen)
        {
            inputs.push(input.clone());
            let theirs = pass(&mut kernel, &input)?;
            let (ours, story) = router.pass(&input);
            tally.packets += 1;
            seen.extend(theirs.iter().map(|left| (left.by_near, left.bytes.clone())));
            let Some(ours) = ours else {
                tally.unknown += 1;
                continue;
            };
            if !are_equal(&theirs, &ours) {
                let story = format!("{story}{}{}", shown("kernel", &theirs), shown("tamis", &ours));
                return Ok(Found::Differs(inputs, story));
            }
            tally.replies += ours.iter().filter(|left| left.is_own).count() as u64;
            tally.forwarded += ours.iter().filter(|left| !left.is_own).count() as u64;
            tally.fragments += ours.iter().filter(|left| is_fragment(&left.bytes)).count() as u64;
        }
        Ok(Found::Same(tally))
    }

    fn text(&self) -> String {
        self.rules.join("\n") + "\n"
    }

    fn kernel(&self) -> io::Result<Tun> {
        let tun = Tun::new(&Scene::new(self.family, Wire::Tun, Placement::Forward))?;
        write_setting("ipv6/auto_flowlabels", "0")?;
        write_setting("ipv4/icmp_ratemask", "0")?;
        write_setting("ipv4/icmp_msgs_burst", "100000000")?;
        let [near, far] = self.mtus;
        ip(&format!(
            "route add 10.1.0.0/16 dev t0\nroute add fd01::/16 dev t0\n\
             link set t0 mtu {near}\nlink set t1 mtu {far}\n"
        ))?;
        thread::sleep(Duration::from_millis(30));
        restore(self.family, &self.text())?;
        Ok(tun)
    }

    /// With the host as its own tools describe it.
    fn program(&self) -> io::Result<Program> {
        let printed = |command: &str| -> io::Result<String> {
            let mut words = command.split(' ');
            let output = Command::new(words.next().unwrap_or_default()).args(words).output()?;
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        };
        let routes =
            printed("ip -4 route show table all")? + &printed("ip -6 route show table all")?;
        let links = printed("ip -d -o link")?;
        let addresses = printed("ip -o addr")?;
        let settings = printed("sysctl net.ipv4.conf net.ipv4.ip_forward net.ipv6.conf")?;
        let host = Host::read(|file| match file {
            "routes.txt" => Some(routes.clone()),
            "links.txt" => Some(links.clone()),
            "addresses.txt" => Some(addresses.clone()),
            "sysctl.txt" => Some(settings.clone()),
            _ => None,
        });
        let host = host.map_err(io::Error::other)?;
        let options = LoadOptions { family: Some(self.family), ..LoadOptions::default() };
        let rules = load(&self.text(), &options).map_err(|e| io::Error::other(format!("{e:?}")))?;
        let config = Config { host, nets: Vec::new(), ..crate::two_devices() };
        Ok(Program::new([Arc::new(rules.ruleset)], config))
    }
}

/// What leaves the kernel.
fn pass(tun: &mut Tun, (from_near, bytes): &Input) -> io::Result<Vec<Left>> {
    if *from_near { tun.send(bytes) } else { tun.send_far(bytes) }?;
    let mut buffer = vec![0; 1 << 16];
    let mut left = Vec::new();
    while let Some(len) = tun.receive_near(&mut buffer)? {
        left.push(Left { by_near: true, is_own: false, bytes: buffer[..len].to_vec() });
    }
    while let Some(len) = tun.receive(&mut buffer)? {
        left.push(Left { by_near: false, is_own: false, bytes: buffer[..len].to_vec() });
    }
    left.retain(|left| left.bytes.get(8..24) != Some(&[0; 16]));
    Ok(left)
}

/// tamis between two ports.
struct Router {
    program: Program,
    translates: bool,
    /// Some rule writes a segment size, after which not all bytes of a SYN are known, nor what quotes them.
    clamps: bool,
    handler: Handler,
    number: u64,
}

impl Router {
    /// What leaves, by `t0` first as the kernel's is read; `None` where that is not known.
    fn pass(&mut self, (from_near, bytes): &Input) -> (Option<Vec<Left>>, String) {
        let interface = if *from_near { "t0" } else { "t1" };
        let mut story = format!("  in by {interface} {}\n", show(bytes));
        let (mut left, reply, mut is_known) =
            self.handle(&mut bytes.clone(), Origin::Wire, interface, &mut story);
        if let Some((mut own, interface)) = reply {
            // It walks OUTPUT, as whatever the host sends.
            let (own, _, knows) = self.handle(&mut own, Origin::Host, interface, &mut story);
            left.extend(own.into_iter().map(|own| Left { is_own: true, ..own }));
            is_known &= knows;
        }
        left.sort_by_key(|left| !left.by_near);
        (is_known.then_some(left), story)
    }

    #[expect(
        clippy::type_complexity,
        reason = "frames, a reply with its device, whether all is known"
    )]
    fn handle(
        &mut self,
        bytes: &mut [u8],
        origin: Origin,
        interface: &'static str,
        story: &mut String,
    ) -> (Vec<Left>, Option<(Vec<u8>, &'static str)>, bool) {
        self.number += 1;
        let direction = match origin {
            Origin::Host => pktio::Direction::Outbound,
            _ => pktio::Direction::Inbound,
        };
        let arrival = Arrival {
            time: Some(1_000_000_000 + self.number * 1000),
            origin,
            direction,
            interface: Some(interface),
            ..Arrival::new(self.number, Link::Raw, bytes.len())
        };
        let mut seen = Seen::default();
        let egress = self.handler.handle(&self.program, bytes, &arrival, &mut seen);
        let Egress { outcome, leaves, reply } = egress;
        *story +=
            &format!("  {:?} {:?} {:?}\n", outcome.end.verdict, outcome.end.path, seen.states);
        let goes_out = matches!(outcome.end.path, Some(Path::Forward | Path::Output))
            && matches!(outcome.end.verdict, FinalVerdict::Accept(_));
        let by_near = outcome.output == Iface::Named("t0");
        let left = |bytes: &[u8]| Left { by_near, is_own: false, bytes: bytes.to_vec() };
        let frames: Vec<Left> = match leaves {
            _ if !goes_out => Vec::new(),
            Leaves::Nothing => Vec::new(),
            Leaves::Others(frames) => frames.iter().map(left).collect(),
            Leaves::InPlace(len) => vec![left(&bytes[..len])],
        };
        let reply = reply.map(|own| {
            (own.bytes.to_vec(), if own.output == Iface::Named("t0") { "t0" } else { "t1" })
        });
        // The error is tracked by what it quotes, which may be the inverse of a connection that is translated.
        let is_of_none = seen.states.is_none_or(|state| state == CtState::Invalid);
        let may_be_translated = is_of_none && reply.is_some() && self.translates;
        let is_known = outcome.end.verdict != FinalVerdict::Unknown
            && !may_be_translated
            && !(self.clamps && outcome.answer.is_some() && reply.is_none())
            && !(goes_out && leaves == Leaves::Nothing);
        (frames, reply, is_known)
    }
}

fn are_equal(theirs: &[Left], ours: &[Left]) -> bool {
    let are_two = |(theirs, ours): (&Left, &Left)| {
        theirs.by_near == ours.by_near
            && masked(&theirs.bytes, ours.is_own) == masked(&ours.bytes, ours.is_own)
    };
    theirs.len() == ours.len() && theirs.iter().zip(ours).all(are_two)
}

/// Without what the kernel draws.
fn masked(bytes: &[u8], is_own: bool) -> Vec<u8> {
    const ICMP: u8 = 1;
    let mut bytes = bytes.to_vec();
    match bytes[0] >> 4 {
        4 if is_own && bytes[9] == ICMP => {
            bytes[4..6].fill(0);
            bytes[10..12].fill(0);
        }
        6 => {
            if let Some(at) = fragment_header(&bytes) {
                bytes[at + 4..at + 8].fill(0);
            }
        }
        _ => {}
    }
    bytes
}

fn fragment_header(bytes: &[u8]) -> Option<usize> {
    let (mut bytes, len) = (bytes.to_vec(), bytes.len());
    let packet = Packet::parse(&mut bytes, len, Link::Raw, Checksums::Ignore);
    match ipv6_ext::find(&packet, 0, Some(ipv6_ext::FRAGMENT)) {
        Find::Found { offset, .. } => Some(offset),
        _ => None,
    }
}

fn is_fragment(bytes: &[u8]) -> bool {
    match bytes[0] >> 4 {
        4 => (bytes[6] & 0x3f, bytes[7]) != (0, 0),
        _ => fragment_header(bytes).is_some(),
    }
}

fn shown(who: &str, frames: &[Left]) -> String {
    let mut text = String::new();
    for left in frames {
        let device = if left.by_near { "t0" } else { "t1" };
        text += &format!("  {who} {device} {}\n", show(&left.bytes));
    }
    text
}

pub(super) fn show(bytes: &[u8]) -> String {
    let head = bytes.get(..48).unwrap_or(bytes);
    let hex: String = head.iter().map(|byte| format!("{byte:02x}")).collect();
    let (mut bytes, len) = (bytes.to_vec(), bytes.len());
    let packet = Packet::parse(&mut bytes, len, Link::Raw, Checksums::Ignore);
    format!("{len}: {packet} {hex}")
}
