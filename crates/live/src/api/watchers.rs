//! [`Watchers`]: the part of a run that shows frames to clients that watch them.
//!
//! Contract: any thread may use it; a watcher that does not read loses frames, and delays nobody.

use std::sync::Arc;
use std::time::Duration;

use dataplane::Wires;

use crate::answers::{Drops, Frame};
use crate::devices::owner::Devices;
use crate::forward::taps::{FilterError, FrameEvent, Listening, Taps};

/// The frames that workers write down for watchers, and the wires that replays of such frames need to know.
#[derive(Debug)]
pub(crate) struct Watchers {
    taps: Arc<Taps>,
    wires: Wires,
}

impl Watchers {
    pub(crate) fn new(taps: Arc<Taps>, wires: Wires) -> Self {
        Self { taps, wires }
    }

    /// Subscribes to the frames that match a filter.
    ///
    /// # Errors
    /// The words are no filter.
    pub(crate) fn listen(&self, filter: &str) -> Result<Listening, FilterError> {
        self.taps.listen(filter)
    }

    /// Collects what workers have written down.
    pub(crate) fn collect(&self) {
        self.taps.collect();
    }

    /// Ends all subscriptions.
    pub(crate) fn end(&self) {
        self.taps.end();
    }

    /// Waits until watchers have read what there is for them, for a limited time.
    pub(crate) fn wait(&self, most: Duration) {
        self.taps.wait(most);
    }

    /// The wires as `wires.txt` of a snapshot.
    pub(crate) fn wires(&self) -> String {
        self.wires.to_string()
    }

    /// The answer to `drops`.
    pub(crate) fn drops(&self, devices: &Devices) -> Drops {
        let drops = self.taps.drops();
        Drops { drops: drops.iter().map(|told| frame(told, false, devices)).collect() }
    }
}

/// A frame in an answer, with the peers of the tunnels that it came from or was to leave through.
pub(crate) fn frame(told: &FrameEvent, with_bytes: bool, devices: &Devices) -> Frame {
    let frame = told.answer(with_bytes);
    let Some(flow) = told.flow() else { return frame };
    let peer = |port, address| devices.peer_of(port, address).map(|peer| peer.to_string());
    Frame {
        in_peer: peer(&told.input, flow.source),
        out_peer: peer(&told.output, flow.destination),
        ..frame
    }
}
