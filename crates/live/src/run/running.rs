//! [`Running`]: a handle to a run for threads that query or change it while another thread waits for its end.

use std::sync::Arc;

use serde_json::Value;

use crate::api::parts::Parts;
use crate::api::requests::answer_to_line;
use crate::api::status::Status;
use crate::ports::tunnel::Peers;
use rules::model::Family;

/// A handle to a run, usable while another thread waits for its end.
#[derive(Debug, Clone)]
pub struct Running(pub(crate) Arc<Parts>);

impl Running {
    /// Asks the workers to stop once they have handled what their ports still have.
    pub fn stop(&self) {
        self.0.workers.stop();
    }

    /// The fates of all frames so far, and the state of the workers.
    #[must_use]
    pub fn status(&self) -> Status {
        self.0.status()
    }

    /// The peers of the tunnel of this name.
    #[must_use]
    pub fn peers(&self, tunnel: &str) -> Option<Peers> {
        let found = self.0.devices.tunnels().iter().find(|site| site.name() == tunnel);
        found.map(|site| Peers(Arc::clone(site)))
    }

    /// Changes the run's own tables ([`OwnTable`](crate::config::OwnTable)), each family's by a text as
    /// `iptables-restore --noflush` reads it.
    ///
    /// # Errors
    /// A text is refused, and why; the texts before it have been put in force.
    pub fn change_own(&self, changes: &[(Family, String)]) -> Result<(), String> {
        self.0.rules.change_own(changes).map_err(|error| error.to_string())
    }

    /// Answers a line of the control protocol.
    #[must_use]
    pub fn answer(&self, line: &str) -> Value {
        answer_to_line(line, &self.0)
    }
}
