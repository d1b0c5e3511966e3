//! The liveness of this tracker's flows, published for other workers.

use std::sync::Arc;

use super::flows::Tracker;
use crate::index::Handle;
use crate::key::Tuple;
use crate::told::Life;

impl Tracker {
    /// From now on others may count its flows.
    pub fn tells(&mut self) {
        self.told.get_or_insert_default();
    }

    /// Returns the published liveness of the flow under way, by its original tuple; `None` where nobody counts flows.
    pub fn life(&mut self, tuple: &Tuple) -> Option<Arc<Life>> {
        self.told.as_mut().map(|told| told.life(tuple))
    }

    /// Whether it is a flow of this tracker whose life this is.
    #[must_use]
    pub fn has_life(&self, tuple: &Tuple, life: &Arc<Life>) -> bool {
        self.told.as_ref().is_some_and(|told| told.has(tuple, life))
    }

    /// Returns the original tuple of the flow under way, if any liveness is published.
    #[inline]
    #[must_use]
    pub fn telling(&self, flow: Option<Handle>) -> Option<(Handle, Tuple)> {
        self.told.as_ref().filter(|told| !told.is_empty())?;
        flow.and_then(|handle| Some((handle, self.flow(handle)?.original)))
    }

    /// Publishes what became of the flow once the packet has passed.
    pub fn tell(&self, (handle, original): (Handle, Tuple)) {
        let Some(told) = &self.told else { return };
        told.tell(&original, self.flow(handle).filter(|flow| flow.original == original));
    }
}
