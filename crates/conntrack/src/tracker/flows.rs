//! [`Tracker`]: the flows, and everything that belongs to them.

use std::sync::Arc;

use super::overlook::Overlooked;
use crate::chance::Chance;
use crate::config::Config;
use crate::expect::Expectations;
use crate::helpers::Helpers;
use crate::index::Handle;
use crate::key::HashKey;
use crate::listing::Listing;
use crate::masters::Masters;
use crate::sources::Sources;
use crate::table::Table;
use crate::told::Told;
use crate::untraceable::Untraceable;

/// The flows, and everything that belongs to them.
#[derive(Debug)]
pub struct Tracker {
    pub(crate) config: Config,
    /// The flows that there are when the first packet comes, where they were listed. Then none begins before.
    pub(super) start: Option<Arc<Listing>>,
    pub(crate) table: Table,
    pub(super) expectations: Expectations,
    pub(super) helpers: Helpers,
    /// A flow of the packet under way that is not, or no longer, in the table.
    pub(super) loose_end: Option<Handle>,
    /// The flow of the packet under way, if there may be no tuple left for it: then the kernel drops the
    /// packet where it leaves.
    pub(crate) crowded: Option<Handle>,
    /// Replies whose flow could not be found.
    pub(crate) untraceable: Untraceable,
    /// The packet under way, where it was not looked up.
    pub(super) overlooked: Option<Overlooked>,
    /// Flows with a helper among them.
    pub(crate) masters: Masters,
    pub(crate) sources: Sources,
    /// Some flow's source has a port other than its own, or an unknown port.
    pub(crate) moves_ports: bool,
    /// The tracker's flows and those of other shards may depend on each other.
    pub(crate) crosses: bool,
    /// When the capture began.
    pub(crate) began: Option<u64>,
    /// When its last packet came, in nanoseconds.
    pub(crate) latest: u64,
    /// What ports are drawn from, if they are drawn here.
    pub(crate) chance: Option<Chance>,
    /// The liveness of flows that other workers count; `None` until a worker asks.
    pub(crate) told: Option<Told>,
}

impl Tracker {
    /// Bytes of address space that a table for this number of connections reserves at once. Memory is taken as it fills.
    #[must_use]
    pub fn reserves(max: usize) -> usize {
        Table::reserves(max)
    }

    /// An empty table.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self::starting(config, None)
    }

    /// A table of the flows that were listed, which are put into it when the first packet comes.
    #[must_use]
    pub fn starting(config: Config, start: Option<Arc<Listing>>) -> Self {
        Self {
            table: Table::new(config.max, config.decides(), HashKey::new(config.seed)),
            expectations: Expectations::new(config.expect_max),
            helpers: Helpers::default(),
            loose_end: None,
            crowded: None,
            untraceable: Untraceable::default(),
            overlooked: None,
            masters: Masters::default(),
            sources: Sources::default(),
            moves_ports: false,
            crosses: false,
            began: None,
            latest: 0,
            chance: config.entropy.chance(),
            told: None,
            start,
            config,
        }
    }
}
