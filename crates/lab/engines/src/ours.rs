//! `tamis` for any addresses: tamis' own engine where they are few enough to number, [`super::sparse`] where they
//! are not.
//!
//! Concurrency and linearization: those of the one it is.

use crate::tamis::Tamis;
use crate::{Address, Config, Engine, Packet, Permits};

use super::sparse::Sparse;

/// Dense or sparse, as the number of addresses allows.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "made once; a box would add a load to every decision"
)]
pub enum Ours<A: Address> {
    /// Addresses below a bound.
    Numbered(Tamis),
    /// Any addresses.
    Sparse(Sparse<A>),
}

impl<A: Address> Ours<A> {
    /// For the addresses below `addresses`, or any, with room for `room` of them at first; accepting all sources, or none.
    #[must_use]
    pub fn new(addresses: Option<usize>, room: usize, default: bool) -> Self {
        match addresses.map(|addresses| Tamis::new(addresses, default)) {
            Some(Ok(numbered)) => Self::Numbered(numbered),
            Some(Err(_)) | None => Self::Sparse(Sparse::new(default, room)),
        }
    }
}

impl<A: Address> Engine<A> for Ours<A> {
    fn decide(&self, source: A, destination: A) -> bool {
        match self {
            Self::Numbered(numbered) => numbered.decide(source, destination),
            Self::Sparse(sparse) => sparse.decide(source, destination),
        }
    }

    fn update(&self, config: &Config<A>) {
        match self {
            Self::Numbered(numbered) => numbered.update(config),
            Self::Sparse(sparse) => sparse.update(config),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Numbered(numbered) => Engine::<A>::bytes(numbered),
            Self::Sparse(sparse) => sparse.bytes(),
        }
    }

    fn burst(&self, packets: &[Packet<A>], permits: &mut Permits) {
        match self {
            Self::Numbered(numbered) => numbered.burst(packets, permits),
            Self::Sparse(sparse) => sparse.burst(packets, permits),
        }
    }
}
