//! Draws packets that meet a ruleset: half of them crafted for one of its rules, then one thing broken.

use packet::{Checksums, Packet};

use super::draft::Draft;
use super::ruleset::RulesetText;
use super::{Draw, matches, mutate, v6};
use crate::scene::{Placement, Scene, Wire, forwards, serial};
use rules::model::Family;

/// What packets are made for.
pub trait Aim {
    /// Makes a packet for some part of it.
    fn aim(&self, draw: &mut Draw, draft: &mut Draft);
}

/// Draws `count` frames, told apart by their serial numbers, which start at `first`. On FORWARD all of
/// them route forwards.
pub fn draw(draw: &mut Draw, rules: &impl Aim, first: u16, count: u16) -> Vec<Vec<u8>> {
    let mut frames = Vec::with_capacity(usize::from(count));
    let mut number = first;
    while frames.len() < usize::from(count) {
        let mut frame = one(draw, rules, number);
        let goes = draw.scene.placement == Placement::Raw
            || carries(draw.scene, &frame, number) && is_forwarded(draw.scene, &mut frame);
        if goes {
            frames.push(frame);
            number = number.wrapping_add(1);
        }
    }
    frames
}

/// Whether a frame has the number where the far end will look for it.
fn carries(scene: Scene, frame: &[u8], number: u16) -> bool {
    let network = if scene.wire == Wire::Tun { 0 } else { 14 };
    frame.get(network..).and_then(serial) == Some(number)
}

/// Whether the stack takes a frame in and routes it forwards.
#[must_use]
pub fn is_forwarded(scene: Scene, frame: &mut [u8]) -> bool {
    let len = frame.len();
    let packet = Packet::parse(frame, len, scene.link(), Checksums::Verify);
    scene.input(&packet).is_some() && scene.enters(packet.headers()) && forwards(&packet)
}

fn one(draw: &mut Draw, rules: &impl Aim, number: u16) -> Vec<u8> {
    let again = draw.earlier.is_some() && draw.one_in(3);
    let answers = !draw.answers.is_empty() && draw.rng.u8(..5) < 2;
    let answer = answers.then(|| draw.rng.usize(..draw.answers.len()));
    if let Some(answer) = answer {
        let answer = draw.answers[answer].clone();
        return finished(draw, answer, number);
    }
    let mut draft = match again.then(|| earlier(draw)).flatten() {
        Some(draft) => draft,
        None => aimed(draw, rules),
    };
    draw.scene.family = draft.scene.family;
    if draw.one_in(2) {
        mutate::draft(draw, &mut draft);
    }
    finished(draw, draft, number)
}

fn finished(draw: &mut Draw, draft: Draft, number: u16) -> Vec<u8> {
    draw.scene.family = draft.scene.family;
    if let Some(earlier) = &mut draw.earlier {
        earlier.push(draft.clone());
    }
    let mut frame = draft.bytes();
    mutate::frame(draw, &mut frame, number);
    frame
}

fn aimed(draw: &mut Draw, rules: &impl Aim) -> Draft {
    if draw.mixed {
        draw.scene.family = draw.pick(&[Family::Ipv4, Family::Ipv6]);
    }
    let mut draft = base(draw);
    if !draw.one_in(4) {
        rules.aim(draw, &mut draft);
    }
    draft
}

/// An earlier packet once more, or what its receiver would send.
fn earlier(draw: &mut Draw) -> Option<Draft> {
    let earlier = draw.earlier.as_deref()?;
    let recent = &earlier[earlier.len().saturating_sub(64)..];
    let mut draft = match recent.len() {
        0 => return None,
        len => recent[draw.rng.usize(..len)].clone(),
    };
    if draw.one_in(2) {
        std::mem::swap(&mut draft.source, &mut draft.destination);
        draft.ports = (draft.ports.1, draft.ports.0);
        draft.flags = draw.pick(&[0x12, 0x10, 0x18, 0x11, 0x04]);
        draft.icmp.0 = match draft.icmp.0 {
            8 => 0,
            128 => 129,
            other => other,
        };
    }
    Some(draft)
}

/// A plain packet between known addresses.
fn base(draw: &mut Draw) -> Draft {
    let mut draft = Draft::new(draw.scene, draw.address(), draw.address());
    draft.protocol = draw.pick(&matches::protocols(draw.scene.family));
    draft.ports = (draw.port(), draw.port());
    draft.payload = vec![0x61; draw.pick(&[0, 0, 1, 8, 20, 33])];
    draft.flags = draw.pick(&[0x02, 0x10, 0x12, 0x18, 0x04, 0x11, 0x00, 0x3f, 0xc2]);
    if draft.ipv6() && draw.one_in(4) {
        for _ in 0..1 + draw.rng.u8(..3) {
            let kind = draw.pick(&[60, 43, 44, 51, 60, 0]);
            let body = v6::extension(draw, kind);
            draft.extensions.push((kind, body));
        }
        if draw.one_in(2) {
            draft.extensions.sort_by_key(|(kind, _)| *kind != 0);
        }
    }
    if !draft.ipv6() && draw.one_in(12) && !draw.forward() {
        draft.options = ip_options(draw);
    }
    draft
}

/// IPv4 options: known ones with right and wrong lengths.
fn ip_options(draw: &mut Draw) -> Vec<u8> {
    let mut options = Vec::new();
    while options.len() < 24 && !draw.one_in(3) {
        let kind = draw.pick(&[0, 1, 1, 7, 68, 130, 131, 137, 148, 200]);
        options.push(kind);
        if kind > 1 {
            let len = draw.pick(&[2_u8, 3, 4, 8, 11]);
            options.push(if draw.one_in(6) { draw.byte() } else { len });
            options.extend(std::iter::repeat_n(4, usize::from(len - 2)));
        }
    }
    options
}

impl Aim for RulesetText {
    /// Makes the packet for one rule, by way of the jumps to its chain.
    fn aim(&self, draw: &mut Draw, draft: &mut Draft) {
        let table = draw.rng.usize(..self.tables.len());
        let chains = &self.tables[table].chains;
        let chain = draw.rng.usize(..chains.len());
        if chains[chain].rules.is_empty() {
            return;
        }
        let rule = draw.rng.usize(..chains[chain].rules.len());
        for craft in self.way_to(table, chain, rule) {
            craft(draft);
        }
    }
}
