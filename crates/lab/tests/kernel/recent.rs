//! Lists of `-m recent` that IPv4 and IPv6 rules name alike: the kernel has one of a name for both, with one bound for
//! all of its addresses. Needs root and the legacy tools; without them it says so and passes.
//!
//! Rules of either family are restored again and again, with packets of both in between. Every rule has to have as
//! many packets as tamis says; none may be in doubt.

use std::io;
use std::sync::Arc;

use dataplane::{Arrival, Counters, Handler, Origin, Program};
use fastrand::Rng;
use lab::oracle::load::restore;
use lab::oracle::netns::{in_fresh, ip};
use lab::oracle::tun::Tun;
use lab::scene::{Placement, Scene, Wire};
use packet::Link;
use packet::craft::{Addresses, Craft, Message};
use rules::model::{Family, Ruleset};
use rules::revision::{Numbers, Revision};

use crate::restored::{Hits, compared, each_run, read, revised};

/// Rules that only count; the masks are of the family.
const RULES: [&str; 10] = [
    "-p udp -m udp --dport 53 -m recent --name A --set",
    "-p udp -m udp --dport 53 -m recent --name B --mask MASK --set",
    "-p udp -m udp --dport 54 -m recent --name A --rcheck",
    "-p udp -m udp --dport 54 -m recent --name A --rcheck --hitcount 3",
    "-p udp -m udp --dport 54 -m recent --name B --rcheck",
    "-p udp -m udp --dport 55 -m recent --name A --update --hitcount 2",
    "-p udp -m udp --dport 55 -m recent --name B --rcheck --hitcount 40",
    "-p udp -m udp --dport 56 -m recent --name A --remove",
    "-p udp -m udp --dport 56 -m recent --name B --set --rdest",
    "-p udp -m udp --dport 57 -m recent --name A ! --rcheck",
];
const FAMILIES: [Family; 2] = [Family::Ipv4, Family::Ipv6];
const RESTORES: usize = 8;
/// Packets between two restores; where the bound is reached for, those that enter addresses.
const PACKETS: usize = 24;
const CROWD: usize = 160;

#[test]
fn both_families_have_one_list_of_a_name() {
    each_run(|rng, number| in_fresh(|| Trial::new()?.run(rng, number % 4 < 2)));
}

/// Some of the rules.
fn draw(rng: &mut Rng, family: Family) -> String {
    let mask = if family == Family::Ipv6 { "ffff:ff00::" } else { "255.255.0.0" };
    let mut text = "*filter\n:FORWARD ACCEPT [0:0]\n".to_owned();
    for rule in RULES.iter().filter(|_| rng.u8(..3) > 0) {
        text += &format!("-A FORWARD {}\n", rule.replace("MASK", mask));
    }
    text + "COMMIT\n"
}

/// The two families' rules, and what walks them.
struct Trial {
    tun: Tun,
    rules: [Arc<Ruleset>; 2],
    revisions: [Arc<Revision>; 2],
    numbers: [Numbers; 2],
    /// Since the rules of each were restored.
    hits: [Hits; 2],
    sent: u64,
}

impl Trial {
    fn new() -> io::Result<Self> {
        const EMPTY: &str = "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n";
        let tun = Tun::new(&Scene::new(Family::Ipv4, Wire::Tun, Placement::Forward))?;
        ip("route add 10.1.0.0/16 dev t0\nroute add a01::/16 dev t0\n")?;
        FAMILIES.into_iter().try_for_each(|family| restore(family, EMPTY))?;
        let rules = [read(EMPTY, Family::Ipv4)?, read(EMPTY, Family::Ipv6)?].map(Arc::new);
        let mut numbers = [Numbers::default(), Numbers::default()];
        let [v4, v6] = &mut numbers;
        let first = [
            revised(None, read(EMPTY, Family::Ipv4)?, v4)?,
            revised(None, read(EMPTY, Family::Ipv6)?, v6)?,
        ];
        let hits = rules.each_ref().map(|rules| Hits(Counters::of(rules)));
        let revisions = first.map(Arc::new);
        Ok(Self { tun, rules, revisions, numbers, hits, sent: 0 })
    }

    /// How often rules were hit, or what differs with what happened before.
    fn run(mut self, rng: &mut Rng, is_crowded: bool) -> io::Result<Result<u64, String>> {
        let (mut story, mut hits) = (String::new(), 0);
        let (hosts, crowd) = if is_crowded { (90, CROWD) } else { (3, 0) };
        let mut handler = Handler::new(&self.program());
        for _ in 0..RESTORES {
            let family = usize::from(rng.bool());
            let text = draw(rng, FAMILIES[family]);
            story += &format!("{:?} {text}", FAMILIES[family]);
            self.restores(family, &text)?;
            let program = self.program();
            handler.follow(&program);
            for number in 0..crowd + PACKETS {
                let (family, host) = (usize::from(rng.bool()), rng.u8(..hosts));
                let port = if number < crowd { 53 } else { rng.u16(53..58) };
                story += &format!("{:?} {host} {port}\n", FAMILIES[family]);
                self.sends(&mut handler, &program, family, packet(family, host, port))?;
            }
            hits = 0;
            for (rules, counted) in self.rules.iter().zip(&self.hits) {
                match compared(rules, &counted.0)? {
                    Ok(packets) => hits += packets,
                    Err(what) => return Ok(Err(format!("{story}{:?} {what}", rules.family))),
                }
            }
        }
        Ok(Ok(hits))
    }

    /// Other rules of one family, in the kernel and here.
    fn restores(&mut self, family: usize, text: &str) -> io::Result<()> {
        restore(FAMILIES[family], text)?;
        let rules = Arc::new(read(text, FAMILIES[family])?);
        self.hits[family] = Hits(Counters::of(&rules));
        self.rules[family] = rules;
        let again = read(text, FAMILIES[family])?;
        let next = revised(Some(&self.revisions[family]), again, &mut self.numbers[family])?;
        self.revisions[family] = Arc::new(next);
        Ok(())
    }

    fn program(&self) -> Program {
        Program::of_revisions(
            1,
            self.revisions.clone(),
            Arc::new(super::two_devices()),
            Arc::default(),
        )
    }

    /// Gives a packet to the kernel, and takes it through here.
    fn sends(
        &mut self,
        handler: &mut Handler,
        program: &Program,
        family: usize,
        mut bytes: Vec<u8>,
    ) -> io::Result<()> {
        self.tun.send(&bytes)?;
        self.sent += 1;
        let arrival = Arrival {
            time: Some(1_000_000_000 + self.sent * 1_000),
            origin: Origin::Wire,
            interface: Some("t0"),
            ..Arrival::new(self.sent, Link::Raw, bytes.len())
        };
        handler.handle(program, &mut bytes, &arrival, &mut self.hits[family]);
        Ok(())
    }
}

/// A datagram of a host that goes through. What an IPv6 address begins with is the IPv4 one of the same host: they are
/// two all the same.
fn packet(family: usize, host: u8, port: u16) -> Vec<u8> {
    let address = |start: [u8; 4]| {
        let mut address = [0; 16];
        address[..4].copy_from_slice(&start);
        address
    };
    let (source, destination) = ([10, 1, 0, host], [10, 2, 0, 9]);
    let addresses = match FAMILIES[family] {
        Family::Ipv6 => {
            Addresses::V6 { source: address(source), destination: address(destination) }
        }
        _ => Addresses::V4 { source, destination },
    };
    Craft { ethernet: None, ..Craft::new(addresses, Message::udp(4000, port)) }.frame()
}
