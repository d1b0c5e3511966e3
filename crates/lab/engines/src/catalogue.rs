//! The engines by name.

use super::cached::{Cached, Grain, Invalidation};
use super::coarse::Coarse;
use super::fine::Fine;
use super::hopscotch::Hopscotch;
use super::matrix_unlocked::MatrixUnlocked;
use super::optimistic::Optimistic;
use super::ours::Ours;
use super::serial::Serial;
use super::skip_ranges::SkipRanges;
use super::split_ordered::SplitOrdered;
use super::striped::Striped;
use super::striped_map::Settings;
use super::{concurrent_map, matrix, striped_map};
use crate::{Address, Decide, Engine, TooLarge};

/// Addresses that tables have room for at the start, where nobody says how many there will be.
const ROOM: usize = 1 << 16;

/// Which engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(
    missing_docs,
    reason = "each is the module of its name, with R as `skip_ranges` where it says so"
)]
pub enum Kind {
    Serial,
    MatrixUnlocked,
    Coarse,
    CoarseSkipList,
    Striped,
    StripedSkipList,
    Fine,
    FineSkipList,
    Optimistic,
    OptimisticSkipList,
    ConcurrentMap,
    ConcurrentMapAsPublished,
    SplitOrdered,
    Hopscotch,
    StripedMap,
    StripedMapAsPublished,
    Matrix,
    MatrixAsPublished,
    CachedExact,
    CachedEpoch,
    Tamis,
}

/// What engines may be told.
#[derive(Debug, Clone, Copy)]
pub struct Choices {
    /// Addresses are below this; `None`: they may be any.
    pub addresses: Option<usize>,
    /// Whether an address accepts the sources that no config packet named.
    pub default_accept: bool,
    /// Locks of `striped`.
    pub stripes: usize,
    /// Of `striped_map`.
    pub striped_map: Settings,
    /// Of `cached_exact`.
    pub grain: Grain,
}

/// An engine, made.
pub enum Built<A: Address> {
    /// For one thread.
    Alone(Box<dyn Decide<A>>),
    /// For any number of them.
    Shared(Box<dyn Engine<A>>),
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 21] = [
        Self::Serial,
        Self::MatrixUnlocked,
        Self::Coarse,
        Self::CoarseSkipList,
        Self::Striped,
        Self::StripedSkipList,
        Self::Fine,
        Self::FineSkipList,
        Self::Optimistic,
        Self::OptimisticSkipList,
        Self::ConcurrentMap,
        Self::ConcurrentMapAsPublished,
        Self::SplitOrdered,
        Self::Hopscotch,
        Self::StripedMap,
        Self::StripedMapAsPublished,
        Self::Matrix,
        Self::MatrixAsPublished,
        Self::CachedExact,
        Self::CachedEpoch,
        Self::Tamis,
    ];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Serial => "serial",
            Self::MatrixUnlocked => "matrix_unlocked",
            Self::Coarse => "coarse",
            Self::CoarseSkipList => "coarse.skip_list",
            Self::Striped => "striped",
            Self::StripedSkipList => "striped.skip_list",
            Self::Fine => "fine",
            Self::FineSkipList => "fine.skip_list",
            Self::Optimistic => "optimistic",
            Self::OptimisticSkipList => "optimistic.skip_list",
            Self::ConcurrentMap => "concurrent_map",
            Self::ConcurrentMapAsPublished => "concurrent_map.as_published",
            Self::SplitOrdered => "split_ordered",
            Self::Hopscotch => "hopscotch",
            Self::StripedMap => "striped_map",
            Self::StripedMapAsPublished => "striped_map.as_published",
            Self::Matrix => "matrix",
            Self::MatrixAsPublished => "matrix.as_published",
            Self::CachedExact => "cached_exact",
            Self::CachedEpoch => "cached_epoch",
            Self::Tamis => "tamis",
        }
    }

    /// The engine of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether threads may share it.
    #[must_use]
    pub fn is_shared(self) -> bool {
        !matches!(self, Self::Serial | Self::MatrixUnlocked)
    }

    /// Whether a decision and a change are each one action, whatever other threads do.
    #[must_use]
    pub fn is_atomic(self) -> bool {
        use Kind::{ConcurrentMapAsPublished, MatrixAsPublished, StripedMapAsPublished};
        !matches!(self, ConcurrentMapAsPublished | StripedMapAsPublished | MatrixAsPublished)
    }

    /// Makes one.
    ///
    /// # Errors
    /// It lays out the address space, which does not fit.
    pub fn build<A: Address>(self, choices: &Choices) -> Result<Built<A>, TooLarge> {
        let Choices { addresses, default_accept: default, stripes, striped_map: settings, grain } =
            *choices;
        let shared = |engine: Box<dyn Engine<A>>| Ok(Built::Shared(engine));
        let room = addresses.unwrap_or(ROOM).min(ROOM);
        match self {
            Self::Serial => Ok(Built::Alone(Box::new(Serial::new(default)))),
            Self::MatrixUnlocked => {
                Ok(Built::Alone(Box::new(MatrixUnlocked::new(addresses, default)?)))
            }
            Self::Coarse => shared(Box::new(Coarse::<A>::new(default))),
            Self::CoarseSkipList => shared(Box::new(Coarse::<A, SkipRanges<A>>::new(default))),
            Self::Striped => shared(Box::new(Striped::<A>::new(default, stripes))),
            Self::StripedSkipList => {
                shared(Box::new(Striped::<A, SkipRanges<A>>::new(default, stripes)))
            }
            Self::Fine => shared(Box::new(Fine::<A>::new(default, room))),
            Self::FineSkipList => shared(Box::new(Fine::<A, SkipRanges<A>>::new(default, room))),
            Self::Optimistic => shared(Box::new(Optimistic::<A>::new(default, room))),
            Self::OptimisticSkipList => {
                shared(Box::new(Optimistic::<A, SkipRanges<A>>::new(default, room)))
            }
            Self::ConcurrentMap => shared(Box::new(concurrent_map::Atomic::new(default, room))),
            Self::ConcurrentMapAsPublished => {
                shared(Box::new(concurrent_map::AsPublished::new(default, room)))
            }
            Self::SplitOrdered => shared(Box::new(SplitOrdered::new(default, room))),
            Self::Hopscotch => shared(Box::new(Hopscotch::new(default, room))),
            Self::StripedMap => shared(Box::new(striped_map::Atomic::new(default, settings))),
            Self::StripedMapAsPublished => {
                shared(Box::new(striped_map::AsPublished::new(default, settings)))
            }
            Self::Matrix => shared(Box::new(matrix::Atomic::new(addresses, default)?)),
            Self::MatrixAsPublished => {
                shared(Box::new(matrix::AsPublished::new(addresses, default)?))
            }
            Self::CachedExact => {
                let engine = Ours::new(addresses, room, default);
                shared(Box::new(Cached::new(engine, Invalidation::Exact(grain))))
            }
            Self::CachedEpoch => {
                let engine = Ours::new(addresses, room, default);
                shared(Box::new(Cached::new(engine, Invalidation::Epoch)))
            }
            Self::Tamis => shared(Box::new(Ours::new(addresses, room, default))),
        }
    }
}

impl Default for Choices {
    fn default() -> Self {
        Self {
            addresses: None,
            default_accept: false,
            stripes: 10_000,
            striped_map: Settings::default(),
            grain: Grain::default(),
        }
    }
}

impl<A: Address> Built<A> {
    /// Applies a change, before any worker starts.
    pub fn update(&mut self, config: &crate::Config<A>) {
        match self {
            Self::Alone(engine) => engine.update(config),
            Self::Shared(engine) => engine.update(config),
        }
    }
}
