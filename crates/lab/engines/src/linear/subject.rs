//! Whose histories are recorded, and how many: every engine that threads share, each layout of ours, and R of
//! the first study alone. Contract: a few
//! addresses, random programs.

use crate::tamis::Tamis;
use crate::{Address, Engine};

use super::record::{Program, campaign};
use super::{ADDRESSES, Operation};
use crate::cached::Grain;
use crate::catalogue::{Built, Choices, Kind};
use crate::skip_ranges::{Alone, Form};
use crate::sparse::Sparse;
use crate::striped_map::Settings;

/// Whose histories: an engine's, those of a layout of `tamis` that few addresses do not lead to, or R's alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// One of the catalogue.
    Engine(Kind),
    /// `tamis` as with 2^16 addresses.
    Lanes,
    /// `tamis` as with addresses without a bound.
    Sparse,
    /// R of the first study alone, without a lock.
    Ranges(Form),
}

impl Subject {
    /// Those of an engine that threads share; none of one that they do not.
    #[must_use]
    pub fn of(kind: Kind) -> Vec<Self> {
        match kind {
            _ if !kind.is_shared() => Vec::new(),
            Kind::FineSkipList => {
                let forms = [Form::AsPublished, Form::Disjoint].map(Self::Ranges);
                [Self::Engine(kind)].into_iter().chain(forms).collect()
            }
            Kind::Tamis => vec![Self::Engine(kind), Self::Lanes, Self::Sparse],
            _ => vec![Self::Engine(kind)],
        }
    }

    /// As the report names it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Engine(kind) => kind.name(),
            Self::Lanes => "tamis (lanes)",
            Self::Sparse => "tamis (sparse)",
            Self::Ranges(Form::AsPublished) => "skip_list (published, alone)",
            Self::Ranges(Form::Disjoint) => "skip_list (disjoint, alone)",
        }
    }

    /// Whether every history has to have an order.
    #[must_use]
    pub fn is_atomic(self) -> bool {
        match self {
            Self::Engine(kind) => kind.is_atomic(),
            Self::Lanes | Self::Sparse => true,
            Self::Ranges(_) => false,
        }
    }

    /// One of it, small enough that what seldom happens happens; `None` if it belongs to one thread.
    fn make<A: Address>(self, default_accept: bool) -> Option<Box<dyn Engine<A>>> {
        let addresses = ADDRESSES as usize;
        let striped_map = Settings { initial: 2, longest: 1, full_percent: 10 };
        let choices = Choices {
            addresses: Some(addresses),
            default_accept,
            stripes: 2,
            striped_map,
            grain: Grain::default(),
        };
        match self {
            Self::Lanes => Some(Box::new(Tamis::tight(addresses, default_accept))),
            Self::Sparse => Some(Box::new(Sparse::new(default_accept, 1))),
            Self::Ranges(form) => Some(Box::new(Alone::new(form, default_accept, addresses))),
            Self::Engine(kind) => match kind.build(&choices) {
                Ok(Built::Shared(engine)) => Some(engine),
                Ok(Built::Alone(_)) | Err(_) => None,
            },
        }
    }
}

/// Histories recorded at a time: engines need not all be there.
const AT_A_TIME: usize = 500;

/// Records this number of histories. In how many operations overlapped.
///
/// # Errors
/// The first history that has no order.
pub fn check(subject: Subject, threads: usize, histories: usize) -> Result<usize, Vec<Operation>> {
    let default_accept = threads == 3;
    let make = || match subject.make(default_accept) {
        Some(engine) => engine,
        None => unreachable!("only engines that threads share are subjects"),
    };
    crate::jitter(true);
    let bans = !matches!(subject, Subject::Ranges(_));
    let program = Program { threads, operations: 24 / threads, default_accept, bans };
    let parts = (0..histories).step_by(AT_A_TIME);
    let part =
        |from: usize| campaign(&program, AT_A_TIME.min(histories - from), from as u64, &make);
    let found = parts.map(part).sum();
    crate::jitter(false);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shared_engine_is_checked_and_every_layout_of_ours() {
        let subjects: Vec<_> = Kind::ALL.into_iter().flat_map(Subject::of).collect();
        let engine = |kind: &Kind| subjects.contains(&Subject::Engine(*kind));
        assert!(Kind::ALL.iter().all(|kind| engine(kind) == kind.is_shared()));
        assert!(subjects.iter().all(|subject| subject.make::<u32>(true).is_some()));
        for subject in [Subject::Lanes, Subject::Sparse] {
            assert!(subjects.contains(&subject));
            assert!(check(subject, 3, 500).is_ok(), "{}", subject.name());
        }
    }
}
