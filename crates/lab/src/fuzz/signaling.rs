//! Messages of nodes and of a directory, over time: genuine ones that are lost, repeated, reordered and changed, and any bytes
//! from a node, a device with a one-time key, or a directory that lies.
//!
//! No node ever has a peer under a key that is not that node's. And whatever came before, nodes that said nothing but the
//! protocol reach whom the policy lets them once messages arrive again.

use std::collections::BTreeSet;

use overlay::limits::SECOND;
use overlay::{HEADER, Name};
use tunnel::PublicKey;

#[path = "../../../overlay/tests/overlay/world.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "tests use all of it, and fail by it")]
mod world;

use world::{Flying, World, name, policy, secret};

const NODES: [&str; 4] = ["a", "b", "c", "d"];
const PAIRS: [[&str; 2]; 3] = [["a", "b"], ["b", "c"], ["c", "d"]];
/// Longest bytes of one message that is made up.
const MADE_UP: usize = 255;

/// What is left of an input.
struct Script<'d>(&'d [u8]);

impl<'d> Script<'d> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self, below: usize) -> Option<usize> {
        self.byte().map(|byte| usize::from(byte) % below.max(1))
    }

    /// A message: a byte says its length, the next whether it has a proper head of a type and a transaction.
    fn message(&mut self) -> Option<Vec<u8>> {
        let length = usize::from(self.byte()?).min(MADE_UP);
        let kind = self.byte()?;
        let (body, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        if kind & 0x80 != 0 {
            return Some(body.to_vec());
        }
        let mut message = vec![1, kind];
        message.extend((body.len() as u16).to_le_bytes());
        message.resize(HEADER, kind);
        message.extend(body);
        Some(message)
    }
}

/// One input.
pub(super) fn signaling(data: &[u8]) {
    let mut script = Script(data);
    let mut world = World::new(policy(&PAIRS), 1);
    NODES.iter().zip(1..).for_each(|(name, number)| world.enrolled(name, number));
    let guest = world.authority.invite(name("guest"), world.time()).map(|secret| secret.public());
    let Ok(guest) = guest else { return };
    world.carry_out();
    let mut liars = BTreeSet::new();
    while step(&mut script, &mut world, &mut liars, guest).is_some() {
        has_no_wrong_key(&world);
    }
    world.settle(25);
    has_no_wrong_key(&world);
    for [one, other] in PAIRS.map(|pair| pair.map(name)) {
        if liars.contains(&one) || liars.contains(&other) {
            continue;
        }
        world.answers.clear();
        world.resolve(&one, &other);
        world.settle(2);
        let answer = world.answers.iter().find(|(from, to, _)| *from == one && *to == other);
        let found = answer.unwrap_or_else(|| panic!("{one} has no answer for {other}")).2.clone();
        assert_eq!(found.map(|claims| claims.key), Ok(world.nodes[&other].0), "{one} to {other}");
    }
}

/// Does what the next bytes say.
fn step(
    script: &mut Script<'_>,
    world: &mut World,
    liars: &mut BTreeSet<Name>,
    guest: PublicKey,
) -> Option<()> {
    let kind = script.number(13)?;
    let node = |script: &mut Script<'_>| script.number(NODES.len()).map(|at| name(NODES[at]));
    match kind {
        0..=5 if !world.flying.is_empty() => {
            let at = script.number(world.flying.len())?;
            in_flight(script, world, kind, at)?;
        }
        6 => world.wait((u64::from(script.byte()?) + 1) * SECOND / 16),
        7 => {
            let (from, to) = (node(script)?, script.number(NODES.len() + 1)?);
            world.resolve(&from, &name(NODES.get(to).unwrap_or(&"nobody")));
        }
        8 => match script.number(NODES.len() + 1)? {
            at if at < NODES.len() => world.restart_node(&name(NODES[at])),
            _ => world.restart_directory(),
        },
        9 => {
            let liar = node(script)?;
            let message = script.message()?;
            let key = world.nodes[&liar].0;
            liars.insert(liar);
            world.deliver(Flying::ToAuthority(key, message.clone()));
            world.deliver(Flying::ToDirectory(key, message));
        }
        10 => {
            let from = if script.byte()? & 1 == 0 { guest } else { secret(77).public() };
            let message = script.message()?;
            world.deliver(Flying::ToAuthority(from, message));
        }
        11 => {
            let (to, message) = (node(script)?, script.message()?);
            let key = world.nodes[&to].0;
            world.deliver(Flying::ToPeer(key, message));
        }
        12 => {
            // Ports that routers give, one after the other or as they please.
            let (from, port) = (node(script)?, 52_127 - u16::from(script.byte()? % 8));
            let at = ([192, 0, 2, script.byte()? % 8], 51_896 + u16::from(script.byte()? % 8));
            let key = world.nodes[&from].0;
            world.directory.probed(&key, port, at.into(), world.time());
            world.carry_out();
        }
        _ => {}
    }
    Some(())
}

/// What becomes of a message on its way.
fn in_flight(script: &mut Script<'_>, world: &mut World, kind: usize, at: usize) -> Option<()> {
    match kind {
        0..=2 => {
            let message = world.flying.remove(at);
            world.deliver(message);
        }
        3 => drop(world.flying.remove(at)),
        4 => {
            let message = world.flying[at].clone();
            world.deliver(message);
        }
        _ => {
            // A directory that lies: what nodes say, nobody else can change.
            let Flying::ToPeer(to, mut bytes) = world.flying[at].clone() else { return Some(()) };
            let place = script.byte()? as usize * bytes.len() / 256;
            bytes[place] ^= script.byte()?;
            world.deliver(Flying::ToPeer(to, bytes));
        }
    }
    Some(())
}

fn has_no_wrong_key(world: &World) {
    for (node, peers) in &world.peers {
        for (peer, claims) in peers {
            assert_eq!(claims.key, world.nodes[peer].0, "{node} has another key of {peer}");
        }
    }
}
