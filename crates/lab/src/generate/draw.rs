//! [`Draw`]: random choices for one scene, and the [`Piece`]s that are made of them.

use std::sync::Arc;

use fastrand::Rng;
use rules::model::Family;

use super::draft::Draft;
use crate::scene::{Placement, Scene, Wire};

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
    /// Packets of both families are drawn; the scene has that of the one being drawn.
    pub mixed: bool,
    /// Packets drawn before, where some are to come again and to be answered.
    pub earlier: Option<Vec<Draft>>,
    /// Answers to what left, some of which are drawn.
    pub answers: Vec<Draft>,
    /// What all choices are drawn from.
    pub rng: Rng,
}

impl Draw {
    /// Choices for a scene from a seed.
    #[must_use]
    pub fn new(scene: Scene, seed: u64) -> Self {
        let rng = Rng::with_seed(seed);
        Self {
            scene,
            table: scene.tables()[0],
            protocol: None,
            mixed: false,
            earlier: None,
            answers: Vec::new(),
            rng,
        }
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
        self.scene.wire != Wire::Tun
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
            fill_v6(self, &mut addr);
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

/// Fills in an IPv6 address: mostly of a small set that routes.
fn fill_v6(draw: &mut Draw, addr: &mut [u8; 16]) {
    addr[..4].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
    match draw.rng.u8(..8) {
        0..=5 => {
            addr[7] = draw.pick(&[0, 1, 2]);
            addr[15] = draw.pick(&[1, 2, 3, 0xff]);
        }
        6 => {
            // Modified EUI-64 of the injector's Ethernet address.
            addr[8..].copy_from_slice(&[0, 0, 0, 0xff, 0xfe, 0, 0, 1]);
        }
        _ => {
            for byte in &mut addr[4..] {
                *byte = draw.rng.u8(..);
            }
        }
    }
    if !draw.forward() && draw.one_in(24) {
        *addr = draw.pick(&[
            [0; 16],
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1],
            [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0, 0, 1],
            [0xff, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            [0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
            [0xfd, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        ]);
    }
}
