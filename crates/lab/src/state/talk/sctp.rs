//! An SCTP association: mostly by the book, now and then not.

use fastrand::Rng;

use crate::state::wire::{Chunk, SctpHeader, turned};

const DATA: u8 = 0;
const INIT: u8 = 1;
const INIT_ACK: u8 = 2;
const SACK: u8 = 3;
const HEARTBEAT: u8 = 4;
const SHUTDOWN: u8 = 7;
const SHUTDOWN_ACK: u8 = 8;
const COOKIE_ECHO: u8 = 10;
const COOKIE_ACK: u8 = 11;
const SHUTDOWN_COMPLETE: u8 = 14;

/// Both ends of an association.
#[derive(Debug)]
pub(super) struct Sctp {
    /// The tags that packets to the client, and to the server, carry.
    tags: [u32; 2],
    step: u8,
}

impl Sctp {
    pub(super) fn new(rng: &mut Rng) -> Self {
        Self { tags: [rng.u32(1..), rng.u32(1..)], step: if rng.u8(..8) == 0 { 4 } else { 0 } }
    }

    /// The same ports again, with other tags.
    pub(super) fn again(&mut self, rng: &mut Rng) {
        *self = Self::new(rng);
    }

    /// The next packet and who sends it.
    pub(super) fn step(
        &mut self,
        rng: &mut Rng,
        ports: (u16, u16),
    ) -> (usize, SctpHeader, Vec<Chunk>) {
        let any = rng.usize(..2);
        let (mut side, mut kind) = match self.step {
            0 => (0, INIT),
            1 => (1, INIT_ACK),
            2 => (0, COOKIE_ECHO),
            3 => (1, COOKIE_ACK),
            4..=9 => (any, [DATA, DATA, SACK, HEARTBEAT, HEARTBEAT + 1][rng.usize(..5)]),
            10 => (0, SHUTDOWN),
            11 => (1, SHUTDOWN_ACK),
            _ => (0, SHUTDOWN_COMPLETE),
        };
        self.step = self.step.saturating_add(1);
        if (5..9).contains(&self.step) && rng.u8(..8) == 0 {
            self.step = 10;
        }
        let odd = rng.u8(..24);
        match odd {
            0 => kind = rng.u8(..16),
            1 => side = 1 - side,
            _ => {}
        }
        let mut tag = if kind == INIT { 0 } else { self.tags[1 - side] };
        if odd == 2 {
            tag = [0, rng.u32(..), self.tags[side]][rng.usize(..3)];
        }
        let mut chunks = vec![self.chunk(rng, kind, side)];
        if odd == 3 {
            let more = rng.u8(..16);
            chunks.push(self.chunk(rng, more, side));
        }
        (side, SctpHeader { ports: turned(ports, side), tag }, chunks)
    }

    fn chunk(&self, rng: &mut Rng, kind: u8, side: usize) -> Chunk {
        let mut body = vec![0; 12];
        if matches!(kind, INIT | INIT_ACK) {
            body = vec![0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1];
            body[..4].copy_from_slice(&self.tags[side].to_be_bytes());
        }
        (kind, u8::from(rng.u8(..24) == 0), body)
    }
}
