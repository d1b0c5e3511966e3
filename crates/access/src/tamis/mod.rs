//! `tamis`: ours. Readers never wait, never retry and never write; a writer waits only for another writer
//! of the same address.
//!
//! One idea in two layouts, [`dense`] where the addresses are few enough to number and [`sparse`] where they
//! are not. A packet is permitted if not `PNG[S]` and S in `R[D]`, read at *one* moment. A `false` of either
//! alone settles it, at the moment it was read. Both being fine needs the moment: a reader sees S free, then
//! D accepting, then looks at S again, where a counter says how often S was banned. Unchanged: S was free
//! all the while, so also when D accepted. Changed: S was banned at some moment in between, and at that
//! moment the right answer was `false`. So there is always an answer, after three looks.
//!
//! A change of PNG and R is one atomic action since both hang on one word (one pointer) of the address; see
//! each layout for its linearization point.

pub mod dense;
mod header;
mod lanes;
pub mod sparse;
mod sys;
mod words;

use crate::address::Address;
use crate::config::{Config, Packet, Permits};
use crate::engine::Engine;
use dense::Dense;
use lanes::Lanes;
use sparse::Sparse;
use words::Words;

/// Up to so many addresses have a bit for each pair.
const PLAIN: usize = 1 << 14;
/// Up to so many, 256 sources share a cell of 64 bits.
const PACKED: usize = 1 << 15;
/// Up to so many, 512 sources share one: an eighth of the matrix.
const TIGHT: usize = 1 << 16;

/// See the module.
#[derive(Debug)]
pub struct Tamis<A: Address>(Layout<A>);

#[derive(Debug)]
enum Layout<A: Address> {
    Plain(Dense<Words>),
    Packed(Dense<Lanes<8>>),
    Tight(Dense<Lanes<9>>),
    Sparse(Sparse<A>),
}

impl<A: Address> Tamis<A> {
    /// For the addresses below `addresses`, or any; accepting all sources, or none.
    #[must_use]
    pub fn new(addresses: Option<usize>, default: bool) -> Self {
        Self(match addresses {
            Some(n) if n <= PLAIN => Layout::Plain(Dense::new(n, default)),
            Some(n) if n <= PACKED => Layout::Packed(Dense::new(n, default)),
            Some(n) if n <= TIGHT => Layout::Tight(Dense::new(n, default)),
            _ => Layout::Sparse(Sparse::new(default)),
        })
    }

    /// The layout of the largest spaces, for few addresses: tests explore it.
    #[must_use]
    pub fn tight(addresses: usize, default: bool) -> Self {
        Self(Layout::Tight(Dense::new(addresses.min(TIGHT), default)))
    }
}

impl<A: Address> Engine<A> for Tamis<A> {
    fn decide(&self, source: A, destination: A) -> bool {
        match &self.0 {
            Layout::Plain(dense) => dense.decide(source, destination),
            Layout::Packed(dense) => dense.decide(source, destination),
            Layout::Tight(dense) => dense.decide(source, destination),
            Layout::Sparse(sparse) => sparse.decide(source, destination),
        }
    }

    fn update(&self, config: &Config<A>) {
        match &self.0 {
            Layout::Plain(dense) => dense.update(config),
            Layout::Packed(dense) => dense.update(config),
            Layout::Tight(dense) => dense.update(config),
            Layout::Sparse(sparse) => sparse.update(config),
        }
    }

    fn bytes(&self) -> usize {
        match &self.0 {
            Layout::Plain(dense) => Engine::<A>::bytes(dense),
            Layout::Packed(dense) => Engine::<A>::bytes(dense),
            Layout::Tight(dense) => Engine::<A>::bytes(dense),
            Layout::Sparse(sparse) => sparse.bytes(),
        }
    }

    fn burst(&self, packets: &[Packet<A>], permits: &mut Permits) {
        match &self.0 {
            Layout::Plain(dense) => dense.burst(packets, permits),
            Layout::Packed(dense) => dense.burst(packets, permits),
            Layout::Tight(dense) => dense.burst(packets, permits),
            Layout::Sparse(sparse) => sparse.burst(packets, permits),
        }
    }
}
