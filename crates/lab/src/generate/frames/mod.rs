//! Draws bridge rules and Ethernet frames, and ARP rules and ARP packets, from small pools so that they meet.

mod bytes;
mod held;
mod rules;

use fastrand::Rng;

/// Rules under construction: a source of choices.
#[derive(Debug)]
pub struct Frames {
    /// What all choices are drawn from.
    pub rng: Rng,
}

const MACS: [[u8; 6]; 5] = [
    [2, 0, 0, 0, 0, 1],
    [2, 0, 0, 0, 0, 2],
    [2, 0, 0, 1, 0, 3],
    [2, 0, 0, 1, 0, 4],
    [2, 1, 0, 1, 0, 5],
];
const GROUPS: [[u8; 6]; 3] = [[0xff; 6], [1, 0, 0x5e, 0, 0, 1], [1, 0x80, 0xc2, 0, 0, 0x20]];
const V4: [[u8; 4]; 4] = [[10, 0, 0, 1], [10, 0, 0, 2], [10, 0, 1, 1], [192, 0, 2, 7]];
const PORTS: [u16; 6] = [0, 22, 53, 80, 443, 65535];

fn mac_text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

fn v4_text([a, b, c, d]: [u8; 4]) -> String {
    format!("{a}.{b}.{c}.{d}")
}

impl Frames {
    /// Choices from a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { rng: Rng::with_seed(seed) }
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.rng.usize(..list.len())]
    }

    fn one_in(&mut self, n: u32) -> bool {
        self.rng.u32(..n) == 0
    }

    fn bang(&mut self) -> &'static str {
        if self.one_in(4) { "! " } else { "" }
    }

    fn mac(&mut self) -> [u8; 6] {
        if self.one_in(5) { self.pick(&GROUPS) } else { self.pick(&MACS) }
    }

    fn v6(&mut self) -> [u8; 16] {
        let last = self.pick(&[1, 2, 0x11]);
        [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, self.pick(&[0, 1]), last]
    }

    fn masked_mac(&mut self) -> String {
        let mac = mac_text(self.mac());
        match self.rng.u8(..4) {
            0 => format!("{mac}/ff:ff:ff:ff:00:00"),
            1 => format!("{mac}/01:00:00:00:00:00"),
            _ => mac,
        }
    }

    fn net(&mut self) -> String {
        let addr = v4_text(self.pick(&V4));
        match self.rng.u8(..4) {
            0 => format!("{addr}/24"),
            1 => format!("{addr}/255.0.0.255"),
            _ => addr,
        }
    }

    fn range(&mut self, pool: &[u16]) -> String {
        let (a, b) = (self.pick(pool), self.pick(pool));
        if self.one_in(2) { a.to_string() } else { format!("{}:{}", a.min(b), a.max(b)) }
    }
}
