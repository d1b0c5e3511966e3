//! Draws rulesets and packets from a seed: the same seed gives the same bytes.
//!
//! A test is drawn as its text and as a [`Craft`], an edit that makes a packet pass it. So packets are
//! made to meet rules: draw a rule, apply the crafts of its tests and of the jumps that lead to it, then
//! break one thing. To add a match, write one function in [`mod@matches`] and name it in its table.

pub mod draft;
pub mod frames;
pub mod matches;
pub mod mutate;
pub mod packets;
pub mod ruleset;
pub mod sets;
pub mod targets;
mod v6;

use std::sync::Arc;

use fastrand::Rng;
use rules::model::Family;

use crate::scene::{Placement, Scene, Wire};
use draft::Draft;

/// An edit of a packet that makes it pass, or come close to passing, a test.
pub type Craft = Arc<dyn Fn(&mut Draft) + Send + Sync>;

/// A test or a target, as text and as an edit.
#[derive(Clone)]
pub struct Piece {
    /// As it stands in the rule.
    pub text: String,
    /// What makes a packet pass it.
    pub craft: Craft,
}

impl Piece {
    /// A piece with an edit.
    pub fn new(
        text: impl Into<String>,
        craft: impl Fn(&mut Draft) + Send + Sync + 'static,
    ) -> Self {
        Self { text: text.into(), craft: Arc::new(craft) }
    }

    /// A piece that asks nothing of a packet.
    pub fn plain(text: impl Into<String>) -> Self {
        Self::new(text, |_| {})
    }
}

impl std::fmt::Debug for Piece {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// A source of random choices for one scene.
#[derive(Debug)]
pub struct Draw {
    /// Where the rules stand.
    pub scene: Scene,
    /// Table of the rule being drawn.
    pub table: &'static str,
    /// Protocol of the rule being drawn, if it says one without `!`.
    pub protocol: Option<u8>,
    /// What all choices are drawn from.
    pub rng: Rng,
}

impl Draw {
    /// Choices for a scene from a seed.
    #[must_use]
    pub fn new(scene: Scene, seed: u64) -> Self {
        Self { scene, table: scene.tables()[0], protocol: None, rng: Rng::with_seed(seed) }
    }

    /// IPv6 rules?
    #[must_use]
    pub fn ipv6(&self) -> bool {
        self.scene.family == Family::Ipv6
    }

    /// Rules on FORWARD?
    #[must_use]
    pub fn forward(&self) -> bool {
        self.scene.placement == Placement::Forward
    }

    /// Ethernet frames?
    #[must_use]
    pub fn ethernet(&self) -> bool {
        self.scene.wire == Wire::Veth
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u32) -> bool {
        self.rng.u32(..n) == 0
    }

    /// `"! "` once in four times, else nothing.
    pub fn bang(&mut self) -> &'static str {
        if self.one_in(4) { "! " } else { "" }
    }

    /// One of a list.
    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.rng.usize(..list.len())]
    }

    /// A byte: often an edge.
    pub fn byte(&mut self) -> u8 {
        let edges = [0, 1, 2, 127, 128, 254, 255];
        if self.one_in(3) { self.pick(&edges) } else { self.rng.u8(..) }
    }

    /// A port: mostly of a small set, so that rules and packets meet.
    pub fn port(&mut self) -> u16 {
        let known = [0, 1, 22, 53, 80, 443, 1023, 1024, 8080, 32768, 65534, 65535];
        if self.one_in(5) { self.rng.u16(..) } else { self.pick(&known) }
    }

    /// An inclusive range between two of what `draw` draws.
    pub fn range<T: Ord>(&mut self, mut draw: impl FnMut(&mut Self) -> T) -> (T, T) {
        let (a, b) = (draw(self), draw(self));
        if a <= b { (a, b) } else { (b, a) }
    }

    /// 32 bits: often few of them set.
    pub fn word(&mut self) -> u32 {
        match self.rng.u8(..4) {
            0 => self.rng.u32(..8),
            1 => 1 << self.rng.u32(..32),
            2 => self.pick(&[0, 1, u32::MAX, 0x8000_0000, 0xff00]),
            _ => self.rng.u32(..),
        }
    }

    /// An address of the family, in the first bytes: mostly of a small set that routes.
    pub fn address(&mut self) -> [u8; 16] {
        let mut addr = [0; 16];
        if self.ipv6() {
            v6::address(self, &mut addr);
        } else {
            let last = self.pick(&[1, 2, 3, 127, 128, 254]);
            addr[..4].copy_from_slice(&match self.rng.u8(..8) {
                0..=2 => [198, 51, 100, last],
                3..=5 => [203, 0, 113, last],
                6 => [10, self.pick(&[0, 1, 128]), self.pick(&[0, 1]), last],
                _ => self.rng.u32(..).to_be_bytes(),
            });
            if !self.forward() && self.one_in(24) {
                let odd: [[u8; 4]; 6] = [
                    [0; 4],
                    [255; 4],
                    [127, 0, 0, 1],
                    [224, 0, 0, 1],
                    [10, 255, 0, 1],
                    [10, 255, 1, 255],
                ];
                addr[..4].copy_from_slice(&self.pick(&odd));
            }
        }
        addr
    }

    /// An address as text.
    #[must_use]
    pub fn text(&self, addr: &[u8; 16]) -> String {
        if self.ipv6() {
            std::net::Ipv6Addr::from(*addr).to_string()
        } else {
            std::net::Ipv4Addr::new(addr[0], addr[1], addr[2], addr[3]).to_string()
        }
    }
}
