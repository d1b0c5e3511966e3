//! `tamis`: ours. Readers never wait, never retry and never write; a writer waits only for another writer
//! of the same address.
//!
//! One idea, here over addresses that are few enough to number ([`dense`]). A packet is permitted if not `PNG[S]` and S
//! in `R[D]`, read at *one* moment. A `false` of either alone settles it, at the moment it was read. Both being fine
//! needs the moment: a reader sees S free, then D accepting, then looks at S again, where a counter says how often S
//! was banned. Unchanged: S was free all the while, so also when D accepted. Changed: S was banned at some moment in
//! between, and at that moment the right answer was `false`. So there is always an answer, after three looks.
//! A change of PNG and R is one atomic action since both are published by one word of the address; see [`dense`]
//! for its linearization point.

pub mod dense;
mod header;
mod lanes;
mod sys;
mod words;

use crate::address::Address;
use crate::config::{Config, Packet, Permits};
use crate::engine::{Engine, TooLarge};
use dense::Dense;
pub(crate) use dense::wait;
use lanes::Lanes;
use words::Words;

/// Up to this number of addresses have a bit for each pair.
const PLAIN: usize = 1 << 14;
/// Up to this number, 256 sources share a cell of 64 bits.
const PACKED: usize = 1 << 15;
/// Up to this number, 512 sources share one: an eighth of the matrix.
const TIGHT: usize = 1 << 16;

/// The engine, in the layout that fits the number of its addresses.
#[derive(Debug)]
pub struct Tamis(Layout);

#[derive(Debug)]
enum Layout {
    Plain(Dense<Words>),
    Packed(Dense<Lanes<8>>),
    Tight(Dense<Lanes<9>>),
}

impl Tamis {
    /// For the addresses below `addresses`, accepting all sources, or none.
    ///
    /// # Errors
    /// There are more than 65,536.
    pub fn new(addresses: usize, default: bool) -> Result<Self, TooLarge> {
        match addresses {
            n if n <= PLAIN => Ok(Self(Layout::Plain(Dense::new(n, default)))),
            n if n <= PACKED => Ok(Self(Layout::Packed(Dense::new(n, default)))),
            n if n <= TIGHT => Ok(Self(Layout::Tight(Dense::new(n, default)))),
            n => Err(TooLarge { most: TIGHT, found: Some(n) }),
        }
    }

    /// The layout of the largest spaces, for few addresses: tests explore it.
    #[must_use]
    pub fn tight(addresses: usize, default: bool) -> Self {
        Self(Layout::Tight(Dense::new(addresses.min(TIGHT), default)))
    }
}

impl<A: Address> Engine<A> for Tamis {
    fn decide(&self, source: A, destination: A) -> bool {
        match &self.0 {
            Layout::Plain(dense) => dense.decide(source, destination),
            Layout::Packed(dense) => dense.decide(source, destination),
            Layout::Tight(dense) => dense.decide(source, destination),
        }
    }

    fn update(&self, config: &Config<A>) {
        match &self.0 {
            Layout::Plain(dense) => dense.update(config),
            Layout::Packed(dense) => dense.update(config),
            Layout::Tight(dense) => dense.update(config),
        }
    }

    fn bytes(&self) -> usize {
        match &self.0 {
            Layout::Plain(dense) => Engine::<A>::bytes(dense),
            Layout::Packed(dense) => Engine::<A>::bytes(dense),
            Layout::Tight(dense) => Engine::<A>::bytes(dense),
        }
    }

    fn burst(&self, packets: &[Packet<A>], permits: &mut Permits) {
        match &self.0 {
            Layout::Plain(dense) => dense.burst(packets, permits),
            Layout::Packed(dense) => dense.burst(packets, permits),
            Layout::Tight(dense) => dense.burst(packets, permits),
        }
    }
}
