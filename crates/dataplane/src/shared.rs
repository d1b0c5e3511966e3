//! [`Shared`]: state that the kernel keeps globally, shared by all workers of one publication.
//!
//! | what | shared how | a worker pays |
//! |---|---|---|
//! | `limit`, `nth`, `connlimit` | a state for each match of each rule | its lock, to ask the match |
//! | lists of `-m recent` | one for each name, of both families | its lock, to ask the match |
//! | sets ([`Sets`]) | one lock, whose readers have parts of their own | one of both for a search or change |
//! | the access list ([`Live`]) | a value that is swapped | a look whether there is a newer one |
//!
//! Connections, fragments and expected answers stay each worker's own, so packets of one connection go to one worker;
//! `connlimit` counts the connections of all, and each worker draws its own random numbers. Packets that workers
//! evaluate at one moment reach a match or target one after the other, in some order; their walks as a whole do not.
//!
//! Contract: a worker holds one of these locks at a time and waits for nothing while it does. Order, where a state is
//! made or given up: all states of a family, then one state. States live as long as their rules, not as workers do.

use std::array;
use std::sync::Arc;

use access::list::{List, Live, LiveReader, Schedule};
use rules::eval::{Memories, SharedLists, SharedMemories};
use rules::ipset::Sets;
use rules::model::Family;

use crate::config::Start;

/// The state that workers share. Clones share it, too.
#[derive(Debug, Clone)]
pub struct Shared {
    bans: Arc<Live>,
    sets: Option<Sets>,
    memories: [Arc<SharedMemories>; Family::ALL.len()],
}

impl Shared {
    /// State with these sets and bans, which no match has added to.
    #[must_use]
    pub fn new(start: &Start) -> Self {
        let lists = Arc::<SharedLists>::default();
        let memories = || Arc::new(SharedMemories::among(Arc::clone(&lists)));
        Self {
            bans: Arc::new(Live::new(start.bans.clone().unwrap_or_default())),
            sets: start.sets.clone().map(Sets::shared),
            memories: array::from_fn(|_| memories()),
        }
    }

    /// State with other sets and another access list; what matches remember stays.
    #[must_use]
    pub(crate) fn renewed(&self, start: &Start) -> Self {
        Self { memories: self.memories.clone(), ..Self::new(start) }
    }

    /// Whether both share one state.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.bans, &other.bans)
    }

    /// The access list, to be changed while packets pass.
    #[must_use]
    pub fn bans(&self) -> &Arc<Live> {
        &self.bans
    }

    /// The host's sets, as they are at each moment.
    #[must_use]
    pub fn sets(&self) -> Option<&Sets> {
        self.sets.as_ref()
    }

    /// The access list as one worker reads it.
    pub(crate) fn reader(&self) -> Bans {
        Bans::Live(self.bans.reader())
    }

    /// The memories of a family's matches, for one worker.
    pub(crate) fn memories(&self, family: Family) -> Memories {
        Memories::sharing(Arc::clone(&self.memories[family as usize]), family)
    }
}

/// The access list as a worker reads it.
#[derive(Debug)]
pub(crate) enum Bans {
    /// The worker's own list.
    Own(Schedule),
    /// The list that all workers share.
    Live(LiveReader),
}

impl Bans {
    /// The list for a packet of this time; `None` where the list of all workers permits everything, as
    /// if none was given.
    #[inline]
    pub(crate) fn at(&mut self, time: Option<u64>) -> Option<&List> {
        match self {
            Self::Own(schedule) => Some(schedule.at(time)),
            Self::Live(reader) => Some(reader.at(time)).filter(|list| !list.permits_all()),
        }
    }
}
